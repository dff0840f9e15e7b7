# SPDX-License-Identifier: Apache-2.0
"""Which files of rtl/ a module is made of: a tool that is given these alone reads a fraction of what is there."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent


@cache
def paths() -> dict[str, Path]:
    """Every module and package by name."""
    return {path.stem: path for path in sorted((HERE / "rtl").glob("**/*.sv"))}


@cache
def named_in(path: Path) -> frozenset[str]:
    """Modules and packages whose names stand in a file, comments apart."""
    return frozenset(re.findall(r"[a-z]\w*", re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8")))) & paths().keys()


def sources_of(*tops: Path) -> list[Path]:
    """The files of rtl/ that these need, themselves if they are of rtl/: packages first, as the tools read them in this order."""
    found: set[str] = set()
    wanted = {name for top in tops for name in named_in(top)} | {top.stem for top in tops if paths().get(top.stem) == top}
    while wanted:
        found |= wanted
        wanted = {name for wanting in wanted for name in named_in(paths()[wanting])} - found
    return [paths()[name] for name in ordered(found)]


def ordered(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (not name.endswith("_pkg"), name))


def modules() -> list[str]:
    return [name for name in ordered(paths()) if not name.endswith("_pkg")]
