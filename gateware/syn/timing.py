#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the logic of the slowest path of each module is for UltraScale+, as yosys maps and times it: without wires, with the delays that yosys knows,
which are of 7-series cells. Not what a place and route will reach, but it shows which path to cut.

    timing.py [--at-most NS] [--jobs N] [BLOCK...]    prints a table of these blocks, or of all of the core; exit 1 if one is longer
    timing.py --write [--jobs N] [BLOCK...]           these, or all, into docs/gateware-timing.md, beside what nextpnr reaches on an ECP5

A path begins and ends at registers, memories and the module's ports.
"""

import argparse
import csv
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import synthesise

CORE = (
    *("mac_10g_rx", "mac_10g_tx", "rx_crossing", "tx_crossing", "eth_rx", "udp_rx", "match_table", "replier", "frame_fifo"),
    *("rx_fifo", "clop_writer", "write_arbiter", "dma_write", "page_table", "stage_stats", "interrupter", "timebase"),
    *("tx_ring", "dma_read", "tx_fifo", "udp_tx", "stream_mux", "router", "nanet_encap"),
    *("port_queue", "async_fifo", "decompressor", "event_check", "part_buffer", "event_select", "event_merger", "event_gather"),
    *("event_packer", "nic_regs", "counters"),
    *("enc_8b10b", "dec_8b10b", "comma_align", "apelink_lanes", "apenet_input", "apenet_output"),
    *("km3_align", "km3_time", "km3_frame_tx", "km3_frame_rx", "km3_buffer", "km3_packets", "km3_regs"),
)
PAGE = synthesise.HERE.parent / "docs" / "gateware-timing.md"
ECP5 = synthesise.HERE.parent / "docs" / "gateware-ecp5.csv"
BEGIN, END = "<!-- timed: begin (gateware/syn/timing.py writes this) -->", "<!-- timed: end -->"
CELLS = re.compile(r"^ +(\d+) \S+ \((\w+)\.\S+\)$", re.MULTILINE)  # of a path: arrival [ps], kind of cell


@dataclass(frozen=True)
class Timed:
    """luts, carries: cells of each kind on the slowest path; begin: where it begins."""

    block: str
    logic_ns: float
    luts: int
    carries: int
    begin: str


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="The slowest path of each module in logic of UltraScale+")
    parser.add_argument("blocks", nargs="*", metavar="BLOCK")
    parser.add_argument("--at-most", type=float, metavar="NS", help="exit 1 if the logic of a path is longer")
    parser.add_argument("--jobs", type=int, default=1, help="blocks at a time (default 1)")
    parser.add_argument("--write", action="store_true", help="write the table of docs/gateware-timing.md")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs takes 1 or more")
    try:
        with ProcessPoolExecutor(options.jobs) as pool:
            rows = list(pool.map(timed, options.blocks or CORE))
    except synthesise.SynthesisFailed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(table(rows))
    if options.write:
        write(rows)
    bound = options.at_most
    long = [row.block for row in rows if bound is not None and row.logic_ns > bound]
    if long:
        print(f"error: {', '.join(long)} over the bound (see build/gateware/timing) cut the path", file=sys.stderr)
    return 1 if long else 0


def timed(block: str) -> Timed:
    report = f"{synthesise.BUILD}/timing/{block}.txt"
    synthesise.folder("timing")
    script = f"synth_xilinx -family xcup -flatten -abc9 -noiopad -noclkbuf -top {synthesise.module_of(block)}"
    # Its sta begins at ports alone, so what a register or a memory gives is made one, and what it takes is a path's end all the same.
    ends = "delete t:FD* t:RAM* t:SRL*; setundef -undriven -expose"
    synthesise.yosys(
        block,
        f"{synthesise.read(block)}; {script}; {ends}; read_verilog -lib -specify +/xilinx/cells_sim.v; tee -q -o {report} sta",
    )
    return read_report(block, (synthesise.HERE / report).read_text(encoding="utf-8"))


def read_report(block: str, text: str) -> Timed:
    path = text.partition("Arrival histogram")[0]
    latest = re.search(r"Latest arrival time in '[^']+' is (\d+):", path)
    if latest is None:
        return Timed(block, 0.0, 0, 0, "no path")
    kinds = [kind for _, kind in CELLS.findall(path)]
    begin = re.search(r"^ +0 +(\S.*?) \(<", path, re.MULTILINE)
    return Timed(
        block=block,
        logic_ns=int(latest[1]) / 1000,
        luts=sum(kind.startswith("LUT") for kind in kinds),
        carries=sum(kind.startswith("CARRY") for kind in kinds),
        begin=begin[1].lstrip("\\").replace(" ", "") if begin else "a register",
    )


def table(rows: list[Timed]) -> str:
    ecp5_ns = {row["module"]: 1000 / float(row["fmax_mhz_min"]) for row in csv.DictReader(ECP5.open(encoding="utf-8"))}
    lines = ["| module | logic ns | LUTs | carries | ECP5, routed ns |", "|---|---|---|---|---|"]
    for row in rows:
        routed = f"{ecp5_ns[row.block]:.1f}" if row.block in ecp5_ns else "-"
        lines.append(f"| `{row.block}` | {row.logic_ns:.2f} | {row.luts} | {row.carries} | {routed} |")
    return "\n".join(lines)


def write(rows: list[Timed]) -> None:
    """The rows into the page, in place of earlier ones of the same modules."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    known, _, after = rest.partition(END)
    fresh = {line.split("`")[1]: line for line in table(rows).splitlines() if "`" in line}
    lines = {line.split("`")[1]: line for line in known.splitlines() if "`" in line} | fresh
    ordered = [lines[block] for block in [*CORE, *sorted(lines.keys() - set(CORE))] if block in lines]
    PAGE.write_text("\n".join([f"{before}{BEGIN}", *table([]).splitlines(), *ordered, f"{END}{after}"]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
