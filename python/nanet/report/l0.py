# SPDX-License-Identifier: Apache-2.0
"""The L0 trigger processor in the report of `nanet demo`: what it decided, what fired, what it could not decide on."""

from __future__ import annotations

from html import escape

from nanet.loop.keys import L0Part
from nanet.report.latency import survival_chart
from nanet.report.page import Section, number, table, us
from nanet.result.histogram import Histogram
from nanet.result.keys.l0tp import InputResult

NOT_DECIDED = {
    "late": "came when its time was decided on already",
    "out_of_range": "its time is too far from that of the others",
    "overwritten": "a later one of the same detector took its cell of 25 ns",
    "duplicates": "came twice",
    "calibrations_no_room": "a calibration for which there was no room",
}


def section(l0: L0Part, budget_us: float) -> Section:
    """Decisions and their latency."""
    counters, inputs = l0["counters"], l0["inputs"]
    decided = int(counters["decided"])
    body = _latency(l0, budget_us)
    rows = [
        [
            one["name"], number(one["counters"]["primitives"]), number(one["counters"]["matched"]),
            f"{100 * one['counters']['matched'] / decided:.1f}\u2009%" if decided else "\u2013",
        ]
        for one in inputs
    ]  # fmt: skip
    body += table(["detector", "primitives", "in decisions", ""], rows, numbers=[1, 2, 3])
    rows = [[m["name"], number(m["downscaling"]), number(m["matched"]), number(m["fired"])] for m in l0["masks"]]
    body += "<br>" + table(["mask", "downscaling", "matched", "fired"], rows, numbers=[1, 2, 3])
    body += "<br>" + _not_decided(inputs)
    reference = inputs[0]
    text = (
        f"Each primitive of the {reference['name']} is compared with those of the other detectors, emulated on the same clock. "
        f"{number(decided)} of {number(reference['counters']['primitives'])} were decided on, {number(l0['triggers_sent'])} triggers were "
        f"sent and {number(_received(l0))} came back. The processor waits for the slowest detector, and "
        f"{us(float(l0['config']['read_lag_us']))}\u00a0\u00b5s more, before it decides; that is part of every latency here. The last "
        f"events of a run wait until the RICH was silent for {number(l0['config']['patience_ms'])}\u00a0ms."
    )
    return Section("The L0 trigger processor", body, text)


def _latency(l0: L0Part, budget_us: float) -> str:
    if not l0["event_to_decision_histogram"]:
        return "<p>No trigger came back.</p>"
    whole, own = l0["event_to_decision_us"] or {}, l0["latency_us"] or {}
    lines = [
        ("last packet sent to trigger", "s1", Histogram.decode(l0["event_to_decision_histogram"], whole)),
        ("primitive received to trigger sent", "s3", Histogram.decode(l0["latency_histogram"], own)),
    ]
    names = {"p50": "p50", "p90": "p90", "p99": "p99", "p99_9": "p99.9", "max": "slowest"}
    rows = [
        [shown, *(us(values[key]) for key in names)]
        for shown, values in (("last packet sent to trigger", whole), ("primitive received to trigger sent", own))
    ]
    return survival_chart(lines, budget_us) + table(["\u00b5s", *names.values()], rows, numbers=[1, 2, 3, 4, 5]) + "<br>"


def _received(l0: L0Part) -> int:
    decisions = l0["decisions"] or {}
    return int(decisions["physics"]) + int(decisions["calibration"])


def _not_decided(inputs: list[InputResult]) -> str:
    shown = [name for name in NOT_DECIDED if any(one["counters"][name] for one in inputs)]
    if not shown:
        return "<p>No primitive was late, out of range or overwritten.</p>"
    rows = [[name, *(number(one["counters"][name]) for one in inputs)] for name in shown]
    columns = ["not decided on", *(str(one["name"]) for one in inputs)]
    meanings = "; ".join(f"{escape(name)}: {escape(NOT_DECIDED[name])}" for name in shown)
    return table(columns, rows, numbers=list(range(1, len(inputs) + 1))) + f"<p>{meanings}.</p>"
