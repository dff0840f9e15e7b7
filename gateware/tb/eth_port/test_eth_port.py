# SPDX-License-Identifier: Apache-2.0
"""eth_port: what stands beside a payload holds from its first word to its last; each fault is told of under its own name; what is sent, and what cannot be."""

from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from common.bench import SHORT, Bench, never, random_numbers
from common.frames import FRAME_BYTES_MIN, LOCAL_IP, LOCAL_MAC, frame_of, mac_number, sent_frame, udp_frame, udp_packet, with_fcs
from common.requests import answer_to, arp_request
from common.sending import random_destination
from common.streams import Packet, StreamSink, StreamSource
from common.wires import GBPS, PREAMBLE, WIRE_CLOCK_PS, wire_sink, wire_source

RECEIVED = ["parsed", "preamble", "control", "oversize", "runt", "fcs", "cut", "mac_address", "no_match", "answered_arp"]
SENT = ["replied", "framed", "aborted", "underrun", "destination"]
META = [
    "m_route",
    *(f"m_meta_{name}" for name in ("clop", "source", "event_count", "bytes", "arrival_ns", "start_cycle", "parsed_cycle")),
]
ENTRIES = DESTINATIONS = 16


class EthPortBench(Bench):
    clock_ps = WIRE_CLOCK_PS

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, [*RECEIVED, *SENT])
        self.rng = random_numbers()
        dut.group_write.value = 0
        dut.local_mac.value, dut.local_address.value = mac_number(LOCAL_MAC), int(IPv4Address(LOCAL_IP))
        dut.match_write.value = dut.table_write.value = 0
        self.wire_in = wire_source(self)
        self.packets: list[Packet] = []
        self.first: list[tuple[int, int]] = []  # the times in the cycle of each packet's first word
        self.sink = StreamSink(self, "m_axis", self.take, meta=META)
        self.source = StreamSource(self, "s_axis", meta=["s_meta_destination", "s_meta_bytes"])
        self.offset = 0

    def take(self, packet: Packet) -> None:
        if not packet.user:
            self.packets.append(packet)

    def times_of(self, packet: Packet) -> tuple[int, int]:
        """now_cycles and now_ns in the cycle of its first word: both go on by themselves."""
        ago = self.cycle - packet.first_cycle
        return int(self.dut.now_cycles.value) - ago, int(self.dut.now_ns.value) - 7 * ago

    async def write_match(self, index: int, enable: int = 1, **entry: int) -> None:
        dut = self.dut
        dut.match_write.value, dut.match_index.value, dut.match_enable.value = 1, index, enable
        for name, value in entry.items():
            getattr(dut, f"match_{name}").value = value
        await self.wait(1)
        dut.match_write.value = 0

    async def write_destination(self, index: int, destination: dict[str, Any]) -> None:
        dut = self.dut
        dut.table_write.value, dut.table_index.value, dut.table_enable.value = 1, index, 1
        dut.table_mac.value, dut.table_address.value = mac_number(destination["mac"]), int(IPv4Address(destination["address"]))
        dut.table_port.value, dut.table_source_port.value = destination["port"], destination["source_port"]
        await self.wait(1)
        dut.table_write.value = 0

    def send(self, payload: bytes, destination: int, told: int | None = None) -> None:
        """told: how long it is said to be."""
        meta = {"s_meta_destination": destination, "s_meta_bytes": len(payload) if told is None else told}
        self.source.send(Packet(payload, meta=meta))

    async def quiet(self) -> None:
        await self.wire_in.wait()
        await self.wait(40)


async def started(dut: Any) -> EthPortBench:
    bench = EthPortBench(dut)
    if GBPS == 10:  # its sink waits for the reset
        bench.wire_out = wire_sink(bench)
    await bench.reset()
    if GBPS == 1:  # before, the wire has anything
        bench.wire_out = wire_sink(bench)
    return bench


def random_entry(rng: Random, port: int) -> dict[str, int]:
    return {
        "port": port,
        "route": rng.randrange(16),
        "clop": rng.randrange(4),
        "source": rng.randrange(1 << 16),
        "counts_events": rng.randrange(2),
    }


