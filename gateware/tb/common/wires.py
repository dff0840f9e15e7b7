# SPDX-License-Identifier: Apache-2.0
"""XGMII and GMII under one set of names, for benches that run at both rates: a source and a sink of frames that do little in a cycle and nothing in an
idle one. The benches of the MACs have those of cocotbext-eth, which know nothing of these.

Places on the wire are counted in byte times from the start of the bench.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import Event, FallingEdge, RisingEdge, ValueChange

from common.bench import CLOCK_1G_PS, CLOCK_PS, PARAMETERS, Bench

GBPS = PARAMETERS.get("LINE_GBPS", 10)
CYCLE_BYTES = 8 if GBPS == 10 else 1
WIRE_CLOCK_PS = CLOCK_PS if GBPS == 10 else CLOCK_1G_PS
START_SLACK = 3 if GBPS == 10 else 0  # a frame on XGMII begins on a lane, up to so many bytes early
PREAMBLE = bytes([0x55] * 7 + [0xD5])
PREAMBLE_BYTES, GAP_BYTES = len(PREAMBLE), 12
IDLE, START, TERMINATE, ERROR = 0x07, 0xFB, 0xFD, 0xFE
IDLE_WORD = int.from_bytes(bytes([IDLE] * 8), "little")


@dataclass
class Sent:
    """frame: with its check sequence; marked: places of error marks in it; lane4: where it begins on XGMII, None for the next lane that is allowed."""

    frame: bytes
    preamble: bytes
    marked: Collection[int]
    lane4: bool | None


@dataclass
class Seen:
    """frame: behind the preamble, with its check sequence; bad: it had an error mark; start: place of its preamble; end: of the first byte behind it."""

    frame: bytes
    bad: bool
    start: int
    end: int


class WireSource:
    """Drives frames back to back, the gaps 12 bytes: on GMII each, on XGMII on average."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.queue: deque[Sent] = deque()
        self.idle, self.called = Event(), Event()
        cocotb.start_soon(self._run())

    def send(self, frame: bytes, *, marked: Collection[int] = (), preamble: bytes = PREAMBLE, lane4: bool | None = None) -> None:
        self.queue.append(Sent(frame, preamble, marked, lane4))
        self.idle.clear()
        self.called.set()

    def clear(self) -> None:
        """What has not begun is not sent."""
        self.queue.clear()

    async def wait(self) -> None:
        """Until the gap after the last frame is over."""
        await self.idle.wait()

    async def _run(self) -> None:
        edge = RisingEdge(self.bench.dut.clk)
        while True:
            if self.queue:
                await self._drive(self.queue.popleft())
                continue
            await self._rest()
            if not self.queue:
                self.idle.set()
                self.called.clear()
                await self.called.wait()
                await edge

    async def _rest(self) -> None:
        """What is left of the gap, and of a word."""

    async def _drive(self, sent: Sent) -> None:
        raise NotImplementedError


class GmiiWireSource(WireSource):
    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        dut = bench.dut
        self.data, self.valid, self.error = dut.gmii_rxd, dut.gmii_rx_dv, dut.gmii_rx_er
        self.data.value = self.valid.value = self.error.value = 0

    async def _drive(self, sent: Sent) -> None:
        edge = RisingEdge(self.bench.dut.clk)
        self.valid.value = 1
        for place, byte in enumerate(sent.preamble + sent.frame, -len(sent.preamble)):
            self.data.value = byte
            if sent.marked:
                self.error.value = int(place in sent.marked)
            await edge
        self.valid.value = self.error.value = 0
        await self.bench.wait(GAP_BYTES)


