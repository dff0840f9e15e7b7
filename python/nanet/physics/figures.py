# SPDX-License-Identifier: Apache-2.0
"""From columns (truth and what was found, see _core.PhysicsSample) to figures with errors.

Errors are of one standard deviation. Of a share of n: that of the posterior of a binomial share with a flat prior, so it is not 0 at 0 or 1.
Of a mean number an event: that of the mean; where nothing was seen, 1 / n.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.result.keys.physics import Figures

Columns = dict[str, NDArray[Any]]

# Unit of each figure, for CSV and documentation; a share or a number an event has none.
UNITS = {
    "efficiency": "1", "efficiency_in_time": "1", "efficiency_pileup": "1", "all_found": "1", "count_right": "1", "fakes": "1/event", "clones": "1/event", "found": "1/event",
    "radius_bias_mm": "mm", "radius_rms_mm": "mm", "centre_bias_x_mm": "mm", "centre_bias_y_mm": "mm", "centre_rms_mm": "mm",
    "bound_mm": "mm", "ratio_to_bound": "1", "time_rms_ns": "ns", "ns_per_event": "ns", "hit_error_mm": "mm",
}  # fmt: skip


def select(columns: Columns, events: NDArray[np.bool_]) -> Columns:
    """Only some of the events, with their rings."""
    number = np.cumsum(events) - 1
    kept = events[columns["ring_event"]]
    chosen = {name: values[kept if name.startswith("ring_") else events] for name, values in columns.items()}
    chosen["ring_event"] = number[chosen["ring_event"]]
    return chosen


def figures(columns: Columns, ns_per_event: float | None = None) -> Figures:
    """All figures of one finder on one sample. What cannot be said (no ring, none found) is None."""
    events = len(columns["event_found"])
    matched = columns["ring_matched"].astype(bool)
    found_in = np.bincount(columns["ring_event"], weights=matched, minlength=events)
    with_rings = columns["event_rings"] > 0
    whole = (found_in == columns["event_rings"]) & with_rings
    result: Figures = {"events": events, "rings": len(matched)}
    result |= share("efficiency", int(matched.sum()), len(matched))
    pileup = columns["ring_time_ns"] != 0
    result |= share("efficiency_in_time", int(matched[~pileup].sum()), int((~pileup).sum()))
    result |= share("efficiency_pileup", int(matched[pileup].sum()), int(pileup.sum()))
    result |= share("all_found", int(whole.sum()), int(with_rings.sum()))
    result |= share("count_right", int((columns["event_found"] == columns["event_rings"]).sum()), events)
    result |= an_event("fakes", columns["event_fakes"])
    result |= an_event("clones", columns["event_clones"])
    result["found"] = number(columns["event_found"].mean()) if events else None
    result |= resolution(columns, np.ones(len(matched), dtype=bool))
    result["ns_per_event"] = None if ns_per_event is None else round(ns_per_event, 2)
    return result


def resolution(columns: Columns, rings: NDArray[np.bool_]) -> Figures:
    """Bias and rms of radius, centre and time of the found ones among some rings, and the radius' ratio to the bound.

    The bound is sqrt(mean of (least error in units of a hit's error)^2) of the found rings times the rms distance of true hits from true circles.
    """
    found = rings & columns["ring_matched"].astype(bool)
    count = int(found.sum())
    names = (
        "radius_bias_mm", "radius_bias_error_mm", "radius_rms_mm", "radius_rms_error_mm", "centre_bias_x_mm", "centre_bias_y_mm",
        "centre_rms_mm", "hit_error_mm", "bound_mm", "ratio_to_bound", "ratio_to_bound_error", "time_rms_ns",
    )  # fmt: skip
    if count < 2:
        return dict.fromkeys(names)
    dx, dy, dr = (columns[f"ring_d{axis}"][found].astype(np.float64) for axis in ("x_mm", "y_mm", "r_mm"))
    radius_rms = math.sqrt(float(np.mean(dr * dr)))
    hit_error = math.sqrt(float(columns["ring_squares_mm2"][rings].sum() / columns["ring_hits"][rings].sum()))
    bound = hit_error * math.sqrt(float(np.mean(columns["ring_bound"][found] ** 2)))
    relative_error = 1 / math.sqrt(2 * count)
    dt, when = (columns[name][found].astype(np.float64) for name in ("ring_dt_ns", "ring_time_ns"))
    time_rms = math.sqrt(float(np.mean(dt * dt))) if np.any(dt + when) else math.nan  # all 0: this finder does not look at time
    values = (
        float(dr.mean()), float(dr.std()) / math.sqrt(count), radius_rms, radius_rms * relative_error, float(dx.mean()),
        float(dy.mean()), math.sqrt(float(np.mean(dx * dx + dy * dy) / 2)), hit_error, bound, radius_rms / bound,
        radius_rms / bound * relative_error, time_rms,
    )  # fmt: skip
    return {name: number(value) for name, value in zip(names, values, strict=True)}


def share(name: str, count: int, of: int) -> Figures:
    """A share with its error."""
    if of == 0:
        return {name: None, f"{name}_error": None}
    return {name: number(count / of), f"{name}_error": number(share_error(count, of))}


def share_error(count: int, of: int) -> float:
    """Standard deviation of the posterior of a binomial share with a flat prior."""
    middle = (count + 1) / (of + 2)
    return math.sqrt(middle * (1 - middle) / (of + 3))


def an_event(name: str, counts: NDArray[Any]) -> Figures:
    """A mean number an event, with its error."""
    if len(counts) == 0:
        return {name: None, f"{name}_error": None}
    error = float(counts.std()) / math.sqrt(len(counts)) if counts.any() else 1 / len(counts)
    return {name: number(counts.mean()), f"{name}_error": number(error)}


def number(value: float | np.floating[Any]) -> float | None:
    """Six digits, or None where there is no finite number."""
    value = float(value)
    return float(f"{value:.6g}") if math.isfinite(value) else None
