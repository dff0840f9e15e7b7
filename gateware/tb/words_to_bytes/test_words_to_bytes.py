# SPDX-License-Identifier: Apache-2.0
"""words_to_bytes: every size, random pauses on both sides, a byte in every cycle if a word comes every eight, reset."""

from typing import Any

import cocotb
from common.bench import SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.streams import Packet, StreamSink, StreamSource


class NarrowBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.source = StreamSource(self, "s_axis")
        self.packets = Scoreboard("packets")
        self.seen: list[Packet] = []
        self.sink = StreamSink(self, "m_axis", self.take)

    def take(self, packet: Packet) -> None:
        self.seen.append(packet)
        self.packets.take((packet.data, packet.user))

    def send(self, data: bytes, user: int) -> Packet:
        self.packets.expect((data, user))
        sent = Packet(data, user)
        self.source.send(sent)
        return sent

    async def finish(self) -> None:
        await self.wait_until(self.packets.complete, 200_000, "all packets")
        self.packets.finish()


async def started(dut: Any) -> NarrowBench:
    bench = NarrowBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def every_size_without_a_gap(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [*range(1, 40), *(rng.randint(1, 200) for _ in range(20 if SHORT else 200))]
    for size in sizes:
        bench.send(rng.randbytes(size), rng.getrandbits(1))
    await bench.finish()
    assert bench.seen[-1].last_cycle - bench.seen[0].first_cycle + 1 == sum(sizes), "a gap"


@cocotb.test
async def a_word_every_eight_cycles_is_enough(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    asked = iter(range(10**9))
    bench.source.pause = lambda: next(asked) % 8 != 0
    sent = bench.send(rng.randbytes(8 * 50), 0)
    await bench.finish()
    assert sent.last_cycle - sent.first_cycle == 8 * 49, "the source did not come every eight cycles"
    assert bench.seen[0].last_cycle - bench.seen[0].first_cycle + 1 == 8 * 50, "a gap"


@cocotb.test
async def pauses_on_both_sides(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for source_share, sink_share in ((0.0, 0.5), (0.9, 0.0), (0.5, 0.5)):
        bench.source.pause, bench.sink.pause = pauses(rng, source_share), pauses(rng, sink_share)
        for _ in range(30 if SHORT else 300):
            bench.send(rng.randbytes(rng.randint(1, 40)), rng.getrandbits(1))
        await bench.finish()


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(5 if SHORT else 30):
        dut.s_axis_tvalid.value, dut.s_axis_tlast.value, dut.s_axis_tkeep.value = 1, 0, 0xFF
        await bench.wait(rng.randint(1, 20))
        dut.s_axis_tvalid.value = 0
        await bench.reset()
        bench.source.pause = bench.sink.pause = never
        bench.send(rng.randbytes(rng.randint(1, 40)), 0)
        await bench.finish()
