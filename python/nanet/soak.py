# SPDX-License-Identifier: Apache-2.0
"""Hours of boards against an engine, with faults switched on and off: books balanced, memory and descriptors flat, every loss with its cause.

The engine runs in a process of its own, the boards in this one. Terms: a *phase* is a time with one setting of faults.
"""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanet import books, config, demo, emulate, hops, results
from nanet.bench import rate as rates
from nanet.config import EngineConfig, Faults, online_cores
from nanet.config_errors import ConfigError, validated
from nanet.emulator_config import EmulatorConfig
from nanet.engine_process import EngineProcess
from nanet.machine import CorePlan, keep_to, plan_cores
from nanet.signals import StopSignals
from nanet.soak_watch import (
    DESCRIPTORS_MORE_MAX,
    GROWTH_MAX_BYTES,
    SERIES,
    Samples,
    Stalls,
    core_wait_ns,
    descriptor_count,
    flatness,
    overflow_stall_ns,
    receive_buffer_bytes,
    rss_bytes,
    steal_ns,
)

SHARE = 0.8  # of the critical rate
ONE_FAULT, OF_ALL_FAULTS = 0.01, 0.003  # probability of a fault that is alone, and of each of six together
FAULTS = ("loss", "duplicate", "reorder", "corrupt", "truncate", "delay")
DONE = {
    "loss": "lost", "duplicate": "duplicated", "reorder": "reordered", "corrupt": "corrupted", "truncate": "truncated", "delay": "delayed",
}  # fmt: skip
"""Fault -> the injector's count of it."""
CYCLE = ("off", "loss", "off", "duplicate", "off", "reorder", "off", "corrupt", "off", "truncate", "off", "delay", "off", "all")
PHASE_MAX_S = 30.0
BUSY_SHARE = 0.05  # of the run: above, a note says that the machine had other things to do
STALLED_SHARE_MAX = 0.2
"""Of the run: above, nothing was shown. A stall excuses what is lost within WINDOW_S of it, so with a fifth of the time stalled, in however
short pieces, nearly every loss of the engine's own would have been put down to the machine."""
DELAY_US = 300
LOSSES_OF_A_STALL = ("packets_lost_kernel", "packets_clop_full")
DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


@dataclass(frozen=True)
class SoakOptions:
    """What to run and for how long."""

    duration_s: float
    rate_events_per_s: float | None = None  # None: SHARE of the critical rate, measured before
    config_path: Path | None = None  # None: the engine of `nanet demo`
    boards: int = 1  # without a configuration
    port: int = 6200  # likewise
    growth_max_bytes: int = GROWTH_MAX_BYTES


@dataclass(frozen=True)
class Schedule:
    """When which faults are on: a warm-up without, then CYCLE over and over, and an end without, so that the end markers come through."""

    duration_s: float

    @property
    def warm_up_s(self) -> float:
        """The part at the start whose memory is not judged."""
        return min(60.0, 0.2 * self.duration_s)

    @property
    def phase_s(self) -> float:
        """Length of a phase: so short that every fault is on at least once."""
        return min(PHASE_MAX_S, (self._end_s - self.warm_up_s) / len(CYCLE))

    @property
    def _end_s(self) -> float:
        return self.duration_s - min(10.0, 0.08 * self.duration_s)

    def phase(self, time_s: float) -> str:
        """Of CYCLE, at this time since the start."""
        if time_s < self.warm_up_s or time_s >= self._end_s:
            return "off"
        return CYCLE[int((time_s - self.warm_up_s) / self.phase_s) % len(CYCLE)]


def faults_of(phase: str) -> Faults:
    """What a phase of CYCLE puts into the links."""
    if phase == "off":
        return Faults()
    chances = dict.fromkeys(FAULTS, OF_ALL_FAULTS) if phase == "all" else {phase: ONE_FAULT}
    return validated(Faults, chances | {"delay_us": DELAY_US})


