# SPDX-License-Identifier: Apache-2.0
"""`nanet run` around an engine that is made up: a GPU that is given up ends the run, and the user is told."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest
from nanet import _core
from nanet.config import engine
from nanet.config.errors import validated
from nanet.run import command

FAULT = "GPU made-up was given up (the test says so) see the test"
PLAIN: dict[str, Any] = {
    "version": 1, "memory_regions": [{"name": "m"}],
    "links": [{"name": "in", "endpoint": "udp://127.0.0.1:6200", "memory_region": "m", "sources": [{"name": "a"}]}],
    "processor": {"runtime": "persistent", "gpu": {"devices": [3]}},
}  # fmt: skip


class MadeUpEngine:
    """Answers 600 of 1000 events; its GPU is given up as soon as it runs, if it has one that fails."""

    notes: tuple[str, ...] = ()
    fails = True
    inputs_finished = False

    def __init__(self, plain: dict[str, Any]) -> None:
        self.device_names = ["made-up"] if plain["processor"]["runtime"] != "cpu" else []
        self.running = False
        self.faults: list[str] = []

    def start(self) -> None:
        self.running = True
        self.faults = [FAULT] if self.fails else []

    def stop(self) -> None:
        self.running = False

    def snapshot(self) -> dict[str, Any]:
        counters = dict.fromkeys((name for name, _, _ in _core.counter_table()), 0)
        counters |= {"events_received": 1000, "events_answered": 600, "events_unjudged": 400} if self.fails else {}
        rings: dict[str, list[int]] = {"radius_mm": [], "multiplicity": [], "count": []}
        return {"elapsed_s": 1.0, "core_wait_s": 0.0, "counters": counters, "sources": [], "links": [], "rings": rings}

    def event_samples(self) -> list[Any]:
        return []


def test_a_fault_ends_the_run_and_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(_core, "Engine", MadeUpEngine)
    path = tmp_path / "run.json"
    code, result = command.run(validated(engine.EngineConfig, PLAIN), command.RunOptions(path, quiet=True))  # no duration
    assert code == command.BROKEN
    assert capsys.readouterr().err == f"nanet: {FAULT}\n"
    assert result["verdict"]["reasons"] == [FAULT, "lost events_unjudged 400"]
    written = json.loads(path.read_text())
    assert written["faults"] == [FAULT]
    assert written["processor"] == {"runtime": "persistent", "devices": [{"index": 3, "name": "made-up"}]}


def test_without_a_fault_it_runs_to_its_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(_core, "Engine", MadeUpEngine)
    monkeypatch.setattr(MadeUpEngine, "fails", False)
    loaded = validated(engine.EngineConfig, PLAIN | {"run": {"duration_s": 0.3}})
    code, result = command.run(loaded, command.RunOptions(quiet=True))
    assert (code, result["faults"], capsys.readouterr().err) == (command.OK, [], "")


def test_what_a_link_notes_while_it_runs_is_told_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Noting(MadeUpEngine):
        fails = False

        def stop(self) -> None:
            super().stop()
            self.notes = (*self.notes, "late (the test says so) see the test")

    monkeypatch.setattr(Noting, "notes", ("early (the test says so) see the test",))
    monkeypatch.setattr(_core, "Engine", Noting)
    loaded = validated(engine.EngineConfig, PLAIN | {"run": {"duration_s": 0.1}})
    _, result = command.run(loaded, command.RunOptions())
    assert result["notes"] == [f"{when} (the test says so) see the test" for when in ("early", "late")]
    assert capsys.readouterr().err == "".join(f"note: {note}\n" for note in result["notes"])


def test_what_a_link_notes_while_it_runs_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []

    class Noting(MadeUpEngine):
        fails = False

        def snapshot(self) -> dict[str, Any]:
            self.notes = ("ended (the test says so) see the test",)
            return super().snapshot()

        def stop(self) -> None:
            told.append(capsys.readouterr().err)
            super().stop()

    monkeypatch.setattr(_core, "Engine", Noting)
    loaded = validated(engine.EngineConfig, PLAIN | {"run": {"duration_s": 1.5}})
    command.run(loaded, command.RunOptions())
    assert told == ["note: ended (the test says so) see the test\n"]
    assert capsys.readouterr().err == ""  # and no second time


def test_the_last_line_says_that_its_rate_is_the_mean(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(_core, "Engine", MadeUpEngine)
    loaded = validated(engine.EngineConfig, PLAIN)
    command.run(loaded, command.RunOptions())
    line = capsys.readouterr().out.splitlines()[-1]
    assert "  mean 1,000 event/s  answered 600  " in line
    assert line.endswith("  no residence")


def test_the_cpu_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "Engine", MadeUpEngine)
    monkeypatch.setattr(MadeUpEngine, "fails", False)
    loaded = validated(engine.EngineConfig, PLAIN | {"processor": {}, "run": {"duration_s": 0.1}})
    _, result = command.run(loaded, command.RunOptions(quiet=True))
    assert result["processor"] == {"runtime": "cpu", "devices": []}


@pytest.mark.parametrize("counters", [70, 700], ids=["lines that a pipe takes whole", "lines that it takes in parts"])
def test_status_that_nobody_reads_stops_nothing(counters: int) -> None:
    """A long run fills the pipe; lines stay whole, and when somebody reads again new ones come."""
    out, into = os.pipe()
    try:
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(out, False)
        status = command.Status(into)
        told = {"counters": {f"counter_{k}": k for k in range(counters)}}
        read = b""
        for number in range(120):
            status.say(told | {"number": number})
            if number >= 100:
                read += os.read(out, 1 << 20)
        numbers = [json.loads(line)["number"] for line in read.split(b"\n")[:-1]]
        assert numbers[0] == 0
        assert numbers == sorted(set(numbers))
        assert numbers[-1] > 100
    finally:
        os.close(out)
        os.close(into)
