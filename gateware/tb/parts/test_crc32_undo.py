# SPDX-License-Identifier: Apache-2.0
"""crc32_undo takes back what zlib did: some zero bytes behind any register."""

import zlib
from typing import Any

import cocotb
from common.bench import SHORT, Bench, Part, random_numbers


async def compare(dut: Any, block: str, word_bytes: int) -> None:
    rng = random_numbers()
    part = Part(dut, block)
    bench = Bench(part)
    registers = [rng.getrandbits(32) for _ in range(20 if SHORT else 500)] + [0, 0xFFFFFFFF] + [1 << bit for bit in range(32)]
    for before in registers:
        for zero_bytes in range(word_bytes):
            part.crc.value = zlib.crc32(bytes(zero_bytes), before ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
            part.zero_bytes.value = zero_bytes
            await bench.wait(1)
            assert int(part.crc_before.value) == before, zero_bytes


@cocotb.test
async def zero_bytes_are_taken_back(dut: Any) -> None:
    await compare(dut, "g_crc32_undo", 8)


@cocotb.test
async def those_of_a_word_of_thirty_two_bytes_too(dut: Any) -> None:
    await compare(dut, "g_crc32_undo_32", 32)
