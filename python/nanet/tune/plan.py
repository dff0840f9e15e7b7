# SPDX-License-Identifier: Apache-2.0
"""Plans what a machine should be set to for an engine: `plan` looks and changes nothing; tune_apply changes and undoes.

`nanet doctor` shows the same knobs. docs/design/tuning.md says why each is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nanet.config.engine import EngineConfig, MemoryRegion
from nanet.config.link import LinkConfig
from nanet.tune.interface import balancer_knobs, interface_knobs
from nanet.tune.kernel import kernel_knobs
from nanet.tune.keys import ChangeKeys, KnobKeys
from nanet.tune.knob import BY_HAND, CHANGE, OK, Change, Knob, Needs
from nanet.tune.system import System, TuneError, cores_of, this_system

__all__ = [
    "BY_HAND", "CHANGE", "OK", "Change", "Knob", "Needs", "System", "TuneError", "as_json", "chosen", "needs_of", "plan", "this_system",
]  # fmt: skip

HUGE_PAGE_BYTES = 2 << 20
PACKET_REF_BYTES = 8  # of the index of a CLOP, see include/nanet/contract.hpp
INDEXES_BYTES = 128
INDEX_CAPACITY_MAX = 65535
RINGS_BYTES = 16 << 20  # TX rings and completion queues, generously


def plan(needs: Needs, system: System) -> tuple[Knob, ...]:
    """All knobs, each with what would be changed. Reads the machine only."""
    found = [*kernel_knobs(needs, system)]
    for interface in needs.interfaces:
        found += interface_knobs(interface, needs, system)
    return (*found, *balancer_knobs(needs, system))


def needs_of(
    config: EngineConfig | None, system: System, interfaces: Sequence[str] = (), *, unthrottled_realtime: bool = False
) -> Needs:
    """What a configuration, or nanet without one, asks of the machine. Raises TuneError for an interface that is not there."""
    isolated = cores_of(system.read("/sys/devices/system/cpu/isolated"))
    if config is None:
        named = tuple(dict.fromkeys(interfaces))
        _check_interfaces(named, system)
        return Needs(isolated, named, unthrottled_realtime=unthrottled_realtime)
    of_links = [getattr(link, "interface", None) for link in config.links]
    named = tuple(dict.fromkeys([name for name in of_links if name] + list(interfaces)))
    _check_interfaces(named, system)
    regions = {region.name: region for region in config.memory_regions}
    clops = [(regions[link.memory_region], link) for link in config.links for _ in link.inputs()]  # each has a CLOP of its own
    rounded = [(region, -(-clop_bytes(region, link) // HUGE_PAGE_BYTES)) for region, link in clops]
    return Needs(
        cores=isolated | config.pinned_cores(),
        interfaces=named,
        huge_pages=sum(pages for region, pages in rounded if region.huge_pages),
        locked_bytes=sum(pages for _, pages in rounded) * HUGE_PAGE_BYTES + RINGS_BYTES,
        receive_bytes=max(link.socket_buffer_bytes for link in config.links),
        busy_poll_us=max(link.busy_poll_us for link in config.links),
        realtime_priority=config.cpu_cores.realtime_priority or 0,
        unthrottled_realtime=unthrottled_realtime,
    )


def clop_bytes(region: MemoryRegion, link: LinkConfig) -> int:
    """Memory of a CLOP: its buffers, the index of their packets, and the running numbers, as src/flow/clop.cpp lays them out."""
    capacity = min(max(region.buffer_bytes // 64, 2 * link.batch_size), INDEX_CAPACITY_MAX)
    index_bytes = -(-region.buffer_count * capacity * PACKET_REF_BYTES // 64) * 64
    return region.buffer_count * region.buffer_bytes + index_bytes + INDEXES_BYTES


def chosen(knobs: Iterable[Knob], names: Sequence[str]) -> tuple[Knob, ...]:
    """The knobs of these names, all without names. Raises TuneError for a name that is none."""
    knobs = tuple(knobs)
    known = [knob.name for knob in knobs]
    for name in names:
        if name not in known:
            raise TuneError(f"there is no knob '{name}' (the names are those in the table) choose from: {', '.join(known)}")
    return tuple(knob for knob in knobs if not names or knob.name in names)


def as_json(knob: Knob) -> KnobKeys:
    """A knob as `nanet tune --json` writes it."""
    changes: list[ChangeKeys] = [{"target": change.target, "now": change.now, "wanted": change.wanted} for change in knob.changes]
    return {
        "name": knob.name, "state": knob.state, "now": knob.now, "wanted": knob.wanted, "why": knob.why,
        "command": knob.command, "changes": changes,
    }  # fmt: skip


def _check_interfaces(names: Iterable[str], system: System) -> None:
    there = system.interfaces()
    for name in names:
        if name not in there:
            raise TuneError(f"there is no interface '{name}' (this machine has {', '.join(there) or 'none'}) choose one of those")
