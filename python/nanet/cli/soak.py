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
    faults: Annotated[
        str,
        typer.Option(
            "--faults",
            metavar="NAMES",
            help="packets, stop, kill, link, disk, clock, memory, slow, gpu, with commas between them; all; none.",
        ),
    ] = "all",
    fault_every: Annotated[
        str, typer.Option("--fault-every", metavar="TIME", help="One fault in each such time, 8s or more.")
    ] = "60s",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the order, moments and lengths of the faults.")] = 1,
    recover_within: Annotated[
        str, typer.Option("--recover-within", metavar="TIME", help="How soon after a fault the rate must be reached again.")
    ] = "10s",
    host_share_max: Annotated[
        float,
        typer.Option(
            "--host-share-max",
            min=0.0,
            max=1.0,
            help="Above this share of the time taken by the machine (stalls, steal) the soak is inconclusive.",
        ),
    ] = 0.2,
    out: Out = Path("out"),
    json_file: JsonFile = None,
) -> None:
    """Run boards against an engine for hours, with injected faults.

    Passes (exit status 0) if every fault is survived, the books balance, and memory and file descriptors do not grow.

    1: failed. 3: inconclusive, the machine had no time for it.
    """
    from nanet.result import files, outputs
    from nanet.soak import plan
    from nanet.soak import soak as soaking
    from nanet.soak.verdict import EXIT_CODES, table, verdict_text

    options = soaking.SoakOptions(
        soaking.parse_duration(duration), rate, config, boards, port, round(growth_max_mib * 2**20), plan.chosen(faults),
        soaking.parse_time(fault_every), seed, soaking.parse_time(recover_within), host_share_max,
    )  # fmt: skip
    outputs.reserve_folder(out, "soak.json")
    result = soaking.run(options, _say)
    for path in {out / "soak.json", json_file or out / "soak.json"}:
        files.write_json(path, result)
    _say("")
    for line in table(result):
        _say(line)
    for note in result["notes"]:
        _say(f"note: {note}")
    _say(verdict_text(result))
    _say(f"data: {out / 'soak.json'}")
    raise typer.Exit(EXIT_CODES[result["verdict"]["outcome"]])


def _say(line: str) -> None:
    print(line, flush=True)
