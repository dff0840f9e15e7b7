# SPDX-License-Identifier: Apache-2.0
"""async_fifo, pulse_crossing, cycle_crossing, sync_bits, reset_sync and km3_clock_watch between two clocks of any ratio and phase, that stand and return."""

from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, Timer
from common.bench import PARAMETERS, SHORT, now_ps, random_numbers
from common.clocks import Domain

WIDTH, DEPTH = PARAMETERS.get("WIDTH", 20), PARAMETERS.get("DEPTH", 16)
ROUNDS = 3 if SHORT else 15


class Crossing:
    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, random_numbers()
        self.s, self.m = (Domain(dut, clock, 5000, self.rng.random()) for clock in ("s_clk", "m_clk"))
        fifo, pulses = dut.g_async_fifo, dut.g_pulse_crossing
        for signal in (
            fifo.s_axis_tvalid,
            fifo.s_axis_tdata,
            fifo.m_axis_tready,
            pulses.s_pulses,
            pulses.m_ready,
            dut.g_sync_bits.s_bits,
        ):
            signal.value = 0

    async def begin(self) -> None:
        """Both clocks anew, with a reset of any length, long enough for both or for neither."""
        self.s.period_ps, self.m.period_ps = (
            self.rng.choice([5000, 5000.7, 10_000, self.rng.uniform(2000, 40_000)]) for _ in range(2)
        )
        await Timer(self.rng.randrange(1, 50_000), "ps")
        self.dut.rst.value = 1
        await Timer(self.rng.choice([1, 1000, 100_000]), "ps")
        assert (self.dut.s_rst.value, self.dut.m_rst.value) == (1, 1), "a reset waits for a clock"
        self.dut.rst.value = 0
        await self.settled()

    async def settled(self) -> None:
        await self.s.wait(4)
        await self.m.wait(4)


@cocotb.test
async def fifo_keeps_words_and_order(dut: Any) -> None:
    crossing = Crossing(dut)
    for _ in range(ROUNDS):
        await crossing.begin()
        words = [crossing.rng.getrandbits(WIDTH) for _ in range(200 if SHORT else 500)]
        taken: list[int] = []
        reader = cocotb.start_soon(read(crossing, taken, len(words), crossing.rng.choice([0.0, 0.3, 0.8])))
        stopper = cocotb.start_soon(stop_and_go(crossing))
        await write(crossing, words, crossing.rng.choice([0.0, 0.3, 0.8]))
        await reader
        stopper.cancel()
        crossing.s.go()
        crossing.m.go()
        assert taken == words
        await crossing.m.wait(20)
        assert dut.g_async_fifo.m_axis_tvalid.value == 0, "a word too many"


async def write(crossing: Crossing, words: list[int], pause: float) -> None:
    fifo, edge, rng = crossing.dut.g_async_fifo, RisingEdge(crossing.dut.s_clk), crossing.rng
    for word in words:
        while rng.random() < pause:
            await edge
        fifo.s_axis_tdata.value, fifo.s_axis_tvalid.value = word, 1
        await edge
        while fifo.s_axis_tready.value == 0:
            await edge
        fifo.s_axis_tvalid.value = 0


async def read(crossing: Crossing, taken: list[int], count: int, pause: float) -> None:
    fifo, edge, rng = crossing.dut.g_async_fifo, RisingEdge(crossing.dut.m_clk), crossing.rng
    while len(taken) < count:
        ready = rng.random() >= pause
        fifo.m_axis_tready.value = int(ready)
        await edge
        assert int(fifo.m_more.value) <= DEPTH
        if fifo.m_axis_tvalid.value == 1 and ready:
            taken.append(int(fifo.m_axis_tdata.value))
    fifo.m_axis_tready.value = 0


async def stop_and_go(crossing: Crossing) -> None:
    while True:
        await Timer(crossing.rng.randrange(1000, 1_000_000), "ps")
        clock = crossing.rng.choice([crossing.s, crossing.m])
        clock.stop()
        await Timer(crossing.rng.randrange(1000, 500_000), "ps")
        clock.go()


