# SPDX-License-Identifier: Apache-2.0
"""LO|FA|MO of a torus as text: what `nanet torus watch` prints. docs/design/lofamo.md says who knows what, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nanet._core import SetupError
from nanet.torus.torus import DIRECTIONS, Torus

WARM_UP_CYCLES = 5000  # until every host has beaten, and every neighbour is known


@dataclass(frozen=True)
class Faults:
    """What is done to a torus in which all is well."""

    hosts: Sequence[int] = ()
    """Nodes whose host stops."""
    nodes: Sequence[int] = ()
    """Nodes whose logic stops."""
    cables: Sequence[tuple[int, str]] = ()
    """Node and direction of cables that are cut."""
    sick: Sequence[tuple[int, int]] = field(default=())
    """Node, and what its host says of itself, 1 to 127."""


def parse_cable(text: str) -> tuple[int, str]:
    """`NODE:DIRECTION`, such as 4:x+. Raises SetupError."""
    node, _, direction = text.partition(":")
    if not node.isdecimal() or direction not in DIRECTIONS:
        raise SetupError(f"'{text}' is no cable (NODE:DIRECTION, of {', '.join(DIRECTIONS)}) write 4:x+")
    return int(node), direction


def parse_sick(text: str) -> tuple[int, int]:
    """`NODE:NUMBER`. Raises SetupError."""
    node, _, says = text.partition(":")
    if not (node.isdecimal() and says.isdecimal() and 1 <= int(says) <= 127):
        raise SetupError(f"'{text}' is nothing that a host says (NODE:NUMBER, of 1 to 127) write 4:1")
    return int(node), int(says)


def watch(torus: Torus, faults: Faults, beat_cycles: int, period_cycles: int, cycles: int, say: Callable[[str], None]) -> None:
    """Watches a torus, does to it what `faults` names, and says what each node knows then. Raises SetupError."""
    torus.watch(beat_cycles, period_cycles)
    torus.run(max(WARM_UP_CYCLES, 2 * beat_cycles))
    begin = torus.cycle
    for node in faults.hosts:
        torus.stop_host(node)
    for node in faults.nodes:
        torus.stop_node(node)
    for node, direction in faults.cables:
        torus.cut(node, direction)
    for node, says in faults.sick:
        torus.host_says(node, says)
    torus.run(cycles)
    for line in table(torus, begin):
        say(line)


def table(torus: Torus, begin: int) -> list[str]:
    """A line a node: what its own host and logic know of each other, then of each neighbour; with the cycles after `begin` when it was known."""
    rows = [["node", "x,y,z", "itself", *DIRECTIONS]]
    for node in range(torus.size):
        own = torus.own_state(node)
        seen = [
            state.text if state.text in ("ok", "-") else f"{state.text} +{state.since_cycle - begin}"
            for state in torus.neighbours(node).values()
        ]
        rows.append([str(node), ",".join(map(str, torus.place(node))), own, *seen])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
