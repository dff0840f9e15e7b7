#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/rich-map.csv (where each photomultiplier is) and docs/finder-cuts.md (every cut with its default) from the code.

scripts/make_rich_pages.py [--check]   --check writes nothing and ends with 1 if a file is not what it would write.
"""

from __future__ import annotations

import argparse
import sys
import typing
from pathlib import Path

from nanet.config.base import Model
from nanet.config.components import Finder
from nanet.config.rich import Cuts
from nanet.rich import pm_map

DOCS = Path(__file__).parents[1] / "docs"
HEAD = """# The cuts of each finder, with their defaults

Written from the configuration's models by `scripts/make_rich_pages.py`: do not edit.
What the finders do, and from which source: [detector-map.md](detector-map.md#the-finders).
"""


def map_csv() -> str:
    """A line for each channel that has a photomultiplier: channel, board, pm, disk, half, i, j, x_mm, y_mm."""
    lines = ["channel,board,pm,disk,half,i,j,x_mm,y_mm"]
    for board in range(4):
        for pm, (x, y) in enumerate(pm_map.half_disk_mm(board % 2).tolist()):
            i, j = round(x / pm_map.UNIT_X_MM), round(y / pm_map.UNIT_Y_MM)
            channel = board * pm_map.CHANNELS_PER_BOARD + pm
            lines.append(f"{channel},{board},{pm},{board // 2},{board % 2},{i},{j},{x:.0f},{y:.4f}")
    return "\n".join(lines) + "\n"


def cuts_table(model: type[Model]) -> str:
    """The keys of a model as a Markdown table: cut, default, what it does."""
    lines = ["| key | default | |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        if name == "name" or str(field.description).startswith(("Old name", "Not used")):
            continue
        default = "none" if field.default is None else f"{field.default:g}"
        lines.append(f"| `{name}` | {default} | {field.description} |")
    return "\n".join(lines)


def cuts_page() -> str:
    """docs/finder-cuts.md: the cuts on a ring, then those of each finder."""
    parts = [HEAD, "## processor.cuts\nWhen a ring counts in the answer, whichever finder found it.\n\n" + cuts_table(Cuts)]
    finders = typing.get_args(typing.get_args(Finder)[0])
    for finder in sorted(finders, key=lambda model: str(model.model_fields["name"].default)):
        summary = (finder.__doc__ or "").strip()
        has_cuts = len(finder.model_fields) > 1
        parts.append(
            f"## {finder.model_fields['name'].default}\n{summary}\n\n" + (cuts_table(finder) if has_cuts else "It has no cuts.")
        )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def pages() -> dict[str, str]:
    """What each file below docs/ has to be."""
    return {"rich-map.csv": map_csv(), "finder-cuts.md": cuts_page()}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(arguments).check
    stale = [name for name, text in pages().items() if not (DOCS / name).exists() or (DOCS / name).read_text() != text]
    for name in stale:
        if check:
            print(f"docs/{name} is not what the code says: run scripts/make_rich_pages.py", file=sys.stderr)
        else:
            (DOCS / name).write_text(pages()[name])
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
