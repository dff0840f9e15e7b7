# SPDX-License-Identifier: Apache-2.0
"""Turns whatever is wrong with a configuration into lines that read `problem (why) suggestion`."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

ModelT = TypeVar("ModelT", bound=BaseModel)
Location = tuple[int | str, ...]


class ConfigError(Exception):
    """A configuration that cannot be used. `problems` holds one line for each mistake; str() is the first of them."""

    def __init__(self, problems: list[str]) -> None:
        more = f" [and {len(problems) - 1} more: nanet validate shows all]" if len(problems) > 1 else ""
        super().__init__(problems[0] + more)
        self.problems = problems


@dataclass(frozen=True)
class Document:
    """A parsed YAML file that still knows at which line each value stands."""

    name: str
    data: Any
    lines: dict[Location, int] = field(default_factory=dict)

    def where(self, location: Location) -> str:
        """`FILE:LINE` of a value, or of the nearest thing around it."""
        for end in range(len(location), -1, -1):
            if location[:end] in self.lines:
                return f"{self.name}:{self.lines[location[:end]]}: "
        return f"{self.name}: " if self.name else ""


def load_document(path: Path) -> Document:
    """Reads a YAML file. Raises ConfigError when it cannot be read, is no YAML, or repeats a key."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        raise ConfigError([f"cannot read {path} ({why.lower()}) check the path"]) from None
    return parse_document(text, path.name)


def parse_document(text: str, name: str = "") -> Document:
    """The same from text in memory."""
    node = None
    try:
        loader = _Loader(text)  # refuses control characters at once
        node = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        what = error.problem or "it cannot be parsed"
        suggestion = "remove one of them" if "key" in what and "twice" in what else "check indentation, quotes and brackets"
        raise ConfigError([f"{name}:{line}: not usable as YAML ({what}) {suggestion}"]) from None
    except yaml.YAMLError as error:
        what = " ".join(str(error).split())
        raise ConfigError([f"{name}: not usable as YAML ({what}) check its characters"]) from None
    except (ValueError, RecursionError) as error:  # such as a date that does not exist, or brackets without end
        raise ConfigError([f"{name}: not usable as YAML ({_short(error)}) check its values"]) from None
    lines: dict[Location, int] = {}
    if node is not None:
        _collect_lines(node, (), lines)
    return Document(name, data, lines)


def validated(model: type[ModelT], document: Document | Any) -> ModelT:
    """The model made from a document or from plain data. Raises ConfigError."""
    if not isinstance(document, Document):
        document = Document("", document)
    if not isinstance(document.data, dict):
        kind = "nothing" if document.data is None else f"a {type(document.data).__name__}"
        raise ConfigError(
            [f"{document.where(())}the configuration is {kind} (it must be a table of keys and values) see examples/"]
        )
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        inner = {e["loc"][:end] for e in errors for end in range(len(e["loc"]))}
        own = [e for e in errors if e["loc"] not in inner] or errors  # not what only follows from a mistake further in
        problems = [document.where(tuple(e["loc"])) + _line(model, dict(e)) for e in own]
        raise ConfigError(list(dict.fromkeys(problems))) from None


def nearest(name: str, known: Iterable[str]) -> str:
    """A suggestion: the known name that `name` was probably meant to be, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}"


def _line(model: type[BaseModel], error: dict[str, Any]) -> str:
    location: Location = tuple(error["loc"])
    kind, context = error["type"], error.get("ctx", {})
    name = str(location[-1]) if location else "the configuration"
    path, parent = _path(location), _path(location[:-1]) or "the top level"
    if kind == "nanet":
        return (f"{path}: " if path else "") + str(error["msg"])
    if kind == "extra_forbidden":
        owner = _model_at(model, location[:-1])
        return f"unknown key '{name}' in {parent} (the schema has no such key) {nearest(name, owner.model_fields)}"
    if kind == "missing":
        return f"missing key '{name}' in {parent} (it has no default) add '{name}: ...', {_lower(_about(model, location))}"
    value = _short(error.get("input"))
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'|(\b\d+\b)", str(context.get("expected", "")))
        names = [a or b for a, b in allowed]
        return f"{path}: {value} is not allowed (it must be one of {', '.join(names)}) {nearest(str(error['input']), names)}"
    why = error["msg"][:1].lower() + error["msg"][1:]
    return f"{path or name}: {value} is not allowed ({why}) it means: {_lower(_about(model, location))}"


def _about(model: type[BaseModel], location: Location) -> str:
    """The first sentence of a field's description, in place of a suggestion."""
    names = [part for part in location if isinstance(part, str)]
    owner = _model_at(model, location[: location.index(names[-1])] if names else ())
    found = owner.model_fields.get(names[-1]) if names else None
    text = (found.description or "") if found else ""
    return text.split(". ")[0].rstrip(".") or "see nanet schema"


def _model_at(model: type[BaseModel], location: Location) -> type[BaseModel]:
    for part in location:
        if isinstance(part, str) and part in model.model_fields:
            inner = _inner_model(model.model_fields[part].annotation)
            model = inner or model
    return model


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    for argument in typing.get_args(annotation):
        inner = _inner_model(argument)
        if inner is not None:
            return inner
    return None


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _path(location: Location) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return " ".join((text[:57] + "..." if len(text) > 60 else text).split())


def _collect_lines(node: yaml.Node, location: Location, lines: dict[Location, int]) -> None:
    lines.setdefault(location, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*location, str(key.value))
            lines[here] = key.start_mark.line + 1
            _collect_lines(value, here, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _collect_lines(value, (*location, index), lines)


class _Loader(yaml.SafeLoader):
    """Safe YAML with two repairs: 1e6 is a number, and a duplicate key is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, f"key '{key.value}' appears twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*)(?:\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)
