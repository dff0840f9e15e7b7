# SPDX-License-Identifier: Apache-2.0
"""nanet.stencil.gpu: on the GPU if there is one and GPU code, and always with a stand-in for the native part that sweeps on the CPU."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_json_page import differences
from nanet import SetupError, _core
from nanet.cli.app import app
from nanet.machine.gpu_driver import ask_driver
from nanet.stencil import cpu, gpu
from nanet.stencil.keys import GpuStencilResult
from numpy.typing import DTypeLike, NDArray
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]


class StandIn:
    """The native classes as nanet.stencil.gpu uses them; a copy is said to move 1 GB/s."""

    def __init__(self, config: dict[str, Any], tile: NDArray[Any] | None = None) -> None:
        self.config, self.tile, self.sweeps = config, tile, 0
        self.field: NDArray[Any] = np.empty(0)
        self.is_direct = len(config.get("devices", ())) > 1

    def load(self, field: NDArray[Any]) -> None:
        self.field, self.sweeps = field.copy(), 0

    def store(self) -> NDArray[Any]:
        return self.field.copy()

    def run(self, sweeps: int) -> list[tuple[int, float, float]]:
        norms = []
        for _ in range(sweeps):
            swept = cpu.jacobi(self.field, 1, norm_every=1, pinned=False)
            self.field, self.sweeps = swept.field, self.sweeps + 1
            if self.config["norm_every"] and self.sweeps % self.config["norm_every"] == 0:
                norms.append((self.sweeps, *swept.norms[0].tolist()[1:]))
        return norms

    def copy(self) -> tuple[int, float]:
        return 2 * 10**9, 2.0

    def transfer(self) -> tuple[float, float, float, float]:
        return 1.0, 0.0, 1.0, 1.0

    def stream(self, sweeps: int) -> tuple[float, float, float, float]:
        assert self.tile is not None
        self.tile[:] = cpu.jacobi(self.tile, sweeps).field
        return 1.0, 0.5, 1.0, 1.25

    move_sweep_move = stream


def has_gpu() -> bool:
    return hasattr(_core, "GpuJacobiF32") and len(ask_driver().gpus) > 0


@pytest.fixture(params=["stand-in", "GPU"])
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "GPU" and not has_gpu():
        warnings.warn("NOT RUN: the stencil on a GPU from Python (no GPU, or no GPU code)", stacklevel=1)
    if request.param == "stand-in" or not has_gpu():
        for name in ("GpuJacobiF32", "GpuJacobiF64", "GpuJacobiTileF32", "GpuJacobiTileF64"):
            monkeypatch.setattr(_core, name, StandIn, raising=False)
    return str(request.param)


def made_up(shape: tuple[int, int], dtype: DTypeLike) -> NDArray[Any]:
    return np.random.default_rng(shape[0]).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bits_are_those_of_the_cpu(native: str, dtype: DTypeLike) -> None:
    field = made_up((41, 67), dtype)
    before = field.copy()
    for sweeps_per_pass in (1, 4, 8):
        wanted = cpu.jacobi(field, 13, norm_every=4)
        found = gpu.jacobi(field, 13, sweeps_per_pass=sweeps_per_pass, norm_every=4)
        assert found.field.dtype == field.dtype
        assert found.field.tobytes() == wanted.field.tobytes()
        assert found.norms.tobytes() == wanted.norms.tobytes()
    assert field.tobytes() == before.tobytes()
    assert gpu.jacobi(np.asfortranarray(field), 3).field.tobytes() == cpu.jacobi(field, 3).field.tobytes()


@pytest.mark.parametrize("mode", ["resident", "paper", "stream"])
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_what_is_measured(native: str, mode: str, dtype: str) -> None:
    norm_every = 5 if mode == "resident" else 0
    options = gpu.GpuStencilOptions(70, 90, dtype, sweeps=10, norm_every=norm_every, mode=mode)
    result = gpu.measure(options)
    start = np.ones((70, 90), {"fp32": np.float32, "fp64": np.float64}[dtype])
    start[0] = 2
    assert result["mean"] == cpu.jacobi(start, 10).field.mean(dtype=np.float64)
    assert [norm["sweep"] for norm in result["norms"]] == ([5, 10] if norm_every else [])
    seconds = result["seconds_compute" if mode == "resident" else "seconds_total"]
    assert result["updates_per_s"] == pytest.approx(68 * 88 * 10 / seconds)
    assert result["fraction_of_copy_bandwidth"] == pytest.approx(
        result["updates_per_s"] * 2 * start.itemsize / result["copy_bytes_per_s"]
    )
    for key in ("seconds_in", "seconds_compute", "seconds_out"):
        assert 0 < result[key] <= result["seconds_total"]
    assert list(differences(result, GpuStencilResult)) == []
    lines = "\n".join(gpu.lines_of(result))
    assert f"70 x 90 {dtype}, 10 sweeps, 8 a pass, GPU 0, {mode}\n" in lines
    assert ("sweep        5: change max" in lines) == (norm_every > 0)
    assert ("of the transfer alone" in lines) == (mode != "resident")
    if mode == "resident":
        assert result["ratio_to_transfer"] is None
    else:
        assert result["ratio_to_transfer"] == pytest.approx(result["seconds_total"] / result["seconds_transfer_alone"])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: gpu.jacobi(np.ones(4), 1), "an array float64 of 1 dimensions cannot be swept"),
        (lambda: gpu.jacobi(np.ones((4, 4), np.int32), 1), "an array int32 of 2 dimensions cannot be swept"),
        (lambda: gpu.jacobi(np.ones((4, 4)), -1), "-1 sweeps are not possible"),
        (lambda: gpu.jacobi(np.ones((4, 4)), 1, sweeps_per_pass=9), "9 sweeps per pass are not possible on a GPU"),
        (lambda: gpu.jacobi(np.ones((4, 4)), 1, norm_every=-2), "a norm every -2 sweeps cannot be taken"),
        (lambda: gpu.gpus_of("0,"), "GPUs 0, are not valid"),
        (lambda: measured(rows=2), "2 x 16384 cells for 1000 sweeps cannot be measured"),
        (lambda: measured(mode="both"), "mode both is none"),
        (lambda: measured(dtype="fp16"), "dtype fp16 cannot be swept"),
        (lambda: measured(rows=9, columns=9, mode="stream", norm_every=1), "mode stream is not possible with norms"),
        (lambda: measured(rows=9, columns=9, mode="paper", gpus=(0, 1)), "mode paper is not possible on 2 GPUs"),
    ],
)
def test_refusals_say_problem_reason_and_suggestion(call: Callable[[], object], text: str) -> None:
    with pytest.raises(SetupError) as refused:
        call()
    assert re.fullmatch(re.escape(text) + r" \(.+\) .+", str(refused.value)), refused.value


def measured(**options: Any) -> dict[str, Any]:
    return gpu.measure(gpu.GpuStencilOptions(**options))


def test_a_list_of_gpus() -> None:
    assert (gpu.gpus_of("3"), gpu.gpus_of("0,1,11")) == ((3,), (0, 1, 11))


def test_a_build_without_gpu_code_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(_core, "GpuJacobiF64", raising=False)
    with pytest.raises(SetupError, match=r"^GPU: this build cannot sweep there \(it has no GPU code\) build nanet with make cuda"):
        gpu.jacobi(np.ones((4, 4)), 1)


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the stand-in, since what it says is the same: 8 sweeps a pass unless told otherwise, and the file."""
    monkeypatch.setattr(_core, "GpuJacobiF64", StandIn, raising=False)
    words = ["stencil", "--device", "gpu", "--size", "9x11", "--dtype", "fp64", "--sweeps", "3", "--json", str(tmp_path / "a.json")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "9 x 11 fp64, 3 sweeps, 8 a pass, GPU 0, resident\n" in done.output
    assert json.loads((tmp_path / "a.json").read_text())["device"] == "gpu"


@pytest.mark.parametrize("option", [["--until", "1e-6"], ["--checkpoint", "a.h5"], ["--ranks", "2"], ["--no-pin"]])
def test_what_only_the_cores_have_is_refused(option: list[str]) -> None:
    done = CliRunner().invoke(app, ["stencil", "--device", "gpu", "--size", "9x11", *option])
    assert done.exit_code != 0
    assert str(done.exception).endswith(
        f"together with --device gpu (only --device cpu supports it) remove {option[0].replace('--no-pin', '--pin')}"
    )


def test_of_several_gpus_each_has_two_shares() -> None:
    assert gpu._shares(1000, 8, (3,)) == [3]
    assert gpu._shares(34, 8, (0, 1)) == [0, 0, 1, 1]
    assert gpu._shares(33, 8, (0, 1)) == [0, 1]  # too few rows for four halos
