# SPDX-License-Identifier: Apache-2.0
"""GPU benchmarks: runs the C++ programs of bench/gpu, or reads what they measured elsewhere, and says what follows from it.

The programs measure (a host's spinning thread cannot be Python's) and write CSV: lines `# key: value` first, then a table. This reads those.
"""

from __future__ import annotations

import csv
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nanet.bench.gpu_keys import FinderRow, GpuResult, Ratio, RoundTrip, Row
from nanet.result import files, outputs

# Part -> columns that its CSV has at least. The program is bench_gpu_PART.
COLUMNS = {
    "round_trip": ("way", "events", "count", "p50_us", "p99_us", "p999_us", "p9999_us", "max_us", "min_us", "wrong"),
    "driver_path": ("work", "path", "in_flight", "events", "work_us", "mean_us", "std_us", "p50_us", "p99_us", "p999_us", "p9999_us",
                    "max_us", "buffers_per_s", "wrong"),
    "loop": ("runtime", "path", "in_flight", "rate_events_per_s", "packets", "packets_mean", "sent", "lost", "wrong", "p50_us", "p99_us",
             "p999_us", "p9999_us", "max_us", "clean_p999_us"),
    "finders": ("finder", "case", "events_per_s", "bytes_per_s", "cpu_events_per_s", "latency_1_us", "latency_64_us", "events_that_differ"),
    "merge": ("way", "events", "count", "p50_us", "p99_us", "p999_us", "p9999_us", "max_us", "min_us", "rate_events_per_s", "incomplete", "wrong"),
    "trace": ("runtime", "function", "calls", "buffers"),
}  # fmt: skip
PARTS = tuple(COLUMNS)
# Its program needs CUPTI, which a CUDA installation may lack: it may be absent where it was not asked for by name.
SPARE_PART = "trace"
TEXT_COLUMNS = {"what", "way", "work", "path", "runtime", "topology", "finder", "case", "function"}
COUNT_COLUMNS = {"events", "count", "wrong", "in_flight", "burst_packets", "packets", "sent", "answered", "lost", "events_that_differ",
                 "incomplete", "calls", "buffers"}  # fmt: skip
# Cells of a finder's row that are empty (None), since they have no meaning there; of all others the bytes.
EMPTY_CELLS = {
    "copy": {"events_per_s", "cpu_events_per_s", "latency_1_us", "latency_64_us", "events_that_differ"},
    "record_fit": {"cpu_events_per_s", "latency_1_us", "latency_64_us"},
}
PROGRAMS = Path("build/cuda-release/bench/gpu")
LONGEST_S = 600.0  # a program ends itself before
# Rows that bench_gpu_trace writes beside the functions' own.
ALLOCATIONS, SET_UP_ALLOCATIONS, ALL_CALLS = "operator new", "operator new at set-up", "all of CUDA"


class GpuBenchError(RuntimeError):
    """The benchmark cannot be done as asked: "problem (why) suggestion"."""


class NotPossibleError(GpuBenchError):
    """A program says that it cannot measure on this machine."""


@dataclass(frozen=True)
class Measured:
    """What one program wrote."""

    part: str
    facts: dict[str, str] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()


