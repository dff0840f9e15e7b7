# SPDX-License-Identifier: Apache-2.0
"""What two receive queues on two cores take against one queue on one: `python -m nanet.bench.queues [--rounds N] [--packets N]`.

A sender would need the cores that receive. So in each round the sockets are filled first, each from the core of its lane, and then the engine is
started: cpu_cores.lanes, protocol raw, processor count. Rates are packets by the time from the engine's start to the last packet, and by the CPU time
of the threads of the lanes. On a machine that does other things too the second is the one to compare: two cores of their own would take it. What
waits should fit into the last-level cache, as it does when packets are taken as they come: 12,000 packets are 14 MB a queue.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from nanet.bench.assemble_keys import QueueRates
from nanet.config.engine import EngineConfig
from nanet.machine.ports import unused_port
from nanet.run.native import make_engine

PACKET_BYTES = 1168
SEGMENTS = 56  # packets of one message
UDP_SEGMENT = 103
LONGEST_S = 20.0


@dataclass
class Rates:
    """Of one number of queues: packets per second in each round, by the clock and by CPU time."""

    per_s: list[float] = field(default_factory=list)
    per_cpu_s: list[float] = field(default_factory=list)


def two_over_one(*, gro: bool, rounds: int = 20, packets: int = 12_000) -> dict[str, float]:
    """Medians of the rounds, in which one and two queues take turns [1/s], and their ratios. packets: of each queue.

    Raises RuntimeError when a round does not end, nanet._core.SetupError where the machine refuses.
    """
    all_ = {1: Rates(), 2: Rates()}
    for _ in range(rounds):
        for queues, rates in all_.items():
            _measure(queues, gro, packets, rates)
    one, two = all_[1], all_[2]
    by_clock, by_cpu = (median(one.per_s), median(two.per_s)), (median(one.per_cpu_s), median(two.per_cpu_s))
    return {
        "one_per_s": by_clock[0], "two_per_s": by_clock[1], "two_over_one": by_clock[1] / by_clock[0],
        "one_per_cpu_s": by_cpu[0], "two_per_cpu_s": by_cpu[1], "two_over_one_by_cpu": by_cpu[1] / by_cpu[0],
    }  # fmt: skip


def queue_rates(rounds: int) -> QueueRates | None:
    """As `nanet bench assemble` writes it; None: this thread may use one core only."""
    if len(_cores(2)) < 2:
        return None
    coalesced, single = (two_over_one(gro=gro, rounds=rounds) for gro in (True, False))
    return {
        "two_over_one": coalesced["two_over_one_by_cpu"],
        "two_over_one_single": single["two_over_one_by_cpu"],
        "two_over_one_by_clock": coalesced["two_over_one"],
        "two_over_one_single_by_clock": single["two_over_one"],
    }


def _config(queues: int, gro: bool, port: int) -> EngineConfig:
    udp = {"queues": queues, "steer_by": "key", "key_at": 0} if queues > 1 else None
    link: dict[str, Any] = {
        "name": "boards", "endpoint": f"udp://127.0.0.1:{port}", "protocol": "raw", "memory_region": "region", "gro": gro, "udp": udp,
        "socket_buffer_bytes": 1 << 29,
    }  # fmt: skip
    plain: dict[str, Any] = {
        "version": 1, "links": [link], "memory_regions": [{"name": "region", "buffer_count": 4}], "processor": {"kind": "count"},
        "cpu_cores": {"lanes": _cores(queues)},
        "waiting": {"spin": 100, "sleep_us": 50_000},  # a lane that is done waits for the other, and that must not count
    }  # fmt: skip
    return EngineConfig.model_validate(plain)


def _fill(port: int, queues: int, packets: int) -> int:
    """Gives each queue so many packets at least, in messages of one key each; how many all get."""
    before = os.sched_getaffinity(0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, PACKET_BYTES)
        sender.connect(("127.0.0.1", port))
        for queue, core in enumerate(_cores(queues)):
            # As a NIC's queue has its interrupt: else the kernel gives buffers back on the other core, where it is not counted.
            os.sched_setaffinity(0, {core})
            message = (bytes([queue]) + bytes(PACKET_BYTES - 1)) * SEGMENTS
            for _ in range(0, packets, SEGMENTS):
                sender.send(message)
    os.sched_setaffinity(0, before)
    return -(-packets // SEGMENTS) * SEGMENTS * queues


def _cores(queues: int) -> list[int]:
    return sorted(os.sched_getaffinity(0))[:queues]


def _measure(queues: int, gro: bool, packets: int, rates: Rates) -> None:
    port = unused_port()
    engine = make_engine(_config(queues, gro, port))
    waiting = _fill(port, queues, packets)
    for link in engine.snapshot()["links"]:  # what the sockets had no room for
        waiting -= int(link["stats"]["rx_kernel_dropped"]) * (SEGMENTS if gro else 1)
    start_s = time.perf_counter()
    engine.start()
    while (taken := int(engine.snapshot()["counters"]["packets_accepted"])) < waiting:
        if time.perf_counter() - start_s > LONGEST_S:
            raise RuntimeError(f"{taken} of {waiting} packets came")
        time.sleep(0.001)
    wall_s = time.perf_counter() - start_s
    lanes_s = _lane_cpu_s()
    engine.stop()
    rates.per_s.append(waiting / wall_s)
    rates.per_cpu_s.append(sum(waiting / queues / cpu_s for cpu_s in lanes_s))


def _lane_cpu_s() -> list[float]:
    """CPU time of each lane's thread so far [s]."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text().startswith("nanet-lane")]
    return [int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line with coalescing and one without."""
    parser = argparse.ArgumentParser(prog="python -m nanet.bench.queues", description="two receive queues on two cores against one")
    parser.add_argument("--rounds", type=int, default=20, help="of one and two queues in turn (20)")
    parser.add_argument("--packets", type=int, default=12_000, help="that wait in each queue (12000)")
    options = parser.parse_args(arguments)
    for gro in (True, False):
        found = two_over_one(gro=gro, rounds=options.rounds, packets=options.packets)
        rates = "  ".join(f"{name} {value / 1e6:.3f} M" for name, value in found.items() if name.endswith("_s"))
        ratios = "  ".join(f"{name} {value:.2f}" for name, value in found.items() if not name.endswith("_s"))
        print(f"{'coalesced' if gro else 'single':9}  {rates}  {ratios}")


if __name__ == "__main__":
    main()
