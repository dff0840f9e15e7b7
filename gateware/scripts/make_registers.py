#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes everything that knows the registers from registers/nic.rdl, node.rdl, ape.rdl and km3.rdl, by PeakRDL, and the counters from registers/counts.toml.

make_registers.py           rtl/*_regs_pkg.sv, rtl/*_regs.sv, model/nic_registers.h and docs/gateware-registers.md; of the counters
                            registers/counts.rdl, rtl/nic_counts_pkg.sv and the driver's nic_counts.hpp; all kept under version control
make_registers.py --check   says whether these are current, and changes nothing
make_registers.py --docs FOLDER   the register reference as HTML, and a Python package that knows the registers
"""

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from systemrdl import RDLCompiler
from systemrdl.node import AddressableNode, FieldNode, RegNode

HERE = Path(__file__).resolve().parent.parent
NIC, NODE, APE, KM3 = SOURCES = [HERE / "registers" / f"{name}.rdl" for name in ("nic", "node", "ape", "km3")]
COUNTS = HERE / "registers" / "counts.toml"
PLACES = {
    "counts.rdl": "registers",
    "nic_counts_pkg.sv": "rtl",
    "nic_counts.hpp": "../src/link/gateware",
    "nic_regs_pkg.sv": "rtl",
    "nic_regs.sv": "rtl",
    "node_regs_pkg.sv": "rtl",
    "node_regs.sv": "rtl",
    "ape_regs_pkg.sv": "rtl/apenet",
    "ape_regs.sv": "rtl/apenet",
    "km3_regs_pkg.sv": "rtl/km3",
    "km3_regs.sv": "rtl/km3",
    "nic_registers.h": "model",
    "gateware-registers.md": "../docs",
}
LINT = "/* verilator lint_off GENUNNAMED */\n/* verilator lint_off UNUSEDSIGNAL */\n/* verilator lint_off MULTIDRIVEN */\n"
HEADER = "// SPDX-License-Identifier: Apache-2.0\n// Made from registers/{source} by scripts/make_registers.py; do not edit.\n"
REFERENCE = """# Registers of the NIC

Made from `gateware/registers/nic.rdl`, `node.rdl`, `ape.rdl` and `km3.rdl` by `gateware/scripts/make_registers.py`; do not edit. `make registers` writes the same as HTML.
[design/gateware-nic.md](design/gateware-nic.md) says in which order a driver sets them.

"""
COUNTS_HEADER = "// SPDX-License-Identifier: Apache-2.0\n// Made from gateware/registers/counts.toml by scripts/make_registers.py; do not edit.\n"
PEAKRDL = Path(sys.executable).with_name("peakrdl")


def peakrdl(*arguments: str | Path) -> None:
    subprocess.run([PEAKRDL, *map(str, arguments)], check=True)


def make_counts() -> dict[str, str]:
    """What knows the counters, by name."""
    rows = tomllib.loads(COUNTS.read_text(encoding="utf-8"))
    return {"counts.rdl": counts_rdl(rows), "nic_counts_pkg.sv": counts_package(rows), "nic_counts.hpp": counts_header(rows)}


def counts_rdl(rows: dict[str, Any]) -> str:
    """How many counters nic.rdl has in each row, and what it says of them."""
    lines = []
    for row, entry in rows.items():
        lines.append(f"`define {row.upper()}_COUNTS {len(entry['names'])}")
        lines.append(f'`define {row.upper()}_TEXT "From 0: {", ".join(entry["names"])}. {entry["text"]}"')
        for part, text in entry.get("part_texts", {}).items():
            names = entry["parts"][part]
            lines.append(f"`define {part.upper()} {len(names)}")
            lines.append(f'`define {part.upper()}_TEXT "From 0: {", ".join(names)}. {text}"')
    return COUNTS_HEADER + "\n".join(lines) + "\n"


def counts_package(rows: dict[str, Any]) -> str:
    """Packed structs: the first counter is bit 0, so it is the last field."""
    text = COUNTS_HEADER + "package nic_counts_pkg;\n"
    for row, entry in rows.items():
        for struct, names in {f"{row}_counts": entry["names"], **entry.get("parts", {})}.items():
            if missing := [name for name in names if name not in entry["names"]]:
                raise SystemExit(f"error: counts.toml: {struct} has {', '.join(missing)} (no counter of {row}) name one of its own")
            text += f"  localparam int {struct.upper()} = {len(names)};\n  typedef struct packed {{\n"
            text += "".join(f"    logic {name};\n" for name in reversed(names)) + f"  }} {struct}_t;\n"
    return text + "endpackage\n"


def counts_header(rows: dict[str, Any]) -> str:
    """Numbers by name, and which of them a link adds up."""
    text = COUNTS_HEADER + "// clang-format off\n#pragma once\n\n#include <string_view>\n\nnamespace nanet::link::gateware {\n"
    for row, entry in rows.items():
        text += f"\nnamespace {row} {{\nenum : unsigned {{ {', '.join(entry['names'])}, count }};\n"
        text += "inline constexpr std::string_view kNames[] = {" + ", ".join(f'"{name}"' for name in entry["names"]) + "};\n"
        for name, members in entry["sums"].items():
            text += f"inline constexpr unsigned k{name.title().replace('_', '')}[] = {{{', '.join(members)}}};\n"
        text += f"}}  // namespace {row}\n"
    return text + "\n}  // namespace nanet::link::gateware\n"


