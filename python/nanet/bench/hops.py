# SPDX-License-Identifier: Apache-2.0
"""The balance sheet of a run over a veth pair: packets counted at every hop from the boards to the answer's receiver.

Each hop says what came to it, what went on, and by name what did not. `in - out - (sum of the named)` is unexplained and must be 0. What
went on from one hop is what comes to the next. Each hop is counted by somebody else: emulator, both ends' interfaces, the link, the
decoder, the sequence numbers, the processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nanet import books, wire
from nanet.netns import InterfaceCounts

HEADER_BYTES = 42  # Ethernet, IPv4, UDP
ICMP_QUOTE_BYTES = 576 + 14 - HEADER_BYTES  # more than a UDP header, of an ICMP message at most
MARKERS = 6  # of each board: three before, three after
SUPER_PACKETS_MAX = 64  # packets of one super-packet at most
LOST_AT_AN_END = "lost_at_an_end"  # with the run marker, so that sequence numbers cannot tell


@dataclass(frozen=True)
class Cable:
    """What crossed the cable during a run, by both ends' counters.

    arp: frames each way that were ARP, of a link with its own network stack. icmp: frames to the engine in which the boards' kernel says that
    nobody listens any more. too_late: answers that this was said of.
    """

    boards: InterfaceCounts
    engine: InterfaceCounts
    coalesced: bool
    arp: int = 0
    icmp: int = 0
    too_late: int = 0


@dataclass
class Hop:
    """One line of the sheet."""

    name: str
    entered: int
    left: int
    named: dict[str, int] = field(default_factory=dict)
    unit: str = "packets"

    @property
    def unexplained(self) -> int:
        """What no counter accounts for; negative: more left than came."""
        return self.entered - self.left - sum(self.named.values())

    def plain(self) -> dict[str, Any]:
        """As JSON keys."""
        named = {name: count for name, count in self.named.items() if count}
        return {
            "hop": self.name,
            "unit": self.unit,
            "in": self.entered,
            "out": self.left,
            "named": named,
            "unexplained": self.unexplained,
        }


def sheet(result: Mapping[str, Any], cable: Cable) -> dict[str, Any]:
    """The balance sheet of one run (result: of demo.run_loop)."""
    hops = [*_there(result, cable), *_decoded(result), *_back(result, cable)]
    return {
        "hops": [hop.plain() for hop in hops],
        "unexplained_packets": sum(abs(hop.unexplained) for hop in hops),
    }


def sheet_alone(result: Mapping[str, Any], cable: Cable) -> dict[str, Any]:
    """The same of a run without processor and answers (result: of alone.run)."""
    hops = [*_there(result, cable), *_taken(result)]
    return {"hops": [hop.plain() for hop in hops], "unexplained_packets": sum(abs(hop.unexplained) for hop in hops)}


def unexplained_text(balance: Mapping[str, Any]) -> str:
    """`3 at boards' interface, -1 at decoder`, or nothing."""
    return ", ".join(f"{hop['unexplained']} {hop['unit']} at {hop['hop']}" for hop in balance["hops"] if hop["unexplained"])


def _there(result: Mapping[str, Any], cable: Cable) -> list[Hop]:
    """From the boards to the link."""
    emulator, engine = result["emulator"], result["engine"]
    link, counters = engine["links"][0]["stats"], engine["counters"]
    given = int(emulator["packets_sent"]) + MARKERS * int(emulator["config"]["boards"])
    data = link["rx_packets"] - counters["packets_marker"]
    packet_bytes = (link["rx_bytes"] - counters["packets_marker"] * wire.MGP_MARKER_BYTES) / data if data > 0 else 0.0
    all_bytes = emulator["packets_sent"] * packet_bytes + (given - emulator["packets_sent"]) * wire.MGP_MARKER_BYTES
    on_wire = _packets(cable.boards.tx_frames, cable.boards.tx_bytes, cable, given, all_bytes, cable.icmp)
    arrived = _packets(cable.engine.rx_frames, cable.engine.rx_bytes, cable, given, all_bytes, cable.icmp)
    sent = Hop("boards' socket", given, on_wire)
    _name(sent, "tx_dropped", emulator["tx_dropped"])
    _name(sent, "interface_tx_dropped", cable.boards.tx_dropped)
    received = Hop("link", arrived, int(link["rx_packets"]))
    _name(received, "foreign", max(0, link["rx_foreign"] - cable.arp))
    _name(received, "malformed", link["rx_malformed"])
    most = link["rx_kernel_dropped"] * (SUPER_PACKETS_MAX if cable.coalesced else 1)
    _name(received, "kernel_dropped", most)
    _name(received, "interface_rx_dropped", cable.engine.rx_dropped)
    return [sent, Hop("cable", on_wire, arrived), received]


def _taken(result: Mapping[str, Any]) -> list[Hop]:
    """From the link to the processor: decoder, sequence numbers."""
    emulator, engine = result["emulator"], result["engine"]
    counters = engine["counters"]
    good = int(counters["packets_accepted"])
    refused = {name: int(counters[name]) for name in (*books.PACKET_REFUSALS, "packets_clop_full", "packets_marker")}
    decoded = Hop("decoder and buffers", int(engine["links"][0]["stats"]["rx_packets"]), good, refused)
    lost = {name: int(counters[name]) for name in books.PACKET_LOSSES}
    numbered = Hop("sequence numbers", int(emulator["packets_sent"]), good, lost)
    if counters["packets_marker"] < MARKERS * int(emulator["config"]["boards"]):  # without end marker the end is not known
        _name(numbered, LOST_AT_AN_END, engine["links"][0]["stats"]["rx_kernel_dropped"] * SUPER_PACKETS_MAX)
    return [decoded, numbered]


def _decoded(result: Mapping[str, Any]) -> list[Hop]:
    """From the link to the answer: decoder, sequence numbers, event building, events."""
    emulator, engine = result["emulator"], result["engine"]
    counters, merged = engine["counters"], engine["config"]["processor"]["merge"] is not None
    hops = _taken(result)
    numbered = hops[-1]
    if merged:
        late = {name: int(counters[name]) for name in ("parts_late", "parts_duplicate", "parts_no_room")}
        hops.append(Hop("event building", int(counters["events_received"]), int(counters["parts_merged"]), late, "parts"))
    losses = {name: count for name, count in result["losses"].items() if name != "unexplained"}
    events = Hop("events", int(result["sent"]), int(result["answered"]), losses, "events")
    _name(events, LOST_AT_AN_END, numbered.named.get(LOST_AT_AN_END, 0) * int(emulator["config"]["events_per_packet"]))
    return [*hops, events]


def _back(result: Mapping[str, Any], cable: Cable) -> list[Hop]:
    """From the answers written to those received."""
    emulator, engine = result["emulator"], result["engine"]
    answers = next(link["stats"] for link in engine["links"] if link["name"] == "answers")
    sent = int(answers["tx_packets"])
    written = Hop("answers", int(engine["counters"]["answers_sent"]), sent, {"tx_dropped": int(answers["tx_dropped"])})
    on_wire = _packets(cable.engine.tx_frames, cable.engine.tx_bytes, cable, sent, answers["tx_bytes"])
    arrived = _packets(cable.boards.rx_frames, cable.boards.rx_bytes, cable, sent, answers["tx_bytes"])
    left = Hop("engine's interface", sent, on_wire)
    _name(left, "interface_tx_dropped", cable.engine.tx_dropped)
    came = Hop("answers' receiver", arrived, int(emulator["answer_packets"]))
    _name(came, "kernel_dropped", emulator["answers_kernel_dropped"])
    _name(came, "too_late", cable.too_late * (SUPER_PACKETS_MAX if cable.coalesced else 1))
    _name(came, "interface_rx_dropped", cable.boards.rx_dropped)
    if cable.too_late:  # the emulator had given up while answers still came: some lay in its socket when it was closed
        _name(came, "unread", result["losses"].get("answers_lost", 0))
    return [written, left, Hop("cable back", on_wire, arrived), came]


def _packets(frames: int, frame_bytes: int, cable: Cable, sent: int, sent_bytes: float, icmp: int = 0) -> int:
    """Packets on the wire. A super-packet is one frame with one header, so with those it is the bytes that say how many are missing.

    sent, sent_bytes: packets that should be there, and the sum of their payloads. icmp: frames that are no packets.
    """
    if not cable.coalesced or sent == 0:
        return frames - cable.arp - icmp
    missing = sent_bytes - (frame_bytes - HEADER_BYTES * frames)
    if missing < 0:  # an ICMP message quotes what it is about, up to a length
        missing = min(0.0, missing + icmp * ICMP_QUOTE_BYTES)
    packets = missing / (sent_bytes / sent)
    return sent - (round(packets) or (1 if missing >= 1 else -1 if missing <= -1 else 0))


def _name(hop: Hop, name: str, count: int) -> None:
    """Books up to `count` of what is still missing under a name. A drop that two layers count (a queue and its user) is booked once."""
    hop.named[name] = max(0, min(int(count), hop.unexplained))
