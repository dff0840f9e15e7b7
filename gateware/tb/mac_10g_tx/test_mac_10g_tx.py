# SPDX-License-Identifier: Apache-2.0
"""mac_10g_tx against the XGMII sink of cocotbext-eth: all sizes, full rate with the right gaps, cuts, reset."""

from itertools import pairwise, product
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.eth import XgmiiFrame, XgmiiSink
from common.bench import CLOCK_PS, SHORT, Bench, first_edge, ps_of, random_numbers
from common.frames import FCS_BYTES, FRAME_BYTES_MIN, random_frame
from common.streams import Packet, StreamSource

COUNTERS = ["count_good", "drop_underrun", "drop_aborted"]
PREAMBLE_BYTES, GAP_BYTES, GAP_BYTES_MIN = 8, 12, 9
BYTE_PS = CLOCK_PS // 8
LATENCY_CYCLES = 4
IDLE, START, TERMINATE, ERROR = 0x107, 0x1FB, 0x1FD, 0x1FE  # with the control bit before the byte
IDLES = 0x0707070707070707
PREAMBLE = [0x55] * 6 + [0xD5]


class TxBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS)
        self.source = StreamSource(self, "s_axis")
        self.sink = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.clk, dut.rst)
        self.wire: list[list[int]] = []  # every frame behind its preamble: bytes, ERROR among them
        cocotb.start_soon(self._watch_wire())

    async def _watch_wire(self) -> None:
        """Every byte: idle and nothing else between frames, enough of it, a start on lane 0 or 4, a whole preamble, one end; in reset idle."""
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        await FallingEdge(dut.rst)
        frame: list[int] | None = None
        reset, gap = False, GAP_BYTES_MIN
        preamble_left: list[int] = []
        while True:
            await edge
            control, data = int(dut.xgmii_txc.value), int(dut.xgmii_txd.value)
            was_reset, reset = reset, dut.rst.value == 1
            if was_reset:
                assert (control, data) == (0xFF, IDLES), f"in reset {control:02x} {data:016x}"
                frame, preamble_left, gap = None, [], GAP_BYTES_MIN
            # Most words are one or the other as a whole.
            if frame is None and (control, data) == (0xFF, IDLES):
                gap += 8
                continue
            if frame is not None and not preamble_left and control == 0:
                frame += data.to_bytes(8, "little")
                continue
            for lane in range(8):
                byte = (control >> lane & 1) << 8 | data >> 8 * lane & 0xFF
                if preamble_left:
                    assert byte == preamble_left.pop(0), f"{byte:03x} in a preamble"
                elif frame is None and byte == IDLE:
                    gap += 1
                elif frame is None:
                    assert byte == START, f"{byte:03x} between frames"
                    assert lane in (0, 4), f"start on lane {lane}"
                    assert gap >= GAP_BYTES_MIN, f"gap of {gap} bytes"
                    frame, preamble_left = [], PREAMBLE[:]
                elif byte == TERMINATE:
                    self.wire.append(frame)
                    frame, gap = None, 1
                else:
                    assert byte < 0x100 or byte == ERROR, f"{byte:03x} in a frame"
                    frame.append(byte)

    async def frames(self, count: int, cycles: int = 200_000) -> list[XgmiiFrame]:
        """The next frames on the wire."""
        await self.wait_until(lambda: self.sink.count() >= count, cycles, f"{count} frames on the wire")
        return [self.sink.recv_nowait() for _ in range(count)]


async def started(dut: Any) -> TxBench:
    await first_edge(dut)
    bench = TxBench(dut)
    await bench.reset()
    return bench


def check(sent: bytes, frame: XgmiiFrame) -> None:
    assert frame.check_fcs(), f"{len(sent)} bytes: wrong check sequence"
    assert bytes(frame.get_payload()) == sent.ljust(FRAME_BYTES_MIN, b"\0"), f"{len(sent)} bytes"


