# SPDX-License-Identifier: Apache-2.0
"""Help, manual page, completion, version and examples: what a newcomer reads first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nanet
import pytest
import typer
from nanet.cli.app import app
from nanet.cli.layout import PANELS
from nanet.cli.man import page
from nanet.cli.named import named
from nanet.result import build
from nanet.run import examples

ROOT = Path(__file__).parents[2]
PACKAGE = Path(nanet.__file__).parent
SUMMARY_MAX = 66
SUMMARY = re.compile(r"^  ([a-z0-9]+(?:-[a-z0-9]+)*)  +(\S.*)$")


def run(*arguments: str | Path, expect: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nanet", *map(str, arguments)]
    environment = os.environ | {"COLUMNS": "80"} | variables
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == expect, done.stderr
    return done


def groups() -> list[tuple[str, ...]]:
    return [path for path, command in commands() if hasattr(command, "commands")]


def commands(of: typer.Typer = app) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group: its words after `nanet`, and itself."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        yield path, command
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, (*path, name))

    yield from walk(typer.main.get_command(of), ())


def test_the_panels_hold_every_command_once() -> None:
    listed = [name for names in PANELS.values() for name in names]
    assert sorted(listed) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("group", groups(), ids=lambda path: " ".join(("nanet", *path)))
def test_summaries_are_whole_at_80_columns(group: tuple[str, ...]) -> None:
    found = {}
    for line in run(*group, "--help").stdout.splitlines():
        assert len(line) <= 80
        if match := SUMMARY.match(line):
            found[match[1]] = match[2]
    assert set(found) == set(dict(commands())[group].commands)
    for name, summary in found.items():
        assert not summary.endswith(("...", "…")), name
        assert len(summary) <= SUMMARY_MAX, name


def test_a_newcomer_reads_what_to_start_with_first() -> None:
    text = run("--help").stdout
    headings = re.findall(r"^([A-Z][a-z ]+):$", text, flags=re.MULTILINE)
    assert headings == ["Options", "Start here", "Run", "Measure", "Machine", "More"]
    assert text.index("\n  demo ") < min(text.index(f"\n  {name} ") for name in PANELS["Run"])


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=lambda path: " ".join(("nanet", *path)))
def test_h_is_help(path: tuple[str, ...]) -> None:
    from typer.testing import CliRunner

    short, long = (CliRunner().invoke(app, [*path, option], prog_name="nanet") for option in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.output == long.output
    assert short.output.startswith("Usage: ")


def test_every_option_has_a_help_text() -> None:
    for path, command in commands():
        for parameter in command.params:
            assert parameter.help, (path, parameter.name)


def test_version() -> None:
    assert run("--version").stdout == f"nanet {nanet.version()}\n"
    lines = run("version").stdout.splitlines()
    assert lines[0] == f"nanet {nanet.version()}"
    said = dict(line.split(maxsplit=1) for line in lines[1:] if not line.startswith(("build type", "vector code", "left out")))
    assert set(said) == {"commit", "compiler", "back-ends"}
    assert "udp" in said["back-ends"]


def test_the_command_alone_is_made_that_a_command_line_names() -> None:
    everything = {path: [(one.name, one.opts, one.default) for one in command.params] for path, command in commands()}
    for path in everything:
        made = {
            below: [(one.name, one.opts, one.default) for one in command.params]
            for below, command in commands(named(app, [*path, "--json"]))
        }
        kept = {below for below in everything if below[: len(path)] == path or path[: len(below)] == below}
        assert set(made) == (kept if path != ("man",) else set(everything)), path
        assert all(made[below] == everything[below] for below in made)
    for words in ((), ("--help",), ("no-such-command", "demo")):
        assert named(app, words) is app
    assert set(dict(commands(named(app, ["bench", "no-such-one"])))) == {
        path for path in everything if path[:1] in ((), ("bench",))
    }


def test_what_a_build_does_not_say_is_unknown() -> None:
    info = {"compiler": "g++ 12.2.0", "simd": "AVX2", "back_ends": {"udp": True, "cuda": False}}
    assert build.of_info("1.2", info).lines() == [
        "nanet 1.2", "commit       unknown", "compiler     g++ 12.2.0", "build type   unknown", "vector code  AVX2",
        "back-ends    udp", "left out     cuda",
    ]  # fmt: skip
    whole = build.of_info("1.2", info | {"commit": "80048c1", "build_type": "Release"})
    assert (whole.commit, whole.build_type) == ("80048c1", "Release")


def test_completion_knows_the_commands() -> None:
    answered = run(expect=0, _NANET_COMPLETE="complete_bash", COMP_WORDS="nanet be", COMP_CWORD="1", PROG="nanet")
    assert answered.stdout.split() == ["bench"]
    assert "complete" in run("--show-completion", "bash").stdout


def test_the_manual_page_has_every_command_and_option() -> None:
    text = page(app, "1.2")
    assert text.startswith('.TH NANET 1 "" "nanet 1.2"')
    sections = {
        match[1].replace("\\-", "-"): match[2]
        for match in re.finditer(r'^\.SS "nanet ([a-z0-9 \\-]+?) (?=[A-Z[{])(.*?)(?=^\.S[SH] )', text, re.M | re.S)
    }
    for path, command in commands():
        section = sections[" ".join(path)] if path else text[: text.index(".SH COMMANDS")]
        for parameter in command.params:
            names = (*parameter.opts, *parameter.secondary_opts) if parameter.param_type_name == "option" else ()
            for name in names:
                assert name.replace("-", "\\-") in section, (path, name)
    for line in text.splitlines():
        assert not line.startswith("'")
        if line.startswith("."):
            assert re.match(r"\.(TH|SH|SS|PP|TP|B)( |$)", line), line


def test_man_prints_it() -> None:
    assert run("man").stdout == page(app, nanet.version())


def test_examples_are_listed_printed_and_copied(tmp_path: Path) -> None:
    listed = run("examples").stdout
    for path in filter(Path.is_file, (ROOT / "examples").iterdir()):  # a folder is a project to build, docs/install.md
        assert re.search(rf"^{re.escape(path.name)} +\S.*\.$", listed, re.M), path.name
    assert run("examples", "own_port").stdout == (ROOT / "examples" / "own_port.yaml").read_text()
    assert run("examples", "thirty_lines.py", "--to", tmp_path).stdout == f"{tmp_path / 'thirty_lines.py'}\n"
    assert (tmp_path / "thirty_lines.py").read_text() == (ROOT / "examples" / "thirty_lines.py").read_text()
    assert "is not overwritten" in run("examples", "thirty_lines.py", "--to", tmp_path, expect=2).stderr
    assert run("examples", "own_prot", expect=2).stderr == (
        "nanet: there is no example 'own_prot' (nanet examples lists them) did you mean 'own_port.yaml'?\n"
    )


def test_examples_of_an_installed_package_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "site-packages" / "nanet"
    monkeypatch.setattr(examples, "PACKAGE", installed)
    with pytest.raises(nanet.ConfigError, match="there are no examples"):
        nanet.examples()
    (installed / "examples").mkdir(parents=True)
    (installed / "examples" / "mine.yaml").write_text("# SPDX-License-Identifier: Apache-2.0\n# What it is: for this. And more.\n")
    assert nanet.examples() == {"mine.yaml": installed / "examples" / "mine.yaml"}
    assert examples.summary(installed / "examples" / "mine.yaml") == "What it is: for this."


def test_an_example_that_a_text_names_is_there() -> None:
    """So that the help of an installed nanet, which has them too, does not lead nowhere."""
    known = {path.name for path in (ROOT / "examples").iterdir()}
    for path in (ROOT / "python").rglob("*.py"):
        for name in re.findall(r"examples/([\w-]+\.\w+)", path.read_text()):
            assert name in known, path


@pytest.fixture(params=["gone", "broken"])
def without_native(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the package whose native module is not there, or does not load; the folder that it is in."""
    copied = tmp_path / "nanet"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    if request.param == "broken":
        import importlib.machinery

        (copied / f"_core{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_bytes(b"no library")
    return tmp_path


@pytest.mark.parametrize("command", ["version", "run {examples}/first_light.yaml", "demo", "rdma doctor", "bench rings", "stencil"])
def test_without_the_native_module_a_command_says_one_line(without_native: Path, command: str) -> None:
    words = command.format(examples=ROOT / "examples").split()
    done = run(*words, expect=2, PYTHONPATH=str(without_native))
    assert re.fullmatch(
        r"nanet: the native module cannot be used \(.+\) run make setup in a clone, or pip install .+ nanet\n", done.stderr
    )


def test_without_the_native_module_help_and_doctor_work(without_native: Path) -> None:
    assert "Start here:" in run("--help", PYTHONPATH=str(without_native)).stdout
    said = run("doctor", expect=1, PYTHONPATH=str(without_native)).stdout
    assert re.search(r"^fail +native module +cannot be used: ", said, re.M)
    assert re.search(r"native module: run make setup in a clone, or pip install", said)
