# SPDX-License-Identifier: Apache-2.0
"""Doctor: findings from made-up /proc and /sys, and a run on this machine."""

from __future__ import annotations

import pytest
from nanet import doctor

GOOD = {
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "/sys/devices/system/cpu/isolated": "1",
    "/sys/devices/system/cpu/smt/active": "0",
    "/proc/meminfo": "HugePages_Free:      64\nHugepagesize:       2048 kB",
    "/proc/sys/net/core/rmem_max": "67108864",
    "/proc/sys/net/core/wmem_max": "67108864",
    "/proc/sys/net/core/netdev_max_backlog": "30000",
    "/proc/sys/net/core/busy_poll": "0",
    "/proc/sys/kernel/sched_rt_runtime_us": "-1",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
}
MACHINE_ONLY = {"cores", "locked memory"}


def states(files: dict[str, str]) -> dict[str, doctor.Check]:
    return {check.name: check for check in doctor.checks(lambda path: files.get(path, ""))}


def test_all_well() -> None:
    assert {check.name for check in states(GOOD).values() if check.state != "ok"} <= MACHINE_ONLY


@pytest.mark.parametrize(
    ("path", "value", "name", "mend"),
    [
        ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave", "CPU governor", "scaling_governor"),
        ("/sys/devices/system/cpu/isolated", "", "isolated cores", "isolcpus="),
        ("/sys/devices/system/cpu/smt/active", "1", "hyper-threading", "smt/control"),
        ("/proc/meminfo", "HugePages_Free: 0\nHugepagesize: 2048 kB", "huge pages", "vm.nr_hugepages="),
        ("/proc/sys/net/core/rmem_max", "212992", "rmem_max", "net.core.rmem_max=67108864"),
        ("/proc/sys/net/core/wmem_max", "212992", "wmem_max", "net.core.wmem_max=67108864"),
        ("/proc/sys/net/core/netdev_max_backlog", "1000", "netdev_max_backlog", "netdev_max_backlog="),
        ("/proc/sys/kernel/sched_rt_runtime_us", "950000", "real-time throttling", "sched_rt_runtime_us=-1"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never", "transparent huge pages", "madvise"),
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "clock source", "tsc"),
    ],
)
def test_each_fault_has_its_command(path: str, value: str, name: str, mend: str) -> None:
    check = states(GOOD | {path: value})[name]
    assert check.state == "warn"
    assert mend in check.mend


def test_this_machine() -> None:
    result = doctor.run()
    names = [check["name"] for check in result["checks"]]
    assert len(names) == len(set(names))
    assert {"cores", "rmem_max", "native module", "back-ends built in"} <= set(names)
    assert all(check["state"] in ("ok", "warn", "fail") and check["found"] for check in result["checks"])
    assert all(check["mend"] for check in result["checks"] if check["state"] != "ok")


def test_nothing_visible_is_no_failure() -> None:
    assert not [check for check in states({}).values() if check.state == "fail" and check.name not in MACHINE_ONLY]
