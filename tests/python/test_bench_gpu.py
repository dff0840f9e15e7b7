# SPDX-License-Identifier: Apache-2.0
"""`nanet bench gpu`: reading what the programs wrote, ratios, report; and what it says where it cannot measure."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from made_up_gpu import FACTS, finders_csv, round_trip_csv, trace_csv, write_files
from make_json_page import differences
from nanet import cli
from nanet.bench import gpu
from nanet.bench.gpu_keys import GpuResult
from nanet.cli.bench_gpu import Part
from nanet.machine import gpu_driver
from nanet.report import write_report


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    made = write_files(tmp_path)
    assert tuple(made) == gpu.PARTS == tuple(part.value for part in Part)
    return made


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["nanet", "bench", "gpu", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def result(files: dict[str, Path]) -> dict[str, Any]:
    return gpu.result_of([gpu.read(path) for path in files.values()])


def test_ratios_are_to_the_best_that_launches(files: dict[str, Path]) -> None:
    found = result(files)
    assert [ratio["events"] for ratio in found["ratios"]] == [16, 1024, 16384]
    for ratio in found["ratios"]:
        assert ratio["p50"] == ratio["p999"] == 0.5
        assert ratio["p50_best_way"] == "launch_mapped"  # neither the flag nor payloads in place, which are faster
        assert ratio["same_work_p50"] == 0.5
    assert (found["gpu"], found["finder"], found["wrong"]) == ("NVIDIA Made Up", "math", 0)


def test_classical_ways_do_less_work(files: dict[str, Path]) -> None:
    files["round_trip"].write_text(round_trip_csv().replace("launch_mapped", "graph_mapped_sync"))
    ratio = result(files)["ratios"][0]
    assert (ratio["p50"], ratio["p50_best_way"]) == (0.5, "graph_mapped_sync")
    assert (ratio["same_work_p50"], ratio["same_work_best_way"]) == (0.3333, "graph_copied")


def test_the_later_of_two_files_counts(files: dict[str, Path], tmp_path: Path) -> None:
    newer = tmp_path / "newer.csv"
    newer.write_text(round_trip_csv().replace("NVIDIA Made Up", "NVIDIA Newer").replace("persistent,16,", "gone,16,"))
    found = gpu.result_of([gpu.read(files["round_trip"]), gpu.read(newer)])
    assert found["gpu"] == "NVIDIA Newer"
    assert [ratio["events"] for ratio in found["ratios"]] == [1024, 16384]
    assert found["loop"] == []


def test_files_that_say_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    with pytest.raises(gpu.GpuBenchError, match=r"cannot be read \(No such file"):
        gpu.read(bad)
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(gpu.GpuBenchError, match="is not from a benchmark"):
        gpu.read(bad)
    bad.write_text(FACTS.format(part="loop") + "runtime,path\n")
    with pytest.raises(gpu.GpuBenchError, match="has no figures"):
        gpu.read(bad)
    bad.write_text(round_trip_csv().replace(",5.5,", ",x,"))
    with pytest.raises(gpu.GpuBenchError, match="is damaged"):
        gpu.read(bad)
    bad.write_text(round_trip_csv().rstrip("\n").rsplit(",", 4)[0])  # cut off
    with pytest.raises(gpu.GpuBenchError, match="is damaged"):
        gpu.read(bad)
    for text in (
        finders_csv().replace("math,single_ring,8e+09", "math,single_ring,"),  # only a copy has no events
        finders_csv().replace(",4e+12,", ",,"),
        trace_csv().replace("all of CUDA", "CUDA, all functions"),  # a name with a comma
    ):
        bad.write_text(text)
        with pytest.raises(gpu.GpuBenchError, match="is damaged"):
            gpu.read(bad)


@pytest.mark.parametrize("parts", [gpu.PARTS, *((part,) for part in gpu.PARTS)])
def test_report(files: dict[str, Path], tmp_path: Path, parts: tuple[str, ...]) -> None:
    write_report(gpu.result_of([gpu.read(files[part]) for part in parts]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(svg)
        assert "nan" not in re.sub(r'aria-label="[^"]*"', "", svg)
    charts = {"round_trip": 2, "driver_path": 0, "loop": 2, "finders": 1, "merge": 2, "trace": 0}
    assert text.count('<svg class="wide"') == text.count('<svg class="narrow"') == sum(charts[part] for part in parts)
    assert "NVIDIA Made Up" in text
    assert text.count("It was not measured.") == len(gpu.PARTS) - len(parts)
    if "finders" in parts:
        assert re.search(r"<td[^>]*>20</td><td[^>]*>45.0</td><td[^>]*>3\u2009600</td><td[^>]*>0.900</td>", text.replace('"n"', ""))
    if "merge" in parts:
        assert re.search(r"<td>persistent</td>(<td[^>]*>[^<]*</td>){7}<td[^>]*>24.38</td>", text)  # Mevent/s of 1024
    if "trace" in parts:
        assert re.search(r"<td>launch</td><td>all of CUDA</td><td[^>]*>4\u2009000</td><td[^>]*>4</td>", text)
    if "round_trip" in parts:
        assert "8.5 \u00b5s for 1\u2009024 events there and back, 0.50 of the best launch" in text
        assert "bare flag 2.5" in text


def test_report_marks_what_is_wrong(files: dict[str, Path], tmp_path: Path) -> None:
    files["finders"].write_text(finders_csv(differ=2))
    write_report(result(files), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "18 answers were wrong" in text
    assert text.count('<tr class="loss"><td>math</td>') == 3


def test_command_with_files(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [argument for path in files.values() for argument in ("--from", path)]
    assert (
        run_main(monkeypatch, *arguments, "--out", tmp_path / "out", "--csv", tmp_path / "all.csv", "--json", tmp_path / "gpu.json")
        == 0
    )
    assert "goal" not in capsys.readouterr().out
    assert (tmp_path / "out" / "bench-gpu.html").exists()
    assert list(differences(json.loads((tmp_path / "gpu.json").read_text()), GpuResult)) == []
    figures = (tmp_path / "all.csv").read_text()
    assert "round_trip persistent 1024,p99_9,17,us" in figures
    assert "driver_path dummy driver in_flight 1,jitter,26.875,us" in figures
    assert "finders almagest two_rings_apart,events_per_s,3e+08,1/s" in figures
    assert "finders copy of as many bytes,bytes_per_s,4e+12,B/s" in figures
    assert "merge persistent 1024,events_per_s,2.4381e+07,1/s" in figures
    assert "trace launch all of CUDA,calls,4000,1" in figures
    files["round_trip"].write_text(round_trip_csv(wrong=2))
    assert run_main(monkeypatch, "--from", files["round_trip"], "--out", tmp_path / "out") == 1
    assert "36 answers were wrong" in (tmp_path / "out" / "bench-gpu.html").read_text()


def test_command_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(gpu_driver, "ask_driver", lambda: gpu_driver.Driver(problem="libcuda.so.1 is missing"))
    assert run_main(monkeypatch, "--out", tmp_path) == 2
    assert capsys.readouterr().err.startswith("nanet: no GPU (libcuda.so.1 is missing) run this on a machine with one")


def make_program(folder: Path, part: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / f"bench_gpu_{part}"
    program.write_text(f"#!/bin/sh\nfor file; do :; done\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_command_runs_the_programs(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    card = gpu_driver.Gpu(0, "NVIDIA Made Up", 1.0, "0", dict.fromkeys(gpu_driver.ATTRIBUTES, 0))
    monkeypatch.setattr(gpu_driver, "ask_driver", lambda: gpu_driver.Driver(13000, "", (card,)))
    folder, out = tmp_path / "programs", tmp_path / "out"
    assert run_main(monkeypatch, "--programs", folder, "--out", out) == 2
    assert "bench_gpu_round_trip is not in" in capsys.readouterr().err
    for part, path in files.items():
        make_program(folder, part, f'echo "figures of {part} $1"; cp {path} "$file"')
    assert run_main(monkeypatch, "--programs", folder, "--out", out, "--short") == 0
    said = capsys.readouterr().out
    for part in gpu.PARTS:
        assert f"figures of {part} --short" in said
        assert (out / f"gpu-{part}.csv").read_text() == files[part].read_text()
    make_program(folder, "trace", 'echo "error: no trace (no libcupti.so) install CUPTI" >&2; exit 2')
    assert run_main(monkeypatch, "--programs", folder, "--out", out, "--short") == 0
    assert "trace: not measured (bench_gpu_trace failed (no trace (no libcupti.so) install CUPTI)" in capsys.readouterr().out
    assert run_main(monkeypatch, "--programs", folder, "--out", out, "--part", "trace") == 2
    capsys.readouterr()
    (folder / "bench_gpu_trace").unlink()  # was not built: no CUPTI
    assert run_main(monkeypatch, "--programs", folder, "--out", out, "--short") == 0
    assert "trace: not measured (bench_gpu_trace is not built: cupti.h was not found)" in capsys.readouterr().out
    assert run_main(monkeypatch, "--programs", folder, "--out", out, "--part", "trace") == 2
    assert "bench_gpu_trace is not in" in capsys.readouterr().err
    make_program(folder, "loop", 'echo "error: waited for the answers (4 s went by) see nvidia-smi" >&2; exit 3')
    assert run_main(monkeypatch, "--programs", folder, "--out", out, "--part", "loop") == 2
    assert "bench_gpu_loop failed (waited for the answers (4 s went by) see nvidia-smi) exit status 3" in capsys.readouterr().err


def make_page(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).resolve().parents[2] / "scripts" / "make_performance_gpu.py"
    return subprocess.run([sys.executable, str(script), *arguments, str(folder)], capture_output=True, text=True, check=False)


def test_page_of_performance(files: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    empty = make_page(folder)
    assert (empty.returncode, empty.stderr.startswith("error: no figures in ")) == (1, True)
    files["round_trip"].rename(folder / "gpu-h200-round_trip.csv")
    assert make_page(folder).returncode == 0
    assert (folder / "performance-gpu.md").read_text().count("Not measured.") == 5
    for part in gpu.PARTS[1:]:
        files[part].rename(folder / f"gpu-h200-{part}.csv")
    assert make_page(folder, "--check").returncode == 1
    assert make_page(folder).returncode == 0
    assert make_page(folder, "--check").returncode == 0
    page = (folder / "performance-gpu.md").read_text()
    for line in (
        "Machine: NVIDIA Made Up, CUDA 13.0 of the driver, Some CPU.",
        "--from docs/gpu-h200-merge.csv --from docs/gpu-h200-trace.csv`.",
        "| round trip of 1024 events, p50 | 8.5 us |  |",
        "| almagest, case two_rings_apart | 300 Mevent/s | 600 single_ring, 150 three_rings_apart |",
        "| persistent, steady state: calls of CUDA | 0 | in 1000 buffers |",
        "| persistent | 5.50 | 8.50 | 30.00 |",
        "| 1024 | 0.50 | launch_mapped | 0.50 | launch_mapped | 0.50 | 120 |",
        "| dummy, 200 us | driver | 1 | 215.0 | 26.88 | 215.0 | 258.0 | 430.0 | 645.0 | 1935 | 4800 |",
        "| persistent | serialised | 10 | 8 (8.1) | 28.00 | 56.00 | 84.00 | 112.0 | 252.0 | 70.00 | 0 |",
        "| finder | single_ring | a core | two_rings_apart | a core | three_rings_apart | a core |",
        "| almagest | 600.0 | 3.00 | 300.0 | 1.50 | 150.0 | 0.750 |",
        "| almagest | 4.00 | 6.00 | 8.00 | 12.00 | 16.00 | 24.00 |",
        "read and written, in the same run: 4,000 GB/s.",
        "| 20 | 45.0 | 3,600 | 90.0 % |",
        "| p50 [us] | 256 events | 1024 events | 4096 events |",
        "| cpu | 150.0 | 210.0 | 370.0 |",
        "| persistent, above a buffer of as many whole events as here parts | 21.50 | - | 44.00 |",
        "| persistent | 8.53 | 24.4 | 55.4 |",
        "| persistent over the core | 5.00 | 5.00 | 5.00 |",
        "| graph | all of CUDA | 8000 | 8 | 1000 |",
    ):
        assert line in page
    assert "Another GPU" not in page
    for part in ("round_trip", "loop"):
        shutil.copy(folder / f"gpu-h200-{part}.csv", folder / f"gpu-h100-{part}.csv")
    assert make_page(folder).returncode == 0
    page = (folder / "performance-gpu.md").read_text()
    assert "## Another GPU: NVIDIA Made Up" in page
    assert "| persistent, 1024 events | 8.50 (8.50) | " in page
    assert "| whole loop, persistent, 10.0 Mevent/s, 8 packets a buffer, 0 lost | 28.00 (28.00) | 84.00 (84.00) |" in page
