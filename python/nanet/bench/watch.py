# SPDX-License-Identifier: Apache-2.0
"""A watcher: a process that does nothing but look at the clock on a core of its own, and writes down when it was stopped.

What stops it is the machine (hypervisor, interrupts, other processes), not the data path, so a late answer during such a gap can be told
from one of our own making. It needs a core that neither engine nor emulator has.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Self

from nanet.bench.link_keys import Pauses
from nanet.machine.facts import CorePlan

GAP_US = 50.0  # as the emulator's own stalls


def spare_core(cores: CorePlan) -> int | None:
    """A core for the watcher; None: there is none to spare."""
    own = cores.others - {cores.emulator, cores.engine}
    return max(own) if cores.engine is not None and own else None


class Watcher:
    """`with Watcher(core) as watcher: ...; watcher.stop()` gives count, total_us and longest_us of the gaps; core None: always None."""

    def __init__(self, core: int | None) -> None:
        self._core = core
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        if self._core is not None:
            command = [sys.executable, "-m", "nanet.bench.watch", str(self._core)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            assert self._process.stdout is not None
            self._process.stdout.readline()  # it watches
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> Pauses | None:
        """What it saw."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=10)
        found: Pauses = json.loads(text)
        return found


def watch(core: int) -> Pauses:
    """Looks at the clock until SIGTERM comes."""
    os.sched_setaffinity(0, {core})
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    gc.disable()
    print("watching", flush=True)
    return gaps(time.monotonic_ns, ended)


def gaps(clock_ns: Callable[[], int], ended: list[int]) -> Pauses:
    """Count, sum and longest of the steps of the clock of GAP_US or more, until `ended` is not empty."""
    count, total_ns, longest_ns, least_ns = 0, 0, 0, int(GAP_US * 1e3)
    then = clock_ns()
    while not ended:
        now = clock_ns()
        step, then = now - then, now
        if step >= least_ns:
            count, total_ns, longest_ns = count + 1, total_ns + step, max(longest_ns, step)
    return {"count": count, "total_us": total_ns / 1e3, "longest_us": longest_ns / 1e3}


if __name__ == "__main__":
    print(json.dumps(watch(int(sys.argv[1]))))
