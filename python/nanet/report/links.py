# SPDX-License-Identifier: Apache-2.0
"""The report of a comparison of links: one table, latency distributions at half load, rates as bars beside the peers, and the balance sheets."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from nanet.bench.compare import HALF
from nanet.bench.link_keys import ComparedLink, ComparisonResult
from nanet.bench.tables import NAMES, peer_rates, rate_text, trips
from nanet.report.hops import hop_table
from nanet.report.latency import survival_chart
from nanet.report.page import Figure, Page, Section, facts_section, footer, number, table, us
from nanet.report.svg import NARROW, WIDE
from nanet.result.histogram import Histogram
from nanet.result.keys.hops import BalanceSheet

STYLES = tuple(f"k{n}" for n in (7, 8, 4, 3, 6, 1, 5, 2))  # colours of style.css, in the order of the links
BAR, GAP, LABEL, VALUE = 18, 8, 190, 90  # heights, and the room for names and values


def make_links(result: ComparisonResult) -> Page:
    """The page of `nanet bench rate --link` and `nanet bench latency --link`."""
    ran = [link for link in result["links"] if link["reason"] is None]
    best = max(ran, key=lambda link: float(link["critical_rate_events_per_s"] or 0.0), default=None)
    unexplained = int(result["unexplained_packets"])
    packets = sum(link["packets_sent"] for link in ran)
    page = Page(
        title=f"nanet {result['command']}",
        over=f"nanet {result['command']} \u00b7 two network namespaces joined by veth \u00b7 {result['message_bytes']} B packets",
        headline=_headline(best),
        lead=f"{len(ran)} links, each alone on the same cable and cores, with its peers in the same run. Every packet was counted at every hop: "
        f"{number(unexplained)} of {number(packets)} unexplained.",
        kept=bool(ran) and unexplained == 0,
        footer=footer(result),
    )  # fmt: skip
    page.figures = [Figure(link["name"], rate_text(link["critical_rate_events_per_s"] or 0.0), "Mevent/s") for link in ran]
    page.sections = [Section("Critical rates", _bars(_rates(result)), _rate_text(result))]
    if any(link["long_run"] for link in ran):
        page.sections.append(
            Section("Long runs", _long_runs(ran), "Each one run; what the machine did meanwhile is shown next to what was lost.")
        )
    if any(link["loads"] for link in ran):
        page.sections += [
            Section(
                "Latency",
                _latency_table(result),
                "Microseconds. Load is the share of the link's own critical rate; 1 out: one packet in flight, as sockperf measures.",
            ),
            Section("Distributions at half load", _distributions(ran, float(result["budget_us"])), "Both axes are logarithmic."),
            Section(
                "One packet in flight",
                _single_bars(result),
                "Median in microseconds: packet sent to answer received, the next sent only then; what sockperf measures of two bare messages.",
            ),
        ]
    page.sections += [
        Section("Links", _link_table(result["links"])),
        Section("Balance sheets", _balances(ran), "Of the last run of each link: what came to a hop, what went on, and what did not, by name."),
        facts_section(result, {}, result["notes"]),
    ]  # fmt: skip
    return page


def _headline(best: ComparedLink | None) -> str:
    if best is None:
        return "No link ran"
    if not best["critical_rate_events_per_s"]:
        return "No link had a rate without loss"
    return f"{best['name']} is the fastest: {rate_text(best['critical_rate_events_per_s'])} Mevent/s"


def _rates(result: ComparisonResult) -> list[tuple[str, float, str]]:
    ours = [
        (link["name"], float(link["critical_rate_packets_per_s"] or 0.0), "ours")
        for link in result["links"]
        if link["reason"] is None
    ]
    ours += [
        (f"{link['name']}, alone", float(link["alone"]["critical_rate_packets_per_s"]), "alone")
        for link in result["links"]
        if link["alone"]
    ]
    return ours + [(name, rate, "peer") for name, rate, _ in peer_rates(result["peers"])]


def _rate_text(result: ComparisonResult) -> str:
    return (
        "Thousand packets a second: of a link, received, decoded, judged and answered without a loss; of a link alone and of spead2, received without a loss; "
        f"of testpmd, forwarded by one core. A packet of ours holds {result['events_per_packet']} events. The boards sent "
        f"{result['burst_packets']} packet(s) a call."
    )


def _bars(rates: Sequence[tuple[str, float, str]], digits: int = 0) -> str:
    """Horizontal bars of (name, packets a second, `ours`, `alone` or `peer`)."""
    if not rates:
        return "<p>Nothing was measured.</p>"
    return f'<div class="chart">{_bar_svg(rates, digits, WIDE, "wide")}{_bar_svg(rates, digits, NARROW, "narrow")}</div>'


def _bar_svg(rates: Sequence[tuple[str, float, str]], digits: int, width: int, kind: str) -> str:
    """The names stand beside the bars of a wide chart and above those of a narrow one."""
    highest = max(rate for _, rate, _ in rates) or 1.0
    left, above = (LABEL, 0) if width == WIDE else (0, BAR)
    parts = []
    for n, (name, rate, whose) in enumerate(rates):
        row = n * (above + BAR + GAP)
        top = row + above
        length = (width - left - VALUE) * rate / highest
        style = {"ours": "s1", "alone": "s3"}.get(whose, "s2")
        place = f'x="0" y="{row + 13}"' if above else f'text-anchor="end" x="{left - 8}" y="{top + 14}"'
        parts.append(f'<text class="tick" {place}>{escape(name)}</text>')
        parts.append(f'<path class="bars {style}" d="M{left} {top}h{length:.1f}v{BAR}H{left}Z"/>')
        parts.append(f'<text class="note" x="{left + length + 8:.1f}" y="{top + 14}">{rate / 1e3:,.{digits}f}</text>')
    height = len(rates) * (above + BAR + GAP)
    head = f'<svg class="{kind}" viewBox="0 0 {width} {height}" role="img" aria-label="Critical rates" xmlns="http://www.w3.org/2000/svg">'
    return head + "".join(parts) + "</svg>"


def _latency_table(result: ComparisonResult) -> str:
    rows = []
    for link in result["links"]:
        for load in link["loads"]:
            latency = load["latency_us"] or {}
            rows.append([
                link["name"], f"{load['share'] * 100:.0f} %", f"{load['rate_events_per_s'] / 1e6:.2f}",
                *(us(latency.get(key)) for key, _ in NAMES), number(load["lost"]), us(load["longest_stall_us"]),
            ])  # fmt: skip
        if single := link["one_in_flight"]:
            latency = single["latency_us"] or {}
            values = [us(latency.get(key)) for key, _ in NAMES]
            rows.append([link["name"], "1 out", "", *values, number(single["lost"]), us(single["longest_stall_us"])])
    for waiting, trip in trips(result["peers"]).items():
        rows.append([f"sockperf {waiting}", "1 out", "", *(us(trip.get(key)) for key, _ in NAMES), "", ""])
    columns = ["link", "load", "Mevent/s", *(shown for _, shown in NAMES), "lost", "longest own stall"]
    return table(columns, rows, numbers=range(2, len(columns)))


def _single_bars(result: ComparisonResult) -> str:
    """Medians with one packet in flight, beside sockperf's."""
    found = [
        (str(link["name"]), 1e3 * float(latency["p50"]), "ours")
        for link in result["links"]
        if (single := link["one_in_flight"]) and (latency := single["latency_us"])
    ]
    found += [(f"sockperf {waiting}", 1e3 * float(trip["p50"]), "peer") for waiting, trip in trips(result["peers"]).items()]
    return _bars(found, digits=1)


