# SPDX-License-Identifier: Apache-2.0
"""HOUGH: votes in (x, y, R), coarse and smoothed, then twice finer about the maximum."""

from __future__ import annotations

import numpy as np
from finder_references.circle_refit import Circle, Cuts, Hits, Ring, misses, single

ROW_MM = 9 * np.sqrt(3)
RADII = 62.5 + 5.0 * np.arange(32)


def coarse(hits: Hits, range_mm: float) -> Circle | None:
    columns = 8 * min(3, int(range_mm / 72) + 1)
    last_row = min(12, int(range_mm / ROW_MM))
    x = 9.0 * np.arange(1 - columns, columns, 2)
    y = ROW_MM * np.arange(-last_row, last_row + 1)
    distance = np.hypot(x[None, :, None] - hits.xy[:, 0], y[:, None, None] - hits.xy[:, 1])
    miss = np.abs(distance[:, :, None, :] - RADII[:, None])
    votes = np.clip(np.floor((15 - miss) * 0.8 + 0.5), 0, None).sum(axis=3).clip(max=255)
    padded = np.pad(votes, ((1, 1), (1, 1), (0, 0)))
    value = 4 * votes + padded[1:-1, :-2] + padded[1:-1, 2:] + padded[:-2, 1:-1] + padded[2:, 1:-1]
    if value.max() == 0:
        return None
    row, column, radius = np.unravel_index(int(value.argmax()), value.shape)
    return Circle(float(x[column]), float(y[row]), float(RADII[radius]))


def finer(circle: Circle, hits: Hits, scale: float, width_mm: float) -> Circle:
    offsets = np.array([-0.75, -0.25, 0.25, 0.75]) * scale
    best, best_sum = circle, -1.0
    for dr in offsets * 5:
        for dy in offsets * ROW_MM:
            for dx in offsets * 18:
                tried = Circle(circle.x + dx, circle.y + dy, circle.radius + dr)
                total = float(np.clip(1 - (misses(tried, hits.xy) / width_mm) ** 2, 0, None).sum())
                if total > best_sum + 1e-9:
                    best, best_sum = tried, total
    return best


def find(hits: Hits, cuts: Cuts) -> list[Ring]:
    circle = coarse(hits, cuts["center_range_mm"]) if len(hits.xy) >= 4 else None
    if circle is None:
        return []
    width = cuts["fine_width_mm"]
    circle = finer(circle, hits, 1.0, width)
    return single(finer(circle, hits, 0.5, max(10.0, width / 2)), hits, cuts)
