# SPDX-License-Identifier: Apache-2.0
"""nic_pcie as a card in a host: found by enumeration, set up through BAR0, frames in by XGMII or GMII and out of its TX ring, everything else in host memory."""

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, first_edge, random_numbers
from common.clocks import Domain
from common.contract import Completion, Kind, PacketRef, TxDescriptor
from common.counts import numbers_of
from common.frames import FCS_BYTES, FRAME_BYTES_MIN, LOCAL_IP, LOCAL_MAC, frame_of, mac_number, sent_frame, udp_frame, with_fcs
from common.pcie import PcieBench
from common.requests import answer_to, arp_request, echo_request
from common.sending import random_destination
from common.wires import GBPS, WIRE_CLOCK_PS, wire_sink, wire_source

MAGIC = 0x54454E414E
PORT, SOURCE = 6001, 9
MATCH = min(2, PARAMETERS.get("MATCH_ENTRIES", 16) - 1)
DESTINATION = min(3, PARAMETERS.get("DESTINATIONS", 16) - 1)
PAYLOAD_BYTES_MAX = PARAMETERS.get("FRAME_BYTES_MAX", 9022) - 46
BUFFERS, BUFFER_BYTES, PACKETS_PER_BUFFER = 16, 12288, 8
RING_ENTRIES, SLOT_BYTES = 16, 4096
OFFSET_BITS = PARAMETERS.get("OFFSET_BITS", 40)
ENTRY_BYTES, REF_BYTES = Completion.LAYOUT.size, PacketRef.LAYOUT.size  # a descriptor is as long as a completion
OWN_CLOCKS = bool(PARAMETERS.get("OWN_CLOCKS"))  # else the wire has the block's
WIRE_CLOCKS = ("rx_clk", "tx_clk") if OWN_CLOCKS else ()
STAGE_STATISTICS = bool(PARAMETERS.get("STAGE_STATISTICS", 1))
CYCLE_PS = PARAMETERS.get("CYCLE_PS", WIRE_CLOCK_PS)
WORD_CYCLES = (1 if GBPS == 10 else 8) * (2 if OWN_CLOCKS else 1)  # at most, of eight bytes on the wire
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


class Card(PcieBench):
    """The card with its driver. received: payloads with their source, as the completions tell of them when they are written."""

    def __init__(self, dut: Any, **host: Any) -> None:
        super().__init__(dut, random_numbers(), **host)
        if OWN_CLOCKS:
            rx, tx = (
                Domain(dut, clock, WIRE_CLOCK_PS * self.rng.uniform(0.9998, 1.0002), self.rng.random()) for clock in WIRE_CLOCKS
            )
            self.wire_in, self.wire_out = wire_source(rx), wire_sink(tx)
        else:
            self.wire_in, self.wire_out = wire_source(self), wire_sink(self)
        self.received: list[tuple[bytes, int]] = []
        self.lost = self.taken = self.rung = 0
        self.sent: list[tuple[int, int]] = []  # kind and tag of each completion of the ring
        self.entries = self.regions_used = 0

    async def begin(self) -> None:
        await super().begin()
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

    def post(self, payload: bytes, tag: int) -> None:
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
        (seen,) = await self.wire_out.frames(1, 20_000 * WORD_CYCLES)
        frame = seen.frame[:-FCS_BYTES]
        assert (seen.bad, seen.frame) == (False, with_fcs(frame))
        return frame


def random_payloads(card: Card, count: int) -> list[bytes]:
    sizes = [1, 8, 17, 64, 127, 128, 129, 1168, 1472]
    return [card.rng.randbytes(card.rng.choice([*sizes, card.rng.randint(1, 1472)])) for _ in range(count)]


async def both_ways(card: Card, count: int) -> None:
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
            card.post(answers[posted], posted)
            posted += 1
        await card.ring_doorbell()
        await card.release()
        await card.wait(100)
        assert card.cycle < 400_000 * WORD_CYCLES, f"{len(card.received)} received, {posted} posted"
    await out
    await card.wait_until(lambda: len(card.sent) == card.rung, 4000, "a completion for each descriptor")
    assert card.received[before:] == [(payload, SOURCE) for payload in payloads]
    assert card.sent[-count:] == [(Kind.PACKET_SENT, tag) for tag in range(count)]


@cocotb.test
async def packets_in_and_out_of_host_memory(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=256, latency_ns=(200, 600))
    await card.begin()
    await both_ways(card, 24 if SHORT else 200)
    assert card.lost == 0
    assert (await card.nic_counts(0x800, RX))["stored"] == len(card.received)
    assert (await card.nic_counts(0x900, TX))["sent"] == len(card.sent)
    card.expect_counts()


