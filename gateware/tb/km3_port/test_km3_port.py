# SPDX-License-Identifier: Apache-2.0
"""km3_port: a floor's frames in 8b/10b in, packets for the router out, against the pages; bad frames, a host that takes nothing, a fibre that is cut, settings
rewritten under traffic, slow control the other way. Every test ends with the books."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import CLOCK_PS, PARAMETERS, SHORT, Bench, LaneCounts, never, pauses, random_numbers
from common.clocks import Steady
from common.counts import ROWS
from common.km3 import SLOTS, Frame, Geometry, Tower, any_slots
from common.km3_link import FloorSource, Link
from common.streams import Packet, StreamSink, StreamSource

LINE_MBPS, FRAMES_PER_S = PARAMETERS.get("LINE_MBPS", 800), PARAMETERS.get("FRAMES_PER_S", 50000)
OPTICAL_WORDS, PACKET_WORDS = PARAMETERS.get("OPTICAL_WORDS", 90), PARAMETERS.get("PACKET_WORDS", 4470)
BUFFER_WORDS, CONTROL_WORDS = PARAMETERS.get("BUFFER_WORDS", 1024), PARAMETERS.get("CONTROL_WORDS", 40)
WORD_PS = 20 * 1_000_000 // LINE_MBPS
GEOMETRY = Geometry(
    LINE_MBPS * 50_000 // FRAMES_PER_S,
    FRAMES_PER_S,
    (*(OPTICAL_WORDS,) * 6, *(PARAMETERS.get("HYDROPHONE_WORDS", 20),) * 2, PARAMETERS.get("INSTRUMENT_WORDS", 18), CONTROL_WORDS),
    max(n for n in (1, 2, 3, 6) if n == 1 or n * OPTICAL_WORDS <= PACKET_WORDS),
)
NAMES = ROWS["km3"]["names"]
DROPS = [name for name in NAMES if name.startswith("drop_")]
META = ("m_destination", "m_clop", "m_source", "m_bytes", "m_arrival_ns", "m_start_cycle", "m_parsed_cycle")
CLOPS, SOURCES = (2, 0, 3, 1), (0x101, 0x2FF, 0x8003, 0x44)
SECOND, AWAY_WORDS = 0x1234_5678, 150
FIRST_SLOT = 5 + SLOTS + 2


class Core(Bench):
    def __init__(self, dut: Any, clock_ps: int) -> None:
        self.clock_ps = clock_ps
        super().__init__(dut, now=True)


class PortBench:
    """A port, its clocks, and a floor AWAY_WORDS behind the shore."""

    def __init__(self, dut: Any, core_ps: int = CLOCK_PS) -> None:
        self.dut, self.rng = dut, random_numbers()
        self.ref = Steady(dut, "ref_clk", WORD_PS, self.rng.random())
        self.rx = Steady(dut, "rx_clk", WORD_PS, self.rng.random())
        Steady(dut, "help_clk", WORD_PS * 41 // 40, self.rng.random())
        self.bench = Core(dut, core_ps)
        self.floor = FloorSource(dut.rx_clk, dut.rx_bits, GEOMETRY)
        self.counted = LaneCounts(self.bench, ["counts"], len(NAMES))
        self.came: list[Packet] = []
        self.sink = StreamSink(self.bench, "m_axis", self.came.append, pauses(self.rng, 0.2), META)
        self.source = StreamSource(self.bench, "s_axis")
        for name in ("link_rst", "run_begins", "enable", "sampled", "gps_set"):
            getattr(dut, name).value = 0
        dut.tower.value, dut.floor.value = 7, 1
        self.route(CLOPS)
        self.begun = 0

    def route(self, clops: tuple[int, ...]) -> None:
        self.dut.clops.value = sum(clop << 2 * k for k, clop in enumerate(clops))
        self.dut.sources.value = sum(source << 16 * k for k, source in enumerate(SOURCES))

    async def begin(self, slice_frames: int = 5) -> Tower:
        """To a link that is up both ways, with the time set, and a run that begins with it."""
        await self.bench.reset(40)
        await self.bench.wait_until(lambda: self.dut.sends.value == 1 and self.dut.aligned.value == 1, 40_000, "the link is up", 50)
        await self.set_time(SECOND)
        await self.ref.wait(AWAY_WORDS)
        self.floor.begin(SECOND)
        self.counted.forget()
        return await self.run(1, slice_frames)

    async def set_time(self, second: int) -> None:
        self.dut.gps_second.value = second
        self.dut.gps_set.value = 1
        await self.ref.wait(1)
        self.dut.gps_set.value = 0

    async def run(self, run: int, slice_frames: int) -> Tower:
        dut = self.dut
        dut.run.value, dut.run_second.value, dut.slice_frames.value = run, SECOND, slice_frames
        dut.run_begins.value, dut.enable.value = 1, 1
        await self.bench.wait(1)
        dut.run_begins.value = 0
        return Tower(GEOMETRY, run, SECOND, slice_frames)

    async def finish(self) -> dict[str, int]:
        """What was counted, when nothing is in flight; the books balance."""
        await self.floor.drain()
        self.sink.pause = never
        await self.bench.wait(3000)
        counts = {name: count for name, count in zip(NAMES, self.counted.counts()["counts"], strict=True) if count}
        of = {name: counts.get(name, 0) for name in NAMES}
        assert len(self.floor.sent) == of["count_good"] + sum(of[name] for name in DROPS) + self.begun, counts
        assert of["count_good"] == of["placed"] + of["unplaced"] + of["overrun"] + of["full"], counts
        assert of["packet"] == of["queue_full"] + len(self.came), counts
        return counts

    def same(self, tower: Tower) -> None:
        for number, (packet, sent) in enumerate(zip(self.came, tower.packets, strict=False)):
            assert packet.data == sent.data, f"packet {number}: {packet.data[:36].hex(' ')}, expected {sent.data[:36].hex(' ')}"
            about = packet.meta
            assert (about["m_destination"], about["m_clop"], about["m_source"]) == (
                1,
                CLOPS[sent.kind_class],
                SOURCES[sent.kind_class],
            )
            assert (about["m_bytes"], about["m_arrival_ns"]) == (len(sent.data), sent.arrival_ns)
            words = about["m_parsed_cycle"] - about["m_start_cycle"]
            slots = sum(GEOMETRY.slot_words) + 2
            assert abs(words * self.bench.clock_ps - slots * WORD_PS) <= 2 * self.bench.clock_ps, "from the head to the verdict"
        assert len(self.came) == len(tower.packets)

    def whole(self) -> None:
        """Each packet has the words of slots as they were sent, and the sideband of its kind, whatever the CLOP."""
        slots = {
            b"".join(word.to_bytes(2, "little") for slot in part for word in slot)
            for frame in self.floor.sent
            for part in parts(frame)
        }
        for packet in self.came:
            is_control = packet.data[:4] != b"KM3F"
            assert (packet.data if is_control else packet.data[32:]) in slots
            wanted = SOURCES[3] if is_control else SOURCES[{1: 0, 3: 1, 4: 1, 5: 2}[packet.data[6]]]
            assert (packet.meta["m_source"], packet.meta["m_bytes"]) == (wanted, len(packet.data))

    def stored_words(self, frame: Frame) -> int:
        """In the buffer, of 8 bytes."""
        groups = [sum(map(len, frame.slots[at : at + GEOMETRY.together])) for at in range(0, 6, GEOMETRY.together)]
        groups += [len(slot) for slot in frame.slots[6:]]
        words = [-(-group // 4) for group in groups]
        last = next((group for group in reversed(groups) if group), 0)
        return sum(words) + (last % 4 == 0)

    def take(self, tower: Tower, frames: list[Frame]) -> int:
        """Those that are good and find room; returns how many do not."""
        good = [frame for frame in frames if frame.spoiled is None and frame.floor == 1]
        fits = [frame for frame in good if self.stored_words(frame) <= BUFFER_WORDS]
        for frame in fits:
            tower.take(frame)
        return len(good) - len(fits)


def counted(tower: Tower, packets: int, **others: int) -> dict[str, int]:
    counts = tower.counts | {"packet": packets} | others
    return {name: count for name, count in counts.items() if count}


@cocotb.test
async def every_kind_reaches_its_clop(dut: Any) -> None:
    """Slots full, empty and any, over several slices; a frame too large for the buffer is one that is missing. The link says that it is well."""
    port = PortBench(dut)
    tower = await port.begin()
    for _ in range(12 if SHORT else 40):
        port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, port.rng.choice((0, 0.3, 0.6, 1)))))
    counts = await port.finish()
    full = port.take(tower, port.floor.sent)
    port.same(tower)
    assert counts == counted(tower, len(tower.packets), count_good=len(port.floor.sent), full=full)
    last = port.floor.sent[-1]
    assert int(dut.head.value) == 3 << 56 | 1 << 48 | last.second << 16 | last.number
    assert (int(dut.aligned.value), int(dut.sends.value), int(dut.slip.value)) == (1, 1, 0)
    assert 0 <= (int(dut.trip.value) & 0xFFFF) - AWAY_WORDS < 60


@cocotb.test
async def bad_frames_are_thrown_away(dut: Any) -> None:
    """A bit wrong anywhere, another floor's, none at all: nothing of it goes on, what follows has its place after a hole, and sound waits for the next slice."""
    port = PortBench(dut)
    tower = await port.begin(slice_frames=6)
    kinds = []
    for _ in range(14 if SHORT else 60):
        slots = any_slots(port.rng, GEOMETRY, 0.7)
        kinds.append(port.rng.choice(("good", "good", "good", "head", "slots", "floor", "none")))
        frame = Frame(slots)
        if kinds[-1] == "head":
            frame.spoiled = port.rng.randrange(1, FIRST_SLOT)
        elif kinds[-1] == "slots":
            frame.spoiled = port.rng.randrange(FIRST_SLOT, GEOMETRY.end)
        elif kinds[-1] == "floor":
            frame.floor = 2
        port.floor.queue.append(None if kinds[-1] == "none" else frame)
    port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, 0.2)))
    counts = await port.finish()
    full = port.take(tower, port.floor.sent)
    port.same(tower)
    good = kinds.count("good") + 1
    assert counts["count_good"] == good
    assert counts.get("full", 0) == full
    assert (counts.get("drop_head", 0), counts.get("drop_floor", 0)) == (kinds.count("head"), kinds.count("floor"))
    assert sum(counts.get(name, 0) for name in ("drop_crc", "drop_symbol", "drop_code")) == kinds.count("slots")
    assert {name: counts.get(name, 0) for name in tower.counts} == tower.counts
    between = len(kinds) - next(at for at, kind in enumerate(kinds) if kind in ("good", "slots"))
    lost = kinds[-between:].count("none")
    assert lost <= counts.get("lost", 0) <= lost + kinds[-between:].count("floor"), "those with a bad head have a name already"


