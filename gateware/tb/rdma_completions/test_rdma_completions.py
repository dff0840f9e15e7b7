# SPDX-License-Identifier: Apache-2.0
"""rdma_completions: each event is the entry that docs/apenet-rdma-format.md says, in its place of the queue, and never where the driver has not read."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import CYCLE_NS, PARAMETERS, SHORT, Bench, never, pauses, random_numbers
from common.contract import Completion, Kind, Status

EVENTS = PARAMETERS["EVENTS"]
ENTRY_BYTES = Completion.LAYOUT.size
LOOK_CYCLES = 4  # from one look of rdma_messages at s_room to the next: the two events that it may bring come in the last of them
LATENCY_CYCLES = 3  # of an event alone, from the cycle before it to its first word
LATE_CYCLES = 6  # until what the driver has read is known
# Of an event, the first is the lowest.
FIELDS = (("tag", 64), ("bytes", 18), ("value", 16), ("process", 16), ("number", 16), ("source", 16), ("kind", 5))


@dataclass
class Given:
    entry: Completion  # but for the time
    from_ns: int


class CompletionsBench(Bench):
    """Events in as rdma_messages brings them, entries out; `consumed` is moved by the driver, every cycle or as it is told."""

    def __init__(self, dut: Any, mask: int) -> None:
        super().__init__(dut, now_ns=True)
        self.rng, self.mask = random_numbers(), mask
        self.base = self.rng.randrange(1 << 30) * 64
        dut.cfg_completions.value, dut.cfg_completion_mask.value = self.base, mask
        dut.cfg_consumed.value = dut.s_valid.value = 0
        self.given: deque[Given] = deque()
        self.words: list[bytes] = []
        self.begun_ns = self.brought_ns = self.taken = self.consumed = self.brought = 0
        self.full = deque([False] * LATE_CYCLES, LATE_CYCLES)  # the queue, and an event waits
        self.known = deque([0] * LATE_CYCLES, LATE_CYCLES)  # what the driver had read
        self.stood: tuple[int, int] | None = None
        self.was_offered = False

    def event(self) -> int:
        """A random one, and what it must become."""
        values = {name: self.rng.getrandbits(width) for name, width in FIELDS}
        failed, timed_out = self.rng.random() < 0.5, self.rng.random() < 0.5
        self.brought += 1
        entry = Completion(
            tag=values["tag"],
            bytes=values["bytes"],
            status=Status.INCOMPLETE * failed | Status.TIMEOUT * timed_out,
            kind=Kind.ERROR if failed else Kind.MESSAGE,
            reserved0=values["kind"],
            reserved1=values["source"] | values["number"] << 16 | values["process"] << 32 | values["value"] << 48,
            sequence=self.brought,
        )
        self.brought_ns = int(self.dut.now_ns.value)
        self.given.append(Given(entry, self.brought_ns))
        word, at = 0, 0
        for name, width in FIELDS:
            word |= values[name] << at
            at += width
        return word | timed_out << at | failed << at + 1

    async def run(
        self,
        events: int,
        *,
        at_a_look: Callable[[], int],
        pause: Callable[[], bool] = never,
        reads: Callable[[], bool] = lambda: True,
        limit: int = 60_000,
    ) -> None:
        """So many more events, or as many as find room within `limit` cycles. at_a_look: how many of them one brings."""
        dut, wanted, look, due = self.dut, self.brought + events, 0, 0
        for _ in range(limit):
            await RisingEdge(dut.clk)
            self.look_at_what_leaves()
            if reads():
                self.consumed = self.taken
            dut.cfg_consumed.value, dut.m_ready.value = self.consumed, int(not pause())
            # An event of this look's last two cycles; after them the next look, whose room does not know of either.
            if look == 0 and dut.s_room.value == 1 and self.brought < wanted:
                due = min(at_a_look(), wanted - self.brought)
            brings = due > 0 and look >= LOOK_CYCLES - due
            dut.s_valid.value = int(brings)
            if brings:
                dut.s_event.value = self.event()
                due -= 1
            look = (look + 1) % LOOK_CYCLES
            if self.brought == wanted and not self.given and not brings:
                break
        dut.s_valid.value = 0

    def look_at_what_leaves(self) -> None:
        dut = self.dut
        room = self.mask + 1 - (self.taken - self.consumed)
        assert dut.written.value == self.taken
        if dut.s_full.value == 1:
            assert self.given, "no one waits"
            assert self.taken - self.known[0] > self.mask, "it is not full"
        else:
            assert not all(self.full), "it is full, and an event waits"
        self.full.append(room == 0 and len(self.given) > 0)
        self.known.append(self.consumed)
        offered = dut.m_valid.value == 1
        if not offered:
            assert not self.words, "an entry leaves without a gap"
            self.was_offered = False
            return
        assert room > 0, "the driver has not read what stands there"
        shown = (int(dut.m_address.value), int(dut.m_data.value))
        assert self.stood in (None, shown), "it stands still until it is taken"
        if not self.words and not self.was_offered:
            self.begun_ns = int(dut.now_ns.value)
        self.was_offered = True
        self.stood = None if dut.m_ready.value == 1 else shown
        if dut.m_ready.value != 1:
            return
        self.words.append(shown[1].to_bytes(16, "little"))
        assert shown[0] == self.base + self.taken % (self.mask + 1) * ENTRY_BYTES
        assert dut.m_last.value == int(len(self.words) == 4)
        if len(self.words) == 4:
            self.take()

    def take(self) -> None:
        found, given = Completion.read(b"".join(self.words)), self.given.popleft()
        assert given.from_ns + 2 * CYCLE_NS <= found.last_packet_ns <= self.begun_ns - CYCLE_NS, "when it was made"
        given.entry.last_packet_ns = found.last_packet_ns
        assert found == given.entry
        self.words, self.was_offered = [], False
        self.taken += 1


async def started(dut: Any, mask: int) -> CompletionsBench:
    bench = CompletionsBench(dut, mask)
    dut.m_ready.value = 0
    await bench.reset()
    await bench.wait(LATE_CYCLES)
    return bench


@cocotb.test
async def each_event_is_an_entry_in_its_place(dut: Any) -> None:
    for mask in (1, 7, 63):
        bench = await started(dut, mask)
        rng, slow = bench.rng, pauses(bench.rng, 0.5)
        for _ in range(3 if SHORT else 20):
            share = rng.choice([0.02, 0.2, 1])
            pause = pauses(rng, rng.choice([0, 0.3]))
            busy = rng.uniform(0.01, 1)
            await bench.run(
                40,
                at_a_look=lambda: rng.choice([1, 2]) * (rng.random() < busy),  # noqa: B023
                pause=pause,
                reads=lambda: rng.random() < share and not slow(),  # noqa: B023
            )
        assert bench.taken == bench.brought == 40 * (3 if SHORT else 20)


@cocotb.test
async def an_event_alone_leaves_at_once(dut: Any) -> None:
    bench = await started(dut, 7)
    for _ in range(12):
        await bench.run(1, at_a_look=lambda: 1)
        assert bench.begun_ns - bench.brought_ns == LATENCY_CYCLES * CYCLE_NS
        await bench.wait(bench.rng.randrange(1, 9))


@cocotb.test
async def an_entry_takes_four_cycles(dut: Any) -> None:
    bench = await started(dut, 7)
    await bench.run(10, at_a_look=lambda: 2)
    begin = bench.cycle
    await bench.run(100, at_a_look=lambda: 2)
    assert bench.cycle - begin <= 4 * 100 + 12


@cocotb.test
async def it_tells_when_it_is_full_and_holds_what_it_had_room_for(dut: Any) -> None:
    """Two events of each of the last two looks may be on their way, so it takes no more when it has places for three and fewer; one is at the queue's door."""
    for brings, held in ((1, EVENTS - 2), (2, EVENTS)):
        bench = await started(dut, 7)
        await bench.run(
            100,
            at_a_look=lambda: brings if bench.brought else 1,  # noqa: B023
            reads=lambda: False,
            limit=400,
        )
        assert (bench.taken, bench.brought) == (8, 8 + 1 + held)
        bench.consumed = 3
        await bench.run(0, at_a_look=lambda: 0, reads=lambda: False, limit=60)
        assert bench.taken == 11
        assert dut.s_full.value == 1
        dut.rst.value = 1
        await bench.wait(1)
        dut.rst.value = 0
        await bench.wait(1)  # here still as the reset has left it
        assert (dut.s_full.value, dut.m_valid.value, dut.written.value) == (0, 0, 0)


@cocotb.test
async def before_it_is_set_there_is_no_queue(dut: Any) -> None:
    """What comes waits, and goes where the settings say, not where they stood after reset."""
    bench = CompletionsBench(dut, 7)
    dut.cfg_completions.value = dut.cfg_completion_mask.value = dut.m_ready.value = 0
    await bench.reset()
    await bench.wait(LATE_CYCLES)
    dut.s_event.value, dut.s_valid.value = bench.event(), 1
    await bench.wait(1)
    dut.s_valid.value = 0
    await bench.wait(20)
    assert (dut.s_full.value, dut.m_valid.value) == (1, 0)
    dut.cfg_completions.value = bench.base
    await bench.wait(3)
    dut.cfg_completion_mask.value = bench.mask
    await bench.wait(LATE_CYCLES)
    await bench.run(20, at_a_look=lambda: 2)
    assert bench.taken == 21
