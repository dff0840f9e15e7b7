# SPDX-License-Identifier: Apache-2.0
"""`nanet tune` and `nanet doctor`: their options, and what they print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanet.cli.options import JsonFile

if TYPE_CHECKING:
    from nanet.cli.keys import TuneResult
    from nanet.tune.apply import Step
    from nanet.tune.plan import Knob

COLUMNS = 100  # where the output is not a terminal
STATES = {"ok": ("ok", "green"), "change": ("set", "yellow"), "by hand": ("hand", "cyan")}

Config = Annotated[Path | None, typer.Argument(metavar="CONFIG", help="YAML file of an engine: its cores, links and memory.")]
Interfaces = Annotated[list[str] | None, typer.Option("--interface", metavar="IF", help="Network interface of the data.")]


def tune(
    config: Config = None,
    interface: Interfaces = None,
    do_apply: Annotated[bool, typer.Option("--apply", help="Change the settings as planned; needs root.")] = False,
    do_undo: Annotated[bool, typer.Option("--undo", help="Restore what --apply changed; needs root.")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only this knob of the table; repeat for more.")
    ] = None,
    undo_file: Annotated[Path, typer.Option("--undo-file", metavar="FILE", help="Where the previous values are kept.")] = Path(
        "/run/nanet-tune.json"
    ),
    unthrottled: Annotated[
        bool,
        typer.Option(
            "--allow-unthrottled-realtime",
            help="Turn real-time throttling off too. DANGER: a spinning thread may hang the machine.",
        ),
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """Plan the settings of this machine for an engine, and apply them.

    Without --apply nothing is changed.
    """
    from nanet.config import engine as models
    from nanet.result import files
    from nanet.tune import apply
    from nanet.tune import plan as knobs_of
    from nanet.tune.kernel import UNTHROTTLED_DANGER

    if do_undo and (do_apply or config or interface or only or unthrottled):
        raise typer.BadParameter("--undo takes --undo-file and --json only")
    system = knobs_of.this_system()
    mode = "undo" if do_undo else "apply" if do_apply else "plan"
    result: TuneResult = {**files.base("tune"), "mode": mode, "undo_file": str(undo_file), "knobs": [], "steps": []}
    if do_undo:
        steps = apply.undo(system, undo_file)
        _print_steps(steps, "nothing to undo")
        _finish(result, steps, json_file)
    needs = knobs_of.needs_of(models.load(config) if config else None, system, interface or (), unthrottled_realtime=unthrottled)
    knobs = knobs_of.chosen(knobs_of.plan(needs, system), only or ())
    result["knobs"] = [knobs_of.as_json(knob) for knob in knobs]
    if unthrottled:
        print(f"DANGER: {UNTHROTTLED_DANGER}.\n", flush=True)
    if not do_apply:
        print_plan(knobs, needs.interfaces)
        _finish(result, [], json_file)
    steps = apply.apply(knobs, system, undo_file)
    _print_steps(steps, "nothing to change")
    _print_by_hand(knobs)
    if undo_file.exists():
        print(f"\nundo: nanet tune --undo{_option(undo_file, apply.UNDO_FILE)}", flush=True)
    _finish(result, steps, json_file)


def doctor(config: Config = None, interface: Interfaces = None, json_file: JsonFile = None) -> None:
    """Show what limits rate and latency on this machine, and the fix."""
    from nanet.cli.text import doctor_table
    from nanet.config import engine as models
    from nanet.doctor import machine as findings
    from nanet.result import files

    result = findings.run(models.load(config) if config else None, interface or ())
    files.write_json(json_file, result)
    doctor_table(result["checks"])
    if result["state"] != findings.OK:
        print("\nnanet tune --apply sets what can be set while the machine runs; --undo restores it.", flush=True)
    raise typer.Exit(1 if result["state"] == findings.FAIL else 0)


def _finish(result: TuneResult, steps: Sequence[Step], json_file: Path | None) -> None:
    from nanet.result import files

    result["steps"] = [step.plain() for step in steps]
    files.write_json(json_file, result)
    raise typer.Exit(1 if any(step.problem for step in steps) else 0)


def print_plan(knobs: Sequence[Knob], interfaces: Sequence[str]) -> None:
    """Prints the table, then the commands, one to a line so that they can be copied."""
    from rich.table import Table
    from rich.text import Text

    from nanet.cli.text import Output

    console = Output(COLUMNS)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in ("", "knob", "now", "wanted"):
        table.add_column(heading, no_wrap=True)
    table.add_column("why it matters", overflow="fold")
    for knob in knobs:
        word, style = STATES[knob.state]
        wanted = Text(knob.wanted, style="dim" if knob.state == "ok" else "bold")
        table.add_row(Text(word, style=style), Text(knob.name), Text(knob.now), wanted, Text(knob.why, style="dim"))
    console.print(table)
    if not interfaces:
        console.print("\nno interface given: IRQs, RX ring and IRQ delay need --interface IF", soft_wrap=True)
    changes = [knob for knob in knobs if knob.state == "change"]
    if changes:
        console.print("\n--apply does what these would:", style="bold")
        for knob in changes:
            console.print(Text(f"  {knob.command}"), soft_wrap=True)
    _print_by_hand(knobs)


def _print_by_hand(knobs: Sequence[Knob]) -> None:
    from rich.text import Text

    from nanet.cli.text import Output

    console = Output(COLUMNS)
    by_hand = [knob for knob in knobs if knob.state == "by hand"]
    if by_hand:
        console.print("\nby hand:", style="bold")
    for knob in by_hand:
        console.print(Text(f"  {knob.name}: ", style="dim").append(knob.command, style="default"), soft_wrap=True)


def _print_steps(steps: Sequence[Step], none: str) -> None:
    if not steps:
        print(none, flush=True)
    for step in steps:
        if step.problem:
            print(f"NOT DONE {step.target}: still {step.now or '?'} ({step.problem})", flush=True)
        elif step.before == step.now:
            print(f"{step.target}: already {step.now}", flush=True)
        else:
            print(f"{step.target}: {step.before} -> {step.now}", flush=True)


def _option(undo_file: Path, default: Path) -> str:
    return "" if undo_file == default else f" --undo-file {undo_file}"
