# SPDX-License-Identifier: Apache-2.0
"""The whole loop on one machine: boards and other detectors, engine and L0 trigger processor in processes of their own, verdict, report."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig
from nanet.config.errors import validated
from nanet.config.l0tp import L0tpConfig
from nanet.loop import host, l0
from nanet.loop.keys import LoopParts, LoopResult
from nanet.loop.verdict import verdict
from nanet.machine.facts import CorePlan, keep_to
from nanet.machine.netns import VethPair
from nanet.result import books, files
from nanet.result.histogram import Histogram
from nanet.result.keys.base import Config
from nanet.result.keys.emulator import EmulatorRun
from nanet.result.keys.engine import EngineEnd, EventSample, TrueEvent
from nanet.result.keys.l0tp import L0tpEnd
from nanet.run import emulate
from nanet.run.process import EngineProcess, L0tpProcess

RING_MIX = (0.1, 0.5, 0.25, 0.1, 0.05)  # shares of 0 to 4 rings
# What the boards send: one ring of 20 hits an event; the default mix of several rings, at any radius; the same mix of real particles.
SAMPLES: dict[str, Config] = {
    "single": {"mean_hits": 20.0},
    "multi": {"mean_hits": 12.0, "noise_hits": 1.2, "ring_count_shares": RING_MIX, "flat_radius": True},
    "particles": {"mean_hits": 12.0, "noise_hits": 1.2, "ring_count_shares": RING_MIX},
}


@dataclass(frozen=True)
class Loop:
    """What a run of emulator and engine against each other needs to know."""

    rate_events_per_s: float = 1e6
    duration_s: float = 10.0
    boards: int = 1
    layout: str = "padded"
    budget_us: int = 1000
    port: int = 6200
    burst_packets: int = 1
    packet_bytes: int = 0
    in_flight_packets_max: int = 0
    events_per_packet: int = 16
    topology: str = "run_to_completion"
    sample: str = "single"  # of SAMPLES
    mean_hits: float | None = None  # None: the sample's
    finder: str = "math"
    runtime: str = "cpu"  # of the engine's processor
    seed: int = 1
    window_us: int = 50_000  # longer than a board may be stopped by the machine; costs nothing while no part is missing
    open_events_max: int = 8192  # more than boards send between two looks; a larger memory leaves the second-level cache
    pool_events: int = 65536
    metrics: str | None = None  # ADDRESS:PORT of the engine's metrics; None: none
    drain_ms: int = 200  # how long answers are waited for after the last packet
    l0: bool = False  # the L0 trigger processor and its other detectors are in the loop


def loop_configs(loop: Loop, cores: CorePlan) -> tuple[EngineConfig, EmulatorConfig]:
    """The two configurations of a loop over 127.0.0.1. Raises ConfigError for what does not go together."""
    receive, answers = f"udp://127.0.0.1:{loop.port}", f"udp://127.0.0.1:{loop.port + 100}"
    sample = SAMPLES[loop.sample] | ({} if loop.mean_hits is None else {"mean_hits": loop.mean_hits})
    finder = {"name": loop.finder}
    sources = [{"name": f"board{n}", "source_id": 0x1C, "source_sub_id": n} for n in range(loop.boards)]
    # One thread needs no more buffers than it can fill before it looks at them; few stay in the second-level cache.
    alone = loop.topology == "run_to_completion" and loop.runtime == "cpu"
    engine = validated(EngineConfig, {
        "version": 1,
        "name": "demo" if loop.boards == 1 else "demo-four-boards",
        "topology": loop.topology,
        "cpu_cores": {"receive": cores.engine},
        "memory_regions": [{"name": "rich", "buffer_count": 4 if alone else 64}],
        "links": [{"name": "boards", "endpoint": receive, "memory_region": "rich", "sources": sources}],
        "processor": {"kind": "rich", "finder": finder, "runtime": loop.runtime, "merge": {"window_us": loop.window_us, "open_events_max": loop.open_events_max} if loop.boards > 1 else None},
        "answers": {"endpoint": answers, "copies": [l0.primitives_endpoint(loop.port)] if loop.l0 else []},
        "waiting": {"spin": -1 if cores.engine is not None else 200},
        "run": {"budget_us": loop.budget_us},
        "metrics": {"endpoint": f"http://{loop.metrics}"} if loop.metrics else None,
    })  # fmt: skip
    emulator = validated(
        EmulatorConfig,
        {
            "boards": loop.boards,
            "layout": loop.layout,
            "destinations": [receive],
            "answers": answers,
            "rate_events_per_s": loop.rate_events_per_s,
            "duration_s": loop.duration_s,
            "drain_ms": loop.drain_ms,
            "burst_packets": loop.burst_packets,
            "in_flight_packets_max": loop.in_flight_packets_max,
            "pool_events": loop.pool_events,
            "packet_bytes": loop.packet_bytes,
            "events_per_packet": loop.events_per_packet,
            "cpu_core": cores.emulator,
            "monte_carlo": sample | {"seed": loop.seed, "hits_max": 32 if loop.boards == 1 and loop.layout == "padded" else 128},
            "finder": finder,
        }
        | (l0.emulator_part(loop.port) if loop.l0 else {}),
    )
    return engine, emulator


def run_loop(
    engine_config: EngineConfig,
    emulator_config: EmulatorConfig,
    cores: CorePlan,
    title: str | None = None,
    l0tp_config: L0tpConfig | None = None,
    *,
    pair: VethPair | None = None,
    may_be_cut: bool = False,
) -> LoopResult:
    """One run: engine (and L0 trigger processor) up, emulate, down; the results joined under the keys of `nanet demo --json`.

    pair: engine and emulator are at its two ends; None: both here. may_be_cut: a signal ends the run early, and it has a result all the same;
    else it raises KeyboardInterrupt.
    """
    emulator = emulate.run if may_be_cut else emulate.run_whole
    with contextlib.ExitStack() as processes:
        l0tp = processes.enter_context(L0tpProcess(l0tp_config)) if l0tp_config is not None else None
        engine = processes.enter_context(EngineProcess(engine_config, pair.engine.namespace if pair else None))
        before, stolen_s = os.sched_getaffinity(0), host.steal_s(cores)
        keep_to(cores.others)
        try:
            emulated = emulator(
                emulator_config,
                title=title,
                engine=engine.reading,
                merged=engine_config.processor.merge is not None,
                settle=engine.stop,
                namespace=pair.boards.namespace if pair else None,
            )
        finally:
            keep_to(before)
        stolen_s = host.steal_s(cores) - stolen_s
        engine_result = engine.stop()
        l0tp_result = l0tp.stop() if l0tp is not None else None
    return joined(engine_config, emulated, engine_result, l0tp_result, stolen_s=stolen_s)


def joined(
    engine_config: EngineConfig,
    emulated: EmulatorRun,
    engine_result: EngineEnd,
    l0tp_result: L0tpEnd | None = None,
    *,
    stolen_s: float = 0.0,
) -> LoopResult:
    """The result of a loop from the results of its parts. stolen_s: what the hypervisor took meanwhile."""
    sent, answered = int(emulated["sent"]), int(emulated["answered"] or 0)
    merged = engine_config.processor.merge is not None
    _attach_truth(engine_result["event_samples"], emulated["truth"])
    losses = books.balance(sent, answered, engine_result["counters"], merged=merged)
    latency = Histogram.decode(emulated["latency_histogram"], emulated["latency_us"])
    made: LoopParts = {
        **files.base("demo"),
        "sent": sent,
        "answered": answered,
        "lost": sent - answered,
        "losses": losses,
        "loss_meanings": books.EVENT_LOSSES,
        "latency_us": emulated["latency_us"],
        "mistakes": emulated["mistakes"],
        "emulator": emulated,
        "engine": engine_result,
        "l0": l0.result_part(l0tp_result, emulated) if l0tp_result is not None else None,
        "host": host.host_part(emulated, engine_result, l0tp_result, stolen_s),
    }
    return {**made, "verdict": verdict(made, latency, engine_config.run.budget_us)}


def _attach_truth(samples: Sequence[EventSample], truth: Sequence[TrueEvent]) -> None:
    """Gives each kept event its true rings, found by its time; None where it is not known."""
    by_time = {(event["timestamp"], event["fine_time"]): event["rings"] for event in truth}
    for sample in samples:
        sample["truth"] = by_time.get((sample["timestamp"], sample["fine_time"]))
