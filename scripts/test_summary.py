#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The last line of `make test`: how many tests ran, counted from CTest's log of the GoogleTest programs and from pytest's
JUnit file. Exit 1 where a test failed or was skipped, or where one side ran no test at all: an empty suite must not pass."""

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


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: test_summary.py CTEST_LOG PYTEST_XML", file=sys.stderr)
        return 2
    cxx = tally_gtest(Path(arguments[0]).read_text(encoding="utf-8", errors="replace"))
    python = tally_pytest(Path(arguments[1]).read_text(encoding="utf-8"))
    passed, failed, skipped = cxx.passed + python.passed, cxx.failed + python.failed, cxx.skipped + python.skipped
    print(f"{passed} tests passed ({cxx.passed} C++, {python.passed} Python), {failed} failed, {skipped} skipped")
    return 0 if cxx.passed and python.passed and not failed and not skipped else 1


def tally_gtest(log: str) -> Tally:
    # A test that is skipped or fails is named twice: when it ends, and in the list at the end; only the first has its time.
    def ended(mark: str) -> int:
        return len(re.findall(rf"^\[{mark}\] \S+.* \(\d+ ms\)$", log, re.MULTILINE))

    return Tally(passed=ended("       OK "), failed=ended("  FAILED  "), skipped=ended("  SKIPPED "))


def tally_pytest(junit: str) -> Tally:
    total = failed = skipped = 0
    for suite in ElementTree.fromstring(junit).iter("testsuite"):
        total += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0))
    return Tally(passed=total - failed - skipped, failed=failed, skipped=skipped)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
