# SPDX-License-Identifier: Apache-2.0
"""The report of `nanet bench gpu`."""

from __future__ import annotations

from collections.abc import Sequence

from nanet.bench.gpu_keys import GpuResult, Row
from nanet.report.gpu_parts import draw_best, finder_sections, mega, merge_sections, trace_section
from nanet.report.page import Figure, Page, Section, facts_section, footer, number, table, us
from nanet.report.svg import Axis, Chart

# Lines of the round trips: name, style, ways of which the best counts at each size.
LINES = (
    ("launch, synchronise", "s4", ("launch_sync", "copy_launch_copy_sync")),
    ("graph, synchronise", "s3", ("graph_sync", "graph_mapped_sync")),
    ("launch or graph per buffer, event processor", "s2", ("launch_mapped", "launch_copied", "graph_mapped", "graph_copied")),
    ("persistent", "s1", ("persistent",)),
)
STYLES = ("s1", "s2", "s3", "s4", "soft")
PERCENTILES = (("p50_us", "p50"), ("p99_us", "p99"), ("p999_us", "p99.9"), ("p9999_us", "p99.99"), ("max_us", "slowest"))
NOTHING = "<p>It was not measured.</p>"


def make_gpu(result: GpuResult) -> Page:
    """The page of `nanet bench gpu`."""
    wrong = int(result["wrong"])
    page = Page(
        title="nanet bench gpu",
        over=f"nanet bench gpu \u00b7 {result['gpu']} \u00b7 CUDA {result['cuda']}",
        headline=_headline(result),
        lead=f"{number(wrong)} answers were wrong." if wrong else "Every answer that was checked matched the CPU\u2019s.",
        kept=not wrong,
        footer=footer(result),
        figures=_figures(result),
    )
    page.sections = [
        *_round_trip_sections(result["round_trip"], result["ratios"]),
        _driver_section(result["driver_path"]),
        *_loop_sections(result["loop"]),
        *finder_sections(result["finders"]),
        *merge_sections(result["merge"]),
        trace_section(result["trace"]),
        facts_section(
            result,
            {},
            [f"measured on {result['gpu']}, {result['gpu_host_cpu']}, CUDA {result['cuda']}", f"ring finder {result['finder']}"],
        ),
    ]
    return page


def _headline(result: GpuResult) -> str:
    by_events = {ratio["events"]: ratio for ratio in result["ratios"]}
    if not by_events:
        return "GPU benchmarks"
    ratio = by_events.get(1024) or by_events[max(by_events)]
    return (
        f"{ratio['p50_us']:.1f} \u00b5s for {number(ratio['events'])} events there and back, {ratio['p50']:.2f} of the best launch"
    )


def _figures(result: GpuResult) -> list[Figure]:
    figures = [
        Figure(f"{number(row['events'])} events, p50", us(row["p50_us"]), "\u00b5s")
        for row in result["round_trip"]
        if row["way"] == "persistent" and row["events"] in (16, 1024, 16384)
    ]
    figures += [Figure("bare flag, p50", us(row["p50_us"]), "\u00b5s") for row in result["round_trip"] if row["way"] == "flag"]
    if result["loop"]:
        figures.append(Figure("lost in the loops", number(sum(row["lost"] for row in result["loop"]))))
    figures += [
        Figure(f"{row['finder']}, {row['case']}", mega(row["events_per_s"]), "M/s")
        for row in result["finders"]
        if (row["finder"], row["case"]) in (("almagest", "two_rings_apart"), ("mixture", "single_ring"))
    ]
    return figures


def _round_trip_sections(rows: Sequence[Row], ratios: Sequence[Row]) -> list[Section]:
    if not rows:
        return [Section("Round trips", NOTHING)]
    shares = [
        [number(r["events"]), us(r["p50_us"]), us(r["p50_best_us"]), r["p50_best_way"], f"{r['p50']:.2f}",
         us(r["p999_us"]), us(r["p999_best_us"]), r["p999_best_way"], f"{r['p999']:.2f}",
         "\u2013" if r["same_work_p50"] is None else f"{r['same_work_p50']:.2f}"]
        for r in ratios
    ]  # fmt: skip
    columns = ["events", "persistent p50 \u00b5s", "best launch p50 \u00b5s", "", "ratio", "persistent p99.9 \u00b5s",
               "best launch p99.9 \u00b5s", "", "ratio", "ratio of p50 for the same work"]  # fmt: skip
    every = [
        [row["way"], number(row["events"]) if row["events"] else "\u2013", number(row["count"]), us(row["min_us"])]
        + [us(row[key]) for key, _ in PERCENTILES]
        + [number(row["wrong"])]
        for row in rows
    ]
    heads = ["method", "events", "round trips", "fastest \u00b5s", *(f"{name} \u00b5s" for _, name in PERCENTILES), "wrong"]
    return [
        Section(
            "Round trips, median",
            _round_trip_chart(rows, "p50_us", "p50"),
            "From the completion written by the host to all answers seen by the host. Both axes are logarithmic; of the methods on one line the best counts.",
        ),
        Section("Round trips, 999 of 1000", _round_trip_chart(rows, "p999_us", "p99.9")),
        Section(
            "Persistent over the best method that launches",
            table(columns, shares, numbers=[0, 1, 2, 4, 5, 6, 8, 9]) if shares else NOTHING,
            "The methods that end in _sync do less: MATH fits of padded packets, no verdict, no packet of answers, nothing of the contract. The last column "
            "compares with the event processor\u2019s own launches.",
        ),
        Section("All round trips", table(heads, every, numbers=range(1, len(heads)))),
    ]


