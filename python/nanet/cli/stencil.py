# SPDX-License-Identifier: Apache-2.0
"""`nanet stencil`: its options, and what it prints."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Dtype(StrEnum):
    """Type of a cell."""

    FP32 = "fp32"
    FP64 = "fp64"


def stencil(
    size: Annotated[str, typer.Option("--size", metavar="N|ROWSxCOLUMNS", help="Cells of the field, boundary included.")] = "8192",
    dtype: Annotated[Dtype, typer.Option("--dtype", help="Type of a cell.")] = Dtype.FP64,
    sweeps: Annotated[int, typer.Option("--sweeps", metavar="N", min=1, help="How many sweeps.")] = 100,
    sweeps_per_pass: Annotated[
        int,
        typer.Option(
            "--sweeps-per-pass", metavar="N", min=1, max=32, help="Sweeps each time the field goes through memory; 1: plain sweeps."
        ),
    ] = 4,
    norm_every: Annotated[
        int, typer.Option("--norm-every", metavar="N", min=0, help="Norm of the change of every N-th sweep; 0: none.")
    ] = 0,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", min=1, help="By default one for each core that may be used.")
    ] = None,
    pinned: Annotated[bool, typer.Option("--pin/--no-pin", help="Tie each thread to a core.")] = True,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result there, see docs/json.md.")
    ] = None,
) -> None:
    """Five-point Jacobi sweeps on this machine's cores: updates a second, and how that compares to copying memory."""
    from nanet import results
    from nanet import stencil as sweeping

    rows, columns = sweeping.shape_of(size)
    options = sweeping.StencilOptions(rows, columns, dtype.value, sweeps, sweeps_per_pass, norm_every, threads, pinned)
    result = sweeping.measure(options)
    results.write_json(json_file, result)
    for norm in result["norms"]:
        _say(f"sweep {norm['sweep']:>8}: change max {norm['max']:.6e}  L2 {norm['l2']:.6e}")
    where = f"cores {', '.join(map(str, result['cores']))}" if result["cores"] else "not pinned"
    _say(f"{rows} x {columns} {dtype.value}, {sweeps} sweeps, {sweeps_per_pass} a pass, {result['threads']} threads ({where})")
    _say(f"{result['updates_per_s'] / 1e9:.3f} Gupdate/s, {result['seconds_compute']:.3f} s; with taking the field in and out "
         f"{result['seconds_total']:.3f} s")  # fmt: skip
    _say(f"{result['fraction_of_copy_bandwidth']:.2f} of a copy on the same cores ({result['copy_bytes_per_s'] / 1e9:.2f} GB/s; "
         f"an update counted as one read and one write)")  # fmt: skip
    for note in result["notes"]:
        _say(f"note: {note}")


def _say(line: str) -> None:
    print(line, flush=True)
