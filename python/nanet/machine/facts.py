# SPDX-License-Identifier: Apache-2.0
"""Facts of the machine that a figure was taken on, and the choice of cores."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict

from nanet.config.base import online_cores


def read_text(path: str, default: str = "") -> str:
    """A small file of /proc or /sys; `default` where there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


class Facts(TypedDict):
    """`machine` of a result."""

    cpu: Annotated[str, "model of the CPU"]
    cores: Annotated[int, "that are online"]
    memory_gib: Annotated[float, "main memory"]
    kernel: Annotated[str, "its release"]
    system: Annotated[str, "name of the distribution"]
    governor: Annotated[str, "of the first core's frequency"]
    python: Annotated[str, "its version"]


def facts() -> Facts:
    """What a reader needs to judge a figure. Names no host."""
    return {
        "cpu": cpu_model(),
        "cores": len(online_cores()),
        "memory_gib": memory_gib(),
        "kernel": platform.release(),
        "system": _system_name(),
        "governor": read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "not known"),
        "python": platform.python_version(),
    }


def cpu_model() -> str:
    """The model name of the first CPU."""
    for line in read_text("/proc/cpuinfo").splitlines():
        if line.startswith(("model name", "Model")):
            return " ".join(line.split(":", 1)[1].split())
    return platform.machine()


def memory_gib() -> float:
    """Main memory in GiB."""
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


@dataclass(frozen=True)
class CorePlan:
    """Who runs where. null means not pinned."""

    emulator: int | None
    engine: int | None
    others: frozenset[int]
    note: str | None = None

    @property
    def l0tp(self) -> int | None:
        """A core for an L0 trigger processor; None: there is none of its own, it shares the emulator's."""
        own = self.others - {self.emulator}
        return min(own) if self.emulator is not None and own else None


def plan_cores() -> CorePlan:
    """A core for the emulator, one for the engine, and the rest for everything else."""
    usable = sorted(set(os.sched_getaffinity(0)) & online_cores())
    if len(usable) < 2:
        note = "emulator and engine share one core (there is only one) latencies are those of the scheduler"
        return CorePlan(None, None, frozenset(usable), note)
    emulator, engine = usable[0], usable[1]
    others = frozenset(usable[2:]) or frozenset({emulator})
    return CorePlan(emulator, engine, others)


def keep_to(cores: frozenset[int] | set[int]) -> None:
    """Limits the calling thread, and threads that it makes from now on, to these cores."""
    if cores:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)


def _system_name() -> str:
    for line in read_text("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.split("=", 1)[1].strip('"')
    return platform.system()
