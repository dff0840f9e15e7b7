# SPDX-License-Identifier: Apache-2.0
"""Tables for people, with Rich: colour on a terminal, plain text elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor_table(checks: Sequence[Mapping[str, Any]]) -> None:
    """Prints the findings, then the commands that mend them, one to a line so that they can be copied."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
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
        console.print("\nTo mend:", style="bold")
        for check in mends:
            console.print(Text(f"  {check['name']}: ", style="dim").append(str(check["mend"]), style="default"), soft_wrap=True)
