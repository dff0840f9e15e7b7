# SPDX-License-Identifier: Apache-2.0
"""apelink: two ends and a wire with a delay. Words literally, any payload, every word of a stream flipped, lost and doubled, credits lost, links cut, and how
many words of the link a payload costs, to the word."""

from collections import Counter, deque
from collections.abc import Iterable
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common import apenet, streams
from common.apenet import MAGIC, Packet
from common.bench import PARAMETERS, SHORT, Bench, never, pauses, random_numbers
from common.streams import StreamSink, StreamSource

DELAY = PARAMETERS.get("DELAY_WORDS", 150)
DATA_WORDS = PARAMETERS.get("DATA_WORDS", 1024)
HEADER_WORDS = PARAMETERS.get("HEADER_WORDS", 256)
PERIOD = PARAMETERS.get("CREDIT_PERIOD_WORDS", 192)
SKIPS = PARAMETERS.get("SKIP_PERIOD_WORDS", 0)
TOTALS = ["sent", "down", "good", "flagged", "crc", "cut", "header", "lost", "noise", "corrected"]
FATES = ["good", "flagged", "crc", "cut", "header", "lost"]  # the first four come out
FLIPS, LOSES, DOUBLES = 1, 2, 3
ENDS = "ab"


class LinkBench(Bench):
    """Packets in and out at both ends. expected[end, vc]: those that have to come, in their order; what else comes must be flagged. missed: those that others
    came before."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        dut.link_up.value = dut.pauses.value = dut.lose_a.value = dut.lose_b.value = dut.fault_arm.value = dut.fault_kind.value = 0
        dut.a_state.value = dut.b_state.value = 0
        self.sources = {end: StreamSource(self, f"{end}_s_axis") for end in ENDS}
        self.sinks = {}
        self.expected: dict[tuple[str, int], deque[Packet]] = {}
        self.came: Counter[str] = Counter()
        self.flagged: list[Packet] = []
        self.missed: list[Packet] = []
        self.last_cycles: list[int] = []  # of the packets that came at b
        for end in ENDS:
            for vc in (0, 1):
                self.expected[end, vc] = deque()
                take = lambda packet, end=end, vc=vc: self._take(end, vc, packet)  # noqa: E731
                self.sinks[end, vc] = StreamSink(self, f"{end}_m{vc}_axis", take)

    def totals(self, end: str) -> dict[str, int]:
        word = int(getattr(self.dut, f"{end}_totals").value)
        return {name: word >> 32 * place & 0xFFFFFFFF for place, name in enumerate(TOTALS)}

    def send(self, packet: Packet, end: str = "a", *, comes: bool = True) -> None:
        self.sources[end].send(streams.Packet(apenet.bytes_of(packet.words)))
        if comes:
            self.expected["b" if end == "a" else "a", packet.vc].append(packet)

    def _take(self, end: str, vc: int, came: streams.Packet) -> None:
        words = apenet.words_of(came.data)
        flagged = words[-1] >> 32 == apenet.FLAGGED_STATUS
        packet = Packet(words[0], words[1:-1], flagged)
        assert len(packet.payload) == (apenet.header_field(words[0], "bytes") + 15) // 16, "not as many words as its header says"
        assert packet.vc == vc
        self.came[end] += 1
        if end == "b":
            self.last_cycles.append(came.last_cycle)
        wanted = self.expected[end, vc]
        if packet in wanted:
            assert flagged or words == packet.words
            while wanted[0] != packet:
                self.missed.append(wanted.popleft())
            wanted.popleft()
        else:
            assert flagged, f"{end}{vc}: a packet came as good that is not the one expected, of {len(packet.payload)} words"
            self.flagged.append(packet)

    def done(self) -> bool:
        return not any(self.expected.values())

    async def until_done(self, cycles: int = 100_000) -> None:
        await self.wait_until(self.done, cycles, "all packets", step=8)

    async def up(self) -> None:
        self.dut.link_up.value = 1
        await self.wait(2 * DELAY + 20)

    def check_books(self, end: str, sent: int, missed: int = 0) -> None:
        assert len(self.missed) == missed
        totals = self.totals(end)
        assert sum(totals[name] for name in FATES) == sent, f"{sent} sent, {totals}"
        assert self.came[end] == sum(totals[name] for name in FATES[:4])


async def started(dut: Any) -> LinkBench:
    bench = LinkBench(dut)
    await bench.reset()
    await bench.up()
    return bench


def as_written(word: int) -> str:
    return word.to_bytes(16, "little").hex(" ")


def random_packet(rng: Random, words_max: int, vc: int | None = None) -> Packet:
    size = rng.choice([0, rng.randint(1, 40), rng.randint(1, 16 * words_max)])
    fields = {
        "vc": rng.randrange(2) if vc is None else vc,
        "process": rng.getrandbits(16),
        "x": rng.getrandbits(6),
        "y": rng.getrandbits(5),
    }
    packet = apenet.packet(rng.randbytes(size), **fields, address=rng.getrandbits(48), hops=rng.getrandbits(10))
    words = len(packet.payload)
    if words and size % 16 == 0:
        kind = rng.randrange(4)
        look_alikes = [apenet.control(rng.randint(0, 5), rng.getrandbits(88)), apenet.with_check(packet.head), apenet.footer(0, [])]
        if kind == 1:
            packet.payload = [MAGIC] * words
        elif kind == 2:
            packet.payload = [MAGIC if place % 2 else rng.choice(look_alikes) for place in range(words)]
        elif kind == 3:
            packet.payload = [rng.choice([MAGIC, *look_alikes]) for _ in range(words)]
    return packet


async def link_words(bench: LinkBench, count: int) -> list[int]:
    """The next words that a gives to the wire."""
    words: list[int] = []
    while len(words) < count:
        await RisingEdge(bench.dut.clk)
        if bench.dut.a_word_valid.value == 1:
            words.append(int(bench.dut.a_word.value))
    return words


def stuffed(words: Iterable[int]) -> list[int]:
    return [word for given in words for word in ([MAGIC, apenet.control(apenet.LITERAL)] if given == MAGIC else [given])]


@cocotb.test
async def words_of_the_link(dut: Any) -> None:
    """A CREDIT as soon as the link is up, then a packet of each kind: START, header with its code, payload with MAGIC in it, footer."""
    limits = apenet.counts(1024, 256, 1030, 258)  # the examples of docs/apelink-format.md
    start = apenet.control(apenet.START, limits | apenet.counts(7, 4, 6) << 44 | 2 << 77 | 1 << 86)
    credit = apenet.control(apenet.CREDIT, limits | apenet.counts(5, 2, 9, 6) << 44)
    assert as_written(start) == "01 00 04 88 01 05 72 00 02 18 40 40 08 3f f7 d2"
    assert as_written(credit) == "02 00 04 88 01 05 52 00 01 24 c0 00 0f 82 5e d0"
    assert as_written(MAGIC) == "44 73 70 03 2e 8a 19 13 d3 08 a3 85 88 6a 3f 24"
    rng = random_numbers()
    bench = LinkBench(dut)
    await bench.reset()
    dut.link_up.value = 1
    full = apenet.counts(DATA_WORDS, HEADER_WORDS, DATA_WORDS, HEADER_WORDS)
    assert await link_words(bench, 2) == [MAGIC, apenet.control(apenet.CREDIT, full)]
    await bench.wait(DELAY + 20)
    payload = [rng.getrandbits(128), MAGIC, MAGIC, apenet.control(apenet.START), 0]
    packets = [
        apenet.packet(b"", vc=1, x=5, address=77),
        apenet.packet(apenet.bytes_of(payload), vc=1, y=3),
        apenet.packet(rng.randbytes(20), vc=0, hops=4),
    ]
    wanted, sent_data, sent_headers = [], [0, 0], [0, 0]
    for packet in packets:
        content = full | apenet.counts(sent_data[packet.vc], *sent_headers) << 44 | len(packet.payload) << 77 | packet.vc << 86
        wanted += [MAGIC, apenet.control(apenet.START, content), apenet.with_check(packet.head), *stuffed(packet.words[1:])]
        sent_data[packet.vc] += len(packet.payload)
        sent_headers[packet.vc] += 2
        bench.send(packet)
    words = await link_words(bench, len(wanted))
    others = [
        place
        for place in range(len(words) - 1)
        if words[place] == MAGIC and words[place + 1] & 0xFF in (apenet.CREDIT, apenet.SKIP)
    ]
    for place in reversed(others):
        del words[place : place + 2]
    assert words == wanted[: len(words)]
    assert len(others) <= (1 if PERIOD > 100 else 4)
    await bench.until_done()


@cocotb.test
async def any_packets_with_any_pauses(dut: Any) -> None:
    """Both directions and both virtual channels: nothing is lost, doubled or changed, whatever the payload looks like."""
    rng = random_numbers()
    bench = await started(dut)
    sent = Counter[str]()
    for share in (0.0, 0.5):
        dut.pauses.value = int(share > 0)
        for end in ENDS:
            bench.sources[end].pause = pauses(rng, share / 2)
            for vc in (0, 1):
                bench.sinks[end, vc].pause = pauses(rng, share)
            for _ in range(20 if SHORT else 120):
                packet = random_packet(rng, rng.choice([4, 4, 30, 256]))
                packet.flagged = rng.random() < 0.1
                bench.send(packet, end)
                sent[end] += 1
        await bench.until_done()
    await bench.wait(20)
    for end, other in ("ab", "ba"):
        bench.check_books(other, sent[end])
        totals = bench.totals(other)
        assert totals["good"] + totals["flagged"] == sent[end] == bench.totals(end)["sent"], totals
        assert totals["noise"] == totals["corrected"] == 0


@cocotb.test
async def memories_fill_and_nothing_overflows(dut: Any) -> None:
    """Nobody takes what comes: the sender stops, and goes on where it stopped; a virtual channel's reader is not held up by the other's."""
    rng = random_numbers()
    bench = await started(dut)
    sent = 0
    for words in (0, 1, 30):
        for vc in (0, 1):
            bench.sinks["b", vc].pause = lambda: True
        await bench.wait(3)
        for _ in range(HEADER_WORDS + 6 if words < 2 else min(2 * DATA_WORDS // 30, HEADER_WORDS) + 6):
            bench.send(apenet.packet(rng.randbytes(16 * words), vc=rng.randrange(2)))
            sent += 1
        before = bench.came["b"]
        await bench.wait(2 * DELAY + 3 * DATA_WORDS)
        assert bench.came["b"] == before
        assert bench.totals("b")["good"] < sent, "the sender did not stop"
        for vc in (0, 1):
            bench.sinks["b", vc].pause = pauses(rng, 0.2)
        await bench.until_done()
    bench.check_books("b", sent)


@cocotb.test
async def room_is_used_to_the_last_word(dut: Any) -> None:
    """After more was lost on the way than there is room for: so many words as the memory has, and the one that is offered already, and not one more."""
    rng = random_numbers()
    bench = LinkBench(dut)
    dut.link_up.value = 1
    await bench.reset()
    await bench.wait(2 * DELAY + 20)
    lost = DATA_WORDS // 100 | 1
    for _ in range(lost):
        dut.lose_a.value = 1
        bench.send(apenet.packet(rng.randbytes(16 * 101), vc=1), comes=False)
        await bench.sources["a"].drain()
        await bench.wait(4)
        dut.lose_a.value = 0
        await bench.wait(2 * DELAY + 2 * PERIOD + 20)
    assert bench.totals("b")["lost"] == lost
    for vc in (0, 1):
        bench.sinks["b", vc].pause = lambda: True
    await bench.wait(5)
    count = DATA_WORDS // 256 + 1
    sizes = [(DATA_WORDS + 1 + place) // count for place in range(count)]
    assert sum(sizes) == DATA_WORDS + 1
    for vc in (0, 1):
        for words in sizes:
            bench.send(apenet.packet(rng.randbytes(16 * words), vc=vc))
    await bench.wait(2 * DELAY + 4 * DATA_WORDS)
    assert bench.totals("b")["good"] == 2 * count, "a word of room is not used"
    bench.send(apenet.packet(bytes(16), vc=1))
    await bench.wait(2 * DELAY + 200)
    assert bench.totals("b")["good"] == 2 * count, "a word more than there is room for"
    for vc in (0, 1):
        bench.sinks["b", vc].pause = never
    await bench.until_done()
    await bench.wait(20)
    bench.check_books("b", lost + 2 * count + 1)


def stream_of_faults(rng: Random) -> list[Packet]:
    return [
        apenet.packet(b"", vc=0, address=rng.getrandbits(48)),
        apenet.packet(apenet.bytes_of([rng.getrandbits(128), MAGIC, rng.getrandbits(128)]), vc=1, process=rng.getrandbits(16)),
        apenet.packet(rng.randbytes(30), vc=0, x=rng.getrandbits(6)),
    ]


async def fault(bench: LinkBench, kind: int, at: int, flips: int) -> None:
    dut = bench.dut
    dut.fault_arm.value = 1
    await bench.wait(2)
    dut.fault_kind.value, dut.fault_at.value, dut.fault_flips.value = kind, at, flips
    dut.fault_arm.value = 0


@cocotb.test
async def every_word_flipped_lost_and_doubled(dut: Any) -> None:
    """Of a stream of three packets: each fault has one name, each packet one fate, no bad one is given out as good, and what comes after is good."""
    rng = random_numbers()
    bench = await started(dut)
    sent, hit, names = 0, 0, Counter[tuple[int, str]]()
    words = 18 + 2  # those of the stream, and of a CREDIT after it, or of several in it
    for kind in (FLIPS, LOSES, DOUBLES):
        for at in range(words):
            before = bench.totals("b")
            await fault(bench, kind, at, 1 << rng.randrange(128))
            for packet in stream_of_faults(rng):
                bench.send(packet)
            await bench.wait(PERIOD + 60)
            await bench.sources["a"].drain()
            dut.fault_kind.value = 0
            for vc in (0, 1, 0):
                bench.send(apenet.packet(rng.randbytes(33), vc=vc))
            sent += 6
            await bench.sources["a"].drain()
            await bench.wait(DELAY + PERIOD + 40)
            after = bench.totals("b")
            told = {name: after[name] - before[name] for name in TOTALS[3:] if after[name] != before[name]}
            where = f"word {at}, kind {kind}: {told}"
            assert bench.done(), where
            assert sum(told.values()) == 1, where
            hit += not {"noise", "corrected"} & told.keys()
            assert len(bench.missed) == hit, where
            names[kind, next(iter(told))] += 1
    bench.check_books("b", sent, hit)
    cocotb.log.debug("%s", names)
    assert {name for _, name in names} == {"crc", "cut", "header", "lost", "noise", "corrected"}, names


@cocotb.test
async def two_wrong_bits_of_a_header(dut: Any) -> None:
    """The packet is gone and counted; its room is not."""
    rng = random_numbers()
    bench = await started(dut)
    trials = 20 if SHORT else 60
    for _ in range(trials):
        first, second = rng.sample(range(128), k=2)
        await fault(bench, FLIPS, 2, 1 << first | 1 << second)
        bench.send(apenet.packet(rng.randbytes(16 * 4), vc=1))
        await bench.wait(30)
        dut.fault_kind.value = 0
        bench.send(apenet.packet(rng.randbytes(16 * 4), vc=1))
        await bench.sources["a"].drain()
    await bench.until_done()
    await bench.wait(20)
    totals = bench.totals("b")
    if PERIOD > 100:  # else control words come in between, and one of them may be hit
        assert totals["header"] == trials, totals
    bench.check_books("b", 2 * trials, sum(totals[name] for name in ("crc", "cut", "header", "lost")))


@cocotb.test
async def credits_lost(dut: Any) -> None:
    """All that comes back is lost for a while: the sender stops, and then goes on; a's counts wrap several times."""
    rng = random_numbers()
    bench = await started(dut)
    sent = 0
    for _ in range(3 if SHORT else 8):
        for _ in range(10 * DATA_WORDS // 256 + 2):
            bench.send(random_packet(rng, 100, vc=rng.randrange(2)))
            sent += 1
        dut.lose_b.value = 1
        await bench.wait(rng.randint(100, 2000))
        dut.lose_b.value = 0
    await bench.until_done()
    await bench.wait(20)
    bench.check_books("b", sent)
    assert bench.totals("b")["good"] == sent


@cocotb.test
async def counts_wrap(dut: Any) -> None:
    """More headers and words than the counts of 11 bits go to."""
    rng = random_numbers()
    bench = await started(dut)
    packets = 1100 if SHORT else 4000
    for place in range(packets):
        bench.send(apenet.packet(rng.randbytes(48) if place % 4 == 0 else b"", vc=int(place % 8 == 0)))
    await bench.until_done()
    await bench.wait(20)
    bench.check_books("b", packets)


@cocotb.test
async def a_link_goes_silent_or_down(dut: Any) -> None:
    """In mid-packet: what was in flight ends, with its name; the next good packet comes, after silence and with a new beginning of the counts."""
    rng = random_numbers()
    bench = await started(dut)
    for down in (False, True, False, True):
        begun, taken = bench.totals("b"), bench.totals("a")
        for vc in (0, 1, 0):
            bench.send(apenet.packet(rng.randbytes(16 * 100), vc=vc))
        await bench.wait(rng.randint(20, 90) + (DELAY if down else 0))  # in mid-packet where the words are lost: at a's end, or b's
        before = bench.totals("b"), bench.totals("a")
        (dut.link_up if down else dut.lose_a).value = int(not down)
        await bench.wait(5)
        for _ in range(2):
            bench.send(apenet.packet(rng.randbytes(50)))
        await bench.wait(4 * PERIOD + DELAY + 400)
        assert (dut.b_silent.value == 1) == (not down)
        cut = bench.totals("b")["cut"] - before[0]["cut"]
        assert cut == 1, f"{cut} cut"
        (dut.link_up if down else dut.lose_a).value = int(down)
        await bench.wait(2 * DELAY + PERIOD + 400)
        dropped = bench.totals("a")["down"] - before[1]["down"]
        assert (dropped > 0) == down
        for vc in (0, 1, 0):
            bench.send(random_packet(rng, 5, vc))
        await bench.until_done()
        await bench.wait(20)
        now = bench.totals("b")
        fates = sum(now[name] - begun[name] for name in FATES)
        sent = bench.totals("a")["sent"] - taken["sent"]
        assert sent + dropped == 8
        assert fates <= sent if down else fates == sent, (
            f"{fates} fates of {sent}"
        )  # what was in flight in a link that went down is seen by no one
    assert bench.totals("b")["noise"] == 0


def link_words_of(payload_words: int) -> int:
    """Of a packet in a row of its like: MAGIC, START, header and footer, and two of a CREDIT for each period that ends before its last word."""
    told = 0
    while (told + 1) * PERIOD < payload_words + 4 + 2 * told:
        told += 1
    return payload_words + 4 + 2 * told


@cocotb.test
async def efficiency_is_the_formula(dut: Any) -> None:
    """One direction full, its credits in the other: to the word. And both directions full, where credits are in the STARTs."""
    rng = random_numbers()
    bench = await started(dut)
    if SKIPS or 2 * DELAY + PERIOD > DATA_WORDS - 256:
        return  # the formula is of a sender that never waits
    for size, goal in ((4096, 0.95), (256, 0.80), (16, 0.0), (0, 0.0)):
        count = 3 * 2048 // (size // 16 + 4) // (2 if SHORT else 1) + 12
        for both in (False, True):
            bench.last_cycles.clear()
            for _ in range(count):
                bench.send(apenet.packet(rng.randbytes(size)))
                if both:
                    bench.send(apenet.packet(rng.randbytes(size)), "b")
            await bench.until_done()
            words = size // 16
            cycles = bench.last_cycles[-1] - bench.last_cycles[0]
            assert cycles == (count - 1) * link_words_of(words), (
                f"{size} B: {cycles / (count - 1)} words a packet, not {link_words_of(words)}"
            )
            share = words / link_words_of(words)
            assert share >= goal
            if not both:
                print(
                    f"figure: {size} B: {share:.4f} of the link's words are payload, {link_words_of(words)} words a packet, round trip {2 * DELAY}"
                )


@cocotb.test
async def each_end_is_told_what_the_other_says_of_itself(dut: Any) -> None:
    """In SKIPs, at once and beside packets; what is lost is told again, or forgotten; nothing is told of a link that is down."""
    rng = random_numbers()
    bench = await started(dut)
    own = {"a": dut.a_state, "b": dut.b_state}
    seen = {"a": dut.b_neighbour, "b": dut.a_neighbour}  # at the other end
    dut.pauses.value = 1
    said = dict.fromkeys(ENDS, 0)
    for turn in range(12 if SHORT else 60):
        for end in ENDS:
            bench.send(random_packet(rng, 30), end)
        changes = [end for end in ENDS if rng.random() < 0.7]
        for end in changes:
            said[end] = rng.choice([0, 1, 255, rng.getrandbits(8)])
            own[end].value = said[end]
        # A word of a packet, a CREDIT and a SKIP that may be under way already, and those two words; each may pause.
        await bench.wait_until(lambda: all(seen[end].value == said[end] for end in ENDS), DELAY + 80, f"states of turn {turn}")
        for _ in range(rng.choice([1, 40, 8 * PERIOD])):
            await bench.wait(1)
            assert all(seen[end].value == said[end] for end in ENDS)
    await bench.until_done(200_000)
    dut.pauses.value = 0
    # Lost, and told again; then its end is lost, and it is forgotten.
    own["b"].value = 0
    own["a"].value = 0
    await bench.wait(2 * DELAY + 40)
    dut.lose_a.value = 1
    own["a"].value = 77
    await bench.wait(20)
    dut.lose_a.value = 0
    if not SKIPS:  # each of them tells
        await bench.wait(DELAY + 20)
        assert seen["a"].value == 0
    await bench.wait_until(lambda: seen["a"].value == 77, SKIPS + DELAY + 5 * PERIOD, "what was lost is told again", step=4)
    dut.lose_a.value = 1
    own["a"].value = 0
    await bench.wait(20)
    dut.lose_a.value = 0
    if not SKIPS:
        await bench.wait(DELAY + 8 * PERIOD)
        assert seen["a"].value == 77
    await bench.wait_until(lambda: seen["a"].value == 0, 16 * 4 * PERIOD, "what is not told any more is forgotten", step=16)
    # A link that was down begins with nothing, and is told anew.
    own["b"].value = 5
    await bench.wait_until(lambda: seen["b"].value == 5, DELAY + 20, "5")
    dut.link_up.value = 0
    await bench.wait(3)
    assert seen["b"].value == 0
    await bench.wait(DELAY)
    assert seen["b"].value == 0
    dut.link_up.value = 1
    await bench.wait_until(lambda: seen["b"].value == 5, DELAY + 20, "5 again")
