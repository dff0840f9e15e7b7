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

from nanet import _core
from nanet._core import SetupError
from nanet.config.base import online_cores
from nanet.machine.facts import read_text
from nanet.result import files
from nanet.result.keys.base import Config
from nanet.stencil.checkpoint import Checkpoint, open_checkpoint, write_checkpoint
from nanet.stencil.drive import Norm, Plan, at_once, drive
from nanet.stencil.field import (
    DTYPES,
    check,
    check_memory,
    check_place,
    crc_of_rows,
    made_rows,
    row_crcs,
    sampled,
    shape_of,
    write_picture,
)
from nanet.stencil.keys import SweptResult, norm_keys

__all__ = ["NORM", "StencilOptions", "Swept", "cache_bytes", "jacobi", "measure", "shape_of"]

NORM = np.dtype([("sweep", "<u8"), ("max", "<f8"), ("l2", "<f8")])
"""A norm of what one sweep changed: max |new - old|, and sqrt(sum (new - old)^2), over the inner cells."""

COPIES = 5  # of each kind, before the sweeps and after; the quickest counts, as in STREAM


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
    check(sweeps >= 0, f"{sweeps} sweeps are not possible", "0 and more are", "give another number")
    native = native_field(field.shape, field.dtype, sweeps_per_pass, norm_every, threads, pinned)
    native.load(np.ascontiguousarray(field))
    plan = Plan(sweeps, sweeps_at_once=at_once(field.size, sweeps_per_pass))
    norms = drive(_OneProcess(native), plan, lambda done: None).norms
    return Swept(native.store(), np.array(norms, dtype=NORM))


@dataclass(frozen=True)
class StencilOptions:
    """What `nanet stencil` does with a field that stays where it is."""

    rows: int = 8192
    columns: int = 8192
    dtype: str = "fp64"
    sweeps: int = 100
    sweeps_per_pass: int = 4
    norm_every: int = 0
    threads: int | None = None
    """Of a process; None: one for each core that it may use (that a rank has)."""
    pinned: bool = True
    until: float | None = None
    """Ends when the largest change of a sweep is at most that."""
    checkpoint: Path | None = None
    checkpoint_every: int = 0
    restart: Path | None = None
    """Rows, columns and dtype are then those of the file."""
    plot: Path | None = None
    progress: bool = False

    def plan(self, sweeps_done: int, sweeps_at_once: int) -> Plan:
        """For the loop around the sweeps."""
        has_checkpoint = self.checkpoint is not None
        return Plan(self.sweeps, sweeps_done, sweeps_at_once, self.norm_every, self.until, self.checkpoint_every, has_checkpoint,
                    self.progress)  # fmt: skip


@dataclass(frozen=True)
class Start:
    """The field that is swept, at the beginning."""

    rows: int
    columns: int
    dtype: str
    checkpoint: Checkpoint | None = None

    @property
    def sweeps_done(self) -> int:
        return self.checkpoint.sweeps_done if self.checkpoint else 0

    @property
    def inner(self) -> int:
        return max(self.rows - 2, 0) * max(self.columns - 2, 0)

    def read(self, row_begin: int, row_end: int) -> NDArray[Any]:
        """Rows of it, a new array."""
        if self.checkpoint is not None:
            return self.checkpoint.read(row_begin, row_end)
        return made_rows(row_begin, row_end, self.columns, self.dtype)


def start_of(options: StencilOptions) -> Start:
    """From a checkpoint or made up. Raises SetupError where there is nothing to sweep."""
    found = open_checkpoint(options.restart) if options.restart else None
    start = Start(found.rows, found.columns, found.dtype, found) if found else Start(options.rows, options.columns, options.dtype)
    options.plan(0, 1).check()
    text = f"{start.rows} x {start.columns} cells for {options.sweeps} sweeps cannot be measured"
    check(
        start.inner > 0 and options.sweeps > 0,
        text,
        "there would be nothing to do",
        "give 3 x 3 cells or more, and 1 sweep or more",
    )
    return start


def check_places(options: StencilOptions) -> None:
    """Raises SetupError where what is written at the end could not be."""
    check_place(options.checkpoint, "checkpoint")
    check_place(options.plot, "picture")


