# SPDX-License-Identifier: Apache-2.0
"""Sizes and rates as text. GB is 10^9 bytes, GiB is 2^30; which one is meant is always spelled out."""

from __future__ import annotations

import re

from nanet._core import SetupError

DECIMAL = {"": 1, "B": 1, "KB": 10**3, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def parse_size(text: str) -> int:
    """Bytes of `4096`, `64KiB`, `1.5 GB`. Raises SetupError."""
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?) ?([A-Za-z]*)", text.strip())
    factor = (DECIMAL | BINARY).get(found[2]) if found else None
    size = float(found[1]) * factor if found and factor and "." in found[1] else int(found[1]) * factor if found and factor else -1
    if size < 0 or size != int(size) or size >= 2**63:
        raise SetupError(f"size '{text}' is not a size (a number and B, kB, MB, GB, KiB, MiB or GiB) write 64KiB or 1GB")
    return int(size)


def size_text(size_bytes: int) -> str:
    """Exact and short: `64 KiB`, `1000 B`."""
    for unit, factor in reversed(BINARY.items()):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor} {unit}"
    return f"{size_bytes} B"


def rate_text(bytes_per_s: float) -> str:
    """In both: `1.074 GB/s (1 GiB/s)`."""
    return f"{bytes_per_s / 1e9:.4g} GB/s ({bytes_per_s / 2**30:.4g} GiB/s)"


def both_text(size_bytes: int) -> str:
    """In both: `1.074 GB (1 GiB)`."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    unit, factor = next((unit, factor) for unit, factor in reversed(DECIMAL.items()) if size_bytes >= factor)
    binary, of_it = next(((u, f) for u, f in reversed(BINARY.items()) if size_bytes >= f), ("KiB", 2**10))
    return f"{size_bytes / factor:.4g} {unit} ({size_bytes / of_it:.4g} {binary})"
