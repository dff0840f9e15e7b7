# SPDX-License-Identifier: Apache-2.0
"""km3_packets, with km3_slice and km3_frame_time: frames of any slots over seconds and slices, against the formats' page; frames that are missing, early or far
ahead; runs that begin and settings that change under traffic."""

from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, pauses, random_numbers
from common.km3 import KINDS, Frame, Geometry, Tower, any_slots
from common.streams import Packet, StreamSink

FRAMES_PER_S = PARAMETERS.get("FRAMES_PER_S", 50)
OPTICAL_GROUPS = PARAMETERS.get("OPTICAL_GROUPS", 3)
SLOT_WORDS = (*(30,) * 6, 18, 18, 12, 28)
GEOMETRY = Geometry(1000, FRAMES_PER_S, SLOT_WORDS, 6 // OPTICAL_GROUPS)
COUNTERS = ("packet", "placed", "unplaced", "control_only", "missing", "sound_cut")
META = ("m_route", "m_clop", "m_source", "m_bytes", "m_arrival_ns", "m_start_cycle", "m_parsed_cycle")
CLOPS, SOURCES = (2, 0, 3, 1), (0x101, 0x2FF, 0x8003, 0x44)


class FrameSource:
    """A frame as km3_buffer has it: each group begins with a word of its own, and the last word is the frame's, if need be an empty one."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.dut = bench, bench.dut
        self.pause = pauses(random_numbers(), 0.2)
        self.dut.s_axis_tvalid.value = 0

    async def send(self, frame: Frame) -> None:
        together = GEOMETRY.together
        groups = [[word for slot in frame.slots[at : at + together] for word in slot] for at in range(0, 6, together)]
        groups += frame.slots[6:]
        words = [group[at : at + 4] for group in groups for at in range(0, len(group), 4)]
        if not words or len(words[-1]) == 4:
            words.append([])
        dut = self.dut
        dut.s_at.value = frame.second << 16 | frame.number
        dut.s_floor.value, dut.s_tower.value, dut.s_sampled.value = frame.floor, frame.tower, int(frame.sampled)
        dut.s_words.value = sum(len(group) << 16 * g for g, group in enumerate(groups))
        dut.s_start_cycle.value = frame.second * 1000 + frame.number
        dut.s_parsed_cycle.value = 3 * (frame.second * 1000 + frame.number)
        for at, word in enumerate(words):
            dut.s_axis_tdata.value = sum(value << 16 * k for k, value in enumerate(word))
            dut.s_axis_tkeep.value = (1 << 2 * len(word)) - 1
            dut.s_axis_tlast.value = at == len(words) - 1
            dut.s_axis_tvalid.value = 1
            await self.bench.accepted(dut.s_axis_tready, 6000)
        dut.s_axis_tvalid.value = 0
        while self.pause():
            await self.bench.wait(1)


class Port:
    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, random_numbers()
        self.bench = Bench(dut, COUNTERS)
        self.source = FrameSource(self.bench)
        self.came: list[Packet] = []
        StreamSink(self.bench, "m_axis", self.came.append, meta=META)
        for name in ("run_begins", "pps", "set", "enable"):
            getattr(dut, name).value = 0
        dut.s_timed.value = 1
        self.route(CLOPS)

    def route(self, clops: tuple[int, ...]) -> None:
        self.dut.clops.value = sum(clop << 2 * k for k, clop in enumerate(clops))
        self.dut.sources.value = sum(source << 16 * k for k, source in enumerate(SOURCES))

    def forget(self) -> None:
        """What came and what was counted, before another run."""
        self.came.clear()
        self.bench.forget_counts()

    async def begin(self, run: int, second: int, slice_frames: int) -> Tower:
        """After it the registers have anything: they are those of the next run."""
        dut, rng = self.dut, self.rng
        dut.run.value, dut.run_second.value, dut.slice_frames.value = run, second, slice_frames
        dut.run_begins.value, dut.enable.value = 1, 1
        await self.bench.wait(1)
        dut.run_begins.value = 0
        dut.run.value, dut.run_second.value, dut.slice_frames.value = (
            rng.randrange(1 << 31),
            rng.randrange(1 << 32),
            rng.randrange(1, 9),
        )
        return Tower(GEOMETRY, run, second, slice_frames)

    async def send(self, tower: Tower | None, frame: Frame) -> None:
        if tower:
            tower.take(frame)
        await self.source.send(frame)

    async def same(self, *towers: Tower) -> None:
        await self.bench.wait(100)
        wanted = [packet for tower in towers for packet in tower.packets]
        assert [packet.data for packet in self.came] == [packet.data for packet in wanted]
        for packet, sent in zip(self.came, wanted, strict=True):
            assert (packet.meta["m_clop"], packet.meta["m_source"]) == (CLOPS[sent.kind_class], SOURCES[sent.kind_class])
            assert (packet.meta["m_route"], packet.meta["m_bytes"]) == (0, len(sent.data))
            assert packet.meta["m_arrival_ns"] == sent.arrival_ns
            second, ns = divmod(sent.arrival_ns, 10**9)
            start = second * 1000 + ns * FRAMES_PER_S // 10**9
            assert (packet.meta["m_start_cycle"], packet.meta["m_parsed_cycle"]) == (start, 3 * start)
        counts = {name: sum(tower.counts[name] for tower in towers) for name in towers[0].counts}
        self.bench.expect_counts(packet=len(wanted), **counts)


def at(index: int, second: int) -> tuple[int, int]:
    return (second + index // FRAMES_PER_S) % (1 << 32), index % FRAMES_PER_S


@cocotb.test
async def every_kind_of_every_frame(dut: Any) -> None:
    """Over the ends of seconds and slices: full slots, empty ones, and any; the last frame of a slice has a packet of every kind. Floor, tower and kind of hits are those of
    each frame."""
    port = Port(dut)
    await port.bench.reset()
    tower = await port.begin(run=0x7FFF_FFF1, second=0xFFFF_0001, slice_frames=7)
    for index in range(40 if SHORT else 250):
        share, rng = port.rng.choice((0, 0.3, 0.6, 1)), port.rng
        of = {"floor": rng.randrange(256), "tower": rng.randrange(256), "sampled": rng.random() < 0.5}
        await port.send(tower, Frame(any_slots(rng, GEOMETRY, share), *at(index, 0xFFFF_0001), **of))
    await port.same(tower)


@cocotb.test
async def any_second_begins_a_run(dut: Any) -> None:
    """Second 0, and one before seconds come round; a frame before the run is of none, also with a second that is a larger number."""
    port = Port(dut)
    await port.bench.reset()
    for second in (0, 1, 0xFFFF_FFFF, 0x7FFF_FFFF):
        port.forget()
        tower = await port.begin(run=5, second=second, slice_frames=7)
        await port.bench.wait(3)
        for index in (-1, *range(5), *range(FRAMES_PER_S - 9, FRAMES_PER_S + 9)):
            await port.send(tower, Frame(any_slots(port.rng, GEOMETRY, 0.5), *at(index, second)))
        assert tower.counts["unplaced"] + tower.counts["control_only"] == 1
        await port.same(tower)


@cocotb.test
async def a_frame_outside_moves_nothing(dut: Any) -> None:
    """One whose time is far ahead, or two, first of all or later: those that follow are where they would be without it."""
    port = Port(dut)
    await port.bench.reset()
    for slice_frames in (1, 3):
        port.forget()
        tower = await port.begin(run=1, second=50, slice_frames=slice_frames)
        await port.bench.wait(3)
        for index in range(8):
            ahead = Frame(any_slots(port.rng, GEOMETRY), *at(index + 3000 * slice_frames, 50))
            for _ in range((1, 2, 0, 1)[index % 4]):
                await port.source.send(ahead)
                tower.outside(ahead)
            await port.send(tower, Frame(any_slots(port.rng, GEOMETRY, 0.8), *at(index, 50)))
        assert tower.counts["missing"] == 0
        await port.same(tower)


@cocotb.test
async def frames_are_missing(dut: Any) -> None:
    """Some, at the beginning, in the middle and at the end of a slice, whole slices, and before the run: no place and no time is silently wrong."""
    port = Port(dut)
    await port.bench.reset()
    for slice_frames in (5, 1, FRAMES_PER_S):
        port.forget()
        tower = await port.begin(run=9, second=100, slice_frames=slice_frames)
        index = -3
        for _ in range(40 if SHORT else 150):
            slots = any_slots(port.rng, GEOMETRY, 0.7)
            if index < 0:
                early = Frame(slots, *at(index, 100))
                await port.source.send(early)
                tower.outside(early)
            else:
                await port.send(tower, Frame(slots, *at(index, 100)))
            index += port.rng.choice((1, 1, 1, 1, 2, 3, 17))
        await port.same(tower)


@cocotb.test
async def a_time_far_ahead_is_not_taken(dut: Any) -> None:
    """As many slices as it is asked for in one frame, then it gives up, and goes on with the next; a time that goes back is refused."""
    port = Port(dut)
    await port.bench.reset()
    tower = await port.begin(run=1, second=50, slice_frames=1)
    await port.send(tower, Frame(any_slots(port.rng, GEOMETRY), 50, 0))
    ahead = Frame(any_slots(port.rng, GEOMETRY), 50 + 2500 // FRAMES_PER_S)
    for _ in range(2):
        await port.source.send(ahead)
        tower.outside(ahead)
    await port.send(tower, ahead)
    await port.send(tower, Frame(any_slots(port.rng, GEOMETRY), 50, 1))
    assert tower.counts["unplaced"] + tower.counts["control_only"] == 3
    await port.same(tower)


@cocotb.test
async def slow_control_needs_no_run(dut: Any) -> None:
    """Before the first run, before a run and far ahead: answers leave, whatever else the frame has, which is lost by name; a frame without data is no loss."""
    port = Port(dut)
    await port.bench.reset()
    dut.enable.value = 1
    tower = Tower(GEOMETRY, 0, 0, 1)
    for number in range(24):
        if number == 12:
            begun = await port.begin(run=2, second=700, slice_frames=4)
            await port.bench.wait(3)
        slots = any_slots(port.rng, GEOMETRY, (0, 0.5, 1)[number % 3])
        slots[9] = [port.rng.randrange(1 << 16) for _ in range((14, 28, 0)[number % 5 % 3])]
        frame = Frame(slots, *at(number % 12, 600 if number < 18 else 5000))
        await port.source.send(frame)
        tower.outside(frame)
    assert min(tower.counts["unplaced"], tower.counts["control_only"]) > 3
    await port.send(begun, Frame(any_slots(port.rng, GEOMETRY, 1), 700))
    await port.same(tower, begun)


@cocotb.test
async def runs_and_settings_change(dut: Any) -> None:
    """A run begins at any moment: a frame is of the one before or of it, whole. Sampled hits have their kind, a floor without time its flag. Not enabled, nothing leaves."""
    port = Port(dut)
    await port.bench.reset()
    await port.source.send(Frame(any_slots(port.rng, GEOMETRY, 1), 10))
    assert port.bench.counts["unplaced"] == 1, "not enabled"
    dut.enable.value = 1
    await port.source.send(Frame(any_slots(port.rng, GEOMETRY, 1), 10))
    assert port.bench.counts["unplaced"] == 2, "no run"
    await port.bench.wait(100)
    port.forget()
    towers = [await port.begin(run=3, second=20, slice_frames=4)]
    await port.bench.wait(3)
    for index in range(12):
        await port.send(towers[-1], Frame(any_slots(port.rng, GEOMETRY, 1), *at(index, 20)))
        if index == 5:
            towers.append(await port.begin(run=4, second=20, slice_frames=3))
            await port.bench.wait(150)
    await port.same(*towers)

    dut.s_timed.value = 0
    port.came.clear()
    await port.bench.wait(1)
    slots = [[port.rng.randrange(1 << 16)] * 3 if KINDS[s] else [] for s in range(10)]
    await port.source.send(Frame(slots, *at(12, 20), sampled=True))
    await port.bench.wait(100)
    assert {packet.data[6] for packet in port.came} == {2, 3, 4, 5}
    assert {packet.data[7] for packet in port.came} == {2}

    # Whatever is written where: a packet's CLOP is the one before or the one after, and its source that of its kind.
    port.came.clear()
    for index in range(13, 30):
        port.route(tuple(port.rng.randrange(4) for _ in range(4)))
        await port.source.send(Frame(any_slots(port.rng, GEOMETRY, 0.8), *at(index, 20), sampled=True))
    await port.bench.wait(100)
    for packet in port.came:
        if packet.data[:4] == b"KM3F":
            assert packet.meta["m_source"] == SOURCES[{2: 0, 3: 1, 4: 1, 5: 2}[packet.data[6]]]

    # A reset forgets the run: a frame that was due is of none.
    await port.bench.reset()
    port.bench.forget_counts()
    port.came.clear()
    await port.source.send(Frame(any_slots(port.rng, GEOMETRY, 1), *at(30, 20)))
    await port.bench.wait(100)
    port.bench.expect_counts(unplaced=1, packet=len(port.came))
