# SPDX-License-Identifier: Apache-2.0
"""What texts tell a user to run with make is in the Makefile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHERE = ("python", "docs", "src", "examples", "scripts", "requirements", "include", "gateware", "cmake")
SUFFIXES = {".py", ".md", ".cpp", ".hpp", ".cu", ".cuh", ".yaml", ".txt", ".sh", ".cmake"}
# In a code span, as a command of its own line, or after a word that tells to do it; prose such as "they make rings" is none.
NAMED = re.compile(
    r"(?:`|^\s*(?:\$ )?|\b(?:run|or|or:|by|needs|with|after|see) )make ((?:[\w./-]+(?:=\S+)?(?: (?=[\w-]+=))?)+)", re.MULTILINE
)
PROSE = {"it", "the", "a"}


def verbs_in(text: str) -> set[str]:
    found = {match[1].split()[0] for match in NAMED.finditer(text)}
    return {verb.strip(".") for verb in found if "=" not in verb} - PROSE


def makefile_verbs() -> set[str]:
    """Those of `make help`, and the files that it says how to make."""
    text = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE)) | {".venv-gateware/ready", "venv-gateware/ready"}


def texts() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    for folder in WHERE:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES and "build" not in path.parts]
    return found


@pytest.mark.parametrize(
    ("text", "verbs"),
    [
        ("run make links, or not", {"links"}), ("`make cuda CUDA_ARCHITECTURES=90-real` compiles", {"cuda"}), ("make demo\nnanet", {"demo"}),
        ("hits nearly on a line make rings", set()), ("it does not load, or: make build", {"build"}), ("`make lock` writes it", {"lock"}),
    ],
)  # fmt: skip
def test_verbs_are_found(text: str, verbs: set[str]) -> None:
    assert verbs_in(text) == verbs


def test_every_verb_that_a_text_names_exists() -> None:
    known = makefile_verbs()
    assert {"setup", "links", "cuda", "demo", "test"} <= known
    wrong = [f"{path.relative_to(ROOT)}: make {verb}" for path in texts() for verb in sorted(verbs_in(path.read_text()) - known)]
    assert not wrong
    named = set().union(*(verbs_in(path.read_text()) for path in texts()))
    assert {"setup", "links", "cuda"} <= named  # so that a pattern that finds nothing does not pass
