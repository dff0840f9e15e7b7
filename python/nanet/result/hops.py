# SPDX-License-Identifier: Apache-2.0
"""The hops of a packet, from the interface to its answer: what came to each, what went on, and by name what did not.

The one place that knows them. The live table, the metrics, the result of `nanet run`, the soak and the balance sheets of `nanet bench --link` are
all made of these. `reading` is what Engine.snapshot or Engine.metrics returns.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nanet.config.engine import EngineConfig
from nanet.config.link import LinkConfig
from nanet.result import books
from nanet.result.keys.engine import EngineMetrics, EngineSnapshot, LinkReading
from nanet.result.keys.hops import BalanceSheet, HopLine, HopLook

IN_FLIGHT_S = 3.0
"""Longer than anything is in flight from one hop to the next. What is between two hops for longer is unexplained."""

IN_NODE = "in_node"
"""What a simulated node had begun when its engine was stopped."""

PART_REFUSALS = ("parts_late", "parts_duplicate", "parts_no_room", "parts_unjudged", "events_bad_body")
LET_THROUGH = (
    "passed",
    "duplicated",
    "reordered",
    "corrupted",
    "truncated",
    "delayed",
)  # by the fault injector: these packets continue
SIOCGIFADDR = 0x8915


@dataclass
class Hop:
    """One line of the sheet."""

    name: str
    entered: int
    left: int
    named: dict[str, int] = field(default_factory=dict)
    unit: str = "packets"

    @property
    def gone(self) -> int:
        """What went on, or has a name."""
        return self.left + sum(self.named.values())

    @property
    def unexplained(self) -> int:
        """What no counter accounts for when nothing is in flight; negative: more left than came."""
        return self.entered - self.gone

    def name_up_to(self, name: str, count: int) -> None:
        """Books up to `count` of what is still missing under a name. A drop that two layers count (a queue and its user) is booked once."""
        self.named[name] = max(0, min(int(count), self.unexplained))

    def plain(self) -> HopLine:
        """As JSON keys."""
        named = {name: count for name, count in self.named.items() if count}
        return {
            "hop": self.name,
            "unit": self.unit,
            "in": self.entered,
            "out": self.left,
            "named": named,
            "unexplained": self.unexplained,
        }


def sheet(hops: Iterable[Hop]) -> BalanceSheet:
    """The balance sheet of hops of which nothing is in flight any more."""
    found = list(hops)
    return {"hops": [hop.plain() for hop in found], "unexplained_packets": sum(abs(hop.unexplained) for hop in found)}


def at_rest(line: HopLine) -> HopLook:
    """A line of the end, for who shows lines of a run."""
    return {"in_flight": 0, **line}


def unexplained_text(balance: BalanceSheet) -> str:
    """`3 packets at link, -1 parts at event building`, or nothing."""
    return ", ".join(f"{hop['unexplained']} {hop['unit']} at {hop['hop']}" for hop in balance["hops"] if hop["unexplained"])


def fault_injector(links: Sequence[LinkReading]) -> list[Hop]:
    """Faults on purpose. A duplicated packet enters twice."""
    injecting = [link for link in links if link["faults"]]
    if not injecting:
        return []
    held = _injected(injecting, "held")
    out = _injected(injecting, *LET_THROUGH, "duplicated") - held
    entered = _sum(injecting, "rx_packets") + _injected(injecting, "duplicated")
    return [Hop("fault injector", entered, out, {"injected_loss": _injected(injecting, "lost"), "held": held})]


def delivered(links: Sequence[LinkReading]) -> int:
    """Packets given to the decoder."""
    return _sum(links, "rx_packets") + _injected(links, "duplicated") - _injected(links, "lost", "held")


def decoder(delivered: int, counters: Mapping[str, int]) -> Hop:
    """From the link to the processor: every packet is good, or refused under one name."""
    names = (*books.PACKET_REFUSALS, "packets_clop_full", "packets_marker")
    return Hop("decoder and buffers", delivered, int(counters["packets_accepted"]), {name: int(counters[name]) for name in names})


def sequence_numbers(counters: Mapping[str, int], sent: int | None = None) -> Hop:
    """What the sources' numbers say that they sent, against what came. sent: what the sources say themselves."""
    good, lost = int(counters["packets_accepted"]), {name: int(counters[name]) for name in books.PACKET_LOSSES}
    return Hop("sequence numbers", good + sum(lost.values()) if sent is None else sent, good, lost)


