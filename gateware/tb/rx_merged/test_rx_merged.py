# SPDX-License-Identifier: Apache-2.0
"""rx_merged: frames with MGP packets in by XGMII on two links, packets of M2EGP out; faults, latency, 10 million events a second, too many of them."""

from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, LaneCounts, never, pauses, random_numbers
from common.events import (
    KEY_MASK,
    START,
    Event,
    marker,
    merged_events,
    merged_packet,
    packed_packet,
    padded_packet,
    parts_filling,
    sealed,
)
from common.frames import LOCAL_IP, LOCAL_MAC, frame_of, mac_number, udp_frame, udp_packet, with_fcs
from common.merging import merge
from common.streams import Packet, StreamSink
from common.wires import XgmiiWireSource

LINKS = PARAMETERS["LINKS"]
ALL = (1 << LINKS) - 1
PORT, HEADER_BYTES, CYCLE_NS = 6001, 42, 6.4
FOREVER = 0xFFFFFFFF
LATENCY_CYCLES = 49  # docs/design/gateware-merging.md
JUMP = 1 << 30
BY_LINK = (
    *("drop_any_frame", "drop_length", "drop_format", "drop_checksum", "drop_full", "count_packet", "count_marker"),
    *("count_part", "drop_late", "drop_jump", "drop_disabled"),
)


class MergedBench(Bench):
    """frames: sent on each link. seen: events as they left; packets: M2EGP as it left."""

    def __init__(self, dut: Any) -> None:
        names = ["count_complete", "count_missing", "count_overflow", "drop_incomplete", "count_cut", "count_merged_packet"]
        super().__init__(dut, names)
        dut.local_mac.value, dut.local_address.value = mac_number(LOCAL_MAC), int(IPv4Address(LOCAL_IP))
        dut.match_write.value = dut.table_write.value = dut.cfg_table.value = 0
        dut.cfg_links.value, dut.cfg_window_cycles.value = ALL, FOREVER
        dut.cfg_lapse_cycles.value, dut.cfg_flush_cycles.value = 0, 100
        dut.cfg_parts.value = 1
        self.sources = [XgmiiWireSource(self, f"xgmii_{link}") for link in range(LINKS)]
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta_payload_bytes", "m_meta_event_count"])
        self.frames = [0] * LINKS
        self.seen: list[Event] = []
        self.masks: list[int] = []
        self.packets: list[Packet] = []
        self.lanes = LaneCounts(self, BY_LINK, LINKS)

    def send(self, link: int, frame: bytes) -> None:
        """frame: with its check sequence."""
        self.frames[link] += 1
        self.sources[link].send(frame)

    def send_packet(self, link: int, payload: bytes) -> int:
        """Returns the cycles from the frame's start character to its last byte."""
        frame = with_fcs(udp_frame(payload, port=PORT))
        self.send(link, frame)
        return (8 + len(frame) - 1) // 8

    def take(self, packet: Packet) -> None:
        events, masks = merged_events(packet.data)
        assert packet.data == merged_packet(
            events, masks, sequence=len(self.packets), send_ns=int.from_bytes(packet.data[8:12], "little")
        )
        assert masks == parts_filling(list(masks[: len(events)]))
        self.masks += masks[: len(events)]
        assert packet.meta == {"m_meta_payload_bytes": len(packet.data), "m_meta_event_count": len(events)}
        self.packets.append(packet)
        for event in events:
            assert event.number == len(self.seen) & 0xFFFF
            self.seen.append(event)

    @property
    def by_link(self) -> dict[str, list[int]]:
        return self.lanes.counts()

    async def sent_all(self) -> None:
        for source in self.sources:
            await source.wait()
        await self.wait(60)

    async def finish(self) -> None:
        """Everything comes out, and the books of each link and of the events balance."""
        await self.sent_all()
        self.sink.pause = never
        taken = -1
        while taken != (taken := sum(map(sum, self.by_link.values()))):
            await self.wait(1500)
        self.dut.cfg_window_cycles.value = 0
        await self.wait(2000)
        by, counts = self.by_link, self.counts
        for link in range(LINKS):
            passed = by["count_packet"][link] + by["count_marker"][link]
            dropped = sum(
                by[name][link]
                for name in BY_LINK
                if name in ("drop_any_frame", "drop_length", "drop_format", "drop_checksum", "drop_full")
            )
            assert self.frames[link] == passed + dropped
        assert counts["count_complete"] + counts["count_missing"] + counts["count_overflow"] == len(self.seen)
        assert counts["count_merged_packet"] == len(self.packets)
        for before, after in zip(self.seen, self.seen[1:], strict=False):
            assert 0 < (after.key - before.key & KEY_MASK) < 1 << 39, "not in the order of time"


