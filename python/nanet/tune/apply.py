# SPDX-License-Identifier: Apache-2.0
"""Changes a machine as planned, and undoes it.

The undo file names, for each target that was written, the value from before. It is on disk before the target is written, so a
crash in between leaves at most an entry whose undoing changes nothing. A second apply adds entries and keeps the values of those that are
there: undo always leads back to what was before the first. Entries go as they are undone, the file with the last of them.

The file is written and trusted as root: one that others could have written is refused, and so is a target outside of /proc and /sys.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nanet.tune.keys import StepKeys
from nanet.tune.knob import Change, Knob
from nanet.tune.system import ETHTOOL_OPTIONS, System, TuneError

UNDO_FILE = Path("/run/nanet-tune.json")
VERSION = 1
BOOT_ID = "/proc/sys/kernel/random/boot_id"
TARGET = re.compile(r"/(?:proc/sys|proc/irq|sys)(?:/(?!\.{1,2}(?:/|$))[^/\0]+)+|ethtool \S+ (?:" + "|".join(ETHTOOL_OPTIONS) + ")")

Entries = dict[str, tuple[str, str]]  # target -> value from before the first apply, value that was written last


@dataclass(frozen=True)
class Step:
    """One value that was written, or could not be: then `problem` says why, and `now` is what it is still."""

    name: str  # of the knob; the target itself when undoing
    target: str
    before: str
    now: str
    problem: str = ""

    def plain(self) -> StepKeys:
        """As `nanet tune --json` writes it."""
        return {"name": self.name, "target": self.target, "before": self.before, "now": self.now, "problem": self.problem}


def apply(knobs: Iterable[Knob], system: System, undo_file: Path = UNDO_FILE) -> list[Step]:
    """Makes all changes of the knobs, however many of them fail. Raises TuneError before the first when none may be made."""
    wanted = [(knob, change) for knob in knobs for change in knob.changes]
    if not wanted:
        return []
    if not system.privileged:
        raise TuneError("cannot change this machine (only root may) run it with sudo, or type the commands that nanet tune prints")
    with _alone(undo_file):
        return _apply(wanted, system, undo_file)


def _apply(wanted: list[tuple[Knob, Change]], system: System, undo_file: Path) -> list[Step]:
    entries = _load(undo_file, system) if os.path.lexists(undo_file) else {}
    steps = []
    for knob, change in wanted:
        before = system.get(change.target)
        if before == change.wanted:  # done by an earlier change: cores may share a clock
            continue
        fresh = change.target not in entries
        original = before if fresh else entries[change.target][0]
        entries[change.target] = (original, change.wanted)
        _save(undo_file, entries, system)
        step = _write(knob.name, change.target, change.wanted, system)
        if step.problem and fresh and step.now == before:
            del entries[change.target]
            _save(undo_file, entries, system)
        steps.append(step)
    return steps


def undo(system: System, undo_file: Path = UNDO_FILE) -> list[Step]:
    """Writes back what the undo file holds, the last change first; none without a file. Raises TuneError when it cannot begin."""
    if not os.path.lexists(undo_file):
        return []
    if not system.privileged:
        raise TuneError("cannot change this machine (only root may) run: sudo nanet tune --undo")
    with _alone(undo_file):
        return _undo(system, undo_file)


def _undo(system: System, undo_file: Path) -> list[Step]:
    entries = _load(undo_file, system)
    if not entries:
        raise TuneError(f"nothing in {undo_file} can be undone (the machine has restarted since, which undid it) remove the file")
    steps = []
    for target in reversed(list(entries)):
        step = _write(target, target, entries[target][0], system)
        if not step.problem:
            del entries[target]
            _save(undo_file, entries, system)
        steps.append(step)
    return steps


def _write(name: str, target: str, wanted: str, system: System) -> Step:
    problem, before = "", system.get(target)
    if before == wanted:
        return Step(name, target, before, before)
    try:
        system.put(target, wanted)
    except OSError as error:
        problem = (error.strerror or str(error)) + _hint(target, error)
    now = system.get(target)
    if not problem and now != wanted:
        problem = f"it reads {now or 'nothing'} afterwards"
        if target.endswith("nr_hugepages"):
            problem += "; memory is fragmented, or pages are in use"
    return Step(name, target, before, now, problem)


def _hint(target: str, error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "; in a container or network namespace only the host may"
    if error.errno == errno.EIO and target.startswith("/proc/irq/"):
        return "; the driver places this interrupt itself"
    return ""


@contextlib.contextmanager
def _alone(undo_file: Path) -> Iterator[None]:
    """One at a time: by a file beside the undo file that only its owner can open. A lock on the folder, which all may open, could be held by anyone.

    The file stays: to remove one that another process is about to lock would let in two.
    """
    lock = undo_file.with_name(undo_file.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise TuneError(f"cannot use {undo_file} ({why}) give --undo-file, in a folder that exists") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o077:
            raise TuneError(f"{lock} is not used (others could hold it) remove it, or give --undo-file")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise TuneError(f"{undo_file} is in use (another nanet tune is running) wait for it") from None
        yield
    finally:
        os.close(descriptor)


def _load(path: Path, system: System) -> Entries:
    """The entries of an undo file; none when they are of before a restart."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with open(descriptor, encoding="utf-8") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
                raise TuneError(f"{path} is not used (others could have written it) remove it, or give --undo-file")
            document = json.load(file)
        entries = {str(entry["target"]): (str(entry["from"]), str(entry["to"])) for entry in document["changes"]}
        boot_id = document["boot_id"]
    except OSError as error:
        raise TuneError(f"cannot read {path} ({(error.strerror or str(error)).lower()}) give --undo-file") from None
    except (ValueError, KeyError, TypeError):
        raise TuneError(f"{path} is not an undo file (it cannot be parsed) remove it, or give --undo-file") from None
    for target in entries:
        if not TARGET.fullmatch(target):
            raise TuneError(f"{path} is not used (nanet tune does not write '{target}') remove it, or give --undo-file")
    return entries if boot_id == system.read(BOOT_ID) else {}


def _save(path: Path, entries: Entries, system: System) -> None:
    """Writes the undo file, whole or not at all, to the disk; removes it when there is nothing left to undo."""
    part = path.with_name(path.name + ".part")
    changes = [{"target": target, "from": old, "to": new} for target, (old, new) in entries.items()]
    text = json.dumps({"version": VERSION, "boot_id": system.read(BOOT_ID), "changes": changes}, indent=1)
    try:
        if not entries:
            path.unlink(missing_ok=True)
            return
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(descriptor)
        part.replace(path)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise TuneError(f"cannot write {path} ({why}) give --undo-file: nothing is changed unless it can be undone") from None
