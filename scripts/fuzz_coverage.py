#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many lines of every parser the corpus in fuzz/corpus reaches: a table, and exit code 1 if one has less than 95 %.

    scripts/fuzz_coverage.py BUILD_DIR

Every target is given its own corpus once, without fuzzing. A line that no input can reach says why in a comment that begins with `not covered: `; so
does a block, on its first line. Such lines are left out of the count.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fuzz import ROOT, FuzzError, Target, targets_of

SHARE_MIN = 0.95
MISSED_SHOWN = 8

# Whatever reads bytes that a stranger may have written.
PARSERS = (
    "src/wire/mgp.cpp",
    "src/wire/m2egp.cpp",
    "src/wire/mtp.cpp",
    "src/wire/mep.cpp",
    "src/wire/l0_decision.cpp",
    "src/wire/checksum.cpp",
    "src/wire/packet_header.hpp",
    "src/wire/event_walk.hpp",
    "src/wire/packet_check.hpp",
    "src/link/pcap/pcap_reader.cpp",
    "src/link/udp_frame.cpp",
    "src/link/udp_template.cpp",
    "src/link/dpdk/arp.cpp",
    "src/link/dpdk/frame.hpp",
    "src/link/dpdk/ndp.cpp",
    "src/link/xdp/packet.hpp",
    "src/rdma/messages.hpp",
    "src/rdma/notify_layout.hpp",
    "src/rdma/notify_reader.cpp",
    "src/event/merger.cpp",
    "include/nanet/event/merger.hpp",
    "src/event/part_table.hpp",
    "src/l0tp/trigger_processor.cpp",
    "src/format/expression.cpp",
    "src/format/layout.cpp",
    "src/format/compile.cpp",
    "src/format/program.hpp",
    "src/format/decoder.cpp",
    "src/format/flat.cpp",
    "src/format/flat.hpp",
    "src/format/events.cpp",
    "src/format/event_reader.hpp",
    "src/format/explain.cpp",
    "src/engine/assembler.cpp",
    "src/engine/assembler_resend.cpp",
    "include/nanet/flow/ranges.hpp",
    "include/nanet/flow/buffer_pool.hpp",
    "include/nanet/engine/stream_merge.hpp",
    "python/nanet/machine/channel.py",
    "python/nanet/config/yaml.py",
    "python/nanet/km3/daq.py",
    "python/nanet/metrics/http_pages.py",
    "python/nanet/rdma/control.py",
    "python/nanet/stencil/checkpoint.py",
    "python/nanet/stencil/rendezvous.py",
)
Lines = dict[int, int]  # line -> how often it ran


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: fuzz_coverage.py BUILD_DIR", file=sys.stderr)
        return 2
    try:
        found = lines_of_all(targets_of(Path(sys.argv[1])))
    except FuzzError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return print_table(found)


def lines_of_all(targets: list[Target]) -> dict[str, Lines]:
    """Of each parser, its lines that can run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda target: replay(target, folder), targets))
        native = [target for target in targets if len(target.command) == 1]
        return native_lines(native, folder) | python_lines(folder)


def replay(target: Target, folder: Path) -> None:
    """Every input once; what ran is written into the folder."""
    if len(target.command) == 1:
        command = [*target.command, "-runs=0", str(target.corpus)]
        environment = os.environ | {"LLVM_PROFILE_FILE": str(folder / f"{target.name}.profraw")}
    else:
        command = [sys.executable, "-m", "coverage", "run", f"--data-file={folder / f'{target.name}.coverage'}", f"--source={ROOT / 'python' / 'nanet'}",
                   target.command[1], "--replay", str(target.corpus)]  # fmt: skip
        environment = dict(os.environ)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise FuzzError(
            f"{target.name} does not take its own corpus ({(done.stderr or done.stdout).strip()[-2000:]}) run {' '.join(command)}"
        )


def native_lines(targets: list[Target], folder: Path) -> dict[str, Lines]:
    """From LLVM's source-based coverage."""
    merged = folder / "merged"
    run(llvm("llvm-profdata"), "merge", "-sparse", "-o", str(merged), *(str(folder / f"{one.name}.profraw") for one in targets))
    programs = [part for one in targets for part in ("-object", one.command[0])][1:]
    sources = [str(ROOT / one) for one in PARSERS if not one.endswith(".py")]
    text = run(llvm("llvm-cov"), "export", "-format=lcov", f"-instr-profile={merged}", *programs, *sources)
    found: dict[str, Lines] = defaultdict(dict)
    name = ""
    for line in text.splitlines():
        if line.startswith("SF:"):
            name = os.path.relpath(line[3:], ROOT)
        elif line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            found[name][int(number)] = max(int(count), found[name].get(int(number), 0))
    return dict(found)


def llvm(tool: str) -> str:
    """Of the compiler's own version."""
    return run(os.environ.get("FUZZ_CXX", "clang++"), f"-print-prog-name={tool}").strip()


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FuzzError(f"{Path(command[0]).name} failed ({done.stderr.strip()[-2000:]}) run make fuzz first")
    return done.stdout


def python_lines(folder: Path) -> dict[str, Lines]:
    """From coverage.py."""
    import coverage

    whole = coverage.Coverage(data_file=str(folder / "whole"), source=[str(ROOT / "python" / "nanet")])
    whole.set_option("report:exclude_lines", [])
    whole.combine([str(one) for one in folder.glob("*.coverage")])
    found: dict[str, Lines] = {}
    for name in (one for one in PARSERS if one.endswith(".py")):
        _, statements, _, missing, _ = whole.analysis2(str(ROOT / name))
        found[name] = {line: int(line not in missing) for line in statements}
    return found


def named(path: Path) -> set[int]:
    """The lines that say why they cannot be reached, and those of the blocks that such a line begins."""
    lines = path.read_text().splitlines()
    left_out = set()
    for number, line in enumerate(lines, 1):
        if not re.search(r"(//|#) not covered: \w", line):
            continue
        left_out.add(number)
        indent = len(line) - len(line.lstrip())
        if line.split("//")[0].split("#")[0].rstrip().endswith(("{", ":")):
            for further in range(number, len(lines)):
                if lines[further].strip() and len(lines[further]) - len(lines[further].lstrip()) <= indent:
                    break
                left_out.add(further + 1)
    return left_out


def print_table(found: dict[str, Lines]) -> int:
    low = []
    print(f"{'parser':42} {'lines':>6} {'reached':>8}")
    for name in PARSERS:
        left_out = named(ROOT / name)
        lines = {number: count for number, count in found.get(name, {}).items() if number not in left_out}
        missed = sorted(number for number, count in lines.items() if count == 0)
        share = 1 - len(missed) / len(lines) if lines else 0.0
        where = f"  not {spans(missed)}" if missed else ""
        print(f"{name:42} {len(lines):6d} {100 * share:7.1f}%{where}")
        if share < SHARE_MIN:
            low.append(name)
    if low:
        print(
            f"error: the corpus reaches less than {SHARE_MIN:.0%} of {', '.join(low)} (see above for the lines) add inputs in fuzz/make_corpus.py",
            file=sys.stderr,
        )
    return 1 if low else 0


def spans(lines: Iterable[int]) -> str:
    """`3-5, 9`"""
    parts: list[list[int]] = []
    for line in lines:
        if parts and line == parts[-1][-1] + 1:
            parts[-1].append(line)
        else:
            parts.append([line])
    texts = [str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts]
    return ", ".join(texts[:MISSED_SHOWN]) + (" ..." if len(texts) > MISSED_SHOWN else "")


if __name__ == "__main__":
    sys.exit(main())