@cocotb.test
async def a_host_that_takes_nothing(dut: Any) -> None:
    """Whole packets are dropped before the router and counted; those that come are whole, and their places and numbers say what is missing."""
    port = PortBench(dut)
    tower = await port.begin()
    port.sink.pause = lambda: True
    while len(port.floor.queue) < 12:
        frame = Frame(any_slots(port.rng, GEOMETRY, 0.6))
        if port.stored_words(frame) <= BUFFER_WORDS:
            port.floor.queue.append(frame)
    await port.floor.drain()
    port.sink.pause = pauses(port.rng, 0.5)
    for _ in range(4):
        port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, 0.5)))
    counts = await port.finish()
    port.take(tower, port.floor.sent)
    assert counts["packet"] == len(tower.packets)
    assert 0 < counts["queue_full"] < len(tower.packets)
    left = iter(tower.packets)
    for packet in port.came:
        assert any(packet.data == sent.data for sent in left), "in order, each once"


@cocotb.test
async def a_fibre_that_is_cut(dut: Any) -> None:
    """In mid-frame, and returns; the link begun anew by the host: the frame is dropped as cut, the next ones are good."""
    port = PortBench(dut)
    tower = await port.begin()
    for how in ("dark", "link_rst", "dark"):
        port.floor.queue += [Frame(any_slots(port.rng, GEOMETRY, 0.6)) for _ in range(2)]
        await port.floor.drain()
        cut = Frame(any_slots(port.rng, GEOMETRY, 1), spoiled=-1)  # its last word: none of it may go on
        port.floor.queue.append(cut)
        while port.floor.queue:
            await RisingEdge(dut.rx_clk)
        await port.rx.wait(port.rng.randrange(FIRST_SLOT + 40, GEOMETRY.end - 40))
        if how == "dark":
            port.floor.dark = True
            await port.rx.wait(port.rng.randrange(40, 400))
            port.floor.dark = False
        else:
            dut.link_rst.value = 1
            await port.bench.wait(20)
            dut.link_rst.value = 0
            port.begun += 1  # a frame that a reset cuts has no name
        await port.bench.wait_until(lambda: dut.aligned.value == 1 and dut.sends.value == 1, 200_000, "the link is up", 100)
        await port.floor.drain()
    port.floor.queue += [Frame(any_slots(port.rng, GEOMETRY, 0.6)) for _ in range(7)]
    counts = await port.finish()
    port.take(tower, port.floor.sent)
    port.same(tower)
    assert (counts["drop_cut"], counts["count_down"]) == (2, 2)
    assert counts["count_up"] == 3


