# SPDX-License-Identifier: Apache-2.0
"""km3_frame_tx and km3_frame_rx, with km3_slot and km3_time before them: every byte of a frame as docs/design/km3-link.md says, every slot full, empty and between, express
codes anywhere, and for each field a word that is other: each has its name, and nothing of a wrong head is told."""

import zlib
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge, Timer
from common.bench import PARAMETERS, SHORT, Bench, random_numbers

FRAME_WORDS = PARAMETERS.get("FRAME_WORDS", 96)
FRAMES_PER_S = PARAMETERS.get("FRAMES_PER_S", 50)
SLOT_WORDS = (20, 1, 5)
FIFO_WORDS = 32
HEAD_WORDS, CHECK_WORDS = 5 + len(SLOT_WORDS), 2
FIRST_SLOT = HEAD_WORDS + CHECK_WORDS
FRAME_END = FIRST_SLOT + sum(SLOT_WORDS) + CHECK_WORDS
K28_5, K27_7, K29_7, D16_2, UP, DOWN = 0xBC, 0xFB, 0xFD, 0x50, 0xC9, 0xA6
IDLE = (1, D16_2 << 8 | K28_5)
COUNTERS = (
    *("count_good", "drop_head", "drop_floor", "drop_cut", "drop_code", "drop_symbol", "drop_crc"),
    *("error_code", "error_order", "error_direction", "error_stray", "error_express", "error_time"),
)  # fmt: skip
Word = tuple[int, int]  # which bytes are control symbols, both bytes


def crc(words: list[Word]) -> list[Word]:
    """CRC-32 of these words' bytes, as zlib has it, in two words."""
    value = zlib.crc32(b"".join(data.to_bytes(2, "little") for _, data in words))
    return [(0, value & 0xFFFF), (0, value >> 16)]


def frame_of(second: int, number: int, floor: int, slots: list[list[int]]) -> list[Word]:
    """As the page says, from the first word of the head to the last of the CRC."""
    counts = [(0, len(words)) for words in slots]
    head = [(1, UP << 8 | K28_5), (0, number), (0, second & 0xFFFF), (0, second >> 16), (0, 2 << 8 | floor), *counts]
    body: list[Word] = []
    for size, words in zip(SLOT_WORDS, slots, strict=True):
        body += [(0, word) for word in words] + [IDLE] * (size - len(words))
    return [*head, *crc(head), *body, *crc(head + body)]


