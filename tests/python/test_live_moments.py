# SPDX-License-Identifier: Apache-2.0
"""The rows of one frame are of one moment, whenever the engine says what it has counted; the last frame is what the result says."""

from __future__ import annotations

import io
from typing import Any

import pytest
from nanet.config.emulator import EmulatorConfig
from nanet.run import emulate
from nanet.run.live import LiveState, LiveTable
from nanet.run.process import Reading

RATE = 1000  # events in a second of this clock
SECONDS = 6.0
CONFIG = EmulatorConfig.model_validate({"destinations": ["udp://127.0.0.1:6200"], "answers": "udp://127.0.0.1:6300"})


class NoLatency:
    """A histogram of nothing."""

    min = max = mean = 0

    def counts(self) -> bytes:
        return b""


class Scene:
    """Boards and an engine on one clock. The engine publishes once a second, `phase_s` after the boards' start."""

    def __init__(self, phase_s: float, lost: int = 0) -> None:
        self.now_s = 100.0
        self.phase_s = phase_s
        self.lost = lost
        self.frames: list[LiveState] = []

    def monotonic(self) -> float:
        return self.now_s

    def events(self, at_s: float) -> int:
        return round(RATE * max(0.0, at_s - 100.0))

    # The emulator.
    def wait(self, timeout_s: float) -> bool:
        return self.now_s >= 100.0 + SECONDS

    def snapshot(self) -> dict[str, Any]:
        sent = self.events(self.now_s)
        wrong = ("wrong_answers", "duplicate_answers", "unknown_answers", "stale_answers", "bad_primitives")
        none: dict[str, Any] = dict.fromkeys((*wrong, "tx_dropped", "answers_kernel_dropped"), 0) | {"bad_packets": {}}
        return none | {
            "sent": sent, "answered": sent - self.lost, "packets_sent": sent, "answer_packets": sent, "latency": NoLatency(),
            "elapsed_s": self.now_s - 100.0,
        }  # fmt: skip

    # The engine.
    def reading(self) -> Reading:
        number = int(self.now_s - 100.0 - self.phase_s + 1.0)
        at_s = 100.0 + self.phase_s + number - 1.0
        came = self.events(at_s)
        hop = {"hop": "link", "unit": "packets", "in": came, "out": came, "named": {}, "in_flight": 0, "unexplained": 0}
        return Reading(number, {"events_answered": came}, [hop] if number else [])

    # What waits for a signal.
    def stop_wait(self, timeout_s: float) -> bool:
        self.now_s += timeout_s
        return False


class Table(LiveTable):
    """Keeps what it should paint."""

    def __init__(self, scene: Scene) -> None:
        super().__init__("title", io.StringIO())
        self.scene = scene

    def paint(self, state: LiveState) -> None:
        self.scene.frames.append(state)


class Stop:
    """No signal comes."""

    def __init__(self, scene: Scene) -> None:
        self.wait = scene.stop_wait


@pytest.fixture(autouse=True)
def plain_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulate.Histogram, "from_native", classmethod(lambda cls, native: cls()))


@pytest.mark.parametrize("phase_s", [0.05, 0.4, 0.95])
def test_the_rows_of_a_frame_are_of_one_moment(monkeypatch: pytest.MonkeyPatch, phase_s: float) -> None:
    scene = Scene(phase_s)
    monkeypatch.setattr(emulate.time, "monotonic", scene.monotonic)
    watch = emulate._Watch(scene, CONFIG, Table(scene), scene.reading)
    watch.until_the_end(Stop(scene))  # type: ignore[arg-type]
    assert len(scene.frames) >= SECONDS - 1
    for state in scene.frames:
        boards, link, _ = state.hops
        assert boards["in"] == state.sent
        assert 0 <= state.sent - link["in"] <= 2 * emulate.SOON_S * RATE
        assert state.rate == pytest.approx(RATE, rel=0.01)


def test_what_the_engine_said_before_the_start_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(-3.7)  # the engine is older than the boards
    monkeypatch.setattr(emulate.time, "monotonic", scene.monotonic)
    watch = emulate._Watch(scene, CONFIG, Table(scene), scene.reading)
    watch.until_the_end(Stop(scene))  # type: ignore[arg-type]
    assert [round(state.elapsed_s, 1) for state in scene.frames] == [0.3, 1.3, 2.3, 3.3, 4.3, 5.3]


def test_an_engine_that_says_nothing_is_shown_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(0.0)
    monkeypatch.setattr(emulate.time, "monotonic", scene.monotonic)
    watch = emulate._Watch(scene, CONFIG, Table(scene), lambda: Reading(0, {}, ()))
    watch.until_the_end(Stop(scene))  # type: ignore[arg-type]
    assert 2 <= len(scene.frames) <= SECONDS


def test_a_sender_without_an_engine_says_what_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it runs, once no answer takes so long; at the end all of it, and no line is of an earlier moment than the one before."""
    scene = Scene(0.0, lost=7)
    monkeypatch.setattr(emulate.time, "monotonic", scene.monotonic)
    watch = emulate._Watch(scene, CONFIG, Table(scene))
    watch.until_the_end(Stop(scene))  # type: ignore[arg-type]
    plain = scene.snapshot
    monkeypatch.setattr(scene, "snapshot", lambda: plain() | {"sent": 5000, "answered": 4000, "elapsed_s": 5.0})
    watch.last_frame()
    *before, last = scene.frames
    assert [state.losses.get("unanswered", 0) for state in before] == [0] * len(before)  # 7 of the last thousands
    assert all(state.in_flight == 7 for state in before)
    assert (last.losses["unanswered"], last.in_flight, last.rate, last.rate_name) == (1000, 0, 1000, "mean rate")
    times = [state.elapsed_s for state in scene.frames]
    assert times == sorted(times)


def test_events_without_an_answer_are_told_while_boards_send(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(0.0, lost=4500)
    monkeypatch.setattr(emulate.time, "monotonic", scene.monotonic)
    watch = emulate._Watch(scene, CONFIG, Table(scene))
    watch.until_the_end(Stop(scene))  # type: ignore[arg-type]
    assert scene.frames[0].losses.get("unanswered", 0) == 0
    assert scene.frames[-1].losses["unanswered"] > 2000
    assert all(
        state.sent == state.answered + state.in_flight + state.losses.get("unanswered", 0)
        for state in scene.frames
        if state.answered >= 0
    )


def test_the_last_frame_is_what_the_result_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that were written and did not come, and events that no one accounts for, are lost in the last frame too."""
    scene = Scene(0.0, lost=7)
    monkeypatch.setattr(emulate.time, "monotonic", scene.monotonic)
    final = Reading(9, {"events_answered": 1995, "events_lost": 3}, ())
    watch = emulate._Watch(scene, CONFIG, Table(scene), lambda: final)
    scene.now_s = 102.0
    watch.last_frame()
    (state,) = scene.frames
    assert (state.sent, state.answered, state.in_flight) == (2000, 1993, 0)
    assert {name: count for name, count in state.losses.items() if count} == {"events_lost": 3, "answers_lost": 2, "unexplained": 2}
