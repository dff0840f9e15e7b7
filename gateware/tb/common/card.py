# SPDX-License-Identifier: Apache-2.0
"""A card with the NIC and its driver, whatever the host is: set up through registers, packets in from the wire and out of its TX ring, the rest in host memory."""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb

from common.bench import PARAMETERS
from common.contract import Completion, Kind, PacketRef, TxDescriptor
from common.counts import numbers_of
from common.frames import FCS_BYTES, FRAME_BYTES_MIN, LOCAL_IP, LOCAL_MAC, mac_number, sent_frame, udp_frame, with_fcs
from common.sending import random_destination
from common.wires import WireSink, WireSource

MAGIC = 0x54454E414E
PORT, SOURCE = 6001, 9
MATCH = min(2, PARAMETERS.get("MATCH_ENTRIES", 16) - 1)
DESTINATION = min(3, PARAMETERS.get("DESTINATIONS", 16) - 1)
BUFFERS, BUFFER_BYTES, PACKETS_PER_BUFFER = 16, 12288, 8
RING_ENTRIES, SLOT_BYTES = 16, 4096
OFFSET_BITS = PARAMETERS.get("OFFSET_BITS", 40)
ENTRY_BYTES, REF_BYTES = Completion.LAYOUT.size, PacketRef.LAYOUT.size  # a descriptor is as long as a completion
RX = numbers_of("rx", "parsed", "fcs", "no_match", "stored", "overflow", "no_buffer")
REPLY = numbers_of("reply", "answered_arp", "answered_echo", "busy", "replied")
TX = numbers_of("tx", "sent", "refused", "unreadable", "read_fault", "read_error", "framed")


