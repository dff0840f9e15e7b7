# SPDX-License-Identifier: Apache-2.0
"""64b/66b, bit by bit as IEEE 802.3 (clause 49) draws it: the benches' reference. Bits are lists of 0 and 1 in the order of the wire."""

from dataclasses import dataclass

BLOCK = 66
DATA, CONTROL = [0, 1], [1, 0]
# What is in a control block: a kind for each order of marks (True) and words.
KINDS = {0x1E: (True, True), 0x2D: (True, False), 0x33: (False, True)}
BEFORE = 58  # bits that a scrambled one depends on


@dataclass
class Half:
    """What a block holds two of. data: the four bytes of a word, or the upper three of a mark."""

    is_mark: bool
    data: bytes


def bits_of(word: int, width: int) -> list[int]:
    return [word >> place & 1 for place in range(width)]


def bytes_of(bits: list[int]) -> bytes:
    return sum(bit << place for place, bit in enumerate(bits)).to_bytes(len(bits) // 8, "little")


class Scrambler:
    """1 + x^39 + x^58. before: the last bits on the wire, the newest last."""

    def __init__(self, before: list[int]) -> None:
        self.before = before[-BEFORE:]

    def take(self, bit: int, on_the_wire: int | None = None) -> int:
        """A bit scrambled, or what came on the wire made plain again."""
        other = bit ^ self.before[-39] ^ self.before[-58]
        self.before = [*self.before[1:], other if on_the_wire is None else on_the_wire]
        return other


def phase_of(bits: list[int]) -> int:
    """Where blocks begin: the only place at which all headers are right. AssertionError if it is not one."""
    places = [at for at in range(BLOCK) if all(bits[b] != bits[b + 1] for b in range(at, len(bits) - 1, BLOCK))]
    assert len(places) == 1, places
    return places[0]


def halves_of(bits: list[int]) -> list[Half]:
    """All that whole blocks hold, from the second on: bits of the first begin the descrambler."""
    at = phase_of(bits)
    descrambler = Scrambler(bits[at + 2 : at + BLOCK])
    halves = []
    for begin in range(at + BLOCK, len(bits) - BLOCK + 1, BLOCK):
        header, scrambled = bits[begin : begin + 2], bits[begin + 2 : begin + BLOCK]
        plain = bytes_of([descrambler.take(bit, bit) for bit in scrambled])
        halves += content(header, plain)
    return halves


def content(header: list[int], plain: bytes) -> list[Half]:
    if header == DATA:
        return [Half(False, plain[:4]), Half(False, plain[4:])]
    assert header == CONTROL
    kinds = KINDS[plain[0]]
    if kinds == (True, True):
        assert plain[7] == 0
        return [Half(True, plain[1:4]), Half(True, plain[4:7])]
    mark, word = Half(True, plain[1:4]), Half(False, plain[4:])
    return [mark, word] if kinds[0] else [word, mark]


def blocks_of(halves: list[Half], before: list[int]) -> list[int]:
    """The bits of an even number of halves, after these bits."""
    scrambler, bits = Scrambler(before), []
    for first, second in zip(halves[::2], halves[1::2], strict=True):
        kinds = (first.is_mark, second.is_mark)
        if kinds == (False, False):
            header, plain = DATA, first.data + second.data
        else:
            kind = next(number for number, kind in KINDS.items() if kind == kinds)
            mark, other = (first, second) if first.is_mark else (second, first)
            header, plain = CONTROL, bytes([kind]) + mark.data + other.data + bytes(other.is_mark)
        bits += header + [scrambler.take(bit) for byte in plain for bit in bits_of(byte, 8)]
    return bits
