# SPDX-License-Identifier: Apache-2.0
"""enc_64b66b, block_align and dec_64b66b against a reference that takes bit by bit: any words and marks, any place of the blocks, wrong bits."""

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, random_numbers
from common.code_64b66b import BEFORE, BLOCK, Half, bits_of, blocks_of, halves_of, phase_of

BLOCKS = PARAMETERS.get("BLOCKS", 64)
HALF = BLOCK // 2
PAIR = HALF  # of bits that begin with a reset, a pair is cut after the first half
DECODE_CYCLES = 12  # more than from a block's last bit to its last word


async def started(dut: Any) -> Bench:
    bench = Bench(dut)
    dut.s_mark.value = dut.s_data.value = dut.s_bits.value = 0
    await bench.reset()
    return bench


async def restarted(dut: Any) -> None:
    dut.rst.value = 1
    await received(dut, [0] * 2 * BLOCK, [])
    dut.rst.value = 0


def some(rng: Random, count: int) -> list[Half]:
    """Words and marks in runs and alone."""
    share = rng.choice((0.0, 0.1, 0.5, 1.0))
    return [Half(mark, rng.randbytes(3 if mark else 4)) for mark in (rng.random() < share for _ in range(count))]


def word_of(half: Half) -> int:
    return int.from_bytes(half.data, "little") << (8 if half.is_mark else 0)


@dataclass
class Cycle:
    """half, error: what came out; block: what had been cut, None if nothing."""

    locked: bool
    slip: int
    block: int | None
    half: Half
    error: bool


async def received(dut: Any, bits: list[int], seen: list[Cycle]) -> None:
    """Gives these bits to the aligner, and takes what was seen in each cycle."""
    words = [sum(bit << place for place, bit in enumerate(bits[at : at + HALF])) for at in range(0, len(bits) - HALF + 1, HALF)]
    for word in words:
        dut.s_bits.value = word
        await RisingEdge(dut.clk)
        mark, data = bool(dut.m_mark.value), int(dut.m_data.value).to_bytes(4, "little")
        assert not mark or data[0] == 0
        half, block = Half(mark, data[1:] if mark else data), int(dut.block.value) if dut.valid.value else None
        seen.append(Cycle(bool(dut.locked.value), int(dut.slip.value), block, half, bool(dut.m_error.value)))


def found(seen: list[Cycle], wanted: list[Half]) -> int:
    """Where all of these came in a row, right, two cycles after their block was cut."""
    halves = [cycle.half for cycle in seen]
    at = next(place for place in range(len(halves)) if halves[place : place + len(wanted)] == wanted)
    assert not any(cycle.error for cycle in seen[at : at + len(wanted)])
    assert seen[at - 2].block is not None
    return at


class Search:
    """Which place is taken, and when it is right or lost, from the headers that were cut."""

    def __init__(self) -> None:
        self.slip, self.right, self.cost, self.skip, self.locked = 0, 0, 0, 2, False

    def take(self, block: int) -> None:
        is_right = block & 3 in (1, 2)
        if self.skip:
            self.skip -= 1
        elif self.locked:
            self.locked = self.cost < 16
            self.cost = self.cost + 4 if not is_right else max(0, self.cost - 1)
        elif is_right:
            self.right += 1
            if self.right == BLOCKS:
                self.locked, self.right, self.cost = True, 0, 0
        else:
            self.slip, self.right, self.skip = (self.slip + 1) % BLOCK, 0, 2


def check_search(seen: list[Cycle]) -> None:
    """From a reset on."""
    search = Search()
    for number, cycle in enumerate(seen):
        assert (cycle.slip, cycle.locked) == (search.slip, search.locked), number
        if cycle.block is not None:
            search.take(cycle.block)


@cocotb.test
async def what_is_sent_is_what_the_reference_reads(dut: Any) -> None:
    await started(dut)
    rng = random_numbers()
    given = [half for _ in range(20) for half in some(rng, 100)]
    bits: list[int] = []
    second = []
    for half in given:
        dut.s_mark.value, dut.s_data.value = half.is_mark, word_of(half) | (rng.randrange(256) if half.is_mark else 0)
        await RisingEdge(dut.clk)
        second.append(bool(dut.second.value))  # with which it was taken
        bits += bits_of(int(dut.sent.value), HALF)
    sent = halves_of(bits[10 * HALF :])  # what was in it before has gone
    at = given.index(sent[0])
    assert sent == given[at : at + len(sent)]
    assert not second[at]
    assert len(sent) > len(given) - 20


@cocotb.test
async def any_place_is_found_and_what_was_sent_comes(dut: Any) -> None:
    """All 66 places, whatever was before: locked there after so many blocks, at the place that is told, and then every word and mark."""
    await started(dut)
    rng = random_numbers()
    for place in rng.sample(range(BLOCK), 12 if SHORT else BLOCK):
        await restarted(dut)
        noise = [rng.getrandbits(1) for _ in range(BEFORE)]
        given = [half for _ in range(8) for half in some(rng, 100)]
        begin = [Half(True, rng.randbytes(3)) for _ in range(2 * (BLOCKS + 6 * BLOCK))]  # time to look for it
        seen: list[Cycle] = []
        bits = [rng.getrandbits(1) for _ in range(place)] + blocks_of([*begin, *given], noise)
        await received(dut, bits + [0] * (BLOCK + DECODE_CYCLES * HALF), seen)
        at = found(seen, given)
        assert all(cycle.locked and cycle.slip == (place + PAIR) % BLOCK for cycle in seen[at : at + len(given)])
        check_search(seen)


