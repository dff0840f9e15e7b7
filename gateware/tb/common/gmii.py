# SPDX-License-Identifier: Apache-2.0
"""Frames as they stand on GMII: a byte a cycle, with the preamble before and error marks among them. A source for long loads."""

from collections import deque
from collections.abc import Iterable

import cocotb
from cocotb.triggers import ClockCycles, Event, RisingEdge
from cocotbext.eth import GmiiFrame

from common.bench import Bench

PREAMBLE_BYTES, GAP_BYTES = 8, 12


def gmii_frame(frame: bytes, *, preamble_bytes: int = PREAMBLE_BYTES, error_at: Iterable[int] = ()) -> GmiiFrame:
    """frame: with its check sequence; preamble_bytes: 1 is the start-of-frame delimiter alone; error_at: places in the frame, those of the
    preamble below zero."""
    data = bytes([0x55] * (preamble_bytes - 1) + [0xD5]) + frame
    errors = [0] * len(data)
    for place in error_at:
        errors[preamble_bytes + place] = 1
    return GmiiFrame(data, errors)


class QuickGmiiSource:
    """Drives `gmii_rx*` back to back with gaps of 12 bytes. As that of cocotbext-eth, but it does less in a cycle."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.queue: deque[GmiiFrame] = deque()
        self.idle, self.called = Event(), Event()
        dut = bench.dut
        dut.gmii_rxd.value = dut.gmii_rx_dv.value = dut.gmii_rx_er.value = 0
        cocotb.start_soon(self._run())

    def send(self, frame: GmiiFrame) -> None:
        self.queue.append(frame)
        self.idle.clear()
        self.called.set()

    async def wait(self) -> None:
        """Until the gap after the last frame is over."""
        await self.idle.wait()

    async def _run(self) -> None:
        dut, edge = self.bench.dut, RisingEdge(self.bench.dut.clk)
        data, valid, error = dut.gmii_rxd, dut.gmii_rx_dv, dut.gmii_rx_er
        while True:
            if not self.queue:
                self.idle.set()
                self.called.clear()
                await self.called.wait()
                await edge
            frame = self.queue.popleft()
            marked = any(frame.error)
            valid.value = 1
            for byte, mark in zip(frame.data, frame.error, strict=True):
                data.value = byte
                if marked:
                    error.value = mark
                await edge
            valid.value = error.value = 0
            await ClockCycles(dut.clk, GAP_BYTES)
