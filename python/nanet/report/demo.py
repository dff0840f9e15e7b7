# SPDX-License-Identifier: Apache-2.0
"""The report of `nanet demo`: verdict, latency, books, rings, events, facts."""

from __future__ import annotations

from html import escape

import numpy as np

from nanet.loop import verdict
from nanet.loop.keys import DemoResult
from nanet.report import channels, events, l0
from nanet.report.hops import hop_table
from nanet.report.latency import STALLS_TEXT, survival_chart, time_chart
from nanet.report.page import Figure, Page, Section, facts_section, footer, number, table, us
from nanet.report.svg import Axis, Chart
from nanet.result.histogram import Histogram
from nanet.rich import pm_map

PARTICLE_NAMES = {"e": "e", "mu": "\u03bc", "pi": "\u03c0", "K": "K"}
PACKET_ROWS = (
    "packets_accepted", "packets_reordered", "packets_duplicate", "packets_late", "packets_lost_kernel", "packets_lost_network",
    "packets_clop_full", "packets_bad_length", "packets_bad_format", "packets_bad_checksum",
    "packets_truncated", "packets_unknown_source", "packets_unknown_sender", "packets_wrong_queue",
)  # fmt: skip


def make(result: DemoResult) -> Page:
    """The page of a demo's result."""
    judged, latency = result["verdict"], result["latency_us"] or {}
    kept, budget_us = bool(judged["kept"]), float(judged["budget_us"])
    emulator = result["emulator"]
    rate = result["sent"] / emulator["elapsed_s"] if emulator["elapsed_s"] else 0.0
    page = Page(
        title="nanet demo",
        over="nanet demo \u00b7 hits over UDP, rings found, answers over UDP",
        headline=verdict.headline(result),
        lead=_lead(result),
        kept=kept,
        footer=footer(result),
        definitions=events.definitions(),
    )
    page.figures = [
        Figure("events sent", f"{result['sent'] / 1e6:.2f}", "M"),
        Figure("lost", number(result["lost"])),
        Figure("rate", f"{rate / 1e6:.2f}", "M/s"),
        Figure("p50", us(latency.get("p50")), "\u00b5s"),
        Figure("p99", us(latency.get("p99")), "\u00b5s"),
        Figure("p99.9", us(latency.get("p99_9")), "\u00b5s"),
        Figure("slowest", us(latency.get("max")), "\u00b5s"),
    ]
    l0_part = result.get("l0")
    page.sections = [
        _short_section(result),
        _latency_section(result, budget_us),
        _time_section(result, budget_us),
        _books_section(result),
        *([l0.section(l0_part, budget_us)] if l0_part else []),
        _radius_section(result),
        _events_section(result),
        *([channels.section(pms)] if (pms := result["engine"].get("channels")) else []),  # not in results of before
        facts_section(
            result,
            {"Engine configuration": result["engine"]["config"], "Emulator configuration": emulator["config"]}
            | ({"L0 trigger processor configuration": l0_part["config"]} if l0_part else {}),
            result.get("notes", []),
        ),
    ]
    return page


def _lead(result: DemoResult) -> str:
    judged = result["verdict"]
    if not judged["kept"]:
        return "Because: " + "; ".join(judged["reasons"]) + "."
    late = judged["events_over_budget"]
    text = f"{number(result['sent'])} events were sent and {number(result['answered'])} right answers came back; nothing was lost. The budget is {number(judged['budget_us'])} \u00b5s. "
    if late:
        return text + (
            f"{number(late)} of them took longer than {number(judged['budget_us'])} \u00b5s; in this run the machine kept "
            f"the emulator\u2019s own thread from running for up to {number(result['host']['longest_stop_us'])} \u00b5s."
        )
    return text + f"The slowest answer took {us((result['latency_us'] or {}).get('max'))} \u00b5s."


def _short_section(result: DemoResult) -> Section:
    """What the loop did, what the host did, what `nanet tune` would fix."""
    rows = [line.rstrip(".").partition(": ")[::2] for line in verdict.lines(result)]
    return Section("In short", table(["", ""], rows))


