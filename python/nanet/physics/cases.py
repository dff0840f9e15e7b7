# SPDX-License-Identifier: Apache-2.0
"""The samples of the study: what is drawn, and how far apart centres must be.

The flat default sample: 12 different hits in the mean at any radius from 80 to 190 mm, centres Gaussian with 40 mm, 2.5 mm smear, 1.2 uniform
noise hits. Every other sample changes what its title says and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nanet.config.emulator import MonteCarlo
from nanet.result.keys.base import Config

NOISE_HITS = 1.2
APART_MM = 60.0
# All rings of an event on one disk, as in the reference study: where they may be on two, the disk of a hit helps to tell them apart.
FLAT: Config = {"mean_hits": 12.0, "noise_hits": NOISE_HITS, "flat_radius": True, "hits_max": 128, "jura_share": 1.0}
REAL = FLAT | {"flat_radius": False}  # 12 hits of an electron inside the disk are 12.9 photons
MIX = (0.1, 0.5, 0.25, 0.1, 0.05)


@dataclass(frozen=True)
class Case:
    """One sample."""

    name: str
    title: str
    changes: Config = field(default_factory=dict)
    base: Config = field(default_factory=lambda: FLAT)
    apart_mm: float = 0.0
    momentum_bins_gev: tuple[float, ...] = ()  # of the separation of particles; none: not measured

    def monte_carlo(self, seed: int) -> MonteCarlo:
        """The events."""
        return MonteCarlo(**(self.base | self.changes), seed=seed)


def rings(count: int) -> tuple[float, ...]:
    """Shares of ring counts when every event has so many."""
    return tuple(float(n == count) for n in range(5))


def _steps(low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(low + (high - low) * k / count for k in range(count + 1))


_CASES = (
    Case("single_ring", "1 ring"),
    Case("single_ring_clean", "1 ring, no noise", {"noise_hits": 0.0}),
    Case("two_rings_apart", "2 rings, > 60 mm apart", {"ring_count_shares": rings(2)}, apart_mm=APART_MM),
    Case("two_rings", "2 rings", {"ring_count_shares": rings(2)}),
    Case("three_rings_apart", "3 rings, all > 60 mm apart", {"ring_count_shares": rings(3)}, apart_mm=APART_MM),
    Case("three_rings", "3 rings", {"ring_count_shares": rings(3)}),
    Case("four_rings_apart", "4 rings, all > 60 mm apart", {"ring_count_shares": rings(4)}, apart_mm=APART_MM),
    Case("four_rings", "4 rings", {"ring_count_shares": rings(4)}),
    Case("three_rings_bright", "3 rings of 20 hits", {"ring_count_shares": rings(3), "mean_hits": 20.0}),
    Case("noise", "no ring, 1.2 noise hits", {"ring_count_shares": rings(0)}),
    Case("noise_6", "no ring, 6 noise hits", {"ring_count_shares": rings(0), "noise_hits": 6.0}),
    Case("inefficient", "1 ring, 10 % of the hits lost", {"inefficiency": 0.1}),
    Case("pileup", "2 rings, each in pile-up with 30 %", {"ring_count_shares": rings(2), "pileup_share": 0.3}),
    Case("both_disks", "1 ring, light on both disks", {"both_disks_share": 1.0}),
    Case("two_rings_two_disks", "2 rings, each on either disk", {"ring_count_shares": rings(2), "jura_share": 0.5}),
    Case("multi_ring", "0 to 4 rings (10, 50, 25, 10, 5 %)", {"ring_count_shares": MIX}),
    Case("real_mix", "1 ring: e, mu, pi at 15 to 35 GeV/c", base=REAL, momentum_bins_gev=_steps(15, 35, 8)),
    Case(
        "real_kaons",
        "1 ring: e, mu, pi, K at 50 to 75 GeV/c",
        {
            "momentum_min_gev": 50.0,
            "momentum_max_gev": 75.0,
            "fractions": {"e": 0.25, "mu": 0.25, "pi": 0.25, "K": 0.25},
        },
        base=REAL,
        momentum_bins_gev=_steps(50, 75, 5),
    ),
)
CASES = {case.name: case for case in _CASES}


@dataclass(frozen=True)
class Scan:
    """Samples that differ in one number."""

    name: str
    title: str
    unit: str
    points: tuple[tuple[float, Case], ...]


def _scan(name: str, title: str, unit: str, key: str, values: tuple[float, ...], **changes: Any) -> Scan:
    points = tuple((value, Case(f"{name} {value:g}", title, {key: value} | changes)) for value in values)
    return Scan(name, title, unit, points)


def _ring_scan(name: str, title: str, apart_mm: float) -> Scan:
    points = tuple((float(n), Case(f"{name} {n}", title, {"ring_count_shares": rings(n)}, apart_mm=apart_mm)) for n in (1, 2, 3, 4))
    return Scan(name, title, "rings", points)


SCANS = (
    _scan("hits", "mean hits of a ring", "hits", "mean_hits", (6.0, 8.0, 10.0, 12.0, 15.0, 20.0)),
    _scan("noise", "mean noise hits of an event", "hits", "noise_hits", (0.0, 0.6, 1.2, 2.4, 4.0, 6.0, 10.0)),
    _ring_scan("rings_apart", "rings of an event, centres > 60 mm apart", APART_MM),
    _ring_scan("rings", "rings of an event, at any distance", 0.0),
)
DISTANCE_EDGES_MM = (0.0, 15.0, 30.0, 45.0, 60.0, 80.0, 100.0, 130.0, 180.0)
RING_HIT_EDGES = (4, 6, 8, 10, 12, 14, 17, 20, 24, 30)
