# SPDX-License-Identifier: Apache-2.0
"""Looks at everything of a machine that limits rate and latency, and says the command that mends it."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

from nanet import results
from nanet.config import online_cores
from nanet.doctor_check import FAIL, OK, WARN, Check, Lister, Reader
from nanet.doctor_gpu import Machine, gpu_checks
from nanet.gpu_driver import Driver, ask_driver
from nanet.machine import cpu_model, memory_gib, read_text

__all__ = ["FAIL", "OK", "WARN", "Check", "checks", "run"]

SOCKET_BUFFER_WANTED = 64 << 20
LOCKED_WANTED = 64 << 20


def list_folder(path: str) -> list[str]:
    """The names in a folder; none where there is no such folder."""
    try:
        return [entry.name for entry in Path(path).iterdir()]
    except OSError:
        return []


def checks(read: Reader = read_text, names: Lister = list_folder, driver: Driver | None = None) -> list[Check]:
    """All findings. `read` gives the text of a file of /proc or /sys, `names` the names in a folder; without `driver`, NVIDIA's is asked."""
    return [
        _cores(), _governor(read), _isolated(read), _smt(read), _huge_pages(read), _memlock(),
        _socket_limit(read, "rmem_max"), _socket_limit(read, "wmem_max"), _backlog(read), _busy_poll(read), _rt_throttling(read),
        _transparent_huge_pages(read), _clock(read), *_back_ends(),
        *_gpus(read, names, driver or ask_driver()),
    ]  # fmt: skip


def run() -> dict[str, Any]:
    """The result as `nanet doctor --json` writes it."""
    found = checks()
    worst = next((state for state in (FAIL, WARN) if any(check.state == state for check in found)), OK)
    return results.base("doctor") | {"state": worst, "checks": [check.__dict__ for check in found]}


def _cores() -> Check:
    count = len(online_cores())
    text = f"{count} ({cpu_model()}), {memory_gib():g} GiB"
    if count < 2:
        return Check("cores", FAIL, text, "use a machine with two cores or more: engine and sender need one each")
    if count < 4:
        return Check("cores", WARN, text, "with four cores, the system and the live display would not touch the measured ones")
    return Check("cores", OK, text)


def _governor(read: Reader) -> Check:
    governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if not governor:
        return Check("CPU governor", OK, "none (a virtual machine, or a fixed frequency)")
    if governor == "performance":
        return Check("CPU governor", OK, governor)
    command = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    return Check("CPU governor", WARN, f"{governor}: the clock falls while a core waits", command)


def _isolated(read: Reader) -> Check:
    isolated = read("/sys/devices/system/cpu/isolated")
    if isolated:
        return Check("isolated cores", OK, isolated)
    last = max(online_cores())
    command = f"add isolcpus={last} nohz_full={last} rcu_nocbs={last} to GRUB_CMDLINE_LINUX, then: sudo update-grub && sudo reboot"
    return Check("isolated cores", WARN, "none: other processes may take the engine's core for milliseconds", command)


def _smt(read: Reader) -> Check:
    if read("/sys/devices/system/cpu/smt/active") != "1":
        return Check("hyper-threading", OK, "off, or not there")
    pairs = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    return Check(
        "hyper-threading", WARN, f"on: core 0 shares its units ({pairs})", "echo off | sudo tee /sys/devices/system/cpu/smt/control"
    )