class Link:
    """Sends what it is given, frame by frame; notes what goes over and what comes out."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.rng = dut, random_numbers()
        self.bench = Bench(dut, COUNTERS)
        self.waiting: list[list[int]] = [[] for _ in SLOT_WORDS]
        self.over: list[Word] = []
        self.ends: list[int] = []  # how many words of `over` there were with the last one of a frame
        self.heads: list[tuple[int, int]] = []  # second, number
        self.frames: list[tuple[bool, list[list[int]]]] = []
        self.codes: list[tuple[int, int]] = []  # cycle, code
        self.taken: list[tuple[int, int]] = []
        self.begun: list[tuple[int, int]] = []  # cycle, frame's number
        self.since: list[tuple[int, int]] = []  # cycle of the head's first word, its number
        self.lost = 0
        self.words: list[list[int]] = [[] for _ in SLOT_WORDS]
        self.replace: dict[int, Word | None] = {}  # by place in a frame, once; None: a wrong code
        self.place = -1
        self.stream: list[Word] = []  # what the receiver gets in the place of all that is sent

    async def start(self, second: int = 7, number: int = 0) -> None:
        dut = self.dut
        for name in ("load", "other", "error", "s_valid", "express_in_valid"):
            getattr(dut, name).value = 0
        dut.locked.value = dut.sends.value = 1
        dut.floor.value = dut.sent_floor.value = 3
        await self.bench.reset()
        await self.set_time(second, number)
        cocotb.start_soon(self.watch())
        cocotb.start_soon(self.feed())
        cocotb.start_soon(self.exchange())

    async def set_time(self, second: int, number: int, word: int = FRAME_WORDS - 4) -> None:
        self.dut.load.value, self.dut.load_word.value, self.dut.load_at.value = 1, word, second << 16 | number
        await RisingEdge(self.dut.clk)
        self.dut.load.value = 0

    def give(self, counts: list[int]) -> list[list[int]]:
        """So many words into each slot's FIFO."""
        words = [[self.rng.randrange(1 << 16) for _ in range(count)] for count in counts]
        for slot, more in zip(self.waiting, words, strict=True):
            slot += more
        return words

    async def feed(self) -> None:
        dut = self.dut
        while True:
            heads = [slot[0] if slot else None for slot in self.waiting]
            dut.s_valid.value = sum(1 << s for s, word in enumerate(heads) if word is not None)
            dut.s_data.value = sum((word or 0) << 16 * s for s, word in enumerate(heads))
            await RisingEdge(dut.clk)
            for s, word in enumerate(heads):
                if word is not None and int(dut.s_ready.value) >> s & 1:
                    self.waiting[s].pop(0)

    async def exchange(self) -> None:
        """Gives the receiver another word in the place of one of the frame."""
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            # The word that comes next: the encoder's words are two cycles after the time base's.
            place = (int(dut.word.value) - 1) % FRAME_WORDS
            wanted = self.replace.pop(place, 0) if place in self.replace else 0
            wanted = self.stream.pop(0) if self.stream else wanted
            dut.other.value = int(isinstance(wanted, tuple))
            dut.error.value = int(wanted is None)
            if isinstance(wanted, tuple):
                dut.other_k.value, dut.other_data.value = wanted

    async def watch(self) -> None:
        dut = self.dut
        while True:
            await RisingEdge(dut.clk)
            cycle = self.bench.cycle
            self.over.append((int(dut.tx_k.value), int(dut.tx_data.value)))
            if dut.ends.value == 1:
                self.ends.append(len(self.over))
            if dut.start.value == 1:
                self.begun.append((cycle, int(dut.at.value) & 0xFFFF))
            if dut.m_head.value == 1:
                head = int(dut.head.value)
                self.heads.append((head >> 16 & 0xFFFFFFFF, head & 0xFFFF))
                self.since.append((cycle - int(dut.since.value), head & 0xFFFF))
            if dut.m_valid.value == 1:
                self.words[int(dut.m_slot.value)].append(int(dut.m_data.value))
            if dut.m_end.value == 1:
                self.frames.append((bool(dut.m_good.value), self.words))
                self.words = [[] for _ in SLOT_WORDS]
            if dut.express_valid.value == 1:
                self.codes.append((cycle, int(dut.express.value)))
            self.lost += int(dut.lost.value)

    async def code(self, value: int) -> None:
        self.dut.express_in_valid.value, self.dut.express_in.value = 1, value
        while True:
            await RisingEdge(self.dut.clk)
            if self.dut.express_in_ready.value == 1:
                break
        self.taken.append((self.bench.cycle, value))
        self.dut.express_in_valid.value = 0

    async def frame(self, count: int = 1) -> None:
        await self.bench.wait(count * FRAME_WORDS)

    async def to_word(self, word: int) -> None:
        while int(self.dut.word.value) != word:
            await RisingEdge(self.dut.clk)

    async def hear(self, words: list[Word], after: int = 12) -> dict[str, int]:
        """The receiver hears these words, and idle ones after them; what is counted of them."""
        self.forget()
        self.stream = [*words, *[IDLE] * (after + 4)]
        await self.bench.wait(len(words) + after)
        return self.counts()

    def counts(self) -> dict[str, int]:
        return {name: count for name, count in self.bench.counts.items() if count} | ({"lost": self.lost} if self.lost else {})

    def forget(self) -> None:
        self.bench.forget_counts()
        self.lost = 0


