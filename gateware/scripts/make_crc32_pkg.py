#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes rtl/crc32_pkg.sv: the Ethernet CRC-32 as constant XOR masks, so that no tool has to unroll a loop over bits.

Usage: make_crc32_pkg.py [--check]. With --check nothing is written; exit 1 if the file is not what would be written.

The CRC register is the reflected one (polynomial 0xEDB88320, all ones at the start, inverted on the wire), as in zlib.
"""

import sys
from pathlib import Path

POLYNOMIAL = 0xEDB88320
ONES = 0xFFFFFFFF
GOOD = 0xDEBB20E3  # the register after any good frame and its FCS
WIDEST_BYTES = 32  # of a word
TARGET = Path(__file__).resolve().parent.parent / "rtl" / "crc32_pkg.sv"


def step_bit(crc: int, bit: int) -> int:
    odd = (crc ^ bit) & 1
    return (crc >> 1) ^ (POLYNOMIAL if odd else 0)


def step_zero_bytes(crc: int, count: int) -> int:
    for _ in range(8 * count):
        crc = step_bit(crc, 0)
    return crc


def rows_of(images: list[int]) -> list[int]:
    """Masks, one a bit of the result, from the images of the single bits of the argument."""
    return [sum(1 << column for column, image in enumerate(images) if image >> row & 1) for row in range(32)]


def word_masks(size: int) -> list[int]:
    """The register after so many bytes, 4 or more, is linear in (data ^ register), the register standing under the first four bytes."""
    images = []
    for position in range(8 * size):
        crc = 0
        for bit in range(8 * size):
            crc = step_bit(crc, int(bit == position))
        images.append(crc)
    return rows_of(images)


def byte_masks() -> list[int]:
    """The register after one byte: what its low byte and the data make of it, beside the other three bytes moved down."""
    return rows_of([step_zero_bytes(1 << position, 1) for position in range(8)])


def undo_masks(zero_bytes: int) -> list[int]:
    """The register as it was before that many zero bytes: each bit is stepped back, the top bit says whether the polynomial went in."""
    images = []
    for position in range(32):
        crc = 1 << position
        for _ in range(8 * zero_bytes):
            crc = (((crc ^ POLYNOMIAL) << 1) | 1) & ONES if crc >> 31 else crc << 1
        images.append(crc)
    return rows_of(images)


def table(name: str, width: int, rows: list[int], meaning: str) -> str:
    digits = width // 4
    lines = [f"    {width}'h{row:0{digits}X}" for row in reversed(rows)]  # a concatenation begins with its highest element
    return f"  // {meaning}\n  localparam logic [{len(rows) * width}-1:0] {name} = {{\n" + ",\n".join(lines) + "\n  };\n"


def text() -> str:
    residues = [step_zero_bytes(GOOD, 8 - lanes) for lanes in range(8)]
    undo = [mask for zero_bytes in range(WIDEST_BYTES) for mask in undo_masks(zero_bytes)]
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// The Ethernet CRC-32 as constant XOR masks. Written by gateware/scripts/make_crc32_pkg.py: do not edit.\n"
        "package crc32_pkg;\n"
        + table(
            "WORD",
            64,
            word_masks(8),
            "Bit i of the register after eight bytes is the parity of (data ^ register) & WORD[64*i +: 64].",
        )
        + table("WORD_12", 96, word_masks(12), "The same after twelve bytes,")
        + table("WORD_16", 128, word_masks(16), "after sixteen,")
        + table("WORD_32", 256, word_masks(32), "and after thirty-two.")
        + table(
            "BYTE",
            8,
            byte_masks(),
            "Bit i of the register after one byte is the parity of (data ^ register) & BYTE[8*i +: 8], and bit i + 8 of the register.",
        )
        + table("UNDO", 32, undo, "Bit i of the register before z zero bytes is the parity of register & UNDO[32*(32*z+i) +: 32].")
        + table("RESIDUE", 32, residues, "The register after a good frame whose last word has n bytes (0..7) and zeros after them.")
        + f"  // The register after any good frame and its check sequence.\n  localparam logic [31:0] GOOD = 32'h{GOOD:08X};\n"
        + "endpackage\n"
    )


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: make_crc32_pkg.py [--check]", file=sys.stderr)
        return 2
    if not arguments:
        TARGET.write_text(text(), encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text():
        return 0
    print(f"error: {TARGET.name} is not what its script writes (one of them was changed) run make_crc32_pkg.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
