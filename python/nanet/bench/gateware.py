# SPDX-License-Identifier: Apache-2.0
"""Latency and throughput of the NIC in gateware/, in simulated cycles: runs the program bench_gateware, and says which goals were met."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from nanet import results

PROGRAM = Path("build/host-release/bench/gateware/bench_gateware")
LATENCY_CYCLES_MAX = 64
CYCLES_PER_SECOND_MIN = 300_000
LONGEST_S = 3600.0
KEYS = {"last_byte_to_last_write_cycles", "line_rate_fraction", "cycles_per_wall_second", "cases"}


class GatewareBenchError(RuntimeError):
    """The benchmark cannot be done: "problem (why) suggestion"."""


def run(program: Path | None, cycles: int) -> dict[str, Any]:
    """The result as `nanet bench gateware --json` writes it. cycles: of each case. Raises GatewareBenchError."""
    chosen = program or PROGRAM
    if not chosen.is_file():
        raise GatewareBenchError(
            f"{chosen} is not there (it is not built, or this is not the repository's root) "
            "run make .venv-gateware/ready, then cmake --preset host-release && cmake --build --preset host-release --target bench_gateware"
        )
    command = [str(chosen), "--cycles", str(cycles), "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
        measured = json.loads(done.stdout) if done.returncode == 0 else {}
    except (subprocess.TimeoutExpired, OSError, json.JSONDecodeError) as error:
        raise GatewareBenchError(f"{chosen.name} gives no result ({error}) build it again") from None
    if set(measured) != KEYS:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise GatewareBenchError(f"{chosen.name} gives no result ({last[0]}) exit status {done.returncode}")
    return results.base("bench gateware") | {"cycles_per_case": cycles, **measured, "goals": goals_of(measured)}


def goals_of(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """What the NIC and its model are to reach, and whether they do."""
    latency = measured["last_byte_to_last_write_cycles"]
    return [
        _goal("last byte at the MAC to last write", latency["max"], "cycles", "at most", LATENCY_CYCLES_MAX),
        _goal("spread of that for one frame size", latency["spread"], "cycles", "at most", 0),
        _goal(
            "part of line rate that is stored, lowest of all frame sizes",
            min(measured["line_rate_fraction"].values()),
            "",
            "at least",
            1,
        ),
        _goal("speed of the simulation", measured["cycles_per_wall_second"], "cycles/s", "at least", CYCLES_PER_SECOND_MIN),
    ]


def csv_rows(result: dict[str, Any]) -> list[tuple[str, str, float, str]]:
    """Rows of `--csv`."""
    rows = [("all", f"last_byte_to_last_write_{name}", float(value), "cycles")
            for name, value in result["last_byte_to_last_write_cycles"].items()]  # fmt: skip
    rows += [(f"{size} B", "line_rate_fraction", float(value), "") for size, value in result["line_rate_fraction"].items()]
    return [*rows, ("all", "cycles_per_wall_second", float(result["cycles_per_wall_second"]), "cycles/s")]


def _goal(text: str, value: float, unit: str, bound: str, limit: float) -> dict[str, Any]:
    met = value <= limit if bound == "at most" else value >= limit
    return {"goal": text, "value": value, "unit": unit, "bound": bound, "limit": limit, "met": met}
