# SPDX-License-Identifier: Apache-2.0
"""A node with its driver: ports with frames in and out, registers, one page of memory for all that it writes and reads; its counters and their books."""

from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import pairwise
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import CLOCK_PS, PARAMETERS, Bench
from common.clocks import Domain, Steady
from common.counts import ROWS
from common.events import KEY_MASK, Event, merged_events, merged_packet, parts_filling
from common.frames import FCS_BYTES, LOCAL_IP, LOCAL_MAC, mac_number, udp_frame, with_fcs
from common.host import BUFFERS, Host
from common.wires import XgmiiWireSink, XgmiiWireSource

PORTS, MERGE = PARAMETERS["PORTS"], PARAMETERS.get("MERGE", 1)
PROCESSING, ENCAPSULATION = PARAMETERS.get("PROCESSING", 0), PARAMETERS.get("ENCAPSULATION", 0)
OWN_CLOCKS = bool(PARAMETERS.get("OWN_CLOCKS"))  # of each wire, in either direction; the bus to the host has the core's
CORES_PS = range(4000, CLOCK_PS + 2, 2)  # periods with which nothing is lost
WIRES_PS = range(CLOCK_PS - 2, CLOCK_PS + 4, 2)  # 312 ppm off, more than Ethernet allows
ALL = (1 << PORTS) - 1
HOST, EVENTS, TO_PORT = 0, 1, 8  # routes
EVENT_PORT, RAW_PORT, FORWARD_PORT, NOWHERE_PORT = 6001, 6002, 6003, 6004  # UDP
EVENTS_CLOP, RAW_CLOP = 0, 1
EVENTS_SOURCE = 77
FOREVER = 0xFFFFFFFF
JUMP = 1 << 30

NODE = 0x1000
PATH = ROWS["rx"]["parts"]["path_counts"]
ENDS = ROWS["tx"]["parts"]["sending_ends"]
DROPS = [name for name in PATH if name != "parsed"]
REQUESTS = [name for name in ROWS["reply"]["names"] if name != "replied"]


def destination_of(port: int, index: int) -> dict[str, Any]:
    """What entry `index` of a port's table of destinations is here."""
    return {
        "mac": f"02:00:00:00:{port:02x}:{index:02x}",
        "address": f"10.9.{port}.{index}",
        "port": 7000 + index,
        "source_port": 7100,
    }


@dataclass
class Books:
    """Counters by name: of each port, of each merged link, of events, of the node and of the host's rx and tx."""

    ports: list[dict[str, int]]
    links: list[dict[str, int]]
    events: dict[str, int]
    node: dict[str, int]
    rx: dict[str, int]
    tx: dict[str, int]

    def balance(self, frames: list[int]) -> None:
        """frames: that began on each port. Nothing is in flight."""
        for port, began in zip(self.ports, frames, strict=True):
            assert began == port["parsed"] + sum(port[name] for name in DROPS + REQUESTS), port
            assert port["parsed"] == sum(port[name] for name in ("to_events", "refused", "full", "no_route", "forwarded")), port
            assert port["sent_to"] + port["replied"] == port["framed"] + port["aborted"] + port["destination"], port
        for port, link in zip(self.ports, self.links, strict=True):
            ended = sum(link[name] for name in ("length", "format", "checksum", "full", "packet", "marker"))
            assert port["to_events"] == ended, (port, link)
        sent = sum(port["forwarded"] for port in self.ports) + self.node["from_host"] + self.events["packet"]
        assert sent == sum(port["sent_to"] for port in self.ports) + self.node["to_host"]
        host = sum(self.rx[name] for name in ("stored", "overflow", "disabled", "too_long", "no_buffer"))
        assert self.node["to_host"] == host
        assert self.tx["sent"] == self.node["from_host"] + self.node["host_no_route"]


