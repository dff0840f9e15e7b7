# SPDX-License-Identifier: Apache-2.0
"""AXI4-Stream at both ends of a module: packets in with random pauses, packets out with random refusals, each with its cycles.

A word has as many bytes as `PREFIX_tdata`; a stream of single bytes has no tkeep.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import cocotb
from cocotb.triggers import Event, RisingEdge, with_timeout

from common.bench import Bench, never


@dataclass
class Packet:
    """data: bytes; user: tuser of the last word; meta: sideband signals by name, of the first word, held to the last.

    first_cycle, last_cycle: cycles in which the first and the last word passed; words: how many there were.
    """

    data: bytes
    user: int = 0
    meta: dict[str, int] = field(default_factory=dict)
    first_cycle: int = 0
    last_cycle: int = 0
    words: int = 0


class StreamSource:
    """Drives `PREFIX_tdata` and so on. Without `PREFIX_tready` a word passes in every cycle. pause: between and inside packets;
    gap_cycles: at least so many without a word between packets."""

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        pause: Callable[[], bool] = never,
        meta: Iterable[str] = (),
        gap_cycles: int = 0,
    ) -> None:
        self.bench, self.prefix, self.pause = bench, prefix, pause
        self.gap_cycles = gap_cycles
        self.queue: deque[Packet] = deque()
        self.meta = {name: getattr(bench.dut, name) for name in meta}
        self.ready = getattr(bench.dut, f"{prefix}_tready", None)
        self.idle = True
        self.called, self.drained = Event(), Event()
        self.signals = {
            name: getattr(bench.dut, f"{prefix}_{name}", None) for name in ("tvalid", "tdata", "tlast", "tkeep", "tuser")
        }
        self.word_bytes = len(self.signals["tdata"]) // 8
        self.has_keep = self.signals["tkeep"] is not None
        self._set(**{name: 0 for name, signal in self.signals.items() if signal is not None})
        cocotb.start_soon(self._run())

    def send(self, packet: Packet) -> None:
        self.queue.append(packet)
        self.idle = False
        self.drained.clear()
        self.called.set()

    async def drain(self, cycles: int = 1_000_000) -> None:
        if not self.idle:
            await with_timeout(self.drained.wait(), cycles * self.bench.clock_ps, "ps")

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            self.signals[name].value = value

    async def _run(self) -> None:
        edge = RisingEdge(self.bench.dut.clk)
        await edge
        while True:
            if not self.queue:
                self.idle = True
                self.drained.set()
                self.called.clear()
                await self.called.wait()
                await self.bench.to_edge()
                continue
            packet = self.queue.popleft()
            for offset in range(0, len(packet.data), self.word_bytes):
                while self.pause():
                    await edge
                await self._word(packet, offset, edge)
            await self.bench.wait(self.gap_cycles)

    async def _word(self, packet: Packet, offset: int, edge: RisingEdge) -> None:
        word = packet.data[offset : offset + self.word_bytes]
        last = offset + self.word_bytes >= len(packet.data)
        self._set(tvalid=1, tdata=int.from_bytes(word, "little"), tlast=int(last))
        if self.has_keep:
            self._set(tkeep=(1 << len(word)) - 1)
        if last and packet.user:
            self._set(tuser=packet.user)
        for name, value in packet.meta.items():
            self.meta[name].value = value
        await edge
        while self.ready is not None and self.ready.value == 0:
            await edge
        packet.words += 1
        packet.last_cycle = self.bench.cycle
        if offset == 0:
            packet.first_cycle = packet.last_cycle
        self._set(tvalid=0, tlast=0)
        if last and packet.user:
            self._set(tuser=0)


class StreamSink:
    """Takes packets from `PREFIX_*` and hands each to `take`. Checks that a word which is not taken stays, with its sideband."""

    def __init__(
        self,
        bench: Bench,
        prefix: str,
        take: Callable[[Packet], None],
        pause: Callable[[], bool] = never,
        meta: Iterable[str] = (),
    ) -> None:
        self.bench, self.prefix, self.take, self.pause = bench, prefix, take, pause
        self.meta = {name: getattr(bench.dut, name) for name in meta}
        self.ready = getattr(bench.dut, f"{prefix}_tready", None)
        self.packet: Packet | None = None
        cocotb.start_soon(self._run())
        cocotb.start_soon(self._forget())

    async def _forget(self) -> None:
        """What a reset cuts is gone, also while `_run` sleeps."""
        rises = RisingEdge(self.bench.dut.rst)
        while True:
            await rises
            self.packet = None

    def _signal(self, name: str) -> Any:
        return getattr(self.bench.dut, f"{self.prefix}_{name}")

    async def _run(self) -> None:
        edge, rst = RisingEdge(self.bench.dut.clk), self.bench.dut.rst
        names = [name for name in ("tdata", "tlast", "tkeep", "tuser") if hasattr(self.bench.dut, f"{self.prefix}_{name}")]
        signals = [self._signal(name) for name in names]
        word_bytes = len(signals[0]) // 8
        valid = self._signal("tvalid")
        appears = RisingEdge(valid)
        refused: list[int] | None = None
        ready, was_ready = False, None
        while True:
            if self.ready is not None:
                ready = not self.pause()
                if ready is not was_ready:
                    self.ready.value = int(ready)
                    was_ready = ready
            if self.pause is never and refused is None and valid.value == 0:
                await appears  # nothing happens before
                continue
            await edge
            if rst.value == 1:
                refused = self.packet = None
                continue
            if valid.value == 0:
                assert refused is None, f"{self.prefix}: a word was withdrawn"
                continue
            word = [int(signal.value) for signal in signals]
            meta = {name: int(signal.value) for name, signal in self.meta.items()}
            assert refused is None or refused == [*word, *meta.values()], f"{self.prefix}: a waiting word changed"
            refused = None
            if self.ready is not None and not ready:
                refused = [*word, *meta.values()]
                continue
            there = dict(zip(names, word, strict=True))
            last, user = there["tlast"], there.get("tuser", 0)
            packet = self.packet or Packet(b"", meta=meta, first_cycle=self.bench.cycle)
            count = kept_bytes(there["tkeep"], last, word_bytes) if "tkeep" in there else word_bytes
            packet.data += there["tdata"].to_bytes(word_bytes, "little")[:count]
            packet.words += 1
            assert packet.meta == meta, f"{self.prefix}: the sideband changed within a packet"
            self.packet = None if last else packet
            if last:
                packet.user, packet.last_cycle = user, self.bench.cycle
                self.take(packet)


def kept_bytes(keep: int, last: int, word_bytes: int) -> int:
    count = keep.bit_length()
    assert 0 < keep == (1 << count) - 1, f"tkeep {keep:08b} has a hole or nothing"
    assert last or count == word_bytes, f"tkeep {keep:08b} in mid-packet"
    return count
