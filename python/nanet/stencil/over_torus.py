# SPDX-License-Identifier: Apache-2.0
"""A field swept by ranks that are nodes of a simulated torus: `nanet stencil --over torus`. The edges of a rank go to its neighbours by PUT.

All ranks are threads of this process, and the torus is simulated while they wait; docs/design/stencil.md says how. The bits are those of one process.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nanet.stencil.cpu import Start, StencilOptions, check_places, start_of
from nanet.stencil.keys import SweptResult
from nanet.stencil.ranks import RankOptions, check_ranks, rank_config, sweep_as_rank
from nanet.stencil.rendezvous import Place, Rendezvous
from nanet.torus import native_torus

HALO_ROWS = 4  # a model made from what the simulation takes on this machine would say nothing
WIRE_CYCLES = 16  # of a cable, with its lanes


def run_ranks_over_torus(options: StencilOptions, given: RankOptions, count: int) -> SweptResult:
    """Sweeps with `count` ranks, 1 to 64. Raises SetupError, RankError, TransferError (a RuntimeError)."""
    native = native_torus()
    start = start_of(options)
    check_ranks(start, count, given.halo_rows)
    check_places(options)
    kind = native.RankF32 if start.dtype == "fp32" else native.RankF64
    halo_rows = given.halo_rows or min(HALO_ROWS, start.rows // count)
    given = RankOptions(halo_rows=halo_rows, timeout_s=given.timeout_s)
    halos = kind.make_halos(
        {
            **rank_config(start, 0, count, halo_rows, [], options),
            "wire_cycles": WIRE_CYCLES,
            "timeout_ms": int(1000 * given.timeout_s),
        }
    )

    def make(ranks: Rendezvous, start: Start, _: RankOptions, cores: list[int], options: StencilOptions) -> Any:
        return _Rank(kind(rank_config(start, ranks.rank, count, halo_rows, cores, options), halos), halos.shape)

    with tempfile.TemporaryDirectory(prefix="nanet-") as folder:
        place, secret = Place(file=Path(folder) / "meet"), secrets.token_hex(16)

        def sweep(rank: int) -> SweptResult | None:
            with Rendezvous(rank, count, place, "127.0.0.1", given.timeout_s, secret) as ranks:
                return sweep_as_rank(ranks, options, given, start, make)

        result = _in_threads(sweep, count, halos.end)
    result["exchanges"] = halos.exchanges
    result["exchange_cycles"] = halos.cycles / max(halos.exchanges, 1)
    return result


class _Rank:
    """A native rank, with what those of processes have beside: its path."""

    def __init__(self, native: Any, shape: str) -> None:
        self._native = native
        self.path = f"PUT in a simulated torus of {shape}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)


def _in_threads(sweep: Callable[[int], SweptResult | None], count: int, end: Callable[[], None]) -> SweptResult:
    """What rank 0 returned. The first error of a rank ends the run, as Ctrl-C does: those of the others follow from it."""
    results: dict[int, SweptResult | None] = {}
    errors: list[BaseException] = []

    def body(rank: int) -> None:
        try:
            results[rank] = sweep(rank)
        except BaseException as error:  # raised again below
            errors.append(error)
            end()

    threads = [threading.Thread(target=body, args=(rank,), daemon=True) for rank in range(count)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.1)  # so that Ctrl-C is seen
    except KeyboardInterrupt:
        end()
        for thread in threads:
            thread.join()
        raise
    if errors:
        raise errors[0]
    found = results[0]
    assert found is not None
    return found