def _huge_pages(read: Reader) -> Check:
    values = {}
    for line in read("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        values[name] = int(rest.split()[0]) if rest.split() else 0
    free, size_kib = values.get("HugePages_Free", 0), values.get("Hugepagesize", 2048)
    text = f"{free} free of {size_kib // 1024} MiB"
    if free * size_kib >= 32 * 1024:
        return Check("huge pages", OK, text)
    return Check("huge pages", WARN, f"{text}: ordinary pages are used, with more TLB misses", "sudo sysctl -w vm.nr_hugepages=64")


def _memlock() -> Check:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY or soft >= LOCKED_WANTED:
        return Check("locked memory", OK, "unlimited" if soft == resource.RLIM_INFINITY else f"{soft >> 20} MiB")
    command = "ulimit -l unlimited   (for good: '* - memlock unlimited' in /etc/security/limits.d/nanet.conf)"
    return Check("locked memory", WARN, f"{soft >> 10} KiB: buffers may be paged out", command)


def _socket_limit(read: Reader, name: str) -> Check:
    text = read(f"/proc/sys/net/core/{name}")
    if not text:
        return Check(name, OK, "not visible here; the engine says what it was granted")
    if int(text) >= SOCKET_BUFFER_WANTED:
        return Check(name, OK, f"{int(text) >> 20} MiB")
    return Check(
        name,
        WARN,
        f"{int(text) >> 10} KiB: the kernel drops packets at short pauses",
        f"sudo sysctl -w net.core.{name}={SOCKET_BUFFER_WANTED}",
    )


def _backlog(read: Reader) -> Check:
    text = read("/proc/sys/net/core/netdev_max_backlog")
    if not text:
        return Check("netdev_max_backlog", OK, "not visible here")
    if int(text) >= 10000:
        return Check("netdev_max_backlog", OK, text)
    return Check(
        "netdev_max_backlog",
        WARN,
        f"{text} packets: bursts over loopback may be dropped",
        "sudo sysctl -w net.core.netdev_max_backlog=30000",
    )


def _busy_poll(read: Reader) -> Check:
    text = read("/proc/sys/net/core/busy_poll")
    if text in ("", "0"):
        return Check("busy poll", OK, "off: only real NICs gain by it, and links have busy_poll_us for that")
    return Check("busy poll", OK, f"{text} us")


def _rt_throttling(read: Reader) -> Check:
    text = read("/proc/sys/kernel/sched_rt_runtime_us")
    if text in ("", "-1"):
        return Check("real-time throttling", OK, "off")
    period = int(read("/proc/sys/kernel/sched_rt_period_us") or 1000000)
    stopped_ms = (period - int(text)) / 1000
    return Check(
        "real-time throttling", WARN, f"on: a spinning SCHED_FIFO thread is stopped {stopped_ms:g} ms in every {period / 1000:g}",
        "sudo sysctl -w kernel.sched_rt_runtime_us=-1   (only if the engine runs under SCHED_FIFO, on an isolated core)",
    )  # fmt: skip


def _transparent_huge_pages(read: Reader) -> Check:
    text = read("/sys/kernel/mm/transparent_hugepage/enabled")
    chosen = text.partition("[")[2].partition("]")[0]
    if chosen == "always":
        return Check(
            "transparent huge pages",
            WARN,
            "always: compaction may stop a thread for milliseconds",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    return Check("transparent huge pages", OK, chosen or "not there")


def _clock(read: Reader) -> Check:
    source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source in ("tsc", "arch_sys_counter", "kvm-clock", ""):
        return Check("clock source", OK, source or "not visible here")
    return Check(
        "clock source",
        WARN,
        f"{source}: reading the clock is slow",
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
    )


def _back_ends() -> list[Check]:
    try:
        from nanet import _core
    except ImportError as error:
        return [Check("native module", FAIL, f"it does not load: {error}", "pip install --force-reinstall nanet, or: make build")]
    info = _core.build_info()
    there = [name for name, built in info["back_ends"].items() if built]
    absent = [name for name, built in info["back_ends"].items() if not built]
    return [
        Check("native module", OK, f"{info['version']}, {info['compiler']}, ring fit with {info['simd']}"),
        Check("back-ends built in", OK, ", ".join(there) + (f" (not: {', '.join(absent)})" if absent else "")),
    ]


def _gpus(read: Reader, names: Lister, driver: Driver) -> list[Check]:
    try:
        from nanet import _core
    except ImportError:
        return gpu_checks(Machine(read, names, driver, None, {}))
    info = _core.build_info()
    return gpu_checks(Machine(read, names, driver, info["gpu_code"], info["back_ends"]))
