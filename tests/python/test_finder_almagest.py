# SPDX-License-Identifier: Apache-2.0
"""Almagest against its reference in plain numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from finder_references import almagest
from finder_references.circle_refit import Ring, lay_out
from nanet import _core
from nanet.config.emulator import MonteCarlo

Events = tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]

# Share of events that may differ: the finder scores in fixed point of 16 bits, computes circles in float32 and compares integers along directions that
# are sqrt(3) to 5e-5, the reference in float64; a hit near a window's edge, or two starts of nearly the same score, may fall otherwise (5 of 3000).
DIFFER_MAX = 0.01


@pytest.fixture(scope="module")
def events() -> Events:
    """0 to 3 rings with noise, and some that no detector sends."""
    config = MonteCarlo(
        seed=7, flat_radius=True, mean_hits=12, noise_hits=1.2, hits_max=128, ring_count_shares=(0.1, 0.4, 0.4, 0.1, 0.0)
    )
    hits, counts, _ = _core.physics_sample(config.model_dump(mode="json"), 400).hits()
    hits, counts = hits.copy(), counts.copy()
    rng = np.random.default_rng(8)
    for event in range(0, 40, 4):
        hits[event] = rng.integers(0, 65536, 128)  # any words
        counts[event] = rng.integers(0, 60)
        hits[event + 1] = hits[event + 1, 0]  # one photomultiplier
    return hits, counts


def same(ring: Ring, found: np.void) -> bool:
    figures = [found[name] for name in ("x_mm", "y_mm", "radius_mm", "rms_mm", "time_ns")]
    return np.allclose(figures, [*ring.circle, ring.rms, ring.time_ns], atol=0.01) and int(found["hits"]) == ring.hits


def test_against_reference(events: Events) -> None:
    found = _core.find_rings("almagest", {}, *events)
    cuts = _core.default_finder_cuts()["almagest"]
    differ = 0
    for words, count, got in zip(*events, found, strict=True):
        rings = almagest.find(lay_out(words[:count]), cuts)
        differ += not (len(rings) == got["count"] and all(same(ring, got["rings"][k]) for k, ring in enumerate(rings)))
    assert found["count"].sum() > 300
    assert differ <= DIFFER_MAX * len(found)


def test_scalar_gives_the_same_bytes(events: Events) -> None:
    assert _core.find_rings("almagest", {}, *events).tobytes() == _core.find_rings_scalar("almagest", {}, *events).tobytes()
