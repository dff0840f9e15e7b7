# SPDX-License-Identifier: Apache-2.0
"""Ranks that were started with different options: each refuses, before anything is swept, and says which rank and which option."""

from __future__ import annotations

import dataclasses
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from nanet import SetupError
from nanet.machine.ports import unused_port
from nanet.stencil.alike import check_alike, settings_of
from nanet.stencil.checkpoint import write_checkpoint
from nanet.stencil.cpu import StencilOptions, start_of
from nanet.stencil.ranks import RankOptions, run_rank
from nanet.stencil.rendezvous import SECRET, RankError, Rendezvous, place_of
from stencil_reference import words

# Fields of the options that say nothing of what is computed or said; whoever adds an option puts it here or into settings_of.
MAY_DIFFER = {"sweeps_per_pass", "threads", "pinned", "progress", "rendezvous", "address", "timeout_s"}
GIVEN = StencilOptions(rows=30, columns=20, sweeps=50)
OTHER: dict[str, StencilOptions | RankOptions] = {
    "--size 31x20, rank 0: 30x20": dataclasses.replace(GIVEN, rows=31),
    "--size 30x21, rank 0: 30x20": dataclasses.replace(GIVEN, columns=21),
    "--dtype fp32, rank 0: fp64": dataclasses.replace(GIVEN, dtype="fp32"),
    "--sweeps 80, rank 0: 50": dataclasses.replace(GIVEN, sweeps=80),
    "--norm-every 5, rank 0: 0": dataclasses.replace(GIVEN, norm_every=5),
    "--norm-every 5, rank 0: 0; --until 0.001, rank 0: not given": dataclasses.replace(GIVEN, norm_every=5, until=1e-3),
    "--checkpoint field.h5, rank 0: not given": dataclasses.replace(GIVEN, checkpoint=Path("field.h5")),
    "--plot given, rank 0: not given": dataclasses.replace(GIVEN, plot=Path("field.png")),
    "--halo-rows 4, rank 0: not given": RankOptions(halo_rows=4),
    "--transports posix, rank 0: not given": RankOptions(transports="posix"),
    "--trust-network given, rank 0: not given": RankOptions(trust_network=True),
}


def together(count: int, body: Callable[[int, RankOptions], object]) -> list[str]:
    """What each rank, a thread, was refused with."""
    said = [""] * count
    among = RankOptions(f"127.0.0.1:{unused_port(socket.SOCK_STREAM)}", timeout_s=20.0)

    def run(rank: int) -> None:
        try:
            body(rank, among)
        except (RankError, SetupError) as error:
            said[rank] = f"{type(error).__name__}: {error}"

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return said


@pytest.mark.parametrize("text", OTHER)
def test_a_rank_with_another_option_is_named_by_all(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(SECRET, "of this test")

    def body(rank: int, among: RankOptions) -> None:
        options, other = GIVEN, OTHER[text]
        if rank == 2 and isinstance(other, StencilOptions):
            options = other
        elif rank == 2 and isinstance(other, RankOptions):
            among = dataclasses.replace(other, rendezvous=among.rendezvous, timeout_s=among.timeout_s)
        run_rank(options, among, rank, 3)

    refusal = f"SetupError: rank 2 would not sweep what rank 0 does ({text}) start all ranks with the same options"
    assert together(3, body) == [refusal] * 3


@pytest.mark.parametrize(("first", "second"), [((1.5, 10), (1.5, 30)), ((1.5, 10), (1.75, 10)), ((1.5, 0), None)])
def test_checkpoints_are_compared_by_what_they_hold(
    tmp_path: Path, first: tuple[float, int], second: tuple[float, int] | None
) -> None:
    """Other sweeps, other cells, and one rank without any; the field has the same shape. Processes, as srun starts them."""
    files: list[list[object]] = [[], []]
    for rank, one in enumerate((first, second)):
        if one is not None:
            path = tmp_path / f"{rank}.h5"
            write_checkpoint(path, np.full((30, 20), one[0]), one[1])
            files[rank] = ["--restart", path]
    place = f"127.0.0.1:{unused_port(socket.SOCK_STREAM)}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMI"))}
    processes = [
        subprocess.Popen(
            words("--ranks", "env", "--rendezvous", place, "--size", "30x20", "--sweeps", 20, "--timeout", 20, *files[rank]),
            env=environment | {"SLURM_PROCID": str(rank), "SLURM_NTASKS": "2", SECRET: "of this test"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [2, 2], said
    assert said[0] == said[1]
    assert said[0].startswith("nanet: rank 1 would not sweep what rank 0 does (--restart "), said[0]
    assert f"a file of {first[1]} sweeps, digest " in said[0]
    assert (f"(--restart a file of {second[1]} sweeps, digest " if second else "(--restart not given, rank 0: ") in said[0]


def test_copies_of_a_checkpoint_are_alike(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "a.h5", np.ones((30, 20)), 10)
    (tmp_path / "b.h5").write_bytes((tmp_path / "a.h5").read_bytes())
    a, b = (dataclasses.replace(GIVEN, restart=tmp_path / name) for name in ("a.h5", "b.h5"))
    assert settings_of(a, RankOptions(), start_of(a)) == settings_of(b, RankOptions(), start_of(b))


def test_another_nanet_is_said() -> None:
    mine = settings_of(GIVEN, RankOptions(), start_of(GIVEN))
    for theirs, text in (
        ({**mine, "nanet": "0.0.1"}, "nanet 0.0.1, rank 0: "),
        (["node1", [0, 1]], "one of them is another nanet"),
    ):

        def body(rank: int, among: RankOptions, theirs: object = theirs) -> None:
            with Rendezvous(rank, 2, place_of(among.rendezvous), "", among.timeout_s, "s") as ranks:
                check_alike(ranks, mine) if rank == 0 else ranks.all(theirs)

        assert f"rank 1 would not sweep what rank 0 does ({text}" in together(2, body)[0]


@pytest.mark.parametrize("kind", [StencilOptions, RankOptions])
def test_every_option_is_compared_or_may_differ(tmp_path: Path, kind: type[StencilOptions] | type[RankOptions]) -> None:
    write_checkpoint(tmp_path / "a.h5", np.ones((30, 20)), 10)
    values: dict[str, object] = {
        "dtype": "fp32", "threads": 1, "pinned": False, "until": 0.5, "checkpoint": Path("a"), "restart": tmp_path / "a.h5", "plot": Path("a"),
        "progress": True, "rendezvous": "x:1", "address": "x", "transports": "tcp", "trust_network": True, "halo_rows": 4,
    }  # fmt: skip
    plain = dataclasses.replace(GIVEN, norm_every=1, checkpoint=Path("b"))
    for one in dataclasses.fields(kind):
        value = values.get(one.name, 77)
        options = dataclasses.replace(plain, **{one.name: value}) if kind is StencilOptions else plain
        among = RankOptions(**{one.name: value}) if kind is RankOptions else RankOptions()
        is_compared = settings_of(options, among, start_of(options)) != settings_of(plain, RankOptions(), start_of(plain))
        assert is_compared == (one.name not in MAY_DIFFER), one.name
