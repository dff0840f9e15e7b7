# SPDX-License-Identifier: Apache-2.0
"""The report of `nanet torus` and `nanet bench torus`: load curves beside BookSim's, and a picture of the torus with what each link carries."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import cast

from nanet.bench.torus_keys import BenchTorusResult, FaultsResult, Point, Reference, TorusResult
from nanet.report.page import Figure, Page, Section, facts_section, footer, number, table
from nanet.report.svg import Axis, Chart

Result = TorusResult | BenchTorusResult
STYLES = {
    "uniform": "k7", "neighbour": "k8", "tornado": "k3", "complement": "k6", "transpose": "k1", "rotate": "k2", "hot_spot": "k4",
}  # fmt: skip
PORTS = ("x+1", "x-1", "y+1", "y-1", "z+1", "z-1")
CYCLES_MAX = 600.0  # of the latency's axis: beyond, a torus is all but saturated
PICTURE_NODES_MAX = 256
PITCH, MARGIN, DOT = 56.0, 44.0, 11.0
BOOKSIM = (
    "Broken lines: BookSim 2, measured by us with its `dim_order`, 18-word packets, two virtual channels of 512 words and channels of 2 cycles, good to 3 %. "
    "Its packet costs 18 words of a link, ours 20 (MAGIC and START) and the credits; our hops are longer, so our latencies are by a constant a hop."
)


def make_torus(result: Result) -> Page:
    """The page of any of the three commands."""
    curves = result["curves"]
    shapes = " and ".join(sorted({point["shape"] for point in curves})) or "no"
    packets = sum(point["books"]["good"] for point in curves)
    page = Page(
        title=f"nanet {result['command']}",
        over=f"nanet {result['command']} \u00b7 {shapes} nodes, simulated cycle by cycle",
        headline=_headline(curves),
        lead=f"Router and links of gateware/, verilated; {number(packets)} packets were compared word by word, with their order and their hops. "
        "One source a node makes packets whatever the torus takes. Nothing here ran on a board.",
        kept=not result["problems"],
        footer=footer(result).split(" All latencies")[0],
        figures=_figures(result),
    )
    page.sections = [
        *_chart_sections(curves, result["reference"]),
        *_picture_sections(curves),
        Section("Every load", _table(curves), "Words are of 16 bytes, header and footer included; latency is from birth to the last word, source queue included."),
        *([Section("Beside BookSim", _beside(curves, result["reference"]), BOOKSIM)] if result["reference"] else []),
        *([Section("What is not as it must be", "<br>".join(map(escape, result["problems"])))] if result["problems"] else []),
        facts_section(result, {}, [f"simulation: {result['threads']} threads, {number(result['cycles_per_wall_second'])} cycles per second"]),
    ]  # fmt: skip
    return page


def make_faults(result: FaultsResult) -> Page:
    """The page of `nanet torus faults`."""
    faults = result["faults"]
    injected, good = (sum(one["books"][name] for one in faults) for name in ("injected", "good"))
    slowest = max((one["silent_cycles"] for one in faults), default=0)
    page = Page(
        title="nanet torus faults",
        over=f"nanet torus faults \u00b7 {result['shape']} nodes, simulated cycle by cycle",
        headline=f"{len(faults)} cables cut, each known after at most {slowest} cycles",
        lead="Each cable is cut under load, wherever its packets are, and comes back. Every packet that came was compared, and every other has a name.",
        kept=not result["problems"],
        footer=footer(result).split(" All latencies")[0],
        figures=[
            Figure("packets", number(injected)),
            Figure("good", number(good)),
            Figure("lost or flagged, each by name", number(injected - good)),
            Figure("wrong", number(sum(one["books"]["wrong"] for one in faults))),
            Figure("false alarms", number(sum(one["false_alarms"] for one in faults))),
        ],
    )
    head = ("node", "port", "known after [cycles]", "packets", "good", "flagged", "lost", "after it was back")
    rows = []
    for one in faults:
        books = one["books"]
        lost = ", ".join(f"{name} {count}" for name, count in books["losses"].items()) or "-"
        counts = [number(books[name]) for name in ("injected", "good", "flagged")]
        rows.append([str(one["node"]), PORTS[one["port"]], str(one["silent_cycles"]), *counts, lost, str(one["packets_after"])])
    text = "Known: both ends say that the other is silent. drop_down: given to the link while it was down; in_wires: in the cable when it was cut."
    page.sections = [Section("Every cable", table(head, rows, numbers=(0, 2, 3, 4, 5, 7)), text), facts_section(result, {}, [])]
    return page


def _headline(curves: Sequence[Point]) -> str:
    if not curves:
        return "No load was measured"
    best = max(curves, key=lambda point: (point["pattern"] == "uniform", point["accepted"]))
    return f"{best['pattern'].replace('_', ' ')}: {best['accepted']:.2f} words a node and cycle of {best['offered']:.2f} offered"


def _figures(result: Result) -> list[Figure]:
    curves = result["curves"]
    figures = []
    if result["command"] == "bench torus":
        bench = cast(BenchTorusResult, result)
        link, hop, put = bench["link"], bench["hop_cycles"], bench["put"]
        figures += [
            Figure("payload of a link\u2019s words, 4 KiB", f"{link['efficiency_4096'] * 100:.1f}", "%"),
            Figure("the same, 256 B", f"{link['efficiency_256'] * 100:.1f}", "%"),
            Figure("hop without wire", f"{hop['min']}" if hop["spread"] == 0 else f"{hop['min']} to {hop['max']}", "cycles"),
            Figure(f"PUT of {put['bytes']} B, one hop, RTL", f"{put['rtl_ns']:.0f}", "ns"),
        ]
    injected = sum(point["books"]["injected"] for point in curves)
    lost = injected - sum(point["books"]["good"] for point in curves)
    return [*figures, Figure("packets", number(injected)), Figure("lost, flagged or wrong", number(lost))]


def _chart_sections(curves: Sequence[Point], reference: Sequence[Reference]) -> list[Section]:
    """Latency and accepted load of each shape, if there is more than one load."""
    sections = []
    for shape in sorted({point["shape"] for point in curves}):
        mine = [point for point in curves if point["shape"] == shape]
        if len({point["offered"] for point in mine}) < 2:
            continue
        theirs = [one for one in reference if one["shape"] == shape]
        sections.append(Section(f"Latency against load, {shape}", _latency_chart(mine, theirs), BOOKSIM if theirs else ""))
        text = "Beyond saturation the curve must stay flat. Dots: what BookSim 2 accepts at full load." if theirs else ""
        sections.append(Section(f"Accepted against offered, {shape}", _accepted_chart(mine, theirs), text))
    return sections


def _by_pattern(curves: Sequence[Point]) -> list[tuple[str, list[Point]]]:
    ordered = sorted(curves, key=lambda point: (list(STYLES).index(point["pattern"]), point["offered"]))
    return [(pattern, list(points)) for pattern, points in groupby(ordered, key=lambda point: point["pattern"])]


def _latency_chart(curves: Sequence[Point], reference: Sequence[Reference]) -> str:
    chart = Chart(Axis(0, 1.0, "offered [words/node/cycle]"), Axis(0, CYCLES_MAX, "cycles, mean"), title="Latency against load")
    for pattern, points in _by_pattern(curves):
        kept = [(p["offered"], p["latency_cycles"]["mean"]) for p in points if p["latency_cycles"] and not p["is_saturated"]]
        kept = [(x, y) for x, y in kept if y <= CYCLES_MAX]
        if kept:
            chart.line([x for x, _ in kept], [y for _, y in kept], STYLES[pattern], pattern.replace("_", " "))
            chart.dots([x for x, _ in kept], [y for _, y in kept], STYLES[pattern])
    for one in reference:
        if one["latency_cycles"]:
            xs, ys = [x for x, _ in one["latency_cycles"]], [y for _, y in one["latency_cycles"]]
            chart.line(xs, ys, f"{STYLES[one['pattern']]} hollow", f"{one['pattern']}, BookSim")
    return chart.html()


def _accepted_chart(curves: Sequence[Point], reference: Sequence[Reference]) -> str:
    chart = Chart(
        Axis(0, 1.05, "offered [words/node/cycle]"),
        Axis(0, 1.05, "accepted [words/node/cycle]"),
        title="Accepted against offered load",
    )
    for pattern, points in _by_pattern(curves):
        xs = [point["offered"] for point in points]
        chart.line(xs, [point["accepted"] for point in points], STYLES[pattern], pattern.replace("_", " "))
        chart.dots(xs, [point["accepted"] for point in points], STYLES[pattern])
    for one in reference:
        chart.dots([1.02], [one["accepted_at_full_load"]], STYLES[one["pattern"]])
    return chart.html()


def _table(curves: Sequence[Point]) -> str:
    head = ("pattern", "torus", "offered", "accepted", "worst node", "mean [cycles]", "p99", "max", "hops", "packets")
    rows = []
    for point in curves:
        latency = None if point["is_saturated"] else point["latency_cycles"]
        cycles = ["saturated" if point["is_saturated"] else "-", "", ""]
        if latency is not None:
            cycles = [f"{latency['mean']:.1f}", str(latency["p99"]), str(latency["max"])]
        rows.append([
            point["pattern"].replace("_", " "), point["shape"], f"{point['offered']:.2f}", f"{point['accepted']:.3f}",
            f"{point['accepted_worst_node']:.3f}", *cycles, f"{point['mean_hops']:.2f}", number(point["books"]["injected"]),
        ])  # fmt: skip
    return table(head, rows, numbers=range(2, len(head)))


def _beside(curves: Sequence[Point], reference: Sequence[Reference]) -> str:
    rows = []
    for one in reference:
        ours = [p["accepted"] for p in curves if (p["pattern"], p["shape"], p["offered"]) == (one["pattern"], one["shape"], 1.0)]
        if ours:
            theirs = one["accepted_at_full_load"]
            rows.append([one["pattern"], one["shape"], f"{ours[0]:.3f}", f"{theirs:.2f}", f"{ours[0] / theirs:.2f}"])
    if not rows:
        return "<p>No load of 1 was measured.</p>"
    return table(("pattern", "torus", "accepted at full load", "BookSim", "ratio"), rows, numbers=(2, 3, 4))


def _picture_sections(curves: Sequence[Point]) -> list[Section]:
    """The torus under each pattern, at the highest load that is not beyond saturation."""
    sections: list[Section] = []
    for pattern, points in _by_pattern(curves):
        fit = [point for point in points if not point["is_saturated"]] or points[:1]
        point = fit[-1]
        if len(point["link_words"]) > PICTURE_NODES_MAX:
            continue
        title = f"{pattern.replace('_', ' ').capitalize()}, {point['shape']} at {point['offered']:.2f}"
        text = "A plane of z each; the wider a link, the more of its cycles have a word, both directions together. Stubs lead round the torus, slanted ones to the planes beside."
        sections.append(Section(title, _picture(point), text if not sections else ""))
    return sections


def _picture(point: Point) -> str:
    """A drawing a plane of z."""
    planes = int(point["shape"].split("x")[2])
    figures = (f"<figure>{_plane(point, z)}<figcaption>z = {z}</figcaption></figure>" for z in range(planes))
    return f'<div class="disks">{"".join(figures)}</div>'


def _plane(point: Point, z: int) -> str:
    """The nodes of a plane with their links."""
    nx, ny, nz = (int(n) for n in point["shape"].split("x"))
    lines, dots = [], []
    for y in range(ny):
        for x in range(nx):
            node = x + nx * (y + ny * z)
            here = (MARGIN + x * PITCH, MARGIN + (ny - 1 - y) * PITCH)
            for dimension, (at, count, step) in enumerate(((x, nx, (1.0, 0.0)), (y, ny, (0.0, -1.0)), (z, nz, (0.55, -0.55)))):
                if count > 1:
                    lines += _links(point["link_words"], node, dimension, here, step, (at, count), (nx, ny))
            dots.append(
                f'<circle class="dot k7" cx="{here[0]:.0f}" cy="{here[1]:.0f}" r="{DOT}"><title>node {x}, {y}, {z}</title></circle>'
            )
    name = escape(f"Links of a torus of {point['shape']} under {point['pattern']}, z = {z}")
    wide, high = (nx - 1) * PITCH + 2 * MARGIN, (ny - 1) * PITCH + 2 * MARGIN
    head = f'<svg style="max-width: {2 * wide:.0f}px" viewBox="0 0 {wide:.0f} {high:.0f}" role="img" aria-label="{name}" xmlns="http://www.w3.org/2000/svg">'
    return head + "".join(lines + dots) + "</svg>"


def _links(
    use: Sequence[Sequence[float]],
    node: int,
    dimension: int,
    here: tuple[float, float],
    step: tuple[float, float],
    place: tuple[int, int],
    sizes: tuple[int, int],
) -> list[str]:
    """The link of a node upwards in a dimension; stubs at both its ends if it leaves the plane or goes round."""
    at, count = place
    stride = (1, sizes[0], sizes[0] * sizes[1])[dimension]
    ahead = node + stride * ((at + 1) % count - at)
    behind = node + stride * ((at - 1) % count - at)
    up = use[node][2 * dimension] + use[ahead][2 * dimension + 1]
    down = use[node][2 * dimension + 1] + use[behind][2 * dimension]
    lines = []
    if dimension < 2 and at + 1 < count:
        lines.append(_line(here, step, 0, PITCH, up))
    else:
        lines.append(_line(here, step, 0, PITCH * 0.55, up))
    if dimension == 2 or at == 0:
        lines.append(_line(here, step, 0, -PITCH * 0.55, down))
    return lines


def _line(here: tuple[float, float], step: tuple[float, float], begin: float, end: float, words: float) -> str:
    (x, y), (dx, dy) = here, step
    path = f"M{x + dx * begin:.1f} {y + dy * begin:.1f}L{x + dx * end:.1f} {y + dy * end:.1f}"
    width = 0.8 + 5.0 * min(words / 2, 1.0)
    return (
        f'<path class="line s2" style="stroke-width: {width:.1f}" d="{path}"><title>{words:.2f} words a cycle of 2</title></path>'
    )
