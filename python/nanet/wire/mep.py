# SPDX-License-Identifier: Apache-2.0
"""MEP, NA62's packets of recorded raw data with TDC words, in plain Python and numpy: reader and writer.

Byte by byte tables, and what of it is NA62's and what our reading, are in docs/formats-mep.md. This module mirrors
nanet/wire/mep.hpp and reads the same test vectors. It is for tests, tools and looking at data, not for the hot path.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from nanet.wire.base import Buffer, ParseError, Records, WireError

MEP_HEADER_BYTES = 8
MEP_EVENT_HEADER_BYTES = 8
MEP_BYTES_MAX = 65535
MEP_EVENTS_MAX = 255
TDC_CHANNELS = 512  # of a board
FPGAS = 4
LEADING, TRAILING = 4, 5
TIME_RANGE = 1 << 18  # ticks before and after an event that a TDC word can tell

MEP_HIT = np.dtype([("channel", "<u2"), ("time_ticks", "<i4"), ("width_ticks", "<i4")])
"""A hit: channel board * 512 + channel in the board; leading edge from the event's timestamp and width in ticks (97.46 ps), width 0
when no trailing edge came."""


@dataclass(frozen=True)
class MepEvent:
    """One event of a packet. data: what follows its header; for a board with TDCs, `tdc_hits` reads it."""

    event_number: int
    timestamp: int
    last_of_burst: bool
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class MepPacket:
    """What a MEP says."""

    first_event_number: int
    source_id: int
    source_sub_id: int
    events: tuple[MepEvent, ...]


def check_mep(payload: Buffer) -> ParseError:
    """Why this packet would be refused; checks in the order of the C++ view."""
    data = memoryview(payload)
    if not MEP_HEADER_BYTES <= len(data) <= MEP_BYTES_MAX:
        return ParseError.bad_length
    first, length, count, _ = struct.unpack_from("<IHBB", data)
    if length != len(data):
        return ParseError.bad_length
    offset = MEP_HEADER_BYTES
    numbers_good = True
    for number in range(count):
        if len(data) - offset < MEP_EVENT_HEADER_BYTES:
            return ParseError.bad_length
        size, number_low = struct.unpack_from("<HB", data, offset)
        if size < MEP_EVENT_HEADER_BYTES or len(data) - offset < size:
            return ParseError.bad_length
        numbers_good &= number_low == (first + number) & 0xFF
        offset += size
    if offset != len(data):
        return ParseError.bad_length
    return ParseError.none if numbers_good else ParseError.bad_format


def parse_mep(payload: Buffer) -> MepPacket:
    """The packet, copied out of the payload. Raises WireError."""
    error = check_mep(payload)
    if error is not ParseError.none:
        raise WireError(error)
    data = bytes(payload)
    first, _, count, sub_id = struct.unpack_from("<IHBB", data)
    events = []
    offset = MEP_HEADER_BYTES
    for index in range(count):
        size, _, flags, timestamp = struct.unpack_from("<HBBI", data, offset)
        body = data[offset + MEP_EVENT_HEADER_BYTES : offset + size]
        events.append(MepEvent((first + index) & 0xFFFFFF, timestamp, bool(flags & 0x80), body))
        offset += size
    return MepPacket(first & 0xFFFFFF, first >> 24, sub_id, tuple(events))


def read_meps(data: Buffer) -> Iterator[MepPacket]:
    """The packets of a file that holds them one after the other. Raises WireError at the first bad one."""
    view = memoryview(data)
    while len(view):
        length = struct.unpack_from("<H", view, 4)[0] if len(view) >= MEP_HEADER_BYTES else 0
        yield parse_mep(view[: max(length, 1)])
        view = view[length:]


def tdc_hits(event: MepEvent, board: int) -> Records:
    """The hits in an event of a board with TDCs: MEP_HIT, in the order of their leading edges in the data. Raises WireError."""
    hits: list[list[int]] = []
    open_hits: dict[int, list[int]] = {}
    for channel, time, kind in _tdc_words(event.data):
        relative = (time - (event.timestamp << 8) + TIME_RANGE) % (2 * TIME_RANGE) - TIME_RANGE
        if kind == LEADING:
            open_hits[channel] = [board * TDC_CHANNELS + channel, relative, 0]
            hits.append(open_hits[channel])
        elif channel in open_hits and relative > open_hits[channel][1]:
            hit = open_hits.pop(channel)
            hit[2] = relative - hit[1]
    return np.array([tuple(hit) for hit in hits], MEP_HIT)


def _tdc_words(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Channel in the board, time modulo 2**19 and kind of every edge."""
    if not data or len(data) % 4:
        raise WireError(ParseError.bad_length)
    words = struct.unpack(f"<{len(data) // 4}I", data)
    fpgas = (words[0] & 0xFF).bit_length()
    if not 1 <= fpgas <= FPGAS:
        raise WireError(ParseError.bad_format)
    found = []
    place = 1
    try:
        for _ in range(fpgas):
            header = words[place]
            fpga, place = header >> 16 & 0xFF, place + 1
            if fpga >= FPGAS:
                raise WireError(ParseError.bad_format)
            for _ in range(header & 0xFF):
                size = words[place] >> 16
                if size == 0:
                    raise WireError(ParseError.bad_format)
                if place + size > len(words):
                    raise WireError(ParseError.bad_length)
                found += [(fpga, word) for word in words[place + 1 : place + size]]
                place += size
            if header >> 24 & 1 and place < len(words):
                place += words[place] >> 16
                if place > len(words):
                    raise WireError(ParseError.bad_length)
    except IndexError:
        raise WireError(ParseError.bad_length) from None
    for fpga, word in found:
        if word >> 28 in (LEADING, TRAILING):
            yield (fpga * 4 + (word >> 24 & 3)) * 32 + (word >> 19 & 31), word & 0x7FFFF, word >> 28


