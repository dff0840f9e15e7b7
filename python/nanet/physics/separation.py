# SPDX-License-Identifier: Apache-2.0
"""How well radii tell particles apart, against the true particle and the true momentum."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.physics.figures import Columns, number, share
from nanet.result.keys.physics import Figures, MomentumBin
from nanet.rich import pm_map

PARTICLES = ("e", "mu", "pi", "K")  # in the order of the column ring_particle
PAIRS = (("e", "mu"), ("mu", "pi"), ("e", "pi"), ("pi", "K"))
WINDOW_MM = 6.0
FEWEST = 20  # rings of each kind, for a width


def electron_window(columns: Columns) -> dict[str, Figures]:
    """Of each particle, the share of its rings that is found with a radius within WINDOW_MM of an electron's."""
    inside = np.abs(columns["ring_found_radius_mm"] - pm_map.ELECTRON_RADIUS_MM) <= WINDOW_MM  # NaN, not found: outside
    result: dict[str, Figures] = {}
    for index, particle in enumerate(PARTICLES):
        mine = columns["ring_particle"] == index
        if mine.any():
            found = mine & columns["ring_matched"].astype(bool)
            result[particle] = share("efficiency", int(found.sum()), int(mine.sum()))
            result[particle] |= share("electron_like", int((inside & found).sum()), int(mine.sum()))
    return result


def by_momentum(columns: Columns, edges_gev: tuple[float, ...]) -> list[MomentumBin]:
    """In bins of true momentum: of each particle efficiency, electron-like share and radius resolution; of each pair the separation in sigmas.

    Separation of a and b: distance of the mean radii in the middle of the bin over sqrt((sigma_a^2 + sigma_b^2) / 2), where mean and sigma are those of
    found radius minus the radius expected at the ring's own momentum, so that the width of the bin does not count.
    """
    bins: list[MomentumBin] = []
    momentum = columns["ring_momentum_gev"]
    for low, high in pairwise(edges_gev):
        inside = (momentum >= low) & (momentum < high)
        middle = (low + high) / 2
        one: MomentumBin = {"momentum_min_gev": low, "momentum_max_gev": high, "particles": {}, "separation": {}}
        spread: dict[str, tuple[float, float, int]] = {}
        window = electron_window({name: values[inside] for name, values in columns.items() if name.startswith("ring_")})
        for index, particle in enumerate(PARTICLES):
            if particle not in window:
                continue
            error = columns["ring_dr_mm"][inside & (columns["ring_particle"] == index) & columns["ring_matched"].astype(bool)]
            known = len(error) >= FEWEST
            mean, sigma = (float(error.mean()), float(error.std(ddof=1))) if known else (math.nan, math.nan)
            spread[particle] = (pm_map.ring_radius_mm(particle, middle) + mean, sigma, len(error))
            one["particles"][particle] = window[particle] | {"radius_sigma_mm": number(sigma)}
        for a, b in PAIRS:
            if a in spread and b in spread:
                sigmas, sigmas_error = separation(spread[a], spread[b])
                one["separation"][f"{a}_{b}"] = {"sigmas": number(sigmas), "error": number(sigmas_error)}
        bins.append(one)
    return bins


def separation(a: tuple[float, float, int], b: tuple[float, float, int]) -> tuple[float, float]:
    """Distance of two peaks (mean, sigma, entries) in sigmas, and its error."""
    (mean_a, sigma_a, count_a), (mean_b, sigma_b, count_b) = a, b
    square = (sigma_a**2 + sigma_b**2) / 2
    if not square > 0:
        return math.nan, math.nan
    sigmas = abs(mean_a - mean_b) / math.sqrt(square)
    of_means = math.sqrt(sigma_a**2 / count_a + sigma_b**2 / count_b) / math.sqrt(square)
    of_width = math.sqrt((sigma_a**4 / (count_a - 1) + sigma_b**4 / (count_b - 1)) / 2) / (2 * square)
    return sigmas, math.hypot(of_means, sigmas * of_width)


def kind_shares(columns: Columns) -> dict[str, Figures]:
    """Of the found rings of each particle, the shares that get each name when the momentum is known: that of the nearest expected radius."""
    found = columns["ring_matched"].astype(bool)
    present = [index for index in range(len(PARTICLES)) if (columns["ring_particle"] == index).any()]
    if not present:
        return {}
    expected = np.column_stack([expected_radii_mm(PARTICLES[index], columns["ring_momentum_gev"][found]) for index in present])
    chosen = np.abs(columns["ring_found_radius_mm"][found, None] - expected).argmin(axis=1)
    particle = columns["ring_particle"][found]
    return {
        PARTICLES[mine]: {
            PARTICLES[other]: number(np.mean(chosen[particle == mine] == n)) if (particle == mine).any() else None
            for n, other in enumerate(present)
        }
        for mine in present
    }


def expected_radii_mm(particle: str, momenta_gev: NDArray[Any]) -> NDArray[np.float64]:
    """Ring radius at each momentum; 0 below threshold."""
    return np.array([pm_map.ring_radius_mm(particle, float(momentum)) for momentum in momenta_gev])
