# SPDX-License-Identifier: Apache-2.0
"""The link of a KM3NeT floor, simulated in half bits: runs the program bench_km3_link (docs/design/km3-link.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nanet.bench.km3_link_keys import Km3LinkResult, Measured, Phase
from nanet.bench.program import said_by
from nanet.result import files

PROGRAM = Path("build/release/bench/gateware/bench_km3_link")
LONGEST_S = 3600.0
PAYLOAD_FRACTION_MIN = 0.99


class Km3LinkError(RuntimeError):
    """The benchmark cannot be done: "problem (why) suggestion"."""


@dataclass(frozen=True)
class Options:
    """frames: at each line rate, idle and busy."""

    resets: int = 4320
    frames: int = 100
    seed: int = 1

    def arguments(self) -> list[str]:
        """Of the program."""
        return ["--resets", str(self.resets), "--frames", str(self.frames), "--seed", str(self.seed), "--json"]


def run(program: Path | None, options: Options) -> Km3LinkResult:
    """The result as `nanet bench km3-link --json` writes it. Raises Km3LinkError."""
    measured: Measured = said_by(program or PROGRAM, options.arguments(), Measured.__annotations__, Km3LinkError, LONGEST_S)
    return {**files.base("bench km3-link"), **measured}


def is_fixed(phase: Phase) -> bool:
    """It came up after every reset, with one value of each latency."""
    return phase["not_up"] == 0 and phase["latency_values"] == 1


def problems_of(result: Measured | Km3LinkResult) -> list[str]:
    """What is not as it must be, each in a line; empty: all is."""
    return list(_problems(result))


def _problems(result: Measured | Km3LinkResult) -> Iterable[str]:
    if not is_fixed(result):
        yield (
            f"{result['latency_values']} values of a latency in {result['resets']} resets, {result['not_up']} without a link "
            "(one value is allowed) mend the receiver of gateware/rtl/km3"
        )
    for control in result["controls"]:
        if is_fixed(control):
            yield f"a wrong receiver ({control['name']}) is not found (it has one value too) mend the test"
    for line in result["lines"]:
        if line["latency_values"] != 1 or line["wrong"]:
            yield (
                f"{line['line_mbps']} Mb/s: {line['latency_values']} values of a latency under traffic, {line['wrong']} wrong "
                "(one and none are allowed) mend gateware/rtl/km3"
            )
        if line["payload_fraction"] < PAYLOAD_FRACTION_MIN:
            yield (
                f"{line['line_mbps']} Mb/s: payload is {line['payload_fraction']:.4f} of what the line carries "
                f"(at least {PAYLOAD_FRACTION_MIN} is asked for) make slots longer"
            )


def csv_rows(result: Km3LinkResult) -> list[tuple[str, str, float, str]]:
    """case, name, value, unit."""
    rows: list[tuple[str, str, float, str]] = []
    for name, phase in [("right", result), *((control["name"], control) for control in result["controls"])]:
        rows += [(name, key, phase[key], "1") for key in ("resets", "not_up", "latency_values", "told_by_monitors")]
    rows += [("right", key, result[key][0], "bit") for key in ("down", "round_trip") if len(result[key]) == 1]
    for line in result["lines"]:
        case = f"{line['line_mbps']} Mb/s"
        rows += [(case, key, line[key], "1") for key in ("payload_fraction", "latency_values", "wrong", "express_codes")]
    return rows
