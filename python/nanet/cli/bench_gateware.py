# SPDX-License-Identifier: Apache-2.0
"""The command `nanet bench gateware`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanet.cli.options import CsvFile, JsonFile, Out, set_by

if TYPE_CHECKING:
    from nanet.bench.gateware_keys import GatewareResult

HOST = "The modelled host: "


def bench_gateware(
    context: typer.Context,
    program: Annotated[
        Path | None,
        typer.Option("--program", metavar="FILE", help="The simulation; by default build/release/bench/gateware/bench_gateware."),
    ] = None,
    cycles: Annotated[
        int, typer.Option("--cycles", min=10_000, help="Cycles for each of 56 pairs of frame size and buffer.")
    ] = 400_000,
    packets: Annotated[
        int, typer.Option("--packets", min=1000, help="Packets of each of three long runs, such as 1000000.")
    ] = 20_000,
    line_gbps: Annotated[
        int, typer.Option("--line-gbps", metavar="10|1", help="Line of the simulated NIC: XGMII at 10 Gb/s, GMII at 1 Gb/s.")
    ] = 10,
    short: Annotated[bool, typer.Option("--short", help="Quick check: few cycles and packets.")] = False,
    host_write: Annotated[int, typer.Option("--host-write", min=0, help=f"{HOST}cycles from its bus to its memory.")] = 64,
    host_read: Annotated[
        str, typer.Option("--host-read", metavar="MIN-MAX", help=f"{HOST}cycles until a read is answered.")
    ] = "100-140",
    host_busy: Annotated[
        int, typer.Option("--host-busy", min=0, max=1023, help=f"{HOST}cycles of 1024 in which its bus is busy.")
    ] = 32,
    host_seed: Annotated[int, typer.Option("--host-seed", min=0, help=f"{HOST}seed of its random numbers.")] = 1,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure the NIC in gateware, simulated cycle by cycle.

    Latency and throughput for every frame size and buffers of 1 to 64 packets, and under hostile and other conditions. Every
    packet is compared whole with what was sent. Exit status 1: one was wrong, or a condition passed its bound.
    """
    from nanet.bench import gateware
    from nanet.report import write_report
    from nanet.result import files, outputs

    if short:
        set_by(context, "--short", {"cycles", "packets"})
    host = tuple(
        text
        for name, value in (("write", host_write), ("read", host_read), ("busy", host_busy), ("seed", host_seed))
        for text in (f"--host-{name}", str(value))
    )
    if line_gbps not in (1, 10):
        raise typer.BadParameter("the NIC has a line of 10 or 1 Gb/s", param_hint="--line-gbps")
    chosen = (10_000, 1000) if short else (cycles, packets)
    options = gateware.Options(*chosen, host, line_gbps)
    outputs.reserve_folder(out, "bench-gateware.html")
    result = gateware.run(program, options)
    files.write_json(json_file, result)
    files.append_csv(csv_file, "gateware", gateware.csv_rows(result))
    write_report(result, out / "bench-gateware.html")
    _print(result)
    print(f"report: {out / 'bench-gateware.html'}")
    problems = gateware.problems_of(result)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(1)


def _print(result: GatewareResult) -> None:
    from nanet.bench import gateware
    from nanet.bench import gateware_tables as tables

    host = result["modelled_host"]
    ns = result["ns_per_cycle"]
    print(
        f"RTL, {result['line_gbps']} Gb/s, frames back to back, the host always ready: cycles of {ns:g} ns, over all buffers and lanes"
    )
    rows = gateware.size_rows(result["cases"], result["throughput"])
    print(tables.as_text(tables.LATENCY_HEAD, tables.latency_rows(rows, ns)))
    print(tables.many_text("long runs", result["long_runs"]))
    print(tables.many_text("sizes at random", result["mixed"]))
    print(f"\nRTL, frames back to back at {result['line_gbps']} Gb/s")
    print(tables.as_text(tables.RATE_HEAD, tables.rate_rows(rows)))
    print(f"\nModelled host (chosen numbers, not the NIC's): {tables.timing_text(host['timing'])}")
    rows = gateware.size_rows(host["cases"], host["throughput"])
    print(tables.as_text(tables.LATENCY_HEAD, tables.latency_rows(rows, ns)))
    print(tables.as_text(tables.RATE_HEAD, tables.rate_rows(rows)))
    print("\nRTL under other conditions")
    print(tables.as_text(tables.CONDITION_HEAD, tables.condition_rows(result["conditions"])))
    print("\nRouter, 4 ports of 64 bit at 156.25 MHz")
    print(tables.as_text(tables.ROUTER_HEAD, tables.router_rows(result["router"])))
    print("\nNode, four ports at 10 Gb/s with packets of 1168 B, merged")
    print(tables.as_text(tables.NODE_HEAD, tables.node_rows(result["node"])))
    print("\nCompared with the papers")
    print(tables.as_text(tables.PAPER_HEAD, tables.paper_rows(result["papers"])))
    print()
    cycles = result["last_byte_to_last_write_cycles"]
    print(
        f"frames back to back, nothing sent, full buffers of 1 to 64 packets: last byte to last write {cycles['min']} to {cycles['max']} "
        f"cycles, spread for one size and lane {cycles['spread']}"
    )
    print(f"compared whole with what was sent: {result['compared_packets']} packets, {result['wrong_packets']} wrong")
    lowest = min(result["line_rate_fraction"].values())
    print(f"lost: {result['lost_packets']} packets; of line rate, lowest of all sizes: {lowest:.6f}")
    print(f"simulation: {result['cycles_per_wall_second']:,.0f} cycles per second")