def event_building(counters: Mapping[str, int]) -> Hop:
    """Parts of events that were received, against those that were merged."""
    refused = {name: int(counters.get(name, 0)) for name in PART_REFUSALS}
    return Hop("event building", int(counters["events_received"]), int(counters["parts_merged"]), refused, "parts")


def units(counters: Mapping[str, int]) -> list[Hop]:
    """Units of which a packet came, against those that were closed, and those against what the processor got. None: no link has units."""
    begun = int(counters.get("units_begun", 0))
    if begun == 0:
        return []
    closed = {name: int(counters[name]) for name in books.UNITS_INCOMPLETE}
    complete = int(counters["units_complete"])
    discarded = {"units_discarded": int(counters["units_discarded"])}
    return [
        Hop("assembling", begun, complete, closed, "units"),
        Hop("units", complete + sum(closed.values()), int(counters["units_handed_over"]), discarded, "units"),
    ]


def slices(counters: Mapping[str, int]) -> Hop:
    """Units that the processor got, against those that are in a time slice."""
    refused = {name: int(counters[name]) for name in ("units_passed_over", *books.UNITS_UNUSED)}
    return Hop("slices", int(counters["units_handed_over"]), int(counters["units_used"]), refused, "units")


def answers(written: int, stats: Mapping[str, int]) -> Hop:
    """Packets given to the link that sends, against those that it sent and that no one refused."""
    refused = int(stats["tx_refused"])  # of tx_packets
    return Hop(
        "answers", written, int(stats["tx_packets"]) - refused, {"tx_dropped": int(stats["tx_dropped"]), "tx_refused": refused}
    )


class NodeCounts:
    """The counters of a node, by group, port and name."""

    def __init__(self, link: LinkReading) -> None:
        self._counts = {(group["name"], group["port"]): group["counts"] for group in link["nic_counts"]}
        self.ports = sorted(port for name, port in self._counts if name == "wire" and port is not None)

    def has(self, name: str) -> bool:
        """Whether it has a group of the whole node."""
        return (name, None) in self._counts

    def floors(self) -> list[int]:
        """Ports that have a floor."""
        return sorted(port for name, port in self._counts if name == "floor" and port is not None)

    def group(self, name: str, port: int | None = None) -> Mapping[str, int]:
        """Counters of a group."""
        return self._counts[name, port]

    def merged(self, *names: str) -> int:
        """The sum over all ports of what the merging counts of each."""
        return sum(int(self.group("merge", port)[name]) for port in self.ports for name in names)

    def events(self, *names: str) -> int:
        """The sum of what it counts of events."""
        return sum(int(self.group("events")[name]) for name in names)


def node(link: LinkReading) -> list[Hop]:
    """A node, from each wire to the host. None: the link has none."""
    if not link["nic_counts"]:
        return []
    counts, name = NodeCounts(link), link["name"]
    if counts.has("slots"):
        return []  # a node of a torus: what others send to it, whose books are with them
    if counts.has("fibre"):
        return _floors(name, counts)
    found = [_node_port(f"{name}, port {port}", counts, port) for port in counts.ports]
    dropped = {name: counts.merged(name) for name in ("late", "jump", "disabled")}
    merged = counts.merged("part")
    found.append(Hop(f"{name}, parts", merged + sum(dropped.values()), merged, dropped, "parts"))
    host, given = counts.group("host"), counts.group("given")
    refused = {name: int(count) for name, count in host.items() if name != "stored"}
    events = Hop(
        f"{name}, events", counts.events("complete", "missing", "overflow"), int(given["events"]),
        {"incomplete": counts.events("incomplete")}, "events",
    )  # fmt: skip
    if any(refused.values()):
        events.name_up_to("in_refused_packets", events.unexplained)
    packets = Hop(f"{name}, merged packets", counts.events("packet"), int(given["packets"]), refused)
    return [*found, events, packets]


def at_end_of(link: LinkReading) -> list[Hop]:
    """A node when its engine has stopped. One that was stopped amid its simulation has what it had begun still in it; else nothing is in it."""
    found = node(link)
    if found and NodeCounts(link).group("given").get("busy", 0):
        for hop in found:
            hop.name_up_to(IN_NODE, hop.unexplained)
    return found


