# SPDX-License-Identifier: Apache-2.0
"""The reports of the benchmarks."""

from __future__ import annotations

from nanet.bench.keys import FindersResult, LatencyResult, RateResult, RingsResult
from nanet.bench.tables import rate_text
from nanet.report.latency import STALLS_TEXT, rate_chart, survival_chart, time_chart
from nanet.report.page import Figure, Page, Section, facts_section, footer, number, table, us
from nanet.report.svg import Axis, Chart
from nanet.result.books import lost_text
from nanet.result.histogram import Histogram

LIMITS = {
    "engine": "Above it the engine loses events.",
    "sender": "Above it the sender itself no longer keeps the rate, so the engine may well sustain more.",
    "search range": "It is the highest rate that was tried.",
}


def make_rate(result: RateResult) -> Page:
    """The page of `nanet bench rate`."""
    critical = float(result["critical_rate_events_per_s"])
    boards = "one board" if result["boards"] == 1 else f"{result['boards']} boards, merged"
    page = Page(
        title="nanet bench rate",
        over=f"nanet bench rate \u00b7 {boards}, {result['layout']} packets, one engine core",
        headline=f"{critical / 1e6:.2f} Mevent/s without a single loss" if critical else "No rate without loss was found",
        lead=_rate_lead(result),
        kept=critical > 0,
        footer=footer(result),
    )
    best = [step for step in result["steps"] if step["rate_events_per_s"] == critical]
    latency = (best[0]["latency_us"] if best else None) or {}
    page.figures = [
        Figure("critical rate", rate_text(critical), "Mevent/s" if critical else ""),
        Figure("time per event", f"{1e9 / critical:.0f}" if critical else "\u2013", "ns"),
        Figure("p50 there", us(latency.get("p50")), "\u00b5s"),
        Figure("p99.9 there", us(latency.get("p99_9")), "\u00b5s"),
    ]
    rows: list[list[str]] = []
    styles: dict[int, str] = {}
    for step in result["steps"]:
        if not step["passed"]:
            styles[len(rows)] = "loss"
        shown = step["latency_us"] or {}
        outcome = "nothing lost" if step["passed"] else f"{step['failure']}: lost {lost_text(step['repeats'][-1]['losses'])}"
        rows.append(
            [f"{step['rate_events_per_s'] / 1e6:.2f}", us(shown.get("p50")), us(shown.get("p99_9")), us(shown.get("max")), outcome]
        )
    columns = ["Mevent/s", "p50 \u00b5s", "p99.9 \u00b5s", "slowest \u00b5s", "outcome"]
    page.sections = [
        Section("Latency against rate", rate_chart(result["steps"], float(result["budget_us"]), critical)),
        Section("Every step of the search", table(columns, rows, numbers=[0, 1, 2, 3], styles=styles)),
        facts_section(result, {}, result["notes"]),
    ]
    return page


def _rate_lead(result: RateResult) -> str:
    if not result["critical_rate_events_per_s"]:
        lowest = result["steps"][0]
        return (
            f"Every rate that was tried failed in {_runs(result)}, down to {lowest['rate_events_per_s'] / 1e6:g} Mevent/s, "
            f"there because of the {lowest['failure']}."
        )
    limit = LIMITS[result["limited_by"]]
    return f"Receive, decode, fit, answer: the highest rate at which nothing was lost in {_runs(result)}. {limit}"


def _runs(result: RateResult) -> str:
    return (
        f"{result['repeats']} runs of {result['repeat_s']:g} s" if result["repeats"] > 1 else f"a run of {result['repeat_s']:g} s"
    )


def make_latency(result: LatencyResult) -> Page:
    """The page of `nanet bench latency`."""
    ours, theirs = result["latency_us"], result["sockperf_us"]
    page = Page(
        title="nanet bench latency",
        over=f"nanet bench latency \u00b7 {result['rate_events_per_s'] / 1e6:g} Mevent/s \u00b7 medians of {len(result['rounds'])} rounds",
        headline=f"{result['p50_above_sockperf_us']:+.1f} \u00b5s against a bare UDP round trip",
        lead="From the last packet of an event given to the kernel to its answer received: two UDP messages, decoding, ring fit "
        "and answer. sockperf sends two messages of the same size between the same cores and does nothing else.",
        kept=not result["lost"] and ours["p99_9"] <= result["budget_us"],
        footer=footer(result),
    )
    page.figures = [
        Figure("p50", us(ours["p50"]), "\u00b5s"),
        Figure("sockperf p50", us(theirs["p50"]), "\u00b5s"),
        Figure("p99.9", us(ours["p99_9"]), "\u00b5s"),
        Figure("sockperf p99.9", us(theirs["p99_9"]), "\u00b5s"),
        Figure("lost", number(result["lost"])),
    ]
    lines = [
        (name, style, Histogram.decode(histogram))
        for name, style, histogram in (
            ("last packet sent to answer", "s1", result["latency_histogram"]),
            ("without the emulator\u2019s own stalls", "s2", result["latency_clean_histogram"]),
            ("inside the engine", "s3", result["engine_histogram"]),
        )
        if histogram
    ]
    configs = {"engine": result["config"]["engine"], "emulator": result["config"]["emulator"]}
    names = (("p50", "p50"), ("p99", "p99"), ("p99_9", "p99.9"), ("p99_99", "p99.99"), ("max", "slowest"))
    clean = result["latency_clean_us"] or {}
    single = result["one_in_flight_us"]
    rows = [
        [shown, us(ours[key]), us(clean.get(key)), us(single[key]), us(theirs[key]), f"{single[key] / theirs[key]:.2f}"]
        for key, shown in names
    ]
    columns = [
        "", "nanet \u00b5s", "without own stalls \u00b5s", "one in flight \u00b5s", "sockperf round trip \u00b5s", "one in flight / sockperf",
    ]  # fmt: skip
    page.sections = [
        Section(
            "Side by side",
            table(columns, rows, numbers=[1, 2, 3, 4, 5]),
            "Medians over the rounds; sockperf ran before and after each. sockperf has one message in flight at a time, so a pause of the "
            "machine hits one message; the boards of the first column send what is due, so a pause hits all of it. The third column "
            "is measured the way sockperf measures.",
        ),
        Section(
            "Distribution",
            survival_chart(lines, float(result["budget_us"])),
            "All rounds together. Both axes are logarithmic. " + (STALLS_TEXT if result["latency_clean_histogram"] else ""),
        ),
        Section("Last round over time", time_chart(result["series"], float(result["budget_us"]))),
        facts_section(result, {f"Configuration: {name}": configs[name] for name in configs}, result["notes"]),
    ]
    return page


