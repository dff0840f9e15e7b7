# SPDX-License-Identifier: Apache-2.0
"""km3_align on a deserialiser whose words it can slide: every phase, commas that are none, words that begin a symbol later, and the ways out; and km3_monitor."""

from itertools import pairwise
from typing import Any

import cocotb
from align_bench import (
    ATTEMPTS,
    BAD_COST,
    BAD_LIMIT,
    COMMAS,
    GAP_CYCLES,
    LOCK_WORDS,
    PULSES,
    SEARCH_CYCLES,
    SLIDE_BITS,
    WORD,
    all_at_rest,
)
from cocotb.triggers import RisingEdge
from common import code_8b10b
from common.bench import SHORT, Bench, random_numbers
from common.code_8b10b import K28_1, K28_5, K28_7, Symbol


class Deserialiser:
    """Words of 20 bits from a stream of symbols, from any bit on; a slide makes one word begin SLIDE_BITS later, a restart any."""

    def __init__(self, dut: Any) -> None:
        self.bench, self.dut, self.rng = Bench(dut, PULSES), dut, random_numbers()
        self.bits, self.at, self.disparity = "", 0, -1
        self.slides, self.restarts, self.slid = 0, 0, False
        self.slides_help = True
        self.idle: list[Symbol] = [K28_5, (0, 0x50)]
        self.between: list[list[Symbol]] = []  # words in the place of idle ones, once each
        all_at_rest(dut)

    def bit_count(self, count: int) -> str:
        while len(self.bits) < self.at + count:
            word = self.between.pop(0) if self.between else self.idle
            codes, self.disparity = code_8b10b.encode(word, self.disparity)
            self.bits += "".join(codes)
        found = self.bits[self.at : self.at + count]
        self.at += count
        if self.at > 10_000:
            self.bits, self.at = self.bits[self.at :], 0
        return found

    def skip(self, bits: int) -> None:
        self.bit_count(bits)

    async def run(self, words: int) -> None:
        dut = self.dut
        for _ in range(words):
            dut.s_bits.value = int(self.bit_count(WORD)[::-1], 2)
            await RisingEdge(dut.clk)
            if dut.slide.value == 1 and not self.slid:
                self.slides += 1
                self.skip(SLIDE_BITS if self.slides_help else 0)
            self.slid = dut.slide.value == 1
            if dut.restart.value == 1:
                self.restarts += 1
                self.slides = 0
                self.skip(self.rng.randrange(WORD))

    async def begin(self, phase: int) -> None:
        self.skip(phase)
        self.slides = self.restarts = 0
        await self.bench.reset()

    async def until_locked(self, words: int = LOCK_WORDS) -> None:
        for _ in range(0, words, 10):
            await self.run(10)
            if self.dut.locked.value == 1:
                return
        raise AssertionError("not locked")

    def check_at_the_comma(self) -> None:
        """Words of the stream's begin where symbols' words do, and the slip is what was slid."""
        assert int(self.dut.slip.value) == self.slides * SLIDE_BITS % WORD
        assert (int(self.dut.k.value), int(self.dut.data.value)) == (1, 0x50BC)


@cocotb.test
async def every_phase_is_found_by_slides(dut: Any) -> None:
    """Or, where those cannot reach it, by restarts: in the end the first bit of a word is the comma's, in byte 0."""
    link = Deserialiser(dut)
    restarts = []
    for phase in [*range(WORD)] * (1 if SHORT else 5):
        await link.begin(phase)
        await link.until_locked(LOCK_WORDS if SLIDE_BITS else 200 * WORD)
        await link.run(10)
        link.check_at_the_comma()
        restarts.append(link.restarts)
    assert (max(restarts) == 0) is (SLIDE_BITS == 1)
    if SLIDE_BITS == 0:
        print(
            f"figure: restarts until the comma stands at bit 0: {sum(restarts) / len(restarts):.1f} in the mean, {max(restarts)} at most"
        )


