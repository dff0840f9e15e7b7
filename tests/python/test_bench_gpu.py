# SPDX-License-Identifier: Apache-2.0
"""`nanet bench gpu`: reading what the programs wrote, ratios, goals, report; and what it says where it cannot measure."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from nanet import cli, gpu_driver
from nanet.bench import gpu
from nanet.report import write_report

FACTS = "# program: bench_gpu_{part}\n# gpu: NVIDIA Made Up\n# cuda: 13.0\n# cpu: Some CPU\n"
SUMMARY = "count,min_us,p50_us,p90_us,p99_us,p999_us,p9999_us,max_us,mean_us,std_us"
WAYS = {"persistent": 1.0, "launch_mapped": 2.0, "graph_copied": 3.0, "launch_sync": 2.5, "graph_sync": 4.0}


def summary(p50_us: float) -> str:
    return (
        f"20000,{p50_us * 0.9},{p50_us},{p50_us * 1.1},{p50_us * 1.2},{p50_us * 2},{p50_us * 3},{p50_us * 9},{p50_us},{p50_us / 8}"
    )


def round_trip_csv(wrong: int = 0) -> str:
    text = FACTS.format(part="round_trip") + f"# finder: math\nway,events,{SUMMARY},wrong\nflag,0,{summary(2.5)},0\n"
    for events, us in ((16, 5.5), (1024, 8.5), (16384, 30.0)):
        text += "".join(f"{way},{events},{summary(us * factor)},{wrong}\n" for way, factor in WAYS.items())
    return text


def driver_path_csv() -> str:
    text = FACTS.format(part="driver_path") + f"work,path,in_flight,events,work_us,{SUMMARY},buffers_per_s,wrong\n"
    for work, events, work_us in (("dummy", 0, 200.0), ("rings", 1024, 0.0)):
        for in_flight in (1, 4):
            for path, us in (("driver", 215.0), ("persistent", 204.0)):
                text += f"{work},{path},{in_flight},{events},{work_us},{summary(us)},4800.0,0\n"
    return text


def loop_csv(lost: int = 0) -> str:
    text = FACTS.format(part="loop")
    text += "runtime,path,topology,finder,in_flight,burst_packets,rate_events_per_s,packets,packets_mean,sent_events_per_s,sent,answered,lost,wrong,"
    text += "p50_us,p99_us,p999_us,p9999_us,max_us,clean_p999_us,late_p99_us,longest_stall_us\n"
    for runtime in ("persistent", "launch", "graph"):
        for in_flight in (1, 4):
            for rate in (1_000_000, 10_000_000):
                for packets in (1, 8, 64):
                    us = 20.0 + packets
                    text += f"{runtime},mapped,pipelined,math,{in_flight},1,{rate},{packets},{packets * 1.01:.3f},{rate},{2 * rate},{2 * rate - lost},{lost},0,"
                    text += f"{us},{us * 2},{us * 3},{us * 4},{us * 9},{us * 2.5},3.0,40.0\n"
    return text


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    made = {"round_trip": round_trip_csv(), "driver_path": driver_path_csv(), "loop": loop_csv()}
    for part, text in made.items():
        (tmp_path / f"{part}.csv").write_text(text)
    return {part: tmp_path / f"{part}.csv" for part in made}


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
        assert ratio["p50_best_way"] == "launch_mapped"  # not the flag, which is faster
        assert ratio["same_work_p50"] == 0.5
    assert (found["gpu"], found["finder"], found["wrong"]) == ("NVIDIA Made Up", "math", 0)


def test_classical_ways_do_less_work(files: dict[str, Path]) -> None:
    files["round_trip"].write_text(round_trip_csv().replace("launch_mapped", "graph_mapped_sync"))
    ratio = result(files)["ratios"][0]
    assert (ratio["p50"], ratio["p50_best_way"]) == (0.5, "graph_mapped_sync")
    assert (ratio["same_work_p50"], ratio["same_work_best_way"]) == (0.3333, "graph_copied")


def test_goals(files: dict[str, Path]) -> None:
    goals = {goal["goal"]: goal for goal in result(files)["goals"]}
    assert len(goals) == 9
    assert all(goal["met"] for goal in goals.values())
    files["loop"].write_text(loop_csv(lost=3))
    goals = {goal["goal"]: goal for goal in result(files)["goals"]}
    assert not goals["the same, events lost"]["met"]
    assert goals["the same, events lost"]["value"] == 3


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
    with pytest.raises(gpu.GpuBenchError, match="is of no benchmark"):
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


@pytest.mark.parametrize("parts", [gpu.PARTS, ("round_trip",), ("driver_path",), ("loop",)])
def test_report(files: dict[str, Path], tmp_path: Path, parts: tuple[str, ...]) -> None:
    write_report(gpu.result_of([gpu.read(files[part]) for part in parts]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(svg)
        assert "nan" not in re.sub(r'aria-label="[^"]*"', "", svg)
    assert text.count("<svg") == 2 * ("round_trip" in parts) + 2 * ("loop" in parts)
    assert "NVIDIA Made Up" in text
    if "round_trip" in parts:
        assert "8.5 \u00b5s for 1\u2009024 events there and back, 0.50 of the best launch" in text
        assert "bare flag 2.5" in text


def check_documented(found: dict[str, Any]) -> None:
    """Every key that docs/json.md names is there."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text()
    section = text.partition("## `nanet bench gpu`")[2].partition("\n## ")[0]
    keys = re.findall(r"^\| `([^`]+)` \|", section, flags=re.MULTILINE)
    assert len(keys) > 20
    for path in keys:
        name, _, below = path.partition("[].")
        assert name in found
        assert not below or below in found[name][0], path


