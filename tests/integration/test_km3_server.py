# SPDX-License-Identifier: Apache-2.0
"""`nanet km3 server` between made-up floors and two destinations: data, slow control, runs, history and alarms, with floors and destinations that fail."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from loops import free_ports, nanet, wait_for
from made_up_km3 import MadeUpFloor, packets, unit_bytes
from nanet.cli.app import app
from nanet.config.errors import ConfigError
from nanet.km3.commands import order
from nanet.km3.units import Received, UnitReader
from typer.testing import CliRunner

FLOORS = 4
SLICES = 40


class Destination:
    """A trigger system or a data manager: keeps what comes over TCP."""

    def __init__(self, port: int = 0) -> None:
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self.listener.getsockname()[1]
        self.units: list[Received] = []
        self._closing = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        self.listener.close()

    def _serve(self) -> None:
        self.listener.settimeout(0.05)
        while not self._closing:
            with contextlib.suppress(TimeoutError), self.listener.accept()[0] as connected:
                reader = UnitReader()
                connected.settimeout(0.05)
                while not self._closing:
                    with contextlib.suppress(TimeoutError):
                        piece = connected.recv(1 << 18)
                        if not piece:
                            break
                        self.units.extend(reader.feed(piece))
                        assert not reader.problem


class Chain:
    """Floors, a server and two destinations."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.floors = [stack.enter_context(MadeUpFloor(number + 1)) for number in range(FLOORS)]
        self.trigger, self.manager = Destination(), Destination()
        stack.callback(lambda: self.trigger.close())
        stack.callback(lambda: self.manager.close())
        self.port = free_ports(1)[0]
        self.config, self.result = folder / "km3.yaml", folder / "result.json"
        self.config.write_text(yaml.safe_dump(self.settings()))
        self.socket = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.sent: dict[tuple[int, int, int, int], bytes] = {}
        self.server: subprocess.Popen[str] | None = None

    def settings(self) -> dict[str, Any]:
        floors = [{"floor": one.floor, "control": one.endpoint, "threshold_pe": [0.3] * 6} for one in self.floors]
        return {
            "data": {"endpoint": f"udp://127.0.0.1:{self.port}", "buffer_bytes": 65536, "buffer_count": 128, "timeout_us": 100000},
            "floors": floors, "control": {"timeout_ms": 300, "retry_s": 0.1, "ping_s": 0.1, "tries_max": 3},
            "destinations": [
                {"name": "trigger", "endpoint": f"tcp://127.0.0.1:{self.trigger.port}", "kinds": ["hits"], "reconnect_s": 0.05},
                {"name": "manager", "endpoint": f"tcp://127.0.0.1:{self.manager.port}", "kinds": ["hydrophone_0", "instruments"], "reconnect_s": 0.05},
            ],
            "store": {"url": f"sqlite:///{self.folder}/km3.db"}, "monitor": {"every_s": 0.2, "parameters": ["temperature"]},
            "alarms": [{"name": "hot", "parameter": "temperature", "above": 30}], "commands": str(self.folder / "s"),
        }  # fmt: skip

    def start(self) -> None:
        read, write = os.pipe()
        command = [
            sys.executable,
            "-m",
            "nanet",
            "km3",
            "server",
            str(self.config),
            "--json",
            str(self.result),
            "--ready-fd",
            str(write),
        ]
        self.server = subprocess.Popen(command, pass_fds=(write,), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.stack.callback(self._kill, self.server)
        os.close(write)
        with os.fdopen(read) as ready:
            assert ready.readline() == "listening\n"

    def _kill(self, server: subprocess.Popen[str]) -> None:
        if server.poll() is None:
            server.kill()
            server.communicate()

    def stop(self) -> tuple[dict[str, Any], int]:
        assert self.server is not None
        self.server.send_signal(signal.SIGTERM)
        text, _ = self.server.communicate(timeout=30)
        assert self.server.returncode in (0, 1), text
        return json.loads(self.result.read_text()), self.server.returncode

    def command(self, *arguments: str, expect: int = 0) -> str:
        """In this process: starting one takes a second of a busy machine."""
        try:
            done = CliRunner().invoke(app, ["km3", *arguments, "--config", str(self.config)], catch_exceptions=False)
        except ConfigError as error:
            assert expect == 2
            return str(error)
        assert done.exit_code == expect, done.output
        return done.output

    def send(self, slice_: int, run: int = 1) -> None:
        """One slice of all floors that run: hits, a hydrophone, instruments."""
        for floor in self.floors:
            for kind, records in ((1, 900), (3, 2000), (5, 4)):
                data = unit_bytes(kind, hash((floor.floor, kind, slice_)), records)
                self.sent[floor.floor, kind, run, slice_] = data
                for packet in packets(floor.floor, kind, run, slice_, data):
                    self.socket.sendto(packet, ("127.0.0.1", self.port))

    def expected(self, *kinds: int) -> dict[tuple[int, int, int, int], bytes]:
        return {key: data for key, data in self.sent.items() if key[1] in kinds}


def came(units: list[Received]) -> dict[tuple[int, int, int, int], bytes]:
    return {(one.unit.floor, one.unit.kind, one.unit.run, one.unit.slice): one.data for one in units}


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    with contextlib.ExitStack() as stack:
        yield Chain(tmp_path, stack)


def balanced(result: dict[str, Any]) -> bool:
    return all(
        one["units_in"]
        == one["units_sent"]
        + one["units_waiting"]
        + sum(one[name] for name in ("queue_full", "unacknowledged", "refused", "left_at_end"))
        for one in result["destinations"].values()
    )


def test_a_run_of_a_small_tower(chain: Chain, check_keys: Callable[[dict[str, Any], str], None]) -> None:
    """Every unit's bytes, the slow control of the run, its history, and an alarm."""
    chain.start()
    assert chain.command("run", "start", "--comment", "first") == "run 1\n"
    assert [floor.run for floor in chain.floors] == [1] * FLOORS
    assert [floor.values[16] for floor in chain.floors] == [30] * FLOORS
    for slice_ in range(SLICES):
        chain.send(slice_)
        time.sleep(0.005)
    wait_for(lambda: came(chain.trigger.units) == chain.expected(1), "every unit of hits")
    wait_for(lambda: came(chain.manager.units) == chain.expected(3, 5), "every other unit")
    assert chain.command("set", "2", "high_voltage_3", "1250.5") == "1250.5 V\n"
    assert chain.floors[1].values[3] == 12505
    assert "cannot be 5000 (it is 0 to 2000 V)" in chain.command("set", "2", "high_voltage_3", "5000", expect=2)
    assert "did you mean" in chain.command("get", "2", "temperatur", expect=2)
    assert "no floor 1/9" in chain.command("get", "9", "temperature", expect=2)
    assert chain.command("get", "1/1", "temperature") == "18.5 degC\n"
    assert "it is asked over a network" in chain.command("express", "1/1", "90", expect=1)
    chain.command("express", "1/1", "256", expect=2)
    assert chain.command("alarms") == "no alarms\n"
    assert chain.command("history", "--parameter", "high_voltage_5", "--monitored") == "nothing was monitored\n"
    chain.floors[2].values[64] = 3500
    wait_for(lambda: "hot  floor 1/3 35 degC" in chain.command("alarms"), "the alarm")
    number = chain.command("alarms").split()[0]
    chain.floors[2].values[64] = 1500
    assert "acknowledged by" in chain.command("alarms", "--all", "--acknowledge", number)
    assert chain.command("run", "stop") == "run 1 stopped\n"
    assert "set high_voltage_3 1250.5 V: done" in chain.command("history", "--floor", "1/2")
    assert "express 90: no_such_command" in chain.command("history", "--floor", "1/1")
    assert "temperature 18.5 degC" in chain.command("history", "--monitored", "--floor", "1")
    assert "first" in chain.command("run", "list")
    result, code = chain.stop()
    assert (code, result["losses"], result["failure"]) == (0, {}, "")
    check_keys(result, "km3 server")
    assert balanced(result)
    assert result["units_in"] == len(chain.sent)
    assert {one["slices_missing"] for one in result["streams"]} == {0}
    outcomes = ("answered", "no_answer", "not_sent", "queue_full", "closed")
    assert result["control"]["requests"] == sum(result["control"].get(name, 0) for name in outcomes)
    assert result["store"]["rows_in"] == result["store"]["rows_written"]


def test_a_floor_that_dies_and_a_destination_that_is_killed_disturb_no_one_else(chain: Chain) -> None:
    chain.start()
    chain.command("run", "start", "--run", "5")
    dead = chain.floors[1]
    dead.faults = {"silent"}
    wait_for(lambda: "floor 1/2: silent (" in chain.command("status"), "the floor's silence")
    chain.trigger.close()
    alive = [one for one in chain.floors if one is not dead]
    chain.floors = alive
    for slice_ in range(SLICES):
        chain.send(slice_, 5)
        time.sleep(0.002)
    wait_for(lambda: came(chain.manager.units) == chain.expected(3, 5), "every unit that is not the killed one's")
    chain.trigger = Destination(chain.trigger.port)
    books = lambda: order(str(chain.folder / "s"), {"do": "status"})["destinations"]["trigger"]  # noqa: E731
    wait_for(
        lambda: len(chain.trigger.units) + books()["unacknowledged"] == len(chain.expected(1)),
        "what waited, but for what was on its way",
    )
    assert books()["unacknowledged"] <= 2
    assert came(chain.trigger.units).items() <= chain.expected(1).items()
    assert [one.run for one in alive] == [5, 5, 5]
    dead.start_over()
    dead.faults = set()
    wait_for(lambda: dead.run == 5, "the floor's return")
    assert dead.values[16] == 30
    assert "no_answer" in chain.command("alarms", "--all")
    result, _ = chain.stop()
    assert balanced(result)
    assert set(result["losses"]) <= {"unacknowledged of trigger"}
    assert next(one for one in result["floors"] if one["floor"] == 2)["counts"]["silent"] >= 1


def test_a_server_that_is_killed_goes_on_with_the_run(chain: Chain) -> None:
    chain.start()
    chain.command("run", "start")
    assert chain.server is not None
    chain.server.kill()
    chain.server.communicate()
    chain.start()
    wait_for(lambda: "run 1;" in (said := chain.command("status")) and said.count(": running\n") == FLOORS, "the run")
    assert "run 1 is on" in chain.command("run", "start", expect=2)
    assert [floor.run for floor in chain.floors] == [1] * FLOORS
    result, code = chain.stop()
    assert (code, result["run"]) == (0, 1)
    assert [floor.run for floor in chain.floors] == [1] * FLOORS  # its end stops no run


def test_units_with_holes_are_named_where_it_says_what_was_lost(chain: Chain) -> None:
    """Of floor 2 a packet of hits of slice 1, and all of slice 2, never come."""
    chain.start()
    assert chain.command("run", "list") == "no runs\n"
    assert chain.command("detector", "list") == "no detector files\n"
    for slice_ in range(4):
        for floor in (1, 2):
            sent = list(packets(floor, 1, 7, slice_, unit_bytes(1, slice_, 3000)))
            kept = [] if (floor, slice_) == (2, 2) else sent[1:] if (floor, slice_) == (2, 1) else sent
            for packet in kept:
                chain.socket.sendto(packet, ("127.0.0.1", chain.port))
    wait_for(lambda: "7 units in (1 with holes, 1 missing);" in chain.command("status"), "the unit with holes")
    lines = chain.command("status").splitlines()
    assert "  hits of floor 1/2: 3 units in (1 with holes, 1 missing)" in lines
    assert not any("floor 1/1: 4 units in" in line for line in lines)
    chain.server.send_signal(signal.SIGTERM)  # type: ignore[union-attr]
    text, _ = chain.server.communicate(timeout=30)  # type: ignore[union-attr]
    assert text.splitlines()[-1] == "7 units in (1 with holes, 1 missing), 7 to trigger, 0 to manager; lost by the server: nothing"
    assert chain.server.returncode == 0  # type: ignore[union-attr]


def test_slow_control_under_load_and_a_store_that_is_gone(chain: Chain) -> None:
    """Data of four floors as fast as they come, while a floor is asked again and again; the store's folder is away."""
    settings = chain.settings() | {
        "store": {"url": f"sqlite:///{chain.folder}/gone/km3.db", "retry_s": 0.05},
        "monitor": None,
        "alarms": [],
    }
    chain.config.write_text(yaml.safe_dump(settings))
    chain.start()
    assert "give one: nanet km3 run start --run NUMBER" in chain.command("run", "start", expect=2)
    chain.command("run", "start", "--run", "3")
    for slice_ in range(2 * SLICES):
        chain.send(slice_, 3)
        time.sleep(0.002)
    wait_for(lambda: len(chain.trigger.units) == len(chain.expected(1)), "every unit of hits")
    assert "unable to open database file" in chain.command("status")
    result, code = chain.stop()
    assert code == 1
    assert set(result["losses"]) == {"rows_dropped of the store"}
    assert result["round_trip_us"]["min"] > 0
    assert balanced(result)


def test_a_second_server_at_the_same_socket_is_refused(chain: Chain) -> None:
    chain.start()
    settings = yaml.safe_load(chain.config.read_text())
    settings["data"]["endpoint"] = f"udp://127.0.0.1:{free_ports(1)[0]}"
    other = chain.folder / "other.yaml"
    other.write_text(yaml.safe_dump(settings))
    done = nanet("km3", "server", other, expect=2)
    assert "another server listens there" in done.stderr
    assert chain.command("status").startswith("no run;")
