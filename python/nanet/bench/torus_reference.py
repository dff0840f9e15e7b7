# SPDX-License-Identifier: Apache-2.0
"""What BookSim 2 says of the same patterns, measured once by us with its router `dim_order`: 18-word packets (256 B and two), two virtual channels of 512
words each, whole packets, channels of 2 cycles. One seed and windows of 6,000 to 16,000 cycles: good to 3 %."""

from __future__ import annotations

from collections.abc import Iterable

from nanet.bench.torus_keys import Point, Reference

PAYLOAD_BYTES = 256
REFERENCES: tuple[Reference, ...] = (
    {
        "pattern": "uniform", "shape": "4x4x4", "accepted_at_full_load": 0.92,
        "latency_cycles": [[0.05, 40], [0.2, 44], [0.4, 57], [0.5, 64], [0.6, 81], [0.7, 111], [0.75, 131], [0.8, 173], [0.85, 249], [0.9, 412]],
    },
    {
        "pattern": "transpose", "shape": "4x4x4", "accepted_at_full_load": 0.43,
        "latency_cycles": [[0.05, 39], [0.2, 51], [0.25, 63], [0.3, 193]],
    },
    {"pattern": "neighbour", "shape": "4x4x4", "accepted_at_full_load": 0.95, "latency_cycles": []},
    {"pattern": "tornado", "shape": "4x4x4", "accepted_at_full_load": 0.95, "latency_cycles": []},
    {"pattern": "complement", "shape": "4x4x4", "accepted_at_full_load": 0.95, "latency_cycles": []},
    {"pattern": "uniform", "shape": "8x8x8", "accepted_at_full_load": 0.58, "latency_cycles": [[0.05, 56], [0.3, 82], [0.5, 165]]},
    {"pattern": "neighbour", "shape": "8x8x8", "accepted_at_full_load": 0.91, "latency_cycles": []},
    {"pattern": "tornado", "shape": "8x8x8", "accepted_at_full_load": 0.11, "latency_cycles": []},
    {"pattern": "complement", "shape": "8x8x8", "accepted_at_full_load": 0.37, "latency_cycles": []},
)  # fmt: skip


def references_of(points: Iterable[Point]) -> list[Reference]:
    """Those that have the pattern, the shape and the packets of one of these points."""
    seen = {(point["pattern"], point["shape"]) for point in points if point["payload_bytes"] == PAYLOAD_BYTES}
    return [one for one in REFERENCES if (one["pattern"], one["shape"]) in seen]
