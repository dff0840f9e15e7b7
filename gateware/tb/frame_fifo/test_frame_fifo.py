# SPDX-License-Identifier: Apache-2.0
"""frame_fifo: whole packets in order under random pauses, bad and too many packets dropped whole, exact room, no gap inside a packet."""

from random import Random
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, never, pauses, random_numbers
from common.streams import Packet, StreamSink, StreamSource

DEPTH_WORDS = PARAMETERS.get("DEPTH_WORDS", 512)
PACKETS = PARAMETERS.get("PACKETS", 64)
META_BITS = PARAMETERS.get("META_BITS", 1)
WORD_BYTES = PARAMETERS.get("DATA_BITS", 64) // 8
LATENCY_CYCLES = 2


class FifoBench(Bench):
    """`sent` are the good packets in order; what comes out must be a part of them in the same order, the rest is drop_full."""

    def __init__(self, dut: Any, rng: Random) -> None:
        super().__init__(dut, ["count_good", "count_bad", "drop_full"])
        self.rng = rng
        self.source = StreamSource(self, "s_axis", meta=["s_meta"])
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta"])
        self.sent: list[Packet] = []
        self.next = 0
        self.seen: list[Packet] = []
        self.sent_bad = 0

    def send(self, words: int, user: int = 0) -> Packet:
        size = WORD_BYTES * words - self.rng.randrange(WORD_BYTES)
        packet = Packet(self.rng.randbytes(size), user, {"s_meta": self.rng.getrandbits(META_BITS)})
        self.source.send(packet)
        if user:
            self.sent_bad += 1
        else:
            self.sent.append(packet)
        return packet

    def take(self, packet: Packet) -> None:
        self.seen.append(packet)
        while self.next < len(self.sent):
            wanted = self.sent[self.next]
            self.next += 1
            if packet.data == wanted.data and packet.meta["m_meta"] == wanted.meta["s_meta"]:
                return
        raise AssertionError(f"a packet of {len(packet.data)} bytes that was not sent, or out of order")

    async def finish(self) -> None:
        """The books: good packets in = out + drop_full, bad ones = count_bad."""
        await self.source.drain()
        self.sink.pause = never
        await self.wait(2 * DEPTH_WORDS + 10)
        assert self.dut.fill_words.value == 0
        assert len(self.seen) == self.counts["count_good"]
        assert len(self.sent) == self.counts["count_good"] + self.counts["drop_full"]
        assert self.sent_bad == self.counts["count_bad"]


async def started(dut: Any) -> FifoBench:
    bench = FifoBench(dut, random_numbers())
    await bench.reset()
    return bench


@cocotb.test
async def nothing_is_lost_while_there_is_room(dut: Any) -> None:
    bench = await started(dut)
    rng = bench.rng
    longest = min(DEPTH_WORDS // 2, 40)
    for _ in range(200 if SHORT else 1500):
        bench.source.pause = pauses(rng, rng.choice([0.0, 0.4]))
        bench.send(rng.randint(1, longest), user=int(rng.random() < 0.2))
        await bench.source.drain()
        await bench.wait(rng.randint(0, 3))
    await bench.finish()
    assert bench.counts["drop_full"] == 0
    bench.expect_counts(count_good=len(bench.sent), count_bad=bench.sent_bad)


@cocotb.test
async def too_much_is_dropped_whole(dut: Any) -> None:
    bench = await started(dut)
    rng = bench.rng
    bench.sink.pause = pauses(rng, 0.7)
    longest = min(DEPTH_WORDS + 2, 60)
    for _ in range(300 if SHORT else 3000):
        bench.send(rng.randint(1, longest), user=int(rng.random() < 0.2))
    await bench.finish()
    assert bench.counts["drop_full"] > 10, "the load did not fill the buffer"
    assert bench.counts["count_good"] > 10


@cocotb.test
async def the_room_is_exact(dut: Any) -> None:
    """With the output stopped one word stands in it and DEPTH_WORDS behind it; or PACKETS packets and the one in the output."""
    bench = await started(dut)
    bench.sink.pause = lambda: True
    await bench.wait(2)
    bench.send(2)  # one word of it in the output
    await bench.source.drain()
    await bench.wait(5)
    assert bench.dut.fill_words.value == 1
    bench.send(DEPTH_WORDS - 1)
    await bench.source.drain()
    await bench.wait(3)
    bench.expect_counts(count_good=2)
    bench.send(1)
    await bench.source.drain()
    await bench.wait(3)
    bench.expect_counts(count_good=2, drop_full=1)
    await bench.finish()
    bench.sink.pause = lambda: True
    await bench.wait(2)
    for _ in range(PACKETS + 3):
        bench.send(1)
    await bench.source.drain()
    await bench.wait(3)
    fitting = min(PACKETS, DEPTH_WORDS) + 1
    bench.expect_counts(count_good=2 + fitting, drop_full=1 + PACKETS + 3 - fitting)
    await bench.finish()


@cocotb.test
async def latency_and_full_rate(dut: Any) -> None:
    bench = await started(dut)
    for words in (1, 2, DEPTH_WORDS // 2):
        sent = bench.send(words)
        await bench.source.drain()
        await bench.wait(DEPTH_WORDS + 5)
        seen = bench.seen[-1]
        assert seen.first_cycle - sent.last_cycle == LATENCY_CYCLES
        assert seen.last_cycle - seen.first_cycle + 1 == words
    first = len(bench.seen)
    for _ in range(20):
        bench.send(min(DEPTH_WORDS // 4, 16))
    await bench.finish()
    took = bench.seen[-1].last_cycle - bench.seen[first].first_cycle + 1
    assert took == sum(packet.words for packet in bench.seen[first:]), "a pause between packets that were there"


@cocotb.test
async def reset_empties_it(dut: Any) -> None:
    bench = await started(dut)
    for _ in range(10):
        bench.sink.pause = lambda: True
        bench.send(3)
        bench.send(2)
        await bench.source.drain()
        dut.rst.value = 1
        await bench.wait(2)
        dut.rst.value = 0
        bench.sink.pause = never
        await bench.wait(8)
        assert not bench.seen
        bench.next = len(bench.sent)
        bench.send(2)
        await bench.source.drain()
        await bench.wait(8)
        assert len(bench.seen) == 1
        bench.seen.clear()
