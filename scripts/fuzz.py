#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every fuzz target for some seconds, as many at a time as there are cores, each from its corpus in fuzz/corpus/NAME.

    scripts/fuzz.py BUILD_DIR SECONDS [--jobs N] [--seed N]

What breaks a target lands in out/fuzz/NAME, what the fuzzer found besides in out/fuzz/NAME/corpus: the tree's own corpus stays as it is. A target's
speed is its runs in a second of processor time, so that it does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS, PYTHON_TARGETS, FOUND = ROOT / "fuzz" / "corpus", ROOT / "fuzz" / "python", Path("out/fuzz")
RUNS_PER_S_MIN = 1000
LIMITS = ["-rss_limit_mb=2048", "-timeout=10"]


@dataclass(frozen=True)
class Target:
    """A program that takes libFuzzer's arguments."""

    name: str
    command: tuple[str, ...]

    @property
    def corpus(self) -> Path:
        return CORPUS / self.name


@dataclass(frozen=True)
class Outcome:
    """Of one target."""

    target: Target
    exit_code: int
    runs: int
    cpu_s: float
    tail: str = ""

    @property
    def runs_per_s(self) -> float:
        return self.runs / max(self.cpu_s, 1e-3)


class FuzzError(Exception):
    """problem (why) suggestion"""


def targets_of(build: Path) -> list[Target]:
    """All that were built, and those in Python, each with a corpus."""
    native = sorted(one for one in (build / "fuzz").glob("fuzz_*") if one.is_file() and os.access(one, os.X_OK))
    if not native:
        raise FuzzError(f"no fuzz target in {build}/fuzz (none was built) see fuzz/CMakeLists.txt")
    python = sorted(one for one in PYTHON_TARGETS.glob("fuzz_*.py") if one.stem != "fuzz_target")
    targets = [Target(one.name, (str(one.resolve()),)) for one in native]
    targets += [Target(one.stem, (sys.executable, str(one))) for one in python]
    for target in targets:
        if not target.corpus.is_dir():
            raise FuzzError(f"{target.name} has no corpus (each target begins from real inputs) put some in {target.corpus}")
    return targets


def fuzz(target: Target, seconds: int, seed: int) -> Outcome:
    """One run."""
    found = FOUND / target.name
    (found / "corpus").mkdir(parents=True, exist_ok=True)
    arguments = [f"-max_total_time={seconds}", f"-seed={seed}", *LIMITS, "-print_final_stats=1", f"-artifact_prefix={found}/"]
    # What is found goes to the first folder.
    command = [*target.command, *arguments, str(found / "corpus"), str(target.corpus)]
    with (found / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=os.environ | {"LLVM_PROFILE_FILE": "/dev/null"}
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = (found / "log").read_text(errors="replace")
    runs = re.findall(r"number_of_executed_units: (\d+)", text)
    tail = "\n".join(text.splitlines()[-40:])
    return Outcome(target, process.returncode, int(runs[-1]) if runs else 0, usage.ru_utime + usage.ru_stime, tail)


def main() -> int:
    parser = argparse.ArgumentParser(description="run every fuzz target")
    parser.add_argument("build", type=Path)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0, help="the same inputs in the same order; 0: others each time (0)")
    options = parser.parse_args()
    try:
        targets = targets_of(options.build)
    except FuzzError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"fuzz: {len(targets)} targets, {options.seconds} s each, {options.jobs} at a time", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda target: fuzz(target, options.seconds, options.seed), targets))
    failed = [one for one in outcomes if one.exit_code != 0]
    print(f"{'target':20} {'runs':>10} {'runs/s':>8}")
    for one in outcomes:
        slow = "" if one.runs_per_s >= RUNS_PER_S_MIN else f"  fewer than {RUNS_PER_S_MIN}"
        print(f"{one.target.name:20} {one.runs:10d} {one.runs_per_s:8.0f}{slow}", flush=True)
    for one in failed:
        print(one.tail, file=sys.stderr)
        log = FOUND / one.target.name / "log"
        print(f"error: {one.target.name} failed (its last lines are above, all of them in {log}) run {' '.join(one.target.command)}"
              f" on the input in {FOUND / one.target.name}", file=sys.stderr)  # fmt: skip
    if not failed:
        print(f"{len(outcomes)} fuzz targets ran clean")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
