# SPDX-License-Identifier: Apache-2.0
"""Runs one engine in this process until its time is over or a signal comes, then drains, reports and judges.

The control thread takes the signals and keeps off the cores of the data path.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nanet.config.base import online_cores
from nanet.config.engine import EngineConfig
from nanet.machine import privileges
from nanet.machine.facts import keep_to
from nanet.machine.signals import StopSignals
from nanet.result import books, channels, files, hops, outputs
from nanet.result.histogram import Histogram
from nanet.result.keys.base import Verdict
from nanet.result.keys.engine import EngineResult, EngineSnapshot, EventSample, NativeSample, RingSpectra
from nanet.result.keys.hops import HopLook
from nanet.run.live import MEAN_RATE, LiveState, LiveTable
from nanet.run.native import NativeEngine, make_engine
from nanet.run.process import StatusLine

if TYPE_CHECKING:
    from nanet.metrics.server import MetricsServer

SAMPLES_KEPT = 48
LOOK_EVERY_S = 0.1  # for a GPU that was given up
OK, BROKEN = 0, 1


@dataclass(frozen=True)
class RunOptions:
    """Where output goes."""

    json_path: Path | None = None
    quiet: bool = False
    ready_fd: int | None = None
    status_fd: int | None = None
    control_fd: int | None = None


def run(config: EngineConfig, options: RunOptions) -> tuple[int, EngineResult]:
    """Exit code (0 promise kept, 1 broken) and the result. Raises nanet._core.SetupError and ConfigError."""
    control = None if options.control_fd is None else Control(options.control_fd)
    parent = os.getppid()  # before it can know that we are ready, and end
    user = privileges.account(config.run.user) if config.run.user else None
    with StopSignals() as stop, contextlib.ExitStack() as stack:
        _leave_cores(config)
        metrics = None if config.metrics is None else stack.enter_context(_metrics_server(config))
        balance = hops.Balance(config)
        if user is not None:
            privileges.prepare()
        engine = make_engine(config)
        told = _tell_notes([*config.processor.old_names(), *engine.notes], [], options)
        engine.start()
        if user is not None:
            outputs.pin(options.json_path)
            privileges.become(user)
        gc.collect()
        gc.freeze()
        if metrics is not None:
            metrics.serve(engine)
        _say_ready(config, options)
        table = None if options.quiet else stack.enter_context(_Table(config))
        _control_loop(engine, config, options, stop, parent, metrics, control, balance, table, told)
        if metrics is not None:
            metrics.end()
        engine.stop()
        result = make_result(config, engine, balance)
        if table is not None:
            table.last_frame(engine.snapshot(), result)
    _tell_notes(result["notes"], told, options)
    for fault in result["faults"]:
        print(f"nanet: {fault}", file=sys.stderr)
    files.write_json(options.json_path, result)
    return (OK if result["verdict"]["kept"] else BROKEN), result


def _tell_notes(notes: Iterable[str], told: list[str], options: RunOptions) -> list[str]:
    """Prints what was not told yet, and adds it to what was told; returns that."""
    for note in notes:
        if note in told:
            continue
        told.append(note)
        if not options.quiet:
            print(f"note: {note}", file=sys.stderr, flush=True)
    return told


def _metrics_server(config: EngineConfig) -> MetricsServer:
    from nanet.metrics.server import MetricsServer  # Prometheus' library, for those who asked for metrics

    return MetricsServer(config)


def make_result(config: EngineConfig, engine: NativeEngine, balance: hops.Balance) -> EngineResult:
    """What `nanet run --json` writes."""
    snapshot = engine.snapshot()
    counters = books.totals(snapshot, raw_links=config.raw_links())
    merged = config.processor.merge is not None
    histogram = _residence(snapshot)
    faults, sheet = list(engine.faults), balance.end(snapshot)
    counters["node_in_flight"] = hops.left_in_nodes(sheet)
    losses = books.engine_losses(counters, merged=merged)
    pms = channels.plain(snapshot.get("channels") if config.processor.kind == "rich" else None)
    return {
        **files.base("run"),
        "config": config.model_dump(mode="json"),
        "notes": [*config.processor.old_names(), *engine.notes, *channels.masked_notes(pms), *channels.notes(pms)],
        "processor": {
            "runtime": config.processor.runtime,
            "devices": [
                {"index": index, "name": name}
                for index, name in zip(config.processor.gpu.devices, engine.device_names, strict=False)
            ],
        },
        "faults": faults,
        "elapsed_s": snapshot["elapsed_s"],
        "core_wait_s": snapshot["core_wait_s"],
        "counters": {name: counters[name] for name in snapshot["counters"]},
        "losses": losses,
        "refusals": books.refusals(counters),
        "balance": sheet,
        "sources": snapshot["sources"],
        "links": snapshot["links"],
        "rings": _spectra(snapshot),
        "channels": pms,
        "latency_us": histogram.summary_us() if histogram.count else None,
        "latency_histogram": histogram.encode() if histogram.count else None,
        "event_samples": [_plain_sample(sample) for sample in engine.event_samples()[:SAMPLES_KEPT]],
        "verdict": verdict(
            losses, histogram, config.run.budget_us, faults, hops.unexplained_text(sheet), books.nothing_accepted(counters)
        ),
    }


def verdict(
    losses: Mapping[str, int], histogram: Histogram, budget_us: float, faults: Sequence[str], unexplained: str, refused: str
) -> Verdict:
    """Whether the promise was kept: nothing lost, p99.9 within the budget, no GPU given up, books that balance; with the reasons where not.

    unexplained, refused: what no counter accounts for, and why not one packet was accepted; "" where that is not so.
    """
    reasons = [*faults, *([refused] if refused else [])]
    if unexplained:
        reasons.append(f"no counter accounts for {unexplained}")
    if any(losses.values()):
        reasons.append(f"lost {books.lost_text(losses)}")
    p99_9_us = histogram.percentile(99.9) / 1e3
    if histogram.count and p99_9_us > budget_us:
        reasons.append(f"p99.9 of the latency is {p99_9_us:,.0f} us, over the budget of {budget_us:,.0f} us")
    return {"kept": not reasons, "budget_us": budget_us, "reasons": reasons}


def _control_loop(
    engine: NativeEngine, config: EngineConfig, options: RunOptions, stop: StopSignals, parent: int, metrics: MetricsServer | None,
    control: Control | None, balance: hops.Balance, table: _Table | None, told: list[str],
) -> None:  # fmt: skip
    end = time.monotonic() + config.run.duration_s if config.run.duration_s else float("inf")
    status = None if options.status_fd is None else Status(options.status_fd)
    raw_links = config.raw_links()
    while engine.running and time.monotonic() < end:
        if _wait(engine, stop, min(1.0, end - time.monotonic()), control) or engine.faults or engine.inputs_finished:
            break
        if options.ready_fd is not None and os.getppid() != parent:
            break  # who started us is gone
        if metrics is not None:
            metrics.look()
        if table is None and status is None and not config.processor.mask.hot:
            continue
        snapshot = engine.snapshot()
        known = len(told)
        notes = [*engine.notes, *channels.masked_notes(snapshot.get("channels"))]
        if len(_tell_notes(notes, told, options)) > known and table is not None:
            table.let_stand()
        counters, lines = books.totals(snapshot, raw_links=raw_links), balance.look(snapshot)
        if status is not None:
            status.say({"counters": counters, "hops": lines})
        if table is not None:
            table.paint(snapshot, counters, lines)


class _Table:
    """The live table of a run. A frame is made of one snapshot; the last one of what the result is made of."""

    def __init__(self, config: EngineConfig) -> None:
        place = "" if config.processor.runtime == "cpu" else f" · {config.processor.place()}"
        self._table = LiveTable(f"nanet run · {config.name} · {config.topology}{place}", plain_every_s=10.0)
        self._merged = config.processor.merge is not None
        done = config.done_counter()
        counting = done is None
        self._came = "packets_accepted" if counting else "events_received"
        self._done = done or "packets_accepted"
        self._state = LiveState(
            duration_s=config.run.duration_s, latency_name="residence", unit="packet" if counting else "event",
            done_name="answered" if self._done == "events_answered" else self._done.partition("_")[2],
        )  # fmt: skip
        self._events, self._at_s = 0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._table.close()

    def let_stand(self) -> None:
        """Something was written below the frame: the next one comes below that."""
        self._table.close()

    def paint(self, snapshot: EngineSnapshot, counters: Mapping[str, int], lines: Sequence[HopLook]) -> None:
        """counters, lines: made of the snapshot."""
        events, at_s = counters[self._came], float(snapshot["elapsed_s"])
        self._state.rate = (events - self._events) / (at_s - self._at_s) if at_s > self._at_s else 0.0
        self._events, self._at_s = events, at_s
        self._show(snapshot, counters, lines)
        self._table.paint(self._state)

    def last_frame(self, snapshot: EngineSnapshot, result: EngineResult) -> None:
        """What the result says, with the mean rate. snapshot: of the engine that has stopped."""
        at_s = float(snapshot["elapsed_s"])
        self._state.rate, self._state.rate_name = result["counters"][self._came] / at_s if at_s else 0.0, MEAN_RATE
        lines = [hops.at_rest(hop) for hop in result["balance"]["hops"]]
        self._show(snapshot, result["counters"] | result["losses"], lines)
        self._table.close(self._state)

    def _show(self, snapshot: EngineSnapshot, counters: Mapping[str, int], lines: Sequence[HopLook]) -> None:
        state, histogram = self._state, _residence(snapshot)
        state.elapsed_s = float(snapshot["elapsed_s"])
        state.answered = counters[self._done]
        state.hops = lines
        state.losses = books.engine_losses(counters, merged=self._merged)
        state.latency_us = histogram.summary_us() if histogram.count else {}


def _wait(engine: NativeEngine, stop: StopSignals, longest_s: float, control: Control | None) -> bool:
    """Waits for a signal, or for a GPU's fault, and does what it is told meanwhile; true when a signal came."""
    end = time.monotonic() + longest_s
    looks = bool(engine.device_names) or control is not None
    while looks and not engine.faults and (left_s := end - time.monotonic()) > LOOK_EVERY_S:
        if stop.wait(min(LOOK_EVERY_S, left_s)):
            return True
        if control is not None:
            control.obey(engine)
    return stop.wait(max(0.0, end - time.monotonic()) if not engine.faults else 0.0)


