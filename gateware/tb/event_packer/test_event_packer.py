# SPDX-License-Identifier: Apache-2.0
"""event_packer: packets bit for bit as the software's vectors and as the reference here; when they leave; back-pressure on both sides."""

import struct
from random import Random
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, never, pauses, random_numbers
from common.events import (
    Event,
    event_bytes,
    marker,
    merged_events,
    merged_packet,
    packed_packet,
    padded_packet,
    parts_filling,
    random_event,
    vectors,
)
from common.streams import Packet, StreamSink, StreamSource

BYTES_MAX = PARAMETERS["PACKET_BYTES_MAX"]
NOW_NS = 0x9ABCDEF0
FLUSH_CYCLES = 16  # from a packet's only event to its first word, less cfg_flush_cycles


class PackerBench(Bench):
    """`sent` are the events given; `packets` what came; both are compared at the end, numbers as the format says."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["count_event", "count_packet"])
        self.ids = (0x1C, 5)
        dut.cfg_source_id.value, dut.cfg_source_sub_id.value = self.ids
        dut.cfg_flush_cycles.value, dut.now_ns.value = 2000, NOW_NS
        dut.cfg_parts.value = 0
        self.parts = False
        self.masks: list[int] = []
        self.source = StreamSource(self, "s_axis", meta=["s_meta_parts"])
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta_payload_bytes", "m_meta_event_count"])
        self.sent: list[Event] = []
        self.packets: list[Packet] = []

    def send(self, event: Event) -> Packet:
        mask = event.key & 0xFF
        packet = Packet(event_bytes(event), meta={"s_meta_parts": mask})
        self.masks.append(mask)
        self.sent.append(event._replace(number=len(self.sent) & 0xFFFF))
        self.source.send(packet)
        return packet

    def take(self, packet: Packet) -> None:
        assert packet.meta == {"m_meta_payload_bytes": len(packet.data), "m_meta_event_count": packet.data[3]}
        assert len(packet.data) <= BYTES_MAX
        self.packets.append(packet)

    def came(self) -> int:
        return sum(packet.data[3] for packet in self.packets)

    async def finish(self) -> None:
        await self.source.drain()
        self.sink.pause = never
        await self.wait_until(lambda: self.came() == len(self.sent), 10_000, "all events")
        await self.wait(10)
        left = list(self.sent)
        for sequence, packet in enumerate(self.packets):
            count = len(merged_events(packet.data)[0])
            wanted, left = left[:count], left[count:]
            filling = parts_filling([event.key & 0xFF for event in wanted]) if self.parts else b""
            send_ns = struct.unpack_from("<I", packet.data, 8)[0]
            fields = {"source_id": self.ids[0], "board": self.ids[1], "sequence": sequence, "send_ns": send_ns}
            assert packet.data == merged_packet(wanted, filling, **fields)
        self.expect_counts(count_event=len(self.sent), count_packet=len(self.packets))


async def started(dut: Any) -> PackerBench:
    bench = PackerBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def the_vector_of_the_software(dut: Any) -> None:
    """The vector of ten events: numbers are set to its own by sending as many before, and its filling at the end is cut off."""
    bench = await started(dut)
    vector = next(v for v in vectors("m2egp") if v.name == "many_events")
    dut.cfg_source_sub_id.value = 1
    dut.now_ns.value = int(vector.fields["send_time_ns"])
    bench.ids = (0x1C, 1)
    events = vector.events[:6] if BYTES_MAX < 1472 else vector.events
    for event in events:
        bench.send(event)
    await bench.finish()
    assert len(bench.packets) == 1
    data = bytearray(bench.packets[0].data)
    at = 16
    for event in events:  # the vector's events are numbered from 65533 on, the packet's from 0
        struct.pack_into("<H", data, at + 6, event.number)
        at += 8 + 2 * len(event.hits)
    assert data[16:] == vector.payload[16 : len(data)]
    assert data[8:12] == vector.payload[8:12]
    assert data[:3] == vector.payload[:3]


@cocotb.test
async def the_reference_is_the_software_s(dut: Any) -> None:
    """What the benches' own builders make of the vectors' events is what the software's make, byte for byte."""
    await started(dut)
    made = 0
    for name in ("m2egp", "mgp_padded", "mgp_packed", "mgp_marker"):
        for vector in vectors(name):
            if vector.fields["expect"] != "none":
                continue
            fields = {new: int(vector.fields[old], 0) for new, old in (("source_id", "source_id"), ("board", "source_sub_id"))}
            fields |= {"sequence": int(vector.fields["sequence"]), "send_ns": int(vector.fields["send_time_ns"])}
            layout, flags = vector.payload[2] & 0x0F, vector.payload[2] & 0x30
            if vector.payload[3] == 0:
                built = marker(flags, layout, int.from_bytes(vector.payload[16:24], "little"), **fields)
            elif flags:
                continue  # a hint on a data packet, which the benches' builders do not set
            elif layout == 1:
                built = padded_packet(vector.events, **fields)
            elif layout == 2:
                built = packed_packet(vector.events, len(vector.payload), **fields)
            else:
                used = len(merged_packet(vector.events))
                built = merged_packet(vector.events, bytes(len(vector.payload) - used), **fields)
            assert built == vector.payload, f"{name} {vector.name}"
            made += 1
    assert made >= 12


