# SPDX-License-Identifier: Apache-2.0
"""router: every pair of ports, order, no mixing, full rate on permutations, fair shares under contention, random pauses."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, never, pauses, random_numbers

PORTS = PARAMETERS.get("PORTS", 4)
DATA_BITS = PARAMETERS.get("DATA_BITS", 64)
WORD_BYTES = DATA_BITS // 8
ALL_BYTES = (1 << WORD_BYTES) - 1


@dataclass
class Sent:
    words: list[int]
    keep: int  # of the last word; the router does not look at it
    user: int  # of the last word


class RouterBench(Bench):
    """Both ends of all ports. seen[o]: (source, words, cycle of the last word)."""

    def __init__(self, dut: Any, rng: Random) -> None:
        super().__init__(dut)
        self.rng = rng
        self.queues: list[deque[tuple[int, Sent]]] = [deque() for _ in range(PORTS)]
        self.expected: dict[tuple[int, int], deque[Sent]] = {}
        self.seen: list[list[tuple[int, int, int]]] = [[] for _ in range(PORTS)]
        self.in_pause: list[Callable[[], bool]] = [never] * PORTS
        self.out_pause: list[Callable[[], bool]] = [never] * PORTS
        self.place, self.offered = [0] * PORTS, [False] * PORTS  # of the word that each input offers
        self.packets: list[list[int]] = [[] for _ in range(PORTS)]  # in flight at each output
        self.good, self.lost = [0] * PORTS, [0] * PORTS
        dut.s_axis_tvalid.value = dut.m_axis_tready.value = 0
        cocotb.start_soon(self._drive())
        cocotb.start_soon(self._sink())
        cocotb.start_soon(self._count())

    def send(self, source: int, destination: int, words: list[int], user: int = 0) -> None:
        packet = Sent(words, self.rng.getrandbits(WORD_BYTES), user)
        self.queues[source].append((destination, packet))
        if destination < PORTS:
            self.expected.setdefault((source, destination), deque()).append(packet)

    def done(self) -> bool:
        return not any(self.queues) and not any(self.expected.values())

    def forget(self) -> None:
        """What was sent and has not arrived, for a reset."""
        for port in range(PORTS):
            self.queues[port].clear()
            self.packets[port].clear()
            self.place[port], self.offered[port] = 0, False
        self.expected.clear()

    async def _drive(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        while True:
            data = keep = valid = last = user = destinations = 0
            for port in range(PORTS):
                queue = self.queues[port]
                self.offered[port] = bool(queue) and (self.offered[port] or not self.in_pause[port]())
                if self.offered[port]:
                    destination, packet = queue[0]
                    final = self.place[port] == len(packet.words) - 1
                    data |= packet.words[self.place[port]] << DATA_BITS * port
                    keep |= (packet.keep if final else ALL_BYTES) << WORD_BYTES * port
                    valid |= 1 << port
                    last |= int(final) << port
                    user |= int(final and packet.user) << port
                    destinations |= destination << 8 * port
            dut.s_axis_tdata.value, dut.s_axis_tkeep.value, dut.s_axis_tvalid.value = data, keep, valid
            dut.s_axis_tlast.value, dut.s_axis_tuser.value, dut.s_meta_destination.value = last, user, destinations
            await edge
            ready = int(dut.s_axis_tready.value) if dut.rst.value == 0 else 0
            for port in range(PORTS):
                if self.offered[port] and self.queues[port] and ready >> port & 1:
                    self.offered[port] = False
                    self.place[port] += 1
                    if self.place[port] == len(self.queues[port][0][1].words):
                        self.queues[port].popleft()
                        self.place[port] = 0

    async def _sink(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        sources = [0] * PORTS
        while True:
            ready = sum(int(not self.out_pause[port]()) << port for port in range(PORTS))
            dut.m_axis_tready.value = ready
            await edge
            taken = int(dut.m_axis_tvalid.value) & ready
            if not taken or dut.rst.value == 1:
                continue
            data, last, user = int(dut.m_axis_tdata.value), int(dut.m_axis_tlast.value), int(dut.m_axis_tuser.value)
            meta, keep = int(dut.m_meta_source.value), int(dut.m_axis_tkeep.value)
            for port in range(PORTS):
                if not taken >> port & 1:
                    continue
                source = meta >> 8 * port & 0xFF
                assert not self.packets[port] or source == sources[port], "packets are mixed"
                sources[port] = source
                self.packets[port].append(data >> DATA_BITS * port & (1 << DATA_BITS) - 1)
                kept = keep >> WORD_BYTES * port & ALL_BYTES
                if last >> port & 1:
                    self._check(port, source, Sent(self.packets[port], kept, user >> port & 1))
                    self.packets[port] = []
                else:
                    assert kept == ALL_BYTES, f"tkeep {kept:x} in mid-packet"

    def _check(self, port: int, source: int, packet: Sent) -> None:
        wanted = self.expected.get((source, port))
        assert wanted, f"output {port} got a packet of input {source} that was not sent"
        assert packet == wanted.popleft(), f"output {port}, input {source}: wrong packet or wrong order"
        self.seen[port].append((source, len(packet.words), self.cycle))

    async def _count(self) -> None:
        edge = RisingEdge(self.dut.clk)
        while True:
            await edge
            good, lost = int(self.dut.count_good.value), int(self.dut.drop_destination.value)
            for port in range(PORTS):
                self.good[port] += good >> port & 1
                self.lost[port] += lost >> port & 1


def random_words(rng: Random, count: int) -> list[int]:
    return [rng.getrandbits(DATA_BITS) for _ in range(count)]


async def started(dut: Any, rng: Random) -> RouterBench:
    bench = RouterBench(dut, rng)
    await bench.reset()
    return bench


@cocotb.test
async def every_pair_of_ports_with_pauses(dut: Any) -> None:
    """Nothing is lost, doubled, mixed or out of order; packets to nowhere are thrown away and counted by their input."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for share in (0.0, 0.3, 0.7):
        bench.in_pause = [pauses(rng, share) for _ in range(PORTS)]
        bench.out_pause = [pauses(rng, share) for _ in range(PORTS)]
        good, lost = bench.good[:], bench.lost[:]
        for _ in range(40 if SHORT else 300):
            for source in range(PORTS):
                nowhere = rng.random() < 0.1
                destination = rng.choice([PORTS, PORTS + 1, 255]) if nowhere else rng.randrange(PORTS)
                bench.send(source, destination, random_words(rng, rng.randint(1, 9)), user=int(rng.random() < 0.2))
                good[source] += not nowhere
                lost[source] += nowhere
        await bench.wait_until(bench.done, 200_000, "all packets through")
        await bench.wait(4)
        assert (bench.good, bench.lost) == (good, lost)


