# SPDX-License-Identifier: Apache-2.0
"""scripts/make_json_page.py: the page is current, what it makes of a type, and what it finds wrong with an object."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import make_json_page as page
import pytest
from made_up import filled, whole_demo
from nanet.loop.keys import DemoResult
from nanet.result.keys.base import ELSEWHERE, Base, Names

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_json_page.py"
Losses = Annotated[dict[str, int], Names({"late": "came late", "early": "came early"})]


class Part(TypedDict):
    """An object in others."""

    size_mm: Annotated[float, "its size"]
    kind: Annotated[Literal["round", "square"] | None, "its shape, or null"]


class Made(Base):
    """A result."""

    parts: Annotated[list[Part], "a part each"]
    by_name: Annotated[dict[str, Part], "the same by name"]
    losses: Annotated[Losses, "by reason"]
    same: Annotated[Part | None, ELSEWHERE, "as one of `parts`"]
    note: NotRequired[Annotated[str, "only if there is one"]]


def made(**changes: Any) -> dict[str, Any]:
    part = {"size_mm": 1, "kind": "round"}
    plain = {"parts": [part], "by_name": {"first": part}, "losses": {"late": 1, "early": 0}, "same": None}
    result: dict[str, Any] = filled(Base) | plain | changes
    return result


def test_the_page_is_current() -> None:
    assert subprocess.run([sys.executable, SCRIPT, "--check"], check=False).returncode == 0


def test_every_command_has_a_type_and_no_table_is_written_by_hand() -> None:
    text = page.PAGE.read_text()
    commands = text.split("\n## `nanet ")[1:]
    assert len(commands) > 25
    for section in commands:
        if not section.startswith("schema`"):  # which writes a JSON schema
            assert page.type_of(section) is not None, section[:40]
    tables = [part for part in re.split(r"\n\n", text) if part.startswith("| key")]
    assert len(tables) == len(page.MARK.findall(text))


def test_rows_of_lists_dictionaries_and_names() -> None:
    assert list(page.rows(Made, set())) == [
        ("parts", "a part each"), ("parts[].size_mm", "its size"), ("parts[].kind", "its shape, or null"),
        ("by_name", "the same by name"), ("by_name.NAME.size_mm", "its size"), ("by_name.NAME.kind", "its shape, or null"),
        ("losses", "by reason"), ("losses.late", "came late"), ("losses.early", "came early"),
        ("same", "as one of `parts`"), ("note", "only if there is one"),
    ]  # fmt: skip


def test_a_type_with_a_table_of_its_own_is_one_row() -> None:
    own = {id(page.identity(Part)), id(page.identity(Losses))}
    assert [key for key, _ in page.rows(Made, own)] == ["parts", "by_name", "losses", "same", "note"]


def test_a_key_without_a_meaning_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"Bare\.size has no meaning"):
        page.keys_of(TypedDict("Bare", {"size": int}))


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"note": "x"}, []),
        ({"same": {"size_mm": 1.5, "kind": None}}, []),
        ({"more": 1}, [".more is declared nowhere"]),
        ({"note": None}, [".note is None, not str"]),
        ({"parts": [{"size_mm": 1, "kind": "round", "weight": 2}]}, [".parts[0].weight is declared nowhere"]),
        ({"parts": [{"kind": "round"}]}, [".parts[0].size_mm is missing"]),
        ({"parts": [{"size_mm": "1", "kind": "round"}]}, [".parts[0].size_mm is '1', not float"]),
        ({"by_name": {"first": {"size_mm": 1, "kind": "flat"}}}, [".by_name.first.kind is 'flat', none of ('round', 'square')"]),
        ({"losses": {"late": 1}}, [".losses.early is missing"]),
        ({"losses": {"late": 1, "early": 0, "never": 2}}, [".losses.never is declared nowhere"]),
        ({"same": {"size_mm": 1}}, [".same.kind is missing"]),
        ({"parts": {}}, [".parts is {}, no list"]),
        ({"losses": {"late": True, "early": 0}}, [".losses.late is True, not int"]),
    ],
)
def test_what_is_wrong_with_an_object(changes: dict[str, Any], found: list[str]) -> None:
    assert list(page.differences(made(**changes), Made)) == found


def test_a_missing_key() -> None:
    result = made()
    del result["losses"], result["date"]
    assert list(page.differences(result, Made)) == [".date is missing", ".losses is missing"]


def test_the_demo_that_other_tests_make_up_is_whole() -> None:
    assert list(page.differences(whole_demo(), DemoResult)) == []
