# SPDX-License-Identifier: Apache-2.0
"""The commands of `nanet torus`: curves, patterns, faults, watch and serve."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanet.cli.options import CsvFile, JsonFile, Out
from nanet.result import outputs

if TYPE_CHECKING:
    from nanet.bench.torus import Study

torus_app = typer.Typer(no_args_is_help=True, help="Load a simulated torus of APEnet+ nodes; compare with BookSim.")

ShapeOption = Annotated[str, typer.Option("--shape", metavar="XxYxZ", help="Nodes of each dimension, at most 64x32x32.")]
SmallShapeOption = Annotated[str, typer.Option("--shape", metavar="XxYxZ", help="Nodes of each dimension, at most 4x4x4.")]
LoadOption = Annotated[float, typer.Option("--load", metavar="WORDS", help="Words a node and cycle, 0 to 1.")]
PayloadOption = Annotated[int, typer.Option("--payload-bytes", min=0, max=4096, help="Payload of every packet.")]
WireOption = Annotated[
    int, typer.Option("--wire-cycles", min=2, max=4096, help="Cycles that a word is on a cable, with its lanes, each way.")
]
ShortWireOption = Annotated[
    int,
    typer.Option(
        "--wire-cycles", min=2, max=360,
        help="Cycles that a word is on a cable, each way; a link that hears nothing for 384 takes its neighbour for dead.",
    ),
]  # fmt: skip
WindowOption = Annotated[int, typer.Option("--window", min=100, help="Cycles that are measured, after half as many.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of the random numbers.")]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads of the simulation; by default as many as there are cores.")
]
ProgramOption = Annotated[
    Path | None,
    typer.Option("--program", metavar="FILE", help="The simulation; by default build/release/bench/torus/bench_torus."),
]


@torus_app.command("curves")
def torus_curves(
    shape: ShapeOption = "4x4x4",
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            "--pattern",
            metavar="NAME",
            help="uniform (the default), neighbour, tornado, complement, transpose, rotate, hot_spot; repeat for more.",
        ),
    ] = None,
    load: Annotated[
        list[float] | None,
        typer.Option("--load", metavar="WORDS", help="Words a node and cycle, 0 to 1; repeat for more. By default 0.05 to 1."),
    ] = None,
    payload_bytes: PayloadOption = 256,
    wire_cycles: WireOption = 16,
    window: WindowOption = 6000,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    program: ProgramOption = None,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure accepted load and latency of a pattern, load by load.

    The nodes are those of gateware/, verilated; every packet is compared.
    """
    from nanet.bench.torus import LOADS, PATTERNS

    chosen = one_of(PATTERNS, tuple(pattern or ("uniform",)))
    study = _study(shape, chosen, tuple(load or LOADS), payload_bytes, wire_cycles, window, seed, threads, program)
    _measure("curves", study, out, json_file, csv_file)


