# SPDX-License-Identifier: Apache-2.0
"""docs/rich-map.csv and docs/finder-cuts.md against the code: the native map, and the configuration's defaults."""

from __future__ import annotations

import csv
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from nanet import _core
from nanet.config.rich import Cuts

ROOT = Path(__file__).parents[2]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_rich_pages", ROOT / "scripts" / "make_rich_pages.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_csv_is_the_native_map() -> None:
    table = np.full((2048, 2), np.nan)
    for row in csv.DictReader((ROOT / "docs" / "rich-map.csv").open()):
        channel = int(row["channel"])
        assert channel == 512 * int(row["board"]) + int(row["pm"])
        assert (int(row["disk"]), int(row["half"])) == divmod(int(row["board"]), 2)
        assert float(row["x_mm"]) == 9 * int(row["i"])
        table[channel] = float(row["x_mm"]), float(row["y_mm"])
    np.testing.assert_allclose(table, _core.pm_positions(), atol=1e-4)


def test_both_files_are_what_the_code_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_script()
    assert script.main(["--check"]) == 0, capsys.readouterr().err
    monkeypatch.setattr(script, "DOCS", tmp_path)
    assert script.main(["--check"]) == 1
    assert "run scripts/make_rich_pages.py" in capsys.readouterr().err
    assert script.main([]) == 0
    (tmp_path / "rich-map.csv").write_text("channel\n0\n")
    assert script.main(["--check"]) == 1
    assert (tmp_path / "finder-cuts.md").read_text() == (ROOT / "docs" / "finder-cuts.md").read_text()


def test_the_page_of_the_detector_has_every_cut_on_a_ring_with_its_default() -> None:
    page = (ROOT / "docs" / "detector-map.md").read_text()
    section = page.partition("## From rings to the primitive ID\n")[2].partition("\n## ")[0]
    said: dict[str, float | None] = {}
    for keys, defaults in re.findall(r"^\| (.*`.*) \| (.*) \|$", section, re.MULTILINE):
        numbers = [None if text == "none" else float(text) for text in re.findall(r"none|[\d.]+", defaults)]
        said |= zip(re.findall(r"`(\w+)`", keys), numbers, strict=True)
    assert said == {name: field.default for name, field in Cuts.model_fields.items()}
