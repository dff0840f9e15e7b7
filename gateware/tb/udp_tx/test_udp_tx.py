# SPDX-License-Identifier: Apache-2.0
"""udp_tx against frames of scapy: every size, random pauses on all three sides, faults, the cycles between short packets."""

from ipaddress import IPv4Address
from itertools import product
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from common.bench import PARAMETERS, SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.frames import sent_frame
from common.sending import Announcer, random_destination
from common.streams import Packet, StreamSink, StreamSource

COUNTERS = ["count_good", "drop_length", "drop_destination", "drop_aborted"]
DESTINATIONS = PARAMETERS.get("DESTINATIONS", 16)
PAYLOAD_BYTES_MAX = PARAMETERS.get("PAYLOAD_BYTES_MAX", 8972)
# Sent and announced: last words that are as full as the announced one's, or full, but come early or late.
WRONG_LENGTHS = [(1, 9), (9, 1), (1, 17), (8, 16), (16, 8), (24, 8), (32, 8), (40, 8), (32, 7), (1, 0), (8, 0)]


class UdpTxBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS)
        self.announcer = Announcer(self)
        self.source = StreamSource(self, "s_axis")
        self.frames = Scoreboard("frames")
        self.seen: list[Packet] = []
        self.sink = StreamSink(self, "m_axis", self.take)
        self.table: list[dict[str, Any]] = []

    def take(self, packet: Packet) -> None:
        self.seen.append(packet)
        self.frames.take((packet.data, packet.user))

    def send(self, index: int, payload: bytes, announced: int | None = None, user: int = 0) -> None:
        announced_bytes = len(payload) if announced is None else announced
        self.announcer.announce(index, announced_bytes)
        self.source.send(Packet(payload, user))
        bad = announced_bytes != len(payload) or announced_bytes > PAYLOAD_BYTES_MAX or user
        if not bad:
            self.frames.expect((sent_frame(payload, self.table[index]), 0))

    async def finish(self) -> None:
        await self.wait_until(self.frames.complete, 200_000, "all frames")
        await self.wait(8)
        self.frames.finish()


async def started(dut: Any, rng: Any) -> UdpTxBench:
    bench = UdpTxBench(dut)
    await bench.reset()
    for index in range(DESTINATIONS):
        bench.table.append(random_destination(rng))
        await bench.announcer.write_table(index, bench.table[index])
    return bench


@cocotb.test
async def every_size(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut, rng)
    sizes = [*range(1, 40), 1472, PAYLOAD_BYTES_MAX] if SHORT else [*range(1, 130), *range(130, 1473, 31), 1472, PAYLOAD_BYTES_MAX]
    for size in sizes:
        bench.send(rng.randrange(DESTINATIONS), rng.randbytes(size))
    await bench.finish()
    bench.expect_counts(count_good=len(sizes))


@cocotb.test
async def header_checksum_when_sums_carry(dut: Any) -> None:
    """The halves of a header, summed, carry into the seventeenth bit, and adding that carries once more."""
    rng = random_numbers()
    bench = await started(dut, rng)
    carried_twice = 0
    for round_ in range(40 if SHORT else 400):
        local, address = rng.getrandbits(32), rng.getrandbits(16) << 16
        payload = rng.randbytes(rng.randint(1, 20))
        words = [0x4500, 28 + len(payload), 0x4000, 64 << 8 | 17, local >> 16, local & 0xFFFF, address >> 16]
        address |= (0xFFFF - round_ % 3 - sum(words)) & 0xFFFF
        total = sum(words) + (address & 0xFFFF)
        carried_twice += (total & 0xFFFF) + (total >> 16) > 0xFFFF
        dut.local_address.value = local
        bench.table[1] = random_destination(rng) | {"address": str(IPv4Address(address))}
        await bench.announcer.write_table(1, bench.table[1])
        bench.announcer.announce(1, len(payload))
        bench.source.send(Packet(payload))
        bench.frames.expect((sent_frame(payload, bench.table[1], str(IPv4Address(local))), 0))
        await bench.finish()
    assert carried_twice


