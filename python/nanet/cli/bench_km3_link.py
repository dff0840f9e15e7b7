# SPDX-License-Identifier: Apache-2.0
"""The command `nanet bench km3-link`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nanet.cli.options import CsvFile, JsonFile, set_by


def bench_km3_link(
    context: typer.Context,
    program: Annotated[
        Path | None,
        typer.Option("--program", metavar="FILE", help="The simulation; by default build/release/bench/gateware/bench_km3_link."),
    ] = None,
    resets: Annotated[
        int, typer.Option("--resets", min=1, help="Resets of the link, each from any phase of every divider.")
    ] = 4320,
    frames: Annotated[int, typer.Option("--frames", min=10, help="Frames at each line rate, idle and busy.")] = 100,
    seed: Annotated[int, typer.Option("--seed", min=1, help="Of all that is random.")] = 1,
    short: Annotated[bool, typer.Option("--short", help="Quick check: 200 resets, 20 frames.")] = False,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Reset the simulated link of a KM3NeT floor again and again.

    Clocks and data must come at the same moment after every reset, as with every slot full; four receivers that are wrong must be found. Exit status
    1: it is not so.
    """
    from nanet.bench import km3_link
    from nanet.result import files

    if short:
        set_by(context, "--short", {"resets", "frames"})
    chosen = km3_link.Options(200, 20, seed) if short else km3_link.Options(resets, frames, seed)
    result = km3_link.run(program, chosen)
    for name, phase in [("right receiver", result), *((one["name"], one) for one in result["controls"])]:
        print(
            f"{name}: {phase['resets']} resets, {phase['not_up']} without a link, latency values {phase['latency_values']}, "
            f"told by the RTL's monitors {phase['told_by_monitors']} times"
        )
    if km3_link.is_fixed(result):
        fibres = f"fibres of {result['fibre_down']} and {result['fibre_up']}"
        print(f"down {result['down'][0]} bits, round trip {result['round_trip'][0]} bits, with {fibres}")
    for line in result["lines"]:
        print(
            f"{line['line_mbps']} Mb/s: payload {line['payload_fraction']:.4f} of what the line carries, latency values "
            f"{line['latency_values']} idle and busy, {line['express_codes']} express codes, {line['wrong']} wrong"
        )
    files.write_json(json_file, result)
    files.append_csv(csv_file, "km3-link", km3_link.csv_rows(result))
    problems = km3_link.problems_of(result)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(1)