@cocotb.test
async def settings_change_under_traffic(dut: Any) -> None:
    """CLOPs at any moment, a run in mid-frame, another floor's number, and not enabled: each packet is whole and of one setting, and each frame has one fate."""
    port = PortBench(dut)
    await port.begin()
    frames = 14
    port.floor.queue += [Frame(any_slots(port.rng, GEOMETRY, 0.6)) for _ in range(frames)]
    turn = 0
    while port.floor.queue:
        await port.bench.wait(port.rng.randrange(20, 1500))
        port.route(tuple(port.rng.randrange(4) for _ in range(4)))
        if port.rng.random() < 0.2:
            turn += 1
            await port.run(1 + turn, port.rng.randrange(1, 6))
        dut.enable.value = port.rng.random() < 0.8
        dut.floor.value = 1 if port.rng.random() < 0.8 else 2
    dut.floor.value = 1
    counts = await port.finish()
    assert counts["count_good"] + counts.get("drop_floor", 0) == frames
    port.whole()


def parts(frame: Frame) -> list[list[list[int]]]:
    return [frame.slots[at : at + GEOMETRY.together] for at in range(0, 6, GEOMETRY.together)] + [
        [slot] for slot in frame.slots[6:]
    ]


@cocotb.test
async def a_core_that_is_too_slow(dut: Any) -> None:
    """Its clock is slower than the words of the link: what is missing makes its frame bad, and counted; what comes is whole."""
    port = PortBench(dut, core_ps=WORD_PS * 9 // 8)
    await port.begin()
    for share in (1, 0, 1, 0.1, 0.1, 0.2, 1, 0):
        port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, share)))
    counts = await port.finish()
    assert counts["overrun"] > 0
    assert counts["placed"] > 0
    port.whole()


