# SPDX-License-Identifier: Apache-2.0
"""TRIPLS: the mean of the largest family of like circles through hit triplets."""

from __future__ import annotations

import numpy as np
from finder_references.circle_refit import Circle, Cuts, Floats, Hits, Ints, Ring, single

# Steps from the first hit to the second and third, in 1/256 of the number of hits.
SHARES = (
    (85, 170),
    (51, 154),
    (102, 179),
    (64, 128),
    (37, 110),
    (120, 200),
    (70, 150),
    (43, 86),
    (95, 140),
    (30, 180),
    (60, 100),
    (110, 225),
)


def circle_through(a: Floats, b: Floats, c: Floats) -> Circle | None:
    """From the two bisectors."""
    matrix = 2 * np.array([b - a, c - a])
    if abs(np.linalg.det(matrix)) < 1e-3:
        return None
    center = np.linalg.solve(matrix, [b @ b - a @ a, c @ c - a @ a])
    return Circle(float(center[0]), float(center[1]), float(np.hypot(*(a - center))))


def circles(hits: Hits, cuts: Cuts) -> Ints:
    """x, y and radius in 1/8 mm of the triplets' circles that could be rings."""
    n = len(hits.xy)
    found = []
    for p, q in SHARES[: cuts["step_pairs"]]:
        first = min(max((p * n + 128) // 256, 1), n - 2)
        second = min(max((q * n + 128) // 256, first + 1), n - 1)
        for k in range(min(n, 32)):
            points = [hits.xy[m % n] for m in (k, k + first, k + second)]
            apart = min(float(np.hypot(*(points[m] - points[m - 1]))) for m in range(3))
            circle = circle_through(*points) if apart >= cuts["pair_distance_min_mm"] else None
            if circle is None or max(abs(circle.x), abs(circle.y)) > cuts["center_range_mm"]:
                continue
            if cuts["radius_min_mm"] <= circle.radius <= cuts["radius_max_mm"]:
                found.append(circle)
    return np.floor(8 * np.array(found).reshape(-1, 3) + 0.5).astype(int)


def family(all_circles: Ints, one: Ints, cuts: Cuts) -> Ints:
    limits = np.array([cuts["like_center_mm"], cuts["like_center_mm"], cuts["like_radius_mm"]]) * 8
    return np.asarray(all_circles[(np.abs(all_circles - one) <= limits.astype(int)).all(axis=1)])


def mean(some: Ints) -> Ints:
    return np.asarray(np.trunc(some.sum(axis=0) / len(some)), dtype=np.int64)


def find(hits: Hits, cuts: Cuts) -> list[Ring]:
    if len(hits.xy) < 4:
        return []
    found = circles(hits, cuts)
    if len(found) == 0:
        return []
    families = [family(found, one, cuts) for one in found]
    center = mean(max(families, key=len))  # max takes the first of equal ones
    again = family(found, center, cuts)
    x, y, radius = (mean(again) if len(again) else center) / 8
    return single(Circle(float(x), float(y), float(radius)), hits, cuts)
