# SPDX-License-Identifier: Apache-2.0
"""nanet torus and nanet bench torus read what bench_torus measured, and show it; tests/unit/torus checks the simulation itself."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_up_torus import LINK, PUT, bench_torus_result, fault, point, torus_result
from make_json_page import differences
from nanet.bench import torus as study
from nanet.bench.torus_keys import BenchTorusResult, Fault, FaultsResult, Point, TorusResult
from nanet.bench.torus_reference import REFERENCES, references_of
from nanet.cli import main
from nanet.report import write_report

ROOT = Path(__file__).resolve().parents[2]


def program_that(folder: Path, *says: str, status: int = 0, error: str = "no RTL") -> Path:
    """A program in place of bench_torus: it says one after the other, the last again and again, and keeps its arguments."""
    program = folder / "bench_torus"
    for number, text in enumerate(says):
        (folder / f"says.{number}").write_text(text)
    program.write_text(
        f'#!/bin/sh\ncd {folder}\nn=$(cat arguments 2>/dev/null | wc -l)\necho "$@" >>arguments\n'
        f"[ $n -lt {len(says)} ] || n={len(says) - 1}\ncat says.$n\necho '{error}' >&2\nexit {status}\n"
    )
    program.chmod(0o755)
    return program


def curve(**changes: Any) -> str:
    return json.dumps({"curves": [point(**changes)]})


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["nanet", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(str(ended.value.code))


def test_patterns_that_a_shape_can_have() -> None:
    assert study.possible(study.PATTERNS, "4x4x4") == study.PATTERNS
    assert "transpose" not in study.possible(study.PATTERNS, "8x8x8")
    assert "rotate" in study.possible(study.PATTERNS, "8x8x8")
    assert study.possible(("transpose", "rotate", "uniform"), "5x3x2") == ("uniform",)
    assert study.possible(("transpose", "rotate"), "4") == ("transpose",)


def test_curves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program, file, rows = (
        program_that(tmp_path, curve(offered=0.2), curve(offered=1.0)),
        tmp_path / "out.json",
        tmp_path / "out.csv",
    )
    asked = ["torus", "curves", "--load", 0.2, "--load", 1, "--threads", 3, "--program", program, "--out", tmp_path]
    assert command(monkeypatch, *asked, "--json", file, "--csv", rows) == 0
    result = json.loads(file.read_text())
    assert list(differences(result, TorusResult)) == []
    assert [one["offered"] for one in result["curves"]] == [0.2, 1.0]
    assert result["cycles_per_wall_second"] == 5e5
    first, second = (tmp_path / "arguments").read_text().splitlines()
    assert first.startswith("--shape 4x4x4 --pattern uniform --loads 0.2 --payload-bytes 256 --wire-cycles 16 --threads 3 ")
    assert "--loads 1 " in second
    said = capsys.readouterr().out
    assert "uniform    4x4x4 offered 0.20: accepted 0.200, worst node 0.180, 74.1 cycles, p99 200" in said
    assert re.search(r"offered 1\.00: accepted 0\.830, .* saturated$", said, flags=re.MULTILINE)
    with rows.open() as lines:
        names = [(row["case"], row["name"]) for row in csv.DictReader(lines)]
    assert ("uniform 4x4x4, 256 B, offered 0.2", "latency_mean") in names
    assert ("uniform 4x4x4, 256 B, offered 1", "latency_mean") not in names  # beyond saturation it is only how long was measured
    assert "<svg" in (tmp_path / "torus-curves.html").read_text()


def test_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = program_that(tmp_path, curve(shape="3x1x1"))
    assert command(monkeypatch, "torus", "patterns", "--shape", "3x1x1", "--program", program, "--out", tmp_path) == 0
    asked = re.findall("--pattern ([a-z_]+)", (tmp_path / "arguments").read_text())
    assert asked == ["uniform", "neighbour", "tornado", "complement", "hot_spot"]


def test_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(study, "LOADS", (1.0,))
    program, file = program_that(tmp_path, json.dumps(LINK), json.dumps(PUT), curve(offered=1.0)), tmp_path / "out.json"
    assert command(monkeypatch, "bench", "torus", "--program", program, "--out", tmp_path, "--json", file) == 0
    result = json.loads(file.read_text())
    assert list(differences(result, BenchTorusResult)) == []
    assert result["link"] == {"efficiency_4096": 0.977, "efficiency_256": 0.8, "wire_cycles": 150}
    assert result["hop_cycles"] == {"min": 14, "max": 15, "spread": 1}
    assert result["put"]["rtl_ns"] == (106 - 16 - 20) * 1e3 / 175
    assert result["put"]["spread"] == 16
    assert result["saturation"] == {"uniform_4x4x4": 0.83}
    assert result["cycles_per_wall_second"] == 1e6 / 8 / 2
    assert len(result["curves"]) == len(study.PATTERNS) - 1 + len(study.HOT_LOADS)
    assert re.findall("hot_spot --loads ([0-9.]+)", (tmp_path / "arguments").read_text()) == ["0.02", "0.05", "0.08", "0.1", "0.15"]
    assert "hop: 14 to 15 cycles" in capsys.readouterr().out


def test_what_was_not_run_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program, file = program_that(tmp_path, json.dumps(LINK), json.dumps(PUT), curve(shape="2x2x1")), tmp_path / "out.json"
    assert command(monkeypatch, "bench", "torus", "--short", "--program", program, "--out", tmp_path, "--json", file) == 0
    assert json.loads(file.read_text())["saturation"] == {"uniform_4x4x4": None}
    assert "uniform 4x4x4 at full load: not run" in capsys.readouterr().out


def test_what_is_not_as_it_must_be_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = program_that(tmp_path, curve(problems=["3 packets are not what was sent"]), status=1)
    assert command(monkeypatch, "torus", "curves", "--load", 0.5, "--program", program, "--out", tmp_path) == 1
    assert capsys.readouterr().err == "error: uniform 4x4x4 at 0.5: 3 packets are not what was sent\n"
    assert 'class="bad"' in (tmp_path / "torus-curves.html").read_text()


def test_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    said = {"faults": [fault(), fault(3, problems=["a dead cable was not noticed"])]}
    program, file = program_that(tmp_path, json.dumps(said), status=1), tmp_path / "out.json"
    assert command(monkeypatch, "torus", "faults", "--rounds", 2, "--program", program, "--out", tmp_path, "--json", file) == 1
    assert list(differences(json.loads(file.read_text()), FaultsResult)) == []
    assert "--shape 3x3x3 --pattern uniform --loads 0.5 " in (tmp_path / "arguments").read_text()
    assert (tmp_path / "arguments").read_text().endswith(" --faults 2\n")
    out, error = capsys.readouterr()
    line = "node  5 port 0: known after 368 cycles; 863 packets: 833 good, 1 flagged, 0 wrong, drop_down 19, in_wires 10; 20 over"
    assert line in out
    assert error == "error: node 5, port 3: a dead cable was not noticed\n"
    assert "drop_down 19, in_wires 10</td>" in (tmp_path / "torus-faults.html").read_text()


def test_without_a_result_it_says_why(tmp_path: Path) -> None:
    one = study.Study(loads=(0.5,), program=tmp_path / "nothing")
    with pytest.raises(study.TorusError, match=r"is missing \(it is not built"):
        study.points(one, print)
    with pytest.raises(study.TorusError, match=r"gives no result \(no RTL\) exit status 3"):
        study.points(replace(one, program=program_that(tmp_path, "", status=3)), print)
    error = "error: transpose is not for 8x8x8 (why) take another"
    with pytest.raises(study.TorusError, match=r"^transpose is not for 8x8x8 \(why\) take another$"):
        study.points(replace(one, program=program_that(tmp_path, "", status=2, error=error)), print)
    less = {key: value for key, value in point().items() if key != "wall_s"}
    with pytest.raises(study.TorusError, match=r"gives no result \(keys \['wall_s'\]\) build it again"):
        study.points(replace(one, program=program_that(tmp_path, json.dumps({"curves": [less]}))), print)


@pytest.mark.parametrize("wrong", [["--load", "1.5"], ["--pattern", "spiral"], ["--payload-bytes", "4097"], ["--wire-cycles", "1"]])
def test_wrong_options_are_a_line(wrong: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(monkeypatch, "torus", "curves", *wrong) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("nanet: ")


def test_wires_on_which_a_neighbour_would_look_dead_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "torus", "faults", "--wire-cycles", "361") == 2
    assert "it has to be less than or equal to 360" in capsys.readouterr().err


def test_the_report_has_curves_a_picture_and_the_reference(tmp_path: Path) -> None:
    for result in (torus_result(), bench_torus_result()):
        write_report(result, tmp_path / "page.html")  # type: ignore[arg-type]
        text = (tmp_path / "page.html").read_text()
        svgs = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
        for svg in svgs:
            ElementTree.fromstring(svg)
            assert "nan" not in re.sub(r'aria-label="[^"]*"', "", svg)
        assert "uniform, BookSim" in text
        assert "<h2>Latency against load, 4x4x4</h2>" in text
        assert "<h2>Latency against load, 5x1x1</h2>" not in text  # of one load
        planes = [svg for svg in svgs if "Links of a torus of 4x4x4 under uniform" in svg]
        assert [picture.count("<circle") for picture in planes] == [16] * 4
        assert [picture.count("<path") for picture in planes] == [
            2 * 4 * (3 + 2) + 2 * 16
        ] * 4  # links and stubs of x and y, stubs of z
        assert "0.70 words a cycle of 2" in planes[0]
        assert '<td>uniform</td><td>4x4x4</td><td class="n">0.830</td><td class="n">0.92</td><td class="n">0.90</td>' in text


def test_references_are_of_the_same_pattern_shape_and_packets() -> None:
    points: list[Any] = [point(), point("tornado", shape="4x4x1"), point("neighbour", payload_bytes=64)]
    assert [(one["pattern"], one["shape"]) for one in references_of(points)] == [("uniform", "4x4x4")]
    assert {one["pattern"] for one in REFERENCES} <= set(study.PATTERNS)


def test_what_these_tests_make_up_is_what_the_program_says() -> None:
    assert list(differences(point(), Point)) == []
    assert list(differences(fault(), Fault)) == []


def built() -> Path | None:
    program = ROOT / study.PROGRAM
    if program.is_file():
        return program
    warnings.warn(f"NOT RUN: the program of nanet torus, {study.PROGRAM} is not built", stacklevel=2)
    return None


def test_the_program_measures_what_is_documented(tmp_path: Path) -> None:
    program = built()
    if program is None:
        return
    small = study.Study("2x2x1", ("uniform",), (0.3, 1.0), wire_cycles=8, window=600, program=program)
    result = study.run("torus curves", small, print)
    assert list(differences(result, TorusResult)) == []
    assert result["problems"] == []
    low, high = result["curves"]
    assert (low["is_saturated"], high["is_saturated"]) == (False, True)
    assert all(one["books"]["is_balanced"] and one["books"]["good"] == one["books"]["injected"] for one in (low, high))
    write_report(result, tmp_path / "page.html")
    cut = study.faults(replace(small, loads=(0.5,)), 1, print)
    assert list(differences(cut, FaultsResult)) == []
    assert (cut["problems"], len(cut["faults"])) == ([], 4)


def check_taken(folder: Path, said: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (folder / "ways.json").write_text(json.dumps(said))
    script = ROOT / "gateware" / "scripts" / "torus_dependencies.py"
    command = [sys.executable, str(script), "--taken", str(folder / "ways.json")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_packets_wait_for_what_the_dependency_graph_has(tmp_path: Path) -> None:
    program = built()
    if program is None:
        return
    command = [str(program), "--shape", "4x2x1", "--loads", "1", "--payload-bytes", "32", "--window", "3000", "--ways", "1"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout)
    done = check_taken(tmp_path, said)
    assert (done.returncode, done.stdout) == (0, "torus 4x2x1: 26 of 26 dependencies taken, 0 that must not be\n")
    assert check_taken(tmp_path, said | {"ways": said["ways"][1:]}).returncode == 1
    kept = [0, 1, 5]  # from x+1 on channel 1 to y+1, and the channel is kept
    assert "1 that must not be" in check_taken(tmp_path, said | {"ways": [*said["ways"], kept]}).stdout


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--loads", "1.1"], "usage: bench_torus"),
        (["--pattern", "spiral"], "usage: bench_torus"),
        (["--seed"], "usage: bench_torus"),
        (["--shape", "65"], "error: 65x1x1 is no torus (at most 64x32x32 nodes"),
        (["--shape", "3x3", "--pattern", "transpose"], "error: transpose is not for 3x3x1 ("),
        (["--wire-cycles", "1"], "error: a wire of 1 cycles ("),
    ],
)
def test_the_program_refuses_what_cannot_be(wrong: list[str], said: str) -> None:
    program = built()
    if program is None:
        return
    done = subprocess.run([str(program), *wrong], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
