#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/stencil.md: measured into docs/stencil.csv, and written into the page from it and from docs/gpu-h200-stencil.csv.

    make_stencil.py --measure [--tile SIZES]    measures on this machine (some minutes, up to 13 GiB of memory), then writes the page
    make_stencil.py [--check]                   writes the page from the CSV; --check says whether it is current and changes nothing

Needs the nanet package, built with UCX: .venv/bin/python.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- measured: begin (scripts/make_stencil.py writes this) -->", "<!-- measured: end -->"
COLUMNS = (
    "date", "machine", "mode", "path", "dtype", "sweeps", "bytes", "seconds_in", "seconds_compute", "seconds_out", "seconds_total",
    "seconds_transfer_alone", "ratio_to_transfer", "updates_per_s", "copy_bytes_per_s",
)  # fmt: skip
MIB = 2**20
PER_VISIT = 4  # sweeps, of the GPU's table
TCP_BYTES_MAX = 2**30  # larger tiles take as long for each byte, and minutes
NOT_MEASURED = "\nNot measured yet: `scripts/make_stencil.py --measure` takes the figures of a machine and writes them here.\n\n"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="The tables of docs/stencil.md.")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--tile", default="64M,128M,256M,512M,1G,2G,4G")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path, default=DOCS)
    given = parser.parse_args(arguments)
    file, page = given.folder / "stencil.csv", given.folder / "stencil.md"
    if given.measure:
        write_rows(file, measured(given.tile))
    text = page.read_text(encoding="utf-8")
    whole = page_with(text, read_rows(file), gpu_rows())
    if given.check:
        if whole != text:
            print("error: docs/stencil.md is not current (the CSV has changed) run scripts/make_stencil.py", file=sys.stderr)
        return int(whole != text)
    page.write_text(whole, encoding="utf-8")
    return 0


def measured(tile: str) -> list[dict[str, Any]]:
    """Both modes, over shared memory and over TCP on loopback."""
    from nanet.stencil import modes

    rows: list[dict[str, Any]] = []
    for transports, most in (("", 2**63), ("tcp", TCP_BYTES_MAX)):
        for mode in ("paper", "stream"):
            print(f"{mode} {transports or 'shared memory'}", flush=True)
            sizes = tuple(size for size in modes.sizes_of(tile) if size <= most)
            options = modes.ModeOptions(mode, sizes, transports=transports, trust_network=bool(transports))
            found = modes.measure_modes(options, lambda line: print(line, flush=True))
            for note in found["notes"]:
                print(f"note: {note}", flush=True)
            machine = found["machine"]
            about = {
                "date": found["date"],
                "machine": f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB",
                "mode": mode,
                "path": "TCP on loopback" if transports else "shared memory",
                **{key: found[key] for key in ("dtype", "sweeps", "copy_bytes_per_s")},
            }
            rows += [about | {key: line.get(key, "") for key in COLUMNS if key not in about} for line in found["sizes"]]
    return rows


def write_rows(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def gpu_rows() -> list[dict[str, str]]:
    """The tiles that bench_gpu_stencil moved to a GPU and swept PER_VISIT times."""
    with (DOCS / "gpu-h200-stencil.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return [row for row in rows if row["part"] in ("paper", "stream") and int(row["sweeps"]) == PER_VISIT]


def page_with(text: str, rows: Sequence[Mapping[str, str]], gpu: Sequence[Mapping[str, str]]) -> str:
    """The page with what stands between the marks rewritten."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{tables(rows)}{gpu_table(gpu)}{END}{tail}"


def tables(rows: Sequence[Mapping[str, str]]) -> str:
    if not rows:
        return NOT_MEASURED
    lines = [f"\n{rows[0]['machine']}; {rows[0]['dtype']}, sweeps of a move: {rows[0]['sweeps']}; quickest of three."]
    for path in dict.fromkeys(row["path"] for row in rows):
        lines += [
            "",
            f"Over {path}:",
            "",
            "| tile | in [s] | compute [s] | out [s] | paper: total [s] | stream: total [s] | of its transfer alone | in and out [GB/s] |",
            "|---:|---:|---:|---:|---:|---:|---:|---:|",
        ]
        lines += [table_line(size, [row for row in rows if row["path"] == path]) for size in sizes_of(rows, path)]
    return "\n".join(lines) + "\n\n"


def gpu_table(rows: Sequence[Mapping[str, str]]) -> str:
    lines = [
        f"To one H200 and back, from the host's memory over PCIe; fp32, {PER_VISIT} sweeps in one visit, medians of three (`bench_gpu_stencil`):",
        "",
        "| tile | in [s] | compute [s] | out [s] | paper: total [s] | stream: total [s] | of its transfer alone |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for side in sorted({int(row["rows"]) for row in rows}):
        by_mode = {row["part"]: row for row in rows if int(row["rows"]) == side}
        paper, stream = by_mode["paper"], by_mode["stream"]
        cells = [
            f"{4 * side * side // MIB} MiB",
            *(f"{float(paper[key]):.4f}" for key in ("in_s", "compute_s", "out_s", "seconds")),
        ]
        lines.append("| " + " | ".join([*cells, f"{float(stream['seconds']):.4f}", f"{float(stream['to_transfer']):.2f}"]) + " |")
    return "\n".join(lines) + "\n\n"


def sizes_of(rows: Sequence[Mapping[str, str]], path: str) -> list[int]:
    return sorted({int(row["bytes"]) for row in rows if row["path"] == path})


def table_line(size: int, rows: Sequence[Mapping[str, str]]) -> str:
    by_mode = {row["mode"]: row for row in rows if int(row["bytes"]) == size}
    paper, stream = by_mode.get("paper"), by_mode.get("stream")
    cells = [f"{size // MIB} MiB"]
    keys = ("seconds_in", "seconds_compute", "seconds_out", "seconds_total")
    cells += [f"{float(paper[key]):.4f}" for key in keys] if paper else ["not run"] * 4
    cells += [f"{float(stream['seconds_total']):.4f}", f"{float(stream['ratio_to_transfer']):.2f}"] if stream else ["not run"] * 2
    moved_s = float(paper["seconds_in"]) + float(paper["seconds_out"]) if paper else 0.0
    cells.append(f"{2 * size / moved_s / 1e9:.2f}" if moved_s else "")
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
