# SPDX-License-Identifier: Apache-2.0
"""mac_1g_tx against the GMII sink of cocotbext-eth: all sizes, full rate with gaps of 12 bytes, cuts, reset."""

from itertools import pairwise
from typing import Any

import cocotb
from cocotbext.eth import GmiiFrame, GmiiSink
from common.bench import CLOCK_1G_PS, SHORT, Bench, first_edge, ps_of, random_numbers
from common.frames import FRAME_BYTES_MIN, random_frame
from common.gmii import GAP_BYTES, PREAMBLE_BYTES
from common.streams import Packet, StreamSource

COUNTERS = ["count_good", "drop_underrun", "drop_aborted"]
LATENCY_CYCLES = 1


class TxBench(Bench):
    clock_ps = CLOCK_1G_PS

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS)
        self.source = StreamSource(self, "s_axis")
        self.sink = GmiiSink(dut.gmii_txd, dut.gmii_tx_er, dut.gmii_tx_en, dut.clk, dut.rst)

    async def frames(self, count: int, cycles: int = 200_000) -> list[GmiiFrame]:
        """The next frames on the wire."""
        await self.wait_until(lambda: self.sink.count() >= count, cycles, f"{count} frames on the wire")
        return [self.sink.recv_nowait() for _ in range(count)]


async def started(dut: Any) -> TxBench:
    await first_edge(dut)
    bench = TxBench(dut)
    await bench.reset()
    return bench


def check(sent: bytes, frame: GmiiFrame) -> None:
    assert frame.error is None, f"{len(sent)} bytes: an error on the wire"
    # The sink keeps no first byte of the preamble, but its time; that of the delimiter is when the first byte of the frame came.
    assert ps_of(frame.sim_time_sfd - frame.sim_time_start) // CLOCK_1G_PS == PREAMBLE_BYTES
    assert frame.check_fcs(), f"{len(sent)} bytes: wrong check sequence"
    assert bytes(frame.get_payload()) == sent.ljust(FRAME_BYTES_MIN, b"\0"), f"{len(sent)} bytes"


def gap_bytes(before: GmiiFrame, after: GmiiFrame) -> int:
    """Bytes between check sequence and preamble."""
    return ps_of(after.sim_time_start - before.sim_time_end) // CLOCK_1G_PS


@cocotb.test
async def every_size(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [*range(1, 80, 3), 59, 60, 61, 1514] if SHORT else [*range(1, 200), *range(200, 1515, 37), 1514, 9018]
    for size in sizes:
        frame = random_frame(rng, size)
        packet = Packet(frame)
        bench.source.send(packet)
        (seen,) = await bench.frames(1)
        check(frame, seen)
        assert bench.cycle_at(ps_of(seen.sim_time_start)) + PREAMBLE_BYTES - packet.first_cycle == LATENCY_CYCLES, size
        await bench.wait(rng.randint(2, 30))
    bench.expect_counts(count_good=len(sizes))


@cocotb.test
async def full_rate_at_every_size(dut: Any) -> None:
    """Back to back the gap is 12 bytes, at each size and when sizes are mixed."""
    rng = random_numbers()
    bench = await started(dut)
    sizes = [1, 60, 61, 1514] if SHORT else [1, *range(56, 90), 508, 1020, *range(1511, 1515)]
    runs = [[size] * 4 for size in sizes]
    runs.append([rng.randint(1, 200) for _ in range(60 if SHORT else 600)])
    total = 0
    for run in runs:
        frames = [random_frame(rng, size) for size in run]
        for frame in frames:
            bench.source.send(Packet(frame))
        seen = await bench.frames(len(frames))
        total += len(frames)
        for frame, there in zip(frames, seen, strict=True):
            check(frame, there)
        assert {gap_bytes(one, two) for one, two in pairwise(seen)} == {GAP_BYTES}, f"{run[0]} bytes"
        await bench.wait(30)
    bench.expect_counts(count_good=total)


@cocotb.test
async def pauses_between_frames(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    count = 40 if SHORT else 300
    frames = [random_frame(rng, rng.randint(1, 100)) for _ in range(count)]
    for frame in frames:
        bench.source.send(Packet(frame))
        if rng.random() < 0.5:
            await bench.source.drain()
            await bench.wait(rng.randint(0, 30))
    seen = await bench.frames(count)
    for frame, there in zip(frames, seen, strict=True):
        check(frame, there)
    assert min(gap_bytes(one, two) for one, two in pairwise(seen)) >= GAP_BYTES
    bench.expect_counts(count_good=count)


@cocotb.test
async def cut_frames_are_marked_and_the_next_is_good(dut: Any) -> None:
    """A byte that is missing, or a source that takes its frame back: an error on the wire and its own counter."""
    rng = random_numbers()
    bench = await started(dut)
    rounds = 30 if SHORT else 200
    for round_ in range(rounds):
        bench.source.pause = lambda: False
        size = rng.randint(2, 200)
        if round_ % 2:
            bench.source.send(Packet(random_frame(rng, size), user=1))
        else:
            stop = rng.randrange(1, size)
            asked = iter(range(10**6))
            bench.source.pause = lambda stop=stop, asked=asked: stop <= next(asked) < stop + 3
            bench.source.send(Packet(random_frame(rng, size)))
        await bench.source.drain()
        bench.source.pause = lambda: False
        frame = random_frame(rng, rng.randint(1, 100))
        bench.source.send(Packet(frame))
        cut, whole = await bench.frames(2)
        assert cut.error is not None, "no error in a cut frame"
        assert gap_bytes(cut, whole) >= GAP_BYTES
        check(frame, whole)
    bench.expect_counts(count_good=rounds, drop_underrun=(rounds + 1) // 2, drop_aborted=rounds // 2)


@cocotb.test
async def reset_in_mid_frame(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(5 if SHORT else 30):
        dut.s_axis_tvalid.value = 1
        dut.s_axis_tdata.value = rng.getrandbits(8)
        await bench.wait(rng.randint(1, 60))
        dut.s_axis_tvalid.value = 0
        dut.rst.value = 1
        await bench.wait(3)
        dut.rst.value = 0
        await bench.wait(2)
        assert dut.gmii_tx_en.value == 0
        bench.sink.clear()
        frame = random_frame(rng, rng.randint(1, 100))
        bench.source.send(Packet(frame))
        (seen,) = await bench.frames(1)
        check(frame, seen)
