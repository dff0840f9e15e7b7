# SPDX-License-Identifier: Apache-2.0
"""apelink_lanes under two ends of an `apelink`: thousands of link-ups from any phase and skew, clocks that differ, wrong bits, strange commas, lanes that are cut,
crossed or too late. All of it in bits of the fibres, which bench_top.sv has."""

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.handle import Immediate
from cocotb.triggers import RisingEdge, Timer
from common import apenet, code_8b10b, code_64b66b
from common.bench import PARAMETERS, SHORT, random_numbers
from common.code_8b10b import CODES, K28_5

PERIOD_PS = 100_000  # long, so that 10 ps are 100 ppm of it
ATTEMPT_CYCLES = PARAMETERS.get("ATTEMPT_CYCLES", 4096)
ROUND_TRIP = 2 * PARAMETERS.get("DELAY_WORDS", 10) + 80
LINE_BITS = PARAMETERS.get("LINE_BITS", 40)
IN_BLOCKS = LINE_BITS == 33  # 64b/66b; else 8b/10b
SLIP_BITS = 7 if IN_BLOCKS else 6
UP_CYCLES = (1600 if IN_BLOCKS else 600) + 3 * ROUND_TRIP  # more than any link-up takes
# More than it takes to see that a lane's phase is another: every second header is right then.
LOSS_CYCLES = 300 if IN_BLOCKS else 40
TOTALS = [
    *("flagged", "down", "up", "down_lanes", "down_silent", "down_other"),
    *("failed_lane", "failed_order", "failed_skew", "failed_call", "code", "overflow"),
    *("sent", "good", "wrong", "crc", "cut", "header", "lost", "noise"),
]
FATES = ("good", "flagged", "crc", "cut", "header", "lost")
SKEW_BITS = 40