def _round_trip_chart(rows: Sequence[Row], key: str, name: str) -> str:
    sizes = sorted({row["events"] for row in rows if row["events"]})
    values = [row[key] for row in rows]
    if not sizes:
        return NOTHING
    chart = Chart(
        Axis(sizes[0] / 1.5, sizes[-1] * 1.5, "events of a buffer", log=True),
        Axis(min(values) * 0.6, max(values) * 1.6, f"{name} [\u00b5s]", log=True),
        title=f"{name} of the round trip against events", height=380,
    )  # fmt: skip
    for flag in (row for row in rows if row["way"] == "flag"):
        chart.horizontal(flag[key], "soft", f"bare flag {us(flag[key])} \u00b5s")
    draw_best(chart, LINES, rows, key, min, us)
    return chart.html()


def _driver_section(rows: Sequence[Row]) -> Section:
    title = "The papers\u2019 comparison: driver path and persistent kernel"
    if not rows:
        return Section(title, NOTHING)
    body = [
        [
            f"dummy, {row['work_us']:g} \u00b5s" if row["work"] == "dummy" else f"rings of {number(row['events'])} events",
            row["path"], number(row["in_flight"]), us(row["mean_us"]), us(row["std_us"]), *(us(row[key]) for key, _ in PERCENTILES),
            number(row["buffers_per_s"]),
        ]
        for row in rows
    ]  # fmt: skip
    columns = [
        "work",
        "path",
        "in flight",
        "mean \u00b5s",
        "jitter \u00b5s",
        *(f"{name} \u00b5s" for _, name in PERCENTILES),
        "buffers/s",
    ]
    return Section(
        title,
        table(columns, body, numbers=range(2, len(columns))),
        "Buffers back to back. Driver path: a launch and a synchronisation for each. Jitter is the standard deviation.",
    )


def _loop_sections(rows: Sequence[Row]) -> list[Section]:
    title = "Whole loop over UDP"
    if not rows:
        return [Section(title, NOTHING)]
    every: list[list[str]] = []
    styles: dict[int, str] = {}
    for row in rows:
        if row["lost"] or row["wrong"]:
            styles[len(every)] = "loss"
        every.append(
            [row["runtime"], "overlapped" if row["in_flight"] > 1 else "serialised", f"{row['rate_events_per_s'] / 1e6:g}",
             number(row["packets"]), f"{row['packets_mean']:.1f}", *(us(row[key]) for key, _ in PERCENTILES), us(row["clean_p999_us"]),
             number(row["sent"]), number(row["lost"]), number(row["wrong"])]
        )  # fmt: skip
    columns = ["runtime", "", "Mevent/s", "packets", "packets were", *(f"{name} \u00b5s" for _, name in PERCENTILES),
               "p99.9 without own stalls \u00b5s", "sent", "lost", "wrong"]  # fmt: skip
    packets = 8 if any(row["packets"] == 8 for row in rows) else rows[0]["packets"]
    rate = max(row["rate_events_per_s"] for row in rows)
    return [
        Section(
            f"{title}: latency against rate",
            _loop_chart([row for row in rows if row["packets"] == packets], "rate_events_per_s", 1e-6, "rate [Mevent/s]"),
            f"From a packet given to the kernel to the answer received, buffers of {packets} packets; median (lower) and p99.9 (upper line).",
        ),
        Section(
            f"{title}: latency against buffer size",
            _loop_chart([row for row in rows if row["rate_events_per_s"] == rate], "packets", 1.0, "packets of a buffer"),
            f"At {rate / 1e6:g} Mevent/s. The time in which a buffer fills is in it.",
        ),
        Section(f"{title}: all", table(columns, every, numbers=range(2, len(columns)), styles=styles)),
    ]


def _loop_chart(rows: Sequence[Row], key: str, scale: float, label: str) -> str:
    lines = _lines_of(rows)
    places = [float(row[key]) * scale for row in rows]
    if max(places) <= min(places):
        return "<p>Too few were measured for a chart.</p>"
    chart = Chart(
        Axis(min(places) / 1.3, max(places) * 1.3, label, log=True),
        Axis(max(0.1, min(row["p50_us"] for row in rows)) * 0.6, max(row["p999_us"] for row in rows) * 1.6, "latency [\u00b5s]", log=True),
        title=f"Latency against {label}", height=380,
    )  # fmt: skip
    for n, (runtime, in_flight) in enumerate(lines):
        style = STYLES[min(n, len(STYLES) - 1)]
        first: dict[float, Row] = {}  # what was measured twice is all in the table
        for row in rows:
            if (row["runtime"], row["in_flight"]) == (runtime, in_flight):
                first.setdefault(float(row[key]), row)
        mine = [first[place] for place in sorted(first)]
        xs = [float(row[key]) * scale for row in mine]
        for name, shown in (("p50_us", f"{runtime}, {in_flight} in flight"), ("p999_us", "")):
            ys = [float(row[name]) for row in mine]
            chart.line(xs, ys, style, shown)
            chart.dots(xs, ys, style)
    return chart.html()


def _lines_of(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """(runtime, buffers in flight) of a chart's lines: persistent serialised and overlapped, the others overlapped only."""
    lines = list(dict.fromkeys((row["runtime"], row["in_flight"]) for row in rows))
    most = {runtime: max(n for name, n in lines if name == runtime) for runtime, _ in lines}
    return [(runtime, n) for runtime, n in lines if runtime == "persistent" or n == most[runtime]]
