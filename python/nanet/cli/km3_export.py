# SPDX-License-Identifier: Apache-2.0
"""`nanet km3 export`: time slices and events as files that KM3NeT's own programs read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanet.cli.options import JsonFile

if TYPE_CHECKING:
    from nanet.km3 import daq
    from nanet.km3.recordings import Collected

LEVELS = ("L0", "L1", "L2", "SN", "summary", "event")


def register(app: typer.Typer) -> None:
    """Adds the command to `nanet km3`."""
    app.command("export")(km3_export)


def km3_export(
    source: Annotated[
        Path, typer.Argument(metavar="FROM", help="A recording of packets (.pcap), or a dump of KM3NeT's dispatcher (.dat).")
    ],
    to: Annotated[Path, typer.Argument(metavar="TO", help="What to write: .dat, or .h5 for km3pipe's HDF5Pump.")],
    detector: Annotated[
        Path | None, typer.Option("--detector", help="Detector file (.detx): names of modules, and times of their PMs.")
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            "--level", metavar="LEVEL", help="L0, L1, L2, SN, summary or event; repeat for more. By default what FROM has."
        ),
    ] = None,
    window: Annotated[
        float, typer.Option("--window", metavar="NS", min=0, max=1000, help="Of coincidences, where L1 is made.")
    ] = 20.0,
    charge: Annotated[
        int, typer.Option("--charge", min=0, max=255, help="A hit of more is L1 alone, 1/10 photo-electron; 0: none is.")
    ] = 25,
    place: Annotated[
        int | None,
        typer.Option(
            "--place", min=0, max=31, help="PMs of a place; 0: all of a module. By default 2 of a tower, all of a string's."
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Write time slices and events as KM3NeT's programs read them.

    Packets of a tower's floors, of a string's modules and of the trigger become L0 slices and events; L1 slices and summaries are made of L0. Exits
    with 1 if a unit or an event of the recording has holes.
    """
    from nanet.config.errors import ConfigError
    from nanet.km3 import files
    from nanet.km3.detector import Detector
    from nanet.km3.recordings import Modules, modules_of_strings
    from nanet.result import files as results

    if unknown := sorted(set(level or ()) - set(LEVELS)):
        raise typer.BadParameter(f"'{unknown[0]}' is none of {', '.join(LEVELS)}", param_hint="--level")
    if to.suffix not in files.SUFFIXES:
        raise typer.BadParameter(f"'{to.name}' ends in none of {', '.join(files.SUFFIXES)}", param_hint="TO")
    modules = Modules(Detector.named(detector)) if detector is not None else Modules()
    messages, collected = files.messages_of(source, modules)
    if level:
        strings = modules_of_strings(messages, modules, collected)
        messages = files.with_levels(messages, level, modules, window_ns=window, charge=charge, places=place, strings=strings)
    if not messages:
        raise ConfigError([f"nothing to write (of {source} there is no slice and no event that was asked for) see --level"])
    files.write(to, messages)
    found = _said(messages, collected)
    results.write_json(json_file, {**results.base("km3 export"), "file": str(to), **found})
    parts = ", ".join(f"{count} {name}" for name, count in found["messages"].items())
    print(f"{to}: {parts}; {found['hits']:,} hits", flush=True)
    if lost := found["units_incomplete"] + found["events_incomplete"]:
        typer.echo(f"nanet: {lost} units or events of {source} have holes (packets are missing) see --json", err=True)
        raise typer.Exit(1)


def _said(messages: list[daq.Message], collected: Collected | None) -> dict[str, Any]:
    from nanet.km3 import daq, files

    kinds = Counter(files.level_of(one) for one in messages)
    hits = sum(len(frame.hits) for one in messages if isinstance(one, daq.Slice) for frame in one.frames)
    hits += sum(len(one.hits) for one in messages if isinstance(one, daq.Event))
    return {
        "messages": {name: kinds[name] for name in LEVELS if kinds[name]},
        "hits": hits,
        "packets": dict(collected.packets) if collected is not None else {},
        "units_incomplete": collected.units_incomplete if collected is not None else 0,
        "events_incomplete": collected.events_incomplete if collected is not None else 0,
    }
