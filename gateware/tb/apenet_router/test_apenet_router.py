# SPDX-License-Identifier: Apache-2.0
"""apenet_router: a node with scripted neighbours. Every way through it against the reference, with any headers; all outputs full at once; whose turn it is; no
packet where there is no room for all of it; latency."""

import sys
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge
from common import torus
from common.bench import SHORT, pauses, random_numbers
from common.torus import LINK_PORTS, Place
from router_bench import ENDS, INPUTS, LINKS, LOCALS, OUTPUTS, PORTS, STREAMS, RouterBench, started

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import torus_dependencies

LATENCY_CYCLES = 7
DROPS = [end.removeprefix("drop_") for end in ENDS[1:]]


def any_place(rng: Random, shape: Place) -> Place:
    return rng.randrange(shape[0]), rng.randrange(shape[1]), rng.randrange(shape[2])


def any_shape(rng: Random) -> Place:
    """Of any size, rings of one to four nodes most of the time."""
    most = (64, 32, 32)
    sizes = [rng.choice([1, 2, 3, 4, rng.randint(1, k)]) for k in most]
    return sizes[0], sizes[1], sizes[2]


def any_target(bench: RouterBench) -> Place:
    """A node of the torus; or one that differs in few dimensions, so that all ways are taken; or anything."""
    rng, node = bench.rng, bench.node
    kind = rng.random()
    if kind < 0.06:
        return rng.randrange(64), rng.randrange(32), rng.randrange(32)
    other = any_place(rng, node.shape)
    kept = [rng.random() < 0.5 for _ in range(3)]
    place = [mine if keeps else its for mine, its, keeps in zip(node.at, other, kept, strict=True)]
    return place[0], place[1], place[2]


