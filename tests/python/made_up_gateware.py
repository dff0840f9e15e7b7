# SPDX-License-Identifier: Apache-2.0
"""What the program of `nanet bench gateware` says, made up, so that figures and reports can be tested without a simulation."""

from __future__ import annotations

import copy
from typing import Any

from nanet.bench import gateware


def case(frame_bytes: int, lane: int, last: list[list[int]], first: list[list[int]] | None = None) -> dict[str, Any]:
    return {
        "frame_bytes": frame_bytes, "payload_bytes": frame_bytes - 46, "packets_per_buffer": 16, "start_lane": lane,
        "packets": sum(count for _, count in last), "min": last[0][0], "max": last[-1][0],
        "first_byte_to_last_write": first or last, "last_byte_to_last_write": last,
        "first_byte_to_completion": [], "last_byte_to_completion": [],
    }  # fmt: skip


def throughput(frame_bytes: int, stored: int = 900) -> dict[str, Any]:
    return {
        "frame_bytes": frame_bytes, "packets_per_buffer": 16, "sent": 900, "stored": stored, "lost": 900 - stored, "drops": {},
        "packets_per_s": 1e6, "payload_bytes_per_s": 1e6 * (frame_bytes - 46), "line_rate_fraction": stored / 900,
    }  # fmt: skip


def load(name: str, pattern: str, packets: list[int]) -> dict[str, Any]:
    return {
        "name": name, "pattern": pattern, "cycles": 9000, "bytes_per_s": 5e9, "full_rate_fraction": 1.0, "jain_index": 1.0,
        "packets": packets, "bytes": [64 * count for count in packets],
    }  # fmt: skip


def node_run(events_per_packet: int, hits_per_part: int, merged_gbit_per_s: float, cycles: dict[str, int] | None) -> dict[str, Any]:
    return {
        "events_per_packet": events_per_packet, "hits_per_part": hits_per_part, "flush_cycles": 1, "packets": 100,
        "events": 100 * events_per_packet, "whole_events": round(2.5 * events_per_packet * merged_gbit_per_s), "in_gbit_per_s": 40.0,
        "merged_gbit_per_s": merged_gbit_per_s, "out_gbit_per_s": 1.0, "last_part_to_last_write_cycles": cycles,
        "bound_cycles": None if cycles is None else 61,
    }  # fmt: skip


def condition(name: str, **measured: Any) -> dict[str, Any]:
    return {
        "name": name, "sent": 900, "compared_packets": 900, "wrong_packets": 0, "lost_packets": 0, "starts": 0, "wrong_starts": 0,
        "min_cycles": 28, "max_cycles": 33, "spread_cycles": 2, "tx_packets": 0, "tx_line_rate_fraction": 0.0,
        "bounds": {"max_cycles": 33, "spread_cycles": 2, "lost_packets": 0, "tx_line_rate_fraction": None}, "is_kept": True,
    } | measured  # fmt: skip


MEASURED: dict[str, Any] = {
    "line_gbps": 10, "ns_per_cycle": 6.4, "compared_packets": 9000, "wrong_packets": 0,
    "tx_line_rate_fraction": {"64": {"alone": 1.0, "beside_16": 1.0, "beside_1": 0.9}},
    "conditions": [
        condition("buffers of 1 packet"),
        condition("a start", starts=240, min_cycles=0, max_cycles=0, spread_cycles=0),
        condition("sending alone", sent=0, compared_packets=0, max_cycles=0, tx_packets=70, tx_line_rate_fraction=0.99),
    ],
    **{f"{figure}_cycles": {"min": 15, "max": 31, "spread": 0} for figure in gateware.FIGURES},
    "lost_packets": 0,
    "line_rate_fraction": {"64": 1.0, "1518": 1.0},
    "cycles_per_wall_second": 700_000,
    "cases": [case(64, 0, [[31, 450]]), case(64, 4, [[30, 450]]), case(1518, 0, [[16, 900]], [[206, 900]])],
    "throughput": [throughput(64), throughput(1518)],
    "long_runs": [case(64, 0, [[31, 1000]]), case(64, 4, [[30, 1000]])],
    "mixed": [case(64 + n, 4 * (n % 2), [[31 - n // 8, 3]]) for n in range(100)],
    "modelled_host": {
        "timing": {"write_cycles": 64, "read_cycles_min": 100, "read_cycles_max": 140, "busy_per_1024": 32, "seed": 1},
        "cases": [case(64, 0, [[95, 800], [97, 100]]), case(1518, 4, [[80, 900]])],
        "throughput": [throughput(64, 899), throughput(1518)],
    },
    "router": {
        "ports": 4, "word_bytes": 8, "clock_hz": 156250000.0, "full_rate_bytes_per_s": 5e9,
        "loads": [load("permutation, 64 B", "permutation", [9, 9, 9, 9]), load("all to one", "one_output", [3, 2, 2, 2])],
    },
    "node": {
        "merged_gbit_per_s": 40.0,
        "last_part_to_last_write_cycles": {"min": 58, "max": 59, "spread": 1},
        "cycles_per_wall_second": 100_000,
        "runs": [
            node_run(1, 5, 40.0, {"min": 58, "max": 59, "spread": 1}),
            node_run(16, 32, 16.4, None),
        ],
    },
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    """MEASURED with one value changed; `path`: keys and indexes, joined by dots."""
    measured = copy.deepcopy(MEASURED)
    here: Any = measured
    *parts, last = path.split(".")
    for part in parts:
        here = here[int(part) if isinstance(here, list) else part]
    here[int(last) if isinstance(here, list) else last] = value
    return measured