@cocotb.test
async def random_events_with_pauses(dut: Any) -> None:
    await random_events(dut, parts=False)


@cocotb.test
async def with_the_parts_of_each_event(dut: Any) -> None:
    await random_events(dut, parts=True)


async def random_events(dut: Any, parts: bool) -> None:
    rng = random_numbers()
    bench = await started(dut)
    dut.cfg_parts.value = bench.parts = parts
    for _ in range(60 if SHORT else 400):
        bench.source.pause = pauses(rng, rng.choice([0.0, 0.3]))
        bench.sink.pause = pauses(rng, rng.choice([0.0, 0.6]))
        for _ in range(rng.randint(1, 40)):
            bench.send(random_event(rng, rng.choice([0, 5, 30, 128])))
        await bench.source.drain()
        dut.now_ns.value = rng.getrandbits(32)
        dut.cfg_flush_cycles.value = rng.choice([1, 50, 2000])
    await bench.finish()


@cocotb.test
async def a_packet_is_full_to_the_byte(dut: Any) -> None:
    """The next event fits exactly, or is two bytes too long; with the parts after the events, too. No packet has more than 255 events."""
    rng = random_numbers()
    bench = await started(dut)
    for too_long in (0, 1):
        await fill_to_the_byte(bench, rng, too_long)
    before = len(bench.packets)
    for _ in range(300):
        bench.send(random_event(rng, 0))
    await bench.finish()
    most = min(255, (BYTES_MAX - 16) // 8)
    assert next(packet.data[3] for packet in bench.packets[before:]) == most


@cocotb.test
async def so_it_is_with_the_parts(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    dut.cfg_parts.value = bench.parts = True
    for too_long in (0, 1):
        await fill_to_the_byte(bench, rng, too_long)
    for _ in range(300):
        bench.send(random_event(rng, 0))
    await bench.finish()
    assert all(len(packet.data) <= BYTES_MAX for packet in bench.packets)


async def fill_to_the_byte(bench: PackerBench, rng: Random, too_long: int) -> None:
    large = (BYTES_MAX - 16 - 400 + 263) // 264 if BYTES_MAX > 416 else 0
    room = BYTES_MAX - 16 - 264 * large - (2 * ((large + 3) // 2) if bench.parts else 0)
    for _ in range(large):
        bench.send(random_event(rng, 0)._replace(hits=[rng.getrandbits(16) for _ in range(128)]))
    first = (room - 16) // 4
    hits = [first, (room - 16) // 2 - first + too_long]
    for count in hits:
        bench.send(random_event(rng, 0)._replace(hits=[rng.getrandbits(16) for _ in range(count)]))
    before = len(bench.packets)
    await bench.finish()
    assert len(bench.packets) - before == 1 + too_long
    if not too_long:
        assert len(bench.packets[-1].data) == BYTES_MAX


@cocotb.test
async def it_leaves_in_time(dut: Any) -> None:
    """cfg_flush_cycles after its first event, always by the same number of cycles more for one size."""
    rng = random_numbers()
    bench = await started(dut)
    seen = set()
    for wait in (1, 10, 100):
        dut.cfg_flush_cycles.value = wait
        for _ in range(4):
            await bench.wait(rng.randint(20, 40))
            first = bench.send(random_event(rng, 0)._replace(hits=[1, 2, 3]))
            await bench.finish()
            seen.add(bench.packets[-1].first_cycle - first.last_cycle - wait)
    assert seen == {FLUSH_CYCLES}, f"the latency moves: {seen}"
    print(f"figure: a packet of one event begins to leave cfg_flush_cycles + {max(seen)} after it came", flush=True)


@cocotb.test
async def later_events_do_not_put_it_off(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    dut.cfg_flush_cycles.value = 100
    sent = []
    for _ in range(30):
        sent.append(bench.send(random_event(rng, 0)))
        await bench.wait(19)
    await bench.finish()
    first = 0
    for packet in bench.packets:
        assert packet.first_cycle - sent[first].last_cycle == 100 + FLUSH_CYCLES
        first += packet.data[3]
    assert len(bench.packets) >= 5


@cocotb.test
async def full_rate(dut: Any) -> None:
    """Events without a pause: the packets come out at nearly a word a cycle."""
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(400):
        bench.send(random_event(rng, 0)._replace(hits=[rng.getrandbits(16) for _ in range(20)]))
    await bench.finish()
    packets = bench.packets[1:-1]
    words = sum(packet.words for packet in packets)
    took = packets[-1].last_cycle - packets[0].first_cycle + 1
    assert took <= words + 8 * len(packets), f"{took} cycles for {words} words in {len(packets)} packets"


@cocotb.test
async def reset_in_mid_event(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(20):
        for _ in range(rng.randint(1, 30)):
            bench.source.send(Packet(event_bytes(random_event(rng, 60))))
        await bench.wait(rng.randint(1, 300))
        dut.rst.value = 1
        bench.source.queue.clear()
        await bench.source.drain()
        await bench.wait(2)
        dut.rst.value = 0
        bench.packets.clear()
        bench.sent.clear()
        bench.forget_counts()
        await bench.wait(2)
        bench.forget_counts()
        dut.cfg_flush_cycles.value = 20
        for _ in range(5):
            bench.send(random_event(Random(rng.random()), 9))
        await bench.finish()
