# SPDX-License-Identifier: Apache-2.0
"""An engine's counters for Prometheus: read when they are asked for, by a custom collector, and kept nowhere.

Names are `nanet_COUNTER_total`, with name, unit and help of the native table of counters. Where docs/design/books.md has each packet, part or
event in exactly one of several counters, these are one family with the label `reason`: their sum is the sum of the book. Labels `link` and
`source` are there for what is counted by link and source; `source` is empty for packets that cannot be put down to one.

A packet that was counted as lost and comes after all is lost no more. So nanet_packets_lost and nanet_events_lost can fall, and are gauges: of a
counter that falls, Prometheus would believe that the program was started again, and add its whole value once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from nanet.config.engine import EngineConfig
from nanet.result.channels import STATES, hits_of_pms, state_lists
from nanet.result.hops import Balance
from nanet.result.keys.engine import EngineMetrics, LinkMetrics, NativeChannels, ResidenceCounts
from nanet.result.keys.hops import HopLook

BOUNDS_US = (
    2, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 1_000_000,
)  # fmt: skip
"""Upper bounds of the histogram's buckets [us]; fixed, so that histograms of several nodes and runs can be added."""
BOUNDS_NS = [1000 * bound for bound in BOUNDS_US]
NIC_BOUNDS_CYCLES = tuple(2**bits - 1 for bits in range(3, 13))
"""Of a NIC's own histograms: where bins of the gateware's NIC end, so that nothing is put down wrongly."""


class Group(NamedTuple):
    """Counters of one book that exclude each other: one family, a reason each."""

    family: str
    help: str
    reasons: Mapping[str, str]  # counter -> reason


GROUPS = (
    Group("packets_lost", "packets that a source sent and the processor did not get", {
        "packets_lost_kernel": "kernel", "packets_lost_network": "network", "packets_clop_full": "clop_full",
    }),
    Group("packets_refused", "packets that arrived and were refused; one that a source sent is in nanet_packets_lost too", {
        "packets_duplicate": "duplicate", "packets_late": "late", "packets_bad_length": "bad_length", "packets_bad_format": "bad_format",
        "packets_bad_checksum": "bad_checksum", "packets_truncated": "truncated", "packets_unknown_source": "unknown_source",
        "packets_unknown_sender": "unknown_sender", "packets_wrong_queue": "wrong_queue", "packets_overlap": "overlap", "packets_bad_place": "bad_place",
        "packets_bad_unit": "bad_unit", "packets_unit_too_long": "unit_too_long", "packets_no_stream": "no_stream",
        "packets_scattered": "scattered", "packets_unknown_stream": "unknown_stream",
    }),
    Group("units_closed", "units that were put together, complete or closed with a hole", {
        "units_complete": "complete", "units_timed_out": "timed_out", "units_overflow": "overflow", "units_flushed": "flushed",
    }),
    Group("parts_refused", "parts of events that were received and not merged", {
        "parts_late": "late", "parts_duplicate": "duplicate", "parts_no_room": "no_room", "parts_unjudged": "unjudged",
    }),
    Group("events_incomplete", "events that were closed with a part missing", {
        "events_missing_parts": "missing_parts", "events_overflow": "overflow",
    }),
    Group("events_unanswered", "events that were not answered, apart from those in nanet_events_lost", {
        "events_discarded": "discarded", "events_unjudged": "unjudged", "events_unseen": "unseen",
    }),
)  # fmt: skip
OF_SOURCES = frozenset({
    "packets_accepted", "bytes_accepted", "events_received", "packets_lost_kernel", "packets_lost_network", "events_lost",
    "packets_reordered", "packets_duplicate", "packets_late", "packets_clop_full", "packets_marker", "source_restarts",
    "packets_overlap", "packets_bad_place", "packets_bad_unit", "packets_unit_too_long", "packets_no_stream", "packets_scattered",
    "units_begun", "units_complete", "units_timed_out", "units_overflow", "units_flushed", "units_handed_over", "units_discarded",
    "units_no_buffer", "units_lost", "streams_evicted", "resends_asked", "resends_came", "resends_not_came", "resend_requests",
})  # fmt: skip
OF_LINKS = frozenset({
    "packets_bad_length", "packets_bad_format", "packets_bad_checksum", "packets_truncated", "packets_unknown_source",
    "packets_unknown_sender", "packets_wrong_queue", "packets_unknown_stream",
})  # fmt: skip
"""All other counters are those of the engine as a whole."""
FALLING = frozenset({"packets_lost_kernel", "packets_lost_network", "events_lost", "units_lost"})

