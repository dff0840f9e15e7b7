# SPDX-License-Identifier: Apache-2.0
"""Five-point Jacobi sweeps over an array on all cores: `nanet.stencil.jacobi`, and the measurement of `nanet stencil`.

    new[i, j] = (((old[i-1, j] + old[i+1, j]) + old[i, j-1]) + old[i, j+1]) / 4

The outermost rows and columns are the boundary and stay as they are. The bits of the result depend on the field and the number of
sweeps alone, not on the machine, the threads or the sweeps a pass. docs/design/stencil.md says how it is done.
"""

from __future__ import annotations

import operator
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet import _core, results
from nanet._core import SetupError
from nanet.config import online_cores
from nanet.machine import read_text

__all__ = ["NORM", "StencilOptions", "Swept", "cache_bytes", "field_of_size", "jacobi", "measure", "shape_of"]

NORM = np.dtype([("sweep", "<u8"), ("max", "<f8"), ("l2", "<f8")])
"""A norm of what one sweep changed: max |new - old|, and sqrt(sum (new - old)^2), over the inner cells."""

DTYPES: dict[str, np.dtype[Any]] = {"fp32": np.dtype(np.float32), "fp64": np.dtype(np.float64)}
COPIES = 5  # of each kind, before the sweeps and after; the quickest counts, as in STREAM
UPDATES_A_CALL = 2e9  # about a second of native work, then Ctrl-C is seen


@dataclass(frozen=True)
class Swept:
    """What `jacobi` returns."""

    field: NDArray[Any]
    """[rows, columns], of the type that went in; a new array."""
    norms: NDArray[np.void]
    """[sweeps // norm_every] of NORM; empty without norm_every."""


def jacobi(
    field: NDArray[Any],
    sweeps: int,
    *,
    sweeps_per_pass: int = 4,
    norm_every: int = 0,
    threads: int | None = None,
    pinned: bool = True,
) -> Swept:
    """Sweeps `field` and returns the result; `field` stays as it is.

    field: float32 or float64 [rows, columns], boundary included.
    sweeps: how many, 0 and more.
    sweeps_per_pass: 1 to 32, how many sweeps each time the field goes through memory; the result is the same.
    norm_every: take the norm of every so manieth sweep; 0: none.
    threads: by default one for each core that the process may use.
    pinned: each thread to its core; with more threads than cores none is.
    Memory: two more fields while it runs, and the result. Raises SetupError, a ValueError.
    """
    field = np.asarray(field)
    if field.ndim != 2 or field.dtype not in DTYPES.values():
        raise SetupError(
            f"an array {field.dtype} of {field.ndim} dimensions cannot be swept (rows and columns of float32 or float64 can)"
            " convert it with astype and reshape"
        )
    sweeps = operator.index(sweeps)
    _check(sweeps >= 0, f"{sweeps} sweeps cannot be done", "0 and more can", "give how many")
    native = _native(field, sweeps_per_pass, norm_every, threads, pinned)
    native.load(np.ascontiguousarray(field))
    norms = _run(native, field.shape, sweeps, sweeps_per_pass)
    return Swept(native.store(), np.array(norms, dtype=NORM))


@dataclass(frozen=True)
class StencilOptions:
    """What `nanet stencil` measures."""

    rows: int = 8192
    columns: int = 8192
    dtype: str = "fp64"
    sweeps: int = 100
    sweeps_per_pass: int = 4
    norm_every: int = 0
    threads: int | None = None
    pinned: bool = True


def shape_of(size: str) -> tuple[int, int]:
    """(rows, columns) of `8192` or `4096x8192`. Raises SetupError."""
    found = re.fullmatch(r"(\d{1,9})(?:x(\d{1,9}))?", size)
    if found is None:
        raise SetupError(f"size {size} is none (a number, or ROWSxCOLUMNS) write 8192 or 4096x8192")
    return int(found[1]), int(found[2] or found[1])


def field_of_size(rows: int, columns: int, dtype: str) -> NDArray[Any]:
    """The field that `nanet stencil` starts from: 1 inside and at three sides, 2 along the first row. Never near 0."""
    field = np.ones((rows, columns), DTYPES[dtype])
    field[0] = 2
    return field


def measure(options: StencilOptions) -> dict[str, Any]:
    """Sweeps a field as `options` say, with STREAM copies by the same threads before and after; the keys are those of docs/json.md."""
    inner = max(options.rows - 2, 0) * max(options.columns - 2, 0)
    text = f"{options.rows} x {options.columns} cells for {options.sweeps} sweeps cannot be measured"
    _check(inner > 0 and options.sweeps > 0, text, "there would be nothing to do", "give 3 x 3 cells or more, and 1 sweep or more")
    _check_memory(options)
    field = field_of_size(options.rows, options.columns, options.dtype)
    shape, cell_bytes, field_bytes = field.shape, field.itemsize, field.nbytes
    begin_s = time.perf_counter()
    native = _native(field, options.sweeps_per_pass, options.norm_every, options.threads, options.pinned)
    native.load(field)
    loaded_s = time.perf_counter() - begin_s
    del field  # so that there are never more than three
    copies = _copy_bytes_per_s(native)
    begin_s = time.perf_counter()
    norms = _run(native, shape, options.sweeps, options.sweeps_per_pass)
    compute_s = time.perf_counter() - begin_s
    swept = native.store()
    total_s = loaded_s + time.perf_counter() - begin_s
    copies = max(copies, _copy_bytes_per_s(native))
    updates_per_s = inner * options.sweeps / compute_s
    cores = _cores(options.threads, options.pinned)
    return results.base("stencil") | {
        "rows": options.rows,
        "columns": options.columns,
        "dtype": options.dtype,
        "sweeps": options.sweeps,
        "sweeps_per_pass": options.sweeps_per_pass,
        "threads": _thread_count(options.threads),
        "cores": cores,
        "norms": [dict(zip(("sweep", "max", "l2"), norm, strict=True)) for norm in norms],
        "mean": float(swept.mean(dtype=np.float64)),
        "seconds_compute": compute_s,
        "seconds_total": total_s,
        "updates_per_s": updates_per_s,
        "copy_bytes_per_s": copies,
        "fraction_of_copy_bandwidth": updates_per_s * 2 * cell_bytes / copies,
        "notes": _notes(field_bytes),
    }