def _long_runs(ran: Sequence[ComparedLink]) -> str:
    rows = []
    for link in ran:
        if not (run := link["long_run"]):
            continue
        losses = ", ".join(f"{name} {count:,}" for name, count in run["losses"].items() if count) or "nothing"
        rows.append([
            link["name"], f"{run['share'] * 100:.0f} %", number(run["packets"]), f"{run['duration_s']:,.0f}", losses,
            number(run["balance"]["unexplained_packets"]), us(run["stalls"]["longest_us"]), f"{run['engine_core_wait_s'] * 1e3:,.0f}",
        ])  # fmt: skip
    columns = [
        "link", "load", "packets", "s", "lost", "unexplained", "emulator's longest stop, us", "engine without its core, ms",
    ]  # fmt: skip
    return table(columns, rows, numbers=[2, 3, 5, 6, 7])


def _distributions(ran: Sequence[ComparedLink], budget_us: float) -> str:
    lines: list[tuple[str, str, Histogram]] = []
    names: list[tuple[str, str]] = []
    for n, link in enumerate(ran):
        half = [load for load in link["loads"] if load["share"] == HALF and load["latency_histogram"]]
        if half:
            style = STYLES[n % len(STYLES)]
            names.append((str(link["name"]), style))
            lines.append(("", style, Histogram.decode(half[0]["latency_histogram"])))
    items = "".join(
        f'<span><svg viewBox="0 0 34 14" width="34" height="14" aria-hidden="true"><path class="line {style}" d="M1 7H33"/></svg>'
        f"{escape(name)}</span>"
        for name, style in names
    )
    return f'<p class="legend">{items}</p>' + survival_chart(lines, budget_us)


def _link_table(links: Sequence[ComparedLink]) -> str:
    rows = []
    for link in links:
        rate = link["critical_rate_events_per_s"]
        rows.append([
            link["name"], link["reason"] or link["what"], link["path"] or "\u2013", rate_text(rate) if rate is not None else "\u2013",
            link["limited_by"] or "\u2013",
        ])  # fmt: skip
    return table(["link", "what", "path", "Mevent/s", "limited by"], rows, numbers=[3])


def _balances(ran: Sequence[ComparedLink]) -> str:
    parts = []
    for link in ran:
        sheet = _last_balance(link)
        if sheet is None:
            continue
        body = hop_table(sheet)
        parts.append(f"<details><summary>{escape(link['name'])}: {number(sheet['unexplained_packets'])} unexplained</summary>{body}</details>")  # fmt: skip
    return "".join(parts)


def _last_balance(link: ComparedLink) -> BalanceSheet | None:
    runs = [run["balance"] for load in link["loads"] for run in load["runs"]]
    repeats = [run.get("balance") for step in link["steps"] if step["passed"] for run in step["repeats"]]
    return runs[-1] if runs else repeats[-1] if repeats else None
