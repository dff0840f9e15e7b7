# SPDX-License-Identifier: Apache-2.0
"""Charts as inline SVG: small, exact, and coloured by the page's style sheet, so that they follow light and dark.

A chart remembers what it is to show and is drawn twice, for a wide and for a narrow screen: text that is scaled
down cannot be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from html import escape
from itertools import pairwise
from typing import Concatenate, ParamSpec, TypeVar

from nanet.report.labels import Labels, text_width

WIDE, NARROW = 880, 360  # widths in the unit of the text's size; style.css says which of the two is shown
MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 80, 16, 34, 44
LETTER = 7.6  # mean width of a letter of ticks and legend, rather too wide
LEGEND_ROW, LEGEND_GAP = 20, 36  # height of a row; line and space before a name
DOT = 3.5
Drawing = ParamSpec("Drawing")
_Chart = TypeVar("_Chart", bound="Chart")


class Axis:
    """One axis: range, linear or logarithmic, and where its ticks are."""

    def __init__(self, low: float, high: float, label: str, *, log: bool = False, percent: bool = False) -> None:
        if not high > low or (log and low <= 0.0):
            raise ValueError(f"no axis from {low} to {high} (the range is empty) widen it")
        self.low, self.high, self.label, self.log, self.percent = low, high, label, log, percent

    def share(self, value: float) -> float:
        """Where a value lies: 0 at low, 1 at high; values outside are set to the edge."""
        if self.log:
            value = max(value, self.low)
            place = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            place = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, place))

    def ticks(self) -> list[float]:
        """Round values inside the range, about six."""
        if self.log:
            return self._log_ticks()
        raw = (self.high - self.low) / 6
        unit = 10.0 ** math.floor(math.log10(raw))
        step = next(unit * n for n in (1, 2, 5, 10) if unit * n >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [step * n for n in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def minor_ticks(self) -> list[float]:
        """2 to 9 in each decade of a logarithmic axis."""
        if not self.log:
            return []
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        return [n * 10.0**d for d in decades for n in range(2, 10) if self.low < n * 10.0**d < self.high]

    def text(self, value: float) -> str:
        """A tick's label."""
        if self.percent:
            return f"{value * 100:.12f}".rstrip("0").rstrip(".") + " %"
        if value >= 1e6:
            return f"{value / 1e6:g} M"
        return f"{value:,.10g}".replace(",", "\u2009")

    def _log_ticks(self) -> list[float]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        ticks = [10.0**d for d in range(first, last + 1)]
        if len(ticks) < 3:
            ticks = sorted({*ticks, *(v for v in self.minor_ticks() if round(v / 10 ** math.floor(math.log10(v))) in (2, 5))})
        return ticks


def drawn(method: Callable[Concatenate[_Chart, Drawing], None]) -> Callable[Concatenate[_Chart, Drawing], None]:
    """Makes a method of a chart one that is remembered, and done once for each width in which the chart is drawn."""

    @wraps(method)
    def remember(chart: _Chart, /, *arguments: Drawing.args, **named: Drawing.kwargs) -> None:
        chart._calls.append(partial(method, chart, *arguments, **named))

    return remember


