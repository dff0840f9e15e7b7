#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says which of the authors' goals a result reaches: what `nanet physics`, `nanet bench gpu`, `bench gateware`, `bench km3-link`, `bench km3-control`,
`bench torus`, `bench rings --finder` and `rdma bench` write with `--json FILE`.

    scripts/goals.py RESULT.json ...

A goal that lies within the error of what was measured is neither met nor missed: `cannot tell`. Exit status 1: one was missed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nanet.bench import gpu
from nanet.physics.best import TIMED, best

MET, MISSED, CANNOT_TELL = "met", "missed", "cannot tell"
SHARES = ("efficiency", "all_found")
RATIO_LIMIT = 0.65
Row = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """A limit for one figure of one sample."""

    case: str
    figure: str
    limit: float
    at_least: bool  # else: at most


GOALS = (
    Goal("single_ring", "efficiency", 0.996, True),
    Goal("single_ring", "fakes", 0.006, False),
    Goal("single_ring", "ratio_to_bound", 1.00, False),
    Goal("two_rings_apart", "all_found", 0.98, True),
    Goal("two_rings_apart", "fakes", 0.02, False),
    Goal("two_rings_apart", "ratio_to_bound", 1.10, False),
    Goal("three_rings_apart", "all_found", 0.94, True),
    Goal("three_rings_apart", "fakes", 0.05, False),
    Goal("three_rings", "all_found", 0.85, True),
)


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: goals.py RESULT.json ...", file=sys.stderr)
        return 2
    missed = 0
    for path in arguments:
        result = json.loads(Path(path).read_text(encoding="utf-8"))
        if result.get("command") == "physics":
            judged = [(physics_line(goal), goal["verdict"]) for goal in physics_goals(result["cases"])]
        elif result.get("command") in OF_COMMAND:
            judged = [(line_of(goal), MET if goal["met"] else MISSED) for goal in OF_COMMAND[result["command"]](result)]
        else:
            known = ", ".join(["physics", *OF_COMMAND])
            print(f"error: no goals for {path} (it is a result of none of: {known}) name another", file=sys.stderr)
            return 2
        for line, verdict in judged:
            print(f"{verdict:11}  {line}")
            missed += verdict == MISSED
    return 1 if missed else 0


def verdict(found: float | None, error: float | None, goal: Goal) -> str:
    """Of a figure with an error of one standard deviation; what was not measured misses its goal."""
    if found is None:
        return MISSED
    if abs(found - goal.limit) < (error or 0.0):
        return CANNOT_TELL
    return MET if (found >= goal.limit if goal.at_least else found <= goal.limit) else MISSED