def build_tdc_data(timestamp: int, hits: Iterable[Sequence[int]], *, source_sub_id: int, trigger_type: int = 0) -> bytes:
    """The data of one event of a board: four FPGA blocks, edges in order of time. hits: channel, time and width in ticks."""
    edges = []
    for channel, time, width in (map(int, hit) for hit in hits):
        fpga, rest = divmod(channel % TDC_CHANNELS, 128)
        begin = (timestamp << 8) + time
        edges.append((fpga, begin, rest, LEADING))
        if width > 0:
            edges.append((fpga, begin + width, rest, TRAILING))
    edges.sort(key=lambda edge: edge[:2])
    out = bytearray((0x0F, trigger_type, source_sub_id, 0))
    for fpga in range(FPGAS):
        own = [edge for edge in edges if edge[0] == fpga]
        frames = [(frame, list(group)) for frame, group in itertools.groupby(own, key=lambda edge: edge[1] >> 8)]
        out += struct.pack("<BBBB", len(frames), 0, fpga, 0)
        for frame, group in frames:
            out += struct.pack("<HH", frame & 0xFFFF, len(group) + 1)
            for _, time, rest, kind in group:
                out += struct.pack("<I", time & 0x7FFFF | (rest & 31) << 19 | rest >> 5 << 24 | kind << 28)
    return bytes(out)


def build_mep(
    events: Iterable[tuple[int, bytes]],
    *,
    source_id: int,
    source_sub_id: int,
    first_event_number: int = 0,
    ends_burst: bool = False,
) -> bytes:
    """A packet. events: timestamp and data of each. Raises ValueError when there are more than 255 or they are too long."""
    records = list(events)
    body = bytearray()
    for index, (timestamp, data) in enumerate(records):
        flag = 0x80 if ends_burst and index == len(records) - 1 else 0
        size = MEP_EVENT_HEADER_BYTES + len(data)
        if MEP_HEADER_BYTES + len(body) + size > MEP_BYTES_MAX:
            raise ValueError("no such packet (longer than 65535 bytes) send more packets")
        body += struct.pack("<HBBI", size, (first_event_number + index) & 0xFF, flag, timestamp) + data
    if len(records) > MEP_EVENTS_MAX:
        raise ValueError(f"no such packet ({len(records)} events, at most 255) send more packets")
    head = struct.pack(
        "<IHBB", first_event_number & 0xFFFFFF | source_id << 24, MEP_HEADER_BYTES + len(body), len(records), source_sub_id
    )
    return head + bytes(body)
