# SPDX-License-Identifier: Apache-2.0
"""Where the photomultipliers (PM) of NA62's RICH are, and how large the rings of its particles: for pictures and for checks.

Written from the published strips on its own, so that it can check the native map.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

CHANNELS = 2048
CHANNELS_PER_BOARD = 512
UNIT_X_MM = 9.0
UNIT_Y_MM = 9.0 * math.sqrt(3.0)
PM_DIAMETER_MM = 18.0
FOCAL_LENGTH_MM = 17020.0
ELECTRON_RADIUS_MM = 189.65
MASSES_GEV = {"e": 0.000510999, "mu": 0.105658, "pi": 0.139570, "K": 0.493677}

_SUPERCELL = ((0, 0), (2, 0), (4, 0), (1, 1), (3, 1), (0, 2), (2, 2), (4, 2))
_STRIPS = (
    ((-29, 6, 12), (-28, 9, 12), (-22, 11, 11), (-21, 14, 11), (-15, 16, 9), (-4, 17, 6)),
    ((-30, 3, 12), (-31, 0, 12), (-32, -3, 11), (-33, -6, 11), (-29, -10, 9), (-25, -14, 6)),
)


def half_disk_mm(half: int) -> NDArray[np.float64]:
    """Positions [mm] of the 488 PMs of the upper (0) or lower (1) half of a disk, in order of PM ID, shape (488, 2)."""
    lattice = [
        (x0 + 5 * cell + dx, y0 - cell + dy) for x0, y0, cells in _STRIPS[half] for cell in range(cells) for dx, dy in _SUPERCELL
    ]
    return np.array(lattice, dtype=np.float64) * (UNIT_X_MM, UNIT_Y_MM)


def positions_mm() -> NDArray[np.float64]:
    """Position [mm] of each channel in its disk's coordinates, shape (2048, 2); NaN where there is no PM."""
    table = np.full((CHANNELS, 2), np.nan)
    for board in range(4):
        half = half_disk_mm(board % 2)
        table[board * CHANNELS_PER_BOARD : board * CHANNELS_PER_BOARD + len(half)] = half
    return table


def ring_radius_mm(particle: str, momentum_gev: float) -> float:
    """Radius [mm] of a particle's ring at a momentum; 0 below its threshold."""
    index = 1.0 / math.cos(ELECTRON_RADIUS_MM / FOCAL_LENGTH_MM)
    cosine = math.hypot(1.0, MASSES_GEV[particle] / momentum_gev) / index
    return FOCAL_LENGTH_MM * math.acos(cosine) if cosine < 1.0 else 0.0
