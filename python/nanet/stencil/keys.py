# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet stencil` writes."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from nanet.result.keys.base import Base


class NormKeys(TypedDict):
    """What one sweep changed."""

    sweep: Annotated[int, "counted from the beginning, 1 is the first"]
    max: Annotated[float, "largest change of an inner cell by this sweep"]
    l2: Annotated[float, "square root of the sum of the squares of the changes"]


def norm_keys(norm: tuple[int, float, float]) -> NormKeys:
    """As a result has it."""
    sweep, largest, l2 = norm
    return {"sweep": sweep, "max": largest, "l2": l2}


class HaloKeys(TypedDict):
    """What the model says of halos of so many rows; of the slowest rank."""

    halo_rows: Annotated[int, "depth of the halos"]
    row_s: Annotated[float, "as many sweeps of one row"]
    exchange_s: Annotated[float, "as many rows to either side"]
    edges_s: Annotated[float, "the rows at either side, before anything is sent"]
    middle_s: Annotated[float, "the rest, beside the exchange"]
    pass_s: Annotated[float, "one pass"]
    sweep_s: Annotated[float, "what a sweep takes on average"]


class SweptResult(Base):
    """A field that stays where it is."""

    mode: Annotated[str, "`resident`"]
    ranks: Annotated[int, "processes that share the field"]
    rows: Annotated[int, "of the field, boundary included"]
    columns: Annotated[int, "the same"]
    dtype: Annotated[str, "`fp32` or `fp64`"]
    sweeps: Annotated[int, "of this run"]
    sweeps_done: Annotated[int, "with those before the checkpoint that was begun from"]
    converged: Annotated[bool, "the norm of `--until` was reached"]
    checkpoints: Annotated[int, "how many were written"]
    sweeps_per_pass: Annotated[int, "each time the field goes through memory; with ranks also the sweeps between two exchanges"]
    halo_rows: NotRequired[Annotated[int, "depth of the halos; with ranks only, like `model` and `path`"]]
    model: NotRequired[
        Annotated[list[HaloKeys], "what was expected of each depth ([how](design/stencil.md#how-deep-the-halos-are))"]
    ]
    path: NotRequired[Annotated[str, "how edges go to neighbours"]]
    exchanges: NotRequired[Annotated[int, "of `--over torus`: how many there were, those of the measurement before the sweeps too"]]
    exchange_cycles: NotRequired[
        Annotated[
            float, "of `--over torus`: cycles of the RTL (175 MHz) that an exchange took on average, all ranks at the same time"
        ]
    ]
    threads: Annotated[int, "of a process"]
    cores: Annotated[list[int], "of its threads (with ranks: of rank 0); empty: not pinned"]
    norms: Annotated[list[NormKeys], "the list is empty without `--norm-every`"]
    mean: Annotated[float, "of all cells at the end"]
    crc32: Annotated[
        str,
        "of the field at the end: CRC-32 over the CRC-32 of each row (4 bytes, little-endian). Equal bits have equal ones",
    ]
    seconds_in: Annotated[float, "0: the field is where it is swept"]
    seconds_compute: Annotated[float, "the sweeps, with norms and with what the exchanges did not hide; of the slowest rank"]
    seconds_out: Annotated[float, "0"]
    seconds_total: Annotated[
        float,
        "with the memory and the threads made, and the field taken in and out; of ranks: with meeting, measuring and copying",
    ]
    updates_per_s: Annotated[float, "inner cells times sweeps, over `seconds_compute`"]
    copy_bytes_per_s: Annotated[
        float,
        "the quickest STREAM copy between two fields by the same threads in this run (all ranks at the same time, added up): bytes read"
        " plus bytes written",
    ]
    fraction_of_copy_bandwidth: Annotated[float, "`updates_per_s` times the bytes of two cells, over `copy_bytes_per_s`"]
    notes: Annotated[list[str], "what makes a figure say less than it seems to"]


