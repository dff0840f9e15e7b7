# SPDX-License-Identifier: Apache-2.0
"""decompressor: the events of the software's vectors and of random packets, padded and packed, through the table or not; rate and latency."""

from typing import Any

import cocotb
from common.bench import SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.events import (
    PACKET_BYTES_MAX,
    START,
    Event,
    event_of,
    marker,
    packed_ids,
    packed_packet,
    padded_packet,
    random_event,
    random_packet,
    vectors,
)
from common.streams import Packet, StreamSink, StreamSource

LATENCY_CYCLES = 2


class DecompressorBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["count_packet", "count_marker"])
        dut.cfg_table.value = dut.table_write.value = 0
        self.source = StreamSource(self, "s_axis")
        self.sink = StreamSink(self, "m_axis", self.take)
        self.events = Scoreboard("events")
        self.seen: list[Packet] = []
        self.expected = dict.fromkeys(self.counts, 0)

    def send(self, payload: bytes, events: list[Event]) -> Packet:
        packet = Packet(payload)
        self.source.send(packet)
        for event in events:
            self.events.expect(event)
        self.expected["count_packet" if payload[3] else "count_marker"] += 1
        return packet

    def take(self, packet: Packet) -> None:
        self.seen.append(packet)
        self.events.take(event_of(packet.data))

    async def write_table(self, table: list[int]) -> None:
        self.dut.table_write.value = 1
        for index, hit in enumerate(table):
            self.dut.table_index.value, self.dut.table_hit.value = index, hit
            await self.wait(1)
        self.dut.table_write.value = 0

    async def finish(self) -> None:
        await self.source.drain()
        self.sink.pause = never
        await self.wait_until(self.events.complete, 3000, "all events")
        await self.wait(10)
        self.events.finish()
        self.expect_counts(**self.expected)


async def started(dut: Any) -> DecompressorBench:
    bench = DecompressorBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def the_vectors_of_the_software(dut: Any) -> None:
    bench = await started(dut)
    for name in ("mgp_padded", "mgp_packed", "mgp_marker"):
        for vector in vectors(name):
            if vector.fields["expect"] == "none":
                bench.send(vector.payload, vector.events)
    await bench.finish()
    assert len(bench.seen) > 100


@cocotb.test
async def random_packets_with_pauses(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(60 if SHORT else 400):
        bench.source.pause = pauses(rng, rng.choice([0.0, 0.3]))
        bench.sink.pause = pauses(rng, rng.choice([0.0, 0.5]))
        bench.send(*random_packet(rng))
        if rng.random() < 0.5:
            await bench.source.drain()
    await bench.finish()


@cocotb.test
async def every_number_of_hits_at_every_place(dut: Any) -> None:
    """Packed events end at any byte of a word: pairs and triples of events of all sizes up to 17 hits."""
    rng = random_numbers()
    bench = await started(dut)
    for count in range(18):
        events = [
            Event(rng.getrandbits(40), rng.getrandbits(16), [512 + rng.getrandbits(9) for _ in range(h)])
            for h in (count, 3, 1, 6, 0, 5)
        ]
        bench.send(packed_packet(events, board=1), events)
        bench.send(packed_packet(events[::-1], board=1), events[::-1])
    await bench.finish()


@cocotb.test
async def through_the_table(dut: Any) -> None:
    """Entry board * 512 + id of the table is the hit; padded packets pass as they are."""
    rng = random_numbers()
    bench = await started(dut)
    table = [rng.getrandbits(16) for _ in range(2048)]
    await bench.write_table(table)
    dut.cfg_table.value = 1
    await bench.wait(2)
    for board in range(4):
        for start in range(0, 512, 128):
            event = random_event(rng, 0)._replace(hits=[board * 512 + start + place for place in range(128)])
            bench.send(packed_packet([event], board=board), [event._replace(hits=[table[hit] for hit in event.hits])])
    for _ in range(20):
        payload, events = random_packet(rng)
        if payload[2] & 0x0F == 2:
            events = [event._replace(hits=[table[hit] for hit in event.hits]) for event in events]
        bench.send(payload, events)
    await bench.finish()
    dut.cfg_table.value = 0
    await bench.wait(2)
    bench.send(*random_packet(rng))
    await bench.finish()


@cocotb.test
async def rate_and_latency(dut: Any) -> None:
    """A word a cycle out while hits are packed; padded packets as quickly as they come."""
    rng = random_numbers()
    bench = await started(dut)
    event = random_event(rng, 0, board=0)
    first = bench.send(packed_packet([event]), [event])
    await bench.finish()
    assert bench.seen[-1].first_cycle - first.last_cycle == LATENCY_CYCLES  # its header is the packet's last word

    for hits in (0, 4, 5, 32, 255):
        events: list[Event] = []
        while True:
            event = random_event(rng, 0)._replace(hits=[rng.getrandbits(9) for _ in range(hits)])
            if 16 + sum(8 + len(packed_ids(e.hits)) for e in [*events, event]) > PACKET_BYTES_MAX or len(events) == 182:
                break
            events.append(event)
        before = len(bench.seen)
        for _ in range(3):
            bench.send(packed_packet(events), events)
        await bench.finish()
        words = sum(packet.words for packet in bench.seen[before:])
        took = bench.seen[-1].last_cycle - bench.seen[before].first_cycle + 1
        assert took <= words + 2 * 5 + 2, f"{took} cycles for {words} words of events of {hits} hits"
        print(f"figure: packed events of {hits} hits: {took / 3 / len(events):.2f} cycles an event", flush=True)

    events = [random_event(rng, 32) for _ in range(16)]
    packets = [bench.send(padded_packet(events), events) for _ in range(5)]
    await bench.finish()
    took = packets[-1].last_cycle - packets[0].last_cycle
    assert took <= 4 * (1168 // 8 + 4), f"{took} cycles for four padded packets"


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(20):
        bench.source.send(Packet(random_packet(rng)[0]))
        bench.source.send(Packet(marker(START)))
        bench.events.expected.clear()
        bench.events.seen = 0
        bench.sink.take = lambda packet: None
        await bench.wait(rng.randint(1, 60))
        dut.rst.value = 1
        await bench.source.drain()
        await bench.wait(2)
        dut.rst.value = 0
        bench.sink.take = bench.take
        await bench.wait(2)
        payload, events = random_packet(rng)
        bench.send(payload, events)
        await bench.source.drain()
        await bench.wait(700)
        bench.events.finish()
