#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden table of the ring finders, tests/physics/golden.csv, from the installed package.

Run it when a finder was changed on purpose, look at the difference, and commit it with the change.
"""

import sys
from pathlib import Path

from nanet.physics import golden

PATH = Path(__file__).resolve().parent.parent / "tests" / "physics" / "golden.csv"


def main(arguments: list[str]) -> int:
    if arguments:
        print("usage: physics_golden.py", file=sys.stderr)
        return 2
    rows = golden.measure()
    golden.write(PATH, rows)
    print(f"{len(rows)} rows in {PATH}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
