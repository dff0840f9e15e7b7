# SPDX-License-Identifier: Apache-2.0
"""The manual page, made from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

EXIT_STATUS = {
    "0": "All is well.",
    "1": "The promise was broken: something was lost or wrong, or the 99.9th percentile of the latency is over the budget.",
    "2": "Wrong usage, or something could not be set up. One line on standard error says why, and what to do.",
}


def page(app: typer.Typer, version: str) -> str:
    """The page in the language of man(7)."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("nanet", [], resilient_parsing=True)
    lines = [
        f'.TH NANET 1 "" "nanet {version}" "User Commands"',
        ".SH NAME", f"nanet \\- {_text(str(root.help))}",
        ".SH SYNOPSIS", ".B nanet", "[OPTIONS] COMMAND [ARGS]...",
        ".SH OPTIONS", *_records(root, context),
        ".SH COMMANDS", *_commands(root, context),
        ".SH EXIT STATUS", *(line for status, text in EXIT_STATUS.items() for line in (".TP", status, _text(text))),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _commands(group: Any, context: Any) -> Iterator[str]:
    """Each command below a group, and what is below it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        below = command.make_context(name, [], parent=context, resilient_parsing=True)
        yield f'.SS "{_text(" ".join([below.command_path, *command.collect_usage_pieces(below)]))}"'
        for paragraph in (command.help or "").split("\n\n"):
            yield from (".PP", _text(" ".join(paragraph.split())))
        yield from _records(command, below)
        if hasattr(command, "list_commands"):
            yield from _commands(command, below)


def _records(command: Any, context: Any) -> Iterator[str]:
    """Arguments and options."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield from (".TP", f".B {_text(record[0])}", _text(record[1]) or "\\&")


def _text(text: str) -> str:
    """Plain text for roff: no line begins with a request, a hyphen is one that can be searched for and copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain
