# SPDX-License-Identifier: Apache-2.0
"""The golden table: no finder's quality changes unseen.

The events come from one seed and the finders give the same bits on every instruction set, so on the machine that wrote the table every count is equal.
What may differ elsewhere: the C library's log, exp, sin and cos, whose last bit decides a hit about once in 10^13, and a Monte Carlo draw
that follows. So counts may move by 2, or by 0.2 % of the sample's rings (events where it has none); that is a fifth of the statistical error of a
share of 10 %, and far below what a changed cut does. A finder that was changed on purpose needs a new table: scripts/physics_golden.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from nanet import _core
from nanet.physics import golden
from nanet.physics.study import variants

NAMES = [name for finder in _core.finder_names() for name, _ in variants(finder, hit_times=True)]
PATH = Path(__file__).parents[1] / "physics" / "golden.csv"
RADIUS_RMS_TOLERANCE = 0.01  # of itself


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], golden.Row]:
    return {(row["case"], row["finder"]): row for row in golden.measure()}


def test_every_finder_is_in_the_table() -> None:
    keys = {(row["case"], row["finder"]) for row in golden.read(PATH)}
    assert keys == {(case, finder) for case in golden.GOLDEN_CASES for finder in NAMES}


@pytest.mark.parametrize("finder", NAMES)
def test_as_in_the_table(finder: str, measured: dict[tuple[str, str], golden.Row]) -> None:
    for expected in golden.read(PATH):
        if expected["finder"] != finder:
            continue
        now = measured[expected["case"], finder]
        allowed = max(2.0, 0.002 * (expected["rings"] or expected["events"]))
        for name in golden.COUNTS:
            assert abs(now[name] - expected[name]) <= allowed, f"{expected['case']}: {name} {now[name]}, was {expected[name]}"
        assert now["radius_rms_mm"] == pytest.approx(expected["radius_rms_mm"], rel=RADIUS_RMS_TOLERANCE), expected["case"]


def test_a_changed_cut_would_show(measured: dict[tuple[str, str], golden.Row]) -> None:
    """The table is sharp enough: another finder's row is not taken for this one's."""
    math, mixture = measured["single_ring", "math"], measured["single_ring", "mixture"]
    assert abs(math["matched"] - mixture["matched"]) > 2 + 0.002 * math["rings"]


def test_table_survives_the_file(tmp_path: Path, measured: dict[tuple[str, str], golden.Row]) -> None:
    golden.write(tmp_path / "golden.csv", list(measured.values()))
    assert golden.read(tmp_path / "golden.csv") == list(measured.values())
