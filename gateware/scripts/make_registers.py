#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes everything that knows the NIC's registers from registers/nic.rdl, by PeakRDL.

make_registers.py           rtl/nic_regs_pkg.sv, rtl/nic_regs.sv and model/nic_registers.h, which are kept under version control
make_registers.py --check   says whether these are current, and changes nothing
make_registers.py --docs FOLDER   the register reference as HTML, and a Python package that knows the registers
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
SOURCE = HERE / "registers" / "nic.rdl"
PLACES = {"nic_regs_pkg.sv": "rtl", "nic_regs.sv": "rtl", "nic_registers.h": "model"}
LINT = "/* verilator lint_off GENUNNAMED */\n/* verilator lint_off UNUSEDSIGNAL */\n/* verilator lint_off MULTIDRIVEN */\n"
HEADER = "// SPDX-License-Identifier: Apache-2.0\n// Made from registers/nic.rdl by scripts/make_registers.py; do not edit.\n"
PEAKRDL = Path(sys.executable).with_name("peakrdl")


def peakrdl(*arguments: str | Path) -> None:
    subprocess.run([PEAKRDL, *map(str, arguments)], check=True)


def make(folder: Path) -> dict[str, str]:
    """The files by name."""
    peakrdl("regblock", SOURCE, "-o", folder, "--cpuif", "axi4-lite-flat", "--default-reset", "rst", "--err-if-bad-addr")
    peakrdl("c-header", SOURCE, "-o", folder / "nic_registers.h")
    files = {}
    for name in PLACES:
        text = (folder / name).read_text(encoding="utf-8")
        files[name] = HEADER + (LINT if name.endswith(".sv") else "") + text
    return files


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--docs"] and len(arguments) == 2:
        folder = Path(arguments[1])
        folder.mkdir(parents=True, exist_ok=True)
        peakrdl("html", SOURCE, "-o", folder / "html")
        peakrdl("python", SOURCE, "-o", folder / "python")
        return 0
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        files = make(Path(folder))
    old = []
    for name, text in files.items():
        place = HERE / PLACES[name] / name
        if not arguments:
            place.parent.mkdir(exist_ok=True)
            place.write_text(text, encoding="utf-8")
        elif not place.exists() or place.read_text(encoding="utf-8") != text:
            old.append(place.relative_to(HERE))
    for place in old:
        print(f"error: {place} is old (registers/nic.rdl has changed) run scripts/make_registers.py", file=sys.stderr)
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