def parse_duration(text: str) -> float:
    """Seconds of `4h`, `1h30m`, `10s` or `600`. Raises ConfigError."""
    match = DURATION.fullmatch(text.strip())
    seconds = sum(float(part) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True) if part) if match else 0.0
    if not 5.0 <= seconds <= 86400.0:
        raise ConfigError([f"no soak of '{text}' (it is not a time from 5 s to 24 h) write it as 4h, 1h30m, 10m or 30s"])
    return seconds


def configs(options: SoakOptions, cores: CorePlan) -> tuple[EngineConfig, EmulatorConfig]:
    """The engine with a fault injector in each link, and boards for it. Raises ConfigError."""
    if options.config_path is None:
        loop = demo.Loop(boards=options.boards, port=options.port, burst_packets=32, pool_events=rates.POOL_EVENTS)
        engine, emulator = demo.configs(loop, cores)
    else:
        engine = config.load(options.config_path)
        emulator = boards_for(engine, cores.emulator)
    links = tuple(link.model_copy(update={"faults": link.faults or Faults()}) for link in engine.links)
    update = {"duration_s": options.duration_s, "drain_ms": 2000}
    return engine.model_copy(
        update={"links": links, "run": engine.run.model_copy(update={"duration_s": None})}
    ), emulator.model_copy(update=update)


def boards_for(engine: EngineConfig, core: int | None) -> EmulatorConfig:
    """Boards that send what this engine expects, over this machine's own addresses. Raises ConfigError when that cannot be."""
    sources = [(link, source) for link in engine.links for source in link.sources]
    first = sources[0][1] if sources else None
    alike = first is not None and all(
        link.protocol == "mgp" and source.source_id == first.source_id and source.source_sub_id == first.source_sub_id + n
        for n, (link, source) in enumerate(sources)
    )
    if not alike or first is None or len(sources) not in (1, 4):
        raise ConfigError(
            [
                "no soak of this configuration (the emulator has 1 or 4 boards of one source ID with consecutive sub-IDs) give such sources"
            ]
        )
    if engine.processor.kind != "rich" or engine.answers is None:
        raise ConfigError(["no soak of this configuration (nothing comes back that could be checked) use kind rich with answers"])
    decision = {name: getattr(engine.processor, name).model_dump(mode="json") for name in ("finder", "cuts")}
    conditions = [condition.model_dump(mode="json") for condition in engine.processor.conditions]
    destinations = [link.endpoint.replace("udp://0.0.0.0:", "udp://127.0.0.1:") for link, _ in sources]
    plain = decision | {
        "boards": len(sources), "destinations": destinations, "answers": engine.answers.endpoint, "source_id": first.source_id,
        "first_sub_id": first.source_sub_id, "conditions": conditions, "cpu_core": core, "burst_packets": 32,
        "pool_events": rates.POOL_EVENTS, "monte_carlo": demo.SAMPLES["single"],
    }  # fmt: skip
    return validated(EmulatorConfig, plain)


def cores_beside(engine: EngineConfig) -> CorePlan:
    """A core for the boards and the rest for everything else, apart from those that the engine's configuration pins."""
    of_engine = engine.cpu_cores
    pinned = {core for core in (of_engine.receive, of_engine.process, of_engine.send) if core is not None}
    free = sorted((set(os.sched_getaffinity(0)) & online_cores()) - pinned)
    if not free or (not pinned and len(free) < 2):
        return CorePlan(
            None, of_engine.receive, frozenset(free), "emulator and engine share cores (there are too few) expect losses"
        )
    return CorePlan(free[0], of_engine.receive, frozenset(free[1:]) or frozenset(free))


