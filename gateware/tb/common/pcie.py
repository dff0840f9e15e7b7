# SPDX-License-Identifier: Apache-2.0
"""A PCIe host for a module with the ports of the UltraScale+ PCIe block: root complex and block of cocotbext-pcie, memory and answers of our own.

The memory checks each access: only what was given out, within a page, within the sizes that the host allows. Reads are answered after a random time, in
pieces, those of different reads mixed, as PCIe permits.
"""

import itertools
import logging
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge, Timer, ValueChange
from cocotbext.axi import AxiStreamBus
from cocotbext.pcie.core import RootComplex
from cocotbext.pcie.core.tlp import CplStatus, Tlp, TlpAttr, TlpType
from cocotbext.pcie.core.utils import PcieId
from cocotbext.pcie.xilinx.us import UltraScalePlusPcieDevice

from common.bench import Bench, pauses

PAGE_BYTES = 4096
BOUNDARY_BYTES = 64  # read completion boundary: completions are cut at its multiples
MSI_ADDRESS = 0x8000_0000
BLOCK_PORTS = (
    *("pcie_cq_np_req", "pcie_rq_seq_num0", "pcie_rq_seq_num_vld0", "cfg_max_payload", "cfg_function_status"),
    *("cfg_interrupt_msi_enable", "cfg_interrupt_msi_int", "cfg_interrupt_msi_sent", "cfg_interrupt_msi_fail"),
)
BLOCK_CLOCK_PS = 4000  # 250 MHz, which the model makes


class Block(UltraScalePlusPcieDevice):
    """The library's model, which looks at each of its inputs in every cycle and so takes half of a bench's time: these tasks of it, as far as a module
    with BLOCK_PORTS can tell, that sleep while nothing happens."""

    async def _run_cfg_ctrl_logic(self) -> None:
        self.config_space_enable = True

    async def _run_cfg_status_logic(self) -> None:
        function, edge, shown = self.functions[0], RisingEdge(self.user_clk), None
        while True:
            await edge
            command = 0x7 * function.bus_master_enable | 0x8 * function.interrupt_disable
            now = (function.pcie_cap.max_payload_size & 3, command, int(function.msi_cap.msi_enable))
            if now != shown:
                self.cfg_max_payload.value, self.cfg_function_status.value, self.cfg_interrupt_msi_enable.value = shown = now

    async def _run_cfg_int_logic(self) -> None:
        asked, edge = ValueChange(self.cfg_interrupt_msi_int), RisingEdge(self.user_clk)
        self.cfg_interrupt_msi_sent.value = self.cfg_interrupt_msi_fail.value = 0
        while True:
            await edge
            wanted = int(self.cfg_interrupt_msi_int.value)
            if wanted.bit_count() == 1:
                await self.functions[0].msi_cap.issue_msi_interrupt(wanted.bit_length() - 1, attr=TlpAttr(0))
                self.cfg_interrupt_msi_sent.value = 1
                continue
            self.cfg_interrupt_msi_sent.value = 0
            if wanted == 0:
                await asked

    async def _run_rq_seq_num_logic(self) -> None:
        edge = RisingEdge(self.user_clk)
        while True:
            self.pcie_rq_seq_num_vld0.value = 0
            number = await self.rq_seq_num.get()
            await edge
            self.pcie_rq_seq_num0.value = number
            self.pcie_rq_seq_num_vld0.value = 1
            await edge

    async def _run_rq_tag_logic(self) -> None:
        while True:
            await self.rq_tag.get()