async def started(dut: Any) -> MergedBench:
    bench = MergedBench(dut)
    await bench.reset()
    dut.match_write.value, dut.match_port.value = ALL, PORT
    await bench.wait(1)
    dut.match_write.value = 0
    bench.lanes.forget()
    return bench


def part(rng: Random, key: int, link: int, hits: int | None = None) -> Event:
    count = rng.randint(0, 10) if hits is None else hits
    return Event(key & KEY_MASK, rng.getrandbits(16), [link * 512 + rng.getrandbits(9) for _ in range(count)])


def packet_of(rng: Random, link: int, parts: list[Event]) -> bytes:
    return padded_packet(parts, board=link) if rng.random() < 0.4 else packed_packet(parts, rng.choice([0, 600]), board=link)


def bad_frame(rng: Random, link: int) -> tuple[str, bytes]:
    """Counter, frame."""
    good = packed_packet([part(rng, rng.getrandbits(40), link)], 60, board=link)
    name = rng.choice(["drop_any_frame", "drop_length", "drop_format", "drop_checksum"])
    if name == "drop_any_frame":
        packet = udp_packet(good, port=PORT + 1) if rng.random() < 0.5 else udp_packet(good, port=PORT, UDP={"chksum": 1})
        return name, with_fcs(frame_of(packet))
    spoilt = {
        "drop_length": sealed(good[:24]),
        "drop_format": sealed(good[:2] + b"\x07" + good[3:]),
        "drop_checksum": good[:20] + bytes([good[20] ^ 4]) + good[21:],
    }[name]
    if name == "drop_length":
        spoilt = sealed(good[:21] + b"\xff" + good[22:])  # an event of 255 hits in 60 bytes
    return name, with_fcs(udp_frame(spoilt, port=PORT))


