# SPDX-License-Identifier: Apache-2.0
"""Event displays: the photomultipliers of a disk, the hits of one event in the colours of their rings, the true rings dashed."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.result.keys.engine import EventSample, FoundRing, TrueRing
from nanet.rich import pm_map

CHANNEL_MASK = 0x07FF
HALF_WIDTH_MM = 345
SHOWN = 6
OWN_HIT_MM = 16.0  # a hit has the colour of the nearest ring that is at most this far: three times the error of a hit


def choose(samples: Sequence[EventSample], wanted: int = SHOWN) -> list[EventSample]:
    """A telling choice: events with most rings, events with one over the range of radii, and one without ring if there is one."""
    several = sorted((s for s in samples if len(s["rings"]) > 1), key=lambda s: -len(s["rings"]))
    electrons = [s for s in samples if len(s["rings"]) == 1 and s["electron"]]
    single = sorted((s for s in samples if len(s["rings"]) == 1 and not s["electron"]), key=_radius)
    without = [s for s in samples if not s["rings"]]
    picked = [*several[:3], *electrons[: 1 if several else 2], *without[:1]]
    room = wanted - len(picked)
    if single and room > 0:
        places = np.unique(np.linspace(0, len(single) - 1, min(room, len(single))).round().astype(int))
        picked += [single[n] for n in places]
    rest = [s for s in samples if not any(s is p for p in picked)]
    picked += rest[: max(0, wanted - len(picked))]
    return sorted(picked[:wanted], key=lambda s: (-len(s["rings"]), -_radius(s)))


def definitions() -> str:
    """The disk's photomultipliers, drawn once and used by every display."""
    disk = np.concatenate([pm_map.half_disk_mm(0), pm_map.half_disk_mm(1)])
    circles = "".join(f'<circle cx="{x:.0f}" cy="{-y:.1f}" r="8"/>' for x, y in disk)
    return f'<svg class="hidden" aria-hidden="true"><defs><g id="disk" class="pm">{circles}</g></defs></svg>'


def display(sample: EventSample) -> tuple[str, str]:
    """One event as (svg, caption)."""
    positions = pm_map.positions_mm()
    channels = np.asarray(sample["hits"], dtype=np.int64) & CHANNEL_MASK
    places = positions[channels]
    places = places[~np.isnan(places[:, 0])]
    owners = hit_owners(places, sample["rings"])
    drawn = "".join(
        f'<circle class="{f"r{owner + 1}" if owner >= 0 else "none"}" cx="{x:.0f}" cy="{-y:.1f}" r="8.5"/>'
        for (x, y), owner in zip(places, owners, strict=True)
    )
    rings = "".join(_ring(ring, f"ring r{n + 1}") for n, ring in enumerate(sample["rings"]))
    truth = "".join(_ring(ring, "ring truth") for ring in sample.get("truth") or ())
    caption = _caption(sample, len(places))
    half = HALF_WIDTH_MM
    svg = (
        f'<svg class="event" viewBox="{-half} {-half} {2 * half} {2 * half}" role="img" aria-label="{escape(caption)}" '
        f'xmlns="http://www.w3.org/2000/svg"><use href="#disk"/><g class="hit">{drawn}</g>{rings}{truth}</svg>'
    )
    return svg, caption


def hit_owners(places: NDArray[Any], rings: Sequence[FoundRing]) -> NDArray[np.int64]:
    """Index of the ring that each hit (x, y [mm] a row) lies nearest to, -1 where none is within OWN_HIT_MM."""
    if not rings or not len(places):
        return np.full(len(places), -1)
    circles = np.array([[ring["x_mm"], ring["y_mm"], ring["radius_mm"]] for ring in rings], dtype=np.float64)
    distances = np.abs(np.hypot(places[:, None, 0] - circles[:, 0], places[:, None, 1] - circles[:, 1]) - circles[:, 2])
    nearest = distances.argmin(axis=1)
    return np.where(distances.min(axis=1) <= OWN_HIT_MM, nearest, -1)


def _ring(ring: FoundRing | TrueRing, style: str) -> str:
    x, y, radius = float(ring["x_mm"]), float(ring["y_mm"]), float(ring["radius_mm"])
    circle = f'<circle class="{style}" cx="{x:.1f}" cy="{-y:.1f}" r="{radius:.1f}"/>'
    if "truth" in style:
        return circle
    return circle + f'<path class="centre" d="M{x - 7:.1f} {-y:.1f}h14M{x:.1f} {-y - 7:.1f}v14"/>'


def _caption(sample: EventSample, hits: int) -> str:
    rings = sample["rings"]
    if not rings:
        return f"no ring \u00b7 {hits} hits"
    radii = ", ".join(f"{float(ring['radius_mm']):.1f}" for ring in rings)
    caption = f"R {radii} mm \u00b7 {hits} hits"
    if len(rings) == 1:
        caption += f" \u00b7 rms {float(rings[0]['rms_mm']):.1f} mm"
    return caption + (" \u00b7 e\u2011like" if sample["electron"] else "")


def _radius(sample: EventSample) -> float:
    return float(sample["rings"][0]["radius_mm"]) if sample["rings"] else 0.0
