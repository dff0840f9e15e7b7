# SPDX-License-Identifier: Apache-2.0
"""One finding of `nanet doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True)
class Check:
    """One finding. `mend` is a command, or empty when nothing is to be done."""

    name: str
    state: str
    found: str
    mend: str = ""


Reader = Callable[[str], str]  # path of a small file of /proc or /sys -> its text, empty where there is none
Lister = Callable[[str], list[str]]  # path of a folder -> the names in it, none where there is no such folder
