# SPDX-License-Identifier: Apache-2.0
"""Charts of several methods: each with a colour and a marker of its own, error bars, a scatter plot whose labels keep apart, and an axis for shares near 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from nanet.report.labels import LINE, text_width
from nanet.report.svg import Axis, Chart, drawn

MARKER = 4.5  # half the size of a marker
SHAPES = {
    "circle": "M{r} 0A{r} {r} 0 1 1 -{r} 0A{r} {r} 0 1 1 {r} 0Z",
    "square": "M-{s} -{s}H{s}V{s}H-{s}Z",
    "diamond": "M0 -{d}L{d} 0L0 {d}L-{d} 0Z",
    "up": "M0 -{d}L{d} {s}H-{d}Z",
    "down": "M0 {d}L{d} -{s}H-{d}Z",
}
# Name -> (number of its colour in style.css, shape). Finders of one ring have hollow markers and broken lines, those of several full ones.
FINDERS = {
    "math": (0, "circle"), "pomh": (1, "square"), "domh": (2, "diamond"), "hough": (3, "up"), "tripls": (4, "down"),
    "histogram": (5, "square"), "almagest": (6, "up"), "triplets": (7, "diamond"), "mixture": (8, "circle"), "oracle": (9, "down"),
    "almagest_ptolemy": (6, "down"), "triplets_time": (7, "up"), "mixture_time": (8, "square"),
}  # fmt: skip
HOLLOW = {"math", "pomh", "domh", "hough", "tripls", "oracle"}


class NinesAxis(Axis):
    """Shares from 0 to nearly 1, where each step nearer to 1 by a factor takes the same room: 90, 99, 99.9 %."""

    def __init__(self, high: float, label: str) -> None:
        super().__init__(0.0, high, label, percent=True)

    def share(self, value: float) -> float:
        """Where a value lies; above the highest: on the edge."""
        return min(1.0, max(0.0, math.log(max(1.0 - value, 1e-12)) / math.log(1.0 - self.high)))

    def ticks(self) -> list[float]:
        """50, 80, 90, 95, 98 % and so on."""
        near = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005)
        return [round(1.0 - rest, 6) for rest in near if 1.0 - rest <= self.high + 1e-9]


class SeriesChart(Chart):
    """A chart of methods."""

    @drawn
    def series(
        self, name: str, xs: Sequence[float], ys: Sequence[float | None], errors: Sequence[float | None] | None = None
    ) -> None:
        """Points of one method joined by a line, with error bars; points without a value are left out."""
        kept = [(x, y, (errors[n] or 0.0) if errors else 0.0) for n, (x, y) in enumerate(zip(xs, ys, strict=True)) if y is not None]
        if not kept:
            return
        style = classes(name)
        path = "L".join(f"{self.px(x):.1f} {self.py(y):.1f}" for x, y, _ in kept)
        self._parts.append(f'<path class="line {style}" d="M{path}"/>')
        bars = "".join(
            f"M{self.px(x):.1f} {self.py(y - error):.1f}V{self.py(y + error):.1f}"
            for x, y, error in kept
            if self.py(y - error) - self.py(y + error) > 2 * MARKER
        )
        if bars:
            self._parts.append(f'<path class="bar {style}" d="{bars}"/>')
        self._parts += [marker(name, self.px(x), self.py(y)) for x, y, _ in kept]

    @drawn
    def frontier(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        """A thin line through what no other point beats. Labels that come later keep off it where they can."""
        places = [(self.px(x), self.py(y)) for x, y in zip(xs, ys, strict=True)]
        if len(places) < 2:
            return
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        self._parts.append(f'<path class="frontier" d="M{path}"/>')
        for (x0, y0), (x1, y1) in pairwise(places):
            self._labels.keep_off_line(x0, y0, x1, y1)

    @drawn
    def scatter(self, points: Sequence[tuple[str, str, float, float]]) -> None:
        """(method, label, x, y) of each; a label that had to go away from its point has a thin line back to it."""
        places = [(self.px(x), self.py(y)) for _, _, x, y in points]
        for (name, _, _, _), (x, y) in zip(points, places, strict=True):
            self._labels.keep_off((x - MARKER, y - MARKER, x + MARKER, y + MARKER))
            self._parts.append(marker(name, x, y))
        for (name, label, _, _), (x, y) in zip(points, places, strict=True):
            box = self._labels.place_anywhere(x, y, text_width(label))
            across, down = min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
            if math.hypot(across - x, down - y) > 1.2 * LINE:
                self._parts.append(f'<path class="leader" d="M{x:.1f} {y:.1f}L{across:.1f} {down:.1f}"/>')
                self._labels.keep_off_line(x, y, across, down)
            anchor, at = ("end", box[2]) if box[2] < x else ("start", box[0])
            place = f'text-anchor="{anchor}" x="{at:.1f}" y="{box[3] - 3:.1f}"'
            self._parts.append(f'<text class="who {classes(name)}" {place}>{escape(label)}</text>')


def classes(name: str) -> str:
    """CSS classes of a method."""
    return f"k{FINDERS.get(name, (9, ''))[0]}" + (" hollow" if name in HOLLOW else "")


def marker(name: str, x: float, y: float) -> str:
    """The marker of a method at a place."""
    shape = SHAPES[FINDERS.get(name, (9, "circle"))[1]].format(r=MARKER, s=f"{MARKER * 0.88:.1f}", d=f"{MARKER * 1.25:.1f}")
    return f'<path class="mark {classes(name)}" transform="translate({x:.1f} {y:.1f})" d="{shape}"/>'


def legend(names: Sequence[str], notes: Mapping[str, str] | None = None) -> str:
    """Line, marker and name of each method, in a row that wraps."""
    notes = notes or {}
    items = "".join(
        f'<span><svg viewBox="0 0 34 14" width="34" height="14" aria-hidden="true"><path class="line {classes(name)}" d="M1 7H33"/>'
        f"{marker(name, 17, 7)}</svg>{escape(notes.get(name, name))}</span>"
        for name in names
    )
    return f'<p class="legend">{items}</p>'
