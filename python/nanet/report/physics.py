# SPDX-License-Identifier: Apache-2.0
"""The report of `nanet physics`: the frontier, scans, separation of particles, and all figures as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Literal

from nanet.report.page import Figure, Page, Section, facts_section, table
from nanet.report.series import NinesAxis, SeriesChart, legend
from nanet.report.svg import Axis
from nanet.result.keys.physics import CaseResult, Figures, FrontierPoint, PhysicsResult, ScanResult

HEIGHT = 320
NINES = 0.9995
NAMES = {
    "efficiency": "efficiency", "fakes": "fakes an event", "all_found": "all rings found", "ratio_to_bound": "radius rms / bound"
}  # fmt: skip
SHARES = {"efficiency", "all_found"}
PAIR_NAMES = {"e_mu": "electron and muon", "mu_pi": "muon and pion", "e_pi": "electron and pion", "pi_K": "pion and kaon"}
FRONTIER_CASES = ("single_ring", "two_rings_apart", "multi_ring")
ORACLE = "oracle"
Finders = Mapping[str, Figures]


def make_physics(result: PhysicsResult) -> Page:
    """The page of `nanet physics`."""
    single = result["single_ring"]
    headline = "Ring finders against truth"
    if single:
        found = f"{100 * single['efficiency']:.2f} \u00b1 {100 * single['efficiency_error']:.2f} %"
        headline += f": single rings found {found}, by {single['best']}"
    page = Page(
        title="nanet physics",
        over=f"nanet physics \u00b7 {result['events']:,} events a sample, seed {result['seed']} \u00b7 {len(result['finders'])} ring finders",
        headline=headline,
        lead="Simulated events of NA62\u2019s RICH with known rings. A ring counts as found when its centre is within 20 mm and its radius within "
        "15 mm of a true one. The oracle is told which hits belong to each ring. Bars are one standard deviation.",
        kept=True,
        footer=f"Made by nanet {result['nanet']}, {result['date']}. Times are of one core of this machine, the fastest of several passes.",
    )
    page.figures = [
        Figure(name, value, unit)
        for figures, name, what, unit in (
            (result["single_ring"], "1 ring", "efficiency", "%"),
            (result["two_rings_apart"], "2 rings apart", "all_found", "%"),
            (result["three_rings_apart"], "3 rings apart", "all_found", "%"),
            (result["three_rings"], "3 rings", "all_found", "%"),
            (result["multi_ring"], "0 to 4 rings", "all_found", "%"),
        )
        if figures
        for value in [f"{100 * figures[what]:.2f}"]
    ]
    plain = [*result["finders"], ORACLE]  # in the scans; the samples also have finders that look at hit times
    names = list(next(iter(result["cases"].values()))["finders"])
    page.sections = _frontier_sections(result)
    if result["scans"]:
        page.sections += _scan_sections(result["scans"], plain)
    page.sections += _separation_sections(result["cases"], names)
    page.sections.append(_tables_section(result["cases"], names))
    configs = {f"Sample: {case['title']}": case["config"] for case in result["cases"].values()}
    page.sections.append(facts_section(result, configs, []))
    return page


def _frontier_sections(result: PhysicsResult) -> list[Section]:
    body = ""
    for name in FRONTIER_CASES:
        points = [point for point in result["frontier"] if point["case"] == name and point["efficiency"] is not None]
        if points:
            body += f"<h3>{escape(result['cases'][name]['title'])}</h3>"
            body += frontier_chart(points, "efficiency").html() + frontier_chart(points, "fakes").html()
    if not body:
        return []
    text = (
        "Rings found, and false rings, against events a second. Right and up is better in the first picture of each pair, right and down in the "
        "second. The dotted line joins what no other finder on the same kind of machine beats in both speed and worth (efficiency less false rings)."
    )
    return [Section("The frontier: quality against speed", body, text)]


def frontier_chart(points: Sequence[FrontierPoint], figure: Literal["efficiency", "fakes"]) -> SeriesChart:
    """One sample's points: `figure` (efficiency or fakes) against events a second."""
    rates = [point["events_per_s"] for point in points]
    x = Axis(
        min(rates) / 3,
        max(rates) * 3,
        "events/s" if any(point["device"] == "gpu" for point in points) else "events/s, one core",
        log=True,
    )
    y = NinesAxis(NINES, "efficiency") if figure == "efficiency" else Axis(1e-4, 10.0, "fakes an event", log=True)
    chart = SeriesChart(x, y, title=f"{NAMES[figure]} against events a second", height=HEIGHT)
    for device in ("cpu", "gpu"):
        best = sorted((p for p in points if p["on_frontier"] and p["device"] == device), key=lambda p: float(p["events_per_s"]))
        chart.frontier([p["events_per_s"] for p in best], [p[figure] or 0.0 for p in best])
    chart.scatter([
        (p["finder"], p["finder"] + (" (GPU)" if p["device"] == "gpu" else ""), p["events_per_s"], p[figure] or 0.0) for p in points
    ])  # fmt: skip
    return chart