@cocotb.test
async def what_stands_beside_a_payload(dut: Any) -> None:
    """Of every entry of the table, at every small size: place and source of the entry, number of events if it counts them and the payload has byte 3, times of the
    first word. StreamSink sees that all of it holds to the last word."""
    bench = await started(dut)
    rng = bench.rng
    entries = [random_entry(rng, 7000 + index) for index in range(ENTRIES)]
    for index, entry in enumerate(entries):
        entry["counts_events"] = index % 2
        entry["route"] = entry["route"] & ~1 | index >> 1 & 1
        await bench.write_match(index, **entry)
    sizes = [1, 2, 3, 4, 5, 8, 9, 18, 60, 300]
    for size in sizes if SHORT else sizes * 4:
        for entry in rng.sample(entries, k=ENTRIES if size < 6 else 4):
            payload = (
                rng.randbytes(min(3, size))
                + (rng.choice([b"\x01", b"\x80", rng.randbytes(1)]) + rng.randbytes(size))[: max(0, size - 3)]
            )
            frame = bytes(udp_packet(payload, port=entry["port"]))
            bench.wire_in.send(with_fcs(frame.ljust(FRAME_BYTES_MIN, b"\xa5")))  # filling is no byte 3
            seen = len(bench.packets)
            await bench.wait_until(lambda seen=seen: len(bench.packets) > seen, 4000, "the payload")
            packet = bench.packets[-1]
            cycles, ns = bench.times_of(packet)
            started_at = packet.meta.pop("m_meta_start_cycle")
            assert packet.data == payload
            assert 0 < cycles - started_at < 80 * (8 if GBPS == 1 else 1)
            assert packet.meta == {
                "m_route": entry["route"],
                "m_meta_clop": entry["clop"],
                "m_meta_source": entry["source"],
                "m_meta_event_count": payload[3] if entry["counts_events"] and size > 3 else 0,
                "m_meta_bytes": size,
                "m_meta_arrival_ns": ns,
                "m_meta_parsed_cycle": cycles,
            }
    bench.expect_counts(parsed=len(bench.packets))


@cocotb.test
async def back_to_back_each_has_its_own(dut: Any) -> None:
    bench = await started(dut)
    rng = bench.rng
    entries = [random_entry(rng, 7000 + index) | {"counts_events": 1} for index in range(4)]
    for index, entry in enumerate(entries):
        await bench.write_match(index, **entry)
    sent = []
    for _ in range(40 if SHORT else 300):
        payload, entry = rng.randbytes(rng.choice([4, 8, 9, 40, 200])), rng.choice(entries)
        bench.wire_in.send(with_fcs(udp_frame(payload, port=entry["port"])))
        sent.append((payload, entry))
    await bench.quiet()
    for packet, (payload, entry) in zip(bench.packets, sent, strict=True):
        assert packet.data == payload
        assert (packet.meta["m_meta_source"], packet.meta["m_meta_event_count"]) == (entry["source"], payload[3])
        assert (packet.meta["m_meta_parsed_cycle"], packet.meta["m_meta_arrival_ns"]) == bench.times_of(packet)


@cocotb.test
async def each_fault_is_told_of_under_its_own_name(dut: Any) -> None:
    bench = await started(dut)
    rng = bench.rng
    await bench.write_match(1, **random_entry(rng, 7001))
    good = with_fcs(udp_frame(rng.randbytes(80), port=7001))
    broken = bytearray(good)
    broken[50] ^= 4
    preamble = PREAMBLE[:7] + b"\x5d"
    faults: dict[str, tuple[bytes, dict[str, Any]]] = {
        "preamble": (good, {"preamble": preamble}),
        "control": (good, {"marked": (40,)}),
        "oversize": (with_fcs(rng.randbytes(1600)), {}),
        "runt": (good[:40], {}),
        "fcs": (bytes(broken), {}),
        "mac_address": (with_fcs(udp_frame(b"x", port=7001, Ether={"dst": "02:00:00:00:00:09"})), {}),
        "no_match": (with_fcs(udp_frame(b"x", port=7002)), {}),
    }
    expected = dict.fromkeys(["parsed", *faults], 0)
    for _ in range(2 if SHORT else 10):
        for name in rng.sample(sorted(faults), k=len(faults)):
            frame, how = faults[name]
            bench.wire_in.send(frame, **how)
            bench.wire_in.send(good)
            expected[name] += 1
            expected["parsed"] += 1
            await bench.quiet()
            bench.expect_counts(**expected)


