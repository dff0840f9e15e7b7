# SPDX-License-Identifier: Apache-2.0
"""link_sender: whatever is lost, records arrive once and in order, in frames that are as docs/design/gateware-board.md says; how many there are, and when they are sent again."""

from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, never, pauses, random_numbers
from common.frames import mac_number
from common.host_link import DATA, ETHERTYPE, HEADER, HOST, STATION, VERSION, mac_bytes

WORDS, FRAMES, RETRY_CYCLES = (PARAMETERS[name] for name in ("WORDS", "FRAMES", "RETRY_CYCLES"))
RECORD_WORDS_MAX = 33
FRAME_WORDS_MAX = 180  # of records
CLOSED_FROM = FRAME_WORDS_MAX - RECORD_WORDS_MAX + 1  # no room for another record
HEADER_WORDS = HEADER.size // 8


def always() -> bool:
    return True


class SenderBench(Bench):
    """Records in, frames out; `lose` says of each that arrives whether it does. Numbers of frames are those of this side, not modulo 2^16."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.rng = random_numbers()
        self.lose: Callable[[], bool] = never
        self.idle_inputs()
        self.forget()

    def idle_inputs(self) -> None:
        for name in ("opened", "answer", "acknowledge", "acknowledged", "s_valid", "s_data", "s_last", "m_axis_tready"):
            getattr(self.dut, name).value = 0
        self.session = self.rng.getrandbits(32)
        self.dut.session.value, self.dut.host.value = self.session, mac_number(HOST)

    def forget(self) -> None:
        self.expected = self.rng.getrandbits(16)  # of the host's frames
        self.dut.expected.value = self.expected
        self.waiting: deque[tuple[int, bool]] = deque()  # words of records, and whether it is the last
        self.offered = False
        self.accepted: list[int] = []
        self.ends: set[int] = set()  # of records, in what was accepted
        self.frames: list[list[int]] = []  # by number
        self.told = 0  # words that are in these
        self.oldest = self.next = self.host = 0  # not acknowledged; to be sent; that the host waits for
        self.frame: list[int] = []
        self.numbered: list[tuple[int, bool]] = []  # cycles in which a number was told, and whether records were with it
        self.answers: list[int] = []  # cycles
        self.retries: list[int] = []
        self.begun = -1  # the cycle in which the frame that leaves was first offered
        self.was_valid = False
        self.acknowledged: int | None = None

    def records(self, count: int, largest: int = RECORD_WORDS_MAX) -> None:
        for _ in range(count):
            size = self.rng.choice([1, largest, self.rng.randint(1, largest)])
            self.waiting += [(self.rng.getrandbits(64), place == size - 1) for place in range(size)]

    async def step(self, *, pause: bool = False, ready: bool = True, answer: bool = False, acknowledge: int | None = None) -> None:
        """One cycle with these inputs. acknowledge: a number of this side."""
        dut = self.dut
        self.offered = bool(self.waiting) and (self.offered or not pause)
        dut.s_valid.value = int(self.offered)
        if self.offered:
            dut.s_data.value, dut.s_last.value = self.waiting[0][0], int(self.waiting[0][1])
        dut.m_axis_tready.value, dut.answer.value = int(ready), int(answer)
        dut.acknowledge.value = int(acknowledge is not None)
        dut.acknowledged.value = self.rng.getrandbits(16) if acknowledge is None else acknowledge % 0x10000
        if self.rng.random() < 0.1:
            self.expected = (self.expected + 1) % 0x10000
        dut.expected.value = self.expected
        await RisingEdge(dut.clk)
        self.look(ready)
        if answer:
            self.answers.append(self.cycle)
        if acknowledge is not None and self.oldest < acknowledge <= self.oldest + FRAMES - 1:
            self.oldest = acknowledge
        if self.offered and dut.s_ready.value == 1:
            word, last = self.waiting.popleft()
            self.accepted.append(word)
            self.ends |= {len(self.accepted)} if last else set()
            self.offered = False

    def look(self, ready: bool) -> None:
        dut = self.dut
        if dut.count_retry.value == 1:
            self.retries.append(self.cycle)
            self.next = self.oldest
        valid = dut.m_axis_tvalid.value == 1
        assert valid or not self.was_valid, "what is offered stays"
        self.was_valid = valid and not ready
        if not valid:
            return
        if not self.frame and self.begun < 0:
            self.begun = self.cycle
            self.next = max(self.next, self.oldest)
            self.number = self.next
        if ready:
            self.frame.append(int(dut.m_axis_tdata.value))
            if len(self.frame) == HEADER_WORDS:
                self.header()
            if dut.m_axis_tlast.value == 1:
                self.end()

    def header(self) -> None:
        with_records = self.dut.m_axis_tlast.value == 0
        swapped = int.from_bytes(ETHERTYPE.to_bytes(2, "big"), "little")
        flags = DATA * with_records
        wanted = HEADER.pack(
            *(mac_bytes(HOST), mac_bytes(STATION), swapped, VERSION, flags, self.session, self.number % 0x10000, self.expected)
        )
        assert b"".join(word.to_bytes(8, "little") for word in self.frame).hex() == wanted.hex()
        if not with_records:
            since = self.numbered[-1][0] if self.numbered else -1
            assert any(cycle >= since for cycle in self.answers), "a frame that no one is owed"
        self.numbered.append((self.cycle, with_records))

    def end(self) -> None:
        body, number = self.frame[HEADER_WORDS:], self.number
        self.frame, self.begun = [], -1
        if not body:
            return
        self.next = max(self.next, number + 1)
        if number < len(self.frames):
            assert body == self.frames[number], "what is sent again is the same"
        else:
            assert number == len(self.frames)
            assert body == self.accepted[self.told : self.told + len(body)]
            assert len(body) <= FRAME_WORDS_MAX
            self.told += len(body)
            assert self.told in self.ends, "records are whole"
            self.frames.append(body)
        assert number < self.oldest + FRAMES - 1, "so many in flight"
        if number == self.host and not self.lose():
            self.host += 1

    @property
    def done(self) -> bool:
        return not self.waiting and self.told == len(self.accepted) and self.oldest == len(self.frames)


async def started(dut: Any) -> SenderBench:
    bench = SenderBench(dut)
    await bench.reset()
    dut.opened.value = 1
    return bench


@cocotb.test
async def records_arrive_once_and_in_order(dut: Any) -> None:
    bench = await started(dut)
    rng = bench.rng
    for load in range(12 if SHORT else 60):
        bench.records(rng.choice([5, 60]), rng.choice([1, RECORD_WORDS_MAX]))
        share, loss = rng.choice([0, 0.3, 0.8]), (0, 0.05, 0.3)[load % 3]
        pause, refuse = pauses(rng, share), pauses(rng, rng.choice([0, 0.3]))
        often = rng.choice([0.2, 0.02])
        certain = [True] if loss else []  # the first frame of a load is lost, so that something is sent again whatever the seed
        bench.lose = lambda: bool(certain and certain.pop()) or rng.random() < loss  # noqa: B023
        for _ in range(100_000):
            says, number = rng.random(), None
            if says < often:
                number = rng.randint(bench.oldest, bench.host)
            elif says < 1.1 * often:  # of no frame in flight
                number = bench.oldest + rng.choice([FRAMES, rng.randrange(FRAMES, 0x10000), 0xFFFF, 0x8000, 0x8001])
            await bench.step(pause=pause(), ready=not refuse(), answer=rng.random() < 0.01, acknowledge=number)
            if bench.done:
                break
        assert bench.done, "all of them"
        late = [cycle for cycle in bench.answers if not any(after > cycle for after, _ in bench.numbered)]
        for _ in range(20 if late else 0):
            await bench.step()
        assert all(bench.numbered[-1][0] > cycle for cycle in late), "who is owed an answer has it"
    assert len(bench.retries) > 3
    assert any(not records for _, records in bench.numbered)


@cocotb.test
async def it_is_sent_again_after_so_many_cycles(dut: Any) -> None:
    bench = await started(dut)
    bench.lose = always
    for _ in range(3):
        for _ in range(bench.rng.randrange(2, RETRY_CYCLES)):  # patience begins with the frame
            await bench.step()
        bench.records(1)
        tries = len(bench.retries)
        ended: list[int] = []
        for _ in range(4 * RETRY_CYCLES):
            before = bench.begun
            await bench.step()
            if before >= 0 and bench.begun < 0:
                ended.append(bench.cycle)
            if len(bench.retries) == tries + 3:
                break
        waited = [retry - end for retry, end in zip(bench.retries[tries:], ended, strict=False)]
        assert waited == [RETRY_CYCLES + 2] * 3, waited
        await bench.step(acknowledge=len(bench.frames))
        for _ in range(100):
            await bench.step()
    # Of two in flight one is acknowledged: the other has all its time again.
    first = len(bench.frames)
    bench.records(1)
    while len(bench.frames) < first + 1:
        await bench.step()
    bench.records(1)
    while len(bench.frames) < first + 2:
        await bench.step()
    for _ in range(RETRY_CYCLES // 2):
        await bench.step()
    await bench.step(acknowledge=first + 1)
    begin, tries = bench.cycle, len(bench.retries)
    while len(bench.retries) == tries:
        await bench.step()
        assert bench.cycle < begin + 2 * RETRY_CYCLES
    assert bench.retries[-1] - begin == RETRY_CYCLES + 2
    await bench.step(acknowledge=first + 2)  # while it is sent again
    for _ in range(2 * RETRY_CYCLES):
        await bench.step()
    assert len(bench.retries) == tries + 1
    assert bench.done


@cocotb.test
async def memory_and_numbers_are_used_up(dut: Any) -> None:
    """Nobody takes or acknowledges anything; then all of it leaves."""
    for largest, each in ((RECORD_WORDS_MAX, 1), (1, 40)):
        bench = await started(dut)
        bench.lose = always
        if largest > 1:  # the wire takes nothing: frames are full
            bench.records(2 * WORDS, largest)
            for _ in range(WORDS + 200):
                await bench.step(ready=False)
            assert len(bench.accepted) == WORDS
        else:  # each record has a frame of its own, until there is none
            for _ in range(FRAMES + 2):
                bench.records(1, largest)
                for _ in range(each):
                    await bench.step()
            assert [len(body) for body in bench.frames] == [1] * (FRAMES - 1)
            bench.records(FRAME_WORDS_MAX, largest)
            for _ in range(FRAME_WORDS_MAX + 20):
                await bench.step()
            assert len(bench.accepted) == min(FRAMES - 1 + CLOSED_FROM, WORDS)
        bench.lose = never
        for _ in range(200_000):
            await bench.step(acknowledge=bench.host)
            if bench.done:
                break
        assert bench.done
        if largest > 1:  # what was there before the wire took any
            full = [len(body) for body in bench.frames[1 : WORDS // FRAME_WORDS_MAX]]
            assert full
            assert all(CLOSED_FROM <= size <= FRAME_WORDS_MAX for size in full), full
        await bench.reset()
        bench.idle_inputs()


@cocotb.test
async def a_reset_begins_anew_wherever_it_falls(dut: Any) -> None:
    """Nothing is sent before a session is open, however much there is to be said."""
    bench = await started(dut)
    for length in range(2, 40, 3 if SHORT else 1):
        bench.records(3, 5)
        for _ in range(length):
            await bench.step(answer=bench.rng.random() < 0.1)
        bench.idle_inputs()
        await bench.reset(1)
        bench.forget()
        bench.records(3, 5)
        for k in range(30):
            await bench.step(answer=k == 3)
            assert dut.m_axis_tvalid.value == 0
        dut.opened.value = 1
        for _ in range(100):
            await bench.step(acknowledge=bench.host)
        assert bench.done
        assert bench.numbered