def physics_goals(cases: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Each goal whose sample was measured, for the best finder of that sample, first of those that do not look at hit times, then of all."""
    judged = []
    for goal, hit_times in [(goal, hit_times) for hit_times in (False, True) for goal in GOALS]:
        if goal.case not in cases:
            continue
        case = cases[goal.case]
        finder = best(case["finders"], hit_times=hit_times)
        if hit_times and not finder.endswith(TIMED):
            continue
        figures = case["finders"][finder]
        found, error = figures[goal.figure], figures.get(f"{goal.figure}_error")
        judged.append({
            "title": case["title"], "figure": goal.figure, "limit": goal.limit, "sense": "at least" if goal.at_least else "at most",
            "found": found, "error": error, "finder": finder, "hit_times": hit_times, "verdict": verdict(found, error, goal),
        })  # fmt: skip
    return judged


def show(value: float | None, figure: str) -> str:
    """With its unit."""
    if value is None:
        return "nothing"
    return f"{100 * value:.2f} %" if figure in SHARES else f"{value:.5f}"


def physics_line(goal: Row) -> str:
    figure = goal["figure"]
    error = "" if goal["error"] is None else f" \u00b1 {show(goal['error'], figure)}"
    wanted = f"{figure.replace('_', ' ')} {goal['sense']} {show(goal['limit'], figure)}"
    return f"{goal['title']}: {wanted}, {goal['finder']} reaches {show(goal['found'], figure)}{error}"


def line_of(goal: Row) -> str:
    note = f"; {goal['note']}" if goal["note"] else ""
    return f"{goal['goal']}: {goal['value']:.4g} {goal['unit']}".strip() + f" ({goal['bound']} {goal['limit']:g}{note})"


def gpu_goals(rows: Mapping[str, Sequence[Mapping[str, Any]]], ratios: Sequence[Mapping[str, Any]]) -> list[Row]:
    """What an H200 has to reach, as far as it was measured."""
    return [*_round_trip_goals(rows["round_trip"], ratios), *_loop_goals(rows["loop"]), *_finder_goals(rows["finders"]),
            *_trace_goals(rows["trace"])]  # fmt: skip


def _at_most(goal: str, value: float, limit: float, unit: str = "", note: str = "") -> Row:
    return {"goal": goal, "value": value, "bound": "at most", "limit": limit, "unit": unit, "met": value <= limit, "note": note}


def _at_least(goal: str, value: float, limit: float, unit: str = "", note: str = "") -> Row:
    return {"goal": goal, "value": value, "bound": "at least", "limit": limit, "unit": unit, "met": value >= limit, "note": note}


def _round_trip_goals(rows: Sequence[Mapping[str, Any]], ratios: Sequence[Mapping[str, Any]]) -> list[Row]:
    goals: list[Row] = []
    persistent = {row["events"]: row for row in rows if row["way"] == "persistent"}
    if 16 in persistent:
        goals.append(_at_most("round trip of 16 events, p50", persistent[16]["p50_us"], 6.0, "us"))
    if 1024 in persistent:
        goals.append(_at_most("round trip of 1024 events, p50", persistent[1024]["p50_us"], 9.0, "us"))
        goals.append(_at_most("round trip of 1024 events, p99.9", persistent[1024]["p999_us"], 20.0, "us"))
    for ratio in ratios:
        same = ratio["same_work_p50"]
        note = "" if same is None else f"same work: {same:.2f} of {ratio['same_work_best_way']}"
        goals.append(
            _at_most(f"persistent over the best that launches, {ratio['events']} events, p50", ratio["p50"], RATIO_LIMIT, note=note)
        )
    return goals


def _loop_goals(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    loop = [row for row in rows if row["runtime"] == "persistent" and row["packets"] == 8 and row["rate_events_per_s"] == 10e6]
    if not loop:
        return []
    best = min(loop, key=lambda row: (row["lost"], row["p999_us"]))
    return [
        _at_most("whole loop, 10 Mevent/s, buffers of 128 events, p50", best["p50_us"], 40.0, "us"),
        _at_most("the same, p99.9", best["p999_us"], 200.0, "us"),
        _at_most("the same, events lost", float(best["lost"]), 0.0),
    ]


def _finder_goals(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    goals: list[Row] = []
    shares = gpu.share_of_copy(rows)
    if "20" in shares:
        goals.append(_at_least("MATH on records of 20 hits in device memory, bytes moved over those of a copy", shares["20"], 0.85))
    rates = {
        (row["finder"], row["case"]): 1e-6 * row["events_per_s"] for row in rows if row["finder"] not in ("copy", "record_fit")
    }
    for finder, case, limit in (("almagest", "two_rings_apart", 200.0), ("mixture", "single_ring", 10.0)):
        if (finder, case) in rates:
            note = ", ".join(f"{rates[finder, name]:.3g} {name}" for one, name in rates if one == finder and name != case)
            goals.append(_at_least(f"{finder}, case {case}", rates[finder, case], limit, "Mevent/s", note))
    if rows:
        differ = sum(row["events_that_differ"] or 0 for row in rows)
        goals.append(_at_most("finders: events that differ from the CPU's", float(differ), 0.0))
    return goals


def _trace_goals(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Without a control that was seen to call, a trace that saw nothing shows nothing."""
    traced = {(row["runtime"], row["function"]): row for row in rows if row["buffers"] > 0}
    if not {("persistent", gpu.ALL_CALLS), ("persistent", gpu.ALLOCATIONS)} <= set(traced):
        return []
    calls, allocations = (traced["persistent", function] for function in (gpu.ALL_CALLS, gpu.ALLOCATIONS))
    in_buffers = f"in {calls['buffers']} buffers"
    at_set_up = traced.get(("persistent", gpu.SET_UP_ALLOCATIONS))
    beside = f"{in_buffers}; at set-up {at_set_up['calls']}" if at_set_up else in_buffers
    control = {
        runtime: row["calls"] / row["buffers"]
        for (runtime, function), row in traced.items()
        if function == gpu.ALL_CALLS and runtime in ("launch", "graph")
    }
    seen = ", ".join(f"{runtime} {count:g}" for runtime, count in control.items())
    return [
        _at_most("persistent, steady state: calls of CUDA", float(calls["calls"]), 0.0, note=in_buffers),
        _at_most("persistent, steady state: allocations", float(allocations["calls"]), 0.0, note=beside),
        _at_least("control: calls of CUDA a buffer that the trace sees", min(control.values(), default=0.0), 1.0, note=seen),
    ]


def gateware_goals(result: Mapping[str, Any]) -> list[Row]:
    """Of the NIC, its router and its model."""
    latency, loads = result["last_byte_to_last_write_cycles"], result["router"]["loads"]
    full = [load["full_rate_fraction"] for load in loads if load["pattern"] == "permutation"]
    apart = [max(load["packets"]) - min(load["packets"]) for load in loads if load["pattern"] == "one_output"]
    lowest = min(result["line_rate_fraction"].values())
    conditions, smallest = result["conditions"], result["tx_line_rate_fraction"]["64"]
    return [
        _at_most("packets that are not what was sent, of all compared", result["wrong_packets"], 0, "packets"),
        _at_most("starts under traffic after which a packet is wrong", sum(one["wrong_starts"] for one in conditions), 0, "starts"),
        _at_most("good packets lost under other conditions", sum(one["lost_packets"] for one in conditions), 0, "packets"),
        _at_least("TX of 64 B, alone: part of line rate", smallest["alone"], 1),
        _at_least("TX of 64 B beside reception, 16 packets a buffer", smallest["beside_16"], 1),
        _at_least(
            "TX of 64 B beside reception, 1 packet a buffer", smallest["beside_1"], 0.9, note="0.875 is the most of 16 B a cycle"
        ),
        _at_most("last byte at the MAC to last write", latency["max"], 64, "cycles"),
        _at_most("spread of that for one frame size", latency["spread"], 0, "cycles"),
        _at_least("part of line rate that is stored, lowest of all frame sizes", lowest, 1),
        _at_most("packets lost", result["lost_packets"], 0, "packets"),
        _at_least("speed of the simulation", result["cycles_per_wall_second"], 600_000, "cycles/s"),
        _at_least("router: part of full rate of all ports, on permutations", min(full), 1),
        _at_most("router: inputs that want one output differ by", max(apart), 1, "packets"),
    ]


def torus_goals(result: Mapping[str, Any]) -> list[Row]:
    """Of the torus: link, hop, 4x4x4 at full load beside BookSim's, which is good to 3 %, and the simulation."""
    link, hop, uniform = result["link"], result["hop_cycles"], result["saturation"]["uniform_4x4x4"]
    theirs = {(one["pattern"], one["shape"]): one["accepted_at_full_load"] for one in result["reference"]}
    goals: list[Row] = [
        _at_most("what is not as it must be", len(result["problems"]), 0),
        _at_least("link: payload of its words, 4 KiB packets", link["efficiency_4096"], 0.95),
        _at_least("link: payload of its words, 256 B packets", link["efficiency_256"], 0.80),
        _at_most("hop, router and link without wire", hop["max"], 40, "cycles"),
        _at_most("spread of a hop", hop["spread"], 0, "cycles"),
        _at_most("PUT of 16 B from host to host, one hop, RTL", result["put"]["rtl_ns"], 2000, "ns"),
        _at_least("simulation of 8 nodes", result["cycles_per_wall_second"], 100_000, "cycles/s"),
    ]
    if uniform is not None:
        goals.append(_at_least("uniform on 4x4x4 at full load, over BookSim's", uniform / theirs["uniform", "4x4x4"], 0.9))
    return goals


def finder_goals(result: Mapping[str, Any]) -> list[Row]:
    """Microseconds an event, of rings with 12 hits in the mean."""
    times = {
        (found["name"], case["rings"]): case["ns_per_event"] / 1e3
        for found in result["finders"]
        for case in found["cases"]
        if case["mean_hits"] == 12
    }
    limits = {("almagest", 2): 1.0, ("triplets", 1): 2.0, ("mixture", 1): 10.0}
    return [_at_most(f"{of[0]}, rings: {of[1]}", times[of], limit, "us") for of, limit in limits.items() if of in times]


def rdma_goals(result: Mapping[str, Any]) -> list[Row]:
    """The worst ratio to ucx_perftest of each bandwidth from 64 KiB on, and of each latency at 8 B."""
    goals: list[Row] = []
    for test in dict.fromkeys(row["test"] for row in result["measurements"]):
        is_bandwidth = test.endswith("bandwidth")
        low, high = (64 << 10, 1 << 62) if is_bandwidth else (8, 8)
        rows = [row for row in result["measurements"] if row["test"] == test and low <= row["message_bytes"] <= high]
        ratios = [row["ratio_to_peer"] for row in rows if row["ratio_to_peer"] is not None]
        if ratios and is_bandwidth:
            goals.append(_at_least(f"{test}, 64 KiB and above, worst, over ucx_perftest's", min(ratios), 0.95))
        elif ratios:
            goals.append(_at_most(f"{test}, 8 B, p50, over ucx_perftest's", max(ratios), 1.1))
    return goals


def km3_link_goals(result: Mapping[str, Any]) -> list[Row]:
    """One latency over the resets of the papers' 12 hours, and the payload of a full link."""
    return [
        _at_least("KM3NeT link: resets", result["resets"], 4320),
        _at_most("KM3NeT link: resets without a link", result["not_up"], 0),
        _at_most("KM3NeT link: values of a latency", result["latency_values"], 1),
        _at_least("KM3NeT link: payload of what 800 Mb/s carry, every slot full", result["payload_fraction"], 0.99),
    ]


def km3_control_goals(result: Mapping[str, Any]) -> list[Row]:
    """Slow control beside data, as the server sees it."""
    busy = result["server_busy"]["round_trip_us"]
    return [
        _at_most("KM3NeT slow control with data: p99.9", busy["p99_9"], 1000, "us"),
        _at_least("KM3NeT slow control: data meanwhile", result["rate_mbit_s"], 250, "Mb/s"),
    ]


OF_COMMAND: dict[str, Callable[[Mapping[str, Any]], list[Row]]] = {
    "bench gpu": lambda result: gpu_goals(result, result["ratios"]),
    "bench gateware": gateware_goals,
    "bench km3-link": km3_link_goals,
    "bench km3-control": km3_control_goals,
    "bench torus": torus_goals,
    "bench rings --finder": finder_goals,
    "rdma bench": rdma_goals,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
