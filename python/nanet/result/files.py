# SPDX-License-Identifier: Apache-2.0
"""Results as files: JSON for programs, CSV rows for figures. docs/json.md describes every key."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nanet.config.base import online_cores
from nanet.machine import facts
from nanet.result import outputs
from nanet.result.build import version
from nanet.result.keys.base import Base

CSV_COLUMNS = ("date", "bench", "case", "name", "value", "unit", "machine")


def base(command: str) -> Base:
    """The keys that every result begins with."""
    return {"nanet": version(), "command": command, "date": now(), "machine": facts.facts()}


def now() -> str:
    """This moment, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_json(path: Path | None, data: Mapping[str, Any]) -> None:
    """Writes `data` to `path`, whole or not at all; nothing without a path. Raises OutputError."""
    if path is not None:
        outputs.write(path, (json.dumps(_finite(data), indent=1, default=_plain, allow_nan=False) + "\n").encode())


def append_csv(path: Path | None, bench: str, rows: Iterable[tuple[str, str, float, str]]) -> None:
    """Appends rows (case, name, value, unit) of one benchmark; nothing without a path. Raises OutputError."""
    if path is None:
        return
    where = f"{facts.cpu_model()}, {len(online_cores())} cores"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [now(), bench, case, name, f"{value:.6g}", unit, where] for case, name, value, unit in rows
    )
    outputs.append(path, text.getvalue().encode(), head=(",".join(CSV_COLUMNS) + "\n").encode())


def _finite(value: Any) -> Any:
    """JSON has neither infinity nor what is no number: null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _finite(_plain(value))
    return value


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
