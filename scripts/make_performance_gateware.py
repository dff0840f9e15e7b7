#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/gateware-performance.md from docs/gateware-performance.csv, which `nanet bench gateware --csv` wrote.

    make_performance_gateware.py [--check] [FOLDER]    FOLDER: docs

Of a figure that the CSV has several times the newest counts. `--check` says whether the page is current and changes nothing.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CSV, PAGE = "gateware-performance.csv", "gateware-performance.md"
NS_PER_CYCLE = 6.4
PAYLOAD_BYTES = 1472  # of the papers' figures

INTRO = """# Performance of the NIC in gateware

Made from [gateware-performance.csv](gateware-performance.csv) by `scripts/make_performance_gateware.py`; do not edit. How the NIC works is in
[design/gateware-nic.md](design/gateware-nic.md). Taken {first} to {last} (UTC) with `nanet bench gateware --packets {packets:.0f} --csv docs/gateware-performance.csv`, which also writes a
report with histograms and the latency of every size.

Cycles are counted in the simulated RTL, of 6.4 ns each (156.25 MHz), and are the same on every machine. **Nothing here ran on a board.** Frames come back to back at 10 Gb/s, their sizes count the check sequence.
The first byte is the word with the start character on XGMII, the last byte the word with the end of the check sequence.
With the host ready at once a range is that of the two start lanes (0 and 4); the spread below is that of packets of one size and lane.
Every packet that was handed over, {compared:.0f} in all, was compared whole with what was sent: data of its own, length, order, sender, place, time of arrival; {wrong:.0f} differed.
"""


class Figures:
    """The newest value of each (case, name)."""

    def __init__(self, rows: Iterable[dict[str, str]]) -> None:
        self.rows = [row for row in rows if row["bench"] == "gateware"]
        self.newest = {(row["case"], row["name"]): float(row["value"]) for row in self.rows}

    def get(self, case: str, name: str) -> float | None:
        return self.newest.get((case, name))

    def sizes(self, label: str) -> list[int]:
        """Frame sizes that were measured."""
        cases = {case for case, _ in self.newest if case.startswith(f"{label}, ") and case.endswith(" B")}
        return sorted(int(case.removeprefix(f"{label}, ").removesuffix(" B")) for case in cases)

    def span(self, case: str, figure: str, scale: float = 1.0, digits: int = 0) -> str:
        """`min to max` of a figure."""
        ends = [self.get(case, f"{figure}_{end}") for end in ("min", "max")]
        texts = ["-" if end is None else f"{end * scale:.{digits}f}" for end in ends]
        return texts[0] if texts[0] == texts[1] else " to ".join(texts)

    def number(self, case: str, name: str, scale: float = 1.0, digits: int = 0) -> str:
        value = self.get(case, name)
        return "-" if value is None else f"{value * scale:.{digits}f}"


def main(arguments: Sequence[str]) -> int:
    named = [argument for argument in arguments if argument != "--check"]
    folder = Path(named[0]) if named else ROOT / "docs"
    page = make_page(folder / CSV)
    if page is None:
        print(f"error: no figures in {folder / CSV} (it is not there or empty) run nanet bench gateware --csv", file=sys.stderr)
        return 1
    if "--check" in arguments:
        current = (folder / PAGE).exists() and (folder / PAGE).read_text(encoding="utf-8") == page
        if not current:
            print(f"error: {PAGE} is not current (the CSV has changed) run scripts/make_performance_gateware.py", file=sys.stderr)
        return 0 if current else 1
    (folder / PAGE).write_text(page, encoding="utf-8")
    return 0


def make_page(file: Path) -> str | None:
    """The whole page; None where there is no figure."""
    if not file.exists():
        return None
    with file.open(newline="", encoding="utf-8") as lines:
        figures = Figures(csv.DictReader(lines))
    if not figures.rows:
        return None
    dates = sorted(row["date"] for row in figures.rows)
    page = INTRO.format(
        first=dates[0],
        last=dates[-1],
        packets=figures.get("mixed", "packets") or 0,
        compared=figures.get("all", "compared_packets") or 0,
        wrong=figures.get("all", "wrong_packets") or 0,
    )
    return (
        page
        + short_section(figures)
        + latency_section(figures)
        + rate_section(figures)
        + condition_section(figures)
        + host_section(figures)
        + last_sections(figures)
    )


