# SPDX-License-Identifier: Apache-2.0
"""The commands below `nanet rdma`. Exit code 1: it was not done, or the path is not what was required; 2: it could not start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanet.cli.options import CsvFile, JsonFile, Out
from nanet.rdma import TRUSTED, NotDone, native
from nanet.rdma.measurement import Measurement
from nanet.rdma.require import Require
from nanet.result import outputs

if TYPE_CHECKING:
    from nanet.result.keys.rdma import MovedResult, TransferBenchResult

rdma_app = typer.Typer(
    no_args_is_help=True,
    help="Remote memory: expose a region, write it, read it, measure.",
)


# Of UCX, which has printed why: docs/rdma.md.
ABORTED = "the region is not served any more (this process aborted, as UCX does where a peer gives up while it is answered over TCP) serve it again"


class Peer(StrEnum):
    """What else is measured."""

    UCX_PERFTEST = "ucx_perftest"


Region = Annotated[str, typer.Option("--region", metavar="NAME", help="Name that the region is exposed under.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file", metavar="FILE", help="The token, 1 to 16 hexadecimal digits; else NANET_RDMA_TOKEN of the environment."
    ),
]
Transports = Annotated[
    str,
    typer.Option(
        "--transports", metavar="LIST",
        help="As in UCX_TLS, the same on both sides; by default shared memory on this machine, elsewhere RDMA hardware.",
    ),
]  # fmt: skip
TrustNetwork = Annotated[
    bool,
    typer.Option("--trust-network", help="Allow UCX's TCP: whoever reaches the interface then has full control over this process."),
]
AllowRoot = Annotated[bool, typer.Option("--allow-root", help="Serve as root: whoever connects could use what root may do.")]
Requirement = Annotated[Require | None, typer.Option("--require", help="Exit 1 unless the path proves it.")]
Offset = Annotated[str, typer.Option("--offset", metavar="SIZE", help="Offset in the region.")]
TimeoutMs = Annotated[int, typer.Option("--timeout-ms", min=1, help="Time limit of the set-up and of each operation.")]
Chunk = Annotated[str, typer.Option("--chunk", metavar="SIZE", help="Transfers are split into chunks of this size.")]
Depth = Annotated[int, typer.Option("--depth", min=1, max=65536, help="Most chunks in flight at once.")]
OwnMemory = Annotated[
    str,
    typer.Option(
        "--memory", metavar="KIND", help="Memory on this side that the file passes through: host, cuda[:GPU] or pinned[:GPU]."
    ),
]


@rdma_app.command("serve")
def serve(
    region: Region,
    size: Annotated[str, typer.Option("--size", metavar="SIZE", help="Such as 64KiB, 1GiB or 1GB.")],
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="PLACE", help="ADDRESS[:PORT], or the path of a Unix socket; beyond this machine a token is needed."
        ),
    ] = "127.0.0.1",
    read: Annotated[bool, typer.Option("--read", help="Others may read it.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Others may write it.")] = False,
    token_file: TokenFile = None,
    memory: Annotated[
        str,
        typer.Option(
            "--memory",
            metavar="KIND",
            help="shared: mapped by processes of this machine; host: locked, for RDMA hardware; cuda[:GPU]; pinned[:GPU]: the host's, by CUDA.",
        ),
    ] = "shared",
    transports: Transports = "",
    trust_network: TrustNetwork = False,
    allow_root: AllowRoot = False,
    spin: Annotated[
        bool, typer.Option("--spin", help="Never sleep: faster where this CPU must take part, but keeps one core busy.")
    ] = False,
    duration: Annotated[float, typer.Option("--duration", metavar="S", min=0.0, help="0: until SIGINT or SIGTERM.")] = 0.0,
    json_file: JsonFile = None,
) -> None:
    """Expose a region of zeros until stopped."""
    with exit_codes():
        from nanet.rdma import memory as memories
        from nanet.rdma import serve as serving
        from nanet.rdma import tokens, units
        from nanet.result import files

        native().say_at_abort(f"nanet: {ABORTED}\n")
        address, port = _listen_place(listen)
        token, of = tokens.read_token(token_file), memories.parse_memory(memory)
        exposure = serving.Exposure(
            region, units.parse_size(size), read, write, address, port, token, of, transports, trust_network, spin, allow_root
        )
        result = serving.serve(exposure, say, duration)
        files.write_json(json_file, result)
        say(f"served for {result['elapsed_s']:.1f} s; {result['refused']} refused")


@rdma_app.command("put")
def put(
    file: Annotated[Path, typer.Argument(help="File to write to the region, whole.")],
    to: Annotated[str, typer.Option("--to", metavar="HOST:PORT", help="Where the target listens.")],
    region: Region,
    offset: Offset = "0",
    token_file: TokenFile = None,
    require: Requirement = None,
    transports: Transports = "",
    trust_network: TrustNetwork = False,
    timeout_ms: TimeoutMs = 10_000,
    chunk: Chunk = "1MiB",
    depth: Depth = 8,
    memory: OwnMemory = "host",
    json_file: JsonFile = None,
) -> None:
    """Write a file to a remote region.

    When it exits with 0, the bytes are in the target's memory.
    """
    with exit_codes():
        from nanet.rdma import transfer, units

        remote = _remote(to, region, token_file, require, transports, trust_network, timeout_ms, chunk, depth, memory)
        _report(transfer.put(remote, file, units.parse_size(offset)), f"put {file}", json_file)


@rdma_app.command("get")
def get(
    file: Annotated[Path, typer.Argument(help="Written whole or not at all.")],
    source: Annotated[str, typer.Option("--from", metavar="HOST:PORT", help="Where the target listens.")],
    region: Region,
    offset: Offset = "0",
    size: Annotated[str | None, typer.Option("--size", metavar="SIZE", help="By default to the end of the region.")] = None,
    token_file: TokenFile = None,
    require: Requirement = None,
    transports: Transports = "",
    trust_network: TrustNetwork = False,
    timeout_ms: TimeoutMs = 10_000,
    chunk: Chunk = "1MiB",
    depth: Depth = 8,
    memory: OwnMemory = "host",
    json_file: JsonFile = None,
) -> None:
    """Read a remote region, or a part of it, into a file."""
    with exit_codes():
        from nanet.rdma import transfer, units

        remote = _remote(source, region, token_file, require, transports, trust_network, timeout_ms, chunk, depth, memory)
        size_bytes = None if size is None else units.parse_size(size)
        _report(transfer.get(remote, file, units.parse_size(offset), size_bytes), f"got {file}", json_file)


@rdma_app.command("bench")
def bench(
    test: Annotated[list[Measurement] | None, typer.Option("--test", help="Only this test; repeat for more.")] = None,
    smallest: Annotated[str, typer.Option("--smallest", metavar="SIZE", help="First size of the sweep.")] = "8",
    largest: Annotated[str, typer.Option("--largest", metavar="SIZE", help="Last size of the sweep.")] = "1GiB",
    factor: Annotated[
        float, typer.Option("--factor", help="From one size to the next; 64 KiB and 1 MiB are always included.")
    ] = 4.0,
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="SIZE", help="This size instead of a sweep; repeat for more.")
    ] = None,
    bench_depth: Annotated[int, typer.Option("--depth", min=1, max=65536, help="Transfers in flight at once, for bandwidth.")] = 32,
    batch: Annotated[int, typer.Option("--batch", min=0, help="Flush after this many transfers; 0: after the last.")] = 0,
    duration: Annotated[float, typer.Option("--duration", metavar="S", min=0.001, help="Length of each run.")] = 0.2,
    iterations: Annotated[int, typer.Option("--iterations", min=0, help="Transfers of each run, instead of --duration.")] = 0,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, help="Medians over this many rounds; by default 5 with --peer, else 1.")
    ] = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="KIND", help="Memory on this side, as for nanet rdma serve.")
    ] = "shared",
    target_memory: Annotated[str, typer.Option("--target-memory", metavar="KIND", help="Memory on the other side.")] = "shared",
    transports: Annotated[
        str | None,
        typer.Option(
            "--transports",
            metavar="LIST",
            help="As in UCX_TLS, for nanet and the peer; by default posix, and cuda if a GPU's memory is used; with --target as its address says.",
        ),
    ] = None,
    trust_network: TrustNetwork = False,
    allow_root: AllowRoot = False,
    require: Requirement = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="HOST:PORT", help="A nanet rdma bench --serve; by default a process here.")
    ] = None,
    serve_at: Annotated[
        str | None,
        typer.Option("--serve", metavar="ADDRESS[:PORT]", help="Measure nothing: be the other side until stopped."),
    ] = None,
    token_file: TokenFile = None,
    peer: Annotated[
        Peer | None, typer.Option("--peer", help="Measure this peer too, alternating with nanet, and print the ratios.")
    ] = None,
    timeout_ms: Annotated[int, typer.Option("--timeout-ms", min=1, help="Time limit of each transfer and answer.")] = 60_000,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure bandwidth and latency of put and get against size.

    Every byte is checked.
    """
    with exit_codes():
        from nanet.rdma import bench as measuring
        from nanet.rdma import memory as memories
        from nanet.rdma import responder, tokens, transfer, units
        from nanet.rdma import serve as serving

        _say_trusted(trust_network=trust_network)
        token = tokens.read_token(token_file)
        if serve_at is not None:
            serving.check_account("bench", allow_root=allow_root)
            responder.serve(responder.listen(*_listen_place(serve_at), token), token, say, trust_network=trust_network)
            return
        outputs.reserve_folder(out, "rdma-bench.html")
        sizes = (
            tuple(map(units.parse_size, size))
            if size
            else measuring.sweep(units.parse_size(smallest), units.parse_size(largest), factor)
        )
        own, other = memories.parse_memory(memory), memories.parse_memory(target_memory)
        by_default = memories.transports_for("" if target else "posix", own, other)
        options = measuring.BenchOptions(
            tuple(test) if test else None, sizes, bench_depth, batch, duration, iterations, rounds or (5 if peer else 1), own, other,
            by_default if transports is None else transports, trust_network, require, transfer.parse_remote(target) if target else None, token,
            peer is not None, timeout_ms / 1e3,
        )  # fmt: skip
        result = measuring.run(options, say)
        _finish_bench(result, measuring.csv_rows(result), out, json_file, csv_file)
    raise typer.Exit(0 if result["right"] else 1)


