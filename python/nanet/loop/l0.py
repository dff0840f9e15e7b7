# SPDX-License-Identifier: Apache-2.0
"""The L0 trigger processor in the loop of `nanet demo`: its configuration, what the emulator adds for it, its part of the result."""

from __future__ import annotations

from nanet.config.l0tp import L0tpConfig
from nanet.loop.keys import L0Part
from nanet.machine.facts import CorePlan, plan_cores
from nanet.result import books
from nanet.result.keys.base import Config
from nanet.result.keys.emulator import EmulatorResult
from nanet.result.keys.l0tp import L0tpResult

FRAME_US = 64.0
"""How often each detector sends: seldom enough to cost the emulator little."""
READ_LAG_US = FRAME_US
"""Only for what is out of order in a detector's own packets: the patience brings the detectors together."""
PATIENCE_MS = 1000
"""Longer than a busy machine stops a process (200 ms were seen at a load of 5)."""
WRONG_DECISIONS = (
    "packets_bad_length", "packets_bad_format", "unknown", "stale", "missing", "out_of_order", "kernel_dropped",
)  # fmt: skip
"""Counters of the emulator's that are 0 in a loop that works."""
GATHER_US = 100
"""On a shared core: one wake-up for all that arrives in this time, a few packets of each detector."""

# Primitive ID bits: docs/formats.md. Bit 8 ring found, bit 9 electron-like, bits 7 and 6 number of rings; bit 14 is always set.
THERE = "x1xx_xxxx_xxxx_xxxx"
NOT_THERE = "0000_0000_0000_0000"
MASKS: tuple[Config, ...] = (
    {"name": "ring-and-chod", "bits": {"RICH": "xx_xxxx_x1_xx_xxxxxx", "CHOD": THERE}, "downscaling": 10},
    {"name": "electron", "bits": {"RICH": "xx_xxxx_11_xx_xxxxxx", "LKr": THERE, "CEDAR": THERE}},
    {"name": "two-rings-no-muon", "bits": {"RICH": "xx_xxxx_x1_10_xxxxxx", "CHOD": THERE, "MUV3": NOT_THERE}},
    {
        "name": "pion-nothing-else",
        "bits": {
            "RICH": "xx_xxxx_01_01_xxxxxx", "CHOD": THERE, "CEDAR": THERE,
            "MUV3": NOT_THERE, "LAV": NOT_THERE, "LKr": NOT_THERE,
        },
    },
    {"name": "control", "bits": {"NewCHOD": THERE}, "downscaling": 1000},
)  # fmt: skip


def default_rate_events_per_s(*, l0: bool) -> float:
    """What the cores of this machine stand: emulator and L0 trigger processor on one core share its time."""
    return 1e6 if not l0 or plan_cores().l0tp is not None else 2.5e5


def primitives_endpoint(port: int) -> str:
    """Where the L0 trigger processor of a demo listens."""
    return f"udp://127.0.0.1:{port + 200}"


def decisions_endpoint(port: int) -> str:
    """Where its decisions go."""
    return f"udp://127.0.0.1:{port + 300}"


def emulator_part(port: int) -> Config:
    """Keys of the emulator's configuration."""
    return {
        "detectors": {"endpoint": primitives_endpoint(port), "frame_us": FRAME_US},
        "decisions": decisions_endpoint(port),
        "quiet_ms": PATIENCE_MS + 200,
    }


def l0tp_config(port: int, cores: CorePlan) -> L0tpConfig:
    """Cells of 25 ns and the longest lag they allow, as a software RICH takes its time."""
    core = cores.l0tp
    alone = {"spin": 20000, "sleep_us": 100, "gather_us": 0}
    shared = {"spin": 0, "sleep_us": 1000, "gather_us": GATHER_US}
    return L0tpConfig.model_validate({
        "listen": primitives_endpoint(port),
        "decisions": decisions_endpoint(port),
        "fine_time_bits": 0,
        "read_lag_us": READ_LAG_US,
        "patience_ms": PATIENCE_MS,
        "masks": MASKS,
        "cpu_core": core if core is not None else cores.emulator,
        "waiting": alone if core is not None else shared,
    })  # fmt: skip


