# SPDX-License-Identifier: Apache-2.0
"""The balance sheet of the hops of a packet."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import Counts

HopLine = TypedDict(  # `in` is a word of the language, so that this is no class
    "HopLine",
    {
        "hop": Annotated[str, "its name"],
        "unit": Annotated[str, "what is counted: `packets`, `frames`, `parts` or `events`"],
        "in": Annotated[int, "what came"],
        "out": Annotated[int, "what went on"],
        "named": Annotated[Counts, "what did not, by name"],
        "unexplained": Annotated[int, "`in` - `out` - the sum of `named`"],
    },
)
"""One line of a balance sheet."""


class HopLook(HopLine):
    """A line while packets flow, or the last one of a run."""

    in_flight: Annotated[int, "what is between this hop and the next"]


class BalanceSheet(TypedDict):
    """Hops of which nothing is in flight any more."""

    hops: Annotated[list[HopLine], "in the order of the packets' path"]
    unexplained_packets: Annotated[
        int, "the sum of what the hops do not explain, without signs: packets, or parts and events where a hop counts those"
    ]
