# SPDX-License-Identifier: Apache-2.0
"""counters: every pulse is counted once, by its own counter, whatever comes beside it; what is read has all that came before."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, random_numbers

COUNTERS = PARAMETERS["COUNTERS"]
MASK = (1 << PARAMETERS.get("COUNT_BITS", 64)) - 1
READ_CYCLES_MAX = COUNTERS + 2


class CountersBench(Bench):
    """Gives pulses, each counter with a probability of its own, and counts them."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.rng = random_numbers()
        self.shares = [0.0] * COUNTERS
        self.counted = [0] * COUNTERS
        for name in ("pulses", "read", "read_index"):
            getattr(dut, name).value = 0
        cocotb.start_soon(self._pulse())

    async def _pulse(self) -> None:
        given = 0
        while True:
            await RisingEdge(self.dut.clk)
            if self.dut.rst.value == 0:
                for index in range(COUNTERS):
                    self.counted[index] += given >> index & 1
            else:
                self.counted = [0] * COUNTERS
            given = sum(1 << index for index, share in enumerate(self.shares) if self.rng.random() < share)
            self.dut.pulses.value = given

    async def read(self, index: int) -> int:
        """Checks that it holds what had come before, and no more than has come when it is told."""
        self.dut.read_index.value, self.dut.read.value = index, 1
        before = self.counted[index]  # a pulse that comes with `read` need not be there
        await self.wait(1)
        self.dut.read.value = 0
        self.dut.read_index.value = self.rng.randrange(COUNTERS)  # it is looked at with `read` alone
        for _ in range(READ_CYCLES_MAX):
            await self.wait(1)
            if self.dut.done.value == 1:
                value = int(self.dut.data.value)
                assert (value - before) & MASK <= self.counted[index] - before, f"counter {index}: {value}, was {before}"
                return value
        raise AssertionError(f"counter {index}: no answer")

    async def check_all(self) -> None:
        """With no pulse coming: all of them, to the last."""
        self.shares = [0.0] * COUNTERS
        await self.wait(2)
        assert [await self.read(index) for index in range(COUNTERS)] == [count & MASK for count in self.counted]


@cocotb.test
async def zero_after_reset_whatever_was_there(dut: Any) -> None:
    bench = CountersBench(dut)
    for _ in range(2):
        await bench.reset()
        await bench.check_all()
        bench.shares = [0.5] * COUNTERS
        await bench.wait(bench.rng.randint(1, 3 * COUNTERS))


@cocotb.test
async def a_pulse_of_each_in_every_cycle(dut: Any) -> None:
    bench = CountersBench(dut)
    await bench.reset()
    bench.shares = [1.0] * COUNTERS
    await bench.wait((3 if SHORT else 10) * COUNTERS + 3)
    await bench.check_all()


@cocotb.test
async def any_pulses_and_reads(dut: Any) -> None:
    bench = CountersBench(dut)
    await bench.reset()
    for _ in range(3 if SHORT else 12):
        bench.shares = [bench.rng.choice((0.0, 0.02, 0.3, 0.9, 1.0)) for _ in range(COUNTERS)]
        for _ in range(20):
            await bench.read(bench.rng.randrange(COUNTERS))
            await bench.wait(bench.rng.randrange(COUNTERS))
        await bench.check_all()


@cocotb.test
async def one_alone_at_every_moment_of_a_round(dut: Any) -> None:
    bench = CountersBench(dut)
    await bench.reset()
    index = bench.rng.randrange(COUNTERS)
    for moment in range(COUNTERS):
        await bench.wait(COUNTERS + 1 + (moment & 1))
        bench.shares[index] = 1.0
        await bench.wait(1)
        bench.shares[index] = 0.0
    await bench.check_all()
