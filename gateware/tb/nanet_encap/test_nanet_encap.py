# SPDX-License-Identifier: Apache-2.0
"""nanet_encap: header and payload bit for bit, numbers of each stream, packets that are bad or of the wrong length, latency without spread."""

import struct
from random import Random
from typing import Any

import cocotb
from common.bench import CYCLE_NS, PARAMETERS, SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.streams import Packet, StreamSink, StreamSource

STREAMS = PARAMETERS["STREAMS"]
HEADER = struct.Struct("<HHIQQQ")
HEADER_WORDS, LATENCY_CYCLES, GAP_CYCLES = 4, 5, 4


class EncapBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["count_good", "drop_length"], now=True, now_ns=True)
        dut.restart.value = 0
        meta = ["s_meta_stream", "s_meta_payload_bytes", "s_meta_start_cycle"]
        self.source = StreamSource(self, "s_axis", meta=meta, gap_cycles=GAP_CYCLES)
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta_stream", "m_meta_bytes", "m_meta_start_cycle"])
        self.payloads = Scoreboard("payloads")
        self.sent: list[Packet] = []
        self.numbers = [0] * STREAMS
        self.expected = dict.fromkeys(self.counts, 0)

    def send(self, rng: Random, size: int, *, user: int = 0, wrong_by: int = 0, stream: int | None = None) -> Packet:
        stream = rng.randrange(STREAMS) if stream is None else stream
        meta = {"s_meta_stream": stream, "s_meta_payload_bytes": size + wrong_by, "s_meta_start_cycle": rng.getrandbits(64)}
        packet = Packet(rng.randbytes(size), user, meta)
        self.source.send(packet)
        self.sent.append(packet)
        self.payloads.expect(
            (stream, size + wrong_by, self.numbers[stream], meta["s_meta_start_cycle"], packet.data, int(user or wrong_by != 0))
        )
        if not user:
            self.expected["drop_length" if wrong_by else "count_good"] += 1
        if not user and not wrong_by:
            self.numbers[stream] += 1
        return packet

    def take(self, packet: Packet) -> None:
        stream, size, number, start_cycle, header_cycle, header_ns = HEADER.unpack_from(packet.data)
        assert packet.meta == {"m_meta_stream": stream, "m_meta_bytes": size + HEADER.size, "m_meta_start_cycle": start_cycle}
        self.payloads.take((stream, size, number, start_cycle, packet.data[HEADER.size :], packet.user))
        sent = self.sent[self.payloads.seen - 1]
        assert packet.first_cycle == sent.first_cycle + 1
        assert packet.last_cycle == sent.last_cycle + LATENCY_CYCLES
        assert header_cycle == sent.first_cycle
        assert header_ns == (header_cycle - 1) * CYCLE_NS

    async def finish(self) -> None:
        await self.source.drain()
        await self.wait(LATENCY_CYCLES + 3)
        self.payloads.finish()
        self.expect_counts(**self.expected)


async def started(dut: Any) -> EncapBench:
    bench = EncapBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def packets_of_all_streams_with_and_without_pauses(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(20 if SHORT else 100):
        bench.source.pause = rng.choice([never, pauses(rng, 0.3)])
        bench.source.gap_cycles = rng.randint(GAP_CYCLES, 9)
        for _ in range(10):
            bench.send(rng, rng.choice([rng.randint(1, 40), rng.randint(1, 200)]))
        await bench.source.drain()
    await bench.finish()


@cocotb.test
async def a_packet_without_gaps_stays_so(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    lengths = []
    take = bench.sink.take
    bench.sink.take = lambda packet: (lengths.append((packet.last_cycle - packet.first_cycle + 1, packet.words)), take(packet))[0]
    for size in (1, 8, 9, 100, 1472):
        bench.send(rng, size)
    await bench.finish()
    assert all(took == words for took, words in lengths)
    assert len(lengths) == 5


@cocotb.test
async def bad_packets_take_no_number(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(100 if SHORT else 500):
        kind = rng.random()
        size = rng.randint(1, 60)
        bench.send(rng, size, user=int(kind < 0.2), wrong_by=rng.choice([-1, 1, 8, 300]) if 0.2 <= kind < 0.4 else 0)
    await bench.finish()
    assert bench.counts["drop_length"] > 5


@cocotb.test
async def streams_begin_again(dut: Any) -> None:
    """A restart before a packet makes it number 0. One from its first word on leaves it its number, and the next is number 0."""
    rng = random_numbers()
    bench = await started(dut)

    async def restart() -> int:
        dut.restart.value = 1
        await bench.wait(1)
        dut.restart.value = 0
        return bench.cycle

    for after in range(12):
        for stream in (0, 1):
            bench.send(rng, 30, stream=stream)
            bench.send(rng, 30, stream=stream)
        await bench.finish()
        packet = bench.send(rng, 30, stream=0)  # four words
        bench.numbers[0] = 0
        await bench.wait(after)
        restarted = await restart()
        await bench.wait(20)
        assert restarted - packet.first_cycle == after
        for stream in (0, 1):
            bench.send(rng, 20, stream=stream)
        await bench.finish()
        await restart()
        bench.numbers[0] = 0
        await bench.wait(2)
        bench.send(rng, 20, stream=0)
        await bench.finish()
