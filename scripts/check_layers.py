#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses what breaks the structure of the source tree, one line per finding: `path:line: error: problem (why) suggestion`.

C++      an include or a linked library that points up (LAYERS), a vendor header outside its back-end folder (VENDOR_HEADERS), `__global__`
         outside the folders of KERNELS, code for one GPU architecture, I/O or a clock in a folder that has neither (PURE, CLOCKS)
Python   a module in no room, an import that points up inside nanet (PYTHON_LAYERS), a library outside the one module that may use it
any      no SPDX line at the head, more than 800 lines (more than 600: a warning; not for what a script made), marks of unfinished or skipped work

Exit status: 0 nothing found (warnings do not count), 1 something was found, 2 usage. Only files are read that git knows or
would add; outside a git tree, all files.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# Folder of src/ and include/nanet/ -> folders it may include beside itself. docs/design/dataflow.md says the same in words.
LAYERS: dict[str, set[str]] = {
    "base": set(),
    "config": set(),  # how components describe themselves: for every room whose components can be configured
    "wire": {"base"},
    "format": {"config", "wire"},  # formats that a configuration declares
    "flow": set(),
    "event": {"wire"},
    "rich": {"config", "wire", "event"},
    "km3": {"config", "wire"},
    "l0tp": {"config", "wire"},
    "link": {"config", "flow", "base"},
    "rdma": {"flow"},
    "stencil": {"flow", "base"},
    "ranks": {"flow", "stencil"},
    "tiles": {"flow", "stencil", "ranks", "rdma"},
    "emulate": {"config", "wire", "flow", "event", "rich", "link"},
    "km3_emulate": {"config", "flow", "link", "km3"},
    "engine": {"base", "config", "format", "flow", "event", "link", "gpu"},  # names no detector and no format
    "na62": {"config", "wire", "flow", "event", "rich", "gpu", "engine"},
    "km3_engine": {"config", "flow", "engine", "km3"},
    "trigger": {"config", "wire", "flow", "link", "l0tp"},
    "gpu": {"config", "wire", "flow", "event", "rich"},
    "stencil_gpu": {"flow", "base", "stencil", "gpu"},
    "km3_gpu": {"km3", "gpu"},
}
# A back-end folder, which is loaded or linked by itself, may include more than the rest of its layer.
BACK_END_LAYERS: dict[str, set[str]] = {"link/ucx": {"rdma"}}
SEAMS = {
    "contract.hpp",
    "host_device.hpp",
    "setup_error.hpp",
}  # include/nanet/*.hpp: for every folder, include no folder

KERNELS = ("src/gpu/kernels/", "src/stencil_gpu/kernels/", "src/km3_gpu/kernels/")
# Include path -> beginnings of the paths (below src/ and include/nanet/) that may name it.
VENDOR_HEADERS: list[tuple[str, tuple[str, ...]]] = [
    (r"linux/if_xdp\.h|xdp/|bpf/", ("link/xdp",)),
    (r"rte_", ("link/dpdk",)),
    (r"pcap[./]", ("link/pcap",)),
    (r"verilated|Vnanet", ("link/gateware",)),
    (r"cuda|cub/|cooperative_groups|nvrtc|nvml|thrust/", ("gpu/", "stencil_gpu/", "km3_gpu/")),
    (r"uc[mpst]/|infiniband/|rdma/", ("rdma/",)),
    (r"sys/socket\.h|netinet/|arpa/inet\.h|linux/udp\.h|linux/errqueue\.h", ("link/", "rdma/")),
    (r"nanobind/|Python\.h", ()),
    (r"gtest/|gmock/|benchmark/", ()),
]
PURE = {"wire", "format", "event", "rich", "l0tp", "km3", "stencil"}  # no I/O, no clock: data and time are arguments
IMPURE_HEADERS = {
    "unistd.h",
    "fcntl.h",
    "poll.h",
    "stdio.h",
    "time.h",
    "cstdio",
    "ctime",
    "chrono",
    "fstream",
    "iostream",
    "thread",
}
THREADS = ("stencil/team",)  # what may make threads in a pure folder: the team that shares a sweep
# What may read a clock: the loops that run a thread, the recorder, which stamps packets with the time of day, and the waits, with
# a limit, for a GPU to end and for a remote node; ranks and tiles also measure what moving their rows costs.
CLOCKS = (
    "flow/clock",
    "engine/",
    "na62/event_forwarder",
    "trigger/",
    "emulate/emulator",
    "km3_emulate/tower",
    "link/udp",
    "link/gateware/ethernet_device",
    "link/pcap/recorder",
    "link/pcap/replay",
    "gpu/event_processor",
    "rdma/",
    "ranks/",
    "tiles/",
)
CLOCK_CALL = (
    r"\bclock_gettime\s*\(|\bclock_now_ns\s*\(|\b(?:steady|system|high_resolution)_clock::now\b|\bgettimeofday\s*\(|__rdtscp?\b"
)

