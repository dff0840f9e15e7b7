# SPDX-License-Identifier: Apache-2.0
"""The host's side of udp_tx: its table of destinations and the announcement of each packet."""

from collections import deque
from collections.abc import Callable
from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import Event, RisingEdge

from common.bench import Bench, never
from common.frames import LOCAL_IP, LOCAL_MAC, mac_number


def random_destination(rng: Random) -> dict[str, Any]:
    return {
        "mac": ":".join(f"{byte:02x}" for byte in rng.randbytes(6)),
        "address": str(IPv4Address(rng.getrandbits(32))),
        "port": rng.getrandbits(16),
        "source_port": rng.getrandbits(16),
    }


class Announcer:
    """Drives `s_meta_*`: destination number and payload bytes of each packet, in order. pause: before each."""

    def __init__(self, bench: Bench, pause: Callable[[], bool] = never) -> None:
        self.bench, self.pause = bench, pause
        self.queue: deque[tuple[int, int]] = deque()
        self.called = Event()
        dut = bench.dut
        dut.local_mac.value, dut.local_address.value = mac_number(LOCAL_MAC), int(IPv4Address(LOCAL_IP))
        dut.s_meta_tvalid.value = dut.table_write.value = 0
        cocotb.start_soon(self._run())

    def announce(self, destination_index: int, payload_bytes: int) -> None:
        self.queue.append((destination_index, payload_bytes))
        self.called.set()

    async def write_table(self, index: int, destination: dict[str, Any], enable: int = 1) -> None:
        dut = self.bench.dut
        dut.table_write.value, dut.table_index.value, dut.table_enable.value = 1, index, enable
        dut.table_mac.value = mac_number(destination["mac"])
        dut.table_address.value = int(IPv4Address(destination["address"]))
        dut.table_port.value, dut.table_source_port.value = destination["port"], destination["source_port"]
        await self.bench.wait(1)
        dut.table_write.value = 0

    async def _run(self) -> None:
        dut, edge = self.bench.dut, RisingEdge(self.bench.dut.clk)
        while True:
            if not self.queue:
                self.called.clear()
                await self.called.wait()
                await self.bench.to_edge()
                continue
            if self.pause():
                await edge
                continue
            dut.s_meta_destination.value, dut.s_meta_payload_bytes.value = self.queue.popleft()
            dut.s_meta_tvalid.value = 1
            await edge
            while dut.s_meta_tready.value == 0:
                await edge
            dut.s_meta_tvalid.value = 0
