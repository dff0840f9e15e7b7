# SPDX-License-Identifier: Apache-2.0
"""pcie_us between a model of the NIC's requests and a PCIe host: bytes, order, answers and registers, whatever the host does in between."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpType
from cocotbext.pcie.core.utils import PcieId
from common.bench import PARAMETERS, SHORT, first_edge, pauses, random_numbers
from common.pcie import PcieBench

WRITE_BYTES = PARAMETERS.get("WRITE_REQUEST_BYTES_MAX", 256)
READ_BYTES = PARAMETERS.get("READ_REQUEST_BYTES_MAX", 128)
TAGS = 32
NO_REGISTER = 0x7F8
AREA_BYTES = 1 << 16
WRITE_DELAY_CYCLES = 2


class AdapterBench(PcieBench):
    """Drives mem_write_* and mem_read_*, collects answers, and has registers behind m_axil_*: a dictionary by offset."""

    def __init__(self, dut: Any, share: float = 0.0, **host: Any) -> None:
        self.requests: deque[tuple[int, bytes]] = deque()
        self.reads: deque[tuple[int, int]] = deque()
        self.writing = False
        self.asked: dict[int, tuple[int, int]] = {}  # by tag: address, bytes
        self.words: dict[int, list[bytes]] = {}
        self.answers: list[tuple[int, int, bytes, bool]] = []  # address, bytes, data, whether an error
        self.registers: dict[int, int] = {}
        self.free = deque(range(TAGS))
        dut.mem_write_valid.value = dut.mem_read_valid.value = dut.irq.value = 0
        dut.m_axil_bvalid.value = dut.m_axil_rvalid.value = 0
        super().__init__(dut, random_numbers(), **host)
        self.share = share
        for run in (self._write, self._read, self._collect, self._registers_written, self._registers_read):
            cocotb.start_soon(run())

    async def begin(self) -> None:
        await super().begin()
        self.area, self.area_bytes = self.memory(AREA_BYTES)
        self.area_bytes[:] = self.rng.randbytes(AREA_BYTES)
        self.expected = bytearray(self.area_bytes)
        if self.share:
            self.pause(self.share)

    def post(self, at: int, data: bytes) -> None:
        """A write at this place of the area, one request."""
        self.requests.append((self.area + at, data))
        self.expected[at : at + len(data)] = data

    async def _write(self) -> None:
        dut, edge, pause = self.dut, RisingEdge(self.dut.clk), pauses(self.rng, self.share)
        while True:
            self.writing = bool(self.requests)
            if not self.writing:
                dut.mem_write_valid.value = 0
                await edge
                continue
            address, data = self.requests.popleft()
            padded = bytes(address % 16) + data
            padded += self.rng.randbytes(-len(padded) % 16)
            for at in range(0, len(padded), 16):
                while pause():
                    dut.mem_write_valid.value = 0
                    await edge
                dut.mem_write_valid.value = 1
                dut.mem_write_first.value, dut.mem_write_last.value = int(at == 0), int(at + 16 == len(padded))
                # Only what the first word says of the request counts.
                dut.mem_write_address.value = address if at == 0 else self.rng.getrandbits(64)
                dut.mem_write_bytes.value = len(data) if at == 0 else self.rng.getrandbits(8)
                dut.mem_write_data.value = int.from_bytes(padded[at : at + 16], "little")
                await edge
                while dut.mem_write_ready.value == 0:
                    await edge

    async def _read(self) -> None:
        dut, edge, pause = self.dut, RisingEdge(self.dut.clk), pauses(self.rng, self.share)
        while True:
            if not self.reads or not self.free or pause():
                dut.mem_read_valid.value = 0
                await edge
                continue
            address, size = self.reads.popleft()
            tag = self.free.popleft()
            self.asked[tag], self.words[tag] = (address, size), []
            dut.mem_read_valid.value = 1
            dut.mem_read_address.value, dut.mem_read_bytes.value, dut.mem_read_tag.value = address, size, tag
            await edge
            while dut.mem_read_ready.value == 0:
                await edge

    async def _collect(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        while True:
            await edge
            if dut.mem_answer_valid.value == 0 or dut.rst.value == 1:
                continue
            tag = int(dut.mem_answer_tag.value)
            address, size = self.asked[tag]
            self.words[tag].append(int(dut.mem_answer_data.value).to_bytes(16, "little"))
            last = len(self.words[tag]) == -(-size // 16)
            assert int(dut.mem_answer_last.value) == last, "as many words as were asked for"
            assert last or int(dut.mem_answer_error.value) == 0
            if last:
                self.answers.append((address, size, b"".join(self.words[tag])[:size], bool(dut.mem_answer_error.value)))
                del self.asked[tag]
                self.free.append(tag)

    async def _registers_written(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        address = data = None
        dut.m_axil_awready.value = dut.m_axil_wready.value = 1
        while True:
            await edge
            if dut.m_axil_awvalid.value == 1:
                address = int(dut.m_axil_awaddr.value)
            if dut.m_axil_wvalid.value == 1:
                data = int(dut.m_axil_wdata.value), int(dut.m_axil_wstrb.value)
            if address is None or data is None:
                continue
            await self.wait(self.rng.randrange(16))
            mask = sum(0xFF << 8 * lane for lane in range(8) if data[1] >> lane & 1)
            if address != NO_REGISTER:
                self.registers[address] = self.registers.get(address, 0) & ~mask | data[0] & mask
            dut.m_axil_bresp.value, dut.m_axil_bvalid.value = 2 * (address == NO_REGISTER), 1
            await edge
            dut.m_axil_bvalid.value = 0
            address = data = None

    async def _registers_read(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        dut.m_axil_arready.value = 1
        while True:
            await edge
            if dut.m_axil_arvalid.value == 0:
                continue
            address = int(dut.m_axil_araddr.value)
            dut.m_axil_arready.value = 0
            await self.wait(self.rng.randrange(1, 6))
            dut.m_axil_rdata.value, dut.m_axil_rresp.value = self.registers.get(address, 0), 2 * (address == NO_REGISTER)
            dut.m_axil_rvalid.value = 1
            await edge
            while dut.m_axil_rready.value == 0:
                await edge
            dut.m_axil_rvalid.value, dut.m_axil_arready.value = 0, 1

    def random_write(self) -> None:
        start = self.rng.randrange(0, AREA_BYTES, 8)
        room = WRITE_BYTES - start % WRITE_BYTES
        size = self.rng.choice([1, 8, room, self.rng.randint(1, room), self.rng.randint(1, min(room, 24))])
        self.post(start, self.rng.randbytes(min(size, room)))

    def random_read(self) -> int:
        start = self.rng.randrange(0, AREA_BYTES, 16)
        room = READ_BYTES - start % READ_BYTES
        self.reads.append((self.area + start, self.rng.choice([room, self.rng.randint(1, room)])))
        return self.reads[-1][0]

    async def settle(self) -> None:
        posted = self.expected
        await self.wait_until(lambda: not self.requests and self.area_bytes == posted, 40_000, "all writes in memory")
        await self.wait_until(lambda: not self.reads and not self.asked, 40_000, "all reads answered")
        await self.wait(60)

    def check_order(self, sent: list[tuple[int, bytes]]) -> None:
        """Bytes and their order: pieces may be cut, at multiples of the payload, and not be merged or swapped."""
        pieces = iter(self.written)
        for address, data in sent:
            at = 0
            while at < len(data):
                found, piece = next(pieces)
                assert (found, piece) == (address + at, data[at : at + len(piece)])
                at += len(piece)
                assert at == len(data) or (found + len(piece)) % self.payload_bytes == 0
        assert next(pieces, None) is None


async def started(dut: Any, share: float = 0.0, **host: Any) -> AdapterBench:
    await first_edge(dut)
    bench = AdapterBench(dut, share, **host)
    await bench.begin()
    return bench


@cocotb.test
async def writes_of_every_place_and_length_land_in_order(dut: Any) -> None:
    bench = await started(dut, 0.3, payload_bytes=128)
    for start in range(0, 32, 8):
        for size in range(1, 41):
            bench.post(start + size * 256, bench.rng.randbytes(size))
    for _ in range(150 if SHORT else 2000):
        bench.random_write()
    sent = list(bench.requests)
    await bench.settle()
    bench.check_order(sent)


@cocotb.test
async def larger_payloads_are_used_where_the_host_allows_them(dut: Any) -> None:
    bench = await started(dut, payload_bytes=512)
    for start in (0, 8, 1016, 2048):
        bench.post(start, bench.rng.randbytes(WRITE_BYTES - start % WRITE_BYTES))
    sent = list(bench.requests)
    await bench.settle()
    bench.check_order(sent)
    assert len(bench.written) == len(sent)


@cocotb.test
async def a_write_leaves_two_cycles_after_it_is_whole(dut: Any) -> None:
    bench = await started(dut)
    for size in (8, 16, 128, WRITE_BYTES):
        bench.post(0, bench.rng.randbytes(size))
        await bench.wait_until(
            lambda: int(dut.mem_write_valid.value) == 1 and int(dut.mem_write_last.value) == 1, 100, "its last word"
        )
        whole = bench.cycle
        await bench.wait_until(lambda: int(dut.s_axis_rq_tvalid.value) == 1, 100, "its descriptor")
        assert bench.cycle - whole == WRITE_DELAY_CYCLES
        await bench.settle()


@cocotb.test
async def reads_are_answered_however_the_host_cuts_and_mixes_them(dut: Any) -> None:
    bench = await started(dut, 0.2, payload_bytes=128)
    count = 300 if SHORT else 3000
    for _ in range(count):
        bench.random_read()
    await bench.settle()
    assert len(bench.answers) == count
    for address, size, data, error in bench.answers:
        assert not error
        at = address - bench.area
        assert data == bench.area_bytes[at : at + size]
    assert bench.most_under_way > TAGS // 2, "reads overlap"
    assert bench.overtaken, "answers came out of order"
    bench.expect_counts()


@cocotb.test
async def reads_and_writes_take_turns(dut: Any) -> None:
    bench = await started(dut)
    reads_before: list[int] = []
    bench.on_write = lambda address, data: reads_before.append(bench.read_count)
    bench.device.rq_sink.pause = True
    for at in range(0, 24 * 128, 128):
        bench.post(at, bench.rng.randbytes(16))
        bench.reads.append((bench.area + AREA_BYTES // 2 + at, 64))
    await bench.wait(200)
    bench.device.rq_sink.pause = False
    await bench.settle()
    assert all(abs(reads - writes) <= 3 for writes, reads in enumerate(reads_before)), reads_before


@cocotb.test
async def a_bad_completion_spoils_its_read_alone(dut: Any) -> None:
    bench = await started(dut, 0.2)
    fates: dict[int, str] = {}
    bench.spoil = fates.get

    def unreadable(frame: Any) -> bool:  # the first completion of such a read
        address = bench.asked[frame.data[2] & 0xFF][0]
        return fates.get(address) == "unreadable" and (frame.data[0] ^ address) & 0xFFF == 0

    bench.discontinue(bench.device.rc_source, 42, unreadable)
    for _ in range(100 if SHORT else 1000):
        address = bench.random_read()
        if bench.rng.random() < 0.3:
            fates[address] = bench.rng.choice(["ur", "ca", "poison", "unreadable"])
    elsewhere, _ = bench.memory(AREA_BYTES)
    for size in (33, 36, 52, 64):  # as many words as without the cut
        bench.reads.append((elsewhere + 512 * size, size))
        fates[elsewhere + 512 * size] = "torn"
    count = len(bench.reads)
    await bench.settle()
    assert len(bench.answers) == count
    for address, size, data, error in bench.answers:
        assert error == (address in fates), f"{address:#x}: {fates.get(address)}"
        at = address - bench.area
        assert error or data == bench.area_bytes[at : at + size]
    bench.expect_counts()


@cocotb.test
async def a_read_that_is_never_answered_holds_up_no_other(dut: Any) -> None:
    bench = await started(dut)
    lost = bench.random_read()
    bench.spoil = lambda address: "lost" if address == lost else None
    others = [bench.random_read() for _ in range(60)]
    expected = sum(address != lost for address in others)
    await bench.wait_until(lambda: len(bench.answers) == expected, 20_000, "all others")
    await bench.wait(100)
    assert {address for address, _ in bench.asked.values()} == {lost}
    assert not any(error for *_, error in bench.answers)


@cocotb.test
async def completions_that_nobody_asked_for_are_counted(dut: Any) -> None:
    bench = await started(dut)
    bench.latency_ns = (4000, 4000)
    bench.random_read()
    await bench.wait_until(lambda: bench.under_way == 1, 1000, "a read in flight")
    (tag_in_use,) = bench.asked
    for tag, size in (((tag_in_use + 3) % 32, 128), ((tag_in_use + 31) % 32, 4), (tag_in_use + 64, 64)):
        stray = Tlp()
        stray.fmt_type, stray.tag, stray.requester_id = TlpType.CPL_DATA, tag, bench.device.functions[0].pcie_id
        stray.completer_id, stray.byte_count = PcieId(0, 0, 0), size
        stray.set_data(bytes(size))
        await bench.rc.send(stray)
    await bench.settle()
    bench.random_read()
    await bench.settle()
    assert [error for *_, error in bench.answers] == [False, False]
    bench.expect_counts(count_unexpected=3)


@cocotb.test
async def registers_of_four_and_eight_bytes(dut: Any) -> None:
    bench = await started(dut, 0.3)
    held: dict[int, int] = {}
    for _ in range(40 if SHORT else 300):
        offset, size = bench.rng.choice([(0, 8), (0, 4), (4, 4)])
        offset += 8 * bench.rng.randrange(200)
        value = bench.rng.getrandbits(8 * size)
        low = 8 * (offset % 8)
        mask = (1 << 8 * size) - 1 << low
        register = offset & ~7
        if bench.rng.random() < 0.6:
            held[register] = held.get(register, 0) & ~mask | value << low
            await bench.write(offset, value, size)
        else:
            offset = bench.rng.choice([*held, register])
            assert await bench.read(offset) == held.get(offset, 0)
            assert await bench.read(offset + 4, 4) == held.get(offset, 0) >> 32
    await bench.write(0x10, 0)
    await bench.write(0x12, 0xAB, 1)
    await bench.write(0x15, 0xCDEF, 2)
    assert await bench.read(0x10) == 0xCD_EF00_00AB_0000
    assert await bench.read(0x15, 2) == 0xCDEF
    assert await bench.read(0x12, 1) == 0xAB
    assert await bench.ask(TlpType.MEM_READ, bench.bar, 0) == CplStatus.SC
    bench.expect_counts()


@cocotb.test
async def what_is_no_register_is_refused(dut: Any) -> None:
    bench = await started(dut, 0.2)
    ask, bar = bench.ask, bench.bar
    assert await ask(TlpType.MEM_READ, bar + NO_REGISTER, 8) == CplStatus.CA
    assert await ask(TlpType.MEM_READ, bar + 0x1000, 8) == CplStatus.CA
    assert await ask(TlpType.MEM_READ, bar + 4, 8) == CplStatus.CA
    assert await ask(TlpType.MEM_READ, bar, 16) == CplStatus.CA
    assert await ask(TlpType.MEM_READ, bench.function.bar_addr[1], 8) == CplStatus.UR
    assert await ask(TlpType.IO_READ, bench.function.bar_addr[2], 4) == CplStatus.UR
    assert await ask(TlpType.IO_WRITE, bench.function.bar_addr[2], 4) == CplStatus.UR
    bench.expect_counts()
    await bench.write(NO_REGISTER, 1)
    await bench.rc.mem_write(bar + 0x1000, bytes(8))
    await bench.rc.mem_write(bar + 0x20, bytes(64))
    await bench.rc.mem_write(bench.function.bar_addr[1], bytes(4))
    await bench.write(0x40, 0x1234_5678_9ABC_DEF0)
    assert await bench.read(0x40) == 0x1234_5678_9ABC_DEF0
    assert bench.registers == {0x40: 0x1234_5678_9ABC_DEF0}
    bench.expect_counts(count_refused=4)


@cocotb.test
async def two_writes_that_are_refused_at_once_are_counted_twice(dut: Any) -> None:
    """The first by the registers, the second, so many cycles later, by the adapter."""
    bench = await started(dut)
    for gap in range(20):
        await bench.write(NO_REGISTER, 1)
        await bench.wait(gap)
        await bench.rc.mem_write(bench.bar + 0x1000, bytes(8))
        assert await bench.ask(TlpType.MEM_READ, bench.bar, 8) == CplStatus.SC  # after both
        await bench.wait(4)
        bench.expect_counts(count_refused=2 * (gap + 1))


@cocotb.test
async def a_write_that_the_block_could_not_read_is_refused(dut: Any) -> None:
    bench = await started(dut)
    bench.discontinue(bench.device.cq_source, 41, lambda frame: frame.data[0] & 0xFFF == 0x28)
    for offset in (0x20, 0x28, 0x30):
        await bench.write(offset, offset)
    assert [await bench.read(offset) for offset in (0x20, 0x30)] == [0x20, 0x30]
    assert 0x28 not in bench.registers
    bench.expect_counts(count_refused=1)


@cocotb.test
async def writes_of_registers_do_not_wait_for_completions(dut: Any) -> None:
    bench = await started(dut)
    bench.device.cc_sink.pause = True
    reads = [cocotb.start_soon(bench.read(8 * k)) for k in range(4)]
    await bench.wait(400)
    for k in range(20):
        await bench.write(0x100 + 8 * k, k + 1)
    await bench.wait_until(lambda: len(bench.registers) == 20, 2000, "the writes arrive")
    bench.device.cc_sink.pause = False
    for read in reads:
        assert await read == 0


@cocotb.test
async def without_bus_master_requests_wait(dut: Any) -> None:
    bench = await started(dut)
    await bench.function.set_master(False)
    await bench.wait(20)
    for _ in range(20):
        bench.random_write()
        bench.random_read()
    sent = list(bench.requests)
    await bench.wait(600)
    assert not bench.written
    assert bench.read_count == 0
    await bench.function.set_master()
    await bench.settle()
    bench.check_order(sent)
    assert len(bench.answers) == 20


@cocotb.test
async def an_interrupt_comes_behind_the_writes_before_it(dut: Any) -> None:
    bench = await started(dut, 0.5)
    for round_number in range(10 if SHORT else 60):
        before = len(bench.interrupts)
        for _ in range(bench.rng.randrange(1, 30)):
            bench.random_write()
        bench.writing = True
        await bench.wait_until(lambda: not bench.writing, 20_000, "requests are with the adapter")
        bench.dut.irq.value = 1
        await bench.wait(1)
        bench.dut.irq.value = 0
        await bench.wait_until(lambda before=before: len(bench.interrupts) > before, 4000, f"interrupt {round_number}")
        assert bench.area_bytes == bench.expected, "the interrupt was quicker than a write"
        await bench.wait(300)
        assert len(bench.interrupts) == before + 1, "one message for one pulse"
    await bench.function.msi_set_enable(False)
    bench.dut.irq.value = 1
    await bench.wait(300)
    bench.dut.irq.value = 0
    count = len(bench.interrupts)
    await bench.function.msi_set_enable(True)
    await bench.wait(300)
    assert len(bench.interrupts) == count, "forgotten while not enabled"
