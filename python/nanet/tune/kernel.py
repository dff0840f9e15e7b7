# SPDX-License-Identifier: Apache-2.0
"""The knobs of the kernel and the CPUs. docs/design/tuning.md says for each what it costs and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nanet.tune.knob import AS_IT_IS, Change, Knob, Needs, good, remark, unseen
from nanet.tune.system import CORE_MASKS, System, cores_of, cores_text, mask_cores, mask_text

CPU = "/sys/devices/system/cpu"
HUGE = "/sys/kernel/mm/hugepages/hugepages-2048kB"
THP = "/sys/kernel/mm/transparent_hugepage"
RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
RT_PERIOD = "/proc/sys/kernel/sched_rt_period_us"
WHOSE_CORE = "whose core? give a CONFIG with cpu_cores"
ALL_PINNED = "leave a core to the kernel: all of them are pinned by the CONFIG, or isolated"
IDLE_US_MAX = 10  # a state that takes longer to leave is deep
BACKLOG_ENOUGH, BACKLOG_WANTED = 10_000, 30_000

UNTHROTTLED_DANGER = (
    "without real-time throttling, a SCHED_FIFO thread that spins keeps its core forever: kernel threads on that core starve,"
    " and with them whatever waits for one, which may be the whole machine; only a core that nothing else needs may run this way"
)


def kernel_knobs(needs: Needs, system: System) -> Iterator[Knob]:
    """All of them, in the order of a table."""
    yield _governor(system)
    yield _idle_states(needs, system)
    yield _huge_pages(needs, system)
    yield _locked(needs, system)
    for limit in _limits(needs):
        yield limit.look(system)
    yield _realtime(needs, system)
    yield _realtime_priority(needs, system)
    yield _thp("transparent huge pages", "enabled", "merging pages stops threads", system)
    yield _thp("huge page defrag", "defrag", "a page fault may wait for compaction", system)
    yield _kernel_work(
        "kernel work queues", "/sys/devices/virtual/workqueue/cpumask", "kernel threads take these cores", needs, system
    )
    yield _kernel_work("watchdog", "/proc/sys/kernel/watchdog_cpumask", "its timer and NMI hit these cores", needs, system)


@dataclass(frozen=True)
class Limit:
    """A number in one file: good from `low` to `high`, else set to `wanted`. `text` writes the number for a person."""

    name: str
    path: str
    wanted: int
    why: str
    low: int = 0
    high: int = 1 << 62
    text: Callable[[int], str] = str
    idle: str = ""  # why nothing is asked of it in this configuration; empty: it is asked

    def look(self, system: System) -> Knob:
        """The knob as it is now."""
        raw = system.read(self.path)
        if not raw.lstrip("-").isdigit():
            return unseen(self.name, self.why)
        now = int(raw)
        if self.idle:
            return remark(self.name, self.text(now), self.idle)
        if self.low <= now <= self.high:
            return good(self.name, self.text(now), self.why)
        change = Change(self.path, raw, str(self.wanted))
        return Knob(self.name, self.text(now), self.text(self.wanted), self.why, (change,))


def size_text(size_bytes: int) -> str:
    """`64 MiB`, `208 KiB`."""
    return f"{size_bytes >> 20} MiB" if size_bytes >= 1 << 20 else f"{size_bytes >> 10} KiB"


def _limits(needs: Needs) -> Iterator[Limit]:
    core, kernel, vm = "/proc/sys/net/core", "/proc/sys/kernel", "/proc/sys/vm"
    no_core = "" if needs.cores else WHOSE_CORE
    polling, no_polling = needs.busy_poll_us, "" if needs.busy_poll_us else "no link of a CONFIG has busy_poll_us"
    receive, send, us = needs.receive_bytes, needs.send_bytes, "{} us".format
    yield from (
        Limit("rmem_max", f"{core}/rmem_max", receive, "short buffers lose packets at a pause", receive, text=size_text),
        Limit("wmem_max", f"{core}/wmem_max", send, "short buffers drop answers in a burst", send, text=size_text),
        Limit("netdev_max_backlog", f"{core}/netdev_max_backlog", BACKLOG_WANTED, "over lo and veth, more are dropped", BACKLOG_ENOUGH),
        Limit("busy_read", f"{core}/busy_read", polling, "receive calls may poll the NIC", polling, text=us, idle=no_polling),
        Limit("busy_poll", f"{core}/busy_poll", polling, "the wait for packets polls the NIC", polling, text=us, idle=no_polling),
        Limit("NUMA balancing", f"{kernel}/numa_balancing", 0, "unmaps pages to see who uses them", high=0),
        Limit("timer migration", f"{kernel}/timer_migration", 0, "idle cores' timers go to the busy one", high=0, idle=no_core),
        Limit("VM statistics", f"{vm}/stat_interval", 10, "a kernel thread runs on each core this often", 10, text="{} s".format),
        Limit("compaction", f"{vm}/compaction_proactiveness", 0, "pages are moved ahead of need", high=0),
        Limit("locked-page moves", f"{vm}/compact_unevictable_allowed", 0, "locked pages are moved too, and fault", high=0),
    )  # fmt: skip


def _governor(system: System) -> Knob:
    name, why = "CPU governor", "the clock drops while a core waits"
    found = {}
    for core in sorted(system.online()):  # those of interrupts and senders too
        path = f"{CPU}/cpu{core}/cpufreq/scaling_governor"
        if governor := system.read(path):
            found[path] = governor
    if not found:
        return remark(name, "none", "a virtual machine, or a fixed frequency")
    now = ", ".join(sorted(set(found.values())))
    wrong = {path: governor for path, governor in found.items() if governor != "performance"}
    if not wrong:
        return good(name, now, why)
    offered = system.read(next(iter(wrong)).replace("scaling_governor", "scaling_available_governors"))
    if offered and "performance" not in offered.split():
        return remark(name, now, "this driver has no performance governor")
    return Knob(name, now, "performance", why, tuple(Change(path, old, "performance") for path, old in wrong.items()))


def _idle_states(needs: Needs, system: System) -> Knob:
    name, why = "deep idle states", "a core in deep sleep wakes late"
    deepest, changes = 0, []
    for core in sorted(needs.cores or system.online()):
        for state in system.names(f"{CPU}/cpu{core}/cpuidle"):
            path = f"{CPU}/cpu{core}/cpuidle/{state}"
            latency_us = int(system.read(f"{path}/latency") or 0)
            if latency_us > IDLE_US_MAX and system.read(f"{path}/disable") == "0":
                deepest = max(deepest, latency_us)
                changes.append(Change(f"{path}/disable", "0", "1"))
    if not changes:
        return good(name, "none", why)
    if not needs.cores:
        return remark(name, f"{deepest} us", WHOSE_CORE)
    return Knob(name, f"{deepest} us", f"{IDLE_US_MAX} us", why, tuple(changes))


def _huge_pages(needs: Needs, system: System) -> Knob:
    name, why = "huge pages", "ordinary pages miss the TLB more"
    total, free = (system.read(f"{HUGE}/{name}") for name in ("nr_hugepages", "free_hugepages"))
    if not total.isdigit() or not free.isdigit():
        return unseen(name, why)
    text, lacking = f"{free} free", needs.huge_pages - int(free)
    if lacking <= 0:
        return good(name, text, why)
    wanted = f"{needs.huge_pages} free"
    available_kib = next(
        (line.split()[1] for line in system.read("/proc/meminfo").splitlines() if line[:13] == "MemAvailable:"), ""
    )
    if available_kib and lacking * 2048 > 0.9 * int(available_kib):
        advice = f"lower buffer_count or buffer_bytes: only {int(available_kib) >> 10} MiB of memory are free"
        return Knob(name, text, wanted, "there is not that much free memory", by_hand=advice)
    return Knob(name, text, wanted, why, (Change(f"{HUGE}/nr_hugepages", total, str(int(total) + lacking)),))


def _locked(needs: Needs, system: System) -> Knob:
    name, why = "locked memory", "what is not locked may be paged out"
    if system.memlock_bytes is None:
        return good(name, "unlimited", why)
    now, wanted = size_text(system.memlock_bytes), size_text(needs.locked_bytes)
    if system.memlock_bytes >= needs.locked_bytes:
        return good(name, now, why)
    advice = "ulimit -l unlimited; for good: '* - memlock unlimited' in /etc/security/limits.conf"
    return Knob(name, now, wanted, why, by_hand=advice)


def _realtime(needs: Needs, system: System) -> Knob:
    name, now = "real-time throttling", system.read(RT_RUNTIME)
    if not now.lstrip("-").isdigit():
        return unseen(name, "it stops SCHED_FIFO threads that spin")
    period_us = int(system.read(RT_PERIOD) or 1_000_000)
    if int(now) < 0 and needs.realtime_priority:
        wanted, why = 95 * period_us // 100, "realtime_priority needs this guard"
        return Knob(name, "off", _runtime_text(wanted, period_us), why, (Change(RT_RUNTIME, now, str(wanted)),))
    if int(now) < 0:
        return remark(name, "off", "a FIFO spinner may hang the machine")
    stopped_ms, period_ms = max(period_us - int(now), 0) / 1000, period_us / 1000
    text, why = _runtime_text(int(now), period_us), f"a SCHED_FIFO spinner stops {stopped_ms:g} ms in {period_ms:g}"
    if needs.realtime_priority:
        return remark(name, text, f"realtime_priority needs it; {why}")
    if needs.unthrottled_realtime:
        return Knob(name, text, "off", "DANGER: nothing stops a spinner", (Change(RT_RUNTIME, now, "-1"),))
    advice = "do not spin under SCHED_FIFO, or: nanet tune --allow-unthrottled-realtime"
    return Knob(name, text, AS_IT_IS, why, by_hand=advice)


def _runtime_text(runtime_us: int, period_us: int) -> str:
    return f"{runtime_us / 1000:g} of {period_us / 1000:g} ms"


def _realtime_priority(needs: Needs, system: System) -> Knob:
    """What the kernel lets this account have; which capability a service will have cannot be seen from here."""
    name, wanted = "real-time priority", needs.realtime_priority
    now = "any" if system.privileged else str(system.rtprio_max)
    if not wanted:
        return remark(name, now, "no CONFIG asks for realtime_priority")
    if system.privileged or system.rtprio_max >= wanted:
        return good(name, now, "a thread without it waits for others")
    advice = "start nanet as root, or '* - rtprio 99' in /etc/security/limits.conf; for a service LimitRTPRIO=99"
    return Knob(name, now, str(wanted), "the engine does not start without it", by_hand=advice)


def _thp(name: str, file: str, why: str, system: System) -> Knob:
    now = system.get(f"{THP}/{file}")
    if not now:
        return unseen(name, why)
    if now != "always":
        return good(name, now, why)
    return Knob(name, now, "madvise", why, (Change(f"{THP}/{file}", now, "madvise"),))


def _kernel_work(name: str, path: str, why: str, needs: Needs, system: System) -> Knob:
    """A set of cores for the kernel's own work, which the engine's cores should not be in."""
    raw = system.get(path)
    if not raw:
        return unseen(name, why)
    parse, write = (mask_cores, mask_text) if path.endswith(CORE_MASKS) else (cores_of, cores_text)
    cores = parse(raw)
    now = f"cores {cores_text(cores)}"
    if not needs.cores:
        return remark(name, now, WHOSE_CORE)
    if not cores & needs.cores:
        return good(name, now, why)
    rest = (cores & system.online()) - needs.cores
    if not rest:
        return Knob(name, now, "another core", why, by_hand=ALL_PINNED)
    return Knob(name, now, f"cores {cores_text(rest)}", why, (Change(path, raw, write(rest)),))
