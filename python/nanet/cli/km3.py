# SPDX-License-Identifier: Apache-2.0
"""The commands `nanet km3 ...`: the server between the floors of a tower and what judges them, and orders to it."""

from __future__ import annotations

import datetime
import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanet.cli.options import HtmlFile, JsonFile, ReadyFd

if TYPE_CHECKING:
    from nanet.config.km3_server import Km3ServerConfig
    from nanet.km3.store import Store

km3_app = typer.Typer(no_args_is_help=True, help="Serve the floors of a KM3NeT tower: data, slow control, runs.")
run_app = typer.Typer(no_args_is_help=True, help="Start and stop runs of all floors.")
detector_app = typer.Typer(no_args_is_help=True, help="Keep versions of detector files.")
km3_app.add_typer(run_app, name="run")
km3_app.add_typer(detector_app, name="detector")

ConfigOption = Annotated[Path, typer.Option("--config", metavar="FILE", help="The server's YAML file.")]
FloorArgument = Annotated[str, typer.Argument(metavar="FLOOR", help="TOWER/FLOOR, or FLOOR of tower 1.")]
ParameterArgument = Annotated[str, typer.Argument(metavar="PARAMETER", help="Such as high_voltage_0 or temperature.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=100000, help="Most lines.")]
CONFIG = Path("km3.yaml")


@km3_app.command("server")
def km3_server(
    config: Annotated[Path, typer.Argument(help="YAML file of a server, such as: nanet examples km3_server.")],
    duration: Annotated[
        float | None, typer.Option("--duration", metavar="S", help="How long to run; by default until stopped.")
    ] = None,
    json_file: JsonFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    ready_fd: ReadyFd = None,
) -> None:
    """Run the server that CONFIG describes.

    Floors' data to their destinations, slow control to the floors, until SIGTERM or SIGINT (Ctrl-C). Exits with 1 when a unit was lost in it.
    """
    from nanet.config.km3_server import load
    from nanet.km3 import server

    result = server.run(load(config), duration_s=duration, json_file=json_file, ready_fd=ready_fd, quiet=quiet)
    if not quiet:
        _say(server.sentence(result))
    if result["failure"]:
        typer.echo(f"nanet: data were no longer taken ({result['failure']}) this is a bug in nanet: report it", err=True)
    raise typer.Exit(1 if result["losses"] or result["failure"] else 0)


@km3_app.command("status")
def km3_status(config: ConfigOption = CONFIG, json_file: JsonFile = None) -> None:
    """Print where the floors are and what went where."""
    from nanet.km3.units import FLAWS, units_text

    found = _order(config, do="status")
    _write("km3 status", json_file, answer=found)
    run = f"run {found['run']}" if found["run"] is not None else "no run"
    _say(f"{run}; {units_text(found['streams'])}; slow control {_round_trip(found['round_trip_us'])}")
    for one in found["floors"]:
        _say(f"  floor {one['tower']}/{one['floor']}: {one['state']}" + (f" ({one['why']})" if one["why"] else ""))
    for one in found["streams"]:
        if any(one[name] for name in FLAWS):
            _say(f"  {one['kind']} of floor {one['tower']}/{one['floor']}: {units_text([one])}")
    for name, one in found["destinations"].items():
        lost = ", ".join(f"{one[key]:,} {key}" for key in ("queue_full", "unacknowledged", "refused", "left_at_end") if one[key])
        _say(
            f"  to {name}: {one['units_sent']:,} of {one['units_in']:,} units sent, {one['units_waiting']:,} wait; lost: {lost or 'nothing'}"
        )
    store = found["store"]
    _say(
        f"  store: {store['rows_written']:,} rows, {store['rows_waiting']:,} wait, {store['rows_dropped']:,} dropped {store['problem']}".rstrip()
    )
    for one in found["alarms_raised"]:
        _say(f"  alarm {one['rule']}: floor {one['tower']}/{one['floor']}")


@km3_app.command("study")
def km3_study(
    muon_slices: Annotated[int, typer.Option("--muon-slices", min=1, help="Slices of 200 ms with muons.")] = 100,
    muons_hz: Annotated[float, typer.Option("--muons-hz", min=0, max=10000, help="Muons a second in them.")] = 200.0,
    noise_slices: Annotated[int, typer.Option("--noise-slices", min=1, help="Slices of 200 ms without.")] = 150,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random numbers.")] = 1,
    scan: Annotated[bool, typer.Option("--scan/--no-scan", help="Also other cuts, and which of them none beats.")] = True,
    energy_slices: Annotated[
        int, typer.Option("--energy-slices", min=0, help="Slices of 200 ms with muons of each energy; 0: none.")
    ] = 25,
    programs: Annotated[
        Path | None,
        typer.Option(
            "--programs", metavar="FOLDER", help="Folder of the bench_gpu programs; by default build/cuda-release/bench/gpu."
        ),
    ] = None,
    csv_file: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Of a GPU elsewhere: the CSV file that bench_gpu_km3 wrote.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the trigger; repeat for more.")
    ] = None,
    json_file: JsonFile = None,
    html_file: HtmlFile = Path("out/km3-study.html"),
) -> None:
    """Measure the trigger on an emulated tower against truth.

    Efficiency against L1 seeds and energy, events of noise, purity, floors a core and a GPU, latency of a slice, other cuts, one event as a picture.
    """
    import yaml

    from nanet.bench import km3_gpu
    from nanet.km3.study import Study, run
    from nanet.report import write_report
    from nanet.result import files

    chosen = {}
    for one in settings or []:
        name, equals, value = one.partition("=")
        if not equals:
            raise typer.BadParameter(f"'{one}' is not NAME=VALUE, such as seeds_min=4", param_hint="--set")
        try:
            chosen[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise typer.BadParameter(f"'{value}' is no value, such as the 4 of seeds_min=4", param_hint="--set") from None
    if "slice_ns" in chosen:
        raise typer.BadParameter("slices of the study are of 200 ms", param_hint="--set")
    elsewhere = km3_gpu.read(csv_file) if csv_file is not None else None
    study = Study(seed, muon_slices, muons_hz, noise_slices, scan, chosen, energy_slices)
    result = run(study, _say, lambda hits_per_s, seeds_per_s: km3_gpu.floors(hits_per_s, seeds_per_s, programs, _say, elsewhere))
    files.write_json(json_file, dict(result))
    write_report(result, html_file)
    found, noise = result["efficiency_5_seeds"], result["noise_events_per_s"]
    if found is not None:
        _say(
            f"muons with 5 or more L1 seeds: {100 * found['value']:.2f} % found ({100 * found['low']:.2f} to {100 * found['high']:.2f})"
        )
    _say(f"noise: {noise['value']:.3g} events/s of a tower ({noise['low']:.3g} to {noise['high']:.3g})")
    for point in result["efficiency_by_energy"]:
        if point["efficiency"] is not None:
            _say(f"muons of {point['energy_gev']:,.0f} GeV: {100 * point['efficiency']['value']:.1f} % of all found")
    a_gpu = result["floors_per_gpu"]
    _say(
        f"one GPU: not measured ({result['floors_per_gpu_why']})"
        if a_gpu is None
        else f"one GPU ({result['gpu']}): {a_gpu:,.0f} floors"
    )
    _say(f"one core: {result['floors_per_core']:,.0f} floors; a slice: p99 {result['slice_latency_ms']['p99']:.1f} ms")
    _say(f"report: {html_file}")


@run_app.command("start")
def run_start(
    config: ConfigOption = CONFIG,
    run: Annotated[int | None, typer.Option("--run", help="Its number; by default the next one of the store.")] = None,
    comment: Annotated[str, typer.Option("--comment", help="Kept with the run.")] = "",
    detector: Annotated[
        str | None, typer.Option("--detector", metavar="NAME", help="Detector file that is kept with the run.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Configure all floors and start a run.

    Floors that do not answer are named, and started when they do. Exits with 1 if there are any.
    """
    known = None
    if detector is not None:
        store = _store(_load(config))
        found = store.detector(detector)
        if found is None:
            raise typer.BadParameter(f"no detector {detector} is valid now", param_hint="--detector")
        known = f"{detector} {found[0].version}"
    done = _order(config, do="run start", run=run, comment=comment, detector=known)
    _write("km3 run start", json_file, answer=done)
    _say(f"run {done['run']}")
    _say_floors(done["not_running"])


@run_app.command("stop")
def run_stop(config: ConfigOption = CONFIG, json_file: JsonFile = None) -> None:
    """Stop the run of all floors.

    Exits with 1 if a floor does not answer: it is stopped when it does.
    """
    done = _order(config, do="run stop")
    _write("km3 run stop", json_file, answer=done)
    _say("no run was on" if done["run"] is None else f"run {done['run']} stopped")
    _say_floors(done["not_stopped"])


@run_app.command("list")
def run_list(config: ConfigOption = CONFIG, limit: LimitOption = 20, json_file: JsonFile = None) -> None:
    """Print the runs, the newest first."""
    found = _store(_load(config)).runs(limit)
    _write("km3 run list", json_file, rows=found)
    if not found:
        _say("no runs")
    for one in found:
        _say(
            f"{one['run']}  {_time(one['started_ns'])} to {_time(one['stopped_ns'])}  {one['detector'] or ''}  {one['comment']}".rstrip()
        )


@km3_app.command("get")
def km3_get(floor: FloorArgument, parameter: ParameterArgument, config: ConfigOption = CONFIG, json_file: JsonFile = None) -> None:
    """Read a parameter of a floor."""
    done = _order(config, do="get", **_floor(floor), parameter=parameter)
    _write("km3 get", json_file, answer=done)
    _say_exchange(done)


@km3_app.command("set")
def km3_set(
    floor: FloorArgument,
    parameter: ParameterArgument,
    value: Annotated[float, typer.Argument(help="In V, photo-electrons, or 0 and 1.")],
    config: ConfigOption = CONFIG,
    json_file: JsonFile = None,
) -> None:
    """Set a parameter of a floor.

    It is set again when the floor was away.
    """
    done = _order(config, do="set", **_floor(floor), parameter=parameter, value=value)
    _write("km3 set", json_file, answer=done)
    _say_exchange(done)


@km3_app.command("express")
def km3_express(
    floor: FloorArgument,
    code: Annotated[int, typer.Argument(min=0, max=255, help="The code, 0 to 255.")],
    config: ConfigOption = CONFIG,
    json_file: JsonFile = None,
) -> None:
    """Send an express code down a floor's link.

    Prints after how many words it was back: of floors that are asked over the fibres of a node. Exits with 1 where the floor has no such link.
    """
    done = _order(config, do="express", **_floor(floor), code=code)
    _write("km3 express", json_file, answer=done)
    if done["outcome"] == "no_such_command":
        typer.echo(
            f"nanet: no express code to floor {floor} (it is asked over a network) see gateware: floors: control of its link",
            err=True,
        )
        raise typer.Exit(1)
    _say_exchange({**done, "value": done["words"], "unit": "words down and up"})


@km3_app.command("history")
def km3_history(
    config: ConfigOption = CONFIG,
    floor: Annotated[str | None, typer.Option("--floor", metavar="FLOOR", help="Only of this floor.")] = None,
    parameter: Annotated[str | None, typer.Option("--parameter", metavar="NAME", help="Only of this parameter.")] = None,
    monitored: Annotated[bool, typer.Option("--monitored", help="Values that were read, not what was set.")] = False,
    limit: LimitOption = 50,
    json_file: JsonFile = None,
) -> None:
    """Print slow control, or what was monitored, newest first."""
    from nanet.km3.messages import BY_NUMBER

    store = _store(_load(config))
    which: dict[str, Any] = _floor(floor) if floor is not None else {}
    number = _parameter(parameter) if parameter is not None else None
    found = (store.monitored if monitored else store.history)(**which, parameter=number, limit=limit)
    _write("km3 history", json_file, rows=found)
    if not found:
        _say("nothing was monitored" if monitored else "no slow control")
    for one in found:
        known = BY_NUMBER.get(one["parameter"])
        where = f"{_time(one['at_ns'])}  {one['tower']}/{one['floor']}"
        if monitored:
            _say(f"{where}  {known.name if known else one['parameter']} {_physical(known, one['value'])}")
        elif one["command"] in ("get", "set"):
            _say(
                f"{where}  {one['command']} {known.name if known else one['parameter']} {_physical(known, one['value'])}: {one['outcome']}"
            )
        else:
            what = one["parameter"] if one["command"] == "express" else one["value"] or ""
            _say(f"{where}  {one['command'].replace('_', ' ')} {what}".rstrip() + f": {one['outcome']}")


@km3_app.command("alarms")
def km3_alarms(
    config: ConfigOption = CONFIG,
    every: Annotated[bool, typer.Option("--all", help="Also those that were cleared and acknowledged.")] = False,
    acknowledge: Annotated[
        list[str] | None, typer.Option("--acknowledge", metavar="ID", help="Acknowledge this one; repeat for more.")
    ] = None,
    limit: LimitOption = 50,
    json_file: JsonFile = None,
) -> None:
    """Print alarms, or acknowledge them."""
    from nanet.km3.messages import BY_NUMBER

    store = _store(_load(config))
    for alarm in acknowledge or ():
        if not store.acknowledge(alarm, getpass.getuser()):
            raise typer.BadParameter(f"there is no alarm {alarm}", param_hint="--acknowledge")
    found = store.alarms(is_open=not every, limit=limit)
    _write("km3 alarms", json_file, rows=found)
    if not found:
        _say("no alarms")
    for one in found:
        known = BY_NUMBER.get(one["parameter"])
        value = "" if one["rule"] == "no_answer" else f" {one['value']:g} {known.unit if known else ''}".rstrip()
        state = f"cleared {_time(one['cleared_ns'])}" if one["cleared_ns"] else "raised"
        state += f", acknowledged by {one['acknowledged_by']}" if one["acknowledged_ns"] else ""
        _say(f"{one['id']}  {_time(one['raised_ns'])}  {one['rule']}  floor {one['tower']}/{one['floor']}{value}  {state}")


@detector_app.command("add")
def detector_add(
    file: Annotated[Path, typer.Argument(help="The detector file.")],
    name: Annotated[str, typer.Option("--name", help="Name of the detector.")] = "tower",
    valid_from: Annotated[
        datetime.datetime | None, typer.Option("--from", help="Valid from this time (UTC); by default from now on.")
    ] = None,
    valid_to: Annotated[datetime.datetime | None, typer.Option("--to", help="Valid until then (UTC); by default for good.")] = None,
    comment: Annotated[str, typer.Option("--comment", help="Kept with the version.")] = "",
    config: ConfigOption = CONFIG,
    json_file: JsonFile = None,
) -> None:
    """Add a version of a detector file."""
    import time

    from nanet.config.errors import ConfigError

    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError([f"cannot read {file} ({(error.strerror or str(error)).lower()}) check the path"]) from None
    since = _ns(valid_from) if valid_from is not None else time.time_ns()
    until = _ns(valid_to) if valid_to is not None else None
    if until is not None and until <= since:
        raise typer.BadParameter("it ends before it begins", param_hint="--to")
    made = _store(_load(config)).add_detector(name, content, since, until, comment)
    _write("km3 detector add", json_file, rows=[made.__dict__])
    _say(f"{made.name} version {made.version}, SHA-256 {made.sha256}")


@detector_app.command("list")
def detector_list(config: ConfigOption = CONFIG, json_file: JsonFile = None) -> None:
    """Print the versions that there are, the newest first."""
    found = _store(_load(config)).detectors()
    _write("km3 detector list", json_file, rows=[one.__dict__ for one in found])
    if not found:
        _say("no detector files")
    for one in found:
        valid = f"{_time(one.valid_from_ns)} to {_time(one.valid_to_ns)}"
        _say(f"{one.name} {one.version}  {one.sha256[:12]}  {valid}  {one.comment}".rstrip())


@detector_app.command("show")
def detector_show(
    name: Annotated[str, typer.Argument(help="Name of the detector.")] = "tower",
    version: Annotated[int | None, typer.Option("--version", help="By default the one that is valid now.")] = None,
    config: ConfigOption = CONFIG,
) -> None:
    """Print a detector file as it was added."""
    import sys

    found = _store(_load(config)).detector(name, version=version)
    if found is None:
        raise typer.BadParameter(f"there is no such version of {name}", param_hint="NAME")
    sys.stdout.buffer.write(found[1])
    sys.stdout.buffer.flush()


def _load(config: Path) -> Km3ServerConfig:
    from nanet.config.km3_server import load

    return load(config)


def _store(config: Km3ServerConfig) -> Store:
    from nanet.km3.store import Store

    return Store(config.store.url, config.store.timeout_s)


def _order(config: Path, **said: Any) -> dict[str, Any]:
    from nanet.km3.commands import order

    return order(_load(config).commands, said)


def _write(command: str, path: Path | None, **found: Any) -> None:
    from nanet.result import files

    files.write_json(path, {**files.base(command), **found})


def _floor(text: str) -> dict[str, int]:
    tower, slash, floor = text.rpartition("/")
    numbers = (tower if slash else "1", floor)
    if not all(one.isascii() and one.isdigit() and int(one) < 256 for one in numbers):
        raise typer.BadParameter(f"'{text}' is not TOWER/FLOOR, such as 1/3", param_hint="FLOOR")
    return {"tower": int(numbers[0]), "floor": int(numbers[1])}


def _parameter(name: str) -> int:
    from nanet.km3.messages import BY_NAME

    if name not in BY_NAME:
        raise typer.BadParameter(f"{name} is none of {', '.join(BY_NAME)}", param_hint="--parameter")
    return BY_NAME[name].number


def _physical(parameter: Any, value: int) -> str:
    return f"{value * parameter.step:g} {parameter.unit}".rstrip() if parameter is not None else str(value)


def _say_exchange(done: dict[str, Any]) -> None:
    if done["outcome"] == "done":
        _say(f"{done['value']:g} {done['unit']}".rstrip())
        return
    typer.echo(
        f"nanet: the floor did not do it ({done['outcome'].replace('_', ' ')} after {done['tries']} tries) see nanet km3 status",
        err=True,
    )
    raise typer.Exit(1)


def _say_floors(floors: list[dict[str, Any]]) -> None:
    for one in floors:
        typer.echo(f"nanet: floor {one['tower']}/{one['floor']} is {one['state']} ({one['why']}) it is tried again", err=True)
    if floors:
        raise typer.Exit(1)


def _round_trip(summary: dict[str, float] | None) -> str:
    return "not used" if summary is None else f"p50 {summary['p50']:.0f} us, p99.9 {summary['p99_9']:.0f} us"


def _ns(when: datetime.datetime) -> int:
    return round(when.replace(tzinfo=when.tzinfo or datetime.UTC).timestamp()) * 10**9


def _time(at_ns: int | None) -> str:
    if at_ns is None:
        return "..."
    return (
        datetime.datetime.fromtimestamp(at_ns // 10**9, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
        + f".{at_ns // 10**6 % 1000:03d}"
    )


def _say(line: str) -> None:
    print(line, flush=True)
