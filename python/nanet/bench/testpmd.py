# SPDX-License-Identifier: Apache-2.0
"""DPDK's testpmd as a peer: packets a second that one core moves over a veth pair, by DPDK's own drivers and nothing else.

Mode flowgen: the core sends on both ends and takes in what came at both. No decoding, no rings, no answer. Frames are as long as ours.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from statistics import median

from nanet.bench.link_keys import Testpmd
from nanet.machine.facts import CorePlan
from nanet.machine.netns import VethPair
from nanet.machine.processes import end

PROGRAM = "dpdk-testpmd"
INSTALL = "apt-get install dpdk-dev"
DRIVERS = {
    "af_packet": "net_af_packet{n},iface={interface}",
    "af_xdp": "net_af_xdp{n},iface={interface},start_queue=0,queue_count=1",
}
MEMORY = ("--no-huge", "-m", "512", "--no-pci", "--no-telemetry")
STARTS_S = 3.0  # until it forwards; its figures of these seconds do not count
_SHOW = re.compile(r"NIC statistics for port (\d+)|Rx-pps:\s+(\d+)")


def version() -> str | None:
    """The version of DPDK; None: it is not installed."""
    if shutil.which(PROGRAM) is None:
        return None
    done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, timeout=30, check=False)
    found = re.search(r"DPDK (\d+\.\d+\S*)", done.stdout + done.stderr)
    return found[1] if found else "not known"


def without_figures(frame_bytes: int) -> Testpmd:
    """What stands under `peers.testpmd` when it was not measured."""
    return {
        "version": version(), "install": INSTALL, "frame_bytes": frame_bytes, "af_packet_packets_per_s": None, "af_xdp_packets_per_s": None,
        "problems": [],
    }  # fmt: skip


def figures(found: Testpmd) -> dict[str, float | None]:
    """Packets a second by driver."""
    return {"af_packet": found["af_packet_packets_per_s"], "af_xdp": found["af_xdp_packets_per_s"]}


def measure(cores: CorePlan, *, frame_bytes: int, duration_s: float) -> Testpmd:
    """What stands under `peers.testpmd`. Of each driver the packets a second received over both ends, or why there is no figure."""
    result = without_figures(frame_bytes)
    if result["version"] is None:
        return result
    for driver in DRIVERS:
        rate, problem = _forward(driver, cores, frame_bytes, duration_s)
        if driver == "af_packet":
            result["af_packet_packets_per_s"] = rate
        else:
            result["af_xdp_packets_per_s"] = rate
        result["problems"] += [f"{driver}: {problem}"] if problem else []
    return result


def _forward(driver: str, cores: CorePlan, frame_bytes: int, duration_s: float) -> tuple[float | None, str | None]:
    with VethPair(coalesced=False, together=True) as pair:
        ends = enumerate((pair.boards, pair.engine))
        devices = [f"--vdev={DRIVERS[driver].format(n=n, interface=end.interface)}" for n, end in ends]
        core = cores.engine if cores.engine is not None else 0
        control = cores.emulator if cores.emulator is not None else 0
        command = [
            *pair.boards.namespace.prefix(), PROGRAM, "-l", f"{control},{core}", "--main-lcore", str(control), *MEMORY,
            "--file-prefix", pair.boards.namespace.name, *devices, "--", "--nb-cores=1", "--forward-mode=flowgen",
            f"--txpkts={frame_bytes}", "--total-num-mbufs=32768", "--no-mlockall", "--auto-start", "--stats-period", "1",
        ]  # fmt: skip
        program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            text = _read_for(program, STARTS_S + duration_s)
        finally:
            end(program)
        shown = shows(text)[int(STARTS_S) :]
        if not shown:
            return None, next(
                (line for line in reversed(text.splitlines()) if "Cause" in line or "rror" in line), "it gave no figure"
            )
        return float(median(shown)), None


def _read_for(program: subprocess.Popen[str], seconds: float) -> str:
    """What it says within that time, and at its end."""
    try:
        text, _ = program.communicate(timeout=seconds)
        return text
    except subprocess.TimeoutExpired:
        program.send_signal(signal.SIGINT)
    try:
        text, _ = program.communicate(timeout=20)
        return text
    except subprocess.TimeoutExpired:
        program.kill()
        return program.communicate()[0]


def shows(text: str) -> list[int]:
    """Packets a second received over all ports, of each time that the statistics were shown whole."""
    sums: list[dict[int, int]] = []
    port = -1
    for number, rate in _SHOW.findall(text):
        if number:
            port = int(number)
            if port == 0:
                sums.append({})
        elif sums:
            sums[-1][port] = int(rate)
    ports = max((len(one) for one in sums), default=0)
    return [sum(one.values()) for one in sums if len(one) == ports]