class NodeHost(Host):
    """merged: packets of M2EGP that came, with the cycle of each packet's last word; raw: (payload, source) of the others."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, clops=2, buffers=32)

    def forget(self) -> None:
        super().forget()
        self.merged: list[tuple[bytes, int]] = []
        self.raw: list[tuple[bytes, int]] = []
        self.written: dict[int, int] = {}  # cycle in which each word of the buffers was written last

    def _land(self, at: int, data: bytes) -> None:
        super()._land(at, data)
        if at >= BUFFERS:
            for place in range(at & ~15, at + len(data), 16):
                self.written[place] = self.bench.cycle

    def _received(self, clop: int, source: int, at: int, payload: bytes) -> None:
        if clop == EVENTS_CLOP:
            assert source == EVENTS_SOURCE
            self.merged.append((payload, self.written[at + len(payload) - 1 & ~15]))
        else:
            self.raw.append((payload, source))


class NodeBench(Bench):
    """With OWN_CLOCKS each direction of each wire has a period and phase of its own, `rx` and `tx` by port, and the core has core_ps; stands: the wires' clocks can be made
    to stand.
    """

    def __init__(self, dut: Any, rng: Random, core_ps: int | None = None, stands: bool = False) -> None:
        if OWN_CLOCKS:
            self.clock_ps = core_ps or rng.choice(CORES_PS)
        super().__init__(dut)
        self.host = NodeHost(self)
        self.registers = self.host.registers

        def clocks(name: str) -> list[Any]:
            if not OWN_CLOCKS:
                return [self] * 4
            return [(Domain if stands else Steady)(dut, f"{name}_{port}", rng.choice(WIRES_PS), rng.random()) for port in range(4)]

        self.rx, self.tx = clocks("rx_clk"), clocks("tx_clk")
        self.sources = [XgmiiWireSource(self.rx[port], f"xgmii_{port}") for port in range(PORTS)]
        for port in range(PORTS, 4):
            XgmiiWireSource(self.rx[port], f"xgmii_{port}")
        self.sinks = [NamedSink(self.tx[port], port) for port in range(PORTS)]
        self.frames = [0] * PORTS

    # --- set-up ---
    async def begin(self, window: int = FOREVER, flush: int = 100, complete_only: int = 0) -> None:
        for source in self.sources:
            source.clear()
        await self.reset(60)  # longer than what the wire has begun
        for source in self.sources:
            await source.wait()
        await self.reset()
        self.host.forget()
        self.frames = [0] * PORTS
        await self.host.set_up()
        for port in range(PORTS):
            await self.set_up_port(port)
        if MERGE:
            await self.configure(window=window, flush=flush, complete_only=complete_only)

    def port_base(self, port: int) -> int:
        return 0x020 if port == 0 else NODE + 0x100 + 0x40 * (port - 1)

    async def match(self, port: int, index: int, udp_port: int, source: int, route: int, clop: int, enable: int = 1) -> None:
        base = self.port_base(port)
        await self.registers.write(base + 0x20, 0)
        await self.registers.write(base + 0x28, index | enable << 8 | clop << 12 | udp_port << 16 | source << 32 | route << 48)

    async def set_up_port(self, port: int) -> None:
        base, write = self.port_base(port), self.registers.write
        await write(base, mac_number(LOCAL_MAC))
        await write(base + 8, int(IPv4Address(LOCAL_IP)))
        await self.match(port, 0, EVENT_PORT, 0, EVENTS, EVENTS_CLOP)
        await self.match(port, 1, RAW_PORT, 10 + port, HOST, RAW_CLOP)
        await self.match(port, 2, FORWARD_PORT, 3, TO_PORT + (port + 1) % PORTS, RAW_CLOP)  # to the next port's destination 3
        await self.match(port, 3, NOWHERE_PORT, 0, TO_PORT + 7, RAW_CLOP)
        for index in range(4):
            to = destination_of(port, index)
            await write(base + 0x30, int(IPv4Address(to["address"])) | to["port"] << 32 | to["source_port"] << 48)
            await write(base + 0x38, mac_number(to["mac"]) | index << 48 | 1 << 56)

    async def configure(
        self,
        links: int = ALL,
        window: int = FOREVER,
        jump: int = JUMP,
        lapse: int = 0,
        complete_only: int = 0,
        flush: int = 100,
        parts: int = 1,
        table: int = 0,
        forget: int = 0,
    ) -> None:
        write = self.registers.write
        await write(NODE + 0x308, window | lapse << 32)
        await write(NODE + 0x310, jump)
        await write(NODE + 0x318, flush | 0x1C << 32 | EVENTS_CLOP << 48)
        await write(NODE + 0x320, EVENTS_SOURCE)
        await write(NODE + 0x300, links | complete_only << 8 | parts << 9 | table << 10 | forget << 16)

    # --- traffic ---
    def send(self, port: int, frame: bytes, **how: Any) -> None:
        """frame: with its check sequence."""
        self.frames[port] += 1
        self.sources[port].send(frame, **how)

    def send_payload(self, port: int, payload: bytes, udp_port: int = EVENT_PORT) -> None:
        self.send(port, with_fcs(udp_frame(payload, port=udp_port)))

    async def sent_all(self) -> None:
        for source in self.sources:
            await source.wait()
        await self.wait(60)

    async def settle(self) -> None:
        """Until nothing more comes, with buffers returned meanwhile."""
        await self.sent_all()
        before = -1
        while before != (before := self.host.completed + len(self.host.gone)):
            await self.host.release()
            await self.wait(2600)  # the time-out of a buffer and more

    # --- what came ---
    def events(self) -> tuple[list[Event], list[int]]:
        """Of all merged packets, which are as the format says; and the links of each."""
        found: list[Event] = []
        masks: list[int] = []
        for sequence, (data, _) in enumerate(self.host.merged):
            events, filling = merged_events(data)
            assert data == merged_packet(events, filling, sequence=sequence, send_ns=int.from_bytes(data[8:12], "little"))
            assert filling == parts_filling(list(filling[: len(events)]))
            masks += filling[: len(events)]
            for event in events:
                assert event.number == len(found) & 0xFFFF
                found.append(event)
        for before, after in pairwise(found):
            assert 0 < (after.key - before.key & KEY_MASK) < 1 << 39, "not in the order of time"
        return found, masks

    async def row(self, address: int, names: list[str]) -> dict[str, int]:
        return {name: await self.registers.read(address + 8 * k) for k, name in enumerate(names)}

    async def books(self) -> Books:
        rx = await self.row(0x800, ROWS["rx"]["names"])
        tx = await self.row(0x900, ROWS["tx"]["names"])
        ports = [rx | await self.row(0x980, ROWS["reply"]["names"]) | {name: tx[name] for name in ENDS}]
        for port in range(1, PORTS):
            base = NODE + 0x400 + 0x200 * (port - 1)
            own = (
                await self.row(base, PATH)
                | await self.row(base + 0x100, ROWS["reply"]["names"])
                | await self.row(base + 0x180, ENDS)
            )
            ports.append(own)
        for port in range(PORTS):
            ports[port] = {**ports[port], **await self.row(NODE + 0xA00 + 0x40 * port, ROWS["port"]["names"])}
        links = [await self.row(NODE + 0xB00 + 0x80 * port, ROWS["merge"]["names"]) for port in range(PORTS)]
        events = await self.row(NODE + 0xD00, ROWS["events"]["names"])
        return Books(ports, links, events, await self.row(NODE + 0xD40, ROWS["node"]["names"]), rx, tx)

    async def balanced(self) -> Books:
        books = await self.books()
        books.balance(self.frames)
        assert self.host.lost == books.rx["no_buffer"] + books.rx["overflow"]
        return books


class NamedSink(XgmiiWireSink):
    """Frames out of one port."""

    def __init__(self, bench: Bench, port: int) -> None:
        self.prefix = f"xgmii_{port}"
        super().__init__(bench)
        cocotb.start_soon(self._forget())

    async def _forget(self) -> None:
        """A frame that a reset cuts."""
        rises = RisingEdge(self.bench.dut.rst)
        while True:
            await rises
            self.taken = None
            self.seen.clear()

    def _take(self, control: int, word: bytes, place: int) -> None:
        if self.bench.dut.rst.value == 0:
            super()._take(control, word, place)

    async def next(self) -> bytes:
        (seen,) = await self.frames(1, 20_000)
        frame = seen.frame[:-FCS_BYTES]
        assert (seen.bad, seen.frame) == (False, with_fcs(frame))
        return frame
