# SPDX-License-Identifier: Apache-2.0
"""What all ranks of a field have to be told alike, and the refusal where they were not.

Ranks that srun or mpirun starts each have options of their own. With other ones they would sweep a field that is none, or wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nanet._core import SetupError
from nanet.result.build import version
from nanet.stencil.cpu import Start, StencilOptions
from nanet.stencil.rendezvous import Rendezvous

if TYPE_CHECKING:
    from nanet.stencil.ranks import RankOptions

DIGITS_SHOWN = 16  # of a checkpoint's digest


def settings_of(options: StencilOptions, ranks_options: RankOptions, start: Start) -> dict[str, str]:
    """By option, as text, whatever has a part in what ranks compute or say to each other; the others may differ.

    A restart is compared by what the file holds, as each machine may have a copy; a checkpoint by its name, as all write into one file.
    """
    found = start.checkpoint
    given = {
        "nanet": version(),
        "--restart": f"a file of {found.sweeps_done} sweeps, digest {found.digest[:DIGITS_SHOWN]}" if found else None,
        "--size": f"{start.rows}x{start.columns}",
        "--dtype": start.dtype,
        "--sweeps": options.sweeps,
        "--norm-every": options.norm_every,
        "--until": options.until,
        "--halo-rows": ranks_options.halo_rows,
        "--checkpoint": options.checkpoint,
        "--checkpoint-every": options.checkpoint_every,
        "--plot": "given" if options.plot else None,
        "--transports": ranks_options.transports or None,
        "--trust-network": "given" if ranks_options.trust_network else None,
    }
    return {name: "not given" if value is None else str(value) for name, value in given.items()}


def check_alike(ranks: Rendezvous, settings: Mapping[str, str]) -> None:
    """Every rank calls it before anything else. Raises SetupError, the same in all of them, where two were told different things."""
    first, *others = ranks.all(dict(settings))
    for rank, other in enumerate(others, 1):
        if other != first:
            raise SetupError(
                f"rank {rank} would not sweep what rank 0 does ({_difference(first, other)}) start all ranks with the same options"
            )


def _difference(first: Any, other: Any) -> str:
    if not (isinstance(first, dict) and isinstance(other, dict) and first.keys() == other.keys()):
        return "one of them is another nanet"
    return "; ".join(f"{name} {other[name]}, rank 0: {value}" for name, value in first.items() if other[name] != value)
