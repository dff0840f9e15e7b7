# SPDX-License-Identifier: Apache-2.0
"""The FCMServer with its data manager: units to their destinations, slow control down to the floors, history, alarms and runs. docs/design/km3-server.md"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from nanet.config.errors import ConfigError, nearest
from nanet.config.km3_server import FloorSettings, Km3ServerConfig
from nanet.km3.alarms import Alarms
from nanet.km3.commands import CommandSocket
from nanet.km3.control import Client, Exchange
from nanet.km3.destinations import LOSSES
from nanet.km3.keys import ServerResult
from nanet.km3.messages import BY_NAME, Command, Floor, Parameter
from nanet.km3.relay import Relay
from nanet.km3.runs import RunControl, settings_of
from nanet.km3.store import Store, StoreError, Writer
from nanet.km3.units import units_text
from nanet.machine.signals import StopSignals
from nanet.result import files

SWITCH_S = (
    0.0005  # threads of Python take turns this often: an answer of a floor waits for that long at most, once for each busy thread
)
ADOPT_AFTER_S = 1.0
RUN_WITHIN_S = 20.0


class Server:
    """`with Server(config) as server:` it runs inside the block. Methods may be called from any thread."""

    def __init__(self, config: Km3ServerConfig) -> None:
        """Raises ConfigError, SetupError."""
        self.config = config
        self.notes: list[str] = []
        self._by_floor = {Floor(one.tower, one.floor): one for one in config.floors}
        self._store = Store(config.store.url, config.store.timeout_s)
        self._relay = Relay(config.data, config.destinations, list(self._by_floor))
        self._writer = Writer(self._store, config.store.queue_max, config.store.retry_s)
        self._alarm_lock = threading.Lock()
        self._alarms = Alarms(config.alarms, self._writer.put)
        self._client = Client(
            {floor: _numeric(one) for floor, one in self._by_floor.items()}, timeout_s=config.control.timeout_ms / 1e3,
            tries_max=config.control.tries_max, queue_max=config.control.queue_max, heard=self._heard,
        )  # fmt: skip
        self._ending = threading.Event()
        self._runs: RunControl | None = None
        self._commands: CommandSocket | None = None
        self._last_run = 0
        self._monitor = threading.Thread(target=self._watch, name="km3-monitor", daemon=True)

    def __enter__(self) -> Self:
        try:
            self._commands = CommandSocket(self.config.commands, self.order)
        except ConfigError:
            self._client.close()
            self._writer.close(0.0)
            raise
        self._relay.__enter__()
        self._runs = RunControl(
            self._client, {floor: settings_of(one) for floor, one in self._by_floor.items()}, self.config.control,
            run_of=self._relay.run_of, answers=self._answers,
        )  # fmt: skip
        self._monitor.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends in order. Floors are left as they are."""
        self._ending.set()
        if self._commands is not None:
            self._commands.close()
        self._monitor.join()
        if self._runs is not None:
            self._runs.close()
        self._client.close()
        self._relay.close()
        self._writer.close()
        self._store.close()

    @property
    def client(self) -> Client:
        """Of slow control."""
        return self._client

    def books(self) -> dict[str, Any]:
        """Of everything, as `nanet km3 status` and the result show it."""
        relay = self._relay.books()
        assert self._runs is not None
        return {
            "run": self._runs.run,
            "units_in": relay["units_in"], "bytes_in": relay["bytes_in"], "units_copied": relay["units_copied"],
            "streams": relay["streams"], "destinations": relay["destinations"], "port": relay["port"],
            "control": self._client.counters(),
            "round_trip_us": self._client.round_trips().summary_us() if self._client.round_trips().count else None,
            "floors": [
                {"tower": floor.tower, "floor": floor.floor, "state": one.state, "why": one.why, "run": one.run, "counts": dict(one.counts)}
                for floor, one in sorted(self._runs.states().items())
            ],
            "store": self._writer.books(),
            "alarms_raised": [{"rule": rule, "tower": floor.tower, "floor": floor.floor} for rule, floor in self._raised()],
            "notes": [*self.notes, *self._relay.notes, *(note for outlet in self._relay.outlets for note in outlet.notes)],
            "failure": self._relay.failure,
        }  # fmt: skip

    def order(self, said: dict[str, Any]) -> dict[str, Any]:
        """What a command asks for. Raises ConfigError for what cannot be done, with the reason."""
        orders: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "status": lambda _: self.books(), "get": self._get, "set": self._set, "run start": self._start, "run stop": self._stop,
            "express": self._express,
        }  # fmt: skip
        wanted = str(said.get("do"))
        if wanted not in orders:
            raise ConfigError([f"no order has the name '{wanted[:40]}' (the server knows no such) {nearest(wanted[:40], orders)}"])
        return orders[wanted](said)

    def _get(self, said: dict[str, Any]) -> dict[str, Any]:
        floor, parameter = self._floor_of(said), _parameter_of(said)
        return _told(parameter, self._client.request(floor, Command.GET, parameter.number))

    def _set(self, said: dict[str, Any]) -> dict[str, Any]:
        floor, parameter = self._floor_of(said), _parameter_of(said)
        try:
            value = round(float(said["value"]) / parameter.step)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise ConfigError([f"'{said.get('value')}' is no value ({parameter.name} is a number) give one"]) from None
        if parameter.least is None or parameter.most is None:
            raise ConfigError([f"{parameter.name} cannot be set (a floor measures it) set another parameter"])
        if not parameter.least <= value <= parameter.most:
            least, most = parameter.least * parameter.step, parameter.most * parameter.step
            raise ConfigError(
                [
                    f"{parameter.name} cannot be {value * parameter.step:g} (it is {least:g} to {most:g} {parameter.unit}) choose one of those"
                ]
            )
        assert self._runs is not None
        return _told(parameter, self._runs.set(floor, parameter.number, value))

    def _express(self, said: dict[str, Any]) -> dict[str, Any]:
        floor, code = self._floor_of(said), said.get("code")
        if type(code) is not int or not 0 <= code < 256:
            raise ConfigError([f"{str(code)[:40]!r} is no express code (codes are 0 to 255) give one of these"])
        done = self._client.request(floor, Command.EXPRESS, code)
        words = done.answer.value if done.answer is not None and done.is_done else None
        return {"outcome": done.outcome, "words": words, "tries": done.tries, "round_trip_us": done.round_trip_ns / 1e3}

    def _start(self, said: dict[str, Any]) -> dict[str, Any]:
        assert self._runs is not None
        if self._runs.run is not None:
            raise ConfigError([f"run {self._runs.run} is on (a detector is in one run) stop it: nanet km3 run stop"])
        run = said.get("run")
        if run is None:
            try:
                run = max(self._store.next_run(), self._last_run + 1)
            except StoreError as error:
                raise ConfigError([f"no number for the run ({error}) give one: nanet km3 run start --run NUMBER"]) from None
        if type(run) is not int or not 1 <= run < 1 << 31:
            raise ConfigError([f"run {run} is none (runs are numbered from 1 to 2147483647) give another number"])
        self._last_run = run
        detector, comment = said.get("detector"), str(said.get("comment") or "")
        self._writer.put("runs", run=run, started_ns=time.time_ns(), stopped_ns=None, detector=detector, comment=comment)
        return {"run": run, "not_running": _named(self._runs.start(run, RUN_WITHIN_S))}

    def _stop(self, _: dict[str, Any]) -> dict[str, Any]:
        assert self._runs is not None
        run = self._runs.run
        left = self._runs.stop(RUN_WITHIN_S)
        if run is not None:
            self._writer.put("update runs", run=run, stopped_ns=time.time_ns())
        return {"run": run, "not_stopped": _named(left)}

    def _floor_of(self, said: dict[str, Any]) -> Floor:
        floor = Floor(said.get("tower", 1), said.get("floor", 0))
        if floor not in self._by_floor:
            known = ", ".join(map(str, sorted(self._by_floor)))
            raise ConfigError([f"no floor {floor} (the configuration has none) known: {known}"])
        return floor

    def _heard(self, done: Exchange) -> None:
        """In the control thread: what every exchange leaves behind. Pings that were answered, and what is read in turns, are no history."""
        asked = done.request
        if asked.command in (Command.PING, Command.GET) and done.is_done:
            if asked.command is Command.GET and done.answer is not None:
                now_ns = time.time_ns()
                self._writer.put(
                    "monitored",
                    at_ns=now_ns,
                    tower=asked.floor.tower,
                    floor=asked.floor.floor,
                    parameter=asked.parameter,
                    value=done.answer.value,
                )
                with self._alarm_lock:
                    self._alarms.value(asked.floor, asked.parameter, done.answer.value, now_ns)
            return
        self._writer.put(
            "history", at_ns=done.asked_ns, tower=asked.floor.tower, floor=asked.floor.floor, command=asked.command.name.lower(),
            parameter=asked.parameter, value=asked.value, outcome=done.outcome, answer=done.answer.value if done.answer else None,
            tries=done.tries, round_trip_ns=done.round_trip_ns,
        )  # fmt: skip

    def _answers(self, floor: Floor, does: bool) -> None:
        with self._alarm_lock:
            self._alarms.answers(floor, does=does, now_ns=time.time_ns())

    def _raised(self) -> list[tuple[str, Floor]]:
        with self._alarm_lock:
            return self._alarms.raised()

    def _watch(self) -> None:
        """Takes up what was left, then reads every floor in turns. A floor that does not answer is not asked for more."""
        self._ending.wait(ADOPT_AFTER_S)
        if not self._ending.is_set():
            self._adopt()
        monitor = self.config.monitor
        while monitor is not None and not self._ending.wait(monitor.every_s):
            assert self._runs is not None
            silent = {floor for floor, one in self._runs.states().items() if one.state == "silent"}
            for name in monitor.parameters:
                asked = [
                    self._client.submit(floor, Command.GET, BY_NAME[name].number) for floor in self._by_floor if floor not in silent
                ]
                for one in asked:
                    if not one.result().is_done and one.result().answer is None:
                        silent.add(one.result().request.floor)

    def _adopt(self) -> None:
        try:
            open_alarms, last = self._store.alarms(is_open=True, limit=10000), self._store.runs(1)
        except StoreError as error:
            self.notes.append(f"what was before is not known: {error}")
            return
        with self._alarm_lock:
            self._alarms.adopt(open_alarms)
        assert self._runs is not None
        if last and last[0]["stopped_ns"] is None and self._runs.run is None and self._last_run == 0:
            self._last_run = int(last[0]["run"])
            self.notes.append(f"run {self._last_run} was not stopped: it goes on")
            self._runs.adopt(self._last_run)