@cocotb.test
async def frames_at_line_rate_of_every_size(dut: Any) -> None:
    """Back to back, payloads of 128 B on the bus: its descriptors cost a cycle each, and the NIC's FIFO still never fills."""
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=128)
    await card.begin()
    total = 0
    for size in (18, 82, 1472) if SHORT else (1, 18, 19, 64, 82, 83, 129, 210, 1168, 1472, min(8900, PAYLOAD_BYTES_MAX)):
        count = 100 if size < 500 else 30 if size < 2000 else 6
        payloads = [card.rng.randbytes(size) for _ in range(count // 2 if SHORT else count)]
        total += len(payloads)
        cocotb.start_soon(card.send_frames(payloads))
        while (came := len(card.received)) < total:
            await card.release()
            await card.wait(40)
            assert len(card.received) > came or not card.wire_in.idle.is_set() or await settles(card, total), f"{size} B"
    assert (await card.nic_counts(0x800, RX))["stored"] == total
    assert card.lost == 0
    card.expect_counts()


async def settles(card: Card, total: int) -> bool:
    await card.wait(4000 * WORD_CYCLES)
    return len(card.received) == total


@cocotb.test
async def a_slow_host_with_small_payloads_that_pauses_and_mixes_answers(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=128, latency_ns=(200, 4000))
    await card.begin()
    card.pause(0.3)
    await both_ways(card, 24 if SHORT else 200)
    assert card.lost == 0
    assert card.overtaken, "answers came out of order"
    card.expect_counts()


@cocotb.test
async def reads_that_the_host_refuses_are_errors_in_their_turn(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, latency_ns=(200, 600))
    await card.begin()
    payloads = [card.rng.randbytes(600) for _ in range(6)]
    fates = {1: "ur", 3: "poison", 4: "ca"}
    spoiled = {card.payloads.pages[slot][0] + 128: fate for slot, fate in fates.items()}
    card.spoil = spoiled.get
    for tag, payload in enumerate(payloads):
        card.post(payload, tag)
    await card.ring_doorbell()
    await card.frames_out([payload for slot, payload in enumerate(payloads) if slot not in fates])
    await card.wait_until(lambda: len(card.sent) == len(payloads), 4000, "a completion for each")
    assert card.sent == [(Kind.ERROR if slot in fates else Kind.PACKET_SENT, slot) for slot in range(len(payloads))]
    counts = await card.nic_counts(0x900, TX)
    assert (counts["sent"], counts["unreadable"], counts["read_error"]) == (3, 3, 3)
    # The descriptors themselves: the ring stops, and goes on when it was disabled.
    card.spoil = lambda address: "ca" if card.ring.offset_of(address) is not None else None
    card.post(payloads[0], 6)
    await card.ring_doorbell()
    await card.wait(1500)
    assert await card.read(0x428) >> 33 & 1, "fault"
    card.spoil = lambda address: None
    await card.write(0x400, 0)
    card.rung, card.sent = 0, []
    await card.write(0x420, 0)
    await card.write(0x400, 1)
    card.post(payloads[2], 7)
    await card.ring_doorbell()
    await card.frames_out([payloads[2]])
    await card.wait_until(
        lambda: card.sent == [(Kind.PACKET_SENT, 7)], 4000, "its completion"
    )  # no test begins in the middle of a request
    card.expect_counts()


@cocotb.test
async def without_bus_master_frames_are_counted_and_then_it_goes_on(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, latency_ns=(200, 600))
    await card.begin()
    payloads = [card.rng.randbytes(1472) for _ in range(24)]
    await card.function.set_master(False)
    before = len(card.written)
    await card.send_frames(payloads)
    await card.wire_in.wait()
    await card.wait(200)
    counts = await card.nic_counts(0x800, RX)
    assert len(card.written) == before, "nothing may be written"
    assert counts["parsed"] == len(payloads)
    assert counts["overflow"] > 0, "more than the FIFO holds"
    await card.function.set_master()
    more = random_payloads(card, 6)
    for payload in more:
        await card.send_frames([payload])
        await card.wait(600)
        await card.release()
    await card.wire_in.wait()
    for _ in range(3):
        await card.wait(1000)
        await card.release()
    counts = await card.nic_counts(0x800, RX)
    assert counts["parsed"] == len(payloads) + len(more)
    assert counts["parsed"] == counts["stored"] + counts["overflow"] + counts["no_buffer"]
    assert len(card.received) == counts["stored"]
    left = iter([*payloads, *more])
    assert all(payload in left for payload, _ in card.received), "in order, as they were sent"
    assert [payload for payload, _ in card.received[-len(more) :]] == more


@cocotb.test
async def a_message_wakes_who_sleeps_and_the_completion_is_there(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, latency_ns=(200, 600))
    await card.begin()
    await card.function.msi_set_enable(False)
    await card.write(0x0C8, 1 << 32)
    await card.write(0x0D0, 0)
    await card.write(0x0C0, 1)
    await receive_one(card)
    assert card.interrupts == [], "messages are not enabled"
    await card.function.msi_set_enable(True)
    await card.wait_until(lambda: len(card.interrupts) == 1, 4000, "a message for the line that is up")
    await receive_one(card)
    assert len(card.interrupts) == 1, "one message for each time that it is armed"
    await card.write(0x0D0, 1)  # as if it had not seen the second
    await card.wait_until(lambda: len(card.interrupts) == 2, 4000, "a message at once")
    await card.write(0x0D0, 2)
    await receive_one(card)
    assert len(card.interrupts) == 3
    assert card.interrupts[-1] == len(card.written), "the completion was in memory before"
    card.expect_counts()


async def receive_one(card: Card) -> None:
    taken = card.taken
    await card.send_frames([card.rng.randbytes(100)])
    await card.wait_until(lambda: card.taken > taken, 8000, "a completion")
    await card.release()
    await card.wait(400)


@cocotb.test
async def requests_are_answered_among_packets_that_go_both_ways(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, latency_ns=(200, 600))
    await card.begin()
    rounds = 4 if SHORT else 30
    for tag in range(rounds):
        request = card.rng.choice([arp_request(), echo_request(card.rng.randbytes(card.rng.randint(0, 200)))])
        answer, payload = card.rng.randbytes(200), card.rng.randbytes(100)
        expected = {frame.ljust(FRAME_BYTES_MIN, b"\0") for frame in (answer_to(request), sent_frame(answer, card.destination))}
        card.post(answer, tag)
        await card.ring_doorbell()
        await card.send_frame(frame_of(request))
        await card.send_frames([payload])
        await card.wait_until(lambda: len(card.wire_out.seen) >= 2, 8000 * WORD_CYCLES, "both frames")
        assert {await card.frame_out(), await card.frame_out()} == expected
        await card.release()
    await card.wait_until(lambda: len(card.received) == rounds, 8000 * WORD_CYCLES, "all payloads")
    counts = await card.nic_counts(0x980, REPLY)
    assert counts["answered_arp"] + counts["answered_echo"] == counts["replied"] == rounds
    card.expect_counts()


@cocotb.test
async def the_sizes_are_those_of_its_parameters(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut)
    await card.begin()
    geometry, stages = await card.read(0x008), await card.read(0x0B8)
    sizes = [
        geometry >> low & mask for low, mask in ((0, 0xFF), (8, 0xFF), (16, 0xFF), (24, 0xFF), (32, 0xFFFF), (48, 0xFF), (56, 0xFF))
    ]
    names = {"CLOPS": 4, "MATCH_ENTRIES": 16, "DESTINATIONS": 16, "REGIONS": 16, "ENTRIES": 4096, "OFFSET_BITS": 40}
    assert sizes == [*(PARAMETERS.get(name, default) for name, default in names.items()), PAYLOAD_BYTES_MAX // 64]
    assert stages == (5 if STAGE_STATISTICS else 0) | 64 << 8


@(cocotb.test if STAGE_STATISTICS else lambda test: test)
async def the_latency_of_a_size_is_one_number(dut: Any) -> None:
    """As the NIC counts it, back to back: the stages of each packet add up to the time from the frame's start to its last word on the way to memory."""
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=256)
    await card.begin()
    assert await card.read(0x038) == 1000 * GBPS | CYCLE_PS << 32
    await card.write(0x0A0, 1)
    slowest = 0
    for size in (18, 1472) if SHORT else (1, 18, 64, 300, 1472, min(8900, PAYLOAD_BYTES_MAX)):
        before = len(card.received)
        count = 8
        await card.send_frames([card.rng.randbytes(size) for _ in range(count)])
        while len(card.received) < before + count:  # with two buffers the consumer gets no third for its age alone
            await card.wait(100)
            await card.release()
            assert card.cycle < 400_000 * WORD_CYCLES, f"{size} B"
        await card.write(0x0A0, 1)
        stages = []
        for stage in range(3):
            words = []
            for word in range(4):
                await card.write(0x0A8, word | stage << 8)
                words.append(await card.read(0x0B0))
            samples, least, most, _ = words
            assert samples == count
            spread = 3 if OWN_CLOCKS else int(GBPS == 10)
            assert most - least <= spread, "only which lane of XGMII a frame begins on may make a cycle, and a crossing two"
            stages.append(most)
        wire_ps = (max(size + 42, FRAME_BYTES_MIN) + FCS_BYTES) * (WIRE_CLOCK_PS // 8 if GBPS == 10 else WIRE_CLOCK_PS)
        wire_cycles = wire_ps // (CYCLE_PS if OWN_CLOCKS else WIRE_CLOCK_PS)
        slowest = max(slowest, sum(stages) - wire_cycles)
    print(f"figure: last byte to last word on the way to memory at {GBPS} Gb/s: at most {slowest} cycles", flush=True)
    assert slowest <= 64
