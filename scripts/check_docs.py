#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every link of the tree's Markdown pages: the file is there, and the heading that an anchor names. No network.

scripts/check_docs.py [ROOT]   Prints a line for each dead link, `page:line: link (why)`, and ends with 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)")
FENCE = re.compile(r"^\s*(```|~~~)")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)  # https:, mailto:


def text_lines(page: Path) -> Iterator[tuple[int, str]]:
    """Lines of a page with their numbers, those between fences left out."""
    fence = ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        found = FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1] == fence:
            fence = ""
        elif not fence:
            yield number, line


def anchor_of(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, without marks, blanks as hyphens."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of a page; a heading that comes again gets -1, -2."""
    found: dict[str, int] = {}
    names = set()
    for _, line in text_lines(page):
        heading = HEADING.match(line)
        names |= set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
        if heading:
            name = anchor_of(heading[1])
            count = found.get(name, 0)
            found[name] = count + 1
            names.add(f"{name}-{count}" if count else name)
    return frozenset(names)


def problem_of(page: Path, link: str, root: Path) -> str | None:
    """Why a link of a page leads nowhere; None if it leads somewhere, or off the tree by a scheme."""
    if ELSEWHERE.match(link):
        return None
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.is_relative_to(root):
        return "outside of the tree"
    if not target.exists():
        return "no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return "no such heading"
    return None


def pages(root: Path) -> list[Path]:
    """The Markdown pages below root, but for those in hidden folders and in what is built."""
    found = (page.relative_to(root) for page in sorted(root.rglob("*.md")))
    return [root / page for page in found if not any(part.startswith(".") or part == "build" for part in page.parts)]


def dead_links(root: Path) -> list[str]:
    """A line for each dead link of the pages below root."""
    return [
        f"{page.relative_to(root)}:{number}: {link} ({why})"
        for page in pages(root)
        for number, line in text_lines(page)
        for link in (one or other for one, other in LINK.findall(CODE.sub("", line)))
        if (why := problem_of(page, link, root))
    ]


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else Path(__file__).parents[1]).resolve()
    dead = dead_links(root)
    print("\n".join(dead), end="\n" if dead else "")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
