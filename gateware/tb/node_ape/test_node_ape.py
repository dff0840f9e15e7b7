# SPDX-License-Identifier: Apache-2.0
"""Two nodes in a torus: what a detector sends to the Ethernet port of one comes to the memory, or a CLOP, of the other."""

from collections import Counter
from ipaddress import IPv4Address
from typing import Any

import cocotb
from common import apenet, rdma
from common.apenet import MAGIC, Packet
from common.bench import SHORT
from common.contract import Kind
from common.frames import FRAME_BYTES_MIN, mac_number, sent_frame, udp_frame, with_fcs
from common.host import BUS, PAYLOADS
from common.sending import random_destination
from common.wires import XgmiiWireSink
from pair_bench import (
    CHANGE_CYCLES,
    CHANGES,
    DETECTOR,
    DETECTOR_CLOP,
    DETECTOR_PORT,
    HOST_INTERRUPT,
    INTERRUPT,
    KEY,
    LINKS,
    NODE,
    NODE_CLOP,
    PROCESS,
    TORUS,
    WATCH,
    WINDOW,
    WINDOW_BYTES,
    Pair,
    along,
    balance,
    mate,
)


@cocotb.test
async def detector_data_comes_to_the_memory_of_another_node(dut: Any) -> None:
    """Each packet of it, from the buffer that it was received into: by PUT, or by SEND to a CLOP there; and back by GET."""
    pair = Pair(dut, share=0.1)
    await pair.begin()
    rng, (here, there) = pair.rng, pair.nodes
    payloads = [rng.randbytes(rng.choice([18, 100, 1168, 1472, rng.randint(1, 1472), 4000])) for _ in range(12 if SHORT else 30)]
    expected = bytearray(WINDOW_BYTES)
    there.host.memory[WINDOW:] = here.host.memory[WINDOW:] = expected
    sends, used, asked = [], 0, 0
    for payload in payloads:
        here.wire.send(with_fcs(udp_frame(payload, port=DETECTOR_PORT)))
    for k, payload in enumerate(payloads):
        await pair.until(lambda: len(here.host.found) > k)  # noqa: B023
        clop, source, at, data = here.host.found[k]
        assert (clop, source, data) == (DETECTOR_CLOP, DETECTOR, payload)
        if k % 3 == 2:
            await here.post(kind=rdma.SEND, local=at, bytes=len(data), process=PROCESS)
            sends.append((NODE_CLOP, NODE, data))
        else:
            offset = used + rng.randrange(40)
            used = offset + len(data)
            expected[offset:used] = data
            await here.post(kind=rdma.PUT, local=at, bytes=len(data), region=KEY, offset=offset, nonce=there.nonce, process=k)
            asked += 1
        await pair.until(lambda: len(here.host.sent) == here.rung)
    await pair.until(lambda: len(there.host.messages) == asked and len(there.host.found) == len(sends))
    assert here.host.sent == [(Kind.PACKET_SENT, tag) for tag in here.tags]
    assert there.host.received == sends
    assert [entry.kind for entry in there.host.messages] == [Kind.MESSAGE] * asked
    put = [len(payload) for k, payload in enumerate(payloads) if k % 3 != 2]
    assert [entry.bytes for entry in there.host.messages] == put
    assert there.host.memory[WINDOW:] == expected
    # And back, all of it in one message.
    landing = {"local": KEY << rdma.OFFSET_BITS, "local_nonce": here.nonce}
    await here.post(kind=rdma.GET, bytes=used, region=KEY, offset=0, nonce=there.nonce, **landing)
    await pair.until(lambda: len(here.host.messages) == 1)
    assert (here.host.messages[0].bytes, here.host.messages[0].tag) == (used, here.tags[-1])
    assert here.host.memory[WINDOW:] == expected
    await pair.books()