@cocotb.test
async def eight_commas_lock_it(dut: Any) -> None:
    """Seven do not, and one elsewhere between makes them nothing. One elsewhere directly after is told, and moves nothing."""
    if SLIDE_BITS != 1:
        return
    link = Deserialiser(dut)
    link.idle = [(0, 0xB5), (0, 0xB5)]
    comma, elsewhere = [K28_5, (0, 0x50)], [(0, 0xB5), K28_5]
    await link.begin(0)
    await link.run(60)
    for count, locks in ((7, 0), (1, 1)):
        link.between = [comma] * count
        await link.run(30)
        assert int(dut.locked.value) == locks
    link.bench.forget_counts()
    link.between = [elsewhere]
    await link.run(20)
    assert (int(dut.locked.value), link.bench.counts["error_place"]) == (1, 1)
    for count, locked in ((6, 1), (1, 0)):  # eight there, with none in its place since it was locked
        link.between = [elsewhere] * count
        await link.run(20)
        assert (int(dut.locked.value), link.bench.counts["lost"]) == (locked, 1 - locked)
    for elsewheres in (0, 3):  # it was lost: it takes as many again, whatever there was before
        for count, locks in ((7, 0), (1, 1)):
            link.between = [comma] * count
            await link.run(30)
            assert int(dut.locked.value) == locks
        link.between = [elsewhere] * elsewheres
        await link.run(20)
        dut.says_bad.value = 1
        await link.run(4)
        dut.says_bad.value = 0
        await link.run(20)
        assert int(dut.locked.value) == 0
    for count, locks in ((7, 0), (1, 1)):
        link.between = [comma] * count
        await link.run(30)
        assert int(dut.locked.value) == locks
    await link.bench.reset()
    await link.run(60)
    link.bench.forget_counts()
    link.between = [*[comma] * 7, elsewhere, comma]
    await link.run(200)
    assert (int(dut.locked.value), link.bench.counts["slide"]) == (0, 10 * 2), "ten slides of two cycles"


@cocotb.test
async def other_commas_are_none(dut: Any) -> None:
    """K28.1 and K28.7, in either byte: nothing is slid for them, and after a while it is restarted."""
    link = Deserialiser(dut)
    for idle in ([K28_7, (0, 0xB5)], [(0, 0xB5), K28_7], [K28_1, (0, 0xB5)], [(0, 0xB5), K28_1]):
        link.idle = list(idle)
        await link.begin(link.rng.randrange(WORD))
        await link.run(40)  # what was before has gone by
        link.bench.forget_counts()
        await link.run(700)
        counts = link.bench.counts
        assert (counts["slide"], dut.locked.value, dut.slip.value) == (0, 0, 0)
        assert counts["restart"] in (2, 3, 4)  # each for one or two cycles
    link.idle = [K28_5, (0, 0x50)]
    await link.until_locked(200 * WORD)


@cocotb.test
async def words_that_begin_a_symbol_later_are_seen(dut: Any) -> None:
    """The two bytes change their places: every code is right, and the commas are in byte 1. Eight of them, and it begins anew."""
    if SLIDE_BITS == 0:
        return
    link = Deserialiser(dut)
    await link.begin(3)
    await link.until_locked(200 * WORD)
    await link.run(20)
    link.bench.forget_counts()
    link.between = [[K28_5, (0, 0x50)], [(0, 0xB5)]]  # a symbol alone
    await link.run(16)
    assert link.bench.counts["error_place"] > 0
    await link.run(10)
    assert link.bench.counts["lost"] == 1
    assert link.bench.counts["error_place"] == 8
    await link.until_locked(200 * WORD)
    await link.run(10)
    link.check_at_the_comma()


@cocotb.test
async def a_locked_link_is_moved_by_no_few_commas(dut: Any) -> None:
    """Seven elsewhere, then one in its place: it stays. So with two bad words."""
    link = Deserialiser(dut)
    await link.begin(9)
    await link.until_locked(200 * WORD)
    slip = int(dut.slip.value)
    for _ in range(3 if SHORT else 20):
        link.bench.forget_counts()
        link.between = [[(0, 0xB5)], *[[K28_5, (0, 0x50)]] * 7, [(0, 0xB5)]]
        await link.run(30)
        assert link.bench.counts["error_place"] == 7
        assert (dut.locked.value, dut.slip.value, link.bench.counts["lost"]) == (1, slip, 0)
    for words, stays in ((2, True), (5, False)):
        link.bench.forget_counts()
        for _ in range(words):
            dut.s_bits.value = 0xFFFFF
            await RisingEdge(dut.clk)
        link.bits, link.at = link.bits[link.at :], 0
        await link.run(20)
        assert (link.bench.counts["lost"] == 0) is stays


