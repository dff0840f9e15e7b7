# SPDX-License-Identifier: Apache-2.0
"""Clocks of any period and phase, that stand and return; and for each a bench of its own, whose `clk` is that clock."""

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import Event, FallingEdge, RisingEdge, Timer
from cocotb.utils import get_sim_time

from common.bench import STEPS_A_PS, Bench, now_ps


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
        self.started_ps = now_ps()
        await Clock(self.dut.clk, self.clock_ps, unit="ps").start()


class Domain(Bench):
    """What one clock drives. period_ps: not a whole number, if need be, and may be changed, from the clock's next edge on; phase: of a period, when its first
    edge comes. `cycle` counts its edges."""

    drives_clock = False

    def __init__(self, top: Any, clock: str, period_ps: float, phase: float) -> None:
        self.clock_ps = round(period_ps)
        super().__init__(View(top, clock))
        self._period_ps = period_ps
        self._half = self._before = 0  # of the period, in steps; edges before the clock began to run as it does now: 0, it stands
        self._first = get_sim_time("step")  # the first edge of the clock as it runs, or the last one before it stood
        self._stands, self._goes, self._changed = False, Event(), Event()
        self.dut.clk.value = 0
        cocotb.start_soon(self._run(1 + int(phase * period_ps)))

    @property
    def period_ps(self) -> float:
        return self._period_ps

    @period_ps.setter
    def period_ps(self, period_ps: float) -> None:
        self._period_ps = period_ps
        self._changed.set()

    def stop(self) -> None:
        self._stands = True
        self._goes.clear()
        self._changed.set()

    def go(self) -> None:
        self._stands = False
        self._goes.set()

    @property
    def _periods(self) -> int:
        """Since the first edge of the clock as it runs."""
        return (get_sim_time("step") - self._first) // (2 * self._half) if self._half else 0

    @property
    def edges(self) -> int:
        return self._before + (self._periods + 1 if self._half else 0)

    @property
    def edge_ps(self) -> float:
        """Of the last one."""
        return (self._first + 2 * self._half * self._periods) / STEPS_A_PS

    def cycle_at(self, time_ps: int) -> int:
        return self.edges

    async def wait(self, cycles: int) -> None:
        edge = RisingEdge(self.dut.clk)
        for _ in range(cycles):
            await edge

    async def to_edge(self) -> None:
        if get_sim_time("step") != round(self.edge_ps * STEPS_A_PS):
            await RisingEdge(self.dut.clk)

    async def _run(self, first_ps: int) -> None:
        """The simulator drives the clock, until something about it changes."""
        await Timer(first_ps, "ps")
        while True:
            self._changed.clear()
            self._half, self._first = round(self._period_ps * STEPS_A_PS / 2), get_sim_time("step")
            clock = Clock(self.dut.clk, 2 * self._half, unit="step")
            clock.start()
            await self._changed.wait()
            if self.dut.clk.value == 1:
                await FallingEdge(self.dut.clk)
            clock.stop()
            last = round(self.edge_ps * STEPS_A_PS)
            self._before, self._half, self._first = self.edges, 0, last
            await self._goes_on()
            due = last + round(self._period_ps * STEPS_A_PS)
            await Timer(max(1, due - get_sim_time("step")), "step")

    async def _goes_on(self) -> None:
        if self._stands:
            await self._goes.wait()
            await Timer(round(self._period_ps * STEPS_A_PS / 2), "step")
