# SPDX-License-Identifier: Apache-2.0
"""`nanet km3 positions`: where floors are, from what their hydrophones heard."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanet.cli.options import JsonFile

if TYPE_CHECKING:
    from nanet.km3.positions import Heard, Placed


def register(app: typer.Typer) -> None:
    """Adds the command to `nanet km3`."""
    app.command("positions")(km3_positions)


def km3_positions(
    recording: Annotated[Path, typer.Argument(help="Packets of floors (.pcap).")],
    detector: Annotated[Path, typer.Option("--detector", help="Detector file (.detx) with the nominal places.")],
    beacons: Annotated[Path, typer.Option("--beacons", help="YAML file of the beacons: places, pulse, periods, speed of sound.")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="FILE", help="Write a detector file with the places as they are.")
    ] = None,
    add: Annotated[
        str | None,
        typer.Option("--add", metavar="NAME", help="Add that file to the server's store, as a version of NAME from now on."),
    ] = None,
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The server's YAML file, for --add.")] = Path("km3.yaml"),
    json_file: JsonFile = None,
) -> None:
    """Find floors by sound.

    Pulses of beacons are looked for in what hydrophones recorded; least squares give places. A time or a hydrophone that is not used has a reason.
    Exits with 1 if a floor has no place: it stays where it was.
    """
    from nanet.config.km3_beacons import load
    from nanet.km3 import positions
    from nanet.km3.detector import Detector
    from nanet.km3.recordings import packets_of
    from nanet.result import files, outputs

    known = load(beacons)
    nominal = Detector.named(detector)
    heard = positions.hear(packets_of(recording))
    placed = positions.place(heard, nominal, known)
    result = _result(heard, placed)
    text = positions.moved_detector(nominal, placed.motions)
    if to is not None:
        outputs.write(to, text.encode())
    if add is not None:
        result["added"] = _add(config, add, text, f"from sound, {len(placed.motions)} floors of {len(nominal.floors)}")
    files.write_json(json_file, {**files.base("km3 positions"), **result})
    for line in _lines(result):
        print(line, flush=True)
    missing = [f"{one['tower']}/{one['floor']}" for one in result["floors"] if one["shift_m"] is None]
    if missing:
        typer.echo(f"nanet: no place of floor {', '.join(missing)} (see above) it stays where it was", err=True)
        raise typer.Exit(1)


def _add(config: Path, name: str, text: str, comment: str) -> str:
    import time

    from nanet.config.km3_server import load
    from nanet.km3.store import Store

    settings = load(config).store
    made = Store(settings.url, settings.timeout_s).add_detector(name, text.encode(), time.time_ns(), None, comment)
    return f"{made.name} {made.version}"


def _result(heard: Heard, placed: Placed) -> dict[str, Any]:
    solution = placed.solution
    hydrophones = []
    for key, nominal in sorted(placed.nominal_m.items()):
        found = solution.positions.get(key)
        times = [one for one in solution.arrivals if one.hydrophone == key]
        hydrophones.append({
            **key._asdict(), "nominal_m": list(nominal), "position_m": list(found.position_m) if found else None,
            "error_m": list(found.error_m) if found else None, "used": found.used if found else 0, "refused": solution.refused.get(key, ""),
            "times_refused": {f"{one.beacon} {one.emitted_s:.3f}": one.refused for one in times if one.refused},
        })  # fmt: skip
    floors = []
    for tower, floor in sorted({(key.tower, key.floor) for key in placed.nominal_m}):
        motion = placed.motions.get((tower, floor))
        floors.append({
            "tower": tower, "floor": floor, "yaw_deg": math.degrees(motion.yaw_rad) if motion else None,
            "shift_m": list(motion.shift_m) if motion else None,
        })  # fmt: skip
    return {
        "packets": dict(heard.packets), "hydrophones": hydrophones, "floors": floors, "speed_m_s": solution.sound.speed_m_s,
        "speed_error_m_s": solution.sound_error_m_s, "chi2": solution.chi2, "degrees": solution.degrees, "added": None,
    }  # fmt: skip


def _lines(result: dict[str, Any]) -> list[str]:
    lines = []
    for one in result["hydrophones"]:
        name = f"{one['tower']}/{one['floor']} hydrophone {one['hydrophone']}"
        if one["position_m"] is None:
            lines.append(f"{name}: {one['refused'].replace('_', ' ') or 'not heard'}")
            continue
        where = ", ".join(f"{value:.2f}" for value in one["position_m"])
        lines.append(f"{name}: {where} m, within {max(one['error_m']):.2f} m, of {one['used']} times")
    for one in result["floors"]:
        if one["shift_m"] is not None:
            shift = ", ".join(f"{value:.2f}" for value in one["shift_m"])
            lines.append(f"floor {one['tower']}/{one['floor']}: went {shift} m, turned {one['yaw_deg']:.2f} degrees")
    if result["speed_error_m_s"]:
        lines.append(f"speed of sound {result['speed_m_s']:.2f} m/s, within {result['speed_error_m_s']:.2f}")
    if result["added"]:
        lines.append(f"detector {result['added']} added")
    return lines
