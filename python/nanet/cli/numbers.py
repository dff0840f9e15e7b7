# SPDX-License-Identifier: Apache-2.0
"""The numbers of the command line: finite, and within limits, in every command there is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import typer

LONGEST_S = 1e7
"""Of anything that lasts: four months."""


@dataclass(frozen=True)
class Limits:
    """Inclusive, or above `low`."""

    low: float
    high: float
    above: bool = False

    def refusal(self, value: float) -> str:
        """Why it is none; empty if it is."""
        if math.isfinite(value) and (self.low < value if self.above else self.low <= value) and value <= self.high:
            return ""
        return f"{value:g} is not a number {'above' if self.above else 'from'} {self.low:g} {'and at most' if self.above else 'to'} {self.high:g}"


FLOAT = Limits(0, 1e12)
INTEGER = Limits(0, 10**9)
COUNTED = Limits(0, 2**62)
BY_NAME = {
    "duration": Limits(0, LONGEST_S, above=True),
    "rate": Limits(0, 1e9, above=True), "lowest": Limits(0, 1e9, above=True), "highest": Limits(0, 1e9, above=True),
    "spill": Limits(0, LONGEST_S), "pause": Limits(0, LONGEST_S), "timeout_s": Limits(0, LONGEST_S),
    "factor": Limits(1, 1e12, above=True),
    "events": COUNTED, "seed": COUNTED, "host_seed": COUNTED, "laps": COUNTED, "sweeps": COUNTED,
    "threads": Limits(1, 4096), "core": Limits(0, 65535), "budget_us": Limits(1, 3_600_000_000),
    "steps": Limits(3, 1000), "repeats": Limits(1, 100_000), "rounds": Limits(1, 100_000), "timeout_ms": Limits(1, LONGEST_S * 1e3),
}  # fmt: skip


def bound(command: Any) -> None:
    """Gives every number of a command, and of those below it, its limits."""
    for below in getattr(command, "commands", {}).values():
        bound(below)
    for parameter in command.params:
        parameter.callback = _checked(parameter.callback, BY_NAME.get(parameter.name))


def _checked(callback: Any, limits: Limits | None) -> Any:
    """The callback of a parameter, with its limits before; what is no number passes."""

    def check(context: Any, parameter: Any, value: Any) -> Any:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value != parameter.default:
            why = (limits or (FLOAT if isinstance(value, float) else INTEGER)).refusal(value)
            if why:
                raise typer.BadParameter(why)
        return value if callback is None else callback(context, parameter, value)

    return check
