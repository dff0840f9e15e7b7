# SPDX-License-Identifier: Apache-2.0
"""km3_phase, and km3_tx_align behind it, on two clocks of any phase, one of which can be slid; and clocks that move, or stand."""

from itertools import pairwise
from typing import Any

import cocotb
from align_bench import PULSES, STEPS, all_at_rest
from cocotb.triggers import RisingEdge
from common.bench import SHORT, Bench, random_numbers


@cocotb.test
async def phases_are_measured_and_made(dut: Any) -> None:
    """In steps of half a bit, of all phases; the divider is slid until it comes half a word after the other clock, and stays. One that is moved is told, one that stands gives none."""
    rng = random_numbers()
    bench = Bench(dut, PULSES)
    all_at_rest(dut)
    for begin in [0, *rng.sample(range(1, STEPS), 5 if SHORT else STEPS - 1)]:
        await bench.reset()
        bench.forget_counts()
        now, a_edge, b_edge, a, b, slides = 0, 7, 7 + begin, 0, 0, 0
        seen: list[int] = []
        stands = False
        for cycle in range(1250):
            now += STEPS + 1
            while a_edge < now:
                a, a_edge = a ^ 1, a_edge + STEPS
            while b_edge < now:
                b, b_edge = b ^ (not stands), b_edge + STEPS
            dut.a_toggle.value, dut.b_toggle.value = a, b
            await RisingEdge(dut.clk)
            if dut.tx_slide.value == 1:
                b_edge += 2
                slides += 1
            if dut.phase_valid.value == 1:
                seen.append(int(dut.phase.value))
                if cycle < 100:
                    assert seen[-1] == begin
            if cycle == 700:
                assert dut.aligned.value == 1
                assert seen[-1] == (b_edge - a_edge) % STEPS == 20 - begin % 2
                assert int(dut.moved.value) == slides % (STEPS // 2)
                b_edge += 6  # as no slide has asked for
            if cycle == 1150:
                assert (dut.aligned.value, bench.counts["error_phase"]) == (1, 1)
                stands = True
                seen.clear()
        assert len(seen) <= 2
        assert bench.counts["failed"] == 0


@cocotb.test
async def no_phase_of_a_clock_that_moves_or_stands(dut: Any) -> None:
    """Either of the two: of one that was moved the next reading is missing, whichever way it went; of one that stands there is none until it runs."""
    bench = Bench(dut, PULSES)
    all_at_rest(dut)
    for who, by, begin in (
        (0, 6, 17),
        (0, -6, 17),
        (1, 6, 17),
        (1, -6, 17),
        (0, 1, 0),
        (0, 2, 0),
        (0, -1, 0),
        (1, 1, 0),
        (1, -1, 0),
    ):
        await bench.reset()
        now, edges, levels, valid = 0, [7, 7 + begin], [0, 0], []
        stands = False
        for cycle in range(20 * STEPS):
            now += STEPS + 1
            for c in (0, 1):
                while edges[c] < now:
                    levels[c] ^= not (stands and c == who)
                    edges[c] += STEPS
            dut.a_toggle.value, dut.b_toggle.value = levels
            await RisingEdge(dut.clk)
            if dut.phase_valid.value == 1:
                valid.append(cycle)
            if cycle == 6 * STEPS:
                edges[who] += by
            stands = 11 * STEPS <= cycle < 15 * STEPS
        gaps = [after - before for before, after in pairwise(valid)]
        others = [gap for gap in gaps if gap != STEPS]
        if begin:  # a reading comes with an edge of the second clock
            assert others[0] == 2 * STEPS + (by if who else 0), (who, by, gaps)
            assert len(others) == 2
        else:  # they change places
            assert others[0] >= 2 * STEPS + min(0, by), (who, by, gaps)
        assert others[-1] > 4 * STEPS


@cocotb.test
async def a_reset_forgets_what_was_measured(dut: Any) -> None:
    """Whenever it comes, and of any length: of each clock two beats must have come after it before there is a reading."""
    bench = Bench(dut, PULSES)
    all_at_rest(dut)
    await bench.reset()
    for begin in (0, 1, 20, STEPS - 1):
        now, edges, levels, since, seen = 0, [7, 7 + begin], [0, 0], 0, 0
        for cycle in range(60 if SHORT else 200):
            length, runs = 1 + cycle % 5, 3 * STEPS + cycle % STEPS
            for at in range(length + runs):
                dut.rst.value = int(at < length)
                now += STEPS + 1
                for c in (0, 1):
                    while edges[c] < now:
                        levels[c] ^= 1
                        edges[c] += STEPS
                dut.a_toggle.value, dut.b_toggle.value = levels
                await RisingEdge(dut.clk)
                since = 0 if at < length else since + 1
                if dut.phase_valid.value == 1:
                    assert since > STEPS or at == 0, (begin, cycle)  # at 0: of the cycle before
                    assert int(dut.phase.value) == begin
                    seen += 1
        assert seen > 40
