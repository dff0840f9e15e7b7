# SPDX-License-Identifier: Apache-2.0
"""Looks at everything of a machine that limits rate and latency, and names the command that fixes it."""

from __future__ import annotations

from collections.abc import Sequence

from nanet.config.base import online_cores
from nanet.config.engine import EngineConfig
from nanet.config.plugins import load_kinds
from nanet.doctor.gpu import Machine, gpu_checks
from nanet.doctor.multicast import group_checks
from nanet.machine.check import FAIL, OK, REINSTALL, WARN, Check, Lister, Reader, why_not_loaded
from nanet.machine.facts import cpu_model, memory_gib
from nanet.machine.gpu_driver import Driver, ask_driver
from nanet.result import files
from nanet.result.keys.checks import ChecksResult
from nanet.tune import plan
from nanet.tune.knob import AS_IT_IS, Knob

__all__ = ["FAIL", "OK", "WARN", "Check", "checks", "link_check", "run"]


def checks(
    system: plan.System | None = None,
    driver: Driver | None = None,
    config: EngineConfig | None = None,
    interfaces: Sequence[str] = (),
) -> list[Check]:
    """All findings for a configuration, or for nanet without one. By default of this machine, and NVIDIA's driver is asked."""
    system = system or plan.this_system()
    read = system.read
    needs = plan.needs_of(config, system, interfaces)
    knobs = plan.plan(needs, system)
    return [
        _cores(), _isolated(read), _smt(read), _clock(read), *map(_knob, knobs), _interfaces(needs.interfaces),
        *group_checks(config, read), *_back_ends(),
        *_gpus(read, system.names, driver or ask_driver()),
    ]  # fmt: skip


def run(config: EngineConfig | None = None, interfaces: Sequence[str] = ()) -> ChecksResult:
    """The result as `nanet doctor --json` writes it."""
    found = checks(config=config, interfaces=interfaces)
    worst = next((state for state in (FAIL, WARN) if any(check.state == state for check in found)), OK)
    return {**files.base("doctor"), "state": worst, "checks": [check.plain() for check in found]}


def _knob(knob: Knob) -> Check:
    """A knob of `nanet tune` as a finding."""
    if knob.state == plan.OK:
        return Check(knob.name, OK, f"{knob.now} ({knob.why})" if knob.remarkable else knob.now)
    wanted = "" if knob.wanted == AS_IT_IS else f", not {knob.wanted}"
    return Check(knob.name, WARN, f"{knob.now}{wanted}: {knob.why}", knob.command)


def _interfaces(named: Sequence[str]) -> Check:
    text = ", ".join(named) or "none given: IRQs, RX ring and IRQ delay are checked with nanet doctor --interface IF"
    return Check("interfaces", OK, text)


def _cores() -> Check:
    count = len(online_cores())
    text = f"{count} ({cpu_model()}), {memory_gib():g} GiB"
    if count < 2:
        return Check("cores", FAIL, text, "use a machine with two cores or more: engine and sender need one each")
    if count < 4:
        return Check("cores", WARN, text, "with four cores, the system and the live display would not touch the measured ones")
    return Check("cores", OK, text)


def _isolated(read: Reader) -> Check:
    isolated = read("/sys/devices/system/cpu/isolated")
    if isolated:
        return Check("isolated cores", OK, isolated)
    last = max(online_cores())
    command = f"add isolcpus={last} nohz_full={last} rcu_nocbs={last} to GRUB_CMDLINE_LINUX, then: sudo update-grub && sudo reboot"
    return Check("isolated cores", WARN, "none: other processes may take the engine's core for milliseconds", command)


def _smt(read: Reader) -> Check:
    if read("/sys/devices/system/cpu/smt/active") != "1":
        return Check("hyper-threading", OK, "off, or not present")
    pairs = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    return Check(
        "hyper-threading", WARN, f"on: core 0 shares its units ({pairs})", "echo off | sudo tee /sys/devices/system/cpu/smt/control"
    )


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
        return [Check("native module", FAIL, f"cannot be used: {why_not_loaded(error)}", REINSTALL)]
    info = _core.build_info()
    there = [name for name, built in info["back_ends"].items() if built]
    absent = [name for name, built in info["back_ends"].items() if not built]
    return [
        Check("native module", OK, f"{info['version']}, {info['compiler']}, ring fit with {info['simd']}"),
        Check("back-ends", OK, ", ".join(there) + (f" (not: {', '.join(absent)})" if absent else "")),
        *(
            link_check(name, info["back_ends"][name], _core.back_end_problem(name))
            for name, kind in load_kinds(()).links.items()
            if kind["has_back_end"]
        ),
    ]


def link_check(name: str, is_there: bool, problem: str) -> Check:
    """Whether links of a kind that is loaded on demand can be opened. problem: "why; suggestion", empty if they can.

    A build without such a link is complete all the same; a module that is there and does not load is worth a warning.
    """
    if not problem:
        return Check(f"{name}:// links", OK, f"can be opened (libnanet_link_{name}.so loads)")
    if not is_there:
        return Check(f"{name}:// links", OK, f"cannot be opened: {problem}")
    why, _, suggestion = problem.rpartition("; ")
    return Check(f"{name}:// links", WARN, f"cannot be opened: {why}", suggestion)


def _gpus(read: Reader, names: Lister, driver: Driver) -> list[Check]:
    try:
        from nanet import _core
    except ImportError:
        return gpu_checks(Machine(read, names, driver, None, {}))
    info = _core.build_info()
    return gpu_checks(Machine(read, names, driver, info["gpu_code"], info["back_ends"]))
