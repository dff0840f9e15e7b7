# SPDX-License-Identifier: Apache-2.0
"""`nanet emulate km3`: a tower of KM3NeT."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nanet.cli.options import Duration, JsonFile, TruthFile, only_with

if TYPE_CHECKING:
    from nanet.run.km3_strings import StringsResult
    from nanet.run.km3_tower import TowerResult

OF_STRINGS = {"kind", "config", "to", "duration", "speed", "seed", "json_file"}


def register(app: typer.Typer) -> None:
    """Adds the command to those of `nanet emulate`."""
    app.command("km3")(emulate_km3)


def emulate_km3(
    context: typer.Context,
    kind: Annotated[
        Literal["tower", "strings"], typer.Option("--kind", help="A tower, or strings whose modules send packets of CLBs.")
    ] = "tower",
    config: Annotated[
        Path | None, typer.Option("--config", help="YAML file with all settings; other options are then ignored.")
    ] = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="URL", help="Where to send: once for all floors, or once for each.")
    ] = None,
    control: Annotated[
        str, typer.Option("--control", help="Where floor 1 takes slow control, others at the ports after it; '' for nowhere.")
    ] = "",
    floors: Annotated[int, typer.Option("--floors", min=1, max=32, help="Floors of the tower.")] = 14,
    duration: Duration = 10.0,
    samples: Annotated[
        int, typer.Option("--samples", min=0, max=255, help="Samples of a hit; 0: short hits. 106: 300 Mb/s a floor.")
    ] = 0,
    muons: Annotated[float, typer.Option("--muons", metavar="HZ", min=0, help="Muons near the tower.")] = 1.0,
    speed: Annotated[float, typer.Option("--speed", min=0, help="Detector time over time; 0: as fast as possible.")] = 1.0,
    pool: Annotated[
        int, typer.Option("--pool", metavar="SLICES", min=0, help="Make so many slices first, and send them repeatedly.")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything that is random.")] = 1,
    core: Annotated[int | None, typer.Option("--core", help="Core of the emulator's thread.")] = None,
    truth: TruthFile = None,
    json_file: JsonFile = None,
) -> None:
    """A tower of KM3NeT: hits, sound, slow control answered. Or strings (--kind strings), with --config, --to, --duration, --speed and --seed.

    Exits with 1 when packets could not be sent, or no one listens.
    """
    if kind == "strings":
        only_with(context, "strings", OF_STRINGS)
        _strings(config, to, duration, speed, seed, json_file)
        return
    from nanet.config.components import Tower
    from nanet.config.errors import validated
    from nanet.result import files
    from nanet.run import km3_tower

    keys: dict[str, Any] = {
        "destinations": to or ["udp://127.0.0.1:7100"], "control": control or None, "floors": floors, "duration_s": duration,
        "hits": samples == 0, "samples": samples, "muons": {"rate_hz": muons}, "speed": speed, "pool_slices": pool, "seed": seed,
        "cpu_core": core,
    }  # fmt: skip
    loaded = km3_tower.load(config) if config is not None else validated(Tower, keys)
    result = km3_tower.run(loaded, truth=truth, say=lambda text: print(text, flush=True))
    files.write_json(json_file, result)
    print(km3_tower.sentence(result), flush=True)
    _end(result)


def _strings(config: Path | None, to: list[str] | None, duration: float, speed: float, seed: int, json_file: Path | None) -> None:
    from nanet.config.errors import validated
    from nanet.config.km3_strings import Strings, load
    from nanet.result import files
    from nanet.run import km3_strings

    if len(to or ()) > 1:
        raise typer.BadParameter("strings send to one place: give it once", param_hint="--to")
    keys: dict[str, Any] = {"duration_s": duration, "speed": speed, "seed": seed} | ({"destination": to[0]} if to else {})
    loaded = load(config) if config is not None else validated(Strings, keys)
    result = km3_strings.run(loaded, lambda text: print(text, flush=True))
    files.write_json(json_file, result)
    print(km3_strings.sentence(result), flush=True)
    _end(result)


def _end(result: TowerResult | StringsResult) -> None:
    """Says who refused packets. 1: not all were sent to someone who listens."""
    if refused_by := result["refused_by"]:
        why = f"{result['tx_refused']:,} notices came that no one listens there"
        typer.echo(f"nanet: packets were refused by {', '.join(refused_by)} ({why}) start the receiver first", err=True)
    raise typer.Exit(1 if result["tx_dropped"] or result["tx_refused"] else 0)
