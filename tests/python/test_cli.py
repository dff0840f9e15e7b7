# SPDX-License-Identifier: Apache-2.0
"""The command line without sockets: help, schema, validate, doctor, and the exit codes of wrong usage."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def nanet(*arguments: str | Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nanet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == expect, done.stderr
    return done


@pytest.mark.parametrize(
    "arguments",
    [(), ("demo",), ("run",), ("emulate",), ("emulate", "tel62"), ("emulate", "l0tp"), ("bench",), ("bench", "rate"),
     ("bench", "latency"), ("bench", "rings"), ("l0tp",), ("doctor",), ("validate",), ("schema",), ("version",)],
    ids=" ".join,
)  # fmt: skip
def test_help(arguments: tuple[str, ...]) -> None:
    text = nanet(*arguments, "--help").stdout
    assert "Usage: " in text
    assert "\x1b" not in text
    if arguments and arguments not in (("emulate",), ("bench",)):
        assert "--json" in text


def test_a_demo_of_another_detector_takes_no_options_of_the_first() -> None:
    assert "--boards says nothing of --detector km3" in nanet("demo", "--detector", "km3", "--boards", "4", expect=2).stderr


def test_a_number_below_0_is_no_option() -> None:
    said = nanet("km3", "set", "1", "high_voltage_0", "-5", expect=2).stderr
    assert said.startswith("nanet: -5 is taken for an option (a number below 0 is a value only after --) write -- before it")
    assert "(-5 is not a number from 0 " in nanet("km3", "set", "1", "high_voltage_0", "--", "-5", expect=2).stderr


@pytest.mark.parametrize("value", ["slice_ns=nan", "time_extra_ns=nan", "seeds_min=[", "seeds_min", "none=1"])
def test_a_setting_of_a_study_that_cannot_be_is_one_line(tmp_path: Path, value: str) -> None:
    said = nanet("km3", "study", "--set", value, "--html", tmp_path / "s.html", expect=2).stderr
    assert said.startswith("nanet: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("arguments", [("nothing",), ("run",), ("run", "x.yaml", "--nothing"), ("demo", "--rate", "fast")])
def test_wrong_usage_is_2(arguments: tuple[str, ...]) -> None:
    done = nanet(*arguments, expect=2)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run", "validate"])
def test_bad_config_is_one_line_and_2(tmp_path: Path, command: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text((ROOT / "examples" / "first_light.yaml").read_text().replace("buffer_count: 64", "bufer_count: 64"))
    done = nanet(command, path, expect=2)
    assert done.stdout == ""
    line = done.stderr.removesuffix("\n")
    assert line.startswith("nanet: bad.yaml:")
    assert line.endswith("did you mean 'buffer_count'?")
    assert "\n" not in line


def test_no_such_file_is_2() -> None:
    assert (
        nanet("run", "nothing.yaml", expect=2).stderr
        == "nanet: cannot read nothing.yaml (no such file or directory) check the path\n"
    )


def test_options_out_of_range_are_2() -> None:
    done = nanet("emulate", "tel62", "--boards", "3", expect=2)
    assert done.stderr == "nanet: boards: 3 is not allowed (it must be one of 1, 4) known: 1, 4\n"
    done = nanet("emulate", "km3", "--kind", "towers", expect=2)
    assert (
        done.stderr
        == "nanet: invalid value for '--kind' ('towers' is not one of 'tower', 'strings') see nanet emulate km3 --help\n"
    )
    done = nanet("emulate", "km3", "--muons", "-1", expect=2)
    assert "Input" not in done.stderr


def test_validate(tmp_path: Path) -> None:
    done = nanet("validate", ROOT / "examples" / "four_boards.yaml", "--json", tmp_path / "v.json")
    assert done.stdout.endswith("four_boards.yaml: valid\n")
    result = json.loads((tmp_path / "v.json").read_text())
    assert result["valid"] is True
    assert len(result["config"]["links"][0]["sources"]) == 4


def test_validate_shows_every_mistake(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("version: 1\nmemory_regions: [{name: a, kind: device}]\nlinks: [{name: b, endpoint: x, memory_region: a}]\n")
    done = nanet("validate", path, "--json", tmp_path / "v.json", expect=2)
    assert len(done.stderr.splitlines()) == 2
    assert json.loads((tmp_path / "v.json").read_text())["problems"] == [
        line.removeprefix("nanet: ") for line in done.stderr.splitlines()
    ]


def test_schema_is_json() -> None:
    assert json.loads(nanet("schema").stdout)["properties"]["links"]
    assert json.loads(nanet("schema", "--emulator").stdout)["properties"]["monte_carlo"]
    assert json.loads(nanet("schema", "--l0tp").stdout)["properties"]["masks"]
    assert json.loads(nanet("schema", "--tower").stdout)["properties"]["slice_ms"]
    assert json.loads(nanet("schema", "--strings").stdout)["properties"]["modules"]
    assert "a schema is of one" in nanet("schema", "--km3", "--l0tp", expect=2).stderr


def test_doctor(tmp_path: Path) -> None:
    done = nanet("doctor", "--json", tmp_path / "d.json")
    result = json.loads((tmp_path / "d.json").read_text())
    assert result["command"] == "doctor"
    for check in result["checks"]:
        assert check["name"] in done.stdout
        if check["state"] != "ok":
            assert check["mend"] in done.stdout
    assert "\x1b" not in done.stdout


def test_version(tmp_path: Path) -> None:
    done = nanet("version", "--json", tmp_path / "v.json")
    assert done.stdout.startswith("nanet ")
    assert json.loads((tmp_path / "v.json").read_text())["build"]["back_ends"]["udp"] is True


def test_bench_rings_short(tmp_path: Path) -> None:
    nanet("bench", "rings", "--short", "--out", tmp_path, "--json", tmp_path / "r.json", "--csv", tmp_path / "f.csv")
    result = json.loads((tmp_path / "r.json").read_text())
    assert result["math"]["events_per_s"] > 0
    assert (tmp_path / "bench-rings.html").stat().st_size > 5000
    assert "math_rate" in (tmp_path / "f.csv").read_text()
