# SPDX-License-Identifier: Apache-2.0
"""mac_cdc with three clocks of any phase and ratio: line rate without a loss, stamps with the error that is stated, clocks that stand and return, a core that is
too slow. Every frame comes out whole, or is one pulse of one counter."""

from collections import Counter
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge, Timer
from common.bench import SHORT, first_edge, random_numbers
from common.clocks import Domain
from common.frames import FCS_BYTES, FRAME_BYTES_MIN, with_fcs
from common.streams import Packet, StreamSink, StreamSource
from common.wires import GBPS, PREAMBLE_BYTES, START, WIRE_CLOCK_PS, wire_sink, wire_source

DROPS = ("preamble", "control", "oversize", "runt", "fcs", "cut")
ENDS = ("framed", "aborted", "underrun")
PPM_200 = 200e-6
WORD_PS = WIRE_CLOCK_PS if GBPS == 10 else 8 * WIRE_CLOCK_PS  # of eight bytes on the wire
SLOWEST_PS = {10: WORD_PS, 1: 63_600}[GBPS]  # of the core, docs/design/gateware-clocks.md; the clocks are 400 ppm apart besides
CORES_PS = {10: (WORD_PS, 6250, 4000, 3333), 1: (SLOWEST_PS, 20_000, 16_000, 8000, 6400, 4000)}[GBPS]
STAMP_LATE = {10: 0, 1: 1}[GBPS]
SILENCE_CYCLES = 255
SIZES = (60, 61, 63, 64, 65, 67, 68, 100, 257, 1514)
BYTES_MAX = 9018


class Clocks:
    """The module with its three clocks. good: frames that came, as they ought to; bad: how many ended with tuser."""

    def __init__(self, dut: Any, rng: Random, looks_at_wire: bool = True) -> None:
        self.dut, self.rng = dut, rng
        self.core = Domain(dut, "clk", WIRE_CLOCK_PS, rng.random())
        self.rx = Domain(dut, "rx_clk", WIRE_CLOCK_PS, rng.random())
        self.tx = Domain(dut, "tx_clk", WIRE_CLOCK_PS, rng.random())
        dut.gmii_rxd.value = dut.gmii_rx_dv.value = dut.gmii_rx_er.value = 0
        self.wire_in = wire_source(self.rx)
        if looks_at_wire:
            self.wire_out = wire_sink(self.tx)
        self.source = StreamSource(self.core, "s_axis")
        self.sink = StreamSink(self.core, "m_axis", self.take, meta=["m_meta_start_cycle"])
        self.expected: list[bytes] = []
        self.good: list[Packet] = []
        self.bad = self.sent = 0

    async def begin(self, core_ps: float, rx_ppm: float = 0.0, tx_ppm: float = 0.0) -> None:
        """With these periods, from a reset at some moment on."""
        self.core.period_ps = core_ps
        self.rx.period_ps, self.tx.period_ps = WIRE_CLOCK_PS * (1 - rx_ppm), WIRE_CLOCK_PS * (1 - tx_ppm)
        await Timer(self.rng.randrange(1, 100_000), "ps")
        now = self.rng.choice(
            [0, (1 << 16) - self.rng.randrange(2000), (1 << 40) - self.rng.randrange(2000), self.rng.getrandbits(60)]
        )
        self.dut.first_cycle.value = now
        self.dut.rst.value = 1
        self.expected.clear()
        self.good.clear()
        self.bad = self.sent = 0
        await self.core.wait(4)
        self.dut.rst.value = 0
        await self.core.wait(8)
        await self.rx.wait(8)
        await self.tx.wait(8)

    def take(self, packet: Packet) -> None:
        if packet.user:
            self.bad += 1
        else:
            self.good.append(packet)

    def send(self, frame: bytes, **how: Any) -> None:
        """Onto the wire, with its check sequence."""
        self.sent += 1
        self.wire_in.send(frame, **how)

    def send_good(self, size: int) -> None:
        frame = self.rng.randbytes(size)
        self.expected.append(frame)
        self.send(with_fcs(frame))

    def counts(self, names: tuple[str, ...]) -> dict[str, int]:
        return {name: int(getattr(self.dut, name).value) for name in names}

    async def quiet(self) -> None:
        await self.wire_in.wait()
        await self.core.wait(SILENCE_CYCLES + 60)
        await self.rx.wait(40)

    def expect_all(self) -> None:
        assert [packet.data for packet in self.good] == self.expected, "frames lost, changed or out of order"
        assert not any(self.counts(DROPS).values()), self.counts(DROPS)

    def expect_balance(self) -> None:
        """Every frame is delivered or in one counter; what is delivered was sent, in this order."""
        drops = self.counts(DROPS)
        assert len(self.good) + sum(drops.values()) == self.sent, f"{len(self.good)} delivered and {drops} of {self.sent}"
        left = iter(self.expected)
        assert all(packet.data in left for packet in self.good), "a frame that was not sent so, or out of order"


