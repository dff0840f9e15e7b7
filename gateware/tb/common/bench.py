# SPDX-License-Identifier: Apache-2.0
"""What every bench begins with: clock, reset, cycle number, seeded random numbers, counters, scoreboard.

Everything here is sampled at the rising edge before that edge's registers change: a value belongs to the cycle that ends there.
"""

import json
import os
import random
from collections.abc import Callable, Iterable
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import Immediate
from cocotb.triggers import FallingEdge, RisingEdge, Timer, ValueChange
from cocotb.utils import get_sim_time

CLOCK_PS = 6400  # 156.25 MHz
CLOCK_1G_PS = 8000  # 125 MHz
STEPS_A_PS = 1000  # of the simulation's time: run_tests.py builds with a precision of 1 fs, so that a clock's period may be any
CYCLE_NS = 7  # of the clock that `now_ns` shows here: any whole number does
SHORT = os.environ.get("GATEWARE_SHORT") == "1"
PARAMETERS: dict[str, int] = json.loads(os.environ.get("GATEWARE_PARAMETERS", "{}"))


def begin_in_reset() -> None:
    """Before anything is evaluated: inputs begin with anything too, and what must hold would be asked at an edge that no clock made."""
    for of in ("", "s_", "m_", "a_", "b_", "rx_", "tx_", "wire_rx_", "wire_tx_", "host_rx_", "host_tx_"):
        for name, level in ((f"{of}clk", 0), (f"{of}rst", 1)):
            if hasattr(cocotb.top, name):
                getattr(cocotb.top, name).value = Immediate(level)


if getattr(cocotb, "is_simulation", False):
    begin_in_reset()


def now_ps() -> int:
    return ps_of(get_sim_time("step"))


def ps_of(steps: int) -> int:
    """Of times as cocotbext's frames have them, in steps of the simulation."""
    return steps // STEPS_A_PS


def random_numbers() -> random.Random:
    """Random numbers of one test: cocotb makes its seed from that of the run, which run_tests.py prints, and from the test's name."""
    return random.Random(cocotb.RANDOM_SEED)


def pauses(rng: random.Random, share: float) -> Callable[[], bool]:
    """A function that says in each cycle whether to pause; `share` of the cycles are pauses, in runs of random length."""
    if share == 0:
        return never
    left = 0
    pausing = False

    def pause() -> bool:
        nonlocal left, pausing
        if left == 0:
            pausing = rng.random() < share
            left = rng.randint(1, 8)
        left -= 1
        return pausing

    return pause


def never() -> bool:
    return False


async def first_edge(dut: Any, *others: str) -> None:
    """An edge of `clk` and of the other clocks in reset, for benches whose models of what is around a module look at it from the first edge of theirs on."""
    clocks = [dut.clk, *(getattr(dut, name) for name in others)]
    dut.rst.value = Immediate(1)
    for clock in clocks:
        clock.value = Immediate(0)
    for level in (1, 0):
        await Timer(1, "step")
        for clock in clocks:
            clock.value = level
    await Timer(1, "step")


class Part:
    """One block of a bench_top that holds several modules: its signals by name, clock and reset and whatever is shared from the top."""

    def __init__(self, top: Any, block: str) -> None:
        self._scopes = (getattr(top, block), top)

    def __getattr__(self, name: str) -> Any:
        for scope in self._scopes:
            if hasattr(scope, name):
                self.__dict__[name] = getattr(scope, name)
                return self.__dict__[name]
        raise AttributeError(name)


