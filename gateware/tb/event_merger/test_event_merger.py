# SPDX-License-Identifier: Apache-2.0
"""event_merger: random parts against a model without cycles; window, overflow, lapse, disabled links, cut hits; latency and rate; the books."""

from random import Random
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, LaneCounts, never, pauses, random_numbers
from common.events import KEY_MASK, Event, event_bytes, event_of
from common.lanes import LaneSources
from common.merging import Merged, merge
from common.streams import Packet, StreamSink

LINKS, DEPTH_WORDS, HITS_MAX = PARAMETERS["LINKS"], PARAMETERS["DEPTH_WORDS"], PARAMETERS.get("HITS_MAX", 128)
ALL = (1 << LINKS) - 1
DECIDE_CYCLES, SELECT_CYCLES = 4, 2
CHOOSE_CYCLES = 3  # an event, at least
FOREVER = 0xFFFFFFFF
PART_WORDS_MAX = 32  # of eight hits, in the largest part
JUMP = 1 << 30
BY_LINK = ("count_part", "drop_late", "drop_jump", "drop_disabled")


def pieces(hits: list[int], upto: int | None = None) -> int:
    """Of an event whose parts have so many hits: its header and its words of hits; those that its first `upto` halves need."""
    count, halves = 1, 4
    for number in hits:
        for place in range(0, number, 8):
            if upto is not None and halves > upto:
                return count
            count, halves = count + 1, halves + min(8, number - place)
    return count


