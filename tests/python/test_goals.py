# SPDX-License-Identifier: Apache-2.0
"""scripts/goals.py: which goals a result reaches, misses, or is too close to for its error; no command and no report says a word of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_up_bench import finders_result
from made_up_gateware import changed
from made_up_gpu import finders_csv, loop_csv, trace_csv, write_files
from made_up_torus import bench_torus_result
from nanet.bench import gpu

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import goals  # noqa: E402


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return write_files(tmp_path)


def result(files: dict[str, Path]) -> dict[str, Any]:
    return gpu.result_of([gpu.read(path) for path in files.values()])


def goals_of(files: dict[str, Path]) -> dict[str, Any]:
    found = result(files)
    return {goal["goal"]: goal for goal in goals.gpu_goals(found, found["ratios"])}


def figures(**changes: float | None) -> dict[str, Any]:
    return {"efficiency": 0.998, "all_found": 0.998, "fakes": 0.007, "clones": 0.0, "ratio_to_bound": 0.98} | changes


def judged(**changes: float | None) -> dict[str, str]:
    cases = {"single_ring": {"title": "1 ring", "finders": {"good": figures(**changes), "oracle": figures(fakes=0.0)}}}
    return {goal["figure"]: goal["verdict"] for goal in goals.physics_goals(cases)}


def test_physics_goals_say_met_and_missed() -> None:
    assert judged() == {"efficiency": "met", "fakes": "missed", "ratio_to_bound": "met"}
    assert judged(ratio_to_bound=None)["ratio_to_bound"] == "missed"


@pytest.mark.parametrize(
    ("found", "error", "verdict"),
    [
        (0.998, 0.001, "met"),
        (0.998, 0.003, "cannot tell"),
        (0.995, 0.003, "cannot tell"),
        (0.99, 0.003, "missed"),
        (0.996, 0.0, "met"),
    ],
)
def test_a_goal_within_the_error_is_neither_met_nor_missed(found: float, error: float, verdict: str) -> None:
    assert judged(efficiency=found, efficiency_error=error)["efficiency"] == verdict
    assert judged(fakes=round(0.006 + 0.996 - found, 6), fakes_error=error)["fakes"] == verdict


def test_those_that_look_at_hit_times_are_judged_beside_the_others() -> None:
    found = {"good": figures(), "good_time": figures(all_found=0.9999), "oracle": figures(all_found=1.0)}
    rows = goals.physics_goals({"single_ring": {"title": "1 ring", "finders": found}})
    assert [row["finder"] for row in rows] == ["good"] * 3 + ["good_time"] * 3


def run_script(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / "goals.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_script(files: dict[str, Path], tmp_path: Path) -> None:
    near = {
        "single_ring": {"title": "1 ring", "finders": {"good": figures(fakes=0.0061, fakes_error=0.001, efficiency_error=0.0001)}}
    }
    (tmp_path / "physics.json").write_text(json.dumps({"command": "physics", "cases": near}))
    (tmp_path / "gpu.json").write_text(json.dumps(result(files)))
    (tmp_path / "other.json").write_text(json.dumps({"command": "demo"}))
    done = run_script(tmp_path / "physics.json", tmp_path / "gpu.json")
    assert done.returncode == 0, done.stderr
    assert "met          1 ring: efficiency at least 99.60 %, good reaches 99.80 % \u00b1 0.01 %" in done.stdout
    assert "cannot tell  1 ring: fakes at most 0.00600, good reaches 0.00610 \u00b1 0.00100" in done.stdout
    assert "met          whole loop, 10 Mevent/s, buffers of 128 events, p50: 28 us (at most 40)" in done.stdout
    refused = run_script(tmp_path / "other.json")
    assert (refused.returncode, refused.stderr[:15]) == (2, "error: no goals")
    assert run_script().returncode == 2


def goals_with(files: dict[str, Path], part: str, text: str) -> dict[str, Any]:
    files[part].write_text(text)
    return goals_of(files)


def test_goals(files: dict[str, Path]) -> None:
    goals = goals_of(files)
    assert len(goals) == 16
    assert all(goal["met"] for goal in goals.values())
    assert goals["persistent over the best that launches, 1024 events, p50"]["note"] == "same work: 0.50 of launch_mapped"
    goals = goals_with(files, "loop", loop_csv(lost=3))
    assert not goals["the same, events lost"]["met"]
    assert goals["the same, events lost"]["value"] == 3


def test_goals_of_finders(files: dict[str, Path]) -> None:
    memory = "MATH on records of 20 hits in device memory, bytes moved over those of a copy"
    goals = goals_of(files)
    assert (goals[memory]["value"], goals[memory]["bound"], goals[memory]["limit"]) == (pytest.approx(0.9), "at least", 0.85)
    assert goals["almagest, case two_rings_apart"]["value"] == pytest.approx(300)
    assert goals["mixture, case single_ring"]["value"] == pytest.approx(12)
    assert goals["mixture, case single_ring"]["note"] == "6 two_rings_apart, 3 three_rings_apart"
    text = finders_csv(differ=1).replace("20,4.5e+10,3.6e+12", "20,4.2e+10,3.36e+12")
    text = text.replace("almagest,two_rings_apart,3e+08", "almagest,two_rings_apart,1.9e+08")
    goals = goals_with(files, "finders", text.replace("mixture,single_ring,1.2e+07", "mixture,single_ring,9.9e+06"))
    assert [goals[name]["met"] for name in (memory, "almagest, case two_rings_apart", "mixture, case single_ring")] == [False] * 3
    differ = goals["finders: events that differ from the CPU's"]
    assert (differ["value"], differ["met"], result(files)["wrong"]) == (9, False, 9)
    assert memory not in goals_with(files, "finders", finders_csv().replace("copy,of as many bytes,,4e+12,,,,\n", ""))


def test_goals_of_the_trace(files: dict[str, Path]) -> None:
    calls, allocations, control = (
        "persistent, steady state: calls of CUDA",
        "persistent, steady state: allocations",
        "control: calls of CUDA a buffer that the trace sees",
    )
    goals = goals_of(files)
    assert (goals[calls]["value"], goals[allocations]["value"], goals[control]["value"]) == (0, 0, 4)
    assert goals[allocations]["note"] == "in 1000 buffers; at set-up 9000"
    assert goals[control]["note"] == "launch 4, graph 8"
    goals = goals_with(files, "trace", trace_csv(persistent_calls=1, allocations=2))
    assert (goals[calls]["met"], goals[allocations]["met"], goals[control]["met"]) == (False, False, True)
    assert not goals_with(files, "trace", trace_csv(control_calls=0))[control]["met"]
    alone = "".join(line for line in trace_csv().splitlines(keepends=True) if not line.startswith(("launch", "graph")))
    assert not goals_with(files, "trace", alone)[control]["met"]
    nothing_came = trace_csv().replace(",1000\n", ",0\n")  # no buffer: quiet, but of no use
    assert calls not in goals_with(files, "trace", nothing_came)


@pytest.mark.parametrize(
    ("path", "value", "which"),
    [
        ("wrong_packets", 1, 0),
        ("conditions.1.wrong_starts", 1, 1),
        ("conditions.0.lost_packets", 1, 2),
        ("tx_line_rate_fraction.64.alone", 0.999, 3),
        ("tx_line_rate_fraction.64.beside_16", 0.75, 4),
        ("tx_line_rate_fraction.64.beside_1", 0.89, 5),
        ("last_byte_to_last_write_cycles", {"min": 15, "max": 65, "spread": 0}, 6),
        ("last_byte_to_last_write_cycles", {"min": 15, "max": 31, "spread": 1}, 7),
        ("line_rate_fraction", {"64": 0.999, "1518": 1.0}, 8),
        ("lost_packets", 1, 9),
        ("cycles_per_wall_second", 599_999, 10),
        ("router.loads.0.full_rate_fraction", 0.999, 11),
        ("router.loads.1.packets", [4, 2, 2, 2], 12),
    ],
)
def test_a_goal_that_is_missed_is_said(path: str, value: Any, which: int) -> None:
    assert [goal["met"] for goal in goals.gateware_goals(changed(path, value))] == [k != which for k in range(13)]


def test_goals_of_the_torus() -> None:
    found = {goal["goal"]: goal["met"] for goal in goals.torus_goals(bench_torus_result())}
    assert [name for name, met in found.items() if not met] == ["spread of a hop", "simulation of 8 nodes"]
    assert found["uniform on 4x4x4 at full load, over BookSim's"]
    short = bench_torus_result() | {"saturation": {"uniform_4x4x4": None}, "reference": []}
    assert len(goals.torus_goals(short)) == len(found) - 1


def test_goals_of_remote_memory_are_of_the_worst_ratio() -> None:
    def row(test: str, size: int, ratio: float | None) -> dict[str, Any]:
        return {"test": test, "message_bytes": size, "ratio_to_peer": ratio}

    rows = [row("put_bandwidth", 8, 0.1), row("put_bandwidth", 1 << 20, 1.2), row("put_bandwidth", 64 << 10, 0.94)]
    rows += [row("put_latency", 8, 1.05), row("put_latency", 64, 9.0), row("get_latency", 8, None)]
    found = goals.rdma_goals({"measurements": rows})
    assert [(goal["value"], goal["bound"], goal["limit"], goal["met"]) for goal in found] == [
        (0.94, "at least", 0.95, False), (1.05, "at most", 1.1, True),
    ]  # fmt: skip


def test_goals_of_finders_on_a_cpu() -> None:
    found = goals.finder_goals(finders_result())
    assert {goal["goal"]: goal["met"] for goal in found} == {"almagest, rings: 2": False, "mixture, rings: 1": False}


@pytest.mark.parametrize(
    ("key", "value", "which"),
    [("resets", 4320, None), ("resets", 4000, 0), ("not_up", 1, 1), ("latency_values", 2, 2), ("payload_fraction", 0.98, 3)],
)
def test_goals_of_the_km3_link(key: str, value: float, which: int | None) -> None:
    found = {"resets": 4320, "not_up": 0, "latency_values": 1, "payload_fraction": 0.994} | {key: value}
    assert [goal["met"] for goal in goals.km3_link_goals(found)] == [k != which for k in range(4)]


def test_goals_of_slow_control() -> None:
    def met(p999_us: float, rate_mbit_s: float) -> list[bool]:
        found = {"server_busy": {"round_trip_us": {"p99_9": p999_us}}, "rate_mbit_s": rate_mbit_s}
        return [goal["met"] for goal in goals.km3_control_goals(found)]

    assert met(999.0, 250.0) == [True, True]
    assert met(1001.0, 249.0) == [False, False]
