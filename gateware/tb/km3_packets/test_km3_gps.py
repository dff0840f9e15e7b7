# SPDX-License-Identifier: Apache-2.0
"""km3_gps: seconds that begin with the pulse, wherever it comes; a pulse at another place, and none, are told."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, Bench, random_numbers

CYCLES_PER_S = PARAMETERS.get("CYCLES_PER_S", 100)
PPS_CYCLES = 4
COUNTERS = ("gps_set", "count_pulse", "error_period", "error_silent")


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
    for name in ("pps", "set", "s_axis_tvalid", "run_begins", "enable"):
        getattr(dut, name).value = 0
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
    for name in ("pps", "set", "s_axis_tvalid", "run_begins", "enable"):
        getattr(dut, name).value = 0
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