@rdma_app.command("doctor")
def doctor(json_file: JsonFile = None) -> None:
    """Show what this machine can do with RDMA, and what limits it.

    Looks at UCX, the kernel and the hardware.
    """
    from nanet.cli.text import doctor_table
    from nanet.rdma import doctor as findings
    from nanet.result import files

    result = findings.run()
    files.write_json(json_file, result)
    doctor_table(result["checks"])
    raise typer.Exit(1 if result["state"] == "fail" else 0)


@contextmanager
def exit_codes() -> Iterator[None]:
    """What was started and not done is one line on standard error and exit code 1."""
    try:
        yield
    except NotDone as error:
        print(f"nanet: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def say(line: str) -> None:
    """Prints a line at once."""
    print(line, flush=True)


def _say_trusted(*, trust_network: bool) -> None:
    """A target says it by itself, of its interface."""
    if trust_network:
        print(f"nanet: {TRUSTED}", file=sys.stderr, flush=True)


def _listen_place(text: str) -> tuple[str, int]:
    from nanet.rdma.transfer import parse_remote

    if text.startswith("/"):
        return text, 0
    has_port = (text.startswith("[") and "]:" in text) or text.count(":") == 1
    return parse_remote(text if has_port else f"[{text.strip('[]')}]:0")


def _remote(
    place: str,
    region: str,
    token_file: Path | None,
    require: Require | None,
    transports: str,
    trust_network: bool,
    timeout_ms: int,
    chunk: str,
    depth: int,
    memory: str,
) -> Any:
    from nanet.rdma import memory as memories
    from nanet.rdma import tokens, transfer, units

    _say_trusted(trust_network=trust_network)
    address, port = transfer.parse_remote(place)
    token = tokens.read_token(token_file)
    of = memories.parse_memory(memory)
    return transfer.Remote(
        address, port, region, token, transports, trust_network, timeout_ms, units.parse_size(chunk), depth, require, of
    )


def _finish_bench(
    result: TransferBenchResult, rows: list[tuple[str, str, float, str]], out: Path, json_file: Path | None, csv_file: Path | None
) -> None:
    from nanet.report import write_report
    from nanet.result import files

    files.write_json(json_file, result)
    files.append_csv(csv_file, "rdma", rows)
    write_report(result, out / "rdma-bench.html")
    if (ratio := result["ratio_to_peer"]) is not None and (peer := result["peer"]) is not None:
        say(f"ratio_to_peer (put bandwidth at 1 MiB, ucx_perftest {peer['version']}): {ratio:.3f}")
    for note in result["notes"]:
        say(f"note: {note}")
    say("every byte was right" if result["right"] else "WRONG BYTES: see the lines above")
    say(f"report: {out / 'rdma-bench.html'}")


def _report(result: MovedResult, what: str, json_file: Path | None) -> None:
    from nanet.rdma import units
    from nanet.result import files

    files.write_json(json_file, result)
    say(f"path: {result['path']['text']}")
    for way in result["ways"]:
        say(f"path of a {way['operation']} of {units.size_text(way['bytes'])}: {way['text']}")
    say(f"{what}: {units.both_text(result['bytes'])} in {result['seconds']:.3f} s, {units.rate_text(result['bytes_per_s'])}")
