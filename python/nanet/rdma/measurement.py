# SPDX-License-Identifier: Apache-2.0
"""What `nanet rdma bench` measures."""

from __future__ import annotations

from enum import StrEnum


class Measurement(StrEnum):
    """What is measured against size."""

    PUT_BANDWIDTH = "put_bandwidth"
    GET_BANDWIDTH = "get_bandwidth"
    PUT_BIDIRECTIONAL_BANDWIDTH = "put_bidirectional_bandwidth"
    PUT_LATENCY = "put_latency"
    PUT_FLUSH_LATENCY = "put_flush_latency"
    GET_LATENCY = "get_latency"

    @property
    def is_put(self) -> bool:
        """Whether this side writes."""
        return self.value.startswith("put")

    @property
    def is_bandwidth(self) -> bool:
        """Whether many transfers are in flight at once."""
        return self.value.endswith("bandwidth")

    @property
    def is_both_ways(self) -> bool:
        """Whether the other side writes too."""
        return self in (Measurement.PUT_BIDIRECTIONAL_BANDWIDTH, Measurement.PUT_LATENCY)

    @property
    def needs_host(self) -> bool:
        """Whether CPUs poll the memory, so that none of it may be a GPU's."""
        return self is Measurement.PUT_LATENCY

    @property
    def words(self) -> str:
        """For people."""
        return self.value.replace("_", " ")
