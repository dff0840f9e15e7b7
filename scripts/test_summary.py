#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The last line of `make test`: how many tests ran, counted from CTest's log of the GoogleTest programs, from pytest's JUnit
file, and from the log of test_gpu if the CUDA code was built. Exit 1 where a test failed or was skipped, or where one of them
ran no test at all: an empty suite must not pass. Only on a machine without a GPU, or without what a link needs (privilege, a back-end),
may tests not run. Those of links say `NOT RUN: a test of ... (why)`, those in Python have a property `not_run`; the count and the first reason
are said here."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tally:
    passed: int
    failed: int
    skipped: int
    not_run: int = 0  # they passed for GoogleTest or pytest, and are not among those passed here
    why: str = ""


@dataclass(frozen=True)
class GpuTally:
    passed: int = 0
    failed: int = 0
    not_run: int = 0  # all of them: there is no GPU
    left_out: int = 0  # those that need more than there is, such as a second GPU
    why: str = ""  # of the first of them


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3):
        print("usage: test_summary.py CTEST_LOG PYTEST_XML [GPU_LOG]", file=sys.stderr)
        return 2
    cxx = tally_gtest(Path(arguments[0]).read_text(encoding="utf-8", errors="replace"))
    python = tally_pytest(Path(arguments[1]).read_text(encoding="utf-8"))
    gpu = tally_gpu(Path(arguments[2]).read_text(encoding="utf-8", errors="replace")) if len(arguments) == 3 else None
    passed, failed, skipped = cxx.passed + python.passed, cxx.failed + python.failed, cxx.skipped + python.skipped
    sides = f"{cxx.passed} C++, {python.passed} Python"
    if gpu is not None and not gpu.not_run:
        passed, failed, sides = passed + gpu.passed, failed + gpu.failed, f"{sides}, {gpu.passed} GPU"
    note = (
        "; CUDA code not built: GPU tests not run"
        if gpu is None
        else f"; no GPU: {gpu.not_run} tests not run"
        if gpu.not_run
        else ""
    )
    if gpu is not None and gpu.left_out:
        note += f"; {gpu.left_out} GPU tests not run: {gpu.why}"
    if cxx.not_run or python.not_run:
        note += f"; {cxx.not_run + python.not_run} tests not run: {cxx.why or python.why}"
    print(f"{passed} tests passed ({sides}), {failed} failed, {skipped} skipped{note}")
    empty = not cxx.passed or not python.passed or (gpu is not None and not gpu.passed and not gpu.not_run)
    return 1 if empty or failed or skipped else 0


def tally_gtest(log: str) -> Tally:
    # A test that is skipped or fails is named twice: when it ends, and in the list at the end; only the first has its time.
    def ended(mark: str) -> int:
        return len(re.findall(rf"^\[{mark}\] \S+.* \(\d+ ms\)$", log, re.MULTILINE))

    reasons = re.findall(r"^NOT RUN: (.*)$", log, re.MULTILINE)
    return Tally(
        ended("       OK ") - len(reasons), ended("  FAILED  "), ended("  SKIPPED "), len(reasons), reasons[0] if reasons else ""
    )


def tally_pytest(junit: str) -> Tally:
    total = failed = skipped = 0
    root = ElementTree.fromstring(junit)
    for suite in root.iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    reasons = [one.get("value", "") for one in root.iter("property") if one.get("name") == "not_run"]
    return Tally(total - failed - skipped - len(reasons), failed, skipped, len(reasons), reasons[0] if reasons else "")


def tally_gpu(log: str) -> GpuTally:
    absent = re.search(r"^no GPU: (\d+) tests not run$", log, re.MULTILINE)
    if absent:
        return GpuTally(not_run=int(absent[1]))
    counts = re.search(r"^(\d+) passed, (\d+) failed$", log, re.MULTILINE)
    reasons = re.findall(r"^NOT RUN: (.*)$", log, re.MULTILINE)
    return GpuTally(int(counts[1]), int(counts[2]), 0, len(reasons), reasons[0] if reasons else "") if counts else GpuTally()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
