# SPDX-License-Identifier: Apache-2.0
"""The comparison of links as a table of text, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from nanet.bench.link_keys import ComparisonResult, LongRun, Peers, Sockperf, Spead2, Testpmd, Trip
from nanet.bench.testpmd import figures

WIDTH = 100
NAMES = (("min", "min"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99_9", "p99.9"), ("p99_99", "p99.99"), ("max", "max"))


def latency_table(result: ComparisonResult) -> list[str]:
    """A line for each link and load, then the peers; microseconds."""
    head = ["link", "load", "Mevent/s", *(shown for _, shown in NAMES), "lost"]
    rows: list[list[str]] = []
    for link in result["links"]:
        for load in link["loads"]:
            name = link["name"] if load is link["loads"][0] else ""
            share, rate = f"{load['share'] * 100:.0f} %", f"{load['rate_events_per_s'] / 1e6:.2f}"
            rows.append([name, share, rate, *_times(load["latency_us"]), f"{load['lost']:,}"])
        if link["one_in_flight"]:
            rows.append(["", "1 out", "", *_times(link["one_in_flight"]["latency_us"]), f"{link['one_in_flight']['lost']:,}"])
    for waiting, trip in trips(result["peers"]).items():
        rows.append([f"sockperf {waiting}", "1 out", "", *_times(trip), ""])
    return [*_aligned(head, rows), *_left_out(result), *_sums(result)]


def rate_table(result: ComparisonResult) -> list[str]:
    """A line for each link, then the peers."""
    head = ["link", "Mevent/s", "kpacket/s", "limited by", "p50 us", "p99.9 us", "x spead2", "x testpmd"]
    alone: list[list[str]] = []
    rows: list[list[str]] = []
    for link in result["links"]:
        if link["reason"] is not None:
            continue
        latency = link["latency_us"] or {}
        rows.append([
            link["name"], rate_text(link["critical_rate_events_per_s"] or 0.0), f"{(link['critical_rate_packets_per_s'] or 0.0) / 1e3:.0f}",
            link["limited_by"] or "", _us(latency.get("p50")), _us(latency.get("p99_9")), _ratio(link["ratio_to_spead2"]),
            _ratio(link["ratio_to_testpmd"]),
        ])  # fmt: skip
        if link["alone"]:
            alone.append([
                f"{link['name']} alone", "", f"{link['alone']['critical_rate_packets_per_s'] / 1e3:.0f}", link["alone"]["limited_by"], "", "",
                _ratio(link["alone_ratio_to_spead2"]), _ratio(link["alone_ratio_to_testpmd"]),
            ])  # fmt: skip
    rows += alone
    rows += [[name, "", f"{rate / 1e3:.0f}", limit, "", "", "", ""] for name, rate, limit in peer_rates(result["peers"])]
    return [*_aligned(head, rows), *_left_out(result), *_sums(result)]


def rate_text(events_per_s: float) -> str:
    """Millions of events a second, or that there is no such rate."""
    return f"{events_per_s / 1e6:.2f}" if events_per_s else "none"


def trips(peers: Peers) -> dict[str, Trip]:
    """sockperf's round trips by how it waited; only what was measured."""
    if "sockperf" not in peers:
        return {}
    found = {"spinning": peers["sockperf"]["spinning_us"], "blocking": peers["sockperf"]["blocking_us"]}
    return {waiting: trip for waiting, trip in found.items() if trip}


def peer_rates(peers: Peers) -> list[tuple[str, float, str]]:
    """Name, packets a second and limit of each peer that has a rate."""
    found: list[tuple[str, float, str]] = []
    if peers["spead2"]["critical_rate_packets_per_s"]:
        found.append(("spead2", float(peers["spead2"]["critical_rate_packets_per_s"]), str(peers["spead2"]["limited_by"])))
    for driver, figure in figures(peers["testpmd"]).items():
        if figure:
            found.append((f"testpmd {driver}", float(figure), "forwards"))
    return found


def long_run_lines(name: str, run: LongRun) -> list[str]:
    """What a long run says: packets, losses by name, what the machine did meanwhile, and the balance sheet."""
    losses = ", ".join(f"{key} {count:,}" for key, count in run["losses"].items() if count) or "nothing"
    stalls = run["stalls"]
    lines = [
        f"{name}: {run['packets']:,} packets in {run['duration_s']:,.1f} s at {run['share'] * 100:.0f} % of its critical rate; lost {losses}",
        f"the machine meanwhile: emulator stopped {stalls['count']:,} times, {stalls['total_us'] / 1e3:,.0f} ms in all, at most"
        f" {stalls['longest_us'] / 1e3:,.1f} ms; the engine waited {run['engine_core_wait_s'] * 1e3:,.0f} ms for its core",
    ]
    if run["watcher"]:
        seen = run["watcher"]
        lines.append(f"watcher on a core of its own: {seen['count']:,} pauses, at most {seen['longest_us'] / 1e3:,.1f} ms")
    head = ["hop", "in", "out", "named", "unexplained"]
    rows = [
        [
            hop["hop"], f"{hop['in']:,}", f"{hop['out']:,}", ", ".join(f"{key} {count:,}" for key, count in hop["named"].items()) or "-",
            f"{hop['unexplained']:,}",
        ]
        for hop in run["balance"]["hops"]
    ]  # fmt: skip
    return [*_wrapped(lines), *_aligned(head, rows)]


def _left_out(result: ComparisonResult) -> list[str]:
    lines = [f"{link['name']}: {link['reason']}" for link in result["links"] if link["reason"] is not None]
    peers = result["peers"]
    named: dict[str, Sockperf | Spead2 | Testpmd] = {"sockperf": peers["sockperf"]} if "sockperf" in peers else {}
    for name, peer in (named | {"spead2": peers["spead2"], "testpmd": peers["testpmd"]}).items():
        if peer["version"] is None:
            lines.append(f"{name}: absent; {peer['install']}")
        lines += [f"{name}: {problem}" for problem in peer["problems"]]
    return _wrapped(lines)


def _sums(result: ComparisonResult) -> list[str]:
    runs = sum(link["runs"] for link in result["links"])
    packets = sum(link["packets_sent"] for link in result["links"])
    lines = [f"unexplained packets: {result['unexplained_packets']:,} of {packets:,} in {runs} runs"]
    return lines + _wrapped([f"  {where}" for where in result["unexplained_at"]])


def _wrapped(lines: Sequence[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="    ")]


def _times(latency: Mapping[str, float] | None) -> list[str]:
    return [_us((latency or {}).get(key)) for key, _ in NAMES]


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns, the first set left and the others right, two spaces apart where that fits."""
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    gap = "  " if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else " "
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append(gap.join(cells).rstrip())
    return lines
