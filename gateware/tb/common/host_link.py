# SPDX-License-Identifier: Apache-2.0
"""A host at the other end of an Ethernet cable, for nic_eth: it serves the NIC's memory and reaches its registers by frames, as docs/design/gateware-board.md says.

It loses and spoils as many frames as it is told, in both directions, and has all of them sent again.
"""

import struct
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import Timer
from cocotb.utils import get_sim_time

from common.bench import CLOCK_1G_PS, Bench
from common.clocks import Steady
from common.frames import FCS_BYTES, FRAME_BYTES_MIN, mac_number, with_fcs
from common.wires import GmiiWireSink, GmiiWireSource

STATION, HOST = "02:00:00:00:00:01", "06:11:22:33:44:55"
ETHERTYPE, VERSION = 0x88B5, 1
OPEN, DATA = 1, 2
HEADER = struct.Struct("<6s6sHBBIHH")
WRITE, READ, REGISTER_ANSWER, INTERRUPT, READ_ANSWER, REGISTER_WRITE, REGISTER_READ = range(1, 8)
FAILED = 1 << 59
PAGE_BYTES = 4096
RETRY_NS = 40_000


def mac_bytes(mac: str) -> bytes:
    return mac_number(mac).to_bytes(6, "big")


def record(kind: int, address: int = 0, size: int = 0, tag: int = 0, failed: bool = False) -> bytes:
    return (address | size << 40 | tag << 52 | FAILED * failed | kind << 60).to_bytes(8, "little")