@cocotb.test
async def events_of_two_links_and_faults(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    key = rng.getrandbits(40)
    streams: list[list[Event]] = [[] for _ in range(LINKS)]
    expected = {name: [0] * LINKS for name in BY_LINK}
    for _ in range(10 if SHORT else 60):
        bench.sink.pause = rng.choice([never, pauses(rng, 0.3)])
        dut.cfg_flush_cycles.value = rng.choice([1, 100, 1000])
        keys = [key := key + rng.randint(1, 1 << 20) for _ in range(rng.randint(1, 16))]
        for link in range(LINKS):
            if rng.random() < 0.3:
                name, frame = bad_frame(rng, link)
                bench.send(link, frame)
                expected[name][link] += 1
            if rng.random() < 0.2:
                bench.send_packet(link, marker(START))
                expected["count_marker"][link] += 1
            parts = [part(rng, one, link) for one in keys if rng.random() < 0.9]
            if parts and rng.random() < 0.9:
                streams[link] += parts
                bench.send_packet(link, packet_of(rng, link, parts))
                expected["count_packet"][link] += 1
        await bench.sent_all()
    await bench.finish()
    wanted = merge(streams, ALL, 128, JUMP)
    assert [(event.key, event.hits) for event in bench.seen] == [(event.key, event.hits) for event, _ in wanted.events]
    assert bench.masks == [mask for _, mask in wanted.events]
    bench.expect_counts(
        count_complete=wanted.complete, count_missing=wanted.missing, count_cut=wanted.cut, count_merged_packet=len(bench.packets)
    )
    expected |= {"count_part": wanted.parts, "drop_late": wanted.late, "drop_jump": wanted.jumps}
    assert bench.by_link == expected


@cocotb.test
async def through_the_table(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    table = [rng.getrandbits(16) for _ in range(2048)]
    dut.table_write.value = 1
    for index, hit in enumerate(table):
        dut.table_index.value, dut.table_hit.value = index, hit
        await bench.wait(1)
    dut.table_write.value, dut.cfg_table.value = 0, 1
    parts = [part(rng, 77, link, hits=30) for link in range(LINKS)]
    for link in range(LINKS):
        bench.send_packet(link, packed_packet([parts[link]], board=link))
    await bench.finish()
    assert [event.hits for event in bench.seen] == [[table[hit] for one in parts for hit in one.hits]]


@cocotb.test
async def latency_has_no_spread(dut: Any) -> None:
    """From the last byte of the last part's frame to the first word of the merged packet, packets not waiting for a second event."""
    rng = random_numbers()
    bench = await started(dut)
    dut.cfg_flush_cycles.value = 1
    seen = set()
    for number in range(8 if SHORT else 25):
        bench.send_packet(0, packed_packet([part(rng, 10 + number, 0, hits=5)], 200, board=0))
        await bench.sent_all()
        await bench.wait(rng.randint(0, 9))
        before = bench.cycle
        to_last_byte = bench.send_packet(1, packed_packet([part(rng, 10 + number, 1, hits=5)], 200, board=1))
        await RisingEdge(dut.clk)
        while int(dut.xgmii_1_rxc.value) != 1:  # the word with the start character
            await RisingEdge(dut.clk)
        start = bench.cycle
        assert start - before < 10
        await bench.sent_all()
        await bench.wait(60)
        seen.add(bench.packets[-1].first_cycle - start - to_last_byte)
    await bench.finish()
    assert seen == {LATENCY_CYCLES}, f"the latency moves: {seen}"
    latency = seen.pop()
    print(
        f"figure: last byte of the last of {LINKS} frames of 246 B to the merged packet's first word: {latency} cycles "
        f"({latency * CYCLE_NS:.0f} ns), spread 0",
        flush=True,
    )
    bench.expect_counts(count_complete=len(bench.seen), count_merged_packet=len(bench.packets))


async def send_at(bench: MergedBench, rng: Random, packets: int, cycles: int) -> list[list[Event]]:
    """packets of 16 events of five hits on each link, one every so many cycles (or as quickly as the wire takes them)."""
    streams: list[list[Event]] = [[] for _ in range(LINKS)]
    for number in range(packets):
        for link in range(LINKS):
            parts = [part(rng, 1000 * number + 10 * place + 1, link, hits=5) for place in range(16)]
            streams[link] += parts
            bench.send_packet(link, packed_packet(parts, board=link))
        await bench.wait(cycles)
    return streams


@cocotb.test
async def ten_million_events_a_second(dut: Any) -> None:
    """Two parts of five hits an event, 15.6 cycles an event: nothing is lost, no event leaves early."""
    rng = random_numbers()
    bench = await started(dut)
    packets = 15 if SHORT else 100
    streams = await send_at(bench, rng, packets, 250)
    await bench.finish()
    wanted = merge(streams, ALL, 128, JUMP)
    assert [(event.key, event.hits) for event in bench.seen] == [(event.key, event.hits) for event, _ in wanted.events]
    bench.expect_counts(count_complete=16 * packets, count_merged_packet=len(bench.packets))


@cocotb.test
async def more_than_can_be_merged(dut: Any) -> None:
    """Both links at line rate, three times what the merger takes: whole packets are dropped before it, all of them counted."""
    rng = random_numbers()
    bench = await started(dut)
    packets = 150 if SHORT else 400
    await send_at(bench, rng, packets, 0)
    await bench.finish()
    assert sum(bench.by_link["drop_full"]) > 5, "the load was not too much"
    parts = [sum(bench.by_link[name][link] for name in ("count_part", "drop_late", "drop_jump")) for link in range(LINKS)]
    assert parts == [16 * count for count in bench.by_link["count_packet"]]
    assert len(bench.seen) >= 16 * max(bench.by_link["count_packet"]) - sum(bench.by_link["drop_late"])


@cocotb.test
async def reset_under_load(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(3 if SHORT else 10):
        await send_at(bench, rng, 4, 20)
        await bench.wait(rng.randint(1, 150))
        dut.rst.value = 1
        await bench.wait(20)
        for source in bench.sources:
            source.clear()
        await bench.wait(60)
        dut.rst.value = 0
        await bench.wait(20)
        bench.seen.clear()
        bench.packets.clear()
        dut.match_write.value = ALL
        await bench.wait(1)
        dut.match_write.value = 0
        parts = [part(rng, 5, link, hits=5) for link in range(LINKS)]
        for link in range(LINKS):
            bench.send_packet(link, packed_packet([parts[link]], board=link))
        await bench.sent_all()
        await bench.wait(300)
        assert [event.hits for event in bench.seen] == [[hit for one in parts for hit in one.hits]]
