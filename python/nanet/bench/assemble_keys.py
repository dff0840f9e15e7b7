# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet bench assemble` writes."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import Base


class RateTurn(TypedDict):
    """A search for the highest rate without loss."""

    gbit_per_s: Annotated[float, "payload of UDP; 0: every rate failed"]
    limited_by: Annotated[str, "`receiver`, `sender` (it did not keep the next rate, so the receiver may stand more) or `machine`"]


class FormatRates(TypedDict):
    """A format: units put together from its packets."""

    name: Annotated[str, "of the format"]
    sender: Annotated[str, "who made the packets; they are played at an exact rate"]
    unit_bytes: Annotated[int, "length of a unit"]
    packet_bytes: Annotated[int, "longest packet"]
    packets_per_unit: Annotated[float, "a mean"]
    loss_free_gbit_per_s: Annotated[float, "highest rate at which every unit came whole, median of the turns"]
    link_gbit_per_s: Annotated[float, "the same of the link alone (protocol raw), which loses no packet"]
    peer_gbit_per_s: Annotated[float, "the same of the peer"]
    peer: Annotated[str, "`link alone`, or the format's own receiver, with its version"]
    ratio_to_peer: Annotated[float | None, "ours over the peer's; null: the peer has none"]
    ratio_to_link: Annotated[float | None, "ours over the link's alone; null: it has none"]
    turns: Annotated[dict[str, list[RateTurn]], "of `ours`, `link` and `peer`, who took turns"]
    p50_us: Annotated[float, "from the call that sends a unit's last packet to the unit in the hands of a Python program"]
    p99_us: Annotated[float, "likewise"]
    link_p50_us: Annotated[float, "the same of the last packet alone, over the bare link"]
    link_p99_us: Annotated[float, "likewise"]
    latency_units: Annotated[int, "units that came, of as many as were sent"]


class QueueRates(TypedDict):
    """What two receive queues on two cores take over one queue on one core (docs/design/queues.md). Packets wait when the engine starts."""

    two_over_one: Annotated[
        float, "packets per CPU time of the receiving threads, as two cores of their own would take them; coalesced"
    ]
    two_over_one_single: Annotated[float, "the same of packets that are not coalesced"]
    two_over_one_by_clock: Annotated[float, "packets per second on this machine, with whatever else runs on its cores; coalesced"]
    two_over_one_single_by_clock: Annotated[float, "the same of packets that are not coalesced"]


class AssembleResult(Base):
    """What `nanet bench assemble` writes."""

    formats: Annotated[list[FormatRates], "a format each"]
    declared_over_handwritten: Annotated[
        float | None,
        "time to decode MGP by its declaration over that of the hand-written decoder; null: bench_formats is not built",
    ]
    queues: Annotated[QueueRates | None, "several receive queues; null: there is one core"]
    turns: Annotated[int, "searches of each"]
    repeat_s: Annotated[float, "length of a run at a rate"]
    notes: Annotated[list[str], "what the machine could not give, a line each"]
