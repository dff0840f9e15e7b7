#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/performance.md from docs/performance.csv, the one file that every published figure comes from.

`nanet bench ... --csv docs/performance.csv` appends to it; of a figure taken several times the newest counts.
`--check` says whether the page is current and changes nothing.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CSV = ROOT / "docs" / "performance.csv"
PAGE = ROOT / "docs" / "performance.md"

INTRO = """# Performance

Made from [performance.csv](performance.csv) by `scripts/make_performance.py`; do not edit. The commands are named with each table; all figures are from
loopback sockets between two processes, engine on one core, emulated boards and trigger processor on another. Where the CSV has a figure several times, the newest
stands here; how far they lie apart on a shared machine is in the CSV.

Machine: {machine}. Taken {first} to {last} (UTC).
"""


class Figures:
    """The newest value of each (bench, case, name)."""

    def __init__(self, rows: Iterable[dict[str, str]]) -> None:
        self.rows = list(rows)
        self.newest = {(row["bench"], row["case"], row["name"]): float(row["value"]) for row in self.rows}

    def cases(self, bench: str, name: str) -> list[str]:
        """Cases of a benchmark that have a figure of this name, in order of appearance."""
        return [case for (b, case, n) in self.newest if b == bench and n == name]

    def get(self, bench: str, case: str, name: str) -> float | None:
        return self.newest.get((bench, case, name))


def number(value: float | None, scale: float = 1.0, digits: int = 1) -> str:
    return "-" if value is None else f"{value * scale:.{digits}f}"


def table(head: list[str], lines: Iterable[list[str]]) -> str:
    body = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(body + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def rate_section(figures: Figures) -> str:
    lines = []
    for case in figures.cases("rate", "critical_rate"):
        critical = figures.get("rate", case, "critical_rate") or 0.0
        at = f"{case}@{critical:.0f}"
        latency = [number(figures.get("rate", at, f"latency_{name}"), digits=0) for name in ("p50", "p99_9")]
        lines.append([case, number(critical, 1e-6, 2), *latency])
    return (
        "\n## Critical rate\n\nThe highest rate at which every repeat answers every event and the sender keeps the rate: receive, decode,"
        " fit and answer on one core. `nanet bench rate`, `--boards 4`, `--boards 4 --layout packed --events-per-packet 64`.\n\n"
        + table(["case", "Mevent/s", "p50 there [us]", "p99.9 there [us]"], lines)
    )


def latency_section(figures: Figures) -> str:
    names = ("p50", "p99", "p99_9", "p99_99", "max")
    text = (
        "\n## Latency\n\nFrom the last packet of an event given to the kernel to its answer received; next to it sockperf's round trip of the same"
        " size on the same two cores in the same run, before and after. sockperf has one message in"
        " flight at a time, so a pause of the machine hits one of its messages; boards send what is due, so a pause hits all of it. The row"
        " with one packet in flight has the same rate but waits as sockperf does. `nanet bench latency`.\n\n"
    )
    for case in figures.cases("latency", "p50_above_sockperf"):
        lines = []
        for label, key in (
            ("nanet", "latency"),
            ("nanet, without stalls of the measuring thread", "latency_clean"),
            ("nanet, one packet in flight", "one_in_flight"),
            ("sockperf", "sockperf"),
        ):
            lines.append([label, *(number(figures.get("latency", case, f"{key}_{name}"), digits=2) for name in names)])
        above = number(figures.get("latency", case, "p50_above_sockperf"), digits=2)
        ratio = number(figures.get("latency", case, "p99_9_ratio_to_sockperf"), digits=2)
        single = number(figures.get("latency", case, "one_in_flight_p99_9_ratio_to_sockperf"), digits=2)
        text += f"{case}: p50 is {above} us above sockperf's; p99.9 is {ratio} times sockperf's, and {single} times when measured as sockperf does.\n\n"
        text += table([f"[us] {case}", "p50", "p99", "p99.9", "p99.99", "max"], lines) + "\n"
    return text


def ring_section(figures: Figures) -> str:
    lines = []
    for case in figures.cases("rings", "math_rate"):
        math, scalar, numpy, circle = (
            figures.get("rings", case, f"{m}_rate") for m in ("math", "math_scalar", "numpy", "circle_fit")
        )
        ratios = [f"{math / peer:.0f}" if math and peer else "-" for peer in (numpy, circle)]
        quality = [number(figures.get("rings", case, name), digits=2) for name in ("radius_rms", "radius_bias")]
        lines.append([case, number(math, 1e-6), number(scalar, 1e-6), *ratios, *quality])
    return "\n## Ring fit\n\nMATH on one core; peers in the same run. `nanet bench rings`.\n\n" + table(
        ["hits", "vectorised [Mevent/s]", "scalar [Mevent/s]", "times numpy", "times circle-fit", "radius rms [mm]", "bias [mm]"],
        lines,
    )


def finder_section(figures: Figures) -> str:
    cases = figures.cases("finders", "ns_per_event")
    if not cases:
        return ""
    finders = list(dict.fromkeys(case.partition(", ")[0] for case in cases))
    samples = list(dict.fromkeys(case.partition(", ")[2] for case in cases))
    lines = [[f, *(number(figures.get("finders", f"{f}, {s}", "ns_per_event"), digits=0) for s in samples)] for f in finders]
    text = (
        "\n## Ring finders\n\nNanoseconds per event on one core, vectorised, plus 1.2 noise hits; the vectorised path found the same bits as the scalar one."
        " Quality as well as speed: [physics.md](physics.md). `nanet bench rings --finder all`.\n\n"
    )
    return text + table(["finder", *samples], lines)


def main() -> int:
    with CSV.open(newline="", encoding="utf-8") as file:
        figures = Figures(csv.DictReader(file))
    dates = sorted(row["date"] for row in figures.rows)
    machines = ", ".join(sorted({row["machine"] for row in figures.rows}))
    page = INTRO.format(machine=machines, first=dates[0], last=dates[-1])
    page += rate_section(figures) + latency_section(figures) + ring_section(figures) + finder_section(figures)
    if "--check" in sys.argv[1:]:
        current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page
        if not current:
            print(
                "error: docs/performance.md is not current (the CSV has changed) run scripts/make_performance.py", file=sys.stderr
            )
        return 0 if current else 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
