# SPDX-License-Identifier: Apache-2.0
"""The models that are made from what the native components say of their keys."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from nanet import _core
from nanet.config import components
from pydantic import ValidationError

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_config.py"


def test_the_models_are_what_the_components_say() -> None:
    assert subprocess.run([sys.executable, str(SCRIPT), "--check"], check=False).returncode == 0
    own = _core.own_kinds()
    sections = [one["section"] for one in own["links"] if one["section"]]
    finders = [f"{one['name'].capitalize()}Finder" for one in own["finders"]]
    tables = ["LINKS", "PROCESSORS", "PROTOCOLS", "Finder", "LinkSections", *finders]
    assert {*tables, *(one["name"] for one in [*_core.components(), *sections])} == set(components.__all__)


def test_a_rule_is_asked_of_the_component() -> None:
    assert _core.broken_rule("Merge", {"open_events_max": 4096}) is None
    assert _core.broken_rule("Merge", {"open_events_max": 5000}) == (
        "open_events_max", "open_events_max 5000 is not a power of two", "open events are found by masking a hash", "choose 4096 or 8192"
    )  # fmt: skip
    with pytest.raises(ValidationError, match="open_events_max 5000 is not a power of two"):
        components.Merge(open_events_max=5000)


def test_what_the_models_do_not_know_the_component_refuses() -> None:
    with pytest.raises(_core.SetupError, match=r"cannot use windows_us \(there is no such key\)"):
        _core.broken_rule("Merge", {"windows_us": 1})
    with pytest.raises(_core.SetupError, match="no component Bicycle"):
        _core.broken_rule("Bicycle", {})


def test_a_broken_rule_is_told_with_the_line_of_its_key() -> None:
    from nanet.config.errors import ConfigError, parse_document, validated

    text = "window_us: 200\n\nopen_events_max: 5000\n"
    with pytest.raises(ConfigError, match=r"^merge\.yaml:3: open_events_max 5000 is not a power of two"):
        validated(components.Merge, parse_document(text, "merge.yaml"))
