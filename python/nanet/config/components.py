# SPDX-License-Identifier: Apache-2.0
"""The components of the native module. Written by scripts/make_config.py from what their C++ structs say of their keys: change those."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from nanet.config.base import Model, ruled, setting
from nanet.config.forms import Name

# fmt: off
__all__ = [
    "Faults",
    "MemoryRegion",
    "Merge",
    "Record",
    "Source",
    "Waiting",
]


class Source(Model):
    """One sender of packets, known by source ID and sub-ID."""

    name: Name = setting(
        ..., "Name in reports",
    )
    source_id: int = setting(
        28, "Source ID in the packet header; 0x1C is the RICH", ge=0, le=255,
    )
    source_sub_id: int = setting(
        0, "Sub-ID in the packet header: which board", ge=0, le=255,
    )


class MemoryRegion(Model):
    """Memory for the circular list of persistent buffers (CLOP) of the links that name it."""

    name: Name = setting(
        ..., "Name by which links refer to it",
    )
    kind: Literal["host", "host_pinned", "device"] = setting(
        "host",
        "Where the memory is: host; host_pinned: host memory that a GPU reads in place, for nanet.open; device: refused",
    )
    huge_pages: bool = setting(
        True, "Try huge pages; if there are none, ordinary pages are used and this is reported",
    )
    buffer_count: int = setting(
        64, "Buffers of each CLOP, a power of two", unit="buffers", ge=2, le=65536,
        too_small="packets are dropped as packets_clop_full while the processor is busy",
        too_big="the working set exceeds the caches, and packets wait longer instead of being dropped",
    )
    buffer_bytes: int = setting(
        262144, "Size of one buffer, a multiple of 64", unit="bytes", ge=4096, le=1073741824,
        too_small="few packets per hand-over, so more overhead for each",
        too_big="memory; with timeout_us above 0 also latency at low rates",
    )

    @model_validator(mode="after")
    def _rules(self) -> MemoryRegion:
        return ruled(self, MemoryRegion)


class Record(Model):
    """Writes what a link receives to a pcap file, for tshark and for replay."""

    file: str = setting(
        ..., "Path of the pcap file; it is overwritten", min_length=1,
    )
    bytes_max: int = setting(
        1073741824, "The file stops growing at this size; what is left out is counted", unit="bytes", ge=4096,
        too_big="a full disk",
    )


class Faults(Model):
    """Faults injected into a link on purpose, each with a probability per packet. Seeded, so a run can be repeated."""

    loss: float = setting(
        0.0, "Probability that a packet is lost", ge=0.0, le=1.0,
    )
    duplicate: float = setting(
        0.0, "Probability that a packet arrives twice", ge=0.0, le=1.0,
    )
    reorder: float = setting(
        0.0, "Probability that a packet arrives after one of the next eight", ge=0.0, le=1.0,
    )
    corrupt: float = setting(
        0.0, "Probability that bits of a packet are flipped", ge=0.0, le=1.0,
    )
    truncate: float = setting(
        0.0, "Probability that a packet loses its end", ge=0.0, le=1.0,
    )
    delay: float = setting(
        0.0, "Probability that a packet is held back for delay_us", ge=0.0, le=1.0,
    )
    delay_us: int = setting(
        100, "How long a delayed packet is held back", unit="us", ge=0, le=10000000,
        too_big="packets arrive after their event's window and are counted as late",
    )
    seed: int = setting(
        1, "Seed of the random numbers", ge=0, lt=9223372036854775808,
    )

    @model_validator(mode="after")
    def _rules(self) -> Faults:
        return ruled(self, Faults)


class Merge(Model):
    """How the parts of an event from several sources are put together, by timestamp."""

    window_us: int = setting(
        200, "How long an open event waits for its missing parts", unit="us", ge=1, le=1000000,
        too_small="parts that are merely slow arrive after their event was closed without them",
        too_big="more latency for every event that lost a part, and more open events",
    )
    open_events_max: int = setting(
        8192, "Most events that can be open at once, a power of two", unit="events", ge=16, le=1048576,
        too_small="events_overflow at high rates: events are closed early", too_big="the working set exceeds the caches",
    )
    incomplete: Literal["drop", "process"] = setting(
        "drop",
        "process: an event with a part missing is answered from the hits that arrived; drop: it is dropped as events_discarded",
    )

    @model_validator(mode="after")
    def _rules(self) -> Merge:
        return ruled(self, Merge)


class Waiting(Model):
    """What a thread does when there is nothing to do."""

    spin: int = setting(
        20000, "Empty polls before it sleeps; -1: spin forever, which needs a core of its own", unit="polls", ge=-1,
        le=1099511627776, too_small="the kernel's wake-up time (about 30 us) is added at every pause",
        too_big="a core that is never idle",
    )
    sleep_us: int = setting(
        100, "Longest sleep, after which time-outs are checked", unit="us", ge=1, le=1000000,
        too_big="buffers and open events are handed over late while nothing arrives",
    )
