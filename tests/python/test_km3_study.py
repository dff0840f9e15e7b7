# SPDX-License-Identifier: Apache-2.0
"""The study of KM3NeT's trigger: intervals by hand, seeds of a few hits, a small study and its report."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nanet.bench import gpu as gpu_bench
from nanet.bench import km3_gpu as gpu
from nanet.config.errors import ConfigError
from nanet.km3 import study
from nanet.km3.detector import Detector
from nanet.km3.study import Study, rate, run, share
from nanet.km3.trigger import CHARGE, FLOOR, HIT, SIMPLE
from nanet.km3.truth import light_of_energy, seed_kinds
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
    def studied(**settings: Any) -> Any:
        return run(Study(muon_slices=3, noise_slices=2, scan=False, trigger=settings, energy_slices=0), lambda _: None)

    result = studied()
    found = result["efficiency_5_seeds"]
    assert found["counted"] > 20
    assert found["value"] > 0.9
    assert result["purity"]["value"] > 0.9
    assert (result["floors_per_gpu"], result["floors_per_gpu_why"]) == (None, "it was not asked for")
    assert result["floors_per_core"] > 0
    assert any(hit[5] for hit in result["display"]["hits"])
    page = render(make_study(result))
    assert "5 or more L1 seeds" in page
    assert page.count("<svg") >= 6
    assert studied(seeds_min=12)["efficiency_5_seeds"]["value"] < found["value"]


def test_more_energy_is_more_light_and_more_of_them_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert light_of_energy(0) == 1
    assert light_of_energy(1000) == pytest.approx(2.67, abs=0.01)
    monkeypatch.setattr(study, "ENERGIES_GEV", (30.0, 10_000.0))
    dim, bright = study._by_energy(Study(energy_slices=2), lambda _: None)
    assert dim["efficiency"] is not None
    assert bright["efficiency"] is not None
    assert dim["efficiency"]["counted"] > 40
    assert dim["efficiency"]["high"] < bright["efficiency"]["low"]
    assert dim["seeds_mean"] < bright["seeds_mean"] / 2
    of_gpu = (300.0, "", "GPU of a test")
    result = run(Study(muon_slices=1, noise_slices=1, scan=False, energy_slices=0), lambda _: None, lambda *_: of_gpu)
    result["efficiency_by_energy"] = [dim, bright]
    page = render(make_study(result))
    assert "Efficiency against energy" in page
    assert "300 (GPU of a test)" in page


def test_floors_of_a_gpu_are_what_its_program_measures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program that says 110 M hits/s and 120 M seeds/s: 330 kHz and 8.5 kHz of a floor take 0.3 % and 0.007 % of the GPU."""
    assert gpu.floors(330e3, 8.5e3, tmp_path, print)[1]
    monkeypatch.setattr(gpu_bench, "check_gpu", lambda: None)
    floors, why, _ = gpu.floors(330e3, 8.5e3, tmp_path, print)
    assert floors is None
    assert "bench_gpu_km3 is not in" in why
    program = tmp_path / "bench_gpu_km3"
    lines = ("# program: bench_gpu_km3", "# gpu: GPU of a test", "what,per_s", "kernel,2e8", "with_copies,1.1e8", "seeds_gpu,1.2e8")
    program.write_text("#!/bin/sh\n(" + "; ".join(f"echo '{line}'" for line in lines) + ') > "$2"\n')
    program.chmod(0o755)
    floors, why, name = gpu.floors(330e3, 8.5e3, tmp_path, print)
    assert (name, why) == ("GPU of a test", "")
    assert floors == pytest.approx(1 / (330e3 / 1.1e8 + 8.5e3 / 1.2e8))
    elsewhere = tmp_path / "km3.csv"
    elsewhere.write_text("\n".join(lines))
    assert gpu.floors(330e3, 8.5e3, None, print, gpu.read(elsewhere))[0] == floors
    elsewhere.write_text("\n".join((*lines, "# wrong: the GPU's answers differ")))
    assert gpu.floors(330e3, 8.5e3, None, print, gpu.read(elsewhere)) == (None, "the GPU's answers differ", "")
    with pytest.raises(gpu_bench.GpuBenchError, match="cannot be read"):
        gpu.read(tmp_path / "none.csv")
    program.write_text("#!/bin/sh\nexit 2\n")
    assert "failed" in gpu.floors(330e3, 8.5e3, tmp_path, print)[1]


def test_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, before anything is measured."""
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.delitem(sys.modules, "nanet.km3.needs")
    with pytest.raises(ConfigError, match=r"SciPy is not installed\) pip install 'nanet\[km3\]'"):
        importlib.import_module("nanet.km3.needs")
