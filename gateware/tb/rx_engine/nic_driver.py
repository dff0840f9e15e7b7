# SPDX-License-Identifier: Apache-2.0
"""The other side of rx_engine: memory behind the bus with a page table that says what may be touched, and a driver that reads
completions as include/nanet/contract.hpp lays them out."""

import random
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import cocotb
from cocotb.triggers import Event, RisingEdge, with_timeout
from common import contract
from common.bench import Bench, never

REGIONS, OFFSET_BITS, ENTRIES = 8, 40, 2048
PAGE_SHIFTS = (12, 16, 21)
VALID, READABLE, WRITABLE, GPU = 1, 2, 4, 8
COMPLETION_BYTES, REF_BYTES = contract.Completion.LAYOUT.size, contract.PacketRef.LAYOUT.size


@dataclass
class Packet:
    """One payload on its way in. gap: idle cycles before its first word."""

    data: bytes
    clop: int = 0
    source: int = 0
    events: int = 0
    bad: bool = False
    gap: int = 0
    announced: int = 0  # bytes that its header spoke of, if it ends early (it is bad then)
    first_cycle: int = 0  # when its first word went in
    last_cycle: int = 0
    arrival_ns: int = 0
    start_cycle: int = 0
    parsed_cycle: int = 0


class Source:
    """Drives payload words, one a cycle within a packet unless pause says otherwise."""

    def __init__(self, bench: Bench, pause: Callable[[], bool] = never) -> None:
        self.bench, self.pause = bench, pause
        self.queue: deque[Packet] = deque()
        self.idle = True
        self.called, self.drained = Event(), Event()
        for name in ("tvalid", "tdata", "tlast", "tuser"):
            getattr(bench.dut, f"s_axis_{name}").value = 0
        cocotb.start_soon(self._run())

    def send(self, packet: Packet) -> Packet:
        self.queue.append(packet)
        self.idle = False
        self.drained.clear()
        self.called.set()
        return packet

    async def drain(self) -> None:
        if not self.idle:
            await with_timeout(self.drained.wait(), 2_000_000 * self.bench.clock_ps, "ps")

    async def _run(self) -> None:
        dut, edge = self.bench.dut, RisingEdge(self.bench.dut.clk)
        await edge
        while True:
            if not self.queue:
                self.idle = True
                self.drained.set()
                self.called.clear()
                await self.called.wait()
                await self.bench.to_edge()
                continue
            packet = self.queue.popleft()
            await self.bench.wait(packet.gap)
            for offset in range(0, len(packet.data), 8):
                while self.pause():
                    await edge
                last = offset + 8 >= len(packet.data)
                dut.s_axis_tdata.value = int.from_bytes(packet.data[offset : offset + 8], "little")
                dut.s_axis_tvalid.value = 1
                dut.s_axis_tlast.value = int(last)
                dut.s_axis_tuser.value = int(last and packet.bad)
                if offset == 0:
                    self._set_meta(packet)
                await edge
                packet.last_cycle = self.bench.cycle
                if offset == 0:
                    packet.first_cycle = self.bench.cycle
                dut.s_axis_tvalid.value = 0
                dut.s_axis_tlast.value = 0

    def _set_meta(self, packet: Packet) -> None:
        dut, cycle = self.bench.dut, self.bench.cycle
        packet.arrival_ns, packet.start_cycle, packet.parsed_cycle = cycle * 7, cycle - 20, cycle + 1
        dut.s_meta_bytes.value = packet.announced or len(packet.data)
        dut.s_meta_clop.value = packet.clop
        dut.s_meta_source.value = packet.source
        dut.s_meta_event_count.value = packet.events
        dut.s_meta_arrival_ns.value = packet.arrival_ns
        dut.s_meta_start_cycle.value = packet.start_cycle
        dut.s_meta_parsed_cycle.value = packet.parsed_cycle


@dataclass
class Write:
    """One request of the bus, with the cycles of its first and last word."""

    address: int
    data: bytes
    gpu: int
    first_cycle: int
    last_cycle: int


