# SPDX-License-Identifier: Apache-2.0
"""nanet bench km3-link reads what bench_km3_link measured, and judges it; tests/unit/km3_link checks the link itself."""

from __future__ import annotations

import copy
import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from make_json_page import differences
from nanet.bench import km3_link
from nanet.bench.km3_link_keys import Km3LinkResult
from nanet.cli import main

FIXED: dict[str, Any] = {
    "resets": 4320, "not_up": 0, "latency_values": 1, "told_by_monitors": 0, "down": [1461.5], "recovered": [1.5],
    "floor_serialiser": [10.0], "round_trip": [3072.0], "recovered_on_shore": [12.0],
}  # fmt: skip
LINE = {
    "line_mbps": 800, "frame_words": 4000, "frames": 100, "payload_fraction": 0.994, "latency_values": 1, "wrong": 0,
    "express_codes": 316,
}  # fmt: skip
CONTROLS = [
    {"name": "slide_off"} | FIXED | {"latency_values": 17, "down": [1461.5, 1462.5]},
    {"name": "k28_7_accepted"} | FIXED | {"not_up": 216},
]
FIBRES = {"fibre_down": 1231.5, "fibre_up": 1400.5}
MEASURED = (
    FIXED | FIBRES | {"seed": 1, "payload_fraction": 0.994, "controls": CONTROLS, "lines": [LINE, LINE | {"line_mbps": 2500}]}
)


def program_that(folder: Path, says: str, status: int = 0) -> Path:
    """A program in place of bench_km3_link; it writes its arguments beside itself."""
    program = folder / "bench_km3_link"
    program.write_text(f"#!/bin/sh\necho \"$@\" >{folder}/arguments\ncat <<'END'\n{says}\nEND\necho no RTL >&2\nexit {status}\n")
    program.chmod(0o755)
    return program


def test_the_result_is_what_the_page_says(tmp_path: Path) -> None:
    result = km3_link.run(program_that(tmp_path, json.dumps(MEASURED)), km3_link.Options())
    assert list(differences(result, Km3LinkResult)) == []
    assert {key: value for key, value in result.items() if key in MEASURED} == MEASURED
    assert km3_link.problems_of(result) == []


def test_without_a_result_it_says_why(tmp_path: Path) -> None:
    options = km3_link.Options()
    with pytest.raises(km3_link.Km3LinkError, match=r"is missing \(it is not built"):
        km3_link.run(tmp_path / "nothing", options)
    with pytest.raises(km3_link.Km3LinkError, match=r"gives no result \(no RTL\) exit status 3"):
        km3_link.run(program_that(tmp_path, "", 3), options)
    with pytest.raises(km3_link.Km3LinkError, match="gives no result"):
        km3_link.run(program_that(tmp_path, "words"), options)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program, file, table = program_that(tmp_path, json.dumps(MEASURED)), tmp_path / "out.json", tmp_path / "out.csv"
    arguments = ["nanet", "bench", "km3-link", "--short", "--program", program, "--json", file, "--csv", table, "--seed", 7]
    monkeypatch.setattr(sys, "argv", [*map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "right receiver: 4320 resets, 0 without a link, latency values 1, told by the RTL's monitors 0 times" in said
    assert "down 1461.5 bits, round trip 3072.0 bits, with fibres of 1231.5 and 1400.5" in said
    assert "800 Mb/s: payload 0.9940 of what the line carries, latency values 1 idle and busy, 316 express codes, 0 wrong" in said
    assert (tmp_path / "arguments").read_text().split() == ["--resets", "200", "--frames", "20", "--seed", "7", "--json"]
    result = json.loads(file.read_text())
    assert (result["latency_values"], result["resets"], result["payload_fraction"]) == (1, 4320, 0.994)
    with table.open() as lines:
        rows = {(row["case"], row["name"]): float(row["value"]) for row in csv.DictReader(lines)}
    assert rows["slide_off", "latency_values"] == 17
    assert rows["right", "round_trip"] == 3072
    assert rows["2500 Mb/s", "payload_fraction"] == 0.994


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (("latency_values",), 2, "2 values of a latency in 4320 resets, 0 without a link"),
        (("not_up",), 3, "1 values of a latency in 4320 resets, 3 without a link"),
        (("controls", 0, "latency_values"), 1, "a wrong receiver (slide_off) is not found"),
        (("lines", 1, "wrong"), 5, "2500 Mb/s: 1 values of a latency under traffic, 5 wrong"),
        (("lines", 0, "payload_fraction"), 0.98, "800 Mb/s: payload is 0.9800 of what the line carries"),
    ],
)
def test_what_is_not_as_it_must_be_ends_with_a_plain_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: tuple[str | int, ...],
    value: Any,
    said: str,
) -> None:
    changed: Any = copy.deepcopy(MEASURED)
    inner = changed
    for key in where[:-1]:
        inner = inner[key]
    inner[where[-1]] = value
    monkeypatch.setattr(
        sys, "argv", ["nanet", "bench", "km3-link", "--program", str(program_that(tmp_path, json.dumps(changed), 1))]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {said}")