def read(path: Path, columns: Mapping[str, Sequence[str]] = COLUMNS) -> Measured:
    """One CSV of a program, of those that `columns` says. Raises GpuBenchError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise GpuBenchError(f"{path} cannot be read ({error.strerror}) name a file that a bench_gpu program wrote") from None
    facts = dict(line[1:].strip().split(": ", 1) for line in lines if line.startswith("#") and ": " in line)
    part = facts.get("program", "").removeprefix("bench_gpu_")
    table = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    if part not in columns:
        raise GpuBenchError(
            f"{path} is not from a benchmark (its lines with # name no program of {', '.join(columns)}) name another file"
        )
    missing = [name for name in columns[part] if not table or table[0].get(name) is None]
    if missing:
        raise GpuBenchError(f"{path} has no figures (there is no {missing[0]}) run bench_gpu_{part} to its end")
    try:
        rows = tuple(_row(row) for row in table)
    except (ValueError, TypeError):
        raise GpuBenchError(f"{path} is damaged (a cell is not a number) run bench_gpu_{part} again") from None
    return Measured(part, facts, rows)


def _row(cells: Mapping[str, str]) -> Row:
    empty = EMPTY_CELLS.get(cells.get("finder", ""), {"bytes_per_s"})
    return {name: None if text == "" and name in empty else _value(name, text) for name, text in cells.items()}


def _value(name: str, text: str) -> str | int | float:
    if name in TEXT_COLUMNS:
        return text
    return int(text) if name in COUNT_COLUMNS else float(text)


def find_programs(folder: Path | None, parts: Sequence[str] = (), say: Callable[[str], None] = print) -> dict[str, Path]:
    """Program of each part; without `parts` of all, and the spare part may be absent, which is said. Raises GpuBenchError."""
    where = folder or PROGRAMS
    found = {part: where / f"bench_gpu_{part}" for part in parts or PARTS}
    missing = [part for part, program in found.items() if not program.is_file()]
    if not parts and missing == [SPARE_PART]:
        say(f"{SPARE_PART}: not measured (bench_gpu_{SPARE_PART} is not built: cupti.h was not found)")
        return {part: found[part] for part in found if part != SPARE_PART}
    if missing:
        names = [found[part].name for part in missing]
        raise GpuBenchError(
            f"{names[0]} is not in {where} (it is not built, or this is not the repository's root) "
            f"run make cuda, then cmake --preset cuda-release && cmake --build --preset cuda-release --target {' '.join(names)}"
        )
    return found


def check_gpu() -> None:
    """Raises GpuBenchError where no GPU can be used."""
    from nanet.machine.gpu_driver import ask_driver

    driver = ask_driver()
    if not driver.gpus:
        raise GpuBenchError(
            f"no GPU ({driver.problem}) run this on a machine with one, or give --from FILE to see figures of another"
        )


def run_program(
    program: Path,
    part: str,
    arguments: Sequence[str],
    csv_file: Path,
    say: Callable[[str], None],
    columns: Mapping[str, Sequence[str]] = COLUMNS,
) -> Measured:
    """Runs a program to its end and reads what it wrote; its lines go to `say`. Raises GpuBenchError."""
    with tempfile.TemporaryDirectory(prefix="nanet-") as folder:
        written = Path(folder) / csv_file.name  # by a program that follows links
        _run_to_its_end([str(program), *arguments, "--csv", str(written)], program, say)
        measured = read(written, columns)
        outputs.write(csv_file, written.read_bytes())
        return measured


def _run_to_its_end(command: Sequence[str], program: Path, say: Callable[[str], None]) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            say(line.rstrip("\n"))
        try:
            _, errors = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise GpuBenchError(f"{program.name} does not end (it is busy after its last line) see nvidia-smi") from None
    if process.returncode not in (0, 1):  # 1: answers were wrong, and the figures say so
        last = errors.strip().splitlines()[-1:] or ["it said nothing"]
        problem = NotPossibleError if process.returncode == 2 else GpuBenchError
        raise problem(f"{program.name} failed ({last[0].removeprefix('error: ')}) exit status {process.returncode}")


def result_of(measured: Sequence[Measured]) -> GpuResult:
    """The result as `nanet bench gpu --json` writes it. Of a part that was measured twice the later counts."""
    by_part = {one.part: one for one in measured}
    facts = {name: value for one in by_part.values() for name, value in one.facts.items()}
    rows: dict[str, list[Row]] = {part: [dict(row) for row in by_part[part].rows] if part in by_part else [] for part in PARTS}
    ratios = ratios_of(rows["round_trip"])
    return {
        **files.base("bench gpu"),
        "gpu": facts.get("gpu", "unknown"),
        "gpu_host_cpu": facts.get("cpu", "unknown"),
        "cuda": facts.get("cuda", "unknown"),
        "finder": facts.get("finder", "math"),
        "round_trip": rows["round_trip"],
        "driver_path": rows["driver_path"],
        "loop": rows["loop"],
        "finders": rows["finders"],
        "merge": rows["merge"],
        "trace": rows["trace"],
        "ratios": ratios,
        "wrong": sum(int(row.get("wrong") or row.get("events_that_differ") or 0) for part in rows.values() for row in part),
    }


def ratios_of(rows: Sequence[RoundTrip]) -> list[Ratio]:
    """Persistent over the best of all ways that launch, at each size; `same_work`: of those that do the same work, the event processor's."""
    ratios: list[Ratio] = []
    for events in sorted({row["events"] for row in rows if row["way"] != "flag"}):
        here = [row for row in rows if row["events"] == events]
        persistent = next((row for row in here if row["way"] == "persistent"), None)
        others = [row for row in here if row["way"] not in ("persistent", "flag") and not row["way"].startswith("in_place_")]
        if persistent is None or not others:
            continue
        same = [row for row in others if not row["way"].endswith("_sync")]
        ratio: Ratio = {"events": events, "same_work_p50": None, "same_work_best_way": None}
        if same:
            best = min(same, key=lambda row: float(row["p50_us"]))
            ratio |= {"same_work_p50": round(persistent["p50_us"] / best["p50_us"], 4), "same_work_best_way": best["way"]}
        for name in ("p50", "p999"):
            best = min(others, key=lambda row: float(row[f"{name}_us"]))
            ratio |= {name: round(persistent[f"{name}_us"] / best[f"{name}_us"], 4), f"{name}_best_way": best["way"],
                      f"{name}_us": persistent[f"{name}_us"], f"{name}_best_us": best[f"{name}_us"]}  # fmt: skip
        ratios.append(ratio)
    return ratios


