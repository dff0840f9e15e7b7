# SPDX-License-Identifier: Apache-2.0
"""What all packet formats share: types, NA62's times and source IDs, why a packet is refused."""

from __future__ import annotations

import enum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Buffer: TypeAlias = bytes | bytearray | memoryview
Records: TypeAlias = npt.NDArray[np.void]
Words: TypeAlias = npt.NDArray[np.uint16]
TIMESTAMP_NS = 24.951059536
TICK_NS = TIMESTAMP_NS / 256
_TICK_NUMERATOR = 1559441221  # a tick is exactly 1559441221 / 16e9 ns
_TICK_DENOMINATOR = 16_000_000_000


class ParseError(enum.IntEnum):
    """Why a packet was refused; the same values as in C++."""

    none = 0
    bad_length = 1
    bad_format = 2
    bad_checksum = 3


class Source(enum.IntEnum):
    """NA62's source IDs."""

    cedar = 0x04
    gtk = 0x08
    chanti = 0x0C
    lav = 0x10
    straw = 0x14
    chod = 0x18
    rich = 0x1C
    new_chod = 0x20
    lkr = 0x24
    muv1 = 0x28
    muv2 = 0x2C
    muv3 = 0x30
    sac = 0x34
    hasc = 0x3C
    l0tp = 0x40


class WireError(ValueError):
    """A packet was refused; `reason` says why."""

    def __init__(self, reason: ParseError) -> None:
        super().__init__(f"packet refused: {reason.name}")
        self.reason = reason


def ticks(timestamp: int, fine_time: int) -> int:
    """An instant as a number of fine times: timestamp * 256 + fine_time."""
    return timestamp << 8 | fine_time


def ns_from_ticks(tick_count: int) -> int:
    """Nanoseconds, rounded to the nearest; integer arithmetic, no drift."""
    return (tick_count * _TICK_NUMERATOR + _TICK_DENOMINATOR // 2) // _TICK_DENOMINATOR


def ticks_from_ns(ns: int) -> int:
    """Ticks, rounded to the nearest; ns_from_ticks() gives the same ns back."""
    return (ns * _TICK_DENOMINATOR + _TICK_NUMERATOR // 2) // _TICK_NUMERATOR