def left_in_nodes(balance: BalanceSheet) -> int:
    """Frames, packets, parts and events that were in simulated nodes at the end."""
    return sum(hop["named"].get(IN_NODE, 0) for hop in balance["hops"])


def _floors(name: str, counts: NodeCounts) -> list[Hop]:
    """A node with links of KM3NeT's floors: packets to the fibres, frames of each, packets of each, and those to the host."""
    fibre, given = counts.group("fibre"), counts.group("given")
    refused = {key: int(count) for key, count in fibre.items() if key not in ("received", "carried")}
    found = [Hop(f"{name}, packets to the fibres", int(fibre["received"]), int(fibre["carried"]), refused)]
    forwarded = 0
    for port in counts.floors():
        km3 = counts.group("km3", port)
        dropped = {
            key: int(count)
            for key, count in km3.items()
            if key.startswith("drop_") or key in ("unplaced", "control_only", "full", "overrun")
        }
        found.append(
            Hop(f"{name}, frames of port {port}", int(counts.group("floor", port)["frames"]), int(km3["placed"]), dropped, "frames")
        )
        left = {key: int(km3[key]) for key in ("queue_full", "no_route")}
        found.append(Hop(f"{name}, packets of port {port}", int(km3["packet"]), int(km3["forwarded"]), left))
        forwarded += int(km3["forwarded"])
    host = {key: int(count) for key, count in counts.group("host").items() if key != "stored"}
    handed_on = int(given["packets"]) + int(given.get("slow_control", 0))
    return [*found, Hop(f"{name}, packets to the host", forwarded, handed_on, host)]


def _node_port(name: str, counts: NodeCounts, port: int) -> Hop:
    """From the wire to the merger."""
    named: dict[str, int] = {}
    for group, left in (("rx", ("parsed",)), ("reply", ("replied",)), ("port", ("to_events", "forwarded", "sent_to")),
                        ("merge", ("packet", "part", "late", "jump", "disabled"))):  # fmt: skip
        named |= {f"{group}_{key}": int(count) for key, count in counts.group(group, port).items() if key not in left}
    out = int(counts.group("merge", port)["packet"]) + int(counts.group("port", port)["forwarded"])
    return Hop(name, int(counts.group("wire", port)["frames"]), out, named, "frames")


class EngineHops:
    """The hops of one engine, from the interface to the link that sends. Interfaces are counted from now on."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._inputs = [name for link in config.links for name in link.inputs()]
        self._interfaces = list(dict.fromkeys(name for name in map(interface_of, config.links) if name))
        self._before = {name: received(name) for name in self._interfaces}

    def read(self, reading: EngineSnapshot | EngineMetrics, *, at_end: bool = False) -> list[Hop]:
        """All, in the order of the packets' path. at_end: the engine has stopped, so what is in a simulated node stays there."""
        config, counters = self._config, reading["counters"]
        links = reading["links"][: len(self._inputs)]
        hops = [self._interface(name) for name in self._interfaces]
        hops += [hop for link in links for hop in (at_end_of(link) if at_end else node(link))]
        hops += [_link(links), *fault_injector(links), decoder(delivered(links), counters)]
        if any(link.sources for link in config.links):
            hops.append(sequence_numbers(counters))
        hops += units(counters)
        if config.processor.kind == "km3":
            hops.append(slices(counters))
        done = config.done_counter()
        if done is None:
            return hops + (self._answers(reading) if config.answers is not None else [])
        merged = config.processor.merge is not None
        hops += [event_building(counters)] if merged else []
        hops += _events(counters, merged=merged, done=done)
        return [*hops, *self._answers(reading)]

    def _interface(self, name: str) -> Hop:
        frames, dropped = (now - then for now, then in zip(received(name), self._before[name], strict=True))
        return Hop(f"interface {name}", frames + dropped, frames, {"interface_dropped": dropped}, "frames")

    def _answers(self, reading: EngineSnapshot | EngineMetrics) -> list[Hop]:
        """Of answers, each to all destinations, or of events sent on. The link is one of its own, or one that receives too."""
        config = self._config
        forwards = config.processor.kind == "forward"
        if not forwards and config.answers is None:
            return []
        via = config.answers.via if config.answers is not None else None
        by_queue = {link.name: link.inputs()[0] for link in config.links}  # of several, the first one sends
        stats = reading["links"][self._inputs.index(by_queue[via]) if via else len(self._inputs)]["stats"]
        counters, copies = reading["counters"], len(config.answers.copies) if config.answers is not None else 0
        return [answers(int(counters["packets_forwarded" if forwards else "answers_sent"]) * (1 + copies), stats)]


