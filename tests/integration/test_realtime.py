# SPDX-License-Identifier: Apache-2.0
"""An engine whose receiving thread has real-time priority: which threads have it, that it answers and ends, and what keeps it from starting."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import yaml
from loops import check_event_books, check_packet_books, emulator_config, engine_config, free_ports
from nanet.config.base import online_cores
from nanet.run import emulate
from nanet.run.process import EngineError, EngineProcess

PRIORITY = 7


def policies(pid: int) -> dict[str, list[tuple[int, int]]]:
    """Policy and priority of the threads of a process, by name."""
    found: dict[str, list[tuple[int, int]]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        thread = int(task.name)
        name = (task / "comm").read_text().strip()
        found.setdefault(name, []).append((os.sched_getscheduler(thread), os.sched_getparam(thread).sched_priority))
    return found


@pytest.mark.parametrize(("topology", "receiver"), [("run_to_completion", "nanet-run"), ("pipelined", "nanet-receive")])
def test_only_the_receiving_thread_has_it_and_the_books_balance(topology: str, receiver: str) -> None:
    """Sleeps when nothing comes, so that it is right on a machine that others use too. What the machine does not allow is said."""
    port, answers = free_ports()
    config = engine_config(
        port,
        answers,
        topology=topology,
        cpu_cores={"receive": max(online_cores()), "realtime_priority": PRIORITY},
        waiting={"spin": 0},
    )
    try:
        engine = EngineProcess(config).__enter__()
    except EngineError as error:
        if "real-time priority" not in str(error):
            raise
        warnings.warn(f"NOT RUN: an engine with real-time priority: {error}", stacklevel=1)
        return
    try:
        found = policies(engine.pid)
        emulated = emulate.run(emulator_config(port, answers))
        result = engine.stop()
    finally:
        engine.__exit__(None, None, None)
    [(policy, priority)] = found.pop(receiver)
    assert (policy & ~os.SCHED_RESET_ON_FORK, priority) == (os.SCHED_FIFO, PRIORITY)
    assert all(each == (os.SCHED_OTHER, 0) for threads in found.values() for each in threads)
    assert any("the kernel's guard stops" in note for note in result["notes"])
    check_packet_books(emulated, result)
    check_event_books(emulated, result)
    assert emulated["lost"] == 0


def test_without_the_privilege_it_does_not_start(tmp_path: Path) -> None:
    """An account that may not: without CAP_SYS_NICE, and with a limit of 0. The reason on one line, and status 2."""
    port, _ = free_ports()
    config = engine_config(port, None, cpu_cores={"receive": max(online_cores()), "realtime_priority": PRIORITY})
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    less = ["setpriv", "--bounding-set", "-sys_nice"] if os.geteuid() == 0 else []
    command = [*less, "prlimit", "--rtprio=0:0", sys.executable, "-m", "nanet", "run", tmp_path / "config.yaml", "--duration", "1"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert re.search(r"nanet: .*real-time priority.* \(.+\) .+", done.stderr.splitlines()[-1])
