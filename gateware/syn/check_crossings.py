#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses a signal that goes from one clock to another without a crossing. It walks the netlist that yosys makes: for every flip-flop and memory, which
clocks what it takes comes from.

    check_crossings.py [BLOCK...]   these of BLOCKS, or all; a block as in place.py
    check_crossings.py --refused    every design of syn/refused/ must be refused, with the reason that its first line names

Two clocks may meet in these modules alone:
  sync_bits    takes bits of one other clock, each straight from a flip-flop: what lies between could give a glitch
  reset_sync   takes its reset from anywhere, straight from a flip-flop or a pin
  async_fifo   reads its memory with the clock that did not write it
Exit status: 0 nothing wrong, 1 something is, 2 usage.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import synthesise

WIRE = {"rx_clk": ("xgmii_rx*", "gmii_rx*"), "tx_clk": ("xgmii_tx*", "gmii_tx*")}
# Of each block the clocks, with the ports that belong to them; all others are the first one's. A clock of several bits has as many equal parts of a port.
BLOCKS: dict[str, dict[str, tuple[str, ...]]] = {
    "mac_cdc-LINE_GBPS10-OWN_CLOCKS1": {"clk": (), **WIRE},
    "mac_cdc-LINE_GBPS1-OWN_CLOCKS1": {"clk": (), **WIRE},
    "nic-LINE_GBPS10-OWN_CLOCKS1": {"clk": (), **WIRE},
    "nic-LINE_GBPS1-OWN_CLOCKS1": {"clk": (), **WIRE},
    "nanet_node-PORTS2-OWN_CLOCKS1": {"clk": (), **WIRE},
    "apelink_lanes": {"clk": (), "rx_clk": ("rx_bits", "rx_slip")},
    "km3_shore": {
        "clk": (),
        "rx_clk": ("rx_*", "up_*", "head", "counts"),
        "help_clk": ("tx_slide", "tx_moved", "phase", "phase_valid", "error_phase", "error_tx_*"),
        "div_clk": (),
    },
    "km3_node-PORTS2": {
        "clk": (),
        "ref_clk": ("tx_codes", "tx_on"),
        "rx_clk": ("rx_*",),
        "help_clk": ("tx_slide",),
        "div_clk": (),
    },
    "km3_fcm": {"clk": (), "help_clk": ("tx_slide", "tx_moved", "error_tx_*"), "div_clk": ()},
    "nic_eth": {
        "clk": (),
        "wire_rx_clk": ("wire_rx*",),
        "wire_tx_clk": ("wire_tx*",),
        "host_rx_clk": ("host_rx*",),
        "host_tx_clk": ("host_tx*",),
    },
}
REFUSED = synthesise.HERE / "syn" / "refused"
REFUSED_CLOCKS: dict[str, tuple[str, ...]] = {"a_clk": ("a_*",), "b_clk": ("b_*",)}
BITWISE = {
    "$and",
    "$or",
    "$xor",
    "$xnor",
    "$not",
    "$mux",
    "$pos",
    "$bwmux",
}  # bit k of the output is of bit k of each input, and of S

Bit = int | str  # a net, or a constant: "0", "1", "x"


@dataclass(frozen=True)
class Sink:
    """What takes bits with a clock. straight: no logic may lie before it where the bits are another clock's; resets: asynchronous ones."""

    name: str
    source: str
    clock: Bit
    inputs: tuple[Bit, ...]
    resets: tuple[Bit, ...] = ()


@dataclass
class Netlist:
    """sinks: flip-flops and what writes memories; logic: inputs and outputs of each piece of logic; clocked: what comes out of a flip-flop."""

    ports: dict[str, Any]
    sinks: list[Sink] = field(default_factory=list)
    logic: list[tuple[tuple[Bit, ...], tuple[Bit, ...]]] = field(default_factory=list)
    clocked: dict[Bit, Bit] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Refuses a signal that goes from one clock to another without a crossing")
    parser.add_argument("blocks", nargs="*", metavar="BLOCK")
    parser.add_argument("--refused", action="store_true", help="every design of syn/refused/ must be refused")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.blocks) - set(BLOCKS))
    if unknown:
        parser.error(f"no clocks are known of {', '.join(unknown)} (known: {', '.join(BLOCKS)}) add it to BLOCKS")
    try:
        return check_refused() if options.refused else check(options.blocks or list(BLOCKS))
    except synthesise.SynthesisFailed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1


