# SPDX-License-Identifier: Apache-2.0
"""km3_node: floors on every port, their data in host memory, a CLOP a kind; slow control from the TX ring; time from a pulse a second; everything by registers. Every
test ends with the books."""

from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, pauses, random_numbers
from common.clocks import Steady
from common.counts import ROWS
from common.host import Host
from common.km3 import DOWN, K28_5, Frame, Geometry, Tower, any_slots
from common.km3_link import FloorSource, Link

PORTS, LINE_MBPS = PARAMETERS.get("PORTS", 2), PARAMETERS.get("LINE_MBPS", 800)
OPTICAL_WORDS, FRAMES_PER_S = PARAMETERS.get("OPTICAL_WORDS", 90), 50000
WORD_PS, CYCLES_PER_S = 20 * 1_000_000 // LINE_MBPS, 3000
TOGETHER = max(n for n in (1, 2, 3, 6) if n * OPTICAL_WORDS <= 700)
GEOMETRY = Geometry(LINE_MBPS * 50_000 // FRAMES_PER_S, FRAMES_PER_S, (*(OPTICAL_WORDS,) * 6, 20, 20, 18, 40), TOGETHER)
KM3, PORT, EXPRESS, COUNT, NODE_COUNT = 0x1000, 0x1100, 0x1200, 0x1400, 0x1C00
SECOND = 0xFEDC_0000
CLOPS = (2, 0, 3, 1)  # of modules, hydrophones, instruments, slow control


def source_of(port: int, kind_class: int) -> int:
    return 0x100 * (port + 1) + kind_class


class NodeBench(Bench):
    """Floors are one above the number of their port."""

    def __init__(self, dut: Any) -> None:
        rng = random_numbers()
        self.rng = rng
        self.ref = Steady(dut, "ref_clk", WORD_PS, rng.random())
        Steady(dut, "help_clk", WORD_PS * 41 // 40, rng.random())
        for port in range(PORTS):
            Steady(dut, f"rx_clk_{port}", WORD_PS, rng.random())
        super().__init__(dut)
        self.host = Host(self)
        self.read, self.write = self.host.registers.read, self.host.registers.write
        self.floors = [
            FloorSource(getattr(dut, f"rx_clk_{port}"), getattr(dut, f"rx_bits_{port}"), GEOMETRY) for port in range(PORTS)
        ]
        dut.pps.value = 0

    async def pulse(self) -> int:
        """The cycle of the reference in which it rises."""
        self.dut.pps.value = 1
        rose = self.ref.cycle
        await self.ref.wait(3)
        self.dut.pps.value = 0
        return rose

    async def seconds(self) -> int:
        """That have begun since the pulse that set the time, as the register has it; the links' clock must say the same."""
        least = (self.ref.cycle - self.pulsed - 40) // CYCLES_PER_S
        told = await self.read(KM3 + 0x10)
        begun = told - (1 << 32 | SECOND)
        assert least <= begun <= (self.ref.cycle - self.pulsed) // CYCLES_PER_S
        return begun

    async def begin(self, slice_frames: int = 5, reset_cycles: int = 40) -> list[Tower]:
        await self.reset(reset_cycles)
        self.host.forget()
        await self.host.set_up()
        for port in range(PORTS):
            await self.set_up_port(port, port + 1)
        for port in range(PORTS):
            for _ in range(100):
                if await self.read(PORT + 0x40 * port + 0x28) & 3 == 3:
                    break
                await self.wait(200)
            else:
                raise AssertionError("the links are not up")
        await self.write(KM3 + 8, SECOND)
        await self.ref.wait(20)
        self.pulsed = await self.pulse()
        await self.ref.wait(150)
        for floor in self.floors:
            floor.begin(SECOND)
        self.up = await self.counts()
        return [await self.run(port, 7 + port, slice_frames) for port in range(PORTS)]

    async def set_up_port(self, port: int, floor: int) -> None:
        at = PORT + 0x40 * port
        await self.write(at + 0x18, sum(clop << 4 * k for k, clop in enumerate(CLOPS)))
        await self.write(at + 0x20, sum(source_of(port, k) << 16 * k for k in range(4)))
        await self.write(at, 1 | floor << 8 | 9 << 16)

    async def run(self, port: int, run: int, slice_frames: int) -> Tower:
        at = PORT + 0x40 * port
        await self.write(at + 8, SECOND)
        await self.write(at + 0x10, run | slice_frames << 32)
        return Tower(GEOMETRY, run, SECOND, slice_frames)

    async def counts(self) -> list[dict[str, int]]:
        """Of each port, then of the node."""
        names = ROWS["km3"]["names"]
        found = [{name: await self.read(COUNT + 0x200 * port + 8 * k) for k, name in enumerate(names)} for port in range(PORTS)]
        return [*found, await self.node_counts()]

    async def node_counts(self) -> dict[str, int]:
        return {name: await self.read(NODE_COUNT + 8 * k) for k, name in enumerate(ROWS["km3_node"]["names"])}

    def frame(self, port: int, share: float) -> Frame:
        return Frame(any_slots(self.rng, GEOMETRY, share), floor=port + 1, tower=9)

    async def finish(self, *, returns: bool = True) -> tuple[list[dict[str, int]], dict[str, int]]:
        """What ports and node counted, when nothing is in flight; the books balance."""
        for floor in self.floors:
            await floor.drain()
        before = -1
        while returns and before != (before := self.host.completed + len(self.host.gone)):
            await self.host.release()
            await self.wait(2600)  # the time-out of a buffer and more
        *ports, node = await self.counts()
        rx = {name: await self.read(0x800 + 8 * k) for k, name in enumerate(ROWS["rx"]["names"])}
        tx = {name: await self.read(0x900 + 8 * k) for k, name in enumerate(ROWS["tx"]["names"])}
        for port, floor in zip(ports, self.floors, strict=True):
            drops = sum(count for name, count in port.items() if name.startswith("drop_"))
            assert len(floor.sent) == port["count_good"] + drops, port
            assert (
                port["count_good"] == port["placed"] + port["unplaced"] + port["control_only"] + port["overrun"] + port["full"]
            ), port
            assert port["packet"] == port["queue_full"] + port["no_route"] + port["forwarded"], port
        assert node["to_host"] == sum(port["forwarded"] for port in ports)
        assert node["to_host"] == sum(rx[name] for name in ("stored", "overflow", "disabled", "too_long", "no_buffer")), rx
        assert tx["sent"] == node["from_host"] + node["host_no_route"]
        assert node["from_host"] == sum(port["to_floor"] + port["to_floor_cut"] + port["to_floor_full"] for port in ports)
        return ports, node


@cocotb.test
async def every_kind_of_every_floor(dut: Any) -> None:
    """Every byte is in the CLOP that the register of its kind names, in order; registers say how each link is."""
    bench = NodeBench(dut)
    towers = await bench.begin()
    bench.host.write_pause = pauses(bench.rng, 0.2)
    for port, floor in enumerate(bench.floors):
        for _ in range(9 if SHORT else 20):
            floor.queue.append(bench.frame(port, bench.rng.choice((0, 0.4, 0.8))))
        floor.queue.append(bench.frame(port, 1))
    ports, node = await bench.finish()
    for port, (tower, floor) in enumerate(zip(towers, bench.floors, strict=True)):
        for frame in floor.sent:
            tower.take(frame)
        for kind_class, clop in enumerate(CLOPS):
            wanted = [packet.data for packet in tower.packets if packet.kind_class == kind_class]
            assert [
                data for at, source, data in bench.host.received if (at, source) == (clop, source_of(port, kind_class))
            ] == wanted
        assert ports[port]["packet"] == ports[port]["forwarded"] == len(tower.packets)
        head = await bench.read(PORT + 0x40 * port + 0x30)
        last = floor.sent[-1]
        assert head == 3 << 56 | port + 1 << 48 | last.second << 16 | last.number
    assert len(bench.host.received) == sum(len(tower.packets) for tower in towers)
    times = {packet.arrival_ns for tower in towers for packet in tower.packets}
    assert {at for buffer in bench.host.arrivals_ns for at in buffer} <= times
    await bench.seconds()
    assert await bench.read(KM3) == PORTS | TOGETHER << 8 | LINE_MBPS << 16 | FRAMES_PER_S << 32
    assert (node["gps_pulse"], node["gps_period"]) == (1, 0)


@cocotb.test
async def floors_that_go_wrong(dut: Any) -> None:
    """Bad frames on one port, another floor on the next: what is good of each is whole, and nothing of one is another's."""
    bench = NodeBench(dut)
    towers = await bench.begin()
    for port, floor in enumerate(bench.floors):
        for number in range(10):
            frame = bench.frame(port, 0.5)
            if port == 0 and number % 3 == 1:
                frame.spoiled = bench.rng.randrange(1, GEOMETRY.end)
            if port == 1 and number % 4 == 2:
                frame.floor = 7
            floor.queue.append(frame)
    ports, _ = await bench.finish()
    for port, (tower, floor) in enumerate(zip(towers, bench.floors, strict=True)):
        for frame in floor.sent:
            if frame.spoiled is None and frame.floor == port + 1:
                tower.take(frame)
        came = [data for _, source, data in bench.host.received if source >> 8 == port + 1]
        assert sorted(came) == sorted(packet.data for packet in tower.packets)
        assert ports[port]["missing"] == tower.counts["missing"]
    assert ports[0]["count_good"] == 7
    assert (ports[1]["drop_floor"], ports[1]["count_good"]) == (2, 8)


@cocotb.test
async def a_host_that_returns_nothing(dut: Any) -> None:
    """Buffers run out: what has no buffer is counted, and what came before is whole. Then it returns them, and goes on."""
    bench = NodeBench(dut)
    towers = await bench.begin()
    for clop in range(4):  # two buffers each
        await bench.write(0x200 + 0x40 * clop, 0)
        await bench.write(0x218 + 0x40 * clop, 12288 | 2 << 32)
        await bench.write(0x200 + 0x40 * clop, 1)
    for port, floor in enumerate(bench.floors):
        floor.queue += [bench.frame(port, 1) for _ in range(14)]
    await bench.finish(returns=False)
    rx = {name: await bench.read(0x800 + 8 * k) for k, name in enumerate(ROWS["rx"]["names"])}
    assert rx["no_buffer"] > 0
    for port, (tower, floor) in enumerate(zip(towers, bench.floors, strict=True)):
        for frame in floor.sent:
            tower.take(frame)
        wanted = iter(sorted(packet.data for packet in tower.packets))
        for data in sorted(data for _, source, data in bench.host.received if source >> 8 == port + 1):
            assert any(data == sent for sent in wanted)


@cocotb.test
async def slow_control_from_the_ring(dut: Any) -> None:
    """To each floor its own, in order; a link that is begun anew holds up no other; a port that there is not is counted."""
    bench = NodeBench(dut)
    await bench.begin()
    links = [Link(dut.ref_clk, getattr(dut, f"tx_codes_{port}"), GEOMETRY) for port in range(PORTS)]
    await bench.write(PORT, 4 | 1 << 8 | 9 << 16)  # port 0: no link meanwhile
    sent = [b""] * PORTS
    for tag in range(12):
        port = bench.rng.randrange(PORTS)
        payload = bytes(bench.rng.randrange(256) for _ in range(28))
        sent[port] += payload
        await bench.host.post(payload, port, tag)
        await bench.wait(100)
    if PORTS < 4:
        await bench.host.post(bytes(28), PORTS, 99)
    await bench.ref.wait(4 * GEOMETRY.frame_words)
    assert [link.control() for link in links[1:]] == sent[1:]
    assert links[0].control() == b""
    await bench.write(PORT, 1 | 1 << 8 | 9 << 16)
    await bench.ref.wait(8 * GEOMETRY.frame_words)
    assert [link.control() for link in links] == sent
    ports, node = await bench.finish()
    assert node["host_no_route"] == int(PORTS < 4)
    assert sum(port["to_floor"] for port in ports) == 12


@cocotb.test
async def express_codes_by_registers(dut: Any) -> None:
    """Down each port its own, with the time in which it left; up until the host takes them. Every register of a port is its own."""
    bench = NodeBench(dut)
    await bench.begin()
    links = [Link(dut.ref_clk, getattr(dut, f"tx_codes_{port}"), GEOMETRY) for port in range(PORTS)]
    await bench.ref.wait(2 * GEOMETRY.frame_words)
    for turn in range(3):
        for port in range(PORTS):
            at, code = EXPRESS + 0x20 * port, 0x35 + 16 * port + turn
            await bench.write(at, code)
            for _ in range(20):
                if not await bench.read(at) & 0x100:
                    break
            assert await bench.read(at) == code
            seen = links[port].express()
            assert [one for one, _ in seen] == [code - turn + k for k in range(turn + 1)]
            begins = next(at for at, word in enumerate(links[port].words) if word == (1, DOWN << 8 | K28_5))
            frames, words = divmod(seen[-1][1] - begins, GEOMETRY.frame_words)
            number = links[port].words[begins + 1][1] + frames
            assert await bench.read(at + 8) == SECOND << 32 | number << 16 | words
    for port, floor in enumerate(bench.floors):
        floor.express = {20 + 3 * k: 0x80 + 16 * port + k for k in range(port + 2)}
        await floor.drain()
    for port, floor in enumerate(bench.floors):
        at = EXPRESS + 0x20 * port
        times = []
        for code, gone in floor.codes:
            assert await bench.read(at + 0x10) == 0x100 | code
            came = await bench.read(at + 0x18)
            assert came >> 32 == SECOND
            times.append((came >> 16 & 0xFFFF) * GEOMETRY.frame_words + (came & 0xFFFF) - gone)
            await bench.write(at + 0x10, 1 << 16)
        assert len(times) > port
        assert len(set(times)) == 1
        assert await bench.read(at + 0x10) & 0x100 == 0
    ports, _ = await bench.finish()
    for port, floor in zip(ports, bench.floors, strict=True):
        assert (port["express_sent"], port["express_taken"]) == (3, len(floor.codes))
        assert (port["express_dark"], port["express_refused"], port["express_unread"]) == (0, 0, 0)


@cocotb.test
async def time_from_the_gps(dut: Any) -> None:
    """Pulses that are missing, too much or a cycle off are told, and the second goes on by the links' clock; one that the host sets anew is an error of every port's link."""
    bench = NodeBench(dut)
    await bench.begin()
    # A second without a pulse is over, and was told.
    await bench.ref.wait(max(4, bench.pulsed + CYCLES_PER_S + 50 - bench.ref.cycle))
    before = await bench.node_counts()
    assert (before["gps_pulse"], before["gps_period"], before["gps_silent"]) == (1, 0, 1)
    number = (bench.ref.cycle - bench.pulsed) // CYCLES_PER_S + 2
    for places, told in (
        ((0,), {}),
        ((0, 700), {"gps_period": 1}),
        ((), {}),  # one came since the last
        ((), {"gps_silent": 1}),
        ((1,), {"gps_period": 1}),
        ((-1,), {"gps_period": 1}),
        ((0,), {}),
    ):
        for place in places:
            await bench.ref.wait(bench.pulsed + number * CYCLES_PER_S + place - bench.ref.cycle)
            await bench.pulse()
        await bench.ref.wait(bench.pulsed + number * CYCLES_PER_S + 1000 - bench.ref.cycle)
        after = await bench.node_counts()
        wanted = {"gps_pulse": len(places)} | told
        assert {name: after[name] - before[name] for name in ("gps_pulse", "gps_period", "gps_silent")} == {
            name: wanted.get(name, 0) for name in ("gps_pulse", "gps_period", "gps_silent")
        }, (number, places)
        assert await bench.seconds() == number
        before, number = after, number + 1
    await bench.write(KM3 + 8, 77)
    await bench.ref.wait(CYCLES_PER_S // 4)
    await bench.pulse()
    await bench.ref.wait(60)
    ports, node = await bench.finish()
    assert node["gps_pulse"] - before["gps_pulse"] == node["gps_period"] - before["gps_period"] == 1
    assert [port["error_gps"] for port in ports] == [1] * PORTS


@cocotb.test
async def a_reset_of_one_cycle(dut: Any) -> None:
    """With packets everywhere, held up by memory: after it nothing is left of them, and all is well."""
    bench = NodeBench(dut)
    await bench.begin()
    for cycles in (1, 1, 2):
        for port, floor in enumerate(bench.floors):
            floor.queue += [bench.frame(port, 1) for _ in range(4)]
        bench.host.write_pause = lambda: True
        for floor in bench.floors:
            await floor.drain()
            floor.forget()
            floor.second = None
        bench.host.write_pause = pauses(bench.rng, 0.2)
        towers = await bench.begin(reset_cycles=cycles)
        for port, floor in enumerate(bench.floors):
            floor.queue += [bench.frame(port, 0.5) for _ in range(3)]
        ports, _ = await bench.finish()
        for port, (tower, floor) in enumerate(zip(towers, bench.floors, strict=True)):
            for frame in floor.sent:
                tower.take(frame)
            came = [data for _, source, data in bench.host.received if source >> 8 == port + 1]
            assert sorted(came) == sorted(packet.data for packet in tower.packets)
            assert ports[port]["forwarded"] == len(tower.packets)
            floor.forget()
