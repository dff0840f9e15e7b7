# SPDX-License-Identifier: Apache-2.0
"""crc32_word and crc32_wide against zlib: the register, not inverted, so many bytes later."""

import zlib
from typing import Any

import cocotb
from common.bench import SHORT, Bench, Part, random_numbers


async def compare(dut: Any, block: str, size: int) -> None:
    rng = random_numbers()
    part = Part(dut, block)
    bench = Bench(part)
    words = [rng.randbytes(size) for _ in range(100 if SHORT else 2000)]
    words += [(1 << bit).to_bytes(size, "little") for bit in range(8 * size)]
    registers = [rng.choice([0, 0xFFFFFFFF, rng.getrandbits(32)]) for _ in words] + [1 << bit for bit in range(32)]
    for data, register in zip(words + [bytes(size)] * 32, registers, strict=True):
        part.crc.value, part.data.value = register, int.from_bytes(data, "little")
        await bench.wait(1)
        assert int(part.crc_next.value) == zlib.crc32(data, register ^ 0xFFFFFFFF) ^ 0xFFFFFFFF


@cocotb.test
async def eight_bytes_as_zlib_takes_them(dut: Any) -> None:
    await compare(dut, "g_crc32_word", 8)


@cocotb.test
async def twelve_bytes(dut: Any) -> None:
    await compare(dut, "g_crc32_12", 12)


@cocotb.test
async def sixteen_bytes(dut: Any) -> None:
    await compare(dut, "g_crc32_16", 16)


@cocotb.test
async def thirty_two_bytes(dut: Any) -> None:
    await compare(dut, "g_crc32_32", 32)


@cocotb.test
async def a_frame_in_words_of_thirty_two_bytes(dut: Any) -> None:
    """A last word of any length: filled with zeros, and they are taken back."""
    rng = random_numbers()
    word, undo = Part(dut, "g_crc32_32"), Part(dut, "g_crc32_undo_32")
    bench = Bench(word)
    for size in range(64, 97 if SHORT else 400):
        frame, register = rng.randbytes(size), 0xFFFFFFFF
        for at in range(0, size, 32):
            word.crc.value, word.data.value = register, int.from_bytes(frame[at : at + 32], "little")
            await bench.wait(1)
            register = int(word.crc_next.value)
        undo.crc.value, undo.zero_bytes.value = register, -size % 32
        await bench.wait(1)
        assert int(undo.crc_before.value) ^ 0xFFFFFFFF == zlib.crc32(frame), size
