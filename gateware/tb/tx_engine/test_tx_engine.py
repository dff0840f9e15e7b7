# SPDX-License-Identifier: Apache-2.0
"""tx_engine against a model of memory whose answers come late, in pieces and out of order, and a driver that fills a TX ring as
include/nanet/contract.hpp lays it out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import CYCLE_NS, PARAMETERS, SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.contract import Completion, Kind, TxDescriptor
from common.streams import Packet, StreamSink

COUNTERS = ["count_sent", "count_refused", "count_unreadable", "count_read_fault", "count_read_error"]
ENTRY_BYTES = TxDescriptor.LAYOUT.size  # and of a completion
OFFSET_BITS = 40
RING, PAYLOADS, SENT = 0, 1, 2  # regions
VALID, READABLE, WRITABLE = 1, 2, 4
RING_ENTRIES = 128
SLOT_BYTES = 16384
GONE = 16  # packets that have left and wait for their completion


class Bus:
    """Answers read requests from `memory`: each after a random time, a word at a time, requests mixed. Takes completions."""

    def __init__(self, bench: "TxBench", latency: tuple[int, int], pause: Callable[[], bool]) -> None:
        self.bench, self.latency, self.pause = bench, latency, pause
        self.requests: list[dict[str, Any]] = []
        self.longest_queue = 0
        self.taken = self.descriptor_bytes = 0  # requests; bytes of those in the ring
        self.spoil: Callable[[int], bool] = lambda address: False
        self.silent = self.keeps_completions_waiting = False
        self.written: list[bytes] = []
        cocotb.start_soon(self._take())
        cocotb.start_soon(self._answer())
        cocotb.start_soon(self._take_completions())

    async def _take(self) -> None:
        dut, edge = self.bench.dut, RisingEdge(self.bench.dut.clk)
        rst, read_ready, read_valid = dut.rst, dut.read_ready, dut.read_valid
        was_ready = None
        while True:
            ready = not self.pause()
            if ready is not was_ready:
                read_ready.value = int(ready)
                was_ready = ready
            await edge
            if rst.value == 1:
                self.requests.clear()
            elif ready and read_valid.value == 1:
                address, size = int(dut.read_address.value), int(dut.read_bytes.value)
                assert address // 512 == (address + size - 1) // 512, "a request crosses a multiple of 512 B"
                data = self.bench.read_bus(address, size)
                self.taken += 1
                self.descriptor_bytes += size if address >> 32 == RING + 1 else 0
                tag = int(dut.read_tag.value)
                assert all(request["tag"] != tag for request in self.requests), "a tag is used twice"
                due = self.bench.cycle + self.bench.rng.randint(*self.latency)
                words = [data[at : at + 16] for at in range(0, size, 16)]
                self.requests.append({"tag": tag, "words": words, "due": due, "bad": self.spoil(address)})
                self.longest_queue = max(self.longest_queue, len(self.requests))

    async def _answer(self) -> None:
        dut, edge = self.bench.dut, RisingEdge(self.bench.dut.clk)
        dut.answer_valid.value = 0
        answering = False
        while True:
            cycle = self.bench.cycle if self.requests else 0
            ripe = [request for request in self.requests if request["due"] <= cycle]
            if ripe and not self.silent and not self.pause():
                request = self.bench.rng.choice(ripe)
                word = request["words"].pop(0)
                dut.answer_valid.value = 1
                answering = True
                dut.answer_tag.value = request["tag"]
                dut.answer_data.value = int.from_bytes(word, "little")
                dut.answer_last.value = int(not request["words"])
                dut.answer_error.value = int(not request["words"] and request["bad"])
                if not request["words"]:
                    self.requests.remove(request)
            elif answering:
                dut.answer_valid.value = 0
                answering = False
            await edge

    async def _take_completions(self) -> None:
        dut, edge = self.bench.dut, RisingEdge(self.bench.dut.clk)
        rst, write_ready, write_valid = dut.rst, dut.write_ready, dut.write_valid
        entry = b""
        was_ready = None
        while True:
            ready = not self.pause() and not self.keeps_completions_waiting
            if ready is not was_ready:
                write_ready.value = int(ready)
                was_ready = ready
            await edge
            if rst.value == 1:
                entry = b""
            elif ready and write_valid.value == 1:
                number = len(self.written)
                assert int(dut.write_address.value) == (SENT << OFFSET_BITS) + number % self.bench.sent_entries * ENTRY_BYTES
                entry += int(dut.write_data.value).to_bytes(16, "little")
                if len(entry) == ENTRY_BYTES:
                    self.written.append(entry)
                    entry = b""


class TxBench(Bench):
    sent_entries = 128

    def __init__(self, dut: Any, latency: tuple[int, int] = (60, 200), bus_pauses: float = 0.0, out_pauses: float = 0.0) -> None:
        super().__init__(dut, COUNTERS, now_ns=True)
        self.rng = random_numbers()
        self.bus = Bus(self, latency, pauses(self.rng, bus_pauses))
        self.out = Scoreboard("packets")
        self.packets: list[Packet] = []
        self.left_ns: list[int] = []  # of all that went
        pause = pauses(self.rng, out_pauses) if out_pauses else never
        StreamSink(self, "m_axis", self.take, pause, meta=["m_meta_bytes", "m_meta_destination"])
        self.ring = bytearray(RING_ENTRIES * ENTRY_BYTES)
        self.payloads = bytearray(RING_ENTRIES * SLOT_BYTES)
        self.rung = 0
        self.expected: list[tuple[int, int]] = []  # kind, tag of each completion
        self.pages: dict[int, tuple[bytearray, int]] = {}

    def take(self, packet: Packet) -> None:
        assert len(packet.data) == packet.meta["m_meta_bytes"]
        self.packets.append(packet)
        self.left_ns.append(CYCLE_NS * (packet.last_cycle - 1))  # as now_ns stood in that cycle
        self.out.take((packet.data, packet.meta["m_meta_destination"]))

    async def begin(self) -> None:
        self.dut.cfg_enable.value = 0
        self.dut.region_write.value = 0
        self.dut.entry_write.value = 0
        self.dut.cfg_doorbell.value = 0
        await self.reset()
        self.entry_of: dict[int, int] = {}
        self.next_entry = 0
        await self.register(RING, self.ring)
        await self.register(PAYLOADS, self.payloads)
        dut = self.dut
        dut.cfg_ring.value = RING << OFFSET_BITS
        dut.cfg_ring_mask.value = RING_ENTRIES - 1
        dut.cfg_completions.value = SENT << OFFSET_BITS
        dut.cfg_completion_mask.value = self.sent_entries - 1
        await self.wait(1)
        dut.cfg_enable.value = 1
        await self.wait(4)

    async def begin_anew(self) -> None:
        """As a driver does it: disabled, then enabled with a doorbell of 0."""
        dut = self.dut
        dut.cfg_enable.value = 0
        await self.wait(2)
        dut.cfg_doorbell.value = 0
        await self.wait(2)
        dut.cfg_enable.value = 1
        await self.wait(2)
        self.forget()

    def forget(self) -> None:
        """Descriptors are numbered from 0 again."""
        self.rung = self.bus.descriptor_bytes = 0
        for what in (self.expected, self.bus.written, self.left_ns, self.packets):
            what.clear()

    async def register(self, number: int, memory: bytearray) -> None:
        count = -(-len(memory) // 4096)
        first = self.next_entry
        for page in range(count):
            bus = (number + 1) << 32 | page << 13  # never side by side
            self.pages[bus] = (memory, page * 4096)
            await self.write_entry(first + page, bus | VALID | READABLE)
        self.entry_of[number] = first
        self.next_entry += count
        dut = self.dut
        dut.region_index.value, dut.region_valid.value, dut.region_page_shift.value = number, 1, 12
        dut.region_first.value, dut.region_count.value, dut.region_write.value = first, count, 1
        await self.wait(1)
        dut.region_write.value = 0

    async def write_entry(self, index: int, data: int) -> None:
        dut = self.dut
        dut.entry_index.value, dut.entry_data.value, dut.entry_write.value = index, data, 1
        await self.wait(1)
        dut.entry_write.value = 0

    def read_bus(self, address: int, size: int) -> bytes:
        page, at = address & ~4095, address & 4095
        assert page in self.pages, f"stray read of {address:#x}"
        assert at + size <= 4096, "a request crosses a page"
        memory, base = self.pages[page]
        return bytes(memory[base + at : base + at + size]).ljust(size, b"\0")

    async def room(self) -> None:
        if self.rung - len(self.bus.written) == RING_ENTRIES:
            self.ring_doorbell()
        await self.wait_until(lambda: self.rung - len(self.bus.written) < RING_ENTRIES, 100_000, "room in the ring")

    async def post(self, size: int, destination: int = 0, goes: bool = True, wrong: dict[str, int] | None = None) -> int:
        """Writes a descriptor and its payload, without ringing. wrong: fields that are not what they should be. Returns its tag."""
        await self.room()
        slot = self.rung % RING_ENTRIES
        payload = self.rng.randbytes(size)
        at = slot * SLOT_BYTES
        self.payloads[at : at + size] = payload
        tag = self.rng.getrandbits(64)
        entry = TxDescriptor((PAYLOADS << OFFSET_BITS) + at, size, destination, tag, sequence=self.rung + 1)
        self.ring[slot * ENTRY_BYTES : (slot + 1) * ENTRY_BYTES] = replace(entry, **(wrong or {})).packed()
        if goes and not wrong:
            self.out.expect((payload, destination))
        self.expected.append((Kind.PACKET_SENT if goes and not wrong else Kind.ERROR, tag))
        self.rung += 1
        return tag

    def ring_doorbell(self) -> None:
        self.dut.cfg_doorbell.value = self.rung & 0xFFFFFFFF

    async def settle(self) -> None:
        self.ring_doorbell()
        await self.wait_until(lambda: len(self.bus.written) == self.rung, 200_000, "a completion for each descriptor")
        await self.wait(10)
        assert int(self.dut.consumed.value) == self.rung
        assert int(self.dut.busy.value) == 0
        self.out.finish()
        self.check_completions()

    def check_completions(self) -> None:
        went = iter(self.left_ns)
        for number, (entry, (kind, tag)) in enumerate(zip(self.bus.written, self.expected, strict=True)):
            found = Completion.read(entry)
            left_ns = next(went) if kind == Kind.PACKET_SENT else 0
            assert found == Completion(last_packet_ns=left_ns, tag=tag, kind=kind, sequence=number + 1), f"completion {number}"


@cocotb.test
async def every_descriptor_becomes_a_packet_and_a_completion(dut: Any) -> None:
    bench = TxBench(dut, bus_pauses=0.2, out_pauses=0.2)
    await bench.begin()
    for _ in range(100 if SHORT else 1000):
        size = bench.rng.choice([1, 7, 8, 9, 15, 16, 17, 64, 511, 512, 513, 1472, bench.rng.randrange(1, 9001)])
        await bench.post(size, bench.rng.randrange(16))
        if bench.rng.random() < 0.3:
            bench.ring_doorbell()
            await bench.wait(bench.rng.randrange(1, 600))
    await bench.settle()
    bench.expect_counts(count_sent=bench.rung)
    assert bench.bus.longest_queue > 4, "requests overlap"


@cocotb.test
async def descriptors_that_are_wrong_are_errors_in_their_turn(dut: Any) -> None:
    bench = TxBench(dut)
    await bench.begin()
    wrong = [
        {"bytes": 0},
        {"bytes": 9001},
        {"destination": 16},
        {"sequence": 0},
        {"sequence": 1000},
        {"address": (PAYLOADS << OFFSET_BITS) + 8},
    ]
    for fields in wrong:
        await bench.post(100, 1)
        await bench.post(200, 2, wrong=fields)
    await bench.post(300, 3)
    await bench.settle()
    bench.expect_counts(count_sent=len(wrong) + 1, count_refused=len(wrong))


@cocotb.test
async def payloads_that_cannot_be_read_are_errors_in_their_turn(dut: Any) -> None:
    bench = TxBench(dut)
    await bench.begin()
    await bench.post(1000, 1)
    third = (PAYLOADS + 1) << 32 | (2 * SLOT_BYTES // 4096) << 13
    bench.bus.spoil = lambda address: address == third + 512  # an error within the payload
    await bench.post(2000, 2)
    await bench.post(2000, 3, goes=False)
    # The second page of slot 3 is not there.
    await bench.write_entry(bench.entry_of[PAYLOADS] + 3 * SLOT_BYTES // 4096 + 1, 0)
    await bench.post(6000, 4, goes=False)
    await bench.post(60, 5)
    await bench.settle()
    bench.expect_counts(count_sent=3, count_unreadable=2, count_read_fault=4, count_read_error=1)


@cocotb.test
async def a_ring_that_cannot_be_read_stops_and_begins_anew(dut: Any) -> None:
    bench = TxBench(dut)
    await bench.begin()
    await bench.post(100)
    await bench.settle()
    await bench.write_entry(bench.entry_of[RING], 0)
    await bench.post(100, goes=False)
    bench.ring_doorbell()
    await bench.wait(500)
    assert int(dut.ring_fault.value) == 1
    assert len(bench.bus.written) == 1
    dut.cfg_enable.value = 0
    await bench.wait(10)
    assert int(dut.ring_fault.value) == 0
    assert int(dut.consumed.value) == 0
    await bench.write_entry(bench.entry_of[RING], (RING + 1) << 32 | VALID | READABLE)
    await bench.begin_anew()
    for _ in range(3):
        await bench.post(500)
    await bench.settle()


@cocotb.test
async def completions_that_cannot_be_written_hold_the_packets_up(dut: Any) -> None:
    """As many packets leave as completions can wait, and no more; nothing is lost when the way is free again."""
    bench = TxBench(dut)
    await bench.begin()
    for _ in range(2):
        sent = len(bench.packets)
        bench.bus.keeps_completions_waiting = True
        for _ in range(GONE + 9):
            await bench.post(bench.rng.randrange(1, 200))
        bench.ring_doorbell()
        await bench.wait(3000)
        assert len(bench.packets) - sent == GONE
        bench.bus.keeps_completions_waiting = False
        await bench.settle()
    bench.expect_counts(count_sent=2 * (GONE + 9))


@cocotb.test
async def a_ring_disabled_in_flight_ends_what_it_began(dut: Any) -> None:
    """It stays busy until the last completion is written, forgets nothing before, and begins at 0 after it."""
    bench = TxBench(dut)
    await bench.begin()
    for held in (1, GONE):
        bench.bus.keeps_completions_waiting = True
        for _ in range(held):
            await bench.post(bench.rng.randrange(1, 200))
        bench.ring_doorbell()
        await bench.wait_until(lambda held=held: len(bench.packets) == held, 3000, "the packets")
        dut.cfg_enable.value = 0
        await bench.wait(50)
        assert (int(dut.busy.value), int(dut.consumed.value), len(bench.bus.written)) == (1, 0, 0)
        bench.bus.keeps_completions_waiting = False
        await bench.wait_until(lambda: int(dut.busy.value) == 0, 8 * held, "the completions")
        assert len(bench.bus.written) == held
        await bench.wait(2)
        assert int(dut.consumed.value) == 0
        bench.check_completions()
        await bench.begin_anew()


@cocotb.test
async def a_cycle_disabled_is_enough_to_begin_anew(dut: Any) -> None:
    """What stood in registers of the ring before does not count any more: nothing is read, and nothing is wrong."""
    bench = TxBench(dut)
    await bench.begin()
    for count in (3, 8, 20):
        for _ in range(count):
            await bench.post(64)
        await bench.settle()
        requests = bench.bus.taken
        dut.cfg_enable.value = dut.cfg_doorbell.value = 0
        await bench.wait(1)
        dut.cfg_enable.value = 1
        await bench.wait(40)
        assert (bench.bus.taken, int(dut.ring_fault.value), int(dut.consumed.value)) == (requests, 0, 0)
        bench.forget()


@cocotb.test
async def nothing_is_asked_for_beyond_the_ring(dut: Any) -> None:
    """A doorbell further than the ring has room for, or backwards: the ring stops before it reads a descriptor for it, and is as new when enabled again."""
    bench = TxBench(dut)
    await bench.begin()
    for doorbell in (RING_ENTRIES + 1, RING_ENTRIES + 9, -1, 1 << 31):
        requests = bench.bus.taken
        dut.cfg_doorbell.value = doorbell & 0xFFFFFFFF
        await bench.wait(100)
        assert (int(dut.ring_fault.value), int(dut.busy.value)) == (1, 0)
        assert bench.bus.taken == requests, "it read a descriptor"
        await bench.begin_anew()
        await bench.post(100)
        await bench.settle()
        await bench.begin_anew()
    for _ in range(RING_ENTRIES):
        await bench.post(20)
    await bench.settle()


@cocotb.test
async def after_a_batch_that_cannot_be_read_nothing_is_sent(dut: Any) -> None:
    bench = TxBench(dut)
    await bench.begin()
    bad = (RING + 1) << 32 | 8 * ENTRY_BYTES
    bench.bus.spoil = lambda address: address == bad
    for number in range(32):
        await bench.post(100, goes=number < 8)
    bench.ring_doorbell()
    await bench.wait(4000)
    assert (int(dut.ring_fault.value), int(dut.busy.value)) == (1, 0)
    bench.expected = bench.expected[:8]
    assert len(bench.bus.written) == 8
    bench.check_completions()


@cocotb.test
async def a_doorbell_is_a_read_three_cycles_later(dut: Any) -> None:
    """Latencies as the contract has them, whatever the entry; reads of descriptors are never more than there are places for."""
    bench = TxBench(dut, latency=(20, 20))
    await bench.begin()
    for count in (1, 2, 5, 8, 32):
        for _ in range(count):
            await bench.post(64)
        bench.bus.silent = True
        bench.ring_doorbell()
        rung, before = bench.cycle, bench.bus.taken
        await bench.wait_until(lambda before=before: bench.bus.taken > before, 20, "a request")
        # Three to tx_ring's request, then one of dma_read and four of its page table.
        assert bench.cycle - rung <= 10, bench.cycle - rung
        await bench.wait(100)
        asked = bench.bus.descriptor_bytes // ENTRY_BYTES
        assert asked == bench.rung, "all, as there is room for 32"
        bench.bus.silent = False
        await bench.settle()
    bench.bus.silent = True
    for _ in range(RING_ENTRIES - 8):
        await bench.post(64)
    bench.ring_doorbell()
    await bench.wait(200)
    assert bench.bus.descriptor_bytes // ENTRY_BYTES - int(dut.consumed.value) == 32
    bench.bus.silent = False
    await bench.settle()


@cocotb.test
async def an_answer_that_never_comes_is_told(dut: Any) -> None:
    bench = TxBench(dut)
    await bench.begin()
    bench.bus.silent = True
    await bench.post(100, goes=False)
    bench.ring_doorbell()
    await bench.wait(PARAMETERS["TIMEOUT_CYCLES"] + 200)
    assert int(dut.read_stuck.value) == 1
    bench.bus.silent = False
    await bench.reset()
    assert int(dut.read_stuck.value) == 0


@cocotb.test
async def ten_gigabits_in_spite_of_a_bus_a_microsecond_away(dut: Any) -> None:
    """Answers after 156 cycles, a ring that is kept full: the words that leave are as many as 10 Gb/s asks for, at every size."""
    bench = TxBench(dut, latency=(156, 156))
    await bench.begin()
    for size in (64, 1472) if SHORT else (18, 64, 256, 1472, 8972):
        count = 150 if SHORT else 400
        before = len(bench.packets)
        for _ in range(count):
            await bench.post(size)
            bench.ring_doorbell()
        await bench.settle()
        steady = bench.packets[before + 50 :]
        cycles = steady[-1].last_cycle - steady[0].last_cycle
        wire_bytes = max(64, size + 46) + 20
        needed = (len(steady) - 1) * wire_bytes / 8
        dut._log.warning("%d B: %.2f of line rate", size, needed / cycles)
        if PARAMETERS["TAGS"] >= 32 or size > 1000:  # eight requests of a small packet each are too few for a microsecond
            assert cycles <= needed, f"{size} B: {cycles} cycles for {needed:.0f} at line rate"
