# SPDX-License-Identifier: Apache-2.0
"""A floor of a KM3NeT tower as its link has it: frames in words, those in 8b/10b, and what a port makes of good frames (docs/formats-km3.md), from the pages alone. No
simulation: tests of the software read what this makes, too."""

import struct
import zlib
from dataclasses import dataclass, field
from random import Random

from common.code_8b10b import CODES, after, as_word

Word = tuple[int, int]  # which bytes are control symbols, both bytes
K28_5, D16_2, UP, DOWN, K27_7, K29_7 = 0xBC, 0x50, 0xC9, 0xA6, 0xFB, 0xFD
IDLE = (1, D16_2 << 8 | K28_5)
HEAD_WORDS, CHECK_WORDS, SLOTS = 5, 2, 10
RECORD_WORDS = (*(3,) * 8, 6, 14)  # whole records of each slot: hits of 6 B, two samples, instruments' 12 B, answers of 28 B
KINDS = (*(1,) * 6, 3, 4, 5, 0)
HOLE_BYTES = 12


@dataclass(frozen=True)
class Geometry:
    """Of frames, in words; together: modules whose hits are in one packet."""

    frame_words: int
    frames_per_s: int
    slot_words: tuple[int, ...]
    together: int = 6

    @property
    def end(self) -> int:
        return HEAD_WORDS + SLOTS + 2 * CHECK_WORDS + sum(self.slot_words)


@dataclass
class Frame:
    slots: list[list[int]]
    second: int = 0
    number: int = 0
    floor: int = 1
    tower: int = 7  # that the port says its floor is in
    sampled: bool = False
    spoiled: int | None = None  # this word of it has another bit
    cut: int | None = None  # after so many words the next one begins


def crc(words: list[Word]) -> list[Word]:
    value = zlib.crc32(b"".join(data.to_bytes(2, "little") for _, data in words))
    return [(0, value & 0xFFFF), (0, value >> 16)]


def words_of(frame: Frame, geometry: Geometry) -> list[Word]:
    """All of a frame's words, idle ones to its end, or those that are sent of one that is cut."""
    second = frame.second
    head = [(1, UP << 8 | K28_5), (0, frame.number), (0, second & 0xFFFF), (0, second >> 16), (0, 3 << 8 | frame.floor)]
    head += [(0, len(slot)) for slot in frame.slots]
    body: list[Word] = []
    for size, slot in zip(geometry.slot_words, frame.slots, strict=True):
        body += [(0, word) for word in slot] + [IDLE] * (size - len(slot))
    words = [*head, *crc(head), *body, *crc(head + body)]
    if frame.spoiled is not None:
        k, data = words[frame.spoiled]
        words[frame.spoiled] = (k, data ^ 1) if k == 0 else (0, data)
    return (words + [IDLE] * (geometry.frame_words - len(words)))[: frame.cut]


def express_words(code: int) -> list[Word]:
    return [(1, code << 8 | K27_7), (2, K29_7 << 8 | code ^ 0xFF)]


def is_express(word: Word) -> bool:
    return (word[0] == 1 and word[1] & 0xFF == K27_7) or (word[0] == 2 and word[1] >> 8 == K29_7)


# Of each running disparity and symbol: its ten bits, the first on the wire lowest, and the disparity after it.
_BITS = {d: {symbol: (as_word([code]), after(code, d)) for symbol, code in codes.items()} for d, codes in CODES.items()}


def encode(words: list[Word], disparity: int) -> tuple[list[int], int]:
    codes = []
    for k, data in words:
        low, disparity = _BITS[disparity][k & 1, data & 255]
        high, disparity = _BITS[disparity][k >> 1, data >> 8]
        codes.append(low | high << 10)
    return codes, disparity


_SYMBOLS = {as_word([code]): symbol for codes in CODES.values() for symbol, code in codes.items()}


def decode(codes: int) -> Word:
    low, high = _SYMBOLS[codes & 1023], _SYMBOLS[codes >> 10]
    return low[0] | high[0] << 1, low[1] | high[1] << 8


