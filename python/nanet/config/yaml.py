# SPDX-License-Identifier: Apache-2.0
"""YAML as configurations use it: the scalars of YAML 1.2's core schema, tables with distinct text keys, and bounds on what a file can ask for.

PyYAML reads YAML 1.1, where 010 is 8, 1:4 is 64 and `no` is false. Of that only the merge key `<<` is left.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

__all__ = ["BYTES_MAX", "Loader", "Refused"]

BYTES_MAX = 1 << 20
DEPTH_MAX = 50
ALIASES_MAX = 100  # after expansion: an alias to what holds an alias counts twice
VALUES_MAX = 20_000  # after expansion

CORE = "tag:yaml.org,2002:"
FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
SCALARS = (  # the first that matches, by the first character
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", FLOAT, "-+.0123456789"),
    ("merge", r"<<", "<"),
)
PATTERNS = {kind: pattern for kind, pattern, _ in SCALARS}
DIGITS_MAX = 400  # of a number: more is no number of ours, and slow to read


class Refused(yaml.constructor.ConstructorError):
    """`problem (why) suggestion` in parts, and where."""

    def __init__(self, what: str, suggestion: str, mark: yaml.Mark | None) -> None:
        super().__init__(None, None, what, mark)
        self.suggestion = suggestion


class Loader(yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser, yaml.composer.Composer, yaml.constructor.SafeConstructor,
             yaml.resolver.BaseResolver):  # fmt: skip
    """Raises Refused, and yaml.YAMLError for what is no YAML at all."""

    yaml_constructors: ClassVar[dict[Any, Any]] = {}  # not those of PyYAML
    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}  # type: ignore[misc]

    def __init__(self, text: str) -> None:
        yaml.reader.Reader.__init__(self, text)  # refuses control characters at once
        yaml.scanner.Scanner.__init__(self)
        yaml.parser.Parser.__init__(self)
        yaml.composer.Composer.__init__(self)
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.BaseResolver.__init__(self)
        self._open: list[
            tuple[str | None, list[int]]
        ] = []  # of each node that is being read its anchor, and [values, aliases] in it
        self._counts: dict[int, list[int]] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """As before, within the bounds."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        mark, is_alias = event.start_mark, isinstance(event, yaml.AliasEvent)
        if len(self._open) >= DEPTH_MAX:
            raise Refused(f"it is nested deeper than {DEPTH_MAX}", "flatten it", mark)
        if is_alias and any(anchor == event.anchor for anchor, _ in self._open):
            raise Refused(f"*{event.anchor} stands within what it stands for", "write it out", mark)
        self._open.append((None if is_alias else event.anchor, [1, 0]))
        node = super().compose_node(parent, index)
        _, counts = self._open.pop()
        if is_alias:
            values, aliases = self._counts[id(node)]
            counts = [values, aliases + 1]
        else:
            self._counts[id(node)] = counts
        if self._open:
            around = self._open[-1][1]
            around[:] = [mine + one for mine, one in zip(around, counts, strict=True)]
            _check_counts(around[0], around[1], mark)
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """A table. Its keys are text, each there once."""
        if not isinstance(node, yaml.MappingNode):  # its tag says that it is one
            raise Refused(f"a {node.id} is no map", "write it as YAML 1.2 has it", node.start_mark)
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == CORE + "merge":
                continue
            if key.tag != CORE + "str" or not isinstance(key, yaml.ScalarNode):
                said = f"'{key.value}'" if isinstance(key, yaml.ScalarNode) else f"a {key.id}"
                raise Refused(f"{said} is a key and no text", "write a name, or put it in quotes", key.start_mark)
            if key.value in seen:
                raise Refused(f"key '{key.value}' appears twice", "remove one of them", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def _scalar(self, node: Any) -> Any:
        """By its tag, which the file may have written itself."""
        text, kind = self.construct_scalar(node), node.tag.removeprefix(CORE)
        if kind == "str":
            return text
        if not re.fullmatch(PATTERNS[kind], text) or len(text) > DIGITS_MAX:
            raise Refused(f"{_short(text)} is no {kind}", "write it as YAML 1.2 has it", node.start_mark)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if kind == "int":
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


def _check_counts(values: int, aliases: int, mark: Any) -> None:
    if aliases > ALIASES_MAX:
        raise Refused(f"it has more than {ALIASES_MAX} aliases, those within others counted each time", "write them out", mark)
    if values > VALUES_MAX:
        raise Refused(f"it has more than {VALUES_MAX:,} values, those of aliases counted each time", "make it smaller", mark)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


for _kind in ("null", "bool", "int", "float", "str"):
    Loader.yaml_constructors[CORE + _kind] = Loader._scalar
Loader.yaml_constructors[CORE + "seq"] = yaml.constructor.SafeConstructor.construct_yaml_seq
Loader.yaml_constructors[CORE + "map"] = yaml.constructor.SafeConstructor.construct_yaml_map
Loader.yaml_constructors[None] = yaml.constructor.SafeConstructor.construct_undefined
for _kind, _pattern, _firsts in SCALARS:
    for _first in (*_firsts, *([""] if _kind == "null" else [])):
        Loader.yaml_implicit_resolvers.setdefault(_first, []).append((CORE + _kind, re.compile(rf"(?:{_pattern})\Z")))
