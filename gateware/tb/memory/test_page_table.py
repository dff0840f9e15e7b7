# SPDX-License-Identifier: Apache-2.0
"""page_table against the same rule in Python: three page sizes, permissions, ends of regions, and one latency whatever the answer."""

from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import SHORT, Bench, Part, pauses, random_numbers
from pages import ENTRIES, OFFSET_BITS, READABLE, REGIONS, WRITABLE, Pages

LATENCY_CYCLES = 3


async def look_up(dut: Any, part: Any, pages: Pages, count: int, share: float) -> tuple[int, int]:
    """`count` cycles of look-ups and pauses: in each enabled cycle what was asked LATENCY_CYCLES enabled cycles before is there. Hits and faults."""
    rng, edge = pages.rng, RisingEdge(dut.clk)
    pause = pauses(rng, share)
    asked: deque[tuple[bool, Any]] = deque()
    hits = faults = 0
    for _ in range(count):
        address, is_write, valid = pages.random_address(16, 1), rng.random() < 0.5, rng.random() < 0.8
        part.s_address.value, part.s_is_write.value, part.s_valid.value = address, int(is_write), int(valid)
        enabled = not pause()
        part.enable.value = int(enabled)
        await edge
        if len(asked) == LATENCY_CYCLES:  # also while nothing moves
            there, expected = asked[0]
            assert part.m_valid.value == int(there)
            if there:
                assert part.m_fault.value == int(expected is None)
                if expected is not None:
                    assert (int(part.m_gpu.value), int(part.m_address.value)) == expected
                hits += expected is not None
                faults += expected is None
        if enabled:
            if len(asked) == LATENCY_CYCLES:
                asked.popleft()
            asked.append((valid, pages.translate(address, WRITABLE if is_write else READABLE)))
    part.s_valid.value, part.enable.value = 0, 1
    await Bench.wait(pages.bench, LATENCY_CYCLES + 1)
    return hits, faults


@cocotb.test
async def every_answer_is_right_and_takes_the_same_time(dut: Any) -> None:
    part = Part(dut, "g_page_table")
    bench = Bench(part)
    pages = Pages(bench, dut, random_numbers())
    await bench.reset()
    await pages.fill(list(range(16)))
    for share in (0.0, 0.3):
        hits, faults = await look_up(dut, part, pages, 700 if SHORT else 10_000, share)
        assert hits > 30
        assert faults > 30


@cocotb.test
async def regions_and_entries_change_and_reset_takes_all_away(dut: Any) -> None:
    rng = random_numbers()
    part = Part(dut, "g_page_table")
    bench = Bench(part)
    pages = Pages(bench, dut, rng)
    await bench.reset()
    await pages.fill([7])
    for _ in range(10 if SHORT else 100):
        page_shift, count = rng.choice([12, 16, 21]), rng.randrange(1, 9)
        await pages.write_region(rng.randrange(REGIONS), page_shift, rng.randrange(ENTRIES - count), count, int(rng.random() < 0.8))
        for _ in range(8):
            await pages.write_entry(rng.randrange(ENTRIES), rng.getrandbits(64))
        await look_up(dut, part, pages, 50, 0.0)
    for _ in range(3):
        await pages.fill([7])
        part.s_valid.value = part.enable.value = 1
        await bench.wait(3)
        await bench.reset(1)  # with look-ups in flight
        part.s_valid.value = 1
        await bench.wait(LATENCY_CYCLES + 2)
        pages.regions.clear()
        hits, faults = await look_up(dut, part, pages, 50, 0.0)
        assert hits == 0
        assert faults > 20
        for number in range(REGIONS):
            await pages.write_region(number, 12, 0, 1 << (OFFSET_BITS - 20))


@cocotb.test
async def reset_ends_what_is_under_way(dut: Any) -> None:
    part = Part(dut, "g_page_table")
    bench = Bench(part)
    pages = Pages(bench, dut, random_numbers())
    part.enable.value = 1
    for under_way in range(1, LATENCY_CYCLES + 2):
        part.s_valid.value = 0
        await bench.wait(LATENCY_CYCLES + 1)
        part.s_valid.value = 1
        await bench.wait(under_way)
        dut.rst.value = 1
        await bench.wait(1)
        part.s_valid.value = dut.rst.value = 0
        for _ in range(LATENCY_CYCLES + 1):
            await bench.wait(1)
            assert part.m_valid.value == 0
    assert pages.regions == {}
