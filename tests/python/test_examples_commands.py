# SPDX-License-Identifier: Apache-2.0
"""Commands that the examples name are taken by the command line: their words, options and values."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from nanet.cli.app import app

ROOT = Path(__file__).parents[2]
# A command has its own line, in a comment or in a script.
COMMAND = re.compile(r"^(?:#\s+)?(?:sudo |srun \S+ )?(?:\.venv/bin/)?nanet ([a-z0-9]+ .*)$", re.MULTILINE)


def commands_of(text: str) -> list[str]:
    return COMMAND.findall(re.sub(r"\\\n#?\s*", "", text))


def named() -> list[tuple[str, str]]:
    paths = sorted(path for path in (ROOT / "examples").iterdir() if path.suffix in (".sh", ".yaml", ".py"))
    return [(path.name, command) for path in paths for command in commands_of(path.read_text())]


def parsed(command: str) -> None:
    """Raises what the command line says of a word that it does not take."""
    words = shlex.split(command.replace('"$@"', ""), comments=True)
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands"):
        found = found.commands[words.pop(0)]
    found.make_context("nanet", words)


@pytest.mark.parametrize(("name", "command"), named())
def test_an_examples_command_is_taken(monkeypatch: pytest.MonkeyPatch, name: str, command: str) -> None:
    monkeypatch.chdir(ROOT)
    parsed(command)


def test_what_is_not_taken_is_seen() -> None:
    assert commands_of("# nanet run a.yaml\n#   nanet demo --x \\\n#     --y 3\n# as nanet run does\n") == [
        "run a.yaml",
        "demo --x --y 3",
    ]
    assert {"stencil_slurm.sh", "node.yaml", "torus.yaml"} <= {name for name, _ in named()}
    for wrong in ("stencil --dtype fp16", "stencil --rank env", "emulate tel62 --boards x", "run"):
        with pytest.raises(Exception, match=r"(?i)no such option|invalid value|not one of|missing|valid integer"):
            parsed(wrong)
