# SPDX-License-Identifier: Apache-2.0
"""What the program of `nanet torus` says, made up, so that figures and reports can be tested without a simulation."""

from __future__ import annotations

from typing import Any

from nanet.bench.torus_reference import references_of
from nanet.result import files

LINK = {
    "wire_cycles": 150,
    "efficiencies": [
        {"payload_bytes": 4096, "packets": 44, "cycles": 11528, "efficiency": 0.977},
        {"payload_bytes": 256, "packets": 599, "cycles": 11980, "efficiency": 0.8},
    ],
    "hops": {"packets": 900, "min": [14] * 6, "max": [14, 15, 14, 14, 14, 14]},
    "problems": [],
}

PUT = {"bytes": 16, "wire_cycles": 16, "host_read_cycles": 20, "puts": 288, "min": 90, "max": 106, "problems": []}


def point(pattern: str = "uniform", offered: float = 0.5, shape: str = "4x4x4", **changes: Any) -> dict[str, Any]:
    nodes = 1
    for n in shape.split("x"):
        nodes *= int(n)
    return {
        "pattern": pattern, "shape": shape, "payload_bytes": 256, "wire_cycles": 16, "seed": 1, "window_cycles": 6000,
        "offered": offered, "accepted": min(offered, 0.83), "accepted_worst_node": min(offered, 0.83) * 0.9,
        "is_saturated": offered > 0.85,
        "latency_cycles": {"mean": 60 / (1.01 - offered), "min": 24, "p50": 80, "p99": 200, "max": 300}, "mean_hops": 3.0,
        "books": {"injected": 1000, "good": 1000, "flagged": 0, "wrong": 0, "losses": {}, "is_balanced": True},
        "link_words": [[0.4, 0.3, 0.4, 0.3, 0.5, 0.1]] * nodes, "node_cycles": 1_000_000, "wall_s": 2.0, "problems": [],
    } | changes  # fmt: skip


def torus_result() -> dict[str, Any]:
    """As `nanet torus curves` would make it."""
    curves: list[Any] = [point(offered=offered) for offered in (0.2, 0.5, 1.0)] + [point("tornado", 0.3, "5x1x1")]
    said = {"threads": 2, "cycles_per_wall_second": 5e5, "curves": curves, "reference": references_of(curves), "problems": []}
    return files.base("torus curves") | said


def fault(port: int = 0, **changes: Any) -> dict[str, Any]:
    books = {
        "injected": 863,
        "good": 833,
        "flagged": 1,
        "wrong": 0,
        "losses": {"drop_down": 19, "in_wires": 10},
        "is_balanced": True,
    }
    return {
        "node": 5, "port": port, "silent_cycles": 368, "packets_after": 20, "false_alarms": 0, "books": books, "problems": [],
    } | changes  # fmt: skip


def faults_result() -> dict[str, Any]:
    """As `nanet torus faults` would make it."""
    faults = [fault(port) for port in range(6)]
    return files.base("torus faults") | {"threads": 2, "shape": "3x3x3", "offered": 0.5, "faults": faults, "problems": []}


def bench_torus_result() -> dict[str, Any]:
    """As `nanet bench torus` would make it."""
    curves: list[Any] = [point(pattern, offered) for pattern in ("uniform", "transpose", "hot_spot") for offered in (0.2, 1.0)]
    said = {
        "threads": 2, "link": {"efficiency_4096": 0.977, "efficiency_256": 0.8, "wire_cycles": 150},
        "hop_cycles": {"min": 14, "max": 15, "spread": 1},
        "put": {
            "bytes": 16, "puts": 288, "cycles": 106, "wire_cycles": 16, "host_read_cycles": 20, "spread": 16, "rtl_ns": 400.0,
        }, "curves": curves, "reference": references_of(curves),
        "saturation": {"uniform_4x4x4": 0.83}, "cycles_per_wall_second": 6e4, "problems": [],
    }  # fmt: skip
    return files.base("bench torus") | said
