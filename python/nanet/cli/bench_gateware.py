# SPDX-License-Identifier: Apache-2.0
"""The command `nanet bench gateware`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench_gateware(
    program: Annotated[
        Path | None, typer.Option("--program", metavar="FILE", help="By default build/host-release/bench/gateware/bench_gateware.")
    ] = None,
    cycles: Annotated[int, typer.Option("--cycles", min=10_000, help="Of each of 52 cases.")] = 400_000,
    short: Annotated[bool, typer.Option("--short", help="A smoke of it.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result there, see docs/json.md.")
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Append the figures there.")] = None,
) -> None:
    """Latency and throughput of the NIC in gateware, simulated cycle by cycle: every frame size at 10 Gb/s, buffers of 1 to 64 packets."""
    from nanet import results
    from nanet.bench import gateware

    result = gateware.run(program, 10_000 if short else cycles)
    results.write_json(json_file, result)
    results.append_csv(csv_file, "gateware", gateware.csv_rows(result))
    for case in result["cases"]:
        print(
            f"{case['frame_bytes']:5} B, {case['packets_per_buffer']:2} packets a buffer, lane {case['start_lane']}: "
            f"{case['min']}..{case['max']} cycles ({case['packets']} packets)"
        )
    for goal in result["goals"]:
        met = "met" if goal["met"] else "not met"
        print(f"{goal['goal']}: {goal['value']:g} {goal['unit']} ({goal['bound']} {goal['limit']:g}): {met}".replace("  ", " "))
