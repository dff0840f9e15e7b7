# SPDX-License-Identifier: Apache-2.0
"""The commands and their options. What they do is elsewhere; heavy modules are imported when a command needs them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanet.cli.bench import bench_app
from nanet.cli.examples import examples
from nanet.cli.format import emulate_format, format_app
from nanet.cli.km3 import km3_app
from nanet.cli.km3_emulate import register as register_km3_emulate
from nanet.cli.km3_export import register as register_km3_export
from nanet.cli.km3_positions import register as register_km3_positions
from nanet.cli.l0tp import l0tp as trigger_processor
from nanet.cli.layout import Panels
from nanet.cli.options import (
    Boards,
    Budget,
    Burst,
    ControlFd,
    DetectorKind,
    Duration,
    EventsPerPacket,
    FinderOption,
    JsonFile,
    L0Option,
    Layout,
    LayoutOption,
    MeanHits,
    MetricsOption,
    Out,
    PortOption,
    Rate,
    ReadyFd,
    Runtime,
    RuntimeOption,
    Sample,
    SampleOption,
    StatusFd,
    Topology,
    TopologyOption,
    only_with,
    set_by,
)
from nanet.cli.physics import physics
from nanet.cli.rdma import rdma_app
from nanet.cli.replay import replay
from nanet.cli.soak import soak
from nanet.cli.stencil import stencil
from nanet.cli.torus import torus_app
from nanet.cli.tune import doctor, tune

if TYPE_CHECKING:
    from nanet.cli.keys import ValidateResult, ValidResult, VersionResult
    from nanet.result.keys.emulator import Tel62Result

app = typer.Typer(
    name="nanet", cls=Panels, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Detector data from the network to the processor that judges it, and the verdict back, within a stated latency.",
)  # fmt: skip
emulate_app = typer.Typer(no_args_is_help=True, help="Play the other side: boards, an L0 processor, a tower.")
app.add_typer(bench_app, name="bench")
app.add_typer(emulate_app, name="emulate")
app.add_typer(format_app, name="format")
app.add_typer(km3_app, name="km3")
app.add_typer(rdma_app, name="rdma")
app.add_typer(torus_app, name="torus")
emulate_app.command("format")(emulate_format)
register_km3_emulate(emulate_app)
register_km3_export(km3_app)
register_km3_positions(km3_app)
app.command()(physics)
app.command()(replay)
app.command()(soak)
app.command()(stencil)
app.command()(doctor)
app.command()(tune)
app.command("l0tp")(trigger_processor)
app.command()(examples)


def _print_version(asked: bool) -> None:
    if asked:
        from nanet import version as package_version

        _say(f"nanet {package_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options of nanet itself; the text of its help is the app's."""


