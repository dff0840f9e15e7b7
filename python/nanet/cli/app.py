# SPDX-License-Identifier: Apache-2.0
"""The commands and their options. What they do is elsewhere; heavy modules are imported when a command needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nanet.cli.bench import bench_app
from nanet.cli.l0tp import l0tp as trigger_processor
from nanet.cli.options import (
    Boards,
    Budget,
    Burst,
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
    Runtime,
    RuntimeOption,
    Sample,
    SampleOption,
    Topology,
    TopologyOption,
)
from nanet.cli.physics import physics
from nanet.cli.rdma import rdma_app
from nanet.cli.replay import replay
from nanet.cli.soak import soak
from nanet.cli.stencil import stencil
from nanet.cli.tune import doctor, tune

app = typer.Typer(
    name="nanet", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Detector data from the network to the processor that judges it, and the verdict back, in a latency that can be stated.",
)  # fmt: skip
emulate_app = typer.Typer(no_args_is_help=True, help="The other side: readout boards (tel62), L0 trigger processor (l0tp).")
app.add_typer(bench_app, name="bench")
app.add_typer(emulate_app, name="emulate")
app.add_typer(rdma_app, name="rdma")
app.command()(physics)
app.command()(replay)
app.command()(soak)
app.command()(stencil)
app.command()(doctor)
app.command()(tune)
app.command("l0tp")(trigger_processor)


@app.command()
def demo(
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            metavar="EVENTS/S",
            help="Mean rate of events; by default 1e6, or 2.5e5 where the L0TP has no core of its own.",
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
    strict: Annotated[bool, typer.Option("--strict", help="End with 1 when p99.9 is over the budget, too.")] = False,
    out: Out = Path("out"),
    json_file: JsonFile = None,
) -> None:
    """The whole loop on this machine: boards, engine, L0 trigger processor, verdict, report. Needs no hardware.

    Ends with 0 when all was answered and decided; a broken budget is a warning that names its cause.
    """
    from nanet import demo as run_demo
    from nanet import demo_l0, demo_verdict

    loop = run_demo.Loop(
        rate_events_per_s=rate or demo_l0.default_rate_events_per_s(l0=l0), duration_s=duration, boards=boards, layout=layout.value, budget_us=budget_us, port=port,
        topology=topology.value, sample=sample.value, mean_hits=mean_hits, finder=finder, runtime=runtime.value, l0=l0,
        metrics=metrics,
    )  # fmt: skip
    result = run_demo.demo(loop, out, json_file)
    _say("")
    for line in (demo_verdict.sentence(result), *demo_verdict.lines(result)):
        _say(line)
    for note in result["notes"]:
        _say(f"note: {note}")
    _say(f"report: {out / 'demo.html'}   data: {out / 'demo.json'}, {out / 'demo.hlog'}")
    raise typer.Exit(run_demo.exit_code(result, strict=strict))


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="YAML file, see examples/ and docs/design/config.md.")],
    duration: Annotated[float | None, typer.Option("--duration", metavar="S", help="Overrides run.duration_s.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    json_file: JsonFile = None,
    ready_fd: Annotated[int | None, typer.Option("--ready-fd", help="Write a line to this descriptor when it listens.")] = None,
    status_fd: Annotated[int | None, typer.Option("--status-fd", help="Write the counters there once a second, as JSON.")] = None,
    control_fd: Annotated[
        int | None, typer.Option("--control-fd", help="Read orders there: which faults to put into a link.")
    ] = None,
    metrics: MetricsOption = None,
) -> None:
    """Run the engine that CONFIG describes, until SIGTERM or SIGINT; then drain, report, judge."""
    from nanet import books, hops, nic_times, run_engine
    from nanet import config as models
    from nanet.config_errors import validated

    loaded = models.load(config)
    if duration is not None:
        loaded = loaded.model_copy(update={"run": models.Run(**loaded.run.model_dump() | {"duration_s": duration})})
    if metrics is not None:
        loaded = loaded.model_copy(update={"metrics": validated(models.Metrics, {"endpoint": f"http://{metrics}"})})
    code, result = run_engine.run(loaded, run_engine.RunOptions(json_file, quiet, ready_fd, status_fd, control_fd))
    if not quiet:
        counters, latency = result["counters"], result["latency_us"]
        _say(f"\n{counters['packets_accepted']:,} packets accepted, {counters['events_received']:,} events, "
             f"{counters['events_answered']:,} answered, {counters['rings_found']:,} rings")  # fmt: skip
        _say(f"lost: {books.lost_text(result['losses'])}; refused: {books.lost_text(result['refusals'])};"
             f" unexplained: {hops.unexplained_text(result['balance']) or '0'}")  # fmt: skip
        if latency:
            _say(
                f"residence p50 {latency['p50']:.1f}  p99 {latency['p99']:.1f}  p99.9 {latency['p99_9']:.1f}  max {latency['max']:.1f} us"
            )
        for line in nic_times.lines(result["links"]):
            _say(line)
        judged = result["verdict"]
        _say("promise kept" if judged["kept"] else "promise broken: " + "; ".join(judged["reasons"]))
    raise typer.Exit(code)


@emulate_app.command()
def tel62(
    config: Annotated[
        Path | None, typer.Option("--config", help="YAML file with all of it; other options are then ignored.")
    ] = None,
    to: Annotated[list[str] | None, typer.Option("--to", help="Where to send: once for all boards, or once for each.")] = None,
    answers: Annotated[
        str, typer.Option("--answers", help="Where answers are received and checked; '' for nowhere.")
    ] = "udp://127.0.0.1:6300",
    rate: Rate = 1e6,
    duration: Duration = 10.0,
    events: Annotated[int, typer.Option("--events", help="Stop after so many events; 0: by duration.")] = 0,
    boards: Boards = 1,
    layout: LayoutOption = Layout.PADDED,
    burst: Burst = 1,
    events_per_packet: EventsPerPacket = 16,
    spill: Annotated[float, typer.Option("--spill", metavar="S", help="Length of a spill; 0: none.")] = 0.0,
    pause: Annotated[float, typer.Option("--pause", metavar="S", help="Pause between spills.")] = 0.0,
    mean_hits: Annotated[float, typer.Option("--mean-hits", help="Mean hits of an electron's ring.")] = 20.0,
    noise_hits: Annotated[float, typer.Option("--noise-hits", help="Mean noise hits of an event.")] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the events.")] = 1,
    core: Annotated[int | None, typer.Option("--core", help="Core of the emulator's thread.")] = None,
    budget_us: Budget = 1000,
    json_file: JsonFile = None,
) -> None:
    """Readout boards: send Monte Carlo events, check the answers that come back."""
    from nanet import emulate, emulator_config, results
    from nanet.config_errors import validated

    if config is not None:
        loaded = emulator_config.load(config)
    else:
        loaded = validated(emulator_config.EmulatorConfig, {
            "boards": boards, "layout": layout.value, "destinations": to or ["udp://127.0.0.1:6200"], "answers": answers or None,
            "rate_events_per_s": rate, "duration_s": duration, "events_total": events, "burst_packets": burst,
            "events_per_packet": events_per_packet, "spill_s": spill, "pause_s": pause, "cpu_core": core,
            "monte_carlo": {"mean_hits": mean_hits, "noise_hits": noise_hits, "seed": seed},
        })  # fmt: skip
    title = f"nanet emulate tel62 · {loaded.rate_events_per_s / 1e6:g} Mevent/s to {', '.join(loaded.destinations)}"
    result = emulate.run(loaded, title=title)
    result["verdict"] = emulate.verdict(result, budget_us)
    results.write_json(json_file, result)
    _say(emulate.sentence(result))
    raise typer.Exit(0 if result["verdict"]["kept"] else 1)


@emulate_app.command()
def l0tp(
    answers: Annotated[str, typer.Option("--answers", help="Where MTP packets are received.")] = "udp://127.0.0.1:6300",
    duration: Annotated[float, typer.Option("--duration", metavar="S", help="How long; 0: until it is stopped.")] = 0.0,
    core: Annotated[int | None, typer.Option("--core", help="Core of the emulator's thread.")] = None,
    json_file: JsonFile = None,
) -> None:
    """L0 trigger processor alone: receive MTP packets from anyone and check their format."""
    from nanet import emulate, emulator_config, results
    from nanet.config_errors import validated

    loaded = validated(emulator_config.EmulatorConfig, {
        "destinations": [], "answers": answers, "duration_s": duration, "cpu_core": core
    })  # fmt: skip
    result = emulate.run_l0tp(loaded, title=f"nanet emulate l0tp · listening on {loaded.answers}")
    results.write_json(json_file, result)
    _say(f"{result['answer_packets']:,} MTP packets, {result['primitives']:,} primitives; bad: {emulate.bad_text(result)}")
    raise typer.Exit(0 if result["verdict"]["kept"] else 1)


@app.command()
def validate(
    config: Annotated[Path, typer.Argument(help="YAML file of an engine.")],
    emulator: Annotated[bool, typer.Option("--emulator", help="It is the file of an emulator.")] = False,
    l0tp: Annotated[bool, typer.Option("--l0tp", help="It is the file of an L0 trigger processor.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Check CONFIG and print every mistake, one line each, or the truth table of its conditions."""
    from nanet import config as models
    from nanet import emulator_config, results
    from nanet.cli import text
    from nanet.l0tp import config as l0tp_config

    try:
        load: Any = l0tp_config.load if l0tp else emulator_config.load if emulator else models.load
        loaded: Any = load(config)
    except models.ConfigError as error:
        results.write_json(json_file, results.base("validate") | {"valid": False, "problems": error.problems})
        for line in error.problems:
            typer.echo(f"nanet: {line}", err=True)
        raise typer.Exit(2) from None
    decision: Any = None if l0tp else loaded if emulator else loaded.processor
    names = [condition.name for condition in decision.conditions] if decision is not None else []
    table = decision.truth_table() if names else []
    rows = [{**row.mix, "multiplicity": row.multiplicity, **dict(zip(names, row.holds, strict=True))} for row in table]
    results.write_json(
        json_file,
        results.base("validate")
        | {"valid": True, "problems": [], "config": loaded.model_dump(mode="json"), "conditions": names, "truth_table": rows},
    )
    if table:
        text.truth_table(table, names)
    if not (l0tp or emulator) and loaded.processor.runtime != "cpu":
        _say(f"processor: {loaded.processor.place()}{_no_gpu_code()}")
    _say(f"{config}: valid")


@app.command()
def schema(
    emulator: Annotated[bool, typer.Option("--emulator", help="Of the emulator's configuration.")] = False,
    l0tp: Annotated[bool, typer.Option("--l0tp", help="Of the L0 trigger processor's configuration.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Print the JSON schema of the configuration: every key with unit, default and effect."""
    import json

    from nanet import results
    from nanet.schema import emulator_schema, engine_schema, l0tp_schema

    text = l0tp_schema() if l0tp else emulator_schema() if emulator else engine_schema()
    results.write_json(json_file, text)
    if json_file is None:
        _say(json.dumps(text, indent=1))


@app.command()
def version(json_file: JsonFile = None) -> None:
    """Version and build of the package."""
    from nanet import _core, results
    from nanet import version as package_version

    info = _core.build_info()
    results.write_json(json_file, results.base("version") | {"build": info})
    built = [name for name, there in info["back_ends"].items() if there]
    _say(f"nanet {package_version()} ({info['compiler']}; {info['simd']}; back-ends: {', '.join(built)})")


def _no_gpu_code() -> str:
    from nanet import _core

    return "" if _core.build_info()["back_ends"]["cuda"] else " (this build has no GPU code: run make cuda)"


def _say(line: str) -> None:
    print(line, flush=True)