STATS_HELP = {
    "rx_packets": "packets taken from the link",
    "rx_bytes": "payload bytes of these",
    "rx_calls": "receive calls",
    "rx_batches": "receive calls that returned packets",
    "rx_copied_bytes": "bytes that had to be moved again after the kernel wrote them",
    "rx_kernel_dropped": "datagrams that the kernel or the NIC says it dropped; a coalesced one counts as one",
    "rx_dropped_unseen": "of rx_kernel_dropped, those since the newest packet came: no sequence number tells of them yet",
    "rx_truncated": "packets longer than their slot",
    "rx_errors": "receive calls that failed",
    "rx_foreign": "frames that reached the link but are not for its address and port",
    "rx_malformed": "frames for its port whose lengths contradict each other",
    "rx_skipped_not_udp": "records of a file that are not UDP over IP",
    "rx_skipped_port": "packets of a file to another port than the one that is played",
    "rx_skipped_fragment": "records of a file that are fragments of packets",
    "rx_skipped_cut": "records of a file that are not whole, or whose lengths contradict each other",
    "rx_bytes_damaged": "bytes at the end of a file where no whole record is",
    "recorded": "packets written to the recording",
    "unrecorded": "packets that went through the link and not into the recording: it is full, or the disk is",
    "tx_packets": "packets sent",
    "tx_bytes": "payload bytes of these",
    "tx_calls": "send calls",
    "tx_refused": "packets that the receiver's machine refused: no one listens there",
    "tx_dropped": "packets that could not be sent",
}


ODD_CHANNELS_MAX = 32
"""Most series of channels of one state."""


class Readable(Protocol):
    """The part of nanet._core.Engine that is read here."""

    def metrics(self, bounds_ns: list[int]) -> EngineMetrics: ...


class Healthy(Protocol):
    """Says what is wrong, as nanet.metrics.health.Health does."""

    def look(self, now: EngineMetrics) -> list[str]: ...


class EngineCollector(Collector):
    """Reads the engine once a scrape. Any thread; scrapes of several threads do not disturb each other."""

    def __init__(self, engine: Readable, config: EngineConfig, health: Healthy) -> None:
        self._engine = engine
        self._config = config
        self._health = health
        self._balance = Balance(config)

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not read an engine that does not run yet."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All families, from one reading."""
        now = self._engine.metrics(BOUNDS_NS)
        yield from _state(now, self._config, self._health.look(now))
        yield from _counters(now)
        yield from _links(now["links"])
        yield from _nics(now["links"])
        if self._config.processor.kind == "rich":
            yield from _channels(now["channels"])
        yield from _hops(self._balance.look(now))
        yield _residence(now["latency_ns"])


def make_registry(engine: Readable, config: EngineConfig, health: Healthy) -> CollectorRegistry:
    """The registry that a scrape reads: the engine, and process_* (memory, descriptors, CPU time)."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EngineCollector(engine, config, health))
    ProcessCollector(registry=registry)
    return registry


class Place(NamedTuple):
    """Where a counter is found: the name of its samples, and its reason, None where the family is its own."""

    sample: str
    reason: str | None


def counter_places(table: Iterable[tuple[str, str, str]]) -> dict[str, Place]:
    """Counter -> where it is found, in the table's order."""
    grouped = {counter: (group, reason) for group in GROUPS for counter, reason in group.reasons.items()}
    places = {}
    for name, _, _ in table:
        group, reason = grouped.get(name, (None, None))
        falls = not FALLING.isdisjoint(group.reasons if group else {name})
        places[name] = Place(f"nanet_{group.family if group else name}{'' if falls else '_total'}", reason)
    return places