class XgmiiWireSource(WireSource):
    """Starts on lane 0 or 4. What that takes away from the gap is owed, at most three bytes, and given back (the deficit idle count)."""

    def __init__(self, bench: Bench, prefix: str = "xgmii") -> None:
        super().__init__(bench)
        self.rxd, self.rxc = getattr(bench.dut, f"{prefix}_rxd"), getattr(bench.dut, f"{prefix}_rxc")
        self.rxd.value, self.rxc.value = IDLE_WORD, 0xFF
        self.open, self.control = bytearray(), bytearray()  # of the word that is not full
        self.gap = self.owed = 0

    async def _drive(self, sent: Sent) -> None:
        idle = self.gap
        early = (len(self.open) + idle) % 4
        if early <= 3 - self.owed:
            idle, self.owed = idle - early, self.owed + early
        else:
            idle, self.owed = idle + 4 - early, self.owed - (4 - early)
        if sent.lane4 not in (None, (len(self.open) + idle) % 8 == 4):
            idle += 4
        head, frame = bytes([START]) + sent.preamble[1:], bytearray(sent.frame)
        control = bytearray(len(frame))
        for place in sent.marked:
            frame[place], control[place] = ERROR, 1
        self.gap = GAP_BYTES - 1
        await self._put(
            bytes([IDLE] * idle) + head + frame + bytes([TERMINATE]),
            bytes([1] * idle + [1]) + bytes(len(head) - 1) + control + b"\x01",
        )

    async def _rest(self) -> None:
        missing = -len(self.open) % 8
        await self._put(bytes([IDLE] * missing), bytes([1] * missing))
        self.rxd.value, self.rxc.value = IDLE_WORD, 0xFF
        await self.bench.wait(-(-max(0, self.gap - missing) // 8))
        self.gap = self.owed = 0

    async def _put(self, data: bytes, control: bytes) -> None:
        """control: a 1 for each control character. What does not fill a word waits."""
        edge = RisingEdge(self.bench.dut.clk)
        self.open += data
        self.control += control
        whole = len(self.open) & ~7
        for at in range(0, whole, 8):
            self.rxd.value = int.from_bytes(self.open[at : at + 8], "little")
            marks = self.control[at : at + 8]
            self.rxc.value = sum(mark << lane for lane, mark in enumerate(marks)) if any(marks) else 0
            await edge
        del self.open[:whole], self.control[:whole]


class WireSink:
    """Takes frames, in `seen`; whatever no frame may have around it fails."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.seen: deque[Seen] = deque()
        cocotb.start_soon(self._run())

    async def frames(self, count: int, cycles: int = 200_000) -> list[Seen]:
        """The next frames on the wire."""
        await self.bench.wait_until(lambda: len(self.seen) >= count, cycles, f"{count} frames on the wire", step=16)
        return [self.seen.popleft() for _ in range(count)]

    async def _run(self) -> None:
        raise NotImplementedError


class GmiiWireSink(WireSink):
    async def _run(self) -> None:
        dut = self.bench.dut
        data, enabled, error = dut.gmii_txd, dut.gmii_tx_en, dut.gmii_tx_er
        edge, rises = RisingEdge(dut.clk), RisingEdge(enabled)
        while True:
            if enabled.value == 0:
                await rises
            await edge
            taken, bad, start = bytearray(), False, self.bench.cycle
            while enabled.value == 1:
                taken.append(int(data.value))
                bad = bad or error.value == 1
                await edge
            assert taken.startswith(PREAMBLE), f"preamble {taken[:PREAMBLE_BYTES].hex()}"
            self.seen.append(Seen(bytes(taken[PREAMBLE_BYTES:]), bad, start, self.bench.cycle))


class XgmiiWireSink(WireSink):
    prefix = "xgmii"

    async def _run(self) -> None:
        dut = self.bench.dut
        txd, txc = getattr(dut, f"{self.prefix}_txd"), getattr(dut, f"{self.prefix}_txc")
        edge, changes = RisingEdge(dut.clk), ValueChange(txc)
        self.taken: bytearray | None = None  # from the preamble on
        self.bad, self.start = False, 0
        await FallingEdge(dut.rst)
        while True:
            await edge
            control, data = int(txc.value), int(txd.value)
            if self.taken is not None and control == 0:
                self.taken += data.to_bytes(8, "little")
            elif self.taken is None and (control, data) == (0xFF, IDLE_WORD):
                await changes
            else:
                self._take(control, data.to_bytes(8, "little"), 8 * self.bench.cycle)

    def _take(self, control: int, word: bytes, place: int) -> None:
        for lane, byte in enumerate(word):
            marked = control >> lane & 1
            if self.taken is None and marked and byte == START:
                assert lane in (0, 4), f"a start on lane {lane}"
                self.taken, self.bad, self.start = bytearray([PREAMBLE[0]]), False, place + lane
            elif self.taken is None:
                assert (marked, byte) == (1, IDLE), f"{byte:02x} between frames"
            elif marked and byte == TERMINATE:
                assert self.taken.startswith(PREAMBLE), f"preamble {self.taken[:PREAMBLE_BYTES].hex()}"
                self.seen.append(Seen(bytes(self.taken[PREAMBLE_BYTES:]), self.bad, self.start, place + lane))
                self.taken = None
            else:
                assert not marked or byte == ERROR, f"control character {byte:02x} in a frame"
                self.bad = self.bad or bool(marked)
                self.taken.append(byte)


def wire_source(bench: Any) -> WireSource:
    return XgmiiWireSource(bench) if GBPS == 10 else GmiiWireSource(bench)


def wire_sink(bench: Any) -> WireSink:
    return XgmiiWireSink(bench) if GBPS == 10 else GmiiWireSink(bench)
