# SPDX-License-Identifier: Apache-2.0
"""rdma_regions against the rule of docs/apenet-rdma-format.md in Python: a look-up and a write in each cycle, at every edge of a region and of its key."""

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import cocotb
from common import rdma
from common.bench import PARAMETERS, SHORT, Bench, random_numbers

REGIONS, ADDRESS_BITS = PARAMETERS["REGIONS"], PARAMETERS["ADDRESS_BITS"]
LATENCY_CYCLES = 2
INDICES = 1 << 8  # that a packet can name
BYTES_BITS = 18


@dataclass
class Region:
    valid: bool
    readable: bool
    writable: bool
    nonce: int
    start: int
    size: int


def random_region(rng: Random) -> Region:
    size = rng.choice([1, 16, rng.randrange(1, 5000), rng.randrange(1, 1 << 40), 1 << 40])
    start = rng.randrange(1 << ADDRESS_BITS - 4) * 16
    return Region(rng.random() < 0.7, rng.random() < 0.7, rng.random() < 0.7, rng.getrandbits(32), start, size)


@dataclass
class Question:
    index: int
    nonce: int
    offset: int
    size: int
    is_write: bool

    def answer(self, table: dict[int, Region]) -> tuple[str, int]:
        """What comes of it, and the address if it is allowed."""
        region = table.get(self.index)
        if region is None or not region.valid or self.nonce != region.nonce:
            return "bad_key", 0
        if not (region.writable if self.is_write else region.readable):
            return "bad_rights", 0
        if self.offset + self.size > region.size:
            return "bad_bounds", 0
        return "allowed", (region.start + self.offset) % (1 << ADDRESS_BITS)


def random_question(rng: Random, table: dict[int, Region]) -> Question:
    """Mostly of a region that is there, to its end or a byte beyond."""
    index = rng.choice(list(table)) if table else 0
    region = table.get(index, Region(False, False, False, 0, 0, 1))
    size = rng.choice([0, 1, rng.randrange(4081), rng.getrandbits(BYTES_BITS)])
    ends = region.size + rng.choice([-1, 0, 0, 1, -rng.randrange(5000), -rng.randrange(1 << 39)])
    offset = min(max(ends - size, 0), (1 << rdma.OFFSET_BITS) - 1)
    if rng.random() < 0.1:
        index ^= 1 << rng.randrange(8)
    nonce = region.nonce ^ (rng.random() < 0.1) << rng.randrange(32)
    return Question(index, nonce, offset, size, rng.random() < 0.5)


def ask(dut: Any, question: Question) -> None:
    dut.s_region.value, dut.s_nonce.value = question.index, question.nonce
    dut.s_offset.value, dut.s_bytes.value, dut.s_is_write.value = question.offset, question.size, int(question.is_write)


def show(dut: Any, write: bool, index: int, region: Region) -> None:
    dut.key_write.value, dut.key_index.value = int(write), index
    dut.key_valid.value, dut.key_nonce.value = int(region.valid), region.nonce
    dut.key_readable.value, dut.key_writable.value = int(region.readable), int(region.writable)
    dut.key_start.value, dut.key_bytes.value = region.start, region.size


def seen(dut: Any) -> tuple[str, int]:
    up = [name for name in ("allowed", "bad_key", "bad_rights", "bad_bounds") if getattr(dut, name).value == 1]
    assert len(up) == 1, up
    return up[0], int(dut.address.value) if up == ["allowed"] else 0


@cocotb.test
async def every_look_up_is_of_the_table_as_it_stood(dut: Any) -> None:
    rng, bench = random_numbers(), Bench(dut)
    table: dict[int, Region] = {}
    show(dut, False, 0, random_region(rng))
    ask(dut, random_question(rng, table))
    await bench.reset()
    answers: list[tuple[str, int]] = []
    for _ in range(1500 if SHORT else 10_000):
        question = random_question(rng, table)
        ask(dut, question)
        answers.append(question.answer(table))
        index, region, writes = rng.randrange(REGIONS), random_region(rng), rng.random() < 0.2
        show(dut, writes, index, region)  # what is not written shows too
        if writes:
            table[index] = region
        await bench.wait(1)
        if len(answers) > LATENCY_CYCLES:
            assert seen(dut) == answers[-1 - LATENCY_CYCLES]
    assert min(Counter(what for what, _ in answers).values()) > 30
    assert REGIONS < INDICES or len(table) > REGIONS // 2


@cocotb.test
async def reset_takes_every_region_away(dut: Any) -> None:
    rng, bench = random_numbers(), Bench(dut)
    dut.key_write.value = 0
    await bench.reset()
    region = Region(True, True, True, rng.getrandbits(32), 0, 16)
    for index in range(REGIONS):
        show(dut, True, index, region)
        await bench.wait(1)
    dut.key_write.value = 0
    for allowed in (True, False):
        for index in range(REGIONS):
            ask(dut, Question(index, region.nonce, 3, 13, False))
            await bench.wait(1 + LATENCY_CYCLES)
            assert seen(dut) == (("allowed", 3) if allowed else ("bad_key", 0))
        await bench.reset(1)
