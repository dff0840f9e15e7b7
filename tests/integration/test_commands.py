# SPDX-License-Identifier: Apache-2.0
"""The commands end to end: exit codes, files, and the JSON keys that docs/json.md promises."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from loops import engine_config, free_pair, free_ports, nanet, sender
from nanet import wire
from nanet.config import ConfigError
from nanet.port.port import open as open_port
from nanet.result.histogram import HIGHEST_NS

CheckKeys = Callable[[dict[str, Any], str], None]  # of tests/conftest.py
EXAMPLES = Path(__file__).parents[2] / "examples"
QUIET_BUDGET = ("--budget-us", "60000000")  # of time there are no promises here: the machine may be busy


def write_config(path: Path, **changes: Any) -> tuple[int, int]:
    port, answers = free_ports()
    path.write_text(yaml.safe_dump(engine_config(port, answers, **changes).model_dump(mode="json")))
    return port, answers


@pytest.mark.parametrize("boards", ["1", "4"])
def test_demo(tmp_path: Path, boards: str, check_keys: CheckKeys) -> None:
    port = free_pair()
    done = nanet(
        "demo", "--duration", "1", "--rate", "2e5", "--boards", boards, "--port", port, "--out", tmp_path / "out",
        "--json", tmp_path / "demo.json", *QUIET_BUDGET,
    )  # fmt: skip
    assert "\x1b" not in done.stdout
    assert "Promise kept" in done.stdout
    result = json.loads((tmp_path / "demo.json").read_text())
    check_keys(result, "demo")
    assert (result["lost"], set(result["losses"].values())) == (0, {0})
    assert result["sent"] == result["answered"] > 150_000
    assert result["latency_us"]["p50"] <= result["latency_us"]["p99"] <= result["latency_us"]["max"]
    assert json.loads((tmp_path / "out" / "demo.json").read_text()) == result
    page = (tmp_path / "out" / "demo.html").read_text()
    assert "Every event answered" in page
    assert page.count("<figure>") == 8  # two of them maps of photomultipliers
    log = HistogramLogReader(str(tmp_path / "out" / "demo.hlog"), HdrHistogram(1, HIGHEST_NS, 3))
    first = log.get_next_interval_histogram()
    assert first.get_total_count() == result["answered"]


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 1)])
def test_a_demo_over_its_budget(tmp_path: Path, strict: tuple[str, ...], code: int) -> None:
    """The loop worked: a warning, and an error only for who asks for it. The last frame of the table says what the result says."""
    port = free_pair()
    done = nanet(
        "demo", "--duration", "0.5", "--rate", "1e5", "--budget-us", "1", "--port", port, "--out", tmp_path, *strict, expect=code
    )
    assert "Warning: the loop worked, but the budget was broken: p99.9 of the latency" in done.stdout
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith(("loop:", "host:", "tune:"))] == [
        "loop", "host", "tune",
    ]  # fmt: skip
    result = json.loads((tmp_path / "demo.json").read_text())
    assert (result["verdict"]["kept"], result["verdict"]["worked"]) == (False, True)
    rich = result["l0"]["inputs"][0]["counters"]
    assert result["l0"]["counters"]["decided"] + rich["overwritten"] == result["answered"] == result["sent"]
    assert f"sent {result['sent']:,}  answered {result['answered']:,}  lost 0 " in done.stdout
    assert "The promise was broken" not in (tmp_path / "demo.html").read_text()


def test_run_and_emulate_as_three_would(tmp_path: Path, check_keys: CheckKeys) -> None:
    """The engine in one terminal, the boards in another; Ctrl-C ends the engine in order."""
    port, answers = write_config(tmp_path / "e.yaml")
    command = [sys.executable, "-m", "nanet", "run", str(tmp_path / "e.yaml"), "--json", str(tmp_path / "run.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == f"ready: listening on udp://127.0.0.1:{port}\n"
        nanet(
            "emulate", "tel62", "--to", f"udp://127.0.0.1:{port}", "--answers", f"udp://127.0.0.1:{answers}", "--events", "64000",
            "--rate", "2e5", "--json", tmp_path / "tel62.json", *QUIET_BUDGET,
        )  # fmt: skip
        engine.send_signal(signal.SIGINT)
        out, _ = engine.communicate(timeout=30)
    assert engine.returncode == 0
    assert "64,000 answered" in out
    assert "promise kept" in out
    check_keys(json.loads((tmp_path / "run.json").read_text()), "run")
    result = json.loads((tmp_path / "tel62.json").read_text())
    check_keys(result, "emulate tel62")
    assert (result["sent"], result["lost"]) == (64_000, 0)


def test_boards_expect_what_the_engines_settings_answer(tmp_path: Path) -> None:
    """Another finder, other cuts, and conditions in place of the radius class."""
    port, answers = free_ports()
    text = (EXAMPLES / "several_rings.yaml").read_text()
    (tmp_path / "e.yaml").write_text(text.replace(":6200", f":{port}").replace(":6300", f":{answers}"))
    command = [sys.executable, "-m", "nanet", "run", str(tmp_path / "e.yaml")]
    ends = ("--to", f"udp://127.0.0.1:{port}", "--answers", f"udp://127.0.0.1:{answers}", "--events", "3200", "--rate", "2e4")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline().startswith("ready: ")
        kept = nanet("emulate", "tel62", *ends, "--engine", tmp_path / "e.yaml", *QUIET_BUDGET)
        broken = nanet("emulate", "tel62", *ends, *QUIET_BUDGET, expect=1)
        engine.send_signal(signal.SIGINT)
        engine.communicate(timeout=30)
    assert "3,200 answered" in kept.stdout
    assert "wrong_answers" in broken.stdout
    both = nanet("emulate", "tel62", "--engine", tmp_path / "e.yaml", "--finder", "math", expect=2)
    assert "--engine sets it" in both.stderr
    (tmp_path / "count.yaml").write_text(text.partition("processor:")[0] + "processor: {kind: count}\n")
    assert "kind rich" in nanet("emulate", "tel62", "--engine", tmp_path / "count.yaml", expect=2).stderr


def test_boards_without_engine_are_1(tmp_path: Path) -> None:
    port, answers = free_ports()
    done = nanet(
        "emulate",
        "tel62",
        "--to",
        f"udp://127.0.0.1:{port}",
        "--answers",
        f"udp://127.0.0.1:{answers}",
        "--events",
        "1600",
        expect=1,
    )
    assert "Promise broken: 1,600 of 1,600 events were not answered" in done.stdout


def test_l0tp_alone(tmp_path: Path, check_keys: CheckKeys) -> None:
    port = free_ports(1)[0]
    command = [
        sys.executable, "-m", "nanet", "emulate", "l0tp", "--answers", f"udp://127.0.0.1:{port}", "--duration", "60",
        "--json", str(tmp_path / "l0tp.json"),
    ]  # fmt: skip
    primitives = np.zeros(3, wire.PRIMITIVE)
    primitives["timestamp"], primitives["id"] = [256, 257, 258], 0x4000
    good = wire.build_mtp(primitives, source_id=0x1C, source_sub_id=0, first_timestamp=256)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as l0tp, sender(port) as out:
        assert l0tp.stdout is not None
        assert l0tp.stdout.readline().startswith("ready: ")
        for datagram in (good, good, good[:-2], good[:2] + b"\xff" + good[3:], b""):
            out.send(datagram)
        assert l0tp.stdout.readline()  # a plain line of the live table: a second has passed
        l0tp.send_signal(signal.SIGTERM)
        l0tp.communicate(timeout=30)
    assert l0tp.returncode == 1
    result = json.loads((tmp_path / "l0tp.json").read_text())
    check_keys(result, "emulate l0tp")
    assert result["answer_packets"] == 5
    assert result["bad_packets"]["length"] == 2


def test_bench_rate(tmp_path: Path, check_keys: CheckKeys) -> None:
    port = free_pair()
    nanet(
        "bench", "rate", "--short", "--lowest", "1e4", "--highest", "5e5", "--port", port, "--out", tmp_path, "--json", tmp_path / "r.json",
        "--csv", tmp_path / "figures.csv",
    )  # fmt: skip
    result = json.loads((tmp_path / "r.json").read_text())
    check_keys(result, "bench rate")
    assert result["critical_rate_events_per_s"] >= 1e4
    assert "critical_rate" in (tmp_path / "figures.csv").read_text()
    assert "without a single loss" in (tmp_path / "bench-rate.html").read_text()


def test_bench_latency(tmp_path: Path, check_keys: CheckKeys) -> None:
    port = free_pair()
    nanet(
        "bench",
        "latency",
        "--short",
        "--rate",
        "1e5",
        "--port",
        port,
        "--out",
        tmp_path,
        "--json",
        tmp_path / "l.json",
        *QUIET_BUDGET,
    )
    result = json.loads((tmp_path / "l.json").read_text())
    check_keys(result, "bench latency")
    ours, theirs = result["latency_us"], result["sockperf_us"]
    assert result["p50_above_sockperf_us"] == pytest.approx(ours["p50"] - theirs["p50"], abs=0.01)
    assert (tmp_path / "bench-latency.html").exists()


def test_bench_rings(tmp_path: Path, check_keys: CheckKeys) -> None:
    nanet("bench", "rings", "--short", "--out", tmp_path, "--json", tmp_path / "r.json")
    result = json.loads((tmp_path / "r.json").read_text())
    check_keys(result, "bench rings")
    assert result["math"]["events_per_s"] > result["cases"][2]["numpy"]["events_per_s"]


def test_bench_finders(tmp_path: Path, check_keys: CheckKeys) -> None:
    nanet("bench", "rings", "--finder", "almagest", "--finder", "math", "--short", "--out", tmp_path, "--json", tmp_path / "r.json")
    result = json.loads((tmp_path / "r.json").read_text())
    check_keys(result, "bench rings --finder")
    assert [of_finder["name"] for of_finder in result["finders"]] == ["almagest", "math"]
    assert result["same_bits"]
    assert "almagest" in (tmp_path / "bench-finders.html").read_text()


def test_validate_prints_the_truth_table(tmp_path: Path, check_keys: CheckKeys) -> None:
    path = tmp_path / "e.yaml"
    several = {"name": "several", "when": "rings >= 2 and multiplicity < 40"}
    write_config(path, processor={"conditions": [several, {"name": "electron", "when": "electrons >= 1"}]})
    printed = nanet("validate", path, "--json", tmp_path / "v.json").stdout
    assert "several (bit 10)" in printed
    assert "electron (bit 11)" in printed
    result = json.loads((tmp_path / "v.json").read_text())
    check_keys(result, "validate")
    assert result["conditions"] == ["several", "electron"]
    for row in result["truth_table"]:
        assert row["several"] == (row["rings"] >= 2 and row["multiplicity"][1] < 40)
        assert row["electron"] == (row["electrons"] >= 1)


def test_physics(tmp_path: Path, check_keys: CheckKeys) -> None:
    nanet(
        "physics", "--events", "200", "--case", "single_ring", "--case", "two_rings_apart", "--no-scan", "--finder", "math",
        "--finder", "almagest", "--html", tmp_path / "p.html", "--json", tmp_path / "p.json",
    )  # fmt: skip
    result = json.loads((tmp_path / "p.json").read_text())
    check_keys(result, "physics")
    assert result["single_ring"]["efficiency"] > 0.9
    assert result["single_ring"]["best"] == "almagest"
    assert (tmp_path / "p.html").stat().st_size > 10_000


@pytest.mark.parametrize("command", ["doctor", "version"])
def test_documented_keys(tmp_path: Path, command: str, check_keys: CheckKeys) -> None:
    nanet(command, "--json", tmp_path / "x.json")
    check_keys(json.loads((tmp_path / "x.json").read_text()), command)


def test_pinning_to_a_core_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    write_config(path)
    path.write_text(path.read_text().replace("receive: null", "receive: 4095"))
    line = nanet("run", path, expect=2).stderr
    assert "there is no CPU core 4095" in line
    assert line.count("\n") == 1


def test_a_multicast_group_that_cannot_be_joined_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    write_config(path, link={"endpoint": "udp://239.1.2.3:6200"})
    path.write_text(path.read_text().replace("239.1.2.3", "232.1.2.3"))
    for command in ("run", "validate"):
        line = nanet(command, path, expect=2).stderr
        assert "cannot join udp://232.1.2.3:6200 (232.0.0.0/8 is for groups of known senders)" in line
        assert line.count("\n") == 1


def test_a_port_joins_no_group_of_unknown_senders() -> None:
    with pytest.raises(ConfigError, match="known senders"):
        open_port("udp://232.1.2.3:6200")