class Bench:
    """Clock and reset of a module with `clk` and `rst`, the cycle number, and a count of each counter's pulses.

    counters: names of one-bit outputs; now: drive `now_cycles` with the number of the cycle; now_ns: `now_ns` with CYCLE_NS times that. `cycle` is the number of clock edges since the clock began; inputs that are set
    from a coroutine at edge n are seen by the module in cycle n + 1. Python is the slow half of a bench: what waits here wakes when something happens, not at
    every edge.
    """

    clock_ps = CLOCK_PS
    drives_clock = True  # else something else in the bench does, and the reset
    was_reset = False

    def __init__(self, dut: Any, counters: Iterable[str] = (), now: bool = False, now_ns: bool = False) -> None:
        self.dut = dut
        self._counted = dict.fromkeys(counters, 0)  # cycles in which each was high, but for those of the pulse that goes on
        self._high_since: dict[str, int] = {}
        self.now = now
        self.now_ns = now_ns
        self.started_ps = now_ps()
        dut.rst.value = Immediate(1)  # before the first edge: registers hold anything until reset
        if self.drives_clock:
            cocotb.start_soon(Clock(dut.clk, self.clock_ps, unit="ps").start())
        for name in self._counted:
            cocotb.start_soon(self._count(name))
        if now or now_ns:
            cocotb.start_soon(self._show_time())

    @property
    def cycle(self) -> int:
        return self.cycle_at(now_ps())

    def cycle_at(self, time_ps: int) -> int:
        return (time_ps - self.started_ps) // self.clock_ps

    @property
    def counts(self) -> dict[str, int]:
        """Of each counter the clock edges at which it was high."""
        cycle = self.cycle
        return {name: count + cycle - self._high_since.get(name, cycle) for name, count in self._counted.items()}

    def forget_counts(self) -> None:
        self._counted = dict.fromkeys(self._counted, 0)
        self._high_since = dict.fromkeys(self._high_since, self.cycle)

    async def reset(self, cycles: int = 4) -> None:
        """What was counted before the first one is of registers that held anything."""
        self.dut.rst.value = 1
        await self.wait(cycles)
        if not self.was_reset:
            self.forget_counts()
        self.was_reset = True
        self.dut.rst.value = 0
        await self.wait(2)

    async def wait(self, cycles: int) -> None:
        edge = RisingEdge(self.dut.clk)
        if cycles > 3:  # from the next edge to half a cycle before the last one, at once
            await edge
            await Timer((cycles - 2) * self.clock_ps + self.clock_ps // 2, "ps")
            cycles = 1
        for _ in range(cycles):
            await edge

    async def to_edge(self) -> None:
        """To the next clock edge, unless this moment is one."""
        if (now_ps() - self.started_ps) % self.clock_ps:
            await RisingEdge(self.dut.clk)

    async def accepted(self, ready: Any, cycles: int = 2000) -> None:
        """To the first clock edge at which `ready` is up: there what is offered is taken."""
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            if ready.value == 1:
                return
        raise AssertionError(f"{ready._name}: not within {cycles} cycles")

    async def wait_until(self, done: Callable[[], bool], cycles: int, what: str, step: int = 1) -> None:
        """step: cycles from one look to the next."""
        for _ in range(0, cycles, step):
            if done():
                return
            await self.wait(step)
        raise AssertionError(f"{what}: not within {cycles} cycles")

    async def _count(self, name: str) -> None:
        signal = getattr(self.dut, name)
        rises, falls = RisingEdge(signal), FallingEdge(signal)
        if signal.value != 1:
            await rises
        while True:
            self._high_since[name] = self.cycle
            await falls
            self._counted[name] += self.cycle - self._high_since.pop(name)
            await rises

    async def _show_time(self) -> None:
        edge = RisingEdge(self.dut.clk)
        now_cycles = self.dut.now_cycles if self.now else None
        now_ns = self.dut.now_ns if self.now_ns else None
        await edge
        cycle = self.cycle
        while True:
            if now_cycles is not None:
                now_cycles.value = cycle + 1
            if now_ns is not None:
                now_ns.value = cycle * CYCLE_NS
            await edge
            cycle += 1

    def expect_counts(self, **expected: int) -> None:
        """All counters at once: those not named are zero."""
        counts = self.counts
        wanted = dict.fromkeys(counts, 0) | expected
        assert counts == wanted, f"counters {counts}, expected {wanted}"


class LaneCounts:
    """Of each bit of some vectors, one a lane, the clock edges at which it was high."""

    def __init__(self, bench: Bench, names: Iterable[str], lanes: int) -> None:
        self.bench, self.lanes = bench, lanes
        self._signals = {name: getattr(bench.dut, name) for name in names}
        self.forget()
        for name in self._signals:
            cocotb.start_soon(self._count(name))

    def forget(self) -> None:
        self._counted = {name: [0] * self.lanes for name in self._signals}
        self._since = {name: (self.bench.cycle, int(signal.value)) for name, signal in self._signals.items()}

    def counts(self) -> dict[str, list[int]]:
        for name in self._signals:
            self._add(name)
        return {name: list(counts) for name, counts in self._counted.items()}

    def _add(self, name: str) -> None:
        """What has been there up to now."""
        since, value = self._since[name]
        cycle = self.bench.cycle
        for lane in range(self.lanes):
            self._counted[name][lane] += (cycle - since) * (value >> lane & 1)
        self._since[name] = cycle, value

    async def _count(self, name: str) -> None:
        signal = self._signals[name]
        change = ValueChange(signal)
        while True:
            await change
            self._add(name)
            self._since[name] = self.bench.cycle, int(signal.value)


class Scoreboard:
    """Items must come in the order in which they were expected, each equal to the expected one, and none may be left."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.expected: list[Any] = []
        self.seen = 0

    def expect(self, item: Any) -> None:
        self.expected.append(item)

    def take(self, item: Any) -> None:
        assert self.seen < len(self.expected), f"{self.name}: more than the {len(self.expected)} expected, at last {item!r}"
        wanted = self.expected[self.seen]
        assert item == wanted, f"{self.name}: number {self.seen} is\n{item!r}, expected\n{wanted!r}"
        self.seen += 1

    def complete(self) -> bool:
        return self.seen == len(self.expected)

    def finish(self) -> None:
        assert self.complete(), f"{self.name}: {self.seen} of {len(self.expected)} came"
