# SPDX-License-Identifier: Apache-2.0
"""match_table against the same rule in Python: random entries, masks, writes in mid-stream."""

from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, random_numbers

ENTRIES, TARGET_BITS = PARAMETERS.get("ENTRIES", 16), PARAMETERS.get("TARGET_BITS", 1)
LATENCY_CYCLES = 2


def write(dut: Any, index: int, enable: int, port: int, address: int, mask: int, target: int) -> None:
    dut.table_write.value = 1
    dut.table_index.value = index
    dut.table_enable.value = enable
    dut.table_port.value = port
    dut.table_source_address.value = address
    dut.table_source_mask.value = mask
    dut.table_target.value = target


@cocotb.test
async def the_lowest_entry_that_fits_wins(dut: Any) -> None:
    rng = random_numbers()
    bench = Bench(dut)
    dut.table_write.value = 0
    await bench.reset()
    ports, addresses = [rng.getrandbits(16) for _ in range(3)], [rng.getrandbits(32) for _ in range(3)]
    masks = [0, 0xFFFFFFFF, 0xFFFFFF00, 1 << rng.randrange(32)]
    entries = [(0, 0, 0, 0, 0)] * ENTRIES
    hits = 0
    for round_ in range(300 if SHORT else 5000):
        if round_:  # the first question meets the table as reset leaves it
            index = rng.randrange(ENTRIES)
            entries[index] = (
                int(rng.random() < 0.7),
                rng.choice(ports),
                rng.choice(addresses),
                rng.choice(masks),
                rng.getrandbits(TARGET_BITS),
            )
            write(dut, index, *entries[index])
            await bench.wait(1)
            dut.table_write.value = 0
        port, address = rng.choice(ports), rng.choice(addresses) ^ rng.choice([0, 1, 0x100, 1 << rng.randrange(32)])
        dut.port.value, dut.source_address.value = port, address
        await bench.wait(1 + LATENCY_CYCLES)  # this cycle asks; after its edge and another the answer stands
        fits = [i for i, (on, p, a, m, _) in enumerate(entries) if on and p == port and (address ^ a) & m == 0]
        assert dut.hit.value == int(bool(fits)), round_
        if fits:
            assert dut.hit_target.value == entries[fits[0]][4], round_
            hits += 1
    assert hits > 20


@cocotb.test
async def an_answer_is_by_one_table(dut: Any) -> None:
    """One entry, rewritten in every cycle while the question stays: each answer is that of two cycles before, port and target of the same entry."""
    rng = random_numbers()
    bench = Bench(dut)
    dut.table_write.value, dut.port.value, dut.source_address.value = 0, 6000, 0
    await bench.reset()
    written: list[tuple[int, int]] = []
    for _ in range(100 if SHORT else 2000):
        port, target = rng.choice([6000, 6001]), rng.getrandbits(TARGET_BITS)
        write(dut, ENTRIES - 1, 1, port, 0, 0, target)
        await bench.wait(1)
        if len(written) > LATENCY_CYCLES:
            asked_port, asked_target = written[-LATENCY_CYCLES - 1]  # what stood there when it was asked
            assert dut.hit.value == int(asked_port == 6000)
            assert asked_port != 6000 or dut.hit_target.value == asked_target
        written.append((port, target))
    dut.table_write.value = 0


@cocotb.test
async def reset_disables_every_entry(dut: Any) -> None:
    bench = Bench(dut)
    await bench.reset()
    for index in range(ENTRIES):
        write(dut, index, 1, 6000, 0x0A000001, 0, index + 1)
        await bench.wait(1)
    dut.table_write.value = 0
    dut.port.value, dut.source_address.value = 6000, 0x0A000001
    await bench.wait(1 + LATENCY_CYCLES)
    assert (dut.hit.value, int(dut.hit_target.value)) == (1, 1)
    await bench.reset(1)
    await bench.wait(LATENCY_CYCLES)
    assert dut.hit.value == 0
