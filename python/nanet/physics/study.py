# SPDX-License-Identifier: Apache-2.0
"""Runs the study: every sample, every finder, the scans; the result is what `nanet physics --json` writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from nanet import _core
from nanet.config.errors import ConfigError, nearest
from nanet.physics import frontier, separation
from nanet.physics.best import TIMED, best
from nanet.physics.cases import CASES, DISTANCE_EDGES_MM, RING_HIT_EDGES, SCANS, Case, Scan
from nanet.physics.figures import UNITS, Columns, figures, number, resolution, select
from nanet.result import files
from nanet.result.keys.physics import CaseResult, Figures, PhysicsResult, ScanPoint, ScanResult

ORACLE = "oracle"
TIME_CUT = "time_use"
SCAN_SHARE = 0.5  # events of a point of a scan, of those of a sample


@dataclass(frozen=True)
class Study:
    """How much to measure."""

    events: int = 20_000
    seed: int = 1
    finders: tuple[str, ...] = ()  # none: all
    cases: tuple[str, ...] = ()  # none: all
    scan: bool = True
    gpu_csv: Path | None = None
    hit_times: bool = True  # finders that can look at hit times are measured a second time, looking at them
    passes: int = 3  # of each finder over each sample; the fastest counts


def run(study: Study, say: Callable[[str], None]) -> PhysicsResult:
    """The result. Raises ConfigError for a finder or a sample that does not exist."""
    finders = known("ring finder", study.finders, list(_core.finder_names()))
    names = known("case", study.cases, list(CASES))
    study = replace(study, finders=tuple(finders), cases=tuple(names))
    gpu_rows = frontier.read_gpu_csv(study.gpu_csv, finders) if study.gpu_csv else []
    cases: dict[str, CaseResult] = {}
    for name in names:
        cases[name] = measure_case(CASES[name], study)
        chosen = cases[name]["finders"][cases[name]["best"]]
        all_found = "" if chosen["all_found"] is None else f"all found {100 * chosen['all_found']:.2f} %, "
        say(f"{CASES[name].title:38} {all_found}{chosen['fakes']:.4f} fakes an event by {cases[name]['best']}")

    def of_best(name: str) -> Figures | None:
        if name not in cases:
            return None
        chosen = cases[name]["best"]
        return cases[name]["finders"][chosen] | {"best": chosen}

    return {
        **files.base("physics"),
        "events": study.events,
        "seed": study.seed,
        "finders": finders,
        "simd": _core.build_info()["simd"],
        "single_ring": of_best("single_ring"),
        "two_rings_apart": of_best("two_rings_apart"),
        "three_rings_apart": of_best("three_rings_apart"),
        "three_rings": of_best("three_rings"),
        "multi_ring": of_best("multi_ring"),
        "cases": cases,
        "frontier": frontier.points(cases, gpu_rows),
        "scans": scans(study, say) if study.scan else None,
    }


def known(what: str, wanted: tuple[str, ...], there: list[str]) -> list[str]:
    """`wanted` without repeats, or all that are there. Raises ConfigError for one that is not."""
    if not wanted or "all" in wanted:
        return there
    for name in wanted:
        if name not in there:
            raise ConfigError([f"no {what} '{name}' (there are {', '.join(there)}) {nearest(name, there)}"])
    return list(dict.fromkeys(wanted))


def measure_all(case: Case, study: Study, events: int) -> dict[str, tuple[Columns, float | None]]:
    """Columns and ns an event of each finder on one sample, and of the oracle."""
    sample = _core.physics_sample(case.monte_carlo(study.seed).model_dump(mode="json"), events, case.apart_mm)
    truth = dict(sample.truth())
    measured: dict[str, tuple[Columns, float | None]] = {}
    for finder in study.finders:
        for name, cuts in variants(finder, hit_times=study.hit_times):
            found = dict(sample.measure(finder, cuts, "vector", study.passes))
            ns_per_event = found.pop("ns_per_event")
            measured[name] = (truth | found, ns_per_event)
    oracle = dict(sample.measure("", {}, ORACLE, 1))
    oracle.pop("ns_per_event")
    measured[ORACLE] = (truth | oracle, None)
    return measured


def variants(finder: str, *, hit_times: bool) -> list[tuple[str, dict[str, int]]]:
    """(name, cuts) of the finder as it is; Almagest with Ptolemy's test too; where it has that choice, looking at hit times too."""
    timed = hit_times and TIME_CUT in _core.default_finder_cuts().get(finder, {})
    found: list[tuple[str, dict[str, int]]] = [(finder, {})]
    if finder == "almagest":
        found.append(("almagest_ptolemy", {"ptolemy_hits_min": 4}))  # as published
    return [*found, (finder + TIMED, {TIME_CUT: 1})] if timed else found


