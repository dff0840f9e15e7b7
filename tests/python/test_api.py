# SPDX-License-Identifier: Apache-2.0
"""The Python API: rings and judgements against references, shapes, errors, and that docs/api.md has all of it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nanet
import numpy as np
import pytest
from finder_references import histogram
from finder_references.circle_refit import lay_out
from nanet import _core
from nanet.bench import rings as bench_rings
from nanet.config import Cuts, Decision, EngineConfig
from nanet.rich import pm_map
from nanet.rich.rings import SimulatedEvents

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def events() -> SimulatedEvents:
    shares = (0.1, 0.4, 0.3, 0.15, 0.05)
    return nanet.monte_carlo(800, seed=11, mean_hits=12, noise_hits=1.2, hits_max=128, ring_count_shares=shares)


def test_positions_are_those_of_the_published_strips() -> None:
    assert nanet.pm_positions().shape == (2048, 2)
    np.testing.assert_allclose(nanet.pm_positions(), pm_map.positions_mm(), atol=5e-3)


def test_fit_rings_against_numpy() -> None:
    hits, counts, _ = bench_rings.make_events(np.random.default_rng(3), 500, 12)
    expected = bench_rings.fit_numpy(hits, counts)
    for given in (hits, hits.astype(np.int64), np.asfortranarray(hits), hits.tolist()):
        fitted = nanet.fit_rings(given, counts)
        assert fitted.shape == (500,)
        for column, name in enumerate(("x_mm", "y_mm", "radius_mm")):
            np.testing.assert_allclose(fitted[name], expected[:, column], rtol=2e-5, atol=2e-3)


def test_find_rings_against_a_reference(events: SimulatedEvents) -> None:
    found = nanet.find_rings(events.hits[:200], events.counts[:200], "histogram")
    assert found.shape == (200,)
    assert found["rings"].shape == (200, 4)
    cuts = _core.default_finder_cuts()["histogram"]
    differ = 0
    for words, count, got in zip(events.hits, events.counts, found, strict=False):
        expected = histogram.find(lay_out(words[:count]), cuts)
        radii = [ring.circle.radius for ring in expected]
        differ += len(radii) != got["count"] or not np.allclose(got["rings"]["radius_mm"][: got["count"]], radii, atol=0.01)
    assert found["count"].sum() > 100
    assert differ <= 4  # float32 against float64, as in test_finder_classic


def test_cuts_of_a_finder_are_used(events: SimulatedEvents) -> None:
    few = nanet.find_rings(events.hits, events.counts, "almagest", {"hits_min": 9})
    many = nanet.find_rings(events.hits, events.counts, "almagest")
    assert few["rings"]["hits"][few["rings"]["hits"] > 0].min() >= 9
    assert 0 < few["count"].sum() < many["count"].sum()


def judged_by_the_page(event: np.void, cuts: Cuts, momentum: dict[str, float], condition_bits: int | None) -> dict[str, Any]:
    """A judgement in plain Python, from docs/formats.md and the schema's texts. momentum: {kind: radius [mm]}."""
    expected = {"electrons": cuts.electron_radius_mm, **momentum}
    found = {"rings": 0, "electrons": 0, "muons": 0, "pions": 0, "kaons": 0, "good_rings": 0, "radius_mm": 0.0}
    for k, ring in enumerate(event["rings"][: event["count"]]):
        hits = int(ring["hits"])
        is_ring = ring["status"] & 1 == 1 and hits >= max(4, cuts.min_hits)
        if not is_ring or not cuts.radius_min_mm <= ring["radius_mm"] <= cuts.radius_max_mm:
            continue
        if np.hypot(ring["x_mm"], ring["y_mm"]) > cuts.center_max_mm:
            continue
        if float(ring["rms_mm"]) * np.sqrt(hits / (hits - 3)) > cuts.rms_max_mm:
            continue
        found["rings"] += 1
        found["good_rings"] |= 1 << k
        found["radius_mm"] = found["radius_mm"] or float(ring["radius_mm"])
        off = {kind: abs(float(ring["radius_mm"]) - radius) for kind, radius in expected.items()}
        window = {kind: cuts.electron_window_mm if kind == "electrons" else cuts.kind_window_mm for kind in off}
        near = [kind for kind in off if off[kind] <= window[kind]]
        if near:
            found[min(near, key=off.__getitem__)] += 1
    found["multiplicity"] = min(63, int(event["mapped_hits"]))
    field = min(15, int(found["radius_mm"] / 16)) if condition_bits is None else condition_bits
    found["primitive_id"] = (
        found["multiplicity"] | min(3, found["rings"]) << 6 | bool(found["rings"]) << 8 | bool(found["electrons"]) << 9 | field << 10 | 1 << 14
    )  # fmt: skip
    return found