# Room of the package (a folder of python/nanet) -> rooms it may import beside itself. Native modules (`_core`) stand below all.
# The names that nanet/__init__.py offers come from any room, and are loaded when they are used.
PYTHON_LAYERS: dict[str, set[str]] = {
    "wire": set(),
    "config": {"wire"},
    "machine": {"config"},
    "format": {"config", "result"},
    "port": {"config"},
    "rich": {"config"},
    "km3": {"config", "machine", "port", "result"},
    "result": {"config", "machine", "rich"},
    "tune": {"config", "machine"},
    "doctor": {"config", "machine", "result", "tune"},
    "rdma": {"machine", "result"},
    "torus": set(),
    "stencil": {"config", "machine", "rdma", "result", "torus"},
    "metrics": {"config", "machine", "result"},
    "physics": {"config", "result", "rich"},
    "run": {"config", "machine", "metrics", "rdma", "result"},
    "loop": {"config", "machine", "result", "run", "tune"},
    "bench": {"config", "loop", "machine", "physics", "port", "result", "rich", "run", "wire"},
    "soak": {"bench", "config", "loop", "machine", "result", "run"},
    "report": {"bench", "loop", "result", "rich"},
}
PYTHON_DOORS = {"__init__", "__main__", "cli"}  # stand above all rooms
PYTHON_VENDORS = {"typer": {"cli"}, "circle_fit": {"bench"}, "spead2": {"bench"}, "sqlalchemy": {"km3"}}

SOURCE_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".py", ".sh", ".sv", ".cmake"}
SOURCE_NAMES = {"CMakeLists.txt", "Makefile", "run"}
CXX_SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh"}
WARN_LINES, MAX_LINES = 600, 800
# Bracketed letters, so that this file does not find itself.
UNFINISHED = r"\b(?:TO[D]O|FIX[M]E|XX[X])\b|\bnot implemente[d]\b|\bunimplemente[d]\b"
SKIPPED = r"\bGTEST_SKI[P]\b|\bDISABLE[D]_\w|\bpytest\.(?:mark\.)?(?:ski[p]|xfai[l]|importorski[p])|\bunittest\.ski[p]"


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    text: str
    severity: str = "error"

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.severity}: {self.text}"


@dataclass(frozen=True)
class Source:
    path: str  # relative to the root, with slashes
    lines: list[str]


def main(arguments: list[str]) -> int:
    if len(arguments) > 1:
        print("usage: check_layers.py [ROOT]", file=sys.stderr)
        return 2
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    sources = list(read_sources(root))
    findings = check(sources)
    for finding in findings:
        print(finding)
    errors = sum(finding.severity == "error" for finding in findings)
    print(f"check_layers: {len(sources)} files, {errors} errors, {len(findings) - errors} warnings")
    return 1 if errors else 0


def check(sources: list[Source]) -> list[Finding]:
    findings: list[Finding] = []
    for source in sources:
        checks: list[Callable[[Source], Iterator[Finding]]] = [check_head_and_size, check_marks]
        suffix = suffix_of(source.path)
        if suffix in CXX_SUFFIXES:
            checks.append(check_cxx)
        if source.path == "CMakeLists.txt":
            checks.append(check_links)
        if suffix == ".py" and source.path.startswith("python/nanet/"):
            checks.append(check_python)
        for one in checks:
            findings.extend(one(source))
    return findings


