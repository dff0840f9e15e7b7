# SPDX-License-Identifier: Apache-2.0
"""Charts as inline SVG: small, exact, and coloured by the page's style sheet, so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 80, 16, 34, 44
LETTER = 6.9  # mean width of a letter of the legend
LEGEND_ROW, LEGEND_GAP = 20, 44  # height of a row; line and space before a name


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


class Chart:
    """A chart that grows by calls and ends in `svg()`. Later things are painted over earlier ones."""

    def __init__(self, x: Axis, y: Axis, *, width: int = 880, height: int = 360, title: str = "") -> None:
        self.x, self.y, self.width, self.height, self.title = x, y, width, height, title
        self._parts: list[str] = []
        self._legend: list[tuple[str, str]] = []

    def px(self, value: float) -> float:
        """Horizontal place of a value."""
        return MARGIN_LEFT + self.x.share(value) * (self.width - MARGIN_LEFT - MARGIN_RIGHT)

    def py(self, value: float) -> float:
        """Vertical place of a value."""
        return self.height - MARGIN_BOTTOM - self.y.share(value) * (self.height - MARGIN_TOP - MARGIN_BOTTOM)

    def line(self, xs: Sequence[float], ys: Sequence[float], style: str, name: str = "", *, step: bool = False) -> None:
        """A line through points; `step`: level until the next point."""
        if len(xs) == 0:
            return
        places = [(self.px(a), self.py(b)) for a, b in zip(xs, ys, strict=True)]
        path = f"M{places[0][0]:.1f} {places[0][1]:.1f}"
        for here in places[1:]:
            path += f"H{here[0]:.1f}V{here[1]:.1f}" if step else f"L{here[0]:.1f} {here[1]:.1f}"
        self._parts.append(f'<path class="line {style}" d="{path}"/>')
        if name:
            self._legend.append((name, style))

    def dots(self, xs: Sequence[float], ys: Sequence[float], style: str, labels: Sequence[str] = ()) -> None:
        """A dot at each point, with a label beside it."""
        for n, (a, b) in enumerate(zip(xs, ys, strict=True)):
            self._parts.append(f'<circle class="dot {style}" cx="{self.px(a):.1f}" cy="{self.py(b):.1f}" r="3.5"/>')
            if n < len(labels):
                left = self.px(a) > 0.82 * self.width
                anchor, shift = ("end", -8) if left else ("start", 8)
                place = f'text-anchor="{anchor}" x="{self.px(a) + shift:.1f}" y="{self.py(b) - 6:.1f}"'
                self._parts.append(f'<text class="note" {place}>{escape(labels[n])}</text>')

    def bars(self, edges: Sequence[float], counts: Sequence[float], style: str) -> None:
        """A filled histogram: counts[k] between edges[k] and edges[k + 1]."""
        base = self.py(self.y.low)
        path = f"M{self.px(edges[0]):.1f} {base:.1f}"
        for left, count in zip(edges[:-1], counts, strict=True):
            path += f"L{self.px(left):.1f} {self.py(count):.1f}"
            path += f"H{self.px(left + edges[1] - edges[0]):.1f}"
        path += f"V{base:.1f}Z"
        self._parts.append(f'<path class="bars {style}" d="{path}"/>')

    def vertical(self, value: float, style: str, label: str = "", *, side: str = "left", at: str = "top") -> None:
        """A line from bottom to top, with a label on its `side` (left, right), `at` its top or bottom."""
        place = self.px(value)
        top = MARGIN_TOP + 14 if at == "top" else self.height - MARGIN_BOTTOM - 10
        self._parts.append(f'<path class="rule {style}" d="M{place:.1f} {MARGIN_TOP}V{self.height - MARGIN_BOTTOM}"/>')
        if label:
            anchor, shift = ("end", -6) if side == "left" else ("start", 6)
            text = (
                f'<text class="label {style}" text-anchor="{anchor}" x="{place + shift:.1f}" y="{top:.1f}">{escape(label)}</text>'
            )
            self._parts.append(text)

    def horizontal(self, value: float, style: str, label: str = "") -> None:
        """A line from left to right with a label at its right end."""
        place = self.py(value)
        self._parts.append(f'<path class="rule {style}" d="M{MARGIN_LEFT} {place:.1f}H{self.width - MARGIN_RIGHT}"/>')
        if label:
            self._parts.append(
                f'<text class="label {style}" text-anchor="end" x="{self.width - MARGIN_RIGHT - 6}" y="{place - 6:.1f}">{escape(label)}</text>'
            )

    def span(self, low: float, high: float, level: float, style: str, label: str) -> None:
        """A horizontal bracket from low to high, `level` pixels below the top, with its label at the left."""
        y = MARGIN_TOP + level
        left, right = self.px(low), self.px(high)
        self._parts.append(f'<path class="span {style}" d="M{left:.1f} {y - 4:.1f}v8m0 -4H{right:.1f}m0 -4v8"/>')
        self._parts.append(
            f'<text class="label {style}" text-anchor="end" x="{left - 6:.1f}" y="{y + 4:.1f}">{escape(label)}</text>'
        )

    def svg(self) -> str:
        """The chart as an <svg> element."""
        rows = self._legend_rows()
        above = LEGEND_ROW * (len(rows) - 1)  # rows that have no room beside the name of the vertical axis
        box = f"0 {-above} {self.width} {self.height + above}"
        head = f'<svg viewBox="{box}" role="img" aria-label="{escape(self.title)}" xmlns="http://www.w3.org/2000/svg">'
        legend = "".join(self._legend_text(row, 13 - LEGEND_ROW * n) for n, row in enumerate(rows))
        return head + self._frame() + "".join(self._parts) + legend + "</svg>"

    def _frame(self) -> str:
        left, right = MARGIN_LEFT, self.width - MARGIN_RIGHT
        top, bottom = MARGIN_TOP, self.height - MARGIN_BOTTOM
        minor = "".join(f"M{self.px(v):.1f} {top}V{bottom}" for v in self.x.minor_ticks())
        major = "".join(f"M{self.px(v):.1f} {top}V{bottom}" for v in self.x.ticks())
        major += "".join(f"M{left} {self.py(v):.1f}H{right}" for v in self.y.ticks())
        parts = [f'<path class="grid minor" d="{minor}"/>', f'<path class="grid" d="{major}"/>']
        parts += [
            f'<text class="tick" text-anchor="middle" x="{self.px(v):.1f}" y="{bottom + 18}">{self.x.text(v)}</text>'
            for v in self.x.ticks()
        ]
        parts += [
            f'<text class="tick" text-anchor="end" x="{left - 8}" y="{self.py(v) + 4:.1f}">{self.y.text(v)}</text>'
            for v in self.y.ticks()
        ]
        parts.append(f'<path class="axis" d="M{left} {bottom}H{right}"/>')
        parts.append(f'<text class="name" text-anchor="end" x="{right}" y="{bottom + 36}">{escape(self.x.label)}</text>')
        parts.append(f'<text class="name" x="0" y="13">{escape(self.y.label)}</text>')
        return "".join(parts)

    def _legend_rows(self) -> list[list[tuple[str, str]]]:
        """The legend in rows, the lowest first; that one has to leave room for the name of the vertical axis."""
        rows: list[list[tuple[str, str]]] = [[]]
        room = self.width - MARGIN_RIGHT - LETTER * (len(self.y.label) + 2)
        for name, style in self._legend:
            wide = LETTER * len(name) + LEGEND_GAP
            if wide > room and len(rows) < 4:
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