@cocotb.test
async def line_rate_both_ways(dut: Any) -> None:
    """Clocks 400 ppm apart, the core the slow one, or the quick one, or in step: every size back to back, nothing lost, nothing run dry."""
    rng = random_numbers()
    await first_edge(dut, "rx_clk", "tx_clk")
    bench = Clocks(dut, rng)
    for core_ps in CORES_PS[:2] if SHORT else CORES_PS:
        for core_ppm in (-PPM_200,) if SHORT else (-PPM_200, 0.0, PPM_200):
            await bench.begin(core_ps / (1 + core_ppm), rx_ppm=-core_ppm, tx_ppm=-core_ppm)
            sizes = [size for size in SIZES for _ in range(6)] + [BYTES_MAX] * (1 if SHORT or GBPS == 1 else 4)
            rng.shuffle(sizes)
            frames = [rng.randbytes(size) for size in sizes]
            for size, frame in zip(sizes, frames, strict=True):
                bench.send_good(size)
                bench.source.send(Packet(frame))
            seen = await bench.wire_out.frames(len(frames), cycles=400_000)
            await bench.quiet()
            bench.expect_all()
            assert [frame.frame for frame in seen] == [with_fcs(frame) for frame in frames]
            assert bench.counts(ENDS) == {"framed": len(frames), "aborted": 0, "underrun": 0}
            times = sum(PREAMBLE_BYTES + size + FCS_BYTES + 12 for size in sizes[1:])
            taken = seen[-1].end - seen[0].end
            assert taken <= times * (1.001 if GBPS == 10 else 1.0) + 8, f"{taken} byte times for frames of {times}"


@cocotb.test
async def stamps(dut: Any) -> None:
    """A start is stamped with the core's cycle in which it came, at most one early and as many of rx_clk as STAMP_LATE says, never late."""
    rng = random_numbers()
    await first_edge(dut, "rx_clk", "tx_clk")
    bench = Clocks(dut, rng)
    least, greatest = 0.0, -9.0
    for _ in range(2 if SHORT else 8):
        core_ps = rng.choice(CORES_PS) * rng.uniform(0.999, 1.0)
        await bench.begin(core_ps, rx_ppm=rng.uniform(-PPM_200, PPM_200))
        starts: list[tuple[int, float]] = []  # cycle of the core, and part of it
        watcher = cocotb.start_soon(watch_starts(bench, starts))
        for _ in range(30):
            bench.send_good(rng.choice(SIZES[:8]))
            if rng.random() < 0.5:
                await bench.wire_in.wait()
                await Timer(rng.randrange(1, 3 * WIRE_CLOCK_PS), "ps")
        await bench.quiet()
        watcher.cancel()
        bench.expect_all()
        early = 1 + STAMP_LATE * bench.rx.period_ps / bench.core.period_ps
        for packet, (cycle, part) in zip(bench.good, starts, strict=True):
            error = packet.meta["m_meta_start_cycle"] - cycle - part
            least, greatest = min(least, error), max(greatest, error)
            assert -early - 0.01 <= error <= 0.01, f"stamp {error:.2f} cycles after the start"
    dut._log.warning("figure: stamps %.2f to %.2f cycles of the core after the start", least, greatest)


