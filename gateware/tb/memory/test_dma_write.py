# SPDX-License-Identifier: Apache-2.0
"""dma_write against a list of the requests that each write must become: cuts, pages, permissions, lanes, order, one latency."""

from collections.abc import AsyncIterator
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import SHORT, Bench, Part, Scoreboard, never, pauses, random_numbers
from pages import PIECE_BYTES, WRITABLE, Pages

LATENCY_CYCLES = 4


class WriteBench(Bench):
    """requests: (gpu, address, bytes) in order with their bytes; done: (tag, fault) of each write."""

    def __init__(self, dut: Any, share: float) -> None:
        super().__init__(Part(dut, "g_dma_write"))
        self.rng = random_numbers()
        self.pages = Pages(self, dut, self.rng)
        self.requests, self.done = Scoreboard("requests"), Scoreboard("done")
        self.in_pause, self.out_pause = pauses(self.rng, share), pauses(self.rng, share)
        self.taken: list[int] = []  # cycles in which a word was taken
        self.left: list[int] = []  # cycles in which one left
        self.refused = 0
        cocotb.start_soon(self._sink())

    async def write(self, address: int, size: int, words: int | None = None) -> None:
        """words: it ends after so many, though it spoke of `size` bytes; zeros fill the request that is open by then."""
        async for _ in self.requests_of(address, size, 0, words):
            pass

    async def mix(self, writes: tuple[list[tuple[int, int]], list[tuple[int, int]]]) -> None:
        """The writes, (address, size), of two writers, a request of any of them at a time."""
        ways = [self._all(second, mine) for second, mine in enumerate(writes)]
        while ways:
            way = self.rng.choice(ways)
            try:
                await anext(way)
            except StopAsyncIteration:
                ways.remove(way)

    async def _all(self, second: int, writes: list[tuple[int, int]]) -> AsyncIterator[None]:
        for address, size in writes:
            words = self.rng.randrange(1, -(-size // 16) + 1) if self.rng.random() < 0.2 else None
            async for _ in self.requests_of(address, size, second, words):
                yield

    async def requests_of(self, address: int, size: int, second: int, words: int | None = None) -> AsyncIterator[None]:
        """A write, which pauses after each of its requests."""
        dut, edge, data, tag = self.dut, RisingEdge(self.dut.clk), self.rng.randbytes(size), self.rng.randrange(8)
        end = address % 16 + size if words is None else min(16 * words, address % 16 + size)
        comes = end - address % 16  # bytes
        data = data[:comes] + bytes(size - comes)
        pieces = [piece for piece in self.pages.pieces(address, size, WRITABLE) if piece[0] < address + comes]
        at = 0
        refused = sum(place is None for _, _, place in pieces)
        self.refused += refused
        padded = self.rng.randbytes(address % 16) + data + self.rng.randbytes(16)
        offset = 0
        for _, length, place in pieces:
            if place is not None:
                self.requests.expect((*place, length, data[at : at + length]))
            at += length
            if at >= comes:
                self.done.expect((tag, int(refused > 0)))
            while offset < min(address % 16 + at, end):
                while self.in_pause():
                    await edge
                dut.s_second.value, dut.s_address.value, dut.s_bytes.value, dut.s_tag.value = second, address, size, tag
                dut.s_data.value, dut.s_valid.value = int.from_bytes(padded[offset : offset + 16], "little"), 1
                dut.s_last.value = int(offset + 16 >= end)
                await self.accepted(dut.s_ready)
                self.taken.append(self.cycle)
                offset += 16
                assert dut.s_cut.value == (offset >= min(address % 16 + at, end)), "says where a request ends"
                dut.s_valid.value = 0
            yield

    async def _sink(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        head: tuple[int, int, int] | None = None
        body = b""
        while True:
            ready = not self.out_pause()
            dut.m_ready.value = int(ready)
            await edge
            if dut.rst.value == 1:
                head = None
                continue
            if dut.done.value == 1:
                self.done.take((int(dut.done_tag.value), int(dut.done_fault.value)))
            if not ready or dut.m_valid.value == 0:
                continue
            self.left.append(self.cycle)
            assert (dut.m_first.value == 1) == (head is None), "a request begins where the one before has ended"
            if head is None:
                head, body = (int(dut.m_gpu.value), int(dut.m_address.value), int(dut.m_bytes.value)), b""
            keep = int(dut.m_keep.value)
            lanes = [lane for lane in range(16) if keep >> lane & 1]
            assert lanes[0] == (head[1] % 16 if not body else 0)
            assert lanes == list(range(lanes[0], lanes[-1] + 1))
            body += int(dut.m_data.value).to_bytes(16, "little")[lanes[0] : lanes[-1] + 1]
            if dut.m_last.value == 1:
                self.requests.take((*head, body))
                head = None

    async def finish(self) -> None:
        await self.wait(60)
        self.requests.finish()
        self.done.finish()


@cocotb.test
async def every_write_becomes_its_requests(dut: Any) -> None:
    bench = WriteBench(dut, 0.2)
    await bench.reset()
    await bench.pages.fill([7, 7, 7, 15, 3, 6])
    for _ in range(150 if SHORT else 3000):
        size = bench.rng.choice([1, 8, 16, 17, 64, PIECE_BYTES, bench.rng.randrange(1, 1001)])
        await bench.write(bench.pages.random_address(size, 8), size)
    await bench.finish()
    assert bench.refused > 20
    assert bench.requests.seen > 40


@cocotb.test
async def writes_of_two_writers_mix_between_requests(dut: Any) -> None:
    bench = WriteBench(dut, 0.2)
    await bench.reset()
    await bench.pages.fill([7, 7, 7, 15, 3, 6])
    writes: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for mine in writes:
        for _ in range(60 if SHORT else 1000):
            size = bench.rng.choice([8, 64, PIECE_BYTES, bench.rng.randrange(1, 1001)])
            mine.append((bench.pages.random_address(size, 8), size))
    await bench.mix(writes)
    await bench.finish()
    assert bench.refused > 20


@cocotb.test
async def a_word_leaves_four_cycles_after_it_came(dut: Any) -> None:
    bench = WriteBench(dut, 0.0)
    await bench.reset()
    await bench.pages.fill([7])
    for size in (1, 8, 16, 100, 1000):
        for _ in range(5):
            bench.taken.clear()
            bench.left.clear()
            await bench.write(bench.rng.randrange(0, 0x10000, 8), size)
            await bench.wait(10)
            assert bench.left == [cycle + LATENCY_CYCLES for cycle in bench.taken]
            assert bench.taken[-1] - bench.taken[0] == len(bench.taken) - 1, "a word a cycle"
    await bench.finish()


@cocotb.test
async def a_write_that_ends_early_ends_its_request(dut: Any) -> None:
    """The request that is open gets zeros to its length, at once; none is begun after it, and the next write is whole."""
    bench = WriteBench(dut, 0.1)
    await bench.reset()
    await bench.pages.fill([7, 7, 7, 3, 6])
    for _ in range(150 if SHORT else 3000):
        size = bench.rng.choice([17, 40, PIECE_BYTES, bench.rng.randrange(1, 1001)])
        await bench.write(bench.pages.random_address(size, 8), size, bench.rng.randrange(1, -(-size // 16) + 1))
    await bench.finish()
    assert bench.requests.seen > 40
    bench.in_pause = bench.out_pause = never
    await bench.pages.fill([7])
    for words in range(1, 12):
        bench.taken.clear()
        bench.left.clear()
        await bench.write(0, 1000, words)
        await bench.wait(PIECE_BYTES // 16 + 10)
        assert bench.left == list(range(bench.left[0], bench.left[0] + len(bench.left)))
        assert len(bench.left) == -(-16 * words // PIECE_BYTES) * PIECE_BYTES // 16
    await bench.finish()


@cocotb.test
async def what_the_table_says_of_a_request_holds_to_its_end(dut: Any) -> None:
    """The region is taken away, or given back, in each cycle of a write of several requests: each comes whole or not at all, and the fault is told."""
    bench = WriteBench(dut, 0.0)
    await bench.reset()
    await bench.pages.fill([7])
    region = bench.pages.regions[0]
    size, address, partly = 3 * PIECE_BYTES + 40, 24, 0
    for gives_back in (False, True):
        for cycle in range(-(-size // 16) + LATENCY_CYCLES + 2):
            await bench.pages.write_region(0, *region, valid=int(not gives_back))
            pieces: list[tuple[int, int]] = []
            told: list[tuple[int, int]] = []
            bench.requests.take = lambda request, pieces=pieces: pieces.append((request[1] % 4096, request[2]))  # type: ignore[method-assign]
            bench.done.take = told.append  # type: ignore[method-assign]
            bench.pages.regions[0] = region
            writing = cocotb.start_soon(bench.write(address, size))
            await bench.wait(cycle + 1)
            await bench.pages.write_region(0, *region, valid=int(gives_back))
            await writing
            await bench.wait(LATENCY_CYCLES + 4)
            bench.pages.regions[0] = region
            every = [(at, length) for at, length, _ in bench.pages.pieces(address, size, WRITABLE)]
            came = len(pieces)
            assert pieces == (every[len(every) - came :] if gives_back else every[:came])
            assert [fault for _, fault in told] == [int(came < len(every))]
            partly += 0 < came < len(every)
    assert partly > 4


@cocotb.test
async def reset_in_mid_write_leaves_nothing(dut: Any) -> None:
    bench = WriteBench(dut, 0.0)
    for refused in (False, True) * (3 if SHORT else 20):
        dut.rst.value = 1
        await bench.wait(2)
        dut.rst.value = 0
        await bench.pages.fill([3 if refused else 7])
        writing = cocotb.start_soon(bench.write(8, 500))
        await bench.wait(bench.rng.randint(8, 12))
        writing.cancel()
        dut.rst.value, bench.dut.s_valid.value = 1, 0
        await bench.wait(1)
        dut.rst.value = 0
        bench.requests, bench.done = Scoreboard("requests"), Scoreboard("done")
        await bench.pages.fill([7])
        assert bench.dut.m_valid.value == 0
        await bench.write(bench.rng.randrange(0, 4096, 8), 200)
        await bench.finish()
