# SPDX-License-Identifier: Apache-2.0
"""The command `nanet bench assemble`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from nanet.cli.options import CsvFile, JsonFile, set_by


def bench_assemble(
    context: typer.Context,
    format_names: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="NAME", help="A shipped format whose packets are pieces of units; again for more."),
    ] = None,
    turns: Annotated[int, typer.Option("--turns", min=1, help="Searches of each receiver, who take turns; the median counts.")] = 3,
    duration: Annotated[float, typer.Option("--duration", metavar="S", min=0.05, help="Length of a run at a rate.")] = 0.5,
    spead2: Annotated[
        Path | None,
        typer.Option(
            "--spead2",
            metavar="FOLDER",
            file_okay=False,
            exists=True,
            help="Another build of spead2 to receive beside: PyPI's wheels take one packet at a time, and what pip install --target FOLDER "
            "--no-binary spead2 spead2 makes takes super-packets (Debian: libboost-dev, libdivide-dev).",
        ),
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Quick check: one turn of few short runs.")] = False,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure how fast units of 1 MiB are put together.

    The highest rate without loss over loopback, beside the link alone and, for SPEAD, spead2's receiver if it is installed; and the latency from a
    unit's last packet to the unit in a program.
    """
    from nanet.bench import assemble
    from nanet.result import files

    if short:
        set_by(context, "--short", {"turns", "duration"})
    bench = assemble.AssembleBench(tuple(format_names or assemble.DEFAULT), turns, spead2=spead2)
    bench = replace(bench, search=replace(bench.search, repeat_s=duration))
    if short:
        bench = replace(bench, turns=1, search=replace(bench.search, steps=3, repeat_s=0.1), latency_units=20, queue_rounds=2)
    result = assemble.run(bench, lambda line: print(line, flush=True))
    for one in result["formats"]:
        ratio = "" if one["ratio_to_peer"] is None else f", {one['ratio_to_peer']:.2f} times {one['peer']}"
        print(
            f"{one['name']}: {one['loss_free_gbit_per_s']:.1f} Gb/s without loss{ratio}; "
            f"p50 {one['p50_us']:.0f} us, p99 {one['p99_us']:.0f} us (the socket's {one['link_p50_us']:.0f} and {one['link_p99_us']:.0f})"
        )
    if result["declared_over_handwritten"] is not None:
        print(f"decoding by declaration takes {result['declared_over_handwritten']:.2f} times as long as by hand (MGP)")
    if result["queues"] is not None:
        print(f"two receive queues on two cores take {result['queues']['two_over_one']:.2f} times one, by CPU time")
    files.write_json(json_file, result)
    files.append_csv(csv_file, "assemble", assemble.csv_rows(result))
    raise typer.Exit(0 if all(one["loss_free_gbit_per_s"] > 0 for one in result["formats"]) else 1)
