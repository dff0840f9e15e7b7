# SPDX-License-Identifier: Apache-2.0
"""The configurations on the pages, completed where they are parts, are valid: a word that was exchanged in one is a key or a name that is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from nanet.config import EngineConfig
from pydantic import ValidationError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OF_THE_ENGINE = {"links", "processor", "answers", "run", "cpu_cores", "memory_regions", "metrics", "waiting", "topology"}
OF_THIS_MACHINE = ("there is no CPU core", "plug-in libmine.so cannot be read")


def configurations() -> list[Any]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for block in re.finditer(r"```yaml\n(.*?)```", text, re.DOTALL):
            said = yaml.safe_load(block.group(1))
            if isinstance(said, dict) and OF_THE_ENGINE & set(said) and "..." not in block.group(1):
                name = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, block.start()) + 2}"
                found.append(pytest.param(said, id=name))
    return found


def completed(said: dict[str, Any]) -> dict[str, Any]:
    """A part of a configuration as a whole one that has what it does not say."""
    boards = {"name": "boards", "endpoint": "udp://127.0.0.1:6299", "memory_region": "m"}
    links = [boards | link for link in said.get("links") or [{}]]
    for link in links:
        if "protocol" not in link and "sources" not in link:
            link["sources"] = [{"name": "rich"}]
    regions = [{"name": name, "buffer_bytes": 1 << 20} for name in {link["memory_region"]: 1 for link in links}]
    whole = {"version": 1, "memory_regions": regions, "processor": {"kind": "rich"}}
    return whole | said | {"links": links}


@pytest.mark.parametrize("said", configurations())
def test_a_configuration_of_a_page_is_valid(said: dict[str, Any]) -> None:
    try:
        EngineConfig.model_validate(completed(said))
    except ValidationError as error:
        problems = [one["msg"] for one in error.errors() if not one["msg"].startswith(OF_THIS_MACHINE)]
        assert not problems
