# SPDX-License-Identifier: Apache-2.0
"""`nanet stencil`: its options, and what it prints."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from nanet.cli.options import CheckpointFile, JsonFile, PlotFile

if TYPE_CHECKING:
    from nanet.stencil.keys import MovedTilesResult, SweptResult

Made = TypeVar("Made")
BROKEN = 1  # exit code: a rank or an owner is gone


class Dtype(StrEnum):
    """Type of a cell."""

    FP32 = "fp32"
    FP64 = "fp64"


class Mode(StrEnum):
    """Whether the tile stays or is moved."""

    RESIDENT = "resident"
    PAPER = "paper"
    STREAM = "stream"


class Over(StrEnum):
    """What carries the edges of ranks."""

    MEMORY = "memory"
    TORUS = "torus"


class Device(StrEnum):
    """What sweeps."""

    CPU = "cpu"
    GPU = "gpu"


# What --device gpu does not support, by parameter.
ONLY_ON_CPU = (
    "until", "threads", "pinned", "tile", "chunk", "ranks", "halo_rows", "rendezvous", "address", "transports", "trust_network", "timeout_s",
    "checkpoint", "checkpoint_every", "restart", "plot", "progress", "over",
)  # fmt: skip
# What a tile that is moved does not: it is swept by one process.
ONLY_RESIDENT = (
    "size", "sweeps_per_pass", "norm_every", "until", "gpus", "ranks", "halo_rows", "over", "rendezvous", "address",
    "checkpoint", "checkpoint_every", "restart", "plot", "progress",
)  # fmt: skip
# What --over torus does not: its ranks are threads of this process.
ONLY_OVER_MEMORY = ("rendezvous", "address", "transports", "trust_network")


def stencil(
    context: typer.Context,
    size: Annotated[str, typer.Option("--size", metavar="N|ROWSxCOLUMNS", help="Cells of the field, boundary included.")] = "8192",
    dtype: Annotated[
        Dtype | None, typer.Option("--dtype", help="Type of a cell; by default fp64, or fp32 for a tile that is moved.")
    ] = None,
    sweeps: Annotated[
        int | None,
        typer.Option("--sweeps", metavar="N", min=1, help="How many sweeps; by default 100, or 1 for a tile that is moved."),
    ] = None,
    sweeps_per_pass: Annotated[
        int | None,
        typer.Option(
            "--sweeps-per-pass",
            metavar="N",
            min=1,
            max=32,
            help="Sweeps each time the field goes through memory; 1: plain sweeps. By default 4, on GPUs 8.",
        ),
    ] = None,
    norm_every: Annotated[
        int, typer.Option("--norm-every", metavar="N", min=0, help="Compute the norm of the change every N-th sweep; 0: never.")
    ] = 0,
    until: Annotated[
        float | None, typer.Option("--until", metavar="NORM", min=0.0, help="Stop when a norm's largest change is at most this.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=1, help="Threads of a process; by default one for each core that it may use."),
    ] = None,
    pinned: Annotated[bool, typer.Option("--pin/--no-pin", help="Tie each thread to a core.")] = True,
    device: Annotated[Device, typer.Option("--device", help="What sweeps: the cores, or GPUs.")] = Device.CPU,
    gpus: Annotated[str, typer.Option("--gpus", metavar="LIST", help="With --device gpu: which ones, such as 0,1.")] = "0",
    mode: Annotated[
        Mode, typer.Option("--mode", help="resident: the field stays; paper, stream: a tile of another process is moved.")
    ] = Mode.RESIDENT,
    tile: Annotated[
        str, typer.Option("--tile", metavar="SIZES", help="With --mode paper and stream: sizes of the tile, such as 64M,1G.")
    ] = "64M,128M,256M,512M,1G,2G,4G",
    chunk: Annotated[str, typer.Option("--chunk", metavar="SIZE", help="With --mode stream: how much is moved at a time.")] = "4M",
    ranks: Annotated[
        str,
        typer.Option("--ranks", metavar="N|env", help="Processes that share the field; env: this one is a rank of srun or mpirun."),
    ] = "1",
    halo_rows: Annotated[
        int | None,
        typer.Option(
            "--halo-rows", metavar="K", min=1, max=32, help="Sweeps between two exchanges of ranks; by default a model chooses."
        ),
    ] = None,
    over: Annotated[
        Over,
        typer.Option(
            "--over", help="What carries the ranks' edges: remote memory, or PUT in a simulated APEnet+ torus, each rank a node."
        ),
    ] = Over.MEMORY,
    rendezvous: Annotated[
        str,
        typer.Option(
            "--rendezvous",
            metavar="HOST:PORT|FILE",
            help="With --ranks env: where rank 0 listens, or the file in which it writes that.",
        ),
    ] = "",
    address: Annotated[
        str, typer.Option("--address", metavar="ADDRESS", help="With --ranks env: where others reach this rank.")
    ] = "",
    transports: Annotated[
        str, typer.Option("--transports", metavar="LIST", help="UCX's; by default shared memory, between machines RDMA hardware.")
    ] = "",
    trust_network: Annotated[
        bool,
        typer.Option("--trust-network", help="Allow UCX's TCP: whoever reaches the interface then has full control over a rank."),
    ] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout", metavar="S", min=0.1, help="How long to wait for a rank or an owner that does not answer.")
    ] = 30.0,
    checkpoint: CheckpointFile = None,
    checkpoint_every: Annotated[
        int, typer.Option("--checkpoint-every", metavar="N", min=0, help="... after every N-th sweep.")
    ] = 0,
    restart: Annotated[
        Path | None, typer.Option("--restart", metavar="FILE", help="Resume from a checkpoint; --size and --dtype come from it.")
    ] = None,
    plot: PlotFile = None,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="Show a progress bar; by default if standard error is a terminal."),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Five-point Jacobi sweeps on CPU cores or GPUs.

    Reports updates per second, and how that compares with copying memory.
    """
    from nanet.rdma import TRUSTED
    from nanet.result import files
    from nanet.stencil import cpu as sweeping
    from nanet.stencil import modes
    from nanet.stencil import ranks as stencil_ranks

    if trust_network:
        print(f"nanet: {TRUSTED}", file=sys.stderr, flush=True)

    if device is Device.GPU:
        from nanet.stencil import gpu

        _refuse_given(context, ONLY_ON_CPU, "--device gpu", "--device cpu")
        asked = gpu.GpuStencilOptions(
            *sweeping.shape_of(size), (dtype or Dtype.FP32).value, sweeps or 1000, sweeps_per_pass or 8, norm_every,
            gpu.gpus_of(gpus), mode.value,
        )  # fmt: skip
        on_gpu = gpu.measure(asked)
        files.write_json(json_file, on_gpu)
        for line in gpu.lines_of(on_gpu):
            _say(line)
        return
    if mode is not Mode.RESIDENT:
        _refuse_given(context, ONLY_RESIDENT, f"--mode {mode.value}", "--mode resident")
        given = modes.ModeOptions(
            mode.value, modes.sizes_of(tile), (dtype or Dtype.FP32).value, sweeps or 1, threads, pinned, transports,
            modes.sizes_of(chunk)[0], timeout_s=timeout_s, trust_network=trust_network,
        )  # fmt: skip
        result = _or_broken(lambda: modes.measure_modes(given, _say))
        files.write_json(json_file, result)
        _say_moved(result)
        return
    _refuse_given(context, ("tile", "chunk"), "--mode resident", "--mode paper or stream")
    _refuse_given(context, ("gpus",), "--device cpu", "--device gpu")
    rows, columns = sweeping.shape_of(size)
    options = sweeping.StencilOptions(
        rows, columns, (dtype or Dtype.FP64).value, sweeps or 100, sweeps_per_pass or 4, norm_every, threads, pinned,
        until, checkpoint, checkpoint_every, restart, plot, sys.stderr.isatty() if progress is None else progress,
    )  # fmt: skip
    among = stencil_ranks.RankOptions(rendezvous, address, transports, trust_network, halo_rows, timeout_s)
    if over is Over.TORUS:
        _refuse_given(context, ONLY_OVER_MEMORY, "--over torus", "--over memory")
    found = _or_broken(lambda: _swept(options, among, ranks, over))
    if found is None:
        return  # rank 0 says it
    files.write_json(json_file, found)
    _say_swept(found, options)


