# SPDX-License-Identifier: Apache-2.0
"""The command `nanet bench km3-burst`."""

from __future__ import annotations

from typing import Annotated

import typer

from nanet.cli.options import JsonFile, set_by


def bench_km3_burst(
    context: typer.Context,
    floors: Annotated[int, typer.Option("--floors", min=1, max=31, help="Floors of the emulated tower.")] = 14,
    factor: Annotated[float, typer.Option("--factor", min=1, max=100, help="By which the burst multiplies the rate.")] = 4.0,
    burst: Annotated[float, typer.Option("--burst", metavar="S", min=0.2, max=60, help="How long it is.")] = 1.0,
    samples: Annotated[int, typer.Option("--samples", min=0, max=50, help="Samples of each hit; 0: short hits.")] = 0,
    speed: Annotated[float, typer.Option("--speed", min=0, help="Detector time over time; 0: as fast as possible.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", help="Of the tower's light.")] = 1,
    short: Annotated[bool, typer.Option("--short", help="Quick check: 2 floors.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Balance the books of a burst of light in a KM3NeT tower.

    It is on all floors of an emulated tower, and goes through the engine.
    Every hit is judged or left out under a name. Exit status 1: something is missing without one.
    """
    from nanet.bench import km3_burst
    from nanet.result import files

    if short:
        set_by(context, "--short", {"floors"})
    chosen = km3_burst.Options(2 if short else floors, factor, burst, samples, speed, seed)
    result = km3_burst.run(chosen, lambda text: print(text, flush=True))
    files.write_json(json_file, result)
    for line in km3_burst.lines(result):
        print(line, flush=True)
    raise typer.Exit(0 if km3_burst.is_kept(result) else 1)
