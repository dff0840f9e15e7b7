#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which channel of a torus waits for which: dimension-order routes, each link with two virtual channels, and whether a circle of them can wait for itself.

Usage: torus_dependencies.py [SHAPE...]      as 4x4x4; without, those that the tests use. Exit status: 0 as it must be, 1 not, 2 usage.
or:    torus_dependencies.py --taken FILE    what `bench_torus --ways 1` printed: each is one of the graph, and there is no other

Rules for the virtual channel of a route: `dateline` is ours (1 from the wrap link of a dimension on, 0 again at each turn) and must have no circle on any
shape. Three that are wrong must have one where they can, or this script would prove nothing: `one` (a single channel), `kept` (not 0 again at a turn),
`plus_only` (the wrap link of the - direction is not watched). At half the way round both directions are as short; the node at which a packet enters the
ring takes one by the parity of its coordinates, in a ring of two +. Looked at are both: what holds for them holds for either.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

Node = tuple[int, ...]
Channel = tuple[Node, int, int, int]  # the node that sends, the dimension, the direction, the virtual channel
Graph = dict[Channel, set[Channel]]

RULES = ("dateline", "one", "kept", "plus_only")
SHAPES = [
    (1,),
    (2,),
    (3,),
    (4,),
    (5,),
    (8,),
    (2, 2),
    (2, 4),
    (4, 4),
    (3, 4),
    (4, 3),
    (8, 8),
    (2, 2, 2),
    (5, 3, 2),
    (3, 1, 4),
    (3, 3, 3),
    (4, 4, 4),
]


def directions(source: int, destination: int, k: int, odd: int | None) -> list[int]:
    """The shorter way round a ring of k. odd: parity of the coordinates of the node that enters it, which decides a tie; None: both."""
    ahead = (destination - source) % k
    if ahead == 0:
        return []
    if 2 * ahead == k:
        return [1, -1] if odd is None else [-1 if odd and k > 2 else 1]
    return [1 if 2 * ahead < k else -1]


def steps(node: int, destination: int, direction: int, k: int) -> Iterator[tuple[int, bool]]:
    """The links of a ring: the node that sends, and whether the link goes over the wrap."""
    while node != destination:
        following = (node + direction) % k
        yield node, abs(following - node) != 1 or (k == 2 and following == (0 if direction == 1 else 1))
        node = following


def route(source: Node, destination: Node, ways: tuple[int, ...], shape: Node, rule: str) -> list[Channel]:
    """ways: the direction in each dimension, 0 where there is no way to go."""
    at, vc, channels = list(source), 0, []
    for dimension, way in enumerate(ways):
        if rule != "kept":
            vc = 0
        if way == 0:
            continue
        for node, wraps in steps(source[dimension], destination[dimension], way, shape[dimension]):
            at[dimension] = node
            if wraps and rule != "one" and (rule != "plus_only" or way == 1):
                vc = 1
            channels.append((tuple(at), dimension, way, vc))
        at[dimension] = destination[dimension]
    return channels


def routes(shape: Node, rule: str = "dateline", *, both: bool = True) -> Iterator[list[Channel]]:
    """Of every pair of nodes. both: both ways at ties, else as the parity of the node that enters the ring says."""
    nodes = list(product(*map(range, shape)))
    for source, destination in product(nodes, nodes):
        found = []
        for dimension, (a, b, k) in enumerate(zip(source, destination, shape, strict=True)):
            entering = (*destination[:dimension], *source[dimension:])
            found.append(directions(a, b, k, None if both else sum(entering) % 2) or [0])
        for ways in product(*found):
            yield route(source, destination, ways, shape, rule)


def dependencies(shape: Node, rule: str = "dateline", *, both: bool = True) -> Graph:
    """Of each channel those that a packet which holds it may wait for."""
    graph: Graph = defaultdict(set)
    for channels in routes(shape, rule, both=both):
        for held, wanted in pairwise(channels):
            graph[held].add(wanted)
    return graph


def has_circle(graph: Graph) -> bool:
    """What no one waits for is taken away until nothing is left, or a circle."""
    waiting: dict[Channel, int] = defaultdict(int)
    for wanted in graph.values():
        for channel in wanted:
            waiting[channel] += 1
    free = [channel for channel in graph if waiting[channel] == 0]
    left = len(graph.keys() | waiting.keys())
    while free:
        left -= 1
        for channel in graph.get(free.pop(), ()):
            waiting[channel] -= 1
            if waiting[channel] == 0:
                free.append(channel)
    return left != 0


def must_have_circle(shape: Node, rule: str) -> bool:
    """A route takes more than one link of a ring from four nodes on; `kept` needs a turn into such a ring from one that has a wrap link."""
    is_long = [k >= 4 for k in shape]
    entered = any(is_long[place] and max(shape[:place], default=1) > 1 for place in range(len(shape)))
    return {"dateline": False, "one": any(is_long), "kept": entered, "plus_only": any(is_long)}[rule]


def check(shape: Node) -> bool:
    """Prints a line. True: as it must be."""
    good, said = True, []
    for rule in RULES:
        graph = dependencies(shape, rule)
        circle = has_circle(graph)
        good &= circle == must_have_circle(shape, rule)
        said.append(f"{rule} {'a circle' if circle else 'none'} ({sum(map(len, graph.values()))} edges)")
    print(f"torus {'x'.join(map(str, shape))}: {'' if good else 'NOT AS IT MUST BE: '}{', '.join(said)}", flush=True)
    return good


def taken(said: dict[str, Any]) -> tuple[Node, Graph]:
    """The dependencies that packets made: who came in by a link held the neighbour's channel while it waited for its own."""
    shape = tuple(map(int, said["shape"].split("x")))
    graph: Graph = defaultdict(set)
    for number, came, went in said["ways"]:
        here = [number % shape[0], number // shape[0] % shape[1], number // shape[0] // shape[1]]
        there = list(here)
        dimension, way = came // 4, 1 if came // 2 % 2 == 0 else -1
        there[dimension] = (there[dimension] + way) % shape[dimension]
        graph[tuple(there), dimension, -way, came % 2].add((tuple(here), went // 4, 1 if went // 2 % 2 == 0 else -1, went % 2))
    return shape, graph


def check_taken(said: dict[str, Any]) -> bool:
    """Prints a line. True: all that may be were taken, and no others."""
    shape, found = taken(said)
    possible = dependencies(shape, both=False)
    count = {name: sum(map(len, graph.values())) for name, graph in (("taken", found), ("possible", possible))}
    strange = sum(len(wanted - possible.get(held, set())) for held, wanted in found.items())
    print(
        f"torus {said['shape']}: {count['taken'] - strange} of {count['possible']} dependencies taken, {strange} that must not be",
        flush=True,
    )
    return strange == 0 and count["taken"] == count["possible"]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--taken"] and len(arguments) == 2:
        return 0 if check_taken(json.loads(Path(arguments[1]).read_text())) else 1
    try:
        shapes = [tuple(map(int, argument.split("x"))) for argument in arguments] or SHAPES
    except ValueError:
        shapes = [()]
    if not all(shape and min(shape) >= 1 for shape in shapes):
        print(f"error: {' '.join(arguments)} is no shape (whole numbers of 1 and more with x between) write 4x4x4", file=sys.stderr)
        return 2
    failed = [shape for shape in shapes if not check(shape)]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