def check(blocks: list[str]) -> int:
    found = 0
    for block in blocks:
        netlist = read(synthesise.read(block), block)
        problems = problems_of(netlist, BLOCKS[block])
        print(f"crossings {block}: {len(netlist.sinks)} registers, {len(problems)} signals that cross without a crossing")
        for problem in problems:
            print(f"error: {problem}", file=sys.stderr)
        found += len(problems)
    return 1 if found else 0


def check_refused() -> int:
    passed = 0
    for path in sorted(REFUSED.glob("*.sv")):
        reason = re.search(r"// Refused: (.+)", path.read_text(encoding="utf-8"))
        files = " ".join(source.relative_to(synthesise.HERE).as_posix() for source in [*synthesise.sources.sources_of(path), path])
        command = f"read_slang -j 1 --ignore-assertions --top {path.stem} {files}"
        problems = problems_of(read(command, path.stem), REFUSED_CLOCKS)
        if reason is None or not any(reason[1] in problem for problem in problems):
            print(f"error: {path.name} is not refused as it says (found: {problems}) mend the check", file=sys.stderr)
            passed += 1
    print(f"crossings: {len(list(REFUSED.glob('*.sv')))} broken designs, {passed} not refused")
    return 1 if passed else 0


def read(command: str, name: str) -> Netlist:
    target = f"{synthesise.BUILD}/crossings/{name}.json"
    synthesise.folder("crossings")
    synthesise.yosys(name, f"{command}; hierarchy -check; proc; flatten; memory_collect; opt_clean; write_json {target}")
    (module,) = json.loads((synthesise.HERE / target).read_text(encoding="utf-8"))["modules"].values()
    netlist = Netlist(module["ports"])
    for cell_name, cell in module["cells"].items():
        add(netlist, cell_name.removeprefix("$driver$"), cell)
    return netlist


def add(netlist: Netlist, name: str, cell: dict[str, Any]) -> None:
    kind, pins = cell["type"], {pin: tuple(bits) for pin, bits in cell["connections"].items()}
    source = cell["attributes"].get("src", "")
    into = {pin: bits for pin, bits in pins.items() if cell["port_directions"][pin] == "input"}
    out = tuple(bit for pin, bits in pins.items() if pin not in into for bit in bits)
    if kind == "$scopeinfo":
        return
    if "latch" in kind or kind in ("$sr", "$ff") or not kind.startswith("$"):
        netlist.problems.append(f"{name} ({source}) is a {kind}: not a flip-flop with one clock")
    elif kind == "$mem_v2":
        add_memory(netlist, name, source, cell, pins)
    elif "CLK" in pins:
        (clock,) = pins["CLK"]
        resets = tuple(bit for pin in ("ARST", "ALOAD", "SET", "CLR") for bit in pins.get(pin, ()))
        taken = tuple(bit for pin, bits in into.items() if pin not in ("CLK", "ARST", "ALOAD", "SET", "CLR") for bit in bits)
        netlist.sinks.append(Sink(name, source, clock, taken, resets))
        netlist.clocked.update(dict.fromkeys(out, clock))
    elif kind in BITWISE and all(len(bits) in (len(out), 1) for bits in into.values()):
        for place, bit in enumerate(out):
            netlist.logic.append((tuple(bits[place] if len(bits) == len(out) else bits[0] for bits in into.values()), (bit,)))
    else:
        netlist.logic.append((tuple(bit for bits in into.values() for bit in bits), out))


def add_memory(netlist: Netlist, name: str, source: str, cell: dict[str, Any], pins: dict[str, tuple[Bit, ...]]) -> None:
    """What is read is of the clock that reads: in async_fifo; elsewhere it is of the one that writes too."""
    writes = len(pins["WR_CLK"])
    for port, clock in enumerate(pins["WR_CLK"]):
        taken = tuple(bit for pin in ("WR_ADDR", "WR_DATA", "WR_EN") for bit in part(pins[pin], port, writes))
        netlist.sinks.append(Sink(name, source, clock, taken))
    reads = len(pins["RD_CLK"])
    for port in range(reads):
        address, data = part(pins["RD_ADDR"], port, reads), part(pins["RD_DATA"], port, reads)
        if cell["parameters"]["RD_CLK_ENABLE"][-1 - port] == "1":
            netlist.problems.append(f"{name} ({source}) reads with a clock: merge no register into a memory before this")
        written = () if in_module(source, "async_fifo") else tuple(f"clock {clock}" for clock in pins["WR_CLK"])
        netlist.logic.append(((*address, *written), data))


