# SPDX-License-Identifier: Apache-2.0
"""The NIC's counters by name, as registers/counts.toml has them."""

import tomllib
from pathlib import Path

ROWS = tomllib.loads((Path(__file__).resolve().parents[2] / "registers" / "counts.toml").read_text(encoding="utf-8"))


def numbers_of(row: str, *names: str) -> dict[str, int]:
    """Which counter of its row each of these is."""
    return {name: ROWS[row]["names"].index(name) for name in names}