class Memory:
    """Takes the bus's requests. Whatever is outside the pages that were mapped writable is an error at once."""

    def __init__(self, bench: Bench, pause: Callable[[], bool] = never, payload_bytes_max: int = 256) -> None:
        self.bench, self.pause, self.payload_bytes_max = bench, pause, payload_bytes_max
        self.pages: dict[int, tuple[bytearray, int]] = {}  # by bus address of each 4 KiB: memory, gpu
        self.writes: list[Write] = []
        self.stopped = False
        cocotb.start_soon(self._run())

    def map(self, bus_address: int, size: int, gpu: int) -> None:
        for page in range(bus_address, bus_address + size, 4096):
            assert page not in self.pages
            self.pages[page] = (bytearray(4096), gpu)

    def read(self, bus_address: int, size: int) -> bytes:
        data = b""
        while size > 0:
            page, at = bus_address & ~4095, bus_address & 4095
            piece = min(size, 4096 - at)
            data += self.pages[page][0][at : at + piece]
            bus_address, size = bus_address + piece, size - piece
        return bytes(data)

    def _write(self, write: Write) -> None:
        page = write.address & ~4095
        assert page in self.pages, f"stray write to {write.address:#x}"
        memory, gpu = self.pages[page]
        at = write.address & 4095
        assert at + len(write.data) <= 4096, "a request crosses a page"
        assert write.address // self.payload_bytes_max == (write.address + len(write.data) - 1) // self.payload_bytes_max
        assert write.gpu == gpu, "wrong aperture"
        memory[at : at + len(write.data)] = write.data
        self.writes.append(write)

    async def _run(self) -> None:
        dut, edge = self.bench.dut, RisingEdge(self.bench.dut.clk)
        rst, m_ready, m_valid = dut.rst, dut.m_ready, dut.m_valid
        appears = RisingEdge(m_valid)
        open_write: Write | None = None
        bytes_left = 0
        was_ready = None
        while True:
            ready = not self.pause() and not self.stopped
            if ready is not was_ready:
                m_ready.value = int(ready)
                was_ready = ready
            if self.pause is never and open_write is None and m_valid.value == 0:
                await appears  # nothing happens before
                continue
            await edge
            if rst.value == 1:
                open_write = None
                continue
            if not ready or m_valid.value == 0:
                continue
            data = int(dut.m_data.value).to_bytes(16, "little")
            keep = int(dut.m_keep.value)
            lanes = [lane for lane in range(16) if keep >> lane & 1]
            assert lanes == list(range(lanes[0], lanes[-1] + 1)), f"keep {keep:016b} has a hole"
            if dut.m_first.value == 1:
                assert open_write is None, "a request begins within another"
                open_write = Write(int(dut.m_address.value), b"", int(dut.m_gpu.value), self.bench.cycle, 0)
                bytes_left = int(dut.m_bytes.value)
                assert lanes[0] == open_write.address % 16, "bytes not in the lanes of their address"
            assert open_write is not None, "words without a request"
            open_write.data += data[lanes[0] : lanes[-1] + 1]
            bytes_left -= len(lanes)
            if dut.m_last.value == 1:
                assert bytes_left == 0, f"a request is {bytes_left} bytes short"
                open_write.last_cycle = self.bench.cycle
                self._write(open_write)
                open_write = None


@dataclass
class Region:
    """Registered memory: pages of one size, anywhere on the bus."""

    number: int
    page_shift: int
    pages: list[int]  # bus addresses
    first_entry: int = 0

    def address(self, offset: int = 0) -> int:
        return self.number << OFFSET_BITS | offset

    def bus(self, offset: int) -> int:
        return self.pages[offset >> self.page_shift] + (offset & ((1 << self.page_shift) - 1))


@dataclass
class ClopSettings:
    buffer_count: int = 4
    buffer_bytes: int = 8192
    index_capacity: int = 64
    room_bytes: int = 64
    timeout_ns: int = 0
    footer: bool = False
    gpu: bool = False
    page_shift: int = 12


@dataclass
class Completion(contract.Completion):
    packets: list[tuple[bytes, int]] = field(default_factory=list)  # payload, source
    footers: list[tuple[int, ...]] = field(default_factory=list)