def any_slots(rng: Random, geometry: Geometry, share: float = 0.5) -> list[list[int]]:
    """Whole records in each slot; share: of the slots that have any."""
    slots = []
    for size, record in zip(geometry.slot_words, RECORD_WORDS, strict=True):
        most = size // record
        count = record * rng.choice((most, rng.randint(0, most))) if rng.random() < share else 0
        slots.append([rng.randrange(1 << 16) for _ in range(count)])
    return slots


@dataclass(frozen=True)
class Sent:
    """A packet as it should come: of which class (0 modules, 1 hydrophones, 2 instruments, 3 slow control), its bytes, its time."""

    kind_class: int
    data: bytes
    arrival_ns: int


@dataclass
class Tower:
    """What a port makes of the good frames of a run: `packets`, in order, and what it counts."""

    geometry: Geometry
    run: int
    second: int
    slice_frames: int
    packets: list[Sent] = field(default_factory=list)
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("placed", "unplaced", "control_only", "missing", "sound_cut"), 0)
    )

    def __post_init__(self) -> None:
        self.slice = -1
        self.due: int | None = None
        self.offsets, self.sequences = [0] * 4, [0] * 4
        self.fresh = True
        self.holed = False  # something of this slice is missing

    def take(self, frame: Frame) -> None:
        seconds = (frame.second - self.second + (1 << 31)) % (1 << 32) - (1 << 31)  # seconds come round
        index = seconds * self.geometry.frames_per_s + frame.number
        slice_number, place = divmod(index, self.slice_frames)
        if slice_number < max(self.slice, 0):
            self.outside(frame)
            return
        self.counts["placed"] += 1
        if slice_number != self.slice:
            self.slice, self.due = slice_number, index - place
            self.offsets, self.holed = [0] * 4, False
        if index != self.due:
            self.counts["missing"] += 1
            self.offsets = [offset + HOLE_BYTES for offset in self.offsets]
            if not self.fresh:
                self.sequences = [number + 1 for number in self.sequences]
            self.holed = True
        self.fresh = False
        self.due = index + 1
        self._packets(frame, ends=place == self.slice_frames - 1)

    def outside(self, frame: Frame) -> None:
        """A frame without a place in the run: slow control's answers leave alone."""
        self.counts["unplaced" if any(frame.slots[:9]) else "control_only"] += 1
        self._answers(frame)

    def _arrival_ns(self, frame: Frame) -> int:
        return frame.second * 10**9 + frame.number * (10**9 // self.geometry.frames_per_s)

    def _answers(self, frame: Frame) -> None:
        words = frame.slots[9]
        if words:
            self.packets.append(Sent(3, struct.pack(f"<{len(words)}H", *words), self._arrival_ns(frame)))

    def _packets(self, frame: Frame, *, ends: bool) -> None:
        modules = [frame.slots[at : at + self.geometry.together] for at in range(0, 6, self.geometry.together)]
        groups = [(0, [word for slot in slots for word in slot]) for slots in modules]
        groups += [(stream, frame.slots[5 + stream]) for stream in (1, 2, 3)]
        arrival_ns = self._arrival_ns(frame)
        for at, (stream, words) in enumerate(groups):
            last = ends and (stream > 0 or at == len(modules) - 1)
            if not words and not last:
                continue
            if self.holed and stream in (1, 2):
                self.counts["sound_cut"] += 1
                continue
            data = struct.pack(f"<{len(words)}H", *words)
            self.packets.append(Sent((0, 1, 1, 2)[stream], self._head(frame, stream, last) + data, arrival_ns))
            self.offsets[stream] += len(data)
            self.sequences[stream] += 1
        self._answers(frame)

    def _head(self, frame: Frame, stream: int, last: bool) -> bytes:
        kind = (2 if frame.sampled else 1, 3, 4, 5)[stream]
        begin = self.slice * self.slice_frames
        seconds, number = divmod(begin, self.geometry.frames_per_s)
        tick = number * (62_500_000 // self.geometry.frames_per_s)
        # The model's frames say that the floor's time is right.
        fields = (frame.tower, frame.floor, kind, int(last), self.run, self.slice, (self.second + seconds) % (1 << 32), tick)
        return b"KM3F" + struct.pack(">4B6I", *fields, self.offsets[stream], self.sequences[stream])
