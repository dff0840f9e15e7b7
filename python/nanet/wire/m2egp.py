# SPDX-License-Identifier: Apache-2.0
"""M2EGP, the packets of merged events, in plain numpy: parser and builders, as `nanet.wire` has them for MGP.

Byte by byte tables are in docs/formats-merged.md. This module mirrors nanet/wire/m2egp.hpp and reads the same test vectors. It is
for tests, tools and looking at data, not for the hot path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nanet.wire.base import Buffer, ParseError, Records, WireError, Words
from nanet.wire.mgp import (
    MGP_EVENT_HEADER,
    MGP_EVENT_HEADER_BYTES,
    MGP_HEADER,
    MGP_HEADER_BYTES,
    MGP_MARKER_BYTES,
    EventRecord,
    mgp_checksum,
)

M2EGP_LAYOUT = 3
M2EGP_BYTES_USUAL = 1472
M2EGP_BYTES_MAX = 8972
M2EGP_HITS_MAX = 128
M2EGP_EVENTS_MAX = 255


@dataclass(frozen=True)
class M2egpPacket:
    """What an M2EGP packet says. events: MGP_EVENT_HEADER, shape (event_count,); hits: uint16, of all events one after the other;
    offsets: where each event's hits begin, shape (event_count + 1,). next_event_number: of a marker, else None."""

    source_id: int
    source_sub_id: int
    run_start: bool
    run_end: bool
    sequence: int
    send_time_ns: int
    events: Records = field(repr=False)
    hits: Words = field(repr=False)
    offsets: npt.NDArray[np.int64] = field(repr=False)
    next_event_number: int | None = None

    def hits_of(self, event_index: int) -> Words:
        """The 16-bit hits of one event."""
        return self.hits[self.offsets[event_index] : self.offsets[event_index + 1]]


def check_m2egp(payload: Buffer) -> ParseError:
    """Why this payload would be refused; checks in the order of the C++ view. (A misaligned address cannot happen here.)"""
    data = memoryview(payload)
    if not MGP_HEADER_BYTES <= len(data) <= M2EGP_BYTES_MAX or len(data) % 2:
        return ParseError.bad_length
    header = np.frombuffer(data, MGP_HEADER, 1)[0]
    run_bits = int(header["format"]) >> 4
    event_count = int(header["event_count"])
    if int(header["format"]) & 0x0F != M2EGP_LAYOUT or run_bits > 3:
        return ParseError.bad_format
    if event_count == 0:
        if run_bits not in (1, 2):
            return ParseError.bad_format
        if len(data) != MGP_MARKER_BYTES:
            return ParseError.bad_length
    else:
        offsets = _event_offsets(data, event_count)
        if offsets is None:
            return ParseError.bad_length
        if any(data[offset + 5] > M2EGP_HITS_MAX for offset in offsets):
            return ParseError.bad_format
    return ParseError.none if int(header["checksum"]) == mgp_checksum(data) else ParseError.bad_checksum


def parse_m2egp(payload: Buffer) -> M2egpPacket:
    """The packet, copied out of the payload. Raises WireError."""
    error = check_m2egp(payload)
    if error is not ParseError.none:
        raise WireError(error)
    data = memoryview(payload)
    header = np.frombuffer(data, MGP_HEADER, 1)[0]
    event_count = int(header["event_count"])
    events = np.zeros(event_count, MGP_EVENT_HEADER)
    hits: list[Words] = []
    for i, offset in enumerate(_event_offsets(data, event_count) or ()):
        events[i] = np.frombuffer(data, MGP_EVENT_HEADER, 1, offset)[0]
        hits.append(np.frombuffer(data, "<u2", int(events[i]["hit_count"]), offset + MGP_EVENT_HEADER_BYTES))
    return M2egpPacket(
        source_id=int(header["source_id"]),
        source_sub_id=int(header["source_sub_id"]),
        run_start=bool(header["format"] & 0x10),
        run_end=bool(header["format"] & 0x20),
        sequence=int(header["sequence"]),
        send_time_ns=int(header["send_time_ns"]),
        events=events,
        hits=np.concatenate([np.zeros(0, np.uint16), *hits]),
        offsets=np.concatenate([[0], np.cumsum(events["hit_count"], dtype=np.int64)]),
        next_event_number=None if event_count else int.from_bytes(data[MGP_HEADER_BYTES:MGP_MARKER_BYTES], "little"),
    )


def build_m2egp(
    events: Iterable[EventRecord],
    *,
    source_id: int,
    source_sub_id: int,
    sequence: int = 0,
    send_time_ns: int = 0,
    run_start: bool = False,
    run_end: bool = False,
    packet_bytes: int = 0,
) -> bytes:
    """A sealed data packet, filled with zeros to packet_bytes (0: not at all).

    Raises ValueError when the events do not fit: 1..255 events of up to 128 hits, 8972 bytes.
    """
    records = list(events)
    body = bytearray()
    for event in records:
        if len(event.hits) > M2EGP_HITS_MAX:
            raise ValueError(f"too many hits for one event ({len(event.hits)}, at most 128) split or cut the event")
        head = (event.timestamp, event.fine_time, len(event.hits), event.event_number)
        body += np.array([head], MGP_EVENT_HEADER).tobytes() + np.array(event.hits, "<u2").tobytes()
    size = (max(MGP_HEADER_BYTES + len(body), packet_bytes) + 1) // 2 * 2
    if not 1 <= len(records) <= M2EGP_EVENTS_MAX or size > M2EGP_BYTES_MAX:
        raise ValueError(f"no such packet ({len(records)} events, {size} bytes; at most 8972) change the number of events")
    code = M2EGP_LAYOUT | run_start << 4 | run_end << 5
    header = (source_id, source_sub_id, code, len(records), sequence, send_time_ns, 0)
    return _sealed(header, bytes(body).ljust(size - MGP_HEADER_BYTES, b"\0"))


def build_m2egp_marker(
    next_event_number: int,
    *,
    source_id: int,
    source_sub_id: int,
    run_start: bool = False,
    run_end: bool = False,
    sequence: int = 0,
    send_time_ns: int = 0,
) -> bytes:
    """A sealed run marker of 24 bytes; ValueError unless exactly one of run_start and run_end is set."""
    if run_start == run_end:
        raise ValueError("a run marker must say start or end (both or none is set) set exactly one")
    code = M2EGP_LAYOUT | run_start << 4 | run_end << 5
    return _sealed((source_id, source_sub_id, code, 0, sequence, send_time_ns, 0), next_event_number.to_bytes(8, "little"))


def _sealed(header: tuple[int, ...], body: bytes) -> bytes:
    payload = bytearray(np.array([header], MGP_HEADER).tobytes() + body)
    payload[12:16] = mgp_checksum(payload).to_bytes(4, "little")
    return bytes(payload)


def _event_offsets(data: memoryview, event_count: int) -> list[int] | None:
    """Where each event begins; None when one does not lie inside."""
    offsets = []
    offset = MGP_HEADER_BYTES
    for _ in range(event_count):
        offsets.append(offset)
        if len(data) - offset < MGP_EVENT_HEADER_BYTES:
            return None
        offset += MGP_EVENT_HEADER_BYTES + 2 * data[offset + 5]
        if offset > len(data):
            return None
    return offsets