def _latency_section(result: DemoResult, budget_us: float) -> Section:
    emulator, engine = result["emulator"], result["engine"]
    lines = [
        (
            "last packet sent to answer", "s1",
            Histogram.decode(emulator["latency_histogram"], emulator["latency_us"]),
        ),
        (
            "without the emulator\u2019s own stalls", "s2",
            Histogram.decode(emulator["latency_clean_histogram"], emulator["latency_clean_us"]),
        ),
        ("inside the engine", "s3", Histogram.decode(engine["latency_histogram"], engine["latency_us"])),
    ]  # fmt: skip
    text = "Share of events that took at least this long. Both axes are logarithmic, so the rare slow ones can be seen. "
    return Section("Latency", survival_chart(lines, budget_us), text + STALLS_TEXT)


def _time_section(result: DemoResult, budget_us: float) -> Section:
    text = "Each point is a stretch of the run: half of its answers, 99\u2009% of them, and the slowest one."
    return Section("Latency over the run", time_chart(result["emulator"]["series"], budget_us), text)


def _books_section(result: DemoResult) -> Section:
    counters = result["engine"]["counters"]
    rows = [["answered", number(result["answered"]), "a right answer came back"]]
    styles = {}
    for name, count in result["losses"].items():
        if count:
            styles[len(rows)] = "loss"
        rows.append([name, number(count), result["loss_meanings"][name]])
    styles[len(rows)] = "sum"
    rows.append(["sent", number(result["sent"]), "the sum of the lines above"])
    body = table(["events", "", ""], rows, numbers=[1], styles=styles)
    packets = [[name, number(counters[name])] for name in PACKET_ROWS if counters.get(name) or name == "packets_accepted"]
    if balance := result["engine"].get("balance"):  # not in results of before
        body += "<br>" + hop_table(balance)
    clean = len(packets) == 1
    body += "<br>" + table(["packets at the engine", ""], packets, numbers=[1])
    text = "Sent = answered + every named loss." + (" No packet was lost, late, duplicated or refused." if clean else "")
    return Section("The books", body, text)


def _radius_section(result: DemoResult) -> Section:
    counts = np.asarray(result["engine"]["rings"].get("radius_mm", []), dtype=np.float64)
    if not counts.any():
        return Section("Ring radii", "<p>No ring was found.</p>")
    low, high = 60, 230
    shown = counts[low:high]
    chart = Chart(
        Axis(low, high, "radius of the fitted ring [mm]"), Axis(0.0, float(shown.max()) * 1.45, "rings per mm"),
        title="Spectrum of ring radii", height=330,
    )  # fmt: skip
    chart.bars(list(range(low, high + 1)), shown.tolist(), "s1")
    monte_carlo = result["emulator"]["config"]["monte_carlo"]
    p_low, p_high = float(monte_carlo["momentum_min_gev"]), float(monte_carlo["momentum_max_gev"])
    level = 26.0
    for particle, style in (("mu", "s3"), ("pi", "s4"), ("K", "soft")):
        if monte_carlo["flat_radius"] or not monte_carlo["fractions"][particle]:
            continue
        radii = [pm_map.ring_radius_mm(particle, p) for p in (p_low, p_high)]
        if radii[1] > low:
            chart.span(max(radii[0], low), radii[1], level, style, PARTICLE_NAMES[particle])
            level += 20
    chart.vertical(pm_map.ELECTRON_RADIUS_MM, "s2", "e", side="right")
    found = int(result["engine"]["counters"]["rings_found"])
    electrons = int(result["engine"]["counters"]["rings_electron"])
    text = (
        f"{number(found)} rings found, {number(electrons)} of them electron-like. The brackets show where muons and pions of "
        f"{p_low:g} to {p_high:g} GeV/c should lie, the dashed line every electron."
    )
    return Section("Ring radii", chart.html(), text)


def _events_section(result: DemoResult) -> Section:
    figures = ""
    for sample in events.choose(result["engine"]["event_samples"]):
        svg, caption = events.display(sample)
        figures += f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"
    text = (
        "Six events of this run: hit photomultipliers on the disk, both disks overlaid, in the colour of the ring that was "
        "found nearest; without a colour: on no ring. Dashed: the true rings."
    )
    return Section("Events", f'<div class="events">{figures}</div>', text)
