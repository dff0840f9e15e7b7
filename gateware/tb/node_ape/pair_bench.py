# SPDX-License-Identifier: Apache-2.0
"""Two nodes in a torus, a cable at each of their links: their hosts, rings and counters, and the books of the torus."""

from ipaddress import IPv4Address
from random import Random
from typing import Any

from cocotb.triggers import RisingEdge
from common import rdma
from common.bench import PARAMETERS, Bench, pauses, random_numbers
from common.contract import Completion
from common.counts import ROWS
from common.frames import LOCAL_IP, LOCAL_MAC, mac_number
from common.host import ENTRY_BYTES, MEMORY_BYTES, RING_ENTRIES, Host
from common.wires import XgmiiWireSource

LINKS = PARAMETERS["APE_LINKS"]
TORUS = 0x2000  # registers; in that window:
WATCH, CHANGES, INTERRUPT = 0x018, 0x030, 0x0E0
HOST_INTERRUPT = 0x0C0  # in the host's
CHANGE_CYCLES = 6  # until a link that goes down has the line up
RING, SENT, MESSAGES, WINDOW = 0x140000, 0x148000, 0x150000, 0x160000  # in memory
MESSAGE_ENTRIES = 256
KEY, WINDOW_BYTES = 5, MEMORY_BYTES - WINDOW
DETECTOR_PORT, DETECTOR, NODE = 6001, 17, 40  # UDP; sources
DETECTOR_CLOP, NODE_CLOP = 1, 2
PROCESS = 0x3C0A
Triple = tuple[int, int, int]  # x, y, z


def mate(link: int) -> int:
    """The other end of its cable."""
    return link if (LINKS, link) == (3, 2) else link ^ 1


def along(dimension: int, value: int, others: int) -> Triple:
    """With `value` in that dimension."""
    x, y, z = (value if k == dimension else others for k in range(3))
    return x, y, z


class Prefixed:
    """Signals of one node."""

    def __init__(self, top: Any, prefix: str) -> None:
        self.clk, self.rst = top.clk, top.rst
        self._top, self._prefix = top, prefix

    def __getattr__(self, name: str) -> Any:
        self.__dict__[name] = getattr(self._top, self._prefix + name)
        return self.__dict__[name]


class TorusHost(Host):
    """found: (CLOP, source, where in memory, payload) of packets; messages: completions of what came from the torus; sent: those of the ring."""

    def forget(self) -> None:
        super().forget()
        self.found: list[tuple[int, int, int, bytes]] = []
        self.messages: list[Completion] = []
        self.sent: list[tuple[int, int]] = []

    def _received(self, clop: int, source: int, at: int, payload: bytes) -> None:
        super()._received(clop, source, at, payload)
        self.found.append((clop, source, at, payload))

    def _land(self, at: int, data: bytes) -> None:
        super()._land(at, data)
        if MESSAGES <= at < MESSAGES + MESSAGE_ENTRIES * ENTRY_BYTES:
            entry = Completion.read(data)
            assert entry.sequence == len(self.messages) + 1
            self.messages.append(entry)
        elif SENT <= at < SENT + RING_ENTRIES * ENTRY_BYTES:
            entry = Completion.read(data)
            assert entry.sequence == len(self.sent) + 1
            self.sent.append((entry.kind, entry.tag))


class Node(Bench):
    drives_clock = False

    def __init__(self, top: Any, prefix: str, number: int, rng: Random, share: float) -> None:
        super().__init__(Prefixed(top, prefix))
        self.number, self.rng = number, rng
        self.wire = XgmiiWireSource(self)
        self.host = TorusHost(self, clops=4)
        self.host.write_pause = pauses(rng, share)
        self.nonce = rng.getrandbits(32)

    def forget(self) -> None:
        self.host.forget()
        self.rung = 0
        self.tags: list[int] = []

    async def set_up(self, shape: Triple, at: Triple, other: Triple) -> None:
        """at, other: where this node is, and the other one."""
        self.other = rdma.place(*other)
        write = self.host.registers.write
        await self.host.set_up()
        await write(0x020, mac_number(LOCAL_MAC))
        await write(0x028, int(IPv4Address(LOCAL_IP)))
        await write(0x040, 0)
        await write(0x048, 1 | 1 << 8 | DETECTOR_CLOP << 12 | DETECTOR_PORT << 16 | DETECTOR << 32)
        await write(TORUS + 0x008, sum(value << 8 * k for k, value in enumerate((*at, 0, *shape))))
        await write(TORUS + 0x040, WINDOW)
        await write(TORUS + 0x048, WINDOW_BYTES)
        await write(TORUS + 0x050, self.nonce | KEY << 32 | 7 << 40)
        await write(TORUS + 0x060, self.other | 0xFFFF << 16)
        await write(TORUS + 0x068, 3 | 1 << 8 | NODE_CLOP << 12 | PROCESS << 16 | NODE << 32)
        await write(TORUS + 0x0C0, MESSAGES)
        await write(TORUS + 0x0C8, MESSAGE_ENTRIES - 1)
        await write(TORUS + 0x088, RING)
        await write(TORUS + 0x090, SENT)
        await write(TORUS + 0x098, (RING_ENTRIES - 1) | (RING_ENTRIES - 1) << 32)
        await write(TORUS + 0x080, 1)

    async def post(self, *, to: int | None = None, **fields: Any) -> None:
        """To the other node, where no place is named."""
        while self.rung - len(self.host.sent) >= RING_ENTRIES:
            await self.wait(20)
        at = RING + self.rung % RING_ENTRIES * ENTRY_BYTES
        self.rung += 1
        self.tags.append(self.rng.getrandbits(64))
        place = self.other if to is None else to
        data = rdma.descriptor(to=place, tag=self.tags[-1], sequence=self.rung, **fields)
        self.host.memory[at : at + ENTRY_BYTES] = data
        await self.host.registers.write(TORUS + 0x0A0, self.rung)

    async def counts(self, row: str, at: int) -> dict[str, int]:
        names = ROWS[row]["names"]
        return {name: await self.host.registers.read(TORUS + at + 8 * k) for k, name in enumerate(names)}

    async def release(self) -> None:
        await self.host.release()
        await self.host.registers.write(TORUS + 0x0C8, MESSAGE_ENTRIES - 1 | len(self.host.messages) << 32)


