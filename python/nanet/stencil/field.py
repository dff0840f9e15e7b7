# SPDX-License-Identifier: Apache-2.0
"""Fields of `nanet stencil`: where they come from, their bits as one number, and a picture."""

from __future__ import annotations

import errno
import os
import re
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet._core import SetupError
from nanet.machine.facts import read_text
from nanet.result import outputs

DTYPES: dict[str, np.dtype[Any]] = {"fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64)}
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
