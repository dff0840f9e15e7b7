# SPDX-License-Identifier: Apache-2.0
"""lofamo: hosts that beat, late and never, what is told to neighbours, and what neighbours tell, against a model that is one cycle late."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, random_numbers

BEAT_CYCLES = PARAMETERS.get("BEAT_CYCLES", 1024)
UP, SILENT = 1, 2  # of a link's ten bits


async def started(dut: Any, period: int) -> Bench:
    bench = Bench(dut)
    for name in ("host_beat", "host_says", "link_up", "silent", "neighbour_state"):
        getattr(dut, name).value = 0
    dut.cfg_period_cycles.value = period
    await bench.reset()
    return bench


async def beat(bench: Bench, says: int = 0) -> None:
    bench.dut.host_beat.value = 1
    bench.dut.host_says.value = says
    await bench.wait(1)
    bench.dut.host_beat.value = 0


@cocotb.test
async def a_host_that_beats_in_time_is_never_silent(dut: Any) -> None:
    bench = await started(dut, 50)
    for _ in range(20 if SHORT else 200):
        await beat(bench)
        for _ in range(49):
            assert dut.state.value == 0
            await bench.wait(1)
    assert dut.state.value == 0


@cocotb.test
async def a_host_that_stops_is_silent_a_period_later(dut: Any) -> None:
    rng = random_numbers()
    for period in (1, 2, 50, rng.randint(3, 500)):
        bench = await started(dut, period)
        for says in (0, 3, 127):
            await beat(bench, says)
            await bench.wait(1)  # what is read is of the cycle before
            cycles = 0
            while int(dut.state.value) & 1 == 0:
                assert int(dut.state.value) >> 1 == says
                await bench.wait(1)
                cycles += 1
            assert cycles == period, f"silent after {cycles} of {period}"
            assert int(dut.state.value) == says << 1 | 1, "what it said last stays"
            await bench.wait(rng.randint(1, 3 * period))
            assert int(dut.state.value) & 1


@cocotb.test
async def a_host_that_never_came_is_silent_and_one_that_is_not_watched_never(dut: Any) -> None:
    bench = await started(dut, 30)
    await bench.wait(29)
    assert dut.state.value == 0
    await bench.wait(4)
    assert dut.state.value == 1
    dut.cfg_period_cycles.value = 0
    await bench.wait(2)
    for _ in range(200):
        assert dut.state.value == 0
        await bench.wait(1)


@cocotb.test
async def the_host_sees_that_the_logic_lives(dut: Any) -> None:
    bench = await started(dut, 0)
    before = int(dut.beats.value)
    await bench.wait(5 * BEAT_CYCLES)
    assert int(dut.beats.value) == before + 5


@cocotb.test
async def links_show_what_neighbours_say_and_each_change_is_one_pulse(dut: Any) -> None:
    rng = random_numbers()
    await started(dut, 0)
    shown, changes = 0, 0
    for _ in range(300 if SHORT else 3000):
        up, silent = rng.getrandbits(6) | rng.getrandbits(6), rng.getrandbits(6) & rng.getrandbits(6)
        states = [rng.choice([0, 0, 1, rng.getrandbits(8)]) for _ in range(6)]
        dut.link_up.value, dut.silent.value = up, silent
        dut.neighbour_state.value = sum(state << 8 * port for port, state in enumerate(states))
        wanted = 0
        for port, state in enumerate(states):
            is_up, is_silent = up >> port & 1, silent >> port & 1
            heard = is_up and not is_silent
            wanted |= (is_up * UP | (is_up and is_silent) * SILENT | (state if heard else 0) << 2) << 10 * port
        pulses, whose = 0, 0
        for cycle in range(6):
            await RisingEdge(dut.clk)
            pulses += int(dut.changed.value)
            whose |= int(dut.changes.value)
            assert int(dut.changed.value) == (int(dut.changes.value) != 0)
            assert dut.state_changes.value == 0
            if cycle > 2:
                assert int(dut.links.value) == wanted
        assert pulses == (wanted != shown)
        assert whose == sum(1 << port for port in range(6) if (wanted ^ shown) >> 10 * port & 0x3FF)
        changes += wanted != shown
        shown = wanted
    assert changes > 100


@cocotb.test
async def a_change_of_its_own_state_is_one_pulse_and_of_no_link(dut: Any) -> None:
    bench = await started(dut, 40)
    pulses: list[int] = []
    cycles: list[int] = []
    before = 0

    async def look() -> None:
        nonlocal before
        for cycle in range(100):
            await RisingEdge(dut.clk)
            if int(dut.state.value) != before:
                cycles.append(cycle)
            before = int(dut.state.value)
            assert dut.changes.value == 0
            assert dut.changed.value == dut.state_changes.value
            if dut.changed.value == 1:
                pulses.append(cycle)

    looking = cocotb.start_soon(look())
    await beat(bench)  # well, as before
    await beat(bench, 9)
    await bench.wait(10)
    await beat(bench, 9)
    await bench.wait(60)  # silent
    await beat(bench, 0)
    await looking
    assert len(cycles) == 3
    assert pulses == [cycle + 1 for cycle in cycles]