class Pair(Bench):
    def __init__(self, top: Any, share: float = 0) -> None:
        super().__init__(top)
        self.rng = random_numbers()
        top.cable_up.value = top.forges.value = top.forged_valid.value = 0
        self.nodes = [Node(top, prefix, number, self.rng, share) for number, prefix in enumerate(("a_", "b_"))]

    async def begin(self, shape: Triple = (2, 1, 1), *, of_b: Triple = (2, 1, 1), at: Triple = (1, 0, 0), cables: int = 3) -> None:
        """shape, of_b: of the torus of which a and b believe to be; at: where b is, a is at 0. cables: that are up, by a's link."""
        self.dut.cable_up.value = 0
        await self.reset(60)
        for node in self.nodes:
            node.forget()
        await self.nodes[0].set_up(shape, (0, 0, 0), at)
        await self.nodes[1].set_up(of_b, at, (0, 0, 0))
        self.dut.cable_up.value = cables
        await self.wait(40)

    async def until(self, done: Any, limit: int = 40) -> None:
        for _ in range(limit):
            for node in self.nodes:
                await node.release()
            if done():
                return
            await self.wait(300)
        raise AssertionError("not within its time")

    async def edges(self, line: Any, rises: list[int]) -> None:
        """The cycles in which one that sends a message for each rising edge sends one."""
        high = 0
        while True:
            await RisingEdge(self.dut.clk)
            if int(line.value) and not high:
                rises.append(self.cycle)
            high = int(line.value)

    async def books(self, ways: tuple[int, int] = (0, 0)) -> None:
        """What one node sent, by the link of `ways`, the other one knows what became of it. Nothing is in flight."""
        counts = [await node.counts("ape", 0x200) for node in self.nodes]
        links = [[await node.counts("ape_link", 0x400 + 0x80 * link) for link in range(LINKS)] for node in self.nodes]
        for here, there in ((0, 1), (1, 0)):
            sent = [links[here][link]["sent"] for link in range(LINKS)]
            assert {link for link in range(LINKS) if sent[link]} <= {ways[here]}
            assert [links[there][mate(link)]["good"] for link in range(LINKS)] == sent
            came = sum(counts[there][name] for name in ROWS["ape"]["names"][:20])
            assert sum(sent) == counts[here]["left"] == came
            assert counts[there]["send"] == counts[there]["forwarded"]
            quiet = set(ROWS["ape"]["names"]) - {"landed", "events", "get", "send", "left", "forwarded"}
            assert all(counts[there][name] == 0 for name in quiet), counts[there]
        for k, node in enumerate(self.nodes):
            router = [await node.counts("ape_router", 0x800 + 0x40 * port) for port in range(7)]
            assert all(row[name] == 0 for row in router for name in row if name != "routed"), router
            balance(counts[k], links[k], router)


def balance(ape: dict[str, int], links: list[dict[str, int]], router: list[dict[str, int]]) -> None:
    """The books of one node, in which nothing is in flight: docs/design/torus.md."""
    for link, port in zip(links, router, strict=False):
        assert sum(link[name] for name in ("good", "flagged", "crc", "cut")) == sum(port.values())
    assert ape["left"] == sum(router[6].values())
    came = sum(ape[name] for name in ROWS["ape"]["parts"]["packet_ends"])
    assert sum(port["routed"] for port in router) == came + sum(link["sent"] + link["down"] for link in links)
