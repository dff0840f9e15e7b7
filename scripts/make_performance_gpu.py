#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/performance-gpu.md from docs/gpu-h200-*.csv, which the bench_gpu programs wrote on a machine with a GPU.

    make_performance_gpu.py [--check] [FOLDER]    FOLDER: docs

Files: gpu-h200-round_trip.csv, -driver_path.csv, -loop.csv, -finders.csv; a part whose file is not there is said to be not measured.
`--check` says whether the page is current and changes nothing. Needs the nanet package: .venv/bin/python.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nanet.bench import gpu

ROOT = Path(__file__).resolve().parent.parent
PAGE = "performance-gpu.md"
RECORD_BYTES = 64 + 16  # of an event that is read and of its circle that is written

INTRO = """# Performance on a GPU

Made from the CSV files beside it (`gpu-h200-*.csv`, as the programs wrote them) by `scripts/make_performance_gpu.py`; do not edit. How it is done, and why it is fast, is in
[design/gpu-runtimes.md](design/gpu-runtimes.md). A report with plots: `nanet bench gpu --from docs/gpu-h200-round_trip.csv --from docs/gpu-h200-driver_path.csv --from docs/gpu-h200-loop.csv`.

Machine: {gpu}, CUDA {cuda} of the driver, {cpu}.
"""
PERCENTILES = (("p50_us", "p50"), ("p99_us", "p99"), ("p999_us", "p99.9"), ("p9999_us", "p99.99"), ("max_us", "max"))


def main(arguments: Sequence[str]) -> int:
    named = [argument for argument in arguments if argument != "--check"]
    folder = Path(named[0]) if named else ROOT / "docs"
    page = make_page(folder)
    if page is None:
        print(f"error: no figures in {folder} (there is no gpu-h200-*.csv) run the bench_gpu programs with --csv", file=sys.stderr)
        return 1
    if "--check" in arguments:
        current = (folder / PAGE).exists() and (folder / PAGE).read_text(encoding="utf-8") == page
        if not current:
            print(f"error: {PAGE} is not current (a CSV has changed) run scripts/make_performance_gpu.py", file=sys.stderr)
        return 0 if current else 1
    (folder / PAGE).write_text(page, encoding="utf-8")
    return 0