def _scan_sections(scans: Mapping[str, ScanResult], names: Sequence[str]) -> list[Section]:
    key = legend(names)
    pictures = (
        ("hits", "Efficiency against hits", "efficiency", "Single rings; the mean number of different hits of a ring."),
        ("noise", "Efficiency against noise", "efficiency", "Single rings of 12 hits in the mean, and uniform noise."),
        (
            "noise",
            "Fakes against noise",
            "fakes",
            "The same events. Below the lowest line: none, or fewer than 1 in 10 000 events.",
        ),
        ("rings_apart", "Rings of an event, centres over 60 mm apart", "all_found", "Events in which every ring was found."),
        ("rings", "Rings of an event, at any distance", "all_found", "Events in which every ring was found."),
        ("distance", "Distance between two centres", "all_found", "Events with two rings in which both were found."),
        (
            "ring_hits",
            "Radius resolution against hits",
            "radius_rms_mm",
            "Found single rings, by the number of hits that the ring really has, its PMs hit by noise too included. The dotted line is the least error "
            "that a Gaussian hit error of the same rms allows.",
        ),
    )
    sections = []
    for name, title, figure, text in pictures:
        chart = scan_chart(scans[name], names, figure)
        if chart:
            sections.append(Section(title, key + chart.html(), text))
    return sections


def scan_chart(scan: ScanResult, names: Sequence[str], figure: str) -> SeriesChart | None:
    """One figure of each finder along a scan; None where there are too few points."""
    xs = [float(point["x"]) for point in scan["points"]]
    if len(xs) < 2:
        return None
    room = (max(xs) - min(xs)) * 0.04
    unit = "" if scan["unit"] in scan["title"] else f" [{scan['unit']}]"
    x = Axis(min(xs) - room, max(xs) + room, scan["title"] + unit)
    values = [point["finders"][name].get(figure) for point in scan["points"] for name in names]
    if figure in SHARES:
        y: Axis = NinesAxis(NINES, NAMES[figure])
    elif figure == "fakes":
        y = Axis(1e-4, 10.0, NAMES[figure], log=True)
    else:
        y = Axis(0.0, 1.06 * max([float(value) for value in values if value is not None], default=1.0), "radius rms [mm]")
    chart = SeriesChart(x, y, title=scan["title"], height=HEIGHT + 40)
    if figure == "radius_rms_mm":
        bound = [(at, point["finders"][ORACLE].get("bound_mm")) for at, point in zip(xs, scan["points"], strict=True)]
        known = [(at, value) for at, value in bound if value is not None]
        chart.frontier([at for at, _ in known], [value for _, value in known])
    error = "radius_rms_error_mm" if figure == "radius_rms_mm" else f"{figure}_error"
    for name in names:
        if name == ORACLE and figure == "fakes":
            continue
        found = [point["finders"][name] for point in scan["points"]]
        chart.series(name, xs, [one.get(figure) for one in found], [one.get(error) for one in found])
    return chart