@cocotb.test
async def fifo_holds_all_its_words(dut: Any) -> None:
    """DEPTH of them and one at the output, with the reader's clock standing or not; and it is quick at both ends."""
    crossing = Crossing(dut)
    fifo = dut.g_async_fifo
    for _ in range(ROUNDS):
        await crossing.begin()
        fifo.s_axis_tdata.value, fifo.s_axis_tvalid.value = 1, 1
        await crossing.s.wait(1)
        taken_at = now_ps()
        fifo.s_axis_tvalid.value = 0
        while fifo.m_axis_tvalid.value == 0:
            await crossing.m.wait(1)
        edges = (now_ps() - taken_at) / crossing.m.period_ps
        assert 2 <= edges <= 4.01, f"a word took {edges:.2f} cycles of the reader"
        fifo.s_axis_tvalid.value = 1
        await crossing.s.wait(2 * DEPTH)
        assert fifo.s_axis_tready.value == 0
        await crossing.m.wait(4)
        await crossing.s.wait(2 * DEPTH)
        fifo.s_axis_tvalid.value = 0
        await crossing.m.wait(4)
        assert (fifo.m_axis_tvalid.value, int(fifo.m_more.value)) == (1, DEPTH)


@cocotb.test
async def reset_forgets_all_on_both_sides(dut: Any) -> None:
    """Also where a clock stands, at any moment of a stream of words."""
    crossing = Crossing(dut)
    fifo, rng = dut.g_async_fifo, crossing.rng
    for _ in range(3 * ROUNDS):
        await crossing.begin()
        writer = cocotb.start_soon(write(crossing, [rng.getrandbits(WIDTH) for _ in range(100)], 0.2))
        fifo.m_axis_tready.value = rng.getrandbits(1)
        clock = rng.choice([crossing.s, crossing.m])
        await clock.wait(rng.randrange(1, 60))
        clock.stop()
        await Timer(rng.randrange(1, 200_000), "ps")
        dut.rst.value = 1
        writer.cancel()
        fifo.s_axis_tvalid.value = fifo.m_axis_tready.value = 0
        await Timer(rng.randrange(1, 200_000), "ps")
        dut.rst.value = 0
        await Timer(rng.randrange(1, 200_000), "ps")
        assert fifo.m_axis_tvalid.value == 0
        clock.go()
        await crossing.settled()
        await crossing.settled()
        assert (fifo.m_axis_tvalid.value, int(fifo.m_more.value)) == (0, 0)
        taken: list[int] = []
        words = [rng.getrandbits(WIDTH) for _ in range(3 * DEPTH)]
        reader = cocotb.start_soon(read(crossing, taken, len(words), 0.3))
        await write(crossing, words, 0.3)
        await reader
        assert taken == words


@cocotb.test
async def reset_ends_after_three_edges(dut: Any) -> None:
    crossing = Crossing(dut)
    for _ in range(ROUNDS):
        await crossing.begin()
        dut.rst.value = 1
        await Timer(crossing.rng.randrange(1, 100_000), "ps")
        await FallingEdge(dut.m_clk)
        dut.rst.value = 0
        for _ in range(3):
            assert dut.m_rst.value == 1
            await FallingEdge(dut.m_clk)
        assert dut.m_rst.value == 0


