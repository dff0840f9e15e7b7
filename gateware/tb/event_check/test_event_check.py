# SPDX-License-Identifier: Apache-2.0
"""event_check against the vectors of the C++ parser and against one written here from the format's page: every packet gets that parser's verdict."""

import struct
from random import Random
from typing import Any

import cocotb
from common.bench import SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.events import HEADER_BYTES, PACKED, PADDED, PADDED_BYTES, fletcher32, random_packet, sealed, vectors
from common.streams import Packet, StreamSink, StreamSource

LATENCY_CYCLES = 6
VERDICTS = {"none": "count_good", "bad_length": "drop_length", "bad_format": "drop_format", "bad_checksum": "drop_checksum"}


def verdict(payload: bytes) -> str:
    """docs/formats.md, when a packet is refused."""
    size = len(payload)
    if size < HEADER_BYTES or size > 1472 or size % 2:
        return "drop_length"
    board, form, count = payload[1], payload[2], payload[3]
    layout = form & 0x0F
    if layout not in (PADDED, PACKED) or form & 0xC0 or (layout == PACKED and board > 3):
        return "drop_format"
    if count == 0:
        if form & 0x30 not in (0x10, 0x20):
            return "drop_format"
        if size != 24:
            return "drop_length"
    elif layout == PADDED:
        if size != PADDED_BYTES:
            return "drop_length"
        if count > 16 or any(payload[HEADER_BYTES + 72 * slot + 5] > 32 for slot in range(count)):
            return "drop_format"
    else:
        at = HEADER_BYTES
        for _ in range(count):
            if at + 8 > size:
                return "drop_length"
            at += 8 + (9 * payload[at + 5] + 7) // 8
            if at > size:
                return "drop_length"
    good = struct.unpack_from("<I", payload, 12)[0] == fletcher32(payload[:12] + payload[16:])
    return "count_good" if good else "drop_checksum"


class CheckBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, VERDICTS.values())
        self.source = StreamSource(self, "s_axis")
        self.sink = StreamSink(self, "m_axis", self.take)
        self.board = Scoreboard("packets")
        self.expected = dict.fromkeys(self.counts, 0)
        self.sent: list[Packet] = []

    def send(self, payload: bytes, user: int = 0) -> str:
        packet = Packet(payload, user)
        what = verdict(payload)
        self.sent.append(packet)
        self.source.send(packet)
        self.board.expect((payload, int(user or what != "count_good")))
        if not user:
            self.expected[what] += 1
        return what

    def take(self, packet: Packet) -> None:
        self.board.take((packet.data, packet.user))
        sent = self.sent[self.board.seen - 1]
        assert packet.first_cycle - sent.first_cycle == packet.last_cycle - sent.last_cycle == LATENCY_CYCLES

    async def finish(self) -> None:
        await self.source.drain()
        await self.wait(LATENCY_CYCLES + 3)
        self.board.finish()
        self.expect_counts(**self.expected)


async def started(dut: Any) -> CheckBench:
    bench = CheckBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def the_vectors_of_the_software(dut: Any) -> None:
    bench = await started(dut)
    for name in ("mgp_padded", "mgp_packed", "mgp_marker"):
        for vector in vectors(name):
            assert bench.send(vector.payload) == VERDICTS[vector.fields["expect"]], f"{name} {vector.name}"
    for vector in vectors("m2egp"):
        if "mgp" in vector.fields and vector.payload:
            assert bench.send(vector.payload) == VERDICTS[vector.fields["mgp"]], vector.name
    await bench.finish()


def spoilt(rng: Random, payload: bytes) -> bytes:
    """A packet with a fault, its checksum mostly right so that the other checks are what finds it."""
    data = bytearray(payload)
    fault = rng.randrange(7)
    if fault == 0:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)
    if fault == 1:
        data[rng.randrange(4)] = rng.getrandbits(8)
    elif fault == 2:
        data[3] = (data[3] + rng.choice([1, -1, 100])) & 0xFF
    elif fault == 3:
        del data[rng.randint(1, len(data) - 1) :]
    elif fault == 4:
        data += bytes(rng.randint(1, 300))
    elif fault == 5 and len(data) > 24:
        data[21] = rng.getrandbits(8)  # hit count of the first event
    elif len(data) > 32:
        data[rng.randrange(16, len(data))] = rng.getrandbits(8)
    return bytes(data) if len(data) < HEADER_BYTES or len(data) % 2 else sealed(bytes(data))


@cocotb.test
async def good_and_bad_packets_in_any_order(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    packets = 200 if SHORT else 1500
    for number in range(10 * packets):
        if number % 50 == 0:
            await bench.source.drain()
            if number >= packets and all(count > 5 for count in bench.counts.values()):
                break
            bench.source.pause = rng.choice([never, pauses(rng, 0.3)])
        payload = random_packet(rng)[0]
        bench.send(payload if rng.random() < 0.5 else spoilt(rng, payload), user=int(rng.random() < 0.1))
    await bench.finish()
    assert all(count > 5 for count in bench.counts.values()), f"not every verdict was asked for: {bench.counts}"


@cocotb.test
async def changes_that_the_checksum_cannot_find(dut: Any) -> None:
    """0x0000 and 0xFFFF are the same modulo 65535; in the checksum itself 0xFFFF is never right."""
    bench = await started(dut)
    base = sealed(struct.pack("<BBBBIII", 0x1C, 0, PACKED, 1, 0, 0, 0) + struct.pack("<IBBH", 5, 0, 0, 0))
    assert bench.send(base) == "count_good"
    assert bench.send(base[:16] + b"\xff\xff" + base[18:]) == "drop_checksum"
    assert bench.send(base[:18] + b"\xff\xff" + base[20:]) == "count_good"
    zero = bytes([0, 0, 0x12, 0]) + bytes(8)  # sums of which one is zero come by turning a half until they are
    for half in range(65535):
        payload = zero + bytes(4) + struct.pack("<Q", half)
        if fletcher32(payload[:12] + payload[16:]) & 0xFFFF == 0:
            assert bench.send(sealed(payload)) == "count_good"
            assert bench.send(payload[:12] + b"\xff\xff" + sealed(payload)[14:]) == "drop_checksum"
            break
    await bench.finish()


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(10):
        cut = Packet(random_packet(rng)[0])
        bench.source.send(cut)
        await bench.wait(rng.randint(1, 6))
        dut.rst.value = 1
        await bench.source.drain()
        await bench.wait(2)
        dut.rst.value = 0
        await bench.wait(8)
        bench.send(random_packet(rng)[0])
        await bench.source.drain()
        await bench.wait(8)
    await bench.finish()