@cocotb.test
async def bad_words_and_good_ones_are_weighed(dut: Any) -> None:
    """Any order of them, against the sum that the contract names; it is lost with the word that makes the sum too much, and with none before it."""
    link = Deserialiser(dut)
    await link.begin(0)
    await link.until_locked(200 * WORD)
    orders = [[1, 1, 1, 0, 1, 0, 0, 0, 0, 0], [1] * 4, [1, 0] * 12] + [
        [link.rng.random() < 0.4 for _ in range(40)] for _ in range(8)
    ]
    for order in orders:
        await link.until_locked(200 * WORD)
        await link.run(BAD_LIMIT)
        link.bench.forget_counts()
        cost, lost = 0, False
        for is_bad in order:
            dut.says_bad.value = int(is_bad)
            await link.run(1)
            cost = cost + BAD_COST if is_bad else max(0, cost - 1)
            if cost >= BAD_LIMIT:
                lost = True
                break
        dut.says_bad.value = 0
        await link.run(4)
        assert link.bench.counts["lost"] == int(lost), order


@cocotb.test
async def how_long_it_waits(dut: Any) -> None:
    """After a reset and after slides, until what it hears is of now; for a comma, until it gives up. Nothing is told in reset."""
    link = Deserialiser(dut)
    waited: dict[str, set[int]] = {"reset": set(), "slides": set(), "search": set()}
    for _ in range(3):
        await link.begin(0)
        await link.until_locked(200 * WORD)
        for pulse in ("restart", "lost", "error_place", "slide"):  # what is heard is wrong, and its reset comes
            dut.s_bits.value = 0
            dut.rst.value = 1
            await link.bench.wait(3)
            assert getattr(dut, pulse).value == 0
        # Nothing slides now: words begin where the comma does, so many bits later, and then where it does at once.
        for place in (0, 1) if SLIDE_BITS == 1 else (0,):
            link.bits, link.at = "", 0
            link.skip(2 * WORD - place)
            await link.bench.reset()
            last = now = 2
            while dut.locked.value == 0:
                await link.run(1)
                now += 1
                last = now if dut.slide.value == 1 else last
                assert now < 2 * LOCK_WORDS
            waited["slides" if place else "reset"].add(now - last)
    link.idle = [(0, 0xB5), (0, 0xB5)]
    await link.begin(0)
    restarts = []
    for now in range(4 * SEARCH_CYCLES):
        await link.run(1)
        if dut.restart.value == 1:
            restarts.append(now)
    waited["search"] = {after - before for before, after in pairwise(restarts)}
    settles = GAP_CYCLES + 8
    assert waited == {
        "reset": {settles + COMMAS},
        "slides": {GAP_CYCLES + 1 + settles + COMMAS} if SLIDE_BITS == 1 else set(),
        "search": {SEARCH_CYCLES + 2},  # that of the restart, and one to begin
    }


@cocotb.test
async def slides_that_do_not_help_end_in_a_restart(dut: Any) -> None:
    """After ATTEMPTS times all of them. Once it was locked they are counted anew."""
    if SLIDE_BITS != 1:
        return
    link = Deserialiser(dut)
    for was_locked in (False, True):
        link.slides_help = True
        await link.begin(0)
        if was_locked:
            link.slides_help = False
            link.skip(WORD - 3)
            await link.run(40 + 3 * GAP_CYCLES)  # one attempt
            link.slides_help = True
            await link.until_locked()
            link.between = [[(0, 0xB5)]]
            link.slides_help = False
            slides = WORD // 2
        else:
            link.slides_help = False
            link.skip(WORD - 3)
            slides = 3
        link.slides = link.restarts = 0
        made = 0
        for _ in range(4 * LOCK_WORDS):
            await link.run(1)
            if link.restarts:
                break
            made = link.slides
        assert made == slides * ATTEMPTS


@cocotb.test
async def a_monitor_keeps_the_first(dut: Any) -> None:
    link = Deserialiser(dut)
    await link.bench.reset()
    for values, errors in (([5, 5, 5], 0), ([9, 9, 7, 9, 9], 1), ([0, 255, 254], 2)):
        dut.forget.value = 1
        await RisingEdge(dut.clk)
        dut.forget.value = 0
        link.bench.forget_counts()
        await link.bench.wait(3)
        assert dut.known.value == 0
        for value in values:
            dut.value_valid.value, dut.value.value = 1, value
            await RisingEdge(dut.clk)
            dut.value_valid.value, dut.value.value = 0, 77
            await link.bench.wait(2)
        assert (dut.known.value, dut.first.value, link.bench.counts["error_value"]) == (1, values[0], errors)
        if errors:
            assert dut.other.value == [value for value in values if value != values[0]][-1]
