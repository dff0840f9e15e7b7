# SPDX-License-Identifier: Apache-2.0
"""km3_shore and km3_fcm at work: what is sent, and what comes, with its cycle."""

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from common.bench import CLOCK_PS, Bench, random_numbers

FRAME_WORDS, FRAMES_PER_S = 100, 500
SLOT_WORDS = (*[6] * 6, 4, 4, 5, 7)
CONTROL_WORDS = 7
STEPS = 40
HOLD_FRAMES = 8
EVENTS = (
    *("up_head", "up_valid", "up_end", "up_express", "start", "error_gps", "error_cut", "trip", "error_second", "error_trip"),
    *("control_out", "control_end", "down_head", "down_express", "floor_start", "error_jump", "error_silent", "floor_cut"),
    *("phase", "error_phase", "error_tx_phase", "error_tx_failed", "floor_tx_phase", "floor_tx_failed"),
    *("tx_slide", "floor_tx_slide", "restart", "floor_restart", "counts", "floor_counts"),
)  # fmt: skip
COUNTS = (
    *("count_up", "count_down", "restarts", "count_good", "drop_head", "drop_floor", "drop_cut", "drop_code", "drop_symbol", "drop_crc"),
    *("error_place", "error_code", "error_order", "error_direction", "error_stray", "error_express", "error_time"),
)  # fmt: skip


