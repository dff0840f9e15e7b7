# SPDX-License-Identifier: Apache-2.0
"""rdma_sends with the host's port behind it: SENDs as rdma_rx hands them on, and what the driver finds in its CLOPs."""

from dataclasses import dataclass
from random import Random
from typing import Any

import cocotb
from common import rdma
from common.apenet import header, words_of
from common.bench import PARAMETERS, SHORT, Bench, pauses, random_numbers
from common.contract import Completion
from common.counts import ROWS
from common.host import PACKETS_PER_BUFFER, Host

DEPTH_WORDS, PACKETS = PARAMETERS.get("DEPTH_WORDS", 512), PARAMETERS.get("PACKETS", 16)
WORDS_MAX = rdma.DATA_BYTES_MAX // 16
SIZES = (1, 3, 4, 15, 16, 17, 100, 1024, 4079, 4080)


@dataclass(frozen=True)
class Entry:
    process: int
    sender: int
    mask: int
    route: int
    clop: int
    source: int
    counts_events: int

    def wants(self, process: int, sender: int) -> bool:
        return process == self.process and (sender ^ self.sender) & self.mask == 0


# The second is for all nodes of a plane, the first for one of them: the lower entry wins.
TABLE = [
    Entry(0x0102, rdma.place(3, 2, 1), 0xFFFF, 0, 0, 0x7001, 1),
    Entry(0x0102, rdma.place(0, 2, 0), rdma.place(0, 31, 0), 5, 1, 0x0002, 0),
    Entry(0x8102, rdma.place(63, 31, 31), 0xFFFF, 15, 2, 0x4003, 1),
    Entry(0xFFFF, 0, 0, 0, 3, 0x0004, 1),
]


def wanted_by(process: int, sender: int) -> Entry | None:
    return next((entry for entry in TABLE if entry.wants(process, sender)), None)


class Driver(Host):
    """events: of all completions."""

    def forget(self) -> None:
        super().forget()
        self.events = 0

    def _completed(self, found: Completion) -> None:
        super()._completed(found)
        self.events += found.event_count


class SendsBench(Bench):
    """kept: (CLOP, source, payload) of what must come to a CLOP, in order; events: that they must be said to have."""

    def __init__(self, dut: Any, share: float = 0) -> None:
        super().__init__(dut)
        self.rng = random_numbers()
        self.host = Driver(self, buffers=8)
        self.host.write_pause = pauses(self.rng, share)
        self.kept: list[tuple[int, int, bytes]] = []
        self.events = 0
        for name in ("match_write", "s_begins", "s_valid", "s_ends", "s_good", "holds"):
            getattr(dut, name).value = 0

    async def begin(self) -> None:
        await self.reset()
        await self.host.set_up()
        for index, entry in enumerate(TABLE):
            await self.write_entry(index, entry)

    async def write_entry(self, index: int, entry: Entry, *, enable: int = 1) -> None:
        dut = self.dut
        dut.match_index.value, dut.match_enable.value, dut.match_process.value = index, enable, entry.process
        dut.match_sender.value, dut.match_sender_mask.value = entry.sender, entry.mask
        dut.match_route.value, dut.match_clop.value, dut.match_source.value = entry.route, entry.clop, entry.source
        dut.match_counts_events.value = entry.counts_events
        dut.match_write.value = 1
        await self.wait(1)
        dut.match_write.value = 0

    async def send(self, data: bytes, process: int, sender: int, *, good: bool = True, pause: float = 0) -> int:
        """As rdma_rx does it: a footer comes after the words, and the verdict some cycles later. Returns the cycle of the header."""
        dut, words = self.dut, words_of(data)
        dut.s_header.value = header(
            packet_type=rdma.SEND, process=process, bytes=len(data), address=sender << 32 | self.rng.getrandbits(32)
        )
        dut.s_begins.value = 1
        began = self.cycle
        await self.wait(1)
        dut.s_begins.value = 0
        dut.s_header.value = self.rng.getrandbits(120)
        for word in words:
            while self.rng.random() < pause:
                await self.wait(1)
            dut.s_valid.value, dut.s_data.value = 1, word
            await self.wait(1)
            dut.s_valid.value = 0
        await self.wait(2)
        entry = wanted_by(process, sender)
        assert (dut.wanted.value == 1) == (entry is not None)
        await self.wait(self.rng.randrange(4))
        keeps = good and entry is not None
        dut.s_ends.value, dut.s_good.value = 1, int(keeps)
        await self.wait(1)
        dut.s_ends.value, dut.s_good.value = 0, self.rng.getrandbits(1)
        if keeps and entry is not None:
            self.kept.append((entry.clop, entry.source, data))
            self.events += data[3] if entry.counts_events and len(data) > 3 else 0
        return began

    async def ended(self) -> None:
        """All that is kept has come to its CLOP, in the order of each."""
        for _ in range(60):
            await self.host.release()
            await self.wait(400)
            if len(self.host.received) == len(self.kept):
                break
        for clop in range(4):
            assert [found for found in self.host.received if found[0] == clop] == [kept for kept in self.kept if kept[0] == clop]
        assert self.host.events == self.events
        counts = await self.rx_counts()
        assert (counts["stored"], counts["disabled"], counts["no_buffer"], counts["bad"]) == (len(self.kept), 0, 0, 0)

    async def rx_counts(self) -> dict[str, int]:
        return {name: await self.host.registers.read(0x800 + 8 * k) for k, name in enumerate(ROWS["rx"]["names"])}


