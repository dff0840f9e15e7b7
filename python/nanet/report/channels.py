# SPDX-License-Identifier: Apache-2.0
"""How often each photomultiplier fired, as a map of both disks, with those that are hot, dead or masked marked."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from nanet.report.page import Section, number
from nanet.result.channels import hits_of_pms, numbers_text, state_lists
from nanet.result.keys.engine import Channels
from nanet.rich import pm_map

DISKS = ("Jura", "Saleve")
LEVELS = 8  # of colour
HALF_WIDTH_MM = 330
MARKS = {
    "hot": "hot: fires far more often than its neighbours",
    "dead": "dead: hardly ever fires",
    "masked": "masked: its hits are left out",
}


def section(channels: Channels) -> Section:
    """The map, what its colours and marks mean, and the channels that are marked."""
    hits = np.asarray(channels["hits"], dtype=np.int64)
    lists = state_lists(channels)
    ordered = np.sort(hits_of_pms(channels))
    full = max(1, int(ordered[round(0.99 * (len(ordered) - 1))]))  # so that hot ones do not take all the colours
    figures = "".join(
        f"<figure>{_disk(disk, hits, lists, full)}<figcaption>{name}, channels {1024 * disk} to {1024 * disk + 1023}</figcaption></figure>"
        for disk, name in enumerate(DISKS)
    )
    listed = "; ".join(f"{state}: {numbers_text(lists[state])}" for state in MARKS if lists[state])
    text = (
        f"Hits of each photomultiplier: {number(int(np.median(ordered)))} in the median, {number(int(ordered[-1]))} at most. "
        f"{listed[0].upper() + listed[1:] + '.' if listed else 'None is hot, dead or masked.'}"
    )
    return Section("Photomultipliers", f'<div class="disks">{figures}</div>{_legend(full, lists)}', text)


def _disk(disk: int, hits: Any, lists: Mapping[str, list[int]], full: int) -> str:
    places = pm_map.positions_mm()
    circles: list[list[str]] = [[] for _ in range(LEVELS + 1)]
    for channel in range(1024 * disk, 1024 * (disk + 1)):
        x, y = places[channel]
        if not np.isnan(x):
            circles[level(int(hits[channel]), full)].append(f'<circle cx="{x:.0f}" cy="{-y:.1f}" r="8.5"/>')
    drawn = "".join(f'<g class="q q{n}">{"".join(some)}</g>' for n, some in enumerate(circles) if some)
    marks = ""
    for state in MARKS:
        for channel in lists[state]:
            x, y = places[channel]
            if channel // 1024 == disk and not np.isnan(x):
                marks += _mark(state, x, -y)
    half = HALF_WIDTH_MM
    label = f"{DISKS[disk]}: " + ", ".join(f"{len([c for c in lists[state] if c // 1024 == disk])} {state}" for state in MARKS)
    return (
        f'<svg class="event" viewBox="{-half} {-half} {2 * half} {2 * half}" role="img" aria-label="{escape(label)}" '
        f'xmlns="http://www.w3.org/2000/svg">{drawn}{marks}</svg>'
    )


def level(hits: int, full: int) -> int:
    """Colour of a photomultiplier: 0 without a hit, LEVELS from `full` hits on."""
    return 0 if hits == 0 else min(LEVELS, 1 + LEVELS * hits // full)


def _mark(state: str, x: float, y: float) -> str:
    if state == "hot":
        return f'<circle class="odd hot" cx="{x:.0f}" cy="{y:.1f}" r="14"/>'
    if state == "dead":
        return f'<path class="odd dead" d="M{x - 9:.0f} {y - 9:.1f}l18 18m0 -18l-18 18"/>'
    return f'<rect class="odd masked" x="{x - 15:.0f}" y="{y - 15:.1f}" width="30" height="30"/>'


def _legend(full: int, lists: Mapping[str, list[int]]) -> str:
    def sample(drawn: str, text: str) -> str:
        picture = f'<svg class="event" viewBox="-34 -17 68 34" aria-hidden="true">{drawn}</svg>'
        return f"<span>{picture}{escape(text)}</span>"

    scale = "".join(
        f'<g class="q q{n}"><rect x="{-34 + 8.5 * (n - 1):.1f}" y="-8" width="8.5" height="16"/></g>' for n in range(1, LEVELS + 1)
    )
    parts = [
        sample('<g class="q q0"><circle r="8.5"/></g>', "no hit"),
        sample(scale, f"1 to {number(full)} hits and more"),
        *(sample(_mark(state, 0.0, 0.0), MARKS[state]) for state in MARKS if lists[state]),
    ]
    return f'<p class="legend">{"".join(parts)}</p>'