def _counters(now: EngineMetrics) -> Iterator[Metric]:
    """One family a counter or group, in the table's order. A counter without a known place is given in total."""
    from nanet import _core

    table = _core.counter_table()
    help_of = {name: f"{text} [{unit}]" for name, unit, text in table}
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for counter, (sample, reason) in counter_places(table).items():
        if sample not in families:
            labels = [*(("link", "source") if counter in OF_SOURCES | OF_LINKS else ()), *(["reason"] if reason else [])]
            text = next((_group_help(group, help_of) for group in GROUPS if counter in group.reasons), help_of[counter])
            kind = CounterMetricFamily if sample.endswith("_total") else GaugeMetricFamily
            families[sample] = kind(sample, text, labels=labels)
        for place, count in _values(counter, now):
            families[sample].add_metric([*place, *([reason] if reason else [])], count)
    yield from families.values()


def _group_help(group: Group, help_of: Mapping[str, str]) -> str:
    return f"{group.help}. " + "; ".join(f"{reason}: {help_of[counter]}" for counter, reason in group.reasons.items())


def _values(counter: str, now: EngineMetrics) -> Iterator[tuple[list[str], int]]:
    """Label values of link and source, with the count there."""
    if counter in OF_SOURCES:
        for link in now["links"]:
            for source in link["sources"]:
                yield [link["name"], source["name"]], source["counters"][counter]
    elif counter in OF_LINKS:
        for link in now["links"]:
            if link["counters"] is not None:
                yield [link["name"], ""], link["counters"][counter]
    else:
        yield [], now["counters"][counter]


def _links(links: Sequence[LinkMetrics]) -> Iterator[Metric]:
    families: dict[str, CounterMetricFamily] = {}
    for link in links:
        for stat, count in link["stats"].items():
            if stat not in families:
                text = STATS_HELP.get(stat, f"{stat} of the link's statistics")
                families[stat] = CounterMetricFamily(f"nanet_link_{stat}", text, labels=["link"])
            families[stat].add_metric([link["name"]], count)
    yield from families.values()
    faults = CounterMetricFamily(
        "nanet_injected_faults", "packets by what the fault injector did to them, including those that it let pass", labels=["link", "reason"]
    )  # fmt: skip
    held = GaugeMetricFamily("nanet_injector_held", "packets that the fault injector holds back now", labels=["link"])
    for link in links:
        for name, count in (link["faults"] or {}).items():
            if name == "held":
                held.add_metric([link["name"]], count)
            else:
                faults.add_metric([link["name"], name], count)
    yield faults
    yield held


def _nics(links: Sequence[LinkMetrics]) -> Iterator[Metric]:
    """What NICs say of themselves: their counters, and times in the cycles of their own clocks; nothing without such a link."""
    counted = CounterMetricFamily(
        "nanet_nic_counts", "what a node counts itself, by group and name; port: empty where it is of the whole node",
        labels=["link", "port", "group", "counter"],
    )  # fmt: skip
    state = GaugeMetricFamily("nanet_nic_link_state", "how the link of a floor is now", labels=["link", "port", "state"])
    for reading in links:
        for group in reading["nic_counts"]:
            port = "" if group["port"] is None else str(group["port"])
            for name, count in group["counts"].items():
                if group["name"] == "link_state":
                    state.add_metric([reading["name"], port, name], count)
                elif name != "held":  # goes up and down
                    counted.add_metric([reading["name"], port, group["name"], name], count)
    if counted.samples:
        yield counted
    if state.samples:
        yield state
    timed = [(link["name"], times) for link in links if (times := link["nic_times"]) is not None]
    if not timed:
        return
    cycle = GaugeMetricFamily("nanet_nic_cycle_seconds", "a cycle of the NIC's own clock", labels=["link", "clock"])
    stages = HistogramMetricFamily(
        "nanet_nic_stage_cycles", "how long stages of the packets' path through the NIC took, by the NIC's own clock [cycles]", labels=["link", "stage"]
    )  # fmt: skip
    for link, times in timed:
        cycle.add_metric([link, times["clock"]], times["cycle_ns"] / 1e9)
        for stage in times["stages"]:
            ended = [(bin_["to_cycles"], bin_["count"]) for bin_ in stage["bins"] if bin_["to_cycles"] is not None]
            buckets = [(str(bound), float(sum(count for to, count in ended if to <= bound))) for bound in NIC_BOUNDS_CYCLES]
            stages.add_metric(
                [link, stage["name"]],
                buckets=[*buckets, ("+Inf", float(stage["count"]))],
                sum_value=float(stage["sum_cycles"]),
            )
    yield cycle
    yield stages


