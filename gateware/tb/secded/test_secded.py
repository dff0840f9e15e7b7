# SPDX-License-Identifier: Apache-2.0
"""secded_encode and secded_decode: words literally, the reference, all 128 single and all 8128 double errors."""

from itertools import combinations
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import Timer
from common import apenet
from common.bench import SHORT, random_numbers

# Word for word on docs/apelink-format.md.
EXAMPLE = {
    **{"vc": 1, "process": 0x1234, "x": 3, "y": 2, "z": 1, "port": 5},
    **{"packet_type": 1, "bytes": 20, "address": 0x123456789ABC, "hops": 2},
}
EXAMPLE_HEADER = "81 46 62 10 a1 08 14 00 af 26 9e 15 8d 84 00 56"
EXAMPLE_FOOTER = "c6 de 3a f6 00 00 ff ff ff ff ff ff ff ff ff ff"


def as_written(word: int) -> str:
    return word.to_bytes(16, "little").hex(" ")


async def decode(dut: Any, data: int, flips: int) -> tuple[int, int, int]:
    dut.data.value, dut.flips.value = data, flips
    await Timer(1, "ns")
    return int(dut.decoded.value), int(dut.corrected.value), int(dut.failed.value)


def headers(rng: Random, count: int) -> list[int]:
    return [0, apenet.ALL_120, *(1 << bit for bit in range(120)), *(rng.getrandbits(120) for _ in range(count))]


@cocotb.test
async def words_are_the_reference_s(dut: Any) -> None:
    head = apenet.header(**EXAMPLE)
    assert as_written(apenet.with_check(head)) == EXAMPLE_HEADER
    assert as_written(apenet.footer(head, apenet.words_of(bytes(range(20))))) == EXAMPLE_FOOTER
    await decode(dut, head, 0)
    assert as_written(int(dut.word.value)) == EXAMPLE_HEADER
    for data in headers(random_numbers(), 100 if SHORT else 2000):
        assert await decode(dut, data, 0) == (data, 0, 0)
        assert int(dut.word.value) == apenet.with_check(data)
        assert int(dut.named.value) == data


@cocotb.test
async def every_single_error_is_mended(dut: Any) -> None:
    rng = random_numbers()
    for data in [apenet.header(**EXAMPLE), rng.getrandbits(120)]:
        for bit in range(128):
            assert await decode(dut, data, 1 << bit) == (data, 1, 0), f"bit {bit}"


@cocotb.test
async def every_double_error_is_seen(dut: Any) -> None:
    data = random_numbers().getrandbits(120)
    for bits in combinations(range(128), 2):
        _, corrected, failed = await decode(dut, data, sum(1 << bit for bit in bits))
        assert (corrected, failed) == (0, 1), f"bits {bits}"


@cocotb.test
async def magic_is_two_bits_from_every_header(dut: Any) -> None:
    """So a header, even with a wrong bit, is never taken for MAGIC."""
    for flips in [0, *(1 << bit for bit in range(128))]:
        _, corrected, failed = await decode(dut, 0, apenet.MAGIC ^ flips)
        assert failed == (flips == 0)
        assert corrected == (flips != 0)
