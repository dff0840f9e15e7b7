# SPDX-License-Identifier: Apache-2.0
"""Which faults a soak makes, and when: a plan from a seed, and what cannot be made on this machine with the reason.

Terms: a *period* is a time of sending with at most one fault of the machine in it, and a pause after it in which nothing is in flight, so that
the books can be read.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nanet.config.errors import ConfigError
from nanet.machine import gpu_driver

PACKETS = "packets"
KINDS: dict[str, str] = {
    PACKETS: "packets lost, doubled, reordered, corrupted, cut and delayed by the fault injector",
    "stop": "the engine stands still (SIGSTOP) and goes on",
    "kill": "the engine is killed (SIGKILL) and started again",
    "link": "the engine's interface goes down and comes up again",
    "disk": "the engine is started again with a recording on a disk that fills up",
    "clock": "the engine is started again in a time namespace with another CLOCK_MONOTONIC and CLOCK_BOOTTIME",
    "memory": "the engine gets no more address space than it has (RLIMIT_AS)",
    "slow": "the engine, the consumer of the boards' packets, gets a quarter of its core",
    "gpu": "a GPU goes away",
}
"""What `--faults` can name."""

PAUSE_S = 3.0  # the engine tells twice what it has counted, once a second
EVERY_MIN_S = 8.0
LENGTH_MAX_S = 3.0
PACKETS_SHARE = (0.05, 0.85)  # start and length of the faults of packets, all of them one after another
START_SHARE, LENGTH_SHARE = (0.1, 0.25), 0.25  # of the sending of a period; what is left is for the recovery


@dataclass(frozen=True)
class Planned:
    """One fault. Times in s since the soak began."""

    period: int
    kind: str
    start_s: float
    length_s: float


@dataclass(frozen=True)
class Plan:
    """Faults in order, and kinds that were asked for and cannot be had: kind -> why."""

    every_s: float
    duration_s: float
    planned: tuple[Planned, ...] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)
    always: bool = False  # faults of packets come and go all the time, and the machine has none

    @property
    def spill_s(self) -> float:
        """How long the boards send in a period; 0: without pause."""
        return self.every_s - PAUSE_S if self.planned else 0.0

    def packets_at(self, time_s: float) -> float | None:
        """How much of the faults of packets of this time's period is over, as a share; None: there are none now."""
        period = self.period(time_s)
        if not self.planned or period >= len(self.planned) or self.planned[period].kind != PACKETS:
            return None
        share = (time_s - self.planned[period].start_s) / self.planned[period].length_s
        return share if 0.0 <= share < 1.0 else None

    def period(self, time_s: float) -> int:
        """The number of the period at this time."""
        return int(time_s / self.every_s) if self.planned else 0

    def in_pause(self, time_s: float) -> bool:
        """Whether the boards are silent at this time."""
        return bool(self.planned) and time_s % self.every_s >= self.spill_s


def chosen(text: str) -> tuple[str, ...]:
    """The kinds that `all`, `none` or `KIND,KIND` names. Raises ConfigError."""
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    if wanted in (["all"], ["none"]):
        return tuple(KINDS) if wanted == ["all"] else ()
    for name in wanted or [""]:
        if name not in KINDS:
            raise ConfigError([f"there is no fault '{name}' (there are {', '.join(KINDS)}) name some of those, or all, or none"])
    return tuple(kind for kind in KINDS if kind in wanted)


def make(kinds: Sequence[str], missing: Mapping[str, str], duration_s: float, every_s: float, end_s: float, seed: int) -> Plan:
    """Every kind once in an order drawn anew, over and over, one a period. end_s: the last of the soak, without faults.

    missing: kinds that cannot be made here, and why. Raises ConfigError.
    """
    if every_s < EVERY_MIN_S:
        raise ConfigError(
            [f"no fault every {every_s:g} s (the engine must recover, and the books be read) use {EVERY_MIN_S:g}s or more"]
        )
    not_run = {kind: missing[kind] for kind in kinds if kind in missing}
    possible = [kind for kind in kinds if kind not in missing]
    periods = int((duration_s - end_s) / every_s)
    if periods < len(possible) and possible != [PACKETS]:
        short = f"no time: {periods} of {len(possible)} faults fit"
        not_run |= {kind: short for kind in possible[periods:] if kind != PACKETS}
        possible = possible[: max(periods, int(PACKETS in possible))]
    if possible in ([], [PACKETS]):
        return Plan(every_s, duration_s, (), not_run, always=bool(possible))
    draw = random.Random(seed)
    planned: list[Planned] = []
    while len(planned) < periods:
        for kind in draw.sample(possible, len(possible))[: periods - len(planned)]:
            planned.append(_planned(kind, len(planned), every_s, draw))
    return Plan(every_s, duration_s, tuple(planned), not_run)


def _planned(kind: str, period: int, every_s: float, draw: random.Random) -> Planned:
    spill_s = every_s - PAUSE_S
    start_s, length_s = spill_s * draw.uniform(*START_SHARE), min(LENGTH_MAX_S, LENGTH_SHARE * spill_s) * draw.uniform(0.5, 1.0)
    if kind == PACKETS:
        start_s, length_s = (share * spill_s for share in PACKETS_SHARE)
    return Planned(period, kind, period * every_s + start_s, length_s)


def missing_here(*, with_config: bool, records: bool) -> dict[str, str]:
    """Kinds of fault that cannot be made on this machine, and why.

    with_config: the soak is of a configuration, whose addresses are its own. records: it has a recording of its own.
    """
    found = {"link": "the configuration has addresses of its own" if with_config else _lacks("ip", "iproute2")}
    found["disk"] = "the configuration has a recording of its own" if records else ""
    found["clock"] = _lacks("unshare", "util-linux") or _failure("unshare", "--time", "--monotonic", "1", "true")
    found["gpu"] = "nothing here can take one from a running engine" if gpu_driver.ask_driver().gpus else "no GPU"
    return {kind: why for kind, why in found.items() if why}


def _lacks(program: str, package: str) -> str:
    if shutil.which(program) is None:
        return f"the program {program} of {package} is missing"
    return "not root" if os.geteuid() != 0 else ""


def _failure(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10.0)
    return (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1] if done.returncode else ""
