# SPDX-License-Identifier: Apache-2.0
"""The whole trigger on the simulated NIC: emulated boards send to it, and its answers are those of the link over plain sockets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loops import PATIENT, check_event_books, check_packet_books, emulator_config, engine_config, free_ports, free_row, nanet, run
from nanet import _core
from nanet.bench import gateware
from nanet.config.errors import ConfigError
from nanet.run import emulate
from nanet.run.process import EngineProcess
from test_replay import Listener, answers_of

EVENTS = 1600
SLOW = {"events_total": EVENTS, "rate_events_per_s": 1600.0}  # a hundred packets a second: the NIC is simulated cycle by cycle


def is_built(port: int) -> bool:
    """Whether this build has the link; else what it says is checked, and that the tests did not run is said aloud."""
    if _core.build_info()["back_ends"]["gateware"]:
        return True
    config = engine_config(port, None, link={"endpoint": f"gateware://127.0.0.1:{port}"})
    with pytest.raises(ConfigError, match=r"libnanet_link_gateware\.so is neither in"), EngineProcess(config):
        pass
    warnings.warn("NOT RUN: the trigger on the simulated NIC: nanet was built without gateware", stacklevel=2)
    return False


def test_every_event_is_answered_by_way_of_the_nic() -> None:
    port, answers = free_ports()
    if not is_built(port):
        return
    plain = engine_config(port, answers, link={"endpoint": f"gateware://127.0.0.1:{port}"})
    assert plain.answers is not None
    config = plain.model_copy(update={"answers": plain.answers.model_copy(update={"via": "boards"})})
    emulated, engine = run(config, emulator_config(port, answers, **SLOW))
    check_packet_books(emulated, engine)
    check_event_books(emulated, engine)
    assert (emulated["sent"], emulated["lost"]) == (EVENTS, 0)
    assert engine["links"][0]["path"].startswith("simulated NIC")
    assert engine["links"][0]["stats"]["tx_packets"] > 0
    check_nic_times(engine)


def check_nic_times(engine: dict[str, Any]) -> None:
    """Each packet is in the statistics of the NIC once, and took in it what the RTL always takes."""
    boards, answers = engine["links"]
    assert answers["nic_times"] is None, "told with the link of the boards"
    times = boards["nic_times"]
    assert (times["clock"], times["cycle_ns"]) == ("RTL, simulated", 6.4)
    stages = {stage["name"]: stage for stage in times["stages"]}
    assert list(stages) == ["parsed", "write_begun", "written", "completed_newest", "completed_oldest"]
    for name in ("parsed", "write_begun", "written"):
        assert (stages[name]["sample"], stages[name]["count"]) == ("packet", boards["stats"]["rx_packets"])
    assert (stages["parsed"]["min_cycles"], stages["parsed"]["max_cycles"]) == (16, 16)
    assert stages["write_begun"]["min_cycles"] == stages["write_begun"]["max_cycles"]
    assert stages["completed_newest"]["count"] == stages["completed_oldest"]["count"] > 0
    for stage in times["stages"]:
        assert sum(bin_["count"] for bin_ in stage["bins"]) == stage["count"]


def test_the_command_says_how_long_packets_took_in_the_nic(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    if not is_built(port):
        return
    config = engine_config(port, None, link={"endpoint": f"gateware://127.0.0.1:{port}"})
    path = tmp_path / "engine.json"
    path.write_text(config.model_dump_json(exclude_none=True))
    command = [sys.executable, "-m", "nanet", "run", str(path), "--json", str(tmp_path / "run.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == f"ready: listening on gateware://127.0.0.1:{port}\n"
        emulate.run(emulator_config(port, None, **SLOW))
        engine.send_signal(signal.SIGINT)
        out, _ = engine.communicate(timeout=60)
    result = json.loads((tmp_path / "run.json").read_text())
    packets = result["links"][0]["stats"]["rx_packets"]
    assert packets >= EVENTS // 16
    head, parsed, *_ = out[out.index("boards: time before") :].splitlines()
    assert head == "boards: time before the engine (RTL, simulated, a cycle of 6.4 ns)"
    assert parsed == f"  parsed            min 16  mean 16.0  max 16 cycles = 102.4  102.4  102.4 ns, {packets:,} packets"
    assert "\n  completed_oldest  min " in out


def test_answers_are_those_of_plain_sockets() -> None:
    (port,) = free_ports(1)
    if not is_built(port):
        return

    def live(port: int) -> dict[str, Any]:
        return emulate.run(emulator_config(port, None, **SLOW))

    expected, _, _ = answers_of({}, 1, live)

    def changes(port: int) -> dict[str, Any]:
        return {"link": {"endpoint": f"gateware://127.0.0.1:{port}"}}

    found, engine, _ = answers_of(changes(port), 1, lambda _: live(port))
    assert len(expected) == EVENTS
    assert np.array_equal(found, expected)
    assert engine["losses"] == {}


def node_link(port: int, **merge: Any) -> dict[str, Any]:
    """Of an engine whose four boards send to `port` and the three after it, and whose events the node merges."""
    return {"endpoint": f"gateware://127.0.0.1:{port}", "protocol": "m2egp", "gateware": {"merge": merge}}


def boards_to(ports: list[int]) -> dict[str, Any]:
    """Runs the emulator of four boards, each to its port."""
    return emulate.run(emulator_config(1, None, 4, destinations=[f"udp://127.0.0.1:{port}" for port in ports], **SLOW))


def node_counts(engine: dict[str, Any], name: str, counter: str) -> list[int]:
    """Of each port, or of the whole node."""
    return [group["counts"][counter] for group in engine["links"][0]["nic_counts"] if group["name"] == name]


def test_four_boards_merged_in_the_node_are_answered_as_those_merged_in_software() -> None:
    port = free_row(4)
    if not is_built(port):
        return
    ports = [port + board for board in range(4)]
    expected, software, _ = answers_of({}, 4, lambda one: boards_to([one] * 4))
    found, engine, sent = answers_of({"link": node_link(port)}, 1, lambda _: boards_to(ports))
    assert len(expected) == EVENTS
    assert np.array_equal(found, expected)
    assert (engine["losses"], engine["refusals"], engine["balance"]["unexplained_packets"]) == ({}, {}, 0)
    for name in ("events_answered", "rings_found"):
        assert engine["counters"][name] == software["counters"][name], name
    assert (software["counters"]["parts_merged"], engine["counters"]["parts_merged"]) == (4 * EVENTS, 0)
    assert engine["links"][0]["path"].startswith("simulated node that merges 4 ports")
    assert node_counts(engine, "wire", "frames") == [(sent["packets_sent"] + sent["markers_sent"]) // 4] * 4
    assert node_counts(engine, "merge", "part") == [EVENTS] * 4
    assert node_counts(engine, "events", "complete") == node_counts(engine, "given", "events") == [EVENTS]
    hops = [hop["hop"] for hop in engine["balance"]["hops"]]
    assert hops[:7] == [*(f"boards, port {n}" for n in range(4)), "boards, parts", "boards, events", "boards, merged packets"]


def test_a_board_that_is_dead_leaves_the_node_as_it_leaves_the_merger() -> None:
    """Three of four boards: both wait for the fourth, say that each event lacks it, and answer from what came."""
    port = free_row(4)
    if not is_built(port):
        return
    with Listener() as nowhere:
        dead = int(nowhere.url.rpartition(":")[2])
        merge = PATIENT | {"window_us": 100_000, "incomplete": "process"}
        expected, software, _ = answers_of({"processor": {"merge": merge}}, 4, lambda one: boards_to([one, one, one, dead]))
        link = node_link(port, window_us=20, complete_only=False)
        found, engine, _ = answers_of({"link": link}, 1, lambda _: boards_to([port, port + 1, port + 2, dead]))
    assert len(expected) == EVENTS
    assert np.array_equal(found, expected)
    assert software["counters"]["events_missing_parts"] == EVENTS
    assert engine["losses"] == {"node_events_partial": EVENTS}
    assert engine["verdict"]["kept"] is False
    assert engine["balance"]["unexplained_packets"] == 0
    assert node_counts(engine, "merge", "part") == [EVENTS] * 3 + [0]


def test_events_merged_by_the_node_are_those_merged_in_software(tmp_path: Path) -> None:
    """Four boards live, merged by the engine; the same packets through the simulated node, and its recording played: the same rings and answers, bit for bit."""
    program = Path(__file__).resolve().parents[2] / gateware.PROGRAM
    if not program.exists():
        warnings.warn("NOT RUN: events merged by the simulated node: bench_gateware is not built", stacklevel=2)
        return
    boards, merged = tmp_path / "boards.pcap", tmp_path / "merged.pcap"

    def live(port: int) -> dict[str, Any]:
        return emulate.run(emulator_config(port, None, 4, events_total=EVENTS, rate_events_per_s=2e5))

    expected, engine, _ = answers_of({"link": {"record": {"file": str(boards)}}}, 4, live)
    assert len(expected) == EVENTS
    subprocess.run([program, "--play-node", boards, merged], check=True, timeout=120)
    with Listener() as listener:
        link = {"endpoint": f"pcap://{merged}", "pcap": {"pace": "packets", "packets_per_s": 5000.0}, "protocol": "m2egp"}
        config = engine_config(1, int(listener.url.rpartition(":")[2]), link=link)
        (tmp_path / "play.json").write_text(config.model_dump_json(exclude_none=True))
        nanet("run", tmp_path / "play.json", "--quiet", "--json", tmp_path / "result.json")  # ends by itself
    again = json.loads((tmp_path / "result.json").read_text())
    assert np.array_equal(listener.primitives(), expected)
    assert again["losses"] == {}
    assert again["counters"]["rings_found"] == engine["counters"]["rings_found"] > 0
