# SPDX-License-Identifier: Apache-2.0
"""Tables for people, with Rich: colour on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nanet.config.conditions import MULTIPLICITY_MAX, Row
from nanet.machine.check import CheckKeys

COLUMNS = 160  # where neither a terminal nor COLUMNS says how many
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


class Output(Console):
    """Standard output. One that is closed is an error as for print: Rich would end the process with 1, without a word."""

    def __init__(self, columns: int = COLUMNS) -> None:
        super().__init__(highlight=False)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = columns

    def on_broken_pipe(self) -> None:
        """Called while that error is handled."""
        raise


def doctor_table(checks: Sequence[CheckKeys]) -> None:
    """Prints the findings, then the commands that fix them, one to a line so that they can be copied."""
    console = Output()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        state = str(check["state"])
        table.add_row(Text(f"{state:4}", style=STYLES[state]), Text(str(check["name"]), style="bold"), Text(str(check["found"])))
    console.print(table)
    mends = [check for check in checks if check["state"] != "ok" and check["mend"]]
    if mends:
        console.print("\nTo fix:", style="bold")
        for check in mends:
            console.print(Text(f"  {check['name']}: ", style="dim").append(str(check["mend"]), style="default"), soft_wrap=True)


def truth_table(rows: Sequence[Row], names: Sequence[str]) -> None:
    """Prints the answers of all conditions; equal answers over a range of multiplicity are one line."""
    console = Output()
    table = Table(box=None, pad_edge=False, header_style="bold")
    quantities = list(rows[0].mix)
    for quantity in quantities:
        table.add_column(quantity, justify="right")
    table.add_column("multiplicity", justify="right")
    for bit, name in enumerate(names):
        table.add_column(f"{name} (bit {10 + bit})", justify="center")
    last_rings = 0
    for row in rows:
        if row.mix["rings"] != last_rings:
            table.add_section()
        last_rings = row.mix["rings"]
        low, high = row.multiplicity
        span = f"{low}" if low == high else f"{low} to {high}" + ("+" if high == MULTIPLICITY_MAX else "")
        answers = [Text("yes", style="green") if holds else Text("-", style="dim") for holds in row.holds]
        table.add_row(*(str(row.mix[quantity]) for quantity in quantities), span, *answers)
    console.print(table)
