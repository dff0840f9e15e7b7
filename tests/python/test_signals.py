# SPDX-License-Identifier: Apache-2.0
"""Requests to end: SIGTERM is one, having been stopped for a while is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

WAITS = """
from nanet.machine.signals import StopSignals
with StopSignals() as stop:
    print("waiting", flush=True)
    found = [stop.wait(0.2) for _ in range(5)]
    print(any(found), flush=True)
    print(stop.wait(60.0), flush=True)
"""


def state_of(pid: int) -> str:
    """One letter, as in ps."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_process_that_stood_still_goes_on() -> None:
    """CPython's sigtimedwait, interrupted by a stop that outlasts its time-out, returns a signal that no one sent."""
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGSTOP)
        while state_of(process.pid) != "T":
            time.sleep(0.01)
        time.sleep(0.5)  # longer than one of its waits
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdout.readline() == "False\n"
        process.terminate()
        assert process.stdout.readline() == "True\n"
