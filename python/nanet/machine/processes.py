# SPDX-License-Identifier: Apache-2.0
"""Processes of other programs."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any


def end(process: subprocess.Popen[Any]) -> None:
    """Ends a process that may have ended: in order, then by force."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def udp_rows(pid: int) -> list[list[str]]:
    """Fields of each line of /proc/net/udp in the network namespace of a process; none when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/net/udp").read_text().splitlines()[1:]
    except OSError:
        return []
    return [line.split() for line in lines]


def udp_port(row: list[str]) -> int:
    """The local port of a row of /proc/net/udp."""
    return int(row[1].rpartition(":")[2], 16)


def has_bound(process: subprocess.Popen[Any], port: int, within_s: float) -> bool:
    """Waits until this UDP port is taken in the namespace of a process; False: it ended, or the time did."""
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s and process.poll() is None:
        if any(udp_port(row) == port for row in udp_rows(process.pid)):
            return True
        time.sleep(0.01)
    return False
