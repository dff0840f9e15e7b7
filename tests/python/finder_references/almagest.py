# SPDX-License-Identifier: Apache-2.0
"""Almagest in plain numpy, written from docs/design/finder-almagest.md: directions, triplets, Ptolemy's test, two fits, cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from finder_references.circle_refit import Circle, Cuts, Hits, Ring, fit, misses

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Towards A, in the order in which they are tried, and at right angles. Of hits equally far out, the one further along the second comes first.
AXES = [((1, 0), (0, 1)), ((0, 1), (1, 0)), ((1, 1), (1, -1)), ((1, -1), (1, 1))]
DIRECTIONS = [(sign * np.array(out), sign * np.array(across)) for out, across in AXES for sign in (1, -1)]
TIE = 1e-6


class Triplet(NamedTuple):
    points: Floats
    circle: Circle
    score: float


def find(hits: Hits, cuts: Cuts) -> list[Ring]:
    rings: list[Ring] = []
    while len(rings) < 4 and len(hits.xy) >= max(4, cuts["hits_min"]):
        found = find_ring(hits, cuts)
        if found is None:
            break
        ring, chosen = found
        rings.append(ring)
        hits = hits.take(~chosen)
    return sorted(rings, key=lambda ring: (-ring.hits, ring.rms))


def find_ring(hits: Hits, cuts: Cuts) -> tuple[Ring, Bools] | None:
    triplet = best_triplet(hits.xy, cuts)
    if triplet is None or triplet.score < cuts["score_min"]:
        return None
    passed = ptolemy(triplet.points, hits.xy) <= cuts["ptolemy_max_mm2"]
    if cuts["ptolemy_hits_min"] > 3 and passed.sum() < cuts["ptolemy_hits_min"]:
        return None
    hits_min = max(4, cuts["hits_min"])
    chosen = np.abs(misses(triplet.circle, hits.xy)) <= cuts["take_in_mm"]
    circle = fit(hits.xy[chosen], np.ones(chosen.sum()))
    if circle is None or chosen.sum() < hits_min:
        return None
    chosen = np.abs(misses(circle, hits.xy)) <= cuts["keep_mm"]
    ring = final_ring(hits, chosen)
    if ring is None or ring.hits < hits_min or ring.rms * np.sqrt(ring.hits / (ring.hits - 3)) > cuts["rms_max_mm"]:
        return None
    return (ring, chosen) if cuts["radius_min_mm"] <= ring.circle.radius <= cuts["radius_max_mm"] else None


def final_ring(hits: Hits, chosen: Bools) -> Ring | None:
    xy = hits.xy[chosen]
    circle = fit(xy, np.ones(len(xy)))
    if circle is None:
        return None
    squares = ((xy - [circle.x, circle.y]) ** 2).sum(axis=1) - circle.radius**2
    rms = np.sqrt((squares**2).mean()) / (2 * circle.radius)
    return Ring(circle, float(rms), float(hits.time_codes[chosen].mean()) * 0.19492765, len(xy))


def best_triplet(xy: Floats, cuts: Cuts) -> Triplet | None:
    """Of the first eight starts; of all sixteen where those are not good enough."""
    best: Triplet | None = None
    for side in (1, -1):
        for out, across in DIRECTIONS:
            triplet = find_triplet(xy, out, across, side, cuts)
            if triplet is not None and (best is None or triplet.score > best.score):
                best = triplet
        if best is not None and best.score >= cuts["score_enough"] * len(xy):
            break
    return best


def find_triplet(xy: Floats, out: Ints, across: Ints, side: int, cuts: Cuts) -> Triplet | None:
    """A is the outermost; side 1: B is on the positive side of A, C on the other; side -1: the other way about."""
    place = xy @ out + TIE * (xy @ across)
    a = xy[place.argmax()]
    from_a = np.hypot(*(xy - a).T)
    beside = ((xy - a) @ across + TIE * ((xy - a) @ out) > 0) == (side > 0)
    for_b = (from_a > cuts["pair_distance_min_mm"]) & beside
    if not for_b.any():
        return None
    b = xy[np.where(for_b, place, -np.inf).argmax()]
    for_c = (from_a > cuts["far_pair_distance_min_mm"]) & ~beside
    for k in np.argsort(-place):
        if not for_c[k]:
            continue
        circle = fit(np.array([a, b, xy[k]]), np.ones(3))
        if circle is not None and circle.radius <= cuts["circumradius_max_mm"]:
            return Triplet(np.array([a, b, xy[k]]), circle, score(circle, xy, cuts))
    return None


def score(circle: Circle, xy: Floats, cuts: Cuts) -> float:
    """Hits on the circle count 1, falling with the square of (d^2 - R^2) / 2 R to 0 at the width."""
    power = ((xy - [circle.x, circle.y]) ** 2).sum(axis=1) - circle.radius**2
    return float(np.clip(1 - (power / (2 * circle.radius * cuts["score_width_mm"])) ** 2, 0, None).sum())


def ptolemy(points: Floats, xy: Floats) -> Floats:
    a, b, c = points
    ab, ac, bc = np.hypot(*(a - b)), np.hypot(*(a - c)), np.hypot(*(b - c))
    ad, bd, cd = (np.hypot(*(xy - point).T) for point in points)
    p, q, r = ad * bc, ab * cd, ac * bd
    return np.asarray(np.min(np.abs([p + q - r, p + r - q, q + r - p]), axis=0))
