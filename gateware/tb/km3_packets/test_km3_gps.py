# SPDX-License-Identifier: Apache-2.0
"""km3_gps: a second that begins with the pulse, wherever it comes, and those after it by the clock; a pulse at another place, and none, are told."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, Bench, random_numbers

CYCLES_PER_S = PARAMETERS.get("CYCLES_PER_S", 100)
PPS_CYCLES = 4
COUNTERS = ("gps_set", "begun", "count_pulse", "error_period", "error_silent")


def quiet(dut: Any) -> None:
    for name in ("pps", "set", "s_axis_tvalid", "run_begins", "enable"):
        getattr(dut, name).value = 0


async def pulse(bench: Bench, cycles: int = 3) -> int:
    """The cycle at whose beginning it rises."""
    bench.dut.pps.value = 1
    rose = bench.cycle
    await bench.wait(cycles)
    bench.dut.pps.value = 0
    return rose


@cocotb.test
async def a_second_begins_with_its_pulse(dut: Any) -> None:
    bench, rng = Bench(dut, COUNTERS), random_numbers()
    quiet(dut)
    await bench.reset()
    for second in (7, 0xFFFF_FFFE, 3):
        bench.forget_counts()
        await bench.wait(rng.randrange(2, 60))
        dut.set.value, dut.second.value = 1, second
        await bench.wait(1)
        dut.set.value = 0
        dut.second.value = rng.randrange(1 << 32)
        await bench.wait(rng.randrange(1, 60))
        set_up = RisingEdge(dut.gps_set)
        watch = cocotb.start_soon(rise(set_up, bench))
        rose = await pulse(bench)
        await bench.wait(10)
        # The pin is seen an edge after it rose, and the second begins an edge after gps_set did.
        assert watch.result() + 1 - (rose + 1) == PPS_CYCLES
        assert (int(dut.gps_second.value), int(dut.known.value)) == (second, 1)
        assert bench.counts["gps_set"] == 1
        for more in range(1, 4):
            await bench.wait(CYCLES_PER_S - 13)
            await pulse(bench)
            await bench.wait(10)
            assert int(dut.gps_second.value) == (second + more) % (1 << 32)
        counts = bench.counts
        assert (counts["gps_set"], counts["count_pulse"]) == (1, 4)
        assert counts["error_silent"] + counts["error_period"] <= 2, "of the one before"


async def rise(edge: RisingEdge, bench: Bench) -> int:
    await edge
    return bench.cycle


@cocotb.test
async def a_pulse_elsewhere_and_none_are_told(dut: Any) -> None:
    bench = Bench(dut, COUNTERS)
    quiet(dut)
    await bench.reset()
    await bench.wait(3 * CYCLES_PER_S)
    bench.expect_counts()
    await pulse(bench)
    await bench.wait(7)
    early, late = {"error_period": 1}, {"error_period": 1, "error_silent": 1}
    for gap, told in (
        (CYCLES_PER_S, {}),
        (CYCLES_PER_S - 1, early),
        (CYCLES_PER_S, {}),
        (CYCLES_PER_S + 1, late),
        (CYCLES_PER_S, {}),
    ):
        bench.forget_counts()
        await bench.wait(gap - 10)
        await pulse(bench)
        await bench.wait(7)
        bench.expect_counts(count_pulse=1, **told)
    await bench.wait(10)
    bench.forget_counts()
    await bench.wait(3 * CYCLES_PER_S)
    bench.expect_counts(error_silent=1)
    assert int(dut.known.value) == 0, "no second was ever said"


# Of each second from the first after the one that was set: where its pulses come, in cycles from its beginning, and what is told of them.
SECONDS: tuple[tuple[tuple[int, ...], dict[str, int]], ...] = (
    ((0,), {}),
    ((), {"error_silent": 1}),
    ((), {}),  # it was told
    ((0,), {}),
    ((0, 30), {"error_period": 1}),
    ((0,), {}),
    ((-1,), {"error_period": 1}),
    ((1,), {"error_period": 1, "error_silent": 1}),
    ((1,), {"error_period": 1}),
    ((0,), {}),
    ((-30, -15, 0), {"error_period": 2}),
    ((), {"error_silent": 1}),
    ((0,), {}),
)


@cocotb.test
async def seconds_go_on_by_the_clock(dut: Any) -> None:
    """Once one was set: a pulse that is missing, too much, early or late is told, and moves no second. A second that is set anew begins with a pulse anywhere."""
    bench = Bench(dut, COUNTERS)
    quiet(dut)
    await bench.reset()
    for second, place in ((0xFFFF_FFFC, 0), (5, 37)):
        dut.set.value, dut.second.value = 1, second
        await bench.wait(1)
        dut.set.value = 0
        await bench.wait(place + 5)
        watch = cocotb.start_soon(rise(RisingEdge(dut.gps_set), bench))
        rose = await pulse(bench)
        await bench.wait(8)
        begun = watch.result()
        bench.forget_counts()
        seen = cocotb.start_soon(look(bench, second, begun))
        wanted = dict.fromkeys(COUNTERS, 0)
        for number, (places, told) in enumerate(SECONDS, 1):
            for at in places:
                await bench.wait(rose + number * CYCLES_PER_S + at - bench.cycle)
                await pulse(bench)
            await bench.wait(rose + number * CYCLES_PER_S + 50 - bench.cycle)
            for name, count in {"begun": 1, "count_pulse": len(places), **told}.items():
                wanted[name] += count
            assert bench.counts == wanted, number
        assert (await seen) == len(SECONDS)


async def look(bench: Bench, second: int, begun: int) -> int:
    """In every cycle after `begun`, whether `gps_second` is that of the clock; how many began."""
    while (number := (bench.cycle - begun - 1) // CYCLES_PER_S) < len(SECONDS):
        assert int(bench.dut.gps_second.value) == (second + number) % (1 << 32), number
        await bench.wait(1)
    return number
