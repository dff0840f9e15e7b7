# SPDX-License-Identifier: Apache-2.0
"""The packet formats as numpy structured dtypes, with parsers and builders in plain numpy.

Byte by byte tables are in docs/formats.md. This module mirrors the C++ headers nanet/wire/*.hpp and needs no extension
module; both read the same test vectors. It is for tests, tools and looking at data, not for the hot path.

Dtypes (all little-endian, packed as on the wire):
    MGP_PACKET         one padded packet, 1168 bytes, with `events` of shape (16,) and in them `hits` of shape (32,)
    MGP_HEADER         16 bytes, of either layout and of a marker
    MGP_EVENT_HEADER   8 bytes
    MTP_HEADER         8 bytes
    PRIMITIVE          one decoded primitive (not as on the wire)
    PRIMITIVE_MEANING  what a primitive ID says, one field a meaning

Units: timestamps are 24.951059536 ns, fine times 1/256 of that (a tick), hit times 2/256.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Buffer: TypeAlias = bytes | bytearray | memoryview
Records: TypeAlias = npt.NDArray[np.void]
Words: TypeAlias = npt.NDArray[np.uint16]

MGP_PADDED_BYTES = 1168
MGP_HEADER_BYTES = 16
MGP_MARKER_BYTES = 24
MGP_EVENT_HEADER_BYTES = 8
MGP_EVENTS_MAX = 16  # padded
MGP_HITS_MAX = 32  # padded, each event
MGP_PACKED_BYTES_MAX = 1472
MGP_PACKED_HITS_MAX = 255
CHANNELS_PER_BOARD = 512
BOARDS_MAX = 4
MTP_HEADER_BYTES = 8
MTP_BYTES_MAX = 1472
MTP_PRIMITIVES_MAX = 255
PRIMITIVE_ID_MIN = 0x0100

TIMESTAMP_NS = 24.951059536
TICK_NS = TIMESTAMP_NS / 256
_TICK_NUMERATOR = 1559441221  # a tick is exactly 1559441221 / 16e9 ns
_TICK_DENOMINATOR = 16_000_000_000

MGP_HEADER = np.dtype(
    [
        ("source_id", "u1"),
        ("source_sub_id", "u1"),
        ("format", "u1"),
        ("event_count", "u1"),
        ("sequence", "<u4"),
        ("send_time_ns", "<u4"),
        ("checksum", "<u4"),
    ]
)
MGP_EVENT_HEADER = np.dtype([("timestamp", "<u4"), ("fine_time", "u1"), ("hit_count", "u1"), ("event_number", "<u2")])
MGP_EVENT = np.dtype([*MGP_EVENT_HEADER.descr, ("hits", "<u2", (MGP_HITS_MAX,))])
MGP_PACKET = np.dtype([*MGP_HEADER.descr, ("events", MGP_EVENT, (MGP_EVENTS_MAX,))])
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


class ParseError(enum.IntEnum):
    """Why a packet was refused; the same values as in C++."""

    none = 0
    bad_length = 1
    bad_format = 2
    bad_checksum = 3


class MgpLayout(enum.IntEnum):
    """How an MGP packet holds its events."""

    padded = 1
    packed = 2


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


@dataclass(frozen=True)
class MgpPacket:
    """What an MGP packet says, alike for both layouts.

    events: MGP_EVENT_HEADER, shape (event_count,); empty for a marker.
    hits: uint16, shape (hits of all events,), event after event. Packed ids come as channel = source_sub_id * 512 + id.
    offsets: int64, shape (event_count + 1,): event i has hits[offsets[i]:offsets[i + 1]].
    next_event_number: the running number in a marker, None in a data packet.
    """

    source_id: int
    source_sub_id: int
    layout: MgpLayout
    run_start: bool
    run_end: bool
    sequence: int
    send_time_ns: int
    events: Records = field(repr=False)
    hits: Words = field(repr=False)
    offsets: npt.NDArray[np.int64] = field(repr=False)
    next_event_number: int | None = None

    @property
    def is_marker(self) -> bool:
        return self.next_event_number is not None

    def hits_of(self, event_index: int) -> Words:
        """Hits of one event, uint16, shape (hit_count,)."""
        return self.hits[self.offsets[event_index] : self.offsets[event_index + 1]]


@dataclass(frozen=True)
class MtpPacket:
    """What an MTP packet says. primitives: PRIMITIVE, shape (primitive_count,). first_timestamp: low 8 bits are 0."""

    source_id: int
    source_sub_id: int
    first_timestamp: int
    primitives: Records = field(repr=False)


@dataclass(frozen=True)
class EventRecord:
    """One event to be put in a packet. hits: numbers below 65536; a packed packet keeps their low 9 bits only."""

    timestamp: int
    fine_time: int
    event_number: int
    hits: Sequence[int]


# --- checksum -----------------------------------------------------------------------------------------------------------


def fletcher32(data: Buffer | npt.NDArray[np.uint8]) -> int:
    """Fletcher-32 over little-endian 16-bit words, sums modulo 65535 that start at 0; fletcher32(b"abcdefgh") == 0xEBE19591."""
    octets = np.frombuffer(data, np.uint8)
    if octets.size % 2:
        octets = np.append(octets, np.uint8(0))
    return int(_fletcher(octets.view("<u2")[None, :])[0])


def mgp_checksum(payload: Buffer) -> int:
    """Fletcher-32 of an MGP payload without its bytes 12..15."""
    data = bytes(payload)
    return fletcher32(data[:12] + data[16:])


def mgp_checksums(packets: Records) -> npt.NDArray[np.uint32]:
    """The checksum that each padded packet should have. packets: MGP_PACKET, shape (n,); result uint32, shape (n,)."""
    words = np.ascontiguousarray(packets).view("<u2").reshape(len(packets), MGP_PADDED_BYTES // 2)
    return _fletcher(np.delete(words, (6, 7), axis=1))


def _fletcher(words: Words) -> npt.NDArray[np.uint32]:
    """words: shape (n, words); result uint32, shape (n,). Exact for up to 2**23 words."""
    count = words.shape[1]
    wide = words.astype(np.uint64)
    first = wide.sum(axis=1) % 65535
    second = (wide * np.arange(count, 0, -1, dtype=np.uint64)).sum(axis=1) % 65535
    checksums: npt.NDArray[np.uint32] = (second << np.uint64(16) | first).astype(np.uint32)
    return checksums


# --- MGP ----------------------------------------------------------------------------------------------------------------


def check_mgp(payload: Buffer) -> ParseError:
    """Why this payload would be refused; checks in the order of the C++ view. (A misaligned address cannot happen here.)"""
    data = memoryview(payload)
    if not MGP_HEADER_BYTES <= len(data) <= MGP_PACKED_BYTES_MAX or len(data) % 2:
        return ParseError.bad_length
    header = np.frombuffer(data, MGP_HEADER, 1)[0]
    layout = int(header["format"]) & 0x0F
    run_bits = int(header["format"]) >> 4
    event_count = int(header["event_count"])
    if layout not in (MgpLayout.padded, MgpLayout.packed) or run_bits > 3:
        return ParseError.bad_format
    if layout == MgpLayout.packed and header["source_sub_id"] >= BOARDS_MAX:
        return ParseError.bad_format
    if event_count == 0:
        if run_bits not in (1, 2):
            return ParseError.bad_format
        error = ParseError.none if len(data) == MGP_MARKER_BYTES else ParseError.bad_length
    elif layout == MgpLayout.padded:
        error = _check_padded(data, event_count)
    else:
        error = ParseError.none if _packed_offsets(data, event_count) is not None else ParseError.bad_length
    if error is not ParseError.none:
        return error
    return ParseError.none if int(header["checksum"]) == mgp_checksum(data) else ParseError.bad_checksum


def parse_mgp(payload: Buffer) -> MgpPacket:
    """The packet, copied out of the payload. Raises WireError."""
    error = check_mgp(payload)
    if error is not ParseError.none:
        raise WireError(error)
    data = memoryview(payload)
    header = np.frombuffer(data, MGP_HEADER, 1)[0]
    layout = MgpLayout(int(header["format"]) & 0x0F)
    board = int(header["source_sub_id"])
    event_count = int(header["event_count"])
    next_event_number = None
    events = np.zeros(event_count, MGP_EVENT_HEADER)
    hits: list[Words] = []
    if event_count == 0:
        next_event_number = int.from_bytes(data[MGP_HEADER_BYTES:MGP_MARKER_BYTES], "little")
    elif layout is MgpLayout.padded:
        slots = view_packets(data)[0]["events"][:event_count]
        for name in MGP_EVENT_HEADER.names or ():
            events[name] = slots[name]
        hits = [slot["hits"][: slot["hit_count"]] for slot in slots]
    else:
        for i, offset in enumerate(_packed_offsets(data, event_count) or ()):
            events[i] = np.frombuffer(data, MGP_EVENT_HEADER, 1, offset)[0]
            hits.append(unpack_ids(data[offset + MGP_EVENT_HEADER_BYTES :], int(events[i]["hit_count"]), board))
    return MgpPacket(
        source_id=int(header["source_id"]),
        source_sub_id=board,
        layout=layout,
        run_start=bool(header["format"] & 0x10),
        run_end=bool(header["format"] & 0x20),
        sequence=int(header["sequence"]),
        send_time_ns=int(header["send_time_ns"]),
        events=events,
        hits=np.concatenate([np.zeros(0, np.uint16), *hits]),
        offsets=np.concatenate([[0], np.cumsum(events["hit_count"], dtype=np.int64)]),
        next_event_number=next_event_number,
    )


def view_packets(buffer: Any) -> Records:
    """Padded packets lying one after the other, without a copy and without a check: MGP_PACKET, shape (bytes / 1168,)."""
    return np.frombuffer(buffer, MGP_PACKET)


def hit_channels(hits: Words) -> Words:
    """Channel 0..2047 of each 16-bit hit, same shape."""
    return hits & np.uint16(0x7FF)


def hit_times(hits: Words) -> npt.NDArray[np.int8]:
    """Time of each hit relative to its event, in 2/256 of a timestamp (0.195 ns), -16..15, same shape."""
    return (hits.view(np.int16) >> 11).astype(np.int8)


def make_hits(channels: npt.ArrayLike, times: npt.ArrayLike) -> Words:
    """16-bit hits from channels 0..2047 and times -16..15 (0.195 ns); shapes broadcast."""
    return ((np.asarray(channels) & 0x7FF) | (np.asarray(times) & 0x1F) << 11).astype(np.uint16)


def unpack_ids(packed: Buffer, hit_count: int, board: int) -> Words:
    """hit_count ids of 9 bits, LSB first, as channels board * 512 + id: uint16, shape (hit_count,)."""
    octets = np.frombuffer(packed, np.uint8, (9 * hit_count + 7) // 8)
    bits = np.unpackbits(octets, count=9 * hit_count, bitorder="little").reshape(hit_count, 9)
    return (bits @ (1 << np.arange(9)) + board * CHANNELS_PER_BOARD).astype(np.uint16)


def pack_ids(ids: npt.ArrayLike) -> bytes:
    """The low 9 bits of each number, LSB first, zeros up to a whole byte."""
    values = np.asarray(ids, np.int64).reshape(-1, 1)
    return np.packbits((values >> np.arange(9) & 1).astype(np.uint8).ravel(), bitorder="little").tobytes()


def build_mgp(
    events: Iterable[EventRecord],
    *,
    source_id: int,
    source_sub_id: int,
    layout: MgpLayout = MgpLayout.padded,
    sequence: int = 0,
    send_time_ns: int = 0,
    run_start: bool = False,
    run_end: bool = False,
    packet_bytes: int = 0,
) -> bytes:
    """A sealed data packet. A packed one is filled with zeros to packet_bytes (0: only to an even length).

    Raises ValueError when the events do not fit: 1..16 events of up to 32 hits (padded), up to 1472 bytes (packed).
    """
    records = list(events)
    body = bytearray()
    for event in records:
        if len(event.hits) > (MGP_HITS_MAX if layout is MgpLayout.padded else MGP_PACKED_HITS_MAX):
            raise ValueError(f"too many hits for one event ({len(event.hits)} in a {layout.name} packet) split or cut the event")
        head = (event.timestamp, event.fine_time, len(event.hits), event.event_number)
        body += np.array([head], MGP_EVENT_HEADER).tobytes()
        if layout is MgpLayout.padded:
            body += np.array(event.hits, "<u2").tobytes().ljust(2 * MGP_HITS_MAX, b"\0")
        else:
            body += pack_ids(event.hits)
    size = MGP_HEADER_BYTES + len(body)
    if layout is MgpLayout.packed:
        size = (max(size, packet_bytes) + 1) // 2 * 2
    limit = MGP_PADDED_BYTES if layout is MgpLayout.padded else MGP_PACKED_BYTES_MAX
    if not records or size > limit:
        raise ValueError(f"no such packet ({len(records)} events, {size} bytes; at most {limit}) change the number of events")
    body = body.ljust((MGP_PADDED_BYTES if layout is MgpLayout.padded else size) - MGP_HEADER_BYTES, b"\0")
    code = layout | run_start << 4 | run_end << 5
    return _sealed((source_id, source_sub_id, code, len(records), sequence, send_time_ns, 0), body)


def build_marker(
    next_event_number: int,
    *,
    source_id: int,
    source_sub_id: int,
    run_start: bool = False,
    run_end: bool = False,
    layout: MgpLayout = MgpLayout.padded,
    sequence: int = 0,
    send_time_ns: int = 0,
) -> bytes:
    """A sealed run marker of 24 bytes; ValueError unless exactly one of run_start and run_end is set."""
    if run_start == run_end:
        raise ValueError("a run marker must say start or end (both or none is set) set exactly one")
    code = layout | run_start << 4 | run_end << 5
    return _sealed((source_id, source_sub_id, code, 0, sequence, send_time_ns, 0), next_event_number.to_bytes(8, "little"))


def _sealed(header: tuple[int, ...], body: Buffer) -> bytes:
    payload = bytearray(np.array([header], MGP_HEADER).tobytes() + bytes(body))
    payload[12:16] = mgp_checksum(payload).to_bytes(4, "little")
    return bytes(payload)


def _check_padded(data: memoryview, event_count: int) -> ParseError:
    if len(data) != MGP_PADDED_BYTES:
        return ParseError.bad_length
    if event_count > MGP_EVENTS_MAX:
        return ParseError.bad_format
    hit_counts = view_packets(data)[0]["events"]["hit_count"][:event_count]
    return ParseError.bad_format if (hit_counts > MGP_HITS_MAX).any() else ParseError.none


def _packed_offsets(data: memoryview, event_count: int) -> list[int] | None:
    """Where each event begins; None when one does not lie inside."""
    offsets = []
    offset = MGP_HEADER_BYTES
    for _ in range(event_count):
        offsets.append(offset)
        if len(data) - offset < MGP_EVENT_HEADER_BYTES:
            return None
        offset += MGP_EVENT_HEADER_BYTES + (9 * data[offset + 5] + 7) // 8
        if offset > len(data):
            return None
    return offsets


# --- MTP ----------------------------------------------------------------------------------------------------------------


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


# --- time ---------------------------------------------------------------------------------------------------------------


def ticks(timestamp: int, fine_time: int) -> int:
    """An instant as a number of fine times: timestamp * 256 + fine_time."""
    return timestamp << 8 | fine_time


def ns_from_ticks(tick_count: int) -> int:
    """Nanoseconds, rounded to the nearest; integer arithmetic, no drift."""
    return (tick_count * _TICK_NUMERATOR + _TICK_DENOMINATOR // 2) // _TICK_DENOMINATOR


def ticks_from_ns(ns: int) -> int:
    """Ticks, rounded to the nearest; ns_from_ticks() gives the same ns back."""
    return (ns * _TICK_DENOMINATOR + _TICK_NUMERATOR // 2) // _TICK_NUMERATOR
