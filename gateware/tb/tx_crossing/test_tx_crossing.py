# SPDX-License-Identifier: Apache-2.0
"""tx_crossing: when a frame begins in the MAC's clock, to the cycle; each byte of it; that it has no gap; and that a reset forgets what had begun."""

from random import Random
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from common.bench import SHORT, random_numbers

PERIOD_PS = 6400
WORDS_AHEAD = 3
PATIENCE_CYCLES = 8
LONG_CYCLES = 5  # from the WORDS_AHEAD-th word to the first one out, with one clock on both sides
SHORT_CYCLES = PATIENCE_CYCLES + 4  # from the first word of a shorter frame

Word = tuple[int, int, int, int]  # data, keep, last, user


class CrossingBench:
    """One clock on both sides, so that a cycle is the same there and here. `out`: words as they left, each with its cycle."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.cycle = 0
        self.out: list[tuple[int, Word]] = []
        self.ready_share = 1.0
        dut.s_axis_tvalid.value = 0
        dut.m_axis_tready.value = 1
        for name in ("tdata", "tkeep", "tlast", "tuser"):
            getattr(dut, f"s_axis_{name}").value = 0
        dut.s_rst.value = dut.m_rst.value = 1
        for clock in (dut.s_clk, dut.m_clk):
            cocotb.start_soon(Clock(clock, PERIOD_PS, "ps").start())
        cocotb.start_soon(self._take())

    async def _take(self) -> None:
        rng = Random(1)
        dut = self.dut
        while True:
            await FallingEdge(dut.m_clk)
            dut.m_axis_tready.value = int(rng.random() < self.ready_share)
            await RisingEdge(dut.m_clk)
            self.cycle += 1
            if dut.m_axis_tvalid.value == 1 and dut.m_axis_tready.value == 1 and dut.m_rst.value == 0:
                word = tuple(int(getattr(dut, f"m_axis_{name}").value) for name in ("tdata", "tkeep", "tlast", "tuser"))
                self.out.append((self.cycle, word))  # type: ignore[arg-type]

    async def reset(self) -> None:
        self.dut.s_axis_tvalid.value = 0
        self.dut.s_rst.value = self.dut.m_rst.value = 1
        await Timer(8 * PERIOD_PS, "ps")
        await FallingEdge(self.dut.s_clk)
        self.dut.s_rst.value = self.dut.m_rst.value = 0
        for _ in range(8):
            await FallingEdge(self.dut.s_clk)
        self.out.clear()

    async def give(self, words: list[Word]) -> list[int]:
        """Without a gap but for s_axis_tready; the cycle in which each went in."""
        came = []
        dut = self.dut
        for data, keep, last, user in words:
            dut.s_axis_tvalid.value = 1
            dut.s_axis_tdata.value, dut.s_axis_tkeep.value, dut.s_axis_tlast.value, dut.s_axis_tuser.value = data, keep, last, user
            while True:
                await Timer(1, "ps")
                taken = dut.s_axis_tready.value == 1
                await FallingEdge(dut.s_clk)
                if taken:
                    break
            came.append(self.cycle)
        dut.s_axis_tvalid.value = 0
        return came

    async def idle(self, cycles: int) -> None:
        for _ in range(cycles):
            await FallingEdge(self.dut.s_clk)


def frame(rng: Random, count: int) -> list[Word]:
    keep = (1 << rng.randint(1, 8)) - 1
    return [(rng.getrandbits(64), keep if k == count - 1 else 0xFF, int(k == count - 1), rng.randrange(2)) for k in range(count)]


@cocotb.test
async def a_frame_begins_when_enough_of_it_has_come(dut: Any) -> None:
    """A cycle after WORDS_AHEAD words, or PATIENCE_CYCLES after the first; always after the same number of cycles, the first frame after a reset as any."""
    rng = random_numbers()
    bench = CrossingBench(dut)
    for _ in range(4 if SHORT else 30):
        await bench.reset()
        for count in rng.sample(range(1, 14), k=13):
            bench.out.clear()
            words = frame(rng, count)
            came = await bench.give(words)
            await bench.idle(40)
            assert [word for _, word in bench.out] == words
            cycles = [cycle for cycle, _ in bench.out]
            assert cycles == list(range(cycles[0], cycles[0] + count)), "a gap"
            waited = cycles[0] - (came[WORDS_AHEAD - 1] if count >= WORDS_AHEAD else came[0])
            assert waited == (LONG_CYCLES if count >= WORDS_AHEAD else SHORT_CYCLES), f"{count} words"


@cocotb.test
async def every_word_of_frames_back_to_back(dut: Any) -> None:
    rng = random_numbers()
    bench = CrossingBench(dut)
    await bench.reset()
    for share in (1.0, 0.5):
        bench.out.clear()
        bench.ready_share = share
        words = [word for _ in range(60 if SHORT else 600) for word in frame(rng, rng.randint(1, 30))]
        await bench.give(words)
        await bench.idle(200)
        assert [word for _, word in bench.out] == words


@cocotb.test
async def a_reset_in_mid_frame(dut: Any) -> None:
    rng = random_numbers()
    bench = CrossingBench(dut)
    for _ in range(20):
        await bench.reset()
        words = frame(rng, 2)
        came = await bench.give(words)
        await bench.idle(40)
        assert [word for _, word in bench.out] == words
        assert bench.out[0][0] - came[0] == SHORT_CYCLES
        bench.ready_share = rng.choice([0.0, 1.0])
        await bench.give(frame(rng, 30)[: rng.randint(1, 12)])
        await bench.idle(rng.randrange(12))
        bench.ready_share = 1.0