def measure_case(case: Case, study: Study) -> CaseResult:
    """One sample: title, what was drawn, figures of each finder, and which is the best."""
    finders: dict[str, Figures] = {}
    for name, (columns, ns_per_event) in measure_all(case, study, study.events).items():
        finders[name] = figures(columns, ns_per_event)
        if case.momentum_bins_gev:
            finders[name] |= {
                "electron_window": separation.electron_window(columns),
                "kinds_by_momentum": separation.kind_shares(columns),
                "separation": separation.by_momentum(columns, case.momentum_bins_gev),
            }
    chosen = best(finders)
    config = case.monte_carlo(study.seed).model_dump(mode="json") | {"apart_mm": case.apart_mm}
    return {"title": case.title, "best": chosen, "efficiency": finders[chosen]["efficiency"], "finders": finders, "config": config}


def scans(study: Study, say: Callable[[str], None]) -> dict[str, ScanResult]:
    """Figures of each finder at each point of each scan; and, from large samples, against distance and against hits of a ring."""
    events = max(100, int(SCAN_SHARE * study.events))
    once = replace(study, passes=1, hit_times=False)
    result: dict[str, ScanResult] = {}
    for scan in SCANS:
        result[scan.name] = run_scan(scan, once, events)
        say(f"scan: {scan.title}")
    result["distance"] = against_distance(once)
    result["ring_hits"] = against_ring_hits(once)
    say("scan: distance between two centres, hits of a ring")
    return result


def run_scan(scan: Scan, study: Study, events: int) -> ScanResult:
    """Points of one scan."""
    points: list[ScanPoint] = []
    for x, case in scan.points:
        measured = measure_all(case, study, events)
        points.append({"x": x, "finders": {name: figures(columns, ns) for name, (columns, ns) in measured.items()}})
    return {"title": scan.title, "unit": scan.unit, "points": points}


def against_distance(study: Study) -> ScanResult:
    """Two rings, in bins of the distance of their centres."""
    measured = measure_all(CASES["two_rings"], study, study.events)
    truth = next(iter(measured.values()))[0]
    distance = np.full(len(truth["event_rings"]), np.nan)
    distance[truth["ring_event"]] = truth["ring_nearest_mm"]
    points: list[ScanPoint] = []
    for low, high in pairwise(DISTANCE_EDGES_MM):
        chosen = (distance >= low) & (distance < high)
        if chosen.any():
            bins = {name: figures(select(columns, chosen)) for name, (columns, _) in measured.items()}
            points.append({"x": (low + high) / 2, "low": low, "high": high, "finders": bins})
    return {"title": "distance between the centres of two rings", "unit": "mm", "points": points}


def against_ring_hits(study: Study) -> ScanResult:
    """Efficiency and resolution of single rings against the hits that the ring really has."""
    parts = [measure_all(CASES["single_ring"], study, study.events)]
    bright = replace(CASES["single_ring"], changes={"mean_hits": 20.0})
    parts.append(measure_all(bright, study, study.events))
    points: list[ScanPoint] = []
    for low, high in pairwise(RING_HIT_EDGES):
        finders = {name: _in_hit_bin([part[name][0] for part in parts], low, high) for name in parts[0]}
        points.append({"x": (low + high - 1) / 2, "low": low, "high": high - 1, "finders": finders})
    return {"title": "hits of a ring", "unit": "hits", "points": points}


def _in_hit_bin(parts: list[Columns], low: int, high: int) -> Figures:
    names = [name for name in parts[0] if name.startswith("ring_")]
    rings = {name: np.concatenate([part[name] for part in parts]) for name in names}
    chosen = (rings["ring_hits"] >= low) & (rings["ring_hits"] < high)
    count = int(chosen.sum())
    efficiency = number(rings["ring_matched"][chosen].mean()) if count else None
    return {"rings": count, "efficiency": efficiency} | resolution(rings, chosen)


def csv_rows(result: PhysicsResult) -> list[tuple[str, str, float, str]]:
    """Rows (case/finder, figure, value, unit) for the CSV."""
    rows = []
    samples = [(name, case["finders"]) for name, case in result["cases"].items()]
    for name, scan in (result["scans"] or {}).items():
        samples += [(f"{name}={point['x']:g}", point["finders"]) for point in scan["points"]]
    for name, finders in samples:
        for finder, found in finders.items():
            for figure, unit in UNITS.items():
                for key in (figure, f"{figure.removesuffix('_mm')}_error{'_mm' if figure.endswith('_mm') else ''}"):
                    if found.get(key) is not None:
                        rows.append((f"{name}/{finder}", key, float(found[key]), unit))
    return rows
