#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many places a guest has to touch, and how the house is divided: the figures of docs/design/doors.md.

    scripts/count_doors.py            a table
    scripts/count_doors.py --json     the same for programs
    scripts/count_doors.py --check    one line for each count above its limit; exit status 1 if there is one

Guests are those who came last: a format (M2EGP), a finder (triplets), a link (UCX). A file of the product that names one and is not its own is a
place that had to be touched for it. Keys are counted the same way. It reads what git tracks, and runs nothing.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("src/", "include/", "python/", "cmake/", "CMakeLists.txt", "gateware/rtl/", "gateware/model/", "gateware/registers/")
CODE = (".cpp", ".hpp", ".cu", ".cuh", ".py", ".sv", ".cmake", ".txt", ".rdl", ".c", ".h")
GENERATED = re.compile(r"\bdo not edit\b|@generated")
GUESTS = {  # its name, and what its own files have in their path
    "format M2EGP": (r"m2egp", r"m2egp|na62/"),
    "finder triplets": (
        r"TripletsCuts|\"triplets\"|triplets\.(?:hpp|cuh)|FinderKind::triplets|\btripls \w+ \w+ triplets",
        r"triplets",
    ),
    "link UCX": (r"ucx", r"ucx|rdma|tiles"),
}
KEYS = ("busy_poll_us", "socket_buffer_bytes", "packet_bytes_max", "zero_copy", "open_events_max", "timeout_us")
DETECTOR = re.compile(r"na62|rich|\bmgp|m2egp|\bmtp", re.IGNORECASE)
NEUTRAL = ("include/nanet/contract.hpp", "include/nanet/flow/", "src/flow/", "include/nanet/engine/", "src/engine/")


LIMITS = {  # what a change may not make worse; lower one when it can be
    "format M2EGP": 9,
    "finder triplets": 4,
    "link UCX": 7,
    "files of contract, flow and engine that name NA62's detector or formats": 0,
    "headers under include": 106,  # seven of them KM3NeT's, a second detector beside NA62; each kind of link has one
    "rooms": 23,  # with km3 and torus
    "arrows": 86,
    "floors": 10,
    "rooms in circles": 0,
}


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def product(files: Iterable[Path]) -> dict[str, str]:
    """Text by path of what is written by hand."""
    found = {}
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(PRODUCT) and name.endswith(CODE):
            text = path.read_text(encoding="utf-8", errors="replace")
            if not GENERATED.search(text[:400]):
                found[name] = text
    return found


def guests(texts: dict[str, str]) -> dict[str, int]:
    """Files that name each guest and are not its own."""
    return {
        guest: sum(
            1 for path, text in texts.items() if re.search(name, text, re.IGNORECASE) and not re.search(own, path, re.IGNORECASE)
        )
        for guest, (name, own) in GUESTS.items()
    }


def keys(texts: dict[str, str]) -> dict[str, int]:
    """Files that name each key of a configuration."""
    return {key: sum(1 for text in texts.values() if re.search(rf"\b{key}\b", text)) for key in KEYS}


def rooms(texts: dict[str, str]) -> dict[str, int]:
    """The Python package by folder, a loose file being a room of its own: rooms, arrows, floors, and rooms in circles."""
    modules = {path: ast.parse(text) for path, text in texts.items() if path.startswith("python/nanet/") and path.endswith(".py")}
    room_of = {path: room(path) for path in modules}
    arrows = {
        (room_of[path], to)
        for path, tree in modules.items()
        for name in imported(tree)
        if (to := room(f"python/{name.replace('.', '/')}.py")) in set(room_of.values()) and to != room_of[path]
    }
    below: dict[str, set[str]] = {one: {b for a, b in arrows if a == one} for one in set(room_of.values())}
    circles = sum(one in reach(one, below) for one in below)
    return {"rooms": len(below), "arrows": len(arrows), "floors": floors(below), "rooms in circles": circles}


def room(path: str) -> str:
    parts = Path(path).parts[2:]
    return parts[0].removesuffix(".py")


def imported(tree: ast.Module) -> set[str]:
    """Modules of nanet that are imported anywhere in a module; `from nanet import x` names nanet.x."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("nanet.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "nanet":
            found |= {f"nanet.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nanet."):
            found.add(node.module or "")
    return found


def reach(one: str, below: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    left = list(below[one])
    while left:
        next_one = left.pop()
        if next_one not in seen:
            seen.add(next_one)
            left += below[next_one]
    return seen


def floors(below: dict[str, set[str]]) -> int:
    """How many rooms stand on one another; those of a circle stand on one floor."""
    heights: dict[str, int] = {}

    def height(one: str, path: tuple[str, ...]) -> int:
        if one not in heights:
            heights[one] = 1 + max((height(b, (*path, one)) for b in below[one] if b not in path and b != one), default=0)
        return heights[one]

    return max(height(one, ()) for one in below)


def figures() -> dict[str, dict[str, int]]:
    texts = product(tracked())
    neutral = [path for path, text in texts.items() if path.startswith(NEUTRAL) and DETECTOR.search(text)]
    headers = [path for path in texts if path.startswith("include/")]
    return {
        "files that a guest touched": guests(texts),
        "files that name a key": keys(texts),
        "the house": {
            "files of contract, flow and engine that name NA62's detector or formats": len(neutral),
            "headers under include": len(headers),
            "hand-written product lines": sum(text.count("\n") for text in texts.values()),
        },
        "the Python package": rooms(texts),
    }


def check(counts: dict[str, int]) -> int:
    above = [(name, limit) for name, limit in LIMITS.items() if counts[name] > limit]
    for name, limit in above:
        print(f"error: {counts[name]} {name} (at most {limit}) see docs/design/doors.md", file=sys.stderr)
    return 1 if above else 0


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--json"], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    found = figures()
    if arguments == ["--json"]:
        print(json.dumps(found, indent=2))
        return 0
    if arguments == ["--check"]:
        return check({name: count for rows in found.values() for name, count in rows.items()})
    for title, rows in found.items():
        print(title)
        for name, value in rows.items():
            print(f"  {name:72} {value:>8,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
