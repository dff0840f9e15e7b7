# SPDX-License-Identifier: Apache-2.0
"""`nanet rdma bench`: bandwidth and latency of put and get against size, beside ucx_perftest in the same run. docs/rdma.md says how.

Figures are medians over the rounds; in each round ours and the peer's run one right after the other, in turns first.
"""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nanet._core import SetupError
from nanet.machine import facts
from nanet.machine.signals import StopSignals
from nanet.rdma import NotDone, native, perftest
from nanet.rdma.control import SILENT_S_MAX, Control
from nanet.rdma.measurement import Measurement
from nanet.rdma.memory import Memory
from nanet.rdma.require import Require
from nanet.rdma.session import CheckedRun, Session, own_responder
from nanet.rdma.units import rate_text, size_text
from nanet.result import files
from nanet.result.keys.rdma import (
    PeerFigures,
    PeerRun,
    RunFigures,
    TransferBenchResult,
    TransferLatency,
    TransferMeasurement,
)

ALWAYS = (64 << 10, 1 << 20)  # sizes that are compared from machine to machine
UNDER_WAY_BYTES = 256 << 20  # at most: larger transfers have fewer at once
SLOTS_MAX = 65536


@dataclass(frozen=True)
class BenchOptions:
    """What is measured."""

    tests: tuple[Measurement, ...] | None = None  # None: all that these memories allow
    sizes: tuple[int, ...] = ()
    depth: int = 32
    batch: int = 0
    duration_s: float = 0.2
    count: int = 0
    rounds: int = 1
    memory: Memory = Memory()
    target_memory: Memory = Memory()
    transports: str = "posix"
    trust_network: bool = False
    require: Require | None = None
    target: tuple[str, int] | None = None  # None: a process of this machine
    token: int = 0
    peer: bool = False
    timeout_s: float = 60.0


def sweep(smallest: int, largest: int, factor: float) -> tuple[int, ...]:
    """From the smallest, each `factor` times the one before, to the largest; with those of ALWAYS. Raises SetupError."""
    if not 1 <= smallest <= largest or not factor > 1.0:
        text = f"sizes from {smallest} to {largest} by {factor:g} cannot be measured"
        raise SetupError(f"{text} (they start at 1 byte or more and rise by a factor above 1) give such sizes")
    found = {largest, *(size for size in ALWAYS if smallest <= size <= largest)}
    size = float(smallest)
    while size <= largest:
        found.add(round(size))
        size = max(size * factor, size + 1)
    return tuple(sorted(found))


def run(options: BenchOptions, say: Callable[[str], None]) -> TransferBenchResult:
    """The result, as docs/json.md describes it. Raises SetupError and NotDone."""
    tests = chosen_tests(options.tests, options.memory, options.target_memory)
    if not options.sizes or not tests:
        raise SetupError("nothing is measured (no size, or no test) give at least one of each")
    if options.peer and options.target is not None:
        raise SetupError("ucx_perftest is not measured against another machine (its server does not run there) remove --target")
    native()  # before anything is started
    plan = facts.plan_cores()
    peer = None
    if options.peer:
        peer = perftest.find(options.transports, plan.engine, plan.emulator, options.memory, options.target_memory)
    before = os.sched_getaffinity(0)
    with StopSignals() as stop, contextlib.ExitStack() as open_ends:
        if plan.engine is not None:
            facts.keep_to({plan.engine})
            open_ends.callback(facts.keep_to, before)
        session = _session(options, plan.emulator, open_ends)
        say(f"path: {session.path['text']}")
        measured: list[TransferMeasurement] = []
        for test in tests:
            for size in options.sizes:
                measured.append(_point(options, session, peer, test, size, stop))
                say(_line(measured[-1]))
        session.end()
        return _result(options, session, peer, plan, measured)


def chosen_tests(asked: Sequence[Measurement] | None, *memories: Memory) -> tuple[Measurement, ...]:
    """Those asked for, else all that can be measured with such memories. Raises SetupError."""
    of_device = [one for one in memories if one.is_device]
    for test in asked or () if of_device else ():
        if test.needs_host:
            text = f"{test} is not measured with memory {of_device[0]} (both CPUs poll their memory for what comes)"
            raise SetupError(f"{text} ask for put_flush_latency")
    every = (one for one in Measurement if not (of_device and one.needs_host))
    return tuple(asked if asked is not None else every)


