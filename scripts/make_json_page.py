#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/json.md that stand below a mark `<!-- keys: MODULE.TYPE -->`, from the types of the results and their annotations.

A type says each key's meaning once, and mypy checks who makes and who reads it; this carries it to the page. Everything else on the page is
written by hand. `.venv/bin/python scripts/make_json_page.py [--check]`: exit 1 when the page is not current.

`<!-- the keys are those of: MODULE.TYPE -->` says it of a section without a table, for the tests.
A key whose type has a table of its own is one row; other objects are written out, `a.b`, in lists `a[].b`, in dictionaries `a.NAME.b`.
"""

from __future__ import annotations

import importlib
import re
import sys
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any

from nanet.result.keys.base import ELSEWHERE, Base, Names

PAGE = Path(__file__).resolve().parent.parent / "docs" / "json.md"
MARK = re.compile(r"^<!-- keys: ([\w.]+) -->\n(?:\n(?:\|.*\n)+)?", re.MULTILINE)
SAME = re.compile(r"^<!-- the keys are those of: ([\w.]+) -->\n", re.MULTILINE)
HEAD = "| key | meaning |\n|---|---|\n"


@dataclass(frozen=True)
class Key:
    """One key of an object."""

    name: str
    type: Any
    meaning: str
    needed: bool


def named(name: str) -> Any:
    """The type of this full name."""
    module, _, of_type = name.rpartition(".")
    return getattr(importlib.import_module(module), of_type)


def keys_of(made: Any) -> list[Key]:
    """The keys of a TypedDict, those of its bases first, or of a dictionary whose annotation has their names."""
    if (names := names_of(made)) is not None:
        value = typing.get_args(plain(made))[1]
        more = [] if names.more is None else [replace(key, needed=False) for key in keys_of(names.more)]
        return [Key(name, value, meaning, True) for name, meaning in names.meanings.items()] + more
    keys = []
    for name, hint in typing.get_type_hints(plain(made), include_extras=True).items():
        needed = typing.get_origin(hint) is not typing.NotRequired
        hint = hint if needed else typing.get_args(hint)[0]
        texts = [text for text in getattr(hint, "__metadata__", ()) if isinstance(text, str)]
        assert texts, f"{plain(made).__name__}.{name} has no meaning: Annotated[TYPE, 'what it is']"
        keys.append(Key(name, hint, texts[-1], needed))
    return keys


def plain(made: Any) -> Any:
    """A type without its annotation."""
    return typing.get_args(made)[0] if typing.get_origin(made) is typing.Annotated else made


def names_of(made: Any) -> Names | None:
    """The names that an annotation says of a dictionary."""
    return next((one for one in getattr(made, "__metadata__", ()) if isinstance(one, Names)), None)


def has_keys(made: Any) -> bool:
    """Whether it is an object whose keys are known."""
    return names_of(made) is not None or typing.is_typeddict(plain(made))


def choices(made: Any) -> list[Any]:
    """The members of a union, or the type alone; each keeps its annotation."""
    if typing.get_origin(plain(made)) in (typing.Union, UnionType):
        return list(typing.get_args(plain(made)))
    return [made]


def rows(made: Any, own: set[int], before: str = "") -> Iterator[tuple[str, str]]:
    """(key, meaning) of an object and of those in it. own: types, by the id of their `identity`, that have a table of their own."""
    for key in keys_of(made):
        if before == "" and key.name in Base.__annotations__ and plain(made) is not Base:
            continue
        yield before + key.name, key.meaning
        inner, path = below(key.type, before + key.name)
        if inner is not None and id(identity(inner)) not in own and ELSEWHERE not in getattr(key.type, "__metadata__", ()):
            yield from rows(inner, own, path + ".")


def below(made: Any, path: str) -> tuple[Any, str]:
    """The object in a value, a list or a dictionary of them, and its path; None: there is none."""
    for choice in choices(made):
        bare = plain(choice)
        if has_keys(choice):
            return choice, path
        arguments = typing.get_args(bare)
        if typing.get_origin(bare) is list:
            return below(arguments[0], path + "[]")
        if typing.get_origin(bare) is dict:
            return below(arguments[1], path + ".NAME")
    return None, path


def identity(made: Any) -> Any:
    """What tells an object's type from others."""
    return names_of(made) or plain(made)


def table(name: str, own: set[int]) -> str:
    """What stands below a mark."""
    return HEAD + "".join(f"| `{key}` | {meaning} |\n" for key, meaning in rows(named(name), own))


def type_of(section: str) -> Any:
    """The type that the first mark of a section names."""
    return named([*MARK.findall(section), *SAME.findall(section)][0])


def written(text: str) -> str:
    """A page with its tables as they should be."""
    own = {id(identity(named(name))) for name in MARK.findall(text)}
    return MARK.sub(lambda found: f"<!-- keys: {found[1]} -->\n\n{table(found[1], own)}", text)


def differences(value: Any, made: Any, path: str = "") -> Iterator[str]:
    """What a value, read from JSON, has that its type does not declare, or lacks of it. Kinds of numbers are told from text, not from each other."""
    of_value = [choice for choice in choices(made) if (value is None) == (plain(choice) is type(None))] or choices(made)
    found = [list(_differences(value, choice, path)) for choice in of_value]
    if all(found):
        yield from min(found, key=len)


def _differences(value: Any, made: Any, path: str) -> Iterator[str]:
    bare, origin = plain(made), typing.get_origin(plain(made))
    if has_keys(made):
        if not isinstance(value, dict):
            yield f"{path} is {value!r}, no object"
            return
        keys = {key.name: key for key in keys_of(made)}
        yield from (f"{path}.{name} is declared nowhere" for name in value if name not in keys)
        for name, key in keys.items():
            if name in value:
                yield from differences(value[name], key.type, f"{path}.{name}")
            elif key.needed:
                yield f"{path}.{name} is missing"
    elif origin is list:
        if not isinstance(value, list):
            yield f"{path} is {value!r}, no list"
            return
        for index, one in enumerate(value):
            yield from differences(one, typing.get_args(bare)[0], f"{path}[{index}]")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{path} is {value!r}, no object"
            return
        for name, one in value.items():
            yield from differences(one, typing.get_args(bare)[1], f"{path}.{name}")
    elif origin is typing.Literal:
        if value not in typing.get_args(bare):
            yield f"{path} is {value!r}, none of {typing.get_args(bare)}"
    elif not fits(value, bare):
        yield f"{path} is {value!r}, not {getattr(bare, '__name__', bare)}"


def fits(value: Any, made: Any) -> bool:
    """Whether a plain value is of a plain type."""
    if made is Any:
        return True
    if made in (None, type(None)):
        return value is None
    if made in (int, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, made)


def main(arguments: list[str]) -> int:
    text = PAGE.read_text(encoding="utf-8")
    current = written(text)
    if arguments == ["--check"]:
        if text == current:
            return 0
        print(f"{PAGE.name} is not current (the type of a result changed) run scripts/make_json_page.py", file=sys.stderr)
        return 1
    PAGE.write_text(current, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
