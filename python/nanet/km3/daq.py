# SPDX-License-Identifier: Apache-2.0
"""Messages of KM3NeT's data acquisition as its dispatcher carries them and dumps of it have them: time slices, summary slices, events.

Little-endian but for the hits. What stands where was read in KM3NeT's own reader (km3pipe, io/daq.py) and is as docs/formats-km3.md says.
No I/O and no clock.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "EVENT_HIT", "HIT", "LEVELS", "MODULE", "TRIGGERED_HIT", "DaqError", "Event", "Frame", "Header", "Message", "Slice", "Summary",
    "encode", "queue_status", "rate_of", "read",
]  # fmt: skip

LEVELS = {"L0": 1002, "L1": 1003, "L2": 1004, "SN": 1005}
"""Types of time slices: all hits, coincidences of a module, those of several, supernova's."""
FRAME_TYPE, SUMMARY_TYPE, EVENT_TYPE = 101, 2001, 10001
SLICE_VERSION, SUMMARY_VERSION, EVENT_VERSION = 1, 6, 4
RATE_LEAST_HZ, RATE_MOST_HZ = 2e3, 2e6
"""What a byte of a rate can say: 0 is none, 255 the most, and between them equal steps of the logarithm."""
CHANNELS = 31

HIT = np.dtype([("channel", "u1"), ("time_ns", ">i4"), ("tot", "u1")])
"""Of a time slice: PMT, time since the slice began, time over threshold [ns] (of a tower: charge [1/10 photo-electron])."""
EVENT_HIT = np.dtype([("module", "<i4"), *HIT.descr])
TRIGGERED_HIT = np.dtype([*EVENT_HIT.descr, ("mask", "<u8")])
MODULE = np.dtype([("module", "<i4"), ("queue_status", "<u4"), ("status", "<u4", 4), ("rates", "u1", CHANNELS)])
"""Of a summary slice."""

_PREAMBLE = struct.Struct("<iih")  # bytes, type, version
_HEADER = struct.Struct("<iiiII")
_FRAME = struct.Struct("<ii iiiII iI4I i")
_EVENT = struct.Struct("<QQi")
_COUNT = struct.Struct("<i")


class DaqError(ValueError):
    """A dump that is none, or is cut: what, and at which byte."""


class Header(NamedTuple):
    """Of which time slice."""

    detector: int
    run: int
    number: int
    """Of the slice in the run."""
    second: int
    """Of UTC; as it stands there, with bit 31."""
    tick: int
    """16 ns."""


class Frame(NamedTuple):
    """What one module sent in a time slice."""

    header: Header
    module: int
    hits: NDArray[np.void]
    queue_status: int = 0
    status: tuple[int, ...] = (0, 0, 0, 0)


class Slice(NamedTuple):
    """A time slice of all modules."""

    level: str
    header: Header
    frames: tuple[Frame, ...]


class Summary(NamedTuple):
    """Rates of all modules in a time slice: MODULE."""

    header: Header
    modules: NDArray[np.void]


class Event(NamedTuple):
    """Hits around what was triggered: TRIGGERED_HIT those that did it, EVENT_HIT all."""

    header: Header
    counter: int
    mask: int
    overlays: int
    triggered: NDArray[np.void]
    hits: NDArray[np.void]


Message = Slice | Summary | Event


def queue_status(came: int, sent: int) -> int:
    """How many packets of a module's slice came, and the highest number among all that it sent."""
    return min(came, 0xFFFF) | min(max(sent - 1, 0), 0xFFFF) << 16


