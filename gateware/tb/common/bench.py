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
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time

CLOCK_PS = 6400  # 156.25 MHz
CLOCK_1G_PS = 8000  # 125 MHz
CYCLE_NS = 7  # of the clock that `now_ns` shows here: any whole number does
SHORT = os.environ.get("GATEWARE_SHORT") == "1"
PARAMETERS: dict[str, int] = json.loads(os.environ.get("GATEWARE_PARAMETERS", "{}"))


def random_numbers() -> random.Random:
    """Random numbers of one test: cocotb makes its seed from that of the run, which run_tests.py prints, and from the test's name."""
    return random.Random(cocotb.RANDOM_SEED)


def pauses(rng: random.Random, share: float) -> Callable[[], bool]:
    """A function that says in each cycle whether to pause; `share` of the cycles are pauses, in runs of random length."""
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
    from a coroutine at edge n are seen by the module in cycle n + 1.
    """

    clock_ps = CLOCK_PS
    pulses_apart = False  # no counter has a pulse in two cycles running: edges are counted, which costs nothing between them
    drives_clock = True  # else something else in the bench does, and the reset

    def __init__(self, dut: Any, counters: Iterable[str] = (), now: bool = False, now_ns: bool = False) -> None:
        self.dut = dut
        self.counts = dict.fromkeys(counters, 0)
        self.now = now
        self.now_ns = now_ns
        self.started_ps = get_sim_time("step")
        if self.drives_clock:
            cocotb.start_soon(Clock(dut.clk, self.clock_ps, unit="ps").start())
        if self.pulses_apart:
            for name in self.counts:
                cocotb.start_soon(self._count_edges(name))
        if now or now_ns or not self.pulses_apart:
            cocotb.start_soon(self._watch([] if self.pulses_apart else list(self.counts)))

    @property
    def cycle(self) -> int:
        return self.cycle_at(get_sim_time("step"))

    def cycle_at(self, time_ps: int) -> int:
        return (time_ps - self.started_ps) // self.clock_ps

    async def reset(self, cycles: int = 4) -> None:
        self.dut.rst.value = 1
        await self.wait(cycles)
        self.dut.rst.value = 0
        await self.wait(2)

    async def wait(self, cycles: int) -> None:
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)

    async def accepted(self, ready: Any, cycles: int = 2000) -> None:
        """To the first clock edge at which `ready` is up: there what is offered is taken."""
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            if ready.value == 1:
                return
        raise AssertionError(f"{ready._name}: not within {cycles} cycles")

    async def wait_until(self, done: Callable[[], bool], cycles: int, what: str) -> None:
        for _ in range(cycles):
            if done():
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"{what}: not within {cycles} cycles")

    async def _count_edges(self, name: str) -> None:
        edge = RisingEdge(getattr(self.dut, name))
        while True:
            await edge
            self.counts[name] += 1

    async def _watch(self, counters: list[str]) -> None:
        signals = [(name, getattr(self.dut, name)) for name in counters]
        edge = RisingEdge(self.dut.clk)
        while True:
            await edge
            if self.now:
                self.dut.now_cycles.value = self.cycle + 1
            if self.now_ns:
                self.dut.now_ns.value = self.cycle * CYCLE_NS
            for name, signal in signals:
                if signal.value == 1:
                    self.counts[name] += 1

    def expect_counts(self, **expected: int) -> None:
        """All counters at once: those not named are zero."""
        wanted = dict.fromkeys(self.counts, 0) | expected
        assert self.counts == wanted, f"counters {self.counts}, expected {wanted}"


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
