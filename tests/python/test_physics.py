# SPDX-License-Identifier: Apache-2.0
"""The physics study: matching, bound and figures against re-implementations in numpy, the result's keys, the report, and the events it draws."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_json_page import differences
from nanet import _core
from nanet.config.emulator import MonteCarlo
from nanet.config.errors import ConfigError, validated
from nanet.physics import Study, best, cases, figures, frontier, run, separation, study
from nanet.report import series, write_report
from nanet.result.keys.physics import PhysicsResult
from nanet.rich import pm_map
from page_checks import assert_readable

ROOT = Path(__file__).parents[2]
MATCH_CENTRE_MM, MATCH_RADIUS_MM = 20.0, 15.0


def sample_of(name: str, events: int = 300, seed: int = 3) -> Any:
    case = cases.CASES[name]
    return _core.physics_sample(case.monte_carlo(seed).model_dump(mode="json"), events, case.apart_mm)


# --- what the binding measures, against numpy ---


def match_by_hand(truth: list[np.ndarray], found: list[np.ndarray]) -> tuple[dict[int, int], int, int]:
    """The best of all one-to-one assignments in the sense of the definition: nearest pair first. Returns partners, fakes, clones."""
    pairs = []
    for (t, true), (f, ring) in itertools.product(enumerate(truth), enumerate(found)):
        step = ring - true
        if np.hypot(step[0], step[1]) < MATCH_CENTRE_MM and abs(step[2]) < MATCH_RADIUS_MM:
            pairs.append((float(step @ step), t, f))
    near = {f for _, _, f in pairs}
    partners: dict[int, int] = {}
    for _, t, f in sorted(pairs):
        if t not in partners and f not in partners.values():
            partners[t] = f
    unused = set(range(len(found))) - set(partners.values())
    return partners, len(unused - near), len(unused & near)


@pytest.mark.parametrize("case", ["single_ring", "two_rings", "three_rings_apart", "multi_ring", "noise_6"])
@pytest.mark.parametrize("finder", ["math", "almagest", "mixture"])
def test_matching_against_numpy(case: str, finder: str) -> None:
    sample = sample_of(case)
    truth, got = sample.truth(), sample.measure(finder, {}, "vector", 1)
    hits, counts, _ = sample.hits()
    rings = _core.find_rings(finder, {}, hits, counts)
    assert np.array_equal(got["event_found"], rings["count"])
    for event in range(len(counts)):
        mine = np.flatnonzero(truth["ring_event"] == event)
        true = [np.array([truth[f"ring_{key}_mm"][n] for key in ("x", "y", "radius")], dtype=float) for n in mine]
        found = [np.array([ring[f"{key}_mm"] for key in ("x", "y", "radius")], dtype=float) for ring in rings["rings"][event]]
        partners, fakes, clones = match_by_hand(true, found[: rings["count"][event]])
        assert (got["event_fakes"][event], got["event_clones"][event]) == (fakes, clones)
        for t, n in enumerate(mine):
            assert bool(got["ring_matched"][n]) == (t in partners)
            if t in partners:
                error = found[partners[t]] - true[t]
                measured = [got[f"ring_{key}_mm"][n] for key in ("dx", "dy", "dr")]
                np.testing.assert_allclose(measured, error, atol=1e-3)
                assert got["ring_found_radius_mm"][n] == pytest.approx(found[partners[t]][2], rel=1e-6)
            else:
                assert math.isnan(got["ring_dr_mm"][n])


def test_truth_and_bound_against_numpy() -> None:
    """Hits, squared distances and the Cramer-Rao bound of each true ring, from the hits that it owns."""
    sample = sample_of("three_rings")
    truth = sample.truth()
    hits, counts, owners = sample.hits()
    places = pm_map.positions_mm()
    for n in range(len(truth["ring_event"])):
        event, index = int(truth["ring_event"][n]), int(truth["ring_index"][n])
        own = (owners[event, : counts[event]] >> index) & 1 == 1
        step = places[hits[event, : counts[event]][own] & 0x07FF] - (truth["ring_x_mm"][n], truth["ring_y_mm"][n])
        distance = np.hypot(step[:, 0], step[:, 1])
        assert truth["ring_hits"][n] == len(distance)
        squares = float(((distance - truth["ring_radius_mm"][n]) ** 2).sum())
        assert truth["ring_squares_mm2"][n] == pytest.approx(squares, rel=1e-3, abs=1e-2)
        jacobian = np.column_stack([step / distance[:, None], np.ones(len(distance))])
        if len(distance) >= 4:
            bound = math.sqrt(np.linalg.inv(jacobian.T @ jacobian)[2, 2])
            assert truth["ring_bound"][n] == pytest.approx(bound, rel=1e-3)
    assert np.array_equal(truth["event_hits"], counts)
    assert np.array_equal(truth["event_rings"], np.bincount(truth["ring_event"], minlength=len(counts)))
    assert np.all(truth["event_noise_hits"] == [(owners[e, : counts[e]] == 0).sum() for e in range(len(counts))])


def test_distance_to_the_nearest_centre() -> None:
    truth = sample_of("three_rings").truth()
    for event in range(50):
        mine = truth["ring_event"] == event
        centres = np.column_stack([truth["ring_x_mm"][mine], truth["ring_y_mm"][mine]]).astype(float)
        apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
        np.fill_diagonal(apart, np.inf)
        np.testing.assert_allclose(truth["ring_nearest_mm"][mine], apart.min(axis=1), rtol=1e-5)
    assert np.all(np.isinf(sample_of("single_ring").truth()["ring_nearest_mm"]))
    assert sample_of("three_rings_apart").truth()["ring_nearest_mm"].min() >= cases.APART_MM


def test_oracle_is_a_least_squares_fit() -> None:
    """Of noise-free single rings with many hits the oracle finds all, and about as well as the bound."""
    config = MonteCarlo(mean_hits=20, flat_radius=True, hits_max=128, seed=5).model_dump(mode="json")
    sample = _core.physics_sample(config, 2000)
    found = figures.figures(dict(sample.truth()) | columns_of(sample, "oracle"))
    assert found["efficiency"] == 1.0
    assert found["fakes"] == found["clones"] == 0.0
    assert 0.85 < found["ratio_to_bound"] < 1.0
    assert 5.0 < found["hit_error_mm"] < 5.8


def columns_of(sample: Any, how: str, finder: str = "math") -> figures.Columns:
    columns = dict(sample.measure(finder, {}, how, 1))
    assert columns.pop("ns_per_event") > 0
    return columns


def test_same_seed_same_events_and_scalar_same_rings() -> None:
    one, two = sample_of("multi_ring"), sample_of("multi_ring")
    assert all(np.array_equal(one.truth()[key], two.truth()[key]) for key in one.truth())
    vector, scalar = columns_of(one, "vector"), columns_of(two, "scalar")
    assert all(np.array_equal(vector[key], scalar[key], equal_nan=vector[key].dtype.kind == "f") for key in vector)
    other = sample_of("multi_ring", seed=4)
    assert not np.array_equal(one.truth()["event_hits"], other.truth()["event_hits"])


def test_binding_refuses() -> None:
    config = MonteCarlo(ring_count_shares=(0, 0, 1, 0, 0)).model_dump(mode="json")
    with pytest.raises(_core.SetupError, match="too few events"):
        _core.physics_sample(config, 10, 5000.0)
    with pytest.raises(_core.SetupError, match="no way 'both'"):
        _core.physics_sample(config, 10).measure("math", {}, "both")
    with pytest.raises(_core.SetupError, match="no ring finder nothing"):
        _core.physics_sample(config, 10).measure("nothing", {})


# --- the events that are drawn ---


def test_monte_carlo_settings_reach_the_events() -> None:
    mix = sample_of("multi_ring", 4000).truth()
    shares = np.bincount(mix["event_rings"], minlength=5) / 4000
    np.testing.assert_allclose(shares, cases.MIX, atol=0.03)
    pileup = sample_of("pileup", 4000).truth()
    assert np.mean(pileup["ring_time_ns"] != 0) == pytest.approx(0.3, abs=0.03)
    assert np.all(sample_of("both_disks").truth()["ring_disk"] == 2)
    full, poor = sample_of("single_ring", 4000).truth(), sample_of("inefficient", 4000).truth()
    assert poor["ring_hits"].mean() / full["ring_hits"].mean() == pytest.approx(0.9, abs=0.02)
    real = MonteCarlo(**cases.REAL).model_dump(mode="json")
    assert _core.mean_photons(real, pm_map.ELECTRON_RADIUS_MM) == pytest.approx(12.9, abs=0.1)
    kaons = sample_of("real_kaons").truth()
    assert set(kaons["ring_particle"]) == {0, 1, 2, 3}
    for particle, momentum, radius in zip(kaons["ring_particle"], kaons["ring_momentum_gev"], kaons["ring_radius_mm"], strict=True):
        assert radius == pytest.approx(pm_map.ring_radius_mm(separation.PARTICLES[particle], float(momentum)), abs=0.05)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ring_count_shares": [0, 0, 0, 0, 0]}, "all ring_count_shares are 0 (no number of rings can be drawn)"),
        ({"ring_count_shares": [1, 1]}, "ring_count_shares"),
        ({"ring_count_shares": [0, -1, 0, 0, 2]}, "ring_count_shares[1]: -1 is not allowed"),
        ({"pileup_share": 1.5}, "pileup_share: 1.5 is not allowed"),
        ({"both_disks_share": -0.1}, "both_disks_share: -0.1 is not allowed"),
        ({"inefficiency": 0.95}, "inefficiency: 0.95 is not allowed"),
        ({"hits_max": 129}, "hits_max: 129 is not allowed"),
    ],
)
def test_monte_carlo_mistakes(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated(MonteCarlo, change)
    assert expected in str(caught.value)


# --- figures ---


def made_up_columns() -> figures.Columns:
    """Three events: two rings with one found and a fake; one ring, found; none, with a clone said to be there."""
    nan = math.nan
    return {
        "ring_event": np.array([0, 0, 1]), "ring_matched": np.array([1, 0, 1]), "ring_hits": np.array([10, 12, 14]),
        "ring_squares_mm2": np.array([250.0, 300.0, 350.0]), "ring_bound": np.array([0.3, 0.3, 0.4]),
        "ring_dx_mm": np.array([1.0, nan, -1.0]), "ring_dy_mm": np.array([2.0, nan, 2.0]), "ring_dr_mm": np.array([3.0, nan, -1.0]),
        "ring_dt_ns": np.array([0.3, nan, 0.4]), "ring_time_ns": np.array([0.0, 1.0, 2.0]), "event_rings": np.array([2, 1, 0]), "event_found": np.array([2, 1, 1]),
        "event_fakes": np.array([1, 0, 0]), "event_clones": np.array([0, 0, 1]),
    }  # fmt: skip


def test_figures_of_made_up_columns() -> None:
    found = figures.figures(made_up_columns(), 12.346)
    expected = {
        "events": 3, "rings": 3, "efficiency": 2 / 3, "efficiency_in_time": 1.0, "efficiency_pileup": 0.5, "all_found": 1 / 2, "count_right": 2 / 3, "fakes": 1 / 3, "clones": 1 / 3,
        "found": 4 / 3, "radius_bias_mm": 1.0, "radius_rms_mm": math.sqrt(5), "centre_rms_mm": math.sqrt(2.5), "hit_error_mm": 5.0,
        "bound_mm": 5 * math.sqrt(0.125), "time_rms_ns": math.sqrt(0.125), "ns_per_event": 12.35,
    }  # fmt: skip
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-5), name
    assert found["ratio_to_bound"] == pytest.approx(math.sqrt(5) / (5 * math.sqrt(0.125)), rel=1e-5)


def test_figures_of_some_events() -> None:
    chosen = figures.select(made_up_columns(), np.array([False, True, True]))
    found = figures.figures(chosen)
    assert (found["events"], found["rings"], found["efficiency"], found["all_found"]) == (2, 1, 1.0, 1.0)
    none = figures.figures(figures.select(made_up_columns(), np.array([False, False, True])))
    assert (none["efficiency"], none["all_found"], none["radius_rms_mm"], none["clones"]) == (None, None, None, 1.0)
    json.dumps(none, allow_nan=False)


@pytest.mark.parametrize(("count", "of"), [(0, 100), (100, 100), (50, 100), (997, 1000)])
def test_share_error_is_that_of_the_posterior(count: int, of: int) -> None:
    """Against the integral over p^count (1 - p)^(of - count), done on a grid."""
    p = (np.arange(400_000) + 0.5) / 400_000
    weight = np.exp(count * np.log(p) + (of - count) * np.log1p(-p) - (count * np.log(p) + (of - count) * np.log1p(-p)).max())
    weight /= weight.sum()
    mean = float((weight * p).sum())
    assert figures.share_error(count, of) == pytest.approx(math.sqrt(float((weight * (p - mean) ** 2).sum())), rel=1e-3)


def test_separation_of_known_peaks() -> None:
    """Two Gaussian peaks 4 sigma apart; and the error of the separation is the spread over repeated samples."""
    generator = np.random.default_rng(2)
    seen, errors = [], []
    for _ in range(400):
        a, b = generator.normal(0.0, 2.0, 150), generator.normal(8.0, 2.0, 100)
        sigmas, error = separation.separation((a.mean(), a.std(ddof=1), 150), (b.mean(), b.std(ddof=1), 100))
        seen.append(sigmas)
        errors.append(error)
    assert np.mean(seen) == pytest.approx(4.0, abs=0.05)
    assert np.mean(errors) == pytest.approx(np.std(seen), rel=0.15)


def test_kinds_at_a_known_momentum() -> None:
    radii = [pm_map.ring_radius_mm(name, 20.0) for name in ("e", "mu", "pi")]
    columns = {
        "ring_matched": np.array([1, 1, 1, 1]),
        "ring_particle": np.array([0, 1, 1, 2]),
        "ring_momentum_gev": np.full(4, 20.0),
        "ring_found_radius_mm": np.array([radii[0], radii[1] + 1, radii[2] + 1, radii[2]]),
    }
    shares = separation.kind_shares(columns)
    assert shares["e"] == {"e": 1.0, "mu": 0.0, "pi": 0.0}
    assert shares["mu"] == {"e": 0.0, "mu": 0.5, "pi": 0.5}
    window = separation.electron_window(columns)
    assert window["e"]["electron_like"] == 1.0
    assert window["mu"]["electron_like"] == 0.0


# --- best finder and frontier ---


def test_the_best_has_the_most_events_whole_and_few_false_rings() -> None:
    found = {
        "good": {"all_found": 0.998, "fakes": 0.007, "clones": 0.0}, "oracle": {"all_found": 1.0, "fakes": 0.0, "clones": 0.0},
        "poor": {"all_found": 0.6, "fakes": 0.0, "clones": 0.0}, "good_time": {"all_found": 0.999, "fakes": 0.007, "clones": 0.0},
    }  # fmt: skip
    assert (best.best(found), best.best(found, hit_times=False)) == ("good_time", "good")


def test_frontier(tmp_path: Path) -> None:
    def one(efficiency: float, ns: float | None) -> dict[str, Any]:
        return {"efficiency": efficiency, "all_found": efficiency, "fakes": 0.0, "clones": 0.0, "ns_per_event": ns}

    found = {"fast": one(0.6, 10.0), "good": one(0.99, 1000.0), "worse": one(0.98, 2000.0), "oracle": one(1.0, None)}
    path = tmp_path / "gpu.csv"
    path.write_text("finder,case,events_per_s,device\ngood,single_ring,5e7,a GPU\ngood,else,1,\nunknown,single_ring,1,\n")
    rows = frontier.points({"single_ring": {"finders": found}}, frontier.read_gpu_csv(path, list(found)))
    assert {(row["finder"], row["device"]): row["on_frontier"] for row in rows} == {
        ("good", "gpu"): True, ("fast", "cpu"): True, ("good", "cpu"): True, ("worse", "cpu"): False,
    }  # fmt: skip
    assert next(row for row in rows if row["device"] == "gpu")["efficiency"] == 0.99


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("finder,case\nmath,single_ring\n", "gpu.csv:2: no events_per_s"),
        ("finder,case,events_per_s\nmath,single_ring,fast\n", "gpu.csv:2: events_per_s is fast"),
        ("finder,case,events_per_s\nmath,single_ring,-1\n", "gpu.csv:2: events_per_s is -1"),
    ],
)
def test_bad_gpu_rows(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "gpu.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(expected)):
        frontier.read_gpu_csv(path, ["math"])


# --- the whole ---


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return run(Study(events=300, passes=1), lambda _: None)


def test_it_is_what_its_type_declares(result: dict[str, Any]) -> None:
    data = json.loads(json.dumps(result, allow_nan=False))
    assert list(differences(data, PhysicsResult)) == []
    assert data["cases"]["real_mix"]["finders"]["math"]["separation"]
    assert set(data["scans"]) == {"hits", "noise", "rings_apart", "rings", "distance", "ring_hits"}


def test_result_is_whole(result: dict[str, Any]) -> None:
    assert result["finders"] == list(_core.finder_names())
    assert set(result["cases"]) == set(cases.CASES)
    for name, case in result["cases"].items():
        assert set(case["finders"]) == {*result["finders"], "almagest_ptolemy", "triplets_time", "mixture_time", "oracle"}, name
        assert case["efficiency"] == case["finders"][case["best"]]["efficiency"]
    assert result["single_ring"]["efficiency"] == result["cases"]["single_ring"]["efficiency"]
    assert result["cases"]["noise"]["finders"]["math"]["efficiency"] is None
    assert {point["device"] for point in result["frontier"]} == {"cpu"}
    rows = study.csv_rows(result)
    assert len({(case, name) for case, name, _, _ in rows}) == len(rows)
    assert ("single_ring/math", "efficiency") in {(case, name) for case, name, _, _ in rows}


def test_report(result: dict[str, Any], tmp_path: Path) -> None:
    write_report(result, tmp_path / "physics.html")
    page = (tmp_path / "physics.html").read_text()
    assert page.count('<svg class="wide" viewBox="0 ') >= 13
    assert_readable(page)
    assert "NaN" not in page
    assert "nan" not in page.replace("nanet", "")
    for finder in result["finders"]:
        assert finder in page


def test_report_of_one_case(tmp_path: Path) -> None:
    little = run(Study(events=200, finders=("math",), cases=("noise",), scan=False, passes=1), lambda _: None)
    assert (little["single_ring"], little["scans"]) == (None, None)
    write_report(little, tmp_path / "physics.html")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"no ring finder 'mixtur' .* did you mean 'mixture'"):
        run(Study(finders=("mixtur",)), lambda _: None)
    with pytest.raises(ConfigError, match="no case 'one_ring'"):
        run(Study(cases=("one_ring",)), lambda _: None)


def test_axis_of_nines() -> None:
    axis = series.NinesAxis(0.999, "efficiency")
    assert axis.share(0.0) == 0.0
    assert axis.share(0.9) == pytest.approx(1 / 3)
    assert axis.share(0.99) == pytest.approx(2 / 3)
    assert axis.share(1.0) == 1.0
    assert [axis.text(tick) for tick in axis.ticks()][-3:] == ["99.5 %", "99.8 %", "99.9 %"]


def test_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nanet", "physics", "--events", "200", "--finder", "math", "--case", "single_ring", "--no-scan",
               "--json", tmp_path / "p.json", "--csv", tmp_path / "p.csv", "--html", tmp_path / "p.html"]  # fmt: skip
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "goal" not in done.stdout
    assert json.loads((tmp_path / "p.json").read_text())["single_ring"]["best"] == "math"
    assert "single_ring/math" in (tmp_path / "p.csv").read_text()
    assert "</html>" in (tmp_path / "p.html").read_text()
