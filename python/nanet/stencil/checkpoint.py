# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of `nanet stencil`: a field in HDF5, with a digest of the whole file before it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nanet._core import SetupError
from nanet.result import outputs
from nanet.result.build import version
from nanet.stencil.field import DTYPES, bands

FORMAT = "nanet stencil checkpoint 2"
HEAD_BYTES = 512  # before the HDF5 file, as HDF5 allows it (a user block): the digest of all that follows, in text
UNDIGESTED = b"\x89HDF"  # what checkpoints began with that had none
VALUE_MAX = 1e30  # of a cell: sums of squares stay finite


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint file says of its field, without the field."""

    path: Path
    rows: int
    columns: int
    dtype: str
    sweeps_done: int
    digest: str
    """Of all that the file holds: two files with the same one are the same."""

    def read(self, row_begin: int, row_end: int) -> NDArray[Any]:
        """Rows of the field. Raises SetupError, also for cells that no norm and no result could say."""
        with _opened(self.path, "r") as file:
            rows = np.asarray(file["field"][row_begin:row_end])
        for begin, end in bands(0, len(rows), rows.itemsize * self.columns):
            fits = np.abs(rows[begin:end]) <= VALUE_MAX  # what is no number does not
            if not fits.all():
                row, column = np.argwhere(~fits)[0].tolist()
                where = f"row {row_begin + begin + row}, column {column} is {rows[begin + row, column]}"
                raise SetupError(f"checkpoint {self.path} cannot be swept ({where}) give a field of numbers up to {VALUE_MAX:g}")
        return rows


def open_checkpoint(path: Path) -> Checkpoint:
    """Reads what the file holds, once all of it was compared to its digest. Raises SetupError where it is none, or not as it was written."""
    digest = _checked_digest(path)
    with _opened(path, "r") as file:
        try:
            found = _described(path, file, digest)
        except (
            AttributeError,
            KeyError,
            RuntimeError,
            TypeError,
            ValueError,
        ):  # another kind of object than we write, or none that h5py knows
            found = None
    if found is None:
        raise SetupError(f"{path} is not a checkpoint (it does not say '{FORMAT}') give a file that --checkpoint wrote")
    return found


def _described(path: Path, file: Any, digest: str) -> Checkpoint | None:
    """None: it is an HDF5 file of something else, or the field lies in another file, of which the digest says nothing."""
    import h5py

    field, said, sweeps_done = file["field"], file.attrs["format"], file.attrs["sweeps_done"]
    is_ours = isinstance(said, str) and said == FORMAT and isinstance(sweeps_done, np.integer) and sweeps_done >= 0
    is_here = isinstance(file.get("field", getlink=True), h5py.HardLink) and not field.external and not field.is_virtual
    dtype = next((name for name, one in DTYPES.items() if one == field.dtype), None)
    if not is_ours or not is_here or dtype is None or field.ndim != 2:
        return None
    return Checkpoint(path, int(field.shape[0]), int(field.shape[1]), dtype, int(sweeps_done), digest)


def _checked_digest(path: Path) -> str:
    """A bit that changed anywhere in the file, this head included, is seen."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            if head.startswith(UNDIGESTED):
                raise SetupError(
                    f"checkpoint {path} is not taken (it has no digest: an older nanet or another program wrote it) sweep again, or go on with that nanet"
                )
            digest = _digest(file)
            whole = hmac.compare_digest(head, _head(digest))
    except OSError as error:
        raise SetupError(
            f"checkpoint {path} cannot be opened ({error.strerror}) look at its name, and whether it is whole"
        ) from None
    if not whole:
        raise SetupError(
            f"checkpoint {path} is not as it was written (its digest differs, or it is none) give another that --checkpoint wrote"
        )
    return digest


def _digest(file: BinaryIO) -> str:
    """Of all that follows the head."""
    file.seek(HEAD_BYTES)
    digest = hashlib.blake2b(digest_size=32)
    while piece := file.read(2**22):
        digest.update(piece)
    return digest.hexdigest()


def _head(digest: str) -> bytes:
    return f"{FORMAT}\nblake2b-256 of all that follows: {digest}\n".encode().ljust(HEAD_BYTES, b"\0")


def begin_checkpoint(path: Path, rows: int, columns: int, dtype: str, sweeps_done: int) -> None:
    """Makes the file beside `path` that is filled row by row and then renamed."""
    partial = partial_of(path)
    with _writing(
        path
    ):  # other ranks open it by this name, so it cannot be a random one; what is there is of a run that was killed, or a trap
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        os.close(outputs.begin_named(partial))
    with _writing(path), _opened(partial, "w", userblock_size=HEAD_BYTES) as file:
        file.attrs["format"] = FORMAT
        file.attrs["nanet"] = version()
        file.attrs["sweeps_done"] = sweeps_done
        file.create_dataset("field", shape=(rows, columns), dtype=DTYPES[dtype].newbyteorder("<"))


def fill_checkpoint(path: Path, row_begin: int, rows: NDArray[Any]) -> None:
    """Writes rows into the file that was begun. One process at a time."""
    with _writing(path), _opened(partial_of(path), "r+") as file:
        for begin, end in bands(0, len(rows), rows.itemsize * rows.shape[1]):
            file["field"][row_begin + begin : row_begin + end] = rows[begin:end]


def end_checkpoint(path: Path) -> None:
    """The file takes its name, whole and on the disk: whatever ends the process, `path` is the one before or this one."""
    with _writing(path):
        with partial_of(path).open("r+b") as file:
            head = _head(_digest(file))
            file.seek(0)
            file.write(head)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial_of(path), path)
        outputs.end_named(partial_of(path))
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_checkpoint(path: Path, field: NDArray[Any], sweeps_done: int) -> None:
    """The whole field of one process."""
    dtype = next(name for name, one in DTYPES.items() if one == field.dtype)
    begin_checkpoint(path, field.shape[0], field.shape[1], dtype, sweeps_done)
    fill_checkpoint(path, 0, field)
    end_checkpoint(path)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).splitlines()[0].lower()
        raise SetupError(f"checkpoint {path} cannot be written ({why}) make room, or name another file") from None


def partial_of(path: Path) -> Path:
    """Where a checkpoint is written before it takes its name."""
    return path.with_name(path.name + ".part")


@contextlib.contextmanager
def _opened(path: Path, mode: str, **given: int) -> Iterator[Any]:
    import h5py

    try:
        file = h5py.File(path, mode, **given)
    except OSError as error:
        why = str(error).splitlines()[0]
        raise SetupError(f"checkpoint {path} cannot be opened ({why}) check its name, and whether it is complete") from None
    try:
        with file:
            yield file
    except OSError as error:  # a full disk
        why = str(error).splitlines()[0]
        raise SetupError(f"checkpoint {path} cannot be used ({why}) make room, or name another file") from None