@app.command(short_help="Show the whole loop on this machine; needs no hardware.")
def demo(
    context: typer.Context,
    detector: Annotated[
        DetectorKind, typer.Option("--detector", help="Whose loop; of km3 only --duration, --port, --out and --json are taken.")
    ] = DetectorKind.RICH,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="EVENTS/S",
            help="Mean rate of events; by default 1e6, or 2.5e5 if the L0TP has no core of its own.",
        ),
    ] = None,
    duration: Duration = 10.0,
    boards: Boards = 1,
    layout: LayoutOption = Layout.PADDED,
    budget_us: Budget = 1000,
    topology: TopologyOption = Topology.RUN_TO_COMPLETION,
    port: PortOption = 6200,
    sample: SampleOption = Sample.PARTICLES,
    mean_hits: MeanHits = None,
    finder: FinderOption = "almagest",
    runtime: RuntimeOption = Runtime.CPU,
    l0: L0Option = True,
    metrics: MetricsOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Also exit with 1 when p99.9 exceeds the budget.")] = False,
    out: Out = Path("out"),
    json_file: JsonFile = None,
) -> None:
    """The whole loop on this machine: boards, engine, L0 trigger processor, verdict, report. Needs no hardware.

    Exits with 0 when everything was answered and decided on; a broken budget is a warning that names its cause.
    """
    if detector is DetectorKind.KM3:
        from nanet.cli import km3_demo

        only_with(context, "--detector km3", {"detector", "duration", "port", "out", "json_file"})
        raise typer.Exit(km3_demo.show(km3_demo.demo(duration, port, out, json_file), out))
    from nanet.loop import demo as demos
    from nanet.loop import verdict
    from nanet.loop.l0 import default_rate_events_per_s
    from nanet.loop.run import Loop
    from nanet.report import write_report
    from nanet.result import outputs

    loop = Loop(
        rate_events_per_s=rate or default_rate_events_per_s(l0=l0), duration_s=duration, boards=boards, layout=layout.value, budget_us=budget_us, port=port,
        topology=topology.value, sample=sample.value, mean_hits=mean_hits, finder=finder, runtime=runtime.value, l0=l0,
        metrics=metrics,
    )  # fmt: skip
    outputs.reserve_folder(out, "demo.json", "demo.hlog", "demo.html")
    result = demos.demo(loop, out, json_file, write_report)
    _say("")
    for line in (verdict.sentence(result), *verdict.lines(result)):
        _say(line)
    for note in result["notes"]:
        _say(f"note: {note}")
    _say(f"report: {out / 'demo.html'}   data: {out / 'demo.json'}, {out / 'demo.hlog'}")
    raise typer.Exit(demos.exit_code(result, strict=strict))


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="YAML file: nanet examples shows some, nanet schema every key.")],
    duration: Annotated[
        float | None, typer.Option("--duration", metavar="S", help="How long to run; overrides run.duration_s.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    json_file: JsonFile = None,
    ready_fd: ReadyFd = None,
    status_fd: StatusFd = None,
    control_fd: ControlFd = None,
    metrics: MetricsOption = None,
) -> None:
    """Run the engine that CONFIG describes.

    It runs until SIGTERM or SIGINT (Ctrl-C), or for its duration; then it drains, reports and gives a verdict.
    """
    from nanet.config import engine as models
    from nanet.config.errors import validated
    from nanet.result import books, hops, nic_times
    from nanet.run import command

    loaded = models.load(config)
    if duration is not None:
        loaded = loaded.model_copy(update={"run": models.Run(**loaded.run.model_dump() | {"duration_s": duration})})
    if metrics is not None:
        loaded = loaded.model_copy(update={"metrics": validated(models.Metrics, {"endpoint": f"http://{metrics}"})})
    code, result = command.run(loaded, command.RunOptions(json_file, quiet, ready_fd, status_fd, control_fd))
    if not quiet:
        counters, latency = result["counters"], result["latency_us"]
        _say("\n" + books.headline(loaded.processor.kind, counters))
        _say(f"lost: {books.lost_text(result['losses'])}; refused: {books.lost_text(result['refusals'])};"
             f" unexplained: {hops.unexplained_text(result['balance']) or '0'}")  # fmt: skip
        if latency:
            _say(
                f"residence p50 {latency['p50']:.1f}  p99 {latency['p99']:.1f}  p99.9 {latency['p99_9']:.1f}  max {latency['max']:.1f} us"
            )
        elif loaded.processor.kind == "forward" or loaded.answers is not None:
            _say("residence: none (no packet was answered or sent on)")
        for line in nic_times.lines(result["links"]):
            _say(line)
        judged = result["verdict"]
        _say("promise kept" if judged["kept"] else "promise broken: " + "; ".join(judged["reasons"]))
    raise typer.Exit(code)


@emulate_app.command()
def tel62(
    context: typer.Context,
    config: Annotated[
        Path | None, typer.Option("--config", help="YAML file with all settings; other options are then ignored.")
    ] = None,
    to: Annotated[
        list[str] | None, typer.Option("--to", metavar="URL", help="Where to send: once for all boards, or once for each.")
    ] = None,
    answers: Annotated[
        str, typer.Option("--answers", help="Where answers are received and checked; '' for nowhere.")
    ] = "udp://127.0.0.1:6300",
    rate: Rate = 1e6,
    duration: Duration = 10.0,
    events: Annotated[int, typer.Option("--events", help="Stop after this many events; 0: by duration.")] = 0,
    boards: Boards = 1,
    layout: LayoutOption = Layout.PADDED,
    burst: Burst = 1,
    events_per_packet: EventsPerPacket = 16,
    spill: Annotated[float, typer.Option("--spill", metavar="S", help="Length of a spill; 0: none.")] = 0.0,
    pause: Annotated[float, typer.Option("--pause", metavar="S", help="Pause between spills.")] = 0.0,
    mean_hits: Annotated[float, typer.Option("--mean-hits", help="Mean hits of an electron's ring.")] = 20.0,
    noise_hits: Annotated[float, typer.Option("--noise-hits", help="Mean noise hits of an event.")] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the events.")] = 1,
    finder: FinderOption = "math",
    engine: Annotated[
        Path | None,
        typer.Option(
            "--engine",
            metavar="FILE",
            help="The engine's configuration: its finder, cuts and conditions say what answers are right.",
        ),
    ] = None,
    core: Annotated[int | None, typer.Option("--core", help="Core of the emulator's thread.")] = None,
    budget_us: Budget = 1000,
    json_file: JsonFile = None,
) -> None:
    """Readout boards: send simulated events and check the answers."""
    from nanet.config import emulator as emulator_config
    from nanet.config import engine as engine_config
    from nanet.config.errors import validated
    from nanet.result import files
    from nanet.run import emulate

    if engine is not None:
        set_by(context, "--engine", {"finder"})
    if config is not None:
        loaded = emulator_config.load(config)
    else:
        decision = {"finder": {"name": finder}} if engine is None else emulator_config.decision_of(engine_config.load(engine))
        loaded = validated(emulator_config.EmulatorConfig, decision | {
            "boards": boards, "layout": layout.value, "destinations": to or ["udp://127.0.0.1:6200"], "answers": answers or None,
            "rate_events_per_s": rate, "duration_s": duration, "events_total": events, "burst_packets": burst,
            "events_per_packet": events_per_packet, "spill_s": spill, "pause_s": pause, "cpu_core": core,
            "monte_carlo": {"mean_hits": mean_hits, "noise_hits": noise_hits, "seed": seed},
        })  # fmt: skip
    title = f"nanet emulate tel62 · {loaded.rate_events_per_s / 1e6:g} Mevent/s to {', '.join(loaded.destinations)}"
    ran = emulate.run(loaded, title=title)
    result: Tel62Result = {**ran, "verdict": emulate.verdict(ran, budget_us)}
    files.write_json(json_file, result)
    _say(emulate.sentence(result))
    raise typer.Exit(0 if result["verdict"]["kept"] else 1)


@emulate_app.command()
def l0tp(
    answers: Annotated[str, typer.Option("--answers", help="Where MTP packets are received.")] = "udp://127.0.0.1:6300",
    duration: Annotated[float, typer.Option("--duration", metavar="S", help="How long to run; 0: until stopped.")] = 0.0,
    core: Annotated[int | None, typer.Option("--core", help="Core of the emulator's thread.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Receiver of answers: check the format of MTP packets.

    Takes MTP packets from any sender.
    """
    from nanet.config import emulator as emulator_config
    from nanet.config.errors import validated
    from nanet.result import files
    from nanet.run import emulate

    loaded = validated(emulator_config.EmulatorConfig, {
        "destinations": [], "answers": answers, "duration_s": duration, "cpu_core": core
    })  # fmt: skip
    result = emulate.run_l0tp(loaded, title=f"nanet emulate l0tp · listening on {loaded.answers}")
    files.write_json(json_file, result)
    _say(f"{result['answer_packets']:,} MTP packets, {result['primitives']:,} primitives; bad: {emulate.bad_text(result)}")
    raise typer.Exit(0 if result["verdict"]["kept"] else 1)


@app.command()
def validate(
    config: Annotated[Path, typer.Argument(help="YAML file of an engine.")],
    emulator: Annotated[bool, typer.Option("--emulator", help="CONFIG is for an emulator.")] = False,
    l0tp: Annotated[bool, typer.Option("--l0tp", help="CONFIG is for an L0 trigger processor.")] = False,
    km3: Annotated[bool, typer.Option("--km3", help="CONFIG is for a server of KM3NeT.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Check a configuration and print every mistake in it.

    One line for each mistake; if there is none, the truth table of its conditions.
    """
    from nanet.cli import text
    from nanet.config import emulator as emulator_config
    from nanet.config import engine as models
    from nanet.config import km3_server as km3_config
    from nanet.config import l0tp as l0tp_config
    from nanet.config.errors import ConfigError
    from nanet.result import files

    is_engine = not (l0tp or emulator or km3)
    try:
        load: Any = km3_config.load if km3 else l0tp_config.load if l0tp else emulator_config.load if emulator else models.load
        loaded: Any = load(config)
    except ConfigError as error:
        refused: ValidateResult = {**files.base("validate"), "valid": False, "problems": error.problems}
        files.write_json(json_file, refused)
        for line in error.problems:
            typer.echo(f"nanet: {line}", err=True)
        raise typer.Exit(2) from None
    decision: Any = loaded if emulator else loaded.processor if is_engine else None
    names = [condition.name for condition in decision.conditions] if decision is not None else []
    table = decision.truth_table() if names else []
    rows = [{**row.mix, "multiplicity": list(row.multiplicity), **dict(zip(names, row.holds, strict=True))} for row in table]
    result: ValidResult = {
        **files.base("validate"), "valid": True, "problems": [], "config": loaded.model_dump(mode="json"), "conditions": names,
        "truth_table": rows,
    }  # fmt: skip
    files.write_json(json_file, result)
    if table:
        text.truth_table(table, names)
    if is_engine and loaded.plugins:
        from nanet.config.plugins import names_added

        _say(f"plug-ins: {', '.join(names_added(loaded.plugins))}")
    if is_engine and loaded.processor.runtime != "cpu":
        _say(f"processor: {loaded.processor.place()}{_no_gpu_code()}")
    _say(f"{config}: valid")


@app.command()
def schema(
    emulator: Annotated[bool, typer.Option("--emulator", help="The schema of an emulator's configuration.")] = False,
    l0tp: Annotated[bool, typer.Option("--l0tp", help="The schema of an L0 trigger processor's configuration.")] = False,
    km3: Annotated[bool, typer.Option("--km3", help="The schema of a KM3NeT server's configuration.")] = False,
    tower: Annotated[bool, typer.Option("--tower", help="The schema of an emulated KM3NeT tower's configuration.")] = False,
    strings: Annotated[bool, typer.Option("--strings", help="The same of emulated strings.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Print every key of a configuration, as a JSON schema.

    With unit, default, and what happens when a value is too small or too big.
    """
    import json

    from nanet.config import schema as schemas
    from nanet.result import files

    named = {
        "--emulator": (emulator, schemas.emulator_schema), "--l0tp": (l0tp, schemas.l0tp_schema), "--km3": (km3, schemas.km3_schema),
        "--tower": (tower, schemas.tower_schema), "--strings": (strings, schemas.strings_schema),
    }  # fmt: skip
    chosen = [(name, of) for name, (is_given, of) in named.items() if is_given]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{chosen[0][0]} is given too, and a schema is of one", param_hint=chosen[1][0])
    text = chosen[0][1]() if chosen else schemas.engine_schema()
    files.write_json(json_file, text)
    if json_file is None:
        _say(json.dumps(text, indent=1))


@app.command()
def version(json_file: JsonFile = None) -> None:
    """Print version, commit, compiler and back-ends of this build."""
    from nanet import _core
    from nanet.result import files
    from nanet.result.build import UNKNOWN, build

    unsaid = dict.fromkeys(("commit", "compiler", "build_type"), UNKNOWN)
    said: Any = unsaid | _core.build_info()  # the stub says no more than `dict`
    result: VersionResult = {**files.base("version"), "build": said}
    files.write_json(json_file, result)
    for line in build().lines():
        _say(line)


@app.command()
def man() -> None:
    """Print the manual page: nanet man | man -l -

    To install it: nanet man > ~/.local/share/man/man1/nanet.1
    """
    from nanet import version as package_version
    from nanet.cli.man import page

    _say(page(app, package_version()).rstrip("\n"))


def _no_gpu_code() -> str:
    from nanet import _core

    return "" if _core.build_info()["back_ends"]["cuda"] else " (this build has no GPU code: run make cuda)"


def _say(line: str) -> None:
    print(line, flush=True)
