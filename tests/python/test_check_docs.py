# SPDX-License-Identifier: Apache-2.0
"""scripts/check_docs.py: what it finds on made-up pages, and that the tree's own pages have no dead link."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check(root: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "check_docs.py", root], capture_output=True, text=True, check=False, timeout=60
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def tree(root: Path, **page: str) -> Path:
    for folder in (".venv", "build"):
        (root / folder).mkdir()
        (root / folder / "others.md").write_text("[gone](gone.md)\n")
    for name, text in page.items():
        (root / f"{name}.md").write_text(text)
    return root


def test_the_pages_of_this_tree_have_no_dead_link() -> None:
    assert check(ROOT) == (0, [])


def test_each_kind_of_dead_link_is_named_with_its_line(tmp_path: Path) -> None:
    one = "# One\n[gone](gone.md)\n[part](two.md#three), [here](#nowhere)\n[out](../../etc/passwd)\n[ref]: missing.csv\n"
    assert check(tree(tmp_path, one=one, two="# Two\n")) == (
        1,
        [
            "one.md:2: gone.md (no such file)",
            "one.md:3: two.md#three (no such heading)",
            "one.md:3: #nowhere (no such heading)",
            "one.md:4: ../../etc/passwd (outside of the tree)",
            "one.md:5: missing.csv (no such file)",
        ],
    )


def test_what_leads_somewhere_or_is_no_link_is_left_alone(tmp_path: Path) -> None:
    one = (
        "# `nanet put`: *fast*, (ours) + 2\n## Twice\n## Twice\n## [Linked](two.md) μs\n"
        "[a](#nanet-put-fast-ours--2) [b](#twice-1) [c](two.md#two) [d](https://nowhere.example/x#y) [e](.) [f](#linked-μs)\n"
        "`[g](gone.md)`\n```\n[h](gone.md)\n# Not a heading\n```\n"
    )
    assert check(tree(tmp_path, one=one, two="# Two\n")) == (0, [])
