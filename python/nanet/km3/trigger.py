# SPDX-License-Identifier: Apache-2.0
"""The trigger of a KM3NeT tower or string on arrays: the one that an engine runs.

trigger = Trigger(Detector.towers(1), seeds_min=5, slice_ns=100e6)
for number, hits in enumerate(slices):
    found = trigger.take_slice(number, hits)
    for event in found.events: found.hits_of(event), found.seeds_of(event)
found = trigger.flush()
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nanet.km3.detector import Detector

__all__ = ["CHARGE", "FLOOR", "HIT", "SIMPLE", "Found", "Trigger", "pair_degrees"]

HIT = np.dtype([("time_ns", "<f8"), ("pm", "<u4"), ("charge_pe", "<f4")])
"""A hit: time since the slice began, index of the PM in Detector.pms, charge."""

SIMPLE, FLOOR, CHARGE = 1, 2, 4
"""Bits of a seed's kinds: coincidence of a place, of a floor's ends, large charge."""


class Found(NamedTuple):
    """Events, and the hits and seeds of all of them."""

    events: NDArray[np.void]
    """Structured [events]: number, slice, kinds, begin_ns and end_ns since that slice began, first_hit, hit_count, first_seed, seed_count, is_cut."""
    hits: NDArray[np.void]
    """HIT."""
    seeds: NDArray[np.void]
    """Structured: x_m, y_m, z_m, time_ns, pm, kinds."""

    def hits_of(self, event: np.void) -> NDArray[np.void]:
        return self.hits[event["first_hit"] : event["first_hit"] + event["hit_count"]]

    def seeds_of(self, event: np.void) -> NDArray[np.void]:
        return self.seeds[event["first_seed"] : event["first_seed"] + event["seed_count"]]


class Trigger:
    """Settings are those of TriggerConfig (docs/design/km3-trigger.md). Raises SetupError for one that there is not or that makes no sense."""

    def __init__(self, detector: Detector, **settings: Any) -> None:
        from nanet import _core

        self._native = _core.Km3Trigger(detector.native, settings)

    def take_slice(self, number: int, hits: NDArray[np.void]) -> Found:
        """All hits of one slice, in any order. Slices come in the order of their numbers; one that is missing ends what was open."""
        records = np.ascontiguousarray(hits, HIT)
        return Found(*self._native.take_slice(number, records.view(np.uint8).reshape(-1)))

    def flush(self) -> Found:
        """What the last slice left open: nothing follows."""
        return Found(*self._native.flush())

    @property
    def counts(self) -> dict[str, int]:
        """What became of all slices, hits, seeds and events, by name."""
        return self._native.counts()


def pair_degrees(
    points: ArrayLike, window: int = 1500, radius_m: float = 90.0, time_extra_ns: float = 0.0
) -> tuple[NDArray[np.uint32], int]:
    """match3B of each hit with the `window` hits after it.

    points: [hits, 4] of x, y, z [m] and time [ns]. Returns how many hits each one matches, and the number of pairs.
    """
    from nanet import _core

    return _core.km3_pair_degrees(np.ascontiguousarray(points, np.float64), radius_m, time_extra_ns, window)
