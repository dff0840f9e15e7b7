# SPDX-License-Identifier: Apache-2.0
"""nanet.stencil against plain numpy, bit for bit, and the command `nanet stencil`."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_json_page import differences
from nanet import SetupError
from nanet.stencil import cpu
from nanet.stencil import field as stencil_field
from nanet.stencil.keys import SweptResult
from numpy.typing import DTypeLike, NDArray
from stencil_reference import command, reference

ROOT = Path(__file__).resolve().parents[2]
SHAPES = [(1, 1), (1, 33), (33, 1), (2, 7), (3, 3), (3, 129), (65, 3), (37, 53), (64, 64), (11, 601)]


def made_up(shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    random = np.random.default_rng(shape[0] * 1000 + shape[1])
    return (random.normal(size=shape) * 2.0 ** random.integers(-20, 20, size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bits_are_those_of_numpy(shape: tuple[int, int], dtype: DTypeLike) -> None:
    field = made_up(shape, dtype)
    before = field.copy()
    for sweeps in (0, 1, 9):
        wanted = reference(field, sweeps)
        for threads, sweeps_per_pass in itertools.product((1, 2, 3), range(1, 9)):
            swept = cpu.jacobi(field, sweeps, threads=threads, sweeps_per_pass=sweeps_per_pass)
            assert swept.field.dtype == field.dtype
            assert swept.field.tobytes() == wanted.tobytes(), (sweeps, threads, sweeps_per_pass)
            assert len(swept.norms) == 0
    assert field.tobytes() == before.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_are_of_the_change_and_always_the_same(dtype: DTypeLike) -> None:
    field = made_up((41, 67), dtype)
    runs = [
        cpu.jacobi(field, 14, norm_every=4, threads=threads, sweeps_per_pass=sweeps_per_pass)
        for threads, sweeps_per_pass in itertools.product((1, 2, 3), (1, 3, 8))
    ]
    norms = runs[0].norms
    assert norms["sweep"].tolist() == [4, 8, 12]
    for sweep, largest, l2 in norms.tolist():
        change = np.abs(reference(field, sweep).astype(np.float64) - reference(field, sweep - 1).astype(np.float64))
        assert largest == change.max()
        assert l2 == pytest.approx(np.sqrt((change**2).sum()), rel=1e-12)
    for run in runs:
        assert run.norms.tobytes() == norms.tobytes()
        assert run.field.tobytes() == reference(field, 14).tobytes()


def test_any_layout_is_taken() -> None:
    field = made_up((20, 30), np.float64)
    wanted = reference(field, 5)
    assert cpu.jacobi(np.asfortranarray(field), 5).field.tobytes() == wanted.tobytes()
    assert cpu.jacobi(np.repeat(field, 2, axis=1)[:, ::2], 5, pinned=False).field.tobytes() == wanted.tobytes()


def test_the_threads_keep_to_the_cores_of_the_process() -> None:
    cores = os.sched_getaffinity(0)
    cpu.jacobi(np.ones((5, 5)), 1)
    assert os.sched_getaffinity(0) == cores


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cpu.jacobi(np.ones(4), 1), "an array float64 of 1 dimensions cannot be swept"),
        (lambda: cpu.jacobi(np.ones((4, 4), np.int32), 1), "an array int32 of 2 dimensions cannot be swept"),
        (lambda: cpu.jacobi(np.ones((4, 4), ">f8"), 1), "an array >f8 of 2 dimensions cannot be swept"),
        (lambda: cpu.jacobi(np.ones((0, 4)), 1), "a field of 0 x 4 cannot be swept"),
        (lambda: cpu.jacobi(np.ones((4, 4)), -1), "-1 sweeps are not possible"),
        (lambda: cpu.jacobi(np.ones((4, 4)), 1, sweeps_per_pass=0), "0 sweeps per pass are not possible"),
        (lambda: cpu.jacobi(np.ones((4, 4)), 1, sweeps_per_pass=33), "33 sweeps per pass are not possible"),
        (lambda: cpu.jacobi(np.ones((4, 4)), 1, norm_every=-2), "a norm every -2 sweeps cannot be taken"),
        (lambda: cpu.jacobi(np.ones((4, 4)), 1, threads=0), "0 threads are not possible"),
        (lambda: cpu.shape_of("8k"), "size 8k is not a size"),
        (lambda: cpu.measure(cpu.StencilOptions(rows=2, columns=9)), "2 x 9 cells for 100 sweeps cannot be measured"),
        (
            lambda: cpu.measure(cpu.StencilOptions(rows=10**7, columns=10**7)),
            "a field of 10000000 x 10000000 fp64 cannot be measured",
        ),
    ],
)
def test_refusals_say_problem_reason_and_suggestion(call: Callable[[], object], text: str) -> None:
    with pytest.raises(SetupError) as refused:
        call()
    assert re.fullmatch(re.escape(text) + r" \(.+\) .+", str(refused.value)), refused.value


def test_threads_that_cannot_be_started_are_refused() -> None:
    """There are 512 MiB of addresses left for 1024 stacks of 2 MiB and more."""
    program = (
        "import pathlib, resource, threading\n"
        "import numpy as np\n"
        "from nanet import SetupError, stencil\n"
        "used = int(pathlib.Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**29, used + 2**29))\n"
        "try:\n"
        "    stencil.jacobi(np.ones((4, 4)), 1, threads=1024)\n"
        "except SetupError as error:\n"
        "    print(error)\n"
        "print(threading.active_count(), stencil.jacobi(np.ones((4, 4)), 1, threads=2).field.sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, text=True, timeout=120)
    refusal, rest = done.stdout.splitlines()
    assert re.fullmatch(r"thread \d+ of 1024 cannot be started \(.+\) give fewer threads", refusal), done.stderr
    assert rest == "1 16.0"


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_the_command_writes_what_the_page_says(tmp_path: Path, dtype: str) -> None:
    file = tmp_path / "stencil.json"
    done = command("--size", "70x90", "--dtype", dtype, "--sweeps", 10, "--norm-every", 5, "--threads", 2, "--json", file)
    assert done.returncode == 0, done.stderr
    result = json.loads(file.read_text())
    assert list(differences(result, SweptResult)) == []
    start = stencil_field.made_rows(0, 70, 90, dtype)
    assert result["mean"] == reference(start, 10).mean(dtype=np.float64)
    assert [norm["sweep"] for norm in result["norms"]] == [5, 10]
    assert result["updates_per_s"] == pytest.approx(68 * 88 * 10 / result["seconds_compute"])
    assert result["fraction_of_copy_bandwidth"] == pytest.approx(
        result["updates_per_s"] * 2 * start.itemsize / result["copy_bytes_per_s"]
    )
    assert 0 < result["seconds_compute"] < result["seconds_total"]
    assert "Gupdate/s" in done.stdout


@pytest.mark.parametrize(("size", "notes"), [(2**10, 0), (2**16, 1), (0, 0)])
def test_a_field_that_fits_into_a_cache_is_noted(monkeypatch: pytest.MonkeyPatch, size: int, notes: int) -> None:
    monkeypatch.setattr(cpu, "cache_bytes", lambda level: size if level == 3 else 0)
    assert len(cpu.measure(cpu.StencilOptions(rows=20, columns=20, sweeps=3))["notes"]) == notes


def test_the_command_refuses_in_one_line() -> None:
    done = command("--size", "big")
    assert (done.returncode, done.stderr) == (
        2,
        "nanet: size big is not a size (a number, or ROWSxCOLUMNS) write 8192 or 4096x8192\n",
    )
