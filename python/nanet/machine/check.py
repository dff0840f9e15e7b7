# SPDX-License-Identifier: Apache-2.0
"""One finding of `nanet doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypedDict

OK, WARN, FAIL = "ok", "warn", "fail"
REINSTALL = "run make setup in a clone, or pip install --force-reinstall nanet"


class CheckKeys(TypedDict):
    """A finding in a result."""

    name: Annotated[str, "what was checked"]
    state: Annotated[str, "`ok`, `warn` or `fail`"]
    found: Annotated[str, "what is there, or why not"]
    mend: Annotated[str, "the command that fixes it, empty when there is nothing to fix"]


@dataclass(frozen=True)
class Check:
    """One finding. `mend` is the command that fixes it, or empty when there is nothing to do."""

    name: str
    state: str
    found: str
    mend: str = ""

    def plain(self) -> CheckKeys:
        """As a result has it."""
        return {"name": self.name, "state": self.state, "found": self.found, "mend": self.mend}


Reader = Callable[[str], str]  # path of a small file of /proc or /sys -> its text, empty where there is none
Lister = Callable[[str], list[str]]  # path of a folder -> the names in it, none if there is no such folder


def why_not_loaded(error: ImportError) -> str:
    """Why the native module is not there, in short."""
    return f"it does not load: {error}" if error.path and error.path.endswith(".so") else "it is not built"
