#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes rtl/apelink/secded_pkg.sv: the extended Hamming code (128, 120) of APEnet+ headers as constants (docs/apelink-format.md).

Usage: make_secded_pkg.py [--check]. With --check nothing is written; exit 1 if the file is not what would be written.
"""

import sys
from pathlib import Path

DATA_BITS = 120
CHECK_BITS = 7
COLUMNS = [number for number in range(1, 1 << CHECK_BITS) if number & (number - 1)]  # a power of two is a check bit's
TARGET = Path(__file__).resolve().parent.parent / "rtl" / "apelink" / "secded_pkg.sv"


def mask(check: int) -> int:
    """The data bits in whose column that check bit stands."""
    return sum(1 << bit for bit, column in enumerate(COLUMNS) if column >> check & 1)


def text() -> str:
    masks = ",\n".join(f"    {DATA_BITS}'h{mask(check):030X}" for check in reversed(range(CHECK_BITS)))
    columns = [f"{CHECK_BITS}'d{column}" for column in reversed(COLUMNS)]  # a concatenation begins with its highest element
    rows = ",\n".join("    " + ", ".join(columns[row : row + 15]) for row in range(0, DATA_BITS, 15))
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// The code of APEnet+ headers. Written by gateware/scripts/make_secded_pkg.py: change that, not this.\n"
        "package secded_pkg;\n"
        "  // Check bit c is the parity of data & MASK[120*c +: 120].\n"
        f"  localparam logic [{CHECK_BITS * DATA_BITS - 1}:0] MASK = {{\n{masks}\n  }};\n"
        "  // The check bits that data bit i stands in are those of COLUMN[7*i +: 7].\n"
        f"  localparam logic [{CHECK_BITS * DATA_BITS - 1}:0] COLUMN = {{\n{rows}\n  }};\n"
        "endpackage\n"
    )


def main(arguments: list[str]) -> int:
    assert len(COLUMNS) == DATA_BITS
    if arguments not in ([], ["--check"]):
        print("usage: make_secded_pkg.py [--check]", file=sys.stderr)
        return 2
    if not arguments:
        TARGET.write_text(text(), encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text():
        return 0
    print(f"error: {TARGET.name} is not what its script writes (one of them was changed) run make_secded_pkg.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
