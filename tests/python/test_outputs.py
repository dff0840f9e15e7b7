# SPDX-License-Identifier: Apache-2.0
"""Files that commands write: refused before the work, whole or not there at all, never through a link, nothing left by what ended."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nanet import cli
from nanet.report import write_report
from nanet.result import files, histogram, outputs
from nanet.run import examples
from nanet.stencil import checkpoint, field


def main(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["nanet", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.fixture(params=["without a name", "with a random name"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to write into, on a file system that has files without a name, and on one that has none."""
    if request.param == "with a random name":
        real = os.open

        def refusing(path: object, flags: int, *more: object, **others: object) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(95, "Operation not supported")
            return real(path, flags, *more, **others)  # type: ignore[call-overload,no-any-return]

        monkeypatch.setattr(outputs.os, "open", refusing)
    return tmp_path


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    """No file may grow beyond 100 bytes, nor that of the tests' own output: only around what is tested."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_written_whole_and_nothing_beside(folder: Path) -> None:
    path = folder / "deep" / "r.json"
    files.write_json(path, {"a": float("nan"), "b": [1.5, float("inf")]})
    assert json.loads(path.read_text()) == {"a": None, "b": [1.5, None]}
    files.write_json(path, {"b": 2})
    assert json.loads(path.read_text()) == {"b": 2}
    assert os.listdir(path.parent) == ["r.json"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_what_is_not_committed_leaves_nothing(folder: Path) -> None:
    path = folder / "r"
    path.write_text("before")
    with outputs.Output(path) as output:
        output.file.write(b"half")
    assert os.listdir(folder) == ["r"]
    assert path.read_text() == "before"


@pytest.mark.parametrize("name", ["r.json", "r.json.part"])
def test_a_planted_link_is_not_followed(folder: Path, name: str) -> None:
    victim = folder / "victim"
    victim.write_text("mine")
    (folder / name).symlink_to(victim)
    files.write_json(folder / "r.json", {"a": 1})
    assert victim.read_text() == "mine"
    assert not (folder / "r.json").is_symlink()
    assert json.loads((folder / "r.json").read_text()) == {"a": 1}


def test_reports_logs_pictures_and_examples_follow_no_link(tmp_path: Path) -> None:
    victim, page = tmp_path / "victim", tmp_path / "page"
    victim.write_text("mine")
    page.symlink_to(victim)
    histogram.write_hlog(page, [])
    assert not page.is_symlink()
    page.unlink()
    page.symlink_to(victim)
    field.write_picture(page, field.made_rows(0, 4, 4, "fp64"))
    assert not page.is_symlink()
    page = tmp_path / "to" / next(iter(examples.examples()))
    page.parent.mkdir()
    page.symlink_to(tmp_path / "nothing")
    with pytest.raises(examples.ConfigError, match="is not overwritten"):
        examples.copy(examples.example(page.name), page.parent)
    assert victim.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()
    assert write_report.__module__ == "nanet.report"


def test_a_checkpoint_follows_no_link_and_replaces_what_a_killed_run_left(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "c.h5"
    victim.write_text("mine")
    checkpoint.partial_of(path).symlink_to(victim)
    checkpoint.write_checkpoint(path, field.made_rows(0, 4, 4, "fp64"), 3)
    assert victim.read_text() == "mine"
    assert checkpoint.open_checkpoint(path).sweeps_done == 3


def test_csv_is_appended_to_and_never_through_a_link(tmp_path: Path) -> None:
    path, victim = tmp_path / "f.csv", tmp_path / "victim"
    for value in (1.0, 2.0):
        files.append_csv(path, "rate", [("one", "x", value, "s")])
    assert [line.split(",")[4] for line in path.read_text().splitlines()] == ["value", "1", "2"]
    victim.write_text("mine")
    path.unlink()
    path.symlink_to(victim)
    with pytest.raises(outputs.OutputError, match=r"cannot write .*f\.csv \(it is a symbolic link\) name another file"):
        files.append_csv(path, "rate", [("one", "x", 1.0, "s")])
    assert victim.read_text() == "mine"


def test_csv_on_a_full_disk_is_as_it_was(tmp_path: Path) -> None:
    path, fresh = tmp_path / "f.csv", tmp_path / "fresh.csv"
    path.write_text("a line\n")
    for one in (path, fresh):
        with small_files(), pytest.raises(outputs.OutputError, match=r"\(file too large\) make room, or name a file elsewhere"):
            files.append_csv(one, "rate", [("one", "x", 1.0, "s")] * 10)
    assert path.read_text() == "a line\n"
    assert not fresh.exists()


def test_a_reserved_csv_that_is_not_written_is_gone(tmp_path: Path) -> None:
    with outputs.session():
        outputs.reserve(tmp_path / "f.csv", appends=True)
        assert (tmp_path / "f.csv").exists()
    assert not (tmp_path / "f.csv").exists()


def test_a_full_disk_leaves_the_file_of_before(folder: Path) -> None:
    path = folder / "r.json"
    path.write_text("before")
    with small_files(), pytest.raises(outputs.OutputError, match="file too large"):
        files.write_json(path, {"a": "x" * 200})
    assert path.read_text() == "before"
    assert os.listdir(folder) == ["r.json"]


@pytest.mark.parametrize("where", ["/dev/full", "r.json"])
def test_figures_are_printed_when_the_file_fails_at_the_end(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_files():
        code = main(monkeypatch, "version", "--json", tmp_path / where)
    assert code == 2
    said = capsys.readouterr()
    assert said.out.startswith("nanet ")
    assert said.err.startswith(f"nanet: cannot write {tmp_path / where} (")
    assert said.err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_a_pinned_file_is_written_by_its_own_name(folder: Path) -> None:
    path = folder / "r.json"
    path.write_text("before")
    with outputs.session():
        outputs.reserve(path)
        outputs.pin(path)
        assert path.read_text() == ""
        files.write_json(path, {"a": 1})
    assert json.loads(path.read_text()) == {"a": 1}
    path.unlink()
    path.symlink_to(folder / "victim")
    with outputs.session(), pytest.raises(outputs.OutputError, match="symbolic link"):
        outputs.pin(path)
    assert not (folder / "victim").exists()


def test_one_file_for_two_outputs_is_refused(tmp_path: Path) -> None:
    with outputs.session():
        outputs.reserve(tmp_path / "f")
        with pytest.raises(outputs.OutputError, match=r"is named for two outputs \(.+\) give each"):
            outputs.reserve(tmp_path / "f", appends=True)


def test_a_pipe_that_no_one_reads_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(outputs.OutputError, match="no one reads this pipe"):
        outputs.Output(tmp_path / "pipe")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_process_that_was_ended(number: signal.Signals, tmp_path: Path) -> None:
    """SIGKILL leaves nothing either where files need no name; the checkpoint's has one."""
    program = (
        "import os, sys, time\nfrom pathlib import Path\nfrom nanet.result import outputs\nfolder = Path(sys.argv[1])\n"
        "one = outputs.Output(folder / 'r.json')\none.file.write(b'half')\none.file.flush()\n"
        "if sys.argv[2] == 'named':\n    os.close(outputs.begin_named(folder / 'c.part'))\n"
        # one long call would sleep through a signal that came just before it: Python looks for them between calls only
        "print('ready', flush=True)\nfor _ in range(6000):\n    time.sleep(0.01)\n"
    )
    kind = "unnamed" if number == signal.SIGKILL else "named"
    command = [sys.executable, "-c", program, str(tmp_path), kind]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait() != 0
    assert os.listdir(tmp_path) == []
