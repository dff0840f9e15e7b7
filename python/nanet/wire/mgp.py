# SPDX-License-Identifier: Apache-2.0
"""MGP, the packets of hits that NA62's boards send, in plain numpy: parser and builders.

Dtypes (all little-endian, packed as on the wire):
    MGP_PACKET         one padded packet, 1168 bytes, with `events` of shape (16,) and in them `hits` of shape (32,)
    MGP_HEADER         16 bytes, of either layout and of a marker
    MGP_EVENT_HEADER   8 bytes
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from nanet.wire.base import Buffer, ParseError, Records, WireError, Words

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


class MgpLayout(enum.IntEnum):
    """How an MGP packet holds its events."""

    padded = 1
    packed = 2


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
class EventRecord:
    """One event to be put in a packet. hits: numbers below 65536; a packed packet keeps their low 9 bits only."""

    timestamp: int
    fine_time: int
    event_number: int
    hits: Sequence[int]


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
