# SPDX-License-Identifier: Apache-2.0
"""What a made-up NIC says of the time that packets took in it."""

from __future__ import annotations

from typing import Any


def nic_times() -> dict[str, Any]:
    """Ten packets, one of which took very long, and no buffer."""
    written = {
        "name": "written", "sample": "packet", "count": 10, "min_cycles": 16, "max_cycles": 9000, "sum_cycles": 9160,
        "bins": [
            {"from_cycles": 16, "to_cycles": 16, "count": 6}, {"from_cycles": 32, "to_cycles": 39, "count": 3},
            {"from_cycles": 7168, "to_cycles": None, "count": 1},
        ],
    }  # fmt: skip
    completed = {
        "name": "completed", "sample": "buffer", "count": 0, "min_cycles": 0, "max_cycles": 0, "sum_cycles": 0, "bins": [],
    }  # fmt: skip
    return {"clock": "made up", "cycle_ns": 6.4, "stages": [written, completed]}
