# SPDX-License-Identifier: Apache-2.0
"""Run control: every floor is brought to where it is wanted, and brought there again when it was away.

    silent ──► configuring ──► ready ──► running          a thread a floor; what is wanted is one value, which any thread may change
       ▲            │            │          │
       └────────────┴────────────┴──────────┘  no answer: named, and tried again until it answers

A floor that returns is stopped, set and started again, unless its settings hold and its data are of the run that is wanted: a link that was away for
a moment is no reason to begin anew.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nanet.config.km3_server import Control, FloorSettings
from nanet.km3.control import Client, Exchange
from nanet.km3.messages import BY_NAME, BY_NUMBER, Command, Floor

DATA_FRESH_S = 2.0
RunOf = Callable[[Floor], tuple[int, float] | None]
"""The run of a floor's newest unit, and how old that is [s]; None: none came."""


@dataclass(frozen=True)
class Wanted:
    """What all floors are wanted to be in."""

    generation: int = 0  # 0: no one has said anything yet, and floors are left alone
    run: int | None = None
    is_adopted: bool = False  # floors that are in it already are left alone


@dataclass
class FloorState:
    """Where a floor is. `why`: what keeps it from where it is wanted."""

    state: str = "silent"
    why: str = "not asked yet"
    run: int | None = None
    reached: int = -1  # generation of Wanted
    tried: int = -1  # the last one that it was not brought to
    settings: dict[int, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


class _NotReached(Exception):
    """A floor did not do what it was asked: (state, why)."""

    def __init__(self, state: str, why: str) -> None:
        super().__init__(why)
        self.state = state


def settings_of(floor: FloorSettings) -> dict[int, int]:
    """What a floor is set to before a run: {parameter: value in its steps}."""
    found: dict[int, int] = {}
    for name, values in (
        ("high_voltage", floor.high_voltage_v),
        ("threshold", floor.threshold_pe),
        ("hydrophone", floor.hydrophones),
    ):
        for place, value in enumerate(values or ()):
            parameter = BY_NAME[f"{name}_{place}"]
            found[parameter.number] = round(float(value) / parameter.step)
    return found


class RunControl:
    """Keeps floors where they are wanted. `close` leaves them as they are: a server that ends does not stop a run of a detector."""

    def __init__(
        self,
        client: Client,
        settings: Mapping[Floor, Mapping[int, int]],
        config: Control,
        *,
        run_of: RunOf = lambda _: None,
        answers: Callable[[Floor, bool], None] = lambda _floor, _does: None,
    ) -> None:
        """answers: told when a floor answers, and when it does not; must not block."""
        self._client, self._config, self._run_of, self._answers = client, config, run_of, answers
        self._wanted = Wanted()
        self._may_start = -1  # generation whose floors may start
        self._changed = threading.Condition()
        self._closing = False
        self._floors = {floor: FloorState(settings=dict(values)) for floor, values in settings.items()}
        self._threads = [
            threading.Thread(target=self._keep, args=(floor,), name=f"km3-floor-{floor}", daemon=True) for floor in self._floors
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def run(self) -> int | None:
        """Which is wanted."""
        return self._wanted.run

    def states(self) -> dict[Floor, FloorState]:
        return dict(self._floors)

    def start(self, run: int, within_s: float) -> dict[Floor, FloorState]:
        """Configures all floors, then starts those that are ready; the others are started when they answer. Returns those that do not run."""
        generation = self._want(run)
        half_s = time.monotonic() + within_s / 2
        self._wait(lambda one: generation in (one.reached, one.tried), half_s, generation)
        with self._changed:
            if self._wanted.generation == generation:
                self._may_start = generation
                self._changed.notify_all()
        self._wait(lambda one: one.run == run or one.tried == generation, time.monotonic() + within_s / 2, generation)
        return {floor: one for floor, one in self._floors.items() if one.state != "running" or one.run != run}

    def stop(self, within_s: float) -> dict[Floor, FloorState]:
        """Stops all floors. Returns those that may still run: they are stopped when they answer."""
        generation = self._want(None)
        self._wait(lambda one: generation in (one.reached, one.tried), time.monotonic() + within_s, generation)
        return {floor: one for floor, one in self._floors.items() if one.reached != generation or one.state == "silent"}

    def adopt(self, run: int) -> None:
        """Goes on with a run that was not stopped: floors that are in it are left alone, others are brought into it."""
        with self._changed:
            self._wanted = Wanted(self._wanted.generation + 1, run, is_adopted=True)
            self._may_start = self._wanted.generation
            self._changed.notify_all()

    def set(self, floor: Floor, parameter: int, value: int) -> Exchange:
        """Sets it now; what was done is set again when the floor returns."""
        done = self._client.request(floor, Command.SET, parameter, value)
        if done.is_done:
            with self._changed:
                self._floors[floor].settings[parameter] = value
        return done

    def _want(self, run: int | None) -> int:
        with self._changed:
            self._wanted = Wanted(self._wanted.generation + 1, run)
            self._changed.notify_all()
            return self._wanted.generation

    def _wait(self, is_there: Callable[[FloorState], bool], until_s: float, generation: int) -> None:
        """Until all floors are there, or someone wants something else."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closing or self._wanted.generation != generation or all(map(is_there, self._floors.values())),
                max(0.0, until_s - time.monotonic()),
            )

    def _keep(self, floor: Floor) -> None:
        own, beats = self._floors[floor], 0
        while not self._closing:
            wanted = self._wanted
            try:
                if own.reached == wanted.generation and own.state in ("running", "ready"):
                    self._look_after(floor, own, wanted, beats)
                    beats += 1
                else:
                    self._bring(floor, own, wanted)
                pause_s = self._config.ping_s
            except _NotReached as error:
                own.counts[error.state] += 1
                own.tried = wanted.generation
                self._now(floor, own, error.state, str(error))
                pause_s = self._config.retry_s if error.state != "configuring" else 0.0
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._wanted is not wanted or self._starts(own, wanted), pause_s)  # noqa: B023

    def _starts(self, own: FloorState, wanted: Wanted) -> bool:
        return own.state == "ready" and wanted.run is not None and self._may_start == wanted.generation

    def _bring(self, floor: Floor, own: FloorState, wanted: Wanted) -> None:
        """To where it is wanted, step by step. Raises _NotReached."""
        came_back = own.state == "silent"
        self._ask(floor, Command.PING)
        self._answers(floor, True)
        if wanted.generation == 0:
            own.reached = 0
            return self._now(floor, own, "ready", "")
        may_be_in_it = came_back if own.reached == wanted.generation else wanted.is_adopted
        if may_be_in_it and wanted.run is not None and self._is_as_left(floor, own, wanted.run):
            own.reached = wanted.generation
            return self._now(floor, own, "running", "", run=wanted.run)
        self._now(floor, own, "configuring", "")
        self._ask(floor, Command.RUN_STOP, also="not_now")
        own.run = None
        if wanted.run is not None:
            for parameter, value in sorted(own.settings.items()):
                answer = self._ask(floor, Command.SET, parameter, value).answer
                if answer is None or answer.value != value:
                    what = BY_NUMBER[parameter].name
                    raise _NotReached("failed", f"{what} is {answer.value if answer else '?'} after it was set to {value}")
        own.counts["configured"] += 1
        own.reached = wanted.generation
        return self._now(floor, own, "ready", "")

    def _look_after(self, floor: Floor, own: FloorState, wanted: Wanted, beats: int) -> None:
        """Starts it when all may; after that, sees whether it is still there and as it was left. Raises _NotReached."""
        if own.state == "ready" and wanted.run is not None:
            if self._starts(own, wanted):
                self._ask(floor, Command.RUN_START, value=wanted.run)
                own.counts["started"] += 1
                self._now(floor, own, "running", "", run=wanted.run)
            return
        if not own.settings or wanted.run is None:
            self._ask(floor, Command.PING)
        else:
            parameter, value = sorted(own.settings.items())[beats % len(own.settings)]
            answer = self._ask(floor, Command.GET, parameter).answer
            if answer is not None and answer.value != own.settings[parameter]:
                own.counts["settings_lost"] += 1
                own.reached = -1
                raise _NotReached("configuring", f"{BY_NUMBER[parameter].name} is {answer.value}, not {value}: it is set again")
        self._answers(floor, True)
        found = self._run_of(floor)
        if wanted.run is not None and found is not None and found[0] != wanted.run and found[1] < DATA_FRESH_S:
            own.counts["runs_lost"] += 1
            own.reached = -1
            raise _NotReached("configuring", f"its data are of run {found[0]}, not {wanted.run}: it is started again")

    def _is_as_left(self, floor: Floor, own: FloorState, run: int) -> bool:
        found = self._run_of(floor)
        if found is None or found[0] != run or found[1] > DATA_FRESH_S:
            return False
        for parameter, value in sorted(own.settings.items()):
            answer = self._ask(floor, Command.GET, parameter).answer
            if answer is None or answer.value != value:
                return False
        return True

    def _ask(self, floor: Floor, command: Command, parameter: int = 0, value: int = 0, also: str = "") -> Exchange:
        done = self._client.request(floor, command, parameter, value)
        if done.is_done or (also and done.outcome == also):
            return done
        what = command.name.lower().replace("_", " ")
        what += f" {BY_NUMBER[parameter].name}" if command in (Command.GET, Command.SET) else ""
        if done.answer is None:
            self._answers(floor, False)
            raise _NotReached("silent", f"{what}: {done.outcome.replace('_', ' ')} after {done.tries} tries")
        raise _NotReached("failed", f"{what}: {done.outcome.replace('_', ' ')}")

    def _now(self, floor: Floor, own: FloorState, state: str, why: str, run: int | None = None) -> None:
        with self._changed:
            if state == "running" and own.state == "silent":
                own.counts["returned"] += 1
            own.state, own.why, own.run = state, why, run
            self._changed.notify_all()
