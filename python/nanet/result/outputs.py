# SPDX-License-Identifier: Apache-2.0
"""Files that commands write: opened before the work, written whole or not at all, never through a link that someone planted.

A command reserves its outputs, which opens them or refuses, and writes them at its end. A file without a name (O_TMPFILE) holds what is
written and is then given one, so that nothing is left of a process that was killed, however that was done. Where the file system has
none of those, the file has a random name: that is removed on every end of the process but SIGKILL, after which it stays.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import re
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

__all__ = ["Output", "OutputError", "append", "begin_named", "end_named", "pin", "reserve", "reserve_folder", "session", "write"]

STREAM = re.compile(r"/dev/(stdout|stderr|fd/\d+)|/proc/self/fd/\d+")  # links of the system's own
NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)  # from O_TMPFILE, by kernel and file system
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MODE = 0o666


class OutputError(RuntimeError):
    """A file that cannot be written: one line."""


class Output:
    """`with Output(path) as output: output.file.write(...); output.commit()`. Without the commit nothing has happened to `path`."""

    def __init__(self, path: Path, *, appends: bool = False) -> None:
        """Opens; makes the folder if there is none. Raises OutputError."""
        self.path = path
        self.appends = appends
        self._named: Path | None = None  # that holds what is written meanwhile, or that is new and removed if nothing is written
        self._replaces = False
        with _refused(path):
            self.file = os.fdopen(self._open(), "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.discard()

    def commit(self) -> None:
        """What was written is the file now. Raises OutputError."""
        with _refused(self.path):
            self.file.flush()
            if self._replaces:
                self._give_name()
            elif self._named is not None:
                end_named(self._named)
            self._named = None
            self.file.close()

    def write(self, data: bytes) -> None:
        """All there is to write, and the commit. Raises OutputError; a file that is appended to is then as it was."""
        before = os.fstat(self.file.fileno()).st_size
        descriptor = os.dup(self.file.fileno())
        try:
            with _refused(self.path):
                self.file.write(data)
            self.commit()
        except OutputError:
            with contextlib.suppress(OSError):
                self.file.close()  # tries once more to write what it holds
            if not self._replaces:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, before)
            self.discard()
            raise
        finally:
            os.close(descriptor)

    def discard(self) -> None:
        """Closes; leaves nothing of what was not committed."""
        with contextlib.suppress(OSError):
            self.file.close()
        if self._named is not None:
            end_named(self._named, remove=not self.appends or self._named.stat().st_size == 0)
            self._named = None

    def pin(self) -> None:
        """Opens the file by its name, for a process that may no longer do so when it writes. Until then the file is empty."""
        if not self._replaces:
            return
        with _refused(self.path):
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, MODE)
            pinned = os.fdopen(descriptor, "wb")
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                pinned.close()
                raise OSError(errno.EEXIST, "it is no plain file")
            os.ftruncate(descriptor, 0)
        self.discard()
        self.file, self._replaces = pinned, False

    def _open(self) -> int:
        path = self.path
        if STREAM.fullmatch(str(path)):
            return os.open(path, os.O_WRONLY | (os.O_APPEND if self.appends else 0))
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = _mode_of(path)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
            os.set_blocking(descriptor, True)
            return descriptor
        if mode and not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            raise OSError(errno.EEXIST, "it is no plain file")
        return self._open_to_append() if self.appends else self._open_to_replace()

    def _open_to_append(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        try:
            descriptor = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, MODE)
        except FileExistsError:
            return os.open(self.path, flags)
        self._named = self.path
        _remember(self.path)
        return descriptor

    def _open_to_replace(self) -> int:
        _check_sticky(self.path)
        self._replaces = True
        with contextlib.suppress(FileNotFoundError):  # without /proc a file cannot be given a name
            os.stat("/proc/self/fd")
            try:
                return os.open(self.path.parent, os.O_TMPFILE | os.O_WRONLY, MODE)
            except OSError as error:
                if error.errno not in NO_UNNAMED:
                    raise
        self._named = _random_name(self.path.parent)
        return begin_named(self._named)

    def _give_name(self) -> None:
        """Of a file without a name: linkat does not replace, so that it gets a random one first."""
        if self._named is None:
            named = _random_name(self.path.parent)
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:  # with a folder's descriptor Python calls linkat, which alone follows /proc's link
                os.link(f"/proc/self/fd/{self.file.fileno()}", named.name, dst_dir_fd=folder, follow_symlinks=True)
            finally:
                os.close(folder)
            self._named = named
            _remember(named)
        os.replace(self._named, self.path)
        end_named(self._named)


# --- what a command will write ---

_reserved: dict[str, Output] = {}
_failed: list[str] = []
_in_session = False


@contextlib.contextmanager
def session() -> Iterator[None]:
    """Around one command. What it reserved and did not write is discarded.

    A write that fails is said at the end, so that the command still prints its figures: OutputError, in place of its exit code.
    """
    global _in_session
    _in_session = True
    _failed.clear()
    try:
        yield
    except SystemExit:
        _raise_failed()
        raise
    else:
        _raise_failed()
    finally:
        _in_session = False
        for output in _reserved.values():
            output.discard()
        _reserved.clear()


def reserve(*paths: Path | None, appends: bool = False) -> None:
    """Opens files that are written later. Raises OutputError."""
    for path in paths:
        if path is None:
            continue
        key = os.path.abspath(path)
        there = _reserved.get(key)
        if there is None:
            _reserved[key] = Output(path, appends=appends)
        elif there.appends != appends:
            raise OutputError(f"{path} is named for two outputs (one would overwrite the other) give each a file of its own")


def reserve_folder(folder: Path, *names: str) -> None:
    """The same of files in a folder; without names, looks whether there can be any. Raises OutputError."""
    if not names:
        with _refused(folder):
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "it is no folder")
        try:
            Output(folder / _random_name(folder).name).discard()
        except OutputError as error:
            why = str(error.__cause__.strerror if isinstance(error.__cause__, OSError) else error).lower()
            raise OutputError(f"cannot write into {folder} ({why}) name another folder") from None
    reserve(*(folder / name for name in names))


def pin(path: Path | None) -> None:
    """Before the process becomes another account: see Output.pin."""
    if path is not None:
        reserve(path)
        _reserved[os.path.abspath(path)].pin()


def write(path: Path, data: bytes) -> None:
    """Writes a whole file, reserved or not. Raises OutputError, in a session at its end."""
    _write(path, data, appends=False)


def append(path: Path, data: bytes, head: bytes = b"") -> None:
    """Appends to a file; `head` goes before if it is empty. Raises OutputError, in a session at its end."""
    _write(path, data, appends=True, head=head)


def _write(path: Path, data: bytes, *, appends: bool, head: bytes = b"") -> None:
    reserved = _reserved.pop(os.path.abspath(path), None)
    try:
        output = reserved if reserved is not None else Output(path, appends=appends)
        output.write((head if head and os.fstat(output.file.fileno()).st_size == 0 else b"") + data)
    except OutputError as error:
        if not _in_session:
            raise
        _failed.append(str(error))


def _raise_failed() -> None:
    if _failed:
        raise OutputError(_failed[0] + (f" [and {len(_failed) - 1} more]" if len(_failed) > 1 else ""))


# --- files with a name that must not stay ---

_names: set[Path] = set()


def begin_named(path: Path) -> int:
    """The descriptor of a new file that is removed when the process ends, unless end_named comes first. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, MODE)
    _remember(path)
    return descriptor