class TileLine(TypedDict):
    """A tile of one size. Of several moves the quickest is told; the first, which touches the memory, is none of them."""

    bytes: Annotated[int, "of the tile"]
    rows: Annotated[int, "of the tile"]
    columns: Annotated[int, "of the tile"]
    seconds_in: Annotated[
        float,
        "owner to mover. Of several moves the quickest is told; the first, which touches the memory, is none of them",
    ]
    seconds_compute: Annotated[float, "the sweeps; of `stream` what the transfers did not hide"]
    seconds_out: Annotated[float, "mover to owner"]
    seconds_total: Annotated[float, "all of it"]
    updates_per_s: Annotated[float, "inner cells times sweeps, over `seconds_total`"]
    path: Annotated[str, "how the tile went"]
    sweeps_done: Annotated[int, "of all moves of this size"]
    crc32: Annotated[str, "of the owner's tile after them, as above"]
    seconds_transfer_alone: NotRequired[
        Annotated[float, "of `stream`: the same chunks in and out with nothing swept, the quickest of as many"]
    ]
    ratio_to_transfer: NotRequired[Annotated[float, "of `stream`: `seconds_total` over that"]]


class MovedTilesResult(Base):
    """Tiles that are got, swept and put back."""

    mode: Annotated[str, "`paper` or `stream`"]
    ranks: Annotated[int, "1"]
    dtype: Annotated[str, "`fp32` or `fp64`"]
    sweeps: Annotated[int, "of one move"]
    sweeps_per_pass: Annotated[int, "the same"]
    threads: Annotated[int, "that sweep"]
    cores: Annotated[list[int], "of these threads; empty: not pinned"]
    path: Annotated[str, "how the tile goes"]
    chunk_bytes: Annotated[int, "of `stream`; 0 for `paper`"]
    sizes: Annotated[list[TileLine], "a size each"]
    rows: Annotated[int, "of the last size, like the next six"]
    columns: Annotated[int, "of the last size"]
    seconds_in: Annotated[float, "of the last size"]
    seconds_compute: Annotated[float, "of the last size"]
    seconds_out: Annotated[float, "of the last size"]
    seconds_total: Annotated[float, "of the last size"]
    updates_per_s: Annotated[float, "of the last size"]
    copy_bytes_per_s: Annotated[float, "the quickest STREAM copy by all cores in this run: bytes read plus bytes written"]
    fraction_of_copy_bandwidth: Annotated[float, "`updates_per_s` times the bytes of two cells, over `copy_bytes_per_s`"]
    notes: Annotated[list[str], "sizes that the memory does not hold"]


class GpuFigures(TypedDict):
    """What was measured on GPUs."""

    norms: Annotated[list[NormKeys], "the list is empty without `--norm-every`, and in the modes `paper` and `stream`"]
    mean: Annotated[float, "of all cells at the end"]
    seconds_in: Annotated[float, "the field from the host's memory to the GPU"]
    seconds_compute: Annotated[float, "the sweeps, norms included"]
    seconds_out: Annotated[
        float,
        "the field back. In mode `stream` all three are from the first of its kind that began to the last that ended, and overlap",
    ]
    seconds_total: Annotated[float, "all of it; in mode `resident` with the GPU's memory made"]
    seconds_transfer_alone: Annotated[
        float | None,
        "modes `paper` and `stream`: the tile in and out at the same time, with nothing swept, the quickest of three",
    ]
    ratio_to_transfer: Annotated[float | None, "`seconds_total` over that"]
    copy_bytes_per_s: Annotated[
        float, "the quickest copy between the two fields in the GPUs' memory in this run: bytes read plus bytes written"
    ]
    direct: Annotated[bool, "with several GPUs: rows at the seams go from GPU to GPU, not through the host"]
    notes: Annotated[list[str], "what makes a figure say less than it seems to"]


class GpuStencilResult(Base, GpuFigures):
    """What `nanet stencil --device gpu` writes."""

    device: Annotated[str, "`gpu`"]
    mode: Annotated[str, "`resident`, `paper` or `stream`"]
    gpus: Annotated[list[int], "numbers of the GPUs, as CUDA counts them"]
    rows: Annotated[int, "of the field, boundary included"]
    columns: Annotated[int, "the same"]
    dtype: Annotated[str, "`fp32` or `fp64`"]
    sweeps: Annotated[int, "of this run"]
    sweeps_per_pass: Annotated[int, "each time the field goes through the GPU's memory"]
    updates_per_s: Annotated[
        float, "inner cells times sweeps, over `seconds_compute`; in the modes `paper` and `stream` over `seconds_total`"
    ]
    fraction_of_copy_bandwidth: Annotated[float, "`updates_per_s` times the bytes of two cells, over `copy_bytes_per_s`"]
