# SPDX-License-Identifier: Apache-2.0
"""ape_counters by its registers: each pulse is in one counter, the one of its name, whatever comes beside it, and of the packets that a link lost each."""

from collections import Counter
from random import Random
from typing import Any

import cocotb
from common.bench import SHORT, Bench, random_numbers
from common.counts import ROWS
from common.registers import Registers

LINKS, PORTS = 6, 7
APE, LINK, ROUTER = (ROWS[row]["names"] for row in ("ape", "ape_link", "ape_router"))
LOST, MISSED = LINK.index("lost"), APE.index("missed")
LOST_BITS, LOST_WAIT_MAX = 10, 2**12 - 1
Place = tuple[str, int, int]  # row, which of it, counter


class CountersBench(Bench):
    """expected: by register; what waits is what links have lost that cannot be in a counter yet."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.registers = Registers(self)
        self.expected: Counter[Place] = Counter()
        self.clear()

    def clear(self) -> None:
        for name in ("ape_pulses", "missed", "link_pulses", "lost", "router_pulses"):
            getattr(self.dut, name).value = 0

    async def pulse(self, rng: Random, share: float, resting: set[tuple[int, int, int]]) -> set[tuple[int, int, int]]:
        """A cycle of them. resting: channels of ports that had one; those that have one now come back."""
        ape = [k for k in range(len(APE)) if k != MISSED and rng.random() < share]
        links = [(k, c) for k in range(LINKS) for c in range(len(LINK)) if c != LOST and rng.random() < share]
        came = {(p, vc, c) for p in range(PORTS) for vc in range(2) for c in range(len(ROUTER)) if rng.random() < share} - resting
        self.expected.update(("ape", 0, k) for k in ape)
        self.expected.update(("link", k, c) for k, c in links)
        self.expected.update(("router", p, c) for p, _, c in came)
        self.dut.ape_pulses.value = sum(1 << k for k in ape)
        self.dut.link_pulses.value = sum(1 << len(LINK) * k + c for k, c in links)
        self.dut.router_pulses.value = sum(1 << len(ROUTER) * (2 * p + vc) + c for p, vc, c in came)
        await self.wait(1)
        self.dut.lost.value = self.dut.missed.value = 0
        return came

    def miss(self, amount: int) -> None:
        self.dut.missed.value = amount
        self.expected["ape", 0, MISSED] += amount

    def lose(self, amounts: list[int]) -> None:
        self.dut.lost.value = sum(amount << LOST_BITS * k for k, amount in enumerate(amounts))
        self.expected.update({("link", k, LOST): amount for k, amount in enumerate(amounts)})

    async def check(self) -> None:
        places = [("ape", 0, k, 0x200 + 8 * k) for k in range(len(APE))]
        places += [("link", k, c, 0x400 + 0x80 * k + 8 * c) for k in range(LINKS) for c in range(len(LINK))]
        places += [("router", p, c, 0x800 + 0x40 * p + 8 * c) for p in range(PORTS) for c in range(len(ROUTER))]
        for row, which, counter, address in places:
            assert await self.registers.read(address) == self.expected[row, which, counter], (row, which, counter)


@cocotb.test
async def each_pulse_is_in_the_counter_of_its_name(dut: Any) -> None:
    rng = random_numbers()
    bench = CountersBench(dut)
    await bench.reset()
    await bench.check()
    for share in (0.02, 0.5, 1.0):
        resting: set[tuple[int, int, int]] = set()
        for cycle in range(150 if SHORT else 1500):
            if cycle % 30 == 0:
                bench.lose([rng.choice([0, 1, rng.randrange(60)]) for _ in range(LINKS)])
                bench.miss(rng.randrange(20))
            resting = await bench.pulse(rng, share, resting)
        bench.clear()
        await bench.wait(100)
        await bench.check()


@cocotb.test
async def of_what_a_link_lost_each_packet_counts(dut: Any) -> None:
    """Up to as many at once as START can tell, and more while they wait."""
    bench = CountersBench(dut)
    await bench.reset()
    for amounts in ([1023, 0, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6], [512, 1023, 0, 1, 1000, 7]):
        for _ in range(4):
            bench.lose(amounts)
            bench.miss(amounts[1])
            await bench.wait(1)
        dut.lost.value = dut.missed.value = 0
        await bench.wait(LOST_WAIT_MAX + 10)
        await bench.check()


@cocotb.test
async def as_many_messages_can_be_missed_as_their_numbers_tell(dut: Any) -> None:
    bench = CountersBench(dut)
    await bench.reset()
    bench.miss(0xFFFF)
    await bench.wait(1)
    dut.missed.value = 0
    await bench.wait(0xFFFF + 100)
    await bench.check()


@cocotb.test
async def what_was_forged_makes_no_more_than_can_wait(dut: Any) -> None:
    bench = CountersBench(dut)
    await bench.reset()
    dut.lost.value = 1023
    await bench.wait(6)
    dut.lost.value = 0
    await bench.wait(2 * LOST_WAIT_MAX)
    counted = await bench.registers.read(0x400 + 8 * LOST)
    assert LOST_WAIT_MAX < counted < LOST_WAIT_MAX + 6, "those that left meanwhile, and as many as wait"


@cocotb.test
async def a_write_does_nothing_and_reset_all(dut: Any) -> None:
    rng = random_numbers()
    bench = CountersBench(dut)
    await bench.reset()
    bench.lose([200] * LINKS)
    await bench.pulse(rng, 1.0, set())
    bench.clear()
    await bench.wait(300)
    for address in (0x200, 0x218, 0x400, 0x6B8, 0x800, 0x9A8):
        await bench.registers.write(address, rng.getrandbits(64))
    await bench.check()
    bench.lose([200] * LINKS)
    await bench.pulse(rng, 1.0, set())
    bench.clear()
    bench.expected.clear()
    await bench.reset()
    await bench.wait(300)
    await bench.check()
