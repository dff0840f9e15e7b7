# SPDX-License-Identifier: Apache-2.0
"""Latency and throughput of the NIC in gateware/, in simulated cycles: runs the program bench_gateware.

Times of the RTL (the host ready at once) and times with a modelled host stand in different keys and are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nanet.bench.gateware_keys import Case, Condition, GatewareResult, Measured, PaperLine, Throughput
from nanet.bench.program import said_by
from nanet.result import files

PROGRAM = Path("build/release/bench/gateware/bench_gateware")
LONGEST_S = 6 * 3600.0
Latency = Literal["first_byte_to_last_write", "last_byte_to_last_write", "first_byte_to_completion", "last_byte_to_completion"]
FIGURES: tuple[Latency, Latency, Latency, Latency] = (
    "first_byte_to_last_write", "last_byte_to_last_write", "first_byte_to_completion", "last_byte_to_completion",
)  # fmt: skip


class GatewareBenchError(RuntimeError):
    """The benchmark cannot be done: "problem (why) suggestion"."""


@dataclass(frozen=True)
class Options:
    """cycles: of each frame size and buffer; packets: of each long run; host: options of the modelled host, as the program takes them."""

    cycles: int = 400_000
    packets: int = 20_000
    host: tuple[str, ...] = ()
    line_gbps: int = 10

    def arguments(self) -> list[str]:
        """Of the program."""
        line = ["--line-gbps", str(self.line_gbps)]
        return ["--cycles", str(self.cycles), "--packets", str(self.packets), *line, *self.host, "--json"]


def run(program: Path | None, options: Options) -> GatewareResult:
    """The result as `nanet bench gateware --json` writes it. Raises GatewareBenchError."""
    measured: Measured = said_by(program or PROGRAM, options.arguments(), Measured.__annotations__, GatewareBenchError, LONGEST_S)
    return {
        **files.base("bench gateware"),
        "cycles_per_case": options.cycles,
        "packets_per_long_run": options.packets,
        **measured,
        "papers": papers_of(measured),
    }


def problems_of(result: Measured | GatewareResult) -> list[str]:
    """What is not as it must be, each in a line; empty: the NIC kept every bound, and every packet was what was sent."""
    problems = []
    if result["wrong_packets"]:
        problems.append(
            f"{result['wrong_packets']} of {result['compared_packets']} packets are not what was sent (bench_gateware says which) "
            "the NIC, or its model, is broken"
        )
    for condition in result["conditions"]:
        if not condition["is_kept"]:
            problems.append(f"{condition['name']}: a bound is passed ({figures_of(condition)}) see docs/design/gateware-nic.md")
    return problems


def figures_of(condition: Condition) -> str:
    """What was measured under a condition, each figure with its bound."""
    bounds = condition["bounds"]
    texts = [f"{condition['wrong_packets']} packets wrong"]
    if condition["starts"]:
        texts.append(f"{condition['wrong_starts']} of {condition['starts']} starts wrong")
    texts.append(f"{condition['lost_packets']} lost of {bounds['lost_packets']}")
    if condition["max_cycles"]:
        texts.append(f"at most {condition['max_cycles']} cycles of {bounds['max_cycles']}")
        texts.append(f"spread {condition['spread_cycles']} of {bounds['spread_cycles']}")
    if condition["tx_packets"]:
        least = bounds["tx_line_rate_fraction"]
        texts.append(
            f"{condition['tx_line_rate_fraction']:.4f} of line rate sent" + (f" of {least:g}" if least is not None else "")
        )
    return ", ".join(texts)


def papers_of(measured: Measured) -> list[PaperLine]:
    """Figures of the papers beside ours: [least, most] each; None where there is nothing to compare."""
    payload = 1472

    def us(cases: Iterable[Case], figure: Latency) -> list[float] | None:
        bounds = bounds_of([case for case in cases if case["payload_bytes"] == payload], figure)
        return None if bounds is None else [bound * measured["ns_per_cycle"] / 1000 for bound in bounds]

    def rate(rows: Iterable[Throughput]) -> list[float] | None:
        found = [row["payload_bytes_per_s"] / 1e6 for row in rows if row["frame_bytes"] == payload + 46]
        return [min(found), max(found)] if found else None

    host = measured["modelled_host"]
    router = min(load["bytes_per_s"] for load in measured["router"]["loads"] if load["pattern"] == "permutation") / 1e9
    path = f"{payload} B through the card"
    return [
        _beside(f"{path}; ours: last byte to write", [7.3, 8.6], "us",
                us(measured["cases"], FIGURES[1]), us(host["cases"], FIGURES[1])),
        _beside(f"{path}; ours: first byte to completion", [7.3, 8.6], "us",
                us(measured["cases"], FIGURES[2]), us(host["cases"], FIGURES[2])),
        _beside(f"payloads of {payload} B, at 1 Gb/s; ours at {measured['line_gbps']} Gb/s", [119.7, 119.7], "MB/s",
                rate(measured["throughput"]), rate(host["throughput"])),
        _beside("router", [2.8, 2.8], "GB/s", [router, router], None),
    ]  # fmt: skip


def bounds_of(cases: Iterable[Case], figure: Latency) -> tuple[int, int] | None:
    """Least and most cycles of a figure in these cases; None if no packet has it."""
    seen = [cycles for case in cases for cycles, _ in case[figure]]
    return (min(seen), max(seen)) if seen else None


def csv_rows(result: GatewareResult) -> list[tuple[str, str, float, str]]:
    """Rows (case, name, value, unit) of `--csv`."""
    host = result["modelled_host"]
    rows = _size_rows("RTL", result["cases"], result["throughput"]) + _size_rows("modelled host", host["cases"], host["throughput"])
    timing = host["timing"]
    rows += [
        ("modelled host", "write_cycles", float(timing["write_cycles"]), ""),
        ("modelled host", "read_cycles_min", float(timing["read_cycles_min"]), ""),
        ("modelled host", "read_cycles_max", float(timing["read_cycles_max"]), ""),
        ("modelled host", "busy_per_1024", float(timing["busy_per_1024"]), ""),
        ("modelled host", "seed", float(timing["seed"]), ""),
    ]
    for case, cases in (("long runs", result["long_runs"]), ("mixed", result["mixed"])):
        rows.append((case, "packets", float(sum(one["packets"] for one in cases)), ""))
        rows.append((case, "sizes", float(len({one["frame_bytes"] for one in cases})), ""))
        if cases:
            rows.append((case, "last_byte_to_last_write_spread", float(max(one["max"] - one["min"] for one in cases)), "cycles"))
    for load in result["router"]["loads"]:
        rows.append((f"router, {load['name']}", "bytes_per_s", load["bytes_per_s"], "B/s"))
        rows.append((f"router, {load['name']}", "full_rate_fraction", float(load["full_rate_fraction"]), ""))
        rows.append((f"router, {load['name']}", "jain_index", float(load["jain_index"]), ""))
        rows.append((f"router, {load['name']}", "packets_apart", float(max(load["packets"]) - min(load["packets"])), ""))
    for run in result["node"]["runs"]:
        label = f"node, {run['events_per_packet']} events a packet, {run['hits_per_part']} hits a part, flush {run['flush_cycles']}"
        rows.append((label, "merged_gbit_per_s", float(run["merged_gbit_per_s"]), "Gb/s"))
        rows.append((label, "out_gbit_per_s", float(run["out_gbit_per_s"]), "Gb/s"))
        if cycles := run["last_part_to_last_write_cycles"]:
            rows += [(label, f"last_part_to_last_write_{name}", float(cycles[name]), "cycles") for name in ("min", "max")]
    rows.append(("node", "cycles_per_wall_second", float(result["node"]["cycles_per_wall_second"]), "cycles/s"))
    for condition in result["conditions"]:
        case = f"condition, {condition['name']}"
        rows += [
            (case, "compared_packets", float(condition["compared_packets"]), ""),
            (case, "wrong_packets", float(condition["wrong_packets"]), ""),
            (case, "lost_packets", float(condition["lost_packets"]), ""),
            (case, "starts", float(condition["starts"]), ""),
            (case, "wrong_starts", float(condition["wrong_starts"]), ""),
            (case, "tx_packets", float(condition["tx_packets"]), ""),
        ]
        if condition["max_cycles"]:
            rows += [
                (case, "min_cycles", float(condition["min_cycles"]), "cycles"),
                (case, "max_cycles", float(condition["max_cycles"]), "cycles"),
                (case, "spread_cycles", float(condition["spread_cycles"]), "cycles"),
            ]
        if condition["tx_packets"]:
            rows.append((case, "tx_line_rate_fraction", condition["tx_line_rate_fraction"], ""))
        rows += [
            (case, f"bound_{name}", float(bound), "")
            for name, bound in condition["bounds"].items()
            if isinstance(bound, int | float)
        ]
    bounds = result["last_byte_to_last_write_cycles"]
    of_all = (("min", bounds["min"]), ("max", bounds["max"]), ("spread", bounds["spread"]))
    rows += [("all", f"last_byte_to_last_write_{name}", float(value), "cycles") for name, value in of_all]
    rows += [
        ("all", "lost_packets", float(result["lost_packets"]), ""),
        ("all", "compared_packets", float(result["compared_packets"]), ""),
        ("all", "wrong_packets", float(result["wrong_packets"]), ""),
        ("all", "line_gbps", float(result["line_gbps"]), "Gb/s"),
    ]
    return [*rows, ("all", "cycles_per_wall_second", float(result["cycles_per_wall_second"]), "cycles/s")]


def _size_rows(label: str, cases: Iterable[Case], throughput: Iterable[Throughput]) -> list[tuple[str, str, float, str]]:
    rows: list[tuple[str, str, float, str]] = []
    for row in size_rows(cases, throughput):
        case = f"{label}, {row.frame_bytes} B"
        rows.append((case, "packets", float(row.packets), ""))
        for figure, bounds in row.bounds.items():
            if bounds is not None:
                rows += [
                    (case, f"{figure}_{end}", float(value), "cycles") for end, value in zip(("min", "max"), bounds, strict=True)
                ]
        rows.append((case, "packets_per_s", row.packets_per_s, "1/s"))
        rows.append((case, "payload_bytes_per_s", row.payload_bytes_per_s, "B/s"))
        rows.append((case, "lost", float(row.lost), ""))
        rows.append((case, "line_rate_fraction", row.line_rate_fraction, ""))
    return rows


@dataclass(frozen=True)
class SizeRow:
    """All buffers and lanes of one frame size. packets: that were timed; bounds: [cycles] by figure; rates: the lowest."""

    frame_bytes: int
    packets: int
    bounds: Mapping[str, tuple[int, int] | None]
    packets_per_s: float
    payload_bytes_per_s: float
    lost: int
    line_rate_fraction: float


def size_rows(cases: Iterable[Case], throughput: Iterable[Throughput]) -> list[SizeRow]:
    """A row for each frame size."""
    all_cases, all_rates = list(cases), list(throughput)
    rows = []
    for size in sorted({int(rate["frame_bytes"]) for rate in all_rates}):
        mine = [case for case in all_cases if case["frame_bytes"] == size]
        rates = [rate for rate in all_rates if rate["frame_bytes"] == size]
        rows.append(
            SizeRow(
                frame_bytes=size,
                packets=sum(case["packets"] for case in mine),
                bounds={figure: bounds_of(mine, figure) for figure in FIGURES},
                packets_per_s=float(min(rate["packets_per_s"] for rate in rates)),
                payload_bytes_per_s=float(min(rate["payload_bytes_per_s"] for rate in rates)),
                lost=sum(rate["lost"] for rate in rates),
                line_rate_fraction=float(min(rate["line_rate_fraction"] for rate in rates)),
            )
        )
    return rows


def _beside(figure: str, theirs: list[float], unit: str, rtl: list[float] | None, modelled_host: list[float] | None) -> PaperLine:
    return {"figure": figure, "unit": unit, "papers": theirs, "rtl": rtl, "modelled_host": modelled_host}