def critical_rate(engine: EngineConfig, emulator: EmulatorConfig, cores: CorePlan, say: Callable[[str], None]) -> float:
    """A brief search for the highest rate without loss, with the fault injector in place but off. Raises ConfigError when there is none."""
    search = rates.RateSearch(first=1e5, highest=40e6, steps=9, repeats=1, repeat_s=1.0)

    def trial(rate: float) -> Mapping[str, Any]:
        boards = emulator.model_copy(update={"rate_events_per_s": rate, "duration_s": search.repeat_s, "drain_ms": 500})
        return demo.run_loop(engine, boards, cores)

    critical = rates.bisect(search, lambda rate: bool(rates.try_rate(rate, search, trial, say)["passed"]))
    if critical == 0.0:
        lowest = f"{search.lowest / 1e6:g} Mevent/s"
        raise ConfigError([f"no critical rate (the lowest one, {lowest}, failed already) give --rate, or see nanet doctor"])
    return critical


def run(options: SoakOptions, say: Callable[[str], None]) -> dict[str, Any]:
    """The result as `nanet soak --json` writes it. Raises ConfigError, EngineError and nanet._core.SetupError."""
    cores = plan_cores() if options.config_path is None else cores_beside(config.load(options.config_path))
    engine_config, emulator_config = configs(options, cores)
    critical = None
    rate = options.rate_events_per_s
    if rate is None:
        critical = critical_rate(engine_config, emulator_config, cores, say)
        rate = SHARE * critical
        say(f"critical rate {critical / 1e6:.2f} Mevent/s; the soak runs at {rate / 1e6:.2f}")
    emulator_config = emulator_config.model_copy(update={"rate_events_per_s": rate})
    schedule = Schedule(options.duration_s)
    watched = _drive(engine_config, emulator_config, schedule, cores, say)
    result = results.base("soak") | {
        "duration_s": options.duration_s, "rate_events_per_s": rate, "critical_rate_events_per_s": critical,
        "boards": emulator_config.boards, "warm_up_s": schedule.warm_up_s, "phase_s": schedule.phase_s,
    }  # fmt: skip
    result |= summary(watched, engine_config, options.growth_max_bytes, schedule.warm_up_s)
    result["notes"] = [note for note in (cores.note, early_note(result), stall_note(result), *watched.engine["notes"]) if note]
    return result


@dataclass
class Watched:
    """What is there after the run."""

    emulated: dict[str, Any]
    engine: dict[str, Any]
    samples: Samples
    stalls: Stalls
    phases: dict[str, int]  # name -> how often it began
    stopped_early: bool = False


def _drive(
    engine_config: EngineConfig, emulator_config: EmulatorConfig, schedule: Schedule, cores: CorePlan, say: Callable[[str], None]
) -> Watched:
    from nanet import _core

    affinity = os.sched_getaffinity(0)
    with StopSignals() as stop, EngineProcess(engine_config, injects_faults=True) as process:
        keep_to(cores.others)
        try:
            emulator = _core.Emulator(emulator_config.model_dump(mode="json"))
            watched = Watched({}, {}, Samples(schedule.duration_s), Stalls(enough_ns=stall_ns(engine_config, emulator_config)), {})
            gc.collect()
            emulator.start()
            _watch(emulator, process, schedule, watched, stop, cores, say)
            emulator.stop()
            watched.emulated = emulate.make_result(emulator_config, emulator.snapshot())
        finally:
            keep_to(affinity)
        watched.engine = process.stop()
    watched.stopped_early = stop.stopped
    return watched