def short_section(figures: Figures) -> str:
    lines = [
        [
            "last byte to last write, any size",
            f"at most {figures.number('all', 'last_byte_to_last_write_max')} cycles",
        ],
        [
            "its spread for one size and lane (nothing sent, buffers handed over full; others are under [conditions](#under-other-conditions))",
            f"{figures.number('all', 'last_byte_to_last_write_spread')} cycles",
        ],
        ["packets lost at line rate", figures.number("all", "lost_packets")],
        ["part of line rate, lowest of all sizes", f"{lowest_rate(figures):.6f}"],
    ]
    speed = figures.get("all", "cycles_per_wall_second")
    if speed is not None:
        machine = next(row["machine"] for row in reversed(figures.rows) if row["name"] == "cycles_per_wall_second")
        lines.append([f"speed of the simulation on {machine}", f"{speed:.0f} cycles/s"])
    text = "\n## In short\n\n" + table(["", "measured"], lines)
    for case, what in (
        ("long runs", "runs of one size each"),
        ("mixed", "one run with every size from 64 to 1518 B in random order"),
    ):
        packets, sizes = figures.number(case, "packets"), figures.number(case, "sizes")
        spread = figures.number(case, "last_byte_to_last_write_spread")
        text += f"\n* {packets} packets of {sizes} sizes ({what}): spread {spread} cycles."
    return text + "\n"


def lowest_rate(figures: Figures) -> float:
    return min(figures.get(f"RTL, {size} B", "line_rate_fraction") or 0.0 for size in figures.sizes("RTL"))


def latency_section(figures: Figures) -> str:
    head = "\n## Latency\n\nCycles, of buffers of 1, 4, 16 and 64 packets, the host ready at once; a completion is that of a packet which ends its buffer.\n\n"
    return head + latency_table(figures, "RTL")


def latency_table(figures: Figures, label: str) -> str:
    names = ("first_byte_to_last_write", "last_byte_to_last_write", "first_byte_to_completion", "last_byte_to_completion")
    lines = []
    for size in figures.sizes(label):
        case = f"{label}, {size} B"
        cycles = [figures.span(case, name) for name in names]
        lines.append([str(size), str(size - 46), *cycles, figures.span(case, names[1], NS_PER_CYCLE, 1)])
    columns = ["frame [B]", "payload [B]", "first byte to last write", "last byte to last write", "first byte to completion",
               "last byte to completion", "last byte to last write [ns]"]  # fmt: skip
    return table(columns, lines)


def rate_section(figures: Figures) -> str:
    return "\n## Throughput\n\nThe host ready at once; the lowest of all buffers.\n\n" + rate_table(figures, "RTL")


def rate_table(figures: Figures, label: str) -> str:
    lines = []
    for size in figures.sizes(label):
        case = f"{label}, {size} B"
        lines.append([
            str(size), figures.number(case, "packets_per_s", 1e-6, 3), figures.number(case, "payload_bytes_per_s", 1e-6, 1),
            figures.number(case, "lost"), figures.number(case, "line_rate_fraction", 1, 6),
        ])  # fmt: skip
    return table(["frame [B]", "Mpackets/s", "payload [MB/s]", "lost", "of line rate"], lines)