def _refuse_given(context: typer.Context, names: tuple[str, ...], beside: str, only: str) -> None:
    from nanet import SetupError

    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            option = parameter.opts[0]
            raise SetupError(f"{option} together with {beside} (only {only} supports it) remove {option}")


def _swept(options: Any, among: Any, ranks: str, over: Over) -> SweptResult | None:
    import os

    from nanet import SetupError
    from nanet.stencil import cpu as sweeping
    from nanet.stencil import ranks as stencil_ranks

    if ranks == "env" and over is Over.TORUS:
        raise SetupError("--ranks env together with --over torus (its ranks are threads of one process) give a number")
    if ranks == "env":
        from nanet.stencil.rendezvous import rank_of_environment

        return stencil_ranks.run_rank(options, among, *rank_of_environment(os.environ))
    if not (ranks.isdecimal() and 1 <= int(ranks) <= 1024):
        raise SetupError(f"{ranks} ranks are not possible (1 to 1024, or env) say how many processes are to share the field")
    if over is Over.TORUS:
        from nanet.stencil.over_torus import run_ranks_over_torus

        return run_ranks_over_torus(options, among, int(ranks))
    if int(ranks) == 1 and among.halo_rows is None:
        return sweeping.measure(options)
    return stencil_ranks.run_ranks(options, among, int(ranks))


