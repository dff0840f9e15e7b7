# SPDX-License-Identifier: Apache-2.0
"""rx_engine with its clocks, memory, driver and source, and how long packets at line rate take through it."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, Bench, pauses, random_numbers
from common.contract import PacketRef
from nic_driver import ClopSettings, Completion, Driver, Memory, Packet, Source

COUNTERS = ["count_stored", "drop_overflow", "drop_disabled", "drop_too_long", "drop_no_buffer", "drop_bad", "other_fault"]
LATENCY_CYCLES, SINGLE_CYCLES = 22, 3  # of the module; a payload of one word waits so much less


class NicBench(Bench):
    """The engine with its clocks, memory, driver and source. Bench counts from 0; a nanosecond here is a seventh of a cycle."""

    def __init__(self, dut: Any, clops: list[ClopSettings], bus_pauses: float = 0.0, word_pauses: float = 0.0) -> None:
        super().__init__(dut, COUNTERS, now=True, now_ns=True)
        self.rng = random_numbers()
        self.memory = Memory(self, pauses(self.rng, bus_pauses), PARAMETERS.get("PAYLOAD_BYTES_MAX", 256))
        self.driver = Driver(self, self.memory, clops, self.rng)
        self.source = Source(self, pauses(self.rng, word_pauses))
        self.seen: list[list[Completion]] = [[] for _ in clops]

    async def begin(self) -> None:
        self.dut.other_valid.value = self.dut.other_urgent.value = self.dut.region_write.value = self.dut.entry_write.value = 0
        await self.reset()
        await self.driver.set_up()

    def collect(self, release: bool = True) -> int:
        """Takes the completions that are there; returns how many."""
        count = 0
        while (found := self.driver.poll()) is not None:
            self.seen[found.clop].append(found)
            count += 1
            if release:
                self.driver.release(found.clop)
        return count

    async def consume(self) -> None:
        """Until all was sent."""
        while not self.source.idle:
            await self.wait(50)
            self.collect()

    async def settle(self, drain_cycles: int = 3000) -> None:
        """drain_cycles: what the FIFO may need to run empty; as it is, a full one."""
        await self.source.drain()
        await self.wait(drain_cycles)
        await self.driver.flush((1 << len(self.seen)) - 1)
        await self.wait(600)
        self.collect()
        assert int(self.dut.clop_holds.value) == 0

    def packets_of(self, clop: int) -> list[tuple[bytes, int]]:
        return [packet for completion in self.seen[clop] for packet in completion.packets]

    def random_packet(self, size: int, **fields: Any) -> Packet:
        return Packet(
            self.rng.randbytes(size), source=self.rng.randint(0, PacketRef.SOURCE_MASK), events=self.rng.randrange(1, 17), **fields
        )


async def write_besides(bench: NicBench, address: int, gap: int) -> None:
    """The other writer: completions of 64 bytes, one after another with `gap` cycles between."""
    dut, edge = bench.dut, RisingEdge(bench.dut.clk)
    while True:
        for word in range(4):
            dut.other_valid.value, dut.other_last.value = 1, int(word == 3)
            dut.other_address.value, dut.other_bytes.value = address, 64
            dut.other_data.value = word
            await edge
            while dut.other_ready.value == 0:
                await edge
        dut.other_valid.value = 0
        for _ in range(gap):
            await edge


def at_line_rate(packets: list[Packet]) -> list[Packet]:
    """Their gaps such that first words come as those of frames that follow each other without a pause."""
    due, ends = 0.0, 0
    for packet in packets:
        packet.gap = round(due) - ends
        ends = round(due) + -(-len(packet.data) // 8)
        due += (max(64, len(packet.data) + 46) + 20) / 8
    return packets


def latencies_of(bench: NicBench, packets: list[Packet]) -> list[tuple[int, int]]:
    """Of good packets that were stored in this order: from first word to first write, and from last word to last write."""
    regions = {page >> region.page_shift: c for c, region in enumerate(bench.driver.buffers) for page in region.pages}
    shifts = {region.page_shift for region in bench.driver.buffers}
    assert len(shifts) == 1, "pages of one size"
    (shift,) = shifts
    payload = [write for write in bench.memory.writes if write.address >> shift in regions]
    found, at = [], 0
    for packet in packets:
        while not packet.data.startswith(payload[at].data):  # of a packet that proved bad, or a footer
            at += 1
        pieces = [payload[at]]
        while sum(len(piece.data) for piece in pieces) < len(packet.data):
            at += 1
            pieces.append(payload[at])
        at += 1
        assert b"".join(piece.data for piece in pieces) == packet.data
        found.append((pieces[0].first_cycle - packet.first_cycle, pieces[-1].last_cycle - packet.last_cycle))
    return found


async def latencies(
    dut: Any, sizes: list[int], packets: int, settings: ClopSettings, besides: int | None = None, urgent: int = 0
) -> dict[int, set[tuple[int, int]]]:
    """By size: `latencies_of` packets that come at line rate. besides: the gap of another writer, `urgent` or not."""
    bench = NicBench(dut, [settings])
    await bench.begin()
    dut.other_urgent.value = urgent
    if besides is not None:
        scratch = await bench.driver.register(7, 4096, 12, 0)
        cocotb.start_soon(write_besides(bench, scratch.address(), besides))
    found: dict[int, set[tuple[int, int]]] = {}
    for size in sizes:
        sent = [bench.source.send(packet) for packet in at_line_rate([bench.random_packet(size) for _ in range(packets)])]
        del bench.memory.writes[:]
        await bench.consume()
        await bench.settle()
        found[size] = set(latencies_of(bench, sent))
    assert bench.counts["count_stored"] == packets * len(sizes) == sum(bench.counts.values())
    return found