class Balance:
    """Looks at the hops while packets flow. Any thread; what is known to be unexplained needs two looks, IN_FLIGHT_S apart."""

    def __init__(self, config: EngineConfig, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._hops = EngineHops(config)
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._looks: deque[tuple[float, dict[str, tuple[int, int]]]] = deque()

    def look(self, reading: EngineSnapshot | EngineMetrics) -> list[HopLook]:
        """A line for each hop; what is named is there with 0 too.

        `unexplained` is what came before the earlier look and is not gone now, or what was gone then and has not come yet.
        """
        hops = self._hops.read(reading)
        with self._lock:
            now_s = self._clock_s()
            self._looks.append((now_s, {hop.name: (hop.entered, hop.gone) for hop in hops}))
            while len(self._looks) > 1 and now_s - self._looks[1][0] >= IN_FLIGHT_S:
                self._looks.popleft()
            then_s, then = self._looks[0]
        old = now_s - then_s >= IN_FLIGHT_S
        none = (0, 0)  # of a hop that was not there yet, as those of units are before the first one
        return [_line(hop, then.get(hop.name, none) if old else None) for hop in hops]

    def end(self, reading: EngineSnapshot | EngineMetrics) -> BalanceSheet:
        """The balance sheet after the engine's end."""
        return sheet(self._hops.read(reading, at_end=True))


def _line(hop: Hop, then: tuple[int, int] | None) -> HopLook:
    unexplained = 0
    if then is not None:
        entered, gone = then
        unexplained = max(0, entered - hop.gone) - max(0, gone - hop.entered)
    return {
        **hop.plain(),
        "named": dict(hop.named),
        "in_flight": max(0, hop.unexplained - max(0, unexplained)),
        "unexplained": unexplained,
    }


def _sum(links: Iterable[LinkReading], stat: str) -> int:
    return sum(int(link["stats"][stat]) for link in links)


def _injected(links: Iterable[LinkReading], *names: str) -> int:
    return sum(int(link["faults"].get(name, 0)) for link in links if link["faults"] for name in names)


def _link(links: Sequence[LinkReading]) -> Hop:
    """What the kernel, the XDP program, DPDK's driver or the reader of a file says came to our links, and what they gave."""
    names = ("kernel_dropped", "foreign", "malformed", "skipped_not_udp", "skipped_port", "skipped_fragment", "skipped_cut")
    named, given = {name: _sum(links, f"rx_{name}") for name in names}, _sum(links, "rx_packets")
    return Hop("link", given + sum(named.values()), given, named)


def _events(counters: Mapping[str, int], *, merged: bool, done: str) -> list[Hop]:
    """Events that were built, or came whole, against those that were answered or sent on. done: the counter of these."""
    closed = sum(int(counters[name]) for name in ("events_complete", "events_missing_parts", "events_overflow"))
    if merged and counters["events_unjudged"]:
        return []  # a GPU that was given up keeps open events, which nothing counts as closed
    names = ["events_discarded", "events_unjudged", *([] if merged else ["events_bad_body"])]
    names += ["events_unsent"] if done == "events_forwarded" else []
    named = {name: int(counters.get(name, 0)) for name in names}
    return [Hop("events", closed if merged else int(counters["events_received"]), int(counters[done]), named, "events")]


def interface_of(link: LinkConfig) -> str | None:
    """The interface that a link receives from; None: any, or none, or loopback, which has no frames of its own."""
    if link.interface is not None or link.scheme not in ("udp", "xdp"):
        return link.interface
    host = link.endpoint.partition("://")[2].rpartition(":")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(one, SIOCGIFADDR, struct.pack("256s", name.encode()))
            except OSError:
                continue  # without an address
            if socket.inet_ntoa(answer[20:24]) == host and not name.startswith("lo"):
                return name
    return None


def received(interface: str) -> tuple[int, int]:
    """(frames received, frames dropped on receiving) of an interface of this network namespace since it is there; 0 while it is not."""
    for line in Path("/proc/thread-self/net/dev").read_text().splitlines():
        name, colon, counts = line.partition(":")
        if colon and name.strip() == interface:
            values = list(map(int, counts.split()))
            return values[1], values[3]
    return 0, 0
