# SPDX-License-Identifier: Apache-2.0
"""stage_encap: 32 bytes in front of each payload with the numbers of its source's stream, and a sideband that stands beside all of it, longer by as much. Any sideband, any gaps, payloads
of another length than is said, reset in mid-packet."""

import struct
from random import Random
from typing import Any

import cocotb
from common.bench import CYCLE_NS, PARAMETERS, SHORT, Bench, never, pauses, random_numbers
from common.streams import Packet, StreamSink, StreamSource

STREAMS = PARAMETERS.get("STREAMS", 16)
HEADER = struct.Struct("<HHIQQQ")
GAP_CYCLES = 4
META_BITS = 238  # of port_pkg::routed_t
START_AT, BYTES_AT, SOURCE_AT = 64, 192, 216  # in it: of 64, 16 and 16 bits


def with_bytes(meta: int, count: int) -> int:
    return meta & ~(0xFFFF << BYTES_AT) | count << BYTES_AT


class EncapBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["drop_refused"], now=True, now_ns=True)
        self.source = StreamSource(self, "s_axis", meta=["s_meta"], gap_cycles=GAP_CYCLES)
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta"])
        self.forget()
        self.numbers = [0] * STREAMS

    def forget(self) -> None:
        self.sent: list[tuple[Packet, int, int]] = []  # with its number, and by how much its length is wrong
        self.seen = self.refused = 0

    def send(self, rng: Random, *, user: int = 0, wrong_by: int = 0) -> None:
        payload = rng.randbytes(rng.choice([rng.randint(1, 20), rng.randint(1, 200)]))
        meta = with_bytes(rng.getrandbits(META_BITS), len(payload) + wrong_by)
        packet, stream = Packet(payload, user, {"s_meta": meta}), (meta >> SOURCE_AT) % STREAMS
        self.sent.append((packet, self.numbers[stream], wrong_by))
        self.numbers[stream] += not user and not wrong_by
        self.refused += not user and wrong_by != 0
        self.source.send(packet)

    def take(self, packet: Packet) -> None:
        sent, number, wrong_by = self.sent[self.seen]
        meta, size = sent.meta["s_meta"], len(sent.data) + wrong_by
        stream, start_cycle = (meta >> SOURCE_AT) % STREAMS, meta >> START_AT & (1 << 64) - 1
        assert packet.meta == {"m_meta": with_bytes(meta, size + HEADER.size)}
        cycle = sent.first_cycle
        assert packet.data == HEADER.pack(stream, size, number, start_cycle, cycle, (cycle - 1) * CYCLE_NS) + sent.data
        assert packet.user == int(sent.user or wrong_by != 0)
        assert (packet.first_cycle, packet.last_cycle) == (sent.first_cycle + 1, sent.last_cycle + 5)
        self.seen += 1

    async def finish(self) -> None:
        await self.source.drain()
        await self.wait(10)
        assert self.seen == len(self.sent)
        self.expect_counts(drop_refused=self.refused)


@cocotb.test
async def each_payload_with_its_header_and_its_sideband(dut: Any) -> None:
    rng = random_numbers()
    bench = EncapBench(dut)
    await bench.reset()
    for _ in range(20 if SHORT else 100):
        bench.source.pause = rng.choice([never, pauses(rng, 0.4)])
        bench.source.gap_cycles = rng.randint(GAP_CYCLES, 7)
        for _ in range(8):
            kind = rng.random()
            bench.send(rng, user=int(kind < 0.1), wrong_by=rng.choice([1, 8, 300]) if 0.1 <= kind < 0.2 else 0)
        await bench.source.drain()
    await bench.finish()
    assert bench.refused > 0


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    """What comes after it has its own header and sideband, and number 0."""
    rng = random_numbers()
    bench = EncapBench(dut)
    await bench.reset()
    for _ in range(10):
        bench.source.send(Packet(rng.randbytes(400), meta={"s_meta": rng.getrandbits(META_BITS)}))
        await bench.wait(rng.randint(2, 40))
        dut.rst.value = 1
        await bench.source.drain()
        await bench.wait(2)
        dut.rst.value = 0
        await bench.wait(STREAMS + 2)
        bench.forget()
        bench.forget_counts()
        bench.numbers = [0] * STREAMS
        for _ in range(3):
            bench.send(rng)
        await bench.finish()
