# SPDX-License-Identifier: Apache-2.0
"""Files whose digest fits and that are no checkpoint all the same: whoever wrote them, the answer is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from nanet import SetupError
from nanet.stencil import checkpoint

FIELD = np.linspace(1, 2, 12).reshape(3, 4)


def write(path: Path, change: Callable[[Any], None]) -> None:
    """A checkpoint, but for what is changed in it."""
    with h5py.File(path, "w", userblock_size=checkpoint.HEAD_BYTES) as file:
        file.attrs["format"] = checkpoint.FORMAT
        file.attrs["sweeps_done"] = 5
        file["field"] = FIELD
        change(file)
    with path.open("r+b") as raw:
        head = checkpoint._head(checkpoint._digest(raw))
        raw.seek(0)
        raw.write(head)


def replaced(make: Callable[[Any], Any]) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file["field"]
        make(file)

    return change


def test_what_is_written_here_is_one(tmp_path: Path) -> None:
    write(tmp_path / "field.h5", lambda file: None)
    found = checkpoint.open_checkpoint(tmp_path / "field.h5")
    assert found.sweeps_done == 5
    assert np.array_equal(found.read(0, 3), FIELD)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "no format": lambda file: file.attrs.__delitem__("format"),
    "format of two words": lambda file: file.attrs.__setitem__("format", ["a", "b"]),
    "no sweeps": lambda file: file.attrs.__delitem__("sweeps_done"),
    "sweeps in words": lambda file: file.attrs.__setitem__("sweeps_done", "five"),
    "sweeps of two numbers": lambda file: file.attrs.__setitem__("sweeps_done", [1, 2]),
    "sweeps below zero": lambda file: file.attrs.__setitem__("sweeps_done", -1),
    "no field": replaced(lambda file: None),
    "a group": replaced(lambda file: file.create_group("field")),
    "a field of nothing": replaced(lambda file: file.__setitem__("field", h5py.Empty("f8"))),
    "a field of three dimensions": replaced(lambda file: file.__setitem__("field", FIELD[None])),
    # What the digest of this file says nothing about.
    "a link": replaced(lambda file: file.__setitem__("field", h5py.ExternalLink("other.h5", "field"))),
    "in another file": replaced(
        lambda file: file.create_dataset("field", (3, 4), "<f8", external=[("other.h5", 0, h5py.h5f.UNLIMITED)])
    ),
    "of parts elsewhere": replaced(lambda file: file.create_virtual_dataset("field", layout_elsewhere())),
}


def layout_elsewhere() -> Any:
    layout = h5py.VirtualLayout((3, 4), "<f8")
    layout[:] = h5py.VirtualSource("other.h5", "field", (3, 4))
    return layout


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_is_none_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "other.h5", lambda file: None)
    write(tmp_path / "field.h5", change)
    with pytest.raises(SetupError, match=r"is not a checkpoint \(") as refused:
        checkpoint.open_checkpoint(tmp_path / "field.h5")
    assert "\n" not in str(refused.value)
