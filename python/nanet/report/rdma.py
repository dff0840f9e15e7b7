# SPDX-License-Identifier: Apache-2.0
"""The report of `nanet rdma bench`."""

from __future__ import annotations

from collections.abc import Sequence

from nanet.report.page import Figure, Page, Section, facts_section, footer, number, table
from nanet.report.svg import Axis, Chart
from nanet.result.keys.rdma import TransferBenchResult, TransferMeasurement

BANDWIDTHS = (
    ("put_bandwidth", "put", "s1"),
    ("get_bandwidth", "get", "s2"),
    ("put_bidirectional_bandwidth", "put in both directions", "soft"),
)
LATENCIES = (("put_latency", "put", "s1"), ("get_latency", "get", "s2"), ("put_flush_latency", "put and flush", "soft"))
NAMES = {test: name for test, name, _ in (*BANDWIDTHS, *LATENCIES)}
PEER_STYLES = {"s1": "s3", "s2": "s4", "soft": "soft"}
NOTHING = "<p>Too few sizes were measured for a chart.</p>"


def make_rdma(result: TransferBenchResult) -> Page:
    """The page of `nanet rdma bench`."""
    rows = result["measurements"]
    page = Page(
        title="nanet rdma bench",
        over=f"nanet rdma bench \u00b7 UCX {result['ucx_version']} \u00b7 {result['path']['text']}",
        headline=_headline(rows),
        lead=("Every byte was right. " if result["right"] else "There were wrong bytes. ")
        + ("Ratios to the peer are of one run on one machine." if result["peer"] else "There is no peer in this run."),
        kept=bool(result["right"]),
        footer=footer(result),
        figures=_figures(result),
    )
    depth = f"At most {result['depth']} transfers in flight, fewer for the largest"
    page.sections = [
        Section("Bandwidth against size", _bandwidth_chart(rows), f"{depth}. Both axes are logarithmic. 1 GB is 10\u2079 bytes."),
        Section(
            "Latency against size", _latency_chart(rows),
            "Medians: of half a round trip of puts, in which both sides poll their memory, of a put and its flush, and of a get. Both axes are logarithmic.",
        ),
        Section("Bandwidth", _bandwidth_table(rows)),
        Section("Latency", _latency_table(rows)),
        facts_section(result, {}, _notes(result)),
    ]  # fmt: skip
    return page


def _headline(rows: Sequence[TransferMeasurement]) -> str:
    puts = [row for row in rows if row["test"] == "put_bandwidth"] or [row for row in rows if row["test"] == "get_bandwidth"]
    if puts:
        best = max(puts, key=lambda row: float(row["bytes_per_s"]))
        return f"{best['bytes_per_s'] / 1e9:.3g} GB/s with transfers of {_size(best['message_bytes'])}"
    p50_us, size = min((latency["p50"], row["message_bytes"]) for row in rows if (latency := row["latency_us"]))
    return f"{p50_us:.3g} \u00b5s with {_size(size)}"


def _figures(result: TransferBenchResult) -> list[Figure]:
    figures = []
    for row in result["measurements"]:
        at = row["message_bytes"]
        if row["test"] in ("put_bandwidth", "get_bandwidth") and at == 1 << 20:
            figures.append(Figure(f"{row['test'][:3]}, 1 MiB", f"{row['bytes_per_s'] / 1e9:.3g}", "GB/s"))
        if row["test"] in ("put_latency", "get_latency") and at == 8 and (latency := row["latency_us"]):
            figures.append(Figure(f"{row['test'][:3]}, 8 B, p50", f"{latency['p50']:.3g}", "\u00b5s"))
    if result["ratio_to_peer"] is not None:
        figures.append(Figure("put, 1 MiB, of ucx_perftest\u2019s", f"{result['ratio_to_peer']:.2f}"))
    return figures


def _bandwidth_chart(rows: Sequence[TransferMeasurement]) -> str:
    lines = []
    for test, name, style in BANDWIDTHS:
        mine = [row for row in rows if row["test"] == test]
        lines.append((name, style, [(row["message_bytes"], row["bytes_per_s"] / 1e9) for row in mine]))
        theirs = [(row["message_bytes"], row["peer"]["bytes_per_s"] / 1e9) for row in mine if row["peer"]]
        lines.append((f"{name}, ucx_perftest", PEER_STYLES[style], theirs))
    return _chart(lines, "bandwidth [GB/s]", "Bandwidth against size")