def _channels(channels: NativeChannels) -> Iterator[Metric]:
    """A summary, and a series only for each channel with something wrong: /channels has all of them."""
    lists = state_lists(channels)
    counts = GaugeMetricFamily(
        "nanet_channels", "photomultipliers that fire too often (hot) or hardly ever (dead), and those whose hits are left out (masked)",
        labels=["state"],
    )  # fmt: skip
    for state in STATES:
        counts.add_metric([state], len(lists[state]))
    yield counts
    hits = GaugeMetricFamily(
        "nanet_channel_hits",
        "hits of a photomultiplier since the start: 0 the fewest, 0.5 the median, 1 the most",
        labels=["quantile"],
    )
    ordered = sorted(int(n) for n in hits_of_pms(channels))
    for text, share in (("0", 0.0), ("0.01", 0.01), ("0.5", 0.5), ("0.99", 0.99), ("1", 1.0)):
        hits.add_metric([text], ordered[round(share * (len(ordered) - 1))])
    yield hits
    odd = GaugeMetricFamily(
        "nanet_odd_channel_hits", f"hits since the start of the first {ODD_CHANNELS_MAX} channels of each state of nanet_channels",
        labels=["channel", "state"],
    )  # fmt: skip
    for state in STATES:
        for channel in lists[state][:ODD_CHANNELS_MAX]:
            odd.add_metric([str(channel), state], int(channels["hits"][channel]))
    yield odd


def _hops(lines: Iterable[HopLook]) -> Iterator[Metric]:
    """The balance sheet as of now. Gauges: what was named as lost can come after all."""
    texts: dict[Literal["in", "out", "in_flight", "unexplained"], str] = {
        "in": "what arrived at this hop", "out": "what left it", "in_flight": "what is in flight in this hop",
        "unexplained": "what arrived at this hop some seconds ago, did not leave and has no name; negative: left but never arrived",
    }  # fmt: skip
    families = {key: GaugeMetricFamily(f"nanet_hop_{key}", text, labels=["hop", "unit"]) for key, text in texts.items()}
    named = GaugeMetricFamily(
        "nanet_hop_named", "what arrived at this hop and did not leave it, by name", labels=["hop", "unit", "reason"]
    )
    for line in lines:
        for key, family in families.items():
            family.add_metric([line["hop"], line["unit"]], line[key])
        for reason, count in line["named"].items():
            named.add_metric([line["hop"], line["unit"], reason], count)
    yield from families.values()
    yield named


def _residence(latency: ResidenceCounts) -> Metric:
    buckets = [(repr(bound / 1e6), float(count)) for bound, count in zip(BOUNDS_US, latency["counts"], strict=True)]
    return HistogramMetricFamily(
        "nanet_residence_seconds", "from the arrival of the packets that an answer packet is for to its handing to the kernel, one entry per packet",
        buckets=[*buckets, ("+Inf", float(latency["count"]))], sum_value=latency["sum_ns"] / 1e9,
    )  # fmt: skip


def _state(now: EngineMetrics, config: EngineConfig, reasons: list[str]) -> Iterator[Metric]:
    from nanet import _core

    build = _core.build_info()
    back_ends = ",".join(name for name, there in build["back_ends"].items() if there)
    yield InfoMetricFamily(
        "nanet_build", "the package",
        {"version": build["version"], "compiler": build["compiler"], "simd": build["simd"], "back_ends": back_ends},
    )  # fmt: skip
    yield InfoMetricFamily(
        "nanet_engine", "the engine's configuration",
        {"name": config.name, "topology": config.topology, "processor": config.processor.kind, "place": config.processor.place()},
    )  # fmt: skip
    yield GaugeMetricFamily("nanet_uptime_seconds", "since the engine's start; it stops at its end", value=now["elapsed_s"])
    yield GaugeMetricFamily("nanet_running", "1 while the engine runs", value=float(now["running"]))
    yield GaugeMetricFamily("nanet_healthy", "1 while /health reports no problem", value=float(not reasons))
    yield GaugeMetricFamily("nanet_gpus_given_up", "GPUs that were given up", value=len(now["faults"]))
