# SPDX-License-Identifier: Apache-2.0
"""Ten seconds of a soak: every fault comes and goes in a running engine, the books balance, nothing grows; and a leak does not pass."""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from loops import engine_config, free_pair, free_ports, nanet
from nanet import cli
from nanet.config import Faults
from nanet.machine.facts import CorePlan
from nanet.run.process import EngineError, EngineProcess
from nanet.soak import faults, lives, soak
from nanet.soak import verdict as soak_verdict
from test_commands import CheckKeys

RATE = 400_000  # events/s: 25,000 packets/s, which a busy machine's socket buffer holds for half a second
GROWTH_MAX_MIB = 2.0  # between the quarters compared lie 130,000 packets, so 16 B of each would be seen


@pytest.fixture
def cores_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with one core: the engine sleeps while no packet comes. On a core of its own it would spin all the time."""
    monkeypatch.setattr(soak, "plan_cores", lambda: CorePlan(None, None, frozenset(os.sched_getaffinity(0)), None))


def check(result: dict[str, Any]) -> None:
    verdict = result["verdict"]
    assert verdict["reasons"] == []
    assert verdict["outcome"] in ("passed", "inconclusive")  # the latter where something else has the cores
    assert (result["unexplained_events"], result["unexplained_packets"]) == (0, 0)
    injected = result["packets"]["injected"]
    assert all(injected[name] > 20 for name in soak_verdict.DONE.values()), injected
    assert all(result["phases"][fault] for fault in ("off", "all", *soak_verdict.FAULTS))
    assert result["sent"] > result["answered"] > 0.9 * result["sent"]
    assert injected["passed"] > 0.98 * result["packets"]["at_socket"]  # faults were off most of the time


def test_ten_seconds(tmp_path: Path, check_keys: CheckKeys) -> None:
    done = nanet(
        "soak", "--duration", "10s", "--rate", RATE, "--port", free_pair(), "--growth-max-mib", GROWTH_MAX_MIB, "--out", tmp_path / "out",
        "--json", tmp_path / "soak.json", expect=None,
    )  # fmt: skip
    assert (tmp_path / "soak.json").exists(), done.stdout + done.stderr
    result = json.loads((tmp_path / "soak.json").read_text())
    check(result)
    check_keys(result, "soak")
    outcome = result["verdict"]["outcome"]
    assert done.returncode == soak_verdict.EXIT_CODES[outcome]
    assert f"Soak {outcome}" in done.stdout
    assert json.loads((tmp_path / "out" / "soak.json").read_text()) == result


@pytest.mark.usefixtures("cores_are_shared")
def test_faults_of_the_machine_are_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The interface goes down only where there is root to make one."""
    arguments = (
        "soak", "--duration", "35s", "--rate", RATE / 4, "--faults", "stop,kill,slow,link,gpu", "--fault-every", "8s", "--seed", 2,
        "--port", free_pair(), "--out", tmp_path,
    )  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["nanet", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert (tmp_path / "soak.json").exists(), said.out + said.err
    result = json.loads((tmp_path / "soak.json").read_text())
    outcome = result["verdict"]["outcome"]
    assert ended.value.code == soak_verdict.EXIT_CODES[outcome]
    assert f"Soak {outcome}" in said.out
    rows = {row["fault"]: row for row in result["table"]}
    tried = {"stop", "kill", "slow"} | ({"link"} if os.geteuid() == 0 else set())
    assert set(rows) == {"stop", "kill", "slow", "link", "gpu"}
    assert {name for name, row in rows.items() if row["not_run"]} == set(rows) - tried
    late = [one["fault"] for one in result["machine_faults"] if one["late"]]  # a busy machine may be slow to recover
    assert [reason for reason in result["verdict"]["reasons"] if "not within" not in reason] == []
    assert all(row["survived"] == row["times"] > 0 for name, row in rows.items() if name in tried - set(late))
    assert (result["unexplained_events"], result["unexplained_packets"]) == (0, 0)
    assert result["engine_lives"] == 2
    lost = rows["kill"]["losses"]["lost_with_the_engine"]
    assert 0 < lost <= result["lost_with_the_engine_max"]
    if "link" in tried:
        assert rows["link"]["losses"]["events_lost"] > 0


def test_a_configuration_with_four_boards(tmp_path: Path) -> None:
    port, answers = free_ports()
    config = engine_config(port, answers, 4)
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    result = soak.run(soak.SoakOptions(6.0, RATE / 4, tmp_path / "e.yaml"), lambda _: None)
    check(result)
    assert result["boards"] == 4


@pytest.mark.usefixtures("cores_are_shared")
@pytest.mark.parametrize("may_mount", [True, False])
def test_a_full_disk(may_mount: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tmpfs where there is root, else a limit on the size of a file."""
    if not may_mount:
        monkeypatch.setattr(faults, "DISK_OPTIONS", "size=none")
    options = soak.SoakOptions(11.0, RATE / 4, port=free_pair(), faults=("disk",), fault_every_s=10.0, host_share_max=1.0)
    result = soak.run(options, lambda _: None)
    assert [reason for reason in result["verdict"]["reasons"] if "not within" not in reason] == []
    assert [(row["fault"], row["times"]) for row in result["table"]] == [("disk", 1)]
    assert result["engine_lives"] == 3
    assert (result["unexplained_events"], result["unexplained_packets"]) == (0, 0)


@pytest.mark.usefixtures("cores_are_shared")
def test_an_engine_that_dies_of_a_fault_fails_the_soak_which_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults.FaultMaker, "_begin_stop", lambda self: os.kill(self._lives.process.pid, signal.SIGKILL))
    options = soak.SoakOptions(9.0, RATE / 8, port=free_pair(), faults=("stop",), fault_every_s=8.0)
    result = soak.run(options, lambda _: None)
    assert result["verdict"]["outcome"] == "failed"
    assert any("the engine ended by itself" in reason for reason in result["verdict"]["reasons"])
    assert [(row["fault"], row["times"], row["survived"]) for row in result["table"]] == [("stop", 1, 0)]
    assert result["engine_lives"] == 2
    assert result["unexplained_events"] == 0
    assert result["answered"] > 0


@pytest.mark.usefixtures("cores_are_shared")
def test_an_engine_that_does_not_start_again_fails_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: lives.Lives, *_: object) -> None:
        raise EngineError("made up")

    monkeypatch.setattr(lives.Lives, "begin", refuse)
    options = soak.SoakOptions(11.0, RATE / 8, port=free_pair(), faults=("kill",), fault_every_s=8.0)
    result = soak.run(options, lambda _: None)
    assert result["verdict"]["outcome"] == "failed"
    assert any("the engine did not start again: made up" in reason for reason in result["verdict"]["reasons"])
    assert result["stopped_early"] is False
    assert result["engine_lives"] == 1


def test_four_boards_and_a_killed_engine(tmp_path: Path) -> None:
    """Merging: what a killed engine saw no part of is within the bound too."""
    port, answers = free_ports()
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(engine_config(port, answers, 4).model_dump(mode="json")))
    options = soak.SoakOptions(17.5, RATE / 8, tmp_path / "e.yaml", faults=("kill", "stop"), fault_every_s=8.0, host_share_max=1.0)
    result = soak.run(options, lambda _: None)
    assert [reason for reason in result["verdict"]["reasons"] if "not within" not in reason] == []
    assert (result["unexplained_events"], result["unexplained_packets"]) == (0, 0)
    assert {row["fault"]: row["times"] for row in result["table"]} == {"kill": 1, "stop": 1}


@pytest.mark.usefixtures("cores_are_shared")
def test_a_leak_is_found() -> None:
    """A thread of the boards' process keeps 16 MiB a second and a descriptor now and then."""
    kept: list[mmap.mmap | int] = []
    ended = threading.Event()

    def leak() -> None:
        while not ended.wait(0.25):
            pages = mmap.mmap(-1, 4 << 20)  # of its own: what the allocator has free would not make the process grow
            pages.write(b"\1" * len(pages))
            kept.append(pages)
            kept.append(os.dup(0))

    thread = threading.Thread(target=leak)
    thread.start()
    try:
        result = soak.run(soak.SoakOptions(5.0, 1e5, port=free_pair()), lambda _: None)
    finally:
        ended.set()
        thread.join()
        for one in kept:
            if isinstance(one, int):
                os.close(one)
    assert not result["verdict"]["kept"]
    reasons = " ".join(result["verdict"]["reasons"])
    assert "rss_bytes of the emulator grew" in reasons
    assert "descriptors of the emulator grew" in reasons
    assert "of the engine grew" not in reasons
    assert (result["unexplained_events"], result["unexplained_packets"]) == (0, 0)


def test_faults_of_a_link_that_has_none_end_the_engine() -> None:
    port, answers = free_ports()
    with EngineProcess(engine_config(port, answers), injects_faults=True) as process:
        process.set_faults("boards", Faults(loss=0.5))
        deadline = time.monotonic() + 20
        while process.alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(EngineError, match="link boards has no faults to set"):
            process.stop()


@pytest.mark.parametrize("arguments", [("--duration", "1s"), ("--boards", "2"), ("--rate", "0"), ("no-such.yaml",)])
def test_what_cannot_be_done_is_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = nanet("soak", *arguments, "--out", tmp_path, expect=2)
    assert "Traceback" not in done.stderr