@torus_app.command("patterns")
def torus_patterns(
    shape: ShapeOption = "4x4x4",
    load: LoadOption = 0.3,
    payload_bytes: PayloadOption = 256,
    wire_cycles: WireOption = 16,
    window: WindowOption = 6000,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    program: ProgramOption = None,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure every pattern that a torus can have, at one load.

    The report shows which links each of them uses.
    """
    from nanet.bench.torus import PATTERNS, possible

    chosen = possible(PATTERNS, shape)
    study = _study(shape, chosen, (load,), payload_bytes, wire_cycles, window, seed, threads, program)
    _measure("patterns", study, out, json_file, csv_file)


@torus_app.command("faults")
def torus_faults(
    shape: ShapeOption = "3x3x3",
    load: LoadOption = 0.5,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Cuts of each kind of cable.")] = 1,
    payload_bytes: PayloadOption = 256,
    wire_cycles: ShortWireOption = 16,
    window: WindowOption = 2000,
    seed: SeedOption = 1,
    threads: ThreadsOption = None,
    program: ProgramOption = None,
    out: Out = Path("out"),
    json_file: JsonFile = None,
) -> None:
    """Cut cables under load, and say what became of each packet.

    A cable of each direction, one after the other; it comes back, and packets go over it again.
    """
    from nanet.bench.torus import faults
    from nanet.report import write_report
    from nanet.result import files

    study = _study(shape, ("uniform",), (load,), payload_bytes, wire_cycles, window, seed, threads, program)
    outputs.reserve_folder(out, "torus-faults.html")
    result = faults(study, rounds, _say)
    files.write_json(json_file, result)
    write_report(result, out / "torus-faults.html")
    _say(f"report: {out / 'torus-faults.html'}")
    say_problems(result["problems"])


@torus_app.command("watch")
def torus_watch(
    shape: SmallShapeOption = "3x3x1",
    stop_host: Annotated[
        list[int] | None, typer.Option("--stop-host", metavar="NODE", help="Stop the host of a node; repeat for more.")
    ] = None,
    stop_node: Annotated[
        list[int] | None, typer.Option("--stop-node", metavar="NODE", help="Stop the logic of a node; repeat for more.")
    ] = None,
    cut: Annotated[
        list[str] | None,
        typer.Option("--cut", metavar="NODE:DIRECTION", help="Cut a cable, such as 4:x+ (x, y, z; + or -); repeat for more."),
    ] = None,
    sick: Annotated[
        list[str] | None,
        typer.Option("--sick", metavar="NODE:NUMBER", help="Have a host say 1 to 127 of itself; repeat for more."),
    ] = None,
    beat_cycles: Annotated[int, typer.Option("--beat-cycles", min=1, help="Cycles between two beats of a host.")] = 500,
    period_cycles: Annotated[
        int, typer.Option("--period-cycles", min=1, help="Cycles without a beat after which a host is silent.")
    ] = 1200,
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="Cycles that are simulated after the faults.")] = 4000,
    wire_cycles: WireOption = 16,
    json_file: JsonFile = None,
) -> None:
    """Stop hosts, nodes and cables: who knows of it, and when.

    LO|FA|MO: a line a node, with the cycles from the fault until it was known.
    """
    from nanet.bench.torus_keys import WatchResult
    from nanet.result import files
    from nanet.torus import Torus
    from nanet.torus.watch import Faults, parse_cable, parse_sick, watch

    faults = Faults(
        stop_host or (), stop_node or (), [parse_cable(one) for one in cut or ()], [parse_sick(one) for one in sick or ()]
    )
    torus = Torus(shape, wire_cycles)
    known = watch(torus, faults, beat_cycles, period_cycles, cycles, _say)
    result: WatchResult = {
        **files.base("torus watch"),
        "shape": shape, "wire_cycles": wire_cycles, "beat_cycles": beat_cycles, "period_cycles": period_cycles, "cycles": cycles,
        "nodes": [
            {
                "place": list(torus.place(node)),
                "itself": torus.own_state(node),
                "neighbours": [{"direction": one.direction, "text": one.text, "after_cycles": one.after_cycles} for one in seen],
                "interrupts": torus.changes(node)[0], "changes": torus.changes(node)[1],
            }
            for node, seen in enumerate(known)
        ],
    }  # fmt: skip
    files.write_json(json_file, result)


@torus_app.command("serve")
def torus_serve(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Shared with the engines: their torus.file. Best in /dev/shm.")],
    shape: SmallShapeOption = "4x1x1",
    wire_cycles: WireOption = 16,
    threads: Annotated[
        int, typer.Option("--threads", min=1, max=64, help="Threads of the simulation; more only help where cores are free.")
    ] = 1,
    json_file: JsonFile = None,
) -> None:
    """Simulate a torus for engines at torus://NODE.

    Until SIGINT or SIGTERM. Its nodes are those of gateware/, verilated. At the end it says what each node counted, and how long PUTs took.
    """
    from nanet.bench.torus_keys import ServeResult
    from nanet.machine.signals import StopSignals
    from nanet.result import files
    from nanet.torus import ServedTorus

    with StopSignals() as stop, ServedTorus(shape, file, wire_cycles, threads) as torus:
        _say(f"ready: torus {torus.shape} at {file}")
        while not stop.wait(0):
            torus.serve(0.05)
        nodes = torus.registers()
        books = torus.books(nodes)
        for line in torus.report(nodes):
            _say(line)
        puts = torus.flights
        result: ServeResult = {
            **files.base("torus serve"),
            "shape": torus.shape, "wire_cycles": wire_cycles, "threads": torus.threads, "cycles": torus.cycle,
            "busy_s": torus.busy_s, "puts": {"count": puts.count, "min": puts.min, "mean": puts.mean, "max": puts.max},
            "nodes": [torus.counters(node) for node in range(torus.size)],
            "registers": [*nodes],
            "books": {
                "injected": books.injected, "delivered": books.delivered, "losses": books.losses, "unexplained": books.unexplained,
            },
        }  # fmt: skip
    files.write_json(json_file, result)


def cores(threads: int | None) -> int:
    """As many as were asked for, or as there are."""
    return threads or len(os.sched_getaffinity(0))


def one_of(names: tuple[str, ...], chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Those that were chosen, if there are such."""
    for name in chosen:
        if name not in names:
            raise typer.BadParameter(f"{name} is none of {', '.join(names)}", param_hint="--pattern")
    return chosen


def check_loads(loads: tuple[float, ...]) -> None:
    """A source makes at most a word a cycle."""
    for load in loads:
        if not 0 <= load <= 1:
            raise typer.BadParameter(f"{load:g} is not a number from 0 to 1", param_hint="--load")


def _study(
    shape: str, patterns: tuple[str, ...], loads: tuple[float, ...], payload_bytes: int, wire_cycles: int, window: int, seed: int,
    threads: int | None, program: Path | None,
) -> Study:  # fmt: skip
    """What is measured, as the options of all commands say it."""
    from nanet.bench.torus import Study

    check_loads(loads)
    return Study(shape, patterns, loads, payload_bytes, wire_cycles, window, seed, cores(threads), program or Study.program)


def _measure(name: str, study: Study, out: Path, json_file: Path | None, csv_file: Path | None) -> None:
    from nanet.bench.torus import csv_rows, run
    from nanet.report import write_report
    from nanet.result import files

    outputs.reserve_folder(out, f"torus-{name}.html")
    result = run(f"torus {name}", study, _say)
    files.write_json(json_file, result)
    files.append_csv(csv_file, f"torus {name}", csv_rows(result["curves"]))
    write_report(result, out / f"torus-{name}.html")
    _say(f"report: {out / f'torus-{name}.html'}")
    say_problems(result["problems"])


def say_problems(problems: list[str]) -> None:
    """Ends the command if there are any."""
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(1)


def _say(line: str) -> None:
    print(line, flush=True)
