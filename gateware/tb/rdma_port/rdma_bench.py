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
ENTRIES_PAGES = 16  # of the completion queue
ENTRIES = ENTRIES_PAGES * PAGE // 64
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
            "key_write",
            "region_write",
            "entry_write",
            "job_push",
        ):
            getattr(dut, name).value = 0
        dut.seed.value = self.rng.getrandbits(32)
        dut.cfg_completions.value, dut.cfg_completion_mask.value = 0, ENTRIES - 1
        self.wild = StreamSource(self, "wild")
        self.pages = [self.rng.sample(range(MEMORY // PAGE), k=MEMORY // PAGE) for _ in range(NODES)]
        self.images = [bytearray(MEMORY) for _ in range(NODES)]  # as its device addresses have it
        self.nonces = [[self.rng.getrandbits(32) for _ in range(8)] for _ in range(NODES)]
        self.numbers: Counter[tuple[int, int]] = Counter()  # messages from, to
        self.free = [WINDOWS[READ_WRITE][2]] * NODES
        self.tags = 0
        self.jobs = [0] * NODES
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
        self.dut.job.value = rdma.job(**{"tag": self.tags} | fields)
        self.dut.job_push.value = 1 << node
        self.jobs[node] += 1
        await self.wait(1)
        self.dut.job_push.value = 0

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
        names = ("jobs_waiting", "gone_good", "gone_bad", "sent", "written", "counts", "reply_refused", "refused")
        before: list[int] = []
        for _ in range(0, limit, cycles):
            now = [int(getattr(self.dut, name).value) for name in names]
            if now == before and now[0] == 0:
                break
            before = now
            await self.wait(cycles)
        else:
            raise AssertionError(f"not quiet within {limit} cycles")
        assert self.all("gone_good") + self.all("gone_bad") == sum(self.jobs), "each job is told of once"
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

    async def check(self, *, all_good: bool = True) -> Counter[str]:
        """Every byte of every memory, and every completion. Returns how messages ended: good, failed, unseen."""
        memories, written = await self.memories(), self.each("written")
        assert max(written) <= ENTRIES
        ended = Counter[str]()
        for node in range(NODES):
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
        if all_good:
            assert set(ended) <= {"good"}, ended
        return ended


async def started(dut: Any) -> RdmaBench:
    bench = RdmaBench(dut)
    await bench.start()
    return bench
