# SPDX-License-Identifier: Apache-2.0
"""A field swept by several processes, the ranks of `nanet stencil --ranks`: started here, or by srun or mpirun. What a rank does is sweep_as_rank.

Each rank keeps its rows and puts its edges into its neighbours' memory through nanet::rdma; docs/design/stencil.md says how. What goes through the
rendezvous is small: addresses, the model's measurements, norms, pictures.
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet import _core
from nanet._core import SetupError
from nanet.rdma import INSTALL
from nanet.result import files
from nanet.stencil.alike import check_alike, settings_of
from nanet.stencil.checkpoint import begin_checkpoint, end_checkpoint, fill_checkpoint
from nanet.stencil.cpu import (
    Start,
    StencilOptions,
    cache_notes,
    check_places,
    copy_bytes_per_s,
    native_field,
    start_of,
    tile_bytes,
    usable_cores,
)
from nanet.stencil.drive import Norm, at_once, drive
from nanet.stencil.field import (
    DTYPES,
    check,
    check_memory,
    crc_of_rows,
    row_crcs,
    sampled,
    write_picture,
)
from nanet.stencil.keys import SweptResult, norm_keys
from nanet.stencil.model import Prediction, best, candidates, predict
from nanet.stencil.rendezvous import SECRET, RankError, Rendezvous, place_of, rank_of_environment

SET_UP, BROKEN = 2, 1  # exit codes
DISK_BYTES_PER_S_MIN = 10e6  # a rank that writes its rows more slowly is taken for one that stands still
COPY_BYTES_MAX = 2**29  # of the field that a rank copies to learn what its memory can do


@dataclass(frozen=True)
class RankOptions:
    """How ranks meet and what they use."""

    rendezvous: str = ""
    address: str = ""
    """Where this rank is reached; empty: from where it reached rank 0."""
    transports: str = ""
    """As UCX_TLS; empty: shared memory on one machine, elsewhere RDMA hardware."""
    trust_network: bool = False
    """UCX's TCP may be used: whoever reaches the interface has full control over a rank."""
    halo_rows: int | None = None
    """None: the model chooses."""
    timeout_s: float = 30.0


def native_tiles() -> Any:
    """The module nanet._tiles. Raises SetupError where this nanet was built without UCX, or UCX is gone."""
    try:
        return importlib.import_module("nanet._tiles")
    except ImportError as error:
        why = (
            "it was built without UCX 1.18 or newer" if isinstance(error, ModuleNotFoundError) else f"UCX cannot be loaded: {error}"
        )
        raise SetupError(f"this nanet moves no tiles ({why}) {INSTALL}") from None


# --- one rank ---


class _RankSweeps:
    """A rank's rows, as the loop around the sweeps wants them."""

    def __init__(self, native: Any, ranks: Rendezvous, norm_every: int, sweeps_done: int) -> None:
        self.native, self._ranks, self._norm_every, self._done = native, ranks, norm_every, sweeps_done

    def advance(self, sweeps: int) -> list[Norm]:
        norms: list[Norm] = []
        end = self._done + sweeps
        while self._done < end:
            to_norm = self._norm_every - self._done % self._norm_every if self._norm_every else sweeps + 1
            plain = min(end - self._done, to_norm - 1)
            self.native.run(plain)
            self._done += plain
            if self._done < end:
                changes = self.native.run_with_changes()
                self._done += 1
                norms.append((self._done, *self._norm(changes)))
        self._ranks.all(None)  # the slowest rank ends the step
        return norms

    def _norm(self, changes: NDArray[np.float64]) -> tuple[float, float]:
        """Of all ranks' rows, added in the order of the rows: the same bits as in one process."""
        every = self._ranks.gather(changes.tobytes())
        mine = None
        if every is not None:
            whole = np.frombuffer(b"".join(every), np.float64).reshape(-1, 2)
            mine = np.array(_core.norm_of_rows(whole)).tobytes()
        largest, l2 = np.frombuffer(self._ranks.share(mine), np.float64).tolist()
        return largest, l2