def send_any(bench: RouterBench, stream: int, words_max: int) -> None:
    rng = bench.rng
    port = rng.randrange(LOCALS) if rng.random() < 0.95 else rng.randrange(16)
    longest = sum(k // 2 for k in bench.node.shape)
    hops = rng.choice([0, rng.randint(0, max(longest - 1, 0)), rng.choice([longest, 1023])] if rng.random() < 0.2 else [0])
    words = rng.choice([0, 1, rng.randint(0, 9), rng.randint(0, words_max)])
    size = rng.choice([rng.randint(4097, 16383)] if rng.random() < 0.03 else [16 * words - rng.randint(0, 15) if words else 0])
    bench.send(stream, any_target(bench), port, words, hops, bytes=size)


@cocotb.test
async def the_reference_is_the_script(dut: Any) -> None:
    """Hop by hop it takes the routes that torus_dependencies.py has from end to end."""
    await started(dut, random_numbers())
    for shape in ((1, 1, 1), (2, 1, 1), (3, 4, 1), (5, 3, 2), (4, 4, 2), (8, 2, 1)):
        nodes = list(product(*map(range, shape)))
        routes = list(torus_dependencies.routes(shape, both=False))
        assert [torus.walk(a, b, shape) for a, b in product(nodes, nodes)] == routes


@cocotb.test
async def every_way_with_any_headers(dut: Any) -> None:
    """From all ports at once, with pauses and little room: to the port, the channel and with the hops that the reference says, or dropped under its name."""
    rng = random_numbers()
    bench = await started(dut, rng)
    seen = Counter[tuple[int, int]]()
    for round_ in range(6 if SHORT else 24):
        share = rng.choice([0.0, 0.3, 0.6])
        bench.in_pause = [pauses(rng, rng.choice([0.0, share])) for _ in range(INPUTS)]
        bench.out_pause = [pauses(rng, rng.choice([0.0, share])) for _ in range(PORTS)]
        for room in bench.rooms.values():
            room.limit = None if round_ % 3 == 0 else [room.sent[0] + rng.choice([0, 300]), room.sent[1] + rng.choice([0, 2, 200])]
        bench.room_steps = [(80, 80), (20, 80), (300, 3)][round_ % 3]  # enough, or too little of data, or of headers
        shape = any_shape(rng)
        bench.be(any_place(rng, shape), shape)
        for stream in STREAMS:
            for _ in range(30):
                send_any(bench, stream, rng.choice([20, 256]) if rng.random() < 0.2 else 12)
        for _ in range(100_000):
            if bench.done():
                break
            bench.give_room(rng)
            await bench.wait(1)
        await bench.until_done(1)
        bench.check_books()
        for port in OUTPUTS:
            seen.update((came.sent.stream // 2, port) for came in bench.came[port])
            bench.came[port].clear()
    ways = {(i, o) for i in OUTPUTS for o in OUTPUTS if i >= LINK_PORTS or o >= LINK_PORTS or i // 2 < o // 2 or i == o ^ 1}
    assert seen.keys() <= ways
    assert SHORT or seen.keys() == ways, f"not taken: {ways - seen.keys()}"


def target_by(bench: RouterBench, port: int) -> tuple[Place, int]:
    """Where a packet that leaves by this port goes, the next node but none beyond, and to which local port there."""
    if port >= LINK_PORTS:
        return bench.node.at, port - LINK_PORTS
    return bench.node.neighbour(port), bench.rng.randrange(LOCALS)


def streams_to(port: int) -> list[int]:
    """Those that may leave by this port."""
    if port >= LINK_PORTS:
        return STREAMS
    return [stream for stream in STREAMS if stream // 2 >= LINK_PORTS or stream // 4 < port // 2 or stream // 2 == port ^ 1]


def divided(rng: Random) -> dict[int, list[int]]:
    """To each output some streams of its own, all of them given away; an output for which none is left has none."""
    free, given = set(STREAMS), {port: [] for port in OUTPUTS}
    for port in OUTPUTS:  # those of the links first: fewer may leave by them
        fitting = [stream for stream in streams_to(port) if stream in free]
        straight = [stream for stream in fitting if stream // 2 == port ^ 1]
        for stream in straight or fitting[:1]:
            free.discard(stream)
            given[port].append(stream)
    for stream in sorted(free):
        given[rng.choice([port for port in OUTPUTS if stream in streams_to(port)])].append(stream)
    return given


@cocotb.test
async def all_outputs_full_at_once(dut: Any) -> None:
    """A word a cycle at each, from one input or from several, whatever the lengths: no cycle between two packets."""
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 1, 1), (4, 4, 4))
    for round_ in range(3 if SHORT else 10):
        given = divided(rng)
        longest = [0, 1, 6, 40][round_ % 4]
        need = 600
        for port in OUTPUTS:
            bench.came[port].clear()
            for stream in given[port]:
                words = 0
                while words < need:
                    size = rng.randint(0, longest)
                    bench.send(stream, *target_by(bench, port), size)
                    words += size + 2
        await bench.until_done()
        full = 0
        for port in OUTPUTS:
            packets = bench.came[port]
            assert bool(packets) == bool(given[port])
            if packets:
                words = sum(len(came.sent.words) for came in packets)
                cycles = packets[-1].last_cycle - packets[0].first_cycle + 1
                # Several inputs come to an end one after the other, but never all: the last one flows on.
                assert cycles == words, f"output {port} from {given[port]}: {words} words in {cycles} cycles"
                full += 1
        assert full == len(OUTPUTS)
    print(f"figure: {full} outputs at a word a cycle at once", flush=True)
    bench.check_books()


def most_before(stream: int, streams: list[int]) -> int:
    """Packets of others of its channel that may be served before one that asks."""
    links = sum(other // 2 < LINK_PORTS for other in streams)
    local = len(streams) - links
    own, others = (links, local) if stream // 2 < LINK_PORTS else (local, links)
    return own - 1 + own * bool(others)


@cocotb.test
async def each_has_its_turn(dut: Any) -> None:
    """At an output that all want: between two packets of a stream that has more at most as many others as apenet_turn says, and of both kinds their share."""
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 1, 1), (4, 4, 4))
    for port in OUTPUTS:
        bench.came[port].clear()
        streams = streams_to(port)
        packets = 12
        for stream in streams:
            for _ in range(packets):
                bench.send(stream, *target_by(bench, port), rng.randint(0, 6))
        await bench.until_done()
        by_vc = {vc: [came.sent for came in bench.came[port] if came.sent.hop.vc == vc] for vc in (0, 1)}
        vcs = [came.sent.hop.vc for came in bench.came[port]]
        both = min(map(vcs.count, (0, 1)))
        if both:  # as long as both are asked for, one after the other
            most = vcs[: 2 * both - 2]
            assert all(a != b for a, b in pairwise(most)), f"output {port}: {vcs}"
        for order in by_vc.values():
            asking = sorted({sent.stream for sent in order})
            for stream in asking:
                places = [place for place, sent in enumerate(order) if sent.stream == stream]
                most = most_before(stream, asking)
                between = [b - a - 1 for a, b in pairwise([-1, *places])]
                assert max(between) <= most, f"output {port}, stream {stream}: {between}, at most {most}"
            kinds = [sent.stream // 2 < LINK_PORTS for sent in order]
            links = sum(stream // 2 < LINK_PORTS for stream in asking)
            if 0 < links < len(asking):
                early = kinds[: 2 * packets]
                share = sum(early) / len(early)
                assert abs(share - 1 / 2) < 0.1, f"output {port}: {share} of links"
    bench.check_books()


@cocotb.test
async def who_enters_a_ring_gives_way(dut: Any) -> None:
    """Who goes d > 2 links there: to d - 1 packets that go straight on, of either channel. Others come in turn."""
    if LINKS & 0b11 != 0b11:
        return
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 0, 0), (16, 1, 1))
    local = 2 * LINK_PORTS
    for distance, channels in product((1, 2, 3, 4, 7), ([0], [1], [0, 1])):
        bench.came[0].clear()
        for _ in range(60):
            for vc in channels:
                bench.send(2 * 1 + vc, (3, 0, 0), 0, rng.randint(0, 6))  # from x - 1
        for _ in range(5):
            bench.send(local, (1 + distance, 0, 0), 0, rng.randint(0, 6))
        await bench.until_done()
        order = [came.sent.stream for came in bench.came[0]]
        places = [place for place, stream in enumerate(order) if stream == local]
        between = [b - a - 1 for a, b in pairwise(places)]
        given_way = distance - 1 if distance > 2 else 1
        most = given_way if len(channels) == 1 else max(given_way + 1, 3)  # the channels' turns between
        assert all(given_way <= way <= most for way in between), f"{distance} links, {channels}: {between}"
    bench.check_books()


@cocotb.test
async def who_comes_late_has_its_turn(dut: Any) -> None:
    """At an output that others keep busy, to the packet."""
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 1, 1), (4, 4, 4))
    for _ in range(8 if SHORT else 40):
        port = rng.choice(OUTPUTS)
        to = target_by(bench, port)
        streams = [stream for stream in streams_to(port) if bench.node.hop(*to, stream // 2, stream % 2).vc == 0]
        if len(streams) < 2:
            continue
        bench.came[port].clear()
        late = rng.choice(streams)
        for stream in streams:
            if stream != late:
                for _ in range(10 + 2 * len(streams)):
                    bench.send(stream, *target_by(bench, port), rng.randint(0, 3))
        await bench.wait(rng.randint(20, 40))
        sent = bench.send(late, *target_by(bench, port), 2)
        await bench.until_done()
        # It asks when it has come so far; one that was granted then, or in that cycle, goes before it.
        asked = sent.taken_cycle + LATENCY_CYCLES - 1
        before = [came for came in bench.came[port] if came.first_cycle > asked]
        place = [came.sent for came in before].index(sent)
        assert place <= most_before(late, streams) + 1, f"output {port}, {late} of {streams}: {place}"


@cocotb.test
async def a_long_one_is_not_passed_by_short_ones(dut: Any) -> None:
    """Room comes a little at a time: whoever is next waits until it is enough, or it would wait for ever. The other virtual channel goes on meanwhile."""
    if LINKS & 0b11 != 0b11:
        return
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((0, 0, 0), (8, 1, 1))
    to, short, long, other = (
        (2, 0, 0),
        12,
        13,
        3,
    )  # both streams of a local port, on channel 0; and what came up on 1 and stays there
    room = bench.rooms[0, 0]
    room.limit = [8, 250]
    for _ in range(40):
        bench.send(short, to, 0, 4)
        bench.send(other, to, 0, 1)
    last = bench.send(long, to, 0, 200)
    while last in bench.in_flight.values():
        assert room.limit[0] < 1000, "it waits for ever"
        await bench.wait(10)
        room.limit = [room.limit[0] + 2, room.limit[1]]
    place = [came.sent for came in bench.came[0] if came.sent.hop.vc == 0].index(last)
    assert place <= 3, f"{place} short ones passed it"
    assert not bench.queues[other], "one channel was held up by the other"
    room.limit = None
    await bench.until_done()
    bench.check_books()


@cocotb.test
async def room_is_used_to_the_last_word(dut: Any) -> None:
    """A packet goes where there is just the room for it."""
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 1, 1), (4, 4, 4))
    for port, words in product(OUTPUTS, (0, 1, 2, 255, 256)):
        sent = bench.send(rng.choice(streams_to(port)), *target_by(bench, port), words)
        room = bench.rooms[port, sent.hop.vc]
        room.limit = [room.sent[0] + words, room.sent[1] + 2]
        await bench.until_done(400)
    bench.check_books()


@cocotb.test
async def a_channel_without_room_holds_up_no_other(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 1, 1), (4, 4, 4))
    for port, full in product([port for port in OUTPUTS if port < LINK_PORTS], (0, 1)):
        bench.rooms[port, full].limit = [bench.rooms[port, full].sent[0], bench.rooms[port, full].sent[1] + 8]
        waiting = [stream for stream in streams_to(port) for _ in range(3)]
        sent = [bench.send(stream, *target_by(bench, port), rng.randint(1, 5)) for stream in waiting]
        await bench.wait(60 + 8 * len(waiting))
        left = set(map(id, bench.in_flight.values()))
        for packet in sent:
            assert (id(packet) in left) == (packet.hop.vc == full), f"output {port}, {packet.hop}"
        bench.rooms[port, full].limit = None
        await bench.until_done()
    bench.check_books()