@cocotb.test
async def bytes_of_a_frame(dut: Any) -> None:
    """Slots full, empty, one full among empty ones, and any; words that do not fit wait for the next frame."""
    link = Link(dut)
    await link.start(second=0x1235_5679, number=FRAMES_PER_S - 2)
    fills = [[0, 0, 0], list(SLOT_WORDS), [20, 0, 0], [0, 1, 0], [0, 0, 5], [23, 1, 7]]
    fills += [[link.rng.randrange(size + 1) for size in SLOT_WORDS] for _ in range(10 if SHORT else 100)]
    queued: list[list[int]] = [[] for _ in SLOT_WORDS]
    second, number = 0x1235_5679, FRAMES_PER_S - 1  # of the frame that begins now
    await link.to_word(0)
    await link.to_word(FRAME_END + 8)
    for counts in fills:
        for slot, more in zip(queued, link.give(counts), strict=True):
            slot += more
        number = number + 1
        if number == FRAMES_PER_S:
            number, second = 0, second + 1
        link.over.clear()
        link.ends.clear()
        await link.to_word(FRAME_WORDS - 1)
        await link.to_word(FRAME_END + 4)
        sent = [slot[:size] for slot, size in zip(queued, SLOT_WORDS, strict=True)]
        queued = [slot[size:] for slot, size in zip(queued, SLOT_WORDS, strict=True)]
        wanted = frame_of(second, number, 3, sent)
        begin = link.over.index(wanted[0])
        assert link.over[begin : begin + len(wanted)] == wanted
        assert link.ends == [begin + len(wanted)]
        assert set(link.over[:begin] + link.over[begin + len(wanted) :]) == {IDLE}
        await link.to_word(FRAME_END + 8)
        assert link.frames[-1] == (True, sent)
        assert link.heads[-1] == (second, number)
    assert link.counts() == {"count_good": len(link.frames)}
    assert len(link.frames) == len(fills) + 1


@cocotb.test
async def express_codes_and_frames_have_one_latency(dut: Any) -> None:
    """Whatever is sent: from the cycle that takes a code to its coming, and from a frame's start to its head."""
    link = Link(dut)
    await link.start()
    for _ in range(60 if SHORT else 600):
        if link.rng.random() < 0.5:
            link.give([link.rng.randrange(size + 1) for size in SLOT_WORDS])
        for _ in range(link.rng.randrange(3)):
            await link.bench.wait(1 + link.rng.randrange(12))
            await link.code(link.rng.randrange(256))
        await link.bench.wait(link.rng.randrange(30))
    await link.frame(2)
    assert [code for _, code in link.codes] == [code for _, code in link.taken]
    assert len({came - taken for (came, _), (taken, _) in zip(link.codes, link.taken, strict=True)}) == 1
    number = dict.fromkeys(range(FRAMES_PER_S), 0)
    latencies = set()
    for cycle, at in link.begun:
        number[at] = cycle
        latencies |= {came - cycle for came, head in link.since if head == at and 0 <= came - cycle < 20}
    assert len(latencies) == 1
    assert set(link.counts()) <= {"count_good", "drop_cut", "lost"}


@cocotb.test
async def an_express_code_at_every_place_of_a_frame(dut: Any) -> None:
    """The head, the slots, both checks: the frame is good, and where it begins the code waits for two cycles."""
    link = Link(dut)
    await link.start()
    await link.frame(2)
    link.forget()
    waited = []
    for place in [*range(FRAME_END), FRAME_WORDS - 2, FRAME_WORDS - 1]:
        await link.to_word(place)
        link.give([3, 1, 2])
        before = link.bench.cycle
        await link.code(place)
        waited.append(link.bench.cycle - before)
        await link.frame()
        await link.to_word(FRAME_END + 12)
    assert [code for _, code in link.codes] == [*range(FRAME_END), FRAME_WORDS - 2, FRAME_WORDS - 1]
    assert len({came - taken for (came, _), (taken, _) in zip(link.codes, link.taken, strict=True)}) == 1
    counts = link.counts()
    assert counts.keys() == {"count_good"}
    assert counts["count_good"] > FRAME_END
    assert set(waited) == {1, 2, 3}


