# SPDX-License-Identifier: Apache-2.0
"""write_arbiter: requests are never mixed; the second writer goes where the first has no use for the port, or when its patience ends."""

from random import Random
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, Part, never, pauses, random_numbers

PATIENCE_CYCLES = PARAMETERS.get("PATIENCE_CYCLES", 20)
SECOND_WORDS, RUN = 4, 4
LEFT_BYTES_MIN = 16 * (SECOND_WORDS * RUN + 4)
FIELDS = {"address": 43, "data": 128, "tag": 1}


class Writer:
    """Offers the words of random writes, each until it is taken. The first: long ones, cut into requests anywhere, with pauses."""

    def __init__(self, rng: Random, second: bool, share: float) -> None:
        self.rng, self.second = rng, second
        self.pause = pauses(rng, share)
        self.bytes = self.left = 0  # of the write; words still to come
        self.word: dict[str, int] | None = None

    def offer(self) -> dict[str, int] | None:
        if self.word is None and ((self.second and self.left) or not self.pause()):
            if not self.left:
                self.left = SECOND_WORDS if self.second else self.rng.choice([1, 2, 4, 21, 22, self.rng.randint(1, 60)])
                self.bytes = 16 * self.left - (0 if self.second else self.rng.choice([0, 1, 8, self.rng.randrange(16)]))
            last = self.left == 1
            self.word = {name: self.rng.getrandbits(bits) for name, bits in FIELDS.items()}
            self.word |= {"bytes": self.bytes, "last": int(last)}
            self.word["cut"] = int(last or (not self.second and self.rng.random() < 0.2))
        return self.word

    def taken(self) -> None:
        self.word, self.left = None, self.left - 1


class Reference:
    """Whose turn it is, as the contract has it, and why."""

    def __init__(self) -> None:
        self.owner: int | None = None  # of the request in flight
        self.left = 0  # bytes of the first writer's write in flight
        self.run = self.waited = 0

    def turn(self, offers: list[dict[str, int] | None], clear: int) -> tuple[int, str]:
        if self.owner is not None:
            return self.owner, ""
        if offers[1] is None:
            return 0, ""
        if self.waited >= PATIENCE_CYCLES:
            return 1, "impatient"
        if not self.left:
            return (1, "between") if clear and offers[0] is None else (0, "")
        free = offers[0] is None if self.run == 0 else self.run < RUN
        return (1, "amid") if free and self.left >= LEFT_BYTES_MIN else (0, "")

    def take(self, turn: int, offers: list[dict[str, int] | None], ready: int) -> None:
        self.waited = self.waited + ready if turn == 0 and offers[1] is not None else 0
        word = offers[turn]
        if word is None or not ready:
            return
        self.owner = None if word["cut"] else turn
        if turn == 1:
            self.run += word["last"]
        else:
            self.left, self.run = max((self.left or word["bytes"]) - 16, 0), 0


async def run(dut: Any, shares: tuple[float, float], cycles: int, clears: float = 0.3) -> dict[str, int]:
    """Returns how many writes the second began for which reason."""
    rng = random_numbers()
    part = Part(dut, "g_write_arbiter")
    bench = Bench(part)
    # A write of either may be in flight, and the second waits.
    part.clear.value, part.m_ready.value, part.s0_cut.value, part.s1_cut.value = 0, 1, 0, 0
    part.s0_valid.value, part.s0_last.value, part.s0_bytes.value = rng.choice([(0, 0, 0), (1, 0, 8000)])
    part.s1_valid.value, part.s1_last.value, part.s1_bytes.value = 1, 0, 64
    await bench.wait(PATIENCE_CYCLES // 2)
    dut.rst.value = 1
    await bench.wait(rng.randint(1, 3))
    dut.rst.value = 0
    writers = [Writer(rng, second, share) for second, share in zip((False, True), shares, strict=True)]
    reference, begun = Reference(), dict.fromkeys(("", "impatient", "between", "amid"), 0)
    pause = pauses(rng, 0.2) if clears < 1 else never
    for _ in range(cycles):
        offers = [writer.offer() for writer in writers]
        clear, ready = int(rng.random() < clears), int(not pause())
        part.clear.value, part.m_ready.value = clear, ready
        for number, offer in enumerate(offers):
            getattr(part, f"s{number}_valid").value = int(offer is not None)
            for name, value in (offer or {}).items():
                getattr(part, f"s{number}_{name}").value = value
        await bench.wait(1)
        turn, why = reference.turn(offers, clear)
        assert int(part.m_second.value) == turn
        assert (part.s0_ready.value, part.s1_ready.value) == (int(ready and turn == 0), int(ready and turn == 1))
        word = offers[turn]
        assert part.m_valid.value == int(word is not None)
        if word is not None:
            names = [*FIELDS, "bytes", "last"]
            assert {name: int(getattr(part, f"m_{name}").value) for name in names} == {name: word[name] for name in names}
            begun[why] += ready
        reference.take(turn, offers, ready)
        if word is not None and ready:
            writers[turn].taken()
    return begun


@cocotb.test
async def the_second_takes_what_the_first_leaves_and_has_patience(dut: Any) -> None:
    cycles = 6000 if SHORT else 30_000
    begun = await run(dut, (0.5, 0.3), cycles)
    assert begun["between"] > 10 or PATIENCE_CYCLES == 1
    assert begun["amid"] > 10 or PATIENCE_CYCLES == 1
    begun = await run(dut, (0.0, 0.3), cycles)
    assert begun["between"] == 0
    assert begun["impatient"] > 10


@cocotb.test
async def four_at_most_go_within_a_write_of_the_first(dut: Any) -> None:
    begun = await run(dut, (0.6, 0.0), 9000 if SHORT else 30_000)
    assert begun["amid"] > 20 or PATIENCE_CYCLES == 1


@cocotb.test
async def reset_forgets_who_writes_and_who_waits(dut: Any) -> None:
    for _ in range(20 if SHORT else 200):
        await run(dut, (0.3, 0.3), 40)
