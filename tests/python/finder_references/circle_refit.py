# SPDX-License-Identifier: Apache-2.0
"""From a rough circle to a ring: least squares with biweights, then a plain one within a window. In plain numpy, by lstsq."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from nanet.rich import pm_map

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Cuts = dict[str, Any]


class Circle(NamedTuple):
    x: float
    y: float
    radius: float


class Ring(NamedTuple):
    circle: Circle
    rms: float
    time_ns: float
    hits: int


class Hits(NamedTuple):
    """Hits with a photomultiplier, in order of channel in the disk, time, disk."""

    xy: Floats
    time_codes: Ints

    def take(self, chosen: npt.NDArray[np.bool_]) -> Hits:
        return Hits(self.xy[chosen], self.time_codes[chosen])

    @property
    def lattice(self) -> Ints:
        """i and j of each hit: x = 9 i mm, y = 9 sqrt(3) j mm."""
        return np.asarray(np.rint(self.xy / [9.0, 9.0 * np.sqrt(3.0)]), dtype=np.int64)


def lay_out(words: npt.NDArray[np.uint16]) -> Hits:
    places = pm_map.positions_mm()
    word = words[:128].astype(np.int64)
    word = word[~np.isnan(places[word & 2047, 0])]
    time = word >> 11
    word = word[np.lexsort((word >> 10 & 1, time, word & 1023))]
    time = word >> 11
    return Hits(places[word & 1023].astype(np.float64), np.where(time > 15, time - 32, time))


def misses(circle: Circle, xy: Floats) -> Floats:
    return np.asarray(np.hypot(xy[:, 0] - circle.x, xy[:, 1] - circle.y) - circle.radius)


def fit(xy: Floats, weights: Floats) -> Circle | None:
    """Least squares of x^2 + y^2 - 2 a x - 2 b y - c with weights."""
    if len(np.unique(xy[weights > 0], axis=0)) < 3:
        return None
    root = np.sqrt(weights)
    matrix = np.column_stack([2 * xy / 100.0, np.ones(len(xy))]) * root[:, None]
    solution, _, rank, _ = np.linalg.lstsq(matrix, (xy**2).sum(axis=1) * root, rcond=1e-5)
    if rank < 3:
        return None
    x, y = solution[:2] / 100.0
    return Circle(float(x), float(y), float(np.sqrt(solution[2] + x * x + y * y)))


def refit(circle: Circle | None, hits: Hits, start_mm: float, end_mm: float, passes: int) -> Circle | None:
    for scale in np.linspace(start_mm, end_mm, passes) if passes > 1 else [end_mm]:
        if circle is None:
            return None
        left = np.clip(1 - (misses(circle, hits.xy) / scale) ** 2, 0, None)
        circle = fit(hits.xy, np.floor(8 * left**2 + 0.5))
    return circle


def near(circle: Circle, hits: Hits, window_mm: float) -> npt.NDArray[np.bool_]:
    return np.asarray(np.abs(misses(circle, hits.xy)) <= window_mm)


def fit_near(circle: Circle, hits: Hits, window_mm: float) -> Ring | None:
    chosen = hits.take(near(circle, hits, window_mm))
    fitted = fit(chosen.xy, np.ones(len(chosen.xy)))
    if fitted is None:
        return None
    squares = ((chosen.xy - [fitted.x, fitted.y]) ** 2).sum(axis=1) - fitted.radius**2
    rms = np.sqrt((squares**2).mean()) / (2 * fitted.radius)
    return Ring(fitted, float(rms), float(chosen.time_codes.mean()) * 0.19492765, len(chosen.xy))


def is_good(ring: Ring | None, cuts: Cuts) -> bool:
    if ring is None or ring.hits < max(4, cuts["min_hits"]):
        return False
    corrected = ring.rms * np.sqrt(ring.hits / (ring.hits - 3))
    return bool(cuts["radius_min_mm"] <= ring.circle.radius <= cuts["radius_max_mm"] and corrected <= cuts["rms_max_mm"])


def single(circle: Circle | None, hits: Hits, cuts: Cuts) -> list[Ring]:
    """The ring of a single-ring finder that starts from `circle`."""
    circle = refit(circle, hits, cuts["refit_start_mm"], cuts["refit_end_mm"], cuts["refit_passes"])
    ring = fit_near(circle, hits, cuts["window_mm"]) if circle else None
    return [ring] if ring and is_good(ring, cuts) else []
