# SPDX-License-Identifier: Apache-2.0
"""Slow-control messages of a floor: 28 bytes, docs/formats-km3.md. No I/O and no clock."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

MESSAGE = struct.Struct(">IBBBBIHHiII")
REQUEST, ANSWER = 0x4B4D3343, 0x4B4D3341
TICKS_A_SECOND = 62_500_000
REFUSALS = ("bad_length", "bad_magic", "bad_floor", "bad_command", "bad_status", "bad_parameter", "bad_reserved", "bad_tick")
"""What `decode` can say of a datagram that is no message."""


class Command(IntEnum):
    """What a floor is asked to do."""

    GET = 1
    SET = 2
    RUN_START = 3
    RUN_STOP = 4
    PING = 5
    EXPRESS = 6  # the node sends this code on the floor's link; the value of the answer: after so many words it was back


class Status(IntEnum):
    """What a floor says of a request."""

    DONE = 0
    NO_SUCH_COMMAND = 1
    NO_SUCH_PARAMETER = 2
    OUT_OF_BOUNDS = 3
    NOT_NOW = 4
    ANOTHER_FLOORS = 5


class Floor(NamedTuple):
    """Which floor: its tower and its number, from 1, the lowest."""

    tower: int
    floor: int

    def __str__(self) -> str:
        return f"{self.tower}/{self.floor}"


class Message(NamedTuple):
    """A request or an answer; second and tick are the floor's time of GPS, in an answer."""

    floor: Floor
    command: Command
    sequence: int
    parameter: int = 0
    value: int = 0
    status: Status = Status.DONE
    second: int = 0
    tick: int = 0


class Parameter(NamedTuple):
    """What can be read of a floor, and set where it has bounds. A physical value is `value` x `step`."""

    name: str
    number: int
    step: float
    unit: str
    least: int | None = None
    most: int | None = None

    @property
    def is_settable(self) -> bool:
        return self.least is not None


def _parameters() -> tuple[Parameter, ...]:
    voltages = [Parameter(f"high_voltage_{pm}", pm, 0.1, "V", 0, 20_000) for pm in range(6)]
    thresholds = [Parameter(f"threshold_{pm}", 16 + pm, 0.01, "pe", 0, 1_000) for pm in range(6)]
    hydrophones = [Parameter(f"hydrophone_{one}", 32 + one, 1.0, "", 0, 1) for one in range(2)]
    instruments = [Parameter("temperature", 64, 0.01, "degC")]
    instruments += [Parameter(name, 65 + place, 0.01, "deg") for place, name in enumerate(("heading", "pitch", "roll"))]
    rates = [Parameter(f"rate_{pm}", 80 + pm, 1.0, "Hz") for pm in range(6)]
    return (*voltages, *thresholds, *hydrophones, *instruments, *rates)


PARAMETERS = _parameters()
BY_NAME = {one.name: one for one in PARAMETERS}
BY_NUMBER = {one.number: one for one in PARAMETERS}
_COMMANDS = {int(one): one for one in Command}
_STATUSES = {int(one): one for one in Status}
_WITHOUT_PARAMETER = frozenset({Command.RUN_START, Command.RUN_STOP, Command.PING})


def encode(message: Message, magic: int = REQUEST) -> bytes:
    """The 28 bytes. Raises struct.error where a number does not fit its field."""
    return MESSAGE.pack(
        magic, message.floor.tower, message.floor.floor, message.command, message.status, message.sequence & 0xFFFF_FFFF,
        message.parameter, 0, message.value, message.second, message.tick,
    )  # fmt: skip


def decode(data: bytes | memoryview, magic: int = ANSWER) -> Message | str:
    """The message, or which of REFUSALS it is. Every field is looked at: what a floor says decides on a detector's high voltage."""
    if len(data) != MESSAGE.size:
        return "bad_length"
    found, tower, floor, command, status, sequence, parameter, reserved, value, second, tick = MESSAGE.unpack(data)
    if found != magic:
        return "bad_magic"
    if floor == 0:
        return "bad_floor"
    if command not in _COMMANDS:
        return "bad_command"
    if status not in _STATUSES or (magic == REQUEST and status != 0):
        return "bad_status"
    if parameter != 0 and _COMMANDS[command] in _WITHOUT_PARAMETER:
        return "bad_parameter"
    if reserved != 0:
        return "bad_reserved"
    if tick >= TICKS_A_SECOND:
        return "bad_tick"
    return Message(Floor(tower, floor), _COMMANDS[command], sequence, parameter, value, _STATUSES[status], second, tick)