class EthernetBench(Bench):
    """nic_eth with a wire and a host. Memory is given out by `memory`, found and checked by its bus address.

    lose: whether a frame is lost, asked for each in both directions; latency_ns: bounds of the time until a read is answered; spoil: given a read's address says what
    becomes of it: None (good), "failed", "cut" (the frame ends before it does), or "long" (of more bytes than it asked for).
    """

    clock_ps = 16_000
    COUNTERS = (
        *("count_taken", "count_opened", "count_answer", "drop_bad", "drop_full", "drop_number", "drop_session", "drop_foreign"),
        *("count_retry", "count_malformed", "count_refused"),
    )

    def __init__(self, dut: Any, rng: Random, latency_ns: tuple[int, int] = (200, 3000)) -> None:
        super().__init__(dut, self.COUNTERS)
        self.rng, self.latency_ns = rng, latency_ns
        self.lose: Callable[[], bool] = lambda: False
        self.spoil: Callable[[int], str | None] = lambda address: None
        self.regions: list[tuple[int, bytearray]] = []
        self.next_address = 0x12_3450_0000
        self.written: list[tuple[int, bytes]] = []  # each request, in order
        self.interrupts: list[int] = []  # how many writes had come before each
        self.on_write: Callable[[int, bytes], None] = lambda address, data: None
        self.came: Counter[str] = Counter()  # frames of the NIC: taken, again, answer
        self.frames_sent = 0  # that reached the NIC's pins
        self.open = False
        self.wire_in = GmiiWireSource(self.wire("wire_rx_clk", "wire"))
        self.wire_out = GmiiWireSink(self.wire("wire_tx_clk", "wire"))
        self.to_nic = GmiiWireSource(self.wire("host_rx_clk", "host"))
        self.from_nic = GmiiWireSink(self.wire("host_tx_clk", "host"))
        cocotb.start_soon(self._listen())
        cocotb.start_soon(self._retry())

    def wire(self, clock: str, gmii: str) -> Steady:
        return Steady(self.dut, clock, CLOCK_1G_PS + self.rng.choice([-2, 0, 2]), self.rng.random(), gmii)

    async def begin(self) -> None:
        await self.reset()
        await self.open_session()

    async def open_session(self) -> None:
        """A new one, which is a reset of the NIC."""
        self.session = self.rng.getrandbits(32)
        self.number = self.expected = self.acknowledged = 0
        self.unacknowledged: deque[tuple[int, bytes]] = deque()
        self.progress_ns = get_sim_time("ns")
        self.values: deque[tuple[bool, int]] = deque()
        self.open = False
        for _ in range(100):
            self._send(OPEN, 0, b"")
            for _ in range(20):
                await self.wait(100)
                if self.open:
                    return
        raise AssertionError("the NIC does not open a session")

    # --- frames ---
    def _send(self, flags: int, number: int, body: bytes) -> None:
        header = HEADER.pack(
            mac_bytes(STATION),
            mac_bytes(HOST),
            int.from_bytes(ETHERTYPE.to_bytes(2, "big"), "little"),
            VERSION,
            flags,
            self.session,
            number,
            self.expected,
        )
        frame = with_fcs((header + body).ljust(FRAME_BYTES_MIN, b"\0"))
        if self.lose():
            if self.rng.random() < 0.5:
                return  # the cable
            spoilt = bytearray(frame)
            spoilt[self.rng.randrange(len(spoilt))] ^= 1 << self.rng.randrange(8)
            frame = bytes(spoilt)
        self.send_raw(frame)

    def send_raw(self, frame: bytes) -> None:
        """frame: with its check sequence."""
        self.frames_sent += 1
        self.to_nic.send(frame)

    def post(self, body: bytes) -> None:
        """Records, which arrive."""
        self.unacknowledged.append((self.number, body))
        self._send(DATA, self.number, body)
        self.number = (self.number + 1) & 0xFFFF

    async def _retry(self) -> None:
        while True:
            await Timer(RETRY_NS // 4, "ns")
            if self.open and self.unacknowledged and get_sim_time("ns") - self.progress_ns > RETRY_NS:
                self.progress_ns = get_sim_time("ns")
                for number, body in self.unacknowledged:
                    self._send(DATA, number, body)

    async def _listen(self) -> None:
        while True:
            await self.wait(8)
            while self.from_nic.seen:
                seen = self.from_nic.seen.popleft()
                assert not seen.bad
                assert seen.frame == with_fcs(seen.frame[:-FCS_BYTES])
                if not self.lose():
                    self._take(seen.frame[:-FCS_BYTES])

    def _take(self, frame: bytes) -> None:
        to, sender, ethertype, version, flags, session, number, acknowledged = HEADER.unpack_from(frame)
        assert (to, sender, ethertype.to_bytes(2, "little"), version) == (
            mac_bytes(HOST), mac_bytes(STATION), ETHERTYPE.to_bytes(2, "big"), VERSION,
        )  # fmt: skip
        if session != self.session:
            return
        self.open = True
        while self.unacknowledged and (acknowledged - self.unacknowledged[0][0] - 1) & 0xFFFF < 0x8000:
            self.unacknowledged.popleft()
            self.progress_ns = get_sim_time("ns")
        if not flags & DATA:
            self.came["answer"] += 1
            return
        if number == self.expected:
            self.came["taken"] += 1
            self.expected = (self.expected + 1) & 0xFFFF
            self._take_records(frame[HEADER.size :])
        else:
            self.came["again"] += 1
        self._send(0, self.number, b"")

    def _take_records(self, body: bytes) -> None:
        at = 0
        while at < len(body):
            head = int.from_bytes(body[at : at + 8], "little")
            at += 8
            kind, size, address, tag = head >> 60, head >> 40 & 0xFFF, head & (1 << 40) - 1, head >> 52 & 0x7F
            if kind == WRITE:
                lane = address % 16
                words = (lane + size + 15) // 16
                self._write_memory(address, body[at + lane : at + lane + size])
                at += 16 * words
            elif kind == READ:
                memory, place = self.find(address, size, "read")
                cocotb.start_soon(self._answer(address, tag, bytes(memory[place : place + size]), self.session))
            elif kind == REGISTER_ANSWER:
                self.values.append((bool(head & FAILED), int.from_bytes(body[at : at + 8], "little")))
                at += 8
            elif kind == INTERRUPT:
                self.interrupts.append(len(self.written))
            else:
                assert not any(body[at - 8 :]), f"record of kind {kind}"
                break

    # --- memory ---
    def memory(self, size: int) -> tuple[int, bytearray]:
        """Memory of `size`, a power of two from a page on, that nothing lies beside: its bus address and its bytes."""
        address = -(-self.next_address // size) * size
        self.next_address = address + 2 * size
        self.regions.append((address, bytearray(size)))
        return self.regions[-1]

    def find(self, address: int, size: int, what: str) -> tuple[bytearray, int]:
        assert address // PAGE_BYTES == (address + size - 1) // PAGE_BYTES, f"a {what} at {address:#x} crosses a page"
        for base, memory in self.regions:
            if base <= address and address + size <= base + len(memory):
                return memory, address - base
        raise AssertionError(f"stray {what} at {address:#x}")

    def _write_memory(self, address: int, data: bytes) -> None:
        memory, place = self.find(address, len(data), "write")
        memory[place : place + len(data)] = data
        self.written.append((address, data))
        self.on_write(address, data)

    async def _answer(self, address: int, tag: int, data: bytes, session: int) -> None:
        await Timer(self.rng.randint(*self.latency_ns), "ns")
        if session != self.session:
            return
        spoiled = self.spoil(address)
        words = data.ljust(-(-len(data) // 16) * 16, b"\0")
        body = record(READ_ANSWER, size=len(data), tag=tag, failed=spoiled == "failed") + words
        if spoiled == "cut":  # the shortest frame has 36 B of records
            body = body[: self.rng.choice([5, 6, len(body) // 8 - 1]) * 8]
        if spoiled == "long":
            body = record(READ_ANSWER, size=len(data) + 16, tag=tag) + words + bytes(16)
        self.post(body)

    # --- registers ---
    async def write(self, offset: int, value: int) -> None:
        self.post(record(REGISTER_WRITE, offset) + value.to_bytes(8, "little"))

    async def read(self, offset: int) -> int:
        failed, value = await self.ask(offset)
        assert not failed, f"register {offset:#x} cannot be read"
        return value

    async def ask(self, offset: int) -> tuple[bool, int]:
        self.post(record(REGISTER_READ, offset))
        await self.wait_until(lambda: bool(self.values), 200_000, f"register {offset:#x}", step=8)
        return self.values.popleft()
