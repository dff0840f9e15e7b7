# SPDX-License-Identifier: Apache-2.0
"""Units of floors: what `km3-floor` packets are put together to, their header on a TCP connection, and the packets that they are cut into again.

docs/formats-km3.md says every byte. No I/O and no clock.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nanet.config import formats
from nanet.config.km3_server import KINDS
from nanet.km3.messages import TICKS_A_SECOND

PACKET = struct.Struct(">IBBBBIIIIII")
PACKET_MAGIC, LAST, UNTIMED = 0x4B4D3346, 1, 2
PAYLOAD_BYTES_MAX = 8940
RECORD_BYTES = {1: 6, 3: 3, 4: 3, 5: 12}
"""Of the kinds whose records have one length."""
UNIT = struct.Struct(">IIBBBBIIIIIQ")
UNIT_MAGIC, INCOMPLETE = 0x4B4D3355, 1
RANGE = struct.Struct(">II")
UNIT_BYTES_MAX = 1 << 26
RANGES_MAX = 4096
PROTOCOL = "km3-floor-run"
FLAWS = {"incomplete": "with holes", "untimed": "untimed", "slices_missing": "missing"}
"""Of a stream's books: what was not whole before it came, in words."""


def declaration() -> dict[str, Any]:
    """`km3-floor`: the number of a unit has its run and whether the floor's time is right, so that both are known of every unit."""
    return formats.load("km3-floor").keys()


class Unit(NamedTuple):
    """Whose a unit is, and of which time."""

    tower: int
    floor: int
    kind: int
    run: int
    slice: int
    second: int
    tick: int
    is_complete: bool = True
    is_untimed: bool = False

    @property
    def kind_name(self) -> str:
        return KINDS[self.kind - 1]


def unit_of(stream: int, number: int, time: int, *, is_complete: bool) -> Unit:
    """From what a port of `declaration()` says."""
    return Unit(
        tower=stream >> 11, floor=stream >> 3 & 255, kind=stream & 7, run=number >> 32 & 0x7FFF_FFFF, slice=number & 0xFFFF_FFFF,
        second=time // TICKS_A_SECOND, tick=time % TICKS_A_SECOND, is_complete=is_complete, is_untimed=bool(number >> 63),
    )  # fmt: skip


def unit_head(unit: Unit, unit_bytes: int, ranges: list[list[int]], sequence: int) -> bytes:
    """What goes before the unit's bytes on a TCP connection. ranges: those that came, of an incomplete unit."""
    flags = (0 if unit.is_complete else INCOMPLETE) | (UNTIMED if unit.is_untimed else 0)
    length = len(ranges) * RANGE.size + unit_bytes
    head = UNIT.pack(
        UNIT_MAGIC,
        length,
        unit.tower,
        unit.floor,
        unit.kind,
        flags,
        unit.run,
        unit.slice,
        unit.second,
        unit.tick,
        len(ranges),
        sequence,
    )
    return head + b"".join(RANGE.pack(*one) for one in ranges)


class Received(NamedTuple):
    """A unit as it comes out of a connection."""

    unit: Unit
    sequence: int
    ranges: tuple[tuple[int, int], ...]
    data: bytes


class UnitReader:
    """Units from the bytes of one connection, in pieces of any length. A stream that cannot be right is refused for good: `problem` says why."""

    def __init__(self) -> None:
        self.problem = ""
        self._waiting = bytearray()

    def feed(self, piece: bytes | memoryview) -> Iterator[Received]:
        """The units that are whole now."""
        self._waiting += piece
        at = 0
        try:
            while not self.problem and len(self._waiting) - at >= UNIT.size:
                fields = UNIT.unpack_from(self._waiting, at)
                self.problem = _wrong(fields)
                end = at + UNIT.size + fields[1]
                if self.problem or len(self._waiting) < end:
                    return
                yield self._one(fields, at + UNIT.size, end)
                at = end
        finally:
            del self._waiting[:at]

    def _one(self, fields: tuple[int, ...], at: int, end: int) -> Received:
        _, _, tower, floor, kind, flags, run, slice_, second, tick, count, sequence = fields
        data = at + count * RANGE.size
        ranges = tuple(RANGE.iter_unpack(self._waiting[at:data]))
        unit = Unit(tower, floor, kind, run, slice_, second, tick, not flags & INCOMPLETE, bool(flags & UNTIMED))
        return Received(unit, sequence, ranges, bytes(self._waiting[data:end]))


def _wrong(fields: tuple[int, ...]) -> str:
    magic, length, _, floor, kind, flags, _, _, _, tick, count, _ = fields
    if magic != UNIT_MAGIC:
        return f"the magic is {magic:#010x}"
    if count > RANGES_MAX or not count * RANGE.size <= length <= UNIT_BYTES_MAX + RANGES_MAX * RANGE.size:
        return f"a unit of {length} bytes with {count} ranges"
    if floor == 0 or not 1 <= kind <= len(KINDS) or flags > (INCOMPLETE | UNTIMED) or tick >= TICKS_A_SECOND:
        return f"floor {floor}, kind {kind}, flags {flags:#x}, tick {tick}"
    return ""


def packet_count(kind: int, unit_bytes: int, ranges: list[list[int]]) -> int:
    """How many packets `packets` makes."""
    piece = PAYLOAD_BYTES_MAX - PAYLOAD_BYTES_MAX % RECORD_BYTES[kind]
    return max(1, sum(-(-(end - begin) // piece) for begin, end in ranges or [[0, unit_bytes]]))


def packets(unit: Unit, unit_bytes: int, ranges: list[list[int]], sequence: int) -> Iterator[tuple[bytes, int, int]]:
    """The packets of a unit as floors send them: header, and where the payload begins and ends in the unit.

    None says that it is the last of an incomplete unit: how long that was no one may know.
    """
    piece = PAYLOAD_BYTES_MAX - PAYLOAD_BYTES_MAX % RECORD_BYTES[unit.kind]
    for begin, end in ranges or [[0, unit_bytes]]:
        for at in range(begin, max(end, begin + 1), piece):
            to = min(at + piece, end)
            flags = (LAST if unit.is_complete and to == unit_bytes else 0) | (UNTIMED if unit.is_untimed else 0)
            yield (
                PACKET.pack(
                    PACKET_MAGIC,
                    unit.tower,
                    unit.floor,
                    unit.kind,
                    flags,
                    unit.run,
                    unit.slice,
                    unit.second,
                    unit.tick,
                    at,
                    sequence & 0xFFFF_FFFF,
                ),
                at,
                to,
            )
            sequence += 1


def units_text(streams: Sequence[Mapping[str, Any]]) -> str:
    """`60 units in (3 with holes, 1 missing)`: what came of some streams, and its FLAWS."""
    counts = {words: sum(int(one[name]) for one in streams) for name, words in FLAWS.items()}
    flaws = ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)
    return f"{sum(int(one['units']) for one in streams):,} units in" + (f" ({flaws})" if flaws else "")