class Chart:
    """A chart that grows by calls and ends in `html()` or `svg()`. Later things are painted over earlier ones."""

    def __init__(self, x: Axis, y: Axis, *, height: int = 360, title: str = "") -> None:
        self.x, self.y, self.height, self.title = x, y, height, title
        self._calls: list[Callable[[], None]] = []
        self._begin(WIDE)

    def html(self) -> str:
        """The chart in both widths, of which the page shows the one that fits."""
        return f'<div class="chart">{self.svg(WIDE, "wide")}{self.svg(NARROW, "narrow")}</div>'

    def svg(self, width: int = WIDE, style: str = "wide") -> str:
        """The chart as an <svg> element of this width."""
        self._begin(width)
        for call in self._calls:
            call()
        rows = self._legend_rows()
        above = LEGEND_ROW * (len(rows) - 1)  # rows that have no room beside the name of the vertical axis
        box = f"0 {-above} {self.width} {self.height + above}"
        head = (
            f'<svg class="{style}" viewBox="{box}" role="img" aria-label="{escape(self.title)}" xmlns="http://www.w3.org/2000/svg">'
        )
        legend = "".join(self._legend_text(row, 13 - LEGEND_ROW * n) for n, row in enumerate(rows))
        return head + self._frame() + "".join(self._parts) + legend + "</svg>"

    def _begin(self, width: int) -> None:
        """An empty chart of this width."""
        self.width = width
        widest = max((len(self.y.text(value)) for value in self.y.ticks()), default=0)
        self.left = float(MARGIN_LEFT) if width >= WIDE else LETTER * widest + 12
        self._parts: list[str] = []
        self._legend: list[tuple[str, str]] = []
        self._labels = Labels((self.left + 2, MARGIN_TOP - 10, self.width - MARGIN_RIGHT, self.height - MARGIN_BOTTOM))

    def px(self, value: float) -> float:
        """Horizontal place of a value."""
        return self.left + self.x.share(value) * (self.width - self.left - MARGIN_RIGHT)

    def py(self, value: float) -> float:
        """Vertical place of a value."""
        return self.height - MARGIN_BOTTOM - self.y.share(value) * (self.height - MARGIN_TOP - MARGIN_BOTTOM)

    @drawn
    def line(self, xs: Sequence[float], ys: Sequence[float], style: str, name: str = "", *, step: bool = False) -> None:
        """A line through points; `step`: level until the next point."""
        if len(xs) == 0:
            return
        places = [(self.px(a), self.py(b)) for a, b in zip(xs, ys, strict=True)]
        path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
        for here in places[1:]:
            path += f"H{here[0]:.1f}V{here[1]:.1f}" if step else f"L{here[0]:.1f} {here[1]:.1f}"
        self._parts.append(f'<path class="line {style}" d="{path}"/>')
        for here, there in pairwise(places):
            self._labels.keep_off_line(*here, *there)
        if name:
            self._legend.append((name, style))

    @drawn
    def dots(self, xs: Sequence[float], ys: Sequence[float], style: str, labels: Sequence[str] = ()) -> None:
        """A dot at each point, with a label beside it where there is room for it."""
        places = [(self.px(a), self.py(b)) for a, b in zip(xs, ys, strict=True)]
        for x, y in places:
            self._parts.append(f'<circle class="dot {style}" cx="{x:.1f}" cy="{y:.1f}" r="{DOT}"/>')
            self._labels.keep_off((x - DOT, y - DOT, x + DOT, y + DOT))
        for (x, y), label in zip(places, labels, strict=False):
            if box := self._labels.place(x, y, text_width(label)):
                anchor, at = ("end", box[2]) if box[0] < x - DOT else ("start", box[0])
                self._parts.append(
                    f'<text class="note" text-anchor="{anchor}" x="{at:.1f}" y="{box[3] - 3:.1f}">{escape(label)}</text>'
                )

    @drawn
    def bars(self, edges: Sequence[float], counts: Sequence[float], style: str) -> None:
        """A filled histogram: counts[k] between edges[k] and edges[k + 1]."""
        base = self.py(self.y.low)
        path = f"M{self.px(edges[0]):.1f} {base:.1f}"
        for left, count in zip(edges[:-1], counts, strict=True):
            path += f"L{self.px(left):.1f} {self.py(count):.1f}"
            path += f"H{self.px(left + edges[1] - edges[0]):.1f}"
        path += f"V{base:.1f}Z"
        self._parts.append(f'<path class="bars {style}" d="{path}"/>')

    @drawn
    def vertical(self, value: float, style: str, label: str = "", *, side: str = "left", at: str = "top") -> None:
        """A line from bottom to top, with a label on its `side` (left, right), `at` its top or bottom."""
        place = self.px(value)
        top = MARGIN_TOP + 14 if at == "top" else self.height - MARGIN_BOTTOM - 10
        self._parts.append(f'<path class="rule {style}" d="M{place:.1f} {MARGIN_TOP}V{self.height - MARGIN_BOTTOM}"/>')
        if label:
            room = {"left": place - self.left, "right": self.width - place}
            if room[side] < text_width(label) + 6:
                side = max(room, key=lambda one: room[one])
            anchor, shift = ("end", -6) if side == "left" else ("start", 6)
            text = (
                f'<text class="label {style}" text-anchor="{anchor}" x="{place + shift:.1f}" y="{top:.1f}">{escape(label)}</text>'
            )
            self._parts.append(text)

    @drawn
    def horizontal(self, value: float, style: str, label: str = "") -> None:
        """A line from left to right with a label at its right end."""
        place = self.py(value)
        self._parts.append(f'<path class="rule {style}" d="M{self.left:.1f} {place:.1f}H{self.width - MARGIN_RIGHT}"/>')
        if label:
            self._parts.append(
                f'<text class="label {style}" text-anchor="end" x="{self.width - MARGIN_RIGHT - 6}" y="{place - 6:.1f}">{escape(label)}</text>'
            )

    @drawn
    def span(self, low: float, high: float, level: float, style: str, label: str) -> None:
        """A horizontal bracket from low to high, `level` pixels below the top, with its label at the left."""
        y = MARGIN_TOP + level
        left, right = self.px(low), self.px(high)
        self._parts.append(f'<path class="span {style}" d="M{left:.1f} {y - 4:.1f}v8m0 -4H{right:.1f}m0 -4v8"/>')
        self._parts.append(
            f'<text class="label {style}" text-anchor="end" x="{left - 6:.1f}" y="{y + 4:.1f}">{escape(label)}</text>'
        )

    def _frame(self) -> str:
        left, right = self.left, self.width - MARGIN_RIGHT
        top, bottom = MARGIN_TOP, self.height - MARGIN_BOTTOM
        minor = "".join(f"M{self.px(v):.1f} {top}V{bottom}" for v in self.x.minor_ticks())
        major = "".join(f"M{self.px(v):.1f} {top}V{bottom}" for v in self.x.ticks())
        major += "".join(f"M{left:.1f} {self.py(v):.1f}H{right}" for v in self.y.ticks())
        parts = [f'<path class="grid minor" d="{minor}"/>', f'<path class="grid" d="{major}"/>']
        end = 0.0  # of the last label below the axis
        for value in self.x.ticks():
            text = self.x.text(value)
            half = LETTER * len(text) / 2
            middle = min(self.px(value), self.width - half)
            if middle - half >= end:
                parts.append(f'<text class="tick" text-anchor="middle" x="{middle:.1f}" y="{bottom + 18}">{text}</text>')
                end = middle + half + LETTER
        parts += [
            f'<text class="tick" text-anchor="end" x="{left - 8:.1f}" y="{self.py(v) + 4:.1f}">{self.y.text(v)}</text>'
            for v in self.y.ticks()
        ]
        parts.append(f'<path class="axis" d="M{left:.1f} {bottom}H{right}"/>')
        parts.append(f'<text class="name" text-anchor="end" x="{right}" y="{bottom + 36}">{escape(self.x.label)}</text>')
        parts.append(f'<text class="name" x="0" y="13">{escape(self.y.label)}</text>')
        return "".join(parts)

    def _legend_rows(self) -> list[list[tuple[str, str]]]:
        """The legend in rows, the lowest first; that one has to leave room for the name of the vertical axis."""
        rows: list[list[tuple[str, str]]] = [[]]
        room = self.width - MARGIN_RIGHT - LETTER * (len(self.y.label) + 2)
        for name, style in self._legend:
            wide = LETTER * len(name) + LEGEND_GAP
            if wide > room:
                rows.append([])
                room = float(self.width - MARGIN_RIGHT)
            rows[-1].append((name, style))
            room -= wide
        return rows

    def _legend_text(self, row: Sequence[tuple[str, str]], y: int) -> str:
        parts = []
        at = float(self.width - MARGIN_RIGHT)
        for name, style in row:
            at -= LETTER * len(name)
            parts.append(f'<text class="tick" x="{at:.0f}" y="{y}">{escape(name)}</text>')
            parts.append(f'<path class="line {style}" d="M{at - 24:.0f} {y - 4}h18"/>')
            at -= LEGEND_GAP
        return "".join(parts)