@cocotb.test
async def a_reset_in_a_payload_leaves_nothing(dut: Any) -> None:
    """What comes next is stamped when it comes, and counts its own events."""
    bench = await started(dut)
    rng = bench.rng
    for _ in range(4 if SHORT else 20):
        await bench.write_match(2, **random_entry(rng, 7002) | {"counts_events": 1})
        bench.wire_in.send(with_fcs(udp_frame(rng.randbytes(600), port=7002)))
        await bench.wait_until(lambda: dut.m_axis_tvalid.value == 1, 4000, "its first word")
        await bench.wait(rng.randint(2, 12))
        dut.rst.value = 1
        await bench.quiet()
        dut.rst.value = 0
        await bench.wait(2)
        await bench.write_match(2, **random_entry(rng, 7002) | {"counts_events": 1})
        bench.packets.clear()
        payload = rng.randbytes(90)
        bench.wire_in.send(with_fcs(udp_frame(payload, port=7002)))
        await bench.quiet()
        (packet,) = bench.packets
        assert packet.data == payload
        assert packet.meta["m_meta_event_count"] == payload[3]
        assert (packet.meta["m_meta_parsed_cycle"], packet.meta["m_meta_arrival_ns"]) == bench.times_of(packet)


@cocotb.test
async def payloads_leave_to_their_destinations(dut: Any) -> None:
    """To every entry of the table; answers between them."""
    bench = await started(dut)
    rng = bench.rng
    destinations = [random_destination(rng) for _ in range(DESTINATIONS)]
    for index, destination in enumerate(destinations):
        await bench.write_destination(index, destination)
    order = rng.sample(range(DESTINATIONS), k=DESTINATIONS)
    payloads = [rng.randbytes(rng.choice([1, 18, 40, 200])) for _ in order]
    for index, payload in zip(order, payloads, strict=True):
        bench.send(payload, index)
    seen = await bench.wire_out.frames(len(order))
    for frame, index, payload in zip(seen, order, payloads, strict=True):
        assert not frame.bad
        assert frame.frame == with_fcs(sent_frame(payload, destinations[index]).ljust(FRAME_BYTES_MIN, b"\0"))
    request = arp_request()
    bench.wire_in.send(with_fcs(frame_of(request)))
    (answer,) = await bench.wire_out.frames(1)
    assert answer.frame == with_fcs(answer_to(request).ljust(FRAME_BYTES_MIN, b"\0"))
    await bench.wait(40)
    bench.expect_counts(framed=DESTINATIONS + 1, answered_arp=1, replied=1)


@cocotb.test
async def what_cannot_be_sent_is_told_of(dut: Any) -> None:
    """To a destination that is not enabled; not as long as it was said to be; with a word too late. The next one leaves whole."""
    bench = await started(dut)
    rng = bench.rng
    destination = random_destination(rng)
    await bench.write_destination(5, destination)
    await bench.write_destination(6, destination)
    dut.table_enable.value, dut.table_write.value = 0, 1
    await bench.wait(1)
    dut.table_write.value = 0
    rounds = 2 if SHORT else 10
    for _ in range(rounds):
        bench.send(rng.randbytes(100), 6)
        payload = rng.randbytes(rng.randint(1, 100))
        bench.send(payload, 5)
        (frame,) = await bench.wire_out.frames(1)
        assert frame.frame == with_fcs(sent_frame(payload, destination).ljust(FRAME_BYTES_MIN, b"\0"))
        bench.send(rng.randbytes(100), 5, told=108)
        (frame,) = await bench.wire_out.frames(1)
        assert frame.bad
        asked = iter(range(10**6))
        bench.source.pause = lambda asked=asked: 12 <= next(asked) < 12 + (20 if GBPS == 10 else 200)
        bench.send(rng.randbytes(400), 5)
        await bench.source.drain()
        bench.source.pause = never
        (frame,) = await bench.wire_out.frames(1)
        assert frame.bad
    await bench.wait(40)
    bench.expect_counts(framed=rounds, destination=rounds, aborted=rounds, underrun=rounds)
