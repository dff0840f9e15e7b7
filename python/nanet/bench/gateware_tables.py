# SPDX-License-Identifier: Apache-2.0
"""What `nanet bench gateware` measured as rows of text: for the terminal, the report and docs/gateware-performance.md alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nanet.bench.gateware import SizeRow, figures_of
from nanet.bench.gateware_keys import Case, Condition, HostTiming, Node, PaperLine, Router

NONE = "-"
LATENCY_HEAD = (
    "frame B", "payload B", "packets", "first byte to write", "last byte to write", "ns", "first to completion", "last to completion",
)  # fmt: skip
RATE_HEAD = ("frame B", "packets/s", "payload MB/s", "lost", "of line rate")
NODE_HEAD = (
    "events a packet",
    "hits a part",
    "flush [cycles]",
    "events",
    "whole",
    "in [Gb/s]",
    "merged [Gb/s]",
    "out [Gb/s]",
    "last part to last write, at most [cycles]",
)
ROUTER_HEAD = ("load", "GB/s", "of full rate", "Jain index", "packets of each input")
CONDITION_HEAD = ("condition: frames back to back, the host ready at once", "packets compared", "measured, and of what bound")
PAPER_HEAD = ("figure", "unit", "papers", "RTL", "modelled host")


def latency_rows(rows: Iterable[SizeRow], ns_per_cycle: float) -> list[list[str]]:
    """Cycles of each frame size, of all buffers and lanes; ns: of the last byte to the last write."""
    shown = []
    for row in rows:
        first, last, first_completion, last_completion = row.bounds.values()
        ns = None if last is None else [cycles * ns_per_cycle for cycles in last]
        shown.append([
            str(row.frame_bytes), str(row.frame_bytes - 46), str(row.packets), between(first, 0), between(last, 0), between(ns, 1),
            between(first_completion, 0), between(last_completion, 0),
        ])  # fmt: skip
    return shown


def rate_rows(rows: Iterable[SizeRow]) -> list[list[str]]:
    """Throughput of each frame size, the lowest of all buffers."""
    return [
        [str(row.frame_bytes), f"{row.packets_per_s:.0f}", f"{row.payload_bytes_per_s / 1e6:.1f}", str(row.lost),
         f"{row.line_rate_fraction:.6f}"]
        for row in rows
    ]  # fmt: skip


def condition_rows(conditions: Iterable[Condition]) -> list[list[str]]:
    """A row for each condition: in words, what was measured of what bound."""
    return [[one["name"], str(one["compared_packets"] + one["tx_packets"]), figures_of(one)] for one in conditions]


def router_rows(router: Router) -> list[list[str]]:
    """A row for each load of the router."""
    return [
        [str(load["name"]), f"{load['bytes_per_s'] / 1e9:.3f}", f"{load['full_rate_fraction']:.6f}", f"{load['jain_index']:.6f}",
         " ".join(str(count) for count in load["packets"])]
        for load in router["loads"]
    ]  # fmt: skip


def node_rows(node: Node) -> list[list[str]]:
    """A row for each load of the node."""
    rows = []
    for run in node["runs"]:
        cycles = run["last_part_to_last_write_cycles"]
        rates = [f"{run[name]:.2f}" for name in ("in_gbit_per_s", "merged_gbit_per_s", "out_gbit_per_s")]
        counts = [str(run[name]) for name in ("events_per_packet", "hits_per_part", "flush_cycles", "events", "whole_events")]
        rows.append([*counts, *rates, "-" if cycles is None else f"{cycles['min']} to {cycles['max']}, {run['bound_cycles']}"])
    return rows


def paper_rows(papers: Iterable[PaperLine]) -> list[list[str]]:
    """The papers' figures and ours; RTL and modelled host in columns of their own."""
    return [
        [
            str(line["figure"]),
            str(line["unit"]),
            *(between(bounds, 3 if line["unit"] == "us" else 1) for bounds in (line["papers"], line["rtl"], line["modelled_host"])),
        ]
        for line in papers
    ]


def between(bounds: Sequence[float] | None, digits: int) -> str:
    """`least` or `least to most`."""
    if bounds is None:
        return NONE
    low, high = (_short(bound, digits) for bound in bounds)
    return low if low == high else f"{low} to {high}"


def timing_text(timing: HostTiming) -> str:
    """The modelled host in words."""
    return (
        f"a write is in memory {timing['write_cycles']} cycles after its last word, a read is answered after {timing['read_cycles_min']} to "
        f"{timing['read_cycles_max']}, the bus is busy {timing['busy_per_1024']} cycles of 1024 at random, seed {timing['seed']}"
    )


def many_text(name: str, cases: Sequence[Case]) -> str:
    """A long or mixed run in one sentence."""
    if not cases:
        return f"{name}: not timed, because packets were lost"
    sizes = sorted({case["frame_bytes"] for case in cases})
    packets = sum(case["packets"] for case in cases)
    spread = max(case["max"] - case["min"] for case in cases)
    span = f"{sizes[0]} to {sizes[-1]} B ({len(sizes)} sizes)" if len(sizes) > 2 else " and ".join(f"{size} B" for size in sizes)
    return f"{name}: {packets} packets of {span}, spread of last byte to last write for one size and lane: {spread} cycles (back to back, nothing sent, buffers of 16)"


def as_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a terminal, all but the first column set right when the first is a number."""
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]
    numeric = all(row[0].isdigit() for row in rows)
    lines = []
    for row in [head, *rows]:
        cells = [
            cell.rjust(width) if n or numeric else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
