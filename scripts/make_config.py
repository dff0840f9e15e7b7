#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/nanet/config/components.py: one model per component of the native module, from what its C++ struct says of its keys.

The struct says each key's default, unit, bounds and effects once (include/nanet/config/setting.hpp); this carries them to the configuration. A
test compares the file with what this writes. `scripts/make_config.py [--check]`: exit 1 when the file is not current.
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "python" / "nanet" / "config" / "components.py"
WIDTH = 118
TYPES = {"bool": "bool", "whole": "int", "number": "float", "text": "str"}
BOUNDS = {"least": "ge", "most": "le", "above": "gt", "below": "lt", "multiple_of": "multiple_of"}
LENGTHS = {"length_least": "min_length", "length_most": "max_length"}
TEXTS = ("too_small", "too_big")
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The components of the native module. Written by scripts/make_config.py from what their C++ structs say of their keys: change those."""

from __future__ import annotations

from typing import {typing}

from pydantic import {pydantic}

from nanet.config.base import Model, ruled, setting
{forms}
# fmt: off
'''


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def number(value: float, kind: str) -> str:
    """A bound as it is written for a key of that kind."""
    return repr(float(value)) if kind == "number" else repr(int(value))


def literal(value: Any, kind: dict[str, Any]) -> str:
    """A default."""
    match kind["kind"]:
        case "component":
            return str(kind["name"])
        case "list":
            items = [literal(one, kind["of"]) for one in value]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        case "optional":
            return "None" if value is None else literal(value, kind["of"])
        case "number":
            return shortest(value)
    return quoted(value) if isinstance(value, str) else repr(value)


def shortest(value: float) -> str:
    """As written in the C++ source, which may have said it as a float: 5.4F is not 5.400000095367432."""
    import struct

    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if float(text) == value or struct.pack("f", float(text)) == struct.pack("f", value) and digits < 9:
            return repr(float(text))
    return repr(value)


def innermost(kind: dict[str, Any]) -> str:
    while "of" in kind:
        kind = kind["of"]
    return str(kind["kind"])


def annotation(kind: dict[str, Any], key: dict[str, Any]) -> str:
    """The type; of a list with the bounds of its items."""
    match kind["kind"]:
        case "optional":
            return f"{annotation(kind['of'], key)} | None"
        case "list":
            item = annotation(kind["of"], key)
            limits = bounds(key)
            return f"tuple[Annotated[{item}, Field({', '.join(limits)})], ...]" if limits else f"tuple[{item}, ...]"
        case "component":
            return str(kind["name"])
        case "choice":
            return f"Literal[{', '.join(map(quoted, kind['names']))}]"
    return str(key.get("form", TYPES[kind["kind"]]))


def bounds(key: dict[str, Any]) -> list[str]:
    kind = innermost(key["type"])
    return [f"{name}={number(key[said], kind)}" for said, name in BOUNDS.items() if said in key]


def field(key: dict[str, Any]) -> str:
    """The field's lines of source."""
    default = literal(key["default"], key["type"]) if "default" in key else "..."
    arguments = [default, quoted(key["help"])]
    if "unit" in key:
        arguments.append(f"unit={quoted(key['unit'])}")
    if key["type"]["kind"] != "list":
        arguments += bounds(key)
    arguments += [f"{name}={int(key[said])}" for said, name in LENGTHS.items() if said in key]
    if "pattern" in key:
        arguments.append(f"pattern=r{quoted(key['pattern'])}")
    arguments += [f"{name}={quoted(key[name])}" for name in TEXTS if name in key]
    lines = [""]
    for argument in arguments:
        if lines[-1] and len(lines[-1]) + len(argument) > WIDTH:
            lines.append("")
        lines[-1] += f"{argument}, "
    body = "".join(f"        {line.rstrip()}\n" for line in lines)
    return f"    {key['key']}: {annotation(key['type'], key)} = setting(\n{body}    )\n"


def model(component: dict[str, Any]) -> str:
    name = component["name"]
    text = f'\n\nclass {name}(Model):\n    """{component["help"]}"""\n\n' + "".join(map(field, component["keys"]))
    if component["has_rules"]:
        text += f"\n    @model_validator(mode=\"after\")\n    def _rules(self) -> {name}:\n        return ruled(self, {name})\n"
    return text


def source() -> str:
    """The whole file."""
    from nanet import _core

    described = _core.components()
    body = "".join(map(model, described))
    forms = sorted({key["form"] for one in described for key in one["keys"] if "form" in key})
    names = "".join(f"    {quoted(one)},\n" for one in sorted(one["name"] for one in described))
    used = {
        "typing": ", ".join(name for name in ("Annotated", "Literal") if f"{name}[" in body),
        "pydantic": ", ".join(name for name in ("Field", "model_validator") if f"{name}(" in body),
        "forms": f"from nanet.config.forms import {', '.join(forms)}\n" if forms else "",
    }
    return HEAD.format(**used) + f"__all__ = [\n{names}]\n" + body


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        if TARGET.read_text(encoding="utf-8") == source():
            return 0
        print(f"{TARGET.name} is not current (a component changed) run scripts/make_config.py", file=sys.stderr)
        return 1
    TARGET.write_text(source(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
