# SPDX-License-Identifier: Apache-2.0
"""Options shared by several commands."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nanet.cli.free_port import free_port


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


JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result there as JSON (its keys: docs/json.md).")
]
CsvFile = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Append the figures there.")]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the HTML report goes.")]
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