def end_named(path: Path, *, remove: bool = False) -> None:
    """The file stays from now on, or was renamed, or is removed."""
    if remove:
        with contextlib.suppress(OSError):
            path.unlink()
    _names.discard(path)
    if not _names and threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _remember(path: Path) -> None:
    _names.add(path)
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@atexit.register
def _remove_named() -> None:
    for path in _names:
        with contextlib.suppress(OSError):
            path.unlink()


# --- helpers ---


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else (error.strerror or str(error)).lower()
        why = "no one reads this pipe" if error.errno == errno.ENXIO else why
        raise OutputError(f"cannot write {path} ({why}) {_suggestion(error)}") from error
    except ValueError as error:  # a NUL
        raise OutputError(f"cannot write {str(path)!r} ({error}) name another file") from None


def _suggestion(error: OSError) -> str:
    if error.errno in FULL:
        return "make room, or name a file elsewhere"
    return "name another file"


def _mode_of(path: Path) -> int:
    """0 where nothing is."""
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return 0


def _check_sticky(path: Path) -> None:
    """In a folder such as /tmp a file of another account cannot be replaced; rename would say so only at the end."""
    folder, own = os.stat(path.parent), os.geteuid()
    if own != 0 and folder.st_mode & stat.S_ISVTX and folder.st_uid != own and _mode_of(path) and os.lstat(path).st_uid != own:
        raise PermissionError(errno.EPERM, "it belongs to another account")


def _random_name(folder: Path) -> Path:
    return folder / f".nanet-{secrets.token_hex(8)}.part"
