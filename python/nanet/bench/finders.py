# SPDX-License-Identifier: Apache-2.0
"""Ring finders: time of an event on one core, against hits and rings, vectorised and scalar, and whether both find the same bits.

The samples are those of `nanet physics` (flat radii, 1.2 noise hits, all rings on one disk), so speed and quality belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nanet.bench.keys import FinderCase, FinderCases, FindersResult, FinderTimes
from nanet.physics.cases import FLAT, MIX, rings
from nanet.result import files
from nanet.result.keys.base import Config

HITS = (8, 12, 20, 32)
RINGS = (1, 2, 3, 4)
MEAN_HITS = 12


@dataclass(frozen=True)
class FinderBench:
    """How much to measure. Each time is the median of `repeats` best-of-three passes over all events."""

    finders: Sequence[str] = ()  # none: all
    events: int = 8192
    repeats: int = 5
    seed: int = 3


def samples() -> list[tuple[str, Config, int]]:
    """(name, changes to the flat sample, rings; 0: a mix)."""
    found: list[tuple[str, Config, int]] = [(f"1 ring, {hits} hits", {"mean_hits": float(hits)}, 1) for hits in HITS]
    found += [(f"{n} rings, {MEAN_HITS} hits each", {"ring_count_shares": rings(n)}, n) for n in RINGS[1:]]
    return [*found, ("0 to 4 rings", {"ring_count_shares": MIX}, 0)]


def run(bench: FinderBench, say: Callable[[str], None]) -> FindersResult:
    """The result as `nanet bench rings --finder ... --json` writes it."""
    from nanet import _core
    from nanet.config.emulator import MonteCarlo

    names = list(bench.finders) or _core.finder_names()
    made = []
    for title, changes, count in samples():
        config = MonteCarlo(**(FLAT | changes), seed=bench.seed).model_dump(mode="json")
        made.append((title, count, changes, _core.physics_sample(config, bench.events)))
    finders: list[FinderCases] = []
    for name in names:
        cases: list[FinderCase] = []
        for title, count, changes, sample in made:
            case: FinderCase = {
                "sample": title,
                "rings": count,
                "mean_hits": changes.get("mean_hits", float(MEAN_HITS)),
                **_times(sample, name, bench.repeats),
            }
            cases.append(case)
            say(
                f"{name:10s} {title:22s} {case['ns_per_event']:10,.0f} ns  {case['events_per_s'] / 1e6:8.3f} Mevent/s"
                f"  scalar x{case['scalar_ratio']:.1f}  {'same bits' if case['same_bits'] else 'OTHER RINGS THAN THE SCALAR PATH'}"
            )
        finders.append({"name": name, "cases": cases})
    return {
        **files.base("bench rings --finder"),
        "finders": finders, "simd": _core.build_info()["simd"], "same_bits": all(c["same_bits"] for f in finders for c in f["cases"]),
    }  # fmt: skip


def _times(sample: Any, finder: str, repeats: int) -> FinderTimes:
    times = [sample.measure(finder, {}, "vector", 3)["ns_per_event"] for _ in range(repeats)]
    scalar = sample.measure(finder, {}, "scalar", 1)
    vector = sample.measure(finder, {}, "vector", 1)
    same = all(_same(scalar[name], vector[name]) for name in scalar if name != "ns_per_event")
    ns = float(np.median(times))
    return {
        "ns_per_event": ns, "events_per_s": 1e9 / ns, "best_ns_per_event": float(min(times)),
        "scalar_ns_per_event": float(scalar["ns_per_event"]), "scalar_ratio": float(scalar["ns_per_event"]) / ns, "same_bits": same,
    }  # fmt: skip


def _same(a: Any, b: Any) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def csv_rows(result: FindersResult) -> list[tuple[str, str, float, str]]:
    """Rows for the CSV."""
    return [
        (f"{of_finder['name']}, {case['sample']}", name, float(value), unit)
        for of_finder in result["finders"]
        for case in of_finder["cases"]
        for name, value, unit in (
            ("ns_per_event", case["ns_per_event"], "ns"),
            ("scalar_ns_per_event", case["scalar_ns_per_event"], "ns"),
            ("events_per_s", case["events_per_s"], "events/s"),
        )
    ]
