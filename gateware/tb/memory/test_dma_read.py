# SPDX-License-Identifier: Apache-2.0
"""dma_read against a bus whose answers come late, mixed and sometimes bad: bytes in order, faults and errors at their read, tags never twice."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, Part, Scoreboard, pauses, random_numbers
from pages import PIECE_BYTES, READABLE, Pages

TAGS = PARAMETERS.get("TAGS", 4)
TIMEOUT_CYCLES = 300


class ReadBench(Bench):
    """Memory holds at each bus address what `content` says. expected: (bytes or None for bad) of each read."""

    def __init__(self, dut: Any, share: float, spoiled: float = 0.0) -> None:
        super().__init__(Part(dut, "g_dma_read"), ["read_fault", "read_error"])
        self.rng = random_numbers()
        self.pages = Pages(self, dut, self.rng)
        self.reads, self.asked = Scoreboard("reads"), Scoreboard("requests")
        self.share, self.spoiled, self.silent = share, spoiled, False
        self.plan: list[bool] = []  # whether the bus will answer each request with an error
        self.under_way: list[dict[str, Any]] = []
        self.most = self.refused = self.bad = 0
        self.salt = self.rng.getrandbits(32)
        for task in (self._take(), self._answer(), self._sink()):
            cocotb.start_soon(task)

    def content(self, address: int, size: int) -> bytes:
        return b"".join(
            (self.salt ^ (address + at) * 0x9E3779B97F4A7C15).to_bytes(16, "little")[4:12] * 2 for at in range(0, size, 16)
        )[:size]

    async def read(self, address: int, size: int) -> None:
        dut = self.dut
        pieces, data, bad = self.pages.pieces(address, size, READABLE), b"", False
        for at, length, place in pieces:
            spoiled = self.rng.random() < self.spoiled
            if place is not None:
                self.asked.expect((*place, length))
                data += self.content(place[1], length)
                self.plan.append(spoiled)
            assert at % 16 == 0
            bad |= place is None or spoiled
            self.refused += place is None
            self.bad += place is not None and spoiled
        self.reads.expect((size, None if bad else data))
        dut.s_address.value, dut.s_bytes.value, dut.s_valid.value = address, size, 1
        await self.accepted(dut.s_ready)
        dut.s_valid.value = 0

    async def _take(self) -> None:
        dut, edge, pause = self.dut, RisingEdge(self.dut.clk), pauses(self.rng, self.share)
        while True:
            ready = not pause()
            dut.m_ready.value = int(ready)
            await edge
            if not ready or dut.m_valid.value == 0 or dut.rst.value == 1:
                continue
            address, size, tag = int(dut.m_address.value), int(dut.m_bytes.value), int(dut.m_tag.value)
            self.asked.take((int(dut.m_gpu.value), address, size))
            assert all(request["tag"] != tag for request in self.under_way), "a tag is used twice"
            data = self.content(address, size)
            words = [data[at : at + 16] for at in range(0, size, 16)]
            due = self.cycle + self.rng.randrange(40)
            self.under_way.append({"tag": tag, "words": words, "due": due, "bad": self.plan.pop(0)})
            self.most = max(self.most, len(self.under_way))

    async def _answer(self) -> None:
        dut, edge, pause = self.dut, RisingEdge(self.dut.clk), pauses(self.rng, self.share)
        while True:
            ripe = [request for request in self.under_way if request["due"] <= self.cycle]
            dut.answer_valid.value = 0
            if ripe and not self.silent and not pause():
                request = self.rng.choice(ripe)
                dut.answer_valid.value, dut.answer_tag.value = 1, request["tag"]
                dut.answer_data.value = int.from_bytes(request["words"].pop(0), "little")
                dut.answer_last.value = int(not request["words"])
                dut.answer_error.value = int(not request["words"] and request["bad"])
                if not request["words"]:
                    self.under_way.remove(request)
            await edge

    async def _sink(self) -> None:
        dut, edge, pause = self.dut, RisingEdge(self.dut.clk), pauses(self.rng, self.share)
        data, held = b"", None
        while True:
            ready = not pause()
            dut.m_axis_tready.value = int(ready)
            await edge
            if dut.rst.value == 1 or dut.m_axis_tvalid.value == 0:
                assert held is None or dut.rst.value == 1, "a word was withdrawn"
                data, held = (b"", None) if dut.rst.value == 1 else (data, None)
                continue
            word = (int(dut.m_axis_tdata.value), int(dut.m_axis_tlast.value), int(dut.m_axis_tuser.value))
            assert held is None or held == word, "a waiting word changed"
            held = None if ready else word
            if not ready:
                continue
            data += word[0].to_bytes(16, "little")
            if word[1]:
                size = self.reads.expected[self.reads.seen][0]
                assert len(data) == -(-size // 16) * 16, "words of a read"
                self.reads.take((size, None if word[2] else data[:size]))
                data = b""

    async def finish(self) -> None:
        await self.wait_until(self.reads.complete, 20_000, "all reads")
        await self.wait(5)
        self.asked.finish()
        self.expect_counts(read_fault=self.refused, read_error=self.bad)


@cocotb.test
async def reads_come_in_order_whatever_the_bus_does(dut: Any) -> None:
    bench = ReadBench(dut, 0.2, spoiled=0.2)
    await bench.reset()
    await bench.pages.fill([7] * 12 + [15] * 12 + [3, 5, 6])
    for _ in range(120 if SHORT else 2000):
        size = bench.rng.choice([1, 16, 17, PIECE_BYTES, bench.rng.randrange(1, 1001)])
        await bench.read(bench.pages.random_address(size, 16), size)
        if bench.rng.random() < 0.1:
            await bench.wait(100)
    await bench.finish()
    assert bench.most == TAGS, "not all tags were in flight"
    assert bench.refused > 10
    assert bench.bad > 10


@cocotb.test
async def a_silent_bus_is_told_after_the_time_out(dut: Any) -> None:
    bench = ReadBench(dut, 0.0)
    await bench.reset()
    await bench.pages.fill([7])
    for _ in range(2):
        await bench.read(0, 64)
        await bench.finish()
        bench.silent = True
        await bench.read(0, 100)
        begun = bench.cycle  # the read is taken here, its first tag one cycle later
        await bench.wait_until(lambda: bench.dut.read_stuck.value == 1, TIMEOUT_CYCLES + 10, "read_stuck")
        assert bench.cycle - begun == TIMEOUT_CYCLES + 2
        await bench.wait(50)
        assert bench.dut.read_stuck.value == 1
        bench.under_way.clear()
        bench.reads, bench.asked = Scoreboard("reads"), Scoreboard("requests")
        await bench.reset(1)
        assert bench.dut.read_stuck.value == 0
        await bench.pages.fill([7])
        bench.silent = False
    await bench.read(48, 500)
    await bench.finish()


@cocotb.test
async def reset_in_mid_read_leaves_nothing(dut: Any) -> None:
    bench = ReadBench(dut, 0.0)
    for wait in range(1, 13 if SHORT else 41):
        await bench.reset(1)
        await bench.pages.fill([5] if wait % 2 else [7])  # those that are refused follow one another
        for _ in range(2):
            await bench.read(0, 300)
        await bench.wait(wait // 2 if wait < 20 else wait)
        bench.under_way.clear()
        dut.rst.value = 1
        await bench.wait(1 + (wait > 8))
        bench.under_way.clear()
        bench.plan.clear()
        bench.reads, bench.asked = Scoreboard("reads"), Scoreboard("requests")
        bench.forget_counts()
        bench.refused = 0
        dut.rst.value = 0
        await bench.pages.fill([7])
        await bench.read(bench.rng.randrange(0, 4096, 16), 400)
        await bench.finish()
