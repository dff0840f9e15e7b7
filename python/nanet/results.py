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


class JsonFile:
    """Where a result goes; nowhere without a path. Written whole or not at all, unless it had to be opened before."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._opened: TextIO | None = None

    def open(self) -> None:
        """Opens it now, for a process that may no longer do so when it knows the result. Until then the file is empty."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._opened = self._path.open("w", encoding="utf-8")

    def write(self, data: Mapping[str, Any]) -> None:
        """Writes the result. Once."""
        if self._opened is not None:
            with self._opened:
                self._opened.write(_text(data))
        elif self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial = self._path.with_name(self._path.name + ".part")
            partial.write_text(_text(data), encoding="utf-8")
            partial.replace(self._path)


def write_json(path: Path | None, data: Mapping[str, Any]) -> None:
    """Writes `data` to `path`, whole or not at all; nothing without a path."""
    JsonFile(path).write(data)


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
