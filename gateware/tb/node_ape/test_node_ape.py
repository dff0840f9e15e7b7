# SPDX-License-Identifier: Apache-2.0
"""Two nodes in a torus: what a detector sends to the Ethernet port of one comes to the memory, or a CLOP, of the other."""

from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from common import rdma
from common.bench import SHORT, Bench, pauses, random_numbers
from common.contract import Completion, Kind
from common.counts import ROWS
from common.frames import LOCAL_IP, LOCAL_MAC, mac_number, udp_frame, with_fcs
from common.host import ENTRY_BYTES, MEMORY_BYTES, PAYLOADS, RING_ENTRIES, Host
from common.wires import XgmiiWireSource

TORUS = 0x2000  # registers
RING, SENT, MESSAGES, WINDOW = 0x140000, 0x148000, 0x150000, 0x160000  # in memory
MESSAGE_ENTRIES = 256
KEY, WINDOW_BYTES = 5, MEMORY_BYTES - WINDOW
DETECTOR_PORT, DETECTOR, NODE = 6001, 17, 40  # UDP; sources
DETECTOR_CLOP, NODE_CLOP = 1, 2
PROCESS = 0x3C0A


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
        self.rung = 0
        self.tags: list[int] = []

    async def set_up(self) -> None:
        write = self.host.registers.write
        await self.host.set_up()
        await write(0x020, mac_number(LOCAL_MAC))
        await write(0x028, int(IPv4Address(LOCAL_IP)))
        await write(0x040, 0)
        await write(0x048, 1 | 1 << 8 | DETECTOR_CLOP << 12 | DETECTOR_PORT << 16 | DETECTOR << 32)
        await write(TORUS + 0x008, self.number | 2 << 32 | 1 << 40 | 1 << 48)
        await write(TORUS + 0x040, WINDOW)
        await write(TORUS + 0x048, WINDOW_BYTES)
        await write(TORUS + 0x050, self.nonce | KEY << 32 | 7 << 40)
        await write(TORUS + 0x060, 1 - self.number | 0xFFFF << 16)
        await write(TORUS + 0x068, 3 | 1 << 8 | NODE_CLOP << 12 | PROCESS << 16 | NODE << 32)
        await write(TORUS + 0x0C0, MESSAGES)
        await write(TORUS + 0x0C8, MESSAGE_ENTRIES - 1)
        await write(TORUS + 0x088, RING)
        await write(TORUS + 0x090, SENT)
        await write(TORUS + 0x098, (RING_ENTRIES - 1) | (RING_ENTRIES - 1) << 32)
        await write(TORUS + 0x080, 1)

    async def post(self, **fields: Any) -> None:
        """To the other node."""
        while self.rung - len(self.host.sent) >= RING_ENTRIES:
            await self.wait(20)
        at = RING + self.rung % RING_ENTRIES * ENTRY_BYTES
        self.rung += 1
        self.tags.append(self.rng.getrandbits(64))
        data = rdma.descriptor(to=rdma.place(1 - self.number), tag=self.tags[-1], sequence=self.rung, **fields)
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
        top.cable_up.value = 0
        self.nodes = [Node(top, prefix, number, self.rng, share) for number, prefix in enumerate(("a_", "b_"))]

    async def begin(self) -> None:
        await self.reset(60)
        for node in self.nodes:
            node.host.forget()
            await node.set_up()
        self.dut.cable_up.value = 3
        await self.wait(40)

    async def until(self, done: Any, limit: int = 40) -> None:
        for _ in range(limit):
            for node in self.nodes:
                await node.release()
            if done():
                return
            await self.wait(300)
        raise AssertionError("not within its time")

    async def books(self) -> None:
        """What one node sent, by each link, the other one knows what became of it. Nothing is in flight."""
        counts = [await node.counts("ape", 0x200) for node in self.nodes]
        links = [[await node.counts("ape_link", 0x400 + 0x80 * link) for link in range(3)] for node in self.nodes]
        for here, there in ((0, 1), (1, 0)):
            sent = [links[here][link]["sent"] for link in range(3)]
            assert (sent[2], links[there][2]["good"]) == (0, 0)
            assert [links[there][1 - link]["good"] for link in range(2)] == sent[:2]
            came = sum(counts[there][name] for name in ROWS["ape"]["names"][:20])
            assert sum(sent) == counts[here]["left"] == came
            assert counts[there]["send"] == counts[there]["forwarded"]
            quiet = set(ROWS["ape"]["names"]) - {"landed", "events", "get", "send", "left", "forwarded"}
            assert all(counts[there][name] == 0 for name in quiet), counts[there]


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
async def the_host_knows_of_links_and_neighbours(dut: Any) -> None:
    pair = Pair(dut)
    await pair.begin()
    here, there = pair.nodes
    read, write = here.host.registers.read, here.host.registers.write
    assert await read(TORUS) & 0x3F == 7
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