def run(
    config: Km3ServerConfig, *, duration_s: float | None, json_file: Path | None, ready_fd: int | None, quiet: bool
) -> ServerResult:
    """The command: until SIGTERM, SIGINT, or so many seconds."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        with StopSignals() as stop:
            began_s = time.monotonic()
            with Server(config) as server:
                if ready_fd is not None:
                    with contextlib.suppress(OSError):
                        os.write(ready_fd, b"listening\n")
                _say(
                    quiet,
                    f"nanet km3 server · {len(config.floors)} floors · data {config.data.endpoint} · commands {config.commands}",
                )
                told: list[str] = []
                while not stop.wait(1.0) and (duration_s is None or time.monotonic() - began_s < duration_s):
                    told = _say_news(server, told, quiet)
                    if server._relay.failure:
                        break
            books = server.books()
    finally:
        sys.setswitchinterval(before_s)
    result: ServerResult = {**files.base("km3 server"), "elapsed_s": time.monotonic() - began_s, **books, "losses": losses(books)}  # type: ignore[typeddict-item]
    files.write_json(json_file, result)
    return result


def losses(books: dict[str, Any]) -> dict[str, int]:
    """By name and destination, and of the store, those that are not 0."""
    found = {f"{name} of {to}": one[name] for to, one in books["destinations"].items() for name in LOSSES if one[name]}
    return found | {
        f"{name} of the store": books["store"][name] for name in ("rows_dropped", "rows_refused") if books["store"][name]
    }


def sentence(result: ServerResult) -> str:
    """What happened, in a line."""
    sent = ", ".join(f"{one['units_sent']:,} to {name}" for name, one in result["destinations"].items()) or "no destination"
    lost = ", ".join(f"{count:,} {name}" for name, count in result["losses"].items()) or "nothing"
    return f"{units_text(result['streams'])}, {sent}; lost by the server: {lost}"


def _say_news(server: Server, told: list[str], quiet: bool) -> list[str]:
    now = server.books()["notes"]
    for note in now:
        if note not in told:
            _say(quiet, note)
    return list(now)


def _say(quiet: bool, line: str) -> None:
    if not quiet:
        print(line, flush=True)


def _numeric(floor: FloorSettings) -> tuple[str, int]:
    host, _, port = floor.control.removeprefix("udp://").rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0][4]
    except OSError as error:
        raise ConfigError([f"no floor at {floor.control} ({(error.strerror or str(error)).lower()}) give an address"]) from None
    return str(found[0]), int(found[1])


def _parameter_of(said: dict[str, Any]) -> Parameter:
    name = str(said.get("parameter"))[:40]
    if name not in BY_NAME:
        raise ConfigError([f"no parameter has the name '{name}' (floors have none) {nearest(name, BY_NAME)}"])
    return BY_NAME[name]


def _told(parameter: Parameter, done: Exchange) -> dict[str, Any]:
    value = done.answer.value * parameter.step if done.answer is not None else None
    return {
        "outcome": done.outcome,
        "value": value,
        "unit": parameter.unit,
        "tries": done.tries,
        "round_trip_us": done.round_trip_ns / 1e3,
    }


def _named(floors: dict[Floor, Any]) -> list[dict[str, Any]]:
    return [
        {"tower": floor.tower, "floor": floor.floor, "state": one.state, "why": one.why} for floor, one in sorted(floors.items())
    ]