class MergerBench(Bench):
    """seen: (event, mask) as they left; by_link: pulses of the counters that have a bit a link."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["count_complete", "count_missing", "count_overflow", "drop_incomplete", "count_cut"])
        self.sources = LaneSources(self, "s_axis", LINKS)
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta_parts"])
        self.seen: list[tuple[Event, int]] = []
        self.packets: list[Packet] = []
        self.lanes = LaneCounts(self, BY_LINK, LINKS)
        self.sent = [0] * LINKS
        dut.forget.value = 0
        self.configure()

    @property
    def by_link(self) -> dict[str, list[int]]:
        return self.lanes.counts()

    def configure(self, links: int = ALL, window: int = FOREVER, jump: int = JUMP, lapse: int = 0, complete_only: int = 0) -> None:
        dut = self.dut
        dut.cfg_links.value, dut.cfg_window_cycles.value, dut.cfg_jump.value = links, window, jump
        dut.cfg_lapse_cycles.value, dut.cfg_complete_only.value = lapse, complete_only

    def send(self, link: int, part: Event) -> Packet:
        self.sent[link] += 1
        return self.sources.send(link, Packet(event_bytes(part)))

    def take(self, packet: Packet) -> None:
        self.packets.append(packet)
        self.seen.append((event_of(packet.data), packet.meta["m_meta_parts"]))

    async def begin(self) -> None:
        """Reset, and all counts at zero."""
        self.sources.clear()
        await self.reset()
        self.seen.clear()
        self.packets.clear()
        self.forget_counts()
        self.sent = [0] * LINKS
        self.lanes.forget()

    def balanced(self) -> bool:
        """Each part that went in is in one counter."""
        return [sum(counts) for counts in zip(*self.by_link.values(), strict=True)] == self.sent

    async def finish(self) -> None:
        """With a window that ends: everything comes out, and the books balance."""
        await self.sources.drain()
        await self.wait(10)  # the last part is at its head
        self.sink.pause = never
        self.dut.cfg_window_cycles.value = 0
        await self.wait_until(self.balanced, 20_000, f"each part is counted: {self.sent} parts, {self.by_link}")
        await self.wait(400)
        counts = self.counts
        closed = counts["count_complete"] + counts["count_missing"] + counts["count_overflow"]
        assert closed == len(self.seen) + counts["drop_incomplete"]
        assert self.balanced()
        self.ordered()

    def ordered(self) -> None:
        for (before, _), (after, _) in zip(self.seen, self.seen[1:], strict=False):
            assert 0 < (after.key - before.key & KEY_MASK) < 1 << 39, "not in the order of time"

    def matches(self, wanted: Merged) -> None:
        assert self.seen == wanted.events
        assert self.by_link["count_part"] == wanted.parts
        assert self.by_link["drop_late"] == wanted.late
        assert self.by_link["drop_jump"] == wanted.jumps
        self.expect_counts(count_complete=wanted.complete, count_missing=wanted.missing, count_cut=wanted.cut)


async def started(dut: Any) -> MergerBench:
    bench = MergerBench(dut)
    await bench.begin()
    return bench


def part(rng: Random, key: int, hits: int | None = None) -> Event:
    count = rng.choice([0, 1, 2, 3, 4, 5, 5, 8, 9]) if hits is None else hits
    return Event(key & KEY_MASK, rng.getrandbits(16), [rng.getrandbits(16) for _ in range(count)])


def random_streams(rng: Random, events: int, faults: bool) -> list[list[Event]]:
    """Parts of each link; with faults parts are missing, doubled, out of order, wild."""
    key = rng.getrandbits(40)
    streams: list[list[Event]] = [[] for _ in range(LINKS)]
    long = rng.random() < 0.3
    for _ in range(events):
        key += rng.choice([1, 3, 256, 10_000, rng.randint(1, JUMP // 4)])
        for stream in streams:
            if faults and rng.random() < 0.1:
                continue
            stream.append(part(rng, key, rng.randint(0, 255) if long and rng.random() < 0.05 else None))
            if faults and rng.random() < 0.03:
                stream.append(part(rng, key))
    if faults:
        for stream in streams:
            for _ in range(len(stream) // 20):
                place = rng.randrange(len(stream) - 1)
                stream[place], stream[place + 1] = stream[place + 1], stream[place]
            for _ in range(len(stream) // 30):
                stream.insert(rng.randrange(len(stream)), part(rng, rng.getrandbits(40)))
    return streams


@cocotb.test
async def random_parts_against_the_model(dut: Any) -> None:
    """Links far apart and pauses everywhere; the window is endless until each link has sent all it has."""
    rng = random_numbers()
    bench = await started(dut)
    for turn in range(4 if SHORT else 16):
        await bench.begin()
        streams = random_streams(rng, 60 if SHORT else 150, faults=turn % 4 != 0)
        enabled = ALL if turn % 3 else rng.randint(1, ALL)
        bench.configure(links=enabled)
        bench.sink.pause = rng.choice([never, pauses(rng, 0.4), pauses(rng, 0.8)])
        for link in range(LINKS):
            bench.sources.pause[link] = rng.choice([never, pauses(rng, 0.3), pauses(rng, 0.7)])
        # Never more than the buffers hold: a part goes in when the slowest link is near.
        place = [0] * LINKS
        while any(place[link] < len(streams[link]) for link in range(LINKS)):
            for link in range(LINKS):
                upto = min(len(streams[link]), place[link] + 3)
                for number in range(place[link], upto):
                    bench.send(link, streams[link][number])
                place[link] = upto
            await bench.sources.drain()
        await bench.finish()
        wanted = merge(streams, enabled, HITS_MAX, JUMP)
        disabled = [0 if enabled >> link & 1 else len(streams[link]) for link in range(LINKS)]
        assert bench.by_link["drop_disabled"] == disabled
        assert bench.counts["count_overflow"] == 0, "the load was to fit into the buffers"
        bench.matches(wanted)


@cocotb.test
async def latency_has_no_spread(dut: Any) -> None:
    """From the last word of the last part in to the first word out, whichever link is last, and however long the others waited."""
    rng = random_numbers()
    bench = await started(dut)
    key = 1000
    for _ in range(40):
        key += rng.randint(1, 1000)
        last_link = rng.randrange(LINKS)
        parts = [part(rng, key) for _ in range(LINKS)]
        for link in range(LINKS):
            if link != last_link:
                bench.send(link, parts[link])
        await bench.sources.drain()
        await bench.wait(rng.randint(0, 12))
        last = bench.send(last_link, parts[last_link])
        await bench.sources.drain()
        await bench.wait(DECIDE_CYCLES + 5 * LINKS + 5)
        took = bench.packets[-1].first_cycle - last.last_cycle
        assert took == DECIDE_CYCLES + 1 + pieces([len(one.hits) for one in parts], upto=8)
    await bench.finish()
    bench.expect_counts(count_complete=40)


@cocotb.test
async def rate(dut: Any) -> None:
    """Parts of five, and of sixteen hits on every link: a cycle for the header and one for each word of hits."""
    rng = random_numbers()
    bench = await started(dut)
    events, key = 20, 5000
    for hits in (5, 16):
        bench.sink.pause = lambda: True  # until all is there: a part takes longer to come than to go
        before = len(bench.packets)
        for _ in range(events):
            key += 1
            for link in range(LINKS):
                bench.send(link, part(rng, key, hits=hits))
        await bench.sources.drain()
        await bench.wait(20)
        bench.sink.pause = never
        await bench.wait(30 * events)
        packets = bench.packets[before + 6 :]  # what was chosen while it waited goes quicker
        took = packets[-1].last_cycle - packets[0].last_cycle
        each = max(CHOOSE_CYCLES, pieces([hits] * LINKS))
        assert took == (len(packets) - 1) * each, f"{took / (len(packets) - 1)} cycles an event"
        print(f"figure: {LINKS} parts of {hits} hits: an event in {each} cycles", flush=True)
    await bench.finish()


@cocotb.test
async def a_missing_link_is_waited_for_by_the_window(dut: Any) -> None:
    """To the cycle; what comes behind a closed event is late; the events after the first need not wait again."""
    rng = random_numbers()
    bench = await started(dut)
    window = 200
    bench.configure(window=window)
    first = bench.send(0, part(rng, 100))
    second = bench.send(0, part(rng, 200))
    await bench.wait(window - 10)
    assert not bench.seen
    await bench.wait(60)
    assert [mask for _, mask in bench.seen] == [1, 1]
    decided = window + SELECT_CYCLES
    assert bench.packets[0].first_cycle - first.last_cycle == decided + 1 + pieces([len(bench.seen[0][0].hits)], upto=8)
    assert bench.packets[1].first_cycle - second.last_cycle <= decided + 12
    bench.send(1, part(rng, 100))
    bench.send(1, part(rng, 150))
    bench.send(1, part(rng, 200))
    await bench.wait(40)
    assert bench.by_link["drop_late"] == [0, 3, *[0] * (LINKS - 2)]
    for link in range(LINKS):
        bench.send(link, part(rng, 300))
    await bench.finish()
    assert bench.seen[-1][1] == ALL
    bench.expect_counts(count_missing=2, count_complete=1)


@cocotb.test
async def who_is_further_on_is_not_waited_for(dut: Any) -> None:
    """A later part at a link's head says that it has none of this event: the event is sent at once, without what is missing."""
    rng = random_numbers()
    bench = await started(dut)
    for link in range(1, LINKS):
        bench.send(link, part(rng, 10))
    for link in range(LINKS):
        bench.send(link, part(rng, 20))
    await bench.sources.drain()
    await bench.wait(60)
    assert [(event.key, mask) for event, mask in bench.seen] == [(10, ALL & ~1), (20, ALL)]
    await bench.finish()
    bench.expect_counts(count_missing=1, count_complete=1)