def part(bits: tuple[Bit, ...], port: int, ports: int) -> tuple[Bit, ...]:
    width = len(bits) // ports
    return bits[port * width : (port + 1) * width]


def in_module(source: str, module: str) -> bool:
    return f"/{module}.sv:" in source


def problems_of(netlist: Netlist, clocks: dict[str, tuple[str, ...]]) -> list[str]:
    """One line for each: what, where, of which clocks."""
    name_of = {bit: f"{clock}[{k}]" if k else clock for clock in clocks for k, bit in enumerate(netlist.ports[clock]["bits"])}
    domains = domains_of(netlist, clocks, name_of)
    straight = set(netlist.clocked) | {
        bit for port in netlist.ports.values() if port["direction"] == "input" for bit in port["bits"]
    }
    problems = list(netlist.problems)
    for sink in netlist.sinks:
        if sink.clock not in name_of:
            problems.append(f"{sink.name} ({sink.source}) has a clock that is no input: logic makes it")
            continue
        problems += list(of_sink(sink, name_of[sink.clock], domains, straight))
    for port_name, port in netlist.ports.items():
        if port["direction"] == "output":
            for bit, clock in owned(netlist, port_name, clocks):
                if seen := domains[bit] - {clock}:
                    problems.append(f"output {port_name} is of {clock} and comes from {', '.join(sorted(seen))}")
    return sorted(set(problems))


def of_sink(sink: Sink, clock: str, domains: dict[Bit, frozenset[str]], straight: set[Bit]) -> Iterator[str]:
    foreign = [bit for bit in sink.inputs if domains[bit] - {clock}]
    where = f"{sink.name} ({sink.source})"
    if in_module(sink.source, "sync_bits"):
        if any(bit not in straight for bit in foreign):
            yield f"{where}: logic before a synchroniser"
        if any(len(domains[bit]) > 1 for bit in foreign):
            yield f"{where}: bits of more than one clock into a synchroniser"
    elif foreign:
        others = sorted({domain for bit in foreign for domain in domains[bit]} - {clock})
        yield f"{where} is of {clock} and takes a signal of {', '.join(others)}"
    if in_module(sink.source, "reset_sync"):
        if any(bit not in straight for bit in sink.resets):
            yield f"{where}: logic before a reset"
    elif any(domains[bit] - {clock} for bit in sink.resets):
        yield f"{where} is of {clock} and its reset is not"


def domains_of(netlist: Netlist, clocks: dict[str, tuple[str, ...]], name_of: dict[Bit, str]) -> dict[Bit, frozenset[str]]:
    """Of each bit the clocks of the flip-flops and inputs that it is made of."""
    domains: dict[Bit, frozenset[str]] = defaultdict(frozenset)
    for bit, clock in netlist.clocked.items():
        domains[bit] = frozenset({name_of.get(clock, "logic")})
    for name, port in netlist.ports.items():
        if port["direction"] == "input":
            domains.update({bit: frozenset({clock}) for bit, clock in owned(netlist, name, clocks)})
    for clock_bit, name in name_of.items():
        domains[f"clock {clock_bit}"] = frozenset({name})
    readers: dict[Bit, list[int]] = defaultdict(list)
    for k, (inputs, _) in enumerate(netlist.logic):
        for bit in inputs:
            readers[bit].append(k)
    waiting = list(range(len(netlist.logic)))
    while waiting:
        inputs, outputs = netlist.logic[waiting.pop()]
        seen = frozenset().union(*(domains[bit] for bit in inputs))
        for bit in outputs:
            if not seen <= domains[bit]:
                domains[bit] |= seen
                waiting += readers[bit]
    return domains


def owned(netlist: Netlist, port: str, clocks: dict[str, tuple[str, ...]]) -> Iterator[tuple[Bit, str]]:
    """Each bit of a port with the clock that it belongs to: that of the longest pattern that fits the port's name."""
    fitting = [(len(pattern), clock) for clock, patterns in clocks.items() for pattern in patterns if Path(port).match(pattern)]
    clock = max(fitting)[1] if fitting else next(iter(clocks))
    bits, parts = netlist.ports[port]["bits"], len(netlist.ports[clock]["bits"])
    for place, bit in enumerate(bits):
        k = place * parts // len(bits)
        yield bit, f"{clock}[{k}]" if k else clock


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
