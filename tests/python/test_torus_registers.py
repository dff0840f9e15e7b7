# SPDX-License-Identifier: Apache-2.0
"""What nodes of a torus count in their registers: each loss under its name at the node where it was, and books that balance."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import pytest
from nanet.torus import DIRECTIONS
from nanet.torus.registers import (
    CAME,
    DELIVERED,
    DROPPED,
    NEVER_CAME,
    OWN,
    REFUSED,
    NodeRegisters,
    lost,
    neighbour,
    torus_books,
)  # fmt: skip
from test_torus_memory import Record, made

PAIR = (2, 1, 1)


def quiet() -> NodeRegisters:
    return {
        "messages": dict.fromkeys((*DELIVERED, *REFUSED, "left", "missed"), 0),
        "links": {direction: dict.fromkeys(("sent", "down", *CAME, *NEVER_CAME), 0) for direction in DIRECTIONS},
        "router": {port: dict.fromkeys(("routed", *DROPPED), 0) for port in (*DIRECTIONS, OWN)},
    }


def one_packet() -> list[NodeRegisters]:
    """From node 0 to node 1, by x+."""
    nodes = [quiet(), quiet()]
    nodes[0]["messages"]["left"] = nodes[0]["router"][OWN]["routed"] = nodes[0]["links"]["x+"]["sent"] = 1
    nodes[1]["links"]["x-"]["good"] = nodes[1]["router"]["x-"]["routed"] = nodes[1]["messages"]["landed"] = 1
    return nodes


def test_a_packet_that_came_leaves_nothing_unexplained() -> None:
    books = torus_books(one_packet(), PAIR)
    assert (books.injected, books.delivered, books.losses, books.unexplained, books.unbalanced) == (1, 1, {}, 0, [])


def refuse(nodes: list[NodeRegisters]) -> str:
    nodes[1]["messages"].update(landed=0, key=1)
    return "key"


def lose(nodes: list[NodeRegisters]) -> str:
    nodes[1]["messages"]["landed"] = nodes[1]["links"]["x-"]["good"] = nodes[1]["router"]["x-"]["routed"] = 0
    nodes[1]["links"]["x-"]["lost"] = 1
    return "link_lost"


def find_the_link_down(nodes: list[NodeRegisters]) -> str:
    nodes[1] = quiet()
    nodes[0]["links"]["x+"].update(sent=0, down=1)
    return "link_down"


@pytest.mark.parametrize("reason", DROPPED)
def test_each_drop_of_a_router_has_its_own_name(reason: str) -> None:
    nodes = one_packet()
    nodes[1]["messages"]["landed"] = nodes[1]["router"]["x-"]["routed"] = 0
    nodes[1]["router"]["x-"][reason] = 1
    books = torus_books(nodes, PAIR)
    assert (books.losses, books.unexplained, books.unbalanced) == ({f"router_{reason}": 1}, 0, [])
    assert (lost(nodes[0]), lost(nodes[1])) == ({}, {"router's port x-": f"{reason} 1"})


@pytest.mark.parametrize("harm", [refuse, lose, find_the_link_down])
def test_each_other_loss_too(harm: Callable[[list[NodeRegisters]], str]) -> None:
    nodes = one_packet()
    name = harm(nodes)
    books = torus_books(nodes, PAIR)
    assert (books.delivered, books.losses, books.unexplained, books.unbalanced) == (0, {name: 1}, 0, [])


@pytest.mark.parametrize(
    ("node", "part", "place", "name", "lines"),
    [
        (0, "messages", "", "left", ["node 0, messages: 0 are not 1"]),
        (0, "router", OWN, "routed", ["node 0, messages: 1 are not 0", "node 0, router: 0 are not 1"]),
        (0, "links", "x+", "sent", ["node 0, router: 1 are not 0", "node 1, link x-: 1 of 0 that node 0 sent"]),
        (1, "links", "x-", "good", ["node 1, link x-: 0 are not 1", "node 1, link x-: 0 of 1 that node 0 sent"]),
        (1, "router", "x-", "routed", ["node 1, link x-: 1 are not 0", "node 1, router: 0 are not 1"]),
        (1, "messages", "", "landed", ["node 1, router: 1 are not 0"]),
    ],
)
def test_what_is_in_no_counter_is_said_where_it_is_missing(node: int, part: str, place: str, name: str, lines: list[str]) -> None:
    nodes = one_packet()
    counts = nodes[node][part]  # type: ignore[literal-required]
    (counts[place] if place else counts)[name] = 0
    assert torus_books(nodes, PAIR).unbalanced == lines


def test_the_ends_of_cables() -> None:
    assert [neighbour(0, direction, (3, 2, 1)) for direction in DIRECTIONS] == [1, 2, 3, 3, 0, 0]
    assert [neighbour(5, direction, (3, 2, 1)) for direction in DIRECTIONS] == [3, 4, 2, 2, 5, 5]


def test_the_books_of_a_torus_balance_and_name_what_it_loses(record_property: Record) -> None:
    torus = made("3x2x1", record_property)
    if torus is None:
        return
    regions = [torus.share(torus.allocate(node, 9000), write=True) for node in range(torus.size)]
    source = [torus.allocate(node, 9000) for node in range(torus.size)]
    for a in range(torus.size):
        for b in range(torus.size):
            torus.put(source[a], regions[b])
    assert torus.settle()
    nodes = torus.registers()
    books = torus.books(nodes)
    assert (books.losses, books.unexplained, books.unbalanced) == ({}, 0, [])
    assert books.injected == books.delivered == 3 * torus.size**2  # packets of 4080 B
    assert all(lost(one) == {} for one in nodes)
    before = copy.deepcopy(nodes)

    torus.put(source[0], dataclasses.replace(regions[4], nonce=1))  # three packets, refused by key at node 4
    assert torus.settle()
    torus.cut(0, "x+")
    torus.put(source[0][:64], regions[1])
    torus.run(4000)
    torus.cut(0, "x+", whole=True)
    torus.run(1000)
    torus.event(0, 1)
    assert torus.settle()
    nodes = torus.registers()
    books = torus.books(nodes)
    assert (books.losses, books.unexplained, books.unbalanced) == ({"key": 3, "link_lost": 1}, 0, [])
    assert nodes[4]["messages"]["key"] == 3
    assert [lost(one) for one in nodes] == [{}, {"link x-": "lost 1"}, {}, {}, {}, {}]
    assert [one["messages"]["missed"] for one in nodes] == [0, 1, 0, 0, 0, 0]
    assert nodes[1]["messages"]["events"] == before[1]["messages"]["events"] + 1


def test_registers_say_what_counters_say(record_property: Record) -> None:
    torus = made("2x1x1", record_property)
    if torus is None:
        return
    torus.put(torus.allocate(0, 100), torus.share(torus.allocate(1, 100), write=True))
    torus.event(1, 0, 7)
    assert torus.settle()
    for node, found in enumerate(torus.registers()):
        counters = torus.counters(node)
        assert (found["messages"]["landed"], found["messages"]["events"]) == (counters["landed"], counters["event"])
