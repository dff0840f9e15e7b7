# SPDX-License-Identifier: Apache-2.0
"""What is around apenet_router: all its streams in and out, the room after each output, and what has to become of each packet by the reference."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common import apenet
from common.bench import PARAMETERS, Bench, LaneCounts, never
from common.torus import LINK_PORTS, Hop, Node, Place

LINKS = PARAMETERS.get("LINKS", 0b111111)
LOCALS = PARAMETERS.get("LOCALS", 1)
PORTS = LINK_PORTS + LOCALS
INPUTS = 2 * PORTS  # port 0 with its two virtual channels, port 1 and so on
EVERYTHING = 2047  # so much room, and more
ENDS = ["count_good", "drop_length", "drop_outside", "drop_turn", "drop_port", "drop_hops"]
MASK = (1 << 128) - 1


def there_is(port: int) -> bool:
    return port >= LINK_PORTS or bool(LINKS >> port & 1)


STREAMS = [stream for stream in range(INPUTS) if there_is(stream // 2)]
OUTPUTS = [port for port in range(PORTS) if there_is(port)]


@dataclass
class Sent:
    stream: int
    number: int  # of its stream
    words: list[int]
    hop: Hop
    taken_cycle: int = 0  # its header


@dataclass
class Came:
    sent: Sent
    first_cycle: int
    last_cycle: int


@dataclass
class Room:
    """What there is room for after an output, on one virtual channel: data and headers. limit None: for whatever comes."""

    limit: list[int] | None = None
    sent: list[int] = field(default_factory=lambda: [0, 0])

    def space(self) -> int:
        if self.limit is None:
            return EVERYTHING | EVERYTHING << 11
        return apenet.counts(*(limit - sent for limit, sent in zip(self.limit, self.sent, strict=True)))


class RouterBench(Bench):
    """Both ends of all ports. queues: of each input stream, what it has yet to send; came: of each output, in its order."""

    def __init__(self, dut: Any, rng: Random) -> None:
        super().__init__(dut)
        self.rng = rng
        self.node = Node((0, 0, 0), (1, 1, 1), LINKS, LOCALS)
        self.queues: list[deque[Sent]] = [deque() for _ in range(INPUTS)]
        self.in_flight: dict[int, Sent] = {}  # by address
        self.in_pause: list[Callable[[], bool]] = [never] * INPUTS
        self.out_pause: list[Callable[[], bool]] = [never] * PORTS
        self.rooms = {(port, vc): Room() for port in range(PORTS) for vc in (0, 1)}
        self.room_steps = 80, 80  # at most so much of each kind at a time
        self.numbers = [0] * INPUTS
        self.ended = [Counter[str]() for _ in range(INPUTS)]  # what has to become of each stream's packets
        self.counted = LaneCounts(self, ENDS, INPUTS)
        self.forget()
        for signal in (dut.s_axis_tvalid, dut.s_axis_tdata, dut.s_axis_tlast, dut.m_axis_tready, dut.at, dut.shape):
            signal.value = 0
        cocotb.start_soon(self._drive())
        cocotb.start_soon(self._sink())

    def forget(self) -> None:
        """What was sent and has not come, for a reset."""
        for queue in self.queues:
            queue.clear()
        self.in_flight.clear()
        self.place, self.offered = [0] * INPUTS, [False] * INPUTS
        self.coming: list[list[int]] = [[] for _ in range(PORTS)]
        self.first_cycle = [0] * PORTS
        self.came: list[list[Came]] = [[] for _ in range(PORTS)]
        self.last_number: dict[tuple[int, int, int], int] = {}

    def be(self, at: Place, shape: Place) -> None:
        """The node's place, while no packet is in flight."""
        self.node = Node(at, shape, LINKS, LOCALS)
        self.dut.at.value = at[0] | at[1] << 6 | at[2] << 11
        self.dut.shape.value = shape[0] | shape[1] << 7 | shape[2] << 13

    def send(self, stream: int, to: Place, to_port: int, payload_words: int, hops: int = 0, **fields: int) -> Sent:
        address = self.rng.getrandbits(48)
        size_bytes = fields.pop("bytes", payload_words * 16)
        # vc as the header says is not looked at: the stream says it.
        more = {"vc": self.rng.getrandbits(5), "process": self.rng.getrandbits(16), "packet_type": self.rng.getrandbits(5)}
        places = dict(zip("xyz", to, strict=True))
        head = apenet.header(**places, port=to_port, bytes=size_bytes, address=address, hops=hops, **{**more, **fields})
        hop = self.node.hop(to, to_port, stream // 2, stream % 2, hops, size_bytes)
        words = [head, *(self.rng.getrandbits(128) for _ in range(payload_words + 1))]
        sent = Sent(stream, self.numbers[stream], words, hop)
        self.numbers[stream] += 1
        self.queues[stream].append(sent)
        self.ended[stream][f"drop_{hop.drop}" if hop.drop else "count_good"] += 1
        if not hop.drop:
            self.in_flight[address] = sent
        return sent

    def done(self) -> bool:
        return not any(self.queues) and not self.in_flight

    async def until_done(self, cycles: int = 50_000) -> None:
        await self.wait_until(self.done, cycles, "all packets through")
        await self.wait(8)

    def check_books(self) -> None:
        counts = self.counted.counts()
        for stream in range(INPUTS):
            told = {end: counts[end][stream] for end in ENDS if counts[end][stream]}
            assert told == dict(self.ended[stream]), f"stream {stream}: {told}, expected {self.ended[stream]}"

    def give_room(self, rng: Random) -> None:
        """To one output and channel, as a neighbour does that has read some words."""
        room = self.rooms[rng.choice(OUTPUTS), rng.randrange(2)]
        if room.limit is not None:
            for kind, most in enumerate((1024, 256)):
                room.limit[kind] = min(room.limit[kind] + rng.randint(0, self.room_steps[kind]), room.sent[kind] + most)

    async def _drive(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        words, set_data, set_valid, set_last = [0] * INPUTS, -1, -1, -1
        while True:
            valid = last = 0
            for stream in STREAMS:
                queue = self.queues[stream]
                if queue and (self.offered[stream] or not self.in_pause[stream]()):
                    self.offered[stream] = True
                    packet, place = queue[0].words, self.place[stream]
                    words[stream] = packet[place]
                    valid |= 1 << stream
                    last |= int(place == len(packet) - 1) << stream
                else:
                    self.offered[stream] = False
            data = int.from_bytes(b"".join(word.to_bytes(16, "little") for word in words), "little")
            if data != set_data:
                dut.s_axis_tdata.value = set_data = data
            if valid != set_valid:
                dut.s_axis_tvalid.value = set_valid = valid
            if last != set_last:
                dut.s_axis_tlast.value = set_last = last
            await edge
            taken = int(dut.s_axis_tready.value) & valid if dut.rst.value == 0 else 0
            for stream in STREAMS:
                if taken >> stream & 1 and self.queues[stream]:
                    self.offered[stream] = False
                    if self.place[stream] == 0:
                        self.queues[stream][0].taken_cycle = self.cycle
                    self.place[stream] += 1
                    if self.place[stream] == len(self.queues[stream][0].words):
                        self.queues[stream].popleft()
                        self.place[stream] = 0

    async def _sink(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        refused: dict[int, tuple[int, int]] = {}
        set_space, set_ready = -1, -1
        while True:
            space = sum(self.rooms[port, vc].space() << 44 * port + 22 * vc for port in range(PORTS) for vc in (0, 1))
            ready = sum(1 << port for port in OUTPUTS if not self.out_pause[port]())
            if space != set_space:
                dut.m_space.value = set_space = space
            if ready != set_ready:
                dut.m_axis_tready.value = set_ready = ready
            await edge
            if dut.rst.value == 1:
                refused.clear()
                continue
            valid = int(dut.m_axis_tvalid.value)
            assert not valid & ~sum(1 << port for port in OUTPUTS), "a word for a link that there is not"
            if not valid:
                assert not refused
                continue
            data, last = int(dut.m_axis_tdata.value), int(dut.m_axis_tlast.value)
            for port in OUTPUTS:
                if not valid >> port & 1:
                    assert port not in refused, f"output {port}: a word was withdrawn"
                    continue
                word = data >> 128 * port & MASK, last >> port & 1
                assert refused.pop(port, word) == word, f"output {port}: a waiting word changed"
                if ready >> port & 1:
                    self._take(port, *word)
                else:
                    refused[port] = word

    def _take(self, port: int, word: int, last: int) -> None:
        words = self.coming[port]
        if not words:
            self.first_cycle[port] = self.cycle
            self._check_room(port, word)
        words.append(word)
        room = self.rooms[port, words[0] & 1]
        room.sent[int(len(words) == 1 or last)] += 1
        if not last:
            return
        self.coming[port] = []
        sent = self.in_flight.pop(apenet.header_field(words[0], "address"), None)
        assert sent is not None, f"output {port}: a packet that was not sent, or was dropped"
        head = sent.words[0] & ~apenet.VC_AND_HOPS | sent.hop.vc | sent.hop.hops << 110
        assert port == sent.hop.port, f"stream {sent.stream}: by {port}, expected {sent.hop}"
        assert words[0] == head, f"stream {sent.stream}, {sent.hop}: header {words[0]:x}, expected {head:x}"
        assert words[1:] == sent.words[1:], f"output {port}: another payload"
        way = sent.stream, port, sent.hop.vc
        assert sent.number > self.last_number.get(way, -1), f"{way}: out of order"
        self.last_number[way] = sent.number
        self.came[port].append(Came(sent, self.first_cycle[port], self.cycle))

    def _check_room(self, port: int, head: int) -> None:
        """All of the packet has its place."""
        room = self.rooms[port, head & 1]
        if room.limit is not None:
            needs = (apenet.header_field(head, "bytes") + 15) // 16, 2
            for kind in (0, 1):
                assert room.sent[kind] + needs[kind] <= room.limit[kind], f"output {port}: no room for all of a packet"


async def started(dut: Any, rng: Random) -> RouterBench:
    bench = RouterBench(dut, rng)
    await bench.reset()
    bench.counted.forget()
    return bench