def run_rank(options: StencilOptions, ranks_options: RankOptions, rank: int, count: int) -> SweptResult | None:
    """Runs one rank to the end. The result at rank 0, None elsewhere. Raises SetupError, RankError, TransferError (a RuntimeError)."""
    check(
        bool(ranks_options.rendezvous),
        "the ranks do not know where to meet",
        "--rendezvous is not given",
        "give HOST:PORT or a file",
    )
    place = place_of(ranks_options.rendezvous)
    secret = os.environ.get(SECRET, "")
    check(
        bool(secret) or place.is_loopback or count == 1,
        "ranks do not meet without a secret",
        "whoever reaches the place could join, and write their memory",
        f"set {SECRET} to the same text everywhere",
    )
    start = start_of(options)
    check_ranks(start, count, ranks_options.halo_rows)
    if rank == 0:
        check_places(options)
    with Rendezvous(rank, count, place, ranks_options.address, ranks_options.timeout_s, secret) as ranks:
        return sweep_as_rank(ranks, options, ranks_options, start, _make_native)


MakeNative = Callable[[Rendezvous, Start, RankOptions, list[int], StencilOptions], Any]
"""Makes the native rank and connects it to its neighbours."""


def sweep_as_rank(
    ranks: Rendezvous, options: StencilOptions, ranks_options: RankOptions, start: Start, make: MakeNative
) -> SweptResult | None:
    """Sweeps one rank's rows, whatever carries its edges; all ranks do the same. The result at rank 0, None elsewhere."""
    begin_s = time.perf_counter()
    check_alike(ranks, settings_of(options, ranks_options, start))
    rank, count = ranks.rank, ranks.count
    cores = _cores_of_rank(ranks, options)
    copies = _copy_together(ranks, start, cores, options)
    native = make(ranks, start, ranks_options, cores, options)
    begin, end = native.held
    native.load(start.read(begin, end))
    predictions, halo_rows = _choose(ranks, native, start, ranks_options.halo_rows)
    native.set_halo_rows(halo_rows)
    ranks.all(None)
    sweeps = _RankSweeps(native, ranks, options.norm_every, start.sweeps_done)
    plan = dataclasses.replace(
        options.plan(start.sweeps_done, at_once(start.rows * start.columns // count, halo_rows)),
        progress=options.progress and rank == 0,
    )
    driven = drive(sweeps, plan, lambda done: _save(options, start, ranks, native, done))
    own = native.store()
    crc32, mean = _whole_field(ranks, start, own)
    if options.plot:
        _plot(options.plot, ranks, start, own, native.own[0])
    paths = ranks.all(native.path)
    slowest_s = max(ranks.all(driven.compute_s))
    if rank != 0:
        return None
    cell_bytes = DTYPES[start.dtype].itemsize
    updates_per_s = start.inner * (driven.sweeps_done - start.sweeps_done) / slowest_s
    head = files.base("stencil")
    return {
        "nanet": head["nanet"],
        "command": head["command"],
        "date": head["date"],
        "machine": head["machine"],
        "mode": "resident",
        "ranks": count,
        "rows": start.rows,
        "columns": start.columns,
        "dtype": start.dtype,
        "sweeps": driven.sweeps_done - start.sweeps_done,
        "sweeps_done": driven.sweeps_done,
        "converged": driven.converged,
        "checkpoints": driven.checkpoints,
        "sweeps_per_pass": halo_rows,
        "halo_rows": halo_rows,
        "model": [one.plain() for one in predictions],
        "path": next((path for path in paths if path), ""),
        "threads": len(cores) or options.threads or 1,
        "cores": cores,
        "norms": [norm_keys(norm) for norm in driven.norms],
        "mean": mean,
        "crc32": crc32,
        "seconds_in": 0.0,
        "seconds_compute": slowest_s,
        "seconds_out": 0.0,
        "seconds_total": time.perf_counter() - begin_s,
        "updates_per_s": updates_per_s,
        "copy_bytes_per_s": copies,
        "fraction_of_copy_bandwidth": updates_per_s * 2 * cell_bytes / copies,
        "notes": cache_notes(start.rows * start.columns * cell_bytes),
    }


def check_ranks(start: Start, count: int, halo_rows: int | None) -> None:
    """Raises SetupError where so many ranks cannot share the field."""
    rows_min = start.rows // count
    needed_rows = max(
        halo_rows or 1, 2 if count > 1 else 1
    )  # with one row, of the boundary, there is nothing to measure a sweep with
    check(
        rows_min >= needed_rows,
        f"{start.rows} rows cannot be swept by {count} ranks",
        f"each would have {rows_min}, and {needed_rows} are needed",
        "give fewer ranks, or thinner halos",
    )
    text = f"halos of {halo_rows} rows are not possible"
    check(halo_rows is None or 1 <= halo_rows <= 32, text, "the rows between have to stay in the cache: 1 to 32", "give 4 or 8")
    needed = 3 * start.rows * start.columns * DTYPES[start.dtype].itemsize // count
    check_memory(needed, f"a rank of {start.rows} x {start.columns} {start.dtype} by {count} ranks cannot be held", "it takes")


def _cores_of_rank(ranks: Rendezvous, options: StencilOptions) -> list[int]:
    """Cores of this rank's threads: ranks of one machine that may use the same cores share them. Empty: not pinned."""
    usable = usable_cores()
    every = ranks.all([socket.gethostname(), usable])
    together = [rank for rank, one in enumerate(every) if one == [socket.gethostname(), usable]]
    place = together.index(ranks.rank)
    mine = usable[len(usable) * place // len(together) : len(usable) * (place + 1) // len(together)]
    wanted = options.threads or len(mine)
    return mine[:wanted] if options.pinned and 1 <= wanted <= len(mine) else []


def _thread_count(cores: list[int], options: StencilOptions) -> int:
    return len(cores) or options.threads or 1


def _copy_together(ranks: Rendezvous, start: Start, cores: list[int], options: StencilOptions) -> float:
    """Bytes a second of STREAM copies that all ranks make at the same time, each in a field like its own; their sum."""
    row_bytes = start.columns * DTYPES[start.dtype].itemsize
    rows = max(3, min(start.rows // ranks.count, COPY_BYTES_MAX // row_bytes))
    native = native_field((rows, start.columns), DTYPES[start.dtype], 1, 0, _thread_count(cores, options), False)
    native.load(np.ones((rows, start.columns), DTYPES[start.dtype]))
    ranks.all(None)
    return float(sum(ranks.all(copy_bytes_per_s(native))))


def _make_native(ranks: Rendezvous, start: Start, given: RankOptions, cores: list[int], options: StencilOptions) -> Any:
    """Makes this rank's memory and connects it to its neighbours."""
    tiles = native_tiles()
    deepest = given.halo_rows or max(candidates(start.rows // ranks.count))
    token = int(ranks.all(secrets.randbits(64))[0])
    kind = tiles.RankF32 if start.dtype == "fp32" else tiles.RankF64
    native = kind(
        {
            **rank_config(start, ranks.rank, ranks.count, deepest, cores, options),
            "address": ranks.address,
            "transports": given.transports,
            "trust_network": given.trust_network,
            "token": token,
            "timeout_ms": int(1000 * given.timeout_s),
        }
    )
    where = ranks.all([ranks.address, native.port])
    # From here on every wait serves the neighbours: over TCP they cannot go on without.
    ranks.when_idle(lambda: native.serve(0))
    native.connect(
        tuple(where[ranks.rank - 1]) if ranks.rank > 0 else None,
        tuple(where[ranks.rank + 1]) if ranks.rank + 1 < ranks.count else None,
    )
    ranks.all(None)
    return native


def rank_config(
    start: Start, rank: int, count: int, halo_rows_max: int, cores: list[int], options: StencilOptions
) -> dict[str, object]:
    """What every native rank is made from, whatever carries its edges."""
    return {
        "rows": start.rows,
        "columns": start.columns,
        "rank": rank,
        "rank_count": count,
        "halo_rows_max": halo_rows_max,
        "threads": _thread_count(cores, options),
        "cores": cores,
        "tile_bytes": tile_bytes(),
    }


def _choose(ranks: Rendezvous, native: Any, start: Start, forced: int | None) -> tuple[list[Prediction], int]:
    """Measures, and chooses how deep the halos are; the same everywhere."""
    rows = -(-start.rows // ranks.count)
    sides = min(ranks.count - 1, 2)
    predictions = []
    for depth in [forced] if forced else candidates(start.rows // ranks.count):
        ranks.all(None)
        measured = [native.seconds_per_row(depth)]
        ranks.all(None)
        measured.append(native.seconds_of_exchange(depth))
        slowest = np.max(ranks.all(measured), axis=0).tolist()
        predictions.append(predict(depth, rows, slowest[0], slowest[1], sides))
    return predictions, best(predictions).halo_rows


def _save(options: StencilOptions, start: Start, ranks: Rendezvous, native: Any, sweeps_done: int) -> None:
    """One rank after the other writes its rows into one file; the last step gives it its name."""
    path = options.checkpoint
    assert path is not None
    if ranks.rank == 0:
        begin_checkpoint(path, start.rows, start.columns, start.dtype, sweeps_done)
    ranks.all(None)
    own = native.store()
    ranks.in_turn(lambda: fill_checkpoint(path, native.own[0], own), own.nbytes / DISK_BYTES_PER_S_MIN)
    # Rank 0 reads all of it once more, for the digest; the others know how long that may take.
    field_s = start.rows * start.columns * own.itemsize / DISK_BYTES_PER_S_MIN
    ranks.in_turn(lambda: end_checkpoint(path) if ranks.rank == 0 else None, field_s)


def _whole_field(ranks: Rendezvous, start: Start, own: NDArray[Any]) -> tuple[str, float]:
    crcs = ranks.gather(row_crcs(own))
    total = sum(ranks.all(float(own.sum(dtype=np.float64))))
    return crc_of_rows(b"".join(crcs)) if crcs is not None else "", total / (start.rows * start.columns)


def _plot(path: Path, ranks: Rendezvous, start: Start, own: NDArray[Any], row_begin: int) -> None:
    rows = sampled(start.rows)
    columns = sampled(start.columns)
    mine = rows[(rows >= row_begin) & (rows < row_begin + len(own))] - row_begin
    parts = ranks.gather(own[np.ix_(mine, columns)].astype(np.float64).tobytes())
    if parts is not None:
        write_picture(path, np.frombuffer(b"".join(parts), np.float64).reshape(-1, len(columns)))


# --- all ranks of one machine ---


def run_ranks(options: StencilOptions, ranks_options: RankOptions, count: int) -> SweptResult:
    """Starts `count` ranks on this machine and waits for them. Raises SetupError, RankError."""
    native_tiles()
    check_ranks(start_of(options), count, ranks_options.halo_rows)
    check_places(options)
    with tempfile.TemporaryDirectory(prefix="nanet-") as folder:
        met = dataclasses.replace(ranks_options, rendezvous=str(Path(folder) / "meet"), address="127.0.0.1")
        given = json.dumps([dataclasses.asdict(options), dataclasses.asdict(met)], default=str)
        environment = {**os.environ, "NANET_RANKS": str(count), SECRET: secrets.token_hex(16)}
        with (Path(folder) / "result").open("w+b") as result:
            processes = [
                subprocess.Popen(
                    [sys.executable, "-m", "nanet.stencil.ranks", given],
                    env={**environment, "NANET_RANK": str(rank)},
                    stdin=subprocess.DEVNULL,
                    stdout=result if rank == 0 else subprocess.DEVNULL,
                )
                for rank in range(count)
            ]
            try:
                _await(processes, ranks_options.timeout_s)
            finally:
                for process in processes:
                    process.kill()
                    process.wait()
            result.seek(0)
            found: SweptResult = json.loads(result.read())
            return found


def _await(processes: list[subprocess.Popen[bytes]], timeout_s: float) -> None:
    """Returns when all ended well. The first that did not ends the run; the others have timeout_s to say what they saw."""
    first = ""
    deadline = float("inf")
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        failed = [rank for rank, process in enumerate(processes) if process.poll() not in (None, 0)]
        if failed and not first:
            first = f"rank {failed[0]} {_how(processes[failed[0]].returncode)}"
            deadline = time.monotonic() + timeout_s
        time.sleep(0.01)
    failed = [rank for rank, process in enumerate(processes) if process.poll() != 0]
    if failed:
        first = first or f"rank {failed[0]} {_how(processes[failed[0]].returncode)}"
        others = f"; of {len(processes)} ranks {len(processes) - len(failed)} ended well"
        raise RankError(f"{first} (the run is over{others}) see what the ranks printed")


def _how(code: int | None) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code is not None and code < 0 else f"ended with exit code {code}"


def _main(given: str) -> int:
    """A rank that run_ranks started. Ends with its parent."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    raw_options, raw_ranks = json.loads(given)
    for key in ("checkpoint", "restart", "plot"):
        raw_options[key] = Path(raw_options[key]) if raw_options[key] else None
    rank, count = rank_of_environment(os.environ)
    try:
        result = run_rank(StencilOptions(**raw_options), RankOptions(**raw_ranks), rank, count)
    except (SetupError, RuntimeError) as error:
        print(f"nanet: rank {rank}: {error}", file=sys.stderr, flush=True)
        return SET_UP if isinstance(error, SetupError) else BROKEN
    if result is not None:
        print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
