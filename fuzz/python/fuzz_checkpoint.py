# SPDX-License-Identifier: Apache-2.0
"""Any file as a checkpoint: every change of a good one is seen; and a file whose digest fits but which holds something else is refused in one line.

Input: one byte for what kind of file, then its bytes, or what is changed in a good one, or what an HDF5 file holds.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from fuzz_target import Bytes, instrumented, run

with instrumented("nanet.stencil.checkpoint"):
    from nanet.stencil import checkpoint
import h5py
import numpy as np
from nanet import SetupError

FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
PATH = FOLDER / "field.h5"
FIELD = np.linspace(1, 2, 12).reshape(3, 4)
FORMATS = [checkpoint.FORMAT, "nanet stencil checkpoint 1", 5, b"bytes", ["a", "b"], None]
SWEEPS = [7, -1, 2**63 - 1, 1.5, "seven", [1, 2], None]
FIELDS = [FIELD, FIELD.astype(np.float32), FIELD.astype(">f8"), FIELD.astype(np.int32), FIELD[0], FIELD[None], FIELD[:0], None, "group", "empty", "elsewhere", "linked",
          np.array([[1, np.nan]]), np.array([[1e31]])]  # fmt: skip

checkpoint.write_checkpoint(PATH, FIELD, 7)
GOOD = PATH.read_bytes()
PATH.replace(FOLDER / "other.h5")


def check(data: bytes) -> None:
    """One file."""
    if not data or len(data) > 5000:
        return
    kind, more = data[0] % 4, data[1:]
    if kind == 0:
        require(more, None)
        require_no_file()
    elif kind == 1:
        require(GOOD[: len(GOOD) - len(more) % 700] if len(more) % 2 else GOOD + more, None if more else FIELD)
    elif kind == 2:
        changed = bytearray(GOOD)
        at, bits = int.from_bytes(more[:2], "little") % len(GOOD), Bytes(more[2:]).number()
        changed[at] ^= bits
        require(bytes(changed), FIELD if bits == 0 else None)
    else:
        other_content(Bytes(more))


def other_content(bytes_: Bytes) -> None:
    """An HDF5 file of something else, with a digest that fits."""
    if bytes_.number() == 255:
        return require(sealed(b"no HDF5 " + bytes_.rest()), None)
    said, sweeps, field = (values[bytes_.number() % len(values)] for values in (FORMATS, SWEEPS, FIELDS))
    with h5py.File(PATH, "w", userblock_size=checkpoint.HEAD_BYTES) as file:
        for name, value in (("format", said), ("sweeps_done", sweeps)):
            if value is not None:
                file.attrs[name] = value
        if isinstance(field, np.ndarray):
            file["field"] = field
        elif field == "elsewhere":
            file.create_dataset("field", (2, 2), "<f8", external=[(str(FOLDER / "nowhere"), 0, h5py.h5f.UNLIMITED)])
        elif field == "linked":
            file["field"] = h5py.ExternalLink(str(FOLDER / "other.h5"), "field")
        elif field == "group":
            file.create_group("field")
        elif field == "empty":
            file["field"] = h5py.Empty("f8")
    is_good = said is FORMATS[0] and sweeps in (7, 2**63 - 1) and isinstance(field, np.ndarray)
    is_good = is_good and field.dtype in (np.dtype("<f8"), np.dtype("<f4")) and field.ndim == 2
    content = sealed(PATH.read_bytes()[checkpoint.HEAD_BYTES :])
    return require(content, field if is_good else None)


def require_no_file() -> None:
    """A folder is none, and below a file there is no room for one."""
    for call in (
        lambda: checkpoint.open_checkpoint(FOLDER),
        lambda: checkpoint.write_checkpoint(PATH / "below", FIELD, 1),
    ):
        try:
            call()
        except SetupError as error:
            assert "(" in str(error) and "\n" not in str(error), "problem (why) suggestion"
        else:
            raise AssertionError("it is refused")


def sealed(content: bytes) -> bytes:
    """With a digest that fits."""
    PATH.write_bytes(bytes(checkpoint.HEAD_BYTES) + content)
    with PATH.open("rb") as raw:
        return checkpoint._head(checkpoint._digest(raw)) + content


def require(content: bytes, expected: object) -> None:
    """Read as the field, or refused in one line."""
    PATH.write_bytes(content)
    try:
        found = checkpoint.open_checkpoint(PATH)
        assert isinstance(expected, np.ndarray), "only what was written is taken"
        rows = found.read(0, found.rows)
    except SetupError as error:
        assert expected is None or not np.all(np.abs(np.asarray(expected)) <= checkpoint.VALUE_MAX), f"a good one is taken: {error}"
        assert "(" in str(error) and "\n" not in str(error), "problem (why) suggestion"
        return
    assert found.sweeps_done >= 0 and np.array_equal(rows, expected), "the same field"


if __name__ == "__main__":
    try:
        run(check)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