def csv_rows(result: TransferBenchResult) -> list[tuple[str, str, float, str]]:
    """Rows (case, name, value, unit) for results.append_csv."""
    rows: list[tuple[str, str, float, str]] = []
    for row in result["measurements"]:
        case = f"{row['test']} {row['message_bytes']} bytes"
        rows += [(case, "bandwidth", row["bytes_per_s"], "byte/s"), (case, "messages", row["messages_per_s"], "1/s")]
        rows += [
            (case, f"latency_{name}", value, "us") for name, value in (row["latency_us"] or {}).items() if isinstance(value, float)
        ]
        if row["ratio_to_peer"] is not None:
            rows.append((case, "ratio_to_peer", row["ratio_to_peer"], ""))
    return rows


def _session(options: BenchOptions, target_core: int | None, open_ends: contextlib.ExitStack) -> Session:
    address, port, token = "127.0.0.1", 0, options.token
    if options.target is None:
        port, token = open_ends.enter_context(own_responder(trust_network=options.trust_network))
    else:
        address, port = options.target
    control = open_ends.enter_context(Control.connect(address, port, token, options.timeout_s))
    return Session(
        control, address, token, size_max=max(options.sizes), memory=options.memory, target_memory=options.target_memory,
        transports=options.transports, depth=min(options.depth, SLOTS_MAX), timeout_s=options.timeout_s,
        silent_s=min(SILENT_S_MAX, 2 * options.timeout_s + 20 * options.duration_s),
        target_core=target_core if options.target is None else None, own_address=control.own_address, require=options.require,
        trust_network=options.trust_network,
    )  # fmt: skip