def _watch(
    emulator: Any, process: EngineProcess, schedule: Schedule, watched: Watched, stop: StopSignals, cores: CorePlan, say: Callable[[str], None]
) -> None:  # fmt: skip
    tick_s = min(1.0, schedule.phase_s / 4, schedule.duration_s / 80)
    start = time.monotonic()
    engine_cores = [] if cores.engine is None else [cores.engine]
    phase, say_at_s, say_every_s = "off", 0.0, max(5.0, min(600.0, schedule.duration_s / 24))
    look_at_s = 0.0
    own = os.getpid()
    while not emulator.wait(0.0) and process.alive() and not stop.wait(tick_s):
        now_s = time.monotonic() - start
        wanted = schedule.phase(now_s)
        if wanted != phase:
            phase = wanted
            watched.phases[phase] = watched.phases.get(phase, 0) + 1
            for link in process.config.links:
                process.set_faults(link.name, faults_of(phase))
        watched.samples.add(now_s, (rss_bytes(process.pid), rss_bytes(own), descriptor_count(process.pid), descriptor_count(own)))
        if now_s < look_at_s:
            continue
        look_at_s = now_s + 1.0
        snapshot, counters = emulator.snapshot(), process.counters()
        stalled = {
            "engine_core_wait": core_wait_ns(process.pid), "steal": steal_ns(engine_cores), "emulator_stalls": int(snapshot["stalls"]["total_ns"]),
        }  # fmt: skip
        lost = _overflows(counters, snapshot)
        watched.stalls.look(now_s, stalled, lost)
        if now_s >= say_at_s:
            say_at_s = now_s + say_every_s
            say(_line(now_s, phase, snapshot, process.pid, lost))


def stall_ns(engine: EngineConfig, boards: EmulatorConfig) -> int:
    """The shortest stall that explains an overflow at this rate."""
    packets_per_s = boards.rate_events_per_s * boards.boards / boards.events_per_packet
    return overflow_stall_ns(receive_buffer_bytes(min(link.socket_buffer_bytes for link in engine.links)), packets_per_s)


def _line(now_s: float, phase: str, snapshot: Mapping[str, Any], pid: int, lost: Mapping[str, int]) -> str:
    return (
        f"{now_s:9.0f} s  faults {phase:9}  sent {int(snapshot['sent']):,}  answered {int(snapshot['answered']):,}"
        f"  overflow {books.lost_text(lost)}  engine {rss_bytes(pid) / 2**20:.1f} MiB, {descriptor_count(pid)} descriptors"
    )


def _overflows(counters: Mapping[str, int], emulated: Mapping[str, Any]) -> dict[str, int]:
    """What is lost where somebody did not come to take it in time."""
    totals = {name: int(counters.get(name, 0)) for name in LOSSES_OF_A_STALL}
    return totals | {"answers_kernel_dropped": int(emulated["answers_kernel_dropped"])}


def summary(watched: Watched, engine_config: EngineConfig, growth_max_bytes: int, warm_up_s: float) -> dict[str, Any]:
    """Books, flatness and verdict."""
    emulated, engine, samples = watched.emulated, watched.engine, watched.samples
    packets = packet_balance(emulated, engine)
    sent, answered = int(emulated["sent"]), int(emulated["answered"])
    losses = books.balance(sent, answered, engine["counters"], merged=engine_config.processor.merge is not None)
    watched.stalls.end(float(emulated["elapsed_s"]), _overflows(engine["counters"], emulated))
    flat = {
        name: flatness(
            samples.times_s, samples.of(name), warm_up_s, growth_max_bytes if name.endswith("bytes") else DESCRIPTORS_MORE_MAX
        )
        for name in SERIES
    }
    result = {
        "elapsed_s": emulated["elapsed_s"],
        "stopped_early": watched.stopped_early,
        "sent": sent,
        "answered": answered,
        "losses": losses,
        "unexplained_events": abs(losses["unexplained"]),
        "packets": packets,
        "unexplained_packets": sum(abs(count) for count in packets["residues"].values()),
        "lost_in_stalls": dict(watched.stalls.in_stalls),
        "lost_outside_stalls": dict(watched.stalls.outside),
        "stall_enough_s": watched.stalls.enough_ns / 1e9,
        "stalls_s": {who: total / 1e9 for who, total in watched.stalls.stalled_ns.items()},
        "mistakes": emulated["mistakes"],
        "phases": watched.phases,
        "flat": flat,
        "samples": {"time_s": [round(float(t), 2) for t in samples.times_s]} | {name: samples.of(name).tolist() for name in SERIES},
        "latency_us": emulated["latency_us"],
        "latency_clean_us": emulated["latency_clean_us"],
        "residence_us": engine["latency_us"],
        "faults": engine["faults"],
        "config": {"engine": engine["config"], "emulator": emulated["config"]},
    }
    incomplete = engine_config.processor.merge is not None and engine_config.processor.merge.incomplete == "process"
    reasons = verdict_reasons(result, may_be_incomplete=incomplete)
    outcome = outcome_of(result, reasons)
    return result | {"verdict": {"kept": outcome == "passed", "outcome": outcome, "reasons": reasons}}