@cocotb.test
async def both_send_while_detectors_do(dut: Any) -> None:
    """The bus of each host is shared: packets of Ethernet, messages and their completions, each whole."""
    pair = Pair(dut, share=0.2)
    await pair.begin()
    rng = pair.rng
    wanted = [bytearray(WINDOW_BYTES) for _ in pair.nodes]
    frames: list[list[bytes]] = [[], []]
    puts = [0, 0]
    sends: list[list[bytes]] = [[], []]
    at = [0, 0]
    for node in pair.nodes:
        node.host.memory[WINDOW:] = bytes(WINDOW_BYTES)
        node.host.memory[PAYLOADS : PAYLOADS + 0x1000] = rng.randbytes(0x1000)  # no one else's
    source = [bytes(node.host.memory[PAYLOADS : PAYLOADS + 0x1000]) for node in pair.nodes]
    for _ in range(10 if SHORT else 24):
        for k, node in enumerate(pair.nodes):
            payload = rng.randbytes(rng.randint(1, 600))
            frames[k].append(payload)
            node.wire.send(with_fcs(udp_frame(payload, port=DETECTOR_PORT)))
            begin = rng.randrange(0x800)
            size = rng.randint(1, 0x700)
            data = source[k][begin : begin + size]
            if rng.random() < 0.4:
                await node.post(kind=rdma.SEND, local=PAYLOADS + begin, bytes=size, process=PROCESS)
                sends[1 - k].append(data)
            else:
                wanted[1 - k][at[k] : at[k] + size] = data
                fields = {"region": KEY, "offset": at[k], "nonce": pair.nodes[1 - k].nonce}
                await node.post(kind=rdma.PUT, local=PAYLOADS + begin, bytes=size, **fields)
                at[k] += size
                puts[1 - k] += 1
        await pair.wait(rng.randrange(200))
        for node in pair.nodes:
            await node.release()

    def done() -> bool:
        return all(
            len(node.host.messages) == puts[k] and len(node.host.found) == len(frames[k]) + len(sends[k])
            for k, node in enumerate(pair.nodes)
        )

    await pair.until(done)
    for k, node in enumerate(pair.nodes):
        assert node.host.memory[WINDOW:] == wanted[k]
        assert [data for clop, _, data in node.host.received if clop == DETECTOR_CLOP] == frames[k]
        assert [data for clop, _, data in node.host.received if clop == NODE_CLOP] == sends[k]
        assert node.host.sent == [(Kind.PACKET_SENT, tag) for tag in node.tags]
    await pair.books()


