# SPDX-License-Identifier: Apache-2.0
"""Several AXI4-Streams side by side in one vector, stream 0 lowest: packets in on each, with pauses of its own."""

from collections import deque
from collections.abc import Callable

import cocotb
from cocotb.triggers import RisingEdge

from common.bench import Bench, never
from common.streams import Packet


class LaneSources:
    """Drives `PREFIX_tdata` and so on of `lanes` streams with `tready`. pause[lane]: before each word."""

    def __init__(self, bench: Bench, prefix: str, lanes: int) -> None:
        self.bench, self.prefix, self.lanes = bench, prefix, lanes
        self.queues: list[deque[Packet]] = [deque() for _ in range(lanes)]
        self.pause: list[Callable[[], bool]] = [never] * lanes
        self._place = [0] * lanes  # of the word that is offered, in bytes
        self._offered = [False] * lanes
        self.names = {name for name in ("tdata", "tkeep", "tvalid", "tlast") if hasattr(bench.dut, f"{prefix}_{name}")}
        self._set(0, 0, 0, 0)
        cocotb.start_soon(self._run())

    def send(self, lane: int, packet: Packet) -> Packet:
        self.queues[lane].append(packet)
        return packet

    def clear(self) -> None:
        """Nothing more is offered, nor the rest of what was begun: for a reset."""
        for lane, queue in enumerate(self.queues):
            queue.clear()
            self._place[lane], self._offered[lane] = 0, False

    async def drain(self, cycles: int = 1_000_000) -> None:
        await self.bench.wait_until(lambda: not any(self.queues), cycles, f"{self.prefix} sends all")

    def _set(self, data: int, keep: int, valid: int, last: int) -> None:
        for name, value in (("tdata", data), ("tkeep", keep), ("tvalid", valid), ("tlast", last)):
            if name in self.names:
                getattr(self.bench.dut, f"{self.prefix}_{name}").value = value

    async def _run(self) -> None:
        edge, ready = RisingEdge(self.bench.dut.clk), getattr(self.bench.dut, f"{self.prefix}_tready")
        while True:
            data = keep = valid = last = 0
            for lane, queue in enumerate(self.queues):
                self._offered[lane] = bool(queue) and (self._offered[lane] or not self.pause[lane]())
                if not self._offered[lane]:
                    continue
                word = queue[0].data[self._place[lane] : self._place[lane] + 8]
                data |= int.from_bytes(word, "little") << 64 * lane
                keep |= (1 << len(word)) - 1 << 8 * lane
                valid |= 1 << lane
                last |= int(self._place[lane] + 8 >= len(queue[0].data)) << lane
            self._set(data, keep, valid, last)
            await edge
            taken = valid & int(ready.value)
            for lane, queue in enumerate(self.queues):
                if taken >> lane & 1 and self._offered[lane]:
                    self._took(lane, queue)

    def _took(self, lane: int, queue: deque[Packet]) -> None:
        packet = queue[0]
        packet.words += 1
        packet.last_cycle = self.bench.cycle
        if self._place[lane] == 0:
            packet.first_cycle = packet.last_cycle
        self._offered[lane] = False
        self._place[lane] += 8
        if self._place[lane] >= len(packet.data):
            queue.popleft()
            self._place[lane] = 0