class Status:
    """Lines for who started this process, as JSON. No one has to read them: what does not fit any more is left out, never waited for."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._rest = b""  # of a line that went out in part

    def say(self, told: StatusLine) -> None:
        """Writes a line, or the rest of the one before, as far as there is room."""
        line = self._rest or json.dumps(told).encode() + b"\n"
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            self._rest = line[os.write(self._descriptor, line) :]


class Control:
    """Orders of who started this process: a line `{"faults": {LINK: FAULTS}}` each, from a pipe."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._rest = b""

    def obey(self, engine: NativeEngine) -> None:
        """Does what has arrived. Raises nanet._core.SetupError for what cannot be done."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._descriptor, 65536):
                self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            for link, faults in json.loads(line)["faults"].items():
                engine.set_faults(link, faults)


def _say_ready(config: EngineConfig, options: RunOptions) -> None:
    if options.ready_fd is not None:
        os.write(options.ready_fd, b"ready\n")
        os.close(options.ready_fd)
    if not options.quiet:
        where = ", ".join(link.endpoint for link in config.links)
        print(f"ready: listening on {where}", flush=True)
        if config.metrics is not None:
            print(f"metrics: {config.metrics.endpoint}/metrics, {config.metrics.endpoint}/health", flush=True)


def _leave_cores(config: EngineConfig) -> None:
    if pinned := config.pinned_cores():
        keep_to(set(online_cores()) - pinned)


def _residence(snapshot: EngineSnapshot) -> Histogram:
    native = snapshot.get("latency_ns")
    return Histogram() if native is None else Histogram.from_native(native)


def _spectra(snapshot: EngineSnapshot) -> RingSpectra:
    native = snapshot["rings"]
    return {
        "radius_mm": [int(n) for n in native["radius_mm"]],
        "multiplicity": [int(n) for n in native["multiplicity"]],
        "count": [int(n) for n in native["count"]],
    }


def _plain_sample(sample: NativeSample) -> EventSample:
    return {
        "timestamp": sample["timestamp"],
        "fine_time": sample["fine_time"],
        "rings": sample["rings"],
        "found": sample["found"],
        "electron": sample["electron"],
        "hits": [int(hit) for hit in sample["hits"]],
    }
