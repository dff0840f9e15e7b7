# SPDX-License-Identifier: Apache-2.0
"""What the nodes of a torus count in their registers, as their hosts read them, and the books of all nodes together: docs/design/torus.md."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

DIRECTIONS = ("x+", "x-", "y+", "y-", "z+", "z-")
"""Of the six links of a node."""

OWN = "node"
"""The router's port to the node itself, beside those of DIRECTIONS."""

DELIVERED = ("landed", "events", "get", "send")
REFUSED = (
    "flagged", "crc", "packet_type", "length", "key", "rights", "bounds", "page", "stale", "duplicate", "misfit", "outside", "no_queue",
    "requests", "no_match", "full",
)  # fmt: skip
"""Of `messages`: what became of packets that came to a node, which are in one of the two."""

CAME = ("good", "flagged", "crc", "cut")
NEVER_CAME = ("header", "lost")
"""Of a link: packets that it handed to the router, and those of which it did not know enough."""

DROPPED = ("length", "outside", "turn", "port", "hops")
"""Of a port of the router."""


class NodeRegisters(TypedDict):
    """Counters of a node since the torus began."""

    messages: dict[str, int]
    links: dict[str, dict[str, int]]
    """By direction."""
    router: dict[str, dict[str, int]]
    """By the port by which packets came: a direction, or OWN."""


@dataclass(frozen=True)
class TorusBooks:
    """injected = delivered + losses + unexplained, of all nodes; 0 is unexplained when nothing is in flight."""

    injected: int
    """Packets that nodes gave to their routers."""
    delivered: int
    losses: dict[str, int]
    """By name, those that are not 0: of messages by their own, `link_...` and `router_...`."""
    unexplained: int
    unbalanced: list[str]
    """What does not add up at a node, or between the ends of a cable, a line each."""


def by_name(groups: Sequence[tuple[str, int, dict[str, int]]]) -> NodeRegisters:
    """From the groups of the native module."""
    found: NodeRegisters = {"messages": {}, "links": {}, "router": {}}
    for group, port, counts in groups:
        if group == "messages":
            found["messages"] = counts
        elif group == "link":
            found["links"][DIRECTIONS[port]] = counts
        else:
            found["router"][(*DIRECTIONS, OWN)[port]] = counts
    return found


def read(native: Any, size: int) -> list[NodeRegisters]:
    """Of all nodes, read now."""
    native.read_registers()
    return [by_name(native.registers(node)) for node in range(size)]


def torus_books(nodes: Sequence[NodeRegisters], shape: tuple[int, int, int]) -> TorusBooks:
    """Of a torus in which nothing is in flight."""
    losses: Counter[str] = Counter()
    for node in nodes:
        losses.update({name: node["messages"][name] for name in REFUSED})
        for link in node["links"].values():
            losses.update({f"link_{name}": link[name] for name in ("down", *NEVER_CAME)})
        for port in node["router"].values():
            losses.update({f"router_{name}": port[name] for name in DROPPED})
    injected = sum(node["messages"]["left"] for node in nodes)
    delivered = sum(_sum(node["messages"], DELIVERED) for node in nodes)
    unbalanced = [line for number, node in enumerate(nodes) for line in _of_node(number, node)]
    unbalanced += [line for number in range(len(nodes)) for line in _of_cables(nodes, number, shape)]
    return TorusBooks(
        injected, delivered, {name: count for name, count in losses.items() if count},
        injected - delivered - losses.total(), unbalanced,
    )  # fmt: skip


def lost(node: NodeRegisters) -> dict[str, str]:
    """What was lost at each link and each port of the router, as text, where anything was."""
    places: dict[str, tuple[dict[str, int], Sequence[str]]] = {
        f"link {direction}": (link, ("down", *NEVER_CAME)) for direction, link in node["links"].items()
    }
    places |= {f"router's port {port}": (counts, DROPPED) for port, counts in node["router"].items()}
    found = {
        place: ", ".join(f"{name} {counts[name]}" for name in names if counts[name]) for place, (counts, names) in places.items()
    }
    return {place: text for place, text in found.items() if text}


def neighbour(node: int, direction: str, shape: tuple[int, int, int]) -> int:
    """The node at the other end of a cable; itself where its dimension has no other."""
    dimension = "xyz".index(direction[0])
    step, nodes = math.prod(shape[:dimension]), shape[dimension]
    place = node // step % nodes
    return node + ((place + (1 if direction[1] == "+" else -1)) % nodes - place) * step


def _sum(counts: dict[str, int], names: Sequence[str]) -> int:
    return sum(counts[name] for name in names)


def _of_node(number: int, node: NodeRegisters) -> list[str]:
    """What came in and what its router did with it, and what that let out and where it went."""
    messages, router = node["messages"], node["router"]
    sides = {
        f"link {direction}": (_sum(link, CAME), _sum(router[direction], ("routed", *DROPPED)))
        for direction, link in node["links"].items()
    }
    sides["messages"] = messages["left"], _sum(router[OWN], ("routed", *DROPPED))
    out = sum(_sum(link, ("sent", "down")) for link in node["links"].values()) + _sum(messages, (*DELIVERED, *REFUSED))
    sides["router"] = sum(port["routed"] for port in router.values()), out
    return [f"node {number}, {name}: {one} are not {other}" for name, (one, other) in sides.items() if one != other]


def _of_cables(nodes: Sequence[NodeRegisters], number: int, shape: tuple[int, int, int]) -> list[str]:
    lines = []
    for direction, link in nodes[number]["links"].items():
        other = neighbour(number, direction, shape)
        back = direction[0] + ("-" if direction[1] == "+" else "+")
        sent, came = nodes[other]["links"][back]["sent"], _sum(link, (*CAME, *NEVER_CAME))
        if other != number and sent != came:
            lines.append(f"node {number}, link {direction}: {came} of {sent} that node {other} sent")
    return lines
