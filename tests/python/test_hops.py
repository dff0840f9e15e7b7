# SPDX-License-Identifier: Apache-2.0
"""Balance sheets with fixed inputs: what is named, what is not, and at which hop."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_links import ANSWERS, ON_WIRE, PACKET_BYTES, PACKETS, cable, counts, forward_bytes, run
from nanet.bench import hops
from nanet.machine.netns import snmp_counts
from nanet.result.hops import unexplained_text


def named(balance: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {hop["hop"]: hop["named"] for hop in balance["hops"]}


def unexplained(balance: dict[str, Any]) -> dict[str, int]:
    return {hop["hop"]: hop["unexplained"] for hop in balance["hops"] if hop["unexplained"]}


def test_nothing_lost() -> None:
    balance = hops.sheet(run(), cable())
    assert balance["unexplained_packets"] == 0
    assert not unexplained_text(balance)
    assert [hop["hop"] for hop in balance["hops"]] == [
        "boards' socket", "cable", "link", "decoder and buffers", "sequence numbers", "events", "answers", "engine's interface",
        "cable back", "answers' receiver",
    ]  # fmt: skip
    first, second, third = balance["hops"][:3]
    assert (first["in"], first["out"], second["in"], third["out"]) == (ON_WIRE, ON_WIRE, ON_WIRE, ON_WIRE)
    assert balance["hops"][3]["named"] == {"packets_marker": 6}


@pytest.mark.parametrize("frames", [20, 333, ON_WIRE])
def test_super_packets_are_counted_by_their_bytes(frames: int) -> None:
    assert hops.sheet(run(), cable(frames, 700, coalesced=True))["unexplained_packets"] == 0


def test_a_super_packet_that_vanished() -> None:
    whole = cable(100, coalesced=True)
    bytes_left = forward_bytes(100) - 5 * PACKET_BYTES - hops.HEADER_BYTES
    short = counts(99, bytes_left, whole.engine.tx_frames, whole.engine.tx_bytes)
    balance = hops.sheet(run(), hops.Cable(whole.boards, short, coalesced=True))
    assert unexplained(balance) == {"cable": 5, "link": -5}


def test_a_byte_too_few_is_not_rounded_away() -> None:
    whole = cable(100, coalesced=True)
    short = counts(100, forward_bytes(100) - 1, whole.engine.tx_frames, whole.engine.tx_bytes)
    assert unexplained(hops.sheet(run(), hops.Cable(whole.boards, short, coalesced=True))) == {"cable": 1, "link": -1}


def test_a_packet_that_vanished_names_its_hop() -> None:
    result = run(
        link={"rx_packets": ON_WIRE - 1, "rx_bytes": (PACKETS - 1) * PACKET_BYTES + 144}, counters={"packets_accepted": 999}
    )
    balance = hops.sheet(result, cable())
    assert unexplained(balance) == {"link": 1, "sequence numbers": 1}
    assert unexplained_text(balance) == "1 packets at link, 1 packets at sequence numbers"


def test_kernel_drops_have_a_name() -> None:
    lost_events = {"events_lost": 30 * 16}
    changes: dict[str, Any] = {
        "link": {"rx_packets": ON_WIRE - 30, "rx_bytes": (PACKETS - 30) * PACKET_BYTES + 144, "rx_kernel_dropped": 30},
        "counters": {"packets_accepted": PACKETS - 30, "packets_lost_kernel": 30},
        "top": {"answered": 970 * 16, "lost": 480, "losses": lost_events},
    }
    balance = hops.sheet(run(**changes), cable())
    assert balance["unexplained_packets"] == 0
    assert named(balance)["link"] == {"kernel_dropped": 30}
    assert named(balance)["sequence numbers"] == {"packets_lost_kernel": 30}
    assert named(balance)["events"] == lost_events
    changes["link"]["rx_kernel_dropped"] = 29  # single packets: each drop is one
    assert unexplained(hops.sheet(run(**changes), cable())) == {"link": 1}
    changes["link"]["rx_kernel_dropped"] = 1  # one super-packet of 30
    assert hops.sheet(run(**changes), cable(30, coalesced=True))["unexplained_packets"] == 0


def test_the_end_of_a_run_can_be_lost() -> None:
    link = {"rx_packets": ON_WIRE - 13, "rx_bytes": (PACKETS - 10) * PACKET_BYTES + 3 * 24, "rx_kernel_dropped": 13}
    changes: dict[str, Any] = {
        "link": link,
        "counters": {"packets_accepted": 990, "packets_marker": 3},
        "top": {"answered": 990 * 16, "lost": 160, "losses": {"unexplained": 160}},
    }
    balance = hops.sheet(run(**changes), cable())
    assert balance["unexplained_packets"] == 0
    assert named(balance)["events"] == {"lost_at_an_end": 160}
    changes["counters"]["packets_marker"] = 6  # with the end known, the sequence numbers must tell
    assert unexplained(hops.sheet(run(**changes), cable()))["events"] == 160


def test_a_drop_that_two_layers_count_is_booked_once() -> None:
    boards = counts(ANSWERS, ANSWERS * 122, ON_WIRE - 4, 0, tx=4)
    engine = counts(ON_WIRE - 4, 0, ANSWERS, 0)
    changes: dict[str, Any] = {
        "link": {"rx_packets": ON_WIRE - 4},
        "counters": {"packets_accepted": 996, "packets_lost_network": 4},
        "top": {"answered": 996 * 16, "losses": {"events_lost": 64}},
        "emulator": {"tx_dropped": 3},
    }
    balance = hops.sheet(run(**changes), hops.Cable(boards, engine, coalesced=False))
    assert balance["unexplained_packets"] == 0
    assert named(balance)["boards' socket"] == {"tx_dropped": 3, "interface_tx_dropped": 1}


def test_arp_is_no_packet() -> None:
    assert hops.sheet(run(), cable(arp=2))["unexplained_packets"] == 0
    without = cable(arp=2)
    balance = hops.sheet(run(), hops.Cable(without.boards, without.engine, coalesced=False, arp=0))
    assert unexplained(balance) == {"boards' socket": -2, "link": 2, "engine's interface": -2, "answers' receiver": 2}


def test_answers_on_their_way_back() -> None:
    result = run(emulator={"answer_packets": ANSWERS - 7, "answers_kernel_dropped": 5})
    balance = hops.sheet(result, cable())
    assert unexplained(balance) == {"answers' receiver": 2}
    assert named(balance)["answers' receiver"] == {"kernel_dropped": 5}


def test_event_building_is_a_hop() -> None:
    parts = {"parts_merged": 15_990, "parts_late": 6, "parts_duplicate": 0, "parts_no_room": 3}
    balance = hops.sheet(run(counters=parts, merge={"window_us": 200}), cable())
    assert unexplained(balance) == {"event building": 1}
    assert unexplained_text(balance) == "1 parts at event building"


@pytest.mark.parametrize("coalesced", [False, True])
def test_answers_that_came_too_late(coalesced: bool) -> None:
    """The emulator gave up, its socket is closed, and its kernel says so to the engine by ICMP."""
    whole = cable(ON_WIRE, coalesced=coalesced)
    there = whole.boards
    frames, quoted = ON_WIRE + 6, there.tx_bytes + 6 * 150
    boards = counts(there.rx_frames, there.rx_bytes, frames, quoted)
    engine = counts(frames, quoted, whole.engine.tx_frames, whole.engine.tx_bytes)
    result = run(emulator={"answer_packets": ANSWERS - 40})
    told = hops.Cable(boards, engine, coalesced, icmp=6, too_late=40)
    assert hops.sheet(result, told)["unexplained_packets"] == 0
    assert named(hops.sheet(result, told))["answers' receiver"] == {"too_late": 40}
    unread = run(emulator={"answer_packets": ANSWERS - 50 * 64}, top={"losses": {"answers_lost": 5000}})
    assert named(hops.sheet(unread, told))["answers' receiver"]["unread"] == 3200 - 40 * (64 if coalesced else 1)
    untold = hops.Cable(boards, engine, coalesced)
    assert unexplained(hops.sheet(unread, untold))["answers' receiver"] == 3200
    assert unexplained(hops.sheet(result, untold)).keys() == {"boards' socket", "link", "answers' receiver"}


def test_what_a_kernel_says_of_its_packets() -> None:
    text = (
        "Ip: Forwarding DefaultTTL\nIp: 2 64\nIcmp: InMsgs OutMsgs\nIcmp: 3 6\nUdp: InDatagrams NoPorts InErrors\nUdp: 900 899 1\n"
    )
    assert snmp_counts(text) == (6, 899)
