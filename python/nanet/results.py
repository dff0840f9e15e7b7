# SPDX-License-Identifier: Apache-2.0
"""Results as files: JSON for programs, CSV rows for figures. docs/json.md describes every key."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from nanet import machine, version
from nanet.config import online_cores

CSV_COLUMNS = ("date", "bench", "case", "name", "value", "unit", "machine")


def base(command: str) -> dict[str, Any]:
    """The keys that every result begins with."""
    return {"nanet": version(), "command": command, "date": now(), "machine": machine.facts()}


def now() -> str:
    """This moment, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_json(path: Path | None, data: Mapping[str, Any]) -> None:
    """Writes `data` to `path`, whole or not at all; nothing without a path."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_text(_text(data), encoding="utf-8")
    partial.replace(path)


def open_json(path: Path | None) -> TextIO | None:
    """`path` opened at once, for `fill_json` when this process may no longer open it."""
    if path is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w", encoding="utf-8")


def fill_json(file: TextIO | None, data: Mapping[str, Any]) -> None:
    """Writes `data` to what `open_json` gave, and closes it."""
    if file is not None:
        with file:
            file.write(_text(data))


def append_csv(path: Path | None, bench: str, rows: Iterable[tuple[str, str, float, str]]) -> None:
    """Appends rows (case, name, value, unit) of one benchmark; nothing without a path."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists() or path.stat().st_size == 0
    where = f"{machine.cpu_model()}, {len(online_cores())} cores"
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(CSV_COLUMNS)
        for case, name, value, unit in rows:
            writer.writerow([now(), bench, case, name, f"{value:.6g}", unit, where])


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=1, default=_plain, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return [dict(zip(value.dtype.names, row, strict=True)) for row in value.tolist()]
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"no JSON for a {type(value).__name__}")
