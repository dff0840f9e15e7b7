# SPDX-License-Identifier: Apache-2.0
"""comma_align: words from bits that are cut anywhere; what is no K28.5 is no comma; a locked lane stays, and is lost by its rule."""

from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common import code_8b10b
from common.bench import PARAMETERS, SHORT, Bench, random_numbers
from common.code_8b10b import CONTROL, K28_1, K28_5, K28_7, Symbol

SYMBOLS = PARAMETERS.get("SYMBOLS", 4)
COMMAS = PARAMETERS.get("COMMAS", 8)
WIDTH = 10 * SYMBOLS
K28_5_BITS = [code_8b10b.CODES[disparity][K28_5] for disparity in (-1, 1)]
LATENCY_WORDS = 4  # from the word that has the first bit to m_codes


def stream(rng: Random, words: int, first: Symbol = K28_5, share: float = 1.0) -> str:
    """The bits of so many words; `share` of them begin with the symbol `first`, the others hold any data."""
    symbols: list[Symbol] = []
    for _ in range(words):
        symbols += [first if rng.random() < share else (0, rng.randrange(256))]
        symbols += [(0, rng.randrange(256)) for _ in range(SYMBOLS - 1)]
    return "".join(code_8b10b.encode(symbols, rng.choice((-1, 1)))[0])


class Lane:
    """Words of a stream that is cut `slip` bits early; what came out, in `came`."""

    def __init__(self, dut: Any) -> None:
        self.bench, self.dut, self.rng = Bench(dut), dut, random_numbers()
        dut.s_bits.value = dut.bad.value = 0

    async def give(self, bits: str, bad: int = 0) -> list[int]:
        """Each word, and in the same cycle whether one is bad; what came out before each edge."""
        came = []
        for at in range(0, len(bits) - WIDTH + 1, WIDTH):
            self.dut.s_bits.value, self.dut.bad.value = int(bits[at : at + WIDTH][::-1], 2), bad
            await RisingEdge(self.dut.clk)
            came.append(int(self.dut.m_codes.value))
        self.dut.s_bits.value = self.dut.bad.value = 0
        return came

    def cut(self, bits: str, slip: int) -> str:
        """With so many strange bits before them, which make no comma with the zeros before."""
        while True:
            strange = "".join(self.rng.choice("01") for _ in range(slip))
            if not any(comma in "0" * 9 + strange for comma in K28_5_BITS):
                return strange + bits

    @property
    def state(self) -> tuple[int, int]:
        return int(self.dut.locked.value), int(self.dut.slip.value)

    async def lock(self, slip: int = 0) -> None:
        await self.bench.reset()
        await self.give(self.cut(stream(self.rng, COMMAS + 6), slip))
        assert self.state == (1, slip)


@cocotb.test
async def every_phase_is_found(dut: Any) -> None:
    """The slip is the phase, no sooner than after so many commas, and the words are the sender's; also where few of them have a comma."""
    lane = Lane(dut)
    for slip in range(WIDTH):
        for share in (1.0, 0.3):
            await lane.bench.reset()
            bits = lane.cut(stream(lane.rng, COMMAS - 1), slip)
            await lane.give(bits + "01" * (3 * WIDTH))
            assert lane.state[0] == 0, "locked by one comma too few"
            await lane.bench.reset()
            sent = stream(lane.rng, 14 * COMMAS if share < 1 else 3 * COMMAS, share=share)
            came = await lane.give(lane.cut(sent, slip))
            assert lane.state == (1, slip)
            words = [int(sent[at : at + WIDTH][::-1], 2) for at in range(0, len(sent), WIDTH)]
            tail = came[-COMMAS:]
            assert tail == words[len(came) - COMMAS - LATENCY_WORDS : len(came) - LATENCY_WORDS]


@cocotb.test
async def other_commas_are_none(dut: Any) -> None:
    """K28.1 and K28.7 have the same seven bits as K28.5."""
    lane = Lane(dut)
    for symbol in [K28_1, K28_7, *[(1, byte) for byte in CONTROL if (1, byte) != K28_5]]:
        await lane.bench.reset()
        await lane.give(lane.cut(stream(lane.rng, 4 * COMMAS, first=symbol), lane.rng.randrange(WIDTH)))
        assert lane.state[0] == 0, f"locked to {symbol}"


@cocotb.test
async def a_comma_elsewhere_begins_anew_before_it_is_locked(dut: Any) -> None:
    lane = Lane(dut)
    for _ in range(10 if SHORT else 100):
        await lane.bench.reset()
        one, other = lane.rng.sample(range(WIDTH), 2)
        await lane.give(lane.cut(stream(lane.rng, COMMAS), one)[: WIDTH * (COMMAS - 1)])
        await lane.give(lane.cut(stream(lane.rng, COMMAS - 2), other))  # the seam may look like one more
        assert lane.state[0] == 0
        await lane.give(lane.cut(stream(lane.rng, 2 * COMMAS), other))
        assert lane.state == (1, other)


@cocotb.test
async def a_locked_lane_stays(dut: Any) -> None:
    """Whatever commas come, and with one bad word in five or less."""
    lane = Lane(dut)
    for _ in range(5 if SHORT else 40):
        slip = lane.rng.randrange(WIDTH)
        await lane.lock(slip)
        for _ in range(20):
            await lane.give(lane.cut(stream(lane.rng, 3), lane.rng.randrange(WIDTH)))
            assert lane.state == (1, slip)
        for _ in range(12):
            await lane.give("01" * (WIDTH // 2), bad=1)
            await lane.give("01" * (WIDTH * 2))
            assert lane.state == (1, slip)


@cocotb.test
async def a_lane_is_lost_by_its_rule(dut: Any) -> None:
    """Three bad words in a row are borne, four not; nor two in five for long. It is found again elsewhere."""
    lane = Lane(dut)
    silence = "01" * (WIDTH // 2)
    for slip in lane.rng.sample(range(WIDTH), 5):
        await lane.lock(slip)
        await lane.give(3 * silence, bad=1)
        await lane.give(20 * silence)
        assert lane.state == (1, slip)
        await lane.give(4 * silence, bad=1)
        await lane.give(2 * silence)
        assert lane.state[0] == 0
        await lane.give(lane.cut(stream(lane.rng, COMMAS - 1), slip) + 6 * silence)
        assert lane.state[0] == 0, "locked again by fewer commas than the first time"
        await lane.give(lane.cut(stream(lane.rng, COMMAS + 6), slip))
        assert lane.state == (1, slip), "not found again where it was"
        await lane.lock(slip)
        for _ in range(5):
            await lane.give(2 * silence, bad=1)
            await lane.give(3 * silence)
        assert lane.state[0] == 0
        again = (slip + 3) % WIDTH
        await lane.give(lane.cut(stream(lane.rng, COMMAS + 6), again))
        assert lane.state == (1, again)
