# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet bench gateware` writes, and of what its program says."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import ELSEWHERE, Base, Counts

CycleCounts = list[list[int]]
"""An exact histogram: a list of [cycles, packets]."""
Bounds = list[float]
"""[least, most]."""


class Spread(TypedDict):
    """Bounds of a figure."""

    min: Annotated[int, "the least, of all packets"]
    max: Annotated[int, "the most, of all packets"]
    spread: Annotated[int, "most by which packets of one case, frame size and start lane differ"]


class Case(TypedDict):
    """A frame size, a buffer and a start lane."""

    frame_bytes: Annotated[int, "a case is a frame size, a buffer and a start lane"]
    payload_bytes: Annotated[int, "of the frame"]
    packets_per_buffer: Annotated[int, "a buffer is handed over with this many"]
    start_lane: Annotated[int, "lane on which the frames began, 0 or 4"]
    packets: Annotated[int, "that were timed: the right ones"]
    min: Annotated[int, "cycles from the last byte to the last write, the least"]
    max: Annotated[int, "the most"]
    first_byte_to_last_write: Annotated[CycleCounts, "exact histogram: a list of [cycles, packets]"]
    last_byte_to_last_write: Annotated[CycleCounts, "the same"]
    first_byte_to_completion: Annotated[CycleCounts, "the same, of packets that ended a buffer"]
    last_byte_to_completion: Annotated[CycleCounts, "the same"]


class Throughput(TypedDict):
    """Frames back to back."""

    frame_bytes: Annotated[int, "with `packets_per_buffer`, both lanes"]
    packets_per_buffer: Annotated[int, "a buffer is handed over with this many"]
    sent: Annotated[int, "frames"]
    stored: Annotated[int, "packets"]
    lost: Annotated[int, "`sent` - `stored`; each is in `drops`"]
    drops: Annotated[Counts, "packets by the name of the NIC's counter, those that are not 0"]
    packets_per_s: Annotated[float, "stored, of simulated time"]
    payload_bytes_per_s: Annotated[float, "stored, of simulated time"]
    line_rate_fraction: Annotated[float, "packets stored / frames that fit on the wire meanwhile, back to back"]


class HostTiming(TypedDict):
    """The chosen numbers of a modelled host."""

    write_cycles: Annotated[int, "until a write is in memory"]
    read_cycles_min: Annotated[int, "until a read is answered, at least"]
    read_cycles_max: Annotated[int, "at most"]
    busy_per_1024: Annotated[int, "cycles of 1024 in which its bus is busy, at random"]
    seed: Annotated[int, "of its random numbers"]


class ModelledHost(TypedDict):
    """The same NIC with a modelled host."""

    timing: Annotated[HostTiming, "its chosen numbers"]
    cases: Annotated[list[Case], ELSEWHERE, "as `cases[]`"]
    throughput: Annotated[list[Throughput], ELSEWHERE, "as `throughput[]`"]


class RouterLoad(TypedDict):
    """A load of the router."""

    name: Annotated[str, "every input always has a packet to send"]
    pattern: Annotated[str, "`permutation`, `one_output` or `random`"]
    cycles: Annotated[int, "simulated"]
    bytes_per_s: Annotated[float, "through all outputs"]
    full_rate_fraction: Annotated[float, "of all outputs, or of the one that is asked for"]
    jain_index: Annotated[float, "of packets by input: 1 is equal shares"]
    packets: Annotated[list[int], "by input"]
    bytes: Annotated[list[int], "by input"]


class Router(TypedDict):
    """gateware/rtl/router.sv."""

    ports: Annotated[int, "of `gateware/rtl/router.sv`"]
    word_bytes: Annotated[int, "of a port"]
    clock_hz: Annotated[float, "of the router"]
    full_rate_bytes_per_s: Annotated[float, "of all outputs"]
    loads: Annotated[list[RouterLoad], "a load each"]


class NodeRun(TypedDict):
    """A load of the node."""

    events_per_packet: Annotated[int, "of each board's packets of 1168 B"]
    hits_per_part: Annotated[int, "of each event and board"]
    flush_cycles: Annotated[int, "after which a packet of merged events leaves"]
    packets: Annotated[int, "sent by each of four boards, back to back"]
    events: Annotated[int, "sent"]
    whole_events: Annotated[int, "that came with every hit of every board"]
    in_gbit_per_s: Annotated[float, "on the four wires, preamble and gap included"]
    merged_gbit_per_s: Annotated[float, "of these, those whose events came whole"]
    out_gbit_per_s: Annotated[float, "of merged packets into memory"]
    last_part_to_last_write_cycles: Annotated[
        Spread | None,
        "from the last byte of the last frame with a part of an event to the last word of the packet that has it; null if an event was lost",
    ]
    bound_cycles: Annotated[int | None, "the most that it may be, or the bench fails; null where more leaves than the bus takes"]


