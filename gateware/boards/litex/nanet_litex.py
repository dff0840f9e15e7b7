# SPDX-License-Identifier: Apache-2.0
"""The NIC as a module of LiteX, for the boards whose clocks, pins and tools LiteX knows. Not run on hardware.

`Nanet` is any module of rtl/ with its sources; `UltraScalePlusNic` is nic_pcie with the PCIe block of an UltraScale+, at generation 3 with 4 lanes.
"""

import re
import sys
from pathlib import Path
from typing import Any

from litex.gen import LiteXModule
from litex.soc.interconnect.stream import Record
from migen import ClockDomain, ClockSignal, Constant, Instance, ResetSignal, Signal

GATEWARE = Path(__file__).resolve().parents[2]
sys.path.append(str(GATEWARE))
import run_tests  # noqa: E402, F401  these lie beside the RTL, not in a package
import sources  # noqa: E402

PORT = re.compile(r"^\s*(input|output)\s+(?:logic\s*)?(?:\[\s*(\d+)\s*:\s*0\s*\])?\s*(\w+)\s*,?\s*$", re.MULTILINE)
CELLS = Path(__file__).with_name("ultrascale_cells.sv")
LANES, USER_CLOCK_MHZ = 4, 250
BLOCK = "pcie4_uscale_plus"
# Properties of the vendor's IP, as docs/design/gateware-pcie.md wants the block.
BLOCK_SETTINGS = {
    "PL_LINK_CAP_MAX_LINK_WIDTH": f"X{LANES}",
    "PL_LINK_CAP_MAX_LINK_SPEED": "8.0_GT/s",
    "axisten_if_width": "128_bit",
    "axisten_freq": USER_CLOCK_MHZ,
    "axisten_if_enable_client_tag": True,
    "AXISTEN_IF_RC_STRADDLE": False,
    "pf0_bar0_scale": "Kilobytes",
    "pf0_bar0_size": 64,
    "PF0_INTERRUPT_PIN": "NONE",
}
# The block's inputs that nothing here drives are zero, but for these.
BLOCK_TIED = {"cfg_config_space_enable": 1, "cfg_link_training_enable": 1, "cfg_power_state_change_ack": 1}


def ports_of(module: str, file: Path | None = None) -> list[tuple[str, int, str]]:
    """Direction, bits and name of each port of a module whose widths are numbers; of rtl/, or in this file."""
    text = (file or sources.paths()[module]).read_text(encoding="utf-8")
    begin = re.search(rf"^module {module}\b", text, re.MULTILINE)
    if not begin:
        raise ValueError(f"no module {module} (its file has another name for it) name the module as its file")
    head = re.sub(r"//[^\n]*", "", text[begin.start() : text.index("\n);\n", begin.start())])
    found = [(direction, int(high or 0) + 1, name) for direction, high, name in PORT.findall(head)]
    if len(found) != len(re.findall(r"^\s*(?:input|output)\b", head, re.MULTILINE)):
        raise ValueError(f"{module} has a port that cannot be read (its width is no number) give it one")
    return found


class Nanet(LiteXModule):  # type: ignore[misc]
    """A module of rtl/ in a clock domain: each port a signal of its name, but `clk` and `rst`, which are the domain's."""

    def __init__(self, platform: Any, module: str, clock_domain: str = "sys", **parameters: int) -> None:
        self.ports = {name: Signal(bits, name=name) for _, bits, name in ports_of(module) if name not in ("clk", "rst")}
        for name, signal in self.ports.items():
            setattr(self, name, signal)
        connected = {f"{direction[0]}_{name}": self.ports[name] for direction, _, name in ports_of(module) if name in self.ports}
        domain = {"i_clk": ClockSignal(clock_domain), "i_rst": ResetSignal(clock_domain)}
        settings = {f"p_{name}": Instance.PreformattedParam(str(value)) for name, value in parameters.items()}
        self.specials += Instance(module, **settings, **domain, **connected)
        for path in sources.sources_of(sources.paths()[module]):
            platform.add_source(str(path), language="systemverilog")


class UltraScalePlusNic(LiteXModule):  # type: ignore[misc]
    """The NIC at 10 Gb/s in the clock of the PCIe block. `wire` is XGMII with its two clocks, for what makes 10GBASE-R of it.

    pads: a board's PCIe connector as LiteX's platforms name its pins: clk_p, clk_n, rst_n, rx_p, rx_n, tx_p, tx_n.
    """

    def __init__(self, platform: Any, pads: Any) -> None:
        self.cd_sys = ClockDomain()
        self.nic = nic = Nanet(platform, "nic_pcie", LINE_GBPS=10, OWN_CLOCKS=1, CYCLE_PS=1_000_000 // USER_CLOCK_MHZ)
        wire = ("rx_clk", "tx_clk", "xgmii_rxd", "xgmii_rxc", "xgmii_txd", "xgmii_txc")
        self.wire = Record([(name, len(nic.ports[name])) for name in wire])
        for name in wire:
            here, there = getattr(self.wire, name), nic.ports[name]
            self.comb += here.eq(there) if name.startswith("xgmii_tx") else there.eq(here)
        reference, reference_gt = Signal(), Signal()
        buffered = {"i_I": pads.clk_p, "i_IB": pads.clk_n, "o_O": reference_gt, "o_ODIV2": reference}
        self.specials += Instance("IBUFDS_GTE4", p_REFCLK_HROW_CK_SEL=Instance.PreformattedParam("0"), i_CEB=0, **buffered)
        platform.add_period_constraint(pads.clk_p, 10.0)
        self.specials += Instance("pcie_usp", **self.block_ports(pads, reference, reference_gt))
        platform.toolchain.pre_synthesis_commands += block_commands()

    def block_ports(self, pads: Any, reference: Signal, reference_gt: Signal) -> dict[str, Any]:
        """What the NIC has of the block's, by the same names, and what a link needs."""
        of_nic = {
            ("i_" if direction == "output" else "o_") + name: self.nic.ports[name]
            for direction, _, name in ports_of("nic_pcie")
            if re.match(r"[sm]_axis_|pcie_|cfg_", name)
        }
        for name in ("s_axis_rq_tready", "s_axis_cc_tready"):  # the block says it four times
            four = Signal(4)
            self.comb += self.nic.ports[name].eq(four[0])
            of_nic[f"o_{name}"] = four
        clocks = {"i_sys_clk": reference, "i_sys_clk_gt": reference_gt, "i_sys_reset": pads.rst_n}
        clocks |= {"o_user_clk": self.cd_sys.clk, "o_user_reset": self.cd_sys.rst}
        lanes = {"i_pci_exp_rxp": pads.rx_p, "i_pci_exp_rxn": pads.rx_n, "o_pci_exp_txp": pads.tx_p, "o_pci_exp_txn": pads.tx_n}
        connected = of_nic | clocks | lanes
        inputs = [(bits, name) for direction, bits, name in ports_of("pcie_usp", CELLS) if direction == "input"]
        tied = {f"i_{name}": Constant(BLOCK_TIED.get(name, 0), bits) for bits, name in inputs}
        return tied | connected


def block_commands() -> list[str]:
    """Tcl that makes the block as `pcie_usp`. Braces are doubled: LiteX formats these lines."""
    properties = " ".join(f"CONFIG.{name} {{{{{value}}}}}" for name, value in BLOCK_SETTINGS.items())
    return [
        f"create_ip -vendor xilinx.com -name {BLOCK} -module_name pcie_usp",
        f"set_property -dict [list {properties}] [get_ips pcie_usp]",
        "synth_ip [get_ips pcie_usp]",
    ]