def make_page(folder: Path) -> str | None:
    """The whole page; None where there is no file."""
    measured = {part: gpu.read(path) for part in gpu.PARTS if (path := folder / f"gpu-h200-{part}.csv").exists()}
    finders = folder / "gpu-h200-finders.csv"
    if not measured and not finders.exists():
        return None
    facts = {name: value for one in measured.values() for name, value in one.facts.items()}
    rows = {part: measured[part].rows if part in measured else () for part in gpu.PARTS}
    ratios = gpu.ratios_of(rows["round_trip"])
    page = INTRO.format(**{name: facts.get(name, "not known") for name in ("gpu", "cuda", "cpu")})
    page += goal_section(gpu.goals_of(rows, ratios))
    page += round_trip_section(rows["round_trip"], ratios)
    page += driver_section(rows["driver_path"])
    page += loop_section(rows["loop"])
    return page + finder_section(finders)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    body = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(body + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def us(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def goal_section(goals: Sequence[Mapping[str, Any]]) -> str:
    if not goals:
        return ""
    lines = [
        [goal["goal"], f"{goal['value']:.4g} {goal['unit']}".strip(), f"{goal['limit']:g}", "met" if goal["met"] else "**not met**"]
        for goal in goals
    ]
    return "\n## Goals\n\n" + table(["", "measured", "at most", ""], lines)


def round_trip_section(rows: Sequence[Mapping[str, Any]], ratios: Sequence[Mapping[str, Any]]) -> str:
    text = "\n## Round trips host-GPU-host\n\n"
    if not rows:
        return text + "Not measured.\n"
    sizes = sorted({row["events"] for row in rows if row["events"]})
    by_place = {(row["way"], row["events"]): row for row in rows}
    ways = list(dict.fromkeys(row["way"] for row in rows if row["way"] != "flag"))
    text += (
        "Events of 20 hits in padded packets of 16, in the host's memory. A round trip begins when the host writes the completion (or calls CUDA) and ends when it has seen all answers."
        " `persistent`, `launch_*` and `graph_*` are the event processor: packets in, rings, verdicts, MTP packets and descriptors out. `*_sync` are the classical ways, written plainly:"
        " MATH fits with 16 bytes of result an event, launch, synchronise. `bench_gpu_round_trip`.\n\n"
    )
    flag = next((row for row in rows if row["way"] == "flag"), None)
    if flag:
        values = ", ".join(f"{name} {us(flag[key])}" for key, name in PERCENTILES)
        text += f"The floor, one word there and one back: {values} us.\n\n"
    for key, name in (("p50_us", "p50"), ("p999_us", "p99.9"), ("p9999_us", "p99.99"), ("max_us", "max")):
        lines = [[way, *(us(by_place[way, n][key]) if (way, n) in by_place else "-" for n in sizes)] for way in ways]
        text += table([f"{name} [us]", *(f"{n} events" for n in sizes)], lines) + "\n"
    lines = [
        [str(r["events"]), f"{r['p50']:.2f}", r["p50_best_way"], f"{r['p999']:.2f}", r["p999_best_way"],
         "-" if r["same_work_p50"] is None else f"{r['same_work_p50']:.2f}", f"{r['events'] / r['p50_us']:.0f}"]
        for r in ratios
    ]  # fmt: skip
    text += (
        "Persistent over the best of all ways that launch. Those that end in `_sync` do less: no verdict, no packet of answers, nothing of the contract; `same work`: over the best of the event processor's"
        " own launches.\n\n"
    )
    return text + table(
        ["events", "p50", "best was", "p99.9", "best was", "p50, same work", "Mevent/s one buffer after the other"], lines
    )


def driver_section(rows: Sequence[Mapping[str, Any]]) -> str:
    text = "\n## The papers' comparison: driver path and persistent kernel\n\n"
    if not rows:
        return text + "Not measured.\n"
    text += (
        '"GPU I/O persistent kernel for latency bound systems" compares, for a K20x with a NaNet NIC and dummy work of about 200 us, a driver path (completion to a kernel driver, to the user,'
        " launch, send) with a persistent kernel of one thread. Its figure has no numbers in the text; it says that the axis starts at 200 us, the baseline of computation, that a persistent kernel"
        " saves the switches between user and kernel and the launch, and that the whole has to stay within 1 ms. Here the same work without a NIC: the time of a buffer from the host's first act"
        " for it until the host has seen that it is done; the driver path launches and synchronises for each buffer. `bench_gpu_driver_path`.\n\n"
    )
    lines = [
        [
            f"dummy, {row['work_us']:g} us" if row["work"] == "dummy" else f"rings of {row['events']} events",
            str(row["path"]), str(row["in_flight"]), us(row["mean_us"]), us(row["std_us"]), *(us(row[key]) for key, _ in PERCENTILES),
            f"{row['buffers_per_s']:.0f}",
        ]
        for row in rows
    ]  # fmt: skip
    return text + table(
        ["work", "path", "in flight", "mean [us]", "jitter [us]", *(f"{name} [us]" for _, name in PERCENTILES), "buffers/s"], lines
    )


def loop_section(rows: Sequence[Mapping[str, Any]]) -> str:
    text = "\n## Whole loop: UDP in, GPU, UDP out\n\n"
    if not rows:
        return text + "Not measured.\n"
    sent = sum(row["sent"] for row in rows)
    lost, wrong = sum(row["lost"] for row in rows), sum(row["wrong"] for row in rows)
    text += (
        "From a packet given to the kernel by an emulated board to the answer to each of its events received and checked, over loopback sockets of one machine; the time in which a buffer fills is in it."
        " `packets` is how many a buffer had the time to take, in brackets how many it held on average; 8 packets are 128 events. `clean` is p99.9 without answers under way while the measuring"
        f" thread itself stalled. Of {sent:,} events {lost:,} were lost and {wrong:,} answered wrongly. `bench_gpu_loop`.\n\n"
    )
    lines = [
        [str(row["runtime"]), "overlapped" if row["in_flight"] > 1 else "serialised", f"{row['rate_events_per_s'] / 1e6:g}",
         f"{row['packets']} ({row['packets_mean']:.1f})", *(us(row[key]) for key, _ in PERCENTILES), us(row["clean_p999_us"]),
         f"{row['lost']}"]
        for row in rows
    ]  # fmt: skip
    return text + table(
        ["runtime", "", "Mevent/s", "packets", *(f"{name} [us]" for _, name in PERCENTILES), "clean", "lost"], lines
    )


def finder_section(path: Path) -> str:
    text = "\n## Ring finders, events in device memory\n\n"
    if not path.exists():
        return text + "Not measured.\n"
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#")) if row["events_per_s"]]
    finders = [row for row in rows if row["finder"] != "record_fit"]
    cases = list(dict.fromkeys(row["case"] for row in finders))
    rate = {(row["finder"], row["case"]): float(row["events_per_s"]) for row in rows}
    lines = [
        [name, *(f"{rate[name, case] * 1e-6:,.1f}" if (name, case) in rate else "-" for case in cases)]
        for name in dict.fromkeys(row["finder"] for row in finders)
    ]
    text += "Million events a second; the rings are those of the CPU, bit for bit. `bench_gpu_finders`.\n\n"
    text += table(["finder", *cases], lines)
    records = [row for row in rows if row["finder"] == "record_fit"]
    if records:
        lines = [
            [row["case"], f"{float(row['events_per_s']) * 1e-9:.1f}", f"{float(row['events_per_s']) * RECORD_BYTES * 1e-9:,.0f}"]
            for row in records
        ]
        text += f"\nMATH on records of 64 B in device memory, 16 B of result each ({RECORD_BYTES} B moved an event):\n\n"
        text += table(["hits", "Gevent/s", "GB/s"], lines)
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
