# SPDX-License-Identifier: Apache-2.0
"""pcie_us_msi: a message for each pulse, after the writes that were taken before it, and again when the block could not send it."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import SHORT, Bench, random_numbers


class MsiBench(Bench):
    """The block: sends what it is told to after a random time, fails as `fails` says; numbers come back for `written`, a write at a time."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.rng = random_numbers()
        self.written = self.seen = 0
        self.messages: list[int] = []  # how many writes were seen when each was sent
        self.fails = 0
        for name in ("irq", "written_pieces", "pcie_rq_seq_num0", "pcie_rq_seq_num_vld0"):
            getattr(dut, name).value = 0
        dut.cfg_interrupt_msi_sent.value = dut.cfg_interrupt_msi_fail.value = 0
        dut.cfg_interrupt_msi_enable.value = 1
        cocotb.start_soon(self._send())

    async def _send(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        while True:
            await edge
            if dut.rst.value == 1 or int(dut.cfg_interrupt_msi_int.value) == 0:
                continue
            assert int(dut.cfg_interrupt_msi_int.value) == 1
            failed = self.fails > 0
            self.fails -= failed
            if not failed:
                self.messages.append(self.seen)
            for _ in range(self.rng.randrange(1, 20)):
                await edge
                assert int(dut.cfg_interrupt_msi_int.value) == 0, "one cycle, and not again before an answer"
            (dut.cfg_interrupt_msi_fail if failed else dut.cfg_interrupt_msi_sent).value = 1
            await edge
            dut.cfg_interrupt_msi_fail.value = dut.cfg_interrupt_msi_sent.value = 0

    def write(self, count: int) -> None:
        self.written += count
        self.dut.written_pieces.value = self.written % 64

    async def see(self, count: int) -> None:
        for _ in range(count):
            self.seen += 1
            self.dut.pcie_rq_seq_num0.value, self.dut.pcie_rq_seq_num_vld0.value = self.seen % 64, 1
            await self.wait(1)
            self.dut.pcie_rq_seq_num_vld0.value = 0
            self.dut.pcie_rq_seq_num0.value = self.rng.randrange(64)
            await self.wait(self.rng.randrange(3))

    async def pulse(self) -> None:
        self.dut.irq.value = 1
        await self.wait(1)
        self.dut.irq.value = 0


@cocotb.test
async def a_message_waits_for_the_writes_before_it(dut: Any) -> None:
    bench = MsiBench(dut)
    await bench.reset()
    for number in range(30 if SHORT else 300):
        bench.write(bench.rng.randrange(40))
        await bench.wait(1)
        await bench.pulse()
        due = bench.written
        await bench.wait(3)
        bench.write(bench.rng.randrange(8))  # these come behind it
        await bench.see(due - bench.seen)
        await bench.wait_until(lambda number=number: len(bench.messages) == number + 1, 10, "the message")
        assert bench.messages[-1] >= due
        await bench.see(bench.written - bench.seen)
        await bench.wait(30)
    assert len(bench.messages) == number + 1


@cocotb.test
async def pulses_that_come_meanwhile_make_one_more(dut: Any) -> None:
    bench = MsiBench(dut)
    await bench.reset()
    bench.write(1)
    await bench.wait(1)
    for _ in range(5):
        await bench.pulse()
        await bench.wait(3)
    assert not bench.messages
    await bench.see(1)
    await bench.wait(80)
    assert len(bench.messages) == 2


@cocotb.test
async def what_was_not_sent_is_sent_again(dut: Any) -> None:
    bench = MsiBench(dut)
    await bench.reset()
    bench.fails = 3
    await bench.pulse()
    await bench.wait(150)
    assert (bench.fails, len(bench.messages)) == (0, 1)


@cocotb.test
async def pulses_are_forgotten_while_not_enabled(dut: Any) -> None:
    bench = MsiBench(dut)
    await bench.reset()
    bench.write(1)
    await bench.pulse()
    await bench.wait(3)
    dut.cfg_interrupt_msi_enable.value = 0
    await bench.pulse()
    await bench.see(1)
    await bench.wait(30)
    dut.cfg_interrupt_msi_enable.value = 1
    await bench.wait(50)
    assert not bench.messages
    await bench.pulse()
    await bench.wait(30)
    assert len(bench.messages) == 1
