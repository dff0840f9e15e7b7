# SPDX-License-Identifier: Apache-2.0
"""ucx_perftest as the yardstick: UCX's own benchmark, of the same UCX, over the same transports, on the same cores.

What it does in each test is said in docs/rdma.md. It makes its connections without reporting of lost peers, which is its default and its best.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from nanet._core import SetupError
from nanet.machine.facts import read_text
from nanet.machine.ports import unused_port
from nanet.machine.processes import end
from nanet.rdma import INSTALL, NotDone
from nanet.rdma.measurement import Measurement
from nanet.rdma.memory import Memory
from nanet.rdma.tools import Tools, find_tools, read_build
from nanet.result.keys.rdma import PeerRun

NAMES = {  # it has no puts both ways at once, and no put that waits for its flush
    Measurement.PUT_BANDWIDTH: "ucp_put_bw",
    Measurement.GET_BANDWIDTH: "ucp_get",
    Measurement.PUT_LATENCY: "ucp_put_lat",
    Measurement.GET_LATENCY: "ucp_get",
}
STARTS_WITHIN_S = 20.0
TRIES = 3  # now and then, on a busy machine, its client says that it cannot set up its transport
LISTENING = "0A"  # state in /proc/net/tcp


@dataclass(frozen=True)
class Perftest:
    """The program, where its two sides run, and their memory. transports: as UCX_TLS; empty: what the environment says."""

    tools: Tools
    version: str
    transports: str
    core: int | None
    target_core: int | None
    memory: Memory = Memory()
    target_memory: Memory = Memory()

    def run(self, test: Measurement, size: int, *, depth: int, count: int, timeout_s: float) -> PeerRun:
        """One run of `count` transfers after a tenth of them as warm-up, done again where its two sides do not meet. Raises NotDone."""
        for _ in range(TRIES - 1):
            with contextlib.suppress(NotDone):
                return self._run(test, size, depth, count, timeout_s)
        return self._run(test, size, depth, count, timeout_s)

    def _run(self, test: Measurement, size: int, depth: int, count: int, timeout_s: float) -> PeerRun:
        port = unused_port(socket.SOCK_STREAM)
        environment = self.tools.environment | ({"UCX_TLS": self.transports} if self.transports else {}) | self._gpus()
        common = [self.tools.program("ucx_perftest"), "-p", str(port)]
        server = subprocess.Popen(
            [*common, *_pin(self.target_core)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=environment,
        )  # fmt: skip
        try:
            _await_listener(server, port)
            options = [
                "-t", NAMES[test], "-s", str(size), "-n", str(count), "-w", str(max(1, count // 10)),
                "-O", str(depth if test.is_bandwidth else 1), "-m", f"{_name(self.memory)},{_name(self.target_memory)}", "-f", "-v",
            ]  # fmt: skip
            done = subprocess.run(
                [common[0], "127.0.0.1", *common[1:], *_pin(self.core), *options], capture_output=True, text=True, timeout=timeout_s,
                check=False, env=environment,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise NotDone(
                f"ucx_perftest did not end ({NAMES[test]} of {size} bytes, {timeout_s:g} s) run it by hand to see why"
            ) from None
        finally:
            end(server)
        return parse(done.stdout, done.stderr, size)

    def _gpus(self) -> dict[str, str]:
        """Its server takes the first GPU that it sees, its client the one after it, or the same if there is no other."""
        wanted = dict.fromkeys(one.device for one in (self.target_memory, self.memory) if one.is_device)
        if not wanted:
            return {}
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = visible.split(",") if visible is not None else [str(number) for number in range(max(wanted) + 1)]
        return {"CUDA_VISIBLE_DEVICES": ",".join(names[number] for number in wanted)}


def find(transports: str, core: int | None, target_core: int | None, memory: Memory, target_memory: Memory) -> Perftest:
    """Raises NotDone where there is none, and SetupError for memory that it does not have."""
    if "pinned" in (memory.kind, target_memory.kind):
        raise SetupError("ucx_perftest is not measured with pinned memory (it has none) remove --peer, or use another memory")
    tools = find_tools()
    if tools is None or not (tools.folder / "ucx_perftest").exists():
        raise NotDone(f"there is no ucx_perftest (neither in the package libucx-cu13 nor in UCX_ROOT nor on the PATH) {INSTALL}")
    build = read_build(tools)
    if build.problem:
        raise NotDone(f"UCX's programs do not run ({build.problem}) see whether they fit the library")
    return Perftest(tools, build.version, transports, core, target_core, memory, target_memory)


def _name(memory: Memory) -> str:
    return "cuda" if memory.is_device else "host"


def parse(output: str, errors: str, size: int) -> PeerRun:
    """The last line of its CSV: iterations, percentile, mean and overall mean of the time [us], then MiB/s and messages/s, mean and overall.

    Its MB is 2^20 bytes. Raises NotDone.
    """
    lines = output.strip().splitlines()
    try:
        count, p50_us, _, mean_us, _, mebibytes_per_s, _, messages_per_s = (float(one) for one in lines[-1].split(","))
    except (IndexError, ValueError):
        said = (errors.strip() or output.strip() or "it said nothing").splitlines()[-1]
        raise NotDone(f"ucx_perftest gave no figures ({said}) run it by hand to see why") from None
    return {
        "count": int(count), "bytes_per_s": mebibytes_per_s * 2**20, "messages_per_s": messages_per_s, "p50_us": p50_us,
        "mean_us": mean_us,
    }  # fmt: skip


def _await_listener(server: subprocess.Popen[Any], port: int) -> None:
    """Without a connection, which it would take for its client."""
    end_s = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end_s and server.poll() is None:
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in read_text(table).splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                    return
        time.sleep(0.01)
    raise NotDone(f"ucx_perftest's server does not listen (on port {port}, within {STARTS_WITHIN_S:g} s) run it by hand to see why")


def _pin(core: int | None) -> list[str]:
    return [] if core is None else ["-c", str(core)]