def read_sources(root: Path) -> Iterator[Source]:
    for path in list_files(root):
        full = root / path
        if (suffix_of(path) in SOURCE_SUFFIXES or full.name in SOURCE_NAMES) and full.is_file():
            yield Source(path, full.read_text(encoding="utf-8").splitlines())


def suffix_of(path: str) -> str:
    """The kind of a file; what CMake makes a source from (`.cu.in`) is of that source's kind."""
    return Path(path.removesuffix(".in")).suffix


def list_files(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, check=False, text=True)
    if listed.returncode == 0:
        return sorted(set(filter(None, listed.stdout.split("\0"))))
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def check_head_and_size(source: Source) -> Iterator[Finding]:
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in source.lines[:2]):
        yield Finding(
            source.path,
            1,
            "no licence line (each source says its licence) begin with SPDX-License-Identifier: Apache-2.0",
        )
    count = len(source.lines)
    made = any("do not edit" in line or "@generated" in line for line in source.lines[:3])
    if count > WARN_LINES and not made:
        severity = "error" if count > MAX_LINES else "warning"
        limit = MAX_LINES if count > MAX_LINES else WARN_LINES
        yield Finding(source.path, count, f"{count} lines (more than {limit} is two ideas) split the file", severity)


def check_marks(source: Source) -> Iterator[Finding]:
    for number, line in enumerate(source.lines, 1):
        if re.search(UNFINISHED, line):
            yield Finding(
                source.path,
                number,
                "a mark of unfinished work (what is merged is finished) finish it, or write an issue",
            )
        if re.search(SKIPPED, line):
            yield Finding(source.path, number, "a test that can be skipped (it would pass unseen) make it run, or take it out")


def check_cxx(source: Source) -> Iterator[Finding]:
    place = place_of(source.path)
    for number, line in enumerate(source.lines, 1):
        for text in cxx_line_problems(source.path, place, line):
            yield Finding(source.path, number, text)


def place_of(path: str) -> str | None:
    """The place in the library, such as `link/udp_sender.cpp`; None for tests, benchmarks, bindings and other programs."""
    for prefix in ("src/", "include/nanet/"):
        if path.startswith(prefix):
            return path.removeprefix(prefix)
    return None


def cxx_line_problems(path: str, place: str | None, line: str) -> Iterator[str]:
    include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
    if include:
        yield from include_problems(place, include[1])
        if path.startswith("include/") and '#include "' in line and not include[1].startswith("nanet/"):
            yield f"includes {include[1]} (it is installed, that is not) move one of the two, between include/nanet and src"
    code = line.partition("//")[0]
    if re.search(r"\b__global__\b", code) and not path.startswith(KERNELS):
        yield f"__global__ here (kernels are glue, in {' and '.join(KERNELS)} only) write a host+device function and map it there"
    if "__CUDA_ARCH__" in code and code.strip() != "#ifdef __CUDA_ARCH__":
        yield "code for one GPU architecture (what compiles for the oldest must stand for all) ask only #ifdef __CUDA_ARCH__"
    if place is not None and not place.startswith(CLOCKS) and re.search(CLOCK_CALL, code):
        yield f"reads a clock (only {', '.join(CLOCKS)} do) take now_ns as an argument"


