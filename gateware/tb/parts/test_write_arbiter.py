# SPDX-License-Identifier: Apache-2.0
"""write_arbiter: writes are never mixed, the first writer waits for none that has not begun, the second goes in pauses or when its patience ends."""

from random import Random
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, Part, pauses, random_numbers

PATIENCE_CYCLES = PARAMETERS.get("PATIENCE_CYCLES", 20)
FIELDS = {"address": 43, "bytes": 14, "data": 128, "tag": 1}


class Writer:
    """Offers the words of random writes, each until it is taken; pauses between writes and between words."""

    def __init__(self, rng: Random, share: float) -> None:
        self.rng, self.pause = rng, pauses(rng, share)
        self.left = 0
        self.word: dict[str, int] | None = None

    def offer(self) -> dict[str, int] | None:
        if self.word is None and not self.pause():
            self.left = self.left or self.rng.randint(1, 6)
            self.word = {name: self.rng.getrandbits(bits) for name, bits in FIELDS.items()} | {"last": int(self.left == 1)}
        return self.word

    def taken(self) -> None:
        self.word, self.left = None, self.left - 1


async def run(dut: Any, shares: tuple[float, float], cycles: int) -> tuple[int, int]:
    """Returns how many writes the second began in a pause, and how many because its patience had ended."""
    rng = random_numbers()
    part = Part(dut, "g_write_arbiter")
    bench = Bench(part)
    # A write of either may be in flight, and the second waits.
    part.clear.value, part.m_ready.value = 0, 1
    part.s0_valid.value, part.s0_last.value = rng.choice([(0, 0), (1, 0)])
    part.s1_valid.value, part.s1_last.value = 1, 0
    await bench.wait(PATIENCE_CYCLES // 2)
    dut.rst.value = 1
    await bench.wait(rng.randint(1, 3))
    dut.rst.value = 0
    writers = [Writer(rng, share) for share in shares]
    under_way: int | None = None
    waited = in_pause = impatient = 0
    for _ in range(cycles):
        offers = [writer.offer() for writer in writers]
        clear, ready = int(rng.random() < 0.3), int(rng.random() < 0.8)
        part.clear.value, part.m_ready.value = clear, ready
        for number, offer in enumerate(offers):
            getattr(part, f"s{number}_valid").value = int(offer is not None)
            for name, value in (offer or {}).items():
                getattr(part, f"s{number}_{name}").value = value
        await bench.wait(1)
        # Whose turn it is, as the contract has it.
        if under_way is not None:
            turn = under_way
        elif offers[1] is not None and waited >= PATIENCE_CYCLES:
            turn = 1
        else:
            turn = int(offers[1] is not None and offers[0] is None and clear == 1)
        assert int(part.m_second.value) == turn
        assert (part.s0_ready.value, part.s1_ready.value) == (int(ready and turn == 0), int(ready and turn == 1))
        word = offers[turn]
        assert part.m_valid.value == int(word is not None)
        if word is not None:
            assert {name: int(getattr(part, f"m_{name}").value) for name in FIELDS} == {name: word[name] for name in FIELDS}
            if turn == 1 and under_way is None:
                in_pause, impatient = in_pause + (waited < PATIENCE_CYCLES), impatient + (waited >= PATIENCE_CYCLES)
        waited = waited + 1 if turn == 0 and offers[1] is not None else 0
        if word is not None and ready:
            writers[turn].taken()
            under_way = None if word["last"] else turn
    return in_pause, impatient


@cocotb.test
async def the_second_takes_pauses_and_has_patience(dut: Any) -> None:
    cycles = 1500 if SHORT else 20_000
    in_pause, impatient = await run(dut, (0.5, 0.3), cycles)
    assert in_pause > 10
    in_pause, impatient = await run(dut, (0.0, 0.3), cycles)
    assert in_pause == 0
    assert impatient > 10


@cocotb.test
async def reset_forgets_who_writes_and_who_waits(dut: Any) -> None:
    for _ in range(20 if SHORT else 200):
        await run(dut, (0.3, 0.3), 40)
