# SPDX-License-Identifier: Apache-2.0
"""Five-point Jacobi sweeps on GPUs: `nanet.stencil.gpu.jacobi`, and the measurement of `nanet stencil --device gpu`.

The formula, and the bits of field and norms, are those of `nanet.stencil`. docs/design/stencil-gpu.md says how it is done.
"""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet import _core
from nanet._core import SetupError
from nanet.result import files
from nanet.stencil.cpu import NORM, Swept
from nanet.stencil.keys import GpuFigures, GpuStencilResult, norm_keys

__all__ = ["GpuStencilOptions", "gpus_of", "jacobi", "lines_of", "measure"]

MODES = ("resident", "paper", "stream")
DTYPES: dict[str, np.dtype[Any]] = {"fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64)}
COPIES = 5  # before the sweeps and after; the quickest counts
UPDATES_A_CALL = 5e11  # about a second of a GPU, then Ctrl-C is seen


def jacobi(field: NDArray[Any], sweeps: int, *, sweeps_per_pass: int = 8, norm_every: int = 0, gpus: Sequence[int] = (0,)) -> Swept:
    """Sweeps `field` on GPUs and returns the result; `field` stays as it is.

    field: float32 or float64 [rows, columns], boundary included, in the host's memory.
    sweeps: how many, 0 and more.
    sweeps_per_pass: 1 to 8, how many sweeps each time the field goes through memory; the result is the same.
    norm_every: take the norm of every so manieth sweep; 0: none.
    gpus: as CUDA counts them; each takes a part of the rows.
    Memory of the GPUs: two fields. Raises SetupError, a ValueError; also where there is no GPU, or no GPU code.
    """
    field = np.asarray(field)
    if field.ndim != 2 or field.dtype not in DTYPES.values():
        raise SetupError(
            f"an array {field.dtype} of {field.ndim} dimensions cannot be swept (rows and columns of float32 or float64 can)"
            " convert it with astype and reshape"
        )
    sweeps = operator.index(sweeps)
    _check(sweeps >= 0, f"{sweeps} sweeps are not possible", "0 and more are", "give another number")
    native = _resident(field.shape, field.dtype, sweeps_per_pass, norm_every, gpus)
    native.load(np.ascontiguousarray(field))
    norms = _run(native, field.size, sweeps, sweeps_per_pass)
    return Swept(native.store(), np.array(norms, dtype=NORM))


@dataclass(frozen=True)
class GpuStencilOptions:
    """What `nanet stencil --device gpu` measures."""

    rows: int = 16384
    columns: int = 16384
    dtype: str = "fp32"
    sweeps: int = 1000
    sweeps_per_pass: int = 8
    norm_every: int = 0
    gpus: tuple[int, ...] = (0,)
    mode: str = "resident"
    """resident: the field stays on the GPUs; paper: it goes in whole, is swept, comes out whole; stream: the same in chunks."""
    chunk_bytes: int = 0
    """In mode stream, what is in flight at a time; 0: chosen."""


def gpus_of(text: str) -> tuple[int, ...]:
    """The numbers of `0` or `0,1`. Raises SetupError."""
    _check(
        re.fullmatch(r"\d{1,4}(,\d{1,4})*", text) is not None,
        f"GPUs {text} are not valid",
        "they are numbers separated by commas",
        "write 0 or 0,1",
    )
    return tuple(map(int, text.split(",")))


def measure(options: GpuStencilOptions) -> GpuStencilResult:
    """Sweeps a field as `options` say; the keys are those of docs/json.md. The field is 1, and 2 along the first row."""
    inner = max(options.rows - 2, 0) * max(options.columns - 2, 0)
    text = f"{options.rows} x {options.columns} cells for {options.sweeps} sweeps cannot be measured"
    _check(inner > 0 and options.sweeps > 0, text, "there would be nothing to do", "give 3 x 3 cells or more, and 1 sweep or more")
    _check(options.mode in MODES, f"mode {options.mode} is none", "resident, paper and stream are", "give one of these")
    _check(options.dtype in DTYPES, f"dtype {options.dtype} cannot be swept", "fp32 and fp64 can", "give one of these")
    field = np.ones((options.rows, options.columns), DTYPES[options.dtype])
    field[0] = 2
    found = _measure_resident(options, field) if options.mode == "resident" else _measure_moved(options, field)
    seconds = found["seconds_compute"] if options.mode == "resident" else found["seconds_total"]
    updates_per_s = inner * options.sweeps / seconds
    return {
        **files.base("stencil"),
        "device": "gpu",
        "mode": options.mode,
        "gpus": list(options.gpus),
        "rows": options.rows,
        "columns": options.columns,
        "dtype": options.dtype,
        "sweeps": options.sweeps,
        "sweeps_per_pass": options.sweeps_per_pass,
        "updates_per_s": updates_per_s,
        "fraction_of_copy_bandwidth": updates_per_s * 2 * field.itemsize / found["copy_bytes_per_s"],
        **found,
    }


def lines_of(result: GpuStencilResult) -> list[str]:
    """What `nanet stencil --device gpu` prints of a result of `measure`."""
    lines = [f"sweep {norm['sweep']:>8}: change max {norm['max']:.6e}  L2 {norm['l2']:.6e}" for norm in result["norms"]]
    where = f"GPU {', '.join(map(str, result['gpus']))}, {result['mode']}"
    lines.append(
        f"{result['rows']} x {result['columns']} {result['dtype']}, {result['sweeps']} sweeps, {result['sweeps_per_pass']} a pass, {where}"
    )
    lines.append(
        f"{result['updates_per_s'] / 1e9:.1f} Gupdate/s; in {result['seconds_in']:.4f} s, compute {result['seconds_compute']:.4f} s,"
        f" out {result['seconds_out']:.4f} s, in total {result['seconds_total']:.4f} s"
    )
    if result["ratio_to_transfer"] is not None:
        lines.append(
            f"{result['ratio_to_transfer']:.3f} of the transfer alone, in and out at once ({result['seconds_transfer_alone']:.4f} s)"
        )
    lines.append(
        f"{result['fraction_of_copy_bandwidth']:.2f} of a copy in the GPU's memory ({result['copy_bytes_per_s'] / 1e9:.0f} GB/s;"
        " an update counted as one read and one write)"
    )
    return lines + [f"note: {note}" for note in result["notes"]]


def _measure_resident(options: GpuStencilOptions, field: NDArray[Any]) -> GpuFigures:
    begin_s = time.perf_counter()
    native = _resident(field.shape, field.dtype, options.sweeps_per_pass, options.norm_every, options.gpus)
    loading_s = time.perf_counter()
    native.load(field)
    loaded_s = time.perf_counter()
    copies = _copy_bytes_per_s(native)
    sweeping_s = time.perf_counter()
    norms = _run(native, field.size, options.sweeps, options.sweeps_per_pass)
    swept_s = time.perf_counter()
    field = native.store()
    stored_s = time.perf_counter()
    return {
        "norms": [norm_keys(norm) for norm in norms],
        "mean": float(field.mean(dtype=np.float64)),
        "seconds_in": loaded_s - loading_s,
        "seconds_compute": swept_s - sweeping_s,
        "seconds_out": stored_s - swept_s,
        "seconds_total": loaded_s - begin_s + stored_s - sweeping_s,
        "seconds_transfer_alone": None,
        "ratio_to_transfer": None,
        "copy_bytes_per_s": max(copies, _copy_bytes_per_s(native)),
        "direct": native.is_direct,
        "notes": [] if len(options.gpus) == 1 or native.is_direct else ["rows at the seams go from GPU to GPU through the host"],
    }


def _measure_moved(options: GpuStencilOptions, field: NDArray[Any]) -> GpuFigures:
    text = f"mode {options.mode} is not possible"
    _check(
        options.norm_every == 0,
        f"{text} with norms",
        "the tile is nowhere whole while it is swept",
        "remove them, or stay resident",
    )
    _check(len(options.gpus) == 1, f"{text} on {len(options.gpus)} GPUs", "a tile goes through one", "name one GPU")
    copies = _copy_bytes_per_s(_resident(field.shape, field.dtype, options.sweeps_per_pass, 0, options.gpus))
    kind = _native("GpuJacobiTileF32" if field.dtype == DTYPES["fp32"] else "GpuJacobiTileF64")
    config = {
        "sweeps_per_pass": _sweeps_per_pass(options.sweeps_per_pass),
        "device": options.gpus[0],
        "chunk_bytes": options.chunk_bytes,
    }
    tile = kind(config, field)
    *_, transfer_s = min((tile.transfer() for _ in range(3)), key=lambda times: times[3])
    move = tile.stream if options.mode == "stream" else tile.move_sweep_move
    in_s, compute_s, out_s, total_s = move(options.sweeps)
    return {
        "norms": [],
        "mean": float(field.mean(dtype=np.float64)),
        "seconds_in": in_s,
        "seconds_compute": compute_s,
        "seconds_out": out_s,
        "seconds_total": total_s,
        "seconds_transfer_alone": transfer_s,
        "ratio_to_transfer": total_s / transfer_s,
        "copy_bytes_per_s": copies,
        "direct": False,
        "notes": ["in, compute and out overlap: their sum is more than the total"] if options.mode == "stream" else [],
    }


def _native(name: str) -> Callable[..., Any]:
    kind: Callable[..., Any] | None = getattr(_core, name, None)
    if kind is None:
        raise SetupError("GPU: this build cannot sweep there (it has no GPU code) build nanet with make cuda, or take the CPU")
    return kind


def _sweeps_per_pass(value: int) -> int:
    value = operator.index(value)
    _check(
        1 <= value <= 8,
        f"{value} sweeps per pass are not possible on a GPU",
        "the rows between have to stay in registers: 1 to 8",
        "give 8",
    )
    return value


def _resident(shape: tuple[int, ...], dtype: np.dtype[Any], sweeps_per_pass: int, norm_every: int, gpus: Sequence[int]) -> Any:
    norm_every = operator.index(norm_every)
    _check(norm_every >= 0, f"a norm every {norm_every} sweeps cannot be taken", "0 is none, 1 is every sweep", "give 0 or more")
    config = {
        "rows": shape[0],
        "columns": shape[1],
        "sweeps_per_pass": _sweeps_per_pass(sweeps_per_pass),
        "norm_every": norm_every,
        "devices": _shares(shape[0], sweeps_per_pass, gpus),
    }
    return _native("GpuJacobiF32" if dtype == DTYPES["fp32"] else "GpuJacobiF64")(config)


def _shares(rows: int, sweeps_per_pass: int, gpus: Sequence[int]) -> list[int]:
    """The GPU of each share of the rows: of several GPUs each takes two, so that one fills the other's end (docs/design/stencil-gpu.md)."""
    each = [operator.index(gpu) for gpu in gpus]
    twice = [gpu for gpu in each for _ in range(2)]
    return twice if len(each) > 1 and rows - 2 >= len(twice) * sweeps_per_pass else each


def _run(native: Any, cells: int, sweeps: int, sweeps_per_pass: int) -> list[tuple[int, float, float]]:
    """In calls of about a second, each of whole passes."""
    at_once = (1 + int(UPDATES_A_CALL / (max(cells, 10**6) * sweeps_per_pass))) * sweeps_per_pass
    norms = []
    for done in range(0, sweeps, at_once):
        norms += native.run(min(at_once, sweeps - done))
    return norms


def _copy_bytes_per_s(native: Any) -> float:
    return max(float(moved / seconds) for moved, seconds in (native.copy() for _ in range(COPIES)))


def _check(holds: bool, problem: str, why: str, suggestion: str) -> None:
    if not holds:
        raise SetupError(f"{problem} ({why}) {suggestion}")
