# SPDX-License-Identifier: Apache-2.0
"""Charts of latency: complementary cumulative, against time, against rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nanet.bench.keys import Step
from nanet.report.page import number, us
from nanet.report.svg import Axis, Chart
from nanet.result.histogram import Histogram
from nanet.result.keys.emulator import CoursePoint

POINTS_MAX = 500
STALLS_TEXT = (
    "The line without the emulator\u2019s own stalls leaves out the events that were in flight while the emulator\u2019s thread "
    "was stopped; inside the engine counts every event, so its tail may lie above that line."
)
MARKED = ((50.0, "p50"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99"))


def survival_chart(lines: Sequence[tuple[str, str, Histogram]], budget_us: float) -> str:
    """Complementary cumulative of (name, style, histogram), log-log, with the budget and the first one's percentiles."""
    lines = [(name, style, histogram) for name, style, histogram in lines if histogram.count]
    if not lines:
        return "<p>Nothing was measured.</p>"
    slowest = max(histogram.max for _, _, histogram in lines) / 1e3
    fastest = max(0.05, min(histogram.min for _, _, histogram in lines) / 1e3)
    most = max(histogram.count for _, _, histogram in lines)
    chart = Chart(
        Axis(fastest * 0.8, max(slowest, budget_us) * 2.0, "latency [\u00b5s]", log=True),
        Axis(0.5 / most, 1.4, "share of events", log=True, percent=True),
        title="Share of events at or above a latency", height=400,
    )  # fmt: skip
    chart.vertical(budget_us, "limit", _budget(budget_us), side="left" if budget_us > slowest else "right", at="bottom")
    for name, style, histogram in reversed(lines):
        xs, ys = _thinned(*histogram.survival())
        chart.line(xs, ys, style, name, step=False)
    main = lines[0][2]
    marks = [(main.percentile(q) / 1e3, 1.0 - q / 100.0, name) for q, name in MARKED if main.count * (1 - q / 100.0) >= 1.0]
    chart.dots([m[0] for m in marks], [m[1] for m in marks], lines[0][1], [f"{m[2]}  {us(m[0])}" for m in marks])
    return chart.html()


def time_chart(series: Sequence[CoursePoint], budget_us: float) -> str:
    """p50, p99 and slowest of each stretch of a run."""
    series = [row for row in series if row["answered"]]
    if len(series) < 2:
        return "<p>The run was too short for this.</p>"
    times = [float(row["t_s"]) for row in series]
    lowest = min(float(row["p50_ns"]) for row in series) / 1e3
    highest = max(float(row["max_ns"]) for row in series) / 1e3
    chart = Chart(
        Axis(min(times[0], 0.0), times[-1], "time since start [s]"),
        Axis(max(0.05, lowest) * 0.6, max(highest, budget_us) * 1.6, "latency [\u00b5s]", log=True),
        title="Latency over the run", height=300,
    )  # fmt: skip
    chart.horizontal(budget_us, "limit", _budget(budget_us))
    for values, style, name in (
        ([row["max_ns"] for row in series], "soft", "slowest"),
        ([row["p99_ns"] for row in series], "s2", "p99"),
        ([row["p50_ns"] for row in series], "s1", "p50"),
    ):
        chart.line(times, [float(value) / 1e3 for value in values], style, name)
    return chart.html()


def rate_chart(steps: Sequence[Step], budget_us: float, critical: float | None) -> str:
    """Latency against the rate that was offered; steps without an answer are left out."""
    found = [(float(step["rate_events_per_s"]), latency) for step in steps if (latency := step["latency_us"])]
    points = sorted(found, key=lambda point: point[0])
    if len(points) < 2:
        return "<p>Too few rates were measured.</p>"
    rates = [rate / 1e6 for rate, _ in points]
    values = {key: [float(latency[key]) for _, latency in points] for key in ("p50", "p99", "p99_9", "max")}
    lowest, highest = min(values["p50"]), max(values["max"])
    chart = Chart(
        Axis(0.0, max(rates) * 1.05, "rate [Mevent/s]"),
        Axis(max(0.05, lowest) * 0.6, max(highest, budget_us) * 1.6, "latency [\u00b5s]", log=True),
        title="Latency against rate", height=360,
    )  # fmt: skip
    chart.horizontal(budget_us, "limit", _budget(budget_us))
    if critical:
        chart.vertical(critical / 1e6, "s3", "critical rate", at="bottom")
    for key, style, name in (("max", "soft", "slowest"), ("p99_9", "s4", "p99.9"), ("p99", "s2", "p99"), ("p50", "s1", "p50")):
        chart.line(rates, values[key], style, name)
        chart.dots(rates, values[key], style)
    return chart.html()


def _budget(budget_us: float) -> str:
    return f"budget {number(budget_us)} \u00b5s"


def _thinned(xs: np.ndarray[Any, Any], ys: np.ndarray[Any, Any]) -> tuple[list[float], list[float]]:
    if len(xs) > POINTS_MAX:
        places = np.linspace(np.log(max(xs[0], 1e-3)), np.log(xs[-1]), POINTS_MAX - 2)
        keep = np.unique(
            np.concatenate([[0], np.searchsorted(np.log(np.maximum(xs, 1e-3)), places).clip(0, len(xs) - 1), [len(xs) - 1]])
        )
        xs, ys = xs[keep], ys[keep]
    return xs.tolist(), ys.tolist()
