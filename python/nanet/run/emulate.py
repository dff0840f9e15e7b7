# SPDX-License-Identifier: Apache-2.0
"""Runs the emulator (boards that send, L0 trigger processor that checks) in this process, with a live table.

The emulator's thread spins on its own core; every other thread of this process is kept off the engine's core.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from nanet.config.emulator import EmulatorConfig
from nanet.machine.netns import Namespace
from nanet.machine.signals import StopSignals
from nanet.result import books, files
from nanet.result.histogram import Histogram
from nanet.result.hops import Hop, at_rest
from nanet.result.keys.base import Verdict
from nanet.result.keys.emulator import (
    AnswersResult,
    CoursePoint,
    DetectorCounts,
    EmulatorResult,
    EmulatorRun,
    EmulatorSnapshot,
    Mistakes,
    NativeStalls,
    Stalls,
    Tel62Result,
)
from nanet.result.keys.hops import HopLook
from nanet.run.live import MEAN_RATE, LiveState, LiveTable
from nanet.run.native import NativeEmulator, make_emulator
from nanet.run.process import Reading

LOOK_EVERY_S = 0.2
TRUTH_KEPT = 64  # of the first events, for the displays of those that the engine keeps

SOON_S = 0.01  # while a reading of the engine is due: the frame shows it and us as of one moment
LATE_S = 2.0  # no answer takes so long
OLD_S = 2.0  # without a reading for so long, the newest one is shown

EngineReader = Callable[[], Reading]


def run(
    config: EmulatorConfig,
    *,
    title: str | None = None,
    engine: EngineReader | None = None,
    merged: bool = False,
    settle: Callable[[], object] | None = None,
    ready: str | None = None,
    namespace: Namespace | None = None,
) -> EmulatorRun:
    """Sends and checks until all is sent and answered, or a signal comes; the result as `nanet emulate --json` writes it.

    title: of the live table; None: quiet. engine: asked for what the engine has counted; a frame is painted when that is new, so that all its
    rows are of one moment. merged: the engine builds events from parts.
    settle: called when all is over and before the last frame of the table, so that the others' counts are final as ours are.
    ready: a line to print when it has started. namespace: the network namespace that its sockets are in; None: the caller's.
    Raises nanet._core.SetupError.
    """
    with StopSignals() as stop:
        with namespace.entered() if namespace is not None else contextlib.nullcontext():
            emulator = make_emulator(config)  # opens its sockets
        watch = _Watch(emulator, config, LiveTable(title) if title else None, engine, merged=merged)
        gc.collect()
        gc.disable()  # a collection would take milliseconds from the emulator's core
        try:
            emulator.start()
            if ready:
                print(ready, flush=True)
            watch.until_the_end(stop)
            emulator.stop()
            if settle is not None:
                settle()
            watch.last_frame()
        finally:
            gc.enable()
            watch.close()
        result, truth = make_result(config, emulator.snapshot()), emulator.truth(TRUTH_KEPT)
    return {**result, "truth": truth, "stopped_early": stop.stopped}


def run_whole(config: EmulatorConfig, **options: Any) -> EmulatorRun:
    """`run` as a part of something longer, which a signal ends: what was cut short is no measurement. Raises KeyboardInterrupt then."""
    result = run(config, **options)
    if result["stopped_early"]:
        raise KeyboardInterrupt
    return result


def make_result(config: EmulatorConfig, snapshot: EmulatorSnapshot) -> EmulatorResult:
    """The emulator's side of a run, as JSON keys."""
    latency, clean = Histogram.from_native(snapshot["latency"]), Histogram.from_native(snapshot["latency_clean"])
    lateness = Histogram.from_native(snapshot["send_lateness"])
    elapsed_s = float(snapshot["elapsed_s"])
    checks = config.answers is not None
    sent = int(snapshot["sent"])
    decided = Histogram.from_native(snapshot["decision_latency"])
    return {
        **files.base("emulate tel62"),
        "config": config.model_dump(mode="json"),
        "sent": sent,
        "packets_sent": int(snapshot["packets_sent"]),
        "markers_sent": int(snapshot["markers_sent"]),
        "answered": int(snapshot["answered"]) if checks else None,
        "lost": sent - int(snapshot["answered"]) if checks else None,
        "answer_packets": int(snapshot["answer_packets"]),
        "bad_packets": {name: int(count) for name, count in snapshot["bad_packets"].items()},
        "mistakes": mistakes(snapshot),
        "tx_dropped": int(snapshot["tx_dropped"]),
        "answers_kernel_dropped": int(snapshot["answers_kernel_dropped"]),
        "elapsed_s": elapsed_s,
        "latency_us": latency.summary_us() if latency.count else None,
        "latency_clean_us": clean.summary_us() if clean.count else None,
        "latency_histogram": latency.encode() if latency.count else None,
        "latency_clean_histogram": clean.encode() if clean.count else None,
        "send_lateness_us": lateness.summary_us() if lateness.count else None,
        "stalls": _stalls(snapshot["stalls"]),
        "detectors": _detectors(config, snapshot),
        "decisions": {key: int(count) for key, count in snapshot["decisions"].items()} if config.decisions else None,
        "decision_latency_us": decided.summary_us() if decided.count else None,
        "decision_latency_histogram": decided.encode() if decided.count else None,
        "series": [_course_point(row) for row in snapshot["series"]],
    }


