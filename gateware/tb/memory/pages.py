# SPDX-License-Identifier: Apache-2.0
"""The driver's side of the page table, and what it should say of an address: regions of shuffled pages with any permissions."""

from random import Random
from typing import Any

from common.bench import PARAMETERS, Bench

REGIONS, ENTRIES, OFFSET_BITS = 4, 64, 24
VALID, READABLE, WRITABLE, GPU = 1, 2, 4, 8
PIECE_BYTES = PARAMETERS.get("PIECE_BYTES", 64)
IDLE_INPUTS = {
    "g_page_table": ["enable", "s_valid"],
    "g_dma_write": ["s_valid", "m_ready"],
    "g_dma_read": ["s_valid", "m_ready", "answer_valid", "m_axis_tready"],
}


class Pages:
    """regions: {number: (page_shift, first, count)}; entries: {index: 64 bits}. `translate` is the reference."""

    def __init__(self, bench: Bench, top: Any, rng: Random) -> None:
        self.bench, self.top, self.rng = bench, top, rng
        self.regions: dict[int, tuple[int, int, int]] = {}
        self.entries: dict[int, int] = {}
        top.region_write.value = top.entry_write.value = 0
        for block, names in IDLE_INPUTS.items():
            for name in names:
                getattr(getattr(top, block), name).value = 0

    async def write_region(self, number: int, page_shift: int, first: int, count: int, valid: int = 1) -> None:
        top = self.top
        top.region_index.value, top.region_valid.value, top.region_page_shift.value = number, valid, page_shift
        top.region_first.value, top.region_count.value, top.region_write.value = first, count, 1
        await self.bench.wait(1)
        top.region_write.value = 0
        self.regions.pop(number, None)
        if valid:
            self.regions[number] = (page_shift, first, count)

    async def write_entry(self, index: int, data: int) -> None:
        self.top.entry_index.value, self.top.entry_data.value, self.top.entry_write.value = index, data, 1
        await self.bench.wait(1)
        self.top.entry_write.value = 0
        self.entries[index] = data

    async def fill(self, permissions: list[int]) -> None:
        """Three regions, one of each page size, and one that is not there; every page somewhere else."""
        places = self.rng.sample(range(1, 1 << 20), k=ENTRIES)
        for index, place in enumerate(places):
            await self.write_entry(
                index, place << 32 | self.rng.getrandbits(11) << 21 | self.rng.getrandbits(21) & ~15 | self.rng.choice(permissions)
            )
        for number, (page_shift, first, count) in enumerate([(12, 3, 50), (16, 53, 8), (21, 61, 3)]):
            await self.write_region(number, page_shift, first, count)

    def translate(self, address: int, needed: int) -> tuple[int, int] | None:
        """(gpu, bus address), or None for a fault. needed: READABLE or WRITABLE."""
        number, offset = address >> OFFSET_BITS, address & ((1 << OFFSET_BITS) - 1)
        if number not in self.regions:
            return None
        page_shift, first, count = self.regions[number]
        page, inside = divmod(offset, 1 << page_shift)
        if page >= count:
            return None
        entry = self.entries[first + page]
        if entry & (VALID | needed) != VALID | needed:
            return None
        return int(bool(entry & GPU)), (entry >> page_shift << page_shift) + inside

    def random_address(self, size: int, align: int) -> int:
        """Mostly within a region, often near the end of a page or of the region."""
        number = self.rng.choice([0, 0, 0, 1, 1, 2, 2, 3])
        page_shift, _, count = self.regions.get(number, (12, 0, 4))
        page = self.rng.choice([0, count - 1, count, *(self.rng.randrange(count) for _ in range(5))])
        inside = self.rng.choice([0, (1 << page_shift) - size // 2, self.rng.randrange(1 << page_shift)])
        offset = min((page << page_shift) + inside, (1 << OFFSET_BITS) - size - align)
        return (number << OFFSET_BITS) + offset // align * align

    def pieces(self, address: int, size: int, needed: int) -> list[tuple[int, int, tuple[int, int] | None]]:
        """The requests of a transfer: (address, bytes, translation)."""
        found = []
        while size:
            step = min(size, PIECE_BYTES - address % PIECE_BYTES)
            found.append((address, step, self.translate(address, needed)))
            address, size = address + step, size - step
        return found
