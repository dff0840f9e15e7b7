# SPDX-License-Identifier: Apache-2.0
"""The books of a soak, period by period, and what each fault cost: survived or not, events lost by name, time to recover.

Pure arithmetic on what was seen; docs/design/soak.md says why it is done so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nanet.result import books
from nanet.soak.keys import MachineFault, Period, TableRow
from nanet.soak.plan import KINDS

WITH_ENGINE = "lost_with_the_engine"
STALE = "answers_stale"
"""Answers that came when the boards had forgotten their event: an engine that stood still answers what is in its socket first."""
RATE_SHARE = 0.1
"""The rate is reached again when answers come as fast as events are sent, to this share."""
RATE_OVER_S = 0.3


@dataclass
class Fault:
    """One fault of the machine, as it went."""

    kind: str
    period: int
    begin_s: float
    end_s: float | None = None
    recover_s: float | None = None  # None: it did not, in this period
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Look:
    """Totals when nothing was in flight. gap_events: the most that no engine could have counted, so far. stale: answers too old to be checked."""

    period: int
    sent: int
    answered: int
    counters: Mapping[str, int]
    gap_events: int
    stale: int = 0


class Rate:
    """Tells when answers come again as fast as events are sent."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int, int]] = []

    def look(self, now_s: float, sent: int, answered: int) -> bool:
        """Totals now. True: over the last RATE_OVER_S the two kept step; while a backlog is worked off answers are faster, and it is not true."""
        self._seen.append((now_s, sent, answered))
        while len(self._seen) > 1 and now_s - self._seen[1][0] >= RATE_OVER_S:
            self._seen.pop(0)
        then_s, sent_then, answered_then = self._seen[0]
        more = sent - sent_then
        return now_s - then_s >= RATE_OVER_S and more > 0 and abs((answered - answered_then) / more - 1.0) <= RATE_SHARE


def remainders(looks: Sequence[Look], *, merged: bool) -> tuple[list[dict[str, int]], list[int]]:
    """(losses by name of each period, events of which no counter tells, running total at each look).

    What the last packets of a period are known to be only from the packets of the next, so a remainder counts at a look only as far as it
    is still there at all later ones.
    """
    named: list[dict[str, int]] = []
    open_now: list[int] = []
    before = Look(-1, 0, 0, {}, 0)
    for look in looks:
        more = {name: int(count) - int(before.counters.get(name, 0)) for name, count in look.counters.items()}
        balance = books.balance(look.sent - before.sent, look.answered - before.answered, more, merged=merged)
        open_now.append((open_now[-1] if open_now else 0) + balance.pop("unexplained"))
        balance[STALE] = min(look.stale - before.stale, balance["answers_lost"])
        balance["answers_lost"] -= balance[STALE]
        named.append(balance)
        before = look
    for index in reversed(range(len(open_now) - 1)):
        open_now[index] = min(open_now[index], open_now[index + 1])
    return named, open_now


def periods(looks: Sequence[Look], *, merged: bool) -> list[Period]:
    """A row for each look: the losses by name since the one before, with WITH_ENGINE within its bound, and what is `unexplained`."""
    named, running = remainders(looks, merged=merged)
    rows: list[Period] = []
    before, bound_before = 0, 0
    for look, losses, now in zip(looks, named, running, strict=True):
        rest, bound = now - before, look.gap_events - bound_before
        before, bound_before = now, look.gap_events
        with_engine = min(max(0, rest), bound)
        rows.append({
            "period": look.period, "losses": losses | {WITH_ENGINE: with_engine}, "lost_with_the_engine_max": bound, "unexplained": rest - with_engine,
        })  # fmt: skip
    return rows


def judged(faults: Sequence[Fault], rows: Sequence[Period], recover_within_s: float) -> list[MachineFault]:
    """Each fault with the books of its period. A period whose books could not be read is judged with the next; the losses of both stand at
    the first fault then."""
    found: list[MachineFault] = []
    taken = set[int]()
    for fault in faults:
        index = next((number for number, row in enumerate(rows) if row["period"] >= fault.period), None)
        losses = {} if index is None else rows[index]["losses"]
        unexplained = None if index is None else rows[index]["unexplained"]
        problems = list(fault.problems)
        if index is None:
            problems.append("its books were never read")
        elif unexplained:
            problems.append(f"{unexplained:,} events are not in any counter")
        late = fault.recover_s is None or fault.recover_s > recover_within_s
        found.append({
            "fault": fault.kind, "at_s": round(fault.begin_s, 2),
            "lasted_s": None if fault.end_s is None else round(fault.end_s - fault.begin_s, 2),
            "recover_s": None if fault.recover_s is None else round(fault.recover_s, 2),
            "losses": {} if index in taken else {name: count for name, count in losses.items() if count},
            "unexplained": unexplained, "late": late, "problems": problems, "survived": not problems and not late,
        })  # fmt: skip
        taken |= {index} if index is not None else set()
    return found


def table_rows(found: Sequence[MachineFault], not_run: Mapping[str, str]) -> list[TableRow]:
    """A row a kind of fault, those that could not be made included."""
    rows: list[TableRow] = []
    for kind in KINDS:
        of_kind = [one for one in found if one["fault"] == kind]
        if not of_kind and kind not in not_run:
            continue
        losses: dict[str, int] = {}
        for one in of_kind:
            for name, count in one["losses"].items():
                losses[name] = losses.get(name, 0) + count
        recovered = [one["recover_s"] for one in of_kind if one["recover_s"] is not None]
        rows.append({
            "fault": kind, "times": len(of_kind), "survived": sum(bool(one["survived"]) for one in of_kind), "losses": losses,
            "recover_longest_s": max(recovered) if recovered and len(recovered) == len(of_kind) else None,
            "not_run": None if of_kind else not_run[kind],
        })  # fmt: skip
    return rows


def row_text(row: TableRow) -> str:
    """A row as a line of the terminal's table."""
    if row["not_run"]:
        return f"{row['fault']:8}  not run ({row['not_run']})"
    longest = "-" if row["recover_longest_s"] is None else f"{row['recover_longest_s']:.1f} s"
    return f"{row['fault']:8}{row['times']:>7}{row['survived']:>10}{longest:>10}  {books.lost_text(row['losses'])}"


HEAD = f"{'fault':8}{'times':>7}{'survived':>10}{'recovery':>10}  events lost, by name"
