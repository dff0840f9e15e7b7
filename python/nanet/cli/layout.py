# SPDX-License-Identifier: Apache-2.0
"""How `nanet --help` is laid out: the commands in panels, in the order in which a newcomer needs them."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

PANELS = {
    "Start here": ("demo", "examples"),
    "Run": ("validate", "schema", "run", "emulate", "l0tp", "replay"),
    "Measure": ("bench", "physics", "soak"),
    "Machine": ("doctor", "tune"),
    "More": ("rdma", "stencil", "version", "man"),
}


class Panels(TyperGroup):
    """The group of all commands, listed by panel."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the panels."""
        return [name for names in PANELS.values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """A section a panel, all with their summaries in one column."""
        width = max(map(len, self.commands))
        for panel, names in PANELS.items():
            with formatter.section(panel):
                limit = formatter.width - width - 6
                formatter.write_dl([(name.ljust(width), self.commands[name].get_short_help_str(limit)) for name in names])
