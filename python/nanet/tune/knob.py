# SPDX-License-Identifier: Apache-2.0
"""One knob of a machine: what it is now, what it should be, why, and what would be written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from nanet.tune.system import cores_text

OK, CHANGE, BY_HAND = "ok", "change", "by hand"
UNSEEN = "not here"
AS_IT_IS = "as it is"


@dataclass(frozen=True)
class Needs:
    """What an engine asks of the machine. The defaults are those of a configuration that says nothing."""

    cores: frozenset[int] = frozenset()  # the engine's own: pinned in the configuration, or isolated
    interfaces: tuple[str, ...] = ()
    huge_pages: int = 16  # of 2 MiB
    locked_bytes: int = 64 << 20
    receive_bytes: int = 64 << 20  # socket buffers
    send_bytes: int = 4 << 20
    busy_poll_us: int = 0
    realtime_priority: int = 0  # of the receiving thread; 0: an ordinary thread
    unthrottled_realtime: bool = False  # somebody read the danger and wants it


@dataclass(frozen=True)
class Change:
    """One value to be written. `target` as in tune_system."""

    target: str
    now: str
    wanted: str


@dataclass(frozen=True)
class Knob:
    """What was found of one knob, and what would be done. `why` is short, and reads well after a colon: the harm of a wrong value, or,
    with `remarkable`, something to know though there is nothing to do."""

    name: str
    now: str
    wanted: str
    why: str
    changes: tuple[Change, ...] = ()
    by_hand: str = ""  # a command or advice for a person, where tune does nothing automatically
    remarkable: bool = False

    @property
    def state(self) -> str:
        """OK: nothing to do; CHANGE: tune can do it; BY_HAND: only a person can, or should decide it."""
        return CHANGE if self.changes else BY_HAND if self.by_hand else OK

    @property
    def command(self) -> str:
        """What a person would type instead of `nanet tune --apply`, on one line; empty when there is nothing to do."""
        return "; ".join(_commands(self.changes)) if self.changes else self.by_hand


def good(name: str, now: str, why: str) -> Knob:
    """A knob that is as it should be."""
    return Knob(name, now, AS_IT_IS, why)


def remark(name: str, now: str, what: str) -> Knob:
    """A knob that is left as it is, and what a person should know of it."""
    return Knob(name, now, AS_IT_IS, what, remarkable=True)


def unseen(name: str, why: str) -> Knob:
    """A knob that this machine does not have, or does not show."""
    return good(name, UNSEEN, why)


def _commands(changes: Iterable[Change]) -> Iterable[str]:
    for (tool, value), group in groupby(changes, _tool):
        targets = [change.target for change in group]
        if tool == "sysctl":
            yield from (f"sudo sysctl -w {_sysctl(target)}={value}" for target in targets)
        elif tool == "tee":
            yield f"echo {value} | sudo tee {_braces(targets)}"
        else:
            settings = " ".join(f"{target.split(' ')[2]} {_wanted(changes, target)}" for target in targets)
            yield f"sudo {tool} {settings}"


def _tool(change: Change) -> tuple[str, str]:
    if change.target.startswith("ethtool "):
        _, interface, option = change.target.split(" ")
        return f"ethtool {'-G' if option == 'rx' else '-C'} {interface}", ""
    return "sysctl" if change.target.startswith("/proc/sys/") else "tee", change.wanted


def _wanted(changes: Iterable[Change], target: str) -> str:
    return next(change.wanted for change in changes if change.target == target)


def _sysctl(target: str) -> str:
    return target.removeprefix("/proc/sys/").replace("/", ".")


def _braces(paths: list[str]) -> str:
    """Many paths as one word for bash: /proc/irq/{{41..43},50}/smp_affinity_list."""
    parts = [path.split("/") for path in paths]
    places = range(min(map(len, parts)))
    differing = [place for place in places if len({part[place] for part in parts}) > 1]
    if not differing:
        return paths[0]
    first, last = differing[0], differing[-1] + 1
    words = _numbered(["/".join(part[first:last]) for part in parts])
    return "/".join([*parts[0][:first], words, *parts[0][last:]])


def _numbered(words: list[str]) -> str:
    """cpu0, cpu1, cpu2, cpu7 as cpu{{0..2},7}; words of other kinds as {these,and,those}."""
    numbers = [re.fullmatch(r"([a-z]*)(0|[1-9][0-9]*)", word) for word in words]
    heads = {match[1] for match in numbers if match}
    if len(heads) != 1 or not all(numbers):
        return "{" + ",".join(words) + "}"
    runs = cores_text(frozenset(int(match[2]) for match in numbers if match)).split(",")
    spans = ["{" + run.replace("-", "..") + "}" if "-" in run else run for run in runs]
    return heads.pop() + (spans[0] if len(spans) == 1 else "{" + ",".join(spans) + "}")