def anyone(rng: Random) -> tuple[int, int]:
    """process and sender: of an entry, or nearly."""
    entry = rng.choice(TABLE)
    process, sender = entry.process, (entry.sender & entry.mask) | (rng.getrandbits(16) & ~entry.mask)
    kind = rng.random()
    if kind < 0.1:
        process ^= 1 << rng.randrange(16)
    elif kind < 0.3:
        sender ^= 1 << rng.randrange(16)
    return process, sender


@cocotb.test
async def what_is_good_is_a_packet_of_its_clop(dut: Any) -> None:
    bench = SendsBench(dut, share=0.2)
    await bench.begin()
    rng = bench.rng
    for k in range(60 if SHORT else 160):
        size = SIZES[k % len(SIZES)] if k < len(SIZES) else rng.choice([rng.randrange(1, 200), rng.choice(SIZES)])
        while dut.room.value != 1 or len(bench.host.received) + 12 < len(bench.kept):
            await bench.host.release()
            await bench.wait(20)
        await bench.send(rng.randbytes(size), *anyone(rng), good=rng.random() < 0.75, pause=rng.choice([0, 0.3]))
    await bench.ended()
    assert len(bench.kept) > 20


@cocotb.test
async def times_route_and_events_are_told(dut: Any) -> None:
    """One at a time; a buffer has one packet, so its completion has its times."""
    bench = SendsBench(dut)
    await bench.begin()
    delays = set()
    for k, entry in enumerate(TABLE * 3):
        await bench.wait(bench.rng.randrange(8))
        data = bench.rng.randbytes(bench.rng.choice([2, 4, 50]))
        times = {int(dut.now_cycles.value): int(dut.now_ns.value)}
        sending = cocotb.start_soon(bench.send(data, entry.process, entry.sender))
        for _ in range(100):
            await bench.wait(1)
            times[int(dut.now_cycles.value)] = int(dut.now_ns.value)
            if dut.begins.value == 1:
                break
        assert dut.begins.value == 1
        assert int(dut.route.value) == entry.route
        came, parsed = int(dut.start_cycle.value), int(dut.parsed_cycle.value)
        assert came - min(times) in (0, 1), "its header's"
        delays.add(int(dut.now_cycles.value) - parsed)
        await sending
        await bench.ended()
        assert bench.host.arrivals_ns[k] == (times[came], times[came])
    assert len(delays) == 1, delays


@cocotb.test
async def there_is_room_for_what_was_let_in(dut: Any) -> None:
    """Nothing leaves: as long as room is said to be, one of any length finds it. Then all come out."""
    bench = SendsBench(dut)
    await bench.begin()
    process, sender = TABLE[3].process, 9
    for size in (1, rdma.DATA_BYTES_MAX, 1000, 2040):
        dut.holds.value = 1
        count = 0
        while dut.room.value == 1:
            await bench.send(bench.rng.randbytes(rdma.DATA_BYTES_MAX), process, sender, good=False)  # leaves no trace
            await bench.wait(2)
            await bench.send(bench.rng.randbytes(size), process, sender)
            await bench.wait(2)
            count += 1
            assert count <= PACKETS
        words = -(-size // 16)
        assert count == min(PACKETS - 1, (DEPTH_WORDS - WORDS_MAX - 1) // words + 1), (size, count)  # a word waits outside
        dut.holds.value = 0
        await bench.ended()
        await bench.wait(10)
        assert dut.room.value == 1


@cocotb.test
async def a_clop_that_is_full_or_not_there_counts_it(dut: Any) -> None:
    bench = SendsBench(dut)
    await bench.begin()
    await bench.host.registers.write(0x200 + 0x40 * TABLE[2].clop, 0)
    for entry in (TABLE[2], TABLE[2]):
        await bench.send(bench.rng.randbytes(30), entry.process, entry.sender)
    await bench.wait(200)
    assert (await bench.rx_counts())["disabled"] == 2
    await bench.host.registers.write(0x200 + 0x40 * TABLE[2].clop, 1)
    bench.kept.clear()
    await bench.host.registers.write(0x220 + 0x40 * TABLE[3].clop, PACKETS_PER_BUFFER << 48)  # no time-out
    for _ in range(8 * 3 + 2):  # 8 buffers of three such packets, and none is returned
        while dut.room.value != 1:
            await bench.wait(10)
        await bench.send(bench.rng.randbytes(4000), TABLE[3].process, 1)
    await bench.wait(1500)
    counts = await bench.rx_counts()
    assert (counts["stored"], counts["no_buffer"]) == (24, 2)
    assert [payload for _, _, payload in bench.host.received] == [payload for _, _, payload in bench.kept[:24]]


@cocotb.test
async def entries_come_and_go(dut: Any) -> None:
    bench = SendsBench(dut)
    await bench.begin()
    entry = TABLE[0]
    await bench.send(b"as one", entry.process, entry.sender)
    await bench.write_entry(0, entry, enable=0)
    TABLE[0] = Entry(0, 0, 0, 0, 0, 0, 0)  # for what the bench knows; process 0 is never sent
    try:
        await bench.send(b"as one of the plane", entry.process, entry.sender)
        await bench.write_entry(1, TABLE[1], enable=0)
        plane, TABLE[1] = TABLE[1], TABLE[0]
        try:
            await bench.send(b"of no one", entry.process, entry.sender)
        finally:
            TABLE[1] = plane
    finally:
        TABLE[0] = entry
    assert [source for _, source, _ in bench.kept] == [TABLE[0].source, TABLE[1].source]
    await bench.ended()
    await bench.reset()  # which disables all of them
    dut.s_header.value = header(packet_type=rdma.SEND, process=TABLE[3].process, bytes=1)
    dut.s_begins.value = 1
    await bench.wait(1)
    dut.s_begins.value = 0
    await bench.wait(5)
    assert dut.wanted.value == 0
