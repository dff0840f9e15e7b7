# SPDX-License-Identifier: Apache-2.0
"""Alarms: rules over values of floors, raised and cleared. No I/O and no clock."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nanet.config.km3_server import AlarmRule
from nanet.km3.messages import BY_NAME, BY_NUMBER, Floor

NO_ANSWER = "no_answer"
"""The alarm that needs no rule: a floor that does not answer."""


@dataclass(slots=True)
class _State:
    beyond_since_ns: int | None = None
    alarm: str | None = None  # that is raised


class Alarms:
    """Says what is raised and cleared by `put(table, **row)`, as of `Writer.put`. One thread, or one lock around it."""

    def __init__(self, rules: Iterable[AlarmRule], put: Callable[..., None]) -> None:
        self._put = put
        self._rules: dict[int, list[AlarmRule]] = {}
        for rule in rules:
            self._rules.setdefault(BY_NAME[rule.parameter].number, []).append(rule)
        self._states: dict[tuple[str, Floor], _State] = {}

    def adopt(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Alarms of an earlier life that were not cleared: they go on, and are not raised twice."""
        for row in rows:
            if row["cleared_ns"] is None:
                self._state(row["rule"], Floor(row["tower"], row["floor"])).alarm = row["id"]

    def raised(self) -> list[tuple[str, Floor]]:
        """Which are raised now."""
        return sorted(key for key, state in self._states.items() if state.alarm is not None)

    def value(self, floor: Floor, parameter: int, value: int, now_ns: int) -> None:
        """A value of a floor, in steps of its parameter."""
        for rule in self._rules.get(parameter, ()):
            if rule.floors is None or floor.floor in rule.floors:
                self._look(rule, floor, BY_NUMBER[parameter].number, value * BY_NUMBER[parameter].step, now_ns)

    def answers(self, floor: Floor, *, does: bool, now_ns: int) -> None:
        """Whether a floor answers."""
        state = self._state(NO_ANSWER, floor)
        if does and state.alarm is not None:
            self._clear(state, now_ns)
        elif not does and state.alarm is None:
            self._raise(state, NO_ANSWER, floor, 0, 0.0, now_ns)

    def _look(self, rule: AlarmRule, floor: Floor, parameter: int, value: float, now_ns: int) -> None:
        state = self._state(rule.name, floor)
        if (rule.above is not None and value > rule.above) or (rule.below is not None and value < rule.below):
            if state.beyond_since_ns is None:
                state.beyond_since_ns = now_ns
            if state.alarm is None and now_ns - state.beyond_since_ns >= rule.for_s * 1e9:
                self._raise(state, rule.name, floor, parameter, value, now_ns)
            return
        state.beyond_since_ns = None
        is_below_top = rule.above is None or value <= rule.above - rule.hysteresis
        is_above_bottom = rule.below is None or value >= rule.below + rule.hysteresis
        if state.alarm is not None and is_below_top and is_above_bottom:
            self._clear(state, now_ns)

    def _raise(self, state: _State, rule: str, floor: Floor, parameter: int, value: float, now_ns: int) -> None:
        state.alarm = uuid.uuid4().hex
        self._put(
            "alarms", id=state.alarm, rule=rule, tower=floor.tower, floor=floor.floor, parameter=parameter, value=value, raised_ns=now_ns,
            cleared_ns=None, acknowledged_ns=None, acknowledged_by=None,
        )  # fmt: skip

    def _clear(self, state: _State, now_ns: int) -> None:
        self._put("update alarms", id=state.alarm, cleared_ns=now_ns)
        state.alarm = None

    def _state(self, rule: str, floor: Floor) -> _State:
        return self._states.setdefault((rule, floor), _State())
