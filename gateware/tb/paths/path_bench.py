# SPDX-License-Identifier: Apache-2.0
"""What the benches of both paths begin with: bench_top with all inputs at rest, cycles as its modules count them."""

from collections.abc import Iterable
from typing import Any

from common.bench import PARAMETERS, SHORT, Bench
from common.wires import WIRE_CLOCK_PS

REPLIER = bool(PARAMETERS["REPLIER"])
BRIEF = SHORT or not REPLIER  # what REPLIER does not change is looked at in full with it alone


class PathBench(Bench):
    clock_ps = WIRE_CLOCK_PS

    def __init__(self, dut: Any, counters: Iterable[str]) -> None:
        super().__init__(dut, counters)
        self.ahead = 0
        for name in (
            "match_write",
            "group_write",
            "table_write",
            "s_meta_tvalid",
            "s_axis_tvalid",
            "s_reply_tvalid",
            "m_reply_tready",
        ):
            getattr(dut, name).value = 0

    def cycle_at(self, time_ps: int) -> int:
        return super().cycle_at(time_ps) + self.ahead

    async def reset(self, cycles: int = 4) -> None:
        await super().reset(cycles)
        self.ahead += int(self.dut.now_cycles.value) - self.cycle