@dataclass
class Region:
    """Registered memory: pages of 4 KiB, each at a bus address of its own that says nothing of the others'."""

    number: int
    pages: list[tuple[int, bytearray]]

    @property
    def address(self) -> int:
        return self.number << OFFSET_BITS

    def offset_of(self, bus_address: int) -> int | None:
        for k, (base, _) in enumerate(self.pages):
            if base <= bus_address < base + 4096:
                return k * 4096 + bus_address - base
        return None

    def read(self, at: int, size: int) -> bytes:
        return bytes(self.pages[(at + k) // 4096][1][(at + k) % 4096] for k in range(size))

    def write(self, at: int, data: bytes) -> None:
        for k, byte in enumerate(data):
            self.pages[(at + k) // 4096][1][(at + k) % 4096] = byte


class CardDriver:
    """Of a bench that has what stands here without a value. received: payloads with their source, as the completions tell of them when they are written."""

    rng: Random
    wire_in: WireSource
    wire_out: WireSink
    word_cycles: int  # at most, of eight bytes on the wire
    on_write: Callable[[int, bytes], None]  # of each request, when it is in memory
    read: Any
    write: Any
    memory: Any
    wait: Any
    wait_until: Any
    cycle: int

    def __init__(self, *arguments: Any, **host: Any) -> None:
        super().__init__(*arguments, **host)
        self.forget()

    def forget(self) -> None:
        """As it is after a reset of the NIC."""
        self.received: list[tuple[bytes, int]] = []
        self.lost = self.taken = self.rung = self.events = 0
        self.sent: list[tuple[int, int]] = []  # kind and tag of each completion of the ring
        self.times_ns: list[tuple[int, int]] = []  # first and last packet of each buffer
        self.entries = self.regions_used = 0

    async def set_up(self) -> None:
        magic_and_version = await self.read(0x000)
        assert magic_and_version & (1 << 40) - 1 == MAGIC
        assert magic_and_version >> 48 == 3
        await self.write(0x020, mac_number(LOCAL_MAC))
        await self.write(0x028, int(IPv4Address(LOCAL_IP)))
        await self.write(0x048, MATCH | 1 << 8 | PORT << 16 | SOURCE << 32)
        self.completions = await self.register(4096, writable=True)
        self.buffers = await self.register(BUFFERS * BUFFER_BYTES, writable=True)
        self.index = await self.register(BUFFERS * PACKETS_PER_BUFFER * REF_BYTES, writable=True)
        self.ring = await self.register(RING_ENTRIES * ENTRY_BYTES, writable=False)
        self.payloads = await self.register(RING_ENTRIES * SLOT_BYTES, writable=False)
        self.gone = await self.register(RING_ENTRIES * ENTRY_BYTES, writable=True)
        self.on_write = self.look
        await self.set_up_clop()
        await self.set_up_ring()
        assert await self.read(0x400) == 1  # after all those writes, which no one waited for

    async def set_up_clop(self) -> None:
        await self.write(0x080, self.completions.address)
        await self.write(0x088, 4096 // ENTRY_BYTES - 1)
        await self.write(0x208, self.buffers.address)
        await self.write(0x210, self.index.address)
        await self.write(0x218, BUFFER_BYTES | BUFFERS << 32)
        await self.write(0x220, 2000 | PACKETS_PER_BUFFER << 48)
        await self.write(0x200, 1)

    async def set_up_ring(self) -> None:
        self.destination = random_destination(self.rng)
        fields = self.destination
        await self.write(0x050, int(IPv4Address(fields["address"])) | fields["port"] << 32 | fields["source_port"] << 48)
        await self.write(0x058, mac_number(fields["mac"]) | DESTINATION << 48 | 1 << 56)
        await self.write(0x408, self.ring.address)
        await self.write(0x410, self.gone.address)
        await self.write(0x418, (RING_ENTRIES - 1) | (RING_ENTRIES - 1) << 32)
        await self.write(0x420, 0)
        await self.write(0x400, 1)

    async def register(self, size: int, writable: bool) -> Region:
        pages = [self.memory(4096) for _ in range(-(-size // 4096))]
        self.rng.shuffle(pages)
        region = Region(self.regions_used, pages)
        for k, (address, _) in enumerate(pages):
            await self.write(0x068, address | 1 | (4 if writable else 2))
            await self.write(0x070, self.entries + k)
        await self.write(0x060, self.entries | len(pages) << 16 | 12 << 40 | 1 << 45 | region.number << 48)
        self.entries += len(pages)
        self.regions_used += 1
        return region

    # --- what the NIC wrote: looked at in the moment when a completion is there ---
    def look(self, address: int, data: bytes) -> None:
        if self.completions.offset_of(address) is not None:
            assert len(data) == ENTRY_BYTES, "a completion is one request"
            self.take_filled(Completion.read(data))
        elif self.gone.offset_of(address) is not None:
            found = Completion.read(data)
            assert found.sequence == len(self.sent) + 1
            self.sent.append((found.kind, found.tag))

    def take_filled(self, found: Completion) -> None:
        assert (found.kind, found.tag, found.sequence) == (Kind.BUFFER_FILLED, self.taken, self.taken + 1)
        assert found.buffer_index == self.taken % BUFFERS
        self.taken += 1
        self.lost += found.packets_lost
        self.events += found.event_count
        self.times_ns.append((found.first_packet_ns, found.last_packet_ns))
        for k in range(found.packet_count):
            number = found.buffer_index * PACKETS_PER_BUFFER + k
            packet = PacketRef.read(self.index.read(number * REF_BYTES, REF_BYTES))
            assert packet.offset + packet.bytes <= found.bytes
            payload = self.buffers.read(found.buffer_index * BUFFER_BYTES + packet.offset, packet.bytes)
            self.received.append((payload, packet.source))

    async def release(self) -> None:
        await self.write(0x228, self.taken)

    async def nic_counts(self, base: int, names: dict[str, int]) -> dict[str, int]:
        return {name: await self.read(base + 8 * number) for name, number in names.items()}

    # --- traffic ---
    async def send_frames(self, payloads: list[bytes], port: int = PORT) -> None:
        for payload in payloads:
            await self.send_frame(udp_frame(payload, port=port))

    async def send_frame(self, frame: bytes) -> None:
        """frame: without check sequence."""
        self.wire_in.send(with_fcs(frame))

    def post_packet(self, payload: bytes, tag: int) -> None:
        slot = self.rung % RING_ENTRIES
        self.payloads.write(slot * SLOT_BYTES, payload)
        self.rung += 1
        address = self.payloads.address + slot * SLOT_BYTES
        self.ring.write(slot * ENTRY_BYTES, TxDescriptor(address, len(payload), DESTINATION, tag, sequence=self.rung).packed())

    async def ring_doorbell(self) -> None:
        await self.write(0x420, self.rung)

    async def frames_out(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            assert await self.frame_out() == sent_frame(payload, self.destination).ljust(FRAME_BYTES_MIN, b"\0")

    async def frame_out(self) -> bytes:
        (seen,) = await self.wire_out.frames(1, 20_000 * self.word_cycles)
        frame = seen.frame[:-FCS_BYTES]
        assert (seen.bad, seen.frame) == (False, with_fcs(frame))
        return frame


def random_payloads(card: CardDriver, count: int) -> list[bytes]:
    sizes = [1, 8, 17, 64, 127, 128, 129, 1168, 1472]
    return [card.rng.randbytes(card.rng.choice([*sizes, card.rng.randint(1, 1472)])) for _ in range(count)]


async def both_ways(card: CardDriver, count: int) -> None:
    """So many packets in and out at the same time, with the driver returning buffers and ringing in between."""
    payloads, answers = random_payloads(card, count), random_payloads(card, count)
    before = len(card.received)
    out = cocotb.start_soon(card.frames_out(answers))
    sent = posted = 0
    while len(card.received) - before < count or posted < count:
        ahead = min(count, len(card.received) - before + BUFFERS // 2)  # so that there is always a buffer
        await card.send_frames(payloads[sent:ahead])
        sent = max(sent, ahead)
        while posted < count and card.rung - len(card.sent) < RING_ENTRIES:
            card.post_packet(answers[posted], posted)
            posted += 1
        await card.ring_doorbell()
        await card.release()
        await card.wait(100)
        assert card.cycle < 400_000 * card.word_cycles, f"{len(card.received)} received, {posted} posted"
    await out
    await card.wait_until(lambda: len(card.sent) == card.rung, 4000, "a completion for each descriptor")
    assert card.received[before:] == [(payload, SOURCE) for payload in payloads]
    assert card.sent[-count:] == [(Kind.PACKET_SENT, tag) for tag in range(count)]


async def receive_one(card: CardDriver) -> None:
    taken = card.taken
    await card.send_frames([card.rng.randbytes(100)])
    await card.wait_until(lambda: card.taken > taken, 8000, "a completion")
    await card.release()
    await card.wait(400)
