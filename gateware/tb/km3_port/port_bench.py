# SPDX-License-Identifier: Apache-2.0
"""A km3_port with its clocks, a floor at the end of its link, and its books."""

from typing import Any

from common.bench import CLOCK_PS, PARAMETERS, Bench, LaneCounts, never, pauses, random_numbers
from common.clocks import Domain, Steady
from common.counts import ROWS
from common.km3 import SLOTS, Frame, Geometry, Tower
from common.km3_link import FloorSource
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
        self.rx = Domain(dut, "rx_clk", WORD_PS, self.rng.random())
        Steady(dut, "help_clk", WORD_PS * 41 // 40, self.rng.random())
        self.bench = Core(dut, core_ps)
        self.floor = FloorSource(dut.rx_clk, dut.rx_bits, GEOMETRY)
        self.counted = LaneCounts(self.bench, ["counts"], len(NAMES))
        self.came: list[Packet] = []
        self.sink = StreamSink(self.bench, "m_axis", self.came.append, pauses(self.rng, 0.2), META)
        self.source = StreamSource(self.bench, "s_axis")
        for name in ("link_rst", "div_wrong", "run_begins", "enable", "sampled", "gps_set", "express_send", "express_take"):
            getattr(dut, name).value = 0
        dut.tower.value, dut.floor.value = 7, 1
        self.route(CLOPS)

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
        await self.bench.wait(
            1
        )  # what was waited for may be an edge of the link's clock at the same moment as one of the core's: a pulse would end as it begins
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
        assert len(self.floor.sent) == of["count_good"] + sum(of[name] for name in DROPS), counts
        assert of["count_good"] == of["placed"] + of["unplaced"] + of["control_only"] + of["overrun"] + of["full"], counts
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
            assert abs(words * self.bench.clock_ps - slots * WORD_PS) < self.bench.clock_ps, "from the head to the verdict"
        assert len(self.came) == len(tower.packets)

    def whole(self) -> None:
        """Each packet has the words of slots as they were sent, and the sideband of its kind, whatever the CLOP."""
        slots = {data_of(part) for frame in self.floor.sent for part in parts(frame)}
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


def data_of(part: list[list[int]]) -> bytes:
    return b"".join(word.to_bytes(2, "little") for slot in part for word in slot)


def parts(frame: Frame) -> list[list[list[int]]]:
    return [frame.slots[at : at + GEOMETRY.together] for at in range(0, 6, GEOMETRY.together)] + [
        [slot] for slot in frame.slots[6:]
    ]
