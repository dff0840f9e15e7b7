# SPDX-License-Identifier: Apache-2.0
"""The reports of `nanet km3 study` (efficiency, noise, cuts that were scanned, capacity, one event as pictures) and of `nanet demo --detector km3`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nanet.report.page import Figure, Page, Section, facts_section, footer, number, table
from nanet.report.svg import Axis, Chart
from nanet.result.keys.km3 import CutsPoint, Display, Km3DemoResult, Rate, Share, StudyResult

EFFICIENCY_GOAL, NOISE_GOAL_HZ = 0.99, 10.0
LEAST_HZ = 0.01  # lower end of axes of rates: less is drawn there
VIEW_DEG = 35.0  # the 3-D picture: turned about the vertical
LEAN_DEG = 15.0  # and leant towards the reader
DISPLAY_NS = (-1200.0, 2000.0)  # what the pictures of an event show of it


def make_study(result: StudyResult) -> Page:
    """The page of `nanet km3 study`."""
    found, noise = result["efficiency_5_seeds"], result["noise_events_per_s"]
    kept = found is not None and found["low"] >= EFFICIENCY_GOAL and noise["high"] < NOISE_GOAL_HZ
    page = Page(
        title="nanet km3 study",
        over=f"nanet km3 study \u00b7 {result['muons']:,} muons, {result['noise_s']:g} s of noise, seed {result['seed']}",
        headline=f"Muons with 5 or more L1 seeds: {share_text(found)} found; noise: {rate_text(noise)} events/s",
        lead="One emulated tower of 14 floors against the truth. A muon is found when an event has two triggered seeds of its own light. "
        "Intervals are exact, of 95 %: binomial for shares, Poisson for rates. The goal, 99 % with fewer than 10 events of noise a second, counts as "
        "reached when both intervals lie on the right side.",
        kept=kept,
        footer=f"Made by nanet {result['nanet']}, {result['date']}. Times are of one core of this machine, beside whatever else ran there.",
    )
    page.figures = [
        Figure("5 seeds or more", f"{100 * found['value']:.2f}" if found else "\u2013", "%"),
        Figure("noise", f"{noise['value']:.3g}", "events/s"),
        Figure("one core", number(result["floors_per_core"]), "floors"),
        Figure("a slice, p99", f"{result['slice_latency_ms']['p99']:.1f}", "ms"),
    ]
    page.sections = [
        _efficiency_section(result),
        *_energy_sections(result),
        *_scan_sections(result["scan"]),
        _capacity_section(result),
    ]
    if result["display"]:
        page.sections.append(_display_section(result["display"]))
    page.sections.append(facts_section(result, {"Trigger": result["trigger"]}, []))
    return page


def make_demo(result: Km3DemoResult) -> Page:
    """The page of `nanet demo --detector km3`."""
    muons, tower, counters = result["muons"], result["tower"], result["engine"]["counters"]
    page = Page(
        title="nanet demo, KM3NeT",
        over=f"nanet demo --detector km3 \u00b7 {tower['config']['floors']} floors, {tower['rate_gbit_s']:.2f} Gb/s, {tower['elapsed_s']:.1f} s",
        headline="The chain worked" if result["worked"] else "The chain did not work: " + "; ".join(result["problems"]),
        lead="An emulated tower sent its hits over UDP; the engine put them together to slices and looked for muons; events came back over UDP and were "
        "compared with the truth. A muon is found when an event has five hits of its own light.",
        kept=result["worked"],
        footer=footer(result),
    )
    page.figures = [
        Figure("hits judged", number(counters["hits_used"])),
        Figure("muons with 5 seeds or more", number(muons["with_5_seeds"])),
        Figure("of them found", number(muons["found"])),
        Figure("events", number(result["events"])),
    ]
    rows = [
        ["packets", number(tower["packets_sent"]), number(counters["packets_accepted"])],
        ["units: a floor in a slice", number(tower["units"]), number(counters["units_used"])],
        ["events", number(counters["events_triggered"]), number(result["events"])],
    ]
    page.sections = [Section("Books", table(["", "sent", "came"], rows, numbers=(1, 2)), "\n".join(result["problems"]))]
    if result["display"]:
        page.sections.append(_display_section(result["display"]))
    page.sections.append(facts_section(result, {"Engine": result["engine"]["config"], "Tower": tower["config"]}, result["notes"]))
    return page


def share_text(share: Share | None) -> str:
    """With its interval."""
    if share is None:
        return "\u2013"
    return f"{100 * share['value']:.2f} % ({100 * share['low']:.2f} to {100 * share['high']:.2f})"


def rate_text(rate: Rate) -> str:
    """With its interval."""
    return f"{rate['value']:.3g} ({rate['low']:.3g} to {rate['high']:.3g})"


def _efficiency_section(result: StudyResult) -> Section:
    known = [(point["seeds"], point["efficiency"]) for point in result["efficiency_by_seeds"] if point["efficiency"]]
    last = result["efficiency_by_seeds"][-1]["seeds"]
    chart = efficiency_chart(known)
    rows = [[f"{seeds} or more" if seeds == last else str(seeds), str(one["counted"]), share_text(one)] for seeds, one in known]
    body = chart.html() + table(["L1 seeds", "muons", "found"], rows, numbers=(1, 2))
    purity = (
        f" Purity: {share_text(result['purity'])} of the events have light of a muon, at {result['muons_hz']:g} muons a second."
    )
    return Section("Efficiency against L1 seeds", body, "Seeds that the muon\u2019s own light makes, noise not counted." + purity)


def _energy_sections(result: StudyResult) -> list[Section]:
    points = [(one, one["efficiency"]) for one in result["efficiency_by_energy"] if one["efficiency"]]
    if not points:
        return []
    rows = [
        [
            number(one["energy_gev"]),
            f"{one['light']:.2f}",
            f"{one['seeds_mean']:.1f}",
            share_text(every),
            share_text(one["efficiency_5_seeds"]),
        ]
        for one, every in points
    ]
    columns = ["energy [GeV]", "light", "own L1 seeds, mean", "found of all", "found of those with 5 seeds or more"]
    text = (
        "All muons that pass within the emulator\u2019s radius. Light: over that of a muon without showers; showers, 1.67 in a thousand of it a GeV, are taken to be spread "
        "evenly along the track."
    )
    chart = energy_chart([(one["energy_gev"], every) for one, every in points])
    return [Section("Efficiency against energy", chart.html() + table(columns, rows, numbers=(0, 1, 2, 3, 4)), text)]


def energy_chart(known: Sequence[tuple[float, Share]]) -> Chart:
    """Share of muons found by their energy, with intervals."""
    chart = Chart(
        Axis(known[0][0] / 2, known[-1][0] * 2, "energy of the muon [GeV]", log=True), Axis(0.0, 1.0, "found", percent=True),
        title="efficiency against energy",
    )  # fmt: skip
    chart.horizontal(EFFICIENCY_GOAL, "limit")
    for energy_gev, one in known:
        chart.line([energy_gev, energy_gev], [one["low"], one["high"]], "s1")
    chart.dots([energy_gev for energy_gev, _ in known], [one["value"] for _, one in known], "s1")
    return chart


def efficiency_chart(known: Sequence[tuple[int, Share]]) -> Chart:
    """Share of muons found by their seeds, with intervals."""
    most = max((seeds for seeds, _ in known), default=1)
    chart = Chart(
        Axis(-0.5, most + 0.5, "L1 seeds of the muon"), Axis(0.0, 1.0, "found", percent=True), title="efficiency against seeds"
    )
    chart.horizontal(EFFICIENCY_GOAL, "limit")
    for seeds, one in known:
        chart.line([seeds, seeds], [one["low"], one["high"]], "s1")
    chart.dots([seeds for seeds, _ in known], [one["value"] for _, one in known], "s1")
    return chart


def _scan_sections(points: Sequence[CutsPoint]) -> list[Section]:
    if not points:
        return []
    rows = [
        [
            ", ".join(f"{name} {value:g}" for name, value in point["cuts"].items()) + (" (chosen)" if point["is_default"] else ""),
            share_text(point["efficiency_5_seeds"]),
            rate_text(point["noise_events_per_s"]),
            f"{point['core_share']:.3f}",
            "yes" if point["on_frontier"] else "",
        ]
        for point in points
    ]
    columns = ["cuts", "5 seeds or more: found", "noise [events/s]", "cores, trigger alone", "frontier"]
    text = (
        "Each set of cuts on the same slices. Left and up is better; the line joins what no other set beats in both. Sets without one event of noise "
        f"are drawn at {LEAST_HZ:g} a second."
    )
    return [Section("Other cuts", frontier_chart(points).html() + table(columns, rows, numbers=(1, 2, 3)), text)]


def frontier_chart(points: Sequence[CutsPoint]) -> Chart:
    """Efficiency against noise."""
    known = [(max(LEAST_HZ, one["noise_events_per_s"]["value"]), one["efficiency_5_seeds"]["value"], one)
             for one in points if one["efficiency_5_seeds"]]  # fmt: skip
    least = min((found for _, found, _ in known), default=0.9)
    high = max((noise for noise, _, _ in known), default=1.0)
    chart = Chart(
        Axis(LEAST_HZ / 2, max(30.0, 3 * high), "events of noise a second", log=True),
        Axis(max(0.0, least - 0.02), 1.005, "found, 5 seeds or more", percent=True),
        title="efficiency against noise",
    )
    chart.horizontal(EFFICIENCY_GOAL, "limit")
    chart.vertical(NOISE_GOAL_HZ, "limit")
    best = sorted((noise, found) for noise, found, one in known if one["on_frontier"])
    chart.line([noise for noise, _ in best], [found for _, found in best], "s2", "not beaten")
    for seeds in sorted({one["cuts"]["seeds_min"] for _, _, one in known}):
        mine = [(noise, found) for noise, found, one in known if one["cuts"]["seeds_min"] == seeds]
        chart.dots([noise for noise, _ in mine], [found for _, found in mine], "s1", [f"{seeds} seeds"])
    chosen = [(noise, found) for noise, found, one in known if one["is_default"]]
    chart.dots([noise for noise, _ in chosen], [found for _, found in chosen], "s3", ["chosen"] * len(chosen))
    return chart


def _capacity_section(result: StudyResult) -> Section:
    latency = result["slice_latency_ms"]
    seeds = result["noise_seeds_per_s"]
    rows = [
        ["floors a core, median slice", number(result["floors_per_core"])],
        ["floors a core, slowest tenth", number(result["floors_per_core_low"])],
        [
            "floors a GPU: match3B of all hits and judging of seeds, with copies",
            f"not measured: {result['floors_per_gpu_why']}"
            if result["floors_per_gpu"] is None
            else f"{number(result['floors_per_gpu'])} ({result['gpu']})",
        ],
        [
            f"a slice of {result['slice_ms']:g} ms, bytes to events, ms",
            ", ".join(f"{name} {value:.1f}" for name, value in latency.items()),
        ],
        ["L1 seeds a second in noise", number(seeds["value"])],
    ]
    return Section(
        "Capacity", table(["", ""], rows, numbers=(1,)), "Decoding and trigger of slices of noise, one after the other, no network."
    )


def _display_section(display: Display) -> Section:
    text = (
        "Grey: other hits; blue: light of the muon; red: triggered seeds, where they are known. The line is the muon\u2019s track."
    )
    body = f"<h3>Time and height</h3>{time_chart(display).html()}<h3>In space</h3>{space_chart(display).html()}"
    return Section("One event", body, text)


def _layers(display: Display) -> list[tuple[str, list[list[float]]]]:
    hits = [hit for hit in display["hits"] if DISPLAY_NS[0] <= hit[3] <= DISPLAY_NS[1]]
    return [
        ("soft", [hit for hit in hits if not hit[5] and not hit[6]]),
        ("s1", [hit for hit in hits if hit[5] and not hit[6]]),
        ("limit", [hit for hit in hits if hit[6]]),
    ]


def _heights(display: Display) -> tuple[float, float]:
    heights = [hit[2] for hit in display["hits"]]
    return min(heights) - 15, max(heights) + 15


def _track(display: Display) -> list[tuple[float, float, float, float]]:
    """x, y, z and time of the track's ends: within the heights of the hits and 150 m of their middle."""
    low, high = _heights(display)
    ends = []
    for step in range(-400, 401):
        x, y, z = (p + step * d for p, d in zip(display["position_m"], display["direction"], strict=True))
        if low <= z <= high and abs(step) <= 150:
            ends.append((x, y, z, display["time_ns"] + step / 0.299792458))
    return [ends[0], ends[-1]] if len(ends) > 1 else []


