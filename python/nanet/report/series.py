# SPDX-License-Identifier: Apache-2.0
"""Charts of several methods: each with a colour and a marker of its own, error bars, a scatter plot whose labels keep apart, and an axis for shares near 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from nanet.report.svg import MARGIN_BOTTOM, MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, Axis, Chart

MARKER = 4.5  # half the size of a marker
SIDE = 9  # from a marker to its label
LINE = 15  # height of a label
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
Box = tuple[float, float, float, float]  # left, top, right, bottom
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

    def __init__(self, x: Axis, y: Axis, *, width: int = 880, height: int = 360, title: str = "") -> None:
        super().__init__(x, y, width=width, height=height, title=title)
        self._thin: list[tuple[float, float]] = []  # places along thin lines

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

    def frontier(self, xs: Sequence[float], ys: Sequence[float]) -> None:
        """A thin line through what no other point beats. Labels that come later keep off it where they can."""
        places = [(self.px(x), self.py(y)) for x, y in zip(xs, ys, strict=True)]
        if len(places) < 2:
            return
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        self._parts.append(f'<path class="frontier" d="M{path}"/>')
        for (x0, y0), (x1, y1) in pairwise(places):
            steps = max(1, int(math.hypot(x1 - x0, y1 - y0) / 6))
            self._thin += [(x0 + (x1 - x0) * k / steps, y0 + (y1 - y0) * k / steps) for k in range(steps + 1)]

    def scatter(self, points: Sequence[tuple[str, str, float, float]]) -> None:
        """(method, label, x, y) of each; labels are placed where there is room."""
        places = [(self.px(x), self.py(y)) for _, _, x, y in points]
        taken = [(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for x, y in places]
        for (name, _, _, _), (x, y) in zip(points, places, strict=True):
            self._parts.append(marker(name, x, y))
        for (name, label, _, _), (x, y) in zip(points, places, strict=True):
            anchor, box = self._room(x, y, text_width(label), taken)
            taken.append(box)
            if abs(box[1] + LINE / 2 - y) > 1.5 * LINE:  # moved away: a thin line leads back
                edge = box[3] if box[3] < y else box[1]
                self._parts.append(f'<path class="leader" d="M{x:.1f} {y:.1f}L{min(max(x, box[0]), box[2]):.1f} {edge:.1f}"/>')
            at = {"start": box[0], "end": box[2], "middle": (box[0] + box[2]) / 2}[anchor]
            place = f'text-anchor="{anchor}" x="{at:.1f}" y="{box[3] - 3:.1f}"'
            self._parts.append(f'<text class="who {classes(name)}" {place}>{escape(label)}</text>')

    def _room(self, x: float, y: float, width: float, taken: Sequence[Box]) -> tuple[str, Box]:
        """Anchor and place of a label: the nearest where it covers nothing and stays inside."""
        sides = (("start", x + SIDE), ("end", x - SIDE - width), ("middle", x - width / 2))
        best: tuple[str, Box] = ("start", (x, y, x, y))
        least = math.inf
        for away in range(9):
            for order, (anchor, left) in enumerate(sides):
                for sign in (-1, 1):
                    middle = y + sign * away * LINE * 0.8
                    box = (left, middle - LINE / 2, left + width, middle + LINE / 2)
                    covered = sum(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken)
                    crossed = any(box[0] - 2 < a < box[2] + 2 and box[1] < b < box[3] for a, b in self._thin)
                    cost = 100.0 * covered + 3.5 * crossed + 1000.0 * self._outside(box) + 2.0 * away + 0.1 * order
                    if cost < least:
                        best, least = (anchor, box), cost
        return best

    def _outside(self, box: Box) -> bool:
        return (
            box[0] < MARGIN_LEFT + 2
            or box[2] > self.width - MARGIN_RIGHT
            or box[1] < MARGIN_TOP - 10
            or box[3] > self.height - MARGIN_BOTTOM
        )


def text_width(label: str) -> float:
    """About how wide a bold label is."""
    return sum(12.5 if letter in "mwMW" else 5.0 if letter in "iljtfr() " else 9.0 for letter in label)


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