def _separation_sections(cases: Mapping[str, CaseResult], names: Sequence[str]) -> list[Section]:
    body = ""
    for case_name, pairs in (("real_mix", ("e_mu", "mu_pi", "e_pi")), ("real_kaons", ("pi_K",))):
        for pair in pairs:
            chart = separation_chart(cases[case_name]["finders"], names, pair) if case_name in cases else None
            body += f"<h3>{PAIR_NAMES[pair].capitalize()}</h3>{chart.html()}" if chart else ""
    sections = []
    if body:
        text = (
            "Distance of the two mean radii at a known momentum, in units of their resolution sqrt((\u03c3\u00b2 + \u03c3\u00b2) / 2), rings of "
            "real yield (12.9 photons for an electron)."
        )
        sections.append(Section("Separation of particles against momentum", legend(names) + body, text))
    windows = [(case, cases[case]) for case in ("real_mix", "real_kaons") if case in cases]
    body = "".join(f"<h3>{escape(case['title'])}</h3>{_window_table(case['finders'], names)}" for _, case in windows)
    if body:
        text = "Share of each particle\u2019s rings that are found, and that are found with a radius within 6 mm of an electron\u2019s (189.65 mm)."
        sections.append(Section("Electron window", body, text))
    return sections


def separation_chart(finders: Finders, names: Sequence[str], pair: str) -> SeriesChart | None:
    """Separation of a pair of particles against momentum; None where it is not known."""
    bins = finders[names[0]]["separation"]
    xs = [(one["momentum_min_gev"] + one["momentum_max_gev"]) / 2 for one in bins]
    found = {name: [one["separation"].get(pair, {}) for one in finders[name]["separation"]] for name in names}
    values = [one["sigmas"] for points in found.values() for one in points if one.get("sigmas") is not None]
    if not values:
        return None
    y = Axis(0.0, 1.08 * max(values), "separation [\u03c3]")
    chart = SeriesChart(
        Axis(bins[0]["momentum_min_gev"], bins[-1]["momentum_max_gev"], "momentum [GeV/c]"), y,
        title=f"separation of {PAIR_NAMES[pair]}", height=HEIGHT,
    )  # fmt: skip
    for name, points in found.items():
        chart.series(name, xs, [one.get("sigmas") for one in points], [one.get("error") for one in points])
    return chart


def _window_table(finders: Finders, names: Sequence[str]) -> str:
    particles = list(finders[names[0]]["electron_window"])
    columns = ["finder"]
    for particle in particles:
        columns += [f"{particle} found %", f"{particle} e-like %"]
    rows = []
    for name in names:
        window = finders[name]["electron_window"]
        row = [name]
        for particle in particles:
            row += [_percent(window[particle][key], window[particle][f"{key}_error"]) for key in ("efficiency", "electron_like")]
        rows.append(row)
    return table(columns, rows, numbers=range(1, len(columns)))


def _tables_section(cases: Mapping[str, CaseResult], names: Sequence[str]) -> Section:
    whole = (
        ("all_found", "Events with every ring found, %", 100, 2), ("efficiency", "Rings found, %", 100, 2),
        ("efficiency_pileup", "Pile-up rings found, %", 100, 2), ("efficiency_in_time", "In-time rings found, %", 100, 2),
        ("count_right", "Events with the right number of rings, %", 100, 2), ("fakes", "Fakes an event", 1, 4),
        ("clones", "Clones an event", 1, 4), ("radius_bias_mm", "Radius bias, mm", 1, 3), ("radius_rms_mm", "Radius rms, mm", 1, 3),
        ("ratio_to_bound", "Radius rms over its bound", 1, 3), ("centre_rms_mm", "Centre rms, each axis, mm", 1, 3),
        ("time_rms_ns", "Time rms, ns", 1, 3), ("ns_per_event", "ns an event", 1, 0),
    )  # fmt: skip
    body = ""
    for figure, title, factor, digits in whole:
        rows = []
        for case in cases.values():
            values = [case["finders"][name][figure] for name in names]
            pileup = case["finders"][ORACLE]["efficiency_pileup"] is not None
            if any(value is not None for value in values) and (pileup or figure != "efficiency_in_time"):
                rows.append([case["title"], *("\u2013" if v is None else f"{factor * v:.{digits}f}" for v in values)])
        if not rows:
            continue
        body += f"<h3>{title}</h3>" + table(["", *names], rows, numbers=range(1, len(names) + 1))
    return Section("All samples", body, "Errors of every figure are in the JSON and the CSV.")


def _percent(value: float | None, error: float | None = None) -> str:
    if value is None:
        return "\u2013"
    return f"{100 * value:.2f}" + (f" \u00b1 {100 * error:.2f}" if error is not None else "")
