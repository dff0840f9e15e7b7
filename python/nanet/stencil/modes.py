# SPDX-License-Identifier: Apache-2.0
"""`nanet stencil --mode paper` and `--mode stream`: a tile of another process is got, swept and put back, for one size after the other.

paper: the whole tile in, swept, the whole tile out, one after the other, as in the paper's case study (doi 10.3390/s21227759, figure 5).
stream: the same in chunks of rows, the transfers beside the sweeps. docs/stencil.md says when which is worth it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from nanet._core import SetupError
from nanet.result import files
from nanet.stencil.cpu import copy_bytes_per_s, native_field, thread_count, tile_bytes, usable_cores
from nanet.stencil.field import DTYPES, available_bytes, check, crc_of_rows, made_rows
from nanet.stencil.keys import MovedTilesResult, TileLine
from nanet.stencil.owner import TileOwner
from nanet.stencil.ranks import native_tiles

MIB = 2**20
COLUMNS = 16384
COPY_BYTES = 512 * MIB  # of the field that the copy bandwidth is taken with
SPINS_MAX = 50_000  # some ms: where each thread has a core, no thread sleeps between two chunks
PROBE_BYTES = 256 * MIB  # at most, to find how many threads a stream needs
WAITED_PART_MAX = 0.02  # of the time, for the sweeps
UNITS = {"K": 2**10, "M": MIB, "G": 2**30}


@dataclass(frozen=True)
class ModeOptions:
    """What is moved, and how."""

    mode: str  # paper, stream
    tile_bytes: tuple[int, ...]  # sizes of the tile, each a line of the table
    dtype: str = "fp32"
    sweeps: int = 1
    threads: int | None = None  # None: every core, and in stream mode as many as it needs
    pinned: bool = True
    transports: str = ""
    chunk_bytes: int = 4 * MIB
    repeats: int = 3  # the quickest counts
    timeout_s: float = 60.0
    trust_network: bool = False


def sizes_of(text: str) -> tuple[int, ...]:
    """Bytes of `64M,1G` (powers of 1024). Raises SetupError."""
    found = [re.fullmatch(r"(\d{1,9})([KMG])", one.strip()) for one in text.split(",")]
    if not all(found):
        raise SetupError(f"sizes {text} are not valid (numbers with K, M or G, powers of 1024) write 64M,1G")
    return tuple(int(one[1]) * UNITS[one[2]] for one in found if one)


def measure_modes(options: ModeOptions, say: Callable[[str], None]) -> MovedTilesResult:
    """Measures each size that the memory holds; the last one's figures are the result's own. Keys: docs/json.md."""
    native_tiles()
    check(
        1 <= options.sweeps <= 32, f"{options.sweeps} sweeps cannot be done", "a tile is swept in one pass: 1 to 32", "give 1 to 32"
    )
    sizes: list[TileLine] = []
    notes: list[str] = []
    if options.mode == "stream" and options.threads is None:
        options = replace(options, threads=_stream_threads(options))
    copies = _copy_rate(options)
    for line in _lines(options, notes):
        say(line_text(line))
        sizes.append(line)
    if not sizes:
        raise SetupError(f"no tile was moved ({'; '.join(notes)}) give smaller sizes")
    last = sizes[-1]
    cell_bytes = DTYPES[options.dtype].itemsize
    return {
        **files.base("stencil"),
        "mode": options.mode,
        "ranks": 1,
        "dtype": options.dtype,
        "sweeps": options.sweeps,
        "sweeps_per_pass": options.sweeps,
        "threads": thread_count(options.threads),
        "cores": _cores(options),
        "path": last["path"],
        "chunk_bytes": options.chunk_bytes if options.mode == "stream" else 0,
        "sizes": sizes,
        "rows": last["rows"],
        "columns": last["columns"],
        "seconds_in": last["seconds_in"],
        "seconds_compute": last["seconds_compute"],
        "seconds_out": last["seconds_out"],
        "seconds_total": last["seconds_total"],
        "updates_per_s": last["updates_per_s"],
        "copy_bytes_per_s": copies,
        "fraction_of_copy_bandwidth": last["updates_per_s"] * 2 * cell_bytes / copies,
        "notes": notes,
    }


def line_text(line: TileLine) -> str:
    """One size, for people."""
    seconds = {
        "in": line["seconds_in"],
        "compute": line["seconds_compute"],
        "out": line["seconds_out"],
        "total": line["seconds_total"],
    }
    times = "  ".join(f"{what} {taken_s:8.4f} s" for what, taken_s in seconds.items())
    beside = f"  {line['ratio_to_transfer']:.2f} of the transfer alone" if "ratio_to_transfer" in line else ""
    return f"{line['bytes'] / MIB:7.0f} MiB  {times}  {line['updates_per_s'] / 1e9:7.3f} Gupdate/s{beside}"


def _lines(options: ModeOptions, notes: list[str]) -> Iterator[TileLine]:
    """One size after the other; what the memory does not hold is noted."""
    cell_bytes = DTYPES[options.dtype].itemsize
    for size in options.tile_bytes:
        rows, columns = _shape(size, cell_bytes)
        check(rows >= 3, f"a tile of {size} bytes cannot be moved", f"{columns} columns are {rows} rows", "give a larger one")
        needed = (3 if options.mode == "paper" else 1) * size * 17 // 16 + 256 * MIB
        free = available_bytes()
        if free is not None and needed > free:
            notes.append(f"{size // MIB} MiB not run: {needed // MIB} MiB are needed, {free // MIB} MiB are free")
            continue
        yield _one_size(options, rows, columns)


def _shape(size: int, cell_bytes: int) -> tuple[int, int]:
    columns = COLUMNS if size >= COLUMNS * COLUMNS // 4 else 1024
    return size // (columns * cell_bytes), columns


def _stream_threads(options: ModeOptions) -> int:
    """The fewest threads, 1, 2, 4 ..., that sweep a chunk while the next one is in flight: more of them only take caches and memory from the transfers."""
    size = min(PROBE_BYTES, *options.tile_bytes)
    rows, columns = _shape(size, DTYPES[options.dtype].itemsize)
    most = max(1, thread_count(None) - 1)
    count = 1
    while count < most and rows >= 3:
        with (
            _mover(replace(options, threads=count), rows, columns) as (mover, _),
            _beside_the_team(replace(options, threads=count)),
        ):
            mover.stream(options.sweeps)  # touches the memory
            _, waited_s, _, total_s = mover.stream(options.sweeps)
        if waited_s <= WAITED_PART_MAX * total_s:
            break
        count = min(2 * count, most)
    return count


@contextlib.contextmanager
def _mover(options: ModeOptions, rows: int, columns: int) -> Iterator[tuple[Any, TileOwner]]:
    """The tile's owner, a process of its own, and what moves the tile."""
    tiles = native_tiles()
    token = secrets.randbits(64)
    kind = tiles.MoverF32 if options.dtype == "fp32" else tiles.MoverF64
    with TileOwner(rows, columns, options.dtype, options.transports, token, trust_network=options.trust_network) as owner:
        yield (
            kind(
                {
                    "rows": rows,
                    "columns": columns,
                    "address": "127.0.0.1",
                    "port": owner.port,
                    "transports": options.transports,
                    "trust_network": options.trust_network,
                    "token": token,
                    "timeout_ms": int(1000 * options.timeout_s),
                    "chunk_bytes": options.chunk_bytes,
                    "sweeps_per_pass": options.sweeps,
                    "threads": thread_count(options.threads),
                    "cores": _cores(options),
                    "tile_bytes": tile_bytes(),
                    "spins_max": SPINS_MAX if set(usable_cores()) - set(_cores(options)) else None,
                }
            ),
            owner,
        )


