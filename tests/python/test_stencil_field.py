# SPDX-License-Identifier: Apache-2.0
"""Checkpoints, the end by a norm, the progress bar and the picture of `nanet stencil`."""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
from nanet import SetupError
from nanet.stencil import checkpoint as stencil_checkpoint
from nanet.stencil import field as stencil_field
from nanet.stencil.drive import Norm, Plan, drive
from numpy.typing import NDArray
from stencil_reference import can_move_tiles, command, crc32, reference, reference_crc32


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize(("first_ranks", "then_ranks"), [(1, 1), (1, 3), (3, 1), (2, 4)])
def test_after_a_restart_the_bits_are_those_of_one_run(
    tmp_path: Path, record_property: object, dtype: str, first_ranks: int, then_ranks: int
) -> None:
    if first_ranks + then_ranks > 2 and not can_move_tiles(record_property):  # type: ignore[arg-type]
        return
    checkpoint, file = tmp_path / "field.h5", tmp_path / "result.json"
    first = command("--size", "50x64", "--dtype", dtype, "--sweeps", 33, "--ranks", first_ranks, "--checkpoint", checkpoint)
    assert first.returncode == 0, first.stderr
    assert stencil_checkpoint.open_checkpoint(checkpoint).sweeps_done == 33
    with h5py.File(checkpoint) as written:
        assert crc32(written["field"][:]) == reference_crc32(50, 64, dtype, 33)
    then = command("--restart", checkpoint, "--sweeps", 40, "--ranks", then_ranks, "--norm-every", 10, "--json", file)
    assert then.returncode == 0, then.stderr
    found = json.loads(file.read_text())
    assert found["crc32"] == reference_crc32(50, 64, dtype, 73)
    assert (found["sweeps"], found["sweeps_done"], found["dtype"]) == (40, 73, dtype)
    assert [norm["sweep"] for norm in found["norms"]] == [40, 50, 60, 70]  # counted from the beginning
    field = stencil_field.made_rows(0, 50, 64, dtype)
    change = np.abs(reference(field, 40).astype(np.float64) - reference(field, 39).astype(np.float64))
    assert found["norms"][0]["max"] == change.max()
    assert not stencil_checkpoint.partial_of(checkpoint).exists()


def test_a_checkpoint_that_does_not_come_to_its_end_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "field.h5"
    old = np.arange(12.0).reshape(3, 4)
    stencil_checkpoint.write_checkpoint(path, old, 7)
    stencil_checkpoint.begin_checkpoint(path, 3, 4, "fp64", 8)
    stencil_checkpoint.fill_checkpoint(path, 0, old[:2] + 1)
    found = stencil_checkpoint.open_checkpoint(path)
    assert (found.rows, found.columns, found.dtype, found.sweeps_done) == (3, 4, "fp64", 7)
    assert found.read(0, 3).tobytes() == old.tobytes()
    stencil_checkpoint.write_checkpoint(path, old + 1, 8)  # what was left is no hindrance
    assert stencil_checkpoint.open_checkpoint(path).read(1, 3).tobytes() == (old + 1)[1:].tobytes()


@pytest.mark.parametrize("content", ["nothing", "text", "other", "cut"])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "field.h5"
    if content == "text":
        path.write_text("a field")
    elif content == "other":
        with h5py.File(path, "w") as file:
            file["field"] = np.ones((3, 3))
    elif content == "cut":
        stencil_checkpoint.write_checkpoint(path, np.ones((300, 300)), 1)
        path.write_bytes(path.read_bytes()[:5000])
    done = command("--restart", path)
    assert done.returncode == 2
    assert "checkpoint" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


