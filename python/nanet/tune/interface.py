# SPDX-License-Identifier: Apache-2.0
"""The knobs of a network interface: which cores take its interrupts, how long it holds them back, how many packets it can hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nanet.tune.kernel import ALL_PINNED, WHOSE_CORE
from nanet.tune.knob import AS_IT_IS, Change, Knob, Needs, good, remark
from nanet.tune.system import System, cores_of, cores_text

RING_WANTED = 4096  # more only widens what the caches must hold


def interface_knobs(interface: str, needs: Needs, system: System) -> Iterator[Knob]:
    """Interrupts, ring, coalescing."""
    yield _interrupts(interface, needs, system)
    yield _ring(interface, system)
    yield _coalescing(interface, system)


def balancer_knobs(needs: Needs, system: System) -> Iterator[Knob]:
    """irqbalance, where it runs and interrupts have been placed: it would place them again."""
    if not needs.interfaces or not needs.cores:
        return
    processes = (name for name in system.names("/proc") if name.isdigit())
    if any(system.read(f"/proc/{name}/comm") == "irqbalance" for name in processes):
        why = "it moves interrupts back"
        yield Knob("irqbalance", "runs", "stopped", why, by_hand="sudo systemctl stop irqbalance")


def irqs_of(interface: str, system: System) -> list[int]:
    """Numbers of the interface's interrupts that /proc/interrupts lists: those of its device, and those that carry its name."""
    listed = _listed(system)
    device = f"/sys/class/net/{interface}/device"
    found = {int(name) for name in system.names(f"{device}/msi_irqs") if name.isdigit()}
    own = system.read(f"{device}/irq")  # a device of PCI has this file; that of virtio has not, and its interrupts are its parent's
    if not found and own.isdigit():
        found = {int(own)}
    if not found and not own:
        found = {int(name) for name in system.names(f"{device}/../msi_irqs") if name.isdigit()}
    named = {irq for irq, users in listed.items() if any(re.fullmatch(rf"{re.escape(interface)}(-.*)?", user) for user in users)}
    return sorted((found | named) & set(listed))


def _listed(system: System) -> dict[int, list[str]]:
    """Of every interrupt of /proc/interrupts, the words after its counts: the chip and who uses it."""
    listed = {}
    for line in system.read("/proc/interrupts").splitlines():
        number, colon, rest = line.strip().partition(":")
        if colon and number.isdigit():
            words = rest.split()
            while words and words[0].isdigit():
                words.pop(0)
            listed[int(number)] = [word.rstrip(",") for word in words]
    return listed


def _interrupts(interface: str, needs: Needs, system: System) -> Knob:
    name, why = f"IRQs {interface}", "interrupts take the engine's core"
    lists = {irq: system.get(f"/proc/irq/{irq}/smp_affinity_list") for irq in irqs_of(interface, system)}
    online = system.online()
    cores = {irq: cores_of(text) & online for irq, text in lists.items() if text}
    if not cores:
        return remark(name, "none", "it has none of its own here")
    now = f"cores {cores_text(frozenset().union(*cores.values()))}"
    if not needs.cores:
        return remark(name, now, WHOSE_CORE)
    allowed = online - needs.cores
    near = allowed & cores_of(system.read(f"/sys/devices/system/node/node{_node(interface, system)}/cpulist"))
    if not allowed:
        return Knob(name, now, "another core", why, by_hand=ALL_PINNED)
    changes, wanted = [], frozenset[int]()
    for irq, at in sorted(cores.items()):
        if at & needs.cores:
            target = at - needs.cores or near or allowed
            wanted |= target
            changes.append(Change(f"/proc/irq/{irq}/smp_affinity_list", lists[irq], cores_text(target)))
    if not changes:
        return good(name, now, why)
    return Knob(name, now, f"cores {cores_text(wanted)}", why, tuple(changes))


def _node(interface: str, system: System) -> int:
    """NUMA node of the interface; that of the first cores when it has none."""
    device = f"/sys/class/net/{interface}/device"
    text = system.read(f"{device}/numa_node") or system.read(f"{device}/../numa_node")
    return max(int(text), 0) if text.lstrip("-").isdigit() else 0


def _ring(interface: str, system: System) -> Knob:
    name, why = f"RX ring {interface}", "a short one loses packets at a pause"
    values = system.ethtool_values(interface, "-g")
    now, most = values.get("rx", ""), values.get("rx-max", "")
    if not now.isdigit() or not most.isdigit():
        return remark(name, "none", "no ethtool, or the driver has none")
    wanted = min(int(most), RING_WANTED)
    if int(now) >= wanted:
        return good(name, now, why)
    return Knob(name, now, str(wanted), why, (Change(f"ethtool {interface} rx", now, str(wanted)),))


def _coalescing(interface: str, system: System) -> Knob:
    name, why = f"IRQ delay {interface}", "the NIC holds packets back this long"
    values = system.ethtool_values(interface, "-c")
    delay, adaptive = values.get("rx-usecs", ""), values.get("adaptive-rx", "")
    if not delay.isdigit():
        return remark(name, "none", "no ethtool, or the driver has none")
    changes = []
    if adaptive == "on":  # before rx-usecs, which it rules
        changes.append(Change(f"ethtool {interface} adaptive-rx", "on", "off"))
    if int(delay):
        changes.append(Change(f"ethtool {interface} rx-usecs", delay, "0"))
    now = "adaptive" if adaptive == "on" else f"{delay} us"
    return Knob(name, now, "0 us" if changes else AS_IT_IS, why, tuple(changes))
