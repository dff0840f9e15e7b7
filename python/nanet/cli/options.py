# SPDX-License-Identifier: Apache-2.0
"""Options shared by several commands."""

from __future__ import annotations

import fcntl
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from nanet.cli.free_port import free_port
from nanet.result import outputs


class Layout(StrEnum):
    """Layout of MGP packets."""

    PADDED = "padded"
    PACKED = "packed"


class Sample(StrEnum):
    """Which events the boards send."""

    SINGLE = "single"
    MULTI = "multi"
    PARTICLES = "particles"


class Topology(StrEnum):
    """Threads of the engine."""

    RUN_TO_COMPLETION = "run_to_completion"
    PIPELINED = "pipelined"


class Runtime(StrEnum):
    """Where the engine's processor runs."""

    CPU = "cpu"
    LAUNCH = "launch"
    GRAPH = "graph"
    PERSISTENT = "persistent"


class DetectorKind(StrEnum):
    """Whose loop a demo shows."""

    RICH = "rich"
    KM3 = "km3"


def only_with(context: typer.Context, what: str, names: set[str]) -> None:
    """Refuses options that `what` would not look at. names: of those that it does."""
    for name, option in _given(context).items():
        if name not in names:
            raise typer.BadParameter(f"{option} says nothing of {what}", param_hint=f"'{option}'")


def set_by(context: typer.Context, what: str, names: set[str]) -> None:
    """Refuses options that `what`, an option that is given too, sets itself. names: of those."""
    for name, option in _given(context).items():
        if name in names:
            raise typer.BadParameter(f"{what} sets it; give one of the two", param_hint=f"'{option}'")


def _given(context: typer.Context) -> dict[str, str]:
    """Options of the command line: how they are written, by name."""
    sources = {one: context.get_parameter_source(str(one.name)) for one in context.command.params}
    return {str(one.name): one.opts[0] for one, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _reserve(context: typer.Context, path: Path | None) -> Path | None:
    if not context.resilient_parsing:
        outputs.reserve(path)
    return path


def _reserve_to_append(context: typer.Context, path: Path | None) -> Path | None:
    if not context.resilient_parsing:
        outputs.reserve(path, appends=True)
    return path


def _check_file(context: typer.Context, path: Path | None) -> Path | None:
    if path is not None and not context.resilient_parsing:
        outputs.Output(path).discard()
    return path


def _check_folder(context: typer.Context, path: Path) -> Path:
    if not context.resilient_parsing:
        outputs.reserve_folder(path)
    return path


def _descriptor(access: int) -> Any:
    """A callback that refuses a descriptor which is not open for this."""

    def check(context: typer.Context, number: int | None) -> int | None:
        if number is not None and not context.resilient_parsing:
            try:
                found = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
            except (OSError, OverflowError):
                raise typer.BadParameter(f"descriptor {number} is not open") from None
            if found not in (access, os.O_RDWR):
                raise typer.BadParameter(f"descriptor {number} is not open for {'reading' if access == os.O_RDONLY else 'writing'}")
        return number

    return check


# Files are opened when the command line is read, before any work. Descriptors of the caller's are looked at before: eager.
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", callback=_reserve, help="Write the result there as JSON (its keys: docs/json.md)."),
]
CsvFile = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", callback=_reserve_to_append, help="Append the figures there.")
]
HtmlFile = Annotated[Path, typer.Option("--html", metavar="FILE", callback=_reserve, help="Write the report with all plots there.")]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", callback=_reserve, help="Draw the field at the end (PNG).")
]
LuaFile = Annotated[
    Path | None, typer.Option("--lua", metavar="FILE", callback=_reserve, help="Write it there; none: to standard output.")
]
TruthFile = Annotated[
    Path | None,
    typer.Option("--truth", metavar="FILE", callback=_check_file, help="HDF5 file for tracks, their hits and all places."),
]
PcapFile = Annotated[
    Path | None, typer.Option("--pcap", metavar="FILE", callback=_check_file, help="Write them to a pcap file instead.")
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="FILE", callback=_check_file, help="Write the field there (HDF5), at the end and ..."),
]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", callback=_check_folder, help="Where the report and its data go.")]
ReadyFd = Annotated[
    int | None,
    typer.Option(
        "--ready-fd", is_eager=True, callback=_descriptor(os.O_WRONLY), help="Write a line to this descriptor when it listens."
    ),
]
StatusFd = Annotated[
    int | None,
    typer.Option(
        "--status-fd", is_eager=True, callback=_descriptor(os.O_WRONLY),
        help="Write the counters to this descriptor once a second, as JSON.",
    ),
]  # fmt: skip
ControlFd = Annotated[
    int | None,
    typer.Option(
        "--control-fd", is_eager=True, callback=_descriptor(os.O_RDONLY),
        help="Read orders from this descriptor: which faults to inject into a link.",
    ),
]  # fmt: skip
Boards = Annotated[int, typer.Option("--boards", help="1: whole events from one board; 4: parts from four, merged.")]
LayoutOption = Annotated[Layout, typer.Option("--layout", help="Layout of the packets.")]
TopologyOption = Annotated[Topology, typer.Option("--topology", help="Threads of the engine.")]
Rate = Annotated[float, typer.Option("--rate", metavar="EVENTS/S", help="Mean rate of events.")]
Duration = Annotated[float, typer.Option("--duration", metavar="S", help="How long to send.")]
Budget = Annotated[int, typer.Option("--budget-us", help="Promised limit of the latency's p99.9.")]
Burst = Annotated[int, typer.Option("--burst", metavar="PACKETS", help="Packets that a board sends in one call.")]
EventsPerPacket = Annotated[int, typer.Option("--events-per-packet", help="Events in a full packet.")]
PortOption = Annotated[
    int,
    typer.Option(
        "--port", callback=free_port, help="UDP port of the engine; answers arrive at PORT + 100. By default the next free one."
    ),
]
L0Option = Annotated[
    bool,
    typer.Option("--l0/--no-l0", help="With the L0 trigger processor (at PORT + 200, its triggers to PORT + 300), or without."),
]
MeanHits = Annotated[float | None, typer.Option("--mean-hits", help="Mean hits of a ring (of an electron's, for particles).")]
SampleOption = Annotated[
    Sample,
    typer.Option(
        "--sample", help="single: one ring of 20 hits; multi: 0 to 4 rings and noise; particles: the same, of e, mu and pi."
    ),
]
FinderOption = Annotated[str, typer.Option("--finder", metavar="NAME", help="Ring finder, such as math, almagest or mixture.")]
MetricsOption = Annotated[
    str | None,
    typer.Option("--metrics", metavar="ADDRESS:PORT", help="Serve the engine's /metrics (Prometheus) and /health at this address."),
]
RuntimeOption = Annotated[
    Runtime, typer.Option("--runtime", help="Where events are judged: on the CPU, or on a GPU by one of three methods.")
]
