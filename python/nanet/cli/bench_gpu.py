# SPDX-License-Identifier: Apache-2.0
"""The command `nanet bench gpu`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nanet.cli.options import CsvFile, JsonFile, Out


class Part(StrEnum):
    """Which benchmark."""

    ROUND_TRIP = "round_trip"
    DRIVER_PATH = "driver_path"
    LOOP = "loop"
    FINDERS = "finders"
    MERGE = "merge"
    TRACE = "trace"


def bench_gpu(
    part: Annotated[list[Part] | None, typer.Option("--part", help="Only this part; repeat for more.")] = None,
    given: Annotated[
        list[Path] | None,
        typer.Option(
            "--from", metavar="FILE", help="Measure nothing: read a CSV file that a bench_gpu program wrote; repeat for more."
        ),
    ] = None,
    programs: Annotated[
        Path | None,
        typer.Option(
            "--programs", metavar="FOLDER", help="Folder of the bench_gpu programs; by default build/cuda-release/bench/gpu."
        ),
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Quick check.")] = False,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure round trips to a GPU, the whole loop, and finders.

    Also the papers' driver path, event building, and which CUDA calls a loop makes.
    """
    from nanet.bench import gpu
    from nanet.report import write_report
    from nanet.result import files, outputs

    outputs.reserve_folder(out, "bench-gpu.html")
    if given:
        measured = [gpu.read(path) for path in given]
    else:
        gpu.check_gpu()
        found = gpu.find_programs(programs, [one.value for one in part or ()], _say)
        arguments = ["--short"] if short else []
        outputs.reserve_folder(out, *(f"gpu-{name}.csv" for name in found))
        measured = []
        for name, program in found.items():
            try:
                measured.append(gpu.run_program(program, name, arguments, out / f"gpu-{name}.csv", _say))
            except gpu.NotPossibleError as problem:
                if part or name != gpu.SPARE_PART:
                    raise
                _say(f"{name}: not measured ({problem})")
    result = gpu.result_of(measured)
    files.write_json(json_file, result)
    files.append_csv(csv_file, "gpu", gpu.csv_rows(result))
    write_report(result, out / "bench-gpu.html")
    _say(f"report: {out / 'bench-gpu.html'}")
    raise typer.Exit(1 if result["wrong"] else 0)


def _say(line: str) -> None:
    print(line, flush=True)
