# SPDX-License-Identifier: Apache-2.0
"""A made-up machine for the tests of nanet tune: files below a folder, and a NIC that answers like ethtool."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nanet.config import EngineConfig
from nanet.config.base import online_cores
from nanet.config.errors import load_document, validated
from nanet.tune import plan
from nanet.tune.system import cores_text, mask_text

ROOT = Path(__file__).parents[2]
CORE = min(online_cores())  # the engine's: a configuration is checked against this machine
OTHERS = frozenset(range(CORE + 1, CORE + 4))
HUGE = "/sys/kernel/mm/hugepages/hugepages-2048kB"
GOVERNOR = f"/sys/devices/system/cpu/cpu{CORE}/cpufreq/scaling_governor"
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"

# A machine out of the box: four cores, one NIC on PCI with three interrupts, one of them elsewhere already.
DEFAULTS = {
    "/proc/sys/kernel/random/boot_id": "boot-1",
    "/sys/devices/system/cpu/online": cores_text(OTHERS | {CORE}),
    "/sys/devices/system/cpu/isolated": "",
    GOVERNOR: "powersave",
    GOVERNOR.replace("scaling_governor", "scaling_available_governors"): "performance powersave",
    f"/sys/devices/system/cpu/cpu{CORE}/cpuidle/state0/latency": "0",
    f"/sys/devices/system/cpu/cpu{CORE}/cpuidle/state0/disable": "0",
    f"/sys/devices/system/cpu/cpu{CORE}/cpuidle/state3/latency": "133",
    f"/sys/devices/system/cpu/cpu{CORE}/cpuidle/state3/disable": "0",
    f"{HUGE}/nr_hugepages": "4",
    f"{HUGE}/free_hugepages": "3",
    "/proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB",
    "/proc/sys/net/core/rmem_max": "212992",
    "/proc/sys/net/core/wmem_max": "212992",
    "/proc/sys/net/core/netdev_max_backlog": "1000",
    "/proc/sys/net/core/busy_read": "0",
    "/proc/sys/net/core/busy_poll": "0",
    "/proc/sys/kernel/numa_balancing": "1",
    "/proc/sys/kernel/timer_migration": "1",
    "/proc/sys/vm/stat_interval": "1",
    "/proc/sys/vm/compaction_proactiveness": "20",
    "/proc/sys/vm/compact_unevictable_allowed": "1",
    RT_RUNTIME: "950000",
    "/proc/sys/kernel/sched_rt_period_us": "1000000",
    "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "/sys/devices/virtual/workqueue/cpumask": mask_text(OTHERS | {CORE}),
    "/proc/sys/kernel/watchdog_cpumask": cores_text(OTHERS | {CORE}),
    "/proc/net/dev": "Inter-| Receive\n face |bytes\n    lo: 0\n  eth0: 0\n",
    "/proc/interrupts": (
        "      CPU0 CPU1\n 41:  7  0 PCI-MSI 524288-edge  eth0-TxRx-0\n 42:  0  7  PCI-MSI 524289-edge  mlx5_comp1@pci:0000:01:00.0\n"
        " 43:  0  0  PCI-MSI 524290-edge  eth0\n 44:  9  9  PCI-MSI 1-edge  eth01-rx\nNMI: 0 0 Non-maskable interrupts\n"
    ),
    "/sys/class/net/eth0/device/irq": "0",
    "/sys/class/net/eth0/device/msi_irqs/41": "msix",
    "/sys/class/net/eth0/device/msi_irqs/42": "msix",
    "/sys/class/net/eth0/device/msi_irqs/99": "msix",
    "/sys/class/net/eth0/device/numa_node": "-1",
    "/proc/irq/41/smp_affinity_list": cores_text(OTHERS | {CORE}),
    "/proc/irq/42/smp_affinity_list": str(CORE),
    "/proc/irq/43/smp_affinity_list": str(max(OTHERS)),
    "/proc/irq/44/smp_affinity_list": str(CORE),
}
RING_TEXT = """Ring parameters for eth0:
Pre-set maximums:
RX:\t\t8192
RX Mini:\tn/a
TX:\t\t8192
Current hardware settings:
RX:\t\t{rx}
RX Mini:\tn/a
TX:\t\t512
"""
COALESCE_TEXT = (
    "Coalesce parameters for eth0:\nAdaptive RX: {adaptive}  TX: off\nstats-block-usecs: n/a\n\nrx-usecs: {usecs}\nrx-frames: n/a\n"
)


@dataclass
class Nic:
    """Stands in for ethtool on eth0."""

    values: dict[str, str] = field(default_factory=lambda: {"rx": "512", "rx-usecs": "50", "adaptive-rx": "on"})
    calls: list[list[str]] = field(default_factory=list)

    def __call__(self, arguments: Sequence[str]) -> str:
        self.calls.append(list(arguments))
        if arguments[1] != "eth0":
            raise OSError("Operation not supported")
        if arguments[0] == "-g":
            return RING_TEXT.format(rx=self.values["rx"])
        if arguments[0] == "-c":
            return COALESCE_TEXT.format(adaptive=self.values["adaptive-rx"], usecs=self.values["rx-usecs"])
        self.values[arguments[2]] = arguments[3]
        return ""


@dataclass
class Made:
    """A made-up machine below a folder."""

    root: Path
    nic: Nic
    system: plan.System

    def text(self, path: str) -> str:
        return (self.root / path[1:]).read_text()

    def put(self, path: str, text: str) -> None:
        (self.root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path[1:]).write_text(text)

    def all(self) -> dict[str, str]:
        found = {f"/{path.relative_to(self.root)}": path.read_text() for path in self.root.rglob("*") if path.is_file()}
        return found | self.nic.values


def made_up(root: Path) -> Made:
    """The machine of DEFAULTS below `root`, with eth0."""
    nic = Nic()
    system = replace(plan.this_system(root), ethtool=nic, memlock_bytes=8 << 20, privileged=True)
    machine = Made(root, nic, system)
    for path, text in DEFAULTS.items():
        machine.put(path, text)
    return machine


def config(**of_link: Any) -> EngineConfig:
    document = load_document(ROOT / "examples" / "first_light.yaml")
    document.data["cpu_cores"] = {"receive": CORE}
    document.data["links"][0].update(of_link)
    return validated(EngineConfig, document)


def knobs(made: Made, loaded: EngineConfig | None = None, *interfaces: str, **options: bool) -> dict[str, plan.Knob]:
    return {knob.name: knob for knob in plan.plan(plan.needs_of(loaded, made.system, interfaces, **options), made.system)}


def whole_plan(made: Made) -> tuple[plan.Knob, ...]:
    return plan.plan(plan.needs_of(config(busy_poll_us=50), made.system, ["eth0"]), made.system)


def nanet(*arguments: str | Path, expect: int = 0, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "nanet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return done