class Driver:
    """Sets CLOPs and pages up, polls the completion queue, checks what each completion says of itself."""

    def __init__(self, bench: Bench, memory: Memory, clops: list[ClopSettings], rng: random.Random) -> None:
        self.bench, self.memory, self.clops, self.rng = bench, memory, clops, rng
        self.next_bus = 0x10_0000_0000
        self.next_entry = 0
        self.consumed = [0] * len(clops)
        self.handed_over = [0] * len(clops)
        self.completions = 0
        self.queue_entries = 1 << (sum(clop.buffer_count for clop in clops)).bit_length()

    async def set_up(self) -> None:
        dut = self.bench.dut
        for name in ("enable", "flush", "footer"):
            getattr(dut, f"cfg_{name}").value = 0
        dut.region_write.value = 0
        dut.entry_write.value = 0
        dut.now_ns.value = 0
        self.queue = await self.register(0, self.queue_entries * COMPLETION_BYTES, 12, 0)
        self.buffers = [
            await self.register(2 * c + 1, clop.buffer_count * clop.buffer_bytes, clop.page_shift, int(clop.gpu))
            for c, clop in enumerate(self.clops)
        ]
        self.indexes = [
            await self.register(2 * c + 2, clop.buffer_count * clop.index_capacity * REF_BYTES, 12, 0)
            for c, clop in enumerate(self.clops)
        ]
        await self.set_up_clops()

    async def set_up_clops(self) -> None:
        dut = self.bench.dut
        address_bits = OFFSET_BITS + 3
        self._set("buffers", address_bits, [region.address() for region in self.buffers])
        self._set("index", address_bits, [region.address() for region in self.indexes])
        for name, bits in (
            ("buffer_bytes", 32),
            ("buffer_count", 17),
            ("index_capacity", 16),
            ("room_bytes", 16),
            ("timeout_ns", 32),
        ):
            self._set(name, bits, [getattr(clop, name) for clop in self.clops])
        self._set("footer", 1, [int(clop.footer) for clop in self.clops])
        self._set("consumed", 32, self.consumed)
        dut.cfg_completions.value = self.queue.address()
        dut.cfg_completion_mask.value = self.queue_entries - 1
        self.enable((1 << len(self.clops)) - 1)
        await self.bench.wait(4)

    def enable(self, mask: int) -> None:
        self.bench.dut.cfg_enable.value = mask

    async def flush(self, mask: int) -> None:
        self.bench.dut.cfg_flush.value = mask
        await self.bench.wait(1)
        self.bench.dut.cfg_flush.value = 0

    def _set(self, name: str, bits: int, values: list[int]) -> None:
        getattr(self.bench.dut, f"cfg_{name}").value = sum(
            (value & ((1 << bits) - 1)) << bits * c for c, value in enumerate(values)
        )

    async def register(self, number: int, size: int, page_shift: int, gpu: int) -> Region:
        count = -(-size >> page_shift)
        pages = list(range(count))
        self.rng.shuffle(pages)
        region = Region(number, page_shift, [self.next_bus + (page << page_shift) for page in pages])
        self.memory.map(self.next_bus, count << page_shift, gpu)
        self.next_bus += (count + 1) << 21  # never side by side
        first = self.next_entry
        for page in region.pages:
            await self.write_entry(self.next_entry, page | VALID | WRITABLE | gpu * GPU)
            self.next_entry += 1
        region.first_entry = first
        await self.write_region(region)
        return region

    async def write_region(self, region: Region, *, valid: bool = True) -> None:
        dut = self.bench.dut
        dut.region_index.value = region.number
        dut.region_valid.value = int(valid)
        dut.region_page_shift.value = region.page_shift
        dut.region_first.value = region.first_entry
        dut.region_count.value = len(region.pages)
        dut.region_write.value = 1
        await self.bench.wait(1)
        dut.region_write.value = 0

    async def write_entry(self, index: int, data: int) -> None:
        dut = self.bench.dut
        dut.entry_index.value = index
        dut.entry_data.value = data
        dut.entry_write.value = 1
        await self.bench.wait(1)
        dut.entry_write.value = 0

    def poll(self) -> Completion | None:
        """The next completion, if it is there, with its packets; all that it says of them is checked."""
        at = (self.completions % self.queue_entries) * COMPLETION_BYTES
        found = Completion.read(self.memory.read(self.queue.bus(at), COMPLETION_BYTES))
        if found.sequence != (self.completions + 1) & 0xFFFFFFFF:
            return None
        assert (found.reserved0, found.reserved1) == (0, 0), "reserved bytes"
        self.completions += 1
        clop = self.clops[found.clop]
        assert found.kind == contract.Kind.BUFFER_FILLED
        assert found.first_packet_low == found.first_packet_ns & 0xFFFFFFFF
        assert found.tag == self.handed_over[found.clop]
        assert found.buffer_index == found.tag % clop.buffer_count
        self.handed_over[found.clop] += 1
        self._read_packets(found, clop)
        return found

    def _read_packets(self, found: Completion, clop: ClopSettings) -> None:
        offset = found.buffer_index * clop.index_capacity * REF_BYTES
        index = self.indexes[found.clop]
        refs = b"".join(self.memory.read(index.bus(offset + REF_BYTES * k), REF_BYTES) for k in range(found.packet_count))
        end = 0
        strided = True
        for number, (at, size, source) in enumerate(contract.PacketRef.LAYOUT.iter_unpack(refs)):
            assert at == end, "packets lie one behind the other"
            assert at % 16 == 0
            payload = self.read_buffer(found.clop, found.buffer_index, at, size)
            found.packets.append((payload, source))
            end = at + (size + 15) // 16 * 16
            if clop.footer:
                found.footers.append(struct.unpack("<4Q", self.read_buffer(found.clop, found.buffer_index, end, 32)))
                end += 32
            strided = strided and size == len(found.packets[0][0]) and at == number * size
        assert found.bytes == end <= clop.buffer_bytes
        stride = len(found.packets[0][0]) if strided and not clop.footer else 0
        assert found.stride_bytes == stride, f"stride {found.stride_bytes}"

    def read_buffer(self, clop: int, buffer: int, at: int, size: int) -> bytes:
        region = self.buffers[clop]
        start = buffer * self.clops[clop].buffer_bytes + at
        pieces = []
        while size > 0:
            piece = min(size, 4096 - start % 4096)
            pieces.append(self.memory.read(region.bus(start), piece))
            start, size = start + piece, size - piece
        return b"".join(pieces)

    def release(self, clop: int, buffers: int = 1) -> None:
        self.consumed[clop] += buffers
        assert self.consumed[clop] <= self.handed_over[clop]
        self._set("consumed", 32, self.consumed)