def make(folder: Path) -> dict[str, str]:
    """What PeakRDL makes, by name."""
    for source in SOURCES:
        peakrdl("regblock", source, "-o", folder, "--cpuif", "axi4-lite-flat", "--default-reset", "rst", "--err-if-bad-addr")
    peakrdl("c-header", NIC, "-o", folder / "nic_registers.h")
    files = {"gateware-registers.md": REFERENCE + reference(NIC)}
    files["gateware-registers.md"] += "\n# Registers of a node\n\n" + reference(NODE)
    files["gateware-registers.md"] += "\n# Registers of a node in a torus\n\n" + reference(APE)
    files["gateware-registers.md"] += "\n# Registers of a KM3NeT node\n\n" + reference(KM3)
    for name in (*(f"{source.stem}_regs{kind}.sv" for source in SOURCES for kind in ("_pkg", "")), "nic_registers.h"):
        text = (folder / name).read_text(encoding="utf-8")
        source = next(source for source in SOURCES if name.startswith(f"{source.stem}_"))
        files[name] = HEADER.format(source=source.name) + (LINT if name.endswith(".sv") else "") + text
    return files


def reference(source: Path) -> str:
    """The register reference in Markdown: an overview, then the fields of each register."""
    compiler = RDLCompiler()
    compiler.compile_file(str(source))
    top = compiler.elaborate().top
    registers = list(walk(top, 0, ""))
    lines = [
        top.get_property("desc"),
        "Every register has 64 bits, and is read and written in one access. What is not named reads as zero.",
        "",
    ]
    lines += ["| address | register | |", "|---|---|---|"]
    lines += [f"| {place} | [`{name}`](#{anchor(name)}) | {title} |" for place, name, title, _ in registers]
    for place, name, title, node in registers:
        lines += ["", f"## `{name}`", "", f"{place}: {title}. {node.get_property('desc') or ''}".rstrip(), ""]
        if node.parent is not top and node.parent.get_property("desc"):
            lines += [node.parent.get_property("desc"), ""]
        lines += ["| bits | field | access | after reset | |", "|---|---|---|---|---|"]
        lines += [field_row(field) for field in node.fields()]
    return "\n".join(lines) + "\n"


def walk(node: AddressableNode, base: int, prefix: str) -> Iterator[tuple[str, str, str, RegNode]]:
    """Place, name, title and node of each register; the first alone of those that are many."""
    for child in node.children(unroll=False):
        if not isinstance(child, AddressableNode):
            continue
        many = f"[{child.array_dimensions[0]}]" if child.is_array else ""
        address = base + child.raw_address_offset
        stride = f" + {child.array_stride:#x} each" if child.is_array else ""
        if isinstance(child, RegNode):
            title = child.get_property("name")
            yield f"{address:#05x}{stride}", f"{prefix}{child.inst_name}{many}", title, child
        else:
            for place, name, title, register in walk(child, address, f"{child.inst_name}{many}."):
                yield f"{place}{stride}", name, f"{child.get_property('name')}: {title}", register


def anchor(name: str) -> str:
    """As the heading's link: no punctuation, lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter in "_-")


def field_row(field: FieldNode) -> str:
    bits = f"{field.high}:{field.low}" if field.width > 1 else str(field.low)
    access = ("read" if field.is_sw_readable else "") + (", write" if field.is_sw_writable else "")
    if field.get_property("singlepulse"):
        access = "write 1"
    reset = field.get_property("reset")
    value = "" if reset is None or field.get_property("singlepulse") else f"{reset:#x}" if reset else "0"
    return f"| {bits} | `{field.inst_name}` | {access} | {value} | {field.get_property('desc')} |"


def keep(files: dict[str, str], *, check: bool) -> list[Path]:
    """Writes those that are not as they should be; with check it only says which."""
    places = {(HERE / PLACES[name] / name).resolve(): text for name, text in files.items()}
    old = [place for place, text in places.items() if not place.exists() or place.read_text(encoding="utf-8") != text]
    if check:
        return [place.relative_to(HERE.parent) for place in old]
    for place in old:
        place.write_text(places[place], encoding="utf-8")
    return []


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--docs"] and len(arguments) == 2:
        folder = Path(arguments[1])
        folder.mkdir(parents=True, exist_ok=True)
        for source in SOURCES:
            peakrdl("html", source, "-o", folder / source.stem / "html")
            peakrdl("python", source, "-o", folder / source.stem / "python")
        return 0
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    old = keep(make_counts(), check=bool(arguments))  # before the others: nic.rdl includes one
    with tempfile.TemporaryDirectory() as folder:
        old += keep(make(Path(folder)), check=bool(arguments))
    for place in old:
        print(f"error: {place} is old (a file in registers/ has changed) run scripts/make_registers.py", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
