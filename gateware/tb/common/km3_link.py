# SPDX-License-Identifier: Apache-2.0
"""The ends of a KM3NeT link in a simulation: a floor that sends, and an ear for what the shore does."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from common.km3 import DOWN, IDLE, K28_5, Frame, Geometry, Word, crc, decode, encode, express_words, is_express, words_of


class FloorSource:
    """Sends on `bits`, a word at each edge of `clock`, from begin() on, period by period: what is queued gets the period's time; with None, or nothing, a period
    has no frame. sent: the frames that went, bad ones too. dark: no light. express: codes that go with the next period, before what is its word of this
    number; what they hold up must be idle at the period's end. codes: those that went, with the word since begin() that their first one was."""

    def __init__(self, clock: Any, bits: Any, geometry: Geometry) -> None:
        self.clock, self.bits, self.geometry = clock, bits, geometry
        self.queue: deque[Frame | None] = deque()
        self.sent: list[Frame] = []
        self.express: dict[int, int] = {}
        self.codes: list[tuple[int, int]] = []
        self.second: int | None = None
        self.number = 0
        self.dark = False
        self.periods = self._words_gone = 0
        bits.value = 0
        cocotb.start_soon(self._run())

    def begin(self, second: int, number: int = 0) -> None:
        self.second, self.number = second, number
        self._words_gone = 0

    def forget(self) -> None:
        self.sent.clear()

    async def _run(self) -> None:
        edge = RisingEdge(self.clock)
        disparity = -1
        while True:
            words = [IDLE] * 4
            if self.second is not None:
                frame = self.queue.popleft() if self.queue else None
                words = [IDLE] * self.geometry.frame_words
                if frame:
                    frame.second, frame.number = self.second, self.number
                    words = words_of(frame, self.geometry)
                    self.sent.append(frame)
                words = self._with_codes(words)
                self.number += 1
                if self.number == self.geometry.frames_per_s:
                    self.second, self.number = self.second + 1, 0
            codes, disparity = encode(words, disparity)
            for code in codes:
                self.bits.value = 0 if self.dark else code
                await edge
            self.periods += 1

    def _with_codes(self, words: list[Word]) -> list[Word]:
        for before, place in enumerate(sorted(self.express)):
            at = place + 2 * before
            words[at:at] = express_words(self.express[place])
            self.codes.append((self.express[place], self._words_gone + at))
        self.express = {}
        self._words_gone += self.geometry.frame_words
        return words[: self.geometry.frame_words]

    async def drain(self) -> None:
        """Until what is queued has gone, and been taken apart."""
        edge = RisingEdge(self.clock)
        while self.queue:
            await edge
        until = self.periods + 1
        while self.periods < until:
            await edge
        for _ in range(100):
            await edge


class Link:
    """What the shore sends on `codes`, from now on; nothing but idle words where `on` says that there is no light."""

    def __init__(self, clock: Any, codes: Any, geometry: Geometry, on: Any = None) -> None:
        self.clock, self.codes, self.geometry, self.on = clock, codes, geometry, on
        self.words: list[Word] = []
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        edge = RisingEdge(self.clock)
        while True:
            await edge
            dark = self.on is not None and self.on.value == 0
            self.words.append(IDLE if dark else decode(int(self.codes.value)))

    def frames(self, since: int = 0, until: int | None = None) -> list[list[Word]]:
        """The words of each frame that began in these, without those of express codes."""
        size = 10 + self.geometry.slot_words[9]
        begins = [at for at, word in enumerate(self.words[:until]) if at >= since and word == (1, DOWN << 8 | K28_5)]
        frames = [[word for word in self.words[at : at + 2 * size] if not is_express(word)][:size] for at in begins]
        return [frame for frame in frames if len(frame) == size]

    def express(self) -> list[tuple[int, int]]:
        """Each whole code, and which word its first one is."""
        firsts = [(at, word[1] >> 8) for at, word in enumerate(self.words[:-1]) if is_express(word) and word[0] == 1]
        return [(code, at) for at, code in firsts if self.words[at : at + 2] == express_words(code)]

    def control(self, since: int = 0, until: int | None = None, *, cut: bool = False) -> bytes:
        """Of all whole frames the slot of slow control; each is as the page says. cut: one may have been cut, and is left out."""
        got, size = b"", self.geometry.slot_words[9]
        for frame in self.frames(since, until):
            count = frame[5][1]
            if cut and (frame[6:8] != crc(frame[:6]) or frame[-2:] != crc(frame[:6] + frame[8:-2])):
                continue
            assert frame[6:8] == crc(frame[:6])
            assert frame[-2:] == crc(frame[:6] + frame[8:-2])
            assert frame[8 + count : -2] == [IDLE] * (size - count)
            got += b"".join(word.to_bytes(2, "little") for _, word in frame[8 : 8 + count])
        return got