class Lanes:
    def __init__(self, dut: Any, ppm: tuple[int, int] = (0, 0)) -> None:  # of the periods
        self.dut, self.rng = dut, random_numbers()
        self.late = [0] * 8
        dut.rst.value = dut.b_rst.value = Immediate(1)
        for name in ("cut", "crossed", "half_phase", "hit", "hit_turns", "hit_mask", "hit_bits", "late"):
            getattr(dut, name).value = Immediate(0)
        self.packet = apenet.packet(
            self.rng.randbytes(32), process=self.rng.getrandbits(16), address=self.rng.getrandbits(48)
        ).words
        dut.packet.value = Immediate(sum(word << 128 * place for place, word in enumerate(self.packet)))
        dut.burst.value = Immediate(1)
        for clock, off in zip((dut.clk, dut.b_clk), ppm, strict=True):
            cocotb.start_soon(Clock(clock, PERIOD_PS + 2 * (off * PERIOD_PS // 2_000_000), unit="ps").start())

    async def wait(self, cycles: int) -> None:
        await Timer(cycles * PERIOD_PS, "ps")

    async def until(self, done: Any, cycles: int, what: str) -> None:
        for _ in range(0, cycles, 16):
            if done():
                return
            await self.wait(16)
        raise AssertionError(f"{what}: not within {cycles} cycles, {self.state()}")

    def state(self) -> str:
        return f"a {self.totals('a')}, b {self.totals('b')}, locked {self.dut.locked.value}, in step {self.dut.in_step.value}, late {self.late}"

    def totals(self, end: str) -> dict[str, int]:
        word = int(getattr(self.dut, f"{end}_totals").value)
        return {name: word >> 32 * place & 0xFFFFFFFF for place, name in enumerate(TOTALS)}

    def told(self, end: str, before: dict[str, int], names: tuple[str, ...]) -> dict[str, int]:
        now = self.totals(end)
        return {name: now[name] - before[name] for name in names if now[name] != before[name]}

    def any_late(self, skew: int = SKEW_BITS) -> None:
        """Any phase of each direction, and lanes that differ by up to `skew`."""
        base = [self.rng.randrange(2 * LINE_BITS) for _ in range(2)]
        self.late = [base[n // 4] + self.rng.randint(0, skew) for n in range(8)]
        self.set_late()

    def check_slips(self) -> None:
        """Fibres to b come first in `late`, and slips of a in `slips`. Which half of a block comes first is not the fibre's."""
        slips = int(self.dut.slips.value)
        found = [(slips >> SLIP_BITS * place) % (1 << SLIP_BITS) % LINE_BITS for place in range(8)]
        assert found == [late % LINE_BITS for late in self.late[4:] + self.late[:4]]

    def set_late(self) -> None:
        self.dut.late.value = sum(bits << 9 * n for n, bits in enumerate(self.late))

    async def reset(self) -> None:
        self.dut.rst.value = self.dut.b_rst.value = 1
        self.dut.half_phase.value = self.rng.getrandbits(8)
        await self.wait(6)
        self.dut.rst.value = self.dut.b_rst.value = 0

    def is_up(self) -> bool:
        return int(self.dut.up.value) == 3 and int(self.dut.first_good.value) == 3

    async def until_up(self, cycles: int = UP_CYCLES) -> None:
        await self.until(self.is_up, cycles, "up, with a good packet each way")

    async def until_down(self, cycles: int = 40) -> None:
        await self.until(lambda: int(self.dut.up.value) == 0, cycles + ROUND_TRIP, "both ends down")
        await self.wait(4)  # for the counts

    def check_nothing_wrong(self) -> None:
        for end in "ab":
            totals = self.totals(end)
            assert totals["wrong"] == 0, f"{end}: a bad packet came as good: {totals}"
            downs = sum(totals[f"down_{why}"] for why in ("lanes", "silent", "other"))
            assert totals["up"] - downs == int(self.dut.up.value) >> "ab".index(end) & 1, f"{end}: {totals}"


async def started(dut: Any, ppm: tuple[int, int] = (0, 0)) -> Lanes:
    lanes = Lanes(dut, ppm)
    lanes.any_late()
    await lanes.reset()
    return lanes


async def columns(lanes: Lanes, count: int) -> list[list[tuple[bool, bytes]]]:
    """What a sends in so many cycles: of each lane whether it is a mark, and its four bytes, or a mark's last three."""
    sent = []
    for _ in range(count):
        await RisingEdge(lanes.dut.clk)
        sent.append([int(lanes.dut.a_bits.value) >> LINE_BITS * lane & (1 << LINE_BITS) - 1 for lane in range(4)])
    if not IN_BLOCKS:
        return [[symbols_of(bits) for bits in column] for column in sent]
    lanes_bits = [[bit for column in sent for bit in code_64b66b.bits_of(column[lane], LINE_BITS)] for lane in range(4)]
    halves = [code_64b66b.halves_of(bits) for bits in lanes_bits]
    return [[(half.is_mark, half.data) for half in column] for column in zip(*halves, strict=True)]


def symbols_of(bits: int) -> tuple[bool, bytes]:
    codes = code_8b10b.as_codes(bits, 4)
    symbols = [code_8b10b.SYMBOLS[-1].get(code) or code_8b10b.SYMBOLS[1][code] for code in codes]
    is_mark = symbols[0] == K28_5
    assert all(k == 0 for k, _ in symbols[is_mark:])
    return is_mark, bytes(byte for _, byte in symbols[is_mark:])


@cocotb.test
async def bytes_of_the_lanes(dut: Any) -> None:
    """As docs/apelink-format.md says: every mark, and the words of a packet, byte by byte."""
    lanes = await started(dut)
    await lanes.until_up()
    sessions = [int(dut.sessions.value) >> 4 * end & 15 for end in range(2)]
    assert all(sessions)
    dut.burst.value = 3
    words, number = [], None
    for column in await columns(lanes, 200):
        marks = [is_mark for is_mark, _ in column]
        assert marks in ([True] * 4, [False] * 4)
        if all(marks):
            for lane, (_, (says, place, check)) in enumerate(column):
                assert says == sessions[0] | sessions[1] << 4
                assert (place & 3, check) == (lane, says ^ place ^ 0xA5)
                assert number in (None, place >> 2)
            number = column[0][1][1] >> 2
        else:
            words.append(int.from_bytes(b"".join(data for _, data in column), "little"))
        number = None if number is None else (number + 1) % 64
    head = words.index(apenet.with_check(lanes.packet[0]))
    assert words[head - 2] == apenet.MAGIC
    assert words[head + 1 : head + 4] == lanes.packet[1:]


@cocotb.test
async def every_link_up_is_good(dut: Any) -> None:
    """From any phase of each lane and skews up to 40 bits: up at both ends, the slip is the phase, and the first packet each way is good."""
    lanes = Lanes(dut)
    trials = 60 if SHORT else 2000
    worst = 0
    for _ in range(trials):
        lanes.any_late()
        await lanes.reset()
        cycles = 0
        while not lanes.is_up() and cycles < UP_CYCLES:
            await lanes.wait(16)
            cycles += 16
        assert lanes.is_up(), lanes.state()
        worst = max(worst, cycles)
        lanes.check_slips()
        for end in "ab":
            totals = lanes.totals(end)
            assert totals["good"] == totals["sent"] == totals["up"] == 1, totals
            assert sum(totals.values()) == 3, totals
    print(
        f"figure: {trials} of {trials} link-ups, first packet good each way, {worst} cycles at most with a round trip of {ROUND_TRIP}"
    )


async def all_is_good_with(dut: Any, ppm: int, cycles: int) -> None:
    """Words in every cycle that has room, with clocks that are 2 * ppm apart: nothing is lost, and nothing runs over."""
    lanes = await started(dut, (ppm, -ppm))
    dut.burst.value = 0
    await lanes.until_up()
    await lanes.wait(cycles)
    for end in "ab":
        totals = lanes.totals(end)
        assert totals["sent"] > cycles / 10, totals
        assert totals["sent"] - totals["good"] < ROUND_TRIP, totals
        assert sum(totals[name] for name in TOTALS if name not in ("up", "sent", "good")) == 1 - totals["up"] == 0, totals


@cocotb.test
async def a_has_the_slower_clock(dut: Any) -> None:
    """In short, and so in short time, it is further off than a buffer without SKIPs bears."""
    await (all_is_good_with(dut, 450, 25_000) if SHORT else all_is_good_with(dut, 100, 150_000))


@cocotb.test
async def b_has_the_slower_clock(dut: Any) -> None:
    await (all_is_good_with(dut, -450, 25_000) if SHORT else all_is_good_with(dut, -100, 150_000))


@cocotb.test
async def clocks_too_far_apart_run_over(dut: Any) -> None:
    """20,000 ppm: the slower end says that its buffer ran over; the link goes down, by name, and comes up again."""
    lanes = await started(dut, (0, 20_000))
    dut.burst.value = 0
    await lanes.until_up()
    await lanes.until(lambda: lanes.totals("b")["overflow"] > 0, 3000, "overflow")
    await lanes.until(lambda: lanes.totals("b")["up"] > 1, 3000, "up again")
    a, b = lanes.totals("a"), lanes.totals("b")
    assert min(b["down_lanes"], a["down_other"]) > 0, (a, b)
    assert a["overflow"] == a["wrong"] == b["wrong"] == 0, (a, b)


async def hit(lanes: Lanes, fibre: int, mask: int, bits: int | None = None) -> None:
    """One word of a fibre, at once: these bits turned, or set to others."""
    dut = lanes.dut
    dut.hit_turns.value, dut.hit_mask.value, dut.hit_bits.value = int(bits is None), mask, bits or 0
    dut.hit.value = int(dut.hit.value) ^ 1 << fibre
    await lanes.wait(2)


@cocotb.test
async def wrong_bits_are_told_and_take_nothing_down(dut: Any) -> None:
    """One in a word of a busy link: the lane's receiver tells of one word or two, the packet has one name or is good, and all stays up."""
    lanes = await started(dut)
    dut.burst.value = 0
    await lanes.until_up()
    trials = 150 if SHORT else 2000
    for _ in range(trials):
        fibre = lanes.rng.randrange(8)
        before = {end: lanes.totals(end) for end in "ab"}
        await hit(lanes, fibre, 1 << lanes.rng.randrange(LINE_BITS))
        await lanes.wait(ROUND_TRIP + 20)
        told = {end: lanes.told(end, before[end], ("code", "overflow", "up")) for end in "ab"}
        end, other = ("b", "a") if fibre < 4 else ("a", "b")
        if IN_BLOCKS:  # of a block's two words, the next one's too; of a word's bits no code tells
            assert told[end] in ({}, {"code": 2}, {"code": 4}), told
        else:
            assert told[end] in ({"code": 1}, {"code": 2}), told
        assert not told[other], told
    lanes.check_nothing_wrong()
    dut.burst.value = 1
    await lanes.wait(ROUND_TRIP + 1000)
    for end, other in ("ab", "ba"):
        totals = lanes.totals(end)
        assert sum(totals[name] for name in FATES) == lanes.totals(other)["sent"], totals
        assert 0 < sum(totals[name] for name in FATES[1:]) <= trials, totals


@cocotb.test
async def strange_commas_move_no_lane(dut: Any) -> None:
    """K28.5 in the wrong place of a word, or any half of a block in another's place: an error, not a new beginning."""
    lanes = await started(dut)
    dut.burst.value = 0
    await lanes.until_up()
    slips = int(dut.slips.value)
    for _ in range(60 if SHORT else 600):
        fibre, at = lanes.rng.randrange(8), lanes.rng.randrange(1, 31)
        code = code_8b10b.as_word([CODES[lanes.rng.choice((-1, 1))][K28_5]])
        if IN_BLOCKS:
            await hit(lanes, fibre, (1 << LINE_BITS) - 1, lanes.rng.getrandbits(LINE_BITS))
        else:
            await hit(lanes, fibre, 0x3FF << at, code << at)
        await lanes.wait(30)
    assert int(dut.slips.value) == slips
    assert int(dut.locked.value) == 0xFF
    assert {end: lanes.totals(end)["up"] for end in "ab"} == {"a": 1, "b": 1}
    lanes.check_nothing_wrong()


@cocotb.test
async def a_lane_that_is_cut_takes_both_ends_down(dut: Any) -> None:
    """And only then is it up again when the lane is back, with another delay."""
    lanes = await started(dut)
    dut.burst.value = 0
    for _ in range(6 if SHORT else 60):
        await lanes.until_up(ATTEMPT_CYCLES + UP_CYCLES)
        fibre = lanes.rng.randrange(8)
        near, far = ("b", "a") if fibre < 4 else ("a", "b")
        before = {end: lanes.totals(end) for end in "ab"}
        dut.cut.value = 1 << fibre
        await lanes.until_down()
        downs = ("down_lanes", "down_silent", "down_other")
        assert lanes.told(near, before[near], downs) == {"down_lanes": 1}
        assert lanes.told(far, before[far], downs) == {"down_other": 1}
        if lanes.rng.random() < 0.3:
            await lanes.wait(ATTEMPT_CYCLES + 200)
            assert lanes.told(near, before[near], TOTALS[6:10]) == {"failed_lane": 1}
            assert lanes.told(far, before[far], TOTALS[6:10]) == {"failed_call": 1}
        assert int(dut.up.value) == 0
        lanes.any_late()
        dut.cut.value = 0
    await lanes.until_up(ATTEMPT_CYCLES + UP_CYCLES)
    lanes.check_nothing_wrong()


@cocotb.test
async def a_bit_more_or_less(dut: Any) -> None:
    """A fibre's phase changes by one bit under traffic: the lane is lost, and found again at the new place."""
    lanes = await started(dut)
    dut.burst.value = 0
    for _ in range(3 if SHORT else 20):
        await lanes.until_up(ATTEMPT_CYCLES + UP_CYCLES)
        fibre = lanes.rng.randrange(8)
        lanes.late[fibre] += 1
        lanes.set_late()
        await lanes.until_down(LOSS_CYCLES)
    await lanes.until_up(ATTEMPT_CYCLES + UP_CYCLES)
    lanes.check_slips()
    lanes.check_nothing_wrong()


@cocotb.test
async def crossed_lanes_are_refused_by_name(dut: Any) -> None:
    lanes = Lanes(dut)
    dut.crossed.value = 1
    lanes.any_late()
    await lanes.reset()
    await lanes.wait(ATTEMPT_CYCLES + 300)
    assert lanes.told("b", dict.fromkeys(TOTALS, 0), TOTALS[2:10]) == {"failed_order": 1}
    assert lanes.told("a", dict.fromkeys(TOTALS, 0), TOTALS[2:10]) == {"failed_call": 1}
    dut.crossed.value = 0
    await lanes.until_up(ATTEMPT_CYCLES + UP_CYCLES)
    lanes.check_nothing_wrong()


@cocotb.test
async def lanes_too_far_apart_are_refused_by_name(dut: Any) -> None:
    """Three words are taken, or four of 64b/66b; twice that is not."""
    lanes = Lanes(dut)
    most = (4 if IN_BLOCKS else 3) * LINE_BITS
    for skew in (most, 2 * most, most - 1):
        lanes.late = [10, 10 + skew, 10, 10, 0, 0, 0, 0]
        lanes.set_late()
        await lanes.reset()
        if skew <= most:
            await lanes.until_up()
            continue
        await lanes.wait(ATTEMPT_CYCLES + 300)
        assert lanes.told("b", dict.fromkeys(TOTALS, 0), TOTALS[2:10]) == {"failed_skew": 1}
        assert lanes.told("a", dict.fromkeys(TOTALS, 0), TOTALS[2:10]) == {"failed_call": 1}
    lanes.check_nothing_wrong()


@cocotb.test
async def one_end_alone_is_reset(dut: Any) -> None:
    """At any moment, for any time: the other sees it, and both come up again, with the first packet good. bench_top.sv holds the rule of link_up."""
    lanes = await started(dut)
    dut.burst.value = 0
    for _ in range(12 if SHORT else 200):
        if lanes.rng.random() < 0.7:
            await lanes.until_up(ATTEMPT_CYCLES + UP_CYCLES)
        await lanes.wait(lanes.rng.randrange(1, 200))
        one = lanes.rng.choice((dut.rst, dut.b_rst))
        one.value = 1
        await lanes.wait(lanes.rng.choice((1, 3, 50, 500)))
        one.value = 0
    await lanes.until_up(ATTEMPT_CYCLES + UP_CYCLES)
    for end in "ab":
        assert lanes.totals(end)["wrong"] == 0
