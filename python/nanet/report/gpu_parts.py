# SPDX-License-Identifier: Apache-2.0
"""Sections of the report of `nanet bench gpu`: ring finders, event building, and what a loop asks of CUDA."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from nanet.bench.gpu import ALL_CALLS, ALLOCATIONS, SET_UP_ALLOCATIONS, share_of_copy
from nanet.bench.gpu_keys import Row
from nanet.report.page import Section, number, table, us
from nanet.report.svg import Axis, Chart

NOTHING = "<p>It was not measured.</p>"
NONE = "\u2013"
CASE_STYLES = ("s1", "s2", "s3", "s4")
MERGE_LINES = (
    ("one core of the machine", "s3", ("cpu",)),
    ("best launch or graph a buffer", "s2", ("launch_mapped", "launch_copied", "graph_mapped", "graph_copied")),
    ("persistent", "s1", ("persistent",)),
)
PERCENTILES = (("p50_us", "p50"), ("p99_us", "p99"), ("p999_us", "p99.9"), ("p9999_us", "p99.99"), ("max_us", "slowest"))


def finder_sections(rows: Sequence[Row]) -> list[Section]:
    """Rate and latency of each finder, and the MATH fit of records beside a copy."""
    title = "Ring finders, events in device memory"
    finders = [row for row in rows if row["finder"] not in ("copy", "record_fit")]
    sections = [] if rows else [Section(title, NOTHING)]
    if finders:
        body = [
            [row["finder"], row["case"], mega(row["events_per_s"]), mega(row["cpu_events_per_s"]),
             number(row["events_per_s"] / row["cpu_events_per_s"]), us(row["latency_1_us"]), us(row["latency_64_us"]),
             number(row["events_that_differ"])]
            for row in finders
        ]  # fmt: skip
        heads = ["finder", "case", "GPU Mevent/s", "one core Mevent/s", "ratio", "1 event \u00b5s", "64 events \u00b5s", "differ"]
        styles = {n: "loss" for n, row in enumerate(finders) if row["events_that_differ"]}
        sections.append(
            Section(
                f"{title}: rate against latency",
                _finder_chart(finders),
                "Rate of a full GPU, and how long a running kernel takes for a single event. Up and left is better; a grey line joins the cases of a finder.",
            )
        )
        sections.append(Section(f"{title}: all", table(heads, body, numbers=range(2, 8), styles=styles)))
    return sections + _record_section(rows)


def _record_section(rows: Sequence[Row]) -> list[Section]:
    records = [row for row in rows if row["finder"] == "record_fit"]
    if not records:
        return []
    shares = share_of_copy(rows)
    body = [
        [row["case"], f"{row['events_per_s'] * 1e-9:.1f}", number(row["bytes_per_s"] * 1e-9),
         f"{shares[row['case']]:.3f}" if shares else NONE, number(row["events_that_differ"])]
        for row in records
    ]  # fmt: skip
    copies = [row for row in rows if row["finder"] == "copy"]
    body += [["a copy, " + row["case"], NONE, number(row["bytes_per_s"] * 1e-9), "1", NONE] for row in copies]
    return [
        Section(
            "MATH on records in device memory",
            table(["hits of an event", "Gevent/s", "GB/s", "of the copy", "differ"], body, numbers=range(1, 5)),
            "Bytes read and bytes written; the copy is the driver\u2019s, within device memory, of the same run.",
        )
    ]


def _finder_chart(rows: Sequence[Row]) -> str:
    xs, ys = [row["latency_1_us"] for row in rows], [row["events_per_s"] * 1e-6 for row in rows]
    chart = Chart(
        Axis(max(min(xs), 1e-3) / 1.6, max(xs) * 1.6, "one event [\u00b5s]", log=True),
        Axis(max(min(ys), 1e-6) / 2, max(ys) * 2.5, "Mevent/s", log=True),
        title="Rate of each finder against its latency", height=440,
    )  # fmt: skip
    labels: list[tuple[float, float, list[str]]] = []  # finders that lie on one another share a label
    for finder in dict.fromkeys(row["finder"] for row in rows):
        mine = [row for row in rows if row["finder"] == finder]
        chart.line([row["latency_1_us"] for row in mine], [row["events_per_s"] * 1e-6 for row in mine], "soft")
        x, y = mine[0]["latency_1_us"], mine[0]["events_per_s"] * 1e-6
        near = [names for a, b, names in labels if abs(chart.px(a) - chart.px(x)) < 30 and abs(chart.py(b) - chart.py(y)) < 14]
        if near:
            near[0].append(finder)
        else:
            labels.append((x, y, [finder]))
    for case, style in zip(dict.fromkeys(row["case"] for row in rows), CASE_STYLES, strict=False):
        mine = [row for row in rows if row["case"] == case]
        xs, ys = [row["latency_1_us"] for row in mine], [row["events_per_s"] * 1e-6 for row in mine]
        chart.line(xs[:1], ys[:1], style, case)  # for the legend
        chart.dots(xs, ys, style)
    for x, y, names in labels:
        chart.dots([x], [y], CASE_STYLES[0], [", ".join(names)])
    return chart.html()


def merge_sections(rows: Sequence[Row]) -> list[Section]:
    """Latency and rate of event building, with the rings and the answers."""
    title = "Event building from four boards"
    if not rows:
        return [Section(title, NOTHING)]
    body = [
        [row["way"], number(row["events"]), number(row["count"]), *(us(row[key]) for key, _ in PERCENTILES),
         f"{row['rate_events_per_s'] * 1e-6:.2f}", number(row["incomplete"]), number(row["wrong"])]
        for row in rows
    ]  # fmt: skip
    heads = ["method", "events", "round trips", *(f"{name} \u00b5s" for _, name in PERCENTILES), "Mevent/s", "incomplete", "wrong"]
    styles = {n: "loss" for n, row in enumerate(rows) if row["wrong"]}
    return [
        Section(
            f"{title}: latency",
            _merge_chart(rows, "p50_us", 1.0, "p50 of a buffer [\u00b5s]", min, us),
            "A buffer holds all parts of its events: merged, rings found, answered. The core does the same but writes no packets of answers. "
            "One buffer at a time; of the methods on one line the best counts.",
        ),
        Section(
            f"{title}: rate",
            _merge_chart(rows, "rate_events_per_s", 1e-6, "Mevent/s", max, _mega_of),
            "As many buffers are handed over as are free.",
        ),
        Section(f"{title}: all", table(heads, body, numbers=range(1, len(heads)), styles=styles)),
    ]


def _merge_chart(
    rows: Sequence[Row],
    key: str,
    scale: float,
    label: str,
    best: Callable[[list[float]], float],
    show: Callable[[float], str],
) -> str:
    sizes = sorted({row["events"] for row in rows})
    values = [row[key] * scale for row in rows if row[key] > 0]
    if len(sizes) < 2 or not values:
        return "<p>Too few were measured for a chart.</p>"
    chart = Chart(
        Axis(sizes[0] / 1.5, sizes[-1] * 1.5, "events of a buffer", log=True),
        Axis(min(values) * 0.6, max(values) * 1.6, label, log=True),
        title=f"Event building: {label} against events", height=380,
    )  # fmt: skip
    scaled = [{**row, key: row[key] * scale} for row in rows if row[key] > 0]
    draw_best(chart, MERGE_LINES, scaled, key, best, show)
    return chart.html()


def draw_best(
    chart: Chart, lines: Iterable[tuple[str, str, Collection[str]]], rows: Sequence[Row], key: str,
    best: Callable[[list[float]], float], show: Callable[[float], str],
) -> None:  # fmt: skip
    """A line for each (name, style, ways): at each size of a buffer the best of its ways. The first style has its values written beside it."""
    for line, style, ways in lines:
        by_size: dict[int, list[float]] = {}
        for row in rows:
            if row["events"] and row["way"] in ways:
                by_size.setdefault(row["events"], []).append(row[key])
        xs = [float(events) for events in sorted(by_size)]
        ys = [best(by_size[events]) for events in sorted(by_size)]
        chart.line(xs, ys, style, line)
        chart.dots(xs, ys, style, [show(y) for y in ys] if style == "s1" else ())


def trace_section(rows: Sequence[Row]) -> Section:
    """What the host asks of CUDA and of the allocator while the whole loop runs."""
    title = "What a running loop asks of CUDA and of the allocator"
    if not rows:
        return Section(title, NOTHING)
    body = [
        [row["runtime"], row["function"], number(row["calls"]), f"{row['calls'] / row['buffers']:.3g}" if row["buffers"] and row["function"] != SET_UP_ALLOCATIONS else NONE,
         number(row["buffers"])]
        for row in rows
    ]  # fmt: skip
    styles = {n: "sum" for n, row in enumerate(rows) if row["function"] in (ALLOCATIONS, ALL_CALLS)}
    return Section(
        title,
        table(["runtime", "function", "calls", "a buffer", "buffers"], body, numbers=[2, 3, 4], styles=styles),
        "Every function of CUDA\u2019s runtime and driver (CUPTI\u2019s callbacks) and every operator new of all threads while UDP packets come and answers go. "
        "launch and graph are the control: their calls have to be seen.",
    )


def mega(rate: float) -> str:
    """Millions a second with three digits or so."""
    return _mega_of(rate * 1e-6)


def _mega_of(millions: float) -> str:
    return number(millions) if millions >= 100 else f"{millions:.1f}" if millions >= 10 else f"{millions:#.3g}"