def rate_of(rates_hz: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The bytes that say these rates; below 2 kHz: 0."""
    steps = np.log(np.maximum(rates_hz, RATE_LEAST_HZ) / RATE_LEAST_HZ) * 255 / np.log(RATE_MOST_HZ / RATE_LEAST_HZ)
    return np.where(rates_hz < RATE_LEAST_HZ, 0, np.clip(np.rint(steps), 1, 255)).astype(np.uint8)


def read(data: bytes | memoryview, passed_over: Counter[int] | None = None) -> Iterator[Message]:
    """The messages of a dump, one after the other. Raises DaqError.

    passed_over: counts the messages of other types, which are none of ours, by type.
    """
    view, at = memoryview(data), 0
    while at < len(view):
        if len(view) - at < 8:
            raise DaqError(f"{len(view) - at} B follow the last message, at byte {at} (its length and type have 8)")
        length, kind = struct.unpack_from("<ii", view, at)
        if length < 8 or length > len(view) - at:
            raise DaqError(f"the message at byte {at} has {length} B, and {len(view) - at} are there")
        reader = _READERS.get(kind)
        if reader is not None:
            yield reader(_Part(view[at : at + length], at), kind)
        elif passed_over is not None:
            passed_over[kind] += 1
        at += length


class _Part:
    """The bytes of one message, read from its beginning to its end."""

    def __init__(self, view: memoryview, place: int) -> None:
        self._view, self.place, self.at = view, place, 0

    def fields(self, layout: struct.Struct) -> tuple[int, ...]:
        self._need(layout.size)
        self.at += layout.size
        return layout.unpack_from(self._view, self.at - layout.size)

    def array(self, dtype: np.dtype[np.void], count: int) -> NDArray[np.void]:
        if count < 0:
            raise DaqError(f"{count} records at byte {self.place + self.at}")
        self._need(count * dtype.itemsize)
        self.at += count * dtype.itemsize
        return np.frombuffer(self._view, dtype, count, self.at - count * dtype.itemsize)

    def begin(self, version: int) -> Header:
        _, kind, said = self.fields(_PREAMBLE)
        if said != version:
            raise DaqError(f"the message at byte {self.place}, of type {kind}, is of version {said}, and {version} is known")
        return Header(*self.fields(_HEADER))

    def end(self) -> None:
        if self.at != len(self._view):
            raise DaqError(f"{len(self._view) - self.at} B are left of the message at byte {self.place}")

    def frame(self) -> Frame:
        begin = self.at
        length, kind, detector, run, index, second, tick, module, queue, s0, s1, s2, s3, count = self.fields(_FRAME)
        if kind != FRAME_TYPE or length != _FRAME.size + count * HIT.itemsize:
            raise DaqError(f"the frame at byte {self.place + begin} is of type {kind}, with {length} B and {count} hits")
        hits = self.array(HIT, count)
        return Frame(Header(detector, run, index, second, tick), module, hits, queue, (s0, s1, s2, s3))

    def _need(self, count: int) -> None:
        if count > len(self._view) - self.at:
            raise DaqError(f"the message at byte {self.place} ends {self.at + count - len(self._view)} B too early")


def _read_slice(part: _Part, kind: int) -> Slice:
    header = part.begin(SLICE_VERSION)
    (count,) = part.fields(_COUNT)
    if count < 0:
        raise DaqError(f"{count} frames at byte {part.place}")
    frames = tuple(part.frame() for _ in range(count))
    part.end()
    return Slice(_NAMES[kind], header, frames)


def _read_summary(part: _Part, _: int) -> Summary:
    header = part.begin(SUMMARY_VERSION)
    (count,) = part.fields(_COUNT)
    modules = part.array(MODULE, count)
    part.end()
    return Summary(header, modules)


def _read_event(part: _Part, _: int) -> Event:
    header = part.begin(EVENT_VERSION)
    counter, mask, overlays = part.fields(_EVENT)
    triggered = part.array(TRIGGERED_HIT, *part.fields(_COUNT))
    hits = part.array(EVENT_HIT, *part.fields(_COUNT))
    part.end()
    return Event(header, counter, mask, overlays, triggered, hits)


_NAMES = {kind: level for level, kind in LEVELS.items()}
_READERS: dict[int, Callable[[_Part, int], Message]] = {
    **dict.fromkeys(_NAMES, _read_slice),
    SUMMARY_TYPE: _read_summary,
    EVENT_TYPE: _read_event,
}


def encode(message: Message) -> bytes:
    """The message as the dispatcher carries it."""
    if isinstance(message, Slice):
        frames = [_encoded_frame(one) for one in message.frames]
        return _message(LEVELS[message.level], SLICE_VERSION, message.header, [_COUNT.pack(len(frames)), *frames])
    if isinstance(message, Summary):
        modules = message.modules.astype(MODULE, copy=False)
        return _message(SUMMARY_TYPE, SUMMARY_VERSION, message.header, [_COUNT.pack(len(modules)), modules.tobytes()])
    triggered, hits = message.triggered.astype(TRIGGERED_HIT, copy=False), message.hits.astype(EVENT_HIT, copy=False)
    body = [_EVENT.pack(message.counter, message.mask, message.overlays), _COUNT.pack(len(triggered)), triggered.tobytes(),
            _COUNT.pack(len(hits)), hits.tobytes()]  # fmt: skip
    return _message(EVENT_TYPE, EVENT_VERSION, message.header, body)


def _message(kind: int, version: int, header: Header, body: list[bytes]) -> bytes:
    length = _PREAMBLE.size + _HEADER.size + sum(map(len, body))
    return b"".join([_PREAMBLE.pack(length, kind, version), _HEADER.pack(*header), *body])


def _encoded_frame(frame: Frame) -> bytes:
    hits = frame.hits.astype(HIT, copy=False)
    length = _FRAME.size + hits.nbytes
    head = _FRAME.pack(length, FRAME_TYPE, *frame.header, frame.module, frame.queue_status, *frame.status, len(hits))
    return head + hits.tobytes()