def test_command_with_files(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [argument for path in files.values() for argument in ("--from", path)]
    assert (
        run_main(monkeypatch, *arguments, "--out", tmp_path / "out", "--csv", tmp_path / "all.csv", "--json", tmp_path / "gpu.json")
        == 0
    )
    assert "whole loop, 10 Mevent/s, buffers of 128 events, p50: 28 us (at most 40): met" in capsys.readouterr().out
    assert (tmp_path / "out" / "bench-gpu.html").exists()
    check_documented(json.loads((tmp_path / "gpu.json").read_text()))
    figures = (tmp_path / "all.csv").read_text()
    assert "round_trip persistent 1024,p99_9,17,us" in figures
    assert "driver_path dummy driver in_flight 1,jitter,26.875,us" in figures
    files["round_trip"].write_text(round_trip_csv(wrong=2))
    assert run_main(monkeypatch, "--from", files["round_trip"], "--out", tmp_path / "out") == 1
    assert "30 answers were wrong" in (tmp_path / "out" / "bench-gpu.html").read_text()


def test_command_without_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(gpu_driver, "ask_driver", lambda: gpu_driver.Driver(problem="libcuda.so.1 is not there"))
    assert run_main(monkeypatch, "--out", tmp_path) == 2
    assert capsys.readouterr().err.startswith("nanet: no GPU (libcuda.so.1 is not there) run this on a machine with one")


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
    make_program(folder, "loop", 'echo "error: waited for the answers (4 s went by) see nvidia-smi" >&2; exit 3')
    assert run_main(monkeypatch, "--programs", folder, "--out", out, "--part", "loop") == 2
    assert "bench_gpu_loop broke (waited for the answers (4 s went by) see nvidia-smi) exit status 3" in capsys.readouterr().err


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
    assert (folder / "performance-gpu.md").read_text().count("Not measured.") == 3
    files["driver_path"].rename(folder / "gpu-h200-driver_path.csv")
    files["loop"].rename(folder / "gpu-h200-loop.csv")
    columns = "finder,case,events_per_s,cpu_events_per_s,latency_1_us,latency_64_us,events_that_differ\n"
    (folder / "gpu-h200-finders.csv").write_text(columns + "math,single_ring,2.7e9,1.8e7,3.0,3.1,0\nrecord_fit,20,4.5e10,,,,0\n")
    assert make_page(folder, "--check").returncode == 1
    assert make_page(folder).returncode == 0
    assert make_page(folder, "--check").returncode == 0
    page = (folder / "performance-gpu.md").read_text()
    for line in (
        "Machine: NVIDIA Made Up, CUDA 13.0 of the driver, Some CPU.",
        "| round trip of 1024 events, p50 | 8.5 us | 9 | met |",
        "| persistent | 5.50 | 8.50 | 30.00 |",
        "| 1024 | 0.50 | launch_mapped | 0.50 | launch_mapped | 0.50 | 120 |",
        "| dummy, 200 us | driver | 1 | 215.0 | 26.88 | 215.0 | 258.0 | 430.0 | 645.0 | 1935 | 4800 |",
        "| persistent | serialised | 10 | 8 (8.1) | 28.00 | 56.00 | 84.00 | 112.0 | 252.0 | 70.00 | 0 |",
        "| math | 2,700.0 |",
        "| 20 | 45.0 | 3,600 |",
    ):
        assert line in page
