# SPDX-License-Identifier: Apache-2.0
"""Fields of `nanet stencil`: where they come from, their bits as one number, checkpoints in HDF5, and a picture."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import os
import re
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nanet import outputs, version
from nanet._core import SetupError
from nanet.machine import read_text

DTYPES: dict[str, np.dtype[Any]] = {"fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64)}
FORMAT = "nanet stencil checkpoint 2"
HEAD_BYTES = 512  # before the HDF5 file, as HDF5 allows it (a user block): the digest of all that follows, in text
UNDIGESTED = b"\x89HDF"  # what checkpoints began with that had none
VALUE_MAX = 1e30  # of a cell: sums of squares stay finite
PIXELS_MAX = 1024  # of a picture's side
BAND_BYTES = 64 * 2**20  # rows handled at once
# Dark blue over green to yellow: brighter is more, for every eye. Red, green, blue at equal steps.
COLOURS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


def check(holds: bool, problem: str, why: str, suggestion: str) -> None:
    """Raises SetupError unless it holds."""
    if not holds:
        raise SetupError(f"{problem} ({why}) {suggestion}")


def shape_of(size: str) -> tuple[int, int]:
    """(rows, columns) of `8192` or `4096x8192`. Raises SetupError."""
    found = re.fullmatch(r"(\d{1,9})(?:x(\d{1,9}))?", size)
    if found is None:
        raise SetupError(f"size {size} is not a size (a number, or ROWSxCOLUMNS) write 8192 or 4096x8192")
    return int(found[1]), int(found[2] or found[1])


def made_rows(row_begin: int, row_end: int, columns: int, dtype: str) -> NDArray[Any]:
    """Rows of the field that `nanet stencil` starts from: 1 inside and at three sides, 2 along the first row. Never near 0."""
    field = np.ones((row_end - row_begin, columns), DTYPES[dtype])
    if row_begin == 0:
        field[:1] = 2
    return field


def check_memory(needed_bytes: int, what: str, why: str) -> None:
    """Before memory is taken that is not there: the kernel would promise it, and end a process when it is used."""
    free_bytes = available_bytes()
    check(
        free_bytes is None or needed_bytes <= free_bytes,
        what,
        f"{why} {needed_bytes // 2**20} MiB, {(free_bytes or 0) // 2**20} MiB are free",
        "give a smaller size",
    )


def available_bytes() -> int | None:
    """Memory that can still be had; None where the system does not say."""
    found = re.search(r"^MemAvailable: +(\d+) kB", read_text("/proc/meminfo"), flags=re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def bands(row_begin: int, row_end: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    """The rows in pieces that are handled at once."""
    at_once = max(1, BAND_BYTES // max(row_bytes, 1))
    for begin in range(row_begin, row_end, at_once):
        yield begin, min(begin + at_once, row_end)


def row_crcs(rows: NDArray[Any]) -> bytes:
    """CRC-32 of each row's bytes, 4 bytes a row, little-endian."""
    return b"".join(struct.pack("<I", zlib.crc32(row.data)) for row in np.ascontiguousarray(rows))


def crc_of_rows(crcs: bytes) -> str:
    """One CRC-32 for a whole field from those of its rows: whoever swept them, the same bits have the same."""
    return f"{zlib.crc32(crcs):08x}"


# --- checkpoints ---


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint file says of its field, without the field."""

    path: Path
    rows: int
    columns: int
    dtype: str
    sweeps_done: int

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
    _check_digest(path)
    with _opened(path, "r") as file:
        field = file.get("field")
        if file.attrs.get("format") != FORMAT or field is None or field.ndim != 2 or field.dtype not in DTYPES.values():
            raise SetupError(f"{path} is not a checkpoint (it does not say '{FORMAT}') give a file that --checkpoint wrote")
        dtype = next(name for name, one in DTYPES.items() if one == field.dtype)
        return Checkpoint(path, int(field.shape[0]), int(field.shape[1]), dtype, int(file.attrs["sweeps_done"]))


def _check_digest(path: Path) -> None:
    """A bit that changed anywhere in the file, this head included, is seen."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            if head.startswith(UNDIGESTED):
                raise SetupError(
                    f"checkpoint {path} is not taken (it has no digest: an older nanet or another program wrote it) sweep again, or go on with that nanet"
                )
            whole = hmac.compare_digest(head, _head(file))
    except OSError as error:
        raise SetupError(
            f"checkpoint {path} cannot be opened ({error.strerror}) look at its name, and whether it is whole"
        ) from None
    if not whole:
        raise SetupError(
            f"checkpoint {path} is not as it was written (its digest differs, or it is none) give another that --checkpoint wrote"
        )


def _head(file: BinaryIO) -> bytes:
    """The head that belongs to the rest of the file."""
    file.seek(HEAD_BYTES)
    digest = hashlib.blake2b(digest_size=32)
    while piece := file.read(2**22):
        digest.update(piece)
    return f"{FORMAT}\nblake2b-256 of all that follows: {digest.hexdigest()}\n".encode().ljust(HEAD_BYTES, b"\0")


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
            head = _head(file)
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


def check_place(path: Path | None, what: str) -> None:
    """Before the work: whether a file can be written there. Raises SetupError."""
    if path is None:
        return
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SetupError(f"{what} {path} cannot be written ({why}) name a file in a folder that is yours") from None


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


# --- a picture ---


def sampled(count: int) -> NDArray[np.int64]:
    """Which rows, or columns, of `count` a picture shows: all, or PIXELS_MAX at equal steps with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, PIXELS_MAX)).round().astype(np.int64))


def write_picture(path: Path, cells: NDArray[Any]) -> None:
    """A PNG file, one pixel a cell; the smallest value is dark, the largest bright, what is no number white."""
    values = np.asarray(cells, np.float64)
    finite = np.isfinite(values)
    low, high = (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
    share = np.where(finite, (values - low) / (high - low if high > low else 1.0), 0.0)
    steps = np.linspace(0.0, 1.0, len(COLOURS))
    colours = np.stack([np.interp(share, steps, [colour[part] for colour in COLOURS]) for part in range(3)], axis=-1)
    colours[~finite] = 255
    outputs.write(path, _png(colours.round().astype(np.uint8)))


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Red, green and blue [height, width, 3] as the PNG specification (W3C, ISO/IEC 15948) has it; filter 0 in each line."""
    height, width, _ = pixels.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1)
    chunks: Sequence[tuple[bytes, bytes]] = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 6)),
        (b"IEND", b""),
    )
    framed = (struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
