# SPDX-License-Identifier: Apache-2.0
"""nanet tune plans: from a made-up machine, and on this one, where it changes nothing."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from make_json_page import differences
from nanet.cli.keys import TuneResult
from nanet.cli.tune import print_plan
from nanet.config import Cores, EngineConfig
from nanet.config.errors import load_document, validated
from nanet.tune import apply, plan
from nanet.tune.kernel import UNTHROTTLED_DANGER
from nanet.tune.keys import KnobKeys, StepKeys
from nanet.tune.system import cores_of, cores_text, mask_cores, mask_text
from tune_machine import CORE, DEFAULTS, GOVERNOR, HUGE, OTHERS, ROOT, RT_RUNTIME, Made, config, knobs, made_up, nanet, whole_plan


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return made_up(tmp_path / "root")


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
    assert (knob.state, knob.now, knob.wanted, knob.command) == (plan.CHANGE, now, wanted, command)


def test_what_only_a_person_can_do(made: Made) -> None:
    found = knobs(made)
    assert (found["locked memory"].state, found["locked memory"].now, found["locked memory"].wanted) == (
        plan.BY_HAND,
        "8 MiB",
        "64 MiB",
    )
    assert "limits.conf" in found["locked memory"].command
    made.system = replace(made.system, memlock_bytes=None)
    assert knobs(made)["locked memory"].state == plan.OK


def test_throttling_is_told_and_never_switched_off_unasked(made: Made) -> None:
    knob = knobs(made, config(), "eth0")["real-time throttling"]
    assert (knob.state, knob.now, knob.wanted, knob.changes) == (plan.BY_HAND, "950 of 1000 ms", "as it is", ())
    assert "50 ms in 1000" in knob.why
    apply.apply(whole_plan(made), made.system, made.root / "undo.json")
    assert made.text(RT_RUNTIME) == "950000"
    asked = knobs(made, config(), unthrottled_realtime=True)["real-time throttling"]
    assert [(change.now, change.wanted) for change in asked.changes] == [("950000", "-1")]
    assert "DANGER" in asked.why
    assert "whole machine" in UNTHROTTLED_DANGER
    made.put(RT_RUNTIME, "-1")
    assert "hang" in knobs(made)["real-time throttling"].why
    assert knobs(made)["real-time throttling"].state == plan.OK


def test_a_configuration_with_real_time_priority_wants_the_guard(made: Made) -> None:
    wanted = config().model_copy(update={"cpu_cores": Cores(receive=CORE, realtime_priority=50)})
    throttling = knobs(made, wanted)["real-time throttling"]
    assert (throttling.state, throttling.remarkable) == (plan.OK, True)
    assert knobs(made, wanted, unthrottled_realtime=True)["real-time throttling"].changes == ()  # the engine would not start
    made.put(RT_RUNTIME, "-1")
    throttling = knobs(made, wanted)["real-time throttling"]
    assert [(change.now, change.wanted) for change in throttling.changes] == [("-1", "950000")]
    assert "sysctl -w kernel.sched_rt_runtime_us=950000" in throttling.command
    assert knobs(made)["real-time priority"].state == plan.OK  # no one asks for it
    for limit, root, state in ((0, True, plan.OK), (50, False, plan.OK), (49, False, plan.BY_HAND), (0, False, plan.BY_HAND)):
        made.system = replace(made.system, rtprio_max=limit, privileged=root)
        assert knobs(made, wanted)["real-time priority"].state == state
    assert "LimitRTPRIO" in knobs(made, wanted)["real-time priority"].command


def test_without_a_configuration_no_core_is_the_engines(made: Made) -> None:
    found = knobs(made, None, "eth0")
    for name in ("IRQs eth0", "timer migration", "kernel work queues", "watchdog", "deep idle states"):
        assert (found[name].state, found[name].changes) == (plan.OK, ())
        assert "cpu_cores" in found[name].why
    made.put("/sys/devices/system/cpu/isolated", str(CORE))  # an isolated core is one
    assert knobs(made, None, "eth0")["IRQs eth0"].state == plan.CHANGE


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
    assert (knob.state, knob.command) == (plan.BY_HAND, "sudo systemctl stop irqbalance")
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
    knob = plan.Knob("n", "0", "1", "why", tuple(plan.Change(path, "0", "1") for path in paths))
    assert knob.command == f"echo 1 | sudo tee {word}"
    done = subprocess.run(["bash", "-c", f"echo {word}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == paths


def test_all_cores_pinned_is_for_a_person(made: Made) -> None:
    made.put("/sys/devices/system/cpu/online", str(CORE))
    found = knobs(made, config(), "eth0")
    for name in ("IRQs eth0", "kernel work queues", "watchdog"):
        assert (found[name].state, found[name].changes) == (plan.BY_HAND, ())
        assert "leave a core" in found[name].command


def test_interfaces_without_any_of_it(made: Made) -> None:
    found = knobs(made, config(), "lo")
    assert {found[f"{name} lo"].now for name in ("IRQs", "RX ring", "IRQ delay")} == {"none"}
    with pytest.raises(plan.TuneError, match=re.escape("there is no interface 'eth7' (this machine has lo, eth0)")):
        knobs(made, None, "eth7")


def test_the_interface_of_a_link_is_used(made: Made) -> None:
    loaded = config()
    link = loaded.links[0].model_copy()
    object.__setattr__(link, "__dict__", link.__dict__ | {"interface": "eth0"})
    assert plan.needs_of(loaded.model_copy(update={"links": (link,)}), made.system, ["eth0", "lo"]).interfaces == ("eth0", "lo")


def test_memory_is_that_of_every_clop(made: Made) -> None:
    document = load_document(ROOT / "examples" / "first_light.yaml")
    document.data["links"].append(
        document.data["links"][0]
        | {"name": "b", "endpoint": "udp://127.0.0.1:6201", "sources": [{"name": "b", "source_sub_id": 1}]}
    )
    document.data["processor"]["merge"] = {}
    two = validated(EngineConfig, document)
    # Buffers 16 MiB, an index of 4096 entries of 8 B for each of 64 buffers 2 MiB, and 128 B: the tenth page.
    assert plan.needs_of(config(), made.system).huge_pages == 10
    assert plan.needs_of(two, made.system).huge_pages == 20
    assert plan.needs_of(two, made.system).locked_bytes == (40 << 20) + (16 << 20)
    document.data["memory_regions"][0]["huge_pages"] = False
    small = plan.needs_of(validated(EngineConfig, document), made.system)
    assert (small.huge_pages, small.locked_bytes) == (0, (40 << 20) + (16 << 20))


def test_more_huge_pages_than_memory_is_for_a_person(made: Made) -> None:
    made.put("/proc/meminfo", "MemAvailable: 15000 kB")
    knob = knobs(made, config())["huge pages"]
    assert (knob.state, knob.changes) == (plan.BY_HAND, ())
    assert "14 MiB" in knob.command


def test_nothing_readable_plans_nothing(made: Made) -> None:
    for path in DEFAULTS:
        (made.root / path[1:]).unlink()
        (made.root / path[1:]).mkdir()  # a folder cannot be read as a file, not even by root
    found = knobs(made, config(busy_poll_us=50))
    assert [knob.name for knob in found.values() if knob.changes] == []
    assert found["rmem_max"].now == "not here"
    assert len(found) == len(knobs(made))


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


def test_the_plan_fits_on_a_hundred_columns(
    made: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # which would be heeded
    print_plan(whole_plan(made), ["eth0"])
    lines = capsys.readouterr().out.splitlines()
    assert lines.index("") == 1 + len(whole_plan(made))  # no line of the table is folded
    assert max(map(len, lines)) <= 100


@pytest.mark.xdist_group("knobs")  # one test sets one of them for a moment
def test_the_plan_of_this_machine_changes_nothing(tmp_path: Path) -> None:
    paths = [Path(path) for path in DEFAULTS if path.startswith(("/proc/sys/", "/sys/kernel/"))]
    before = {path: path.read_text() for path in paths if path.is_file()}
    done = nanet("tune", ROOT / "examples" / "first_light.yaml", "--interface", "lo", "--json", tmp_path / "t.json")
    assert {path: path.read_text() for path in before} == before
    result = json.loads((tmp_path / "t.json").read_text())
    assert (result["command"], result["mode"], result["steps"]) == ("tune", "plan", [])
    for knob in result["knobs"]:
        assert knob["command"] in done.stdout
        assert bool(knob["command"]) is (knob["state"] != "ok")


def test_what_is_written_is_what_the_types_declare(tmp_path: Path, made: Made) -> None:
    nanet("tune", "--json", tmp_path / "t.json")
    assert list(differences(json.loads((tmp_path / "t.json").read_text()), TuneResult)) == []
    for knob in whole_plan(made):
        assert list(differences(plan.as_json(knob), KnobKeys)) == []
    for step in apply.apply(whole_plan(made), made.system, tmp_path / "undo.json"):
        assert list(differences(step.plain(), StepKeys)) == []


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