class _OneProcess:
    """The native field, as the loop around the sweeps wants it."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def advance(self, sweeps: int) -> list[Norm]:
        norms: list[Norm] = self._native.run(sweeps)
        return norms


def measure(options: StencilOptions) -> SweptResult:
    """Sweeps a field as `options` say, with STREAM copies by the same threads before and after; the keys are those of docs/json.md."""
    start = start_of(options)
    check_places(options)
    cell_bytes = DTYPES[start.dtype].itemsize
    field_bytes = start.rows * start.columns * cell_bytes
    check_memory(
        3 * field_bytes, f"a field of {start.rows} x {start.columns} {start.dtype} cannot be measured", "three of them take"
    )
    begin_s = time.perf_counter()
    shape = (start.rows, start.columns)
    native = native_field(shape, DTYPES[start.dtype], options.sweeps_per_pass, options.norm_every, options.threads, options.pinned)
    native.load(start.read(0, start.rows), start.sweeps_done)
    loaded_s = time.perf_counter() - begin_s
    copies = copy_bytes_per_s(native)
    begin_s = time.perf_counter()
    plan = options.plan(start.sweeps_done, at_once(start.rows * start.columns, options.sweeps_per_pass))
    driven = drive(_OneProcess(native), plan, lambda done: _save(options, native, done))
    swept = native.store()
    total_s = loaded_s + time.perf_counter() - begin_s
    copies = max(copies, copy_bytes_per_s(native))
    if options.plot:
        write_picture(options.plot, swept[np.ix_(sampled(start.rows), sampled(start.columns))])
    head = files.base("stencil")
    updates_per_s = start.inner * (driven.sweeps_done - start.sweeps_done) / driven.compute_s
    return {
        "nanet": head["nanet"],
        "command": head["command"],
        "date": head["date"],
        "machine": head["machine"],
        "mode": "resident",
        "ranks": 1,
        "rows": start.rows,
        "columns": start.columns,
        "dtype": start.dtype,
        "sweeps": driven.sweeps_done - start.sweeps_done,
        "sweeps_done": driven.sweeps_done,
        "converged": driven.converged,
        "checkpoints": driven.checkpoints,
        "sweeps_per_pass": options.sweeps_per_pass,
        "threads": thread_count(options.threads),
        "cores": cores_of(options.threads, options.pinned),
        "norms": [norm_keys(norm) for norm in driven.norms],
        "mean": float(swept.mean(dtype=np.float64)),
        "crc32": crc_of_rows(row_crcs(swept)),
        "seconds_in": 0.0,
        "seconds_compute": driven.compute_s,
        "seconds_out": 0.0,
        "seconds_total": total_s,
        "updates_per_s": updates_per_s,
        "copy_bytes_per_s": copies,
        "fraction_of_copy_bandwidth": updates_per_s * 2 * cell_bytes / copies,
        "notes": cache_notes(field_bytes),
    }


def _save(options: StencilOptions, native: Any, sweeps_done: int) -> None:
    assert options.checkpoint is not None
    write_checkpoint(options.checkpoint, native.store(), sweeps_done)


def native_field(
    shape: tuple[int, ...], dtype: np.dtype[Any], sweeps_per_pass: int, norm_every: int, threads: int | None, pinned: bool
) -> Any:
    """The native sweeper of one process. Raises SetupError."""
    norm_every, sweeps_per_pass = operator.index(norm_every), operator.index(sweeps_per_pass)
    check(norm_every >= 0, f"a norm every {norm_every} sweeps cannot be taken", "0 is none, 1 is every sweep", "give 0 or more")
    check(
        1 <= sweeps_per_pass <= 32,
        f"{sweeps_per_pass} sweeps per pass are not possible",
        "the rows between have to stay in the cache: 1 to 32",
        "give 1, 4 or 8",
    )
    kind: Callable[[Config], Any] = _core.JacobiF32 if dtype == DTYPES["fp32"] else _core.JacobiF64
    return kind(
        {
            "rows": shape[0],
            "columns": shape[1],
            "sweeps_per_pass": sweeps_per_pass,
            "norm_every": norm_every,
            "threads": thread_count(threads),
            "cores": cores_of(threads, pinned),
            "tile_bytes": tile_bytes(),
        }
    )


def copy_bytes_per_s(native: Any) -> float:
    """Of the quickest copy, through the caches or past them."""
    best = 0.0
    for streaming in (False, True):
        for _ in range(COPIES):
            begin_s = time.perf_counter()
            moved = native.copy(streaming)
            best = max(best, moved / (time.perf_counter() - begin_s))
    return best


def usable_cores() -> list[int]:
    """Cores that this process may run on."""
    return sorted(set(os.sched_getaffinity(0)) & online_cores())


def thread_count(threads: int | None) -> int:
    """How many threads a team gets. Raises SetupError."""
    count = len(usable_cores()) if threads is None else operator.index(threads)
    check(1 <= count <= 1024, f"{count} threads are not possible", "a team has 1 to 1024", "give the number of cores")
    return count


def cores_of(threads: int | None, pinned: bool) -> list[int]:
    """The core of each thread; empty: not pinned."""
    cores, count = usable_cores(), thread_count(threads)
    return cores[:count] if pinned and count <= len(cores) else []


def cache_bytes(level: int) -> int:
    """Size of a core's cache for data at `level`, 1 to 4; 0 where the system does not say, or there is none."""
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if read_text(f"{folder}/level") == str(level) and read_text(f"{folder}/type") != "Instruction":
            kib = re.fullmatch(r"(\d+)K", read_text(f"{folder}/size"))
            return int(kib[1]) * 1024 if kib else 0
    return 0


def tile_bytes() -> int | None:
    """Half of a core's L2; None where the system does not say."""
    l2_bytes = cache_bytes(2)
    return min(max(l2_bytes // 2, 2**17), 2**22) if l2_bytes > 0 else None


def cache_notes(field_bytes: int) -> list[str]:
    """That the figure does not say how fast the memory is, where it does not."""
    largest = max(cache_bytes(level) for level in (2, 3, 4))
    if 2 * field_bytes > largest:
        return []
    return [
        f"both fields may stay in a cache ({2 * field_bytes / 2**20:.1f} of {largest / 2**20:.1f} MiB)"
        " use a larger size to measure memory speed"
    ]
