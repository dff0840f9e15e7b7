# SPDX-License-Identifier: Apache-2.0
"""The live table: frames on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
from typing import Any

import pytest
from nanet.run.live import LiveState, LiveTable, plain_line

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
    assert (
        "1.000 Mevent/s  sent 3,000,000  answered 2,999,900  in flight 100  lost 0  p50 21.0 p99 38.2 p99.9 55.0 max 1,234 us"
        in text
    )


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


def hop(name: str, unexplained: int = 0, **named: int) -> dict[str, Any]:
    return {"hop": name, "unit": "packets", "in": 1000, "out": 990, "named": named, "in_flight": 3, "unexplained": unexplained}


def test_hops_are_shown_with_what_is_lost_by_name() -> None:
    state = LiveState(hops=[hop("link", kernel_dropped=7, foreign=0), hop("decoder and buffers") | {"unit": "parts"}])
    lines = LiveTable("t", io.StringIO()).frame(state)
    [link] = [line for line in lines if line.lstrip().startswith("link ")]
    assert link.split() == ["link", "1,000", "990", "3", "kernel_dropped", "7"]
    assert any("decoder and buffers (parts)" in line for line in lines)
    assert any(line.split() == ["unexplained", "0"] for line in lines)
    assert "unexplained" not in plain_line(state)
    state.hops = [hop("link", -2)]
    assert any(line.split() == ["unexplained", "2"] for line in LiveTable("t", io.StringIO()).frame(state))
    assert "unexplained -2 packets at link" in plain_line(state)


def test_no_line_is_longer_than_the_terminal() -> None:
    names = {f"packets_of_a_kind_{n}": 1000 for n in range(20)}
    state = LiveState(hops=[hop("link", **names)], losses=names)
    assert max(map(len, LiveTable("t", io.StringIO()).frame(state, columns=80))) < 80
