# SPDX-License-Identifier: Apache-2.0
"""The token of an exposure: from a file or the environment, never from the command line, where every process of the machine could read it."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from nanet._core import SetupError

VARIABLE = "NANET_RDMA_TOKEN"
MAKE = "(umask 077; od -An -N8 -tx8 /dev/urandom >FILE)"


def read_token(file: Path | None) -> int:
    """The token of a file, else of the environment, else 0: none. Raises SetupError."""
    if file is None:
        text = os.environ.get(VARIABLE)
        return 0 if text is None else parse_token(text, VARIABLE)
    try:
        with file.open(encoding="ascii") as opened:
            if os.fstat(opened.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise SetupError(f"token file {file} is not used (others than its owner may open it) chmod 600 {file}")
            return parse_token(opened.read(64), str(file))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SetupError(f"token file {file} cannot be read ({why}) make one with {MAKE}") from None


def parse_token(text: str, source: str) -> int:
    """1 to 16 hexadecimal digits, not all 0. Does not repeat what it was given: it may be a token with a slip."""
    if re.fullmatch(r"[0-9a-fA-F]{1,16}", text.strip()) is None or int(text, 16) == 0:
        raise SetupError(f"no token in {source} (it has 1 to 16 hexadecimal digits, not all 0) make one with {MAKE}")
    return int(text, 16)