@cocotb.test
async def short_packets_keep_up_with_the_wire(dut: Any) -> None:
    """A shortest frame takes 10.5 cycles on the wire. Eight words and what is between them must take no more than ten."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for size in range(1, 60):
        bench.seen.clear()
        for _ in range(6):
            bench.send(rng.randrange(DESTINATIONS), rng.randbytes(size))
        await bench.finish()
        wire_cycles = 5 * (max(size + 42, 60) + 4 + 8 + 12) // 8
        assert bench.seen[-1].first_cycle - bench.seen[0].first_cycle <= wire_cycles, f"{size} bytes"
        assert all(packet.last_cycle - packet.first_cycle + 1 == packet.words for packet in bench.seen), "a gap inside a frame"


@cocotb.test
async def pauses_everywhere(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut, rng)
    count = 100 if SHORT else 1000
    for share in (0.2, 0.6):
        bench.source.pause, bench.sink.pause, bench.announcer.pause = (pauses(rng, share) for _ in range(3))
        for _ in range(count):
            bench.send(rng.randrange(DESTINATIONS), rng.randbytes(rng.randint(1, 90)))
        await bench.finish()
    bench.expect_counts(count_good=2 * count)


@cocotb.test
async def every_fault_has_its_counter_and_the_next_packet_is_good(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut, rng)
    off = DESTINATIONS - 1
    await bench.announcer.write_table(off, bench.table[off], enable=0)
    rounds = 30 if SHORT else 200
    bad_frames = 0

    def take(packet: Packet) -> None:
        nonlocal bad_frames
        bad_frames += packet.user
        if not packet.user:
            bench.frames.take((packet.data, 0))

    bench.sink.take = take
    good = 0
    for round_ in range(rounds):
        bench.sink.pause = pauses(rng, 0.3) if round_ % 2 else never
        payload = rng.randbytes(rng.randint(2, 80))
        wrong = rng.choice([len(payload) - 1, len(payload) + 1, len(payload) + 8, len(payload) // 8, 0xFFFF])
        if round_ < len(WRONG_LENGTHS):
            payload, wrong = rng.randbytes(WRONG_LENGTHS[round_][0]), WRONG_LENGTHS[round_][1]
        for name in rng.sample(COUNTERS[1:], k=3):
            before = dict(bench.counts)
            if name == "drop_destination":
                bench.announcer.announce(off, len(payload))
                bench.source.send(Packet(payload))
            elif name == "drop_length":
                bench.send(0, payload, announced=wrong)
            else:
                bench.send(0, payload, user=1)
            bench.send(rng.randrange(off), rng.randbytes(rng.randint(1, 60)))
            await bench.finish()
            good += 1
            assert bench.counts == before | {name: before[name] + 1, "count_good": good}, name
    assert bad_frames == 2 * rounds
    # Longer than allowed, though announced: one frame of the largest size plus one.
    bench.send(0, rng.randbytes(PAYLOAD_BYTES_MAX + 1))
    await bench.source.drain()
    bench.send(0, b"after it")
    # So much longer that a count of 16 bits comes round to what was announced.
    bench.send(0, rng.randbytes(20 + 2**16), announced=20)
    await bench.source.drain()
    bench.send(0, b"after that")
    await bench.finish()
    bench.expect_counts(count_good=good + 2, drop_length=rounds + 2, drop_destination=rounds, drop_aborted=rounds)


@cocotb.test
async def reset_forgets_headers_and_disables_all_destinations(dut: Any) -> None:
    """At any cycle of a packet, with its payload there or not: no word of it after the reset, and the next packet meets an empty table."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for cycles, there, reset_cycles in product(range(16), (False, True), (1, 2)):
        await bench.announcer.write_table(0, bench.table[0])
        bench.sink.pause = never if rng.random() < 0.5 else lambda: True
        bench.announcer.announce(0, 200)
        dut.s_axis_tvalid.value, dut.s_axis_tkeep.value = int(there), 0xFF
        await bench.wait(1 + cycles)
        dut.s_axis_tvalid.value = 0
        dut.rst.value = 1
        await bench.wait(reset_cycles)
        await FallingEdge(dut.clk)  # what was counted at the last edge is in `counts`
        before = dict(bench.counts)
        dut.rst.value = 0
        bench.sink.pause = never
        bench.announcer.announce(0, 60)
        bench.source.send(Packet(rng.randbytes(60)))
        await bench.wait(40)
        assert bench.counts == before | {"drop_destination": before["drop_destination"] + 1}
        assert not bench.seen
        assert bench.sink.packet is None, "a word from before the reset"
