# SPDX-License-Identifier: Apache-2.0
"""mac_10g_rx against the XGMII source of cocotbext-eth: all sizes on both lanes, full rate, every fault, constant latency."""

from itertools import product
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from cocotbext.eth import XgmiiFrame, XgmiiSource
from common.bench import SHORT, Bench, Scoreboard, random_numbers
from common.frames import FCS_BYTES, random_frame, with_fcs
from common.streams import Packet, StreamSink

COUNTERS = ["count_good", "drop_preamble", "drop_control", "drop_oversize", "drop_runt", "drop_fcs"]
FRAME_BYTES_MAX = 9022
LATENCY_CYCLES = 5
IDLE, ERROR, SEQUENCE, START, TERMINATE = 0x07, 0xFE, 0x9C, 0xFB, 0xFD
IDLES = (0x0707070707070707, 0xFF)


class RxBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS, now=True)
        self.source = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk)  # the wire knows nothing of this side's reset
        self.good = Scoreboard("frames")
        self.packets: list[Packet] = []
        self.bad = 0
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta_start_cycle"])

    def take(self, packet: Packet) -> None:
        self.packets.append(packet)
        if packet.user:
            self.bad += 1
        else:
            self.good.take(packet.data)

    async def send(self, data: bytes, lane4: bool = False, control: list[int] | None = None, then_idle: bool = True) -> None:
        """data: from the preamble to the check sequence, control: which of these bytes are control characters."""
        self.source.force_offset_start = lane4
        await self.source.send(XgmiiFrame(data, control))
        if then_idle:
            await self.source.wait()
            await self.wait(12)


def preamble(frame: bytes) -> bytes:
    return bytes([0x55] * 7 + [0xD5]) + frame


def like_control(rng: Random, size: int) -> bytes:
    """A frame of bytes that would be control characters, were they marked as such."""
    return bytes(rng.choices([IDLE, ERROR, SEQUENCE, START, TERMINATE, 0x55, 0xD5], k=size))


def wire_words(frame: bytes, lane4: bool) -> list[tuple[int, int]]:
    """XGMII data and control of a frame with its check sequence, word by word, filled with idle."""
    sent = preamble(frame)
    data = bytes([IDLE] * 4 * lane4 + [START]) + sent[1:] + bytes([TERMINATE])
    marks = [1] * 4 * lane4 + [1] + [0] * (len(sent) - 1) + [1]
    missing = -len(data) % 8
    data, marks = data + bytes([IDLE] * missing), marks + [1] * missing
    return [
        (int.from_bytes(data[at : at + 8], "little"), sum(mark << lane for lane, mark in enumerate(marks[at : at + 8])))
        for at in range(0, len(data), 8)
    ]


