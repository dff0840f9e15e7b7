# SPDX-License-Identifier: Apache-2.0
"""`nanet soak`: the options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nanet.cli.options import JsonFile, Out, PortOption


def soak(
    config: Annotated[
        Path | None, typer.Argument(is_eager=True, help="YAML file of an engine; without one, the engine of nanet demo.")
    ] = None,
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="How long: 4h, 1h30m, 10m, 30s.")] = "10m",
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="EVENTS/S", min=1e3, help="Mean rate; by default 80 % of the critical rate, which is measured first."
        ),
    ] = None,
    boards: Annotated[
        int, typer.Option("--boards", help="Without CONFIG: 1, whole events from one board; 4, parts from four.")
    ] = 1,
    port: PortOption = 6200,
    growth_max_mib: Annotated[
        float, typer.Option("--growth-max-mib", min=0.0, help="How much each process may grow after the warm-up [MiB].")
    ] = 4.0,
    out: Out = Path("out"),
    json_file: JsonFile = None,
) -> None:
    """Run boards against an engine for hours, with injected faults.

    Passes if the books balance and memory and file descriptors do not grow while faults are switched on and off.
    """
    from nanet import outputs, results
    from nanet import soak as soaking

    options = soaking.SoakOptions(soaking.parse_duration(duration), rate, config, boards, port, round(growth_max_mib * 2**20))
    outputs.reserve_folder(out, "soak.json")
    result = soaking.run(options, _say)
    for path in {out / "soak.json", json_file or out / "soak.json"}:
        results.write_json(path, result)
    _say("")
    for line in soaking.table(result):
        _say(line)
    for note in result["notes"]:
        _say(f"note: {note}")
    _say(soaking.verdict_text(result))
    _say(f"data: {out / 'soak.json'}")
    raise typer.Exit({"passed": 0, "failed": 1, "inconclusive": 2}[result["verdict"]["outcome"]])


def _say(line: str) -> None:
    print(line, flush=True)