def share_of_copy(rows: Sequence[FinderRow]) -> dict[str, float]:
    """Of each case of `record_fit`: bytes that it moves over those that a copy moved in the same run. Empty where no copy was measured."""
    copy = next((row["bytes_per_s"] for row in rows if row["finder"] == "copy"), None)
    return {row["case"]: row["bytes_per_s"] / copy for row in rows if row["finder"] == "record_fit"} if copy else {}


def csv_rows(result: GpuResult) -> list[tuple[str, str, float, str]]:
    """Rows for the common CSV: case, name, value, unit."""
    rows: list[tuple[str, str, float, str]] = []
    percentiles = (("p50", "p50_us"), ("p99", "p99_us"), ("p99_9", "p999_us"), ("p99_99", "p9999_us"), ("max", "max_us"))
    for row in result["round_trip"]:
        rows += [(f"round_trip {row['way']} {row['events']}", name, float(row[key]), "us") for name, key in percentiles]
    for ratio in result["ratios"]:
        rows += [
            (f"round_trip ratio {ratio['events']}", name, float(ratio[key]), "1")
            for name, key in (("p50", "p50"), ("p99_9", "p999"))
        ]
    for row in result["driver_path"]:
        case = f"driver_path {row['work']} {row['path']} in_flight {row['in_flight']}"
        rows += [(case, name, float(row[key]), "us") for name, key in (("mean", "mean_us"), ("jitter", "std_us"), *percentiles)]
        rows.append((case, "buffers_per_s", float(row["buffers_per_s"]), "1/s"))
    for row in result["loop"]:
        case = f"loop {row['runtime']} in_flight {row['in_flight']} packets {row['packets']}@{row['rate_events_per_s']:.0f}"
        rows += [(case, name, float(row[key]), "us") for name, key in percentiles]
        rows.append((case, "lost", float(row["lost"]), "events"))
    for row in result["finders"]:
        units = (("events_per_s", "1/s"), ("bytes_per_s", "B/s"), ("latency_1_us", "us"), ("latency_64_us", "us"))
        rows += [(f"finders {row['finder']} {row['case']}", name, row[name], unit) for name, unit in units if row[name] is not None]
    for row in result["merge"]:
        case = f"merge {row['way']} {row['events']}"
        rows += [(case, name, float(row[key]), "us") for name, key in percentiles]
        rows.append((case, "events_per_s", float(row["rate_events_per_s"]), "1/s"))
    for row in result["trace"]:
        case = f"trace {row['runtime']} {row['function']}"
        rows += [(case, "calls", float(row["calls"]), "1"), (case, "buffers", float(row["buffers"]), "1")]
    return rows
