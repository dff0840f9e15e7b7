# SPDX-License-Identifier: Apache-2.0
"""Round trips of slow control through a KM3NeT server, while floors' data go through it to a destination: against the emulated tower, a C++ thread.

Three clients ask the same floors at the same pace: a bare socket of a process that does nothing else (what the machine and the tower take),
and the server's own client, without data and with. What the last has more than the first is the server's.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nanet.config.components import Tower
from nanet.config.errors import validated
from nanet.config.km3_server import Km3ServerConfig
from nanet.km3.bench_ends import REQUESTS_PER_S, TEMPERATURE, ask_bare, sink
from nanet.km3.bench_keys import Asked, Km3ControlResult
from nanet.km3.messages import Command
from nanet.km3.server import SWITCH_S, Server
from nanet.result import files
from nanet.result.histogram import Histogram


class Km3ControlError(RuntimeError):
    """The benchmark cannot be done: "problem (why) suggestion"."""


@dataclass(frozen=True)
class Options:
    """duration_s: of each of the four measurements."""

    duration_s: float = 10.0
    floors: int = 14
    seed: int = 1


def run(options: Options, say: Callable[[str], None] = lambda _: None) -> Km3ControlResult:
    """The result as `nanet bench km3-control --json` writes it. Raises Km3ControlError, ConfigError, SetupError."""
    from nanet import _core

    spawn = multiprocessing.get_context("spawn")
    drained = spawn.Queue()
    drain = spawn.Process(target=sink, args=(drained,), daemon=True)
    drain.start()
    data, control = _free_row(1), _free_row(options.floors)
    tower = _core.Tower(_tower(options, data, control).model_dump(mode="json"), "")
    asked: dict[str, Any] = {}
    before_s = sys.getswitchinterval()
    try:
        with tempfile.TemporaryDirectory() as folder:
            config = _server(options, data, control, drained.get(timeout=60), folder)
            tower.start()
            say("a bare socket, no data")
            asked["bare_idle"] = _bare(spawn, options, control)
            sys.setswitchinterval(SWITCH_S)
            with Server(config) as server:
                say("the server, no data")
                asked["server_idle"] = _ask(server, options.duration_s)
                not_running = server.order({"do": "run start", "run": 1})["not_running"]
                if not_running:
                    raise Km3ControlError(f"{len(not_running)} floors do not run (of {options.floors}) see the machine's load")
                time.sleep(1.0)
                say("the server, with data")
                flow = _Flow(server)
                asked["server_busy"] = _ask(server, options.duration_s)
                flow.end()
                say("a bare socket, with data")
                asked["bare_busy"] = _bare(spawn, options, control)
                server.order({"do": "run stop"})
                time.sleep(1.0)
                books = server.books()
    finally:
        sys.setswitchinterval(before_s)
        tower.stop()
        drain.join(5.0)
        drain.terminate()
    return _result(options, asked, flow, books, tower.snapshot())


def lines(result: Km3ControlResult) -> Iterable[str]:
    """For a person."""
    yield (
        f"{result['floors']} floors, {result['rate_mbit_s']:.0f} Mb/s through {result['server_cores']:.2f} cores; units sent by the tower "
        f"{result['units_sent']:,}, in {result['units_in']:,}, at the destination {result['units_delivered']:,}, incomplete {result['units_incomplete']:,}"
    )
    for name, text in (("bare_idle", "bare socket, no data"), ("bare_busy", "bare socket, with data"), ("server_idle", "server, no data"),
                       ("server_busy", "server, with data")):  # fmt: skip
        one: Asked = result[name]  # type: ignore[literal-required]
        times = ", ".join(f"{key} {one['round_trip_us'][key]:,.0f}" for key in ("p50", "p99", "p99_9", "max"))
        yield f"round trip, {text}: {times} us; {one['answered']:,} answered, {one['not_answered']:,} not at the first try"
    server, bare = result["server_busy"]["round_trip_us"], result["bare_busy"]["round_trip_us"]
    ratios = ", ".join(f"{key} {server[key] / bare[key]:.1f}" for key in ("p50", "p99", "p99_9"))
    yield f"server / bare socket, with data: {ratios}"


def _tower(options: Options, data: int, control: int) -> Tower:
    return validated(Tower, {
        "destinations": [f"udp://127.0.0.1:{data}"], "control": f"udp://127.0.0.1:{control}", "floors": options.floors, "duration_s": 0,
        "waits_for_start": True, "seed": options.seed, "pool_slices": 5,
    })  # fmt: skip


def _server(options: Options, data: int, control: int, to: int, folder: str) -> Km3ServerConfig:
    return validated(Km3ServerConfig, {
        "data": {"endpoint": f"udp://127.0.0.1:{data}"}, "store": {"url": f"sqlite:///{folder}/km3.db"}, "commands": f"{folder}/s",
        "floors": [{"floor": number + 1, "control": f"udp://127.0.0.1:{control + number}"} for number in range(options.floors)],
        "destinations": [{"name": "sink", "endpoint": f"tcp://127.0.0.1:{to}"}],
    })  # fmt: skip


class _Flow:
    """Data through the server, and what of a core this process and the tower in it took."""

    def __init__(self, server: Server) -> None:
        self._server, self._began_s, self._cpu_s = server, time.monotonic(), time.process_time()
        self._bytes = int(server.books()["bytes_in"])
        self.rate_mbit_s = self.cores = 0.0

    def end(self) -> None:
        elapsed_s = time.monotonic() - self._began_s
        self.rate_mbit_s = (int(self._server.books()["bytes_in"]) - self._bytes) * 8 / elapsed_s / 1e6
        self.cores = (time.process_time() - self._cpu_s) / elapsed_s


def _ask(server: Server, duration_s: float) -> Asked:
    """The server's client, one floor after the other."""
    client, taken, missed, next_s = server.client, list[int](), 0, time.monotonic()
    end_s = next_s + duration_s
    while (now_s := time.monotonic()) < end_s:
        time.sleep(max(0.0, next_s - now_s))
        next_s += 1 / REQUESTS_PER_S
        done = client.request(client.floors[len(taken) % len(client.floors)], Command.GET, TEMPERATURE)
        if done.is_done and done.tries == 1:
            taken.append(done.round_trip_ns)
        else:
            missed += 1
    return _asked(taken, missed)


