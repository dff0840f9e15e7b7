# SPDX-License-Identifier: Apache-2.0
"""`nanet stencil --over torus`: ranks that are nodes of a simulated torus have the bits, norms and checkpoints of one process, and of ranks over remote memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nanet import SetupError
from nanet.cli import main
from nanet.stencil import over_torus
from nanet.stencil.cpu import StencilOptions, measure
from nanet.stencil.over_torus import run_ranks_over_torus
from nanet.stencil.ranks import RankOptions, run_ranks
from nanet.torus import native_torus
from stencil_reference import can_move_tiles, reference_crc32

Record = Callable[[str, object], None]


def can_simulate(record_property: Record) -> bool:
    """Where it cannot, the summary of the tests counts the test as not run."""
    try:
        native_torus()
    except SetupError as error:
        record_property("not_run", f"a test of ranks over the torus ({error})")
        return False
    return True


@pytest.mark.parametrize(("dtype", "ranks", "halo_rows"), [("fp64", 2, None), ("fp32", 5, 3), ("fp64", 1, None)])
def test_ranks_over_the_torus_give_the_bits_and_norms_of_one_process(
    record_property: Record, dtype: str, ranks: int, halo_rows: int | None
) -> None:
    if not can_simulate(record_property):
        return
    options = StencilOptions(31, 40, dtype, 17, norm_every=5, threads=1, pinned=False)
    found = run_ranks_over_torus(options, RankOptions(halo_rows=halo_rows), ranks)
    alone = measure(options)
    assert found["crc32"] == alone["crc32"] == reference_crc32(31, 40, dtype, 17)
    assert found["norms"] == alone["norms"]
    assert len(found["norms"]) == 3
    assert (found["ranks"], found["halo_rows"]) == (ranks, halo_rows or 4)
    if ranks == 1:
        assert found["exchanges"] == 0
    else:
        assert found["exchanges"] >= 17 // found["halo_rows"]
        assert found["exchange_cycles"] > 60  # what a small PUT takes to a neighbour
    assert found["path"].startswith("PUT in a simulated torus of ")


def test_ranks_over_remote_memory_have_the_same_bits_and_norms(record_property: Record) -> None:
    if not can_simulate(record_property) or not can_move_tiles(record_property):
        return
    options = StencilOptions(24, 50, "fp32", 13, norm_every=4, threads=1, pinned=False)
    over_memory = run_ranks(options, RankOptions(halo_rows=3), 3)
    over_torus = run_ranks_over_torus(options, RankOptions(halo_rows=3), 3)
    assert (over_torus["crc32"], over_torus["norms"]) == (over_memory["crc32"], over_memory["norms"])
    assert over_memory["path"] != over_torus["path"]


def test_what_an_exchange_takes_is_always_the_same(record_property: Record) -> None:
    if not can_simulate(record_property):
        return
    options = StencilOptions(20, 64, "fp64", 8, threads=1, pinned=False)
    cycles = [run_ranks_over_torus(options, RankOptions(halo_rows=2), 4)["exchange_cycles"] for _ in range(2)]
    assert cycles[0] == cycles[1]


def test_the_command_goes_on_from_a_checkpoint(
    tmp_path: Path, record_property: Record, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_simulate(record_property):
        return
    given = ["stencil", "--over", "torus", "--threads", "1", "--no-pin", "--no-progress", "--json", str(tmp_path / "out.json")]
    begin = [*given, "--ranks", "2", "--size", "20x33", "--sweeps", "7", "--checkpoint", str(tmp_path / "field.h5")]
    assert run(begin, monkeypatch) == 0
    assert run([*given, "--ranks", "3", "--restart", str(tmp_path / "field.h5"), "--sweeps", "6"], monkeypatch) == 0
    found: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    assert found["crc32"] == reference_crc32(20, 33, "fp64", 13)
    said = capsys.readouterr().out
    assert "over PUT in a simulated torus of 3x1x1" in said
    assert "cycles (" in said


def test_a_rank_that_fails_ends_the_others(record_property: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: without that they would wait for it, each up to the time limit."""
    if not can_simulate(record_property):
        return

    def sweep(rank: Any, sweeps: int) -> None:
        if rank.own[0] > 10:
            raise OSError("this rank is out of order")
        rank._native.run(sweeps)

    monkeypatch.setattr(over_torus._Rank, "run", sweep, raising=False)
    with pytest.raises(OSError, match="this rank is out of order"):
        run_ranks_over_torus(StencilOptions(30, 20, "fp64", 40, threads=1, pinned=False), RankOptions(timeout_s=10_000), 2)


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["nanet", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_what_cannot_be_is_refused(
    record_property: Record, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for more, text in (
        (["--transports", "tcp"], "--transports together with --over torus (only --over memory supports it) remove --transports"),
        (["--ranks", "env"], "--ranks env together with --over torus (its ranks are threads of one process) give a number"),
        (["--mode", "paper"], "--over together with --mode paper (only --mode resident supports it) remove --over"),
        (["--device", "gpu"], "--over together with --device gpu (only --device cpu supports it) remove --over"),
    ):
        assert run(["stencil", "--over", "torus", *more], monkeypatch) == 2
        assert text in capsys.readouterr().err
    if not can_simulate(record_property):
        return
    for options, ranks, text in (
        (StencilOptions(200, 10, "fp64", 1, threads=1), 65, "65 ranks cannot be nodes of the torus (there are 1 to 64"),
        (StencilOptions(64, 60_000, "fp64", 1, threads=1), 2, "halos of 1920256 B cannot be had over the torus (a node has"),
        (StencilOptions(3, 10, "fp64", 1, threads=1), 3, "3 rows cannot be swept by 3 ranks"),
    ):
        with pytest.raises(SetupError) as refused:
            run_ranks_over_torus(options, RankOptions(), ranks)
        assert str(refused.value).startswith(text)


def test_without_a_verilator_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanet._torus", None)
    with pytest.raises(SetupError) as refused:
        run_ranks_over_torus(StencilOptions(), RankOptions(), 2)
    assert str(refused.value) == "this nanet simulates no torus (it was built without a Verilator) run make links in a clone"
