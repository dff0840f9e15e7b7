# SPDX-License-Identifier: Apache-2.0
"""The report of `nanet bench gateware`: cycles of the RTL, and apart from them those with a modelled host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nanet.bench import gateware_tables as tables
from nanet.bench.gateware import FIGURES, Latency, bounds_of, problems_of, size_rows
from nanet.bench.gateware_keys import Case, GatewareResult
from nanet.report.page import Figure, Page, Section, facts_section, footer, number, table
from nanet.report.svg import Axis, Chart

LANES = ((0, "s1"), (4, "s2"))
DOTS_MAX = 50
NOTHING = "<p>No packet was timed.</p>"


def make_gateware(result: GatewareResult) -> Page:
    """The page of `nanet bench gateware`."""
    bounds = result["last_byte_to_last_write_cycles"]
    host = result["modelled_host"]
    timing = tables.timing_text(host["timing"])
    apart = "Its numbers are chosen, not measured, and no property of the NIC."
    ns = result["ns_per_cycle"]
    page = Page(
        title="nanet bench gateware",
        over=f"nanet bench gateware \u00b7 simulated cycle by cycle, {result['line_gbps']} Gb/s",
        headline=f"In memory {bounds['min']} to {bounds['max']} cycles after a frame\u2019s last byte, spread {bounds['spread']}",
        lead=f"Cycles of {ns:g} ns, counted in the RTL at {result['line_gbps']} Gb/s without a pause between frames, nothing sent, buffers handed over full; "
        "other conditions and what a modelled host adds are shown in separate sections. Nothing here ran on a board.",
        kept=result["lost_packets"] == 0 and not problems_of(result),
        footer=footer(result).split(" All latencies")[0],
        figures=_figures(result),
    )
    everything = [*result["cases"], *result["long_runs"], *result["mixed"]]
    rtl, with_host = size_rows(result["cases"], result["throughput"]), size_rows(host["cases"], host["throughput"])
    page.sections = [
        Section(
            "Latency against size", _size_chart(everything, "RTL, host ready at once"),
            "From a frame\u2019s last byte on XGMII (start on lane 0 or 4) to its last write, and to the completion, if it ends a buffer. RTL.",
        ),
        Section(
            "Distributions", _histograms(result["long_runs"], "last_byte_to_last_write"),
            "Packets by whole cycles from the last byte to the last write, in the long runs, one chart for each frame size. RTL.",
        ),
        Section("Cycles by frame size", _wide(tables.LATENCY_HEAD, tables.latency_rows(rtl, ns)) + _many(result), "All buffers and lanes. RTL."),
        Section(
            "By packets per buffer", _by_buffer(result["cases"]),
            "Cycles from the last byte to the last write: start lane 0 / start lane 4, a range where packets differ. RTL.",
        ),
        Section("Throughput", table(tables.RATE_HEAD, tables.rate_rows(rtl), numbers=range(5)), "Frames back to back; the lowest of all buffers. RTL."),
        Section(
            "Under other conditions", table(tables.CONDITION_HEAD, tables.condition_rows(result["conditions"]), numbers=(1,)),
            "Cycles from the last byte to the last write; spread: of packets of one size and lane. No packet may be wrong under any of them. RTL.",
        ),
        Section("With a modelled host", _size_chart(host["cases"], "modelled host"), f"The host: {timing}. {apart}"),
        Section(
            "Distributions with the modelled host", _histograms(host["cases"], "last_byte_to_last_write"),
            "As above, until the last word is in the modelled host\u2019s memory.",
        ),
        Section("Cycles and throughput with the modelled host", _wide(tables.LATENCY_HEAD, tables.latency_rows(with_host, ns))
                + "<h3>Throughput</h3>" + table(tables.RATE_HEAD, tables.rate_rows(with_host), numbers=range(5))),
        Section(
            "Router", table(tables.ROUTER_HEAD, tables.router_rows(result["router"]), numbers=range(1, 4)),
            "Four ports of 64 bit at 156.25 MHz, every input always with a packet to send. Full rate: of all outputs, or of the one that is asked for.",
        ),
        Section(
            "Node", table(tables.NODE_HEAD, tables.node_rows(result["node"]), numbers=range(7)),
            "Four ports at 10 Gb/s, each with packets of 1168 B of one board, merged into whole events; simulated.",
        ),
        Section(
            "Compared with the papers", table(tables.PAPER_HEAD, tables.paper_rows(result["papers"]), numbers=(2, 3, 4)),
            "Theirs: the hardware path of NaNet-1, a card with 1 Gb/s, as its own cycle counters saw it, and the router of the NaNet core. Ours: simulated, 10 Gb/s. "
            "At 1 Gb/s the 1472 B alone take 11.8 \u00b5s on the wire, so theirs cannot begin with the first byte.",
        ),
        facts_section(result, {}, [f"modelled host: {timing}", f"simulation: {number(result['cycles_per_wall_second'])} cycles per second"]),
    ]  # fmt: skip
    return page


def _figures(result: GatewareResult) -> list[Figure]:
    bounds = result["last_byte_to_last_write_cycles"]
    figures = [
        Figure("last byte to last write, at most", f"{bounds['max'] * result['ns_per_cycle']:.1f}", "ns"),
        Figure("of line rate, lowest", f"{min(result['line_rate_fraction'].values()) * 100:.4g}", "%"),
        Figure("packets lost", number(result["lost_packets"])),
        Figure("packets wrong", number(result["wrong_packets"]), f"of {number(result['compared_packets'])} compared"),
    ]
    smallest = [row["packets_per_s"] for row in result["throughput"] if row["frame_bytes"] == 64]
    figures += [Figure("packets of 64 B", f"{min(smallest) / 1e6:.2f}", "M/s")] if smallest else []
    router = [load["bytes_per_s"] for load in result["router"]["loads"] if load["pattern"] == "permutation"]
    return [*figures, Figure("router", f"{min(router) / 1e9:.3g}", "GB/s")]


def _size_chart(cases: Sequence[Case], title: str) -> str:
    """Most cycles of each payload size, by lane; payloads longer than 1472 B are left out, as they change nothing."""
    shown = [case for case in cases if case["payload_bytes"] <= 1472 and case["packets"]]
    if not shown:
        return NOTHING
    highest = max(bounds[1] for figure in (FIGURES[1], FIGURES[3]) if (bounds := bounds_of(shown, figure)) is not None)
    chart = Chart(
        Axis(0, 1510, "payload [byte]"),
        Axis(0, highest * 1.15, "cycles"),
        title=f"Latency against size, {title}",
    )
    for figure, name, styles in (
        (FIGURES[3], "completion", ("s3", "s4")), (FIGURES[1], "last write", ("s1", "s2")),
    ):  # fmt: skip
        for (lane, _), style in zip(LANES, styles, strict=True):
            points = _most(shown, figure, lane)
            if points:
                xs, ys = [x for x, _ in points], [y for _, y in points]
                many = len(points) > DOTS_MAX
                chart.line(xs, ys, style, f"{name}, lane {lane}", step=many)
                if not many:
                    chart.dots(xs, ys, style)
    return chart.html()


def _most(cases: Sequence[Case], figure: Latency, lane: int) -> list[tuple[int, int]]:
    """(payload, most cycles) by payload."""
    found: dict[int, int] = {}
    for case in cases:
        if case["start_lane"] == lane and case[figure]:
            size = int(case["payload_bytes"])
            found[size] = max(found.get(size, 0), max(cycles for cycles, _ in case[figure]))
    return sorted(found.items())


def _histograms(cases: Sequence[Case], figure: Latency) -> str:
    """A chart for each frame size: packets by cycles, both lanes."""
    bounds = bounds_of(cases, figure)
    if bounds is None:
        return NOTHING
    charts = []
    for size in sorted({case["frame_bytes"] for case in cases}):
        counts = {lane: _counts(cases, figure, size, lane) for lane, _ in LANES}
        highest = max((n for count in counts.values() for n in count.values()), default=0)
        if highest == 0:
            continue
        chart = Chart(
            Axis(bounds[0] - 2.5, bounds[1] + 2.5, "cycles"),
            Axis(0.5, highest * 3, f"packets of {size} B", log=True),
            height=190, title=f"Distribution, frames of {size} B",
        )  # fmt: skip
        for lane, style in LANES:
            if not counts[lane]:
                continue
            edges = range(min(counts[lane]), max(counts[lane]) + 2)
            chart.bars([edge - 0.5 for edge in edges], [counts[lane].get(edge, 0) for edge in edges[:-1]], style)
            name = f"lane {lane}: {number(sum(counts[lane].values()))} packets"
            chart.line([edges[0]], [highest], style, name)  # for the legend
        charts.append(chart.html())
    return "".join(charts)


def _counts(cases: Sequence[Case], figure: Latency, size: int, lane: int) -> Counter[int]:
    counts: Counter[int] = Counter()
    for case in cases:
        if case["frame_bytes"] == size and case["start_lane"] == lane:
            for cycles, packets in case[figure]:
                counts[cycles] += packets
    return counts


def _by_buffer(cases: Sequence[Case]) -> str:
    """Frame sizes by packets a buffer."""
    buffers = sorted({int(case["packets_per_buffer"]) for case in cases})
    rows = []
    for size in sorted({int(case["frame_bytes"]) for case in cases}):
        cells = []
        for buffer in buffers:
            mine = [case for case in cases if (case["frame_bytes"], case["packets_per_buffer"]) == (size, buffer)]
            by_lane = [bounds_of([case for case in mine if case["start_lane"] == lane], FIGURES[1]) for lane, _ in LANES]
            cells.append(" / ".join(tables.between(bounds, 0) for bounds in by_lane))
        rows.append([str(size), *cells])
    columns = ["frame B", *(f"{buffer} a buffer" for buffer in buffers)]
    return table(columns, rows, numbers=range(len(columns))) if rows else NOTHING


def _wide(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return table(head, rows, numbers=range(len(head)))


def _many(result: GatewareResult) -> str:
    return f"<p>{tables.many_text('Long runs', result['long_runs'])}.</p><p>{tables.many_text('Sizes at random', result['mixed'])}.</p>"
