# SPDX-License-Identifier: Apache-2.0
"""Doctor: findings from made-up /proc, /sys and drivers, and a run on this machine."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace

import pytest
from nanet.cli import text
from nanet.config.engine import EngineConfig
from nanet.doctor import machine
from nanet.doctor.gpu import Machine, gpu_checks, runs_on
from nanet.doctor.multicast import group_checks
from nanet.machine import gpu_driver
from nanet.machine.check import Check
from nanet.machine.gpu_driver import Driver, Gpu, PcieLink
from nanet.tune import plan
from nanet.tune.plan import this_system

GOOD = {
    "/sys/devices/system/cpu/online": "0-1",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance",
    "/sys/devices/system/cpu/isolated": "1",
    "/sys/devices/system/cpu/smt/active": "0",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "64",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "64",
    "/proc/sys/net/core/rmem_max": "67108864",
    "/proc/sys/net/core/wmem_max": "67108864",
    "/proc/sys/net/core/netdev_max_backlog": "30000",
    "/proc/sys/net/core/busy_read": "0",
    "/proc/sys/net/core/busy_poll": "0",
    "/proc/sys/kernel/numa_balancing": "0",
    "/proc/sys/kernel/timer_migration": "0",
    "/proc/sys/kernel/watchdog_cpumask": "0",
    "/proc/sys/kernel/sched_rt_runtime_us": "-1",
    "/proc/sys/vm/stat_interval": "10",
    "/proc/sys/vm/compaction_proactiveness": "0",
    "/proc/sys/vm/compact_unevictable_allowed": "0",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
    "/sys/devices/virtual/workqueue/cpumask": "1",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "/proc/net/dev": " lo: 0\n eth0: 0",
    "/proc/interrupts": " 41: 0 0 PCI-MSI 1-edge eth0-rx-0",
    "/proc/irq/41/smp_affinity_list": "0",
}
MACHINE_ONLY = {"cores"}


WAYS = ("packets to pinned memory", "packets by dma-buf", "packets by peer memory", "packets by DPDK", "CPU writes by gdrcopy")
ALL = dict.fromkeys(gpu_driver.ATTRIBUTES, 1) | {
    "kernel_time_limit": 0,
    "compute_mode": 0,
    "capability_major": 9,
    "capability_minor": 0,
    "rdma_writes_ordering": 100,
}
H200 = Gpu(0, "NVIDIA H200", 139.8, "0000:01:00.0", ALL, PcieLink(5, 16, 16))
CODE = {"cuda_version": 13000, "architectures": "80-real 90 100-real"}
PCI = "/sys/bus/pci/devices"
RELEASE = platform.release()
# A data centre's machine: GPU, ConnectX, DPDK, and both modules loaded.
FULL_FILES = {
    f"{PCI}/0000:02:00.0/vendor": "0x15b3",
    f"{PCI}/0000:02:00.0/class": "0x020000",
    "/sys/class/infiniband/mlx5_0/device/vendor": "0x15b3",
    "/sys/module/nvidia/version": "580.159.04",
}
FULL_NAMES = {
    PCI: ["0000:02:00.0"],
    "/sys/class/infiniband": ["mlx5_0"],
    "/sys/module": ["nvidia", "nvidia_peermem", "gdrdrv"],
    "/dev": ["gdrdrv"],
    "/usr/lib/x86_64-linux-gnu": ["libgdrapi.so.2", "dpdk"],
    "/usr/lib/x86_64-linux-gnu/dpdk": ["pmds-25.0"],
    "/usr/lib/x86_64-linux-gnu/dpdk/pmds-25.0": ["librte_net_mlx5.so.25"],
}


def gpu_states(
    *gpus: Gpu,
    version: int = 13000,
    files: dict[str, str] | None = None,
    names: dict[str, list[str]] | None = None,
    code: dict[str, object] | None = CODE,
) -> dict[str, machine.Check]:
    files, names = FULL_FILES if files is None else files, FULL_NAMES if names is None else names
    driver = Driver(version, "" if gpus else "libcuda.so.1 is missing", gpus)
    back_ends = {"rdma": True, "dpdk": True}
    return {
        check.name: check
        for check in gpu_checks(
            Machine(lambda path: files.get(path, ""), lambda path: names.get(path, []), driver, code, back_ends)
        )
    }


def no_ethtool(arguments: Sequence[str]) -> str:
    raise OSError("there is none")


def states(files: dict[str, str], *interfaces: str, memlock_bytes: int | None = None) -> dict[str, machine.Check]:
    system = replace(
        this_system(), read=lambda path: files.get(path, ""), names=lambda path: [], ethtool=no_ethtool, memlock_bytes=memlock_bytes
    )
    found = machine.checks(system, Driver(problem="there is none"), interfaces=interfaces)
    return {check.name: check for check in found}


def test_all_well() -> None:
    assert {check.name for check in states(GOOD, "eth0").values() if check.state != "ok"} <= MACHINE_ONLY


def test_every_knob_of_tune_is_a_check() -> None:
    knobs = plan.plan(plan.Needs(interfaces=("lo",)), this_system())
    found = [check.name for check in machine.checks(interfaces=["lo"], driver=Driver(problem="there is none"))]
    assert {knob.name for knob in knobs} < set(found)
    assert len(found) == len(set(found))


def test_locked_memory_and_throttling_say_what_they_do() -> None:
    assert "limits.conf" in states(GOOD, memlock_bytes=8 << 20)["locked memory"].mend
    assert "hang the machine" in states(GOOD)["real-time throttling"].found
    on = states(GOOD | {"/proc/sys/kernel/sched_rt_runtime_us": "950000"})["real-time throttling"]
    assert on.found == "950 of 1000 ms: a SCHED_FIFO spinner stops 50 ms in 1000"
    assert "--allow-unthrottled-realtime" in on.mend


def test_a_link_that_cannot_be_loaded_says_why_and_what_helps() -> None:
    assert machine.link_check("dpdk", True, "").found == "can be opened (libnanet_link_dpdk.so loads)"
    broken = machine.link_check("dpdk", True, "its module does not load: librte_eal.so.23: not there; install dpdk")
    assert (broken.state, broken.mend) == ("warn", "install dpdk")
    assert broken.found == "cannot be opened: its module does not load: librte_eal.so.23: not there"
    absent = machine.link_check("dpdk", False, "libnanet_link_dpdk.so is not there; run make links")
    assert (absent.state, absent.mend) == ("ok", "")
    assert "run make links" in absent.found


def test_without_an_interface_it_says_how_to_name_one() -> None:
    assert "--interface" in states(GOOD)["interfaces"].found
    assert states(GOOD, "eth0")["interfaces"].found == "eth0"


@pytest.mark.parametrize(
    ("path", "value", "name", "mend"),
    [
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave", "CPU governor", "scaling_governor"),
        ("/sys/devices/system/cpu/isolated", "", "isolated cores", "isolcpus="),
        ("/sys/devices/system/cpu/smt/active", "1", "hyper-threading", "smt/control"),
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0", "huge pages", "echo 80 | sudo tee"),
        ("/proc/sys/net/core/rmem_max", "212992", "rmem_max", "net.core.rmem_max=67108864"),
        ("/proc/sys/net/core/wmem_max", "212992", "wmem_max", "net.core.wmem_max=4194304"),
        ("/proc/sys/net/core/netdev_max_backlog", "1000", "netdev_max_backlog", "netdev_max_backlog="),
        ("/proc/sys/kernel/sched_rt_runtime_us", "950000", "real-time throttling", "do not spin under SCHED_FIFO"),
        ("/proc/sys/kernel/numa_balancing", "1", "NUMA balancing", "kernel.numa_balancing=0"),
        ("/proc/sys/kernel/timer_migration", "1", "timer migration", "kernel.timer_migration=0"),
        ("/proc/sys/kernel/watchdog_cpumask", "0-1", "watchdog", "kernel.watchdog_cpumask=0"),
        ("/proc/sys/vm/stat_interval", "1", "VM statistics", "vm.stat_interval=10"),
        ("/proc/sys/vm/compaction_proactiveness", "20", "compaction", "vm.compaction_proactiveness=0"),
        ("/proc/sys/vm/compact_unevictable_allowed", "1", "locked-page moves", "vm.compact_unevictable_allowed=0"),
        ("/sys/devices/virtual/workqueue/cpumask", "3", "kernel work queues", "echo 1 | sudo tee"),
        ("/sys/kernel/mm/transparent_hugepage/defrag", "[always] madvise", "huge page defrag", "madvise"),
        ("/proc/irq/41/smp_affinity_list", "0-1", "IRQs eth0", "/proc/irq/41/smp_affinity_list"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never", "transparent huge pages", "madvise"),
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "clock source", "tsc"),
    ],
)
def test_each_fault_has_its_command(path: str, value: str, name: str, mend: str) -> None:
    check = states(GOOD | {path: value}, "eth0")[name]
    assert check.state == "warn"
    assert mend in check.mend


def test_this_machine() -> None:
    result = machine.run()
    names = [check["name"] for check in result["checks"]]
    assert len(names) == len(set(names))
    assert {
        "cores",
        "rmem_max",
        "native module",
        "back-ends",
        "xdp:// links",
        "dpdk:// links",
        "gateware:// links",
        "GPU driver",
        "GPU code",
        *WAYS,
    } <= set(names)
    assert all(check["state"] in ("ok", "warn", "fail") and check["found"] for check in result["checks"])
    assert all(check["mend"] for check in result["checks"] if check["state"] != "ok")


def test_nothing_visible_is_no_failure() -> None:
    assert not [check for check in states({}).values() if check.state == "fail" and check.name not in MACHINE_ONLY]


def test_a_machine_with_everything_can_do_all() -> None:
    found = gpu_states(H200)
    assert {check.state for check in found.values()} == {"ok"}
    assert all(found[way].found.startswith("can: ") for way in WAYS)
    assert found["GPU 0"].found == "NVIDIA H200, compute capability 9.0, 139.8 GiB, PCIe 0000:01:00.0 Gen5 x16"
    assert found["GPU driver"].found == "CUDA 13.0, release 580.159.04"
    assert "mlx5_0" in found["packets by dma-buf"].found
    assert "0000:02:00.0" in found["packets by DPDK"].found


def test_a_machine_without_a_gpu_says_why_for_each_way() -> None:
    found = gpu_states(files={}, names={})
    assert {check.state for check in found.values()} == {"ok"}
    assert all(found[way].found.startswith("cannot: no GPU (libcuda.so.1 is missing)") for way in WAYS)
    assert "no RDMA NIC" in found["packets by dma-buf"].found
    assert "nor installed for this kernel" in found["packets by peer memory"].found
    assert "librte_net_mlx5.so is missing" in found["packets by DPDK"].found
    assert "libgdrapi.so is missing" in found["CPU writes by gdrcopy"].found


def test_a_bare_gpu_machine_reads_pinned_memory_only() -> None:
    found = gpu_states(H200, files={}, names={"/sys/module": ["nvidia"]})
    assert found["packets to pinned memory"].found.startswith("can: GPU 0 reads")
    assert all(found[way].found.startswith("cannot: ") and found[way].state == "ok" for way in WAYS[1:])
    assert "no GPU" not in found["packets by dma-buf"].found


def test_a_module_that_is_installed_but_not_loaded_has_its_command() -> None:
    files = FULL_FILES | {
        f"/lib/modules/{RELEASE}/modules.dep": "updates/dkms/nvidia-peermem.ko: nvidia.ko\nupdates/dkms/gdrdrv.ko.zst: nvidia.ko"
    }
    found = gpu_states(H200, files=files, names=FULL_NAMES | {"/sys/module": ["nvidia"]})
    assert found["packets by peer memory"].state == "warn"
    assert found["packets by peer memory"].mend == "sudo modprobe nvidia_peermem"
    assert found["CPU writes by gdrcopy"].mend == "sudo modprobe gdrdrv"
    assert found["packets by dma-buf"].found.startswith("can: ")


def test_an_rdma_nic_made_by_software_is_none() -> None:
    found = gpu_states(H200, files={}, names={"/sys/class/infiniband": ["rxe0"]})
    assert "no RDMA NIC" in found["packets by dma-buf"].found


@pytest.mark.parametrize(("key", "ways"), [("dma_buf", WAYS[1:2]), ("gpudirect_rdma", WAYS[2:]), ("map_host_memory", WAYS[:1])])
def test_a_gpu_that_cannot_is_the_reason(key: str, ways: tuple[str, ...]) -> None:
    poor = Gpu(0, "GeForce", 8, "0000:01:00.0", ALL | {key: 0}, H200.link)
    found = gpu_states(poor)
    assert {way for way in WAYS if found[way].found.startswith("cannot: no GPU here can")} == set(ways)


def test_a_gpu_that_sees_writes_out_of_order_is_no_place_for_payloads() -> None:
    found = gpu_states(Gpu(0, "GPU", 8, "0000:01:00.0", ALL | {"rdma_writes_ordering": 0}, H200.link))["packets by DPDK"]
    assert found.found.startswith("cannot: no GPU here sees a NIC's writes in order (its driver says so); needs a data-centre GPU")


def test_payloads_in_the_memory_of_a_gpu_are_promised_with_a_caution() -> None:
    text = "can: the NIC at 0000:02:00.0 can be told to write into memory of GPU 0 (payload_memory: gpu; not yet run on hardware)"
    assert gpu_states(H200)["packets by DPDK"].found == text
    assert gpu_states(H200, code=None)["packets by DPDK"].found == f"{text}, but this nanet has no GPU code"


def test_of_two_gpus_the_able_one_is_named() -> None:
    poor = Gpu(0, "GeForce", 8, "0000:01:00.0", ALL | {"dma_buf": 0}, H200.link)
    able = Gpu(1, "NVIDIA H200", 139.8, "0000:03:00.0", ALL, H200.link)
    assert "memory of GPU 1" in gpu_states(poor, able)["packets by dma-buf"].found


@pytest.mark.parametrize(
    ("change", "link", "words"),
    [
        ({}, PcieLink(5, 8, 16), "x8 of x16"),
        ({"kernel_time_limit": 1}, H200.link, "ends kernels after a few seconds"),
        ({"compute_mode": 2}, H200.link, "forbids every program"),
    ],
)
def test_what_limits_a_gpu(change: dict[str, int], link: PcieLink, words: str) -> None:
    check = gpu_states(Gpu(0, "GPU", 8, "0000:01:00.0", ALL | change, link))["GPU 0"]
    assert check.state == "warn"
    assert words in check.found
    assert check.mend


def test_gpu_code_that_does_not_fit() -> None:
    assert gpu_states(H200, code=None)["GPU code"].mend == "make cuda"
    assert gpu_states(code=None)["GPU code"].state == "ok"
    assert "up to CUDA 12.4" in gpu_states(H200, version=12040)["GPU code"].found
    old = Gpu(0, "T4", 16, "0000:01:00.0", ALL | {"capability_major": 7, "capability_minor": 5})
    check = gpu_states(old)["GPU code"]
    assert (check.state, check.mend) == ("warn", "make cuda CUDA_ARCHITECTURES='75'")


def test_a_card_without_a_driver() -> None:
    files = {f"{PCI}/0000:01:00.0/vendor": "0x10de", f"{PCI}/0000:01:00.0/class": "0x030200"}
    check = gpu_states(files=files, names={PCI: ["0000:01:00.0"]})["GPU driver"]
    assert check.state == "warn"
    assert "0000:01:00.0" in check.found


@pytest.mark.parametrize(
    ("architectures", "capability", "runs"),
    [
        ("80-real 90 100-real", 80, True),
        ("80-real 90 100-real", 86, True),  # machine code of the same major number
        ("80-real 90 100-real", 120, True),  # from PTX
        ("80-real 90 100-real", 75, False),
        ("90-real", 100, False),
        ("90-virtual", 100, True),
        ("90a", 90, True),
        ("90a", 100, False),
        ("native", 75, True),
    ],
)
def test_runs_on(architectures: str, capability: int, runs: bool) -> None:
    assert runs_on(architectures, capability) is runs


def test_asking_the_driver_never_throws() -> None:
    driver = gpu_driver.ask_driver()
    assert bool(driver.gpus) != bool(driver.problem)


ROUTES = """Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010011AC	0003	0	0	0	00000000	0	0	0
eth1	000000E0	00000000	0001	0	0	0	000000F0	0	0	0
"""
GROUP_FILES = {
    "/proc/net/route": ROUTES,
    "/sys/class/net/eth0/flags": "0x1003",
    "/sys/class/net/eth1/flags": "0x1003",
    "/proc/sys/net/ipv4/igmp_max_msf": "10",
}


def group_state(files: dict[str, str], **keys: object) -> Check:
    link = {"name": "boards", "endpoint": "udp://239.1.2.3:6200", "protocol": "raw", "memory_region": "main"} | keys
    config = EngineConfig.model_validate(
        {"version": 1, "memory_regions": [{"name": "main"}], "links": [link], "processor": {"kind": "count"}}
    )
    (found,) = group_checks(config, lambda path: files.get(path, ""))
    return found


def test_a_group_is_joined_where_the_route_leads_or_where_the_link_says() -> None:
    assert group_state(GROUP_FILES).found.startswith("link boards joins it on eth1, of any sender")
    assert group_state(GROUP_FILES, interface="eth0").found.startswith("link boards joins it on eth0")
    assert group_state(GROUP_FILES, senders=["10.0.0.7", "10.0.0.8"]).found.startswith(
        "link boards joins it on eth1, of 2 sender(s)"
    )
    assert "of any sender" in group_state(GROUP_FILES, senders=["10.0.0.7", "10.0.1.0/24"]).found
    assert "querier" in group_state(GROUP_FILES).found


def test_what_is_in_the_way_of_a_group_is_named() -> None:
    assert group_state(GROUP_FILES | {"/proc/net/route": ROUTES.splitlines()[0]}).state == "fail"
    assert "ip link set eth1 up" in group_state(GROUP_FILES | {"/sys/class/net/eth1/flags": "0x1002"}).mend
    assert "multicast on" in group_state(GROUP_FILES | {"/sys/class/net/eth1/flags": "0x1"}).mend
    many = [f"10.0.0.{i}" for i in range(11)]
    assert group_state(GROUP_FILES, senders=many).mend == "sudo sysctl -w net.ipv4.igmp_max_msf=11"
    old = GROUP_FILES | {"/proc/sys/net/ipv4/conf/eth1/force_igmp_version": "2"}
    assert (group_state(old).state, group_state(old, senders=["10.0.0.7"]).state) == ("ok", "warn")
    strict = GROUP_FILES | {"/proc/sys/net/ipv4/conf/all/rp_filter": "1"}
    assert group_state(strict).mend == "sudo sysctl -w net.ipv4.conf.all.rp_filter=2"


def test_an_address_that_is_no_group_needs_nothing() -> None:
    config = EngineConfig.model_validate(
        {
            "version": 1,
            "memory_regions": [{"name": "main"}],
            "links": [{"name": "a", "endpoint": "udp://10.0.0.1:6200", "protocol": "raw", "memory_region": "main"}],
            "processor": {"kind": "count"},
        }
    )
    assert not list(group_checks(config, lambda path: ""))


@pytest.mark.parametrize(("columns", "widest"), [("40", 40), ("", 160)])
def test_the_table_keeps_to_the_columns_that_it_is_given(
    columns: str, widest: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    text.doctor_table([{"name": "huge pages", "state": "ok", "found": "many " * 40, "mend": None}])
    assert max(map(len, capsys.readouterr().out.splitlines())) == widest
