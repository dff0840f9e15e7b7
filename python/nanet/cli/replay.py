# SPDX-License-Identifier: Apache-2.0
"""`nanet replay`: the options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nanet.cli.options import JsonFile


def replay(
    file: Annotated[Path, typer.Argument(help="A pcap file, or raw data: a sequence of MEPs.")],
    to: Annotated[str, typer.Option("--to", metavar="URL", help="Where the packets go: udp://ADDRESS:PORT.")],
    pace: Annotated[
        str, typer.Option("--pace", help="original, max, a number of events per second (1e6), or of packets per second (5e4p).")
    ] = "original",
    laps: Annotated[int, typer.Option("--laps", help="How many times; 0: until a signal arrives.")] = 1,
    only_port: Annotated[int, typer.Option("--only-port", help="From a pcap file, packets to this UDP port only; 0: all.")] = 0,
    layout: Annotated[str, typer.Option("--layout", help="Layout of packets made from raw data: padded or packed.")] = "padded",
    fine_time: Annotated[int, typer.Option("--fine-time", help="Fine time of every event made from raw data, 0 to 255.")] = 0,
    json_file: JsonFile = None,
) -> None:
    """Play a recording to an engine.

    At its own pace, at a given rate, or as fast as possible.
    """
    from nanet.result import files
    from nanet.run import replay as player

    options = player.options_from_text(file, to, pace, laps=laps, only_port=only_port, layout=layout, fine_time=fine_time)
    result = player.run(options)
    files.write_json(json_file, result)
    for note in result["notes"]:
        print(f"note: {note}", flush=True)
    print(player.sentence(result), flush=True)
    raise typer.Exit(1 if result["tx_dropped"] or result["tx_refused"] or result["stopped_early"] else 0)
