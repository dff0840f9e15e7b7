# SPDX-License-Identifier: Apache-2.0
"""crc32_word against zlib: the register, not inverted, eight bytes later."""

import zlib
from typing import Any

import cocotb
from common.bench import SHORT, Bench, Part, random_numbers


@cocotb.test
async def eight_bytes_as_zlib_takes_them(dut: Any) -> None:
    rng = random_numbers()
    part = Part(dut, "g_crc32_word")
    bench = Bench(part)
    words = [rng.randbytes(8) for _ in range(100 if SHORT else 2000)] + [(1 << bit).to_bytes(8, "little") for bit in range(64)]
    registers = [rng.choice([0, 0xFFFFFFFF, rng.getrandbits(32)]) for _ in words] + [1 << bit for bit in range(32)]
    for data, register in zip(words + [bytes(8)] * 32, registers, strict=True):
        part.crc.value, part.data.value = register, int.from_bytes(data, "little")
        await bench.wait(1)
        assert int(part.crc_next.value) == zlib.crc32(data, register ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
