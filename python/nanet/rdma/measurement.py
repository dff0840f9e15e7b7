# SPDX-License-Identifier: Apache-2.0
"""What `nanet rdma bench` measures."""

from __future__ import annotations

from enum import StrEnum


class Measurement(StrEnum):
    """What is measured against size."""

    PUT_BANDWIDTH = "put_bandwidth"
    GET_BANDWIDTH = "get_bandwidth"
    PUT_LATENCY = "put_latency"
    GET_LATENCY = "get_latency"

    @property
    def is_put(self) -> bool:
        """Whether this side writes."""
        return self in (Measurement.PUT_BANDWIDTH, Measurement.PUT_LATENCY)

    @property
    def is_bandwidth(self) -> bool:
        """Whether many transfers are under way at once."""
        return self in (Measurement.PUT_BANDWIDTH, Measurement.GET_BANDWIDTH)

    @property
    def words(self) -> str:
        """For people."""
        return self.value.replace("_", " ")
