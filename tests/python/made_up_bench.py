# SPDX-License-Identifier: Apache-2.0
"""Results of `nanet bench rate`, `latency` and `rings`, made up, so that reports can be tested without a run."""

from __future__ import annotations

from typing import Any

from made_up import histogram_of, whole_demo
from nanet.result import files


def rate_result() -> dict[str, Any]:
    """A search from 1 to 20 Mevent/s that found 10."""
    steps = [
        {"rate_events_per_s": rate, "passed": rate < 2e7, "failure": None if rate < 2e7 else "engine",
         "latency_us": histogram_of(20 * rate / 1e7, 5000).summary_us(), "repeats": [{"losses": {"events_lost": 5}}]}
        for rate in (1e6, 1e7, 2e7)
    ]  # fmt: skip
    return files.base("bench rate") | {
        "critical_rate_events_per_s": 1e7, "limited_by": "engine", "boards": 1, "layout": "padded", "budget_us": 1000, "repeats": 3,
        "repeat_s": 2.0, "steps": steps, "notes": [],
    }  # fmt: skip


def latency_result() -> dict[str, Any]:
    """11 us beside sockperf's 8.2."""
    ours, clean, engine = histogram_of(11.0), histogram_of(10.5), histogram_of(4.0)
    theirs = {"p50": 8.2, "p99": 9.5, "p99_9": 14.0, "p99_99": 40.0, "max": 900.0}
    return files.base("bench latency") | {
        "p50_above_sockperf_us": 2.8, "rate_events_per_s": 1e6, "rounds": [1, 2, 3], "latency_us": ours.summary_us(),
        "latency_clean_us": ours.summary_us(), "one_in_flight_us": ours.summary_us(), "sockperf_us": theirs, "lost": 0, "budget_us": 1000,
        "latency_histogram": ours.encode(), "latency_clean_histogram": clean.encode(), "engine_histogram": engine.encode(),
        "series": whole_demo()["emulator"]["series"], "config": {"engine": {}, "emulator": {}}, "notes": [],
    }  # fmt: skip


def rings_result() -> dict[str, Any]:
    """Fits of 8 to 32 hits, 40 million a second."""

    def rate(value: float) -> dict[str, float]:
        return {"events_per_s": value}

    cases = [
        {"hits": hits, "math": rate(4e7), "math_scalar": rate(2e7), "numpy": rate(9e5), "circle_fit": rate(5e3),
         "radius_rms_mm": 1.6, "radius_bias_mm": -0.02}
        for hits in (8, 12, 20, 32)
    ]  # fmt: skip
    return files.base("bench rings") | {
        "cases": cases, "math": {"events_per_s": 4e7, "hits": 20, "simd": "AVX3"}, "ratio_to_numpy": 44.0, "ratio_to_circle_fit": 8000.0,
    }  # fmt: skip


def finders_result() -> dict[str, Any]:
    """Three finders on four samples."""
    samples = ("1 ring", "2 rings", "3 rings, 20 hits each", "1 ring, 6 noise hits")
    finders = [
        {"name": name, "cases": [
            {"sample": sample, "rings": n + 1, "mean_hits": 12.0, "ns_per_event": us * 1e3 * (n + 1), "events_per_s": 1e6 / us / (n + 1)}
            for n, sample in enumerate(samples)
        ]}
        for name, us in (("math", 0.03), ("almagest", 0.6), ("mixture", 11.0))
    ]  # fmt: skip
    return files.base("bench rings --finder") | {"finders": finders, "simd": "AVX3", "same_bits": True}
