# SPDX-License-Identifier: Apache-2.0
"""Engines on two nodes of a simulated torus: boards over UDP to node 0, events by remote DMA through RTL to node 3, rings there, answers back."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from loops import engine_config, free_ports, nanet, sender, wait_for
from nanet import SetupError
from nanet.config import EngineConfig
from nanet.run.process import EngineProcess
from nanet.torus import native_torus
from test_commands import CheckKeys
from test_replay import Listener
from test_ucx import EVENTS, packets_of_a_board

FORWARD = {"packet_bytes_max": 1472}
Record = Callable[[str, object], None]


def has_torus(record_property: Record) -> bool:
    """Where there is none, the summary of the tests counts the test as not run."""
    try:
        native_torus()
    except SetupError as error:
        if "without a Verilator" not in str(error):
            raise
        record_property("not_run", f"a test of engines on a simulated torus ({error})")
        return False
    return True


class Served:
    """`nanet torus serve` in a process of its own."""

    def __init__(self, file: Path) -> None:
        command = [sys.executable, "-m", "nanet", "torus", "serve", str(file), "--shape", "2x2x1", "--threads", "2"]
        self.json_file = file.with_suffix(".json")
        command += ["--json", str(self.json_file)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == f"ready: torus 2x2x1 at {file}\n", line or self._process.communicate()[1]

    def end(self) -> str:
        """What it says at its end."""
        self._process.send_signal(signal.SIGTERM)
        said, errors = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, errors
        return said


@pytest.fixture(scope="module")
def packets() -> list[bytes]:
    return packets_of_a_board()


@contextlib.contextmanager
def served(file: Path) -> Iterator[Served]:
    one = Served(file)
    try:
        yield one
    finally:
        one._process.kill()
        one._process.wait()


def judged_elsewhere(packets: list[bytes], forward: dict[str, Any], link: dict[str, Any]) -> tuple[npt.NDArray[np.void], Any, Any]:
    """(primitives, result of the engine that builds events, result of the one that finds rings)."""
    (port,) = free_ports(1)
    with Listener() as listener:
        judge = engine_config(1, int(listener.url.rpartition(":")[2]), link=link | {"protocol": "m2egp"})
        builder = engine_config(port, None, processor={"kind": "forward", "forward": FORWARD | forward})
        with EngineProcess(judge) as second, EngineProcess(builder) as first, sender(port) as out:
            for packet in packets:
                out.send(packet)
            wait_for(lambda: second.counters().get("events_answered") == EVENTS, "the last answer", within_s=120)
            built = first.stop()
            packets_sent = built["counters"]["packets_forwarded"]
            wait_for(lambda: packets_of(second) == packets_sent, "the last marker, which may be in flight", within_s=120)
            judged = second.stop()
    return listener.primitives(), built, judged


def packets_of(engine: EngineProcess) -> int:
    """That came to it so far and were good."""
    counters = engine.counters()
    return counters.get("packets_accepted", 0) + counters.get("packets_marker", 0)


def counts(link: dict[str, Any], group: str) -> dict[str, int]:
    """Counters of a node of the torus that are not 0."""
    (found,) = [one["counts"] for one in link["nic_counts"] if one["name"] == group]
    return {name: count for name, count in found.items() if count}


def test_answers_of_two_nodes_of_a_torus_are_those_of_sockets(
    packets: list[bytes], tmp_path: Path, record_property: Record, check_keys: CheckKeys
) -> None:
    if not has_torus(record_property):
        return
    (between,) = free_ports(1)
    expected, _, _ = judged_elsewhere(
        packets, {"endpoint": f"udp://127.0.0.1:{between}"}, {"endpoint": f"udp://127.0.0.1:{between}"}
    )
    file = tmp_path / "torus"
    with served(file) as torus:
        node = {"file": str(file), "node": 0, "wait_ms": 60_000, "slot_count": 8}
        found, first, second = judged_elsewhere(
            packets,
            {"endpoint": "torus://3", "torus": node},
            {"endpoint": "torus://3", "torus": {"file": str(file), "senders": [0]}},
        )
        said = torus.end()
    assert len(expected) > EVENTS // 2
    assert np.array_equal(found, expected)
    assert (first["losses"], second["losses"]) == ({}, {})
    sent, came = first["links"][1], second["links"][0]
    assert sent["name"] == "forward"
    assert sent["stats"]["tx_packets"] == came["stats"]["rx_packets"] == first["counters"]["packets_forwarded"]
    assert sent["stats"]["tx_bytes"] == came["stats"]["rx_bytes"]
    assert sent["stats"]["tx_dropped"] == came["stats"]["rx_kernel_dropped"] == 0
    assert set(counts(sent, "slots")) <= {"asks"}
    assert set(counts(came, "slots")) == {"credits"}
    landed = sent["stats"]["tx_packets"]  # a packet of the torus each
    assert counts(came, "node")["landed"] == landed
    told = re.search(r"PUTs: (\d+), from job to completion (\d+) to (\d+) cycles", said)
    assert told is not None, said
    assert int(told[1]) == landed
    assert f"node 3: landed {landed}" in said
    result = json.loads(torus.json_file.read_text())
    check_keys(result, "torus serve")
    assert (result["threads"], result["puts"]["count"]) == (2, landed)
    assert (result["puts"]["min"], result["puts"]["max"]) == (int(told[2]), int(told[3]))
    assert [node["landed"] for node in result["nodes"]] == [0, 0, 0, landed]
    assert [node["messages"]["landed"] for node in result["registers"]] == [0, 0, 0, landed]
    books = result["books"]
    assert (books["losses"], books["unexplained"]) == ({}, 0)
    assert books["injected"] == books["delivered"] > landed
    assert f"packets: {books['injected']} injected, {books['delivered']} delivered, 0 lost, 0 unexplained" in said
    by_port = {one["port"]: one["counts"] for one in came["nic_counts"] if one["name"] == "router"}
    assert sum(counts["routed"] for counts in by_port.values()) >= landed  # what came by two links, and its own credits
    assert not file.exists()


def test_three_engines_on_three_nodes(packets: list[bytes], tmp_path: Path, record_property: Record) -> None:
    """Answers leave by the link that brings the events, over the torus to a third node."""
    if not has_torus(record_property):
        return
    file = tmp_path / "torus"
    (port,) = free_ports(1)

    def at(node: int, sender: int, **link: Any) -> dict[str, Any]:
        return {
            "name": "torus",
            "endpoint": f"torus://{node}",
            "torus": {"file": str(file), "senders": [sender], "wait_ms": 60_000},
        } | link

    forward = {"endpoint": "torus://3", "torus": {"file": str(file), "node": 1, "wait_ms": 60_000}}
    builder = engine_config(port, None, processor={"kind": "forward", "forward": forward})
    plain = engine_config(1, None, link=at(3, 1, protocol="m2egp")).model_dump(mode="json")
    judge = EngineConfig.model_validate(plain | {"answers": {"endpoint": "torus://0", "via": "torus"}})
    taker = engine_config(1, None, link=at(0, 3, protocol="raw", sources=[]), processor={"kind": "count"})
    with served(file) as torus:
        with EngineProcess(taker) as third, EngineProcess(judge) as second, EngineProcess(builder) as first, sender(port) as out:
            for packet in packets:
                out.send(packet)
            wait_for(lambda: second.counters().get("events_answered") == EVENTS, "the last answer", within_s=120)
            ends = [first.stop(), second.stop()]
            answers = ends[1]["links"][0]["stats"]
            wait_for(lambda: third.counters().get("packets_accepted") == answers["tx_packets"], "the last packet of answers")
            ends.append(third.stop())
        torus.end()
    assert [one["losses"] for one in ends] == [{}, {}, {}]
    assert answers["tx_packets"] > 0
    assert ends[2]["links"][0]["stats"]["rx_bytes"] == answers["tx_bytes"]


def test_a_receiver_that_is_gone_is_counted_at_the_sender(packets: list[bytes], tmp_path: Path, record_property: Record) -> None:
    if not has_torus(record_property):
        return
    file = tmp_path / "torus"
    (port,) = free_ports(1)
    node = {"file": str(file), "node": 0}
    builder = engine_config(port, None, processor={"kind": "forward", "forward": {"endpoint": "torus://3", "torus": node}})
    with served(file), EngineProcess(builder) as process, sender(port) as out:
        for packet in packets:
            out.send(packet)
        wait_for(lambda: process.counters().get("events_unsent") == EVENTS, "the last event")
        result = process.stop()
    assert (result["counters"]["events_forwarded"], result["losses"]["events_unsent"]) == (0, EVENTS)
    dropped = result["losses"]["answers_dropped"]
    assert dropped == result["counters"]["packets_forwarded"] == counts(result["links"][1], "slots")["no_receiver"]
    assert result["exit_code"] == 1


def test_set_up_says_what_is_wrong(tmp_path: Path, record_property: Record) -> None:
    if not has_torus(record_property):
        return
    file = tmp_path / "torus"
    example = (Path(__file__).parents[2] / "examples" / "torus.yaml").read_text()
    config = tmp_path / "torus.yaml"
    config.write_text(example.replace("/dev/shm/nanet-torus", str(file)))
    assert "name its file" in " ".join(nanet("run", config, expect=2).stderr.split())
    config.write_text(example.replace("torus://3", "torus://64"))
    assert "endpoint 'torus://64' names no node (there are at most 64) write it as torus://3" in " ".join(
        nanet("validate", config, expect=2).stderr.split()
    )
    config.write_text(example.replace("udp://127.0.0.1:6300", "torus://0"))
    assert "answers cannot leave for torus://0 (it leaves by a socket) add answers.torus" in " ".join(
        nanet("validate", config, expect=2).stderr.split()
    )
    forward = (Path(__file__).parents[2] / "examples" / "torus_forward.yaml").read_text()
    config.write_text(forward.replace("node: 0", "node: 3"))
    assert (
        "forward cannot leave for torus://3 (it leaves from that node, which has no slots for itself) name another node"
        in " ".join(nanet("validate", config, expect=2).stderr.split())
    )
    for shape in ("0x1x1", "5x1x1", "65x1x1"):
        refused = " ".join(nanet("torus", "serve", file, "--shape", shape, expect=2).stderr.split())
        assert refused == f"nanet: {shape} is no torus (at most 4x4x4 nodes, at least 2) write 4x4x4"
    file.write_text("something else")
    assert "there is a file that is no torus" in " ".join(nanet("torus", "serve", file, expect=2).stderr.split())
    assert file.read_text() == "something else"
