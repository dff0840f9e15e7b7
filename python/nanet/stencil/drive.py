# SPDX-License-Identifier: Apache-2.0
"""The loop around the sweeps of `nanet stencil`: norms, the end by a norm, checkpoints, a progress bar. The same for one process and for ranks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from nanet.stencil.field import check

Norm = tuple[int, float, float]
"""Sweep, max |new - old|, sqrt(sum (new - old)^2)."""
UPDATES_A_CALL = 2e9  # about a second of native work, then Ctrl-C is seen and the bar moves


class Sweeps(Protocol):
    """A field that is being swept."""

    def advance(self, sweeps: int) -> list[Norm]:
        """Sweeps; returns the norms taken."""


@dataclass(frozen=True)
class Plan:
    """What the loop shall do."""

    sweeps: int  # of this run
    sweeps_done: int = 0  # before it
    sweeps_at_once: int = 1  # of one call, but for the last
    norm_every: int = 0
    until: float | None = None  # ends when the largest change of a sweep is at most that
    checkpoint_every: int = 0  # 0: at the end only
    has_checkpoint: bool = False
    progress: bool = False

    def check(self) -> None:
        """Raises SetupError where it makes no sense."""
        text = f"the sweeps cannot end at a norm of {self.until}"
        check(self.until is None or self.norm_every > 0, text, "none is taken", "give --norm-every too")
        text = f"no checkpoint can be written every {self.checkpoint_every} sweeps"
        check(self.checkpoint_every == 0 or self.has_checkpoint, text, "no file is named", "give --checkpoint too")


@dataclass
class Driven:
    """What the loop did."""

    sweeps_done: int
    norms: list[Norm] = field(default_factory=list)
    compute_s: float = 0.0
    converged: bool = False
    checkpoints: int = 0


def at_once(cells: int, sweeps_per_pass: int) -> int:
    """Sweeps of one call, whole passes of about UPDATES_A_CALL."""
    return sweeps_per_pass * (1 + int(UPDATES_A_CALL / (max(cells, 1) * sweeps_per_pass)))


def drive(sweeps: Sweeps, plan: Plan, save: Callable[[int], None]) -> Driven:
    """Sweeps as planned; save(sweeps_done) writes a checkpoint."""
    plan.check()
    driven = Driven(plan.sweeps_done)
    end = plan.sweeps_done + plan.sweeps
    with _bar(plan) as show:
        while driven.sweeps_done < end and not driven.converged:
            step = _next_step(plan, driven.sweeps_done, end)
            begin_s = time.perf_counter()
            norms = sweeps.advance(step)
            driven.compute_s += time.perf_counter() - begin_s
            driven.norms += norms
            driven.sweeps_done += step
            driven.converged = plan.until is not None and any(norm[1] <= plan.until for norm in norms)
            show(driven.sweeps_done - plan.sweeps_done, norms[-1] if norms else None)
            at_end = driven.sweeps_done == end or driven.converged
            is_due = plan.checkpoint_every > 0 and driven.sweeps_done % plan.checkpoint_every == 0
            if plan.has_checkpoint and (at_end or is_due):
                save(driven.sweeps_done)
                driven.checkpoints += 1
    return driven


def _next_step(plan: Plan, done: int, end: int) -> int:
    """To whatever comes first: the end, the next checkpoint, the next norm if it may be the end, or what is done at once."""
    steps = [end - done, plan.sweeps_at_once]
    if plan.checkpoint_every > 0:
        steps.append(plan.checkpoint_every - done % plan.checkpoint_every)
    if plan.until is not None:
        steps.append(plan.norm_every - done % plan.norm_every)
    return min(steps)


@contextmanager
def _bar(plan: Plan) -> Iterator[Callable[[int, Norm | None], None]]:
    """A bar on standard error; nothing where none is wanted."""
    if not plan.progress:
        yield lambda done, norm: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("sweeps"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(file=sys.stderr)) as progress:
        task = progress.add_task("", total=plan.sweeps)

        def show(done: int, norm: Norm | None) -> None:
            progress.update(task, completed=done)
            if norm is not None:
                progress.update(task, description=f"change {norm[1]:.3e}")

        yield show
