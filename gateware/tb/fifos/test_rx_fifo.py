# SPDX-License-Identifier: Apache-2.0
"""rx_fifo: each packet at its time to the cycle, words joined in pairs, exact room, whole packets dropped, m_soon before each."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, Part, Scoreboard, never, pauses, random_numbers

WORDS, PACKETS = PARAMETERS.get("WORDS", 64), PARAMETERS.get("PACKETS", 8)
PLAYOUT_CYCLES, SOON_CYCLES, SINGLE_CYCLES = 16, 3, 3
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
        self.soon: list[set[int]] = [set() for _ in range(SOON_CYCLES)]  # cycles in which each of m_soon was up
        self.dropped: list[int] = []  # meta of each packet that was told to be
        for name in ("s_axis_tvalid", "s_axis_tlast", "s_axis_tuser", "m_axis_tready"):
            getattr(self.dut, name).value = 0
        dut.g_tx_fifo.s_axis_tvalid.value = 0
        cocotb.start_soon(self._sink())
        cocotb.start_soon(self._drops())

    async def _drops(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            if self.dut.rst.value == 0 and self.dut.drop_overflow.value == 1:
                self.dropped.append(int(self.dut.drop_meta.value))

    async def send(self, size: int, user: int = 0, missing: int = 0, fits: bool = True) -> tuple[int, int, int, int, bytes]:
        """What leaves if it fits, as it is expected if `fits`. missing: words that it ends early, below 0 late."""
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        data, meta = self.rng.randbytes(-(-size // 8) * 8 - 8 * missing), self.rng.getrandbits(20)
        stays = data[: max(8, -(-size // 8) * 8)]
        expected = (meta, size, int(bool(user or missing or not size)), -(-len(stays) // 16), stays)
        for at in range(0, len(data), 8):
            while at > 8 and self.in_pause():  # two words make the first that leaves
                await edge
            dut.s_axis_tdata.value, dut.s_axis_tvalid.value = int.from_bytes(data[at : at + 8], "little"), 1
            last = at + 8 >= len(data)
            dut.s_axis_tlast.value, dut.s_axis_tuser.value = int(last), int(last and user)
            if at == 0:
                dut.s_meta.value, dut.s_meta_bytes.value = meta, size
                if fits:
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
        if fits:
            self.came.append(first)
        return expected

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
            for number, cycles in enumerate(self.soon):
                if int(dut.m_soon.value) >> number & 1:
                    cycles.add(self.cycle)
            if dut.m_axis_tvalid.value == 0:
                assert held is None, "a word was withdrawn"
                continue
            if words == 0 and held is None:
                self.offered.append(self.cycle)
            last, user = int(dut.m_axis_tlast.value), int(dut.m_bad.value)
            word = (int(dut.m_axis_tdata.value), last, user if last else 0, int(dut.m_meta.value), int(dut.m_meta_bytes.value))
            assert held is None or held == word, "a waiting word changed"
            held = None if ready else word
            if not ready:
                continue
            data, words = data + word[0].to_bytes(16, "little"), words + 1
            if last:
                self.take((word[3], word[4], user, words, data))
                self.left.append(self.cycle)
                data, words = b"", 0

    def take(self, packet: tuple[int, int, int, int, bytes]) -> None:
        """The last word may have eight bytes that no one sent."""
        wanted = self.packets.expected[self.packets.seen] if self.packets.seen < len(self.packets.expected) else packet
        self.packets.take((*packet[:4], packet[4][: len(wanted[4])]))

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
    waits = [PLAYOUT_CYCLES - SINGLE_CYCLES * (size <= 8) for _, size, *_ in bench.packets.expected]
    assert [out - came for came, out in zip(bench.came, bench.offered, strict=True)] == waits
    words = [-(-size // 16) for _, size, *_ in bench.packets.expected]
    for ended, offered, left, count in zip(bench.ended, bench.offered, bench.left, words, strict=True):
        assert offered + count - 1 <= left <= max(offered + count - 1, ended + 3), "the other words follow as they come"
    for offered, left in zip(bench.offered, bench.left, strict=True):
        for number, soon in enumerate(bench.soon, 1):
            assert all(cycle in soon for cycle in range(offered - number, left + 1))
            assert offered - number - 1 not in soon


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
    """One word stands in the output, WORDS behind it; PACKETS packets, that at the head among them. Of what is dropped the good ones are told of."""
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
        for _ in range(PACKETS):
            await bench.send(bench.rng.choice([1, 16]))
            await bench.wait(2)
        await bench.send(1, fits=False)
        await bench.send(40, user=1, fits=False)
        await bench.send(1, user=1, fits=False)
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
    """Announced rightly or not, ended bad or not: what fits leaves once and in order, of the rest the good ones are told of, each at its end."""
    bench = await started(dut)
    sent: list[tuple[tuple[int, int, int, int, bytes], int]] = []
    came: list[tuple[int, int, int, int, bytes]] = []
    bench.take = came.append  # type: ignore[method-assign]
    for share in (0.1, 0.9):
        bench.out_pause = pauses(bench.rng, share)
        bench.in_pause = pauses(bench.rng, 0.1)
        for _ in range(150 if SHORT else 2000):
            size = bench.rng.choice([0, 1, 8, 9, 16, 17, bench.rng.randrange(1, 300)])
            user, missing = int(bench.rng.random() < 0.2), 0
            if bench.rng.random() < 0.3:
                missing = bench.rng.randrange(-5, -(-size // 8)) if size else -bench.rng.randrange(1, 5)
            elif not size:
                missing = -1
            sent.append((await bench.send(size, user, missing, fits=False), user))
            await bench.wait(bench.rng.choice([0, 0, 1, 20]))
    await bench.finish()
    left = iter(came)
    packet = next(left, None)
    missed = []
    for wanted, user in sent:
        if packet and wanted == (*packet[:4], packet[4][: len(wanted[4])]):
            packet = next(left, None)
        elif not user:
            missed.append(wanted[0])
    assert packet is None, "all that came was sent, in this order"
    assert missed == bench.dropped
    assert bench.counts["drop_overflow"] == len(missed) > 10
    assert 10 < sum(packet[2] for packet in came) < len(came) - 10


@cocotb.test
async def a_bad_packet_is_known_before_its_turn(dut: Any) -> None:
    """m_bad: up from the packet's end on, before its first word leaves or while it does; never for a good one."""
    bench = await started(dut)
    for size in (40, 200, 800):
        for user in (1, 0):
            sending = cocotb.start_soon(bench.send(size, user))
            await bench.wait(3)
            assert bench.dut.m_bad.value == 0
            await sending
            await bench.wait(1)
            assert bench.dut.m_bad.value == user
            await bench.finish()
            assert bench.dut.m_bad.value == 0


@cocotb.test
async def reset_empties_it(dut: Any) -> None:
    bench = await started(dut)
    for _ in range(8 if SHORT else 40):
        bench.out_pause = lambda: bench.rng.random() < 0.5
        for _ in range(3):
            await bench.send(bench.rng.randrange(1, 200))
        sending = cocotb.start_soon(bench.send(200))
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