@pytest.mark.parametrize("momentum_gev", [None, 20.0])
@pytest.mark.parametrize("finder", ["math", "almagest"])
def test_judge_against_a_plain_reference(events: SimulatedEvents, finder: str, momentum_gev: float | None) -> None:
    cuts = Cuts(momentum_gev=momentum_gev, rms_max_mm=8.0, electron_window_mm=5.0)
    momentum = {} if momentum_gev is None else {
        kind: pm_map.ring_radius_mm(name, momentum_gev) for kind, name in (("muons", "mu"), ("pions", "pi"), ("kaons", "K"))
        if pm_map.ring_radius_mm(name, momentum_gev) > 0
    }  # fmt: skip
    rings = nanet.find_rings(events.hits, events.counts, finder)
    judged = nanet.judge(rings, Decision(cuts=cuts))
    assert judged["rings"].sum() > 100
    if momentum:
        assert judged["muons"].sum() > 10
    for event, ours in zip(rings, judged, strict=True):
        theirs = judged_by_the_page(event, cuts, momentum, None)
        assert {name: pytest.approx(value) for name, value in theirs.items()} == {name: ours[name] for name in theirs}
    assert nanet.primitive_ids(rings, Decision(cuts=cuts)).tolist() == judged["primitive_id"].tolist()


def test_conditions_take_the_place_of_the_radius_class(events: SimulatedEvents) -> None:
    rings = nanet.find_rings(events.hits, events.counts, "almagest")
    decision = Decision.model_validate({
        "conditions": [{"name": "two", "when": "rings >= 2"}, {"name": "busy", "when": "multiplicity > 20 and rings == 1"}]
    })  # fmt: skip
    judged = nanet.judge(rings, decision)
    assert 0 < (judged["rings"] >= 2).sum() < len(judged)
    bits = (judged["rings"] >= 2).astype(int) | ((judged["multiplicity"] > 20) & (judged["rings"] == 1)).astype(int) << 1
    assert (judged["primitive_id"] >> 10 & 0xF).tolist() == bits.tolist()
    plain = [judged_by_the_page(event, Cuts(), {}, int(bit))["primitive_id"] for event, bit in zip(rings, bits, strict=True)]
    assert nanet.primitive_ids(rings, decision).tolist() == plain


def test_a_processor_of_a_configuration_is_a_decision(events: SimulatedEvents) -> None:
    processor = nanet.config.load(ROOT / "examples" / "several_rings.yaml").processor
    assert processor.conditions
    rings = nanet.find_rings(events.hits, events.counts, "almagest")
    assert nanet.primitive_ids(rings, processor).tolist() != nanet.primitive_ids(rings).tolist()


def test_monte_carlo_is_the_same_for_a_seed() -> None:
    first, again, other = (nanet.monte_carlo(50, seed=seed, mean_hits=12) for seed in (1, 1, 2))
    assert first.hits.tobytes() == again.hits.tobytes() != other.hits.tobytes()
    assert first.hits.shape[0] == len(first.counts) == len(first.truth) == 50
    assert (first.counts <= first.hits.shape[1]).all()
    assert nanet.monte_carlo(0).hits.shape[0] == 0


