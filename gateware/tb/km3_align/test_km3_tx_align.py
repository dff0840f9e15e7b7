# SPDX-License-Identifier: Apache-2.0
"""km3_tx_align on readings that a test makes: of each phase, in any order."""

from typing import Any

import cocotb
from align_bench import GAP_CYCLES, PULSES, READ_PULSES, SETTLE_CYCLES, STEPS, TARGET, TRIES, all_at_rest
from cocotb.triggers import RisingEdge
from common.bench import Bench, random_numbers


@cocotb.test
async def a_divider_is_moved_by_what_is_short(dut: Any) -> None:
    """Of every reading: as many slides as bits are short, so far apart that each counts, and no reading is taken after reset and after the last slide until it is of now."""
    bench = Bench(dut, PULSES)
    all_at_rest(dut)
    for phase in range(STEPS):
        dut.read_valid.value, dut.read_phase.value = 1, phase
        await bench.reset()
        short = (TARGET - phase) % STEPS
        slides, aligned = [], 0
        for cycle in range(2, 2 * SETTLE_CYCLES + (short // 2 + 3) * (GAP_CYCLES + 1)):
            if len(slides) == short // 2 and short > 1:
                dut.read_phase.value = TARGET
            await RisingEdge(dut.clk)
            if dut.read_slide.value == 1:
                slides.append(cycle)
            if dut.read_aligned.value == 1 and not aligned:
                aligned = cycle
        first = 2 + SETTLE_CYCLES
        wanted = [first + slide * (GAP_CYCLES + 1) for slide in range(short // 2)]
        assert slides == wanted, phase
        assert aligned == (wanted[-1] + SETTLE_CYCLES + 2 if wanted else first), phase


@cocotb.test
async def a_divider_that_does_not_move_has_failed(dut: Any) -> None:
    """TRIES times all the way, and the next reading is as before: told, and so often again. One that was there between, or a reset, begins the count anew."""
    bench = Bench(dut, (*PULSES, *READ_PULSES))
    all_at_rest(dut)
    moved = 0

    async def reading(phase: int) -> tuple[int, int, int]:
        """What comes of one: `aligned`, whether it is an error, and whether the divider has failed."""
        nonlocal moved
        bench.forget_counts()
        dut.read_valid.value, dut.read_phase.value = 1, phase
        await bench.wait(1)
        dut.read_valid.value = 0
        await bench.wait(STEPS // 2 * (GAP_CYCLES + 1) + SETTLE_CYCLES + 4)
        slides, error, failed = (bench.counts[name] for name in READ_PULSES)
        short = (TARGET - phase) % STEPS
        moved = (moved + short // 2) % (STEPS // 2)
        assert slides == short // 2
        assert int(dut.read_moved.value) == moved
        return int(dut.read_aligned.value), error, failed

    there, here = (TARGET, TARGET - 1), (0, 3, 7, STEPS - 1)
    rng = random_numbers()
    for before in ((), (3,), (2, 1), (1, 2)):  # of bad readings, with one that is right after them, or a reset
        await bench.reset()
        moved = 0
        await bench.wait(SETTLE_CYCLES)
        for count in before:
            for _ in range(count):
                assert await reading(rng.choice(here)) == (0, 0, 0)
            if before == (3,):
                await bench.reset()
                moved = 0
                assert int(dut.read_moved.value) == 0
                await bench.wait(SETTLE_CYCLES)
            else:
                assert await reading(rng.choice(there)) == (0, 0, 0)
        for _ in range(2):
            assert [await reading(rng.choice(here)) for _ in range(TRIES + 1)] == [(0, 0, 0)] * TRIES + [(0, 0, 1)]
    for wanted in ((0, 0, 0), (1, 0, 0), (1, 0, 0)):
        assert await reading(rng.choice(there)) == wanted
    for phase, wanted in ((5, (0, 1, 0)), (there[0], (0, 0, 0)), (5, (0, 0, 0)), (there[1], (0, 0, 0)), (there[0], (1, 0, 0))):
        assert await reading(phase) == wanted
    await bench.reset()
    assert dut.read_aligned.value == 0
