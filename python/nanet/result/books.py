# SPDX-License-Identifier: Apache-2.0
"""The books: every event sent is answered or lost under exactly one name. docs/design/books.md says which counter is what.

Terms: `counters` are an engine's totals by name, `sent` and `answered` are the emulator's counts of events.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nanet.result.keys.engine import EngineSnapshot, LinkReading

EVENT_LOSSES = {
    "events_lost": "their packet was missing or dropped before the processor",
    "events_unseen": "no part of them arrived",
    "events_discarded": "incomplete, and the configuration says to drop such events",
    "events_unjudged": "a GPU was given up while it held them",
    "events_bad_body": "in packets that only the GPU could check, and that it refused",
    "answers_lost": "answered, but the answer did not arrive at the L0 trigger processor",
    "unexplained": "no counter accounts for them",
}
"""What can happen to an event instead of an answer, by name."""

PACKET_LOSSES = ("packets_lost_kernel", "packets_lost_network", "packets_clop_full")
"""Counters of packets that a source sent and the processor did not get; every such packet is in exactly one."""

LINK_LOSSES = {
    "answers_refused": "packets of answers, or of events sent on, that the receiver's machine refused: no one listens there",
    "answers_dropped": "packets of answers, or of events sent on, that the kernel did not take",
    "kernel_dropped": "datagrams that the kernel dropped at a link without sequence numbers",
    "kernel_dropped_unseen": "datagrams (of one packet or more) that the kernel dropped after the last packet that came: no sequence number tells of them",
    "file_fragments": "packets of a recording that are fragments, and were passed over",
    "file_cut": "packets of a recording that are not whole, and were passed over",
    "file_bytes_damaged": "bytes at the end of a recording where no whole record is",
    "node_packets_refused": "packets of boards whose length, format or checksum a node that merges refused",
    "node_parts_dropped": "parts of events that it dropped: late, of a wrong clock, or of a port that it does not merge",
    "node_events_partial": "events that lacked a part, and left it so or not at all",
    "node_events_cut": "events that left it without the hits for which it had no room",
    "node_in_flight": "frames, packets, parts and events that were in a simulated node when its engine was stopped",
    "fibre_packets_refused": "packets of floors that a node's fibres could not carry: not of its floors, run or time, or without room",
    "fibre_packets_held": "packets of floors that still waited for their slice",
    "fibre_frames_dropped": "frames of floors that the node dropped: bad, of no run, or without room",
    "fibre_packets_dropped": "packets that the node made of frames and had no room for",
    "torus_unacknowledged": "packets of which a node of a torus had not said that it has them when its slots went, or the torus",
    "torus_held": "packets that had landed at a node of a torus and were not received when their engine was stopped",
    "torus_ended": "tori whose simulation ended before the engine: what was on its way no one knows",
}
"""Losses that only a link knows of, in packets where nothing else is said."""

_OF_NODES = {
    "node_packets_refused": ("merge", ("length", "format", "checksum")),
    "node_parts_dropped": ("merge", ("late", "jump", "disabled")),
    "node_events_partial": ("events", ("missing", "overflow")),
    "node_events_cut": ("events", ("cut",)),
    "fibre_packets_refused": (
        "fibre", ("bad_head", "wrong_floor", "no_slot", "untimed", "wrong_run", "wrong_time", "too_late", "again", "bad_record", "no_room",
                  "no_frame"),
    ),
    "fibre_packets_held": ("fibre", ("held",)),
    "fibre_frames_dropped": (
        "km3", ("drop_head", "drop_floor", "drop_cut", "drop_code", "drop_symbol", "drop_crc", "unplaced", "full", "overrun"),
    ),
    "fibre_packets_dropped": ("km3", ("queue_full", "no_route")),
}  # fmt: skip
"""Groups and counters of `nic_counts` that are losses."""

_OF_TORI = {
    "torus_unacknowledged": ("slots", ("unacknowledged",)),
    "torus_held": ("slots", ("held",)),
    "torus_ended": ("slots", ("ended",)),
}
"""Likewise, also of links that send answers or events."""

_OF_FILES = {"file_fragments": "rx_skipped_fragment", "file_cut": "rx_skipped_cut", "file_bytes_damaged": "rx_bytes_damaged"}

UNITS_INCOMPLETE = ("units_timed_out", "units_overflow", "units_flushed")
"""Counters of units that were closed with a hole, by why."""

UNIT_LOSSES = (*UNITS_INCOMPLETE, "units_no_buffer", "units_lost")
"""Counters of units that the processor did not get whole; every such unit is in exactly one."""

UNITS_UNUSED = ("units_of_no_part", "units_too_late", "units_bad_time")
"""Counters of units that came and are in no time slice, by why."""

SLICE_LOSSES = (
    *UNITS_UNUSED, "units_absent", "slices_missing", "slices_restarted", "records_bad", "hits_bad_time", "hits_no_room", "seeds_no_room",
    "events_no_room",
)  # fmt: skip
"""Counters of what a trigger of time slices did not look at, or did not send."""

CUTS = ("parts_overflow_hits", "events_forwarded_cut")
"""Counters of what was judged or sent on without the hits that had no room."""

PACKET_REFUSALS = (
    "packets_duplicate", "packets_late", "packets_bad_length", "packets_bad_format", "packets_bad_checksum", "packets_truncated",
    "packets_unknown_source", "packets_unknown_sender", "packets_wrong_queue", "packets_overlap", "packets_bad_place", "packets_bad_unit",
    "packets_unit_too_long", "packets_no_stream", "packets_scattered", "packets_unknown_stream",
)  # fmt: skip
"""Counters of packets that came and were refused. One that a source sent is among the lost ones already."""


def balance(sent: int, answered: int, counters: Mapping[str, int], *, merged: bool) -> dict[str, int]:
    """Losses by name, so that sent = answered + the sum of the values.

    merged: events are built from parts, so that `events_lost` and `events_bad_body` count parts and are no summands.
    """
    names = ("events_lost", "events_unseen", "events_discarded", "events_unjudged", "events_bad_body")
    losses = {name: int(counters.get(name, 0)) for name in names}
    if merged:
        losses["events_lost"] = losses["events_bad_body"] = 0
    else:
        losses["events_unseen"] = 0
    written = int(counters.get("events_answered", 0))
    losses["answers_lost"] = max(0, written - answered)
    losses["unexplained"] = sent - answered - sum(losses.values())
    return losses


def totals(snapshot: EngineSnapshot, *, raw_links: Collection[str] = ()) -> dict[str, int]:
    """An engine's counters, and what only its links know: LINK_LOSSES. raw_links: names of links whose senders' sequence numbers it does not see."""
    counters = {name: int(count) for name, count in snapshot["counters"].items()}
    counters |= dict.fromkeys(LINK_LOSSES, 0)
    for link in snapshot["links"]:
        stats = link["stats"]
        _add(counters, link, _OF_TORI)
        if link["name"] in ("answers", "forward"):
            counters["answers_refused"] += int(stats["tx_refused"])
            counters["answers_dropped"] += int(stats["tx_dropped"])
            continue
        if link["name"] in raw_links:
            counters["kernel_dropped"] += int(stats["rx_kernel_dropped"])
        else:
            counters["kernel_dropped_unseen"] += int(stats["rx_dropped_unseen"])
        for name, stat in _OF_FILES.items():
            counters[name] += int(stats[stat])
        _add(counters, link, _OF_NODES)
    return counters


def _add(counters: dict[str, int], link: LinkReading, losses: Mapping[str, tuple[str, tuple[str, ...]]]) -> None:
    for name, (group, keys) in losses.items():
        counters[name] += sum(int(one["counts"][key]) for one in link["nic_counts"] if one["name"] == group for key in keys)


def engine_losses(counters: Mapping[str, int], *, merged: bool) -> dict[str, int]:
    """What the engine alone knows to be lost, by name: events, packets, and packets of answers. counters: from `totals`."""
    unlike = ["events_unseen"] if merged else ["events_lost", "events_bad_body"]
    names = [
        "events_discarded",
        "events_unjudged",
        "events_unsent",
        *unlike,
        "packets_bad_body",
        *CUTS,
        *PACKET_LOSSES,
        *UNIT_LOSSES,
        *SLICE_LOSSES,
        *LINK_LOSSES,
    ]
    return {name: int(counters[name]) for name in names if counters.get(name, 0)}


def refusals(counters: Mapping[str, int]) -> dict[str, int]:
    """Packets that came and were refused, by name."""
    return {name: int(counters[name]) for name in PACKET_REFUSALS if counters.get(name, 0)}


def nothing_accepted(counters: Mapping[str, int]) -> str:
    """Why a run to which packets came judged none of them; "": it accepted some, or none came."""
    taken = int(counters["packets_accepted"]) + int(counters["packets_marker"])
    refused = refusals(counters)
    return f"no packet was accepted: {lost_text(refused)}" if refused and not taken else ""


def lost_text(losses: Mapping[str, int]) -> str:
    """`0`, or `events_lost 10, answers_lost 2`. Names are of different units, so they are not added up."""
    return ", ".join(f"{name} {count:,}" for name, count in losses.items() if count) or "0"


# What a run did, for its first line; of kinds of processors that are not here, what is of ring finders.
_HEADLINES = {
    "count": {"bytes_accepted": "bytes"},
    "km3": {"slices_whole": "whole slices", "hits_used": "hits", "events_triggered": "events triggered"},
    "forward": {"events_received": "events", "events_forwarded": "forwarded"},
}
_HEADLINE_OF_RINGS = {"events_received": "events", "events_answered": "answered", "rings_found": "rings"}


def headline(processor: str, counters: Mapping[str, int]) -> str:
    """What a run did in a line. processor: its kind."""
    words = {"packets_accepted": "packets accepted"} | _HEADLINES.get(processor, _HEADLINE_OF_RINGS)
    return ", ".join(f"{counters.get(name, 0):,} {word}" for name, word in words.items())