class Node(TypedDict):
    """gateware/rtl/nanet_node.sv with four ports, whose events it merges."""

    merged_gbit_per_s: Annotated[float, "of the first of `runs`: an event a packet, four ports at line rate"]
    last_part_to_last_write_cycles: Annotated[Spread | None, "of the same run"]
    cycles_per_wall_second: Annotated[float, "simulated, of the whole node; of the machine, not of the node"]
    runs: Annotated[list[NodeRun], "a load each"]


class ConditionBounds(TypedDict):
    """What a condition may not pass."""

    max_cycles: Annotated[int, "from the last byte to the last write, at most"]
    spread_cycles: Annotated[int, "by which packets of one frame size and start lane may differ"]
    lost_packets: Annotated[int, "at most"]
    tx_line_rate_fraction: Annotated[float | None, "at least; null where nothing is sent"]


class Condition(TypedDict):
    """The NIC under conditions other than those of `cases[]`; frames come back to back, the host is ready at once."""

    name: Annotated[str, "the conditions in plain words"]
    sent: Annotated[int, "good packets that were sent to the NIC"]
    compared_packets: Annotated[int, "that were handed over, each compared whole with what was sent"]
    wrong_packets: Annotated[int, "of those, and of the frames that the NIC sent"]
    lost_packets: Annotated[int, "good packets that should have been handed over and were not"]
    starts: Annotated[int, "times that reception was enabled while frames arrived; 0: it was enabled before them"]
    wrong_starts: Annotated[int, "of those, with a packet wrong or missing, or books that do not balance"]
    min_cycles: Annotated[int, "from the last byte to the last write, the least; 0 where none is timed"]
    max_cycles: Annotated[int, "the most"]
    spread_cycles: Annotated[int, "most by which packets of one frame size and start lane differ"]
    tx_packets: Annotated[int, "that the NIC sent, each compared whole"]
    tx_line_rate_fraction: Annotated[float, "of the line that they took while the ring was kept full; 0 where none is sent"]
    bounds: Annotated[ConditionBounds, "that must be kept; that no packet is wrong is one of every condition"]
    is_kept: Annotated[bool, "whether they all are"]


class TxRate(TypedDict):
    """Of line rate, frames that the NIC sends."""

    alone: Annotated[float, "without reception"]
    beside_16: Annotated[float, "beside reception of the same size at line rate, 16 packets a buffer"]
    beside_1: Annotated[float, "the same, 1 packet a buffer"]


class Measured(TypedDict):
    """What the program says."""

    line_gbps: Annotated[int, "of the simulated NIC, 10 or 1"]
    ns_per_cycle: Annotated[float, "of its clock"]
    compared_packets: Annotated[int, "of all runs, each compared whole with what was sent: all that were handed over"]
    wrong_packets: Annotated[int, "of those, in data, length, order, source, place or time of arrival"]
    tx_line_rate_fraction: Annotated[dict[str, TxRate], "by size of the frames that the NIC sends"]
    conditions: Annotated[list[Condition], "a condition each, with its bounds"]

    first_byte_to_last_write_cycles: Annotated[
        Spread, "from the first byte of a frame to the last word of its payload, of all packets"
    ]
    last_byte_to_last_write_cycles: Annotated[Spread, "from the last byte of a frame, of all packets"]
    first_byte_to_completion_cycles: Annotated[Spread, "of packets that end a buffer, to the last word of the completion"]
    last_byte_to_completion_cycles: Annotated[Spread, "the same from the last byte"]
    lost_packets: Annotated[int, "of all cases, long runs and those of all sizes"]
    line_rate_fraction: Annotated[
        dict[str, float],
        "packets stored / frames that fit on the wire meanwhile, back to back, by frame size; the lowest of all buffers",
    ]
    cycles_per_wall_second: Annotated[float, "simulated, of the whole NIC; of the machine, not of the NIC"]
    cases: Annotated[list[Case], "a case each"]
    throughput: Annotated[list[Throughput], "by frame size and buffer"]
    long_runs: Annotated[list[Case], ELSEWHERE, "as `cases[]`: few sizes, many packets"]
    mixed: Annotated[list[Case], ELSEWHERE, "as `cases[]`, of one run with frames of 64 to 1518 B in random order"]
    modelled_host: Annotated[ModelledHost, "the same NIC with a modelled host"]
    router: Annotated[Router, "between ports"]
    node: Annotated[Node, "four ports, merged"]


class PaperLine(TypedDict):
    """A figure of the papers beside ours."""

    figure: Annotated[str, "what is compared"]
    unit: Annotated[str, "of it"]
    papers: Annotated[Bounds, "[least, most] of the papers"]
    rtl: Annotated[Bounds | None, "[least, most] here; null where there is none"]
    modelled_host: Annotated[Bounds | None, "the same"]


class GatewareResult(Base, Measured):
    """What `nanet bench gateware` writes."""

    cycles_per_case: Annotated[int, "simulated for each case"]
    packets_per_long_run: Annotated[int, "of each long run"]
    papers: Annotated[list[PaperLine], "figures of the papers beside ours"]
