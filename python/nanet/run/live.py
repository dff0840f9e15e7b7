# SPDX-License-Identifier: Apache-2.0
"""The live table: cheap enough to be drawn on the core where something is being measured.

A redraw is one formatted string and one write, well under a millisecond: the table must not show up in the latencies that
it shows. Without a terminal there are plain lines and no escape codes.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from nanet.result.keys.hops import HopLook

BAR_WIDTH = 44
MEAN_RATE = "mean rate"  # of the whole run, in its last frame
LABEL = 23  # width of the first column


@dataclass
class LiveState:
    """What one frame shows. Rates are events/s, latencies us."""

    elapsed_s: float = 0.0
    duration_s: float | None = None
    rate: float = 0.0
    rate_name: str = "rate"
    sent: int | None = None
    answered: int = 0
    in_flight: int = 0
    losses: Mapping[str, int] = field(default_factory=dict)
    latency_us: Mapping[str, float] = field(default_factory=dict)
    latency_name: str = "latency"
    unit: str = "event"
    done_name: str = "answered"
    hops: Sequence[HopLook] = ()  # of nanet.result.hops.Balance.look


class LiveTable:
    """Paints frames over each other on a terminal, or writes a line every `plain_every_s` elsewhere."""

    def __init__(self, title: str, out: TextIO | None = None, plain_every_s: float = 1.0) -> None:
        self.title = title
        self.out = out or sys.stdout
        self.terminal = self.out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.colour = self.terminal and "NO_COLOR" not in os.environ
        self._plain_every_s = plain_every_s
        self._next_plain_s = plain_every_s
        self._lines = 0

    def paint(self, state: LiveState) -> None:
        """Shows `state`. Call it about once a second."""
        if self.terminal:
            lines = self.frame(state, shutil.get_terminal_size().columns)
            up = f"\x1b[{self._lines}A" if self._lines else "\x1b[?25l"
            self.out.write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines))
            self.out.flush()
            self._lines = len(lines)
        elif state.elapsed_s + 0.05 >= self._next_plain_s:
            self._next_plain_s = state.elapsed_s + self._plain_every_s
            self.out.write(plain_line(state) + "\n")
            self.out.flush()

    def close(self, state: LiveState | None = None) -> None:
        """Leaves the last frame on the screen and gives the cursor back."""
        if state is not None:
            self._next_plain_s = 0.0
            self.paint(state)
        if self._lines:
            self.out.write("\x1b[?25h")
            self.out.flush()
            self._lines = 0

    def frame(self, state: LiveState, columns: int = 120) -> list[str]:
        """The lines of one frame. Lines that list names are cut to this many columns: a line that wraps would corrupt the repainting."""
        dim, bold, red, green, off = (
            ("\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m") if self.colour else ("", "", "", "", "")
        )
        lines = [f"{bold}{self.title}{off}", f"{_bar(state, dim, off)}", ""]
        head = f"{dim}{state.rate_name:>{LABEL}}{'sent':>16}{state.done_name:>16}{'in flight':>12}{off}"
        sent = "-" if state.sent is None else f"{state.sent:,}"
        lines += [head, f"{_rate(state.rate, state.unit):>{LABEL}}{sent:>16}{state.answered:>16,}{state.in_flight:>12,}", ""]
        names = [("p50", "p50"), ("p99", "p99"), ("p99_9", "p99.9"), ("max", "max")]
        lines.append(f"{dim}{state.latency_name:>{LABEL}}" + "".join(f"{shown:>12}" for _, shown in names) + off)
        lines.append(f"{'us':>{LABEL}}" + "".join(f"{_us(state.latency_us.get(key)):>12}" for key, _ in names))
        lines.append("")
        if state.hops:
            lines += [
                f"{dim}{'hop':>{LABEL}}{'in':>16}{'out':>16}{'in flight':>12}  by name{off}",
                *(_hop(hop)[: columns - 1] for hop in state.hops),
            ]
            unexplained = sum(abs(hop["unexplained"]) for hop in state.hops)
            lines.append(f"{red if unexplained else green}{'unexplained':>{LABEL}}{off}{unexplained:>16,}")
            lines.append("")
        named = {name: count for name, count in state.losses.items() if count}
        if named:
            lines.append(f"{red}{'lost':>{LABEL}}{off}  " + _named(named)[: columns - LABEL - 3])
        else:
            lines.append(f"{green}{'lost':>{LABEL}}{off}  nothing")
        return lines


def plain_line(state: LiveState) -> str:
    """One frame as one line without any escape code."""
    named = {name: count for name, count in state.losses.items() if count}
    unexplained = [hop for hop in state.hops if hop["unexplained"]]
    latency = state.latency_us
    parts = [
        f"{state.elapsed_s:7.1f} s",
        state.rate_name.removesuffix("rate") + _rate(state.rate, state.unit),
        *([] if state.sent is None else [f"sent {state.sent:,}"]),
        f"{state.done_name} {state.answered:,}",
        *([f"in flight {state.in_flight:,}"] if state.in_flight else []),
        f"lost {_named(named) or '0'}",
        *(f"unexplained {hop['unexplained']:,} {hop['unit']} at {hop['hop']}" for hop in unexplained),
        f"p50 {_us(latency.get('p50'))} p99 {_us(latency.get('p99'))} p99.9 {_us(latency.get('p99_9'))}"
        f" max {_us(latency.get('max'))} us"
        if latency
        else f"no {state.latency_name}",
    ]
    return "  ".join(parts)


def _named(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _hop(hop: HopLook) -> str:
    """One line. The unit is said where it is not packets."""
    name = hop["hop"] + ("" if hop["unit"] in ("packets", hop["hop"]) else f" ({hop['unit']})")
    return f"{name:>{LABEL}}{hop['in']:>16,}{hop['out']:>16,}{hop['in_flight']:>12,}  {_named({k: n for k, n in hop['named'].items() if n})}".rstrip()


def _bar(state: LiveState, dim: str, off: str) -> str:
    if not state.duration_s:
        return f"{state.elapsed_s:8.1f} s, until stopped"
    share = min(1.0, state.elapsed_s / state.duration_s)
    done = round(share * BAR_WIDTH)
    return f"{'━' * done}{dim}{'━' * (BAR_WIDTH - done)}{off}  {state.elapsed_s:.1f} / {state.duration_s:.1f} s"


def _rate(rate: float, unit: str) -> str:
    return f"{rate / 1e6:.3f} M{unit}/s" if rate >= 1e5 else f"{rate:,.0f} {unit}/s"


def _us(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
