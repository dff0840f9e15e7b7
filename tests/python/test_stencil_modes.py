# SPDX-License-Identifier: Apache-2.0
"""`nanet stencil --mode paper` and `stream`: the bits, the keys, what does not fit, an owner that dies."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from make_json_page import differences
from nanet import SetupError
from nanet.stencil import modes
from nanet.stencil.keys import MovedTilesResult
from nanet.stencil.owner import TileOwner
from nanet.stencil.ranks import native_tiles
from stencil_reference import can_move_tiles, command, reference_crc32

ROOT = Path(__file__).resolve().parents[2]
Record = Callable[[str, object], None]


@pytest.mark.parametrize("mode", ["paper", "stream"])
@pytest.mark.parametrize(("dtype", "sweeps", "transports"), [("fp32", 1, ""), ("fp64", 3, ""), ("fp32", 8, "tcp")])
def test_a_moved_tile_has_the_bits_of_the_formula(
    tmp_path: Path, record_property: Record, mode: str, dtype: str, sweeps: int, transports: str
) -> None:
    if not can_move_tiles(record_property):
        return
    file = tmp_path / "moved.json"
    done = command("--mode", mode, "--tile", "1M,512K", "--chunk", "128K", "--dtype", dtype, "--sweeps", sweeps, "--json", file,
                   *(["--transports", transports, "--trust-network"] if transports else []))  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())
    assert [line["bytes"] for line in found["sizes"]] == [2**20, 2**19]
    for line in found["sizes"]:
        assert line["crc32"] == reference_crc32(line["rows"], line["columns"], dtype, line["sweeps_done"])
        assert line["seconds_total"] >= line["seconds_in"] + line["seconds_compute"] + line["seconds_out"]
        assert ("ratio_to_transfer" in line) == (mode == "stream")
    assert ("emulated" if transports else "one-sided") in found["path"]
    assert list(differences(found, MovedTilesResult)) == []
    assert f"{mode}: {dtype}, {sweeps} sweeps" in done.stdout


@pytest.mark.parametrize(
    ("options", "beside", "only"),
    [
        (("--mode", "paper", "--ranks", "2"), "--mode paper", "--mode resident"),
        (("--mode", "stream", "--size", "100"), "--mode stream", "--mode resident"),
        (("--mode", "stream", "--no-progress"), "--mode stream", "--mode resident"),
        (("--tile", "1M"), "--mode resident", "--mode paper or stream"),
        (("--chunk", "1M"), "--mode resident", "--mode paper or stream"),
        (("--gpus", "0,1"), "--device cpu", "--device gpu"),
    ],
)
def test_what_would_be_ignored_is_refused(options: tuple[str, ...], beside: str, only: str) -> None:
    done = command(*options)
    assert done.returncode == 2
    option = next(word for word in reversed(options) if word.startswith("--")).replace("--no-", "--")
    assert f"{option} together with {beside} (only {only} supports it) remove {option}" in done.stderr


def test_what_the_memory_does_not_hold_is_said(monkeypatch: pytest.MonkeyPatch, record_property: Record) -> None:
    if not can_move_tiles(record_property):
        return
    said: list[str] = []
    options = modes.ModeOptions("stream", (2**20, 2**40), repeats=1)
    found = modes.measure_modes(options, said.append)
    assert len(found["sizes"]) == len(said) == 1
    assert found["notes"][0].startswith("1048576 MiB not run: ")
    monkeypatch.setattr(modes, "available_bytes", lambda: 2**20)
    with pytest.raises(SetupError, match=r"no tile was moved \(1 MiB not run"):
        modes.measure_modes(modes.ModeOptions("paper", (2**20,)), said.append)


def test_an_owner_that_dies_ends_the_move(record_property: Record) -> None:
    if not can_move_tiles(record_property):
        return
    tiles = native_tiles()
    with TileOwner(64, 1000, "fp32", "", 3) as owner:
        mover = tiles.MoverF32(
            {"rows": 64, "columns": 1000, "address": "127.0.0.1", "port": owner.port, "transports": "", "trust_network": False, "token": 3, "timeout_ms": 5000,
             "chunk_bytes": 65536, "sweeps_per_pass": 1, "threads": 1, "cores": []}
        )  # fmt: skip
        mover.stream(1)
        os.kill(owner.pid, signal.SIGKILL)
        with pytest.raises(tiles.TransferError, match=r"rows of the tile cannot be (got|put) \(peer_lost"):
            stream_for_ever(mover)


def test_no_process_shows_a_token_in_its_command_line(record_property: Record) -> None:
    if not can_move_tiles(record_property):
        return
    token = 0x7E57AB1E0DDBA115
    with TileOwner(8, 8, "fp32", "", token) as owner:
        shown = Path(f"/proc/{owner.pid}/cmdline").read_text()
        assert "nanet.stencil.owner" in shown
        assert not any(text in shown for text in (str(token), f"{token:x}"))
        assert len(owner.crcs()) == 8 * 4  # it serves


def stream_for_ever(mover: Any) -> None:
    while True:
        mover.stream(1)


@pytest.mark.parametrize("text", ["", "64", "64M,", "4 G", "-1M"])
def test_sizes_are_numbers_with_units(text: str) -> None:
    with pytest.raises(SetupError, match=r"sizes .* are not valid"):
        modes.sizes_of(text)


def test_sizes_of_the_paper_s_table() -> None:
    sizes = modes.sizes_of("64M,128M,256M,512M,1G,2G,4G")
    assert sizes == tuple(2**26 << power for power in range(7))
