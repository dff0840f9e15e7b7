# SPDX-License-Identifier: Apache-2.0
"""The programs that measure simulated gateware: one object of JSON on the standard output of each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

WRONG = 1  # exit status: measured, and not as it must be


def said_by(
    program: Path,
    arguments: Sequence[str],
    keys: Collection[str],
    error: type[RuntimeError],
    longest_s: float,
    *,
    passes_errors: bool = False,
) -> Any:
    """What the program says, which has these keys. passes_errors: a line `error: ...` of its own is the error's text.

    Raises `error`: "problem (why) suggestion".
    """
    if not program.is_file():
        raise error(
            f"{program} is missing (it is not built, or this is not the repository's root) "
            "run make links bench-smoke in a clone, which builds it, or name it with --program"
        )
    try:
        done = subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=longest_s, check=False)
        said: Any = json.loads(done.stdout) if done.returncode in (0, WRONG) and done.stdout else {}
    except (subprocess.TimeoutExpired, OSError, json.JSONDecodeError) as problem:
        raise error(f"{program.name} gives no result ({problem}) build it again") from None
    last = (done.stderr.strip().splitlines()[-1:] or ["it said nothing"])[0]
    if passes_errors and last.startswith("error: "):
        raise error(last.removeprefix("error: "))
    if set(said) != set(keys):
        raise error(f"{program.name} gives no result ({last}) exit status {done.returncode}")
    return said
