# SPDX-License-Identifier: Apache-2.0
"""POMH, DOMH, HOUGH, TRIPLS and histogram against references in plain numpy, written from the description of each method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from finder_references import histogram, hough, pomh, tripls
from finder_references.circle_refit import Cuts, Hits, Ring, lay_out
from nanet import _core
from nanet.config.emulator import MonteCarlo

REFERENCES: dict[str, Callable[[Hits, Cuts], list[Ring]]] = {
    "pomh": pomh.find,
    "domh": pomh.find,
    "hough": hough.find,
    "tripls": tripls.find,
    "histogram": histogram.find,
}

# Share of events that may differ. The finders compute in float32, the references in float64: a weight, vote or circle near a rounding edge, or a hit at the
# edge of a window, may fall on the other side; in histogram that can cost or give a ring.
DIFFER_MAX = {"pomh": 0.01, "domh": 0.01, "hough": 0.02, "tripls": 0.02, "histogram": 0.02}


@pytest.fixture(scope="module")
def events() -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
    """0 to 3 rings with noise, and some that no detector sends."""
    shares = (0.1, 0.5, 0.3, 0.1, 0.0)
    config = MonteCarlo(seed=5, flat_radius=True, mean_hits=12, noise_hits=1.2, hits_max=128, ring_count_shares=shares)
    hits, counts, _ = _core.physics_sample(config.model_dump(mode="json"), 300).hits()
    hits, counts = hits.copy(), counts.copy()
    rng = np.random.default_rng(6)
    for event in range(0, 40, 4):
        hits[event] = rng.integers(0, 65536, 128)  # any words
        counts[event] = rng.integers(0, 60)
        hits[event + 1] = hits[event + 1, 0]  # one photomultiplier
    return hits, counts


def same(ring: Ring, found: np.void) -> bool:
    close = np.allclose(
        [found["x_mm"], found["y_mm"], found["radius_mm"], found["rms_mm"], found["time_ns"]],
        [*ring.circle, ring.rms, ring.time_ns],
        atol=0.01,
    )
    return close and int(found["hits"]) == ring.hits


@pytest.mark.parametrize("finder", REFERENCES)
def test_against_reference(finder: str, events: tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]) -> None:
    hits, counts = events
    found = _core.find_rings(finder, {}, hits, counts)
    cuts = _core.default_finder_cuts()[finder]
    differ = 0
    for event, (words, count) in enumerate(zip(hits, counts, strict=True)):
        rings = REFERENCES[finder](lay_out(words[:count]), cuts)
        got = found[event]
        agree = len(rings) == got["count"] and all(same(ring, got["rings"][k]) for k, ring in enumerate(rings))
        differ += not agree
    assert found["count"].sum() > 150
    assert differ <= DIFFER_MAX[finder] * len(hits)


@pytest.mark.parametrize("finder", REFERENCES)
def test_scalar_gives_the_same_bytes(finder: str, events: tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]) -> None:
    assert _core.find_rings(finder, {}, *events).tobytes() == _core.find_rings_scalar(finder, {}, *events).tobytes()