@cocotb.test
async def what_is_locked_and_lost(dut: Any) -> None:
    """Any mixture of blocks, noise and wrong headers after a reset at any place: the place, and when it is right or lost, to the cycle."""
    await started(dut)
    rng = random_numbers()
    losses = 0
    for _ in range(4 if SHORT else 20):
        await restarted(dut)
        bits: list[int] = []
        for share in rng.sample((0.1, 0.19, 0.22, 0.5), 4):  # of wrong headers; with half of them every lane is lost
            bits += [rng.getrandbits(1) for _ in range(rng.choice((0, 1, rng.randrange(300))))]
            search = BLOCKS + 6 * BLOCK  # blocks: enough to find the place
            good = blocks_of([Half(True, rng.randbytes(3)) for _ in range(2 * (search + 2 * BLOCK))], [0] * BEFORE)
            for begin in range(search * BLOCK, len(good), BLOCK):
                good[begin] ^= rng.random() < share
            bits += good
        seen: list[Cycle] = []
        await received(dut, bits, seen)
        check_search(seen)
        losses += sum(a.locked and not b.locked for a, b in pairwise(seen))
    assert losses > 2


@cocotb.test
async def wrong_bits(dut: Any) -> None:
    """Of a locked lane, one at a time: of a header it is told; else what comes differs in at most three bits, 39 and 58 later; the lane stays."""
    await started(dut)
    rng = random_numbers()
    halves = [Half(True, rng.randbytes(3)) for _ in range(2 * (BLOCKS + 6 * BLOCK))]
    before = [0] * BEFORE
    bits = blocks_of(halves, before)
    await received(dut, bits, [])
    assert dut.locked.value == 1
    before = bits[-BLOCK + 2 :]
    for _ in range(20 if SHORT else 200):
        given = [half for _ in range(6) for half in some(rng, 2 * rng.randint(1, 3))]
        tail = [Half(True, rng.randbytes(3)) for _ in range(2 * DECODE_CYCLES)]
        bits = blocks_of([*given, *tail], before)
        before = bits[-BLOCK + 2 :]
        wrong = rng.randrange(BLOCK, BLOCK * (len(given) // 2 - 2))
        seen: list[Cycle] = []
        await received(dut, [bit ^ (place == wrong) for place, bit in enumerate(bits)], seen)
        begin = found(seen, given[:2])
        came = [cycle.half for cycle in seen[begin : begin + len(given)]]
        told = {place // 2 for place in range(len(given)) if seen[begin + place].error}
        block, bit = divmod(wrong, BLOCK)
        differ = {place // 2 for place in range(len(given)) if came[place] != given[place]}
        if bit < 2:
            assert told == {block}, (wrong, told)
        assert told <= {block, block + 1}
        assert differ <= {block, block + 1}
        if not told:
            flipped = sum((word_of(a) ^ word_of(b)).bit_count() for a, b in zip(came, given, strict=True))
            assert 1 <= flipped <= 3, flipped
        assert dut.locked.value == 1


@cocotb.test
async def a_lane_without_headers_is_lost(dut: Any) -> None:
    """Zeros, ones, noise, a bit more: not locked any longer, and found again where it is."""
    await started(dut)
    rng = random_numbers()
    search = [Half(True, rng.randbytes(3)) for _ in range(2 * (BLOCKS + 6 * BLOCK))]
    for other in ([0] * 12 * BLOCK, [1] * 12 * BLOCK, [rng.getrandbits(1) for _ in range(60 * BLOCK)], [0]):
        bits = blocks_of(search, [rng.getrandbits(1) for _ in range(BEFORE)])
        await received(dut, bits, [])
        assert dut.locked.value == 1
        seen: list[Cycle] = []
        more = blocks_of(search, [rng.getrandbits(1) for _ in range(BEFORE)]) if len(other) == 1 else []
        await received(dut, other + more + [0] * (-len(other + more) % HALF), seen)
        assert not all(cycle.locked for cycle in seen)
    assert dut.locked.value == 1


@cocotb.test
async def zeros_and_ones_leave_scrambled(dut: Any) -> None:
    """What repeats itself has no period on the wire, and the only place where all headers are right is the true one."""
    await started(dut)
    bits: list[int] = []
    dut.s_mark.value, dut.s_data.value = 0, 0
    for cycle in range(1200):
        dut.s_data.value = 0 if cycle < 600 else 0xFFFFFFFF
        await RisingEdge(dut.clk)
        bits += bits_of(int(dut.sent.value), HALF)
    assert phase_of(bits[10 * HALF :]) < BLOCK
    scrambled = bits[20 * BLOCK :]
    for period in (32, HALF, 64, BLOCK, 132):
        same = sum(a == b for a, b in zip(scrambled, scrambled[period:], strict=False))
        assert 0.4 < same / len(scrambled) < 0.7, (period, same / len(scrambled))
