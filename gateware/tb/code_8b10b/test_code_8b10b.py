# SPDX-License-Identifier: Apache-2.0
"""enc_8b10b and dec_8b10b against the whole table: all symbols after both disparities, all 1,024 codes after both, any symbols through both."""

from collections import Counter
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common import code_8b10b
from common.bench import PARAMETERS, SHORT, Bench, random_numbers
from common.code_8b10b import CODES, CONTROL, K28_1, K28_5, K28_7, SYMBOLS, Symbol

LANES = PARAMETERS.get("SYMBOLS", 4)  # symbols a cycle
LATENCY_CYCLES = 2
ALL = list(CODES[-1])
ALL_CODES = [f"{code:010b}" for code in range(1024)]
FLIPS, STAYS = (0, 0x03), (0, 0x23)  # D3.0 and D3.1
COMMAS = ("0011111", "1100000")


async def started(dut: Any) -> Bench:
    bench = Bench(dut)
    dut.s_k.value = dut.s_data.value = dut.loops.value = dut.s_codes.value = 0
    await bench.reset()
    return bench


def words(items: list[Any], fill: Any) -> list[list[Any]]:
    """So many a cycle."""
    items = items + [fill] * (-len(items) % LANES)
    return [items[at : at + LANES] for at in range(0, len(items), LANES)]


def every_symbol(rng: Random) -> list[Symbol]:
    """Each after both disparities, in any order, from minus on."""
    wanted = [(symbol, disparity) for symbol in ALL for disparity in (-1, 1)]
    rng.shuffle(wanted)
    symbols, running = [], -1
    for symbol, disparity in wanted:
        if running != disparity:
            symbols.append(FLIPS)
        symbols.append(symbol)
        running = code_8b10b.after(CODES[disparity][symbol], disparity)
    return symbols


async def encoded(dut: Any, given: list[list[Symbol]], seen: list[int]) -> None:
    """Gives these words to the encoder, the first in the cycle that begins; what comes out, from then on, into `seen`."""
    for word in [*given, *[[STAYS] * LANES] * (LATENCY_CYCLES + 1)]:
        dut.s_k.value = sum(k << place for place, (k, _) in enumerate(word))
        dut.s_data.value = sum(byte << 8 * place for place, (_, byte) in enumerate(word))
        await RisingEdge(dut.clk)
        seen.append(int(dut.codes.value))


@cocotb.test
async def the_table_is_one(dut: Any) -> None:
    """Of the reference: what must hold of the code, whoever wrote it down."""
    assert CODES[-1][K28_5] == "0011111010"
    assert CODES[1][(0, 0xB5)] == "1010101010"
    assert len(ALL) == 256 + 12
    for disparity, codes in CODES.items():
        assert len(set(codes.values())) == len(ALL)
        for symbol, code in codes.items():
            other = CODES[-disparity][symbol]
            assert code.count("1") in (5, 5 - disparity)  # it does not leave what is allowed
            assert code.count("1") + other.count("1") == 10
            assert other[:6] in (code[:6], inverted(code[:6]))
    commas, runs = set(), set()
    ends = {
        (code[3:], code_8b10b.after(code, disparity)) for disparity in CODES for s, code in CODES[disparity].items() if s != K28_7
    }
    for end, disparity in ends:
        for begin in {code[:7] for symbol, code in CODES[disparity].items() if symbol != K28_7}:
            pair = end + begin
            runs.add(max(map(len, pair.replace("01", "0 1").replace("10", "1 0").split())))
            commas |= {at for at in range(1, 7) if pair[at : at + 7] in COMMAS}
    assert max(runs) == 5, "a run of more than five bits"
    assert not commas, "a comma between two symbols"
    assert {symbol for symbol, code in CODES[-1].items() if code[:7] in COMMAS} == {K28_1, K28_5, K28_7}


def inverted(bits: str) -> str:
    return bits.translate(str.maketrans("01", "10"))


@cocotb.test
async def every_symbol_after_both_disparities(dut: Any) -> None:
    rng = random_numbers()
    for _ in range(1 if SHORT else 4):  # each symbol at other places of a word
        bench = await started(dut)
        dut.rst.value = 1  # the first word is the first that the encoder sees, with disparity minus
        symbols = every_symbol(rng)
        given, seen = words(symbols, STAYS), []
        await bench.wait(3)
        dut.rst.value = 0
        await encoded(dut, given, seen)
        wanted, _ = code_8b10b.encode([symbol for word in given for symbol in word], -1)
        came = [code for word in seen[LATENCY_CYCLES:] for code in code_8b10b.as_codes(word, LANES)]
        assert came[: len(wanted)] == wanted


