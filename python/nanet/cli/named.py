# SPDX-License-Identifier: Apache-2.0
"""The commands that are made for a command line: the one that it names. To make all of them takes longer than many of them run."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import typer
from typer.main import get_command_name

NEEDS_ALL = ("man",)


def named(app: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """The app with nothing but the command that the words begin with; all of it where they begin with none."""
    if not words or words[0] in NEEDS_ALL:
        return app
    commands = [one for one in app.registered_commands if _name(one) == words[0]]
    groups = [one for one in app.registered_groups if one.name == words[0]]
    if not commands and not groups:
        return app
    alone = copy(app)
    alone.registered_commands = commands
    alone.registered_groups = [_with(group, words[1:]) for group in groups]
    return alone


def _with(group: typer.models.TyperInfo, words: Sequence[str]) -> typer.models.TyperInfo:
    assert group.typer_instance is not None
    alone = copy(group)
    alone.typer_instance = named(group.typer_instance, words)
    return alone


def _name(command: typer.models.CommandInfo) -> str:
    assert command.callback is not None
    return command.name or get_command_name(command.callback.__name__)
