# SPDX-License-Identifier: Apache-2.0
"""nanet bench gateware reads what bench_gateware measured, and shows it; tests/unit/gateware checks the NIC itself."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from made_up_gateware import MEASURED, case, changed, condition
from make_json_page import differences
from nanet.bench import gateware, gateware_tables
from nanet.bench.gateware_keys import GatewareResult, Measured
from nanet.cli import main
from nanet.report import write_report
from nanet.result import files

ROOT = Path(__file__).resolve().parents[2]


def program_that(folder: Path, says: str, status: int = 0) -> Path:
    """A program in place of bench_gateware; it writes its arguments beside itself."""
    program = folder / "bench_gateware"
    program.write_text(f"#!/bin/sh\necho \"$@\" >{folder}/arguments\ncat <<'END'\n{says}\nEND\necho no RTL >&2\nexit {status}\n")
    program.chmod(0o755)
    return program


def test_a_result_has_its_rows(tmp_path: Path) -> None:
    result = gateware.run(program_that(tmp_path, json.dumps(MEASURED)), gateware.Options(10_000))
    assert {key: result[key] for key in MEASURED} == MEASURED
    rows = {(case, name): value for case, name, value, _ in gateware.csv_rows(result)}
    assert rows["RTL, 64 B", "line_rate_fraction"] == 1.0
    assert (rows["RTL, 64 B", "last_byte_to_last_write_min"], rows["RTL, 64 B", "last_byte_to_last_write_max"]) == (30, 31)
    assert (rows["RTL, 64 B", "lost"], rows["modelled host, 64 B", "lost"]) == (0, 1)
    assert rows["modelled host, 64 B", "last_byte_to_last_write_max"] == 97
    assert rows["router, all to one", "packets_apart"] == 1
    assert ("RTL, 64 B", "first_byte_to_completion_min") not in rows  # no packet ended a buffer


def test_the_papers_figures_stand_beside_those_of_the_same_size() -> None:
    write, completion, rate, router = gateware.papers_of(MEASURED)
    assert (write["papers"], write["rtl"], write["modelled_host"]) == ([7.3, 8.6], [16 * 0.0064] * 2, [80 * 0.0064] * 2)
    assert (completion["rtl"], completion["modelled_host"]) == (None, None)
    assert (rate["papers"], rate["rtl"]) == ([119.7, 119.7], [1472.0, 1472.0])
    assert (router["papers"], router["rtl"], router["modelled_host"]) == ([2.8, 2.8], [5.0, 5.0], None)


def test_without_a_result_it_says_why(tmp_path: Path) -> None:
    options = gateware.Options(10_000)
    with pytest.raises(gateware.GatewareBenchError, match=r"is missing \(it is not built"):
        gateware.run(tmp_path / "nothing", options)
    with pytest.raises(gateware.GatewareBenchError, match=r"gives no result \(no RTL\) exit status 3"):
        gateware.run(program_that(tmp_path, "", 3), options)
    with pytest.raises(gateware.GatewareBenchError, match="gives no result"):
        gateware.run(program_that(tmp_path, "words"), options)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    program, file, table = program_that(tmp_path, json.dumps(MEASURED)), tmp_path / "out.json", tmp_path / "out.csv"
    arguments = ["nanet", "bench", "gateware", "--short", "--program", program, "--json", file, "--csv", table, "--out", tmp_path]
    monkeypatch.setattr(sys, "argv", [*map(str, arguments), "--host-read", "7-9"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    rtl, with_host = said.split("Modelled host")
    assert re.search(r"^ +64 +18 +900 +30 to 31 +30 to 31 +192 to 198.4 +- +-$", rtl, flags=re.MULTILINE)
    assert re.search(r"^ +64 +18 +900 +95 to 97 ", with_host, flags=re.MULTILINE)
    assert (
        "long runs: 2000 packets of 64 B, spread of last byte to last write for one size and lane: 0 cycles (back to back, nothing sent"
        in rtl
    )
    assert "300 packets of 64 to 163 B (100 sizes)" in rtl
    result = json.loads(file.read_text())
    assert (result["cycles_per_case"], result["packets_per_long_run"]) == (10_000, 1000)
    assert "--host-read 7-9 --host-busy 32" in (tmp_path / "arguments").read_text()
    with table.open() as lines:
        assert {row["bench"] for row in csv.DictReader(lines)} == {"gateware"}
    assert "<svg" in (tmp_path / "bench-gateware.html").read_text()
    assert (
        "nothing sent, full buffers of 1 to 64 packets: last byte to last write 15 to 31 cycles, spread for one size and lane 0"
        in said
    )
    assert "compared whole with what was sent: 9000 packets, 0 wrong" in said
    assert re.search(
        r"^buffers of 1 packet +900 +0 packets wrong, 0 lost of 0, at most 33 cycles of 33, spread 2 of 2$",
        said,
        flags=re.MULTILINE,
    )
    assert "lost: 0 packets; of line rate, lowest of all sizes: 1.000000" in said
    assert "goal" not in said


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("wrong_packets", 3, "error: 3 of 9000 packets are not what was sent ("),
        ("conditions.0", condition("one", lost_packets=4, is_kept=False), "error: one: a bound is passed (0 packets wrong, 4 lost of 0,"),
        ("conditions.1", condition("it", starts=9, wrong_starts=2, is_kept=False), "error: it: a bound is passed (0 packets wrong, 2 of 9 starts"),
    ],
)  # fmt: skip
def test_what_is_not_as_it_must_be_ends_with_a_plain_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], path: str, value: Any, said: str
) -> None:
    program = program_that(tmp_path, json.dumps(changed(path, value)), 1)
    arguments = ["nanet", "bench", "gateware", "--short", "--program", program, "--out", tmp_path, "--line-gbps", 1]
    monkeypatch.setattr(sys, "argv", [*map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(said)
    assert "--line-gbps 1 " in (tmp_path / "arguments").read_text()
    assert (tmp_path / "bench-gateware.html").exists()


def page_of(measured: dict[str, Any], tmp_path: Path) -> str:
    result = gateware.run(program_that(tmp_path, json.dumps(measured)), gateware.Options(10_000))
    write_report(result, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(svg)
        assert "nan" not in re.sub(r'aria-label="[^"]*"', "", svg)
    return text


def test_the_report_keeps_rtl_and_modelled_host_apart(tmp_path: Path) -> None:
    text = page_of(MEASURED, tmp_path)
    sections = {part.partition("</h2>")[0]: part for part in re.split("<h2>", text)[1:]}
    assert '<td class="n">30 to 31</td>' in sections["Cycles by frame size"]
    assert "95 to 97" not in sections["Cycles by frame size"]
    assert "95 to 97" in sections["Cycles and throughput with the modelled host"]
    assert '<td class="n">64</td><td class="n">31 / 30</td>' in sections["By packets per buffer"]
    assert '<td class="n">1518</td><td class="n">16 / -</td>' in sections["By packets per buffer"]
    assert sections["Distributions"].count('<svg class="narrow"') == 1
    assert sections["Distributions with the modelled host"].count('<svg class="narrow"') == 2
    assert "lane 0: 1\u2009000 packets" in sections["Distributions"]
    assert "All latencies are from CLOCK_MONOTONIC" not in text


def test_the_report_of_a_nic_that_loses(tmp_path: Path) -> None:
    measured = changed("lost_packets", 7) | {"cases": [], "long_runs": [], "mixed": []}
    text = page_of(measured, tmp_path)
    assert "goal" not in text
    assert re.search(r"packets lost.{0,80}7", text, flags=re.DOTALL)
    assert "not timed, because packets were lost" in text
    assert "No packet was timed" in text


def test_between_says_one_value_once() -> None:
    assert [gateware_tables.between(bounds, 3) for bounds in (None, (5, 5), (0.096, 0.1024))] == ["-", "5", "0.096 to 0.102"]


def make_page(*arguments: object) -> subprocess.CompletedProcess[str]:
    script = ROOT / "scripts" / "make_performance_gateware.py"
    return subprocess.run([sys.executable, str(script), *map(str, arguments)], capture_output=True, text=True, check=False)


def test_the_page_says_what_the_csv_says(tmp_path: Path) -> None:
    nothing = make_page(tmp_path)
    assert (nothing.returncode, nothing.stderr[:21]) == (1, "error: no figures in ")
    file, page = tmp_path / "gateware-performance.csv", tmp_path / "gateware-performance.md"
    slow = gateware.run(program_that(tmp_path, json.dumps(changed("cases.0", case(64, 0, [[99, 450]])))), gateware.Options())
    result = gateware.run(program_that(tmp_path, json.dumps(MEASURED)), gateware.Options())
    for one in (slow, result):  # the newest counts
        files.append_csv(file, "gateware", gateware.csv_rows(one))
    assert make_page(tmp_path, "--check").returncode == 1
    assert make_page(tmp_path).returncode == 0
    assert make_page(tmp_path, "--check").returncode == 0
    text = page.read_text()
    rtl, with_host = text.split("## With a modelled host")
    assert "| 64 | 18 | 30 to 31 | 30 to 31 | - | - | 192.0 to 198.4 |" in rtl
    assert "| 64 | 18 | 95 to 97 | 95 to 97 | - | - | 608.0 to 620.8 |" in with_host
    assert "| 64 | 1.000 | 18.0 | 1 | 0.998889 |" in with_host
    assert "| all to one | 5.000 | 1.0000 | 1 |" in with_host
    assert "ours: last byte to last write | 7.3 to 8.6 | 0.102 | 0.512 |" in with_host
    assert "* 2000 packets of 1 sizes" in rtl
    assert "| buffers of 1 packet | 900 | 0 | 0 (0) | 33 (33) | 2 (2) | - |" in rtl
    assert "| a start | 900 | 0; 0 of 240 starts | 0 (0) | - | - | - |" in rtl
    assert "| sending alone | 0 | 0 | 0 (0) | - | - | 0.9900 |" in rtl
    assert "700000 cycles/s" in rtl
    page.write_text(text.replace("0.102", "0.103"))
    assert make_page(tmp_path, "--check").returncode == 1


def test_the_published_page_is_current() -> None:
    done = make_page("--check")
    assert done.returncode == 0, done.stderr


def test_what_these_tests_make_up_is_what_the_program_says() -> None:
    assert list(differences(MEASURED, Measured)) == []


def test_the_program_measures_what_is_documented(tmp_path: Path) -> None:
    program = ROOT / gateware.PROGRAM
    if not program.is_file():
        warnings.warn(f"NOT RUN: the program of nanet bench gateware, {gateware.PROGRAM} is not built", stacklevel=2)
        return
    result = gateware.run(program, gateware.Options(2000, 300, ("--host-write", "5", "--host-busy", "0")))
    assert list(differences(result, GatewareResult)) == []
    assert (result["lost_packets"], result["last_byte_to_last_write_cycles"]["spread"]) == (0, 0)
    assert set(result["line_rate_fraction"].values()) == {1}
    assert len(result["mixed"]) > 250
    assert result["wrong_packets"] == 0
    assert gateware.problems_of(result) == []
    ready, host = (gateware.bounds_of([c for c in cases if c["frame_bytes"] == 64], gateware.FIGURES[1])
                   for cases in (result["cases"], result["modelled_host"]["cases"]))  # fmt: skip
    assert ready is not None
    assert host == (ready[0] + 5, ready[1] + 5)
    write_report(result, tmp_path / "page.html")


@pytest.mark.parametrize("damage", ["payload", "bit", "stale", "length", "offset", "source", "stamp"])
def test_the_program_sees_what_is_harmed_on_the_way_to_memory(damage: str) -> None:
    program = ROOT / gateware.PROGRAM
    if not program.is_file():
        warnings.warn(f"NOT RUN: damage that {gateware.PROGRAM} must see, which is not built", stacklevel=2)
        return
    command = [str(program), "--cycles", "3000", "--damage", damage]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    words = r"error: (\d+) of (\d+) packets are not what was sent \(the first: packet \d+ of those handed over, in buffer \d+: "
    found = re.match(words, done.stderr)
    assert found is not None, done.stderr
    assert 0 < int(found[1]) < int(found[2])


@pytest.mark.parametrize(
    "wrong",
    [
        ["--cycles", "0"],
        ["--packets"],
        ["--host-read", "5"],
        ["--host-busy", "x"],
        ["--quick", "1"],
        ["--line-gbps", "2"],
        ["--damage", "none of these"],
    ],
)
def test_the_program_refuses_other_arguments(wrong: list[str]) -> None:
    program = ROOT / gateware.PROGRAM
    if not program.is_file():
        warnings.warn(f"NOT RUN: arguments of {gateware.PROGRAM}, which is not built", stacklevel=2)
        return
    done = subprocess.run([str(program), *wrong], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: bench_gateware")
