# SPDX-License-Identifier: Apache-2.0
"""What results of several commands have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from nanet.machine.facts import Facts

Config = dict[str, Any]
"""A configuration as it is written: its model, in nanet.config, says the keys."""

Counts = dict[str, int]
"""How many, by name."""


@dataclass(frozen=True, eq=False)
class Names:
    """In an annotation: the names that a dictionary has, with what each means. more: a TypedDict whose keys it may have too."""

    meanings: Mapping[str, str]
    more: type | None = None


class Elsewhere:
    """In an annotation: another table of docs/json.md has the keys of this object, its meaning says which."""


ELSEWHERE = Elsewhere()

Latency = Annotated[
    dict[str, float],
    Names(
        {
            "p50": "half of the times are at most this long; it is at most one part in a thousand above the true one, like the next four",
            "p90": "90 % of them",
            "p99": "99 % of them",
            "p99_9": "99.9 % of them",
            "p99_99": "99.99 % of them",
            "max": "the longest, exact",
            "mean": "exact",
            "min": "the shortest, exact",
        }
    ),
]
"""Microseconds, as Histogram.summary_us gives them."""


class Base(TypedDict):
    """The keys that every result begins with."""

    nanet: Annotated[str, "version of the package"]
    command: Annotated[str, "which command wrote it, such as `bench rate`"]
    date: Annotated[str, "UTC, `YYYY-MM-DDTHH:MM:SSZ`"]
    machine: Annotated[Facts, "the machine it ran on: what is needed to judge a figure"]


class Verdict(TypedDict):
    """Whether a promise was kept."""

    kept: Annotated[bool, "true or false; each command says what it takes"]
    budget_us: Annotated[float, "what p99.9 of the latency was compared with"]
    reasons: Annotated[list[str], "why it was not kept, a sentence each; empty when kept"]
