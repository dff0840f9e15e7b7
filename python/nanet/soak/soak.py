# SPDX-License-Identifier: Apache-2.0
"""Hours of boards against an engine, with faults of packets and of the machine: books balanced, memory and descriptors flat, every loss with
its cause, every fault survived.

The engine runs in a process of its own, the boards in this one. soak_plan says which faults come when, soak_course lets them come, soak_books
and soak_verdict judge.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nanet.bench import rate as rates
from nanet.config.base import online_cores
from nanet.config.components import Faults
from nanet.config.emulator import EmulatorConfig, decision_of
from nanet.config.engine import EngineConfig, load
from nanet.config.errors import ConfigError, validated
from nanet.loop.keys import Run, run_of
from nanet.loop.run import SAMPLES, Loop, loop_configs, run_loop
from nanet.machine.facts import CorePlan, plan_cores
from nanet.machine.netns import NamespaceError, VethPair
from nanet.result import files
from nanet.soak import books
from nanet.soak.course import Course, Schedule, Watched
from nanet.soak.keys import Flat, Flatness, Judged, Seen, Settings, SoakResult
from nanet.soak.lives import add_up
from nanet.soak.plan import KINDS, PAUSE_S, Plan, make, missing_here
from nanet.soak.verdict import (
    HOST_SHARE_MAX,
    early_note,
    late_reasons,
    lives_note,
    outcome_of,
    packet_balance,
    packets_row,
    stall_note,
    verdict_reasons,
)
from nanet.soak.watch import DESCRIPTORS_MORE_MAX, GROWTH_MAX_BYTES, Samples, flatness

SHARE = 0.8  # of the critical rate
LIFE_WARM_UP_SHARE = 0.25  # of a short life of the engine, in which memory is not judged
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
    faults: tuple[str, ...] = tuple(KINDS)
    fault_every_s: float = 60.0
    seed: int = 1
    recover_within_s: float = 10.0
    host_share_max: float = HOST_SHARE_MAX


def parse_duration(text: str) -> float:
    """Seconds of `4h`, `1h30m`, `10s` or `600`. Raises ConfigError."""
    seconds = _seconds(text)
    if not 5.0 <= seconds <= 86400.0:
        raise ConfigError([f"no soak of '{text}' (it is not a time from 5 s to 24 h) write it as 4h, 1h30m, 10m or 30s"])
    return seconds


def parse_time(text: str) -> float:
    """Seconds of a time within a soak, written the same. Raises ConfigError."""
    seconds = _seconds(text)
    if not 0.0 < seconds <= 86400.0:
        raise ConfigError([f"no time '{text}' (it is not one up to 24 h) write it as 1m, 30s or 2.5s"])
    return seconds


def _seconds(text: str) -> float:
    match = DURATION.fullmatch(text.strip())
    return sum(float(part) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True) if part) if match else 0.0


def configs(options: SoakOptions, cores: CorePlan, pair: VethPair | None = None) -> tuple[EngineConfig, EmulatorConfig]:
    """The engine with a fault injector in each link, and boards for it; pair: at its two ends. Raises ConfigError."""
    if options.config_path is None:
        loop = Loop(boards=options.boards, port=options.port, burst_packets=32, pool_events=rates.POOL_EVENTS)
        engine, emulator = loop_configs(loop, cores)
        if pair is not None:
            engine, emulator = _at_ends(engine, emulator, pair, options.port)
    else:
        engine = load(options.config_path)
        emulator = boards_for(engine, cores.emulator)
    links = tuple(link.model_copy(update={"faults": link.faults or Faults()}) for link in engine.links)
    update = {"duration_s": options.duration_s, "drain_ms": 2000}
    return engine.model_copy(
        update={"links": links, "run": engine.run.model_copy(update={"duration_s": None})}
    ), emulator.model_copy(update=update)


def _at_ends(engine: EngineConfig, emulator: EmulatorConfig, pair: VethPair, port: int) -> tuple[EngineConfig, EmulatorConfig]:
    receive, answers = f"udp://{pair.engine.address}:{port}", f"udp://{pair.boards.address}:{port + 100}"
    links = tuple(link.model_copy(update={"endpoint": receive}) for link in engine.links)
    assert engine.answers is not None
    there = engine.answers.model_copy(update={"endpoint": answers})
    return engine.model_copy(update={"links": links, "answers": there}), emulator.model_copy(
        update={"destinations": (receive,), "answers": answers}
    )


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
    destinations = [link.endpoint.replace("udp://0.0.0.0:", "udp://127.0.0.1:") for link, _ in sources]
    plain = decision_of(engine) | {
        "boards": len(sources), "destinations": destinations, "answers": engine.answers.endpoint, "source_id": first.source_id,
        "first_sub_id": first.source_sub_id, "cpu_core": core, "burst_packets": 32,
        "pool_events": rates.POOL_EVENTS, "monte_carlo": SAMPLES["single"],
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


def critical_rate(
    engine: EngineConfig, emulator: EmulatorConfig, cores: CorePlan, say: Callable[[str], None], pair: VethPair | None = None
) -> float:
    """A brief search for the highest rate without loss, with the fault injector in place but off. Raises ConfigError when there is none."""
    search = rates.RateSearch(first=1e5, highest=40e6, steps=9, repeats=1, repeat_s=1.0)

    def trial(rate: float) -> Run:
        boards = emulator.model_copy(update={"rate_events_per_s": rate, "duration_s": search.repeat_s, "drain_ms": 500})
        return run_of(run_loop(engine, boards, cores, pair=pair))

    critical = rates.bisect(search, lambda rate: bool(rates.try_rate(rate, search, trial, say)["passed"]))
    if critical == 0.0:
        lowest = f"{search.lowest / 1e6:g} Mevent/s"
        raise ConfigError([f"no critical rate (the lowest one, {lowest}, failed already) give --rate, or see nanet doctor"])
    return critical


def run(options: SoakOptions, say: Callable[[str], None]) -> SoakResult:
    """The result as `nanet soak --json` writes it. Raises ConfigError, EngineError and nanet._core.SetupError."""
    plan = plan_of(options)
    with contextlib.ExitStack() as stack:
        pair = None
        if any(fault.kind == "link" for fault in plan.planned):
            try:
                pair = stack.enter_context(VethPair())
            except NamespaceError as error:
                plan = plan_of(options, {"link": str(error)})
        return _run(options, plan, pair, say)


def _run(options: SoakOptions, plan: Plan, pair: VethPair | None, say: Callable[[str], None]) -> SoakResult:
    cores = plan_cores() if options.config_path is None else cores_beside(load(options.config_path))
    engine_config, emulator_config = configs(options, cores, pair)
    critical = None
    rate = options.rate_events_per_s
    if rate is None:
        critical = critical_rate(engine_config, emulator_config, cores, say, pair)
        rate = SHARE * critical
        say(f"critical rate {critical / 1e6:.2f} Mevent/s; the soak runs at {rate / 1e6:.2f}")
    update = {"rate_events_per_s": rate} | ({"spill_s": plan.spill_s, "pause_s": PAUSE_S} if plan.planned else {})
    emulator_config = emulator_config.model_copy(update=update)
    schedule = Schedule(options.duration_s)
    watched = Course(engine_config, emulator_config, plan, cores, pair, options.seed, say).run()
    settings: Settings = {
        **files.base("soak"),
        "duration_s": options.duration_s, "rate_events_per_s": rate, "critical_rate_events_per_s": critical,
        "boards": emulator_config.boards, "warm_up_s": schedule.warm_up_s, "phase_s": schedule.phase_s,
        "seed": options.seed, "fault_every_s": plan.every_s, "recover_within_s": options.recover_within_s,
        "host_share_max": options.host_share_max, "over": "veth pair" if pair is not None else "loopback",
    }  # fmt: skip
    result = summary(watched, engine_config, plan, settings, options.growth_max_bytes)
    of_engine = watched.engine["notes"] if watched.engine is not None else []
    notes = (cores.note, early_note(result), stall_note(result), lives_note(result), *of_engine)
    return {**result, "notes": [note for note in notes if note]}


def plan_of(options: SoakOptions, missing: Mapping[str, str] | None = None) -> Plan:
    """The faults of a soak. missing: more kinds that cannot be made here, and why. Raises ConfigError."""
    engine = None if options.config_path is None else load(options.config_path)
    records = engine is not None and any(link.record is not None for link in engine.links)
    here = missing_here(with_config=engine is not None, records=records) if options.faults else {}
    return make(
        options.faults,
        here | dict(missing or {}),
        options.duration_s,
        options.fault_every_s,
        Schedule(options.duration_s).end_s,
        options.seed,
    )


def _flat(samples: Samples, life_s: tuple[float, float], warm_up_s: float, growth_max_bytes: int) -> Flat:
    """Of each series; the engine's in the longest life alone, the boards' in the whole run."""

    def of(name: str) -> Flatness:
        from_s, until_s = life_s if name.startswith("engine") else (0.0, float("inf"))
        inside = samples.times_s < until_s
        warm_s = from_s + min(warm_up_s, LIFE_WARM_UP_SHARE * (until_s - from_s))
        more_max = growth_max_bytes if name.endswith("bytes") else DESCRIPTORS_MORE_MAX
        return flatness(samples.times_s[inside], samples.of(name)[inside], warm_s, more_max)

    return {
        "engine_rss_bytes": of("engine_rss_bytes"),
        "emulator_rss_bytes": of("emulator_rss_bytes"),
        "engine_descriptors": of("engine_descriptors"),
        "emulator_descriptors": of("emulator_descriptors"),
    }


def summary(watched: Watched, engine_config: EngineConfig, plan: Plan, settings: Settings, growth_max_bytes: int) -> Judged:
    """Books, flatness, faults and verdict. settings: the keys of the result that the options gave."""
    emulated, engine, samples, lives = watched.emulated, watched.engine, watched.samples, watched.lives
    assert emulated is not None
    merged = engine_config.processor.merge is not None
    packets = packet_balance(emulated, lives, watched.gap_packets)
    rows = books.periods(watched.looks, merged=merged)
    faults = books.judged(watched.faults, rows, float(settings["recover_within_s"]))
    losses = add_up([row["losses"] for row in rows]) | {"unexplained": sum(row["unexplained"] for row in rows)}
    from_s, until_s = watched.longest_life_s
    flat = _flat(samples, (from_s, until_s), float(settings["warm_up_s"]), growth_max_bytes)
    residues = packets["residues"]
    seen: Seen = {
        **settings,
        "elapsed_s": emulated["elapsed_s"],
        "stopped_early": watched.stopped_early,
        "sent": emulated["sent"],
        "answered": emulated["answered"] or 0,
        "losses": losses,
        "unexplained_events": sum(abs(row["unexplained"]) for row in rows),
        "lost_with_the_engine_max": sum(row["lost_with_the_engine_max"] for row in rows),
        "periods": rows,
        "packets": packets,
        "unexplained_packets": abs(residues["sources"]) + abs(residues["injector"]) + abs(residues["link"]),
        "lost_in_stalls": dict(watched.stalls.in_stalls),
        "lost_in_faults": dict(watched.stalls.in_faults),
        "lost_outside_stalls": dict(watched.stalls.outside),
        "stall_enough_s": watched.stalls.enough_ns / 1e9,
        "stalls_s": {who: total / 1e9 for who, total in watched.stalls.stalled_ns.items()},
        "mistakes": emulated["mistakes"],
        "phases": watched.phases,
        "phases_counted": watched.phases_counted,
        "machine_faults": faults,
        "machine_faults_missed": sorted({one.kind for one in plan.planned} - {one["fault"] for one in faults}),
        "engine_lives": len(lives),
        "judged_life_s": [round(from_s, 1), round(min(until_s, float(emulated["elapsed_s"])), 1)],
        "flat": flat,
        "samples": {
            "time_s": [round(float(t), 2) for t in samples.times_s],
            "engine_rss_bytes": samples.of("engine_rss_bytes").tolist(),
            "emulator_rss_bytes": samples.of("emulator_rss_bytes").tolist(),
            "engine_descriptors": samples.of("engine_descriptors").tolist(),
            "emulator_descriptors": samples.of("emulator_descriptors").tolist(),
        },
        "latency_us": emulated["latency_us"],
        "latency_clean_us": emulated["latency_clean_us"],
        "residence_us": engine["latency_us"] if engine is not None else None,
        "faults": [fault for life in lives if life.result is not None for fault in life.result["faults"]],
        "config": {"engine": engine_config.model_dump(mode="json"), "emulator": emulated["config"]},
    }
    table = ([packets_row(seen)] if plan.always else []) + books.table_rows(faults, plan.not_run)
    incomplete = engine_config.processor.merge is not None and engine_config.processor.merge.incomplete == "process"
    reasons, late = verdict_reasons(seen, may_be_incomplete=incomplete), late_reasons(seen)
    outcome = outcome_of(seen, reasons, late)
    return {**seen, "table": table, "verdict": {"kept": outcome == "passed", "outcome": outcome, "reasons": reasons + late}}
