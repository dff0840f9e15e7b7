# SPDX-License-Identifier: Apache-2.0
"""Nodes with network interfaces and memories: jobs for them, and what their memories must hold after."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import rdma
from common.apenet import Packet, bytes_of
from common.bench import PARAMETERS, Bench, random_numbers
from common.contract import Completion, Kind, Status
from common.streams import Packet as Stream
from common.streams import StreamSource

NODES = PARAMETERS.get("NODES", 3)
TICK_CYCLES = PARAMETERS.get("TICK_CYCLES", 16384)
GETS = PARAMETERS.get("GETS", 4)
MEMORY = 1 << 18  # of a node [B]
PAGE = 4096
ENTRIES_PAGES = 16  # of the completion queue, the ring and its own completions, one after the other
ENTRIES = 512
RING, GONE = 8 * PAGE, 12 * PAGE  # device addresses
RING_ENTRIES = 256
DATA = 1 << rdma.OFFSET_BITS  # device address of everything else
DATA_BYTES = MEMORY - ENTRIES_PAGES * PAGE
# Keys: name, (index, readable, writable, from which byte of the data on, bytes). Where messages come from nothing is written.
READ_ONLY, READ_WRITE, WRITE_ONLY, NO_PAGES = range(4)
WINDOWS = {
    READ_ONLY: (True, False, 16, 0x13FEB),
    READ_WRITE: (True, True, 0x14010, 0x19FFB),
    WRITE_ONLY: (False, True, 0x2E010, 0xFF1),
    NO_PAGES: (True, True, DATA_BYTES, 0x1000),
}
UNKNOWN = 7
SIZES = (1, 2, 15, 16, 17, 31, 33, 64, 255, 256, 4064, 4065, 4080, 4081, 4096, 8159, 8161)
# SENDs: index of the entry, (process, sender, mask of its place, route, CLOP, source, whether events are counted).
TASK, ANY_TASK, NO_TASK = 0x1234, 0x1235, 0x1233
LOG_WORDS = 1 << 12
SENDERS = {node: (TASK, rdma.place(node), 0xFFFF, 0, node, 10 + node, node == 1) for node in range(3)}
ANYONE = {3: (ANY_TASK, 0, 0, 9, 3, 0x7ABC, True)}
LOG_FIELDS = [
    *(("data", 128), ("keep", 16), ("last", 8), ("cycle", 64), ("parsed_cycle", 64), ("start_cycle", 64), ("arrival_ns", 64)),
    *(("bytes", 16), ("event_count", 8), ("source", 16), ("clop", 2), ("route", 4)),
]


@dataclass
class Message:
    """Data that has to come to `at` of node `to`, and who is told: (source, number) or, for what `to` has asked for itself, its tag."""

    kind: int
    source: int
    to: int
    at: int
    data: bytes
    key: tuple[int, int] | int
    process: int = 0
    value: int = 0


@dataclass
class Sent:
    """Data that has to come to an entry of the match table of `to`."""

    source: int
    to: int
    process: int
    data: bytes

    def expected(self) -> tuple[int, ...]:
        entry = SENDERS[self.source] if self.process == TASK else ANYONE[3]
        events = self.data[3] if entry[6] and len(self.data) > 3 else 0
        return (*entry[3:6], events)


@dataclass
class Told:
    """Of a completion."""

    failed: bool
    timed_out: bool
    bytes: int
    kind: int
    process: int
    value: int


@dataclass
class RdmaBench(Bench):
    dut: Any
    messages: list[Message] = field(default_factory=list)
    sends: list[Sent] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.dut)
        self.rng = random_numbers()
        dut = self.dut
        for name in (
            "load",
            "dump",
            "fault_rate",
            "pause_rate",
            "read_fails",
            "holds_entries",
            "may_fault",
            "holds_payloads",
            "match_write",
            "key_write",
            "region_write",
            "entry_write",
            "poke",
            "cfg_enable",
            "cfg_doorbell",
        ):
            getattr(dut, name).value = 0
        dut.seed.value = self.rng.getrandbits(32)
        dut.cfg_completions.value, dut.cfg_completion_mask.value = 0, ENTRIES - 1
        dut.cfg_ring.value, dut.cfg_ring_completions.value, dut.cfg_ring_mask.value = RING, GONE, RING_ENTRIES - 1
        self.wild = StreamSource(self, "wild")
        self.pages = [self.rng.sample(range(MEMORY // PAGE), k=MEMORY // PAGE) for _ in range(NODES)]
        self.images = [bytearray(MEMORY) for _ in range(NODES)]  # as its device addresses have it
        self.nonces = [[self.rng.getrandbits(32) for _ in range(8)] for _ in range(NODES)]
        self.numbers: Counter[tuple[int, int]] = Counter()  # messages from, to
        self.free = [WINDOWS[READ_WRITE][2]] * NODES
        self.tags = 0
        self.jobs: list[list[int]] = [[] for _ in range(NODES)]  # tags of what was asked of the ring
        self.rings = True  # with each
        dut.readable_pages.value = sum(1 << 64 * node + page for node in range(NODES) for page in self.pages[node][8:12])
        self.wilds = 0

    # --- memory ---
    async def start(self) -> None:
        await self.reset()
        for image in self.images:
            image[ENTRIES_PAGES * PAGE :] = self.rng.randbytes(DATA_BYTES)
        lines = []
        for node in range(NODES):
            words = self.physical(node)[::-1].hex()  # the last one first
            lines += [words[at : at + 32] for at in range(len(words) - 32, -1, -32)]
        Path("memory.hex").write_text("\n".join(lines), encoding="utf-8")
        self.dut.load.value = 1
        for node in range(NODES):
            for index, page in enumerate(self.pages[node]):
                await self.pulse("entry_write", node, entry_index=index, entry_data=(node + 1) * MEMORY + page * PAGE | 7)
            await self.pulse("region_write", node, region_index=0, region_valid=1, region_first=0, region_count=ENTRIES_PAGES)
            await self.pulse(
                "region_write", node, region_index=1, region_valid=1, region_first=ENTRIES_PAGES, region_count=DATA_BYTES // PAGE
            )
            for key in WINDOWS:
                await self.register(node, key)
            for index, entry in (SENDERS | ANYONE).items():
                await self.match(node, index, *entry)
        self.dut.cfg_enable.value = (1 << NODES) - 1
        await self.wait(80)  # lines of rdma_messages are cleared

    def physical(self, node: int) -> bytes:
        memory = bytearray(MEMORY)
        for index, page in enumerate(self.pages[node]):
            memory[page * PAGE : (page + 1) * PAGE] = self.images[node][index * PAGE : (index + 1) * PAGE]
        return bytes(memory)

    async def pulse(self, name: str, node: int, **values: int) -> None:
        for signal, value in values.items():
            getattr(self.dut, signal).value = value
        getattr(self.dut, name).value = 1 << node
        await self.wait(1)
        getattr(self.dut, name).value = 0

    async def register(self, node: int, key: int, *, valid: bool = True) -> None:
        readable, writable, start, size = WINDOWS[key]
        await self.pulse(
            *("key_write", node),
            **{"key_index": key, "key_valid": int(valid), "key_readable": int(readable), "key_writable": int(writable)},
            **{"key_nonce": self.nonces[node][key], "key_start": DATA + start, "key_bytes": size},
        )

    async def match(
        self, node: int, index: int, process: int, sender: int, mask: int, route: int, clop: int, source: int, counts: bool
    ) -> None:
        await self.pulse(
            *("match_write", node),
            **{"match_index": index, "match_enable": 1, "match_process": process, "match_sender": sender},
            **{"match_sender_mask": mask, "match_route": route, "match_clop": clop, "match_source": source},
            **{"match_counts_events": int(counts)},
        )

    async def memories(self) -> list[bytes]:
        """What stands at the device addresses of each node now."""
        self.dut.dump.value = 1
        await self.wait(1)
        self.dut.dump.value = 0
        words = [line for line in Path("dump.hex").read_text(encoding="utf-8").split() if not line.startswith(("@", "//"))]
        data = b"".join(int(word, 16).to_bytes(16, "little") for word in words)
        found = []
        for node in range(NODES):
            memory = data[node * MEMORY : (node + 1) * MEMORY]
            found.append(b"".join(memory[page * PAGE : (page + 1) * PAGE] for page in self.pages[node]))
        return found

    def room(self, node: int, size: int, offset: int | None = None) -> int | None:
        """A place in the window of node where nothing has been sent to; offset: of it in its word."""
        at = self.free[node] + self.rng.randrange(20)
        base = WINDOWS[READ_WRITE][2]
        if offset is not None:
            at += (offset - (at - base)) % 16
        if at + size > base + WINDOWS[READ_WRITE][3]:
            return None
        self.free[node] = at + size
        return at

    # --- jobs ---
    async def post(self, node: int, **fields: int) -> None:
        self.tags += 1
        jobs = self.jobs[node]
        while len(jobs) - self.each("consumed")[node] >= RING_ENTRIES:
            await self.wait(50)
        jobs.append(self.tags)
        data = rdma.descriptor(**{"tag": self.tags, "sequence": len(jobs)} | fields)
        at = RING + (len(jobs) - 1) % RING_ENTRIES * 64
        self.dut.poke.value = 1 << node
        for word in range(4):
            self.dut.poke_word.value = self.pages[node][at // PAGE] * PAGE // 16 + at % PAGE // 16 + word
            self.dut.poke_data.value = int.from_bytes(data[16 * word : 16 * word + 16], "little")
            await self.wait(1)
        self.dut.poke.value = 0
        if self.rings:
            self.ring()

    def ring(self) -> None:
        self.dut.cfg_doorbell.value = sum(len(jobs) << 32 * node for node, jobs in enumerate(self.jobs))

    def number(self, source: int, to: int) -> int:
        self.numbers[source, to] += 1
        return (self.numbers[source, to] - 1) % 0x10000

    def key(self, node: int, key: int, at: int) -> dict[str, int]:
        return {"region": key, "nonce": self.nonces[node][key], "offset": at - WINDOWS[key][2]}

    def source(self, size: int) -> int:
        """A place of the read-only window."""
        return WINDOWS[READ_ONLY][2] + self.rng.randrange(WINDOWS[READ_ONLY][3] - size + 1)

    async def put(self, node: int, to: int, size: int, *, offset: int | None = None, at_source: int | None = None) -> bool:
        at = self.room(to, size, offset)
        if at is None:
            return False
        begin = self.source(size) if at_source is None else at_source
        process = self.rng.getrandbits(16)
        data = bytes(self.images[node][ENTRIES_PAGES * PAGE + begin :][:size])
        self.messages.append(Message(rdma.PUT, node, to, at, data, (node, self.number(node, to)), process))
        fields = self.key(to, READ_WRITE, at) | {"local": DATA + begin, "bytes": size, "process": process}
        await self.post(node, kind=rdma.PUT, to=rdma.place(to), **fields)
        return True

    async def get(self, node: int, to: int, size: int) -> bool:
        at = self.room(node, size)
        if at is None:
            return False
        begin, process = self.source(size), self.rng.getrandbits(16)
        data = bytes(self.images[to][ENTRIES_PAGES * PAGE + begin :][:size])
        landing = self.key(node, READ_WRITE, at)
        self.messages.append(Message(rdma.GET, to, node, at, data, self.tags + 1, process))
        local = {"local": landing["region"] << rdma.OFFSET_BITS | landing["offset"], "local_nonce": landing["nonce"]}
        await self.post(
            node, kind=rdma.GET, to=rdma.place(to), bytes=size, process=process, **local, **self.key(to, READ_ONLY, begin)
        )
        return True

    async def event(self, node: int, to: int) -> None:
        process, value = self.rng.getrandbits(16), self.rng.getrandbits(16)
        self.messages.append(Message(rdma.EVENT, node, to, 0, b"", (node, self.number(node, to)), process, value))
        await self.post(node, kind=rdma.EVENT, to=rdma.place(to), offset=value, process=process)

    async def send(self, node: int, to: int, size: int, process: int = TASK) -> None:
        begin = self.source(size)
        data = bytes(self.images[node][ENTRIES_PAGES * PAGE + begin :][:size])
        self.sends.append(Sent(node, to, process, data))
        self.number(node, to)
        fields = {"local": DATA + begin, "bytes": size, "process": process, "offset": self.rng.getrandbits(40)}
        await self.post(node, kind=rdma.SEND, to=rdma.place(to), **fields)

    async def send_wild(self, packet: Packet, *, crc_flip: int = 0) -> None:
        """A packet that no interface has made."""
        words = packet.words
        words[-1] ^= crc_flip
        self.wilds += 1
        self.wild.send(Stream(bytes_of(words)))
        await self.wild.drain()

    # --- what came of it ---
    def each(self, name: str) -> list[int]:
        word = int(getattr(self.dut, name).value)
        return [word >> 32 * node & 0xFFFFFFFF for node in range(NODES)]

    def all(self, name: str) -> int:
        return sum(self.each(name))

    def counts(self) -> Counter[str]:
        """Packets that came, of all nodes, by what became of them."""
        word, found = int(self.dut.counts.value), Counter[str]()
        for place in range(NODES * len(rdma.COUNTS)):
            found[rdma.COUNTS[place % len(rdma.COUNTS)]] += word >> 32 * place & 0xFFFFFFFF
        return +found

    async def quiet(self, cycles: int = 400, limit: int = 400_000) -> None:
        """All jobs are done, and for so many cycles nothing happens."""
        names = ("logged", "jobs_waiting", "gone_good", "gone_bad", "sent", "written", "counts", "reply_refused", "refused")
        before: list[int] = []
        for _ in range(0, limit, cycles):
            now = [int(getattr(self.dut, name).value) for name in names]
            if now == before and now[1] == 0:
                break
            before = now
            await self.wait(cycles)
        else:
            raise AssertionError(f"not quiet within {limit} cycles")
        assert self.all("gone_good") + self.all("gone_bad") == sum(map(len, self.jobs)), "each job is told of once"
        arrived = self.all("sent") - self.all("lost") + self.all("doubled") + self.wilds
        assert self.counts().total() == arrived, f"{arrived} packets came, {self.counts()}"
        assert self.all("stray") == 0, "the bus was asked for what is no memory of the node"

    def told(self, memory: bytes, written: int) -> dict[Any, Told]:
        """Completions of a node by (source, number) or tag; each message has one at most."""
        found: dict[Any, Told] = {}
        for k in range(written):
            entry = Completion.read(memory[64 * k : 64 * k + 64])
            assert entry.sequence == k + 1
            assert entry.kind in (Kind.MESSAGE, Kind.ERROR)
            source, number, process, value = (entry.reserved1 >> 16 * part & 0xFFFF for part in range(4))
            key = entry.tag if entry.reserved0 == rdma.GET else (source, number)
            assert key not in found, f"{key} was told of twice"
            failed = entry.kind == Kind.ERROR
            assert failed == bool(entry.status & Status.INCOMPLETE)
            found[key] = Told(failed, bool(entry.status & Status.TIMEOUT), entry.bytes, entry.reserved0, process, value)
        return found

    def check_ring(self, node: int, memory: bytes) -> None:
        """Each descriptor has its completion, in the order of the ring."""
        bad, first = 0, max(0, len(self.jobs[node]) - RING_ENTRIES)
        for k in range(first, len(self.jobs[node])):
            at = GONE + k % RING_ENTRIES * 64
            entry = Completion.read(memory[at : at + 64])
            assert (entry.sequence, entry.tag) == (k + 1, self.jobs[node][k])
            assert entry.kind in (Kind.PACKET_SENT, Kind.ERROR)
            assert (entry.last_packet_ns > 1000) == (entry.kind == Kind.PACKET_SENT)
            bad += entry.kind == Kind.ERROR
        assert first or bad == self.each("gone_bad")[node]

    async def check(self, *, all_good: bool = True) -> Counter[str]:
        """Every byte of every memory, and every completion. Returns how messages ended: good, failed, unseen."""
        memories, written = await self.memories(), self.each("written")
        assert max(written) <= ENTRIES
        ended = Counter[str]()
        for node in range(NODES):
            self.check_ring(node, memories[node])
            told = self.told(memories[node], written[node])
            wanted = bytearray(self.images[node])
            wanted[: ENTRIES_PAGES * PAGE] = memories[node][: ENTRIES_PAGES * PAGE]
            for message in self.messages:
                if message.to != node:
                    continue
                end, begin = told.pop(message.key, None), ENTRIES_PAGES * PAGE + message.at
                place = slice(begin, begin + len(message.data))
                assert end is None or (end.kind, end.process) == (message.kind, message.process), message.key
                if end is None or end.failed:
                    ended["unseen" if end is None else "failed"] += 1
                    wanted[place] = memories[node][place]  # of this nothing is said
                    continue
                ended["good"] += 1
                wanted[place] = message.data
                assert (end.bytes, end.value) == (len(message.data), message.value), message.key
            assert not told, f"node {node} was told of what no one sent: {told}"
            if bytes(wanted) != memories[node]:
                wrong = [at for at in range(MEMORY) if wanted[at] != memories[node][at]]
                raise AssertionError(
                    f"node {node}: {len(wrong)} bytes are not what they must be, from {wrong[0] - ENTRIES_PAGES * PAGE:#x} to {wrong[-1] - ENTRIES_PAGES * PAGE:#x}"
                )
            self.images[node] = wanted
            ended += self.check_sends(node)
        if all_good:
            assert set(ended) <= {"good"}, ended
        return ended

    def payloads(self, node: int) -> list[tuple[bytes, dict[str, int]]]:
        """What went to CLOPs of a node, each with its sideband, as it stood when memories() was asked for."""
        lines = [line for line in Path("payloads.hex").read_text(encoding="utf-8").split() if not line.startswith(("@", "//"))]
        count, found, data = self.each("logged")[node], [], b""
        assert count <= LOG_WORDS
        before: dict[str, int] | None = None
        for line in lines[node * LOG_WORDS :][:count]:
            rest, word = int(line, 16), {}
            for name, width in LOG_FIELDS:
                word[name], rest = rest & (1 << width) - 1, rest >> width
            size = word["keep"].bit_count()
            assert word["keep"] == (1 << size) - 1, "no holes"
            assert size == 16 or word["last"]
            data += word["data"].to_bytes(16, "little")[:size]
            meta = {name: word[name] for name, _ in LOG_FIELDS[4:]}
            assert before is None or before == meta, "from the first word to the last"
            assert meta["arrival_ns"] == 1000 + meta["start_cycle"]
            assert meta["start_cycle"] + len(data) // 16 < meta["parsed_cycle"] < word["cycle"]
            before = None if word["last"] else meta
            if word["last"]:
                assert meta["bytes"] == len(data)
                found.append((data, meta))
                data = b""
        assert before is None
        return found

    def check_sends(self, node: int) -> Counter[str]:
        """What came is what was sent, of each sender in its order, and goes where its entry says."""
        ended, came = Counter[str](), self.payloads(node)
        assert len(came) == self.each_count("send")[node]
        for source in sorted({meta["source"] for _, meta in came} | {sent.expected()[2] for sent in self.sends}):
            mine = iter([(data, meta) for data, meta in came if meta["source"] == source])
            data, meta = next(mine, (None, {}))
            for sent in self.sends:
                if sent.to != node or sent.expected()[2] != source:
                    continue
                if data != sent.data:
                    ended["unseen"] += 1
                    continue
                assert (meta["route"], meta["clop"], meta["source"], meta["event_count"]) == sent.expected(), (sent, meta)
                ended["good"] += 1
                data, meta = next(mine, (None, {}))
            assert data is None, f"node {node} has what no one sent, or not in this order, from {source}"
        return ended

    def each_count(self, name: str) -> list[int]:
        word = int(self.dut.counts.value)
        return [word >> 32 * (node * len(rdma.COUNTS) + rdma.COUNTS.index(name)) & 0xFFFFFFFF for node in range(NODES)]


async def started(dut: Any) -> RdmaBench:
    bench = RdmaBench(dut)
    await bench.start()
    return bench


async def traffic(bench: RdmaBench, messages: int, largest: int = 9000) -> None:
    """Messages of any kind between any nodes, from and to any byte."""
    rng = bench.rng
    for _ in range(messages):
        node, to = rng.randrange(NODES), rng.randrange(NODES)
        size = min(rng.choice([rng.choice(SIZES), rng.randrange(1, 100), rng.randrange(1, largest)]), largest)
        kind = rng.random()
        if kind < 0.15:
            await bench.event(node, to)
        elif kind < 0.35:
            await bench.send(node, to, min(size, rdma.DATA_BYTES_MAX))
        elif kind < 0.6:
            await bench.put(node, to, size)
        else:
            await bench.get(node, to, size)


async def expire(bench: RdmaBench) -> None:
    """Everything that is open fails."""
    await bench.wait(2 * TICK_CYCLES + 2000)
