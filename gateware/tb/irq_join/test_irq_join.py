# SPDX-License-Identifier: Apache-2.0
"""irq_join: sources that rise and fall in any cycle, and one that sends a message for each rising edge of the line."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, random_numbers

SOURCES = PARAMETERS.get("SOURCES", 2)
RISE_CYCLES = 2  # from a source's rising to the line's at the latest, with one cycle more until it is read


@cocotb.test
async def each_rising_of_a_source_has_one_of_the_line(dut: Any) -> None:
    rng = random_numbers()
    bench = Bench(dut)
    dut.levels.value = 0
    await bench.reset()
    levels = was = line = 0
    unseen: dict[int, int] = {}  # sources that have risen, since so many cycles, and no edge of the line after it
    edges = rises = 0
    for _ in range(2000 if SHORT else 20000):
        for source in range(SOURCES):
            if rng.random() < rng.choice([0.05, 0.4]):
                levels ^= 1 << source
        dut.levels.value = levels
        await RisingEdge(dut.clk)  # the line is that of the levels before
        now = int(dut.irq.value)
        assert not now or was, "no source is high"
        unseen = {source: age + 1 for source, age in unseen.items() if was >> source & 1}
        if now and not line:
            edges += 1
            unseen.clear()
        assert all(age <= RISE_CYCLES for age in unseen.values()), "no message for one that has risen"
        for source in range(SOURCES):
            if levels >> source & 1 and not was >> source & 1:
                unseen[source] = 0
                rises += 1
        line, was = now, levels
    assert 100 < edges <= rises


@cocotb.test
async def alone_it_is_the_source_a_cycle_later(dut: Any) -> None:
    rng = random_numbers()
    bench = Bench(dut)
    dut.levels.value = 0
    await bench.reset()
    for source in range(SOURCES):
        shown = [0, 0]
        for _ in range(100):
            level = rng.randrange(2)
            dut.levels.value = level << source
            await RisingEdge(dut.clk)
            shown = [*shown[-1:], level]
            assert int(dut.irq.value) == shown[0]
        dut.levels.value = 0
        await bench.wait(3)
        assert dut.irq.value == 0


@cocotb.test
async def one_that_rises_beside_another_takes_the_line_down_for_a_cycle(dut: Any) -> None:
    bench = Bench(dut)
    dut.levels.value = 0
    await bench.reset()
    dut.levels.value = 1
    await bench.wait(5)
    assert dut.irq.value == 1
    dut.levels.value = 3
    seen = []
    for _ in range(6):
        await RisingEdge(dut.clk)
        seen.append(int(dut.irq.value))
    assert seen.count(0) == 1
    assert seen[-2:] == [1, 1]
    dut.levels.value = 2  # one that falls does not
    for _ in range(6):
        await RisingEdge(dut.clk)
        assert dut.irq.value == 1
