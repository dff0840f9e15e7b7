# SPDX-License-Identifier: Apache-2.0
"""Any text as a configuration: what is no YAML is refused in one line, and what is taken means the same when it is written as JSON and read again."""

from __future__ import annotations

import math
from typing import Any

from fuzz_target import instrumented, run

with instrumented("nanet.config.yaml"):
    from nanet.config import yaml
from nanet.config.errors import ConfigError, parse_document

YAML_KEY_MAX = 1024  # characters of a key on one line (YAML 1.2.2, 7.4.2); JSON has no bound


def check(data: bytes) -> None:
    """As a file of these bytes."""
    if len(data) > 4000:
        return
    text = data.decode("utf-8", "replace")
    try:
        found = parse_document(text, "a.yaml").data
    except ConfigError as error:
        assert len(error.problems) == 1 and error.problems[0].isprintable(), "a problem is one line"
        return
    budget = [yaml.VALUES_MAX]
    require_plain(found, 0, budget)
    if text_of(found) is not None:
        again = parse_document(text_of(found) or "", "a.json").data
        assert same(again, found), "JSON is YAML"


def require_plain(value: Any, depth: int, budget: list[int]) -> None:
    """Nothing but what a configuration is made of, within the bounds."""
    budget[0] -= 1
    assert depth < yaml.DEPTH_MAX and budget[0] >= 0, "the bounds hold"
    if isinstance(value, dict):
        for key, one in value.items():
            assert type(key) is str, "keys are text"
            require_plain(one, depth + 1, budget)
    elif isinstance(value, list):
        for one in value:
            require_plain(one, depth + 1, budget)
    else:
        assert value is None or type(value) in (str, int, float, bool), "values are plain"


def text_of(value: Any) -> str | None:
    """As JSON, written here; None: JSON has no such number, or YAML no such key."""
    if isinstance(value, dict):
        pairs = [(text_of(key), text_of(one)) for key, one in value.items()]
        if any(len(key or "") > YAML_KEY_MAX for key, _ in pairs):
            return None
        return None if any(None in pair for pair in pairs) else "{" + ", ".join(f"{key}: {one}" for key, one in pairs) + "}"
    if isinstance(value, list):
        items = [text_of(one) for one in value]
        return None if None in items else "[" + ", ".join(str(one) for one in items) + "]"
    if isinstance(value, str):
        return '"' + "".join(one if one.isalnum() and one.isascii() else f"\\U{ord(one):08x}" for one in value) + '"'
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)


def same(a: Any, b: Any) -> bool:
    """1, 1.0 and true are three."""
    return repr(a) == repr(b)


if __name__ == "__main__":
    run(check)