def packet_balance(emulated: Mapping[str, Any], engine: Mapping[str, Any]) -> dict[str, Any]:
    """Packets from hop to hop, and what is left over at each; books 1 and 2 of docs/design/books.md. All residues are 0 when all is told."""
    boards = int(emulated["config"]["boards"])
    inputs = [link for link in engine["links"] if link["faults"] is not None]
    counters = engine["counters"]
    injected = {name: sum(int(link["faults"][name]) for link in inputs) for name in ("passed", *DONE.values(), "held")}
    at_socket = sum(int(link["stats"]["rx_packets"]) for link in inputs)
    data, markers = int(emulated["packets_sent"]), int(emulated["markers_sent"])
    expected = [
        sum(source["counters"][name] for name in ("packets_accepted", *books.PACKET_LOSSES)) for source in engine["sources"]
    ]
    delivered = hops.delivered(inputs)
    return {
        "sent": data,
        "markers_sent": markers,
        "lost_before_socket": data + markers - at_socket,
        "at_socket": at_socket,
        "injected": injected,
        "delivered": delivered,
        "accepted": counters["packets_accepted"],
        "clop_full": counters["packets_clop_full"],
        "refused": books.refusals(counters),
        "lost_by_sequence": counters["packets_lost_kernel"] + counters["packets_lost_network"],
        "residues": {
            "sources": sum(abs(data // boards - one) for one in expected),
            "injector": sum(hop.unexplained for hop in hops.fault_injector(inputs)),
            "link": hops.decoder(delivered, counters).unexplained,
        },
    }  # fmt: skip


def verdict_reasons(result: Mapping[str, Any], *, may_be_incomplete: bool) -> list[str]:
    """Why the soak was not passed, a sentence each."""
    reasons = list(result["faults"])
    if result["unexplained_events"]:
        reasons.append(f"{result['unexplained_events']:,} events are not in any counter")
    if result["unexplained_packets"]:
        reasons.append(f"the books of packets do not balance: {books.lost_text(result['packets']['residues'])}")
    if result["lost_outside_stalls"]:
        reasons.append(f"lost although the machine did not stall: {books.lost_text(result['lost_outside_stalls'])}")
    if result["losses"]["answers_lost"] and not (
        result["lost_in_stalls"].get("answers_kernel_dropped") or result["lost_outside_stalls"].get("answers_kernel_dropped")
    ):
        reasons.append(f"{result['losses']['answers_lost']:,} answers did not arrive, and no socket says that it dropped them")
    wrong = {
        name: count for name, count in result["mistakes"].items() if count and not (may_be_incomplete and name == "wrong_answers")
    }
    if wrong:
        reasons.append(f"wrong answers: {books.lost_text(wrong)}")
    reasons += [_growth_text(name, flat) for name, flat in result["flat"].items() if not flat["flat"]]
    done = result["packets"]["injected"]
    idle = [fault for fault in FAULTS if result["phases"].get(fault) and not done[DONE[fault]]]
    if idle:
        reasons.append(f"faults that were switched on but did nothing: {', '.join(idle)}")
    if not result["sent"]:
        reasons.append("nothing was sent")
    return reasons


def stalled_share(result: Mapping[str, Any]) -> float:
    """The share of the run for which the machine kept the engine or the boards from running, whichever was longer."""
    elapsed_s = float(result["elapsed_s"])
    return max(result["stalls_s"].values(), default=0.0) / elapsed_s if elapsed_s else 0.0


def outcome_of(result: Mapping[str, Any], reasons: list[str]) -> str:
    """`failed` for any reason; else `inconclusive` where the machine stalled for too much of the run to show anything; else `passed`."""
    if reasons:
        return "failed"
    return "inconclusive" if stalled_share(result) > STALLED_SHARE_MAX else "passed"


def verdict_text(result: Mapping[str, Any]) -> str:
    """The verdict as a sentence."""
    judged = result["verdict"]
    if judged["outcome"] == "failed":
        return "Soak failed: " + "; ".join(judged["reasons"]) + "."
    if judged["outcome"] == "inconclusive":
        return (
            f"Soak inconclusive: nothing is wrong, but the machine stalled for {stalled_share(result):.0%} of the time "
            f"(above {STALLED_SHARE_MAX:.0%} a loss cannot be told from one caused by the machine) run it on a quiet machine."
        )
    return "Soak passed."


def early_note(result: Mapping[str, Any]) -> str | None:
    """Says when a signal ended the soak: then it has passed only as far as it got."""
    if not result["stopped_early"]:
        return None
    missed = [fault for fault in FAULTS if not result["phases"].get(fault)]
    never = f", and {', '.join(missed)} never came" if missed else ""
    return f"stopped after {result['elapsed_s']:.0f} of {result['duration_s']:.0f} s (a signal arrived{never}) only that much was checked"


def stall_note(result: Mapping[str, Any]) -> str | None:
    """Says when the machine was so busy with other things that the run tells little about losses."""
    if stalled_share(result) <= BUSY_SHARE:
        return None
    longest_s = max(result["stalls_s"].values())
    return (
        f"something else had the cores for {longest_s:.1f} of {result['elapsed_s']:.1f} s (losses in that time are attributed to the machine) "
        "run it on a quiet machine"
    )


def _growth_text(name: str, flat: Mapping[str, Any]) -> str:
    who, _, what = name.partition("_")
    if flat["growth"] is None:
        return f"{what} of the {who}: too few samples after the warm-up"
    return f"{what} of the {who} grew by {flat['growth']:,} after the warm-up, more than {flat['growth_max']:,}"


def table(result: Mapping[str, Any]) -> list[str]:
    """The result as lines."""
    packets, latency = result["packets"], result["latency_us"] or {}
    injected = {name: count for name, count in packets["injected"].items() if name not in ("passed", "held")}
    lines = [
        f"{'sent':18}{result['sent']:>18,} events in {packets['sent']:,} packets, {result['elapsed_s']:.0f} s",
        f"{'answered':18}{result['answered']:>18,}",
        *(f"{name:18}{count:>18,}" for name, count in result["losses"].items() if count),
        f"{'faults injected':18}{sum(injected.values()):>18,} packets: {books.lost_text(injected)}",
        f"{'unexplained':18}{result['unexplained_events']:>18,} events, {result['unexplained_packets']:,} packets",
        f"{'lost in stalls':18}  {books.lost_text(result['lost_in_stalls'])};  outside: {books.lost_text(result['lost_outside_stalls'])}",
        f"{'stalls':18}  " + ", ".join(f"{who} {seconds:.3f} s" for who, seconds in result["stalls_s"].items()),
    ]
    for name, flat in result["flat"].items():
        unit, scale = ("MiB", 2.0**20) if name.endswith("bytes") else ("", 1.0)
        if flat["growth"] is not None:
            lines.append(
                f"{name.removesuffix('_bytes'):22}{flat['start'] / scale:>10,.1f} -> {flat['end'] / scale:,.1f} {unit}"
                f"{'' if flat['flat'] else '  GREW'}"
            )
    if latency:
        lines.append(
            f"{'latency':18}  p50 {latency['p50']:.1f}  p99 {latency['p99']:.1f}  p99.9 {latency['p99_9']:.1f}  max {latency['max']:.0f} us"
        )
    return lines
