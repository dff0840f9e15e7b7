# SPDX-License-Identifier: Apache-2.0
"""The command `nanet bench torus`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nanet.cli.options import CsvFile, JsonFile, Out, set_by
from nanet.cli.torus import ProgramOption, SeedOption, ThreadsOption, WindowOption, WireOption, cores, say_problems
from nanet.result import outputs


def bench_torus(
    context: typer.Context,
    wire_cycles: WireOption = 16,
    window: WindowOption = 6000,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    short: Annotated[bool, typer.Option("--short", help="Quick check: a torus of 2x2x1, no 4x4x4, few cycles.")] = False,
    program: ProgramOption = None,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure the torus in gateware: link, hop, PUT, load curves.

    All in cycles of the RTL, 4x4x4 nodes with packets of 256 B.
    """
    from nanet.bench.torus import CUBE, FEW_LOADS, LOADS, PATTERNS, Study, bench, csv_rows, possible
    from nanet.report import write_report
    from nanet.result import files

    if short:
        set_by(context, "--short", {"window", "threads"})
    shape = "2x2x1" if short else CUBE
    study = Study(
        shape, possible(PATTERNS, shape), FEW_LOADS if short else LOADS, wire_cycles=wire_cycles, window=500 if short else window,
        seed=seed, threads=1 if short else cores(threads), program=program or Study.program,
    )  # fmt: skip
    outputs.reserve_folder(out, "bench-torus.html")
    result = bench(study, _say, short=short)
    files.write_json(json_file, result)
    link, hop, saturation = result["link"], result["hop_cycles"], result["saturation"]["uniform_4x4x4"]
    rows = [("link", name, float(link[name]), "") for name in ("efficiency_4096", "efficiency_256")]
    rows += [("hop", name, float(hop[name]), "cycles") for name in ("min", "max", "spread")]
    rows.append(("put", "rtl_ns", result["put"]["rtl_ns"], "ns"))
    rows += [] if saturation is None else [("saturation", "uniform_4x4x4", saturation, "words/node/cycle")]
    rows.append(("all", "cycles_per_wall_second", result["cycles_per_wall_second"], "cycles/s"))
    files.append_csv(csv_file, "torus", rows + csv_rows(result["curves"]))
    write_report(result, out / "bench-torus.html")
    _say("uniform 4x4x4 at full load: " + ("not run" if saturation is None else f"{saturation:.3f} words a node and cycle"))
    _say(f"simulation of 8 nodes: {result['cycles_per_wall_second']:,.0f} cycles per second with {result['threads']} threads")
    _say(f"report: {out / 'bench-torus.html'}")
    say_problems(result["problems"])


def _say(line: str) -> None:
    print(line, flush=True)
