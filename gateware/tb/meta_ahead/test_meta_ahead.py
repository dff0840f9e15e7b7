# SPDX-License-Identifier: Apache-2.0
"""meta_ahead: words unchanged and in order, the meta of each packet once, a cycle after its first word and as far ahead as the room allows."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.streams import Packet, StreamSink, StreamSource

WORDS = PARAMETERS.get("WORDS", 8)
META_BITS = PARAMETERS.get("META_BITS", 1)


class AheadBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.rng = random_numbers()
        self.source = StreamSource(self, "s_axis", meta=["s_meta"])
        self.sink = StreamSink(self, "m_axis", self._take)
        self.out, self.metas = Scoreboard("packets"), Scoreboard("metas")
        self.meta_pause = never
        self.told: deque[int] = deque()  # cycles in which metas were taken
        self.ahead: list[int] = []  # cycles from meta to first word
        cocotb.start_soon(self._take_metas())

    def _take(self, packet: Packet) -> None:
        self.ahead.append(packet.first_cycle - self.told.popleft() if self.told else -1)
        self.out.take(packet.data)

    async def _take_metas(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        waiting: int | None = None
        while True:
            ready = not self.meta_pause()
            dut.m_meta_tready.value = int(ready)
            await edge
            if dut.rst.value == 1 or dut.m_meta_tvalid.value == 0:
                assert dut.rst.value == 1 or waiting is None, "a meta was withdrawn"
                waiting = None
                continue
            meta = int(dut.m_meta.value)
            assert waiting in (None, meta), "a waiting meta changed"
            waiting = None if ready else meta
            if ready:
                self.told.append(self.cycle)
                self.metas.take(meta)

    def send(self, size: int) -> Packet:
        packet = Packet(self.rng.randbytes(size), meta={"s_meta": self.rng.getrandbits(META_BITS)})
        self.out.expect(packet.data)
        self.metas.expect(packet.meta["s_meta"])
        self.source.send(packet)
        return packet

    async def finish(self) -> None:
        self.sink.pause = self.meta_pause = self.source.pause = never
        await self.wait_until(lambda: self.out.complete() and self.metas.complete(), 10_000, "all packets")
        await self.wait(3)
        self.out.finish()
        self.metas.finish()


@cocotb.test
async def words_and_metas_in_order(dut: Any) -> None:
    bench = AheadBench(dut)
    await bench.reset()
    for share in (0.0, 0.3, 0.7):
        bench.source.pause, bench.sink.pause, bench.meta_pause = (pauses(bench.rng, share) for _ in range(3))
        for _ in range(60 if SHORT else 1000):
            bench.send(bench.rng.choice([1, 8, 9, 64, bench.rng.randint(1, 200)]))
        await bench.source.drain()
        await bench.finish()


@cocotb.test
async def the_meta_is_ahead_and_the_room_is_exact(dut: Any) -> None:
    bench = AheadBench(dut)
    await bench.reset()
    bench.sink.pause = lambda: True
    await bench.wait(2)
    packets = [bench.send(8 * WORDS - 8), bench.send(8), bench.send(8)]
    await bench.wait(3 * WORDS)
    assert [packet.words for packet in packets] == [WORDS - 1, 1, 0], "as many words wait as there is room for"
    assert len(bench.told) == 2, "two packets have begun"
    assert list(bench.told) == [packet.first_cycle + 1 for packet in packets[:2]]
    await bench.finish()
    # Without a pause: the meta of a packet comes while the words before it leave.
    bench.ahead.clear()
    bench.sink.pause = lambda: True
    await bench.wait(2)
    for _ in range(20):
        bench.send(8 * WORDS)
    await bench.wait(2 * WORDS)
    await bench.finish()
    assert set(bench.ahead[1:-1]) == {WORDS - 2}


@cocotb.test
async def a_meta_that_is_not_taken_holds_up_the_next_packet_alone(dut: Any) -> None:
    bench = AheadBench(dut)
    await bench.reset()
    bench.meta_pause = lambda: True
    await bench.wait(2)
    first, second = bench.send(40), bench.send(8)
    await bench.wait(20)
    assert (first.words, second.words) == (5, 0)
    assert bench.out.seen == 1, "who takes the words looks after their meta"
    bench.told.append(0)
    await bench.finish()


@cocotb.test
async def reset_empties_it(dut: Any) -> None:
    bench = AheadBench(dut)
    await bench.reset()
    for words in range(2 * WORDS if SHORT else 10 * WORDS):
        bench.sink.pause, bench.meta_pause = pauses(bench.rng, 0.6), pauses(bench.rng, 0.6)
        dut.s_axis_tdata.value, dut.s_axis_tkeep.value, dut.s_axis_tlast.value = 0, 0xFF, 0  # in the middle of a packet
        dut.s_axis_tvalid.value = 1
        bench.out, bench.metas = Scoreboard("packets"), Scoreboard("metas")
        bench.metas.expect(int(dut.s_meta.value))
        await bench.wait(1 + words % (WORDS + 2))
        dut.rst.value, dut.s_axis_tvalid.value = 1, 0
        await bench.wait(1)
        bench.out, bench.metas = Scoreboard("packets"), Scoreboard("metas")
        bench.told.clear()
        dut.rst.value = 0
        await bench.wait(1)
        assert (dut.m_axis_tvalid.value, dut.m_meta_tvalid.value) == (0, 0)
        bench.send(bench.rng.randint(1, 60))
        await bench.finish()