def _detectors(config: EmulatorConfig, snapshot: EmulatorSnapshot) -> list[DetectorCounts] | None:
    """What the detectors sent."""
    if config.detectors is None:
        return None
    names = [one.name for one in config.detectors.detectors]
    return [{"name": name, **counts} for name, counts in zip(names, snapshot["detectors"], strict=True)]


def mistakes(snapshot: EmulatorSnapshot) -> Mistakes:
    """Answers that are wrong, by name."""
    return {
        "wrong_answers": int(snapshot["wrong_answers"]),
        "duplicate_answers": int(snapshot["duplicate_answers"]),
        "unknown_answers": int(snapshot["unknown_answers"]),
        "stale_answers": int(snapshot["stale_answers"]),
        "bad_primitives": int(snapshot["bad_primitives"]),
        "bad_packets": sum(map(int, snapshot["bad_packets"].values())),
    }


class _Watch:
    """The live table of a run."""

    def __init__(
        self, emulator: NativeEmulator, config: EmulatorConfig, table: LiveTable | None, engine: EngineReader | None = None, *, merged: bool = False
    ) -> None:  # fmt: skip
        self._emulator, self._table = emulator, table
        self._checks = config.answers is not None
        self._engine, self._merged = engine, merged
        self._shown = 0 if engine is None else engine().number  # of the engine's readings; this one is of before
        self._painted = False
        self._sent_then: deque[tuple[float, int]] = deque()  # when, and how many
        self._state = LiveState(duration_s=config.duration_s or None)
        self._start = self._then = time.monotonic()

    def until_the_end(self, stop: StopSignals) -> None:
        """Paints once a second until all is sent and answered, or a signal comes."""
        while not self._emulator.wait(0.0):
            if stop.wait(SOON_S if self._is_due_soon() else LOOK_EVERY_S):
                return
            reading, now = self._reading(), time.monotonic()
            if self._table is None or not self._is_due(reading, now):
                continue
            state, before = self._look(now, reading), self._state.sent or 0
            state.rate, self._state, self._then = ((state.sent or 0) - before) / (now - self._then), state, now
            self._table.paint(state)
            self._painted = True

    def last_frame(self) -> None:
        """What the result says: all rows of one moment, the mean rate."""
        if self._table is None:
            return
        snapshot = self._emulator.snapshot()
        reading = self._reading()
        state = self._look(self._start + float(snapshot["elapsed_s"]), reading)
        if reading is not None:  # nothing is in flight: what has no answer is lost under a name
            balance = books.balance(state.sent or 0, state.answered, reading.counters, merged=self._merged)
            state.losses = {**state.losses, **{name: balance[name] for name in ("answers_lost", "unexplained")}}
            state.in_flight = 0
        elif self._checks:
            state.losses = {**state.losses, "unanswered": max(0, (state.sent or 0) - state.answered)}
            state.in_flight = 0
        state.rate, state.rate_name = (state.sent or 0) / state.elapsed_s if state.elapsed_s else 0.0, MEAN_RATE
        state.elapsed_s = max(state.elapsed_s, self._state.elapsed_s)  # the frames before waited for answers, too
        self._table.close(state)

    def close(self) -> None:
        """Gives the cursor back, whatever happened."""
        if self._table is not None:
            self._table.close()

    def _reading(self) -> Reading | None:
        return None if self._engine is None else self._engine()

    def _is_due_soon(self) -> bool:
        if self._table is None or self._engine is None:
            return False
        return not self._painted or time.monotonic() - self._then > 1.0 - LOOK_EVERY_S

    def _is_due(self, reading: Reading | None, now: float) -> bool:
        if reading is None:
            return now - self._then >= 1.0
        return reading.number != self._shown or now - self._then >= OLD_S

    def _look(self, now: float, reading: Reading | None) -> LiveState:
        snapshot = self._emulator.snapshot()
        named = {} if reading is None else books.engine_losses(reading.counters, merged=self._merged)
        self._shown = 0 if reading is None else reading.number
        histogram = Histogram.from_native(snapshot["latency"])
        sent, answered = int(snapshot["sent"]), int(snapshot["answered"])
        if self._checks and reading is None:
            named = {"unanswered": self._unanswered(now, sent, answered)}
        return LiveState(
            elapsed_s=now - self._start,
            duration_s=self._state.duration_s,
            sent=sent,
            answered=answered,
            losses=named | {name: count for name, count in mistakes(snapshot).items() if count},
            in_flight=max(0, sent - answered - sum(named.get(name, 0) for name in (*books.EVENT_LOSSES, "unanswered")))
            if self._checks
            else 0,
            hops=[] if reading is None else [_boards(snapshot), *reading.hops, _receiver(snapshot)],
            latency_us=histogram.summary_us() if histogram.count else {},
        )

    def _unanswered(self, now: float, sent: int, answered: int) -> int:
        """Events that are without an answer for longer than any takes, at least: later ones may have been answered. No one else says what became of them."""
        then = self._sent_then
        then.append((now, sent))
        while len(then) > 1 and now - then[1][0] >= LATE_S:
            then.popleft()
        return max(0, then[0][1] - answered) if now - then[0][0] >= LATE_S else 0


