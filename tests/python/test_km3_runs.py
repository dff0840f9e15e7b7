# SPDX-License-Identifier: Apache-2.0
"""Run control: floors are configured and started, named when they do not answer, and brought back when they return."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from made_up_km3 import GET, PING, SET, START, STOP, MadeUpFloor
from nanet.config.km3_server import Control, FloorSettings
from nanet.km3.control import Client
from nanet.km3.messages import Floor
from nanet.km3.runs import FloorState, RunControl, settings_of

SETTINGS = FloorSettings(
    floor=1, control="udp://127.0.0.1:9", high_voltage_v=(1200.5,) * 6, threshold_pe=(0.3,) * 6, hydrophones=(True, False)
)
QUICK = Control(timeout_ms=100, tries_max=2, retry_s=0.05, ping_s=0.02)


def wait_for(what: Callable[[], object], within_s: float = 20.0) -> None:
    end_s = time.monotonic() + within_s
    while not what() and time.monotonic() < end_s:
        time.sleep(0.005)
    assert what()


class Case:
    def __init__(
        self, runs: RunControl, floors: list[MadeUpFloor], told: list[tuple[int, bool]], run_of: dict[int, tuple[int, float]]
    ) -> None:
        self.runs, self.floors, self.told, self.run_of = runs, floors, told, run_of

    def state(self, floor: int) -> FloorState:
        return self.runs.states()[Floor(1, floor)]


@contextlib.contextmanager
def case(count: int = 2, *, control: Control = QUICK, settings: FloorSettings = SETTINGS, **faults: Any) -> Iterator[Case]:
    told: list[tuple[int, bool]] = []
    run_of: dict[int, tuple[int, float]] = {}
    with contextlib.ExitStack() as stack:
        floors = [stack.enter_context(MadeUpFloor(number + 1, **faults)) for number in range(count)]
        addresses = {Floor(1, one.floor): ("127.0.0.1", one.port) for one in floors}
        client = stack.enter_context(Client(addresses, timeout_s=control.timeout_ms / 1e3, tries_max=control.tries_max))
        runs = RunControl(
            client, dict.fromkeys(addresses, settings_of(settings)), control,
            run_of=lambda floor: run_of.get(floor.floor), answers=lambda floor, does: told.append((floor.floor, does)),
        )  # fmt: skip
        stack.callback(runs.close)
        yield Case(runs, floors, told, run_of)


def commands(floor: MadeUpFloor) -> list[int]:
    return [command for command, _, _ in floor.done if command not in (PING, GET)]


def test_settings_are_in_steps_of_the_parameters() -> None:
    assert settings_of(SETTINGS) == {**dict.fromkeys(range(6), 12005), **dict.fromkeys(range(16, 22), 30), 32: 1, 33: 0}
    assert settings_of(FloorSettings(floor=1, control="udp://127.0.0.1:9")) == {}


def test_floors_are_left_alone_until_someone_says_something() -> None:
    with case() as one:
        wait_for(lambda: all(state.state == "ready" for state in one.runs.states().values()))
        time.sleep(0.1)
        assert all({command for command, _, _ in floor.done} == {PING} for floor in one.floors)


def test_a_run_is_configured_started_and_stopped() -> None:
    with case() as one:
        assert one.runs.start(7, 20) == {}
        for floor in one.floors:
            assert floor.run == 7
            assert commands(floor) == [STOP, *[SET] * 14, START]
            assert (floor.values[0], floor.values[21], floor.values[32], floor.values[33]) == (12005, 30, 1, 0)
        assert one.runs.stop(20) == {}
        assert [floor.run for floor in one.floors] == [0, 0]
        assert {state.state for state in one.runs.states().values()} == {"ready"}


def test_a_floor_that_does_not_answer_is_named_and_started_when_it_does() -> None:
    with case(3) as one:
        one.floors[1].faults = {"silent"}
        left = one.runs.start(7, 20)
        assert list(left) == [Floor(1, 2)]
        assert left[Floor(1, 2)].state == "silent"
        assert left[Floor(1, 2)].why == "ping: no answer after 2 tries"
        assert (one.floors[0].run, one.floors[2].run) == (7, 7)
        assert (2, False) in one.told
        one.floors[1].faults = set()
        wait_for(lambda: one.floors[1].run == 7)
        wait_for(lambda: one.state(2).state == "running")
        assert one.told[-1] != (2, False)


def test_a_floor_that_lost_its_power_is_configured_and_started_again() -> None:
    with case() as one:
        one.runs.start(7, 20)
        first = one.floors[0]
        first.faults = {"silent"}
        wait_for(lambda: one.state(1).state == "silent")
        assert one.state(2).state == "running"
        first.start_over()
        first.faults = set()
        wait_for(lambda: first.run == 7)
        assert first.values[0] == 12005
        assert commands(one.floors[1]) == [STOP, *[SET] * 14, START]  # the other one was left alone


def test_a_power_cut_that_no_one_saw_is_found_by_a_setting_that_is_gone() -> None:
    with case(1) as one:
        one.runs.start(7, 20)
        one.floors[0].start_over()
        wait_for(lambda: one.floors[0].run == 7)
        assert one.state(1).counts["settings_lost"] == 1


def test_a_link_that_was_away_is_no_reason_to_begin_anew() -> None:
    with case(1) as one:
        one.runs.start(7, 20)
        one.run_of[1] = (7, 0.1)
        one.floors[0].faults = {"silent"}
        wait_for(lambda: one.state(1).state == "silent")
        one.floors[0].faults = set()
        wait_for(lambda: one.state(1).state == "running")
        assert commands(one.floors[0]).count(START) == 1
        assert one.state(1).counts["returned"] == 1


def test_a_floor_whose_data_are_of_another_run_is_started_again() -> None:
    with case(1) as one:
        one.runs.start(7, 20)
        one.run_of[1] = (3, 0.1)
        wait_for(lambda: commands(one.floors[0]).count(START) >= 2)
        one.run_of[1] = (7, 0.1)
        wait_for(lambda: one.state(1).state == "running")
        assert one.state(1).counts["runs_lost"] >= 1


def test_a_setting_that_does_not_hold_and_a_start_that_is_refused_are_named() -> None:
    with case(2) as one:
        one.floors[0].faults = {"sticks"}
        one.floors[1].faults = {"not_now"}
        left = one.runs.start(7, 20)
        assert left[Floor(1, 1)].why == "high_voltage_0 is 12004 after it was set to 12005"
        assert left[Floor(1, 2)].why == "run start: not now"
        one.floors[0].faults = one.floors[1].faults = set()
        wait_for(lambda: [floor.run for floor in one.floors] == [7, 7])


def test_what_was_set_by_hand_is_set_again() -> None:
    with case(1) as one:
        one.runs.start(7, 20)
        assert one.runs.set(Floor(1, 1), 3, 9000).is_done
        one.floors[0].start_over()
        wait_for(lambda: one.floors[0].run == 7)
        assert one.floors[0].values[3] == 9000


def test_a_run_of_an_earlier_life_goes_on_without_a_word_to_floors_that_are_in_it() -> None:
    with case(2) as one:
        wait_for(lambda: all(state.state == "ready" for state in one.runs.states().values()))
        first = one.floors[0]
        first.values.update(settings_of(SETTINGS))
        first.run = 7
        one.run_of[1] = (7, 0.1)
        one.runs.adopt(7)
        wait_for(lambda: [state.state for state in one.runs.states().values()] == ["running", "running"])
        assert commands(first) == []
        assert commands(one.floors[1]) == [STOP, *[SET] * 14, START]