def gaps_due(sizes: list[int]) -> list[int]:
    """Gap behind each of frames that come back to back after a pause. Frames begin at multiples of four bytes; what the gaps lack of 12
    is added up, and given back before it is four."""
    gaps, deficit = [], 0
    for size in sizes:
        deficit += max(size, FRAME_BYTES_MIN) % 4
        gaps.append(GAP_BYTES - max(size, FRAME_BYTES_MIN) % 4 + (4 if deficit >= 4 else 0))
        deficit %= 4
    return gaps


def gap_bytes(before: XgmiiFrame, after: XgmiiFrame) -> int:
    """Bytes between check sequence and preamble."""
    return ps_of(after.sim_time_start - before.sim_time_end) // BYTE_PS


@cocotb.test
async def every_size(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [*range(1, 80), 1514, 9000] if SHORT else [*range(1, 300), *range(300, 1515, 17), 1514, 9000, 9018]
    for size in sizes:
        frame = random_frame(rng, size)
        packet = Packet(frame)
        bench.source.send(packet)
        (seen,) = await bench.frames(1)
        check(frame, seen)
        assert seen.start_lane == 0, "after a pause a frame begins on lane 0"
        # The first word of the frame stands after the preamble's.
        assert bench.cycle_at(ps_of(seen.sim_time_start)) + 1 - packet.first_cycle == LATENCY_CYCLES, size
        await bench.wait(rng.randint(2, 9))
    bench.expect_counts(count_good=len(sizes))


@cocotb.test
async def full_rate_at_every_size(dut: Any) -> None:
    """Back to back: the gap is 12 bytes on average and never under 9, at each size and when sizes are mixed."""
    rng = random_numbers()
    bench = await started(dut)
    sizes = [60, 61, 62, 63, 1514] if SHORT else [*range(60, 90), 124, 252, 508, 1020, 1276, *range(1500, 1515), 9018]
    runs = [[size] * (39 if size < 200 else 11) for size in sizes]
    runs.append([rng.randint(60, 200) for _ in range(100 if SHORT else 1000)])
    total = 0
    for run in runs:
        frames = [random_frame(rng, size) for size in run]
        for frame in frames:
            bench.source.send(Packet(frame))
        seen = await bench.frames(len(frames))
        total += len(frames)
        for frame, there in zip(frames, seen, strict=True):
            check(frame, there)
        gaps = [gap_bytes(one, two) for one, two in pairwise(seen)]
        assert gaps == gaps_due(run)[:-1], f"{run[0]} bytes: gaps {gaps}"
        assert abs(sum(gaps) - GAP_BYTES * len(gaps)) <= 3, f"{run[0]} bytes: {sum(gaps)} bytes in {len(gaps)} gaps"
        bytes_on_wire = sum(PREAMBLE_BYTES + len(frame) + FCS_BYTES + GAP_BYTES for frame in frames[:-1])
        elapsed = ps_of(seen[-1].sim_time_start - seen[0].sim_time_start) // BYTE_PS
        assert abs(elapsed - bytes_on_wire) <= 3, f"{run[0]} bytes: {elapsed} byte times for {bytes_on_wire}"
        assert {frame.start_lane for frame in seen} <= {0, 4}
        await bench.wait(30)
    bench.expect_counts(count_good=total)


@cocotb.test
async def pauses_between_frames(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    count = 60 if SHORT else 600
    frames = [random_frame(rng, rng.randint(1, 100)) for _ in range(count)]
    for frame in frames:
        bench.source.send(Packet(frame))
        if rng.random() < 0.5:
            await bench.source.drain()
            await bench.wait(rng.randint(0, 12))
    seen = await bench.frames(count)
    for frame, there in zip(frames, seen, strict=True):
        check(frame, there)
    assert min(gap_bytes(one, two) for one, two in pairwise(seen)) >= GAP_BYTES_MIN
    bench.expect_counts(count_good=count)


@cocotb.test
async def cut_frames_are_marked_and_the_next_is_good(dut: Any) -> None:
    """A word that is missing, or a source that takes its frame back: error characters and its own counter."""
    rng = random_numbers()
    bench = await started(dut)
    rounds = 50 if SHORT else 400
    for round_ in range(rounds):
        bench.source.pause = lambda: False
        cut_sent = random_frame(rng, rng.randint(9, 200))
        if round_ % 2:
            bench.source.send(Packet(cut_sent, user=1))
            words_whole = (len(cut_sent) - 1) // 8
        else:
            words_whole = 1 + round_ // 2 % 24
            cut_sent = cut_sent.ljust(8 * words_whole + rng.randint(1, 80), b"\x5a")
            asked = iter(range(10**6))
            bench.source.pause = lambda stop=words_whole, asked=asked: stop <= next(asked) < stop + 3
            bench.source.send(Packet(cut_sent))
        await bench.source.drain()
        bench.source.pause = lambda: False
        frame = random_frame(rng, rng.randint(1, 100))
        bench.source.send(Packet(frame))
        cut, whole = await bench.frames(2)
        assert any(cut.ctrl or []), "no error character in a cut frame"
        check(frame, whole)
        # On the wire it is as long as if the word had been whole.
        on_wire = bench.wire[2 * round_]
        assert on_wire[:-FCS_BYTES] == [*cut_sent[: 8 * words_whole], *[ERROR] * 8], f"{words_whole} words"
        assert ERROR not in on_wire[-FCS_BYTES:]
    bench.expect_counts(count_good=rounds, drop_underrun=(rounds + 1) // 2, drop_aborted=rounds // 2)


@cocotb.test
async def reset_in_mid_frame(dut: Any) -> None:
    """At any word, and at any cycle after the last one: idle at once, no count, and all is as if nothing had ever been sent. The next
    frame begins in the first cycle behind the reset, on lane 0, and what its gap lacks is the first that is lacking."""
    rng = random_numbers()
    bench = await started(dut)
    for words, behind in product(range(1, 16), range(-1, 7)):
        dut.s_axis_tvalid.value = 1
        dut.s_axis_tkeep.value = 0xFF
        dut.s_axis_tdata.value = rng.getrandbits(64)
        await bench.wait(words)
        if behind >= 0:  # the frame ends, and the reset comes so many cycles later; else in its middle
            dut.s_axis_tlast.value, dut.s_axis_tuser.value = 1, int(words % 4 == 0)
            dut.s_axis_tkeep.value = (1 << rng.randint(1, 8)) - 1
            await bench.wait(1)
            dut.s_axis_tvalid.value = 0
            await bench.wait(behind)
        dut.rst.value = 1
        await bench.wait(1 + int(words % 3 == 0))
        await FallingEdge(dut.clk)  # what was counted at the last edge is in `counts`
        before = dict(bench.counts)
        bench.sink.clear()
        frames = [
            random_frame(rng, size) for size in (4 * rng.randint(15, 30) + 3, 60)
        ]  # three short of 12: any deficit would show
        dut.rst.value = 0
        dut.s_axis_tvalid.value, dut.s_axis_tlast.value, dut.s_axis_tuser.value = 1, 0, 0
        dut.s_axis_tkeep.value, dut.s_axis_tdata.value = 0xFF, int.from_bytes(frames[0][:8], "little")
        packets = [Packet(frame) for frame in frames]
        for packet in packets:
            bench.source.send(packet)  # from the next edge on it offers what is there already
        ended = bench.cycle
        seen = await bench.frames(2)
        for frame, there in zip(frames, seen, strict=True):
            check(frame, there)
        assert packets[0].first_cycle - ended == 2, "it waited for something from before the reset"
        assert bench.cycle_at(ps_of(seen[0].sim_time_start)) + 1 - packets[0].first_cycle == LATENCY_CYCLES
        assert seen[0].start_lane == 0
        assert gap_bytes(*seen) == gaps_due([len(frames[0])])[0]
        assert bench.counts == before | {"count_good": before["count_good"] + 2}
