# SPDX-License-Identifier: Apache-2.0
"""nanet bench km3-burst: what it makes of counters, and two floors in a burst, with room for it and without."""

from __future__ import annotations

from typing import Any

import pytest
from make_json_page import differences
from nanet.bench import km3_burst as burst
from nanet.bench.km3_burst_keys import BurstResult
from nanet.cli.app import app
from nanet.config import EngineConfig
from typer.testing import CliRunner

SENT = {"hits": 1000, "packets_sent": 20, "units": 4, "units_made_late": 0, "tx_dropped": 0}


def made(*, lost: dict[str, int] | None = None, **counters: int) -> Any:
    known = {
        "hits_used": 990,
        "hits_below_threshold": 10,
        "hits_bad_time": 0,
        "hits_no_room": 0,
        "packets_accepted": 20,
        "units_used": 4,
    }
    ended = {"counters": known | counters, "losses": lost or {}, "balance": {"unexplained_packets": 0}}
    return burst.result_of(burst.Options(), SENT, ended)


def test_a_hit_that_is_missing_without_a_name_is_seen() -> None:
    kept = made()
    assert burst.is_kept(kept)
    assert list(differences(kept, BurstResult)) == []
    assert "990 judged (99.0000 %)" in burst.lines(kept)[0]
    assert made(hits_used=989)["hits_unexplained"] == 1
    assert made(hits_used=991)["hits_unexplained"] == -1
    named = made(hits_used=900, hits_no_room=90, lost={"hits_no_room": 90})
    assert (burst.is_kept(named), named["hits_in_lost_units"]) == (True, 0)
    assert not burst.is_kept(made(hits_used=899, hits_no_room=90, lost={"hits_no_room": 90}))
    lost = made(hits_used=500, units_used=2, lost={"units_timed_out": 2})
    assert (burst.is_kept(lost), lost["hits_in_lost_units"]) == (True, 490)
    assert "2 units_timed_out; 490 hits with them" in burst.lines(lost)[1]


def test_short_and_what_it_sets_are_not_given_together() -> None:
    said = CliRunner().invoke(app, ["bench", "km3-burst", "--short", "--floors", "31"])
    assert said.exit_code == 2
    assert "--short sets it; give one of the two" in said.output


@pytest.mark.parametrize("room", [None, 100_000])
def test_two_floors_in_a_burst(room: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """All hits of four times the rate, or just those for which there is room, the others by name. As slow as a busy machine may need it."""
    plain = burst.engine_of

    def engine_of(options: burst.Options, port: int) -> Any:
        config = plain(options, port).model_dump(mode="json", exclude_unset=True)
        if room is not None:
            config["processor"]["km3"]["trigger"]["floor_hits_max"] = room
        return EngineConfig.model_validate(config)

    monkeypatch.setattr(burst, "engine_of", engine_of)
    monkeypatch.setattr(burst, "BEFORE_S", 0.2)
    monkeypatch.setattr(burst, "AFTER_S", 0.2)
    monkeypatch.setattr(burst, "DRAINED_S", 1.6)  # counters come once a second
    result = burst.run(burst.Options(floors=2, burst_s=0.2, speed=0.2))
    assert burst.is_kept(result), result
    assert (result["units_sent"], result["units_used"]) == (6, 6)
    assert result["hits_sent"] > 2 * 6 * 55_000 * 0.2 * 5.9
    if room is None:
        assert result["losses"] == {}
        assert result["hits_used"] > 0.9 * result["hits_sent"]
    else:
        assert result["hits_left_out"]["hits_no_room"] > 2 * 160_000
