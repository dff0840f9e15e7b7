# SPDX-License-Identifier: Apache-2.0
"""interrupter with consumers that look, arm and sleep: who sleeps is woken when something is there, in time, and once."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import CYCLE_NS, SHORT, Bench, random_numbers


class IrqBench(Bench):
    """Gives completions and arms; counts them, and the rising edges of irq as one that sends a message for each would see them."""

    def __init__(self, dut: Any, first: int = 0) -> None:
        super().__init__(dut)
        self.rng = random_numbers()
        self.ahead_ns = 0  # of the cycles: the clock was set
        self.written = first  # completions, as they are seen in memory
        self.rises: list[int] = []  # cycles
        for name in ("completion", "arm", "cfg_enable", "cfg_completions", "cfg_moderation_ns", "arm_count"):
            getattr(dut, name).value = 0
        cocotb.start_soon(self._edges())

    async def _edges(self) -> None:
        high = 0
        while True:
            await RisingEdge(self.dut.clk)
            self.dut.now_ns.value = self.cycle * CYCLE_NS + self.ahead_ns
            now = int(self.dut.irq.value) if self.dut.rst.value == 0 else 0
            if now and not high:
                self.rises.append(self.cycle)
            high = now

    def moderate(self, completions: int, cycles: int) -> None:
        self.dut.cfg_completions.value = completions
        self.dut.cfg_moderation_ns.value = cycles * CYCLE_NS

    async def complete(self, count: int = 1) -> None:
        for _ in range(count):
            self.dut.completion.value = 1
            await self.wait(1)
            self.dut.completion.value = 0
            self.written += 1

    async def arm(self, taken: int) -> None:
        self.dut.arm_count.value = taken & 0xFFFFFFFF
        self.dut.arm.value = 1
        await self.wait(1)
        self.dut.arm.value = 0

    async def woken(self, cycles: int) -> bool:
        """Sleeps for so long at most."""
        before = len(self.rises)
        for _ in range(cycles):
            await self.wait(1)
            if len(self.rises) > before:
                return True
        return False


@cocotb.test
async def armed_it_is_raised_once_for_the_next_completion(dut: Any) -> None:
    bench = IrqBench(dut)
    await bench.reset()
    dut.cfg_enable.value = 1
    await bench.complete(3)
    await bench.wait(20)
    assert bench.rises == [], "not armed"
    await bench.arm(3)
    await bench.wait(20)
    assert bench.rises == [], "nothing new"
    await bench.complete()
    at = bench.cycle
    await bench.complete(5)
    await bench.wait(20)
    assert bench.rises == [at + 2], "the cycle in which it is counted, and one more"
    assert dut.irq.value == 1, "a level, until it is armed again"
    await bench.arm(9)
    await bench.wait(20)
    assert dut.irq.value == 0
    assert len(bench.rises) == 1


@cocotb.test
async def who_arms_too_late_is_woken_at_once(dut: Any) -> None:
    """Moderation is for what comes later; each arming makes an edge of its own although the level was high."""
    bench = IrqBench(dut)
    await bench.reset()
    dut.cfg_enable.value = 1
    bench.moderate(1000, 100_000)
    await bench.complete(4)
    for taken in (0, 1, 2, 3):
        await bench.arm(taken)
        assert await bench.woken(4), taken
        await bench.wait(bench.rng.randrange(5))
    await bench.arm(4)
    assert not await bench.woken(50)
    await bench.arm(5)  # it was seen in memory before it was counted here
    await bench.complete()
    assert not await bench.woken(50)
    assert len(bench.rises) == 4


@cocotb.test
async def moderation_waits_for_enough_or_long_enough(dut: Any) -> None:
    bench = IrqBench(dut)
    await bench.reset()
    dut.cfg_enable.value = 1
    bench.moderate(4, 200)
    await bench.arm(0)
    await bench.complete()
    first = bench.cycle
    await bench.wait(bench.rng.randrange(100))
    await bench.complete(2)
    assert await bench.woken(400)
    assert 200 <= bench.rises[-1] - first <= 204, "of the first, not of the last"
    await bench.arm(3)
    await bench.complete(3)
    assert not await bench.woken(100)
    await bench.complete()
    assert await bench.woken(4), "the fourth"
    bench.moderate(0, 200)
    await bench.arm(7)
    await bench.complete()
    assert await bench.woken(4), "no number, no waiting"
    bench.moderate(0xFFFFFFFF, 0)
    await bench.arm(8)
    await bench.complete()
    assert await bench.woken(4), "no time, no waiting"


@cocotb.test
async def it_waits_for_the_time_to_the_nanosecond(dut: Any) -> None:
    """From the completion so many cycles as the moderation has, rounded up, and three more; two with none."""
    bench = IrqBench(dut)
    await bench.reset()
    dut.cfg_enable.value, dut.cfg_completions.value = 1, 1000
    taken = 0
    for moderation_ns in (0, 1, 2, 50 * CYCLE_NS - 1, 50 * CYCLE_NS, 50 * CYCLE_NS + 1, 51 * CYCLE_NS, 51 * CYCLE_NS + 1):
        for _ in range(3):
            dut.cfg_moderation_ns.value = moderation_ns
            await bench.arm(taken)
            await bench.wait(bench.rng.randrange(2, 9))
            await bench.complete()
            at, taken = bench.cycle, taken + 1
            assert await bench.woken(100)
            cycles = -(-moderation_ns // CYCLE_NS)
            assert bench.rises[-1] - at == (3 + cycles if cycles else 2), moderation_ns


@cocotb.test
async def a_clock_that_is_set_delays_nothing(dut: Any) -> None:
    bench = IrqBench(dut)
    await bench.reset()
    dut.cfg_enable.value = 1
    bench.moderate(1000, 1000)
    for taken, change_ns in enumerate((10**9, -(10**9))):
        await bench.arm(taken)
        await bench.complete()
        assert not await bench.woken(100)
        bench.ahead_ns += change_ns
        assert await bench.woken(5), change_ns


@cocotb.test
async def masked_it_forgets_nothing(dut: Any) -> None:
    bench = IrqBench(dut)
    await bench.reset()
    await bench.arm(0)
    await bench.complete()
    assert not await bench.woken(50), "masked by default"
    assert dut.raised.value == 1
    dut.cfg_enable.value = 1
    assert await bench.woken(4)
    dut.cfg_enable.value = 0
    await bench.wait(2)
    assert dut.irq.value == 0
    dut.cfg_enable.value = 1
    assert await bench.woken(4), "taken away and given again: an edge once more"


@cocotb.test
async def no_completion_is_slept_over(dut: Any) -> None:
    """A consumer takes what it sees, arms and sleeps, each after any time; whatever it has not taken must wake it in time."""
    bench = IrqBench(dut)
    await bench.reset()
    dut.cfg_enable.value = 1
    rng = bench.rng
    limit = 60
    count = 300 if SHORT else 5000

    async def writer() -> None:
        for _ in range(count):
            await bench.wait(rng.choice([0, 0, 1, 2, 3, 10, 100]))
            await bench.complete(rng.choice([1, 1, 1, 2, 5]))

    writing = cocotb.start_soon(writer())
    taken = slept = 0
    while not writing.done() or taken != bench.written:
        bench.moderate(rng.choice([0, 1, 2, 5, 1000]), rng.choice([0, 1, 10, limit]))
        await bench.wait(rng.choice([0, 1, 2, 3, 20]))
        taken = bench.written
        await bench.wait(rng.choice([0, 0, 1, 2, 3]))  # the race: something may come just here
        await bench.arm(taken)
        for _ in range(100_000):
            if writing.done() and taken == bench.written:
                break
            if bench.written != taken:
                assert await bench.woken(limit + 5), f"{bench.written - taken} completions, none woke it"
                slept += 1
                break
            await bench.wait(1)
        else:
            raise AssertionError("the writer stands still")
    assert slept > 20


@cocotb.test
async def it_goes_on_when_its_count_wraps(dut: Any) -> None:
    """2^32 completions would take too long: the consumer's count is moved there by being wrong, once."""
    bench = IrqBench(dut)
    await bench.reset()
    dut.cfg_enable.value = 1
    await bench.complete(2)
    for far in (3, 2**30, 2**31 - 1):
        await bench.arm(2 - far)
        assert await bench.woken(4), far
    await bench.arm(2 - 2**31)
    assert not await bench.woken(20), "as far ahead as behind: ahead"
    await bench.arm(2)
    assert not await bench.woken(20)
