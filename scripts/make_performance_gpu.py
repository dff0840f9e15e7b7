#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/performance-gpu.md from docs/gpu-h200-*.csv, which the bench_gpu programs wrote on a machine with a GPU.

    make_performance_gpu.py [--check] [FOLDER]    FOLDER: docs

Files: gpu-h200-round_trip.csv, -driver_path.csv, -loop.csv, -finders.csv, -merge.csv, -trace.csv; a part whose file is not there is said to be not measured.
gpu-h100-round_trip.csv and -loop.csv, if they are there, are set beside them. `--check` says whether the page is current and changes nothing. Needs the nanet package: .venv/bin/python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from goals import gpu_goals
from nanet.bench import gpu

ROOT = Path(__file__).resolve().parent.parent
PAGE = "performance-gpu.md"

INTRO = """# Performance on a GPU

Made from the CSV files next to it (`gpu-h200-*.csv`, as the programs wrote them) by `scripts/make_performance_gpu.py`; do not edit. How it is done, and why it is fast, is in
[design/gpu-runtimes.md](design/gpu-runtimes.md). A report with plots: `nanet bench gpu {files}`.

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
    measured = read_parts(folder, "h200")
    if not measured:
        return None
    facts = {name: value for one in measured.values() for name, value in one.facts.items()}
    rows = rows_of(measured)
    ratios = gpu.ratios_of(rows["round_trip"])
    files = " ".join(f"--from docs/gpu-h200-{part}.csv" for part in measured)
    page = INTRO.format(files=files, **{name: facts.get(name, "not known") for name in ("gpu", "cuda", "cpu")})
    page += short_section(gpu_goals(rows, ratios))
    page += round_trip_section(rows["round_trip"], ratios)
    page += driver_section(rows["driver_path"])
    page += loop_section(rows["loop"])
    page += finder_section(rows["finders"])
    page += merge_section(rows["merge"], rows["round_trip"])
    page += trace_section(rows["trace"])
    return page + other_section(read_parts(folder, "h100"), rows)


def read_parts(folder: Path, model: str) -> dict[str, gpu.Measured]:
    return {part: gpu.read(path) for part in gpu.PARTS if (path := folder / f"gpu-{model}-{part}.csv").exists()}


def rows_of(measured: Mapping[str, gpu.Measured]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Of each part; none where it was not measured."""
    return {part: measured[part].rows if part in measured else () for part in gpu.PARTS}


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    body = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(body + ["| " + " | ".join(line) + " |" for line in lines]) + "\n"


