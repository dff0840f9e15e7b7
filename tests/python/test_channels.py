# SPDX-License-Identifier: Apache-2.0
"""Photomultipliers that fire too often or never: what is said of them, in lines, in a map, in the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import made_up
import numpy as np
import pytest
from nanet.config import EngineConfig
from nanet.config.emulator import EmulatorConfig, MonteCarlo
from nanet.config.errors import ConfigError, validated
from nanet.config.rich import Decision, Mask
from nanet.report import channels as report
from nanet.result import channels
from nanet.rich import pm_map


def test_ranges_are_read_and_written() -> None:
    mask = Mask(channels=(5, "100-103", " 7 ", "101 - 104"))
    assert mask.channels == (5, 7, 100, 101, 102, 103, 104)
    assert channels.numbers_text(mask.channels) == "5, 7, 100-104"
    assert channels.numbers_text(range(0, 60, 2), most=2) == "0, 2 and 28 more"
    assert Mask.model_validate(mask.model_dump()) == mask


@pytest.mark.parametrize("item", ["2048", 2048, -1, "9-3", "a", "1-2-3", "1.5", ""])
def test_what_is_no_channel_is_refused(item: int | str) -> None:
    with pytest.raises(ConfigError, match=r"is none \(channels are 0 to 2047\) write numbers and ranges"):
        validated(Mask, {"channels": [item]})


def test_a_file_of_channels(tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    file.write_text("# after the access of May\n17\n100-102  # a cable\n\n")
    assert validated(Mask, {"channels": [3], "file": str(file)}).channels == (3, 17, 100, 101, 102)
    with pytest.raises(ConfigError, match=r"cannot be read \(no such file or directory\) give the path"):
        validated(Mask, {"file": str(tmp_path / "none.txt")})
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"cannot be read \(it is no text\)"):
        validated(Mask, {"file": str(file)})


def test_the_emulator_takes_a_fixed_mask_only() -> None:
    assert EmulatorConfig(mask={"channels": ["3-4"]}).mask.channels == (3, 4)
    with pytest.raises(ConfigError, match=r"mask\.hot is true"):
        validated(EmulatorConfig, {"mask": {"hot": True}})
    made = MonteCarlo(hot_channels=("3-5",), dead_channels=(9,))
    assert made.hot_channels == (3, 4, 5)
    assert made.dead_channels == (9,)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kind": "count", "mask": {"channels": [3]}}, r"mask is configured \(processor count looks at no hits\) remove it"),
        ({"runtime": "launch", "mask": {"hot": True}}, r"mask\.hot is true \(a GPU counts the hits of channels but does not judge"),
    ],
)
def test_a_mask_where_it_would_do_nothing_is_refused(changes: dict[str, Any], problem: str) -> None:
    plain = {
        "version": 1, "memory_regions": [{"name": "m"}], "processor": changes,
        "links": [{"name": "in", "endpoint": "udp://127.0.0.1:6200", "memory_region": "m", "sources": [{"name": "a"}]}],
    }  # fmt: skip
    with pytest.raises(ConfigError, match=problem):
        validated(EngineConfig, plain)


def test_limits_of_an_old_configuration_become_cuts() -> None:
    old = validated(Decision, {"finder": {"name": "mixture", "radius_min_mm": 80.0, "radius_max_mm": 195}})
    assert (old.cuts.radius_min_mm, old.cuts.radius_max_mm) == (80.0, 195.0)
    assert old.old_names() == [
        "finder.radius_min_mm is an old name (one range holds for every finder) write cuts.radius_min_mm",
        "finder.radius_max_mm is an old name (one range holds for every finder) write cuts.radius_max_mm",
    ]
    both = validated(Decision, {"finder": {"name": "triplets", "center_max_mm": 120}, "cuts": {"center_max_mm": 150}})
    assert both.cuts.center_max_mm == 150.0
    assert Decision.model_validate(old.model_dump()).cuts == old.cuts
    assert validated(Decision, {"finder": {"name": "triplets"}}).old_names() == []
    with pytest.raises(ConfigError, match="is not below"):
        validated(Decision, {"finder": {"name": "mixture", "radius_min_mm": 230.0}})


def test_lines() -> None:
    told = made_up.channels()
    assert list(channels.masked_notes(told)) == [
        "masked at 0.012 s, after 256 events: 1 channel, 1500 (far more hits than the neighbours) list them in mask.channels"
    ]
    assert list(channels.notes(told)) == [
        "hot: 1 channel, 300 (more than 4 times the hits of the neighbours) list them in mask.channels, or set mask.hot",
        "dead: 8 channels, 640-647 (at most a fiftieth of the hits of the neighbours) see their supply and cables",
    ]
    assert list(channels.notes(None)) == list(channels.masked_notes(None)) == []
    quiet: dict[str, Any] = told | {"hot": [], "dead": [], "masked_in_run": []}
    assert list(channels.notes(quiet)) == list(channels.masked_notes(quiet)) == []


def test_the_map_shows_every_photomultiplier_and_what_is_wrong() -> None:
    section = report.section(made_up.channels())
    assert section.body.count("<circle cx=") == 1952
    assert [section.body.count(f'class="odd {state}"') - 1 for state in ("hot", "dead", "masked")] == [2, 8, 1]  # one in the legend
    assert "hot: 300, 1500; dead: 640-647; masked: 1500." in section.text.lower()
    healthy = report.section(made_up.channels() | {"hot": [], "dead": [], "masked_in_run": []})
    assert "None is hot, dead or masked." in healthy.text
    assert "odd" not in healthy.body


def test_a_run_without_hits_has_a_map_too() -> None:
    nothing = {"hits": [0] * 2048, "hot": [], "dead": [], "masked": [3], "masked_in_run": []}
    assert "0 in the median" in report.section(nothing).text
    assert report.level(0, 1) == 0


def test_colours_go_up_to_the_last() -> None:
    assert [report.level(n, 100) for n in (0, 1, 50, 99, 100, 10**9)] == [0, 1, 5, 8, 8, 8]


def test_a_neighbourhood_is_where_the_map_says() -> None:
    """The channels named by hand elsewhere lie on the disk."""
    assert not np.isnan(pm_map.positions_mm()[made_up.channels()["hot"]]).any()