def _check_memory(options: StencilOptions) -> None:
    """Before memory is taken that is not there: the kernel would promise it, and end a process when it is used."""
    needed_kib = 3 * options.rows * options.columns * DTYPES[options.dtype].itemsize // 1024
    found = re.search(r"^MemAvailable: +(\d+) kB", read_text("/proc/meminfo"), flags=re.MULTILINE)
    _check(
        found is None or needed_kib <= int(found[1]),
        f"a field of {options.rows} x {options.columns} {options.dtype} cannot be measured",
        f"three of them take {needed_kib // 1024} MiB, {int(found[1]) // 1024 if found else 0} MiB are free",
        "give a smaller size",
    )


def _native(field: NDArray[Any], sweeps_per_pass: int, norm_every: int, threads: int | None, pinned: bool) -> Any:
    norm_every, sweeps_per_pass = operator.index(norm_every), operator.index(sweeps_per_pass)
    _check(norm_every >= 0, f"a norm every {norm_every} sweeps cannot be taken", "0 is none, 1 is every sweep", "give 0 or more")
    _check(
        1 <= sweeps_per_pass <= 32,
        f"{sweeps_per_pass} sweeps a pass cannot be had",
        "the rows between have to stay in the cache: 1 to 32",
        "give 1, 4 or 8",
    )
    kind: Callable[[dict[str, Any]], Any] = _core.JacobiF32 if field.dtype == DTYPES["fp32"] else _core.JacobiF64
    return kind(
        {
            "rows": field.shape[0],
            "columns": field.shape[1],
            "sweeps_per_pass": sweeps_per_pass,
            "norm_every": norm_every,
            "threads": _thread_count(threads),
            "cores": _cores(threads, pinned),
            "tile_bytes": _tile_bytes(),
        }
    )


def _run(native: Any, shape: tuple[int, ...], sweeps: int, sweeps_per_pass: int) -> list[tuple[int, float, float]]:
    """In calls of about a second, each of whole passes."""
    passes = 1 + int(UPDATES_A_CALL / (max(shape[0] * shape[1], 1) * sweeps_per_pass))
    at_once = passes * sweeps_per_pass
    norms = []
    for done in range(0, sweeps, at_once):
        norms += native.run(min(at_once, sweeps - done))
    return norms


def _copy_bytes_per_s(native: Any) -> float:
    """Of the quickest copy, through the caches or past them."""
    best = 0.0
    for streaming in (False, True):
        for _ in range(COPIES):
            begin_s = time.perf_counter()
            moved = native.copy(streaming)
            best = max(best, moved / (time.perf_counter() - begin_s))
    return best


def _usable_cores() -> list[int]:
    return sorted(set(os.sched_getaffinity(0)) & online_cores())


def _thread_count(threads: int | None) -> int:
    count = len(_usable_cores()) if threads is None else operator.index(threads)
    _check(1 <= count <= 1024, f"{count} threads cannot be had", "a team has 1 to 1024", "give the number of cores")
    return count


def _cores(threads: int | None, pinned: bool) -> list[int]:
    """The core of each thread; empty: not pinned."""
    cores, count = _usable_cores(), _thread_count(threads)
    return cores[:count] if pinned and count <= len(cores) else []


def cache_bytes(level: int) -> int:
    """Size of a core's cache for data at `level`, 1 to 4; 0 where the system does not say, or there is none."""
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if read_text(f"{folder}/level") == str(level) and read_text(f"{folder}/type") != "Instruction":
            kib = re.fullmatch(r"(\d+)K", read_text(f"{folder}/size"))
            return int(kib[1]) * 1024 if kib else 0
    return 0


def _tile_bytes() -> int | None:
    """Half of a core's L2; None where the system does not say."""
    l2_bytes = cache_bytes(2)
    return min(max(l2_bytes // 2, 2**17), 2**22) if l2_bytes > 0 else None


def _notes(field_bytes: int) -> list[str]:
    largest = max(cache_bytes(level) for level in (2, 3, 4))
    if 2 * field_bytes > largest:
        return []
    return [
        f"both fields may stay in a cache ({2 * field_bytes / 2**20:.1f} of {largest / 2**20:.1f} MiB)"
        " take a larger size to judge by the memory"
    ]


def _check(holds: bool, problem: str, why: str, suggestion: str) -> None:
    if not holds:
        raise SetupError(f"{problem} ({why}) {suggestion}")
