# SPDX-License-Identifier: Apache-2.0
"""sockperf as the yardstick: the round trip of one UDP message between two cores of this machine and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Literal

from nanet.machine.facts import CorePlan
from nanet.machine.netns import VethPair
from nanet.machine.processes import end, has_bound

PORT = 21112
INSTALL = "apt-get install sockperf"
START_WITHIN_S = 30.0
ATTEMPTS = 3  # it waits forever for one lost message, and a machine that pauses makes it lose one
NO_ANSWER = "No valid observations"
_PERCENTILE = re.compile(r"--->\s+(?:percentile\s+([0-9.]+)|<(MAX|MIN)> observation)\s+=\s+([0-9.]+)")
_NAMES = {"50.000": "p50", "90.000": "p90", "99.000": "p99", "99.900": "p99_9", "99.990": "p99_99", "MAX": "max", "MIN": "min"}


@dataclass(frozen=True)
class RoundTrip:
    """Round trip times [us] by name (p50, p99, p99_9, ..., max) and how many were taken."""

    latency_us: dict[str, float] = field(default_factory=dict)
    count: int = 0
    dropped: int = 0


class SockperfError(RuntimeError):
    """sockperf is not there or did not do its work."""


def available() -> bool:
    """Whether the program is installed."""
    return shutil.which("sockperf") is not None


def version() -> str | None:
    """Its version; None: it is not installed."""
    if not available():
        return None
    done = subprocess.run(["sockperf", "--version"], capture_output=True, text=True, timeout=30, check=False)
    found = re.search(r"version (\d+\.\d+\S*)", done.stdout + done.stderr)
    return found[1] if found else "not known"


def ping_pong(
    cores: CorePlan,
    *,
    message_bytes: int,
    duration_s: float,
    port: int = PORT,
    pair: VethPair | None = None,
    waiting: Literal["spinning", "blocking"] = "spinning",
) -> RoundTrip:
    """Ping-pong: client on the emulator's core, server on the engine's. Full round trips.

    pair: the server is at its engine's end and the client at the boards'; None: both at 127.0.0.1. waiting: of both sides.
    Raises SockperfError.
    """
    if not available():
        raise SockperfError(f"sockperf is missing (it is not on the PATH) install it: {INSTALL}")
    common = [
        "-i",
        pair.engine.address if pair else "127.0.0.1",
        "-p",
        str(port),
        *(["--nonblocked"] if waiting == "spinning" else []),
    ]
    server_command = [*(pair.engine.namespace.prefix() if pair else []), *_pin(cores.engine), "sockperf", "server", *common]
    client_command = [
        *(pair.boards.namespace.prefix() if pair else []), *_pin(cores.emulator), "sockperf", "ping-pong", *common,
        "-t", str(max(1, round(duration_s))), "-m", str(message_bytes), "--full-rtt",
    ]  # fmt: skip
    server = subprocess.Popen(server_command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not has_bound(server, port, START_WITHIN_S):
            raise SockperfError(f"sockperf does not listen on UDP port {port} (another program may have it) choose another port")
        for _ in range(ATTEMPTS):
            done = subprocess.run(client_command, capture_output=True, text=True, timeout=duration_s + 30, check=False)
            if NO_ANSWER not in done.stdout + done.stderr:
                break
    except subprocess.TimeoutExpired:
        raise SockperfError("sockperf did not end (its server may have no time to run) free a core and try again") from None
    finally:
        end(server)
    return parse(done.stdout + done.stderr)


def parse(output: str) -> RoundTrip:
    """Reads sockperf's statistics. They must be full round trips; halves (its default) are doubled."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    factor = 1.0 if "Round trip is" in text or "avg-rtt" in text else 2.0
    latency = {}
    for percentile, extreme, value in _PERCENTILE.findall(text):
        name = _NAMES.get(percentile or extreme)
        if name:
            latency[name] = round(float(value) * factor, 3)
    counted = re.search(r"Total (\d+) observations", text)
    dropped = re.search(r"# dropped messages = (\d+)", text)
    if "p50" not in latency or counted is None:
        last = text.strip().splitlines()[-1] if text.strip() else "it said nothing"
        raise SockperfError(f"sockperf gave no percentiles ({last}) run it by hand to see why")
    return RoundTrip(latency, int(counted[1]), int(dropped[1]) if dropped else 0)


def _pin(core: int | None) -> list[str]:
    return [] if core is None else ["taskset", "-c", str(core)]