async def watch_starts(bench: Clocks, starts: list[tuple[int, float]]) -> None:
    """When the edge fell that took a start, or a start-of-frame delimiter, from the wire."""
    dut, edge = bench.dut, RisingEdge(bench.dut.rx_clk)
    inside = False
    while True:
        await edge
        if GBPS == 10:
            control, data = int(dut.xgmii_rxc.value), int(dut.xgmii_rxd.value)
            here = any(control >> lane & 1 and data >> 8 * lane & 0xFF == START for lane in (0, 4))
        else:
            valid, data = int(dut.gmii_rx_dv.value), int(dut.gmii_rxd.value)
            here = bool(valid) and not inside and data == 0xD5
            inside = bool(valid) and (inside or here)
        if here:
            starts.append((int(dut.now_cycles.value), since_edge(bench)))


def since_edge(bench: Clocks) -> float:
    """Of a cycle of the core, since its number changed: at the edge itself it has not yet."""
    part = (bench.rx.edge_ps - bench.core.edge_ps) / bench.core.period_ps
    return part if part > 0 else 1.0


@cocotb.test
async def anything_at_any_ratio(dut: Any) -> None:
    """Good and bad frames of any size, with pauses, in both directions."""
    rng = random_numbers()
    await first_edge(dut, "rx_clk", "tx_clk")
    bench = Clocks(dut, rng)
    for _ in range(2 if SHORT else 10):
        core_ps = rng.uniform(3000, SLOWEST_PS * (1 - 2 * PPM_200))
        await bench.begin(core_ps, rx_ppm=rng.uniform(-PPM_200, PPM_200), tx_ppm=rng.uniform(-PPM_200, PPM_200))
        expected = Counter[str]()
        out: list[tuple[bytes, bool]] = []
        for _ in range(40 if SHORT else 120):
            expected += send_any(bench)
            frame, aborts = rng.randbytes(rng.randrange(43, 300)), rng.random() < 0.1
            bench.source.send(Packet(frame, user=int(aborts)))
            out.append((with_fcs(frame.ljust(FRAME_BYTES_MIN, b"\0")), aborts))
            if rng.random() < 0.2:
                await bench.rx.wait(rng.randrange(1, 40))
        seen = await bench.wire_out.frames(len(out), cycles=100_000)
        await bench.quiet()
        bench.expect_balance()
        assert [packet.data for packet in bench.good] == bench.expected
        assert bench.counts(DROPS) == dict.fromkeys(DROPS, 0) | expected
        for frame, (sent, aborts) in zip(seen, out, strict=True):
            assert frame.bad if aborts else frame.frame == sent
        aborted = sum(aborts for _, aborts in out)
        assert bench.counts(ENDS) == {"framed": len(out) - aborted, "aborted": aborted, "underrun": 0}


def send_any(bench: Clocks) -> Counter[str]:
    """Which counter it goes to, if any."""
    rng = bench.rng
    kind = rng.choice(["good"] * 5 + ["fcs", "runt", "control", "preamble", "short"])
    frame = with_fcs(rng.randbytes(rng.choice([*SIZES[:8], rng.randrange(60, 400)])))
    if kind == "good":
        bench.send_good(len(frame) - FCS_BYTES)
        return Counter()
    if kind == "fcs":
        bench.send(frame[:-1] + bytes([frame[-1] ^ 1 << rng.randrange(8)]))
    elif kind == "runt":
        bench.send(with_fcs(rng.randbytes(rng.randrange(10, 59))))
    elif kind == "short":
        bench.send(rng.randbytes(rng.randrange(1, 9)))
        return Counter(runt=1)
    elif kind == "control":
        bench.send(frame, marked=[rng.randrange(len(frame))])
    else:
        bench.send(frame, preamble=bytes([0x55] * 7 + [0x00]))
    return Counter([kind])


