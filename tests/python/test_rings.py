# SPDX-License-Identifier: Apache-2.0
"""The native ring fit and map against circle-fit, against numpy, and against truth."""

from __future__ import annotations

import circle_fit
import numpy as np
import pytest
from nanet import _core
from nanet.bench import rings
from nanet.config.emulator import MonteCarlo
from nanet.rich import pm_map


@pytest.fixture(scope="module")
def events() -> rings.Events:
    return rings.make_events(np.random.default_rng(7), 16384, 12)


def test_maps_agree() -> None:
    np.testing.assert_allclose(_core.pm_positions(), pm_map.positions_mm(), atol=5e-3)


def test_map_facts() -> None:
    places = pm_map.positions_mm()
    there = places[~np.isnan(places[:, 0])]
    assert len(there) == 1952
    assert np.abs(there[:, 0]).max() == 297.0
    assert np.abs(there[:, 1]).max() == pytest.approx(296.2, abs=0.05)
    assert np.hypot(there[:, 0], there[:, 1]).max() == pytest.approx(313.5, abs=0.05)
    disk = there[:976]
    distance = np.linalg.norm(disk[:, None] - disk[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert distance.min() == pytest.approx(18.0, abs=1e-3)
    assert len(np.unique(disk[:, 1].round(2))) == 39


@pytest.mark.parametrize(
    ("particle", "momentum", "radius"),
    [
        ("e", 20, 189.6),
        ("mu", 15, 146.9),
        ("mu", 35, 182.5),
        ("pi", 15, 104.3),
        ("pi", 25, 164.1),
        ("K", 60, 127.9),
        ("K", 20, 0.0),
    ],
)
def test_radii_of_particles(particle: str, momentum: float, radius: float) -> None:
    assert pm_map.ring_radius_mm(particle, momentum) == pytest.approx(radius, abs=0.15)


def test_fit_against_numpy(events: rings.Events) -> None:
    hits, counts, _ = events
    fitted = _core.fit_rings(hits, counts)
    expected = rings.fit_numpy(hits, counts)
    assert np.all(fitted["status"] & 1)
    for column, name in enumerate(("x_mm", "y_mm", "radius_mm")):
        np.testing.assert_allclose(fitted[name], expected[:, column], rtol=2e-5, atol=2e-3)


def test_fit_against_circle_fit(events: rings.Events) -> None:
    """Taubin's fit weights a little differently: both must find the same ring within a fraction of its error."""
    hits, counts, _ = events
    fitted = _core.fit_rings(hits[:200], counts[:200])
    places = pm_map.positions_mm()[hits[:200] & 0x07FF]
    difference = []
    for ring, points in zip(fitted, places, strict=True):
        x, y, radius, _ = circle_fit.taubinSVD(points)
        difference.append((ring["x_mm"] - x, ring["y_mm"] - y, ring["radius_mm"] - radius))
    assert np.abs(np.median(difference, axis=0)).max() < 0.2
    assert np.std(difference, axis=0).max() < 1.0


def test_fit_against_kasa_is_exact(events: rings.Events) -> None:
    """The MATH fit is Kasa's least squares in closed form, so a solver of that linear system must agree."""
    hits, counts, _ = events
    fitted = _core.fit_rings(hits[:100], counts[:100])
    for ring, points in zip(fitted, pm_map.positions_mm()[hits[:100] & 0x07FF], strict=True):
        design = np.column_stack([2 * points, np.ones(len(points))])
        (a, b, c), *_ = np.linalg.lstsq(design, (points**2).sum(axis=1), rcond=None)
        assert ring["radius_mm"] == pytest.approx(np.sqrt(c + a * a + b * b), rel=1e-5)


def test_scalar_gives_the_same_bits(events: rings.Events) -> None:
    hits, counts, _ = events
    assert _core.fit_rings(hits, counts).tobytes() == _core.fit_rings_scalar(hits, counts).tobytes()


def test_resolution_and_bias(events: rings.Events) -> None:
    hits, counts, truth = events
    error = _core.fit_rings(hits, counts)["radius_mm"] - truth[:, 2]
    good = np.abs(error) < 25
    assert good.mean() > 0.99
    assert np.std(error[good]) < 2.2
    assert abs(error[good].mean()) < 0.2


@pytest.mark.parametrize(
    ("flat", "bias_max_mm"),
    [
        (False, 0.2),  # the particles that are really there
        (True, 0.3),  # radii down to 80 mm: any algebraic fit is too large by about (single-hit error)^2 / radius
    ],
)
def test_native_monte_carlo_against_truth(flat: bool, bias_max_mm: float) -> None:
    settings = MonteCarlo(mean_hits=12.0, flat_radius=flat, centre_sigma_mm=10.0).model_dump(mode="json")
    hits, counts, truth = _core.monte_carlo(settings, 20_000)
    fitted = _core.fit_rings(hits, counts)
    twelve = (counts == 12) & (truth["noise_hits"] == 0)
    assert twelve.sum() > 500
    error = fitted["radius_mm"][twelve] - truth["radius_mm"][twelve]
    good = np.abs(error) < 25
    assert np.std(error[good]) < 2.2
    assert abs(error[good].mean()) < bias_max_mm
    again = _core.monte_carlo(settings, 20_000)
    assert all(np.array_equal(a, b) for a, b in zip((hits, counts, truth), again, strict=True))


def test_events_have_different_hits_on_one_disk(events: rings.Events) -> None:
    hits, counts, truth = events
    assert np.all(counts == 12)
    assert all(len(set(row)) == 12 for row in hits.tolist())
    assert np.all((hits >> 10) == (hits[:, :1] >> 10))
    assert truth.shape == (16384, 3)


def test_small_benchmark() -> None:
    said: list[str] = []
    result = rings.run(rings.RingBench(events=512, repeats=1, repeat_s=0.01), said.append)
    assert result["math"]["events_per_s"] > 0
    assert [case["hits"] for case in result["cases"]] == [8, 12, 20, 32]
    assert all(case["circle_fit"] for case in result["cases"])
    assert all(case["largest_difference_to_numpy_mm"] < 0.01 for case in result["cases"])
    assert len(said) == 4
