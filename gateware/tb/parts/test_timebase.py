# SPDX-License-Identifier: Apache-2.0
"""timebase against fractions: no part of a nanosecond is lost, a set clock starts at exactly what was set."""

from fractions import Fraction
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, Part, random_numbers

CYCLE_NS = Fraction(PARAMETERS.get("NS_NUMERATOR", 32), PARAMETERS.get("NS_DENOMINATOR", 5))


@cocotb.test
async def nanoseconds_and_cycles(dut: Any) -> None:
    rng = random_numbers()
    part = Part(dut, "g_timebase")
    bench = Bench(part)
    part.set.value = 0
    for _ in range(4 if SHORT else 40):
        dut.rst.value = 1
        await bench.wait(1)
        dut.rst.value = 0
        cycles, since, base_ns = 0, 0, 0
        for _ in range(300):
            setting = rng.random() < 0.02
            part.set.value = int(setting)
            if setting:
                target = rng.choice([0, (1 << 64) - 5, rng.getrandbits(64), (1 << 32) - 3])
                part.set_ns.value = target
            await bench.wait(1)
            assert int(part.now_cycles.value) == cycles
            assert int(part.now_ns.value) == (base_ns + int(since * CYCLE_NS)) % (1 << 64)
            cycles, since = cycles + 1, since + 1
            if setting:
                since, base_ns = 0, target
