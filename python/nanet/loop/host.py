# SPDX-License-Identifier: Apache-2.0
"""What the host did during a demo, how that relates to a broken budget, and what `nanet tune` would fix."""

from __future__ import annotations

from collections.abc import Sequence

from nanet.loop.keys import Host
from nanet.machine.facts import CorePlan, read_text
from nanet.result.keys.emulator import EmulatorRun
from nanet.result.keys.engine import EngineEnd
from nanet.result.keys.l0tp import L0tpEnd
from nanet.tune import plan
from nanet.tune.keys import KnobKeys

CAUGHT_UP_AFTER = 3.0
"""An event that comes while the engine catches up is late too: a stop explains late events for up to this many times its length."""
USER_HZ = 100  # of /proc/stat, on every Linux


def steal_s(cores: CorePlan, stat: str | None = None) -> float:
    """CPU time that the hypervisor gave to others since boot, on the demo's two cores (all cores, where it has none) [s]."""
    text = read_text("/proc/stat") if stat is None else stat
    wanted = {f"cpu{core}" for core in (cores.engine, cores.emulator) if core is not None} or {"cpu"}
    rows = [line.split() for line in text.splitlines()]
    return sum(int(row[8]) for row in rows if row and row[0] in wanted and len(row) > 8) / USER_HZ


def host_part(emulated: EmulatorRun, engine: EngineEnd, l0tp: L0tpEnd | None, stolen_s: float) -> Host:
    """`host` of the result. Times in seconds; a wait counts from the start of who waited to its end, a stop while it sent."""
    stalls = emulated["stalls"]
    return {
        "elapsed_s": float(emulated["elapsed_s"]),
        "engine_elapsed_s": float(engine["elapsed_s"]),
        "engine_core_wait_s": float(engine["core_wait_s"]),
        "l0tp_core_wait_s": float(l0tp["core_wait_s"]) if l0tp is not None else None,
        "emulator_stopped_s": min(float(stalls["total_us"]) / 1e6, float(emulated["elapsed_s"])),  # the drain has stops, too
        "longest_stop_us": float(stalls["longest_us"]),
        "steal_s": stolen_s,
    }


def explains(host: Host, late_share: float) -> bool:
    """Whether what the host took is enough for this share of events to be late."""
    taken_s = host["engine_core_wait_s"] + host["emulator_stopped_s"] + host["steal_s"]
    if taken_s < 1e-3 or not host["elapsed_s"]:
        return False
    share = host["engine_core_wait_s"] / host["engine_elapsed_s"]
    share += (host["emulator_stopped_s"] + host["steal_s"]) / host["elapsed_s"]
    return bool(CAUGHT_UP_AFTER * share >= late_share)


def what_it_took(host: Host) -> str:
    """The larger of what the host took first; empty for less than a millisecond of all."""
    parts = [
        (host["engine_core_wait_s"], f"something else had the engine's core for {_of(host['engine_core_wait_s'], host['engine_elapsed_s'])}"),
        (host["emulator_stopped_s"], f"the emulator's own thread was stopped for {_of(host['emulator_stopped_s'], host['elapsed_s'])}, "
         f"{host['longest_stop_us'] / 1e3:,.1f} ms at most"),
        (host["steal_s"], f"the hypervisor took {host['steal_s'] * 1e3:,.0f} ms of CPU time (steal)"),
    ]  # fmt: skip
    return "; ".join(text for taken_s, text in sorted(parts, reverse=True) if taken_s >= 1e-3)


def host_line(host: Host) -> str:
    """What the host did, as one line."""
    return f"host: {what_it_took(host) or 'took less than a millisecond'}."


def to_mend(system: plan.System | None = None) -> list[KnobKeys]:
    """What `nanet tune` finds on this machine and does not like: its knobs, as its JSON writes them."""
    system = system or plan.this_system()
    return [plan.as_json(knob) for knob in plan.plan(plan.needs_of(None, system), system) if knob.state != plan.OK]


def tune_line(knobs: Sequence[KnobKeys]) -> str:
    """What `nanet tune` would fix, as one line."""
    by_itself = [f"{knob['name']} ({knob['now']}, not {knob['wanted']})" for knob in knobs if knob["state"] == plan.CHANGE]
    by_hand = [str(knob["name"]) for knob in knobs if knob["state"] == plan.BY_HAND]
    if not knobs:
        return "tune: nanet tune finds nothing to fix on this machine."
    parts = [f"nanet tune --apply would fix {', '.join(by_itself)}"] if by_itself else []
    parts += [f"{'' if parts else 'nanet tune says what to do '}by hand: {', '.join(by_hand)}"] if by_hand else []
    return f"tune: {'; '.join(parts)}."


def _of(taken_s: float, elapsed_s: float) -> str:
    return f"{taken_s * 1e3:,.0f} ms of {elapsed_s:,.1f} s"
