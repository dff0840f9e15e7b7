# SPDX-License-Identifier: Apache-2.0
"""The whole NIC's tables, counters and clock, as a driver sees them: each entry is its own, each fate of a frame and of a descriptor is one counter."""

from collections.abc import Callable
from ipaddress import IPv4Address
from itertools import pairwise
from random import Random
from typing import Any

import cocotb
from common.bench import PARAMETERS, first_edge
from common.card import DESTINATION, ENTRY_BYTES, MATCH, PACKETS_PER_BUFFER, PORT, SLOT_BYTES, SOURCE
from common.contract import Kind, TxDescriptor
from common.counts import ROWS
from common.frames import (
    FCS_BYTES,
    FRAME_BYTES_MIN,
    SENDER_IP,
    frame_of,
    group_mac,
    mac_number,
    sent_frame,
    udp_frame,
    udp_packet,
    with_fcs,
)
from common.requests import refused_requests
from common.sending import random_destination
from common.wires import GBPS, PREAMBLE
from scapy.layers.inet import IPOption
from test_nic_pcie import OWN_CLOCKS, WIRE_CLOCKS, Card

ENTRIES = PARAMETERS.get("MATCH_ENTRIES", 16)
DESTINATIONS = PARAMETERS.get("DESTINATIONS", 16)
GROUPS = PARAMETERS.get("GROUPS", 4)
FRAME_BYTES_MAX = PARAMETERS.get("FRAME_BYTES_MAX", 9022)
once = cocotb.test if GBPS == 10 and not OWN_CLOCKS else lambda test: test  # what does not depend on the wire
ROW_AT = {"rx": 0x800, "tx": 0x900, "reply": 0x980}


async def started(dut: Any) -> Card:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=256)
    await card.begin()
    return card


async def counts(card: Card) -> dict[str, int]:
    """All that the NIC counts, by row and name."""
    return {f"{row}.{name}": await card.read(at + 8 * k) for row, at in ROW_AT.items() for k, name in enumerate(ROWS[row]["names"])}


async def counted_since(card: Card, before: dict[str, int]) -> dict[str, int]:
    return {key: count - before[key] for key, count in (await counts(card)).items() if count != before[key]}


async def flushed(card: Card) -> None:
    """All that came is handed over and given back."""
    await card.wire_in.wait()
    await card.wait(400 * card.word_cycles)
    await card.write(0x200, 1 | 4)
    await card.wait(400)
    await card.release()
    await card.wait(100)


def fates(rng: Random) -> dict[str, Callable[[Card], None]]:
    """By counter: puts a frame of it on the wire."""
    size = rng.randint(20, 100)

    def packet(payload: bytes | None = None, **fields: Any) -> bytes:
        return frame_of(udp_packet(rng.randbytes(size) if payload is None else payload, **({"port": PORT} | fields)))

    def sends(frame: bytes, **how: Any) -> Callable[[Card], None]:
        return lambda card: card.wire_in.send(with_fcs(frame), **how)

    spoilt = bytearray(with_fcs(packet()))
    spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
    frames: dict[str, Callable[[Card], None]] = {
        "rx.preamble": sends(packet(), preamble=PREAMBLE[:7] + b"\x5d"),
        "rx.control": sends(packet(), marked=(20,)),
        "rx.oversize": sends(rng.randbytes(FRAME_BYTES_MAX - FCS_BYTES + 1)),
        "rx.runt": lambda card: card.wire_in.send(with_fcs(packet())[:50]),
        "rx.fcs": lambda card: card.wire_in.send(bytes(spoilt)),
        "rx.mac_address": sends(packet(Ether={"dst": "02:00:00:00:00:09"})),
        "rx.ethertype": sends(packet(Ether={"type": 0x86DD})),
        "rx.version": sends(packet(IP={"version": 6})),
        "rx.options": sends(packet(IP={"options": [IPOption(b"\x01")] * 4})),
        "rx.header_checksum": sends(packet(IP={"chksum": 1})),
        "rx.fragment": sends(packet(IP={"flags": "MF"})),
        "rx.protocol": sends(packet(IP={"proto": 6})),
        "rx.address": sends(packet(IP={"dst": "10.62.0.99"})),
        "rx.length": sends(packet(UDP={"len": 7})),
        "rx.empty": sends(packet(b"")),
        "rx.no_match": sends(packet(port=PORT + 1)),
        "rx.truncated": sends(packet(rng.randbytes(100))[:80]),
        "rx.udp_checksum": sends(packet(UDP={"chksum": 1})),
    }
    for name, request in refused_requests(size).items():
        frames[name.replace("drop_", "reply.")] = sends(frame_of(request))
    return frames