def condition_section(figures: Figures) -> str:
    """What was measured under each condition, and the bound in parentheses that it may not pass."""

    def shown(case: str, name: str, bound: str, digits: int = 0) -> str:
        value, limit = figures.get(case, name), figures.get(case, f"bound_{bound}")
        if value is None:
            return "-"
        return f"{value:.{digits}f}" + ("" if limit is None else f" ({limit:g})")

    lines = []
    for case in dict.fromkeys(case for case, _ in figures.newest if case.startswith("condition, ")):
        starts = figures.get(case, "starts") or 0
        lines.append([
            case.removeprefix("condition, "), figures.number(case, "compared_packets"),
            figures.number(case, "wrong_packets") + (f"; {figures.number(case, 'wrong_starts')} of {starts:.0f} starts" if starts else ""),
            shown(case, "lost_packets", "lost_packets"), shown(case, "max_cycles", "max_cycles"),
            shown(case, "spread_cycles", "spread_cycles"), shown(case, "tx_line_rate_fraction", "tx_line_rate_fraction", 4),
        ])  # fmt: skip
    head = (
        "\n## Under other conditions\n\nFrames back to back, the host ready at once, buffers of 16 packets where nothing else is said. Cycles are from last byte to last write. "
        "In parentheses: the bound, which `nanet bench gateware` ends with an error for when it is passed; no packet may be wrong.\n\n"
    )
    return head + table(["condition", "packets received", "wrong", "lost", "most cycles", "spread", "sent, of line rate"], lines)


def host_section(figures: Figures) -> str:
    names = ("write_cycles", "read_cycles_min", "read_cycles_max", "busy_per_1024", "seed")
    write, low, high, busy, seed = (figures.number("modelled host", name) for name in names)
    return (
        "\n## With a modelled host\n\n"
        "The same NIC before a host that is not ready at once. Its numbers are chosen, not measured, and no property of the NIC: a write is in memory "
        f"{write} cycles after its last word, a read is answered after {low} to {high}, the bus is busy {busy} cycles of 1024 at random (seed {seed}). Cycles end in the host's memory; "
        "buffers of 16 packets.\n\n" + latency_table(figures, "modelled host") + "\n" + rate_table(figures, "modelled host")
    )


def last_sections(figures: Figures) -> str:
    loads = list(dict.fromkeys(case for case, _ in figures.newest if case.startswith("router, ")))
    lines = []
    for case in loads:
        values = [figures.number(case, "bytes_per_s", 1e-9, 3), figures.number(case, "full_rate_fraction", 1, 4)]
        lines.append([case.removeprefix("router, "), *values, figures.number(case, "packets_apart")])
    text = (
        "\n## Router\n\n`gateware/rtl/router.sv`, 4 ports of 64 bit at 156.25 MHz, every input always with a packet to send. Turns are by packet: with unequal "
        "packets the shares of bytes are unequal. With random destinations packets wait for others of their input, as the inputs have one queue each.\n\n"
    )
    text += table(["load", "GB/s", "of full rate", "inputs differ by [packets]"], lines)
    return text + paper_section(figures)


def paper_section(figures: Figures) -> str:
    rtl, host = (f"{label}, {PAYLOAD_BYTES + 46} B" for label in ("RTL", "modelled host"))
    us = NS_PER_CYCLE / 1000

    def both(name: str) -> list[str]:
        return [figures.span(case, name, us, 3) for case in (rtl, host)]

    permutations = [
        value for (case, name), value in figures.newest.items() if case.startswith("router, permutation") and name == "bytes_per_s"
    ]
    router = f"{min(permutations) * 1e-9:.1f}" if permutations else "-"
    lines = [
        [f"{PAYLOAD_BYTES} B through the card [us]; ours: last byte to last write", "7.3 to 8.6", *both("last_byte_to_last_write")],
        [f"{PAYLOAD_BYTES} B through the card [us]; ours: first byte to completion", "7.3 to 8.6", *both("first_byte_to_completion")],
        [f"payloads of {PAYLOAD_BYTES} B [MB/s], at 1 Gb/s; ours at 10 Gb/s", "119.7",
         *(figures.number(case, "payload_bytes_per_s", 1e-6, 1) for case in (rtl, host))],
        ["router [GB/s]", "2.8", router, "-"],
    ]  # fmt: skip
    return (
        "\n## Beside the papers\n\nTheirs: the hardware path of NaNet-1, as cycle counters in that card saw it, and the router of the NaNet core. Theirs ran on an FPGA at 1 Gb/s, "
        "ours is simulated at 10 Gb/s. At 1 Gb/s a payload of 1472 B alone is 11.8 us on the wire, so theirs cannot begin with the first byte.\n\n"
        + table(["", "papers", "RTL", "modelled host"], lines)
    )


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    body = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join(body + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