def include_problems(place: str | None, header: str) -> Iterator[str]:
    if place is None:
        return  # stands above every layer
    if ".." in header.split("/"):
        yield f"includes {header} (a path upward hides the layer) write <nanet/FOLDER/FILE>"
    layer = place.rpartition("/")[0].partition("/")[0]  # empty for a seam, in include/nanet itself
    if layer and layer not in LAYERS:
        yield f"folder {layer} is not a known layer (its place in the order must be said) add it to LAYERS of check_layers.py"
    own = header.removeprefix("nanet/")
    if own != header or (own.partition("/")[0] in LAYERS and own.endswith((".hpp", ".cuh"))):
        yield from own_include_problems(layer, BACK_END_LAYERS.get(place.rpartition("/")[0], set()), own)
        return
    for pattern, homes in VENDOR_HEADERS:
        if re.match(pattern, header) and not place.startswith(homes):
            named = "src/" + " or src/".join(homes) if homes else "tests, benchmarks and bindings"
            yield f"includes {header} (that belongs to {named}) reach it through an interface of this project"
    makes_threads = header == "thread" and place.startswith(THREADS)
    if layer in PURE and not makes_threads and (header in IMPURE_HEADERS or header.startswith("sys/")):
        yield f"includes {header} ({layer} has no I/O, no thread and no clock) take data and time as arguments"


def own_include_problems(layer: str, more: set[str], header: str) -> Iterator[str]:
    target = header.partition("/")[0]
    if target in SEAMS or target == layer:
        return
    if not layer:
        yield f"includes {header} (a seam stands below every folder) move it into a folder"
    elif target not in LAYERS.get(layer, set()) | more:
        allowed = ", ".join(sorted(LAYERS.get(layer, set()) | more)) or "none"
        yield f"includes {header} ({layer} may include: {allowed}) turn the dependency round, or pass the value in"


def check_links(source: Source) -> Iterator[Finding]:
    """`nanet_library(NAME DEPENDENCY...)`, and `nanet_cuda_library`, may name the same layers as an include."""
    for number, line in enumerate(source.lines, 1):
        call = re.match(r"\s*nanet_(?:cuda_)?library\((\w+)\s*([^)]*)\)", line)
        for target in call[2].split() if call else []:
            if call and "::" not in target and target not in LAYERS.get(call[1], set()):
                text = f"links {call[1]} to {target} (LAYERS of check_layers.py does not) turn the dependency round, or change both"
                yield Finding(source.path, number, text)


def check_python(source: Source) -> Iterator[Finding]:
    relative = Path(source.path).relative_to("python/nanet")
    own = relative.parts[0].removesuffix(".py")
    if own not in PYTHON_LAYERS and own not in PYTHON_DOORS and own != "bindings":
        text = "is in no room (PYTHON_LAYERS of check_layers.py lists them) put it into one, or add the room there"
        yield Finding(source.path, 1, text)
    try:
        tree = ast.parse("\n".join(source.lines))
    except SyntaxError as error:
        yield Finding(source.path, error.lineno or 1, f"cannot be read ({error.msg}) mend the syntax")
        return
    for node in ast.walk(tree):
        for name in imported_names(node, relative):
            text = python_problem(own, name)
            if text:
                yield Finding(source.path, node.lineno, text)  # type: ignore[attr-defined]


def imported_names(node: ast.AST, relative: Path) -> Iterator[str]:
    """Full names of what a statement imports, such as `nanet.config`; relative imports are resolved."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            package = ("nanet", *relative.parts[:-1])
            parents = package[: len(package) - node.level + 1]
            base = ".".join((*parents, base) if base else parents)
        if base == "nanet":
            yield from (f"nanet.{alias.name}" for alias in node.names)
        else:
            yield base


def python_problem(own: str, name: str) -> str | None:
    root, _, rest = name.partition(".")
    if root in PYTHON_VENDORS and own not in PYTHON_VENDORS[root]:
        return f"imports {root} (only nanet.{', nanet.'.join(sorted(PYTHON_VENDORS[root]))} may) call that module instead"
    target = rest.partition(".")[0]
    if root != "nanet" or not target or target == own or target.startswith("_"):
        return None
    if target == "cli" and own != "__main__":
        return f"imports {name} (nothing stands above the command line) move what is shared below it"
    if target in PYTHON_LAYERS and target not in PYTHON_LAYERS.get(own, PYTHON_LAYERS):
        allowed = ", ".join(sorted(PYTHON_LAYERS[own])) or "none"
        return f"imports {name} (nanet.{own} may import: {allowed}) turn the dependency round, or pass the value in"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