@cocotb.test
async def a_full_buffer_does_not_wait(dut: Any) -> None:
    """One link sends more than its buffer holds and the others nothing: its events leave early, none is lost."""
    rng = random_numbers()
    bench = await started(dut)
    events = DEPTH_WORDS
    for number in range(events):
        bench.send(0, part(rng, 10 * number + 10, hits=9))
    await bench.sources.drain()
    await bench.wait(300)
    assert 0 < len(bench.seen) < events
    bench.expect_counts(count_overflow=len(bench.seen))
    held = events - len(bench.seen)
    assert DEPTH_WORDS - 2 * 33 < 2 * held <= DEPTH_WORDS + 16, "the buffer was not used"  # two words of hits each
    for number in range(len(bench.seen), events):
        for link in range(1, LINKS):
            bench.send(link, part(rng, 10 * number + 10))
    await bench.finish()
    assert len(bench.seen) == events
    assert sum(bench.by_link["drop_late"]) == 0


@cocotb.test
async def a_buffer_is_full_when_the_largest_part_has_no_room(dut: Any) -> None:
    """To the word of hits, and to the header: one of each stands at the output, the others in the memory."""
    rng = random_numbers()
    bench = await started(dut)
    for hits, fits in ((16, (DEPTH_WORDS - PART_WORDS_MAX + 1) // 2), (0, DEPTH_WORDS - 1)):
        await bench.begin()
        for number in range(fits):
            bench.send(0, part(rng, number + 1, hits=hits))
        if hits:
            bench.send(0, part(rng, fits + 1, hits=8))  # the last word for which there is room
        await bench.sources.drain()
        await bench.wait(40)
        assert bench.seen == [], f"{hits} hits: too early"
        bench.send(0, part(rng, fits + 2, hits=min(hits, 1)))
        await bench.sources.drain()
        await bench.wait(40)
        assert bench.counts["count_overflow"] == len(bench.seen) > 0, f"{hits} hits: too late"


@cocotb.test
async def a_slow_reader_holds_up_the_links(dut: Any) -> None:
    """Nothing is lost or changed while the output stands still for long."""
    rng = random_numbers()
    bench = await started(dut)
    for hits, events in ((9, DEPTH_WORDS), (0, DEPTH_WORDS + 20)):  # words of hits fill the buffer, or headers
        await bench.begin()
        bench.sink.pause = lambda: True
        streams: list[list[Event]] = [[] for _ in range(LINKS)]
        for number in range(events):
            for link in range(LINKS):
                streams[link].append(part(rng, 7 * number + 1, hits=hits))
                bench.send(link, streams[link][-1])
        await bench.wait(4 * DEPTH_WORDS)
        assert any(bench.sources.queues), "the buffers did not fill"
        bench.sink.pause = pauses(rng, 0.3)
        await bench.finish()
        wanted = merge(streams, ALL, HITS_MAX, JUMP)
        assert bench.seen == wanted.events
    bench.expect_counts(count_complete=len(wanted.events), count_cut=wanted.cut)


@cocotb.test
async def one_wild_clock_does_not_move_the_horizon(dut: Any) -> None:
    """A key far ahead on one link is dropped, on two links it is believed; then what was before it is late, until that lapses."""
    rng = random_numbers()
    bench = await started(dut)
    for link in range(LINKS):
        bench.send(link, part(rng, 100))
    bench.send(0, part(rng, 100 + JUMP + 1))
    for link in range(LINKS):
        bench.send(link, part(rng, 200))
    await bench.sources.drain()
    await bench.wait(100)
    assert [(event.key, mask) for event, mask in bench.seen] == [(100, ALL), (200, ALL)]
    assert bench.by_link["drop_jump"] == [1, *[0] * (LINKS - 1)]
    far = 200 + 5 * JUMP
    for link in range(LINKS):
        bench.send(link, part(rng, far))
        bench.send(link, part(rng, 300))
    await bench.sources.drain()
    await bench.wait(100)
    assert [event.key for event, _ in bench.seen] == [100, 200, far]
    assert bench.by_link["drop_late"] == [1] * LINKS
    bench.configure(lapse=50)
    await bench.wait(60)
    for link in range(LINKS):
        bench.send(link, part(rng, 400))
    await bench.sources.drain()
    await bench.wait(60)
    assert bench.seen[-1][0].key == 400
    bench.configure()
    dut.forget.value = 1
    await bench.wait(1)
    dut.forget.value = 0
    for link in range(LINKS):
        bench.send(link, part(rng, 5))
    await bench.sources.drain()
    await bench.wait(60)
    assert [(event.key, mask) for event, mask in bench.seen[-2:]] == [(400, ALL), (5, ALL)]
    bench.expect_counts(count_complete=5)
    assert bench.balanced()


@cocotb.test
async def a_jump_up_to_the_limit_is_no_jump(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    bench.configure(window=0, jump=1000)
    bench.send(0, part(rng, KEY_MASK - 10))
    bench.send(0, part(rng, KEY_MASK + 1 + 989))
    bench.send(0, part(rng, 1991))
    await bench.finish()
    assert [event.key for event, _ in bench.seen] == [KEY_MASK - 10, 989]
    assert bench.by_link["drop_jump"][0] == 1


@cocotb.test
async def only_complete_events(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    bench.configure(complete_only=1)
    complete = 0
    for number in range(60):
        missing = rng.choice([None, rng.randrange(LINKS)])
        complete += missing is None
        for link in range(LINKS):
            if link != missing:
                bench.send(link, part(rng, 50 * number + 1))
        if number % 10 == 9:
            await bench.sources.drain()
    await bench.finish()
    assert len(bench.seen) == complete
    assert all(mask == ALL for _, mask in bench.seen)
    bench.expect_counts(
        count_complete=complete, count_missing=60 - complete, drop_incomplete=60 - complete, count_cut=bench.counts["count_cut"]
    )


@cocotb.test
async def hits_beyond_the_most_are_cut(dut: Any) -> None:
    """The first HITS_MAX of all parts are kept, the parts' order being that of the links."""
    rng = random_numbers()
    bench = await started(dut)
    streams: list[list[Event]] = [[] for _ in range(LINKS)]
    sizes = [HITS_MAX - 1, HITS_MAX, HITS_MAX + 1, 255, 0]
    share = HITS_MAX // LINKS  # the first events: all there can be, just enough, one more
    others = [share] * (LINKS - 1)
    events = [[255] * LINKS, [HITS_MAX - sum(others), *others], [HITS_MAX + 1 - sum(others), *others]]
    events += [[rng.choice([rng.choice(sizes), share]) for _ in range(LINKS)] for _ in range(9)]
    for number, hits in enumerate(events):
        for link in range(LINKS):
            streams[link].append(part(rng, number * 9 + 3, hits[link]))
            bench.send(link, streams[link][-1])
        await bench.sources.drain()
        await bench.wait(70 * LINKS)
    await bench.finish()
    wanted = merge(streams, ALL, HITS_MAX, JUMP)
    assert wanted.cut > 2
    bench.matches(wanted)


@cocotb.test
async def reset_in_mid_event(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(20):
        for number in range(10):
            for link in range(LINKS):
                bench.sources.send(link, Packet(event_bytes(part(rng, 1000 + number))))
        await bench.wait(rng.randint(1, 80))
        bench.sink.pause = rng.choice([never, lambda: True])  # a word may wait when reset comes
        await bench.wait(rng.randint(1, 20))
        dut.rst.value = 1
        bench.sources.clear()
        await bench.wait(3)
        bench.seen.clear()  # from here on nothing of before may come
        dut.rst.value = 0
        await bench.wait(2)
        bench.sink.pause = never
        before = dict(bench.counts)
        for link in range(LINKS):
            bench.send(link, part(rng, 10))
        await bench.sources.drain()
        await bench.wait(60)
        assert [(event.key, mask) for event, mask in bench.seen] == [(10, ALL)]
        assert bench.counts["count_complete"] == before["count_complete"] + 1
        assert bench.counts["count_missing"] == before["count_missing"]
