# SPDX-License-Identifier: Apache-2.0
"""A host behind the memory port of a node (host_port): one page of registered memory, CLOPs with their buffers, the TX ring; what the completions tell of is
read from memory."""

from collections import deque
from collections.abc import Callable

import cocotb
from cocotb.triggers import RisingEdge

from common.bench import Bench, never
from common.contract import Completion, Kind, PacketRef, TxDescriptor
from common.registers import Registers

BUS, MEMORY_BYTES = 0x4000_0000, 1 << 21
COMPLETIONS, GONE, RING, INDEX, PAYLOADS, BUFFERS = 0, 0x1000, 0x2000, 0x8000, 0x40000, 0x80000
BUFFER_BYTES, PACKETS_PER_BUFFER = 12288, 16
RING_ENTRIES, SLOT_BYTES = 16, 4096
ENTRY_BYTES, REF_BYTES = Completion.LAYOUT.size, PacketRef.LAYOUT.size


class Host:
    """received: of each packet its CLOP, source and payload, in the order of the completions; gone: kind and tag of each descriptor's completion.

    release() returns what was taken. write_pause: in which cycles memory takes nothing. buffers: of each CLOP.
    """

    def __init__(self, bench: Bench, clops: int = 4, buffers: int = 16) -> None:
        self.bench, self.dut, self.clops, self.buffers = bench, bench.dut, clops, buffers
        self.registers = Registers(bench)
        self.write_pause: Callable[[], bool] = never
        self.asked: deque[tuple[int, int, int]] = deque()
        self.dut.mem_write_ready.value = 1
        self.dut.mem_answer_valid.value = 0
        self.forget()
        cocotb.start_soon(self._take_writes())
        cocotb.start_soon(self._answer_reads())

    def forget(self) -> None:
        """As it is after a reset."""
        self.memory = bytearray(MEMORY_BYTES)
        self.received: list[tuple[int, int, bytes]] = []
        self.arrivals_ns: list[tuple[int, int]] = []  # of each buffer's first and last packet
        self.gone: list[tuple[int, int]] = []
        self.taken = [0] * self.clops
        self.completed = self.rung = self.lost = 0
        self.asked.clear()

    async def set_up(self, timeout_ns: int = 2000) -> None:
        write = self.registers.write
        await write(0x068, BUS | 7)
        await write(0x070, 0)
        await write(0x060, 1 << 16 | 21 << 40 | 1 << 45)
        await write(0x080, COMPLETIONS)
        await write(0x088, 0x1000 // ENTRY_BYTES - 1)
        for clop in range(self.clops):
            at = 0x40 * clop
            await write(0x208 + at, BUFFERS + clop * self.buffers * BUFFER_BYTES)
            await write(0x210 + at, INDEX + clop * self.buffers * PACKETS_PER_BUFFER * REF_BYTES)
            await write(0x218 + at, BUFFER_BYTES | self.buffers << 32)
            await write(0x220 + at, timeout_ns | PACKETS_PER_BUFFER << 48)
            await write(0x200 + at, 1)
        await write(0x408, RING)
        await write(0x410, GONE)
        await write(0x418, (RING_ENTRIES - 1) | (RING_ENTRIES - 1) << 32)
        await write(0x420, 0)
        await write(0x400, 1)

    async def release(self) -> None:
        for clop, taken in enumerate(self.taken):
            await self.registers.write(0x228 + 0x40 * clop, taken)

    async def post(self, payload: bytes, destination: int, tag: int) -> None:
        slot = self.rung % RING_ENTRIES
        self.rung += 1
        at, entry = PAYLOADS + slot * SLOT_BYTES, RING + slot * ENTRY_BYTES
        self.memory[at : at + len(payload)] = payload
        self.memory[entry : entry + ENTRY_BYTES] = TxDescriptor(at, len(payload), destination, tag, sequence=self.rung).packed()
        await self.registers.write(0x420, self.rung)

    async def _take_writes(self) -> None:
        dut, edge, valid = self.dut, RisingEdge(self.dut.clk), self.dut.mem_write_valid
        at, size, request, ready = 0, 0, bytearray(), True
        while True:
            if self.write_pause is never and ready and valid.value == 0:
                await RisingEdge(valid)
                continue
            if self.write_pause() == ready:
                ready = not ready
                dut.mem_write_ready.value = int(ready)
            await edge
            if dut.rst.value == 1 or valid.value == 0 or not ready:
                continue
            if dut.mem_write_first.value == 1:
                at, size, request = int(dut.mem_write_address.value), int(dut.mem_write_bytes.value), bytearray()
            keep = int(dut.mem_write_keep.value)
            skip = (keep & -keep).bit_length() - 1
            count = keep.bit_length() - skip
            assert keep == (1 << count) - 1 << skip
            request += int(dut.mem_write_data.value).to_bytes(16, "little")[skip : skip + count]
            if dut.mem_write_last.value == 1:
                assert len(request) == size
                self._land(at - BUS, bytes(request))

    def _land(self, at: int, data: bytes) -> None:
        assert 0 <= at <= MEMORY_BYTES - len(data), "a stray write"
        self.memory[at : at + len(data)] = data
        if COMPLETIONS <= at < COMPLETIONS + 0x1000:
            self._completed(Completion.read(data))
        elif GONE <= at < GONE + 0x1000:
            found = Completion.read(data)
            self.gone.append((found.kind, found.tag))

    def _completed(self, found: Completion) -> None:
        assert (found.kind, found.sequence) == (Kind.BUFFER_FILLED, self.completed + 1)
        self.completed += 1
        clop = found.clop
        assert found.buffer_index == self.taken[clop] % self.buffers
        self.taken[clop] += 1
        self.lost += found.packets_lost
        self.arrivals_ns.append((found.first_packet_ns, found.last_packet_ns))
        number = clop * self.buffers + found.buffer_index
        for k in range(found.packet_count):
            place = INDEX + (number * PACKETS_PER_BUFFER + k) * REF_BYTES
            ref = PacketRef.read(bytes(self.memory[place : place + REF_BYTES]))
            at = BUFFERS + number * BUFFER_BYTES + ref.offset
            self._received(clop, ref.source, at, bytes(self.memory[at : at + ref.bytes]))

    def _received(self, clop: int, source: int, at: int, payload: bytes) -> None:
        """at: where in memory."""
        self.received.append((clop, source, payload))

    async def _answer_reads(self) -> None:
        dut, edge, asks = self.dut, RisingEdge(self.dut.clk), self.dut.mem_read_valid
        dut.mem_read_ready.value = 1
        while True:
            if not self.asked and asks.value == 0 and dut.mem_answer_valid.value == 0:
                await RisingEdge(asks)
                continue
            await edge
            if dut.rst.value == 1:
                self.asked.clear()
            elif asks.value == 1:
                at, size = int(dut.mem_read_address.value) - BUS, int(dut.mem_read_bytes.value)
                self.asked.append((at, size, int(dut.mem_read_tag.value)))
            if not self.asked:
                dut.mem_answer_valid.value = 0
                continue
            at, size, tag = self.asked.popleft()
            dut.mem_answer_valid.value, dut.mem_answer_tag.value = 1, tag
            dut.mem_answer_data.value = int.from_bytes(self.memory[at : at + min(16, size)].ljust(16, b"\0"), "little")
            dut.mem_answer_last.value = int(size <= 16)
            if size > 16:
                self.asked.appendleft((at + 16, size - 16, tag))
