# SPDX-License-Identifier: Apache-2.0
"""nanet bench gateware reads what bench_gateware measured; tests/unit/gateware checks the NIC itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from nanet.bench import gateware
from nanet.cli import main

MEASURED: dict[str, Any] = {
    "last_byte_to_last_write_cycles": {"min": 15, "max": 31, "spread": 0},
    "line_rate_fraction": {"64": 1.0, "1518": 1.0},
    "cycles_per_wall_second": 400_000,
    "cases": [{"frame_bytes": 64, "packets_per_buffer": 1, "start_lane": 4, "packets": 900, "min": 30, "max": 30}],
}


def program_that(folder: Path, says: str, status: int = 0) -> Path:
    """A program in place of bench_gateware."""
    program = folder / "bench_gateware"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\necho no RTL >&2\nexit {status}\n")
    program.chmod(0o755)
    return program


def test_a_result_has_its_goals(tmp_path: Path) -> None:
    result = gateware.run(program_that(tmp_path, json.dumps(MEASURED)), 10_000)
    assert {key: result[key] for key in MEASURED} == MEASURED
    assert [goal["met"] for goal in result["goals"]] == [True] * 4
    assert ("64 B", "line_rate_fraction", 1.0, "") in gateware.csv_rows(result)


@pytest.mark.parametrize(
    ("key", "value", "which"),
    [
        ("last_byte_to_last_write_cycles", {"min": 15, "max": 65, "spread": 0}, 0),
        ("last_byte_to_last_write_cycles", {"min": 15, "max": 31, "spread": 1}, 1),
        ("line_rate_fraction", {"64": 0.999, "1518": 1.0}, 2),
        ("cycles_per_wall_second", 299_999, 3),
    ],
)
def test_a_goal_that_is_missed_is_said(key: str, value: Any, which: int) -> None:
    assert [goal["met"] for goal in gateware.goals_of(MEASURED | {key: value})] == [k != which for k in range(4)]


def test_without_a_result_it_says_why(tmp_path: Path) -> None:
    with pytest.raises(gateware.GatewareBenchError, match=r"is not there \(it is not built"):
        gateware.run(tmp_path / "nothing", 10_000)
    with pytest.raises(gateware.GatewareBenchError, match=r"gives no result \(no RTL\) exit status 3"):
        gateware.run(program_that(tmp_path, "", 3), 10_000)
    with pytest.raises(gateware.GatewareBenchError, match="gives no result"):
        gateware.run(program_that(tmp_path, "words"), 10_000)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program, file = program_that(tmp_path, json.dumps(MEASURED)), tmp_path / "out.json"
    arguments = ["nanet", "bench", "gateware", "--short", "--program", str(program), "--json", str(file)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert "64 B,  1 packets a buffer, lane 4: 30..30 cycles" in capsys.readouterr().out
    assert json.loads(file.read_text())["cycles_per_case"] == 10_000