FLIPS = int(os.environ.get("NANET_TEST_FLIPS", "200"))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_bit_that_changed_anywhere_is_refused(tmp_path: Path, seed: int) -> None:
    """Half of them each; 1,000 with NANET_TEST_FLIPS=1000."""
    path = tmp_path / "field.h5"
    stencil_checkpoint.write_checkpoint(path, np.linspace(1, 2, 35).reshape(5, 7), 9)
    whole = path.read_bytes()
    assert stencil_checkpoint.open_checkpoint(path).sweeps_done == 9
    bits = np.random.default_rng(seed).choice(8 * len(whole), FLIPS // 2, replace=False).tolist()
    for bit in [*range(8), 8 * stencil_checkpoint.HEAD_BYTES - 1, 8 * len(whole) - 1, *bits]:
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(SetupError, match=r"is not as it was written \(|is not taken \(it has no digest"):
            stencil_checkpoint.open_checkpoint(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(SetupError, match="is not as it was written"):
        stencil_checkpoint.open_checkpoint(path)


def test_a_checkpoint_without_a_digest_is_named_as_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "field.h5"
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "nanet stencil checkpoint 1"
        file.attrs["sweeps_done"] = 5
        file["field"] = np.ones((3, 3))
    done = command("--restart", path)
    assert done.returncode == 2
    assert "is not taken (it has no digest: an older nanet or another program wrote it)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e31])
def test_a_field_with_what_is_no_number_is_refused_before_the_work(tmp_path: Path, value: float) -> None:
    path = tmp_path / "field.h5"
    field = np.ones((9, 8))
    field[4, 3] = value
    stencil_checkpoint.write_checkpoint(path, field, 1)
    with pytest.raises(SetupError, match=rf"cannot be swept \(row 4, column 3 is {re.escape(str(value))}"):
        stencil_checkpoint.open_checkpoint(path).read(2, 9)
    assert stencil_checkpoint.open_checkpoint(path).read(0, 4).shape == (4, 8)


@pytest.mark.parametrize("option", ["--checkpoint", "--plot"])
@pytest.mark.parametrize("kind", ["folder", "below a file"])
def test_what_cannot_be_written_is_said_before_the_work(tmp_path: Path, option: str, kind: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path if kind == "folder" else tmp_path / "file" / "field"
    done = command("--size", "3x3", option, path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"cannot write {path} (" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_checkpoint_is_never_written_through_a_link(tmp_path: Path) -> None:
    path, other = tmp_path / "field.h5", tmp_path / "other"
    other.write_text("of another")
    stencil_checkpoint.partial_of(path).symlink_to(other)
    stencil_checkpoint.write_checkpoint(path, np.ones((3, 3)), 1)
    assert other.read_text() == "of another"
    assert stencil_checkpoint.open_checkpoint(path).rows == 3


def test_checkpoints_are_written_when_they_are_due(tmp_path: Path) -> None:
    saved: list[int] = []
    plan = Plan(25, sweeps_done=6, sweeps_at_once=7, checkpoint_every=10, has_checkpoint=True)
    sweeps = Halving()
    driven = drive(sweeps, plan, saved.append)
    assert saved == [10, 20, 30, 31]
    assert (driven.sweeps_done, driven.checkpoints, sum(sweeps.steps)) == (31, 4, 25)


class Halving:
    """Changes by half as much each time."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def advance(self, sweeps: int) -> list[Norm]:
        self.steps.append(sweeps)
        done = sum(self.steps)
        return [(sweep, 0.5**sweep, 0.0) for sweep in range(done - sweeps + 1, done + 1) if sweep % 4 == 0]


def test_it_ends_at_the_norm() -> None:
    sweeps = Halving()
    driven = drive(sweeps, Plan(1000, sweeps_at_once=50, norm_every=4, until=0.001), lambda done: None)
    assert driven.converged
    assert driven.sweeps_done == 12  # 2^-12 is the first multiple of four below
    with pytest.raises(SetupError, match="none is taken"):
        drive(sweeps, Plan(10, until=0.1), lambda done: None)
    with pytest.raises(SetupError, match="no file is named"):
        drive(sweeps, Plan(10, checkpoint_every=5), lambda done: None)


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_command_ends_at_the_norm(tmp_path: Path, record_property: object, ranks: int) -> None:
    if ranks > 1 and not can_move_tiles(record_property):  # type: ignore[arg-type]
        return
    file = tmp_path / "result.json"
    given = ("--size", "20x20", "--sweeps", 10**6, "--norm-every", 25, "--until", 1e-3, "--ranks", ranks, "--json", file)
    done = command(*given, "--progress")
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())
    assert found["converged"]
    assert found["norms"][-1]["max"] <= 1e-3 < found["norms"][-2]["max"]
    assert found["crc32"] == reference_crc32(20, 20, "fp64", found["sweeps"])
    assert "the norm reached 0.001" in done.stdout
    assert "change" in done.stderr  # the bar
    assert command(*given, "--no-progress").stderr == ""


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_picture_shows_the_field(tmp_path: Path, record_property: object, ranks: int) -> None:
    if ranks > 1 and not can_move_tiles(record_property):  # type: ignore[arg-type]
        return
    path = tmp_path / "field.png"
    done = command("--size", "40x1500", "--sweeps", 30, "--ranks", ranks, "--plot", path)
    assert done.returncode == 0, done.stderr
    pixels = png_pixels(path.read_bytes())
    assert pixels.shape == (40, 1024, 3)
    assert pixels[0, 500].tolist() == list(stencil_field.COLOURS[-1])  # 2, the largest
    assert pixels[39, 500].tolist() == list(stencil_field.COLOURS[0])  # 1, the smallest
    greens = pixels[:, 500, 1].astype(int)
    assert (np.diff(greens) <= 0).all()  # colder and colder downwards


def test_a_picture_of_what_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "field.png"
    stencil_field.write_picture(path, np.array([[np.nan, 1.0], [np.inf, 2.0]]))
    assert png_pixels(path.read_bytes()).tolist() == [[[255] * 3, [68, 1, 84]], [[255] * 3, [253, 231, 37]]]
    stencil_field.write_picture(path, np.ones((2, 2)))
    assert len(np.unique(png_pixels(path.read_bytes()).reshape(-1, 3), axis=0)) == 1


def png_pixels(png: bytes) -> NDArray[np.uint8]:
    """Reads the one kind that is written: 8 bits of red, green and blue, filter 0."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        size = struct.unpack(">I", png[at : at + 4])[0]
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + data)
        chunks[name] = data
        at += 12 + size
    width, height, *kind = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert kind == [8, 2, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)
