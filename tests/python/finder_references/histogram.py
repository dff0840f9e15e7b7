# SPDX-License-Identifier: Apache-2.0
"""histogram: POMH's peaks ring by ring, then the rings share the hits."""

from __future__ import annotations

import numpy as np
from finder_references import pomh
from finder_references.circle_refit import Circle, Cuts, Hits, Ints, Ring, fit_near, is_good, misses, near, refit


def stands_out(ring: Ring, hits: int, cuts: Cuts) -> bool:
    """Hits above what the others would give if they were spread over the disk (976 hexagons of 18 mm pitch)."""
    disk_mm2 = 976 * np.sqrt(3) / 2 * 18**2
    background = (hits - ring.hits) * 4 * np.pi * ring.circle.radius * cuts["window_mm"] / disk_mm2
    return bool(ring.hits - background >= cuts["significance_min"] * np.sqrt(background + 1))


def owners(circles: list[Circle], hits: Hits) -> Ints:
    return np.asarray(np.argmin([np.abs(misses(circle, hits.xy)) for circle in circles], axis=0))


def first_circles(hits: Hits, cuts: Cuts) -> list[Circle]:
    circles: list[Circle] = []
    rest = hits
    while len(circles) < min(4, cuts["rings_max"]) and len(rest.xy) >= max(4, cuts["min_hits"]):
        circle = refit(
            pomh.peak(rest, cuts["center_range_mm"]), rest, cuts["refit_start_mm"], cuts["refit_end_mm"], cuts["refit_passes"]
        )
        ring = fit_near(circle, rest, cuts["window_mm"]) if circle else None
        if circle is None or ring is None or not is_good(ring, cuts) or not stands_out(ring, len(rest.xy), cuts):
            break
        circles.append(circle)
        rest = rest.take(~near(circle, rest, cuts["remove_mm"]))
    return circles


def share(circles: list[Circle], hits: Hits, cuts: Cuts) -> list[Circle]:
    owner = owners(circles, hits)
    moved = [
        refit(circle, hits.take(owner == k), cuts["refit_end_mm"], cuts["refit_end_mm"], 1) for k, circle in enumerate(circles)
    ]
    return [circle for circle in moved if circle]


def find(hits: Hits, cuts: Cuts) -> list[Ring]:
    circles = first_circles(hits, cuts)
    for _ in range(cuts["share_passes"]):
        if circles:
            circles = share(circles, hits, cuts)
    rings: list[Ring] = []
    while circles:
        owner = owners(circles, hits)
        tried = [fit_near(circle, hits.take(owner == k), cuts["window_mm"]) for k, circle in enumerate(circles)]
        bad = [
            k for k, ring in enumerate(tried) if ring is None or not is_good(ring, cuts) or not stands_out(ring, len(hits.xy), cuts)
        ]
        if not bad:
            rings = [ring for ring in tried if ring]
            break
        # The one with fewest hits goes, of equal ones the last.
        counts = [near(circles[k], hits.take(owner == k), cuts["window_mm"]).sum() for k in bad]
        del circles[max(k for k, count in zip(bad, counts, strict=True) if count == min(counts))]
    return sorted(rings, key=lambda ring: (-ring.hits, ring.rms))
