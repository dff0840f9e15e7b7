# SPDX-License-Identifier: Apache-2.0
"""The L0 trigger processor in the loop of `nanet demo`: its configuration, what the emulator adds for it, its part of the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nanet.l0tp.config import L0tpConfig
from nanet.machine import CorePlan, plan_cores

FRAME_US = 64.0
"""How often each detector sends: seldom enough to cost the emulator little."""
READ_LAG_US = 204.0
"""Two frames (boards and detectors may be so far apart when the machine has stopped the emulator), and 75 us for the engine."""
GATHER_US = 100
"""On a shared core: one wake-up for what comes in so long, a few packets of each detector."""

# Primitive ID bits: docs/formats.md. Bit 8 ring found, bit 9 electron-like, bits 7 and 6 number of rings; bit 14 is always set.
THERE = "x1xx_xxxx_xxxx_xxxx"
NOT_THERE = "0000_0000_0000_0000"
MASKS: tuple[dict[str, Any], ...] = (
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


def emulator_part(port: int) -> dict[str, Any]:
    """Keys of the emulator's configuration."""
    return {
        "detectors": {"endpoint": primitives_endpoint(port), "frame_us": FRAME_US},
        "decisions": decisions_endpoint(port),
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
        f"and looks every {GATHER_US} us"
    )


def result_part(l0tp: Mapping[str, Any], emulated: Mapping[str, Any]) -> dict[str, Any]:
    """`l0` of the result: the processor's own, and what the emulator saw of it."""
    keys = ("config", "elapsed_s", "core_wait_s", "counters", "inputs", "masks", "triggers_sent", "decision_packets", "link",
            "latency_us", "latency_histogram")  # fmt: skip
    return {key: l0tp[key] for key in keys} | {
        "detectors": emulated["detectors"],
        "decisions": emulated["decisions"],
        "event_to_decision_us": emulated["decision_latency_us"],
        "event_to_decision_histogram": emulated["decision_latency_histogram"],
    }


def sentence(l0: Mapping[str, Any]) -> str:
    """What the L0 trigger processor did, as one sentence."""
    counters, latency = l0["counters"], l0["event_to_decision_us"]
    text = f"L0 trigger processor: {counters['decided']:,} of {l0['inputs'][0]['counters']['primitives']:,} RICH primitives decided"
    text += f", {l0['triggers_sent']:,} triggers"
    if latency:
        text += f", event to decision p50 {latency['p50']:,.0f} us, p99.9 {latency['p99_9']:,.0f} us"
    return text + "."