def time_chart(display: Display) -> Chart:
    """Hits in time and height."""
    low, high = _heights(display)
    chart = Chart(Axis(*DISPLAY_NS, "time [ns]"), Axis(low, high, "z [m]"), height=420, title="hits in time and height")
    for style, hits in _layers(display):
        chart.dots([hit[3] for hit in hits], [hit[2] for hit in hits], style)
    track = _track(display)
    chart.line([one[3] for one in track], [one[2] for one in track], "s2", "track")
    return chart


def space_chart(display: Display) -> Chart:
    """Hits and the track in three dimensions, seen from the side and a little from above."""
    turn, lean = math.radians(VIEW_DEG), math.radians(LEAN_DEG)

    def seen(x: float, y: float, z: float) -> tuple[float, float]:
        across, depth = x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)
        return across, z * math.cos(lean) + depth * math.sin(lean)

    layers = [(style, [seen(*hit[:3]) for hit in hits]) for style, hits in _layers(display)]
    track = [seen(*one[:3]) for one in _track(display)]
    places = [place for _, some in layers for place in some] + track
    middle, upper = [place[0] for place in places], [place[1] for place in places]
    wide = max(max(abs(one) for one in middle) * 1.1, 40.0)
    chart = Chart(Axis(-wide, wide, "across the view [m]"), Axis(min(upper) - 10, max(upper) + 10, "up in the view [m]"), height=520,
                  title="hits in space")  # fmt: skip
    chart.line([place[0] for place in track], [place[1] for place in track], "s2", "track")
    for style, some in layers:
        chart.dots([place[0] for place in some], [place[1] for place in some], style)
    return chart
