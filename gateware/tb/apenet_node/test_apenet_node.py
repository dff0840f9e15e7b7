# SPDX-License-Identifier: Apache-2.0
"""apenet_node: a torus of routers and links at full load. It never stands still, every packet is compared, and each dependency that a packet makes is one that
torus_dependencies.py knows. Latency of a hop. A link that goes down and comes back."""

import sys
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import cocotb
from common import torus
from common.bench import PARAMETERS, SHORT, Bench, random_numbers
from common.torus import LINK_PORTS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import torus_dependencies

X, Y = PARAMETERS.get("X", 4), PARAMETERS.get("Y", 1)
LINKS = PARAMETERS.get("LINKS", 3)
DELAY = PARAMETERS.get("DELAY_CYCLES", 3)
PERIOD = PARAMETERS.get("CREDIT_PERIOD_WORDS", 16)
SHAPE = (X, Y, 1)
NODES = X * Y
STREAMS = 2 * (LINK_PORTS + 1)
HOP_CYCLES_MAX = 40
STANDSTILL_CYCLES = 4 * (X // 2 + Y // 2) * 260  # 4 x diameter x length of a packet


def place_of(node: int) -> torus.Place:
    return node % X, node // X, 0


class TorusBench(Bench):
    def __init__(self, dut: Any, seed: int) -> None:
        super().__init__(dut)
        dut.seed.value, dut.up_0.value = seed & 0xFF, LINKS
        dut.sends.value = dut.pauses.value = dut.one.value = dut.one_to.value = dut.one_words.value = 0

    def each(self, name: str) -> list[int]:
        """Of each node."""
        word = int(getattr(self.dut, name).value)
        return [word >> 32 * node & 0xFFFFFFFF for node in range(NODES)]

    def all(self, name: str) -> int:
        return sum(self.each(name))

    def ended(self) -> int:
        return sum(self.all(name) for name in ("received", "flagged", "wrong", "dropped", "down"))

    async def moves_for(self, cycles: int) -> None:
        """So many cycles, in none of which all stands still."""
        end = self.cycle + cycles
        while self.cycle < end:
            before = self.each("routed")
            await self.wait(min(STANDSTILL_CYCLES, cycles))
            still = [node for node, (a, b) in enumerate(zip(before, self.each("routed"), strict=True)) if a == b]
            assert not still, f"cycle {self.cycle}: nodes {still} stand still"

    async def empty(self) -> None:
        """No one sends any more: all that is in flight comes."""
        before = -1
        while before != (before := self.ended()):
            await self.wait(STANDSTILL_CYCLES)

    def check_books(self) -> None:
        """Of each node in = out + drops; of the torus sent = received + named losses."""
        came = [a + b for a, b in zip(self.each("sent"), self.each("link_came"), strict=True)]
        out = [sum(values) for values in zip(*map(self.each, ("received", "flagged", "wrong", "link_sent", "down")), strict=True)]
        assert came == [a + b for a, b in zip(self.each("routed"), self.each("dropped"), strict=True)]
        assert self.each("routed") == out
        assert self.all("wrong") == 0, self.each("wrong")


async def started(dut: Any) -> TorusBench:
    bench = TorusBench(dut, random_numbers().getrandbits(8))
    await bench.reset()
    await bench.wait(4 * DELAY + 40)
    return bench


def edges_taken(bench: TorusBench) -> torus_dependencies.Graph:
    """From the ways through each router: a packet that came by a link held the neighbour's channel while it waited for this one."""
    word, graph = int(bench.dut.ways.value), torus_dependencies.Graph()
    for node, stream, out in product(range(NODES), range(STREAMS), range(STREAMS)):
        if word >> STREAMS * (STREAMS * node + stream) + out & 1 and stream // 2 < LINK_PORTS and out // 2 < LINK_PORTS:
            here = torus.Node(place_of(node), SHAPE, LINKS, 1)
            came = stream // 2
            sender = came ^ 1 if LINKS >> (came ^ 1) & 1 else came  # the neighbour's port: a pair may have one cable
            held = (here.neighbour(came), sender // 2, -1 if sender % 2 else 1, stream % 2)
            wanted = (here.at, out // 4, -1 if out // 2 % 2 else 1, out % 2)
            graph.setdefault(held, set()).add(wanted)
    return graph


@cocotb.test
async def full_load_never_stands_still(dut: Any) -> None:
    """Uniform traffic from all nodes, packets of up to 255 words, memories of one; then with pauses of receivers and wires. Nothing is lost."""
    bench = await started(dut)
    cycles = 6000 if SHORT else 20_000
    for pausing, name in enumerate(("", " with pauses")):
        dut.pauses.value, dut.sends.value = pausing, 1
        before = bench.all("received")
        await bench.moves_for(cycles)
        accepted = (bench.all("received") - before) / NODES / cycles
        print(f"figure: torus {X}x{Y}: {1000 * accepted:.1f} packets a node in 1000 cycles{name}", flush=True)
    dut.sends.value = 0
    await bench.empty()
    bench.check_books()
    assert bench.all("received") == bench.all("sent") > 100
    assert bench.all("skipped") == bench.all("flagged") == bench.all("link_bad") == bench.all("dropped") == bench.all("down") == 0
    received = bench.each("received")
    assert min(received) > 0.7 * max(received), received
    taken = edges_taken(bench)
    known = torus_dependencies.dependencies(SHAPE)
    for held, wanted in taken.items():
        assert wanted <= known.get(held, set()), f"{held} waited for {wanted - known.get(held, set())}"
    possible = torus_dependencies.dependencies(SHAPE, both=False)
    assert taken == {held: wanted for held, wanted in possible.items() if wanted}, "not every dependency was taken"
    print(f"figure: torus {X}x{Y}: {sum(map(len, taken.values()))} of as many dependencies taken", flush=True)


@cocotb.test
async def a_hop_takes_as_long_each_time(dut: Any) -> None:
    """Through idle nodes: what a hop more costs, without the wire. A CREDIT that is just on its way costs a cycle more."""
    rng = random_numbers()
    bench = await started(dut)
    seen: dict[int, Counter[int]] = {}
    for source, to in product(range(NODES), range(NODES)):
        hops = len(torus.walk(place_of(source), place_of(to), SHAPE))
        for _ in range(1 if SHORT else 4):
            before = bench.each("received")[to]
            dut.one.value, dut.one_to.value, dut.one_words.value = 1 << source, to, rng.choice([0, 1, 5, 20])
            await bench.wait(1)
            dut.one.value = 0
            await bench.wait(HOP_CYCLES_MAX * (hops + 1) + rng.randint(0, PERIOD))
            assert bench.each("received")[to] == before + 1
            seen.setdefault(hops, Counter())[bench.each("latency_cycles")[to]] += 1
    least = [min(seen[hops]) for hops in sorted(seen)]
    for hops, latencies in seen.items():
        assert max(latencies) <= least[hops] + hops, f"{hops} hops: {latencies}"
    costs = {b - a - DELAY for a, b in pairwise(least)}
    assert len(costs) == 1, f"latency of 0 hops and on: {least}"
    cost = costs.pop()
    assert cost + 1 <= HOP_CYCLES_MAX
    late = sum(count for hops, latencies in seen.items() for cycles, count in latencies.items() if cycles > least[hops])
    print(f"figure: torus {X}x{Y}: a hop takes {cost} cycles beside the wire, with a CREDIT one more ({late} packets)", flush=True)
    bench.check_books()


@cocotb.test
async def a_link_goes_down_under_load(dut: Any) -> None:
    """Packets for it are dropped by name, those in mid-flight come flagged or not at all, all others go on; when it is up again nothing is lost any more."""
    rng = random_numbers()
    bench = await started(dut)
    dut.sends.value = 1
    for _ in range(2 if SHORT else 6):
        await bench.moves_for(1000)
        gone = rng.choice([port for port in range(LINK_PORTS) if LINKS >> port & 1])
        dut.up_0.value = LINKS & ~(1 << gone)
        down = bench.all("down")
        await bench.moves_for(STANDSTILL_CYCLES)
        assert bench.all("down") > down
        dut.up_0.value = LINKS
        await bench.moves_for(1000)
    dut.sends.value = 0
    await bench.empty()
    bench.check_books()
    # What was in flight when the link went down is in nobody's counts but its sender's.
    in_wire = bench.all("link_sent") - bench.all("link_came")
    assert bench.all("sent") == bench.all("received") + bench.all("flagged") + bench.all("down") + in_wire
    assert in_wire < 2 * 6 * (DELAY + 300)
    lost, settled = bench.all("skipped"), bench.all("received")
    dut.sends.value = 1
    await bench.moves_for(2000)
    dut.sends.value = 0
    await bench.empty()
    bench.check_books()
    assert bench.all("received") > settled
    print(f"figure: torus {X}x{Y}: {lost} packets known as lost with a link", flush=True)
