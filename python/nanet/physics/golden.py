# SPDX-License-Identifier: Apache-2.0
"""The golden table: what each finder gives on small samples, counted; a change of any finder shows in it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nanet import _core
from nanet.physics.cases import CASES
from nanet.physics.study import ORACLE, Study, measure_all

EVENTS = 1000
SEED = 20_061
GOLDEN_CASES = ("single_ring", "two_rings", "multi_ring", "noise_6", "pileup", "real_mix")
COUNTS = ("rings", "matched", "all_found", "found", "fakes", "clones")
COLUMNS = ("case", "finder", "events", *COUNTS, "radius_rms_mm")

Row = dict[str, Any]


def measure(finders: Sequence[str] = ()) -> list[Row]:
    """The table, as it is now."""
    study = Study(events=EVENTS, seed=SEED, finders=tuple(finders or _core.finder_names()), passes=1)
    rows = []
    for case in GOLDEN_CASES:
        for finder, (columns, _) in measure_all(CASES[case], study, EVENTS).items():
            if finder == ORACLE:
                continue
            matched = columns["ring_matched"].astype(bool)
            in_event = [0] * EVENTS
            for event, found in zip(columns["ring_event"].tolist(), matched.tolist(), strict=True):
                in_event[event] += found
            whole = sum(1 for n, of in zip(in_event, columns["event_rings"].tolist(), strict=True) if of and n == of)
            errors = columns["ring_dr_mm"][matched].astype(float)
            rms = float((errors**2).mean() ** 0.5) if len(errors) else 0.0
            found_rings, fakes, clones = (int(columns[f"event_{name}"].sum()) for name in ("found", "fakes", "clones"))
            values = (case, finder, EVENTS, len(matched), int(matched.sum()), whole, found_rings, fakes, clones, round(rms, 4))
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def read(path: Path) -> list[Row]:
    """A table that was written."""
    with path.open(newline="", encoding="utf-8") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for row in rows:
        for name in ("events", *COUNTS):
            row[name] = int(row[name])
        row["radius_rms_mm"] = float(row["radius_rms_mm"])
    return rows


def write(path: Path, rows: Sequence[Row]) -> None:
    """Writes a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
