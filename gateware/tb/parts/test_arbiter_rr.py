# SPDX-License-Identifier: Apache-2.0
"""arbiter_rr against a list that is turned: whoever was served goes to its end."""

from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, Part, random_numbers

PORTS = PARAMETERS.get("PORTS", 5)


@cocotb.test
async def who_was_served_is_last_in_line(dut: Any) -> None:
    rng = random_numbers()
    part = Part(dut, "g_arbiter_rr")
    bench = Bench(part)
    part.request.value = part.taken.value = 0
    served = 0
    for _ in range(6 if SHORT else 60):
        await bench.reset()
        line = list(range(PORTS))
        share = rng.random()
        for _ in range(150):
            request = sum((rng.random() < share) << port for port in range(PORTS))
            taken = int(rng.random() < 0.7)
            part.request.value, part.taken.value = request, taken
            await bench.wait(1)
            asking = [port for port in line if request >> port & 1]
            assert int(part.grant.value) == (1 << asking[0] if asking else 0)
            if asking and taken:
                at = line.index(asking[0])
                line = line[at + 1 :] + line[: at + 1]
                served += 1
        part.request.value = 0
    assert served > 100
