# SPDX-License-Identifier: Apache-2.0
"""scripts/make_stencil.py: the tables of docs/stencil.md from what was measured."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from stencil_reference import can_move_tiles

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    script = ROOT / "scripts" / "make_stencil.py"
    return subprocess.run(
        [sys.executable, str(script), *map(str, arguments)], capture_output=True, check=False, text=True, timeout=200
    )


def test_the_page_is_current() -> None:
    done = run("--check")
    assert done.returncode == 0, done.stderr


def test_what_is_measured_is_what_the_page_says(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    if not can_move_tiles(record_property):
        return
    (tmp_path / "stencil.md").write_text((ROOT / "docs" / "stencil.md").read_text())
    done = run("--measure", "--tile", "1M,2M", "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "stencil.md").read_text()
    with (tmp_path / "stencil.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["mode"], int(row["bytes"]) // 2**20) for row in rows] == [
        (mode, mib) for mode in ("paper", "stream") for mib in (1, 2)
    ] * 2
    for row in rows:
        line = next(
            line
            for line in page.split(f"Over {row['path']}:")[1].splitlines()
            if line.startswith(f"| {int(row['bytes']) // 2**20} MiB")
        )
        assert f"| {float(row['seconds_total']):.4f} |" in line
        if row["mode"] == "stream":
            assert f"| {float(row['ratio_to_transfer']):.2f} |" in line
    assert run("--check", "--folder", tmp_path).returncode == 0
    (tmp_path / "stencil.md").write_text(page.replace("MiB |", "GiB |"))
    assert run("--check", "--folder", tmp_path).returncode == 1
