# SPDX-License-Identifier: Apache-2.0
"""Real-time priority for the thread of an engine that runs already, with the kernel's guard against such threads left as it is.

A SCHED_FIFO thread goes before every ordinary one. One that spins would take its core for ever, so the kernel gives ordinary threads of that
core a share (sched_rt_runtime_us of every sched_rt_period_us; 50 ms of a second by default), during which the real-time thread stands
still. Kernels before 6.12 stop it every period; newer ones only when an ordinary thread wants the core. That guard stays on: without it a
machine with a spinning thread on its only free core cannot be reached any more. The remedy is a core that nothing else wants.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from nanet.machine import read_text

PRIORITY = 50


def raise_threads(pid: int, core: int | None) -> tuple[int, list[str]]:
    """Puts the threads of a process that are pinned to `core` under SCHED_FIFO. How many were, and notes on what that does here."""
    if core is None:
        return 0, ["no real-time priority (the engine has no core of its own) latencies are those of an ordinary thread"]
    raised = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        thread = int(task.name)
        with contextlib.suppress(ProcessLookupError):
            if os.sched_getaffinity(thread) != {core}:
                continue
            try:
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(PRIORITY))
            except PermissionError:
                return raised, ["no real-time priority (not permitted) run as root, or with CAP_SYS_NICE, where cgroups allow it"]
            raised += 1
    if not raised:
        return 0, ["no real-time priority (no thread of the engine is pinned) latencies are those of an ordinary thread"]
    return raised, [guard_note()]


def guard_note() -> str:
    """What the kernel's guard does to a spinning real-time thread on this machine."""
    runtime_us = int(read_text("/proc/sys/kernel/sched_rt_runtime_us", "950000"))
    period_us = int(read_text("/proc/sys/kernel/sched_rt_period_us", "1000000"))
    if runtime_us < 0 or runtime_us >= period_us:
        return "real-time guard is off (sched_rt_runtime_us): ordinary threads of the engine's core do not run at all"
    stopped_ms = (period_us - runtime_us) / 1e3
    major, minor = (int(part) for part in os.uname().release.split(".")[:2])
    when = "whenever an ordinary thread wants its core" if (major, minor) >= (6, 12) else "always"
    return (
        f"real-time guard is on: the engine's thread stands still for up to {stopped_ms:.0f} ms of {period_us / 1e3:.0f} ms, {when}"
    )
