# SPDX-License-Identifier: Apache-2.0
"""docs/design/link-faults.md against the tree: every test that it names is there, and a stepped clock can only show where it says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
OTHER_CLOCKS = re.compile(r"CLOCK_REALTIME|CLOCK_TAI|system_clock|gettimeofday|time\.time\(")
SOURCES = ("src/**/*.cpp", "src/**/*.hpp", "src/**/*.cu", "src/**/*.cuh", "include/**/*.hpp", "python/**/*.py", "python/**/*.cpp")


def test_every_test_on_the_page_is_there() -> None:
    page = (ROOT / "docs" / "design" / "link-faults.md").read_text()
    section = page.partition("## Where each is tested\n")[2].partition("\n**Clock stepped.**")[0]
    named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", section))
    there: set[str] = set()
    for path in (ROOT / "tests" / "unit").rglob("*_test.cpp"):
        there |= {f"{suite}.{name}" for suite, name in re.findall(r"\bTEST(?:_[FP])?\((\w+),\s*(\w+)\)", path.read_text())}
    assert len(named) > 20
    assert sorted(named - there) == []


def test_each_fault_of_the_table_has_a_line_with_its_tests() -> None:
    page = (ROOT / "docs" / "design" / "link-faults.md").read_text()
    for fault in (
        "port in use", "wrong port", "interface goes down", "MTU too small", "no privilege", "no huge pages", "old kernel",
        "another XDP program", "number of queues changes",
    ):  # fmt: skip
        lines = [line for line in page.splitlines() if line.startswith(f"| {fault}")]
        assert len(lines) == 2, fault  # what happens, and where it is tested
    assert "**Clock stepped.**" in page


def test_nothing_but_recorder_and_stamps_asks_for_the_time_of_day() -> None:
    asked = {
        str(path.relative_to(ROOT))
        for pattern in SOURCES
        for path in ROOT.glob(pattern)
        if OTHER_CLOCKS.search(re.sub(r"//.*", "", path.read_text()))
    }
    assert asked == {"src/link/pcap/recorder.cpp", "src/link/udp/receive_times.cpp"}