def _latency_chart(rows: Sequence[TransferMeasurement]) -> str:
    lines = []
    for test, name, style in LATENCIES:
        mine = [row for row in rows if row["test"] == test]
        lines.append((name, style, [(row["message_bytes"], latency["p50"]) for row in mine if (latency := row["latency_us"])]))
        theirs = [(row["message_bytes"], row["peer"]["p50_us"]) for row in mine if row["peer"]]
        lines.append((f"{name}, ucx_perftest", PEER_STYLES[style], theirs))
    return _chart(lines, "p50 [\u00b5s]", "Latency against size")


def _chart(lines: Sequence[tuple[str, str, Sequence[tuple[float, float]]]], label: str, title: str) -> str:
    points = [(x, y) for _, _, of_line in lines for x, y in of_line if y > 0.0]
    if len({x for x, _ in points}) < 2:
        return NOTHING
    chart = Chart(
        Axis(min(x for x, _ in points) / 1.5, max(x for x, _ in points) * 1.5, "size of a transfer [byte]", log=True),
        Axis(min(y for _, y in points) * 0.6, max(y for _, y in points) * 1.6, label, log=True),
        title=title, height=380,
    )  # fmt: skip
    for name, style, of_line in reversed(lines):  # ours over the peer's
        shown = [(x, y) for x, y in of_line if y > 0.0]
        if shown:
            chart.line([x for x, _ in shown], [y for _, y in shown], style, name)
            chart.dots([x for x, _ in shown], [y for _, y in shown], style)
    return chart.html()


def _bandwidth_table(rows: Sequence[TransferMeasurement]) -> str:
    body: list[list[str]] = []
    styles: dict[int, str] = {}
    for row in rows:
        if row["latency_us"] is not None:
            continue
        if not row["right"]:
            styles[len(body)] = "loss"
        rate = row["bytes_per_s"]
        body.append([
            NAMES[row["test"]], _size(row["message_bytes"]), number(row["depth"]), number(row["count"]), _short(rate / 1e9), _short(rate / 2**30),
            _short(row["messages_per_s"]), *_peer_cells(row, row["peer"]["bytes_per_s"] / 1e9 if row["peer"] else None), "right" if row["right"] else "WRONG", row["way"] or "not known",
        ])  # fmt: skip
    columns = ["", "size", "in flight", "transfers", "GB/s", "GiB/s", "messages/s", "ucx_perftest GB/s", "ratio", "bytes", "way"]
    return table(columns, body, numbers=range(1, 9), styles=styles) if body else "<p>It was not measured.</p>"


def _latency_table(rows: Sequence[TransferMeasurement]) -> str:
    body: list[list[str]] = []
    styles: dict[int, str] = {}
    for row in rows:
        latency = row["latency_us"]
        if latency is None:
            continue
        if not row["right"]:
            styles[len(body)] = "loss"
        body.append([
            NAMES[row["test"]], _size(row["message_bytes"]), number(row["count"]),
            *map(_short, (latency["min"], latency["p50"], latency["p99"], latency["p99_9"], latency["max"], latency["mean"])),
            *_peer_cells(row, row["peer"]["p50_us"] if row["peer"] else None),
            "right" if row["right"] else "WRONG",
        ])  # fmt: skip
    columns = ["", "size", "times", "fastest \u00b5s", "p50 \u00b5s", "p99 \u00b5s", "p99.9 \u00b5s", "slowest \u00b5s", "mean \u00b5s",
               "ucx_perftest p50 \u00b5s", "ratio of p50", "bytes"]  # fmt: skip
    return table(columns, body, numbers=range(1, 11), styles=styles) if body else "<p>It was not measured.</p>"


def _peer_cells(row: TransferMeasurement, theirs: float | None) -> list[str]:
    return ["\u2013", "\u2013"] if theirs is None else [_short(theirs), f"{row['ratio_to_peer']:.3f}"]


def _notes(result: TransferBenchResult) -> list[str]:
    peer = [f"peer: {result['peer']['name']} {result['peer']['version']}"] if result["peer"] else []
    return [
        f"UCX {result['ucx_version']} here, {result['target_ucx_version']} at the target; transports {result['transports'] or 'as UCX chooses'}",
        f"memory: {result['memory']} here, {result['target_memory']} at the target", *peer,
        f"cores: {result['core']} here, {result['target_core']} at the target; medians over rounds: {result['rounds']}", *result["notes"],
    ]  # fmt: skip


def _short(value: float) -> str:
    """Four digits, and no exponent for what is measured."""
    return number(value) if value >= 1000 else f"{value:.4g}"


def _size(size_bytes: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes} B"
