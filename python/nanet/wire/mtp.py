# SPDX-License-Identifier: Apache-2.0
"""MTP, the packets of primitives that answer, in plain numpy: parser and builder.

Dtypes (all little-endian):
    MTP_HEADER         8 bytes
    PRIMITIVE          one decoded primitive (not as on the wire)
    PRIMITIVE_MEANING  what a primitive ID says, one field a meaning
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nanet.wire.base import Buffer, ParseError, Records, WireError, Words

MTP_HEADER_BYTES = 8
MTP_BYTES_MAX = 1472
MTP_PRIMITIVES_MAX = 255
PRIMITIVE_ID_MIN = 0x0100
# `time_and_source`: bits 23..0 the high 24 bits of the first timestamp, 31..24 the source ID.
MTP_HEADER = np.dtype([("time_and_source", "<u4"), ("length", "<u2"), ("primitive_count", "u1"), ("source_sub_id", "u1")])
PRIMITIVE = np.dtype([("timestamp", "<u4"), ("fine_time", "u1"), ("id", "<u2")], align=True)
PRIMITIVE_MEANING = np.dtype(
    [
        ("multiplicity", "u1"),  # hits with a photomultiplier, saturating at 63
        ("ring_count", "u1"),  # 0..3
        ("ring_found", "?"),
        ("electron_like", "?"),
        ("radius_class", "u1"),  # floor(radius_mm / 16), saturating at 15; 0 without ring
        ("calibration", "?"),
    ]
)


@dataclass(frozen=True)
class MtpPacket:
    """What an MTP packet says. primitives: PRIMITIVE, shape (primitive_count,). first_timestamp: low 8 bits are 0."""

    source_id: int
    source_sub_id: int
    first_timestamp: int
    primitives: Records = field(repr=False)


def check_mtp(payload: Buffer) -> ParseError:
    """Why this payload would be refused."""
    data = memoryview(payload)
    if not MTP_HEADER_BYTES <= len(data) <= MTP_BYTES_MAX or len(data) % 4:
        return ParseError.bad_length
    header = np.frombuffer(data, MTP_HEADER, 1)[0]
    if header["length"] != len(data):
        return ParseError.bad_length
    words = np.frombuffer(data, "<u4", offset=MTP_HEADER_BYTES)
    return ParseError.none if np.count_nonzero(words >> 24) == header["primitive_count"] else ParseError.bad_format


def parse_mtp(payload: Buffer) -> MtpPacket:
    """The packet with full 32-bit timestamps. Raises WireError."""
    error = check_mtp(payload)
    if error is not ParseError.none:
        raise WireError(error)
    header = np.frombuffer(payload, MTP_HEADER, 1)[0]
    first = int(header["time_and_source"])
    words = np.frombuffer(payload, "<u4", offset=MTP_HEADER_BYTES)
    # The header counts as a timestamp word at index 0; each word takes the last timestamp word at or before it.
    is_time = np.concatenate([[True], words >> 24 == 0])
    high = np.concatenate([[np.uint32(first & 0xFFFFFF)], words]).astype(np.uint32)
    last_time = np.maximum.accumulate(np.where(is_time, np.arange(len(is_time)), 0))
    timestamps = high[last_time] << np.uint32(8) | high >> np.uint32(8) & np.uint32(0xFF)
    is_primitive = ~is_time
    primitives = np.zeros(np.count_nonzero(is_primitive), PRIMITIVE)
    primitives["timestamp"] = timestamps[is_primitive]
    primitives["fine_time"] = high[is_primitive] & 0xFF
    primitives["id"] = high[is_primitive] >> 16
    return MtpPacket(first >> 24, int(header["source_sub_id"]), (first << 8) & 0xFFFFFFFF, primitives)


def build_mtp(primitives: Records, *, source_id: int, source_sub_id: int, first_timestamp: int) -> bytes:
    """An MTP packet. primitives: PRIMITIVE, shape (n,), in order; n may be 0.

    Raises ValueError when they do not fit (255 primitives, 1472 bytes) or an ID is below 0x0100.
    """
    if len(primitives) > MTP_PRIMITIVES_MAX or (primitives["id"] < PRIMITIVE_ID_MIN).any():
        raise ValueError("no such MTP packet (over 255 primitives, or an ID below 0x0100) send more packets, set bit 14 of the ID")
    time_high = first_timestamp >> 8
    words = [time_high | source_id << 24, 0]
    for timestamp, fine_time, primitive_id in primitives.tolist():
        if timestamp >> 8 != time_high:
            time_high = timestamp >> 8
            words.append(time_high)
        words.append(fine_time | (timestamp & 0xFF) << 8 | primitive_id << 16)
    if 4 * len(words) > MTP_BYTES_MAX:
        raise ValueError(f"no such MTP packet ({4 * len(words)} bytes, at most 1472) send more packets")
    words[1] = 4 * len(words) | len(primitives) << 16 | source_sub_id << 24
    return np.array(words, "<u4").tobytes()


def decode_primitive_ids(ids: npt.ArrayLike) -> Records:
    """What our primitive IDs say: PRIMITIVE_MEANING, same shape as ids."""
    values = np.asarray(ids, np.uint16)
    meaning = np.zeros(values.shape, PRIMITIVE_MEANING)
    meaning["multiplicity"] = values & 0x3F
    meaning["ring_count"] = values >> 6 & 0x3
    meaning["ring_found"] = values >> 8 & 1
    meaning["electron_like"] = values >> 9 & 1
    meaning["radius_class"] = values >> 10 & 0xF
    meaning["calibration"] = values >> 15
    return meaning


def encode_primitive_ids(meaning: Records) -> Words:
    """Our primitive IDs, uint16, from PRIMITIVE_MEANING of the same shape; bit 14 is set."""
    return (
        (meaning["multiplicity"].astype(np.uint32) & 0x3F)
        | (meaning["ring_count"].astype(np.uint32) & 0x3) << 6
        | meaning["ring_found"].astype(np.uint32) << 8
        | meaning["electron_like"].astype(np.uint32) << 9
        | (meaning["radius_class"].astype(np.uint32) & 0xF) << 10
        | np.uint32(1 << 14)
        | meaning["calibration"].astype(np.uint32) << 15
    ).astype(np.uint16)
