# SPDX-License-Identifier: Apache-2.0
"""rx_fifo: each packet at its time to the cycle, words joined in pairs, exact room, whole packets dropped, m_soon before each."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, Part, Scoreboard, never, pauses, random_numbers

WORDS, PACKETS = PARAMETERS.get("WORDS", 64), PARAMETERS.get("PACKETS", 8)
PLAYOUT_CYCLES, SOON_CYCLES = 16, 3
BYTES_MAX = 900


class RxFifoBench(Bench):
    """came, offered: cycles of each packet's first word in and out; ended, left: of its last word in and out."""

    def __init__(self, dut: Any) -> None:
        super().__init__(Part(dut, "g_rx_fifo"), ["drop_overflow"])
        self.rng = random_numbers()
        self.packets = Scoreboard("packets")
        self.in_pause = self.out_pause = never
        self.came: list[int] = []
        self.offered: list[int] = []
        self.ended: list[int] = []
        self.left: list[int] = []
        self.soon: list[int] = []  # cycles in which m_soon was up
        for name in ("s_axis_tvalid", "s_axis_tlast", "s_axis_tuser", "m_axis_tready"):
            getattr(self.dut, name).value = 0
        dut.g_tx_fifo.s_axis_tvalid.value = 0
        cocotb.start_soon(self._sink())

    async def send(self, size: int, user: int = 0, missing: int = 0, fits: bool | None = True) -> None:
        """missing: words that a bad packet ends early. fits: None if no one knows before."""
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        data, meta = self.rng.randbytes(-(-size // 8) * 8 - 8 * missing), self.rng.getrandbits(20)
        before = self.counts["drop_overflow"]
        words = -(-len(data) // 16)
        expected = (meta, size, user, words, data)
        for at in range(0, len(data), 8):
            while at > 8 and self.in_pause():  # two words make the first that leaves
                await edge
            dut.s_axis_tdata.value, dut.s_axis_tvalid.value = int.from_bytes(data[at : at + 8], "little"), 1
            last = at + 8 >= len(data)
            dut.s_axis_tlast.value, dut.s_axis_tuser.value = int(last), int(last and user)
            if at == 0:
                dut.s_meta.value, dut.s_meta_bytes.value = meta, size
                if fits is not False:
                    self.packets.expect(expected)
            await edge
            if at == 0:
                first = self.cycle
            dut.s_axis_tvalid.value = 0
            dut.s_meta.value, dut.s_meta_bytes.value = (
                self.rng.getrandbits(20),
                self.rng.randrange(BYTES_MAX),
            )  # belong to the first word alone
        self.ended.append(self.cycle)
        if fits is None:
            await self.wait(2)  # the counter is a cycle late
        dropped = self.counts["drop_overflow"] > before
        if fits is None and dropped:
            self.packets.expected.remove(expected)
        if fits if fits is not None else not dropped:
            self.came.append(first)

    async def _sink(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        data, words, held = b"", 0, None
        while True:
            ready = not self.out_pause()
            dut.m_axis_tready.value = int(ready)
            await edge
            if dut.rst.value == 1:
                data, words, held = b"", 0, None
                continue
            if dut.m_soon.value == 1:
                self.soon.append(self.cycle)
            if dut.m_axis_tvalid.value == 0:
                assert held is None, "a word was withdrawn"
                continue
            if words == 0 and held is None:
                self.offered.append(self.cycle)
            last, user = int(dut.m_axis_tlast.value), int(dut.m_axis_tuser.value)
            word = (int(dut.m_axis_tdata.value), last, user if last else 0, int(dut.m_meta.value), int(dut.m_meta_bytes.value))
            assert held is None or held == word, "a waiting word changed"
            held = None if ready else word
            if not ready:
                continue
            data, words = data + word[0].to_bytes(16, "little"), words + 1
            if last:
                wanted = self.packets.expected[self.packets.seen] if self.packets.seen < len(self.packets.expected) else None
                shown = data[: len(wanted[4])] if wanted else data
                self.packets.take((word[3], word[4], user, words, shown))
                self.left.append(self.cycle)
                data, words = b"", 0

    async def finish(self) -> None:
        self.out_pause = never
        await self.wait(3 * WORDS + 60)
        self.packets.finish()


async def started(dut: Any) -> RxFifoBench:
    bench = RxFifoBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def a_packet_leaves_at_its_time(dut: Any) -> None:
    """The output free: the first word PLAYOUT_CYCLES after it came, to the cycle, at any size, with and without pauses in the packet."""
    bench = await started(dut)
    for number in range(60 if SHORT else 600):
        bench.in_pause = pauses(bench.rng, 0.3) if number % 2 else never
        await bench.send(bench.rng.choice([1, 8, 9, 16, 17, 24, 64, bench.rng.randrange(1, BYTES_MAX)]))
        await bench.wait(bench.rng.randint(20, 60) + 40)
    await bench.finish()
    assert [out - came for came, out in zip(bench.came, bench.offered, strict=True)] == [PLAYOUT_CYCLES] * len(bench.came)
    words = [-(-size // 16) for _, size, *_ in bench.packets.expected]
    for ended, offered, left, count in zip(bench.ended, bench.offered, bench.left, words, strict=True):
        assert offered + count - 1 <= left <= max(offered + count - 1, ended + 3), "the other words follow as they come"
    soon = set(bench.soon)
    for offered, left in zip(bench.offered, bench.left, strict=True):
        assert all(cycle in soon for cycle in range(offered - SOON_CYCLES, left + 1))
        assert offered - SOON_CYCLES - 1 not in soon


@cocotb.test
async def packets_side_by_side_follow_each_other(dut: Any) -> None:
    """At line rate each leaves at its time: a packet of words twice as wide is gone before the next is due."""
    bench = await started(dut)
    sizes = [bench.rng.randrange(40, 400) for _ in range(40)]
    for size in sizes:
        await bench.send(size)
        await bench.wait(3)
    await bench.finish()
    assert [out - came for came, out in zip(bench.came, bench.offered, strict=True)] == [PLAYOUT_CYCLES] * len(sizes)


@cocotb.test
async def what_has_waited_follows_at_once(dut: Any) -> None:
    bench = await started(dut)
    bench.out_pause = lambda: True
    for _ in range(PACKETS):
        await bench.send(bench.rng.randrange(1, 60))
    await bench.wait(PLAYOUT_CYCLES)
    await bench.finish()
    assert all(1 <= after - left <= 2 for left, after in zip(bench.left, bench.offered[1:], strict=False))


@cocotb.test
async def the_room_is_exact(dut: Any) -> None:
    """One word stands in the output, WORDS behind it; a packet at the head, PACKETS behind it."""
    bench = await started(dut)
    for _ in range(3):
        bench.out_pause = lambda: True
        await bench.wait(2)
        await bench.send(8)
        await bench.wait(5)
        left = WORDS
        while left:
            words = min(left, bench.rng.randrange(WORDS // (PACKETS - 1) + 1, 50))
            await bench.send(16 * words - bench.rng.randrange(8))
            left -= words
        await bench.send(1, fits=False)
        await bench.send(300, fits=False)
        await bench.finish()
        bench.out_pause = lambda: True
        await bench.wait(2)
        for _ in range(PACKETS + 1):
            await bench.send(bench.rng.choice([1, 16]))
            await bench.wait(2)
        await bench.send(1, fits=False)
        await bench.finish()
        bench.out_pause = lambda: True
        await bench.wait(2)
        await bench.send(8)
        await bench.wait(5)
        for at in range(0, WORDS - 2, 50):
            await bench.send(16 * min(WORDS - 2 - at, 50))
        await bench.send(33, fits=False)
        await bench.send(32)
        await bench.finish()
    assert bench.counts["drop_overflow"] == 3 * 4


@cocotb.test
async def random_packets_and_pauses(dut: Any) -> None:
    bench = await started(dut)
    sent = 0
    for share in (0.1, 0.9):
        bench.out_pause = pauses(bench.rng, share)
        bench.in_pause = pauses(bench.rng, 0.1)
        for _ in range(150 if SHORT else 2000):
            size = bench.rng.choice([1, 8, 9, 16, 17, bench.rng.randrange(1, 300)])
            user = int(bench.rng.random() < 0.2)
            await bench.send(size, user, bench.rng.randrange(-(-size // 8)) if user else 0, fits=None)
            await bench.wait(bench.rng.choice([0, 0, 1, 20]))
            sent += 1
    await bench.finish()
    assert sent == bench.packets.seen + bench.counts["drop_overflow"]
    assert bench.counts["drop_overflow"] > 10


@cocotb.test
async def reset_empties_it(dut: Any) -> None:
    bench = await started(dut)
    for _ in range(8 if SHORT else 40):
        bench.out_pause = lambda: bench.rng.random() < 0.5
        for _ in range(3):
            await bench.send(bench.rng.randrange(1, 200), fits=None)
        sending = cocotb.start_soon(bench.send(200, fits=None))
        await bench.wait(bench.rng.randint(1, 24))
        sending.cancel()
        dut.rst.value = 1
        await bench.wait(1)
        bench.packets = Scoreboard("packets")
        dut.rst.value = bench.dut.s_axis_tvalid.value = 0
        bench.out_pause = never
        await bench.wait(2)
        assert (bench.dut.m_axis_tvalid.value, bench.dut.m_soon.value) == (0, 0)
        await bench.send(bench.rng.randrange(1, 100))
        await bench.finish()
