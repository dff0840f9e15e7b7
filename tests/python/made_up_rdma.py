# SPDX-License-Identifier: Apache-2.0
"""Results of `nanet rdma bench`, made up, so that goals and reports can be tested without UCX."""

from __future__ import annotations

from typing import Any

from nanet.rdma.measurement import Measurement
from nanet.result import files


def path_of(sided: str, *transports: str) -> dict[str, Any]:
    return {"sided": sided, "text": "the path", "lanes": [{"transport": one, "device": "d"} for one in transports]}


def row(measurement: Measurement, size: int, ratio: float | None) -> dict[str, Any]:
    bandwidth = measurement.is_bandwidth
    rate = 1e6 * size**0.8
    latency = None if bandwidth else dict.fromkeys(("min", "p50", "p99", "p99_9", "max", "mean"), 0.2 + size / 1e4)
    peer = (
        None if ratio is None else {"bytes_per_s": rate / ratio, "messages_per_s": 1.0, "p50_us": 0.3, "mean_us": 0.3, "rounds": []}
    )
    return {
        "test": str(measurement), "message_bytes": size, "depth": 32 if bandwidth else 1, "count": 1000, "bytes_per_s": rate,
        "messages_per_s": rate / size, "latency_us": latency, "right": True, "way": "copied by this CPU", "peer": peer, "ratio_to_peer": ratio, "rounds": [],
    }  # fmt: skip


def rdma_result(ratio: float | None) -> dict[str, Any]:
    rows = [row(measurement, size, ratio) for measurement in Measurement for size in (8, 1024, 1 << 20)]
    return files.base("rdma bench") | {
        "path": path_of("one_sided", "posix") | {"text": "posix/memory <one-sided>"}, "require": None, "transports": "", "memory": "shared",
        "target_memory": "host", "depth": 32, "batch": 0, "duration_s": 0.2, "rounds": 5, "core": 1, "target_core": 0,
        "ucx_version": "1.22.0", "target_ucx_version": "1.22.0", "peer": {"name": "ucx_perftest", "version": "1.22.0"} if ratio else None,
        "ratio_to_peer": ratio, "right": True, "measurements": rows, "notes": ["a note"],
    }  # fmt: skip