class Loop:
    """What is sent, and what comes, with its cycle. A time is (second, number)."""

    def __init__(self, dut: Any, step: int = 9) -> None:
        """step: by how many of the meter's the recovered clock comes after the reference."""
        self.dut, self.rng = dut, random_numbers()
        self.bench = Bench(dut)
        # The meter's clock: between two of its steps, so that no edge of it is one of another clock.
        self.clocks = [Clock(dut.floor_clk, CLOCK_PS, unit="ps"), Clock(dut.help_clk, CLOCK_PS * (STEPS + 1) // STEPS, unit="ps")]
        for clock, later in zip(self.clocks, (step * CLOCK_PS // STEPS, CLOCK_PS // STEPS // 2), strict=True):
            cocotb.start_soon(self.begin_clock(clock, later))
        for name in ("gps_set", "control_valid", "express_valid", "s_valid", "up_express_in_valid", "down_flip", "up_flip"):
            getattr(dut, name).value = 0
        for name in ("down_dark", "up_dark", "up_is_own", "div_wrong"):
            getattr(dut, name).value = 0
        dut.rst.value = dut.floor_rst.value = 1
        dut.link_rst.value = 0
        dut.floor.value = dut.floor_there.value = 5
        self.forget()
        self.control: list[int] = []  # to be sent
        self.slots: list[list[int]] = [[] for _ in SLOT_WORDS]
        self.codes: list[list[int]] = [[], []]  # down, up
        self.taken: list[list[tuple[int, int]]] = [[], []]

    async def begin_clock(self, clock: Clock, later_ps: int) -> None:
        await Timer(max(1, later_ps), "ps")
        clock.start(start_high=True)

    def forget(self) -> None:
        self.events: dict[str, int] = {}
        self.counts: dict[str, dict[str, int]] = {"": {}, "floor_": {}}
        self.at: dict[str, dict[tuple[int, int], int]] = {"start": {}, "floor_start": {}, "up": {}}  # cycle, by time
        self.heads: dict[str, list[tuple[int, int, int, int]]] = {"": [], "down_": []}  # flags, floor, second, number
        self.words: list[list[int]] = [[] for _ in SLOT_WORDS]
        self.controls: list[int] = []
        self.came: list[list[tuple[int, int]]] = [[], []]
        self.trips: list[int] = []
        self.phases: list[int] = []
        self.phase_cycles: list[int] = []
        self.up_cycles: list[int] = []  # in which the shore's receiver was aligned
        self.ends: dict[str, list[int]] = {"": [], "control_": []}

    async def start(self, lag: int = 3, down_begin: int = 0, up_begin: int = 0, second: int | None = 7) -> None:
        dut = self.dut
        dut.lag.value, dut.down_begin.value, dut.up_begin.value = lag, down_begin, up_begin
        await self.bench.reset(60)
        dut.floor_rst.value = 0
        if second is not None:
            await self.set_gps(second)
        self.look()

    def look(self) -> None:
        self.forget()
        feeds = [
            self.feed_one("control", "clk", self.control, []),
            self.feed_one("express", "clk", self.codes[0], self.taken[0]),
            self.feed_one("up_express_in", "floor_clk", self.codes[1], self.taken[1]),
        ]
        self.tasks = [cocotb.start_soon(task) for task in (self.watch(), self.feed(), *feeds)]

    async def unseen(self, frames: int) -> None:
        """So many frames pass that no one looks at, which is cheap."""
        for task in self.tasks:
            task.cancel()
        await self.frames(frames)
        self.look()

    async def set_gps(self, second: int) -> None:
        self.dut.gps_set.value, self.dut.gps_second.value = 1, second
        await RisingEdge(self.dut.clk)
        self.dut.gps_set.value = 0

    async def until_up(self, cycles: int = 6000) -> None:
        """Both are locked and send, and frames come up."""
        self.forget()
        await self.bench.wait_until(lambda: len(self.trips) >= 2 and len(self.phases) >= 1, cycles, "up", 10)
        assert int(self.dut.up.value) == 31

    async def to_word(self, word: int) -> None:
        """Of a frame of the floor."""
        while int(self.dut.floor_word.value) != word:
            await RisingEdge(self.dut.clk)

    async def between(self) -> None:
        """To where no frame is on its way: what is counted from here on is of whole ones."""
        await self.to_word(FRAME_WORDS - 2)
        self.forget()

    async def frames(self, count: int = 1) -> None:
        await self.bench.wait(count * FRAME_WORDS)

    async def watch(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        signal = dut.events
        while True:
            await edge
            word = int(signal.value)
            if word:
                for place, name in enumerate(EVENTS):
                    if word >> 39 - place & 1:
                        self.events[name] = self.events.get(name, 0) + 1
                        getattr(self, f"on_{name}", lambda: None)()

    def on_start(self) -> None:
        self.at["start"][time_of(self.dut.at)] = self.bench.cycle

    def on_floor_start(self) -> None:
        self.at["floor_start"][time_of(self.dut.floor_at)] = self.bench.cycle
        assert int(self.dut.floor_word.value) == 0

    def on_up_head(self) -> None:
        head = head_of(self.dut.head)
        self.heads[""].append(head)
        self.at["up"][head[2:]] = self.bench.cycle - int(self.dut.up_since.value)

    def on_down_head(self) -> None:
        self.heads["down_"].append(head_of(self.dut.down_head))

    def on_up_valid(self) -> None:
        self.words[int(self.dut.up_slot.value)].append(int(self.dut.up_data.value))

    def on_control_out(self) -> None:
        self.controls.append(int(self.dut.control_out.value))

    def on_up_end(self) -> None:
        self.ends[""].append(int(self.dut.up_good.value))

    def on_control_end(self) -> None:
        self.ends["control_"].append(int(self.dut.control_good.value))

    def on_up_express(self) -> None:
        self.came[1].append((self.bench.cycle, int(self.dut.up_express.value)))

    def on_down_express(self) -> None:
        self.came[0].append((self.bench.cycle, int(self.dut.down_express.value)))

    def on_trip(self) -> None:
        self.trips.append(int(self.dut.trip.value))

    def on_phase(self) -> None:
        self.phase_cycles.append(self.bench.cycle)
        self.phases.append(int(self.dut.phase.value))

    def on_counts(self) -> None:
        self.add("", self.dut.counts)

    def on_floor_counts(self) -> None:
        self.add("floor_", self.dut.floor_counts)

    def add(self, end: str, signal: Any) -> None:
        word, counts = int(signal.value), self.counts[end]
        if not end and word >> 32:
            self.up_cycles.append(self.bench.cycle)
        for place, name in enumerate(COUNTS):
            if word >> 32 - place & 1:
                counts[name] = counts.get(name, 0) + 1
        if word & 0xFFFF:
            counts["lost"] = counts.get("lost", 0) + (word & 0xFFFF)

    async def feed(self) -> None:
        """Slots' words, as the floor takes them."""
        dut, edge = self.dut, RisingEdge(self.dut.floor_clk)
        while True:
            heads = [slot[0] if slot else None for slot in self.slots]
            offers = sum(1 << s for s, word in enumerate(heads) if word is not None)
            dut.s_valid.value = offers
            if offers:
                dut.s_data.value = sum((word or 0) << 16 * s for s, word in enumerate(heads))
            await edge
            if offers:
                taken = offers & int(dut.s_ready.value)
                for s, slot in enumerate(self.slots):
                    if taken >> s & 1:
                        slot.pop(0)

    async def feed_one(self, name: str, clock: str, waiting: list[int], taken: list[tuple[int, int]]) -> None:
        """What goes in one at a time: with the cycle in which it was taken."""
        valid, ready, data = (getattr(self.dut, name + more) for more in ("_valid", "_ready", "_data" if name == "control" else ""))
        edge = RisingEdge(getattr(self.dut, clock))
        while True:
            offers = bool(waiting)
            valid.value = int(offers)
            data.value = waiting[0] if offers else 0
            await edge
            if offers and ready.value == 1:
                taken.append((self.bench.cycle, waiting.pop(0)))

    def give(self, counts: list[int], control: int) -> tuple[list[list[int]], list[int]]:
        """So many words into each slot of the floor, and to it."""
        words = [[self.rng.randrange(1 << 16) for _ in range(count)] for count in counts]
        for slot, more in zip(self.slots, words, strict=True):
            slot += more
        controls = [self.rng.randrange(1 << 16) for _ in range(control)]
        self.control += controls
        return words, controls


def time_of(signal: Any) -> tuple[int, int]:
    return int(signal.value) >> 16, int(signal.value) & 0xFFFF


def head_of(signal: Any) -> tuple[int, int, int, int]:
    word = int(signal.value)
    return word >> 56, word >> 48 & 0xFF, word >> 16 & 0xFFFFFFFF, word & 0xFFFF


def faults(loop: Loop) -> dict[str, int]:
    """Events of either end that are errors, by name."""
    told = ("error_", "floor_cut", "floor_tx_phase", "floor_tx_failed", "restart", "floor_restart", "tx_slide", "floor_tx_slide")
    return {name: count for name, count in loop.events.items() if name.startswith(told)}