@cocotb.test
async def an_idle_router_is_as_quick_each_time(dut: Any) -> None:
    """From the cycle in which a header is taken to that in which it is offered: the same from every port to every port."""
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 1, 1), (4, 4, 4))
    seen = Counter[int]()
    for port in OUTPUTS:
        for stream in streams_to(port):
            bench.send(stream, *target_by(bench, port), rng.choice([0, 1, 20]))
            await bench.until_done()
            await bench.wait(rng.randint(0, 5))
            came = bench.came[port][-1]
            seen[came.first_cycle - came.sent.taken_cycle] += 1
            assert came.last_cycle - came.first_cycle == len(came.sent.words) - 1
    assert seen.keys() == {LATENCY_CYCLES}, seen
    print(f"figure: {LATENCY_CYCLES} cycles through an idle router, spread 0", flush=True)


@cocotb.test
async def each_drop_has_its_name(dut: Any) -> None:
    """And the next packet of the stream is good."""
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 0, 2), (3, 2, 5))
    far = 1 + 1 + 2
    for stream in STREAMS:
        came, wanted = stream // 2, Counter[str]()
        local = came >= LINK_PORTS
        here = bench.node.at
        cases = [
            ("length", here, 0, {"bytes": 4097}),
            ("length", here, 0, {"bytes": 16383}),
            ("outside", (3, 0, 2), 0, {}),
            ("outside", (63, 0, 2), 0, {}),
            ("outside", (1, 2, 2), 0, {}),
            ("outside", (1, 0, 5), 0, {}),
            ("port", here, LOCALS, {}),
            ("port", here, 15, {}),
        ]
        if not local and came // 2 > 0:
            cases.append(("turn", (2, 0, 2), 0, {}))
        if not local and LINKS >> (came ^ 1) & 1:
            step = 1 if came % 2 else -1
            on = tuple((p + step) % k if d == came // 2 else p for d, (p, k) in enumerate(zip(here, bench.node.shape, strict=True)))
            cases += [("hops", on, 0, {"hops": far}), ("hops", on, 0, {"hops": 1023})]
        for name, to, port, more in cases:
            sent = bench.send(stream, to, port, rng.randint(0, 3), **more)
            assert sent.hop.drop == name, (stream, name, sent.hop)
            wanted[name] += 1
            bench.send(stream, here, 0, 2)
        await bench.until_done()
        counts = bench.counted.counts()
        assert {name: counts[f"drop_{name}"][stream] for name in DROPS} == {name: wanted[name] for name in DROPS}
    bench.check_books()


@cocotb.test
async def a_pair_of_nodes_with_one_cable(dut: Any) -> None:
    """In a ring of two, where a node has one of the two links, it is the one that is taken."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for d, at in product(range(3), (0, 1)):
        there = [port for port in (2 * d, 2 * d + 1) if LINKS >> port & 1]
        shape, place, to = [1, 1, 1], [0, 0, 0], [0, 0, 0]
        shape[d], place[d], to[d] = 2, at, 1 - at
        bench.be((place[0], place[1], place[2]), (shape[0], shape[1], shape[2]))
        sent = bench.send(12, (to[0], to[1], to[2]), 0, 1)
        assert sent.hop.port in there if there else sent.hop.drop == "port"
        await bench.until_done()
    bench.check_books()


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.be((1, 1, 1), (4, 4, 4))
    for _ in range(3 if SHORT else 10):
        for room in bench.rooms.values():
            room.limit = None
        for stream in STREAMS:
            for _ in range(3):
                bench.send(stream, any_target(bench), 0, rng.randint(0, 20))
        await bench.wait(rng.randint(2, 40))
        bench.forget()
        dut.rst.value = 1
        await bench.wait(1)
        bench.forget()
        await FallingEdge(dut.clk)
        assert dut.m_axis_tvalid.value == 0
        await bench.wait(2)
        bench.forget()
        for room in bench.rooms.values():
            room.limit, room.sent = [1000, 200], [0, 0]
        dut.rst.value = 0
        await bench.wait(2)
        assert dut.m_axis_tvalid.value == 0
        for stream in STREAMS:
            bench.send(stream, any_target(bench), 0, rng.randint(0, 20))
        await bench.until_done(2000)