@cocotb.test
async def slow_control_to_the_floor(dut: Any) -> None:
    """Payloads of any length, as fast as they come: every byte in order in the slots of frames, each frame as the page says; more than there is room for is dropped whole."""
    port = PortBench(dut)
    await port.begin()
    link = Link(dut.ref_clk, dut.tx_codes, GEOMETRY)
    sent = [bytes(port.rng.randrange(256) for _ in range(size)) for size in (1, 2, 28, 7, 8, 9, 28, 31, 33, 600)]
    for payload in sent:
        port.source.send(Packet(payload))
    await port.source.drain()
    await port.ref.wait(22 * GEOMETRY.frame_words)
    sent.append(bytes(port.rng.randrange(256) for _ in range(2048)))
    port.source.send(Packet(sent[-1]))
    port.source.send(Packet(bytes(1500)))
    port.source.send(Packet(bytes(2049)))
    await port.source.drain()
    await port.ref.wait(18 * GEOMETRY.frame_words)
    sent.append(b"end.")
    port.source.send(Packet(sent[-1]))
    await port.ref.wait(16 * GEOMETRY.frame_words)
    counts = await port.finish()
    assert link.control() == b"".join(payload + bytes(len(payload) % 2) for payload in sent)
    assert (counts["to_floor"], counts["to_floor_full"]) == (len(sent), 2)


@cocotb.test
async def a_time_that_is_wrong_is_counted(dut: Any) -> None:
    """A second that does not begin where the last one ends, and a frame whose second was never sent; more payloads than there is room for."""
    port = PortBench(dut)
    await port.begin()
    await port.set_time(SECOND + 7)
    await port.ref.wait(20)
    port.floor.begin(SECOND - 3)
    port.floor.queue.append(Frame([[]] * SLOTS))
    counts = await port.finish()
    assert (counts["error_gps"], counts["error_second"]) == (1, 1)
    assert (counts["unplaced"], counts["count_good"]) == (1, 1)
    assert not port.came
