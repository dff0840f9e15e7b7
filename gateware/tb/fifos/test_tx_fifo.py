# SPDX-License-Identifier: Apache-2.0
"""tx_fifo: whole packets in order, without a gap, halved into words of 8 bytes; bad ones come out as their meta alone, in their turn; exact room."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, Part, Scoreboard, never, pauses, random_numbers
from common.streams import Packet, StreamSink

WORDS, PACKETS = PARAMETERS.get("WORDS", 64), PARAMETERS.get("PACKETS", 8)
BYTES_MAX = 900


class TxFifoBench(Bench):
    """out: (meta, bytes or None for a bad packet) in one order for both."""

    def __init__(self, dut: Any) -> None:
        super().__init__(Part(dut, "g_tx_fifo"))
        self.rng = random_numbers()
        self.out = Scoreboard("packets")
        self.in_pause = self.bad_pause = never
        self.seen: list[Packet] = []
        self.ended: list[int] = []  # cycles in which a packet was whole
        self.dut.s_axis_tvalid.value = self.dut.s_axis_tlast.value = self.dut.s_axis_tuser.value = 0
        dut.g_rx_fifo.s_axis_tvalid.value = 0
        self.sink = StreamSink(self, "m_axis", self._take, meta=["m_meta", "m_meta_bytes"])
        cocotb.start_soon(self._take_bad())

    def _take(self, packet: Packet) -> None:
        self.seen.append(packet)
        assert len(packet.data) == packet.meta["m_meta_bytes"]
        self.out.take((packet.meta["m_meta"], packet.data))

    async def _take_bad(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        while True:
            ready = not self.bad_pause()
            dut.m_bad_ready.value = int(ready)
            await edge
            if dut.rst.value == 0 and dut.m_bad_valid.value == 1:
                assert dut.m_axis_tvalid.value == 0, "a bad packet offers no word"
                if ready:
                    self.out.take((int(dut.m_meta.value), None))

    async def send(self, size: int, user: int = 0, words: int | None = None) -> None:
        """words: how many a bad packet brings."""
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        data, meta = self.rng.randbytes(size), self.rng.getrandbits(20)
        self.out.expect((meta, None if user else data))
        dut.s_meta.value, dut.s_meta_bytes.value = meta, size
        count = -(-size // 16) if words is None else words
        for at in range(count):
            while self.in_pause():
                await edge
            word = data[16 * at : 16 * at + 16]
            dut.s_axis_tdata.value, dut.s_axis_tvalid.value = int.from_bytes(word, "little"), 1
            last = at == count - 1
            dut.s_axis_tlast.value, dut.s_axis_tuser.value = int(last), int(last and user)
            await self.accepted(dut.s_axis_tready)
            dut.s_axis_tvalid.value = 0
        if not user:
            self.ended.append(self.cycle)

    async def finish(self) -> None:
        self.sink.pause = self.bad_pause = never
        await self.wait_until(self.out.complete, 10 * WORDS, "all packets")
        await self.wait(3)
        self.out.finish()


async def started(dut: Any) -> TxFifoBench:
    bench = TxFifoBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def every_size_without_a_gap(dut: Any) -> None:
    bench = await started(dut)
    bench.in_pause = pauses(bench.rng, 0.3)
    for size in [*range(1, 70), BYTES_MAX] if SHORT else range(1, BYTES_MAX + 1):
        await bench.send(size)
    await bench.finish()
    for packet, ended in zip(bench.seen, bench.ended, strict=True):
        assert packet.first_cycle > ended, "a packet leaves before it is whole"
        assert packet.last_cycle - packet.first_cycle == packet.words - 1, "a gap"


@cocotb.test
async def good_and_bad_in_one_order(dut: Any) -> None:
    bench = await started(dut)
    for share in (0.0, 0.5):
        bench.in_pause, bench.bad_pause, bench.sink.pause = (pauses(bench.rng, share) for _ in range(3))
        for _ in range(150 if SHORT else 2000):
            size, user = bench.rng.choice([1, 8, 9, 16, 17, bench.rng.randrange(1, 400)]), int(bench.rng.random() < 0.3)
            await bench.send(size, user, bench.rng.randint(1, 20) if user else None)
        await bench.finish()


@cocotb.test
async def the_room_is_exact(dut: Any) -> None:
    """One word stands in the output, WORDS behind it; a packet at the head, PACKETS behind it. Then s_axis_tready falls."""
    bench = await started(dut)
    for fill in ([16 * min(WORDS - at, 50) for at in range(0, WORDS, 50)], [1] * PACKETS):
        bench.sink.pause = lambda: True
        await bench.wait(2)
        await bench.send(8)
        await bench.wait(5)
        for size in fill:
            assert bench.dut.s_axis_tready.value == 1
            await bench.send(size)
        await bench.wait(2)
        assert bench.dut.s_axis_tready.value == 0
        sending = cocotb.start_soon(bench.send(16))
        await bench.wait(20)
        assert not sending.done()
        bench.sink.pause = never
        await sending
        await bench.finish()
    bench.bad_pause = lambda: True
    await bench.wait(2)
    for _ in range(PACKETS + 1):
        await bench.send(100, user=1, words=50)  # what a bad packet took is free again
    await bench.wait(2)
    assert bench.dut.s_axis_tready.value == 0
    await bench.finish()


@cocotb.test
async def reset_empties_it(dut: Any) -> None:
    bench = await started(dut)
    for _ in range(10 if SHORT else 60):
        bench.sink.pause, bench.bad_pause = pauses(bench.rng, 0.5), pauses(bench.rng, 0.5)
        for _ in range(3):
            await bench.send(bench.rng.randrange(1, 100), user=int(bench.rng.random() < 0.3))
        sending = cocotb.start_soon(bench.send(200))
        await bench.wait(bench.rng.randint(1, 10))
        sending.cancel()
        dut.rst.value = 1
        await bench.wait(1)
        bench.out = Scoreboard("packets")
        dut.rst.value = bench.dut.s_axis_tvalid.value = 0
        await bench.wait(2)
        assert (bench.dut.m_axis_tvalid.value, bench.dut.m_bad_valid.value) == (0, 0)
        await bench.send(bench.rng.randrange(1, 100))
        await bench.finish()
