# SPDX-License-Identifier: Apache-2.0
"""The command `nanet bench km3-control`."""

from __future__ import annotations

from typing import Annotated

import typer

from nanet.cli.options import JsonFile, set_by


def bench_km3_control(
    context: typer.Context,
    floors: Annotated[int, typer.Option("--floors", min=1, max=32, help="Floors of the emulated tower.")] = 14,
    duration: Annotated[float, typer.Option("--duration", metavar="S", min=0.1, help="Of each of four measurements.")] = 10.0,
    seed: Annotated[int, typer.Option("--seed", help="Of the tower's light.")] = 1,
    short: Annotated[bool, typer.Option("--short", help="Quick check: 4 floors, 1 s each.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Measure round trips of KM3NeT's slow control while data flow.

    An emulated tower is asked through the server, without and with data, and by a bare socket beside it, which says what the machine takes. Exit
    status 1: a unit was lost.
    """
    from nanet.km3 import bench as km3_control
    from nanet.result import files

    if short:
        set_by(context, "--short", {"floors", "duration"})
    chosen = km3_control.Options(1.0, 4, seed) if short else km3_control.Options(duration, floors, seed)
    result = km3_control.run(chosen, lambda text: print(f"measuring: {text}", flush=True))
    files.write_json(json_file, result)
    for line in km3_control.lines(result):
        print(line, flush=True)
    raise typer.Exit(0 if result["units_delivered"] == result["units_in"] == result["units_sent"] else 1)
