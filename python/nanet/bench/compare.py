# SPDX-License-Identifier: Apache-2.0
"""Links beside each other and beside their peers, over two network namespaces joined by a veth pair: critical rate of each, latency at
stated shares of it, and the balance sheet of every run. docs/design/links-compared.md says how, why, and what the machine distorts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from nanet.bench import alone, arp, hops, links, rate, sockperf, spead2_peer, tables, testpmd, watch
from nanet.bench.latency import MESSAGE_BYTES
from nanet.bench.link_keys import (
    AloneRate,
    ComparedLink,
    ComparisonResult,
    LinkEntry,
    Load,
    LoadRun,
    LongRun,
    Peers,
    RatePeers,
    Ratios,
    Sockperf,
    SockperfTrips,
    Trip,
)
from nanet.bench.links import Variant
from nanet.bench.rate import RateSearch
from nanet.bench.tables import trips
from nanet.config.errors import ConfigError
from nanet.loop.keys import Run, run_of
from nanet.loop.run import Loop, run_loop
from nanet.machine.facts import CorePlan, plan_cores
from nanet.machine.netns import VethPair
from nanet.result import files
from nanet.result.histogram import Histogram
from nanet.result.hops import unexplained_text
from nanet.result.keys.hops import BalanceSheet
from nanet.run.process import EngineError

Say = Callable[[str], None]
Sheet = Callable[[Run, hops.Cable], BalanceSheet]
PROBE_S = 0.2
HALF = 0.5  # the load whose latency stands for a link
ALONE_HIGHER = 3.0  # how much higher the search of a link alone goes
LONG_RUN_MAX_S = 1800.0
KEPT_US = ("min", "p50", "p90", "p99", "p99_9", "p99_99", "max")


@dataclass(frozen=True)
class Comparison:
    """What to compare, and how long. search.loop is what the boards send and the engine does."""

    variants: tuple[Variant, ...] = links.VARIANTS
    every: bool = True  # all were asked for: one that cannot run here is listed, not an error
    search: RateSearch = field(default_factory=RateSearch)
    shares: tuple[float, ...] = (0.1, HALF, 0.9)  # of the critical rate
    repeats: int = 3  # runs at each share
    repeat_s: float = 5.0
    sockperf_s: float = 3.0
    testpmd_s: float = 5.0
    peers: bool = True  # measure them too
    alone: bool = True  # the critical rate of each link without processor and answers too
    long_run_packets: float = 0.0  # of one more run of each link; 0: none
    long_run_share: float = 0.9  # of the critical rate


class Bench:
    """One link on its cable: makes runs, and keeps what their balance sheets say."""

    def __init__(self, variant: Variant, pair: VethPair, cores: CorePlan) -> None:
        self.variant, self.pair, self.cores = variant, pair, cores
        self.notes: list[str] = []
        self.path = ""
        self.boards: links.Boards = "auto"
        self.runs = self.packets = self.unexplained = 0
        self.where: list[str] = []

    def trial(self, loop: Loop) -> tuple[Run, BalanceSheet]:
        """One run, with its balance sheet under `balance`. Raises EngineError and ConfigError."""
        configs = links.configs(self.variant, loop, self.pair, self.cores)
        return self._balanced(loop, lambda: run_of(run_loop(*configs, self.cores, pair=self.pair)), hops.sheet)

    def trial_alone(self, loop: Loop) -> tuple[Run, BalanceSheet]:
        """The same of the link alone: nothing is judged or answered."""
        return self._balanced(loop, functools.partial(alone.run, self.variant, loop, self.pair, self.cores), hops.sheet_alone)

    def _balanced(self, loop: Loop, run: Callable[[], Run], sheet: Sheet) -> tuple[Run, BalanceSheet]:
        ends = (self.pair.boards, self.pair.engine)
        before, told = [end.counts() for end in ends], self.pair.boards.kernel_counts()
        with arp.Counter(self.pair.boards if not self.variant.engine_address else None) as asked:
            result = run()
            after = [end.counts() for end in ends]
            icmp, too_late = (now - then for now, then in zip(self.pair.boards.kernel_counts(), told, strict=True))
            crossed = (after[0] - before[0], after[1] - before[1])
            cable = hops.Cable(*crossed, self.variant.coalesced, asked.count(), icmp, too_late)
        balance = result["balance"] = sheet(result, cable)
        self._book(result, balance, loop)
        return result, balance

    def _book(self, result: Run, balance: BalanceSheet, loop: Loop) -> None:
        engine = result["engine"]
        self.path = engine["links"][0]["path"]
        self.boards = links.boards_of(self.variant, loop)
        self.notes += [note for note in engine["notes"] if note not in self.notes]
        self.runs += 1
        self.packets += int(result["emulator"]["packets_sent"])
        self.unexplained += int(balance["unexplained_packets"])
        if balance["unexplained_packets"]:
            self.where.append(f"at {loop.rate_events_per_s:.0f} events/s: {unexplained_text(balance)}")


def run_rate(comparison: Comparison, say: Say) -> ComparisonResult:
    """The result as `nanet bench rate --link --json` writes it. Raises ConfigError, EngineError, NamespaceError, SockperfError."""
    _check(comparison)
    cores = plan_cores()
    found = [_link(variant, comparison, cores, say, shares=()) for variant in comparison.variants]
    measured = _rate_peers(comparison, cores, say)
    peers: Peers = {"spead2": measured["spead2"], "testpmd": measured["testpmd"]}
    return _result("bench rate --link", comparison, cores, found, peers)


def run_latency(comparison: Comparison, say: Say) -> ComparisonResult:
    """The result as `nanet bench latency --link --json` writes it. Raises as run_rate does."""
    _check(comparison)
    cores = plan_cores()
    before = _sockperf(comparison, cores, say)
    found = [_link(variant, comparison, cores, say, shares=comparison.shares) for variant in comparison.variants]
    after = _sockperf(comparison, cores, say)
    peers: Peers = {"sockperf": joined_sockperf(before, after), **_rate_peers(comparison, cores, say)}
    return _result("bench latency --link", comparison, cores, found, peers)


def _link(variant: Variant, comparison: Comparison, cores: CorePlan, say: Say, *, shares: tuple[float, ...]) -> LinkEntry:
    """Everything of one link; with `reason` where it cannot run here."""
    entry: LinkEntry = {
        "name": variant.name, "what": variant.what, "path": None, "boards": None, "reason": links.missing(variant),
        "critical_rate_events_per_s": None, "critical_rate_packets_per_s": None, "limited_by": None, "latency_us": None,
        "loads": [], "one_in_flight": None, "alone": None, "long_run": None, "steps": [], "runs": 0, "packets_sent": 0, "unexplained_packets": 0, "unexplained_at": [], "notes": [],
    }  # fmt: skip
    if entry["reason"] is None:
        say(f"--- {variant.name}: {variant.what}")
        with variant.pair() as pair:
            bench = Bench(variant, pair, cores)
            entry["reason"] = _probe(bench, comparison)
            if entry["reason"] is None:
                return _measure(bench, comparison, say, shares)
    if not comparison.every:
        raise ConfigError([f"link {variant.name} cannot be compared ({entry['reason']}) leave it out, or use --link all"])
    say(f"--- {variant.name}: left out, {entry['reason']}")
    return entry


def _refusal(variant: Variant, reason: str) -> ConfigError:
    return ConfigError([f"link {variant.name} cannot be compared ({reason}) leave it out, or use --link all"])


def _check(comparison: Comparison) -> None:
    """A link that was named and is not in this build is refused before anything is measured."""
    for variant in comparison.variants:
        reason = links.missing(variant)
        if reason is not None and not comparison.every:
            raise _refusal(variant, reason)


def _probe(bench: Bench, comparison: Comparison) -> str | None:
    """Why the link does not start here; None: it does."""
    search = replace(comparison.search, repeat_s=PROBE_S)
    try:
        bench.trial(rate.loop_at(search.first, search))
    except EngineError as error:
        return f"cannot start here: {error}"
    return None


def _measure(bench: Bench, comparison: Comparison, say: Say, shares: tuple[float, ...]) -> LinkEntry:
    search = comparison.search
    found = rate.find(search, lambda at: bench.trial(rate.loop_at(at, search))[0], say)
    critical = float(found["critical_rate_events_per_s"])
    loads = [_load(bench, comparison, share, share * critical, say) for share in shares] if critical else []
    single = None
    if critical and shares:
        single = _load(bench, comparison, HALF, HALF * critical, say, in_flight=1)
    half = [load for load in loads if load["share"] == HALF] or loads
    at_critical = [step["latency_us"] for step in found["steps"] if step["rate_events_per_s"] == critical]
    return {
        "name": bench.variant.name,
        "what": bench.variant.what,
        "path": bench.path,
        "boards": bench.boards,
        "reason": None,
        "critical_rate_events_per_s": found["critical_rate_events_per_s"],
        "critical_rate_packets_per_s": critical / search.loop.events_per_packet * search.loop.boards,
        "limited_by": found["limited_by"],
        "latency_us": half[0]["latency_us"] if half else at_critical[0] if at_critical else None,
        "loads": loads,
        "one_in_flight": single,
        "alone": _alone(bench, search, say) if comparison.alone and not shares else None,
        "long_run": _long_run(bench, comparison, critical, say) if comparison.long_run_packets and critical else None,
        "steps": found["steps"],
        "runs": bench.runs,
        "packets_sent": bench.packets,
        "unexplained_packets": bench.unexplained,
        "unexplained_at": bench.where,
        "notes": bench.notes,
    }


def _alone(bench: Bench, search: RateSearch, say: Say) -> AloneRate:
    """The critical rate of the link without processor and answers."""
    search = replace(search, highest=ALONE_HIGHER * search.highest)
    found = rate.find(search, lambda at: bench.trial_alone(rate.loop_at(at, search))[0], lambda line: say(f"{line}  (link alone)"))
    packets = float(found["critical_rate_events_per_s"]) / search.loop.events_per_packet * search.loop.boards
    return {"critical_rate_packets_per_s": packets, "limited_by": found["limited_by"], "steps": found["steps"]}


def _long_run(bench: Bench, comparison: Comparison, critical: float, say: Say) -> LongRun:
    """One run of many packets at a share of the critical rate, with the names of what was lost and what the machine did meanwhile."""
    loop, events_per_s = comparison.search.loop, comparison.long_run_share * critical
    packets_per_s = events_per_s / loop.events_per_packet * loop.boards
    duration_s = min(LONG_RUN_MAX_S, comparison.long_run_packets / packets_per_s)
    say(f"{events_per_s / 1e6:8.3f} Mevent/s  long run of {duration_s:,.0f} s")
    with watch.Watcher(watch.spare_core(bench.cores)) as watcher:
        result, balance = bench.trial(rate.loop_at(events_per_s, replace(comparison.search, repeat_s=duration_s)))
        seen = watcher.stop()
    emulator, link = result["emulator"], result["engine"]["links"][0]["stats"]
    run: LongRun = {
        "share": comparison.long_run_share, "rate_events_per_s": events_per_s, "duration_s": emulator["elapsed_s"],
        "packets": int(emulator["packets_sent"]), "sent": result["sent"], "lost": result["lost"], "losses": result["losses"],
        "mistakes": result["mistakes"], "kernel_dropped": link["rx_kernel_dropped"], "latency_us": result["latency_us"],
        "failure": rate.failure_of(result, events_per_s), "stalls": emulator["stalls"],
        "engine_core_wait_s": result["engine"]["core_wait_s"], "watcher": seen, "balance": balance,
    }  # fmt: skip
    for line in tables.long_run_lines(bench.variant.name, run):
        say(line)
    return run


def _load(bench: Bench, comparison: Comparison, share: float, events_per_s: float, say: Say, *, in_flight: int = 0) -> Load:
    """The runs at one share of the critical rate, together. in_flight: most packets in flight, 0: as many as there are."""
    loop = rate.loop_at(events_per_s, replace(comparison.search, repeat_s=comparison.repeat_s))
    loop = replace(loop, in_flight_packets_max=in_flight)
    whole, clean = Histogram(), Histogram()
    runs: list[LoadRun] = []
    for _ in range(comparison.repeats):
        with watch.Watcher(watch.spare_core(bench.cores)) as watcher:
            result, balance = bench.trial(loop)
            seen = watcher.stop()
        emulator = result["emulator"]
        whole += Histogram.decode(emulator["latency_histogram"], emulator["latency_us"])
        clean += Histogram.decode(emulator["latency_clean_histogram"], emulator["latency_clean_us"])
        runs.append({
            "sent": result["sent"], "lost": result["lost"], "losses": result["losses"], "mistakes": result["mistakes"],
            "latency_us": result["latency_us"], "latency_clean_us": emulator["latency_clean_us"],
            "send_lateness_us": emulator["send_lateness_us"], "stalls": emulator["stalls"],
            "engine_core_wait_s": result["engine"]["core_wait_s"], "watcher": seen, "balance": balance,
        })  # fmt: skip
    latency = whole.summary_us() if whole.count else None
    lost = sum(run["lost"] for run in runs)
    tail = f"p50 {latency['p50']:.1f}  p99.9 {latency['p99_9']:.1f}  max {latency['max']:.0f} us" if latency else "nothing answered"
    load_text = f"{share * 100:.0f} % load" if not in_flight else "one packet in flight"
    say(f"{events_per_s / 1e6:8.3f} Mevent/s  {load_text}: {tail}; lost {lost:,}")
    return {
        "share": share,
        "rate_events_per_s": events_per_s,
        "latency_us": latency,
        "latency_clean_us": clean.summary_us() if clean.count else None,
        "latency_histogram": whole.encode() if whole.count else None,
        "sent": sum(run["sent"] for run in runs),
        "lost": lost,
        "longest_stall_us": max(run["stalls"]["longest_us"] for run in runs),
        "engine_core_wait_s": sum(run["engine_core_wait_s"] for run in runs),
        "runs": runs,
    }


def _sockperf(comparison: Comparison, cores: CorePlan, say: Say) -> SockperfTrips:
    """Round trips over the cable, both sides spinning and both blocking; null where sockperf is not installed."""
    found: SockperfTrips = {"spinning_us": None, "blocking_us": None, "problems": []}
    if not comparison.peers or not sockperf.available():
        return found
    with VethPair() as pair:
        keys: dict[Literal["spinning", "blocking"], Literal["spinning_us", "blocking_us"]]
        keys = {"spinning": "spinning_us", "blocking": "blocking_us"}
        for waiting, key in keys.items():
            try:
                latency = sockperf.ping_pong(
                    cores, message_bytes=MESSAGE_BYTES, duration_s=comparison.sockperf_s, pair=pair, waiting=waiting
                ).latency_us
            except sockperf.SockperfError as error:  # on a busy machine it may find no time; that must not cost the other figures
                found["problems"].append(f"{waiting}: {error}")
                say(f"sockperf, {waiting}: {error}")
                continue
            found[key] = latency
            say(f"sockperf, {waiting}: p50 {latency['p50']:.1f}  p99.9 {latency['p99_9']:.1f} us")
    return found


def joined_sockperf(before: SockperfTrips, after: SockperfTrips) -> Sockperf:
    """What stands under `peers.sockperf`: means of before and after, the lower min and the higher max; one alone where the other failed."""
    return {
        "version": sockperf.version(),
        "install": sockperf.INSTALL,
        "message_bytes": MESSAGE_BYTES,
        "spinning_us": _mean(before["spinning_us"], after["spinning_us"]),
        "blocking_us": _mean(before["blocking_us"], after["blocking_us"]),
        "before": before,
        "after": after,
        "problems": [*before["problems"], *after["problems"]],
    }


def _mean(before: Trip | None, after: Trip | None) -> Trip | None:
    one, two = before or after, after or before
    if not one or not two:
        return None
    mean = {name: round((one[name] + two[name]) / 2, 3) for name in KEPT_US if name in one and name in two}
    return mean | {"min": min(one["min"], two["min"]), "max": max(one["max"], two["max"])}


def _rate_peers(comparison: Comparison, cores: CorePlan, say: Say) -> RatePeers:
    frame_bytes = MESSAGE_BYTES + hops.HEADER_BYTES
    if not comparison.peers:
        return {"spead2": spead2_peer.without_figures(MESSAGE_BYTES), "testpmd": testpmd.without_figures(frame_bytes)}
    with VethPair() as pair:
        spead2 = spead2_peer.measure(pair, cores, packet_bytes=MESSAGE_BYTES, search=comparison.search, say=say)
    forwarded = testpmd.measure(cores, frame_bytes=frame_bytes, duration_s=comparison.testpmd_s)
    for driver, figure in testpmd.figures(forwarded).items():
        if figure:
            say(f"{figure / 1e3:8.1f} kpacket/s  testpmd, {driver}")
    return {"spead2": spead2, "testpmd": forwarded}


def _result(command: str, comparison: Comparison, cores: CorePlan, found: list[LinkEntry], peers: Peers) -> ComparisonResult:
    loop = comparison.search.loop
    notes = [cores.note] if cores.note else []
    if command.startswith("bench latency") and watch.spare_core(cores) is None:
        notes.append("no watcher of the machine's pauses (no core to spare) the emulator's own stalls and core_wait_s have to do")
    compared: list[ComparedLink] = [{**link, **ratios(link, peers)} for link in found]
    return {
        **files.base(command),
        "boards": loop.boards,
        "layout": loop.layout,
        "burst_packets": loop.burst_packets,
        "events_per_packet": loop.events_per_packet,
        "message_bytes": MESSAGE_BYTES,
        "budget_us": loop.budget_us,
        "repeats": comparison.search.repeats,
        "repeat_s": comparison.search.repeat_s,
        "links": compared,
        "peers": peers,
        "unexplained_packets": sum(link["unexplained_packets"] for link in found),
        "unexplained_at": [f"{link['name']} {where}" for link in found for where in link["unexplained_at"]],
        "notes": notes + [f"{link['name']}: {note}" for link in found for note in link["notes"]],
    }  # fmt: skip


def ratios(link: LinkEntry, peers: Peers) -> Ratios:
    """How a link stands to the peers; null where either has no figure."""
    packets = link["critical_rate_packets_per_s"]
    spead2 = peers["spead2"]["critical_rate_packets_per_s"]
    forwarded = max(figure or 0.0 for figure in testpmd.figures(peers["testpmd"]).values())
    trip = peers["sockperf"]["spinning_us"] if "sockperf" in peers else None
    latency = link["latency_us"] if link["loads"] else None
    received = link["alone"]["critical_rate_packets_per_s"] if link["alone"] else None
    single = link["one_in_flight"]["latency_us"] if link["one_in_flight"] else None
    return {
        "ratio_to_spead2": _ratio(packets, spead2),
        "ratio_to_testpmd": _ratio(packets, forwarded),
        "alone_ratio_to_spead2": _ratio(received, spead2),
        "alone_ratio_to_testpmd": _ratio(received, forwarded),
        "one_in_flight_p50_above_sockperf_us": round(single["p50"] - trip["p50"], 3) if single and trip else None,
        "one_in_flight_p99_9_ratio_to_sockperf": _ratio(single["p99_9"], trip["p99_9"]) if single and trip else None,
        "p50_above_sockperf_us": round(latency["p50"] - trip["p50"], 3) if latency and trip else None,
        "p99_9_ratio_to_sockperf": round(latency["p99_9"] / trip["p99_9"], 3) if latency and trip else None,
    }


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return round(ours / theirs, 3) if ours and theirs else None


def kept(result: ComparisonResult) -> bool:
    """Nothing unexplained, every link that ran had a critical rate, and nothing was lost at the loads below it or in a long run."""
    ran = [link for link in result["links"] if link["reason"] is None]
    lossless = all(link["critical_rate_events_per_s"] and not any(load["lost"] for load in link["loads"]) for link in ran)
    lossless = lossless and not any(link["long_run"] and link["long_run"]["lost"] for link in ran)
    return bool(ran) and lossless and result["unexplained_packets"] == 0


def csv_rows(result: ComparisonResult) -> list[tuple[str, str, float, str]]:
    """Rows for the CSV."""
    rows: list[tuple[str, str, float, str]] = []
    for link in result["links"]:
        if link["reason"] is not None:
            continue
        name = link["name"]
        rows.append((name, "critical_rate", float(link["critical_rate_events_per_s"] or 0.0), "events/s"))
        rows.append((name, "critical_rate_packets", float(link["critical_rate_packets_per_s"] or 0.0), "packets/s"))
        rows.append((name, "unexplained", float(link["unexplained_packets"]), "packets"))
        if link["alone"]:
            rows.append((name, "alone_critical_rate_packets", float(link["alone"]["critical_rate_packets_per_s"]), "packets/s"))
        of_link = {
            "ratio_to_spead2": link["ratio_to_spead2"],
            "alone_ratio_to_spead2": link["alone_ratio_to_spead2"],
            "ratio_to_testpmd": link["ratio_to_testpmd"],
            "alone_ratio_to_testpmd": link["alone_ratio_to_testpmd"],
        }
        rows += [(name, key, float(ratio), "1") for key, ratio in of_link.items() if ratio is not None]
        if long_run := link["long_run"]:
            case = f"{name}@{long_run['share'] * 100:.0f}%-long"
            rows += [
                (case, "packets", float(long_run["packets"]), "packets"),
                (case, "lost", float(long_run["lost"]), "events"),
                (case, "kernel_dropped", float(long_run["kernel_dropped"]), "packets"),
                (case, "engine_core_wait_s", float(long_run["engine_core_wait_s"]), "s"),
            ]
        named = [(f"{name}@{load['share'] * 100:.0f}%", load) for load in link["loads"]]
        for case, load in [*named, *([(f"{name}@1-in-flight", link["one_in_flight"])] if link["one_in_flight"] else [])]:
            rows.append((case, "rate", float(load["rate_events_per_s"]), "events/s"))
            rows.append((case, "lost", float(load["lost"]), "events"))
            rows.append((case, "longest_stall", float(load["longest_stall_us"]), "us"))
            for short, latency in (("latency", load["latency_us"]), ("latency_clean", load["latency_clean_us"])):
                rows += [(case, f"{short}_{p}", float(latency[p]), "us") for p in KEPT_US if latency]
    return rows + _peer_rows(result["peers"])


def _peer_rows(peers: Peers) -> list[tuple[str, str, float, str]]:
    rows: list[tuple[str, str, float, str]] = []
    for waiting, trip in trips(peers).items():
        rows += [(f"sockperf-{waiting}", f"latency_{name}", float(value), "us") for name, value in trip.items()]
    if peers["spead2"]["critical_rate_packets_per_s"] is not None:
        rows.append(("spead2", "critical_rate_packets", float(peers["spead2"]["critical_rate_packets_per_s"]), "packets/s"))
    for driver, figure in testpmd.figures(peers["testpmd"]).items():
        if figure is not None:
            rows.append((f"testpmd-{driver}", "forwarded_packets", float(figure), "packets/s"))
    return rows