@cocotb.test
async def every_link_carries_both_directions(dut: Any) -> None:
    """The other node is the next one by each link in turn: PUT, SEND and GET of both at once, all of it by that cable."""
    pair = Pair(dut, share=0.1)
    rng = pair.rng
    for link in rng.sample(range(LINKS), LINKS):
        dimension, alone = link // 2, mate(link) == link
        nodes, place = (2, 1) if alone else (3, 1 + link % 2)
        torus, at = along(dimension, nodes, 1), along(dimension, place, 0)
        await pair.begin(torus, of_b=torus, at=at, cables=1 << link)
        kept, half = [], WINDOW_BYTES // 2
        for node in pair.nodes:
            node.host.memory[WINDOW:] = rng.randbytes(WINDOW_BYTES)
            kept.append(bytes(node.host.memory[WINDOW:]))
        wanted = [bytearray(data) for data in kept]
        packets: list[list[bytes]] = [[], []]
        for _ in range(2 if SHORT else 5):  # to the lower half from the upper one
            for k, node in enumerate(pair.nodes):
                other = pair.nodes[1 - k]
                remote = {"region": KEY, "nonce": other.nonce}
                size, begin, offset = (
                    rng.randint(1, 5000),
                    half + rng.randrange(1 << 14),
                    len(packets[k]) * 20_000 + rng.randrange(5000),
                )
                data = kept[k][begin : begin + size]
                wanted[1 - k][offset : offset + size] = data
                await node.post(kind=rdma.PUT, local=WINDOW + begin, bytes=size, offset=offset, **remote)
                await node.post(kind=rdma.SEND, local=WINDOW + begin, bytes=size % 4000 + 1, process=PROCESS)
                packets[1 - k].append(kept[k][begin : begin + size % 4000 + 1])
                landing = offset + 10_000
                wanted[k][landing : landing + size] = kept[1 - k][begin : begin + size]
                where = {"local": KEY << rdma.OFFSET_BITS | landing, "local_nonce": node.nonce}
                await node.post(kind=rdma.GET, bytes=size, offset=begin, **remote, **where)

        def done(many: int = 2 * len(packets[0])) -> bool:
            return all(len(node.host.messages) == many and len(node.host.found) == many // 2 for node in pair.nodes)

        await pair.until(done)
        for k, node in enumerate(pair.nodes):
            assert node.host.memory[WINDOW:] == wanted[k]
            assert [data for _, _, data in node.host.received] == packets[k]
        await pair.books((link, mate(link)))


@cocotb.test
async def the_host_knows_of_links_and_neighbours(dut: Any) -> None:
    pair = Pair(dut)
    await pair.begin()
    here, there = pair.nodes
    read, write = here.host.registers.read, here.host.registers.write
    assert await read(TORUS) & 0x3F == (1 << LINKS) - 1
    assert await read(TORUS + 0x010) == 3, "up, and not silent"
    for node in pair.nodes:
        await node.host.registers.write(TORUS + 0x018, 3000 << 32)
    await pair.wait(2000)
    await write(TORUS + 0x018, 3000 << 32 | 0x15)  # it says something of itself
    await pair.wait(200)
    states = await there.host.registers.read(TORUS + 0x028)
    assert [states >> 10 * link & 0x3FF for link in range(2)] == [0x15 << 3 | 1] * 2  # and its link is up
    assert await read(TORUS + 0x020) >> 32 == 0x15 << 1
    await pair.wait(1500)  # the other one is silent since its only beat
    states = await read(TORUS + 0x028)
    assert [states >> 10 * link & 0x3FF for link in range(2)] == [0b101] * 2
    assert await read(TORUS + 0x020) & 0xFFFFFFFF > 2
    dut.cable_up.value = 1
    await pair.wait(4)
    assert [await node.host.registers.read(TORUS + 0x010) & 0x3F for node in pair.nodes] == [1, 2]


@cocotb.test
async def a_send_goes_where_its_entry_says(dut: Any) -> None:
    """By the Ethernet port to a destination, or nowhere, where there is no such port."""
    pair = Pair(dut)
    wire = XgmiiWireSink(pair.nodes[1])
    await pair.begin()
    rng, (here, there) = pair.rng, pair.nodes
    write, to = there.host.registers.write, random_destination(rng)
    await write(0x050, int(IPv4Address(to["address"])) | to["port"] << 32 | to["source_port"] << 48)
    await write(0x058, mac_number(to["mac"]) | 5 << 48 | 1 << 56)
    routes = [8, 1, 7, 9, 15]
    for entry, route in enumerate(routes):
        await write(TORUS + 0x060, 0xFFFF << 16)  # from node 0
        await write(TORUS + 0x068, entry | 1 << 8 | (100 + route) << 16 | 5 << 32 | route << 48)
    await write(TORUS + 0x060, 1 | 0xFFFF << 16)  # of no entry, as long as that is not written
    payloads = []
    for route in rng.sample(routes * 2, 2 * len(routes)):
        payload = rng.randbytes(rng.randint(1, 1400))
        here.host.memory[PAYLOADS : PAYLOADS + len(payload)] = payload
        await here.post(kind=rdma.SEND, local=PAYLOADS, bytes=len(payload), process=100 + route)
        await pair.until(lambda: len(here.host.sent) == here.rung)
        if route == 8:
            payloads.append(payload)
    seen = await wire.frames(len(payloads))
    assert [frame.frame for frame in seen] == [
        with_fcs(sent_frame(payload, to).ljust(FRAME_BYTES_MIN, b"\0")) for payload in payloads
    ]
    await pair.wait(500)
    ape = await there.counts("ape", 0x200)
    assert {name: ape[name] for name in ("send", "forwarded", "no_route")} == {"send": 10, "forwarded": 2, "no_route": 8}
    assert there.host.found == []


@cocotb.test
async def memory_is_what_a_key_and_its_pages_are(dut: Any) -> None:
    """Beyond a region's pages nothing is written, whatever the key says; and a key stands until the next is written whole."""
    pair = Pair(dut)
    await pair.begin()
    here, there = pair.nodes
    geometry = await here.host.registers.read(TORUS)
    assert [geometry >> at & 0xFF for at in (0, 8, 16, 24)] == [(1 << LINKS) - 1, 16, 4, 16], "links, keys, GETs, match entries"
    assert [geometry >> at & 0xF for at in (32, 36, 40)] == [3, 2, 2], "bits of x, y, z"
    write, pages = there.host.registers.write, 2
    for entry in range(1, 4):  # the last of no region, another's page
        await write(0x068, BUS + WINDOW + 4096 * (entry - 1) | 7)
        await write(0x070, entry)
    await write(0x060, 1 | pages << 16 | 12 << 40 | 1 << 45 | 1 << 48)
    await write(TORUS + 0x040, 1 << rdma.OFFSET_BITS)
    await write(TORUS + 0x048, 4096 * (pages + 1))
    await write(TORUS + 0x050, there.nonce | 6 << 32 | 7 << 40)
    await write(TORUS + 0x040, PAYLOADS)  # of no key, as long as that is not written
    await write(TORUS + 0x048, 0)
    wanted = bytearray(there.host.memory)
    for offset, lands in ((0, True), (4096 * pages - 16, True), (4096 * pages, False), (4096 * (pages + 1), False)):
        data = pair.rng.randbytes(16)
        here.host.memory[PAYLOADS : PAYLOADS + 16] = data
        if lands:
            wanted[WINDOW + offset : WINDOW + offset + 16] = data
        await here.post(kind=rdma.PUT, local=PAYLOADS, bytes=16, region=6, offset=offset, nonce=there.nonce)
        await pair.until(lambda: len(here.host.sent) == here.rung)
    await pair.wait(300)
    ape = await there.counts("ape", 0x200)
    assert {name: ape[name] for name in ("landed", "page", "bounds")} == {"landed": 2, "page": 1, "bounds": 1}
    assert there.host.memory[WINDOW:] == wanted[WINDOW:]


class Forger:
    """In place of what is at one of the links of node a: words of a link, good ones and others, and what is to become of them."""

    def __init__(self, pair: Pair, link: int) -> None:
        self.pair, self.link = pair, link
        self.data, self.headers = [0, 0], [0, 0]  # that a sender would have sent, by virtual channel
        self.expected: Counter[str] = Counter()  # of ape_link
        self.routed: Counter[str] = Counter()  # of ape_router
        self.came: Counter[str] = Counter()  # of ape
        self.events = 0

    async def words(self, *words: int) -> None:
        dut, rng = self.pair.dut, self.pair.rng
        for word in words:
            dut.forges.value = 1 << self.link
            dut.forged.value, dut.forged_valid.value = word, 1
            await self.pair.wait(1)
            dut.forged_valid.value = 0
            if rng.random() < 0.1:
                await self.pair.wait(rng.randint(1, 3))

    def start(self, packet: Packet) -> list[int]:
        """START and header, and what it sends is counted."""
        vc, words = packet.vc, len(packet.payload)
        limits = apenet.counts(1024, 256, 1024, 256)
        content = limits | apenet.counts(self.data[vc], *self.headers) << 44 | words << 77 | vc << 86
        self.data[vc] += words
        self.headers[vc] += 2
        return [MAGIC, apenet.control(apenet.START, content), apenet.with_check(packet.head)]

    async def send(self, packet: Packet, *, fate: str = "good", routed: str = "routed", came: str = "") -> None:
        start = self.start(packet)
        if fate == "corrected":
            start[2] ^= 1 << self.pair.rng.randrange(128)
        await self.words(*start, *packet.words[1:])
        self.expected["good" if fate == "corrected" else fate] += 1
        self.expected["corrected"] += fate == "corrected"
        self.routed[routed] += 1
        if came:
            self.came[came] += 1

    async def event(self, fate: str = "good", vc: int = 0) -> None:
        """For a."""
        event = rdma.event_packet(x=0, source=rdma.place(0, 1), number=self.events)
        event.head |= vc
        await self.send(event, fate=fate, came="events")
        self.events += 1

    async def miss(self, messages: int) -> None:
        """Events that the node would know of if they had come, before one that does."""
        self.events += messages
        self.came.update(gap=1, missed=messages)
        await self.event()

    def put(self) -> Packet:
        return rdma.data_packet(self.pair.rng.randbytes(60), region=KEY, offset=0, x=0, nonce=1, source=rdma.place(0, 1), number=7)

    async def spoil(self, fate: str) -> None:
        """A packet, or some, of which the link says this; an event after them."""
        rng, packet = self.pair.rng, self.put()
        if fate == "flagged":
            packet.flagged = True
            await self.send(packet, fate="flagged", came="flagged")
        elif fate == "crc":
            damaged = [*packet.payload[:-1], packet.payload[-1] ^ 1 << rng.randrange(128)]
            await self.words(*self.start(packet), *damaged, packet.words[-1])
        elif fate == "cut":
            await self.words(*self.start(packet), *packet.payload[: rng.randrange(len(packet.payload))])
        elif fate == "header":
            first, second = rng.sample(range(128), 2)
            start = self.start(packet)
            await self.words(*start[:2], start[2] ^ 1 << first ^ 1 << second, *packet.words[1:])
        elif fate == "lost":
            many = [rng.randint(0, 20), rng.randint(1, 20)]
            self.headers = [count + 2 * lost for count, lost in zip(self.headers, many, strict=True)]
            self.expected["lost"] += sum(many)
        elif fate == "noise":
            await self.event()
            await self.words(MAGIC, rng.getrandbits(120) << 8)
            self.expected["noise"] += 1
        if fate in ("crc", "cut"):
            self.routed["routed"] += 1
            self.came["flagged"] += 1
        if fate in ("crc", "cut", "header"):
            self.expected[fate] += 1
        await self.event("corrected" if fate == "corrected" else "good", vc=rng.randrange(2))

    async def misroute(self, drop: str) -> None:
        """A packet that the router drops under this name, in the torus of the test below."""
        to = {"outside": {"x": 5}, "turn": {"x": 1}, "port": {"y": 2}, "hops": {"x": 2, "hops": 4}}[drop]
        if drop == "port" and (LINKS == 6 or self.pair.rng.random() < 0.5):
            to = {"port": 1}
        payload = self.pair.rng.randbytes(self.pair.rng.randrange(80))
        await self.send(apenet.packet(payload, packet_type=rdma.PUT, vc=self.pair.rng.randrange(2), **to), routed=drop)


@cocotb.test
async def every_packet_that_is_lost_has_a_name(dut: Any) -> None:
    """Of each reason that there is in a node some are really lost: the host reads how many, and whatever came to a router is routed or dropped."""
    pair = Pair(dut)
    await pair.begin(shape=(4, 3, 2))
    rng, (here, _) = pair.rng, pair.nodes
    by_y, by_x = Forger(pair, link=2), Forger(pair, link=1)
    fates = ["flagged", "crc", "cut", "header", "lost", "noise", "corrected"] * (2 if SHORT else 8)
    drops = ["outside", "turn", "port"] * (3 if SHORT else 12)
    kinds = [(by_y.spoil, fate) for fate in fates] + [(by_y.misroute, drop) for drop in drops] + [(by_y.miss, 3), (by_y.miss, 200)]
    rng.shuffle(kinds)
    dut.forges.value = 1 << by_y.link
    await pair.wait(20)
    for act, name in kinds:
        await act(name)
        await here.release()
    await pair.wait(100)
    dut.forges.value = 1 << by_x.link
    await pair.wait(20)
    for drop in rng.sample(["hops", "outside"] * 4, 8):
        await by_x.misroute(drop)
    # Of what the host sends: to no node, by z+, which is not there or down, by x+, which is down.
    sent = Counter({"outside": 3, "port": 4, "routed": 5} if LINKS == 3 else {"outside": 3, "routed": 9})
    dut.cable_up.value = 2
    dut.forges.value = 0
    await pair.wait(30)
    for count, to in ((3, rdma.place(4)), (4, rdma.place(0, 0, 1)), (5, rdma.place(1))):
        for _ in range(count):
            await here.post(kind=rdma.EVENT, to=to)
    await pair.until(lambda: len(here.host.sent) == here.rung)
    await pair.wait(100)

    ape = await here.counts("ape", 0x200)
    links = [await here.counts("ape_link", 0x400 + 0x80 * link) for link in range(6)]
    router = [await here.counts("ape_router", 0x800 + 0x40 * port) for port in range(7)]
    assert Counter(router[6]) == Counter({name: sent[name] for name in router[6]})
    for forger in (by_x, by_y):
        assert Counter(links[forger.link]) == Counter({name: forger.expected[name] for name in links[0]})
        assert Counter(router[forger.link]) == Counter({name: forger.routed[name] for name in router[0]})
    assert [link["down"] for link in links] == [5, 0, 0, 0, 0 if LINKS == 3 else 4, 0]
    assert {name: ape[name] for name in ("events", "flagged", "gap", "missed", "left")} == {**by_y.came, "left": sent.total()}
    # A link has no packet that is too long: its header is not the one that START announced.
    assert {name for name in router[0] if any(row[name] for row in router)} == set(router[0]) - {"length"}
    balance(ape, links, router)


@cocotb.test
async def a_change_wakes_the_host_once_and_none_is_missed(dut: Any) -> None:
    pair = Pair(dut)
    await pair.begin()
    here, there = pair.nodes
    read, write = here.host.registers.read, here.host.registers.write
    await write(TORUS + WATCH, 0)
    rises: list[int] = []
    cocotb.start_soon(pair.edges(dut.a_irq, rises))

    async def look() -> tuple[int, int]:
        """As a host does that was woken: how many changes, and whose; it clears those."""
        count = await read(TORUS + INTERRUPT + 0x18) & 0xFFFFFFFF
        changes = await read(TORUS + CHANGES)
        await write(TORUS + CHANGES, changes)
        return count, changes

    count, changes = await look()
    assert count > 0
    assert changes == 3, "links that came up"
    await write(TORUS + INTERRUPT, 1)
    await write(TORUS + INTERRUPT + 0x10, count)
    await pair.wait(200)
    assert rises == []
    assert await read(TORUS + INTERRUPT + 0x18) == count | 1 << 32, "armed"
    down = pair.cycle
    dut.cable_up.value = 1
    await pair.wait(20)
    assert [cycle - down for cycle in rises] == [CHANGE_CYCLES]
    assert await read(TORUS + INTERRUPT + 0x18) == count + 1 | 1 << 33, "raised"
    dut.cable_up.value = 3
    await pair.wait(40)
    assert len(rises) == 1, "not armed"
    count, changes = await look()
    assert changes == 2
    # What changes between look and arming wakes at once; what the host has read is not told again.
    await there.host.registers.write(TORUS + WATCH, 0x11)
    await pair.wait(60)
    await write(TORUS + INTERRUPT + 0x10, count)
    await pair.wait(6)
    assert len(rises) == 2
    count, changes = await look()
    assert changes == 3, "a neighbour by both links"
    states = await read(TORUS + 0x028)
    assert [states >> 10 * link & 0x3FF for link in range(2)] == [0x11 << 3 | 1] * 2
    await write(TORUS + INTERRUPT + 0x10, count)
    # Its own, when it is silent; masked it waits.
    await write(TORUS + INTERRUPT, 0)
    await write(TORUS + WATCH, 500 << 32)
    await pair.wait(600)
    assert len(rises) == 2
    await write(TORUS + INTERRUPT, 1)
    await pair.wait(4)
    assert len(rises) == 3
    count, changes = await look()
    assert changes == 1 << 6
    assert await read(TORUS + 0x020) >> 32 == 1
    assert await read(TORUS + CHANGES) == 0


@cocotb.test
async def completions_and_changes_share_the_line(dut: Any) -> None:
    """One of the two that comes while the other has the line up is a message of its own."""
    pair = Pair(dut)
    await pair.begin()
    here = pair.nodes[0]
    read, write = here.host.registers.read, here.host.registers.write
    rises: list[int] = []
    cocotb.start_soon(pair.edges(dut.a_irq, rises))
    for first in ("completion", "change", "completion"):
        rises.clear()
        for window in (0, TORUS):
            at = window + (INTERRUPT if window else HOST_INTERRUPT)
            await write(at, 1)
            await write(at + 0x10, await read(at + 0x18) & 0xFFFFFFFF)
        assert rises == []
        for number, event in enumerate([first, "change" if first == "completion" else "completion"], start=1):
            if event == "change":
                dut.cable_up.value = int(dut.cable_up.value) ^ 2
                await pair.wait(20)
            else:
                frames = len(here.host.found)
                here.wire.send(with_fcs(udp_frame(pair.rng.randbytes(100), port=DETECTOR_PORT)))
                await pair.until(lambda frames=frames: len(here.host.found) > frames)
                await pair.wait(20)
            assert len(rises) == number, event
            assert dut.a_irq.value == 1
