# SPDX-License-Identifier: Apache-2.0
"""Quality against speed: one point a finder, sample and device; and which of them no other one beats in both."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nanet.config.errors import ConfigError
from nanet.result.keys.physics import CaseResult, FrontierPoint

COLUMNS = ("finder", "case", "events_per_s")


@dataclass(frozen=True)
class GpuRow:
    """Rate of a finder on a sample, measured on a GPU, where it gives the same rings."""

    finder: str
    case: str
    events_per_s: float


def read_gpu_csv(path: Path, finders: Sequence[str]) -> list[GpuRow]:
    """Rows of a CSV with COLUMNS; rows of finders that are not asked for are left out. Raises ConfigError."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except OSError as error:
        raise ConfigError([f"cannot read {path} ({(error.strerror or 'no reason given').lower()}) check the path"]) from None
    rows = []
    for number, line in enumerate(lines, 2):
        missing = [column for column in COLUMNS if line.get(column) in (None, "")]
        if missing:
            raise ConfigError([f"{path}:{number}: no {missing[0]} (each row needs {', '.join(COLUMNS)}) add it"])
        try:
            rate = float(line["events_per_s"])
        except ValueError:
            rate = 0.0
        if not 0 < rate < float("inf"):
            raise ConfigError([f"{path}:{number}: events_per_s is {line['events_per_s']} (it is no rate) give a positive number"])
        if line["finder"] in finders:
            rows.append(GpuRow(line["finder"], line["case"], rate))
    return rows


def points(cases: Mapping[str, CaseResult], gpu_rows: Sequence[GpuRow]) -> list[FrontierPoint]:
    """Points of every sample. A GPU's has the quality of the same finder on this sample's events: it finds the same rings."""
    rates = [(row.case, row.finder, "gpu", row.events_per_s) for row in gpu_rows if row.case in cases]
    for name, case in cases.items():
        for finder, found in case["finders"].items():
            if found["ns_per_event"]:
                rates.append((name, finder, "cpu", 1e9 / found["ns_per_event"]))
    rows: list[FrontierPoint] = []
    for name, finder, device, rate in rates:
        found = cases[name]["finders"][finder]
        rows.append({
            "case": name, "finder": finder, "device": device, "events_per_s": round(rate, 1), "efficiency": found["efficiency"],
            "all_found": found["all_found"], "fakes": found["fakes"], "clones": found["clones"], "on_frontier": False,
        })  # fmt: skip
    for row in rows:
        rivals = [other for other in rows if other["case"] == row["case"] and other["device"] == row["device"]]
        row["on_frontier"] = row["efficiency"] is not None and not any(_beats(other, row) for other in rivals)
    return rows


def _beats(other: FrontierPoint, row: FrontierPoint) -> bool:
    """Not slower and not worse, and better in one of the two; worth is efficiency less false rings."""
    faster = other["events_per_s"] - row["events_per_s"]
    better = _worth(other) - _worth(row)
    return bool(faster >= 0 and better >= 0 and (faster > 0 or better > 0))


def _worth(row: FrontierPoint) -> float:
    return float(row["efficiency"] or 0.0) - float(row["fakes"] or 0.0) - float(row["clones"] or 0.0)