def us(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def mega(rate: float) -> str:
    rate *= 1e-6
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.1f}" if rate >= 10 else f"{rate:#.3g}"


def short_section(figures: Sequence[Mapping[str, Any]]) -> str:
    if not figures:
        return ""
    lines = [[one["goal"], f"{one['value']:.4g} {one['unit']}".strip(), one["note"]] for one in figures]
    return "\n## In short\n\nOn an H200; ratios are of one run.\n\n" + table(["", "measured", ""], lines)


Section = Callable[..., str]


def section(title: str) -> Callable[[Section], Section]:
    """For a function that writes what stands below the title; without rows, its first argument, that is said instead."""

    def decorate(body: Section) -> Section:
        def whole(rows: Sequence[Mapping[str, Any]], *more: Any) -> str:
            return f"\n## {title}\n\n" + (body(rows, *more) if rows else "Not measured.\n")

        return whole

    return decorate


@section("Round trips host-GPU-host")
def round_trip_section(rows: Sequence[Mapping[str, Any]], ratios: Sequence[Mapping[str, Any]]) -> str:
    sizes = sorted({row["events"] for row in rows if row["events"]})
    by_place = {(row["way"], row["events"]): row for row in rows}
    ways = list(dict.fromkeys(row["way"] for row in rows if row["way"] != "flag"))
    text = (
        "Events of 20 hits in padded packets of 16, in the host's memory. A round trip begins when the host writes the completion (or calls CUDA) and ends when it has seen all answers."
        " `persistent`, `launch_*` and `graph_*` are the event processor: packets in, rings, verdicts, MTP packets and descriptors out. `*_sync` are the classical methods, written plainly:"
        " MATH fits with 16 bytes of result per event, launch, synchronise. `bench_gpu_round_trip`.\n\n"
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
        "Persistent over the best of all methods that launch. Those that end in `_sync` do less: no verdict, no packet of answers, nothing of the contract; `same work`: over the best of the event processor's"
        " own launches.\n\n"
    )
    return text + table(
        ["events", "p50", "best was", "p99.9", "best was", "p50, same work", "Mevent/s one buffer after the other"], lines
    )


@section("The papers' comparison: driver path and persistent kernel")
def driver_section(rows: Sequence[Mapping[str, Any]]) -> str:
    text = (
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


@section("Whole loop: UDP in, GPU, UDP out")
def loop_section(rows: Sequence[Mapping[str, Any]]) -> str:
    sent = sum(row["sent"] for row in rows)
    lost, wrong = sum(row["lost"] for row in rows), sum(row["wrong"] for row in rows)
    text = (
        "From a packet given to the kernel by an emulated board to the answer to each of its events received and checked, over loopback sockets of one machine; the time in which a buffer fills is in it."
        " `packets` is how many a buffer had the time to take, in brackets how many it held on average; 8 packets are 128 events. `clean` is p99.9 without answers in flight while the measuring"
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


@section("Ring finders, events in device memory")
def finder_section(rows: Sequence[Mapping[str, Any]]) -> str:
    finders = {(row["finder"], row["case"]): row for row in rows if row["finder"] not in ("copy", "record_fit")}
    cases = list(dict.fromkeys(case for _, case in finders))
    names = list(dict.fromkeys(name for name, _ in finders))
    differ = sum(row["events_that_differ"] or 0 for row in rows)
    text = f"Rings and circles were compared with the CPU's, bit for bit: {differ} differed. `bench_gpu_finders`.\n\n"

    def cells(name: str, what: Callable[[Mapping[str, Any]], list[str]]) -> list[str]:
        return [cell for case in cases for cell in (what(finders[name, case]) if (name, case) in finders else ["-", "-"])]

    if finders:
        lines = [[name, *cells(name, lambda row: [mega(row["events_per_s"]), mega(row["cpu_events_per_s"])])] for name in names]
        text += "Mevent/s of the GPU and of one core of its machine:\n\n"
        text += table(["finder", *(head for case in cases for head in (case, "a core"))], lines)
        lines = [[name, *cells(name, lambda row: [us(row["latency_1_us"]), us(row["latency_64_us"])])] for name in names]
        text += "\nLatency of a running kernel, one event and 64 at once:\n\n"
        text += table(["[us]", *(head for case in cases for head in (f"{case}, 1", "64"))], lines)
    return text + record_table(rows)


def record_table(rows: Sequence[Mapping[str, Any]]) -> str:
    records = [row for row in rows if row["finder"] == "record_fit"]
    if not records:
        return ""
    shares = gpu.share_of_copy(rows)
    copies = [f"{row['bytes_per_s'] * 1e-9:,.0f} GB/s" for row in rows if row["finder"] == "copy"]
    lines = [
        [row["case"], f"{row['events_per_s'] * 1e-9:.1f}", f"{row['bytes_per_s'] * 1e-9:,.0f}",
         f"{100 * shares[row['case']]:.1f} %" if shares else "-"]
        for row in records
    ]  # fmt: skip
    text = "\nMATH on records of 64 B in device memory, 16 B of result each. A copy by the driver of as many bytes, read and written, in the same run: "
    text += f"{copies[0] if copies else 'not measured'}.\n\n"
    return text + table(["hits", "Gevent/s", "GB/s", "of the copy"], lines)


@section("Event building from four boards")
def merge_section(rows: Sequence[Mapping[str, Any]], round_trips: Sequence[Mapping[str, Any]]) -> str:
    sizes = sorted({row["events"] for row in rows})
    ways = list(dict.fromkeys(row["way"] for row in rows))
    by_place = {(row["way"], row["events"]): row for row in rows}
    wrong = sum(row["wrong"] for row in rows)
    text = (
        "A buffer holds the parts that four boards sent of each event: they are put together, rings found, verdicts and MTP packets made. `cpu` is the same work on one core of the machine, without the"
        f" packets. Latency: one buffer at a time, from its completion until all answers are seen; {wrong} answers were wrong. `bench_gpu_merge`.\n\n"
    )
    for key, name in (("p50_us", "p50"), ("p999_us", "p99.9"), ("max_us", "max")):
        lines = [[way, *(us(by_place[way, n][key]) if (way, n) in by_place else "-" for n in sizes)] for way in ways]
        if key == "p50_us":
            lines += above_no_merging(by_place, round_trips, sizes)
        text += table([f"{name} [us]", *(f"{n} events" for n in sizes)], lines) + "\n"
    lines = [[way, *(mega(by_place[way, n]["rate_events_per_s"]) if (way, n) in by_place else "-" for n in sizes)] for way in ways]
    if {"persistent", "cpu"} <= set(ways):
        lines.append(["persistent over the core", *(rate_ratio(by_place, n) for n in sizes)])
    text += "Rate, as many buffers handed over as are free:\n\n"
    return text + table(["Mevent/s", *(f"{n} events" for n in sizes)], lines)


def above_no_merging(
    by_place: Mapping[tuple[str, int], Mapping[str, Any]], round_trips: Sequence[Mapping[str, Any]], sizes: Sequence[int]
) -> list[list[str]]:
    """What merging costs: over the round trip of a buffer with as many whole events as there are parts here. No line without round trips."""
    without = {row["events"]: row["p50_us"] for row in round_trips if row["way"] == "persistent"}
    both = {n for n in sizes if ("persistent", n) in by_place and 4 * n in without}
    line = [us(by_place["persistent", n]["p50_us"] - without[4 * n]) if n in both else "-" for n in sizes]
    return [["persistent, above a buffer of as many whole events as here parts", *line]] if both else []


def rate_ratio(by_place: Mapping[tuple[str, int], Mapping[str, Any]], events: int) -> str:
    if not {("persistent", events), ("cpu", events)} <= set(by_place):
        return "-"
    return f"{by_place['persistent', events]['rate_events_per_s'] / by_place['cpu', events]['rate_events_per_s']:.2f}"


@section("What a running loop asks of CUDA and of the allocator")
def trace_section(rows: Sequence[Mapping[str, Any]]) -> str:
    text = (
        "Calls of all threads while UDP packets come in and answers leave, as CUPTI sees them (a function of the runtime and those of the driver that it calls both count), and every `operator new`."
        " `launch` and `graph` are the control. `bench_gpu_trace`.\n\n"
    )
    lines = [
        [row["runtime"], f"`{row['function']}`" if row["function"] != gpu.ALL_CALLS else row["function"], str(row["calls"]),
         f"{row['calls'] / row['buffers']:.3g}" if row["buffers"] and row["function"] != gpu.SET_UP_ALLOCATIONS else "-", str(row["buffers"])]
        for row in rows
    ]  # fmt: skip
    return text + table(["runtime", "", "calls", "a buffer", "buffers"], lines)


def other_section(measured: Mapping[str, gpu.Measured], rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Another GPU with the same programs, in short, beside the page's; nothing where none was measured."""
    if not measured:
        return ""
    name = next(iter(measured.values())).facts["gpu"]
    text = f"\n## Another GPU: {name}\n\nThe same programs, in short, in another machine; in brackets what stands above.\n\n"
    others = rows_of(measured)
    above = {(row["way"], row["events"]): row for row in rows["round_trip"]}
    lines = [
        [
            f"{row['way']}, {row['events']} events",
            *(beside(row, above.get((row["way"], row["events"])), key) for key in ("p50_us", "p999_us")),
        ]
        for row in others["round_trip"]
    ]
    for row in others["loop"]:
        same = ("runtime", "in_flight", "rate_events_per_s", "packets")
        alike = next((one for one in rows["loop"] if all(one[key] == row[key] for key in same)), None)
        what = f"whole loop, {row['runtime']}, {mega(row['rate_events_per_s'])} Mevent/s, {row['packets']} packets a buffer, {row['lost']} lost"
        lines.append([what, *(beside(row, alike, key) for key in ("p50_us", "p999_us"))])
    return text + table(["", "p50 [us]", "p99.9 [us]"], lines)


def beside(row: Mapping[str, Any], other: Mapping[str, Any] | None, key: str) -> str:
    return us(row[key]) + (f" ({us(other[key])})" if other else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
