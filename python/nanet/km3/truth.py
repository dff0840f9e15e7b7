# SPDX-License-Identifier: Apache-2.0
"""Slices of an emulated tower with the truth: hits of every kind, which muon made which, and how many L1 seeds a muon's own light makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.km3.detector import Detector
from nanet.km3.trigger import CHARGE, FLOOR, HIT, SIMPLE
from nanet.result.keys.km3 import Display

HITS_KIND = 1
CHARGE_UNIT_PE = np.float32(0.1)
SEEDS_MUON = 5  # L1 seeds of its own light of a muon that has to be found
SAME_NS = 1.5  # a hit's time is a whole ns before calibration
TRACK_M_PER_GEV = 4.7319  # of a muon, whose light is as much as that of a GeV of showers (Jpp, geanc)
SHOWERS_PER_M = (
    3.40e-4 * 1.038
)  # of a muon's energy, that it loses to showers: b of sea water, 30 GeV to 35 TeV (Klimushin and others, in Jpp)
LIGHT_PE_M = 80.0  # of the emulator by default: a muon without showers


@dataclass(frozen=True)
class Muon:
    """A track and its own light, in time order."""

    slice: int
    position_m: tuple[float, float, float]
    direction: tuple[float, float, float]
    time_ns: float
    hits: NDArray[np.void]
    """HIT: times since its slice began, as the trigger sees them but for their rounding to ns."""


def light_of_energy(energy_gev: float) -> float:
    """Light of a muon over that of one without showers. In the mean: showers are taken to be spread evenly along the track."""
    return 1 + TRACK_M_PER_GEV * SHOWERS_PER_M * energy_gev


class Tower:
    """Makes slices again and again, the same ones for the same settings."""

    def __init__(self, *, seed: int, muons_hz: float, slice_ms: int = 200, **settings: Any) -> None:
        from nanet import _core

        muons = {"rate_hz": muons_hz} | settings.pop("muons", {})
        self.units = _core.TowerUnits({"seed": seed, "slice_ms": slice_ms, "muons": muons} | settings, "")
        self.detector = Detector.from_detx(self.units.detx())
        self.slice_ns = slice_ms * 1e6

    def hits(self, number: int) -> NDArray[np.void]:
        """All hits of a slice, floor by floor."""
        floors = range(len(self.detector.floors))
        return np.concatenate([self.detector.decode(floor, self.units.unit(number, floor + 1, HITS_KIND))[0] for floor in floors])

    def muons(self, number: int) -> Iterator[Muon]:
        """The muons of a slice."""
        first = self.detector.floors["first_pm"]
        for track in self.units.tracks(number):
            hits = np.zeros(len(track["hits"]), HIT)
            for k, hit in enumerate(track["hits"]):
                hits[k] = (hit["time_ns"], first[hit["floor"] - 1] + hit["pm"], hit["charge"] * CHARGE_UNIT_PE)
            hits = hits[np.argsort(hits["time_ns"], kind="stable")]
            yield Muon(number, tuple(track["position_m"]), tuple(track["direction"]), track["time_ns"], hits)


def seed_kinds(
    hits: NDArray[np.void], pms: NDArray[np.void], *, simple_ns: float, floor_ns: float, charge_pe: float, threshold_pe: float = 0.3
) -> NDArray[np.uint32]:
    """Kinds of seed that each of a few hits in time order is, by themselves; 0: none. Plain Python: for the light of one muon."""
    kinds = np.zeros(len(hits), np.uint32)
    for i, hit in enumerate(hits):
        if hit["charge_pe"] < threshold_pe:
            continue
        mine = pms[hit["pm"]]
        kinds[i] = CHARGE if hit["charge_pe"] > charge_pe else 0
        for other in hits[i + 1 :]:
            later = other["time_ns"] - hit["time_ns"]
            if later > max(simple_ns, floor_ns):
                break
            theirs = pms[other["pm"]]
            if other["pm"] == hit["pm"] or theirs["floor"] != mine["floor"] or other["charge_pe"] < threshold_pe:
                continue
            if theirs["place"] == mine["place"] and later <= simple_ns:
                kinds[i] |= SIMPLE
            if int(theirs["end"]) + int(mine["end"]) == 3 and later <= floor_ns:
                kinds[i] |= FLOOR
    return kinds


def own_hits(hits: NDArray[np.void], muon: Muon, slice_ns: float) -> NDArray[np.bool_]:
    """Which hits, with times since the run began, are of the muon."""
    own = np.zeros(len(hits), bool)
    for light in muon.hits:
        own |= (hits["pm"] == light["pm"]) & (np.abs(hits["time_ns"] - (light["time_ns"] + muon.slice * slice_ns)) < SAME_NS)
    return own


def display_of(tower: Tower, muon: Muon, hits: NDArray[np.void], zero_ns: float, is_seed: NDArray[np.bool_]) -> Display:
    """A muon and the hits of an event, whose times are since the run began; they are shown since zero_ns."""
    places = tower.detector.pms[hits["pm"]]
    columns = (
        places["x_m"],
        places["y_m"],
        places["z_m"],
        hits["time_ns"] - zero_ns,
        hits["charge_pe"],
        own_hits(hits, muon, tower.slice_ns),
        is_seed,
    )
    return {
        "hits": np.column_stack([np.asarray(column, float) for column in columns]).tolist(),
        "position_m": list(muon.position_m),
        "direction": list(muon.direction),
        "time_ns": muon.time_ns + muon.slice * tower.slice_ns - zero_ns,
    }
