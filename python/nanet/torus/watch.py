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


@dataclass(frozen=True)
class Known:
    """What a node knows of the neighbour at one of its links."""

    direction: str
    text: str
    """As NeighbourState.text."""
    after_cycles: int | None
    """From the faults until it was known; None: all is well, or there is no link."""


def watch(
    torus: Torus, faults: Faults, beat_cycles: int, period_cycles: int, cycles: int, say: Callable[[str], None]
) -> list[list[Known]]:
    """Watches a torus, does to it what `faults` names, and says what each node knows then, as lines and by node. Raises SetupError."""
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
    known = [_known(torus, node, begin) for node in range(torus.size)]
    for line in table(torus, known):
        say(line)
    return known


def _known(torus: Torus, node: int, begin: int) -> list[Known]:
    return [
        Known(direction, state.text, None if state.text in ("ok", "-") else state.since_cycle - begin)
        for direction, state in torus.neighbours(node).items()
    ]


def table(torus: Torus, known: list[list[Known]]) -> list[str]:
    """A line a node: what its own host and logic know of each other, then of each neighbour; with the cycles until it was known. And how often its host was told of changes."""
    rows = [["node", "x,y,z", "itself", *DIRECTIONS, "interrupts"]]
    for node, neighbours in enumerate(known):
        seen = [one.text if one.after_cycles is None else f"{one.text} +{one.after_cycles}" for one in neighbours]
        rows.append([str(node), ",".join(map(str, torus.place(node))), torus.own_state(node), *seen, str(torus.changes(node)[0])])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
