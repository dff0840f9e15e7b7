# SPDX-License-Identifier: Apache-2.0
"""Clocks of any period and phase, that stand and return; and for each a bench of its own, whose `clk` is that clock."""

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Event, RisingEdge, Timer
from cocotb.utils import get_sim_time

from common.bench import Bench


class View:
    """A design whose `clk` is another of its signals, and whose GMII has another name."""

    def __init__(self, top: Any, clock: str, gmii: str = "gmii") -> None:
        self.clk = getattr(top, clock)
        self._top, self._gmii = top, gmii

    def __getattr__(self, name: str) -> Any:
        own = f"{self._gmii}{name.removeprefix('gmii')}" if name.startswith("gmii") else name
        self.__dict__[name] = getattr(self._top, own)
        return self.__dict__[name]


class Steady(Bench):
    """What one clock drives whose period does not change: a whole, even number of ps. phase: of a period, when its first edge comes; gmii: what the names of its
    wire begin with. Much quicker than Domain."""

    drives_clock = False

    def __init__(self, top: Any, clock: str, period_ps: int, phase: float, gmii: str = "gmii") -> None:
        self.clock_ps = period_ps
        super().__init__(View(top, clock, gmii))
        self.dut.clk.value = 0
        cocotb.start_soon(self._run(1 + int(phase * period_ps)))

    async def _run(self, first_ps: int) -> None:
        await Timer(first_ps, "ps")
        self.started_ps = get_sim_time("step")
        await Clock(self.dut.clk, self.clock_ps, unit="ps").start()


class Domain(Bench):
    """What one clock drives. period_ps: not a whole number, if need be, and may be changed; phase: of a period, when its first edge comes. `cycle` counts its edges."""

    drives_clock = False

    def __init__(self, top: Any, clock: str, period_ps: float, phase: float) -> None:
        self.clock_ps = round(period_ps)
        super().__init__(View(top, clock))
        self.period_ps = period_ps
        self.edges = 0
        self.edge_ps = 0.0  # of the last one
        self._stands, self._goes = False, Event()
        self.dut.clk.value = 0
        cocotb.start_soon(self._run(1 + int(phase * period_ps)))

    def stop(self) -> None:
        self._stands = True
        self._goes.clear()

    def go(self) -> None:
        self._stands = False
        self._goes.set()

    def cycle_at(self, time_ps: int) -> int:
        return self.edges

    async def wait(self, cycles: int) -> None:
        edge = RisingEdge(self.dut.clk)
        for _ in range(cycles):
            await edge

    async def to_edge(self) -> None:
        if get_sim_time("step") != round(self.edge_ps):
            await RisingEdge(self.dut.clk)

    async def _run(self, first_ps: int) -> None:
        await Timer(first_ps, "ps")
        due = float(get_sim_time("step"))
        while True:
            self.edges += 1
            self.edge_ps = due
            self.dut.clk.value = 1
            await Timer(int(self.period_ps / 2), "ps")
            self.dut.clk.value = 0
            due += self.period_ps
            if self._stands:
                await self._goes.wait()
                due = max(due, get_sim_time("step") + self.period_ps / 2)
            await Timer(max(1, round(due - get_sim_time("step"))), "ps")
