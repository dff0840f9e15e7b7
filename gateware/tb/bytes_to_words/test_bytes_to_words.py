# SPDX-License-Identifier: Apache-2.0
"""bytes_to_words: every size with and without pauses, sideband, bad packets, the cycle of each last word, reset."""

from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.streams import Packet, StreamSink, StreamSource

META_BITS = PARAMETERS.get("META_BITS", 1)
LATENCY_CYCLES = 1


class WidenBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.source = StreamSource(self, "s_axis", meta=["s_meta"])
        self.packets = Scoreboard("packets")
        self.seen: list[Packet] = []
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta"])

    def take(self, packet: Packet) -> None:
        self.seen.append(packet)
        self.packets.take((packet.data, packet.user, packet.meta["m_meta"]))

    def send(self, data: bytes, user: int, meta: int) -> Packet:
        self.packets.expect((data, user, meta))
        sent = Packet(data, user, {"s_meta": meta})
        self.source.send(sent)
        return sent


async def started(dut: Any) -> WidenBench:
    bench = WidenBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def every_size_at_full_rate(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [*range(1, 40), *(rng.randint(1, 200) for _ in range(20 if SHORT else 200))]
    sent = [bench.send(rng.randbytes(size), rng.getrandbits(1), rng.getrandbits(META_BITS)) for size in sizes]
    await bench.source.drain()
    await bench.wait(3)
    bench.packets.finish()
    for one, other in zip(sent, bench.seen, strict=True):
        assert other.last_cycle - one.last_cycle == LATENCY_CYCLES
        assert other.words == (len(one.data) + 7) // 8


@cocotb.test
async def pauses_anywhere(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for share in (0.2, 0.8):
        bench.source.pause = pauses(rng, share)
        for _ in range(40 if SHORT else 300):
            bench.send(rng.randbytes(rng.randint(1, 40)), rng.getrandbits(1), rng.getrandbits(META_BITS))
        await bench.source.drain()
    await bench.wait(3)
    bench.packets.finish()


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(5 if SHORT else 30):
        dut.s_axis_tvalid.value, dut.s_axis_tlast.value = 1, 0
        await bench.wait(rng.randint(1, 20))
        dut.s_axis_tvalid.value = 0
        await bench.reset()
        bench.source.pause = never
        bench.send(rng.randbytes(rng.randint(1, 40)), 0, rng.getrandbits(META_BITS))
        await bench.source.drain()
        await bench.wait(3)
    bench.packets.finish()
