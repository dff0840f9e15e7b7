# SPDX-License-Identifier: Apache-2.0
"""What the best finder should reach, and by how much it does or does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TIMED = "_time"  # ends the name of a finder that looks at hit times


@dataclass(frozen=True)
class Goal:
    """A limit for one figure of one sample."""

    case: str
    figure: str
    limit: float
    at_least: bool  # else: at most


GOALS = (
    Goal("single_ring", "efficiency", 0.996, True),
    Goal("single_ring", "fakes", 0.006, False),
    Goal("single_ring", "ratio_to_bound", 1.00, False),
    Goal("two_rings_apart", "all_found", 0.98, True),
    Goal("two_rings_apart", "fakes", 0.02, False),
    Goal("two_rings_apart", "ratio_to_bound", 1.10, False),
    Goal("three_rings_apart", "all_found", 0.94, True),
    Goal("three_rings_apart", "fakes", 0.05, False),
    Goal("three_rings", "all_found", 0.85, True),
)


def merit(figures: Mapping[str, Any]) -> float:
    """What makes a finder the best on a sample: events with all rings found, less false rings an event. Without true rings: few fakes."""
    return float(figures["all_found"] or 0.0) - float(figures["fakes"]) - float(figures["clones"])


def best(finders: Mapping[str, Mapping[str, Any]], *, hit_times: bool = True) -> str:
    """The finder with the most merit, if asked among those that do not look at hit times; the oracle does not take part."""
    names = [name for name in finders if name != "oracle" and (hit_times or not name.endswith(TIMED))]
    return max(names, key=lambda name: merit(finders[name]))


def judge(cases: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each goal whose sample was measured, for the best finder of that sample, first of those that do not look at hit times, then of all."""
    judged = []
    for goal, hit_times in [(goal, hit_times) for hit_times in (False, True) for goal in GOALS]:
        if goal.case not in cases:
            continue
        case = cases[goal.case]
        finder = best(case["finders"], hit_times=hit_times)
        if hit_times and not finder.endswith(TIMED):
            continue
        figures = case["finders"][finder]
        found = figures[goal.figure]
        spare = None if found is None else (found - goal.limit if goal.at_least else goal.limit - found)
        judged.append({
            "case": goal.case, "title": case["title"], "figure": goal.figure, "limit": goal.limit,
            "sense": "at least" if goal.at_least else "at most", "found": found, "error": figures.get(f"{goal.figure}_error"),
            "finder": finder, "hit_times": hit_times, "met": spare is not None and spare >= 0, "spare": None if spare is None else round(spare, 6),
        })  # fmt: skip
    return judged