@cocotb.test
async def line_clock_stands(dut: Any) -> None:
    """The clock of what comes in stands in mid-frame: that frame ends as bad, is counted once, and the next ones come. That of what goes out: frames wait."""
    rng = random_numbers()
    await first_edge(dut, "rx_clk", "tx_clk")
    bench = Clocks(dut, rng)
    for _ in range(2 if SHORT else 8):
        await bench.begin(rng.choice(CORES_PS))
        out = []
        for _ in range(8 if SHORT else 20):
            for _ in range(rng.randrange(1, 5)):
                send_any(bench)
                frame = rng.randbytes(rng.randrange(60, 400))
                out.append(with_fcs(frame))
                bench.source.send(Packet(frame))
            clock = rng.choice([bench.rx, bench.tx])
            await clock.wait(rng.randrange(1, 100 if GBPS == 10 else 800))
            clock.stop()
            stands = rng.choice([10, 100, SILENCE_CYCLES - 8, SILENCE_CYCLES + 20, 2 * SILENCE_CYCLES])
            await bench.core.wait(stands)
            assert bench.sink.packet is None or clock is bench.tx or stands < SILENCE_CYCLES, "a frame hangs"
            clock.go()
        seen = await bench.wire_out.frames(len(out), cycles=200_000)
        await bench.quiet()
        bench.expect_balance()
        assert bench.sink.packet is None
        assert [frame.frame for frame in seen] == out
        assert bench.counts(ENDS) == {"framed": len(out), "aborted": 0, "underrun": 0}


@cocotb.test
async def core_stands_or_is_too_slow(dut: Any) -> None:
    """What finds no room is lost and counted, never delivered in part; then it goes on."""
    rng = random_numbers()
    await first_edge(dut, "rx_clk", "tx_clk")
    bench = Clocks(dut, rng)
    for _ in range(2 if SHORT else 8):
        core_ps = rng.choice(CORES_PS)
        await bench.begin(core_ps)
        for _ in range(3 if SHORT else 6):
            for _ in range(rng.randrange(10, 40)):
                send_any(bench)
            if rng.random() < 0.5:
                bench.core.period_ps = SLOWEST_PS * rng.uniform(1.2, 6)
                await bench.wire_in.wait()
                bench.core.period_ps = core_ps
            else:
                await bench.rx.wait(rng.randrange(1, 400))
                bench.core.stop()
                await bench.rx.wait(rng.randrange(1, 3000))
                bench.core.go()
            await bench.quiet()
        before = len(bench.good)
        for size in SIZES:
            bench.send_good(size)
        await bench.quiet()
        bench.expect_balance()
        assert len(bench.good) == before + len(SIZES), "it does not go on"


@cocotb.test
async def reset_while_a_clock_stands(dut: Any) -> None:
    """Nothing from before the reset comes out after it, and then it goes on."""
    rng = random_numbers()
    await first_edge(dut, "rx_clk", "tx_clk")
    bench = Clocks(dut, rng, looks_at_wire=False)
    for _ in range(4 if SHORT else 20):
        await bench.begin(rng.choice(CORES_PS))
        for _ in range(rng.randrange(1, 4)):
            bench.send_good(rng.choice(SIZES))
        clock = rng.choice([bench.rx, bench.tx])
        bench.source.send(Packet(rng.randbytes(200)))
        await clock.wait(rng.randrange(1, 60))
        clock.stop()
        await bench.core.wait(rng.randrange(1, 30))
        dut.rst.value = 1
        await bench.core.wait(rng.randrange(1, 4))
        dut.rst.value = 0
        await bench.core.wait(rng.choice([3, 40]))
        bench.good.clear()
        bench.expected.clear()
        clock.go()
        bench.wire_in.clear()
        await bench.wire_in.wait()
        await bench.source.drain()
        await bench.quiet()
        bench.good.clear()
        for size in SIZES[:4]:
            bench.send_good(size)
        await bench.quiet()
        assert [packet.data for packet in bench.good] == bench.expected
