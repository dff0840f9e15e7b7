# SPDX-License-Identifier: Apache-2.0
"""The group of all commands: their order in `nanet --help`, the limits of their numbers, and wrong usage as one line."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from nanet.cli import STOPPED, STOPPED_LINE, USAGE
from nanet.cli.numbers import bound
from nanet.result import outputs

PANELS = {
    "Start here": ("demo", "examples"),
    "Run": ("validate", "schema", "format", "run", "emulate", "l0tp", "km3", "replay"),
    "Measure": ("bench", "physics", "torus", "soak"),
    "Machine": ("doctor", "tune"),
    "More": ("rdma", "stencil", "version", "man"),
}
UsageError: Any = typer.BadParameter.__base__
ClickException: Any = UsageError.__base__


class Panels(TyperGroup):
    """The group of all commands, listed by panel."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        bound(self)

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

    def make_context(self, *arguments: Any, **more: Any) -> Any:
        """As before, with the errors of standard output left to main."""
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError as error:
            raise _Told(error) from error

    def invoke(self, ctx: Any) -> Any:
        """The same."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _Told(error) from error

    def main(self, *arguments: Any, standalone_mode: bool = True, **more: Any) -> Any:
        """Runs a command, with what it writes in good hands."""
        with outputs.session():
            code = self._main(*arguments, **more)
            sys.stdout.flush()
            if standalone_mode:
                sys.exit(code)
            return code

    def _main(self, *arguments: Any, **more: Any) -> int:
        try:
            code = super().main(*arguments, **{**more, "standalone_mode": False})
        except ClickException as error:
            if not error.format_message() or type(error).__name__ == "NoArgsIsHelpError":
                error.show()  # the help
            else:
                print(f"nanet: {_line(error)}", file=sys.stderr)
            return USAGE
        except _Told as told:
            raise told.error from None
        if code == STOPPED:
            print(STOPPED_LINE, file=sys.stderr)
        return code if isinstance(code, int) else 0


class _Told(Exception):
    """An error past Typer, which would end the process without a word."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error


def _line(error: Any) -> str:
    """`problem (why) suggestion` of wrong usage."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "nanet"
    head, colon, why = message.partition(": ")
    if (option := getattr(error, "option_name", "")) and option.lstrip("-").isdigit():
        return f"{option} is taken for an option (a number below 0 is a value only after --) write -- before it: {path} ... -- {option}"
    if not colon or type(error).__name__ == "NoSuchOption":
        head, why = message, f"{path} is used in another form"
    why = why.removeprefix("Value error, ").replace("Input should be", "it has to be", 1)  # the words of what checks values
    return f"{head[:1].lower()}{head[1:]} ({why}) see {path} --help"
