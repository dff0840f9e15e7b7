# SPDX-License-Identifier: Apache-2.0
"""The live table: frames on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io

import pytest
from nanet.live import LiveState, LiveTable, plain_line

STATE = LiveState(
    elapsed_s=3.0, duration_s=10.0, rate=1.0e6, sent=3_000_000, answered=2_999_900, in_flight=100,
    latency_us={"p50": 21.0, "p99": 38.2, "p99_9": 55.0, "max": 1234.0},
)  # fmt: skip


class Terminal(io.StringIO):
    """A StringIO that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_plain_output_has_no_escape_codes() -> None:
    out = io.StringIO()
    table = LiveTable("title", out, plain_every_s=2.0)
    for second in range(1, 6):
        STATE.elapsed_s = float(second)
        table.paint(STATE)
    table.close()
    text = out.getvalue()
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2  # at 2 s and 4 s
    assert "1.000 Mevent/s  sent 3,000,000  answered 2,999,900  lost 0  p50 21.0 p99 38.2 p99.9 55.0 max 1,234 us" in text


def test_frames_are_painted_over_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    table = LiveTable("title", out)
    table.paint(STATE)
    height = len(table.frame(STATE))
    table.paint(STATE)
    table.close()
    assert f"\x1b[{height}A" in out.getvalue()
    assert out.getvalue().startswith("\x1b[?25l")
    assert out.getvalue().endswith("\x1b[?25h")


def test_no_colour_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any("\x1b" in line for line in LiveTable("title", Terminal()).frame(STATE))


def test_losses_are_named() -> None:
    lossy = LiveState(losses={"events_lost": 16, "answers_lost": 0})
    assert "lost events_lost 16 " in plain_line(lossy)
    assert any("events_lost 16" in line for line in LiveTable("t", io.StringIO()).frame(lossy))


def test_a_frame_is_cheap() -> None:
    """A redraw must be far below a millisecond. Counted in bytes and lines, because times differ between machines."""
    frame = LiveTable("title", io.StringIO()).frame(STATE)
    assert len(frame) <= 12
    assert sum(map(len, frame)) < 1000
