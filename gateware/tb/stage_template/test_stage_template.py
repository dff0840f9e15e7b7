# SPDX-License-Identifier: Apache-2.0
"""stage_template, and what any stage must do: to copy with it. Payloads of all lengths with pauses, bad ones, settings that change, reset in mid-packet."""

from random import Random
from typing import Any

import cocotb
from common.bench import SHORT, Bench, never, pauses, random_numbers
from common.streams import Packet, StreamSink, StreamSource

LATENCY_CYCLES = 1
META_BITS = 238  # of port_pkg::routed_t
WORD = (1 << 64) - 1


def wanted(payload: bytes, value: int, mask: int) -> bool:
    """One's own: whether it goes on."""
    there = (1 << 8 * min(8, len(payload))) - 1
    first = int.from_bytes(payload[:8], "little")
    return mask & ~there & WORD == 0 and (first ^ value) & mask == 0


class StageBench(Bench):
    """expected: (payload, sideband, whether it is bad) in order."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["drop_refused"])
        self.source = StreamSource(self, "s_axis", meta=["s_meta"])
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta"])
        self.sent: list[tuple[Packet, bool]] = []
        self.seen: list[Packet] = []
        self.refused = 0
        self.tell(0, 0)

    def tell(self, value: int, mask: int) -> None:
        self.value, self.mask = value, mask
        self.dut.cfg_value.value, self.dut.cfg_mask.value = value, mask

    def send(self, payload: bytes, meta: int, bad: bool = False) -> None:
        packet = Packet(payload, user=int(bad), meta={"s_meta": meta})
        goes_on = wanted(payload, self.value, self.mask)
        self.refused += not bad and not goes_on
        self.sent.append((packet, bad or not goes_on))
        self.source.send(packet)

    def take(self, packet: Packet) -> None:
        packet_in, bad = self.sent[len(self.seen)]
        assert (packet.data, packet.meta["m_meta"], packet.user) == (packet_in.data, packet_in.meta["s_meta"], int(bad))
        assert packet.first_cycle - packet_in.first_cycle == LATENCY_CYCLES
        assert packet.last_cycle - packet_in.last_cycle == LATENCY_CYCLES
        self.seen.append(packet)

    async def finish(self) -> None:
        await self.source.drain()
        await self.wait(10)
        assert len(self.seen) == len(self.sent)
        self.expect_counts(drop_refused=self.refused)


def payload_of(rng: Random) -> bytes:
    return rng.randbytes(rng.choice([1, 7, 8, 9, 64, rng.randint(1, 300)]))


@cocotb.test
async def each_payload_with_its_sideband(dut: Any) -> None:
    rng = random_numbers()
    bench = StageBench(dut)
    await bench.reset()
    for _ in range(20 if SHORT else 100):
        bench.source.pause = rng.choice([never, pauses(rng, 0.4)])
        payloads = [payload_of(rng) for _ in range(5)]
        mask = rng.choice([0, 0xFF, 0xFFFF00, WORD])
        bench.tell(int.from_bytes(rng.choice(payloads)[:8], "little"), mask)
        for payload in payloads:
            bench.send(payload, rng.getrandbits(META_BITS), bad=rng.random() < 0.2)
        await bench.source.drain()
        await bench.wait(1)
    assert 0 < bench.refused < len(bench.sent)
    await bench.finish()


@cocotb.test
async def settings_hold_for_a_packet(dut: Any) -> None:
    """They change while it comes in: its first word has decided."""
    rng = random_numbers()
    bench = StageBench(dut)
    await bench.reset()
    for first in (1, 2, 1):
        bench.tell(1, 0xFF)
        bench.send(bytes([first]) + rng.randbytes(99), 5)
        await bench.wait(5)
        bench.dut.cfg_value.value = 3
        await bench.source.drain()
        await bench.wait(1)
    await bench.finish()
    assert bench.refused == 1


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = StageBench(dut)
    await bench.reset()
    for _ in range(10):
        bench.tell(1, 0xFF)
        bench.source.send(Packet(rng.randbytes(400), meta={"s_meta": 0}))
        await bench.wait(rng.randint(2, 40))
        dut.rst.value = 1
        await bench.source.drain()
        await bench.wait(2)
        dut.rst.value = 0
        await bench.wait(2)
        bench.sent.clear()
        bench.seen.clear()
        bench.forget_counts()
        bench.refused = 0
        bench.send(b"\x01" + rng.randbytes(20), 7)
        bench.send(b"\x02" + rng.randbytes(20), 8)
        await bench.finish()
