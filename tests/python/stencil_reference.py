# SPDX-License-Identifier: Apache-2.0
"""What the tests of the stencil share: the formula in numpy, the command, and whether this nanet can move tiles."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from nanet import SetupError
from nanet.stencil import field as stencil_field
from nanet.stencil.ranks import native_tiles
from numpy.typing import NDArray


def reference(field: NDArray[Any], sweeps: int) -> NDArray[Any]:
    """One whole sweep after the other."""
    field = field.copy()
    for _ in range(sweeps):
        new = field.copy()
        new[1:-1, 1:-1] = (field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]) / field.dtype.type(4)
        field = new
    return field


def reference_crc32(rows: int, columns: int, dtype: str, sweeps: int) -> str:
    """Of the field that `nanet stencil` starts from, swept."""
    return crc32(reference(stencil_field.made_rows(0, rows, columns, dtype), sweeps))


def crc32(field: NDArray[Any]) -> str:
    """As results have it."""
    return stencil_field.crc_of_rows(stencil_field.row_crcs(field))


def words(*arguments: object) -> list[str]:
    """The command line of `nanet stencil`."""
    return [sys.executable, "-m", "nanet", "stencil", *map(str, arguments)]


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs it to the end."""
    return subprocess.run(words(*arguments), capture_output=True, check=False, text=True, timeout=120)


def can_move_tiles(record_property: Callable[[str, object], None]) -> bool:
    """Where it cannot, the summary of the tests counts the test as not run."""
    try:
        native_tiles()
    except SetupError as error:
        record_property("not_run", f"a test of ranks or moved tiles ({error})")
        return False
    return True