def make_finders(result: FindersResult) -> Page:
    """The page of `nanet bench rings --finder ...`."""
    page = Page(
        title="nanet bench rings",
        over="nanet bench rings \u00b7 ring finders on one core",
        headline=", ".join(
            f"{found['name']} {found['cases'][0]['ns_per_event'] / 1e3:.2f} \u00b5s" for found in result["finders"][:4]
        ),
        lead="The vectorised path finds the same bits as the scalar one."
        if result["same_bits"]
        else "Vector and scalar paths differ.",
        kept=bool(result["same_bits"]),
        footer=footer(result),
    )
    samples = [case["sample"] for case in result["finders"][0]["cases"]]
    rows = [[found["name"], *(f"{case['ns_per_event']:,.0f}" for case in found["cases"])] for found in result["finders"]]
    page.sections = [
        Section(
            "Nanoseconds per event",
            table(["finder", *samples], rows, numbers=range(1, len(samples) + 1)),
            "Medians, all hits in cache, plus 1.2 noise hits; 12 hits per ring unless stated otherwise.",
        ),
        facts_section(result, {}, []),
    ]
    return page


def make_rings(result: RingsResult) -> Page:
    """The page of `nanet bench rings`."""
    math = result["math"]
    ratio = result["ratio_to_circle_fit"]
    page = Page(
        title="nanet bench rings",
        over="nanet bench rings \u00b7 the MATH fit on one core",
        headline=f"{math['events_per_s'] / 1e6:.1f} million rings per second with {math['hits']} hits",
        lead=f"{result['ratio_to_numpy']:.0f} times a vectorised numpy fit"
        + (f", {number(ratio)} times circle-fit." if ratio else "."),
        kept=True,
        footer=footer(result),
    )
    page.figures = [
        Figure("rings per second", f"{math['events_per_s'] / 1e6:.1f}", "M"),
        Figure("time a ring", f"{1e9 / math['events_per_s']:.1f}", "ns"),
        Figure("instruction set", math["simd"]),
    ]
    rows = []
    for case in result["cases"]:
        circle = case["circle_fit"]
        rows.append([
            str(case["hits"]), f"{case['math']['events_per_s'] / 1e6:.2f}", f"{case['math_scalar']['events_per_s'] / 1e6:.2f}",
            f"{case['numpy']['events_per_s'] / 1e6:.3f}", f"{circle['events_per_s'] / 1e6:.4f}" if circle else "\u2013",
            f"{case['radius_rms_mm']:.2f}", f"{case['radius_bias_mm']:+.3f}",
        ])  # fmt: skip
    columns = ["hits", "MATH", "MATH scalar", "numpy", "circle-fit", "radius rms mm", "bias mm"]
    body = table(columns, rows, numbers=range(len(columns)))
    page.sections = [
        Section("Millions of rings per second", _rings_chart(result), "Logarithmic: each line up is ten times as fast."),
        Section(
            "All cases",
            body,
            "Rates in millions of events per second, on the same events. The bias is that of every algebraic fit: about the square of the "
            "single-hit error over the radius.",
        ),
        facts_section(result, {}, []),
    ]
    return page


def _rings_chart(result: RingsResult) -> str:
    cases = result["cases"]
    hits = [float(case["hits"]) for case in cases]
    chart = Chart(
        Axis(min(hits) - 2, max(hits) + 2, "hits of an event"), Axis(0.001, 200.0, "million rings/s", log=True),
        title="Rings per second against hits", height=320,
    )  # fmt: skip
    for of_cases, style, name in (
        ([case["math"] for case in cases], "s1", "MATH"),
        ([case["math_scalar"] for case in cases], "s3", "MATH, scalar"),
        ([case["numpy"] for case in cases], "s2", "numpy"),
        ([case["circle_fit"] for case in cases], "s4", "circle-fit"),
    ):
        rates = [found["events_per_s"] / 1e6 for found in of_cases if found]
        if len(rates) == len(cases):
            chart.line(hits, rates, style, name)
            chart.dots(hits, rates, style)
    return chart.html()