@cocotb.test
async def every_pulse_leaves_once(dut: Any) -> None:
    crossing = Crossing(dut)
    pulses, rng = dut.g_pulse_crossing, crossing.rng
    for round_ in range(ROUNDS):
        await crossing.begin()
        share = 0.25 * min(1.0, crossing.s.period_ps / crossing.m.period_ps)
        for _ in range(200):
            pulses.m_ready.value = int(rng.random() < 0.9)
            pulses.s_pulses.value = rng.randrange(4) if rng.random() < share else 0
            await crossing.s.wait(1)
        pulses.s_pulses.value, pulses.m_ready.value = 0, 1
        await drained(crossing)
        assert int(pulses.left.value) == int(pulses.came.value) > 0
        # The reader's clock stands: as many as there is room for leave in the end, and no more than came.
        crossing.m.stop()
        await Timer(100_000, "ps")
        before = int(pulses.left.value)
        pulses.s_pulses.value = 3
        came = rng.randrange(1, 22) if round_ % 2 else rng.randrange(22, 40)
        await crossing.s.wait(came)
        pulses.s_pulses.value = 0
        crossing.m.go()
        await drained(crossing)
        left = int(pulses.left.value) - before
        assert left == 3 * came if 3 * came <= 63 else 63 <= left <= 68, f"{left} of {3 * came}"


async def drained(crossing: Crossing) -> None:
    for _ in range(80):
        await crossing.settled()


@cocotb.test
async def cycles_are_never_late_and_one_early_at_most(dut: Any) -> None:
    crossing = Crossing(dut)
    block, s, m = dut.g_cycle_crossing, crossing.s, crossing.m
    for _ in range(ROUNDS):
        await crossing.begin()
        seen: list[tuple[int, float]] = []  # at each edge of the reader: cycle, and part of it
        for _ in range(300):
            await m.wait(1)
            part = (m.edge_ps - s.edge_ps) / s.period_ps
            seen.append((int(block.s_cycles.value), part if part > 0 else 1.0))
            if len(seen) > 2:
                cycle, part = seen[-3]
                late = (int(block.m_cycles.value) - cycle + 128) % 256 - 128 - part
                assert -1.01 <= late <= 0.01, f"{late:.2f} cycles late"


@cocotb.test
async def bits_come_after_two_edges(dut: Any) -> None:
    crossing = Crossing(dut)
    block, rng = dut.g_sync_bits, crossing.rng
    for _ in range(ROUNDS):
        await crossing.begin()
        before = 0
        for _ in range(20):
            await crossing.s.wait(1)
            bits = rng.getrandbits(4)
            block.s_bits.value = bits
            await FallingEdge(dut.m_clk)
            await FallingEdge(dut.m_clk)
            await FallingEdge(dut.m_clk)
            assert int(block.m_bits.value) == bits
            before = bits
        dut.rst.value = 1
        await Timer(1, "ps")
        assert int(block.m_bits.value) == 0, f"{before:04b} outlives a reset"
        dut.rst.value = 0


async def once(edge: Any) -> None:
    await edge


@cocotb.test
async def a_clock_that_stands_is_seen(dut: Any) -> None:
    """And one that runs, of any rate within the contract; a reset while it stands does not make it run."""
    crossing, runs = Crossing(dut), dut.g_clock_watch.m_runs
    s, m, rng = crossing.s, crossing.m, crossing.rng
    for _ in range(ROUNDS):
        await crossing.begin()
        m.period_ps = rng.uniform(3000, 12_000)
        s.period_ps = m.period_ps * rng.choice([0.26, 1, 7, rng.uniform(0.26, 7)])
        await crossing.settled()
        await s.wait(16)
        await m.wait(8)
        for turn in range(4):
            stood = cocotb.start_soon(once(FallingEdge(runs)))
            assert runs.value == 1
            await s.wait(rng.randrange(100, 300))
            assert not stood.done(), "it runs"
            stood.cancel()
            s.stop()
            await m.wait(64 + 8)
            assert runs.value == 0
            if turn % 2:
                dut.rst.value = 1
                await m.wait(rng.randrange(1, 5))
                dut.rst.value = 0
            ran = cocotb.start_soon(once(RisingEdge(runs)))
            await m.wait(200)
            assert not ran.done(), "it stands"
            ran.cancel()
            s.go()
            await s.wait(16 + 4)
            await m.wait(8)
