# SPDX-License-Identifier: Apache-2.0
"""POMH (and DOMH, which finds the same): the sharpest peak of the histograms of hit distances about all candidate centres."""

from __future__ import annotations

import numpy as np
from finder_references.circle_refit import Circle, Cuts, Hits, Ints, Ring, single


def centers(range_mm: float) -> Ints:
    """Lattice points in order of j, then i: i odd; a row has eight for each begun 72 mm of half its length in the range, at most 24."""
    rows = []
    for j in range(-12, 13):
        left = min(range_mm, 1e6) ** 2 - (9 * np.sqrt(3) * j) ** 2
        if left < 0:
            continue
        half = 8 * min(3, int(np.sqrt(left) / 72) + 1) - 1
        rows += [(i, j) for i in range(-half, half + 1, 2)]
    return np.array(rows)


def peak(hits: Hits, range_mm: float) -> Circle | None:
    """Score of a bin of 2.5 mm: hits in the five bins about it plus hits in the nine about it."""
    points = centers(range_mm)
    lattice = hits.lattice
    di, dj = (points[:, None, k] - lattice[None, :, k] for k in (0, 1))
    bins = np.floor((9 * np.sqrt(di**2 + 3 * dj**2) - 60) / 2.5 + 1e-9).astype(int)
    counts = np.zeros((len(points), 64), dtype=int)
    for row, of_row in zip(counts, bins, strict=True):
        np.add.at(row, of_row[(of_row >= 0) & (of_row < 64)], 1)
    kernel = np.array([1, 1, 2, 2, 2, 2, 2, 1, 1])
    scores = np.array([np.convolve(row, kernel, mode="same") for row in counts])
    if scores.max() == 0:
        return None
    best, bin_index = np.unravel_index(int(scores.argmax()), scores.shape)
    i, j = points[best]
    return Circle(9.0 * i, 9.0 * np.sqrt(3) * j, 60 + 2.5 * (bin_index + 0.5))


def find(hits: Hits, cuts: Cuts) -> list[Ring]:
    return single(peak(hits, cuts["center_range_mm"]), hits, cuts) if len(hits.xy) >= 4 else []
