# SPDX-License-Identifier: Apache-2.0
"""nanet tune --apply and --undo: on a made-up machine, and what this one and a network namespace allow."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from nanet.tune import apply
from nanet.tune import plan as tune
from tune_machine import HUGE, Made, made_up, nanet, whole_plan


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return made_up(tmp_path / "root")


def test_apply_then_nothing_is_left_to_do_and_undo_restores_all(made: Made, tmp_path: Path) -> None:
    before, file = made.all(), tmp_path / "undo.json"
    steps = apply.apply(whole_plan(made), made.system, file)
    assert [step.problem for step in steps] == [""] * len(steps)
    assert made.text("/sys/kernel/mm/transparent_hugepage/enabled") == "madvise"
    assert made.nic.values == {"rx": "4096", "rx-usecs": "0", "adaptive-rx": "off"}
    sets = [call[2] for call in made.nic.calls if call[0] == "-C"]
    assert sets == ["adaptive-rx", "rx-usecs"]  # which would have ruled it
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    made.put(f"{HUGE}/free_hugepages", "10")  # as the kernel would
    assert apply.apply(whole_plan(made), made.system, file) == []
    assert {step.target for step in apply.undo(made.system, file)} == {step.target for step in steps}
    made.put(f"{HUGE}/free_hugepages", "3")
    after = made.all()
    assert after.pop("/sys/kernel/mm/transparent_hugepage/enabled") == "always"  # the kernel would list the others too
    before.pop("/sys/kernel/mm/transparent_hugepage/enabled")
    assert after == before
    assert not file.exists()
    assert apply.undo(made.system, file) == []


def test_a_second_apply_keeps_the_oldest_values(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    apply.apply(whole_plan(made), made.system, file)
    made.put("/proc/sys/net/core/rmem_max", "1048576")  # somebody set it meanwhile
    steps = apply.apply(tune.chosen(whole_plan(made), ["rmem_max"]), made.system, file)
    assert [(step.before, step.now) for step in steps] == [("1048576", "67108864")]
    apply.undo(made.system, file)
    assert made.text("/proc/sys/net/core/rmem_max") == "212992"


class Crash(BaseException):
    """What ends a program in the middle."""


def test_a_crash_in_the_middle_can_be_undone(made: Made, tmp_path: Path) -> None:
    file, before = tmp_path / "undo.json", made.all()
    plan = whole_plan(made)
    targets = [change.target for knob in plan for change in knob.changes if not change.target.startswith("ethtool")]
    for crash_at in (targets[0], targets[4], targets[-1]):
        for wrote in ("not yet", "already"):

            def write(path: str, text: str, crash_at: str = crash_at, wrote: str = wrote) -> None:
                if path != crash_at or wrote == "already":
                    made.system.write(path, text)
                if path == crash_at:
                    raise Crash

            with pytest.raises(Crash):
                apply.apply(plan, replace(made.system, write=write), file)
            assert crash_at in [entry["target"] for entry in json.loads(file.read_text())["changes"]]
            assert all(not step.problem for step in apply.undo(made.system, file))
            assert not file.exists()
            made.put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
            assert made.all() == before


def test_a_crash_while_undoing_can_be_undone(made: Made, tmp_path: Path) -> None:
    file, backlog = tmp_path / "undo.json", "/proc/sys/net/core/netdev_max_backlog"
    apply.apply(whole_plan(made), made.system, file)

    def write(path: str, text: str) -> None:
        if path == backlog:
            raise Crash
        made.system.write(path, text)

    with pytest.raises(Crash):
        apply.undo(replace(made.system, write=write), file)
    assert (made.text("/proc/sys/vm/stat_interval"), made.text(backlog)) == ("1", "30000")
    apply.undo(made.system, file)
    assert (made.text(backlog), made.text("/proc/sys/net/core/rmem_max"), file.exists()) == ("1000", "212992", False)


def test_what_the_machine_refuses_is_said_and_the_rest_is_done(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    refused = {"/proc/sys/net/core/rmem_max": 13, "/proc/irq/41/smp_affinity_list": 5}

    def write(path: str, text: str) -> None:
        if path in refused:
            raise OSError(refused[path], os.strerror(refused[path]))
        made.system.write(path, "7" if path == f"{HUGE}/nr_hugepages" else text)

    steps = apply.apply(whole_plan(made), replace(made.system, write=write), file)
    problems = {step.target: step.problem for step in steps if step.problem}
    assert set(problems) == {*refused, f"{HUGE}/nr_hugepages"}
    assert problems["/proc/sys/net/core/rmem_max"] == "Permission denied; in a container or network namespace only the host may"
    assert problems["/proc/irq/41/smp_affinity_list"] == "Input/output error; the driver places this interrupt itself"
    assert problems[f"{HUGE}/nr_hugepages"].startswith("it reads 7 afterwards; memory is fragmented")
    kept = [entry["target"] for entry in json.loads(file.read_text())["changes"]]
    assert not set(refused) & set(kept)  # nothing to undo there
    apply.undo(made.system, file)
    assert made.text(f"{HUGE}/nr_hugepages") == "4"


def test_what_cannot_be_undone_stays_in_the_file(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    apply.apply(tune.chosen(whole_plan(made), ["compaction", "rmem_max"]), made.system, file)

    def write(path: str, text: str) -> None:
        raise OSError(30, os.strerror(30))

    steps = apply.undo(replace(made.system, write=write), file)
    assert [step.problem.partition(";")[0] for step in steps] == ["Read-only file system"] * 2
    assert len(json.loads(file.read_text())["changes"]) == 2
    assert [step.problem for step in apply.undo(made.system, file)] == ["", ""]


def test_only_root_may(made: Made, tmp_path: Path) -> None:
    anybody, file, before = replace(made.system, privileged=False), tmp_path / "undo.json", made.all()
    with pytest.raises(tune.TuneError, match=r"^cannot change this machine \(only root may\) run it with sudo"):
        apply.apply(whole_plan(made), anybody, file)
    assert (made.all(), file.exists()) == (before, False)
    assert apply.apply([], anybody, file) == []  # nothing to do is no offence
    apply.apply(whole_plan(made), made.system, file)
    with pytest.raises(tune.TuneError, match="only root may"):
        apply.undo(anybody, file)


def test_nothing_is_changed_without_an_undo_file(made: Made, tmp_path: Path) -> None:
    before = made.all()
    with pytest.raises(tune.TuneError, match=r"^cannot use .* \(no such file or directory\)"):
        apply.apply(whole_plan(made), made.system, tmp_path / "nowhere" / "undo.json")
    assert made.all() == before


def test_two_at_a_time_are_one_too_many(made: Made, tmp_path: Path) -> None:
    lock, before = os.open(tmp_path / "undo.json.lock", os.O_RDWR | os.O_CREAT, 0o600), made.all()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(tune.TuneError, match="another nanet tune is running"):
            apply.apply(whole_plan(made), made.system, tmp_path / "undo.json")
    finally:
        os.close(lock)
    assert made.all() == before
    assert apply.apply(whole_plan(made), made.system, tmp_path / "undo.json")


def test_a_lock_that_any_account_can_hold_stops_nothing(made: Made, tmp_path: Path) -> None:
    """Whoever can open the folder can lock it: /run is open to all."""
    file, folder = tmp_path / "undo.json", os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert apply.apply(whole_plan(made), made.system, file)
        assert apply.undo(made.system, file)
    finally:
        os.close(folder)
    assert (tmp_path / "undo.json.lock").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("kind", ["open to all", "link", "pipe"])
def test_a_lock_file_that_is_not_to_be_trusted(made: Made, tmp_path: Path, kind: str) -> None:
    before, lock = made.all(), tmp_path / "undo.json.lock"
    if kind == "open to all":
        lock.touch()
        lock.chmod(0o644)
    elif kind == "link":
        (tmp_path / "elsewhere").touch(0o600)
        lock.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(lock, 0o600)
    with pytest.raises(tune.TuneError, match=r"others could hold it|too many levels of symbolic links"):
        apply.apply(whole_plan(made), made.system, tmp_path / "undo.json")
    assert made.all() == before


def test_an_undo_file_that_cannot_be_written_stops_before_the_change(made: Made, tmp_path: Path) -> None:
    before, part = made.all(), tmp_path / "undo.json.part"
    part.mkdir()  # in the way of the file, also for root
    with pytest.raises(tune.TuneError, match=r"^cannot write .* nothing is changed unless it can be undone$"):
        apply.apply(whole_plan(made), made.system, tmp_path / "undo.json")
    assert made.all() == before


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ('{"boot_id": "boot-1", "changes": []}', 0o666, "others could have written it"),
        ("{", 0o600, "is not an undo file"),
        ('{"changes": []}', 0o600, "is not an undo file"),
        (
            '{"boot_id": "boot-1", "changes": [{"target": "/etc/passwd", "from": "a", "to": "b"}]}',
            0o600,
            "nanet tune does not write",
        ),
        ('{"boot_id": "boot-1", "changes": [{"target": "/sys/../etc/passwd", "from": "a", "to": "b"}]}', 0o600, "does not write"),
        ('{"boot_id": "boot-1", "changes": [{"target": "ethtool eth0 flash", "from": "a", "to": "b"}]}', 0o600, "does not write"),
        ('{"boot_id": "boot-0", "changes": [{"target": "/sys/a", "from": "a", "to": "b"}]}', 0o600, "restarted since"),
    ],
)
def test_an_undo_file_that_is_not_to_be_trusted(made: Made, tmp_path: Path, text: str, mode: int, words: str) -> None:
    file = tmp_path / "undo.json"
    file.write_text(text)
    file.chmod(mode)
    before = made.all()
    with pytest.raises(tune.TuneError, match=words):
        apply.undo(made.system, file)
    assert made.all() == before


def test_an_undo_file_that_is_a_link_is_refused(made: Made, tmp_path: Path) -> None:
    (tmp_path / "undo.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(tune.TuneError, match="cannot read"):
        apply.undo(made.system, tmp_path / "undo.json")


def test_after_a_restart_a_new_undo_file_is_begun(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "undo.json"
    apply.apply(whole_plan(made), made.system, file)
    made.put("/proc/sys/kernel/random/boot_id", "boot-2")
    made.put("/proc/sys/vm/stat_interval", "2")
    apply.apply(tune.chosen(whole_plan(made), ["VM statistics"]), made.system, file)
    entries = json.loads(file.read_text())["changes"]
    assert [(entry["target"], entry["from"]) for entry in entries] == [("/proc/sys/vm/stat_interval", "2")]


@pytest.mark.xdist_group("knobs")
def test_one_real_knob_is_set_and_undone(tmp_path: Path) -> None:
    """vm.stat_interval, which does no harm for a second; where /proc cannot be written, that must be what is said."""
    path, file = Path("/proc/sys/vm/stat_interval"), tmp_path / "undo.json"
    before = path.read_text().strip()
    try:
        path.write_text("3")
        may = True
    except OSError:
        may = False
    try:
        options = ("tune", "--only", "VM statistics", "--undo-file", file)
        if may:
            done = nanet(*options, "--apply", "--json", tmp_path / "t.json")
            assert done.stdout.startswith("/proc/sys/vm/stat_interval: 3 -> 10\n")
            assert f"nanet tune --undo --undo-file {file}" in done.stdout
            assert path.read_text() == "10\n"
            assert json.loads((tmp_path / "t.json").read_text())["steps"][0]["now"] == "10"
            assert nanet(*options, "--apply").stdout.startswith("nothing to change\n")
            assert nanet("tune", "--undo", "--undo-file", file).stdout == "/proc/sys/vm/stat_interval: 10 -> 3\n"
            assert path.read_text() == "3\n"
            assert nanet("tune", "--undo", "--undo-file", file).stdout == "nothing to undo\n"
        else:
            warnings.warn("NOT RUN: set and undo of a real knob (/proc/sys cannot be written here); its refusal was", stacklevel=1)
            root = os.geteuid() == 0
            done = nanet(*options, "--apply", expect=1 if root else 2)
            assert ("NOT DONE /proc/sys/vm/stat_interval" if root else "only root may") in done.stdout + done.stderr
        assert not file.exists()
    finally:
        if may:
            path.write_text(before)


def test_socket_limits_belong_to_the_host_not_to_a_network_namespace(tmp_path: Path) -> None:
    """In a namespace of its own rmem_max is not there (older kernels) or cannot be written (6.18): tune says which, and the host's stays."""
    path, file = Path("/proc/sys/net/core/rmem_max"), tmp_path / "undo.json"
    inside = ("unshare", "--net")
    tried = subprocess.run([*inside, "cat", path], capture_output=True, text=True, check=False)
    made_one = subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0
    if not made_one:
        warnings.warn("NOT RUN: nanet tune in a network namespace (unshare may not make one here)", stacklevel=1)
        return
    before = path.read_text() if path.exists() else ""
    options = ("tune", "--only", "rmem_max", "--apply", "--undo-file", file)
    there = tried.returncode == 0
    if there and int(tried.stdout) >= 64 << 20:
        assert nanet(*options, before=inside).stdout.startswith("nothing to change")
    elif there:
        done = nanet(*options, expect=1, before=inside)
        assert done.stdout.startswith(f"NOT DONE {path}: still {tried.stdout.strip()} (")  # no permission, or a read-only /proc/sys
        assert "in a container or network namespace only the host may" in done.stdout
    else:
        assert "nothing to change" in nanet(*options, before=inside).stdout
    assert not file.exists()
    assert (path.read_text() if path.exists() else "") == before
