# SPDX-License-Identifier: Apache-2.0
"""The balance sheet of a run over a veth pair: packets counted at every hop from the boards to the answer's receiver.

Each hop says what came to it, what went on, and by name what did not. `in - out - (sum of the named)` is unexplained and must be 0. What
went on from one hop is what comes to the next. Each hop is counted by somebody else: emulator, both ends' interfaces, the link, the
decoder, the sequence numbers, the processor.
"""

from __future__ import annotations

from dataclasses import dataclass

from nanet import wire
from nanet.loop.keys import Run
from nanet.machine.netns import InterfaceCounts
from nanet.result import hops
from nanet.result.hops import Hop
from nanet.result.keys.hops import BalanceSheet

HEADER_BYTES = 42  # Ethernet, IPv4, UDP
ICMP_QUOTE_BYTES = 576 + 14 - HEADER_BYTES  # more than a UDP header, of an ICMP message at most
MARKERS = 6  # of each board, at least: three before, three after; more where the last answers were late
SUPER_PACKETS_MAX = 64  # packets of one super-packet at most
LOST_AT_AN_END = "lost_at_an_end"  # with the run marker, so that sequence numbers cannot tell


@dataclass(frozen=True)
class Cable:
    """What crossed the cable during a run, by both ends' counters.

    arp: frames each way that were ARP, of a link with its own network stack. icmp: frames to the engine in which the boards' kernel says that
    no one listens any more. too_late: answers that this was said of.
    """

    boards: InterfaceCounts
    engine: InterfaceCounts
    coalesced: bool
    arp: int = 0
    icmp: int = 0
    too_late: int = 0


def sheet(result: Run, cable: Cable) -> BalanceSheet:
    """The balance sheet of one run (result: of demo.run_loop)."""
    return hops.sheet([*_there(result, cable), *_decoded(result), *_back(result, cable)])


def sheet_alone(result: Run, cable: Cable) -> BalanceSheet:
    """The same of a run without processor and answers (result: of alone.run)."""
    return hops.sheet([*_there(result, cable), *_taken(result)])


def _there(result: Run, cable: Cable) -> list[Hop]:
    """From the boards to the link."""
    emulator, engine = result["emulator"], result["engine"]
    link, counters = engine["links"][0]["stats"], engine["counters"]
    given = int(emulator["packets_sent"]) + int(emulator["markers_sent"])
    data = link["rx_packets"] - counters["packets_marker"]
    packet_bytes = (link["rx_bytes"] - counters["packets_marker"] * wire.MGP_MARKER_BYTES) / data if data > 0 else 0.0
    all_bytes = emulator["packets_sent"] * packet_bytes + (given - emulator["packets_sent"]) * wire.MGP_MARKER_BYTES
    on_wire = _packets(cable.boards.tx_frames, cable.boards.tx_bytes, cable, given, all_bytes, cable.icmp)
    arrived = _packets(cable.engine.rx_frames, cable.engine.rx_bytes, cable, given, all_bytes, cable.icmp)
    sent = Hop("boards' socket", given, on_wire)
    sent.name_up_to("tx_dropped", emulator["tx_dropped"])
    sent.name_up_to("interface_tx_dropped", cable.boards.tx_dropped)
    received = Hop("link", arrived, int(link["rx_packets"]))
    received.name_up_to("foreign", max(0, link["rx_foreign"] - cable.arp))
    received.name_up_to("malformed", link["rx_malformed"])
    most = link["rx_kernel_dropped"] * (SUPER_PACKETS_MAX if cable.coalesced else 1)
    received.name_up_to("kernel_dropped", most)
    received.name_up_to("interface_rx_dropped", cable.engine.rx_dropped)
    return [sent, Hop("cable", on_wire, arrived), received]


def _taken(result: Run) -> list[Hop]:
    """From the link to the processor: decoder, sequence numbers."""
    emulator, engine = result["emulator"], result["engine"]
    counters = engine["counters"]
    numbered = hops.sequence_numbers(counters, int(emulator["packets_sent"]))
    if counters["packets_marker"] < MARKERS * int(emulator["config"]["boards"]):  # without end marker the end is not known
        numbered.name_up_to(LOST_AT_AN_END, engine["links"][0]["stats"]["rx_kernel_dropped"] * SUPER_PACKETS_MAX)
    return [hops.decoder(int(engine["links"][0]["stats"]["rx_packets"]), counters), numbered]


def _decoded(result: Run) -> list[Hop]:
    """From the link to the answer: decoder, sequence numbers, event building, events."""
    emulator, engine = result["emulator"], result["engine"]
    found = _taken(result)
    numbered = found[-1]
    if engine["config"]["processor"]["merge"] is not None:
        found.append(hops.event_building(engine["counters"]))
    losses = {name: count for name, count in result["losses"].items() if name != "unexplained"}
    events = Hop("events", int(result["sent"]), int(result["answered"] or 0), losses, "events")
    events.name_up_to(LOST_AT_AN_END, numbered.named.get(LOST_AT_AN_END, 0) * int(emulator["config"]["events_per_packet"]))
    return [*found, events]


def _back(result: Run, cable: Cable) -> list[Hop]:
    """From the answers written to those received."""
    emulator, engine = result["emulator"], result["engine"]
    answers = next(link["stats"] for link in engine["links"] if link["name"] == "answers")
    sent = int(answers["tx_packets"])
    written = hops.answers(int(engine["counters"]["answers_sent"]), answers)
    on_wire = _packets(cable.engine.tx_frames, cable.engine.tx_bytes, cable, sent, answers["tx_bytes"])
    arrived = _packets(cable.boards.rx_frames, cable.boards.rx_bytes, cable, sent, answers["tx_bytes"])
    left = Hop("engine's interface", sent, on_wire)
    left.name_up_to("interface_tx_dropped", cable.engine.tx_dropped)
    came = Hop("answers' receiver", arrived, int(emulator["answer_packets"]))
    came.name_up_to("kernel_dropped", emulator["answers_kernel_dropped"])
    came.name_up_to("too_late", cable.too_late * (SUPER_PACKETS_MAX if cable.coalesced else 1))
    came.name_up_to("interface_rx_dropped", cable.boards.rx_dropped)
    if cable.too_late:  # the emulator had given up while answers still came: some lay in its socket when it was closed
        came.name_up_to("unread", result["losses"].get("answers_lost", 0))
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