def _or_broken(call: Callable[[], Made]) -> Made:
    """A rank or an owner that is gone is one line and exit code 1."""
    try:
        return call()
    except RuntimeError as error:
        if type(error).__name__ not in ("RankError", "TransferError"):
            raise
        print(f"nanet: {error}", file=sys.stderr)
        raise typer.Exit(BROKEN) from None


def _say_swept(result: SweptResult, options: Any) -> None:
    from nanet.stencil import model

    for norm in result["norms"]:
        _say(f"sweep {norm['sweep']:>8}: change max {norm['max']:.6e}  L2 {norm['l2']:.6e}")
    if result["ranks"] > 1:
        for line in model.table([model.read(one) for one in result["model"]], result["halo_rows"]):
            _say(line)
        _say(f"{result['ranks']} ranks, halos of {result['halo_rows']} rows, over {result['path']}")
    if "exchange_cycles" in result:
        _say(
            f"{result['exchanges']} exchanges of {result['exchange_cycles']:.0f} cycles ({result['exchange_cycles'] / 175:.2f} us at 175 MHz)"
        )
    where = f"cores {', '.join(map(str, result['cores']))}" if result["cores"] else "not pinned"
    of_each = " a rank" if result["ranks"] > 1 else ""
    _say(f"{result['rows']} x {result['columns']} {result['dtype']}, {result['sweeps']} sweeps, {result['sweeps_per_pass']} a pass, "
         f"{result['threads']} threads{of_each} ({where})")  # fmt: skip
    _say(f"{result['updates_per_s'] / 1e9:.3f} Gupdate/s, {result['seconds_compute']:.3f} s; including loading and storing the field "
         f"{result['seconds_total']:.3f} s")  # fmt: skip
    _say_copy(result)
    if options.until is not None:
        _say(f"the norm reached {options.until:g}" if result["converged"] else f"the norm did not reach {options.until:g}")
    if result["checkpoints"]:
        _say(f"checkpoint {options.checkpoint}: sweep {result['sweeps_done']}")
    if options.plot:
        _say(f"picture {options.plot}")


def _say_moved(result: MovedTilesResult) -> None:
    where = f"cores {', '.join(map(str, result['cores']))}" if result["cores"] else "not pinned"
    _say(
        f"{result['mode']}: {result['dtype']}, {result['sweeps']} sweeps, {result['threads']} threads ({where}), over {result['path']}"
    )
    _say_copy(result)


def _say_copy(result: SweptResult | MovedTilesResult) -> None:
    _say(f"{result['fraction_of_copy_bandwidth']:.2f} of a copy on the same cores ({result['copy_bytes_per_s'] / 1e9:.2f} GB/s; "
         f"an update counted as one read and one write)")  # fmt: skip
    for note in result["notes"]:
        _say(f"note: {note}")


def _say(line: str) -> None:
    print(line, flush=True)