def other_word(rng: Random, word: Word) -> Word:
    return word[0], word[1] ^ 1 << rng.randrange(16)


@cocotb.test
async def a_word_that_is_other_has_a_name(dut: Any) -> None:
    """One bit of each word of a frame, its code and its kind, in turn."""
    link = Link(dut)
    await link.start()
    await link.frame(2)
    for place in range(FRAME_END):
        for how in ("bit", "code", "kind"):
            await link.to_word(FRAME_END + 8)
            sent = [[1] * (size // 2) for size in SLOT_WORDS]
            for slot, more in zip(link.waiting, sent, strict=True):
                slot += more
            await link.to_word(FRAME_WORDS - 2)
            number = (int(dut.at.value) & 0xFFFF) + 1
            second = int(dut.at.value) >> 16
            if number == FRAMES_PER_S:
                number, second = 0, second + 1
            link.forget()
            heads = len(link.heads)
            word = frame_of(second, number, 3, sent)[place]
            k = 2 if word[0] == 0 else 0
            link.replace[place] = {"bit": other_word(link.rng, word), "code": None, "kind": (k, word[1])}[how]
            await link.to_word(0)
            await link.to_word(FRAME_END + 6)
            counts = link.counts()
            link.forget()
            await link.frame()  # a good one
            after = link.counts()
            told = [one for one in link.heads[heads:] if one != (second, number)]
            assert len(told) == 1
            assert after["count_good"] == 1
            if place == 0:
                assert counts.keys() - {"error_stray", "error_code", "error_direction"} == set(), counts
                assert after == {"count_good": 1, "lost": 1}, after
            else:
                wanted = "drop_head" if place < FIRST_SLOT else {"bit": None, "code": "drop_code", "kind": "drop_symbol"}[how]
                if place >= FIRST_SLOT and how == "bit":
                    is_data = word[0] == 0
                    wanted = "drop_crc" if is_data else "drop_symbol"
                if place >= FRAME_END - CHECK_WORDS and how == "kind":
                    wanted = "drop_crc"
                assert {name for name in counts if name.startswith(("drop", "count"))} == {wanted}, (place, how, counts)
                assert after == {"count_good": 1}, (place, how, after)


@cocotb.test
async def frames_that_are_missing_are_counted(dut: Any) -> None:
    """Over the end of a second too; a time that does not go on is told, and one that is over a second later."""
    link = Link(dut)
    await link.start(second=9, number=3)
    await link.frame(3)
    for missing in (1, 2, 7, FRAMES_PER_S - 1):
        await link.to_word(FRAME_END + 8)
        link.forget()
        dut.sends.value = 0
        await link.frame(missing)
        dut.sends.value = 1
        await link.frame(2)
        assert link.counts() == {"count_good": 2, "lost": missing}
    for second, number in ((9, 3), (2000, 5)):
        await link.to_word(FRAME_END + 8)
        link.forget()
        await link.set_time(second, number)
        await link.frame(2)
        assert link.counts() == {"count_good": 2, "error_time": 1}
    await link.to_word(FRAME_END + 8)
    link.forget()
    dut.locked.value = 0
    await link.frame(3)
    assert link.counts() == {}
    dut.locked.value = 1
    await link.frame(2)
    assert link.counts() == {"count_good": 2}


@cocotb.test
async def what_is_no_frame_is_named(dut: Any) -> None:
    """Another floor's frames, the other end's kind, bytes exchanged, halves of express codes, words of nothing, a link that is lost in a frame."""
    link = Link(dut)
    await link.start()
    await link.frame(2)
    gap = FRAME_END + 6
    for words, told in (
        ([(1, DOWN << 8 | K28_5)], {"error_direction": 1}),
        ([(2, K28_5 << 8 | D16_2)], {"error_order": 1}),
        ([(1, 0x11 << 8 | K27_7)], {"error_express": 1}),
        ([(1, 0x11 << 8 | K27_7), (2, K29_7 << 8 | 0xEF)], {"error_express": 1}),
        ([(2, K29_7 << 8 | 0xEE)], {"error_express": 1, "error_stray": 1}),
        ([(0, 0x1111), (0, 0x2222)], {"error_stray": 1}),
        ([(1, 0x11 << 8 | K27_7), (2, K29_7 << 8 | 0xEE)], {}),
    ):
        await link.to_word(0)
        await link.to_word(FRAME_END + 4)
        link.forget()
        for at, word in enumerate(words):
            link.replace[gap + at] = word
        await link.frame()
        assert link.counts() == {"count_good": 1} | told, words
    assert [code for _, code in link.codes] == [0x11]
    link.forget()
    dut.sent_floor.value = 4
    await link.frame(2)
    heads = len(link.heads)
    assert link.counts() in ({"drop_floor": 2}, {"drop_floor": 1, "count_good": 1})
    dut.sent_floor.value = 3
    await link.frame(1)
    await link.to_word(FIRST_SLOT + 8)
    assert len(link.heads) == heads + 2
    link.forget()
    dut.locked.value = 0
    await link.bench.wait(3)
    assert link.counts() == {"drop_cut": 1}
    assert link.frames[-1][0] is False
    dut.locked.value = 1
    await link.to_word(FRAME_END + 12)
    assert link.counts() == {"drop_cut": 1, "error_stray": 1}, "the rest of it is no frame"


@cocotb.test
async def a_link_that_is_lost_anywhere(dut: Any) -> None:
    """After each word of a frame, good or bad: one that began is cut until its last word is taken, or that of a head which is wrong, and then has its own fate; it has one. An
    end is told of each head that was."""
    link = Link(dut)
    await link.start()
    await link.to_word(FRAME_END + 8)
    dut.sends.value = 0
    await link.frame()
    good = frame_of(7, 11, 3, [[7, 8], [], [9]])
    wrong_head = [(k, data ^ (1 << 9 if at == 3 else 0)) for at, (k, data) in enumerate(good)]
    wrong_slot = [(k, data ^ (1 << 9 if at == FIRST_SLOT else 0)) for at, (k, data) in enumerate(good)]
    twice = good[: FIRST_SLOT + 4] + good
    for words, fate, last in (
        (good, "count_good", FRAME_END),
        (wrong_head, "drop_head", FIRST_SLOT),
        (frame_of(7, 11, 4, [[]] * 3), "drop_floor", FIRST_SLOT),
        (wrong_slot, "drop_crc", FRAME_END),
        (twice, "count_good", len(twice)),
    ):
        fates = []
        for cut in range(len(words) + 12):
            heads, ends = len(link.heads), len(link.frames)
            link.forget()
            link.stream = [*words, *[IDLE] * 20]
            await link.bench.wait(cut)
            dut.locked.value = 0
            await link.bench.wait(len(link.stream) + 10)
            dut.locked.value = 1
            await link.bench.wait(4)
            counts = link.counts()
            counts.pop("error_stray", 0)
            fates.append({name: count for name, count in counts.items() if name.startswith(("drop", "count"))})
            assert len(link.heads) - heads == len(link.frames) - ends, (fate, cut)
        found = [each for at, each in enumerate(fates) if at == 0 or each != fates[at - 1]]
        if words is twice:
            assert found == [{}, {"drop_cut": 1}, {"drop_cut": 2}, {"drop_cut": 1, fate: 1}], found
            assert fates.count({"drop_cut": 2}) == FRAME_END - 1
        else:
            assert found == [{}, {"drop_cut": 1}, {fate: 1}], found
        assert sum(each.get(fate, 0) == 0 and each != {} for each in fates) == last - 1, (
            "from its first word to the one before its last"
        )


@cocotb.test
async def frames_as_one_likes(dut: Any) -> None:
    """Heads that express codes hold up until their time is too old to be told; frames cut in each part; frames with a wrong head beside frames that are missing."""
    link = Link(dut)
    await link.start()
    await link.to_word(FRAME_END + 8)
    dut.sends.value = 0
    await link.frame()
    slots = [[7, 8], [], [9]]
    code = [(1, 0x11 << 8 | K27_7), (2, K29_7 << 8 | 0xEE)]
    number = 10
    since_max = 250
    for codes in (0, 1, 119, 120, 121, 122, 200):
        number += 1
        frame = frame_of(7, number, 3, slots)
        link.heads.clear()
        counts = await link.hear(frame[:4] + code * codes + frame[4:])
        counts.pop("lost", 0)
        if FIRST_SLOT - 1 + 2 * codes < since_max:
            assert (counts, link.heads) == ({"count_good": 1}, [(7, number)]), codes
        else:
            assert (counts, link.heads) == ({"drop_head": 1}, []), codes
    link.frames.clear()
    link.words = [[] for _ in SLOT_WORDS]
    for cut in range(1, FRAME_END):
        number = 10 + cut % 8
        counts = await link.hear(frame_of(7, number, 3, slots)[:cut] + frame_of(7, number + 1, 3, slots))
        counts.pop("error_time", 0)
        counts.pop("lost", 0)
        assert counts == {"count_good": 1, "drop_cut": 1}, cut
        # An end is told of what has begun to be told: not of a head.
        assert [good for good, _ in link.frames] == [True] if cut < FIRST_SLOT else [False, True], cut
        link.frames.clear()
    for wrong, missing in ((1, 0), (0, 3), (1, 1), (2, 0), (2, 1), (3, 2), (4, 5), (5, 1)):
        good = frame_of(8, 20, 3, slots)
        bad = [(k, data ^ (1 << 9 if at == 3 else 0)) for at, (k, data) in enumerate(good)][:FIRST_SLOT]
        await link.hear(good)
        counts = await link.hear(bad * wrong + frame_of(8, 21 + wrong + missing, 3, slots))
        wanted = {"count_good": 1, "drop_head": wrong, "lost": missing}
        assert counts == {name: count for name, count in wanted.items() if count}, (wrong, missing)


@cocotb.test
async def a_slot_holds_so_many_words(dut: Any) -> None:
    """What does not go waits, up to FIFO_WORDS; more is not taken, and nothing of it is lost."""
    link = Link(dut)
    await link.start()
    await link.to_word(FRAME_END + 8)
    dut.sends.value = 0
    given = link.give([FIFO_WORDS + 8] * len(SLOT_WORDS))
    await link.frame(2)
    assert [len(slot) for slot in link.waiting] == [8] * len(SLOT_WORDS)
    assert dut.s_ready.value == 0
    dut.sends.value = 1
    await link.frame(10)
    got: list[list[int]] = [[] for _ in SLOT_WORDS]
    for good, words in link.frames:
        assert good
        for slot, more in zip(got, words, strict=True):
            slot += more
    assert [slot == words[: len(slot)] for slot, words in zip(got, given, strict=True)] == [True] * len(SLOT_WORDS)
    assert len(got[0]) == FIFO_WORDS + 8


@cocotb.test
async def a_time_that_agrees(dut: Any) -> None:
    """The word, the number and the second that come next, and no other: also where a frame ends, and a second."""
    link = Link(dut)
    await link.start()
    dut.sends.value = 0
    whole = FRAME_WORDS * FRAMES_PER_S
    for second, number, word in ((7, 3, 20), (7, 3, FRAME_WORDS - 4), (0xFFFF, FRAMES_PER_S - 1, FRAME_WORDS - 4), (7, 0, 0)):
        await link.set_time(second, number, word)
        for cycle in range(1, 9):
            at = second * whole + number * FRAME_WORDS + word + cycle
            for by in (0, 1, -1, FRAME_WORDS, -FRAME_WORDS, whole, whole << 8):
                told = max(0, at + by)
                dut.load_word.value = told % FRAME_WORDS
                dut.load_at.value = told // whole << 16 | told % whole // FRAME_WORDS
                await ReadOnly()
                assert int(dut.agrees.value) == int(told == at), (second, number, word, cycle, by)
                await Timer(1, "ps")
            await RisingEdge(dut.clk)
