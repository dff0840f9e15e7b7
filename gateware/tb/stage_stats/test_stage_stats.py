# SPDX-License-Identifier: Apache-2.0
"""stage_stats against numbers kept in Python: samples in any cycle of any stage, changes-over at any time, also one behind the other."""

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
        return [count, min(self.samples, default=CYCLES_MAX), max(self.samples, default=0), sum(self.samples)]

    def histogram(self) -> list[int]:
        counts = [0] * BINS
        for sample in self.samples:
            number = max(k for k, floor in enumerate(FLOORS) if floor <= sample)
            counts[number] = min(counts[number] + 1, COUNT_MAX)
        return counts


class StatsBench(Bench):
    """Drives samples and changes-over, a cycle a call, and keeps beside what must come of it."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.rng = random_numbers()
        self.counting = [Period() for _ in range(STAGES)]
        self.standing = [Period() for _ in range(STAGES)]
        dut.s_valid.value = dut.take.value = 0
        dut.select_stage.value = dut.select_bin.value = dut.select_word.value = 0

    async def one(self, samples: dict[int, int], take: bool = False) -> None:
        """One cycle. samples: of each stage that has one."""
        dut = self.dut
        if take:
            self.standing, self.counting = self.counting, [Period() for _ in range(STAGES)]
        for stage, sample in samples.items():
            self.counting[stage].samples.append(sample)
        dut.take.value = int(take)
        dut.s_valid.value = sum(1 << stage for stage in samples)
        dut.s_cycles.value = sum(sample << CYCLES_BITS * stage for stage, sample in samples.items())
        await self.wait(1)
        dut.take.value = dut.s_valid.value = 0

    def random_samples(self, share: float, most: int) -> dict[int, int]:
        return {stage: random_sample(self.rng, most) for stage in range(STAGES) if self.rng.random() < share}

    async def read(self, stage: int, word: int, is_bin: bool, share: float, most: int) -> int:
        """A word of the window, while samples go on."""
        self.dut.select_stage.value, self.dut.select_bin.value, self.dut.select_word.value = stage, int(is_bin), word
        for _ in range(1 + WINDOW_CYCLES):
            await self.one(self.random_samples(share, most))
        return int(self.dut.data.value)

    async def check(self, share: float, most: int) -> None:
        """All that the window shows."""
        for _ in range(TAKE_CYCLES - 1):  # the cycle of `take` was one
            await self.one(self.random_samples(share, most))
        for stage, period in enumerate(self.standing):
            numbers = [await self.read(stage, word, False, share, most) for word in range(4)]
            assert numbers == period.numbers(), f"stage {stage}"
            histogram = [await self.read(stage, word, True, share, most) for word in range(BINS)]
            assert histogram == period.histogram(), f"stage {stage}"
        assert await self.read(STAGES, 0, False, share, most) == 0, "no such stage"


def random_sample(rng: random.Random, most: int) -> int:
    """Bins of all sizes are met, their edges most of all."""
    if rng.random() < 0.5:
        return min(rng.randrange(most), CYCLES_MAX)
    return min(max(0, rng.choice(FLOORS) + rng.choice([-1, 0, 1])), CYCLES_MAX)


@cocotb.test
async def each_sample_is_in_the_period_in_which_it_came(dut: Any) -> None:
    bench = StatsBench(dut)
    await bench.reset()
    for _ in range(6 if SHORT else 40):
        share = bench.rng.choice([0.05, 0.5, 1.0])
        most = bench.rng.choice([2, EXACT, 3 * FLOORS[-1], 2**CYCLES_BITS])
        for _ in range(bench.rng.randrange(200)):
            await bench.one(bench.random_samples(share, most), take=bench.rng.random() < 0.02)
        for _ in range(bench.rng.choice([0, 0, 1, 2, 3])):  # some that nobody reads, close before
            await bench.one(bench.random_samples(share, most), take=True)
            for _ in range(bench.rng.choice([0, 0, 1, 2])):
                await bench.one(bench.random_samples(share, most))
        await bench.one(bench.random_samples(share, most), take=True)
        await bench.check(share, most)


@cocotb.test
async def the_same_bin_in_every_cycle(dut: Any) -> None:
    """A bin is counted up while the sample before is still on its way into it."""
    bench = StatsBench(dut)
    await bench.reset()
    for sample in (0, EXACT, FLOORS[-1], CYCLES_MAX):
        for _ in range(50):
            await bench.one(dict.fromkeys(range(STAGES), sample))
        await bench.one(dict.fromkeys(range(STAGES), sample), take=True)
        await bench.check(0.0, 1)


@cocotb.test
async def nothing_is_left_after_reset(dut: Any) -> None:
    bench = StatsBench(dut)
    await bench.reset()
    for _ in range(100):
        await bench.one(bench.random_samples(1.0, 2 * FLOORS[-1]), take=bench.rng.random() < 0.1)
    await bench.reset()
    bench.counting = [Period() for _ in range(STAGES)]
    bench.standing = [Period() for _ in range(STAGES)]
    await bench.check(0.0, 1)
    await bench.one({}, take=True)
    await bench.check(0.0, 1)
