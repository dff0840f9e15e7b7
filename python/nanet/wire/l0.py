# SPDX-License-Identifier: Apache-2.0
"""L0 decision packets (ours, docs/formats-l0.md) as numpy records: the triggers that an L0 trigger processor sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nanet.wire.base import ParseError, Source, WireError

__all__ = ["BYTES_MAX", "CALIBRATION_BIT", "ENTRIES_MAX", "ENTRY", "HEADER_BYTES", "L0DecisionPacket", "build", "check", "parse"]

HEADER_BYTES = 8
BYTES_MAX = 1472
ENTRIES_MAX = (BYTES_MAX - HEADER_BYTES) // 8
NUMBER_MASK = 0xFFFFFF
CALIBRATION_BIT = 0x80
# `matched_kind`: bits 6..0 inputs with a primitive, bit 7 calibration.
ENTRY = np.dtype([("timestamp", "<u4"), ("fine_time", "u1"), ("matched_kind", "u1"), ("trigger_word", "<u2")])


@dataclass(frozen=True)
class L0DecisionPacket:
    """What a packet says. entries: ENTRY, shape (n,); the i-th has number first_trigger_number + i, modulo 2^24."""

    source_sub_id: int
    first_trigger_number: int
    entries: npt.NDArray[Any]


def check(payload: bytes) -> ParseError:
    """What parse() would say."""
    length = len(payload)
    if not HEADER_BYTES <= length <= BYTES_MAX or length % ENTRY.itemsize or int.from_bytes(payload[4:6], "little") != length:
        return ParseError.bad_length
    if payload[3] != Source.l0tp or payload[6] != (length - HEADER_BYTES) // ENTRY.itemsize:
        return ParseError.bad_format
    return ParseError.none


def parse(payload: bytes) -> L0DecisionPacket:
    """Raises WireError."""
    if error := check(payload):
        raise WireError(error)
    number = int.from_bytes(payload[0:3], "little")
    return L0DecisionPacket(payload[7], number, np.frombuffer(payload, ENTRY, offset=HEADER_BYTES))


def build(entries: npt.NDArray[Any], *, source_sub_id: int, first_trigger_number: int) -> bytes:
    """One packet. entries: ENTRY, shape (n,), n up to 183 (ValueError)."""
    if len(entries) > ENTRIES_MAX:
        raise ValueError(f"too many entries ({len(entries)}; a packet has room for {ENTRIES_MAX}) split them")
    length = HEADER_BYTES + ENTRY.itemsize * len(entries)
    header = (first_trigger_number & NUMBER_MASK).to_bytes(3, "little") + bytes([Source.l0tp])
    return header + length.to_bytes(2, "little") + bytes([len(entries), source_sub_id]) + entries.astype(ENTRY).tobytes()