async def started(dut: Any) -> RxBench:
    bench = RxBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def every_size_on_both_lanes_with_constant_latency(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [60, *range(61, 78), 1514, 9018] if SHORT else [*range(60, 200), *range(200, 1515, 13), 1514, 9000, 9018]
    last_latency: dict[tuple[int, bool], int] = {}
    for size in sizes:
        for lane4 in (False, True):
            frame = random_frame(rng, size)
            bench.good.expect(frame)
            await bench.send(preamble(with_fcs(frame)), lane4)
            packet = bench.packets[-1]
            # The start character came one cycle before the first word of the frame.
            assert packet.first_cycle - packet.meta["m_meta_start_cycle"] == LATENCY_CYCLES + 1, (size, lane4)
            assert packet.last_cycle - packet.first_cycle + 1 == packet.words, "a frame has a gap"
            last_latency[size, lane4] = packet.last_cycle - packet.meta["m_meta_start_cycle"]
    # A second time, with other bytes and at other times: not a cycle of difference.
    for (size, lane4), latency in rng.sample(sorted(last_latency.items()), k=10):
        frame = random_frame(rng, size)
        bench.good.expect(frame)
        await bench.wait(rng.randrange(9))
        await bench.send(preamble(with_fcs(frame)), lane4)
        assert bench.packets[-1].last_cycle - bench.packets[-1].meta["m_meta_start_cycle"] == latency
    bench.good.finish()
    bench.expect_counts(count_good=2 * len(sizes) + 10)


@cocotb.test
async def full_rate_at_every_size(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [60, 61, 63, 64, 65, 1514] if SHORT else [*range(60, 77), 128, 512, 1000, 1514, 9018]
    total = 0
    for size in sizes:
        count = 12 if size < 2000 else 3
        bench.packets.clear()
        for _ in range(count):
            frame = random_frame(rng, size)
            bench.good.expect(frame)
            await bench.send(preamble(with_fcs(frame)), then_idle=False)
        await bench.source.wait()
        await bench.wait(20)
        total += count
        cycles = bench.packets[-1].meta["m_meta_start_cycle"] - bench.packets[0].meta["m_meta_start_cycle"]
        ideal = (count - 1) * (size + FCS_BYTES + 8 + 12) / 8
        assert abs(cycles - ideal) <= 1, f"{size} bytes: the source did not send at line rate ({cycles} cycles for {ideal})"
    bench.good.finish()
    bench.expect_counts(count_good=total)


@cocotb.test
async def smallest_gap_and_random_gaps(dut: Any) -> None:
    """A receiver must live with five bytes between frames, the end character among them."""
    rng = random_numbers()
    bench = await started(dut)
    bench.source.enable_dic = False
    count = 60 if SHORT else 400
    for _ in range(count):
        bench.source.ifg = rng.choice([5, 5, 6, 7, 8, 9, 12, 20])
        frame = rng.choice([random_frame, like_control])(rng, rng.randint(60, 90))
        bench.good.expect(frame)
        await bench.send(preamble(with_fcs(frame)), lane4=rng.random() < 0.5, then_idle=False)
        await bench.wait_until(bench.source.empty, 200, "frame begins")
    await bench.source.wait()
    await bench.wait(20)
    bench.good.finish()
    bench.expect_counts(count_good=count)


@cocotb.test
async def every_fault_has_its_counter_and_the_next_frame_is_good(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    good = 0

    def bad_fcs(round_: int) -> tuple[bytes, None]:
        frame = bytearray(with_fcs(random_frame(rng, rng.randint(60, 200))))
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
        return preamble(bytes(frame)), None

    def runt(round_: int) -> tuple[bytes, None]:
        size = rng.randrange(64) if round_ else 63
        return preamble(with_fcs(random_frame(rng, max(size - 4, 0)))[:size]), None

    def oversize(round_: int) -> tuple[bytes, None]:
        size = rng.choice([FRAME_BYTES_MAX + 2, FRAME_BYTES_MAX + 3, 9100]) if round_ else FRAME_BYTES_MAX + 1
        return preamble(with_fcs(random_frame(rng, size - 4))), None

    def control(round_: int) -> tuple[bytes, list[int]]:
        data = bytearray(preamble(with_fcs(random_frame(rng, rng.randint(60, 200)))))
        where = 8 + round_ % (len(data) - 8)
        data[where] = rng.choice([ERROR, IDLE, SEQUENCE])
        data[where + 1 : where + 2] = bytes([START])[: len(data) - 1 - where]  # data, though it reads like a start
        return bytes(data), [int(place == where) for place in range(len(data))]

    def no_delimiter(round_: int) -> tuple[bytes, None]:
        data = bytearray(preamble(with_fcs(random_frame(rng, 80))))
        data[7] = rng.choice([0x55, 0x00, 0xD4])
        return bytes(data), None

    faults = {
        "drop_fcs": bad_fcs,
        "drop_runt": runt,
        "drop_oversize": oversize,
        "drop_control": control,
        "drop_preamble": no_delimiter,
    }
    for name, make in faults.items():
        count = 2 if name == "drop_oversize" else 40 if SHORT else 200
        for round_ in range(count):
            data, flags = make(round_)
            before = dict(bench.counts)
            await bench.send(data, lane4=bool(round_ & 8), control=flags)
            frame = random_frame(rng, rng.randint(60, 120))
            bench.good.expect(frame)
            await bench.send(preamble(with_fcs(frame)), lane4=rng.random() < 0.5)
            good += 1
            assert bench.counts == before | {name: before[name] + 1, "count_good": good}, name
    bench.good.finish()
    assert max(len(packet.data) for packet in bench.packets) <= FRAME_BYTES_MAX


@cocotb.test
async def longest_good_frame_and_ordered_sets(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for lane4 in (False, True):
        frame = random_frame(rng, FRAME_BYTES_MAX - 4)
        bench.good.expect(frame)
        await bench.send(preamble(with_fcs(frame)), lane4)
    bench.source.set_seq_os(0x000001)  # local fault: no frame, no count
    bench.source.active_event.set()
    await bench.wait(50)
    bench.source.set_os(None)
    await bench.wait(4)
    frame = random_frame(rng, 60)
    bench.good.expect(frame)
    await bench.send(preamble(with_fcs(frame)))
    bench.good.finish()
    bench.expect_counts(count_good=3)


@cocotb.test
async def reset_in_mid_frame(dut: Any) -> None:
    """What began before the reset's end leaves nothing behind: no word, no count, and the next frame is whole. The reset is short, and
    begins and ends at any word; the sender goes on as if nothing were."""
    rng = random_numbers()
    bench = await started(dut)
    bench.sink.take = bench.packets.append
    for lane4, make in product((False, True), (random_frame, like_control)):
        frame = make(rng, rng.randint(60, 67))
        line = [IDLES, IDLES, *wire_words(with_fcs(frame), lane4)]
        for first in range(len(line) + 4):
            last = first + rng.choice([0, 0, 1, 2])
            for cycle, (data, control) in enumerate([*line, *[IDLES] * 12]):
                dut.xgmii_rxd.value, dut.xgmii_rxc.value = data, control
                dut.rst.value = int(first <= cycle <= last)
                await bench.wait(1)
                if cycle == last:
                    await FallingEdge(dut.clk)  # what was counted at this edge is in `counts`
                    bench.packets.clear()
                    before = dict(bench.counts)
            after = random_frame(rng, rng.randint(60, 120))
            await bench.send(preamble(with_fcs(after)))
            expected = [frame, after] if last < 2 else [after]  # with last < 2 the frame began after the reset
            assert [packet.data for packet in bench.packets if not packet.user] == expected, (lane4, first, last)
            assert len(bench.packets) == len(expected), (lane4, first, last)
            assert bench.counts == before | {"count_good": before["count_good"] + len(expected)}, (lane4, first, last)
