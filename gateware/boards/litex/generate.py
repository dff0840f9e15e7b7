#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Verilog of the NIC as LiteX has it, and lints it with the RTL: that it fits together. Not run on hardware.

Usage: generate.py [--platform MODULE] [--pcie NAME]

--platform: a module with a LiteX platform, as litex_boards.platforms.xilinx_alveo_u250 (package litex-boards); without it a part without pins.
--pcie: the name that the platform has for its PCIe connector with 4 lanes. Writes build/gateware/boards/litex/nanet_usp.v and, for a board
with two GMII PHYs and no PCIe, nanet_eth.v. Exit status: 0; 1 it does not fit together; 2 usage.
"""

import argparse
import importlib
import subprocess
import sys
from typing import Any

from litex.build.generic_platform import Pins, Subsignal
from litex.build.xilinx import XilinxUSPPlatform
from litex.gen import LiteXModule
from litex.gen.fhdl import verilog
from migen import ClockDomain
from nanet_litex import CELLS, GATEWARE, LANES, Nanet, UltraScalePlusNic, run_tests

FOLDER = GATEWARE.parent / "build" / "gateware" / "boards" / "litex"
CONNECTOR = ("clk_p", 1), ("clk_n", 1), ("rst_n", 1), *((f"{way}_{side}", LANES) for way in ("rx", "tx") for side in "pn")
# What LiteX writes and Verilator's -Wall would have otherwise.
STYLE = ("UNUSEDSIGNAL", "UNUSEDPARAM", "UNDRIVEN", "PINCONNECTEMPTY", "DECLFILENAME", "INITIALDLY", "TIMESCALEMOD")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="The NIC as a LiteX design, as Verilog that lints")
    parser.add_argument("--platform", metavar="MODULE", help="of a LiteX platform (without: a part without pins)")
    parser.add_argument("--pcie", default=f"pcie_x{LANES}", metavar="NAME", help=f"its PCIe connector (default pcie_x{LANES})")
    options = parser.parse_args(arguments)
    run_tests.use_tools_of_this_python()
    FOLDER.mkdir(parents=True, exist_ok=True)
    platform = importlib.import_module(options.platform).Platform() if options.platform else unnamed(options.pcie)
    design = UltraScalePlusNic(platform, platform.request(options.pcie))
    pins = set(platform.constraint_manager.get_io_signals())
    good = written("nanet_usp", platform, design, pins | set(design.wire.flatten()))
    platform = unnamed(options.pcie)
    board = OnEthernet(platform)
    return (
        0
        if written("nanet_eth", platform, board, set(board.nic.ports.values()) | {board.cd_sys.clk, board.cd_sys.rst}) and good
        else 1
    )


class OnEthernet(LiteXModule):  # type: ignore[misc]
    """nic_eth in a clock of its own."""

    def __init__(self, platform: Any) -> None:
        self.cd_sys = ClockDomain()
        self.nic = Nanet(platform, "nic_eth")


def unnamed(pcie: str) -> XilinxUSPPlatform:
    """A part without a board."""
    return XilinxUSPPlatform(
        "xcku5p-ffvb676-2-e", [(pcie, 0, *(Subsignal(name, Pins(bits)) for name, bits in CONNECTOR))], toolchain="vivado"
    )


def written(name: str, platform: Any, design: LiteXModule, ports: set[Any]) -> bool:
    """Whether it lints, too."""
    path = FOLDER / f"{name}.v"
    verilog.convert(design, ios=ports, name=name, platform=platform).write(str(path))
    files = [source[0] for source in platform.sources]
    command = ["verilator_bin", "--lint-only", "-Wall", *(f"-Wno-{kind}" for kind in STYLE), "--top-module", name]
    result = subprocess.run([*command, CELLS, *files, path], check=False, capture_output=True, text=True)
    print(
        f"{path.relative_to(GATEWARE.parent)}: {len(files)} files of RTL, {'lints' if result.returncode == 0 else 'does not lint'}"
    )
    if result.returncode:
        print(result.stdout + result.stderr, end="", file=sys.stderr)
    return result.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
