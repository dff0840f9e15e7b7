# SPDX-License-Identifier: Apache-2.0
"""The command `nanet physics`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanet.cli.options import CsvFile, HtmlFile, JsonFile

if TYPE_CHECKING:
    from nanet.result.keys.physics import PhysicsResult

SHOWN = (
    ("single_ring", "efficiency", "1 ring %", 100, 2), ("single_ring", "fakes", "fakes", 1, 4),
    ("single_ring", "ratio_to_bound", "/bound", 1, 3), ("two_rings_apart", "all_found", "2 apart %", 100, 2),
    ("two_rings", "all_found", "2 %", 100, 2), ("three_rings_apart", "all_found", "3 apart %", 100, 2),
    ("three_rings", "all_found", "3 %", 100, 2), ("multi_ring", "all_found", "mix %", 100, 2), ("multi_ring", "fakes", "fakes", 1, 4),
    ("single_ring", "ns_per_event", "1 ring ns", 1, 0), ("two_rings_apart", "ns_per_event", "2 apart ns", 1, 0),
)  # fmt: skip


def physics(
    events: Annotated[int, typer.Option("--events", min=100, help="Events of each sample.")] = 20_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the events.")] = 1,
    finder: Annotated[
        list[str] | None, typer.Option("--finder", metavar="NAME|all", help="Which ring finders; repeat for more.")
    ] = None,
    case: Annotated[list[str] | None, typer.Option("--case", metavar="NAME|all", help="Which samples; repeat for more.")] = None,
    scan: Annotated[bool, typer.Option("--scan/--no-scan", help="Also scan hits, noise, rings and distance.")] = True,
    gpu_csv: Annotated[
        Path | None, typer.Option("--gpu-csv", metavar="FILE", help="Rates measured on a GPU: columns finder, case, events_per_s.")
    ] = None,
    core: Annotated[int | None, typer.Option("--core", help="Run on this core.")] = None,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    html_file: HtmlFile = Path("out/physics.html"),
) -> None:
    """Compare every ring finder with the truth of simulated events.

    Efficiency, fakes, resolution, separation of particles, and speed.
    """
    from nanet.machine.facts import keep_to, plan_cores
    from nanet.physics import Study, run
    from nanet.physics.study import csv_rows
    from nanet.report import write_report
    from nanet.result import files

    chosen = core if core is not None else plan_cores().engine
    if chosen is not None:
        keep_to({chosen})
    study = Study(events=events, seed=seed, finders=tuple(finder or ()), cases=tuple(case or ()), scan=scan, gpu_csv=gpu_csv)
    result = run(study, _say)
    files.write_json(json_file, result)
    files.append_csv(csv_file, "physics", csv_rows(result))
    write_report(result, html_file)
    finder_table(result)
    _say(f"report: {html_file}")


def finder_table(result: PhysicsResult) -> None:
    """Prints a line for each finder: a short choice of figures of the samples that were measured."""
    from rich.table import Table

    from nanet.cli.text import Output

    console = Output()
    cases = result["cases"]
    columns = [column for column in SHOWN if column[0] in cases]
    if not columns:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("finder", no_wrap=True)
    for _, _, title, _, _ in columns:
        table.add_column(title, justify="right", no_wrap=True)
    for name in [*result["finders"], "oracle"]:
        values = [(cases[case]["finders"][name][figure], factor, digits) for case, figure, _, factor, digits in columns]
        table.add_row(name, *("-" if v is None else f"{factor * v:.{digits}f}" for v, factor, digits in values))
    console.print()
    console.print(table)


def _say(line: str) -> None:
    print(line, flush=True)
