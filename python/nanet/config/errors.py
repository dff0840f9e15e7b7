# SPDX-License-Identifier: Apache-2.0
"""Turns whatever is wrong with a configuration into lines that read `problem (why) suggestion`."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from nanet.config.yaml import BYTES_MAX, Loader, Refused

ModelT = TypeVar("ModelT", bound=BaseModel)
A_TABLE = "it must be a table of keys and values"
SHAPES = {
    "tuple_type": "it must be a list",
    "list_type": "it must be a list",
    "dict_type": A_TABLE,
    "model_type": A_TABLE,
    "model_attributes_type": A_TABLE,
}
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
    """Reads a YAML file. Raises ConfigError when it cannot be read, is no YAML, or is more than a configuration can be."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
        text = "" if len(data) > BYTES_MAX else data.decode("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        why = why if "\0" not in str(path) else "its name has a NUL character"
        raise ConfigError([f"cannot read {_printable(str(path))} ({why}) check the path"]) from None
    if len(data) > BYTES_MAX:
        raise ConfigError([_too_large(path.name)])
    return parse_document(text, path.name)


def parse_document(text: str, name: str = "") -> Document:
    """The same from text in memory."""
    if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        raise ConfigError([_too_large(name)])
    name = _printable(name)
    node = None
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join((error.problem or "it cannot be parsed").split())
        suggestion = error.suggestion if isinstance(error, Refused) else "check indentation, quotes and brackets"
        raise ConfigError([f"{name}:{mark.line + 1 if mark else 1}: not usable as YAML ({what}) {suggestion}"]) from None
    except yaml.reader.ReaderError as error:
        what = f"the character {ord(error.character):#06x} is not allowed" if isinstance(error.character, str) else error.reason
        what = f"the character {error.character:#06x} is not allowed" if isinstance(error.character, int) else what
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError([f"{name}:{line}: not usable as YAML ({what}) check its characters"]) from None
    lines: dict[Location, int] = {}
    if node is not None:
        _collect_lines(node, (), lines)
    return Document(name, data, lines)


def _too_large(name: str) -> str:
    return f"{_printable(name)}:1: not usable as YAML (it is larger than {BYTES_MAX >> 20} MiB) give a configuration"


def _shown(line: str) -> str:
    """The line with texts that no one would read to their end cut."""
    return re.sub(r"'([^']{57})[^']{150,}'", r"'\1...'", line)


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


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
        problems = [_printable(document.where((*e["loc"], *_key_of(dict(e)))) + _shown(_line(model, dict(e)))) for e in own]
        raise ConfigError(list(dict.fromkeys(problems))) from None


def nearest(name: str, known: Iterable[str]) -> str:
    """A suggestion: the known name that `name` was probably meant to be, or all of them."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}"


def _key_of(error: dict[str, Any]) -> Location:
    """The key that a rule between several names, by its path, if it does."""
    key = error.get("ctx", {}).get("key") if error["type"] == "nanet" else None
    return tuple(int(part) if part.isdigit() else part for part in str(key).split(".")) if key else ()


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
        suggestion = nearest(str(error["input"]), names)
        if all(name.isdigit() for name in names):
            suggestion = suggestion.replace("'", "")  # a number in quotes is none
        return f"{path}: {value} is not allowed (it must be one of {', '.join(names)}) {suggestion}"
    if kind.startswith("union_tag"):
        return _line_of_tag(path, context)
    why = SHAPES.get(kind) or error["msg"][:1].lower() + error["msg"][1:]
    return f"{path or name}: {value} is not allowed ({why}) it means: {_lower(_about(model, location))}"


def _line_of_tag(path: str, context: dict[str, Any]) -> str:
    """Of a table that one of its keys makes one of several kinds, such as a finder by its name."""
    key = str(context["discriminator"]).strip("'")
    if "tag" not in context:
        return f"missing key '{key}' in {path} (it says which kind it is) add '{key}: ...'"
    tag, known = str(context["tag"]), re.findall(r"'([^']*)'", str(context["expected_tags"]))
    return f"{path}.{key}: {_short(tag)} is not allowed (it must be one of {', '.join(known)}) {nearest(tag, known)}"


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
    """As YAML writes it, so far as there is a difference."""
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
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
