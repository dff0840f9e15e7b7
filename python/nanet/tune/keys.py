# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet tune` finds, and does."""

from __future__ import annotations

from typing import Annotated, TypedDict


class ChangeKeys(TypedDict):
    """A value that would be written."""

    target: Annotated[str, "a file below /proc or /sys, or `ethtool IF OPTION`"]
    now: Annotated[str, "as it is read"]
    wanted: Annotated[str, "as it would be written"]


class KnobKeys(TypedDict):
    """One knob."""

    name: Annotated[str, "as in the table"]
    state: Annotated[str, "`ok`, `change` (apply does it), `by hand` (a person must do it, or decide)"]
    now: Annotated[str, "for a person"]
    wanted: Annotated[str, "for a person; `as it is` when nothing is asked of it"]
    why: Annotated[str, "what it is good for"]
    command: Annotated[str, "what a shell would run in place of apply, or advice; empty when there is nothing to do"]
    changes: Annotated[list[ChangeKeys], "what apply writes"]


class StepKeys(TypedDict):
    """A value that was written."""

    name: Annotated[str, "of each value that was written: its knob; the target with `undo`"]
    target: Annotated[str, "as in `knobs[].changes[].target`"]
    before: Annotated[str, "as it was"]
    now: Annotated[str, "read back afterwards"]
    problem: Annotated[str, "why it is not what was wanted; empty when it is"]
