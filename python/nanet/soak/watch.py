# SPDX-License-Identifier: Apache-2.0
"""What a soak looks at while it runs: memory and descriptors of two processes, and whether the machine stood still when something was lost.

Linux' /proc only. Nothing here grows with the length of the run.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nanet.machine.processes import udp_port, udp_rows
from nanet.soak.keys import Flatness

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
GROWTH_MAX_BYTES = 4 << 20
"""How much a process may grow after the warm-up, however long the run: pages touched for the first time, never something an event leaves."""
DESCRIPTORS_MORE_MAX = 0
STALL_NS = 20_000_000
"""A core that was taken for this long may let a socket's buffer overflow, however large."""
STALL_MIN_NS = 1_000_000
DATAGRAM_BYTES = 2304
"""What a datagram of 1168 B takes of a socket's buffer when it comes alone."""
CAP_NET_ADMIN = 12
WINDOW_S = 3.0
"""A loss belongs to a stall at most this long before it: the engine reports once a second what it has counted."""

SERIES = ("engine_rss_bytes", "emulator_rss_bytes", "engine_descriptors", "emulator_descriptors")


def rss_bytes(pid: int) -> int:
    """Resident memory of a process, shared pages included; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def descriptor_count(pid: int) -> int:
    """Open file descriptors of a process; 0 when it has ended. That of looking at one's own is not counted."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return 0
    return len(names) - (pid == os.getpid())


def core_wait_ns(pid: int) -> int:
    """How long the engine's data threads were ready to run while something else had their cores; 0 where the kernel does not say."""
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            if (task / "comm").read_text().startswith("nanet-") and (task / "comm").read_text().strip() != "nanet-metrics":
                total += int((task / "schedstat").read_text().split()[1])
        except (OSError, IndexError):
            continue
    return total


def queued_bytes(pid: int, ports: Collection[int]) -> int:
    """What waits in the UDP sockets at these ports, in the network namespace of a process; 0 when it has ended."""
    return sum(int(row[4].partition(":")[2], 16) for row in udp_rows(pid) if udp_port(row) in ports)


def steal_ns(cores: Sequence[int]) -> int:
    """Time that a hypervisor took from these cores, of all cores where none is named; known to 10 ms."""
    names = {f"cpu{core}" for core in cores} or {"cpu"}
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[8]) for line in lines if line.split(" ", 1)[0] in names) * TICK_NS


def receive_buffer_bytes(asked_bytes: int) -> int:
    """What the kernel grants a socket that asks for this much: twice that, of an ordinary user's no more than twice rmem_max."""
    try:
        status = Path("/proc/self/status").read_text()
        limit_bytes = int(Path("/proc/sys/net/core/rmem_max").read_text())
    except OSError:
        return 2 * asked_bytes
    capable = any(line.startswith("CapEff:") and int(line.split()[1], 16) >> CAP_NET_ADMIN & 1 for line in status.splitlines())
    return 2 * (asked_bytes if capable else min(asked_bytes, limit_bytes))


def overflow_stall_ns(buffer_bytes: int, packets_per_s: float) -> int:
    """How long a stall must be to let a socket's buffer run over, if it was half full; at most STALL_NS."""
    full_ns = 1e9 * buffer_bytes / DATAGRAM_BYTES / packets_per_s
    return int(min(STALL_NS, max(STALL_MIN_NS, full_ns / 2)))


class Samples:
    """Rows of SERIES, at most `capacity` of them, evenly over a run of the length given; the memory is taken at the start."""

    def __init__(self, duration_s: float, capacity: int = 2000) -> None:
        self._every_s = duration_s / capacity
        self._times_s = np.zeros(2 * capacity)
        self._rows = np.zeros((2 * capacity, len(SERIES)), dtype=np.int64)
        self._times_s[:], self._rows[:] = -1.0, -1  # touched
        self._count = 0

    def add(self, time_s: float, row: Sequence[int]) -> None:
        """Keeps a row, if it is time for one."""
        if self._count == len(self._times_s) or (self._count and time_s < self._times_s[self._count - 1] + self._every_s):
            return
        self._times_s[self._count], self._rows[self._count] = time_s, row
        self._count += 1

    @property
    def times_s(self) -> NDArray[np.float64]:
        """Since the start, [samples]."""
        return self._times_s[: self._count]

    def of(self, name: str) -> NDArray[np.int64]:
        """One of SERIES, [samples]."""
        return self._rows[: self._count, SERIES.index(name)]


def flatness(times_s: NDArray[np.float64], values: NDArray[np.int64], warm_up_s: float, more_max: int) -> Flatness:
    """Medians of the first and of the last quarter after the warm-up, and whether the last is at most more_max above the first.

    Medians, so that a short peak does not count as growth, and growth cannot hide behind one. With fewer than eight samples nothing is flat.
    """
    after = values[times_s >= warm_up_s]
    if len(after) < 8:
        return {"start": None, "end": None, "peak": None, "growth": None, "growth_max": more_max, "flat": False}
    quarter = len(after) // 4
    start, end = int(np.median(after[:quarter])), int(np.median(after[-quarter:]))
    return {
        "start": start, "end": end, "peak": int(after.max()), "growth": end - start, "growth_max": more_max, "flat": end - start <= more_max,
    }  # fmt: skip


@dataclass
class Stalls:
    """Tells what was lost while the machine stood still from what was lost of our own doing. Times in s, stalls in ns.

    Whoever had been stopped: the engine's threads (the scheduler gave their cores to others), its cores (a hypervisor took them), or the
    emulator, which afterwards sends at once what was due meanwhile.
    """

    window_s: float = WINDOW_S
    enough_ns: int = STALL_NS
    lost: dict[str, int] = field(default_factory=dict)  # as of the last look
    in_stalls: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    in_faults: dict[str, int] = field(default_factory=dict)  # that the soak made itself
    stalled_ns: dict[str, int] = field(default_factory=dict)  # in all, by whom
    _first: dict[str, int] | None = None
    _looks: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)

    def look(self, now_s: float, stalled_ns: Mapping[str, int], lost: Mapping[str, int], *, in_fault: bool = False) -> None:
        """Totals so far, both since any moment before the first look. in_fault: a fault of the soak's own explains a loss."""
        if self._first is None:
            self._first = dict(stalled_ns)
        while len(self._looks) > 1 and self._looks[1][0] < now_s - self.window_s:
            self._looks.popleft()  # the oldest that stays is the last one before the window
        before = self._looks[0][1] if self._looks else self._first
        self._looks.append((now_s, dict(stalled_ns)))
        stalled = any(total - before.get(who, 0) >= self.enough_ns for who, total in stalled_ns.items())
        self.stalled_ns = {who: total - self._first.get(who, 0) for who, total in stalled_ns.items()}
        for name, total in lost.items():
            more = total - self.lost.get(name, 0)
            if more > 0:
                side = self.in_faults if in_fault else self.in_stalls if stalled else self.outside
                side[name] = side.get(name, 0) + more
            self.lost[name] = max(total, self.lost.get(name, 0))

    def end(self, now_s: float, lost: Mapping[str, int], *, in_fault: bool = False) -> None:
        """What was counted after the last look belongs to the stalls just before it."""
        if self._looks:
            self.look(now_s, self._looks[-1][1], lost, in_fault=in_fault)