def _bare(spawn: Any, options: Options, control: int) -> Asked:
    """The same of a process of its own, with nothing but a socket."""
    told = spawn.Queue()
    process = spawn.Process(target=ask_bare, args=(told, options.duration_s, options.floors, control), daemon=True)
    process.start()
    taken, missed = told.get(timeout=60 + 10 * options.duration_s)
    process.join(10.0)
    return _asked(taken, missed)


def _asked(taken: list[int], missed: int) -> Asked:
    if not taken:
        raise Km3ControlError("no floor answered (the tower has no processor time) free a core")
    return {"answered": len(taken), "not_answered": missed, "round_trip_us": Histogram.from_values(taken).summary_us()}


def _free_row(count: int) -> int:
    """The first of so many free UDP ports, one after the other."""
    for _ in range(100):
        taken = list[socket.socket]()
        try:
            taken.append(_bound(0))
            first = int(taken[0].getsockname()[1])
            taken += [_bound(first + number) for number in range(1, count)]
        except (OSError, OverflowError):
            continue
        else:
            return first
        finally:
            for one in taken:
                one.close()
    raise Km3ControlError(f"no {count} free ports in a row (all are taken) try again")


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.bind(("127.0.0.1", port))
    except (OSError, OverflowError):
        made.close()
        raise
    return made


def _result(options: Options, asked: dict[str, Any], flow: _Flow, books: dict[str, Any], sent: dict[str, Any]) -> Km3ControlResult:
    return {
        **files.base("bench km3-control"),
        "floors": options.floors,
        "duration_s": options.duration_s,
        "rate_mbit_s": flow.rate_mbit_s,
        "server_cores": flow.cores,
        "units_sent": int(sent["units"]),
        "units_in": books["units_in"],
        "units_incomplete": sum(one["incomplete"] for one in books["streams"]),
        "units_delivered": books["destinations"]["sink"]["units_sent"],
        "bare_idle": asked["bare_idle"],
        "bare_busy": asked["bare_busy"],
        "server_idle": asked["server_idle"],
        "server_busy": asked["server_busy"],
        "load": os.getloadavg()[0],
    }
