# SPDX-License-Identifier: Apache-2.0
"""APElink and APEnet+ words as docs/apelink-format.md says, written from that page: the benches' reference. A word is an integer of 128 bits."""

import zlib
from dataclasses import dataclass, field

MAGIC = 0x243F6A8885A308D313198A2E03707344
START, CREDIT, LITERAL, SKIP = 1, 2, 3, 4
WORD_BYTES = 16
COUNT_BITS = 11
# Name, lowest bit, width.
HEADER_FIELDS = [
    ("vc", 0, 5),
    ("process", 5, 16),
    ("x", 21, 6),
    ("y", 27, 5),
    ("z", 32, 5),
    ("port", 37, 4),
    ("reserved", 41, 1),
    ("out_of_lattice", 42, 1),
    ("packet_type", 43, 5),
    ("bytes", 48, 14),
    ("address", 62, 48),
    ("hops", 110, 10),
]
ALL_120 = (1 << 120) - 1
VC_AND_HOPS = 0x3FF << 110 | 0x1F
GOOD_STATUS = ((1 << 80) - 1) << 16
FLAGGED_STATUS = (1 << 96) - 1


def header(**fields: int) -> int:
    """The 120 bits of a header; what is not named is zero."""
    word = 0
    for name, low, width in HEADER_FIELDS:
        value = fields.pop(name, 0)
        assert 0 <= value < 1 << width, f"{name} {value}"
        word |= value << low
    assert not fields, fields
    return word


def header_field(word: int, wanted: str) -> int:
    return next(word >> low & (1 << width) - 1 for name, low, width in HEADER_FIELDS if name == wanted)


def parity(word: int) -> int:
    return word.bit_count() & 1


def check_bits(data: int) -> int:
    """The exclusive or of the columns of the bits that are set: 3, 5, 6, 7, 9 and so on, all numbers that are no powers of two."""
    check, bit = 0, 0
    for column in range(3, 128):
        if column.bit_count() > 1:
            check ^= column * (data >> bit & 1)
            bit += 1
    return check


def with_check(data: int) -> int:
    word = data | check_bits(data) << 120
    return word | parity(word) << 127


def words_of(data: bytes) -> list[int]:
    """A payload, filled with zeros to whole words."""
    padded = data + bytes(-len(data) % WORD_BYTES)
    return [int.from_bytes(padded[at : at + WORD_BYTES], "little") for at in range(0, len(padded), WORD_BYTES)]


def bytes_of(words: list[int]) -> bytes:
    return b"".join(word.to_bytes(WORD_BYTES, "little") for word in words)


def packet_crc(head: int, payload: list[int]) -> int:
    return zlib.crc32(bytes_of([head & ALL_120 & ~VC_AND_HOPS, *payload]))


def footer(head: int, payload: list[int], *, flagged: bool = False) -> int:
    return (FLAGGED_STATUS if flagged else GOOD_STATUS) << 32 | packet_crc(head, payload)


def control(control_type: int, content: int = 0) -> int:
    """A control word; content: its bits 8 to 95."""
    low = control_type | content << 8
    return low | zlib.crc32(low.to_bytes(12, "little")) << 96


def counts(*values: int) -> int:
    """Side by side, 11 bits each: data and headers of virtual channel 0, then of 1."""
    return sum((value % (1 << COUNT_BITS)) << COUNT_BITS * place for place, value in enumerate(values))


@dataclass
class Packet:
    """A packet as it goes through a node: 120 bits of header, words of payload, footer."""

    head: int
    payload: list[int] = field(default_factory=list)
    flagged: bool = False

    @property
    def vc(self) -> int:
        return self.head & 1

    @property
    def words(self) -> list[int]:
        return [self.head, *self.payload, footer(self.head, self.payload, flagged=self.flagged)]


def packet(payload: bytes, **fields: int) -> Packet:
    return Packet(header(bytes=len(payload), **fields), words_of(payload))
