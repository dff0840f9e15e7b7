# SPDX-License-Identifier: Apache-2.0
"""nanet tune: plans from a made-up machine, apply and undo on it, and what the real machine and a network namespace allow."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from nanet import tune, tune_apply
from nanet.config import EngineConfig, online_cores
from nanet.config_errors import load_document, validated
from nanet.tune_kernel import UNTHROTTLED_DANGER
from nanet.tune_system import cores_of, cores_text, mask_cores, mask_text

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
    system: tune.System

    def text(self, path: str) -> str:
        return (self.root / path[1:]).read_text()

    def put(self, path: str, text: str) -> None:
        (self.root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path[1:]).write_text(text)

    def all(self) -> dict[str, str]:
        found = {f"/{path.relative_to(self.root)}": path.read_text() for path in self.root.rglob("*") if path.is_file()}
        return found | self.nic.values


@pytest.fixture
def made(tmp_path: Path) -> Made:
    root, nic = tmp_path / "root", Nic()
    system = replace(tune.this_system(root), ethtool=nic, memlock_bytes=8 << 20, privileged=True)
    machine = Made(root, nic, system)
    for path, text in DEFAULTS.items():
        machine.put(path, text)
    return machine


def config(**of_link: Any) -> EngineConfig:
    document = load_document(ROOT / "examples" / "first_light.yaml")
    document.data["cpu_cores"] = {"receive": CORE}
    document.data["links"][0].update(of_link)
    return validated(EngineConfig, document)


def knobs(made: Made, loaded: EngineConfig | None = None, *interfaces: str, **options: bool) -> dict[str, tune.Knob]:
    return {knob.name: knob for knob in tune.plan(tune.needs_of(loaded, made.system, interfaces, **options), made.system)}


def whole_plan(made: Made) -> tuple[tune.Knob, ...]:
    return tune.plan(tune.needs_of(config(busy_poll_us=50), made.system, ["eth0"]), made.system)


@pytest.mark.parametrize(
    ("name", "now", "wanted", "command"),
    [
        ("CPU governor", "powersave", "performance", f"echo performance | sudo tee {GOVERNOR}"),
        ("deep idle states", "133 us", "10 us", f"echo 1 | sudo tee {GOVERNOR[:-24]}cpuidle/state3/disable"),
        ("huge pages", "3 free", "10 free", f"echo 11 | sudo tee {HUGE}/nr_hugepages"),
        ("rmem_max", "208 KiB", "64 MiB", "sudo sysctl -w net.core.rmem_max=67108864"),
        ("wmem_max", "208 KiB", "4 MiB", "sudo sysctl -w net.core.wmem_max=4194304"),
        ("netdev_max_backlog", "1000", "30000", "sudo sysctl -w net.core.netdev_max_backlog=30000"),
        ("busy_read", "0 us", "50 us", "sudo sysctl -w net.core.busy_read=50"),
        ("busy_poll", "0 us", "50 us", "sudo sysctl -w net.core.busy_poll=50"),
        ("NUMA balancing", "1", "0", "sudo sysctl -w kernel.numa_balancing=0"),
        ("timer migration", "1", "0", "sudo sysctl -w kernel.timer_migration=0"),
        ("VM statistics", "1 s", "10 s", "sudo sysctl -w vm.stat_interval=10"),
        ("compaction", "20", "0", "sudo sysctl -w vm.compaction_proactiveness=0"),
        ("locked-page moves", "1", "0", "sudo sysctl -w vm.compact_unevictable_allowed=0"),
        ("transparent huge pages", "always", "madvise", "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
        (
            "kernel work queues", f"cores {cores_text(OTHERS | {CORE})}", f"cores {cores_text(OTHERS)}",
            f"echo {mask_text(OTHERS)} | sudo tee /sys/devices/virtual/workqueue/cpumask",
        ),
        (
            "watchdog", f"cores {cores_text(OTHERS | {CORE})}", f"cores {cores_text(OTHERS)}",
            f"sudo sysctl -w kernel.watchdog_cpumask={cores_text(OTHERS)}",
        ),
        (
            "IRQs eth0", f"cores {cores_text(OTHERS | {CORE})}", f"cores {cores_text(OTHERS)}",
            f"echo {cores_text(OTHERS)} | sudo tee /proc/irq/{{41..42}}/smp_affinity_list",
        ),
        ("RX ring eth0", "512", "4096", "sudo ethtool -G eth0 rx 4096"),
        ("IRQ delay eth0", "adaptive", "0 us", "sudo ethtool -C eth0 adaptive-rx off rx-usecs 0"),
    ],
)  # fmt: skip
def test_a_machine_out_of_the_box(made: Made, name: str, now: str, wanted: str, command: str) -> None:
    knob = knobs(made, config(busy_poll_us=50), "eth0")[name]
    assert (knob.state, knob.now, knob.wanted, knob.command) == (tune.CHANGE, now, wanted, command)


def test_what_only_a_person_can_do(made: Made) -> None:
    found = knobs(made)
    assert (found["locked memory"].state, found["locked memory"].now, found["locked memory"].wanted) == (
        tune.BY_HAND,
        "8 MiB",
        "64 MiB",
    )
    assert "limits.conf" in found["locked memory"].command
    made.system = replace(made.system, memlock_bytes=None)
    assert knobs(made)["locked memory"].state == tune.OK


def test_throttling_is_told_and_never_switched_off_unasked(made: Made) -> None:
    knob = knobs(made, config(), "eth0")["real-time throttling"]
    assert (knob.state, knob.now, knob.wanted, knob.changes) == (tune.BY_HAND, "950 of 1000 ms", "as it is", ())
    assert "50 ms in 1000" in knob.why
    tune_apply.apply(whole_plan(made), made.system, made.root / "undo.json")
    assert made.text(RT_RUNTIME) == "950000"
    asked = knobs(made, config(), unthrottled_realtime=True)["real-time throttling"]
    assert [(change.now, change.wanted) for change in asked.changes] == [("950000", "-1")]
    assert "DANGER" in asked.why
    assert "whole machine" in UNTHROTTLED_DANGER
    made.put(RT_RUNTIME, "-1")
    assert "hang" in knobs(made)["real-time throttling"].why
    assert knobs(made)["real-time throttling"].state == tune.OK


def test_without_a_configuration_no_core_is_the_engines(made: Made) -> None:
    found = knobs(made, None, "eth0")
    for name in ("IRQs eth0", "timer migration", "kernel work queues", "watchdog", "deep idle states"):
        assert (found[name].state, found[name].changes) == (tune.OK, ())
        assert "cpu_cores" in found[name].why
    made.put("/sys/devices/system/cpu/isolated", str(CORE))  # an isolated core is one
    assert knobs(made, None, "eth0")["IRQs eth0"].state == tune.CHANGE


def test_interrupts_go_to_the_interfaces_own_node(made: Made) -> None:
    node = f"{CORE},{CORE + 2}"
    made.put("/sys/class/net/eth0/device/numa_node", "1")
    made.put("/sys/devices/system/node/node1/cpulist", node)
    changes = {change.target: change.wanted for change in knobs(made, config(), "eth0")["IRQs eth0"].changes}
    assert changes == {
        "/proc/irq/41/smp_affinity_list": cores_text(OTHERS),  # was there, but for the engine's core
        "/proc/irq/42/smp_affinity_list": str(CORE + 2),
    }


def test_virtio_has_its_interrupts_at_the_parent_and_a_bridge_is_none(made: Made) -> None:
    devices = made.root / "sys/devices/pci0/virtio2"
    devices.mkdir(parents=True)
    made.put("/sys/devices/pci0/msi_irqs/42", "msix")
    made.put("/proc/net/dev", "lo: 0\n eth2: 0\n")
    (made.root / "sys/class/net/eth2").mkdir()
    (made.root / "sys/class/net/eth2/device").symlink_to(devices)
    assert [change.target for change in knobs(made, config(), "eth2")["IRQs eth2"].changes] == ["/proc/irq/42/smp_affinity_list"]
    (devices / "irq").write_text("0")  # now it is a device of PCI without interrupts, below a bridge that has some
    assert knobs(made, config(), "eth2")["IRQs eth2"].now == "none"


def test_irqbalance_is_told_where_interrupts_are_placed(made: Made) -> None:
    made.put("/proc/77/comm", "irqbalance")
    knob = knobs(made, config(), "eth0")["irqbalance"]
    assert (knob.state, knob.command) == (tune.BY_HAND, "sudo systemctl stop irqbalance")
    assert "irqbalance" not in knobs(made, config())
    assert "irqbalance" not in knobs(made, None, "eth0")


@pytest.mark.parametrize(
    ("paths", "word"),
    [
        (["/a/cpu0/b", "/a/cpu1/b", "/a/cpu2/b", "/a/cpu7/b"], "/a/cpu{{0..2},7}/b"),
        (["/a/cpu1/b/s1/d", "/a/cpu1/b/s2/d"], "/a/cpu1/b/s{1..2}/d"),
        (["/a/cpu1/b/s1/d", "/a/cpu2/b/s2/d"], "/a/{cpu1/b/s1,cpu2/b/s2}/d"),
        (["/irq/8/l", "/irq/11/l"], "/irq/{8,11}/l"),
        (["/irq/8/l"], "/irq/8/l"),
    ],
)
def test_many_files_are_one_word_for_bash(paths: list[str], word: str) -> None:
    knob = tune.Knob("n", "0", "1", "why", tuple(tune.Change(path, "0", "1") for path in paths))
    assert knob.command == f"echo 1 | sudo tee {word}"
    done = subprocess.run(["bash", "-c", f"echo {word}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == paths


def test_all_cores_pinned_is_for_a_person(made: Made) -> None:
    made.put("/sys/devices/system/cpu/online", str(CORE))
    found = knobs(made, config(), "eth0")
    for name in ("IRQs eth0", "kernel work queues", "watchdog"):
        assert (found[name].state, found[name].changes) == (tune.BY_HAND, ())
        assert "leave a core" in found[name].command


def test_interfaces_without_any_of_it(made: Made) -> None:
    found = knobs(made, config(), "lo")
    assert {found[f"{name} lo"].now for name in ("IRQs", "RX ring", "IRQ delay")} == {"none"}
    with pytest.raises(tune.TuneError, match=re.escape("there is no interface 'eth7' (this machine has lo, eth0)")):
        knobs(made, None, "eth7")


def test_the_interface_of_a_link_is_used(made: Made) -> None:
    loaded = config()
    link = loaded.links[0].model_copy()
    object.__setattr__(link, "__dict__", link.__dict__ | {"interface": "eth0"})
    assert tune.needs_of(loaded.model_copy(update={"links": (link,)}), made.system, ["eth0", "lo"]).interfaces == ("eth0", "lo")


def test_memory_is_that_of_every_clop(made: Made) -> None:
    document = load_document(ROOT / "examples" / "first_light.yaml")
    document.data["links"].append(
        document.data["links"][0]
        | {"name": "b", "endpoint": "udp://127.0.0.1:6201", "sources": [{"name": "b", "source_sub_id": 1}]}
    )
    document.data["processor"]["merge"] = {}
    two = validated(EngineConfig, document)
    # Buffers 16 MiB, an index of 4096 entries of 8 B for each of 64 buffers 2 MiB, and 128 B: the tenth page.
    assert tune.needs_of(config(), made.system).huge_pages == 10
    assert tune.needs_of(two, made.system).huge_pages == 20
    assert tune.needs_of(two, made.system).locked_bytes == (40 << 20) + (16 << 20)
    document.data["memory_regions"][0]["huge_pages"] = False
    small = tune.needs_of(validated(EngineConfig, document), made.system)
    assert (small.huge_pages, small.locked_bytes) == (0, (40 << 20) + (16 << 20))


def test_more_huge_pages_than_memory_is_for_a_person(made: Made) -> None:
    made.put("/proc/meminfo", "MemAvailable: 15000 kB")
    knob = knobs(made, config())["huge pages"]
    assert (knob.state, knob.changes) == (tune.BY_HAND, ())
    assert "14 MiB" in knob.command


def test_nothing_readable_plans_nothing(made: Made) -> None:
    for path in DEFAULTS:
        (made.root / path[1:]).unlink()
        (made.root / path[1:]).mkdir()  # a folder cannot be read as a file, not even by root
    found = knobs(made, config(busy_poll_us=50))
    assert [knob.name for knob in found.values() if knob.changes] == []
    assert found["rmem_max"].now == "not here"
    assert len(found) == len(knobs(made))


def test_apply_then_nothing_is_left_to_do_and_undo_restores_all(made: Made, tmp_path: Path) -> None:
    before, file = made.all(), tmp_path / "undo.json"
    steps = tune_apply.apply(whole_plan(made), made.system, file)
    assert [step.problem for step in steps] == [""] * len(steps)
    assert made.text("/sys/kernel/mm/transparent_hugepage/enabled") == "madvise"
    assert made.nic.values == {"rx": "4096", "rx-usecs": "0", "adaptive-rx": "off"}
    sets = [call[2] for call in made.nic.calls if call[0] == "-C"]
    assert sets == ["adaptive-rx", "rx-usecs"]  # which would have ruled it
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    made.put(f"{HUGE}/free_hugepages", "10")  # as the kernel would
    assert tune_apply.apply(whole_plan(made), made.system, file) == []
    assert {step.target for step in tune_apply.undo(made.system, file)} == {step.target for step in steps}
    made.put(f"{HUGE}/free_hugepages", "3")
    after = made.all()
    assert after.pop("/sys/kernel/mm/transparent_hugepage/enabled") == "always"  # the kernel would list the others too
    before.pop("/sys/kernel/mm/transparent_hugepage/enabled")
    assert after == before
    assert not file.exists()
    assert tune_apply.undo(made.system, file) == []


def test_a_second_apply_keeps_the_oldest_values(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    tune_apply.apply(whole_plan(made), made.system, file)
    made.put("/proc/sys/net/core/rmem_max", "1048576")  # somebody set it meanwhile
    steps = tune_apply.apply(tune.chosen(whole_plan(made), ["rmem_max"]), made.system, file)
    assert [(step.before, step.now) for step in steps] == [("1048576", "67108864")]
    tune_apply.undo(made.system, file)
    assert made.text("/proc/sys/net/core/rmem_max") == "212992"


class Crash(BaseException):
    """What ends a program in the middle."""


def test_a_crash_in_the_middle_can_be_undone(made: Made, tmp_path: Path) -> None:
    file, before = tmp_path / "undo.json", made.all()
    plan = whole_plan(made)
    targets = [change.target for knob in plan for change in knob.changes if not change.target.startswith("ethtool")]
    for crash_at in (targets[0], targets[4], targets[-1]):
        for wrote in ("not yet", "already"):

            def write(path: str, text: str, crash_at: str = crash_at, wrote: str = wrote) -> None:
                if path != crash_at or wrote == "already":
                    made.system.write(path, text)
                if path == crash_at:
                    raise Crash

            with pytest.raises(Crash):
                tune_apply.apply(plan, replace(made.system, write=write), file)
            assert crash_at in [entry["target"] for entry in json.loads(file.read_text())["changes"]]
            assert all(not step.problem for step in tune_apply.undo(made.system, file))
            assert not file.exists()
            made.put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
            assert made.all() == before


def test_a_crash_while_undoing_can_be_undone(made: Made, tmp_path: Path) -> None:
    file, backlog = tmp_path / "undo.json", "/proc/sys/net/core/netdev_max_backlog"
    tune_apply.apply(whole_plan(made), made.system, file)

    def write(path: str, text: str) -> None:
        if path == backlog:
            raise Crash
        made.system.write(path, text)

    with pytest.raises(Crash):
        tune_apply.undo(replace(made.system, write=write), file)
    assert (made.text("/proc/sys/vm/stat_interval"), made.text(backlog)) == ("1", "30000")
    tune_apply.undo(made.system, file)
    assert (made.text(backlog), made.text("/proc/sys/net/core/rmem_max"), file.exists()) == ("1000", "212992", False)


def test_what_the_machine_refuses_is_said_and_the_rest_is_done(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    refused = {"/proc/sys/net/core/rmem_max": 13, "/proc/irq/41/smp_affinity_list": 5}

    def write(path: str, text: str) -> None:
        if path in refused:
            raise OSError(refused[path], os.strerror(refused[path]))
        made.system.write(path, "7" if path == f"{HUGE}/nr_hugepages" else text)

    steps = tune_apply.apply(whole_plan(made), replace(made.system, write=write), file)
    problems = {step.target: step.problem for step in steps if step.problem}
    assert set(problems) == {*refused, f"{HUGE}/nr_hugepages"}
    assert problems["/proc/sys/net/core/rmem_max"] == "Permission denied; in a container or network namespace only the host may"
    assert problems["/proc/irq/41/smp_affinity_list"] == "Input/output error; the driver places this interrupt itself"
    assert problems[f"{HUGE}/nr_hugepages"].startswith("it reads 7 afterwards; memory is in pieces")
    kept = [entry["target"] for entry in json.loads(file.read_text())["changes"]]
    assert not set(refused) & set(kept)  # nothing to undo there
    tune_apply.undo(made.system, file)
    assert made.text(f"{HUGE}/nr_hugepages") == "4"


def test_what_cannot_be_undone_stays_in_the_file(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    tune_apply.apply(tune.chosen(whole_plan(made), ["compaction", "rmem_max"]), made.system, file)

    def write(path: str, text: str) -> None:
        raise OSError(30, os.strerror(30))

    steps = tune_apply.undo(replace(made.system, write=write), file)
    assert [step.problem.partition(";")[0] for step in steps] == ["Read-only file system"] * 2
    assert len(json.loads(file.read_text())["changes"]) == 2
    assert [step.problem for step in tune_apply.undo(made.system, file)] == ["", ""]


def test_only_root_may(made: Made, tmp_path: Path) -> None:
    anybody, file, before = replace(made.system, privileged=False), tmp_path / "undo.json", made.all()
    with pytest.raises(tune.TuneError, match=r"^cannot change this machine \(only root may\) run it with sudo"):
        tune_apply.apply(whole_plan(made), anybody, file)
    assert (made.all(), file.exists()) == (before, False)
    assert tune_apply.apply([], anybody, file) == []  # nothing to do is no offence
    tune_apply.apply(whole_plan(made), made.system, file)
    with pytest.raises(tune.TuneError, match="only root may"):
        tune_apply.undo(anybody, file)


def test_nothing_is_changed_without_an_undo_file(made: Made, tmp_path: Path) -> None:
    before = made.all()
    with pytest.raises(tune.TuneError, match=r"^cannot write .* \(no such file or directory\)"):
        tune_apply.apply(whole_plan(made), made.system, tmp_path / "nowhere" / "undo.json")
    assert made.all() == before


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ('{"boot_id": "boot-1", "changes": []}', 0o666, "others could have written it"),
        ("{", 0o600, "is no undo file"),
        ('{"changes": []}', 0o600, "is no undo file"),
        (
            '{"boot_id": "boot-1", "changes": [{"target": "/etc/passwd", "from": "a", "to": "b"}]}',
            0o600,
            "nothing that nanet tune writes",
        ),
        ('{"boot_id": "boot-1", "changes": [{"target": "/sys/../etc/passwd", "from": "a", "to": "b"}]}', 0o600, "nothing that"),
        ('{"boot_id": "boot-1", "changes": [{"target": "ethtool eth0 flash", "from": "a", "to": "b"}]}', 0o600, "nothing that"),
        ('{"boot_id": "boot-0", "changes": [{"target": "/sys/a", "from": "a", "to": "b"}]}', 0o600, "restarted since"),
    ],
)
def test_an_undo_file_that_is_not_to_be_trusted(made: Made, tmp_path: Path, text: str, mode: int, words: str) -> None:
    file = tmp_path / "undo.json"
    file.write_text(text)
    file.chmod(mode)
    before = made.all()
    with pytest.raises(tune.TuneError, match=words):
        tune_apply.undo(made.system, file)
    assert made.all() == before


def test_an_undo_file_that_is_a_link_is_refused(made: Made, tmp_path: Path) -> None:
    (tmp_path / "undo.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(tune.TuneError, match="cannot read"):
        tune_apply.undo(made.system, tmp_path / "undo.json")


def test_after_a_restart_a_new_undo_file_is_begun(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    tune_apply.apply(whole_plan(made), made.system, file)
    made.put("/proc/sys/kernel/random/boot_id", "boot-2")
    made.put("/proc/sys/vm/stat_interval", "2")
    tune_apply.apply(tune.chosen(whole_plan(made), ["VM statistics"]), made.system, file)
    entries = json.loads(file.read_text())["changes"]
    assert [(entry["target"], entry["from"]) for entry in entries] == [("/proc/sys/vm/stat_interval", "2")]


@pytest.mark.parametrize(
    ("cores", "text", "mask"),
    [
        ({0}, "0", "1"),
        ({0, 1, 2, 5}, "0-2,5", "27"),
        ({1, 3}, "1,3", "a"),
        ({0, 32, 33}, "0,32-33", "3,00000001"),
        (set(), "", "0"),
    ],
)
def test_sets_of_cores_as_the_kernel_writes_them(cores: set[int], text: str, mask: str) -> None:
    assert (cores_text(frozenset(cores)), mask_text(frozenset(cores))) == (text, mask)
    assert (cores_of(text), mask_cores(mask)) == (cores, cores)
    assert mask_cores(f"0000{mask}") == cores


def nanet(*arguments: str | Path, expect: int = 0, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "nanet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == expect, done.stdout + done.stderr
    return done


def test_the_plan_of_this_machine_changes_nothing_and_fits(tmp_path: Path) -> None:
    paths = [Path(path) for path in DEFAULTS if path.startswith(("/proc/sys/", "/sys/kernel/"))]
    before = {path: path.read_text() for path in paths if path.is_file()}
    done = nanet("tune", ROOT / "examples" / "first_light.yaml", "--interface", "lo", "--json", tmp_path / "t.json")
    assert {path: path.read_text() for path in before} == before
    result = json.loads((tmp_path / "t.json").read_text())
    assert (result["command"], result["mode"], result["steps"]) == ("tune", "plan", [])
    table = done.stdout.partition("\n\n")[0].splitlines()
    assert len(table) == 1 + len(result["knobs"])  # no line is folded
    assert max(map(len, done.stdout.splitlines())) <= 100
    for knob in result["knobs"]:
        assert knob["command"] in done.stdout
        assert bool(knob["command"]) is (knob["state"] != "ok")


def test_every_documented_key_is_there(tmp_path: Path, made: Made) -> None:
    text = (ROOT / "docs" / "json.md").read_text().partition("## `nanet tune`\n")[2].partition("\n## ")[0]
    keys = set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))
    nanet("tune", "--json", tmp_path / "t.json")
    result = json.loads((tmp_path / "t.json").read_text())
    knob = tune.as_json(whole_plan(made)[0])
    step = tune_apply.apply(whole_plan(made), made.system, tmp_path / "undo.json")[0]
    there = set(result) - {"nanet", "command", "date", "machine", "knobs", "steps"}
    there |= {f"knobs[].{key}" for key in knob if key != "changes"} | {f"knobs[].changes[].{key}" for key in knob["changes"][0]}
    assert keys == there | {f"steps[].{key}" for key in step.__dict__}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "nothing"), "nanet: there is no knob 'nothing'"),
        (("--interface", "none0"), "nanet: there is no interface 'none0'"),
        (("nothing.yaml",), "nanet: cannot read nothing.yaml"),
        (("--undo", "--apply"), "--undo takes"),
    ],
)
def test_wrong_usage_is_2(arguments: tuple[str, ...], words: str) -> None:
    done = nanet("tune", *arguments, expect=2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_danger_is_explained_before_anything(tmp_path: Path) -> None:
    done = nanet("tune", "--allow-unthrottled-realtime", "--only", "real-time throttling")
    assert done.stdout.startswith("DANGER: ")
    assert "sched_rt_runtime_us" not in done.stdout.partition("\n\n")[0]


def test_one_real_knob_is_set_and_undone(tmp_path: Path) -> None:
    """vm.stat_interval, which does no harm for a second; where /proc cannot be written, that must be what is said."""
    path, file = Path("/proc/sys/vm/stat_interval"), tmp_path / "undo.json"
    before = path.read_text().strip()
    try:
        path.write_text("3")
        may = True
    except OSError:
        may = False
    try:
        options = ("tune", "--only", "VM statistics", "--undo-file", file)
        if may:
            done = nanet(*options, "--apply", "--json", tmp_path / "t.json")
            assert done.stdout.startswith("/proc/sys/vm/stat_interval: 3 -> 10\n")
            assert f"nanet tune --undo --undo-file {file}" in done.stdout
            assert path.read_text() == "10\n"
            assert json.loads((tmp_path / "t.json").read_text())["steps"][0]["now"] == "10"
            assert nanet(*options, "--apply").stdout.startswith("nothing to change\n")
            assert nanet("tune", "--undo", "--undo-file", file).stdout == "/proc/sys/vm/stat_interval: 10 -> 3\n"
            assert path.read_text() == "3\n"
            assert nanet("tune", "--undo", "--undo-file", file).stdout == "nothing to undo\n"
        else:
            warnings.warn("NOT RUN: set and undo of a real knob (/proc/sys cannot be written here); its refusal was", stacklevel=1)
            root = os.geteuid() == 0
            done = nanet(*options, "--apply", expect=1 if root else 2)
            assert ("NOT DONE /proc/sys/vm/stat_interval" if root else "only root may") in done.stdout + done.stderr
        assert not file.exists()
    finally:
        if may:
            path.write_text(before)


def test_socket_limits_belong_to_the_host_not_to_a_network_namespace(tmp_path: Path) -> None:
    """In a namespace of its own rmem_max is not there (older kernels) or cannot be written (6.18): tune says which, and the host's stays."""
    path, file = Path("/proc/sys/net/core/rmem_max"), tmp_path / "undo.json"
    inside = ("unshare", "--net")
    tried = subprocess.run([*inside, "cat", path], capture_output=True, text=True, check=False)
    made_one = subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0
    if not made_one:
        warnings.warn("NOT RUN: nanet tune in a network namespace (unshare may not make one here)", stacklevel=1)
        return
    before = path.read_text() if path.exists() else ""
    options = ("tune", "--only", "rmem_max", "--apply", "--undo-file", file)
    there = tried.returncode == 0
    if there and int(tried.stdout) >= 64 << 20:
        assert nanet(*options, before=inside).stdout.startswith("nothing to change")
    elif there:
        done = nanet(*options, expect=1, before=inside)
        assert (
            f"NOT DONE {path}: still {tried.stdout.strip()} (Permission denied; in a container or network namespace" in done.stdout
        )
    else:
        assert "nothing to change" in nanet(*options, before=inside).stdout
    assert not file.exists()
    assert (path.read_text() if path.exists() else "") == before