def _point(
    options: BenchOptions, session: Session, peer: perftest.Perftest | None, test: Measurement, size: int, stop: StopSignals
) -> TransferMeasurement:
    """One test at one size, all rounds."""
    depth = max(1, min(options.depth, UNDER_WAY_BYTES // size)) if test.is_bandwidth else 1
    count = options.count
    ours: list[RunFigures] = []
    theirs: list[PeerRun] = []

    def measure() -> None:
        nonlocal count
        ours.append(
            _figures(
                test,
                size,
                session.measure(test, size, depth=depth, batch=options.batch, count=count, duration_s=options.duration_s),
            )
        )
        count = ours[-1]["count"]

    def measure_peer() -> None:
        if peer is not None and test in perftest.NAMES:
            session.rest()
            theirs.append(peer.run(test, size, depth=depth, count=count, timeout_s=options.timeout_s + 20 * options.duration_s))

    for index in range(options.rounds):
        if stop.wait(0.0):
            raise NotDone("stopped by a signal (the measurement was not finished) start again")
        # The first has to be ours: it says how many transfers a run has.
        for one in (measure, measure_peer) if index % 2 == 0 else (measure_peer, measure):
            one()
    return _medians(test, size, depth, ours, theirs)


def _figures(test: Measurement, size: int, run_result: CheckedRun) -> RunFigures:
    """Of one run. The latency of a put is half a round trip of the ping-pong."""
    seconds, count = run_result["elapsed_ns"] / 1e9, run_result["count"]
    ways = 2 if test.is_both_ways else 1

    def us(value_ns: int) -> float:  # a percentile is the end of a bucket, which may lie above the slowest
        return float(min(value_ns, run_result["max_ns"]) / ways / 1e3)

    latency: TransferLatency | None = None
    if not test.is_bandwidth:
        latency = {
            "p50": us(run_result["p50_ns"]),
            "p99": us(run_result["p99_ns"]),
            "p99_9": us(run_result["p99_9_ns"]),
            "max": us(run_result["max_ns"]),
            "min": us(run_result["min_ns"]),
            "mean": seconds / count / ways * 1e6,
        }
    return {
        "count": count, "seconds": seconds, "bytes_per_s": size * count * ways / seconds, "messages_per_s": count * ways / seconds,
        "latency_us": latency, "right": run_result["right"], "way": run_result["way"],
    }  # fmt: skip


def _medians(
    test: Measurement, size: int, depth: int, ours: Sequence[RunFigures], theirs: Sequence[PeerRun]
) -> TransferMeasurement:
    def median(values: Iterable[float]) -> float:
        return float(statistics.median(values))

    latencies = [one["latency_us"] for one in ours if one["latency_us"] is not None]
    latency: TransferLatency | None = None
    if latencies:
        latency = {
            "p50": median(one["p50"] for one in latencies),
            "p99": median(one["p99"] for one in latencies),
            "p99_9": median(one["p99_9"] for one in latencies),
            "max": median(one["max"] for one in latencies),
            "min": median(one["min"] for one in latencies),
            "mean": median(one["mean"] for one in latencies),
        }
    row: TransferMeasurement = {
        "test": str(test), "message_bytes": size, "depth": depth, "count": ours[-1]["count"],
        "bytes_per_s": median(one["bytes_per_s"] for one in ours), "messages_per_s": median(one["messages_per_s"] for one in ours),
        "latency_us": latency,
        "right": all(one["right"] for one in ours), "way": ours[-1]["way"], "peer": None, "ratio_to_peer": None, "rounds": list(ours),
    }  # fmt: skip
    if theirs:
        peer: PeerFigures = {
            "bytes_per_s": median(one["bytes_per_s"] for one in theirs),
            "messages_per_s": median(one["messages_per_s"] for one in theirs),
            "p50_us": median(one["p50_us"] for one in theirs),
            "mean_us": median(one["mean_us"] for one in theirs),
            "rounds": list(theirs),
        }
        row["peer"] = peer
        row["ratio_to_peer"] = row["bytes_per_s"] / peer["bytes_per_s"] if latency is None else latency["p50"] / peer["p50_us"]
    return row


def _result(
    options: BenchOptions,
    session: Session,
    peer: perftest.Perftest | None,
    plan: facts.CorePlan,
    measured: list[TransferMeasurement],
) -> TransferBenchResult:
    def ratio(test: Measurement, size: int) -> float | None:
        found = [row["ratio_to_peer"] for row in measured if (row["test"], row["message_bytes"]) == (test, size)]
        return found[0] if found else None

    return {
        **files.base("rdma bench"),
        "path": session.path, "require": options.require, "transports": options.transports,
        "memory": str(options.memory), "target_memory": str(options.target_memory),
        "depth": options.depth, "batch": options.batch, "duration_s": options.duration_s, "rounds": options.rounds,
        "core": plan.engine, "target_core": plan.emulator if options.target is None else None,
        "ucx_version": native().ucx_version(), "target_ucx_version": session.target_ucx_version,
        "peer": {"name": "ucx_perftest", "version": peer.version} if peer else None,
        "ratio_to_peer": ratio(Measurement.PUT_BANDWIDTH, 1 << 20),
        "right": all(row["right"] for row in measured),
        "measurements": measured,
        "notes": [plan.note] if plan.note else [],
    }  # fmt: skip


def _line(row: TransferMeasurement) -> str:
    test = Measurement(row["test"])
    text = f"{test.words:14} {size_text(row['message_bytes']):>8}  "
    latency = row["latency_us"]
    if latency is None:
        rate = row["messages_per_s"]
        text += f"{rate_text(row['bytes_per_s']):>30}  {f'{rate:,.0f}' if rate >= 100 else f'{rate:.3g}':>13} messages/s"
    else:
        text += f"p50 {latency['p50']:.3f}  p99 {latency['p99']:.3f}  p99.9 {latency['p99_9']:.3f}  max {latency['max']:.3f} us"
    if row["peer"] is not None:
        theirs = rate_text(row["peer"]["bytes_per_s"]) if test.is_bandwidth else f"p50 {row['peer']['p50_us']:.3f} us"
        text += f"   ucx_perftest {theirs}, ratio {row['ratio_to_peer']:.3f}"
    return text + ("" if row["right"] else "   BYTES ARE WRONG")
