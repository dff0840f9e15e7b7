# SPDX-License-Identifier: Apache-2.0
"""Makes the faults of a soak, one at a time, and undoes them: `begin`, later `end`. Linux only.

What a fault must have done (a disk that was full, a clock that differs) is checked, so that one that did nothing is not called survived.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from nanet.machine.netns import VethPair
from nanet.result.keys.engine import EngineEnd
from nanet.run.process import EngineError
from nanet.soak.lives import Lives
from nanet.soak.watch import PAGE_BYTES

DISK_BYTES = 1 << 20
DISK_FULL_BYTES = DISK_BYTES - (64 << 10)  # the recorder gives back what is no whole packet
DISK_OPTIONS = f"size={DISK_BYTES},mode=0755"
HEADROOM_BYTES = 4 << 20  # of address space: what the soak lets a process grow by
SLOW_STOPPED_S, SLOW_RUNS_S = 0.03, 0.01
CLOCK_STEP_MAX_S = 10_000_000  # four months
UNDISTURBED = ("memory", "disk", "clock")
"""While these last the loop must keep its rate: the time to recover counts from their beginning."""


class FaultMaker:
    """`with FaultMaker(...) as maker: maker.begin(kind); ...; problems = maker.end(kind)`."""

    def __init__(self, lives: Lives, pair: VethPair | None, seed: int, packets_sent: Callable[[], int]) -> None:
        """packets_sent: by the boards until now."""
        self._lives, self._pair, self._packets_sent = lives, pair, packets_sent
        self._draw = random.Random(seed)
        self._slow: _DutyCycle | None = None
        self._limit: tuple[int, tuple[int, int]] | None = None
        self._disk: _SmallDisk | None = None
        self.clock_step_s = 0

    def __enter__(self) -> FaultMaker:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves nothing stopped, mounted or down."""
        for kind in ("stop", "slow", "memory"):
            self._undo(kind)
        if self._disk is not None:
            self._disk.close()

    def begin(self, kind: str) -> list[str]:
        """Makes it; problems, if there are any."""
        try:
            return getattr(self, f"_begin_{kind}")() or []
        except EngineError as error:
            return [f"the engine did not start again: {error}"]

    def has_happened(self, kind: str) -> bool:
        """Whether it has done already what it is for."""
        return kind != "disk" or self._disk is None or self._disk.is_full()

    def end(self, kind: str) -> list[str]:
        """Undoes it; what was wrong about it."""
        try:
            return self._undo(kind)
        except EngineError as error:
            return [f"the engine did not start again: {error}"]

    def _undo(self, kind: str) -> list[str]:
        undo = getattr(self, f"_end_{kind}", None)
        return (undo() if undo else None) or []

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._lives.process.pid, number)

    def _restart(self, prefix: tuple[str, ...] = (), record: str | None = None) -> EngineEnd:
        """In order: the life that ends says all that it knows."""
        result = self._lives.stop(self._packets_sent())
        self._lives.begin(self._packets_sent(), prefix, record)
        return result

    def _begin_stop(self) -> None:
        self._signal(signal.SIGSTOP)

    def _end_stop(self) -> None:
        self._signal(signal.SIGCONT)

    def _begin_kill(self) -> None:
        self._lives.kill(self._packets_sent())

    def _end_kill(self) -> None:
        self._lives.begin(self._packets_sent())

    def _begin_link(self) -> list[str]:
        assert self._pair is not None
        self._pair.engine.set_up("down", self._pair.boards)
        return []

    def _end_link(self) -> None:
        assert self._pair is not None
        self._pair.engine.set_up("up", self._pair.boards)

    def _begin_slow(self) -> None:
        self._slow = _DutyCycle(self._signal)

    def _end_slow(self) -> None:
        if self._slow is not None:
            self._slow.end()
            self._slow = None

    def _begin_memory(self) -> None:
        pid = self._lives.process.pid
        size_bytes = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * PAGE_BYTES
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (size_bytes + HEADROOM_BYTES, before[1]))
        self._limit = (pid, before)

    def _end_memory(self) -> list[str]:
        if self._limit is None:
            return []
        (pid, before), self._limit = self._limit, None
        try:
            resource.prlimit(pid, resource.RLIMIT_AS, before)
        except ProcessLookupError:
            return ["the engine ended when it got no more memory"]
        return []

    def _begin_clock(self) -> list[str]:
        step_s = self._draw.randrange(3600, CLOCK_STEP_MAX_S)
        self._restart(("unshare", "--time", "--monotonic", str(step_s), "--boottime", str(step_s)))
        self.clock_step_s = step_s
        there, here = (os.readlink(f"/proc/{pid}/ns/time") for pid in (self._lives.process.pid, os.getpid()))
        return ["the engine's clock did not step (unshare left it in this time namespace)"] if there == here else []

    def _begin_disk(self) -> None:
        self._disk = _SmallDisk()
        self._restart(record=str(self._disk.path))
        self._disk.limit(self._lives.process.pid)

    def _end_disk(self) -> list[str]:
        disk, self._disk = self._disk, None
        if disk is None:
            return []
        try:
            stats = self._restart()["links"][0]["stats"]
            problems = [] if int(stats["unrecorded"]) else ["the disk was not full before the fault ended"]
            whole = whole_packets(disk.path)
            if whole != int(stats["recorded"]):
                problems.append(f"the recording has {whole} whole packets, the books say {stats['recorded']}")
            return problems
        finally:
            disk.close()


class _DutyCycle:
    """Stops the engine for three quarters of the time."""

    def __init__(self, send: Callable[[signal.Signals], None]) -> None:
        self._send = send
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nanet-slow", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._send(signal.SIGSTOP)
            self._ended.wait(SLOW_STOPPED_S)
            self._send(signal.SIGCONT)
            self._ended.wait(SLOW_RUNS_S)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


class _SmallDisk:
    """A disk of DISK_BYTES: a tmpfs, or, where none can be mounted, a limit on the size of a file."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="nanet-disk-")
        command = ["mount", "-t", "tmpfs", "-o", DISK_OPTIONS, "nanet", self._folder.name]
        self.mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
        self.path = Path(self._folder.name) / "soak.pcap"

    def limit(self, pid: int) -> None:
        """Where there is no small disk: no file of this process grows beyond its size."""
        if not self.mounted:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (DISK_BYTES, DISK_BYTES))

    def is_full(self) -> bool:
        return self.path.exists() and self.path.stat().st_size > DISK_FULL_BYTES

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", self._folder.name], capture_output=True, check=False)
        self._folder.cleanup()


def whole_packets(path: Path) -> int:
    """Packets of a pcap file up to its end; -1 if that is within one."""
    data = path.read_bytes()
    at, count = 24, 0
    while at + 16 <= len(data):
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
        count += 1
    return count if at == len(data) else -1
