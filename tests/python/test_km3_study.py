# SPDX-License-Identifier: Apache-2.0
"""The study of KM3NeT's trigger: intervals by hand, seeds of a few hits, a small study and its report."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from nanet.config.errors import ConfigError
from nanet.km3.detector import Detector
from nanet.km3.study import Study, rate, run, share
from nanet.km3.trigger import CHARGE, FLOOR, HIT, SIMPLE
from nanet.km3.truth import seed_kinds
from nanet.report.km3 import make_study
from nanet.report.page import render


def test_intervals_are_the_exact_ones() -> None:
    none, every = share(0, 20), share(20, 20)
    assert none is not None
    assert every is not None
    assert none["high"] == pytest.approx(1 - 0.025 ** (1 / 20))
    assert every["low"] == pytest.approx(0.025 ** (1 / 20))
    assert share(0, 0) is None
    assert rate(0, 2.0)["high"] == pytest.approx(-np.log(0.025) / 2)


def test_seeds_of_a_muon_are_those_of_the_definition() -> None:
    hits = np.array([(0, 0, 1), (15, 1, 1), (150, 4, 1), (900, 2, 3), (1000, 6, 1), (1010, 7, 0.2)], HIT)
    kinds = seed_kinds(hits, Detector.towers().pms, simple_ns=20, floor_ns=200, charge_pe=2.5)
    assert list(kinds) == [SIMPLE | FLOOR, FLOOR, 0, CHARGE, 0, 0]


def test_a_small_study_finds_its_muons_and_has_a_report() -> None:
    def study(**settings: Any) -> Any:
        return run(Study(muon_slices=3, noise_slices=2, scan=False, trigger=settings), lambda _: None)

    result = study()
    found = result["efficiency_5_seeds"]
    assert found["counted"] > 20
    assert found["value"] > 0.9
    assert result["purity"]["value"] > 0.9
    assert result["floors_per_gpu"] is None
    assert result["floors_per_core"] > 0
    assert any(hit[5] for hit in result["display"]["hits"])
    page = render(make_study(result))
    assert "5 or more L1 seeds" in page
    assert page.count("<svg") >= 6
    assert study(seeds_min=12)["efficiency_5_seeds"]["value"] < found["value"]


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, before anything is measured."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.delitem(sys.modules, "nanet.km3.needs")
    with pytest.raises(ConfigError, match=r"SciPy is not installed\) pip install 'nanet\[km3\]'"):
        importlib.import_module("nanet.km3.needs")
