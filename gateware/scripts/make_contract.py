#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the gateware knows of the NIC contract, include/nanet/contract.hpp: rtl/contract_pkg.sv and, for the benches, tb/common/contract.py.

Usage: make_contract.py [--check]. With --check nothing is written; exit 1 if a file is not what would be written.

The header is read as text, so no compiler is needed: STRUCTS with the places of their fields, CompletionKind, and the values of `status`. What the header says
in its static_asserts is held against what was read; what is not understood is an error. tests/python/test_gateware_contract.py asks a compiler.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

GATEWARE = Path(__file__).resolve().parent.parent
HEADER = GATEWARE.parent / "include" / "nanet" / "contract.hpp"
STRUCTS = ("PacketRef", "Completion", "TxDescriptor", "MessageDescriptor")  # that the NIC writes or reads
LICENCE = "SPDX-License-Identifier: Apache-2.0"
MADE = "Made from include/nanet/contract.hpp by gateware/scripts/make_contract.py; do not edit."
CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}  # of Python's struct
KEYWORDS = {"sequence"}  # of SystemVerilog, among the fields' names
TYPE_BYTES = {f"std::uint{bits}_t": bits // 8 for bits in (8, 16, 32, 64)}


class NotUnderstood(Exception):
    """One line: problem (why) suggestion."""


@dataclass(frozen=True)
class Field:
    name: str
    at: int  # from the start of the struct [B]
    bytes: int  # of one element
    count: int = 1


@dataclass
class Struct:
    name: str
    bytes: int = 0
    fields: list[Field] = field(default_factory=list)
    constants: dict[str, tuple[int, int]] = field(default_factory=dict)  # value and size [B]


@dataclass(frozen=True)
class Contract:
    """kinds, status: value and size of each name."""

    structs: list[Struct]
    kinds: dict[str, tuple[int, int]]
    status: dict[str, tuple[int, int]]


def read(text: str) -> Contract:
    code = re.sub(r"//[^\n]*", "", text)
    kind_bytes, kinds = 0, {}
    for name, base, body in re.findall(r"enum class (\w+) : (\S+) \{([^}]*)\};", code):
        TYPE_BYTES[name] = size_of(base)
        if name == "CompletionKind":
            kind_bytes = TYPE_BYTES[name]
            kinds = {
                one: (value_of(value), kind_bytes)
                for one, value in (entry.split("=") for entry in body.split(",") if entry.strip())
            }
            kinds = {one.strip(): value for one, value in kinds.items()}
    status_body = re.search(r"namespace status \{(.*?)\}", code, re.DOTALL)
    status = dict(constants_of(status_body[1], "inline constexpr")) if status_body else {}
    structs = [struct_of(name, code) for name in STRUCTS]
    if not kinds or not status:
        raise NotUnderstood("contract.hpp has no CompletionKind or no status (they were renamed) teach make_contract.py")
    hold_against_asserts(structs, code)
    return Contract(structs, kinds, status)


def size_of(cxx_type: str) -> int:
    if cxx_type not in TYPE_BYTES:
        raise NotUnderstood(f"contract.hpp has a field of type {cxx_type} (its size is not known here) teach make_contract.py")
    return TYPE_BYTES[cxx_type]


def value_of(text: str) -> int:
    """0x8000, 7, 1u << 3."""
    first, _, shift = text.strip().partition("<<")
    return int(first.strip().rstrip("u"), 0) << int(shift or "0")


def constants_of(body: str, prefix: str) -> Iterator[tuple[str, tuple[int, int]]]:
    for cxx_type, name, value in re.findall(rf"{prefix} (\S+) (\w+) = ([^;]+);", body):
        yield name, (value_of(value), size_of(cxx_type))


def struct_of(name: str, code: str) -> Struct:
    """Its fields at the places that C++ gives them: each at a multiple of its size."""
    found = re.search(rf"struct (?:alignas\((\d+)\) )?{name} \{{(.*?)\n\}};", code, re.DOTALL)
    if not found:
        raise NotUnderstood(f"contract.hpp has no struct {name} (it was renamed) teach make_contract.py")
    struct, align = Struct(name), int(found[1] or 1)
    struct.constants = dict(constants_of(found[2], "static constexpr"))
    at = 0
    for line in (line.strip() for line in found[2].splitlines()):
        if not line or line.startswith("static constexpr"):
            continue
        parts = re.fullmatch(r"(\S+) (\w+)(?:\[(\d+)\])?;", line)
        if not parts:
            raise NotUnderstood(f"contract.hpp: {name} has a line that is no plain field ({line}) teach make_contract.py")
        size, count = size_of(parts[1]), int(parts[3] or 1)
        if at % size:
            raise NotUnderstood(f"contract.hpp: {name} has a hole before {parts[2]} (packed structs have none) fill it")
        struct.fields.append(Field(parts[2], at, size, count))
        at, align = at + size * count, max(align, size)
    if at % align:
        raise NotUnderstood(f"contract.hpp: {name} has a hole at its end (packed structs have none) fill it")
    struct.bytes = at
    return struct


def hold_against_asserts(structs: list[Struct], code: str) -> None:
    by_name = {struct.name: struct for struct in structs}
    for name, size in re.findall(r"sizeof\((\w+)\) == (\d+)", code):
        if name in by_name and by_name[name].bytes != int(size):
            raise NotUnderstood(
                f"contract.hpp says that {name} has {size} bytes ({by_name[name].bytes} were read) teach make_contract.py"
            )
    for name, member, at in re.findall(r"offsetof\((\w+), (\w+)\) == (\d+)", code):
        if name in by_name and {one.name: one.at for one in by_name[name].fields}.get(member) != int(at):
            raise NotUnderstood(
                f"contract.hpp says that {name}::{member} is at {at} (it was read elsewhere) teach make_contract.py"
            )


def snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def package(contract: Contract) -> str:
    """Packed structs: the first byte of memory is the lowest, so the first field stands last."""
    lines = [f"// {LICENCE}", f"// {MADE}"]
    lines += ["// NAME_BYTES: of a struct; NAME_FIELD_AT: where a field begins in it [B].", "package contract_pkg;"]
    for prefix, constants in (("KIND", contract.kinds), ("STATUS", contract.status)):
        lines += [sv_constant(f"{prefix}_{name}", *constant) for name, constant in constants.items()]
    for struct in contract.structs:
        prefix = snake(struct.name)
        lines += ["", f"  localparam int {prefix.upper()}_BYTES = {struct.bytes};"]
        lines += [f"  localparam int {prefix.upper()}_{one.name.upper()}_AT = {one.at};" for one in struct.fields]
        lines += [sv_constant(f"{prefix}_{name}", *constant) for name, constant in struct.constants.items()]
        lines.append("  typedef struct packed {")
        for one in reversed(struct.fields):
            elements = f"[{one.count - 1}:0]" if one.count > 1 else ""
            lines.append(f"    logic {elements}[{8 * one.bytes - 1}:0] {one.name}{'_' if one.name in KEYWORDS else ''};")
        lines.append(f"  }} {prefix}_t;")
    return "\n".join([*lines, "endpackage", ""])


def sv_constant(name: str, value: int, size: int) -> str:
    return f"  localparam logic [{8 * size - 1}:0] {name.upper()} = {8 * size}'h{value:X};"


PYTHON = '''"""The NIC contract for the benches: entries in memory, with the fields of include/nanet/contract.hpp, and the values of some."""

import struct
from dataclasses import astuple, dataclass
from enum import IntEnum, IntFlag
from typing import ClassVar, Self


class Entry:
    """LAYOUT: of all fields, in the order of memory."""

    LAYOUT: ClassVar[struct.Struct]

    @classmethod
    def read(cls, data: bytes) -> Self:
        return cls(*cls.LAYOUT.unpack(data))

    def packed(self) -> bytes:
        return self.LAYOUT.pack(*astuple(self))
'''


def module(contract: Contract) -> str:
    text = f"# {LICENCE}\n# {MADE}\n{PYTHON}"
    for name, base, constants in (("Kind", "IntEnum", contract.kinds), ("Status", "IntFlag", contract.status)):
        text += f"\n\nclass {name}({base}):\n"
        text += "".join(f"    {one.upper()} = 0x{value:X}\n" for one, (value, _) in constants.items())
    for struct in contract.structs:
        text += f"\n\n@dataclass\nclass {struct.name}(Entry):\n"
        codes = "".join(CODES[one.bytes] * one.count for one in struct.fields)
        text += f'    LAYOUT: ClassVar = struct.Struct("<{codes}")  # {struct.bytes} B\n'
        text += "".join(f"    {name.upper()}: ClassVar = 0x{value:X}\n" for name, (value, _) in struct.constants.items())
        text += "".join(f"    {name}: int = 0\n" for one in struct.fields for name in elements_of(one))
    return text


def elements_of(one: Field) -> list[str]:
    return [one.name] if one.count == 1 else [f"{one.name}{index}" for index in range(one.count)]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        contract = read(HEADER.read_text(encoding="utf-8"))
    except NotUnderstood as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    files = {GATEWARE / "rtl" / "contract_pkg.sv": package(contract), GATEWARE / "tb" / "common" / "contract.py": module(contract)}
    old = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in old:
        if arguments:
            print(
                f"error: {path.relative_to(GATEWARE.parent)} is old (contract.hpp has changed) run gateware/scripts/make_contract.py",
                file=sys.stderr,
            )
        else:
            path.write_text(files[path], encoding="utf-8")
    return 1 if arguments and old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
