# SPDX-License-Identifier: Apache-2.0
"""Latency at a set rate, with sockperf's round trip of the same message size before and after, in the same run.

Ours: from the moment the packet with an event's last hit is given to the kernel to the moment its answer is received; in it are
two UDP messages, decoding, the ring fit and the answer. sockperf: two UDP messages, nothing else.

sockperf has one message in flight at a time, so a pause of the machine meets one of its messages, and the many that it would have sent
meanwhile are not measured. Boards do not wait: a pause meets everything that was due. So each round measures both: `latency` with boards that
send when a packet is due, and `one_in_flight` at the same rate but with one packet in flight, which compares with sockperf like for like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import median

from nanet.bench import sockperf
from nanet.bench.keys import LatencyResult, LoopConfigs, Round, RoundSummary
from nanet.loop.keys import LoopResult
from nanet.loop.run import Loop, loop_configs, run_loop
from nanet.machine.facts import plan_cores
from nanet.result import files
from nanet.result.histogram import Histogram
from nanet.result.keys.emulator import CoursePoint

MESSAGE_BYTES = 1168
NAMES = ("p50", "p99", "p99_9", "p99_99", "max")


@dataclass(frozen=True)
class LatencyBench:
    """What to measure."""

    loop: Loop = field(default_factory=Loop)
    repeats: int = 3
    repeat_s: float = 5.0
    sockperf_s: float = 3.0


def run(bench: LatencyBench, say: Callable[[str], None]) -> LatencyResult:
    """The result as `nanet bench latency --json` writes it. Raises SockperfError and ConfigError."""
    cores = plan_cores()
    loop = replace(bench.loop, duration_s=bench.repeat_s)
    loop_configs(loop, cores)  # what does not go together is refused before anything is measured
    rounds: list[Round] = []
    all_ours, all_clean, all_engine = Histogram(), Histogram(), Histogram()
    series: list[CoursePoint] = []
    configs: LoopConfigs = {"engine": {}, "emulator": {}}
    for number in range(bench.repeats):
        before = sockperf.ping_pong(cores, message_bytes=MESSAGE_BYTES, duration_s=bench.sockperf_s)
        result = run_loop(*loop_configs(loop, cores), cores)
        single = run_loop(*loop_configs(replace(loop, in_flight_packets_max=1), cores), cores)
        after = sockperf.ping_pong(cores, message_bytes=MESSAGE_BYTES, duration_s=bench.sockperf_s)
        rounds.append(_round(result, single, before, after))
        emulator, engine = result["emulator"], result["engine"]
        all_ours += Histogram.decode(emulator["latency_histogram"], emulator["latency_us"])
        all_clean += Histogram.decode(emulator["latency_clean_histogram"], emulator["latency_clean_us"])
        all_engine += Histogram.decode(engine["latency_histogram"], engine["latency_us"])
        series = emulator["series"]
        configs = {"engine": engine["config"], "emulator": emulator["config"]}
        last = rounds[-1]
        say(
            f"round {number + 1}: p50 {last['latency_us']['p50']:.2f} us, sockperf {last['sockperf_us']['p50']:.2f};"
            f" p99.9 {last['latency_us']['p99_9']:.1f} (one in flight {last['one_in_flight_us']['p99_9']:.1f}),"
            f" sockperf {last['sockperf_us']['p99_9']:.1f};"
            f" max {last['latency_us']['max']:.0f}, sockperf {last['sockperf_us']['max']:.0f}; lost {last['lost']}"
        )
    return {
        **files.base("bench latency"),
        **summary(rounds),
        "rate_events_per_s": loop.rate_events_per_s,
        "boards": loop.boards,
        "layout": loop.layout,
        "runtime": loop.runtime,
        "message_bytes": MESSAGE_BYTES,
        "budget_us": loop.budget_us,
        "rounds": rounds,
        "latency_histogram": all_ours.encode(),
        "latency_clean_histogram": all_clean.encode() if all_clean.count else None,
        "engine_histogram": all_engine.encode() if all_engine.count else None,
        "series": series,
        "config": configs,
        "notes": [cores.note] if cores.note else [],
    }  # fmt: skip


def summary(rounds: list[Round]) -> RoundSummary:
    """Medians over the rounds, and the figures that compare with sockperf."""
    ours = {name: median(r["latency_us"][name] for r in rounds) for name in NAMES}
    cleans = [r["latency_clean_us"] or {} for r in rounds]
    clean = {name: median(of_round[name] for of_round in cleans) for name in NAMES} if cleans[0] else None
    single = {name: median(r["one_in_flight_us"][name] for r in rounds) for name in NAMES}
    theirs = {name: median(r["sockperf_us"][name] for r in rounds) for name in NAMES}
    return {
        "p50_above_sockperf_us": round(median(r["latency_us"]["p50"] - r["sockperf_us"]["p50"] for r in rounds), 3),
        "p99_9_ratio_to_sockperf": round(median(r["latency_us"]["p99_9"] / r["sockperf_us"]["p99_9"] for r in rounds), 3),
        "one_in_flight_p50_above_sockperf_us": round(
            median(r["one_in_flight_us"]["p50"] - r["sockperf_us"]["p50"] for r in rounds), 3
        ),
        "one_in_flight_p99_9_ratio_to_sockperf": round(
            median(r["one_in_flight_us"]["p99_9"] / r["sockperf_us"]["p99_9"] for r in rounds), 3
        ),
        "latency_us": ours,
        "latency_clean_us": clean,
        "one_in_flight_us": single,
        "sockperf_us": theirs,
        "max_us": max(r["latency_us"]["max"] for r in rounds),
        "sockperf_max_us": max(r["sockperf_us"]["max"] for r in rounds),
        "longest_stall_us": max(r["stalls"]["longest_us"] for r in rounds),
        "lost": sum(r["lost"] for r in rounds),
    }


def csv_rows(result: LatencyResult) -> list[tuple[str, str, float, str]]:
    """Rows for the CSV."""
    runtime = "" if result["runtime"] == "cpu" else f"-{result['runtime']}"
    case = f"{result['boards']}board-{result['layout']}{runtime}@{result['rate_events_per_s']:.0f}"
    rows = [
        (case, "p50_above_sockperf", float(result["p50_above_sockperf_us"]), "us"),
        (case, "p99_9_ratio_to_sockperf", float(result["p99_9_ratio_to_sockperf"]), "1"),
        (case, "one_in_flight_p50_above_sockperf", float(result["one_in_flight_p50_above_sockperf_us"]), "us"),
        (case, "one_in_flight_p99_9_ratio_to_sockperf", float(result["one_in_flight_p99_9_ratio_to_sockperf"]), "1"),
        (case, "longest_stall", float(result["longest_stall_us"]), "us"),
    ]
    measured = {
        "latency": result["latency_us"],
        "latency_clean": result["latency_clean_us"],
        "one_in_flight": result["one_in_flight_us"],
        "sockperf": result["sockperf_us"],
    }
    for name, latency in measured.items():
        if latency:
            rows += [(case, f"{name}_{p}", float(latency[p]), "us") for p in NAMES]
    return rows


def _round(result: LoopResult, single: LoopResult, before: sockperf.RoundTrip, after: sockperf.RoundTrip) -> Round:
    yardstick = {name: (before.latency_us[name] + after.latency_us[name]) / 2 for name in NAMES[:-1]}
    yardstick["max"] = max(before.latency_us["max"], after.latency_us["max"])
    return {
        "sent": result["sent"],
        "lost": result["lost"] + single["lost"],
        "losses": result["losses"],
        "latency_us": result["latency_us"] or {},
        "latency_clean_us": result["emulator"]["latency_clean_us"],
        "one_in_flight_us": single["latency_us"] or {},
        "sockperf_us": yardstick,
        "sockperf_before_us": before.latency_us,
        "sockperf_after_us": after.latency_us,
        "stalls": result["emulator"]["stalls"],
        "engine_core_wait_s": result["engine"]["core_wait_s"],
    }