GOOD = np.zeros((3, 8), np.uint16), np.array([1, 2, 8], np.uint32)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nanet.find_rings(*GOOD, finder="almagst"), "no ring finder almagst"),
        (lambda: nanet.find_rings(*GOOD, finder="almagest", cuts={"min_hit": 3}), "a cut of finder almagest is unknown"),
        (lambda: nanet.find_rings(GOOD[0], GOOD[1][:2]), "differ in length"),
        (lambda: nanet.find_rings(GOOD[0][:, :4], GOOD[1]), "more hits than its row"),
        (lambda: nanet.find_rings(GOOD[0].astype(float), GOOD[1]), "hits cannot be used (float64 of 2 dimensions)"),
        (lambda: nanet.fit_rings(GOOD[0][0], GOOD[1]), "hits cannot be used (uint16 of 1 dimensions)"),
        (lambda: nanet.fit_rings(GOOD[0].astype(int) + 65536, GOOD[1]), "numbers from 65536 to 65536"),
        (lambda: nanet.fit_rings(GOOD[0], GOOD[1].astype(int) - 2), "counts cannot be used (numbers from -1 to 6)"),
        (lambda: nanet.judge(nanet.fit_rings(*GOOD)), "these are not rings of events"),
        (lambda: nanet.primitive_ids(np.zeros(4)), "these are not rings of events"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_line(call: Callable[[], object], words: str) -> None:
    with pytest.raises(nanet.SetupError, match=re.escape(words)) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nanet.monte_carlo(3, mean_hit=3), "did you mean 'mean_hits'?"),
        (lambda: nanet.monte_carlo(-1), "-1 events cannot be made"),
        (lambda: nanet.Engine({"version": 1}), "memory_regions"),
        (lambda: nanet.Engine("nothing.yaml"), "cannot read nothing.yaml"),
    ],
)
def test_wrong_settings_are_one_line(call: Callable[[], object], words: str) -> None:
    with pytest.raises(nanet.ConfigError, match=re.escape(words)):
        call()


def test_an_engine_does_not_change_the_account_of_the_whole_process() -> None:
    plain = nanet.config.load(ROOT / "examples" / "own_port.yaml").model_dump(mode="json")
    with pytest.raises(nanet.ConfigError, match=r"run\.user is configured"):
        nanet.Engine(EngineConfig.model_validate(plain | {"run": {"user": "nobody"}}))


def test_everything_public_is_there_and_on_the_page() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    for name in nanet.__all__:
        assert getattr(nanet, name) is not None
        assert re.search(rf"`nanet\.{name}\b", text), name
    for name in ("expose", "connect"):
        assert f"`nanet.rdma.{name}(" in text
    from nanet.port import port
    from nanet.rdma import regions
    from nanet.run.engine import Engine
    from nanet.torus import Torus

    for kind in (port.Port, port.Completion, Engine, regions.Target, regions.Connection, Torus):
        for name, member in vars(kind).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)) and name != "check_held":
                assert re.search(rf"`(\w+\.)*{name}\b", text), f"{kind.__name__}.{name}"


def test_signatures_on_the_page_are_those_of_the_code() -> None:
    """Each `nanet.NAME(a, b, c=...)` of a heading names the parameters of that function, in order."""
    text = (ROOT / "docs" / "api.md").read_text()
    headings = re.findall(r"^### `nanet\.([\w.]+)\((.*)\)", text, re.MULTILINE)
    assert len(headings) >= 9
    for name, inside in headings:
        target: Any = nanet
        for word in name.split("."):
            target = getattr(target, word)
        said = [part.split("=")[0].strip(" *") for part in inside.split(",") if part.strip() not in ("*", "")]
        ours = [p for p in inspect.signature(target).parameters if p != "self"]
        assert said == ours, name