@once
async def every_fate_of_a_frame_is_one_counter(dut: Any) -> None:
    """Two of each: a counter that is always told would have more. `bad` is those for which there was room."""
    card = await started(dut)
    for name, send in fates(card.rng).items():
        before = await counts(card)
        for _ in range(2):
            send(card)
        await flushed(card)
        told = await counted_since(card, before)
        assert told.pop("rx.bad", 0) in ((2,) if name in {"rx.udp_checksum", "rx.truncated"} else (0, 2)), name
        assert told == {name: 2}, f"{name}: {told}"
    assert not card.received
    payloads = [card.rng.randbytes(64) for _ in range(PACKETS_PER_BUFFER)]
    before = await counts(card)
    await card.send_frames(payloads)
    await flushed(card)
    told = await counted_since(card, before)
    assert told == {"rx.parsed": len(payloads), "rx.stored": len(payloads)}
    assert card.received == [(payload, SOURCE) for payload in payloads]


@once
async def every_fate_of_a_descriptor_is_one_counter(dut: Any) -> None:
    card = await started(dut)
    slots = {"sent": (64, DESTINATION), "refused": (0, DESTINATION), "destination": (64, (DESTINATION + 1) % DESTINATIONS)}
    for name, (size, destination) in slots.items():
        before = await counts(card)
        slot, payload = card.rung, card.rng.randbytes(size)
        card.payloads.write(slot * SLOT_BYTES, payload)
        card.rung += 1
        descriptor = TxDescriptor(card.payloads.address + slot * SLOT_BYTES, size, destination, slot, sequence=card.rung)
        card.ring.write(slot * ENTRY_BYTES, descriptor.packed())
        await card.ring_doorbell()
        await card.wait_until(lambda: len(card.sent) == card.rung, 20_000, "its completion")
        if name == "sent":
            await card.frames_out([payload])
        told = await counted_since(card, before)
        expected = {
            "sent": {"tx.sent": 1, "tx.framed": 1},
            "refused": {"tx.refused": 1},
            "destination": {"tx.sent": 1, "tx.destination": 1},
        }
        assert told == expected[name], f"{name}: {told}"
        assert card.sent[-1][0] == (Kind.ERROR if name == "refused" else Kind.PACKET_SENT)


@once
async def each_entry_of_the_match_table_is_its_own(dut: Any) -> None:
    """Its port, its sender and its source; what another sender has sent, and one that is taken away, match nothing."""
    card = await started(dut)
    await card.write(0x048, MATCH)  # the driver's own
    entries = {k: (6200 + 3 * k, 0x1000 + 77 * k) for k in range(ENTRIES)}
    for k, (port, source) in entries.items():
        sender = int(IPv4Address(SENDER_IP)) ^ (k % 2)  # of each second one it is another's
        await card.write(0x040, sender | 0xFFFF_FFFF << 32)
        await card.write(0x048, k | 1 << 8 | port << 16 | source << 32)
    payloads = {k: card.rng.randbytes(40 + k) for k in entries}

    async def received_of_each() -> list[tuple[bytes, int]]:
        await card.read(0x048)  # the NIC has all that was written
        before = len(card.received)
        for k, (port, _) in entries.items():
            await card.send_frame(udp_frame(payloads[k], port=port))
            if k % PACKETS_PER_BUFFER == PACKETS_PER_BUFFER - 1:
                await flushed(card)
        await flushed(card)
        return card.received[before:]

    no_match = (await counts(card))["rx.no_match"]
    assert await received_of_each() == [(payloads[k], source) for k, (_, source) in entries.items() if k % 2 == 0]
    assert (await counts(card))["rx.no_match"] == no_match + ENTRIES // 2
    await card.write(0x040, 0)  # of any sender
    for k, (port, source) in entries.items():
        await card.write(0x048, k | (k % 3 != 0) << 8 | port << 16 | source << 32)
    assert await received_of_each() == [(payloads[k], source) for k, (_, source) in entries.items() if k % 3 != 0]


