# SPDX-License-Identifier: Apache-2.0
"""LO|FA|MO from Python: who knows of whom, the table of `nanet torus watch`, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from nanet import SetupError
from nanet.cli.app import app
from nanet.torus import DIRECTIONS, Torus
from nanet.torus.watch import Faults, parse_cable, parse_sick, watch
from test_torus_memory import Record, made, refusal
from typer.testing import CliRunner

BEAT, PERIOD = 500, 1200
CheckKeys = Callable[[Mapping[str, Any], str], None]


def seen(torus: Torus) -> dict[tuple[int, str], str]:
    """What is not well, by the node that knows it and the direction in which it sees it."""
    every = {(node, direction): one.text for node in range(torus.size) for direction, one in torus.neighbours(node).items()}
    return {place: text for place, text in every.items() if text not in ("ok", "-")}


def test_neighbours_know_and_others_do_not(record_property: Record) -> None:
    torus = made("3x2x1", record_property)
    if torus is None:
        return
    lines: list[str] = []
    watch(torus, Faults(hosts=[4], sick=[(0, 9)], cables=[(2, "x+")]), BEAT, PERIOD, 4000, lines.append)
    assert seen(torus) == {
        (5, "x-"): "host silent", (3, "x+"): "host silent", (1, "y+"): "host silent", (1, "y-"): "host silent",
        (1, "x-"): "says 9", (3, "y+"): "says 9", (3, "y-"): "says 9",
        (2, "x+"): "silent", (0, "x-"): "silent",
    }  # fmt: skip
    assert [torus.own_state(node) for node in range(6)] == ["says 9", "ok", "ok", "ok", "host silent", "ok"]
    assert lines[0].split() == ["node", "x,y,z", "itself", *DIRECTIONS, "interrupts"]
    assert len(lines) == 7
    told = [torus.changes(node) for node in range(6)]
    assert lines[5].split() == ["4", "1,1,0", "host", "silent", "ok", "ok", "ok", "ok", "-", "-", str(told[4][0])]
    assert all(interrupts >= 1 for interrupts, _ in told)  # its links came up, at least
    assert told[4][1]["node"] == told[0][1]["node"] == 1
    assert told[1][1]["y+"] > told[1][1]["z+"] == 0  # a link that it has not never changes
    assert "host silent +" in lines[6]
    torus.stop_host(4, stopped=False)
    torus.host_says(0, 0)
    torus.cut(2, "x+", whole=True)
    torus.run(4000)
    assert seen(torus) == {}


def test_a_node_that_stands_still_is_known_to_its_host_and_neighbours(record_property: Record) -> None:
    torus = made("2x1x1", record_property)
    if torus is None:
        return
    torus.watch(BEAT, PERIOD)
    torus.run(3000)
    torus.stop_node(1)
    torus.run(5000)
    assert torus.own_state(1) == "logic silent"
    assert torus.own_state(0) == "ok"
    assert {place: text for place, text in seen(torus).items() if place[0] == 0} == {(0, "x+"): "silent", (0, "x-"): "silent"}
    assert 3000 < torus.neighbours(0)["x+"].since_cycle < 3600
    torus.stop_node(1, stopped=False)
    torus.run(5000)
    assert torus.own_state(1) == "ok"


def test_the_command_prints_the_table(record_property: Record) -> None:
    if made("2x1x1", record_property) is None:
        return
    done = CliRunner().invoke(app, ["torus", "watch", "--shape", "2x1x1", "--stop-host", "1", "--cycles", "2000"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert len(lines) == 3
    assert lines[1].count("host silent +") == 2
    assert "host silent  ok" in lines[2]


def test_the_command_writes_what_it_prints(record_property: Record, check_keys: CheckKeys, tmp_path: Path) -> None:
    if made("2x1x1", record_property) is None:
        return
    file = tmp_path / "watch.json"
    done = CliRunner().invoke(
        app, ["torus", "watch", "--shape", "2x1x1", "--stop-host", "1", "--cycles", "2000", "--json", str(file)]
    )
    assert done.exit_code == 0, done.output
    result = json.loads(file.read_text())
    check_keys(result, "torus watch")
    first, second = result["nodes"]
    assert (first["itself"], second["itself"], second["place"]) == ("ok", "host silent", [1, 0, 0])
    after = {one["direction"]: one["after_cycles"] for one in first["neighbours"] if one["text"] == "host silent"}
    assert set(after) == {"x+", "x-"}
    assert f"host silent +{after['x+']}" in done.output
    assert [one["after_cycles"] for one in second["neighbours"]] == [None] * 6


def test_what_cannot_be_is_refused(record_property: Record) -> None:
    for text in ("4", "4:w+", "x:y+", "4x+"):
        assert "is no cable" in refusal(lambda text=text: parse_cable(text))  # type: ignore[misc]
    for text in ("4", "4:0", "4:128", ":1"):
        assert "is nothing that a host says" in refusal(lambda text=text: parse_sick(text))  # type: ignore[misc]
    assert (parse_cable("12:z-"), parse_sick("3:127")) == ((12, "z-"), (3, 127))
    torus = made("2x1x1", record_property)
    if torus is None:
        return
    assert refusal(lambda: torus.watch(1000, 999)).startswith("hosts that beat each 1000 cycles cannot be watched each 999")
    assert refusal(lambda: torus.cut(0, "y+")).startswith("node 0 has no cable y+ (a torus of ")
    assert refusal(lambda: torus.cut(0, "w")).startswith("'w' is no direction")
    assert refusal(lambda: torus.host_says(0, 128)).startswith("what cannot be 128 (a whole number from 0 to 127")
    with pytest.raises(SetupError, match="there is no node 2"):
        torus.stop_host(2)
