# SPDX-License-Identifier: Apache-2.0
"""Every option of every command with what it cannot take: exit code 2, one line on standard error, and nothing was begun."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from nanet import cli
from nanet.cli import app as cli_app
from nanet.machine import ports

ROOT = Path(__file__).parents[2]

HOSTILE_NUMBERS = {float: ("nan", "inf", "-inf", "-1", "1e300", "x", ""), int: ("nan", "-1", "1e300", "1" + "0" * 30, "x", "")}
OUTPUTS = {"--json", "--csv", "--html", "--plot", "--checkpoint", "--lua", "--pcap", "--truth"}
FOLDERS = {"--out"}
WITHOUT_OPTIONS = {("man",), ("examples",), ("format", "show"), ("format", "schema")}
DESCRIPTORS = {"--ready-fd", "--status-fd", "--control-fd"}
# Read, or looked at when the work begins: --undo-file before anything is changed, --to before an example is copied.
OTHER_PATHS = {
    "--config",
    "--engine",
    "--program",
    "--programs",
    "--from",
    "--gpu-csv",
    "--token-file",
    "--restart",
    "--undo-file",
    "--to",
    "--spead2",
    "--detector",
    "--beacons",
}


def leaves() -> Iterator[tuple[str, ...]]:
    """The words of every command that is no group."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if not hasattr(command, "commands"):
            yield words
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, (*words, name))

    yield from walk(typer.main.get_command(cli_app.app), ())


def command_of(root: Any, words: tuple[str, ...]) -> Any:
    for word in words:
        root = root.commands[word]
    return root


def kind_of(parameter: Any) -> Any:
    return parameter.type_descriptor.annotation


def hostile(command: Any, folder: Path) -> Iterator[tuple[str, ...]]:
    """What is appended to the words of a command."""
    file = folder / "file"
    yield ("--no-such-option",)
    yield ("x",) * 9
    for parameter in command.params:
        option = parameter.opts[0]
        if option in DESCRIPTORS:
            yield from ((option, value) for value in ("77", "-1", "1" + "0" * 30))
        elif kind_of(parameter) in HOSTILE_NUMBERS and option.startswith("--"):
            yield from ((f"{option}={value}",) for value in HOSTILE_NUMBERS[kind_of(parameter)])
        elif option in OUTPUTS:
            yield from ((option, str(value)) for value in (folder, file / "below", "/proc/nothing/below", "nul\0"))
        elif option in FOLDERS:
            yield from ((option, str(value)) for value in (file, file / "below", "/proc/nothing", "nul\0"))
        elif parameter.type_descriptor.is_choice:
            yield (option, "no-such-choice")


def needed(command: Any) -> list[str]:
    """Something for every parameter that must be there."""
    words: list[str] = []
    for parameter in command.params:
        if parameter.required:
            words += [parameter.opts[0], "1"] if parameter.opts[0].startswith("-") else ["1"]
    return words


@pytest.mark.parametrize("words", list(leaves()), ids=" ".join)
def test_hostile_flags(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ports, "choose", lambda port, *, named: (port, None))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    root: Any = typer.main.get_command(cli_app.app)
    command = command_of(root, words)
    command.callback = lambda **_: pytest.fail("it was begun")
    monkeypatch.setattr("nanet.cli.named.named", lambda *_: root)
    cases = list(hostile(command, tmp_path))
    assert len(cases) > 2 or words in WITHOUT_OPTIONS
    for case in cases:
        monkeypatch.setattr(sys, "argv", ["nanet", *words, *needed(command), *case])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        assert ended.value.code == 2, case
        assert said.err.startswith("nanet: "), (case, said.err)
        assert said.err.count("\n") == 1, (case, said.err)
        assert " (" in said.err, (case, said.err)
        assert ") " in said.err, (case, said.err)
        assert said.out == "", case
    assert {path.name for path in tmp_path.rglob("*")} <= {"file", "out"}


def test_every_path_is_known_to_be_read_or_written() -> None:
    root = typer.main.get_command(cli_app.app)
    found = {
        parameter.opts[0]
        for words in leaves()
        for parameter in command_of(root, words).params
        if parameter.opts[0].startswith("--") and kind_of(parameter) is Path
    }
    assert found <= OUTPUTS | FOLDERS | OTHER_PATHS
    assert found >= OUTPUTS | FOLDERS


@pytest.mark.parametrize("words", list(leaves()), ids=" ".join)
def test_ctrl_c_is_one_line_and_130(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ports, "choose", lambda port, *, named: (port, None))
    monkeypatch.chdir(tmp_path)
    root: Any = typer.main.get_command(cli_app.app)
    command = command_of(root, words)
    command.callback = interrupted
    monkeypatch.setattr("nanet.cli.named.named", lambda *_: root)
    monkeypatch.setattr(sys, "argv", ["nanet", *words, *needed(command)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "nanet: stopped (Ctrl-C)\n")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "nanet: there is not enough memory ("),
        (RuntimeError("can't start new thread"), "nanet: there is not enough memory ("),
        (PermissionError(13, "Permission denied", "/x"), "nanet: /x cannot be used (permission denied) "),
        (BrokenPipeError(32, "Broken pipe"), "nanet: the system refused something (broken pipe) "),
    ],
    ids=repr,
)
def test_what_the_system_refuses_is_one_line(
    error: BaseException, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> None:
        raise error

    root: Any = typer.main.get_command(cli_app.app)
    root.commands["version"].callback = broken
    monkeypatch.setattr("nanet.cli.named.named", lambda *_: root)
    monkeypatch.setattr(sys, "argv", ["nanet", "version"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert said.err.startswith(line)
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("shell", "code", "line"),
    [
        ("exec {nanet} version >&-", 2, "nanet: cannot write to standard output (it is closed) "),
        ("{ {nanet} schema; echo $? >code; } | true; exit $(cat code)", 2, "nanet: cannot write to standard output (broken pipe) "),
        (
            "{ {nanet} validate several_rings.yaml; echo $? >code; } | true; exit $(cat code)",
            2,
            "nanet: cannot write to standard output (broken pipe) ",
        ),
        ("{ {nanet} doctor; echo $? >code; } | true; exit $(cat code)", 2, "nanet: cannot write to standard output (broken pipe) "),
        ("{ {nanet} tune; echo $? >code; } | true; exit $(cat code)", 2, "nanet: cannot write to standard output (broken pipe) "),
        ("exec {nanet} version >/dev/full", 2, "nanet: cannot write to standard output (no space left on device) "),
        ("exec {nanet} schema >/dev/full", 2, "nanet: cannot write to standard output (no space left on device) "),
        ("ulimit -v 200000; exec {nanet} bench rings --short", 2, "nanet: there is not enough memory ("),
        ("exec {nanet} version", 130, "nanet: stopped (Ctrl-C)"),
    ],
)
def test_a_process_that_cannot(shell: str, code: int, line: str, tmp_path: Path) -> None:
    """The last is interrupted while its modules are loaded: by one in the place of Typer."""
    shutil.copy(ROOT / "examples" / "several_rings.yaml", tmp_path)
    here = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    here.pop("OPENBLAS_NUM_THREADS")  # with one thread it tries for ever to get memory that there is not
    if code == 130:
        (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise ImportError('broken')\n")
        here |= {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = ["sh", "-c", shell.replace("{nanet}", f"{sys.executable} -m nanet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=here, timeout=600)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1, done.stderr