class PcieBench(Bench):
    """Bench whose clock and reset are the block's. Memory is given out by `memory`, found and checked by its bus address.

    payload_bytes, read_bytes: the host's maximum payload and read request sizes; latency_ns: bounds of the time until a read's first answer.
    spoil: given a read's address says what becomes of it: None (good), "ur", "ca", "poison", "torn" (cut where no host may) or "lost".
    """

    clock_ps = BLOCK_CLOCK_PS
    drives_clock = False

    def __init__(
        self,
        dut: Any,
        rng: Random,
        counters: tuple[str, ...] = ("count_unexpected", "count_refused"),
        payload_bytes: int = 256,
        read_bytes: int = 128,
        latency_ns: tuple[int, int] = (200, 1500),
    ) -> None:
        super().__init__(dut, counters)
        self.rng, self.latency_ns = rng, latency_ns
        self.payload_bytes, self.read_bytes = payload_bytes, read_bytes
        self.spoil: Callable[[int], str | None] = lambda address: None
        self.regions: list[tuple[int, bytearray]] = []
        self.next_address = 0x12_3450_0000
        self.written: list[tuple[int, bytes]] = []  # each request, in order
        self.read_count = self.most_under_way = self.under_way = self.overtaken = 0
        self.interrupts: list[int] = []  # how many writes had come before each
        self.on_write: Callable[[int, bytes], None] = lambda address, data: None  # of each request, when it is in memory
        self.rc = RootComplex()
        self.rc.log.setLevel(logging.ERROR)  # it warns of each place where enumeration finds nothing
        self.rc.max_payload_size = (payload_bytes // 128).bit_length() - 1
        self.rc.max_read_request_size = (read_bytes // 128).bit_length() - 1
        for kind in (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64):
            self.rc.register_rx_tlp_handler(kind, self._take_write)
        for kind in (TlpType.MEM_READ, TlpType.MEM_READ_64):
            self.rc.register_rx_tlp_handler(kind, self._take_read)
        self.device = Block(
            pcie_generation=3,
            pcie_link_width=4,
            user_clk_frequency=250e6,
            max_payload_size=512,
            pf0_msi_enable=True,
            user_clk=dut.clk,
            user_reset=dut.rst,
            rq_bus=AxiStreamBus.from_prefix(dut, "s_axis_rq"),
            rc_bus=AxiStreamBus.from_prefix(dut, "m_axis_rc"),
            cq_bus=AxiStreamBus.from_prefix(dut, "m_axis_cq"),
            cc_bus=AxiStreamBus.from_prefix(dut, "s_axis_cc"),
            **{name: getattr(dut, name) for name in BLOCK_PORTS},
        )
        dut.rst.value = 1  # as a block's is from the beginning; the model's begins low
        self.device.log.setLevel(logging.ERROR)  # it warns of each completion that was spoilt
        self.device.functions[0].configure_bar(0, 65536)
        self.device.functions[0].configure_bar(1, 4096)
        self.device.functions[0].configure_bar(2, 256, io=True)
        self.rc.make_port().connect(self.device)

    async def begin(self) -> None:
        """Enumerates; the function may write and read memory, and send interrupts, from here on."""
        await self.wait(40)
        await self.rc.enumerate()
        self.function = self.rc.find_device(self.device.functions[0].pcie_id)
        await self.function.enable_device()
        await self.function.set_master()
        await self.function.enable_msi_range(1, 1)
        self.bar = self.function.bar_addr[0]
        await self.wait(4)
        assert 128 << int(self.dut.cfg_max_payload.value) == self.payload_bytes

    def pause(self, share: float) -> None:
        """Random pauses on all four interfaces, `share` of the cycles."""
        block = self.device
        for end in (block.rq_sink, block.rc_source, block.cq_source, block.cc_sink):
            pause = pauses(self.rng, share)
            end.set_pause_generator(iter(pause, None))

    def discontinue(self, end: Any, bit: int, choose: Callable[[Any], bool]) -> None:
        """On one interface of the block: what it says in the last word of each packet chosen, that it could not read its own memory."""
        send, drive = end.send, end._drive

        async def send_marked(frame: Any) -> None:
            frame.discontinue = choose(frame)
            await send(frame)

        async def drive_late(word: Any) -> None:
            if not word.tlast:
                word.tuser &= ~(1 << bit)
            await drive(word)

        end.send, end._drive = send_marked, drive_late

    # --- memory ---
    def memory(self, size: int) -> tuple[int, bytearray]:
        """Memory of `size`, a power of two from a page on, at a multiple of it, that nothing lies beside: its bus address and its bytes."""
        address = -(-self.next_address // size) * size
        self.next_address = address + 2 * size
        self.regions.append((address, bytearray(size)))
        return self.regions[-1]

    def find(self, address: int, size: int, what: str) -> tuple[bytearray, int]:
        assert address // PAGE_BYTES == (address + size - 1) // PAGE_BYTES, f"a {what} at {address:#x} crosses a page"
        for base, memory in self.regions:
            if base <= address and address + size <= base + len(memory):
                return memory, address - base
        raise AssertionError(f"stray {what} at {address:#x}")

    async def _take_write(self, tlp: Tlp) -> None:
        if tlp.address == MSI_ADDRESS:
            self.interrupts.append(len(self.written))
            return
        assert tlp.length * 4 <= self.payload_bytes, f"a write of {tlp.length} Dwords"
        enabled = list(itertools.chain.from_iterable(_lanes(tlp)))
        lanes = [lane for lane, enable in enumerate(enabled) if enable]
        assert lanes == list(range(lanes[0], lanes[-1] + 1)), "bytes with a hole between"
        assert tlp.first_be != 0
        assert int(tlp.attr) == 0, "the host may reorder it"
        memory, at = self.find(tlp.address, tlp.length * 4, "write")
        data = bytes(tlp.data[lanes[0] : lanes[-1] + 1])
        memory[at + lanes[0] : at + lanes[-1] + 1] = data
        self.written.append((tlp.address + lanes[0], data))
        self.on_write(*self.written[-1])

    async def _take_read(self, tlp: Tlp) -> None:
        assert tlp.length * 4 <= self.read_bytes, f"a read of {tlp.length} Dwords"
        assert next(_lanes(tlp))[0], "it begins at its address"
        memory, at = self.find(tlp.address, tlp.length * 4, "read")
        self.read_count += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        cocotb.start_soon(self._answer(tlp, bytes(memory[at : at + tlp.length * 4]), self.read_count))

    async def _answer(self, tlp: Tlp, data: bytes, number: int) -> None:
        await Timer(self.rng.randint(*self.latency_ns), "ns")
        spoiled = self.spoil(tlp.address)
        self.overtaken += self.under_way > 1 and number < self.read_count
        if spoiled in ("ur", "ca"):
            make = Tlp.create_ur_completion_for_tlp if spoiled == "ur" else Tlp.create_ca_completion_for_tlp
            await self.rc.send(make(tlp, PcieId(0, 0, 0)))
        elif spoiled != "lost":
            pieces = list(self._pieces(tlp.address, len(data)))
            if spoiled == "torn":
                pieces = [(0, 20), (20, len(data) - 20)]
            bad = self.rng.randrange(len(pieces)) if spoiled == "poison" else None
            left = tlp.get_be_byte_count()
            for k, (start, size) in enumerate(pieces):
                cpl = Tlp.create_completion_data_for_tlp(tlp, PcieId(0, 0, 0))
                cpl.set_data(data[start : start + size])
                cpl.byte_count, cpl.lower_address, cpl.ep = left, (tlp.address + start) & 0x7F, k == bad
                left -= size
                await self.rc.send(cpl)
                await Timer(self.rng.randint(1, 200), "ns")
        self.under_way -= 1

    def _pieces(self, address: int, size: int) -> Iterator[tuple[int, int]]:
        """Places and sizes: cut at some multiples of the boundary, and so that none is larger than a payload may be."""
        start = 0
        for place in range(BOUNDARY_BYTES - address % BOUNDARY_BYTES, size, BOUNDARY_BYTES):
            if self.rng.random() < 0.5 or place + BOUNDARY_BYTES - start > self.payload_bytes:
                yield start, place - start
                start = place
        yield start, size - start

    # --- registers ---
    async def write(self, offset: int, value: int, size: int = 8) -> None:
        await self.rc.mem_write(self.bar + offset, value.to_bytes(size, "little"))

    async def read(self, offset: int, size: int = 8) -> int:
        return int.from_bytes(await self.rc.mem_read(self.bar + offset, size), "little")

    async def ask(self, kind: TlpType, address: int, size: int) -> CplStatus:
        """The status with which a read is answered."""
        tlp = Tlp()
        tlp.fmt_type = kind
        tlp.set_addr_be(address, size)
        if kind == TlpType.IO_WRITE:
            tlp.set_addr_be_data(address, bytes(size))
        answers = await self.rc.perform_nonposted_operation(tlp, 20_000, "ns")
        assert answers, f"no answer to {kind} at {address:#x}"
        return answers[0].status


def _lanes(tlp: Tlp) -> Iterator[list[int]]:
    assert bool(tlp.last_be) == (tlp.length > 1), "last byte enables are for a second Dword"
    for k in range(tlp.length):
        enable = tlp.first_be if k == 0 else tlp.last_be if k == tlp.length - 1 else 0xF
        yield [enable >> lane & 1 for lane in range(4)]