def _one_size(options: ModeOptions, rows: int, columns: int) -> TileLine:
    with _mover(options, rows, columns) as (mover, owner):
        way = mover.move if options.mode == "paper" else mover.stream
        alone = []
        with _beside_the_team(options):
            runs = [way(options.sweeps)]  # the first touches the memory, and counts only if there is no other
            for _ in range(options.repeats):
                runs.append(way(options.sweeps))
                if options.mode == "stream":
                    alone.append(mover.stream_transfer_alone(options.sweeps)[3])
        in_s, compute_s, out_s, total_s = min(runs[1:] or runs, key=lambda run: run[3])
        inner = (rows - 2) * (columns - 2)
        line: TileLine = {
            "bytes": rows * columns * DTYPES[options.dtype].itemsize,
            "rows": rows,
            "columns": columns,
            "seconds_in": in_s,
            "seconds_compute": compute_s,
            "seconds_out": out_s,
            "seconds_total": total_s,
            "updates_per_s": inner * options.sweeps / total_s,
            "path": mover.path,
            "sweeps_done": len(runs) * options.sweeps,
            "crc32": crc_of_rows(owner.crcs()),
        }
        if alone:
            line["seconds_transfer_alone"] = min(alone)
            line["ratio_to_transfer"] = total_s / min(alone)
        return line


@contextlib.contextmanager
def _beside_the_team(options: ModeOptions) -> Iterator[None]:
    """Of stream mode: the transfers keep to the cores that the team leaves."""
    before = os.sched_getaffinity(0)
    left = before - set(_cores(options))
    if options.mode == "stream" and options.pinned and left:
        os.sched_setaffinity(0, left)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _cores(options: ModeOptions) -> list[int]:
    usable = usable_cores()
    count = thread_count(options.threads)
    return usable[-count:] if options.pinned and count <= len(usable) else []


def _copy_rate(options: ModeOptions) -> float:
    """STREAM copy of all cores, in a field of COPY_BYTES or of the largest tile."""
    size = min(COPY_BYTES, max(options.tile_bytes, default=COPY_BYTES))
    columns = 1024
    rows = max(3, size // (columns * DTYPES[options.dtype].itemsize))
    native = native_field((rows, columns), DTYPES[options.dtype], 1, 0, options.threads, options.pinned)
    native.load(made_rows(0, rows, columns, options.dtype))
    return copy_bytes_per_s(native)
