# SPDX-License-Identifier: Apache-2.0
"""How many floors a GPU serves, by the program that measures a GPU for KM3NeT (`bench_gpu_km3`)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from nanet.bench import gpu

PART = "km3"
COLUMNS = {PART: ("what", "per_s")}


def read(csv_file: Path) -> gpu.Measured:
    """What the program wrote. Raises GpuBenchError."""
    return gpu.read(csv_file, COLUMNS)


def floors(
    hits_per_s: float, seeds_per_s: float, programs: Path | None, say: Callable[[str], None], measured: gpu.Measured | None = None
) -> tuple[float | None, str, str]:
    """How many floors with so many hits and L1 seeds a second, each; or None, and why it was not measured; and which GPU.

    programs: folder of the bench_gpu programs. measured: what the program wrote elsewhere; then nothing is measured.
    """
    if measured is not None:
        return _floors(hits_per_s, seeds_per_s, measured)
    try:
        gpu.check_gpu()
    except gpu.GpuBenchError as error:
        return None, str(error).partition(") ")[0] + ")", ""  # what it suggests is of the other bench
    try:
        program = gpu.find_programs(programs, [PART], say)[PART]
        with tempfile.TemporaryDirectory(prefix="nanet-") as folder:
            measured = gpu.run_program(program, PART, [], Path(folder) / "km3.csv", say, COLUMNS)
    except gpu.GpuBenchError as error:
        return None, str(error), ""
    return _floors(hits_per_s, seeds_per_s, measured)


def _floors(hits_per_s: float, seeds_per_s: float, measured: gpu.Measured) -> tuple[float | None, str, str]:
    if wrong := measured.facts.get("wrong"):
        return None, wrong, ""
    per_s = {str(row["what"]): float(row["per_s"] or 0) for row in measured.rows}
    try:
        busy = hits_per_s / per_s["with_copies"] + seeds_per_s / per_s["seeds_gpu"]
        return 1 / busy, "", measured.facts.get("gpu", "unknown")
    except (KeyError, ZeroDivisionError):
        return None, f"bench_gpu_{PART} wrote no figures", ""