@cocotb.test
async def permutations_run_at_full_rate(dut: Any) -> None:
    """All ports at once, each to its own output: a word a cycle everywhere, also between packets."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for _ in range(5 if SHORT else 20):
        permutation = rng.sample(range(PORTS), k=PORTS)
        lengths = [rng.randint(1, 12) for _ in range(20)]
        await FallingEdge(dut.clk)  # between two edges: at the next one all inputs see that there is something to send
        for source, destination in enumerate(permutation):
            bench.seen[destination].clear()
            for length in lengths:
                bench.send(source, destination, random_words(rng, length))
        begun = bench.cycle + 1
        await bench.wait_until(bench.done, 10_000, "all packets through")
        # Offered from the next cycle on, a cycle in the register.
        for port in range(PORTS):
            assert bench.seen[port][-1][2] - begun == sum(lengths) + 1, "a pause at full rate"
        await bench.wait(3)


@cocotb.test
async def shares_are_fair(dut: Any) -> None:
    """All inputs want one output: they are served in turn, also by an output that pauses, and whoever joins later waits for at most one
    packet of each other."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for destination, share in product(range(PORTS), (0.0, 0.5)):
        bench.out_pause[destination] = pauses(rng, share)
        bench.seen[destination].clear()
        for _ in range(10):
            for source in range(PORTS):
                bench.send(source, destination, random_words(rng, 4))
        await bench.wait_until(bench.done, 10_000, "all packets through")
        order = [source for source, _, _ in bench.seen[destination]]
        assert all(sorted(order[at : at + PORTS]) == list(range(PORTS)) for at in range(0, len(order), PORTS)), order
        first, last = bench.seen[destination][0][2], bench.seen[destination][-1][2]
        assert share or last - first == 4 * (10 * PORTS - 1), "an output that is wanted was idle"
    bench.out_pause = [never] * PORTS
    for _ in range(5):
        destination = rng.randrange(PORTS)
        bench.seen[destination].clear()
        busy, late = rng.sample(range(PORTS), k=2)
        for _ in range(10):
            bench.send(busy, destination, random_words(rng, 5))
        await bench.wait(7)
        bench.send(late, destination, random_words(rng, 1))
        await bench.wait_until(bench.done, 1000, "all packets through")
        assert [source for source, _, _ in bench.seen[destination]].index(late) <= 3


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut, rng)
    for round_ in range(10):
        for source in range(PORTS):
            bench.send(source, rng.randrange(PORTS), random_words(rng, 20))
        await bench.wait(rng.randint(2, 12))
        bench.forget()
        dut.rst.value = 1
        await bench.wait(1 + round_ % 2)
        await FallingEdge(dut.clk)
        assert dut.m_axis_tvalid.value == 0
        bench.forget()
        dut.rst.value = 0
        await bench.wait(2)
        assert dut.m_axis_tvalid.value == 0
        for source in range(PORTS):
            bench.send(source, rng.randrange(PORTS), random_words(rng, 6))
        await bench.wait_until(bench.done, 200, "all packets through")
