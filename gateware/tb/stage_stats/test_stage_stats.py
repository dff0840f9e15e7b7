# SPDX-License-Identifier: Apache-2.0
"""stage_stats against numbers kept in Python: samples in any cycle of any stage, changes-over at any time, also one after another."""

import random
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, random_numbers

STAGES = PARAMETERS.get("STAGES", 5)
CYCLES_BITS = PARAMETERS.get("CYCLES_BITS", 32)
COUNT_MAX = 2 ** PARAMETERS.get("COUNT_BITS", 36) - 1
BINS = PARAMETERS.get("BINS", 64)
EXACT = 2 ** PARAMETERS.get("EXACT_BITS", 5)
SPLIT = 2 ** PARAMETERS.get("SPLIT_BITS", 2)
TAKE_CYCLES, WINDOW_CYCLES = 4, 2  # of the module
CYCLES_MAX = 2**CYCLES_BITS - 1


def floors() -> list[int]:
    """The least sample of each bin, counted up: one each, then SPLIT of each power of two."""
    found = list(range(EXACT))
    start = EXACT
    while len(found) < BINS:
        found += [start + k * start // SPLIT for k in range(SPLIT)]
        start *= 2
    return found


FLOORS = floors()


class Period:
    """What one period must show of one stage."""

    def __init__(self) -> None:
        self.samples: list[int] = []

    def numbers(self) -> list[int]:
        count = min(len(self.samples), COUNT_MAX)
        return [count, min(self.samples, default=0), max(self.samples, default=0), sum(self.samples)]

    def histogram(self) -> list[int]:
        counts = [0] * BINS
        for sample in self.samples:
            number = max(k for k, floor in enumerate(FLOORS) if floor <= sample)
            counts[number] = min(counts[number] + 1, COUNT_MAX)
        return counts


def periods() -> list[Period]:
    return [Period() for _ in range(STAGES)]


class StatsBench(Bench):
    """Drives samples and changes-over, a cycle a call, and keeps beside what must come of it."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.rng = random_numbers()
        self.counting, self.standing = periods(), periods()
        self.together: list[int] = []  # stages of which a sample is still to come before a change-over
        self.newest = STAGES  # stage of the sample in the cycle before, if there was one
        self.asked = False
        dut.s_valid.value = dut.take.value = 0
        dut.select_stage.value = dut.select_bin.value = dut.select_word.value = 0

    def forget(self) -> None:
        self.counting, self.standing = periods(), periods()
        self.together, self.newest, self.asked = [], STAGES, False

    async def one(self, share: float, most: int, take: bool = False) -> None:
        """One cycle, in which a sample comes or not: the next of those that belong together, or the first of others."""
        self.asked = self.asked or take
        if self.asked and not self.together:
            self.standing, self.counting, self.asked = self.counting, periods(), False
        self.dut.take.value = int(take)
        stage = STAGES
        if self.rng.random() < share:
            if not self.together:
                first = self.rng.choice([k for k in range(STAGES) if k != self.newest])
                others = self.rng.sample(range(STAGES), self.rng.randrange(STAGES))
                self.together = [first, *(k for k in others if k != first)]
            stage = self.together.pop(0)
            sample = random_sample(self.rng, most)
            self.counting[stage].samples.append(sample)
            self.dut.s_stage.value, self.dut.s_cycles.value = stage, sample
            self.dut.s_last.value = int(not self.together)
        self.dut.s_valid.value = int(stage != STAGES)
        self.newest = stage
        await self.wait(1)
        self.dut.take.value = self.dut.s_valid.value = 0

    async def read(self, stage: int, word: int, is_bin: bool, share: float, most: int) -> int:
        """A word of the window, while samples go on."""
        self.dut.select_stage.value, self.dut.select_bin.value, self.dut.select_word.value = stage, int(is_bin), word
        for _ in range(1 + WINDOW_CYCLES):
            await self.one(share, most)
        return int(self.dut.data.value)

    async def check(self, share: float, most: int) -> None:
        """All that the window shows."""
        while self.asked:
            await self.one(max(share, 0.5), most)
        for _ in range(TAKE_CYCLES - 1):  # the cycle of the change-over was one
            await self.one(share, most)
        for stage, period in enumerate(self.standing):
            numbers = [await self.read(stage, word, False, share, most) for word in range(4)]
            assert numbers == period.numbers(), f"stage {stage}"
            histogram = [await self.read(stage, word, True, share, most) for word in range(BINS)]
            assert histogram == period.histogram(), f"stage {stage}"
        for is_bin in (False, True):
            assert await self.read(STAGES, 0, is_bin, share, most) == 0, "no such stage"


def random_sample(rng: random.Random, most: int) -> int:
    """Bins of all sizes are met, their edges most of all."""
    if most == 1 or rng.random() < 0.5:
        return min(rng.randrange(most), CYCLES_MAX)
    return min(max(0, rng.choice(FLOORS) + rng.choice([-1, 0, 1])), CYCLES_MAX)


@cocotb.test
async def each_sample_is_in_the_period_in_which_it_came(dut: Any) -> None:
    bench = StatsBench(dut)
    await bench.reset()
    for _ in range(6 if SHORT else 40):
        share = bench.rng.choice([0.05, 0.5, 1.0])
        most = bench.rng.choice([1, EXACT, 3 * FLOORS[-1], 2**CYCLES_BITS])
        for _ in range(bench.rng.randrange(1000)):
            await bench.one(share, most, take=bench.rng.random() < 0.02)
        for _ in range(bench.rng.choice([0, 0, 1, 2, 3])):  # some that no one reads, close before
            await bench.one(share, most, take=True)
            for _ in range(bench.rng.choice([0, 0, 1, 2])):
                await bench.one(share, most)
        await bench.one(share, most, take=True)
        await bench.check(share, most)


@cocotb.test
async def the_same_bin_as_often_as_can_be(dut: Any) -> None:
    """A sample in every cycle, all in the first bin: each is read, counted up and written before the next one of its stage is read."""
    bench = StatsBench(dut)
    await bench.reset()
    for _ in range(3):
        for _ in range(300):
            await bench.one(1.0, 1)
        await bench.one(1.0, 1, take=True)
        await bench.check(1.0, 1)


@cocotb.test
async def nothing_is_left_after_reset(dut: Any) -> None:
    bench = StatsBench(dut)
    await bench.reset()
    for _ in range(200):
        await bench.one(1.0, 2 * FLOORS[-1], take=bench.rng.random() < 0.1)
    await bench.reset()
    bench.forget()
    await bench.check(0.0, 1)
    await bench.one(0.0, 1, take=True)
    await bench.check(0.0, 1)