def _boards(snapshot: EmulatorSnapshot) -> HopLook:
    given, dropped = int(snapshot["packets_sent"]), int(snapshot["tx_dropped"])
    return at_rest(Hop("boards' socket", given, given - dropped, {"tx_dropped": dropped}).plain())


def _receiver(snapshot: EmulatorSnapshot) -> HopLook:
    came, dropped = int(snapshot["answer_packets"]), int(snapshot["answers_kernel_dropped"])
    return at_rest(Hop("answers' receiver", came + dropped, came, {"kernel_dropped": dropped}).plain())


def _course_point(row: Any) -> CoursePoint:
    return {
        "t_s": round(int(row["end_ns"]) / 1e9, 3),
        "sent": int(row["sent"]),
        "answered": int(row["answered"]),
        "p50_ns": int(row["p50_ns"]),
        "p99_ns": int(row["p99_ns"]),
        "max_ns": int(row["max_ns"]),
    }


def _stalls(stalls: NativeStalls) -> Stalls:
    return {
        "count": int(stalls["count"]),
        "total_us": int(stalls["total_ns"]) / 1e3,
        "longest_us": int(stalls["longest_ns"]) / 1e3,
    }


def verdict(result: EmulatorResult, budget_us: float) -> Verdict:
    """The promise as the sender sees it."""
    reasons = []
    if result["lost"]:
        reasons.append(f"{result['lost']:,} of {result['sent']:,} events were not answered")
    wrong = {name: count for name, count in result["mistakes"].items() if count}
    if wrong:
        reasons.append(f"wrong answers: {books.lost_text(wrong)}")
    latency = result["latency_us"]
    if latency and latency["p99_9"] > budget_us:
        reasons.append(f"p99.9 of the latency is {latency['p99_9']:,.0f} us, over the budget of {budget_us:,.0f} us")
    return {"kept": not reasons, "budget_us": budget_us, "reasons": reasons}


def sentence(result: Tel62Result) -> str:
    """The sender's view as one sentence."""
    latency = result["latency_us"]
    text = f"{result['sent']:,} events sent in {result['packets_sent']:,} packets"
    if result["answered"] is not None:
        text += f", {result['answered']:,} answered"
    if latency:
        text += f"; p50 {latency['p50']:.1f}  p99 {latency['p99']:.1f}  p99.9 {latency['p99_9']:.1f}  max {latency['max']:.1f} us"
    judged = result["verdict"]
    return text + (". Promise kept." if judged["kept"] else ". Promise broken: " + "; ".join(judged["reasons"]) + ".")


def run_l0tp(config: EmulatorConfig, *, title: str | None = None) -> AnswersResult:
    """Only receives answers and checks their format; the result as `nanet emulate l0tp --json` writes it."""
    result = run(config, title=title, ready=f"ready: listening on {config.answers}")
    bad = {name: result["mistakes"][name] for name in ("bad_packets", "bad_primitives")}
    reasons = [f"{name} {count:,}" for name, count in bad.items() if count]
    return {
        "nanet": result["nanet"],
        "date": result["date"],
        "machine": result["machine"],
        "config": result["config"],
        "answer_packets": result["answer_packets"],
        "bad_packets": result["bad_packets"],
        "answers_kernel_dropped": result["answers_kernel_dropped"],
        "elapsed_s": result["elapsed_s"],
        "command": "emulate l0tp",
        "primitives": sum(result["mistakes"][name] for name in ("unknown_answers", "stale_answers", "bad_primitives")),
        "bad_primitives": bad["bad_primitives"],
        "verdict": {"kept": not reasons, "reasons": reasons},
    }


def bad_text(result: AnswersResult) -> str:
    """Bad packets by reason."""
    return books.lost_text(result["bad_packets"] | {"primitives": result["bad_primitives"]})