@once
async def each_group_is_its_own(dut: Any) -> None:
    """As many as the register says; what came to them is in the host's memory, a group that was taken away is one mac_address."""
    card = await started(dut)
    assert await card.read(0x078) >> 56 == GROUPS
    groups = [f"239.{card.rng.randrange(256)}.7.{k + 1}" for k in range(GROUPS)]
    for k, group in enumerate(groups):
        await card.write(0x078, int(IPv4Address(group)) | k << 32)
    for taken in range(GROUPS + 1):
        await card.read(0x078)  # the NIC has all that was written
        before, received = await counts(card), len(card.received)
        payloads = [card.rng.randbytes(50 + k) for k in range(GROUPS)]
        for group, payload in zip(groups, payloads, strict=True):
            packet = udp_packet(payload, port=PORT, Ether={"dst": group_mac(group)}, IP={"dst": group})
            await card.send_frame(frame_of(packet))
        await flushed(card)
        assert card.received[received:] == [(payload, SOURCE) for payload in payloads[taken:]]
        assert (await counted_since(card, before)).get("rx.mac_address", 0) == taken
        if taken < GROUPS:
            await card.write(0x078, taken << 32)


@once
async def each_destination_is_its_own(dut: Any) -> None:
    card = await started(dut)
    destinations = [random_destination(card.rng) for _ in range(DESTINATIONS)]
    for k, fields in enumerate(destinations):
        await card.write(0x050, int(IPv4Address(fields["address"])) | fields["port"] << 32 | fields["source_port"] << 48)
        await card.write(0x058, mac_number(fields["mac"]) | k << 48 | 1 << 56)
    for k, fields in enumerate(destinations):
        payload, slot = card.rng.randbytes(100 + k), card.rung % 16
        card.payloads.write(slot * SLOT_BYTES, payload)
        card.rung += 1
        descriptor = TxDescriptor(card.payloads.address + slot * SLOT_BYTES, len(payload), k, k, sequence=card.rung)
        card.ring.write(slot * ENTRY_BYTES, descriptor.packed())
        await card.ring_doorbell()
        assert await card.frame_out() == sent_frame(payload, fields).ljust(FRAME_BYTES_MIN, b"\0")


@once
async def the_clock_is_set_once_and_goes_on(dut: Any) -> None:
    """And completions have its time: between what it showed before and after, odd and even."""
    card = await started(dut)
    at = 0x0123_4567_89AB_CDEF
    await card.write(0x030, at)
    shown = [await card.read(0x010) for _ in range(20)]
    assert all(later > earlier for earlier, later in pairwise(shown))
    assert at <= shown[0] <= shown[-1] < at + 100_000
    cycles = [await card.read(0x018) for _ in range(2)]
    assert abs((cycles[1] - cycles[0]) * 6.4 - (await card.read(0x010) - shown[-1])) < 2000
    for _ in range(12):
        before = await card.read(0x010)
        await card.send_frames([card.rng.randbytes(64)])
        await flushed(card)
        after = await card.read(0x010)
        first, last = card.times_ns[-1]
        assert before <= first == last <= after
    assert {first % 2 for first, _ in card.times_ns} == {0, 1}