@cocotb.test
async def every_code_after_both_disparities(dut: Any) -> None:
    """A symbol's code is that symbol; one of the other disparity is told, and taken; what is no symbol's is refused, whatever the disparity."""
    rng = random_numbers()
    await started(dut)
    codes = [code for code in ALL_CODES for _ in range(8 if SHORT else 16)]
    rng.shuffle(codes)
    tried = set()
    running, wanted = -1, []
    for code in codes:
        symbol, other = SYMBOLS[running].get(code), SYMBOLS[-running].get(code)
        wanted.append((symbol or other, symbol is None and other is None, symbol is None and other is not None))
        tried.add((code, running))
        # One of the other column leaves what that column says.
        running = code_8b10b.after(code, -running if symbol is None and other is not None else running)
    assert len(tried) >= 0.95 * 2 * len(ALL_CODES)
    given = words(codes, ALL_CODES[0])
    came = []
    dut.rst.value = 1  # down so late that the first word is the first that counts
    for place, word in enumerate([*given, *given[:LATENCY_CYCLES]]):
        dut.s_codes.value = code_8b10b.as_word(word)
        if place == 1:
            dut.rst.value = 0
        await RisingEdge(dut.clk)
        if place >= LATENCY_CYCLES:
            k, data = int(dut.m_k.value), int(dut.m_data.value)
            errors, disparities = int(dut.code_error.value), int(dut.disparity_error.value)
            came += [
                ((k >> at & 1, data >> 8 * at & 255), bool(errors >> at & 1), bool(disparities >> at & 1)) for at in range(LANES)
            ]
    for place, (code, (symbol, error, disparity)) in enumerate(zip(codes, wanted, strict=True)):
        assert came[place][1:] == (error, disparity), f"{place}: {code} told as {came[place]}, not {symbol, error, disparity}"
        if symbol is not None:
            assert came[place][0] == symbol, f"{place}: {code}"


@cocotb.test
async def any_symbols_through_both(dut: Any) -> None:
    """From reset on without an error, and with one bit wrong on the wire always one at least."""
    rng = random_numbers()
    bench = await started(dut)
    dut.loops.value = 1
    dut.rst.value = 1
    symbols = [rng.choice([(0, rng.randrange(256)), (1, rng.choice(list(CONTROL)))]) for _ in range(2000 if SHORT else 20_000)]
    given = words(symbols, STAYS)
    await bench.wait(4)
    dut.rst.value = 0
    came = []
    for place, word in enumerate([*given, *given[: 2 * LATENCY_CYCLES]]):
        dut.s_k.value = sum(k << at for at, (k, _) in enumerate(word))
        dut.s_data.value = sum(byte << 8 * at for at, (_, byte) in enumerate(word))
        await RisingEdge(dut.clk)
        if place >= 2 * LATENCY_CYCLES:
            assert dut.code_error.value == 0
            assert dut.disparity_error.value == 0
            k, data = int(dut.m_k.value), int(dut.m_data.value)
            came += [(k >> at & 1, data >> 8 * at & 255) for at in range(LANES)]
    assert came[: len(symbols)] == symbols


@cocotb.test
async def one_wrong_bit_is_always_seen(dut: Any) -> None:
    """At once as no symbol's code, or as a disparity, by the next symbol that is not balanced; and then never again."""
    rng = random_numbers()
    bench = await started(dut)
    told = Counter[str]()
    for _ in range(60 if SHORT else 600):
        symbols = [rng.choice([(0, rng.randrange(256)), (1, rng.choice(list(CONTROL)))]) for _ in range(6 * LANES)]
        symbols += [FLIPS] * 4 * LANES
        codes, _ = code_8b10b.encode(symbols, -1)
        bits = list("".join(codes))
        at = rng.randrange(len(bits) // 2)
        bits[at] = "10"[int(bits[at])]
        hit = ["".join(bits[start : start + 10]) for start in range(0, len(bits), 10)]
        dut.rst.value = 1
        errors = disparities = 0
        for place, word in enumerate([*words(hit, ""), *[words(codes, "")[-1]] * LATENCY_CYCLES]):
            dut.s_codes.value = code_8b10b.as_word(word)
            if place == 1:
                dut.rst.value = 0
            await RisingEdge(dut.clk)
            if place >= LATENCY_CYCLES:
                errors += int(dut.code_error.value).bit_count()
                disparities += int(dut.disparity_error.value).bit_count()
        assert 1 <= errors + disparities <= 2, (errors, disparities)
        assert disparities <= 1, (errors, disparities)
        told["code" if errors else "disparity"] += 1
    assert min(told["code"], told["disparity"]) > 0, told
    await bench.wait(2)
