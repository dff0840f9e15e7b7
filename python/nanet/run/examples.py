# SPDX-License-Identifier: Apache-2.0
"""The examples: configurations and programs, from the installed package or from the source tree."""

from __future__ import annotations

import os
from pathlib import Path

from nanet.config.errors import ConfigError, nearest
from nanet.result import outputs

__all__ = ["copy", "example", "examples", "summary"]

PACKAGE = Path(__file__).parents[1]


def examples() -> dict[str, Path]:
    """{name: path} of every example, in order of name. Raises ConfigError where they are not installed."""
    for folder in (PACKAGE / "examples", PACKAGE.parents[1] / "examples"):
        files = sorted(path for path in folder.glob("*.*") if path.is_file() and path.name != "__init__.py")
        if files:
            return {path.name: path for path in files}
    raise ConfigError([f"there are no examples (neither next to {PACKAGE} nor in a source tree) reinstall nanet"])


def example(name: str) -> Path:
    """Where an example is. `examples/` before its name and a missing suffix do not matter. Raises ConfigError."""
    known = examples()
    wanted = name.removeprefix("examples/")
    for found, path in known.items():
        if wanted in (found, path.stem):
            return path
    raise ConfigError([f"there is no example '{name}' (nanet examples lists them) {nearest(wanted, list(known))}"])


def copy(path: Path, folder: Path) -> Path:
    """Copies an example into a folder, which is made if need be; where it is then. Raises ConfigError, also where a file is there."""
    target = folder / path.name
    if os.path.lexists(target):
        raise ConfigError([f"{target} is not overwritten (a file of this name exists) name another folder"])
    try:
        with outputs.Output(target) as output:
            output.write(path.read_bytes())
    except outputs.OutputError as error:
        raise ConfigError([str(error)]) from None
    return target


def summary(path: Path) -> str:
    """Its first line that says something: a comment, or the docstring's first sentence."""
    if path.suffix == ".json":
        return "A dashboard for Grafana, from the metrics of nanet run --metrics."
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip("#\"' ")
        if text and not text.startswith(("!", "SPDX")):
            return text.split(". ")[0].removesuffix(".") + "."
    return ""
