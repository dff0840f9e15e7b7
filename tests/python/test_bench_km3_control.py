# SPDX-License-Identifier: Apache-2.0
"""nanet bench km3-control: two emulated floors behind a server, with data and without; what it says, and what it makes of that."""

from __future__ import annotations

from typing import Any

import pytest
from make_json_page import differences
from nanet.km3 import bench as km3_control
from nanet.km3.bench_keys import Km3ControlResult
from nanet.result import files

TIMES = {"p50": 46.0, "p90": 60.0, "p99": 100.0, "p99_9": 900.0, "p99_99": 950.0, "max": 990.0, "mean": 50.0, "min": 40.0}
ASKED: dict[str, Any] = {"answered": 4000, "not_answered": 0, "round_trip_us": TIMES}


def made(**changes: Any) -> Any:
    plain = {
        "floors": 14, "duration_s": 10.0, "rate_mbit_s": 351.0, "server_cores": 0.5, "units_sent": 100, "units_in": 100, "units_incomplete": 0,
        "units_delivered": 100, "load": 1.0, "bare_idle": ASKED, "bare_busy": ASKED, "server_idle": ASKED, "server_busy": ASKED,
    }  # fmt: skip
    return {**files.base("bench km3-control"), **plain, **changes}


def test_what_it_says() -> None:
    slow = ASKED | {"round_trip_us": TIMES | {"p99_9": 1800.0}}
    assert list(km3_control.lines(made(server_busy=slow)))[-1] == "server / bare socket, with data: p50 1.0, p99 1.0, p99_9 2.0"
    said = "\n".join(km3_control.lines(made()))
    assert "server, with data: p50 46, p99 100, p99_9 900, max 990 us; 4,000 answered, 0 not at the first try" in said
    assert list(differences(made(), Km3ControlResult)) == []


def test_free_ports_lie_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    first = km3_control._free_row(14)
    bound = [km3_control._bound(first + number) for number in range(14)]
    for one in bound:
        one.close()
    monkeypatch.setattr(km3_control, "_bound", lambda _: (_ for _ in ()).throw(OSError))
    with pytest.raises(km3_control.Km3ControlError, match="ports in a row"):
        km3_control._free_row(2)


@pytest.mark.slow
def test_two_floors_are_asked_with_data_and_without() -> None:
    """How long it took is the machine's business here."""
    result = km3_control.run(km3_control.Options(duration_s=0.3, floors=2))
    assert list(differences(result, Km3ControlResult)) == []
    assert result["units_in"] > 0
    assert result["units_delivered"] <= result["units_in"] <= result["units_sent"]
    for name in ("bare_idle", "bare_busy", "server_idle", "server_busy"):
        assert result[name]["answered"] > 0  # type: ignore[literal-required]