def note(cores: CorePlan) -> str | None:
    """Says where it runs when it has no core of its own."""
    if cores.l0tp is not None:
        return None
    return (
        "the L0 trigger processor shares the emulator's core (there are only two) it sleeps instead of spinning, "
        f"and polls every {GATHER_US} us"
    )


def result_part(l0tp: L0tpResult, emulated: EmulatorResult) -> L0Part:
    """`l0` of the result: the processor's own, and what the emulator saw of it."""
    return {
        "config": l0tp["config"],
        "elapsed_s": l0tp["elapsed_s"],
        "core_wait_s": l0tp["core_wait_s"],
        "counters": l0tp["counters"],
        "inputs": l0tp["inputs"],
        "masks": l0tp["masks"],
        "triggers_sent": l0tp["triggers_sent"],
        "decision_packets": l0tp["decision_packets"],
        "link": l0tp["link"],
        "latency_us": l0tp["latency_us"],
        "latency_histogram": l0tp["latency_histogram"],
        "detectors": emulated["detectors"],
        "decisions": emulated["decisions"],
        "event_to_decision_us": emulated["decision_latency_us"],
        "event_to_decision_histogram": emulated["decision_latency_histogram"],
    }


def undecided(l0: L0Part, answered: int) -> dict[str, int]:
    """Answers of the engine that the processor did not decide on, by name. One that shares its cell with a later one is not among them:
    a cell of the alignment memory holds one primitive, and is decided on."""
    rich = l0["inputs"][0]["counters"]
    named = {name: int(rich[name]) for name in ("late", "out_of_range", "calibrations_no_room")}
    named["not_received"] = max(0, answered - int(rich["primitives"]))
    rest = answered - int(l0["counters"]["decided"]) - int(rich["overwritten"]) - int(rich["duplicates"]) - sum(named.values())
    return {name: count for name, count in (named | {"unexplained": max(0, rest)}).items() if count}


def failures(l0: L0Part, answered: int, host: str) -> list[str]:
    """What went wrong after the engine, one text each. host: what it took, in words; empty: nothing."""
    found = []
    because = f" ({host})" if host else ""
    if named := undecided(l0, answered):
        found.append(
            f"the L0 trigger processor fell behind: {sum(named.values()):,} of {answered:,} answers were not decided on: "
            f"{books.lost_text(named)}{because}"
        )
    others = {str(one["name"]): sum(int(one["counters"][name]) for name in ("late", "out_of_range")) for one in l0["inputs"][1:]}
    if any(others.values()):
        found.append(f"decided without primitives of other detectors that arrived late: {books.lost_text(others)}{because}")
    back = l0["decisions"] or {}
    if missing := l0["triggers_sent"] - back.get("physics", 0) - back.get("calibration", 0):
        found.append(f"{missing:,} of {l0['triggers_sent']:,} triggers did not come back")
    if wrong := {name: back[name] for name in WRONG_DECISIONS if back.get(name)}:
        found.append(f"wrong decisions: {books.lost_text(wrong)}")
    return found


def decided_text(l0: L0Part, answered: int) -> str:
    """What the processor decided, in words."""
    text = f"{l0['counters']['decided']:,} decided on"
    if shared := l0["inputs"][0]["counters"]["overwritten"]:
        cell_ns = 25 / (1 << l0["config"]["fine_time_bits"])
        text += f" ({shared:,} shared a cell of {cell_ns:g} ns with a later one)"
    if named := undecided(l0, answered):
        text += f", {sum(named.values()):,} not ({books.lost_text(named)})"
    text += f", {l0['triggers_sent']:,} triggers"
    if latency := l0["event_to_decision_us"]:
        text += f", event to decision p50 {latency['p50']:,.0f} us, p99.9 {latency['p99_9']:,.0f} us"
    return text
