# SPDX-License-Identifier: Apache-2.0
"""mac_1g_rx against the GMII source of cocotbext-eth: all sizes, full rate, short preambles and gaps, every fault, constant latency."""

from typing import Any

import cocotb
from cocotbext.eth import GmiiFrame, GmiiSource
from common.bench import CLOCK_1G_PS, PARAMETERS, SHORT, Bench, Scoreboard, random_numbers
from common.frames import FCS_BYTES, random_frame, with_fcs
from common.gmii import GAP_BYTES, PREAMBLE_BYTES, gmii_frame
from common.streams import Packet, StreamSink

COUNTERS = ["count_good", "drop_preamble", "drop_error", "drop_oversize", "drop_runt", "drop_fcs"]
FRAME_BYTES_MAX = PARAMETERS.get("FRAME_BYTES_MAX", 9022)
LATENCY_CYCLES = 7
CARRIER_EXTEND, FALSE_CARRIER = 0x0F, 0x0E


class RxBench(Bench):
    """The source is not told of a reset: the wire does not stop for one."""

    clock_ps = CLOCK_1G_PS

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS, now=True)
        self.source = GmiiSource(dut.gmii_rxd, dut.gmii_rx_er, dut.gmii_rx_dv, dut.clk)
        self.good = Scoreboard("frames")
        self.packets: list[Packet] = []
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta_start_cycle"])

    def take(self, packet: Packet) -> None:
        self.packets.append(packet)
        if not packet.user:
            self.good.take(packet.data)

    async def send(self, frame: GmiiFrame, then_idle: bool = True) -> None:
        await self.source.send(frame)
        if then_idle:
            await self.source.wait()
            await self.wait(12)


async def started(dut: Any) -> RxBench:
    bench = RxBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def every_size_with_constant_latency(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [60, *range(61, 78), 1514] if SHORT else [*range(60, 200), *range(200, 1515, 13), 1514, FRAME_BYTES_MAX - FCS_BYTES]
    for size in sizes:
        frame = random_frame(rng, size)
        bench.good.expect(frame)
        await bench.send(gmii_frame(with_fcs(frame)))
        await bench.wait(rng.randrange(5))
        packet = bench.packets[-1]
        # The start-of-frame delimiter came one cycle before the first byte.
        assert packet.first_cycle - packet.meta["m_meta_start_cycle"] == LATENCY_CYCLES + 1, size
        assert packet.last_cycle - packet.first_cycle + 1 == size, "a frame has a gap"
    bench.good.finish()
    bench.expect_counts(count_good=len(sizes))


@cocotb.test
async def full_rate_at_every_size(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [60, 61, 1514] if SHORT else [*range(60, 77), 128, 512, 1000, 1514]
    total = 0
    for size in sizes:
        count = 8 if size < 200 else 3
        bench.packets.clear()
        for _ in range(count):
            frame = random_frame(rng, size)
            bench.good.expect(frame)
            await bench.send(gmii_frame(with_fcs(frame)), then_idle=False)
        await bench.source.wait()
        await bench.wait(20)
        total += count
        cycles = bench.packets[-1].meta["m_meta_start_cycle"] - bench.packets[0].meta["m_meta_start_cycle"]
        assert cycles == (count - 1) * (PREAMBLE_BYTES + size + FCS_BYTES + GAP_BYTES), f"{size} bytes: not sent at line rate"
    bench.good.finish()
    bench.expect_counts(count_good=total)


@cocotb.test
async def short_preambles_and_gaps(dut: Any) -> None:
    """A PHY may take bytes of the preamble and of the gap away, to nothing but the delimiter and one cycle between frames."""
    rng = random_numbers()
    bench = await started(dut)
    count = 40 if SHORT else 300
    for _ in range(count):
        bench.source.ifg = rng.choice([1, 1, 2, 3, 5, 12, 20])
        frame = random_frame(rng, rng.randint(60, 90))
        bench.good.expect(frame)
        await bench.send(gmii_frame(with_fcs(frame), preamble_bytes=rng.randint(1, 12)), then_idle=False)
        await bench.wait_until(bench.source.empty, 200, "frame begins")
    await bench.source.wait()
    await bench.wait(20)
    bench.good.finish()
    bench.expect_counts(count_good=count)


@cocotb.test
async def every_fault_has_its_counter_and_the_next_frame_is_good(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    good = 0

    def bad_fcs() -> GmiiFrame:
        frame = bytearray(with_fcs(random_frame(rng, rng.randint(60, 200))))
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
        return gmii_frame(bytes(frame))

    def runt() -> GmiiFrame:
        size = rng.choice([*range(8), *range(8, 64)])
        return gmii_frame(with_fcs(random_frame(rng, max(size - 4, 0)))[:size])

    def oversize() -> GmiiFrame:
        size = FRAME_BYTES_MAX + rng.choice([1, 2, 3, 80])
        return gmii_frame(with_fcs(random_frame(rng, size - 4)))

    def error() -> GmiiFrame:
        size = rng.randint(60, 200)
        preamble_bytes = rng.randint(1, 8)
        where = rng.choice([rng.randrange(-preamble_bytes, 0), rng.randrange(size + 4), size + 3])
        return gmii_frame(with_fcs(random_frame(rng, size)), preamble_bytes=preamble_bytes, error_at=[where])

    def no_preamble() -> GmiiFrame:
        data = bytearray(gmii_frame(with_fcs(random_frame(rng, 80))).data)
        data[rng.randrange(8)] = rng.choice([0x00, 0xD4, 0x5D, 0xFF])
        return rng.choice([GmiiFrame(data), GmiiFrame(b"\x55" * rng.randint(1, 20))])

    faults = {
        "drop_fcs": bad_fcs,
        "drop_runt": runt,
        "drop_oversize": oversize,
        "drop_error": error,
        "drop_preamble": no_preamble,
    }
    for name, make in faults.items():
        count = 3 if name == "drop_oversize" else 30 if SHORT else 200
        for _ in range(count):
            before = dict(bench.counts)
            bench.source.ifg = rng.choice([1, 12])
            await bench.send(make(), then_idle=False)
            frame = random_frame(rng, rng.randint(60, 120))
            bench.good.expect(frame)
            await bench.send(gmii_frame(with_fcs(frame)))
            good += 1
            assert bench.counts == before | {name: before[name] + 1, "count_good": good}, name
    bench.good.finish()
    assert max(len(packet.data) for packet in bench.packets) <= FRAME_BYTES_MAX


@cocotb.test
async def longest_good_frame_and_errors_between_frames(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    frame = random_frame(rng, FRAME_BYTES_MAX - FCS_BYTES)
    bench.good.expect(frame)
    await bench.send(gmii_frame(with_fcs(frame)))
    for code in (CARRIER_EXTEND, FALSE_CARRIER):  # no frame, no count
        dut.gmii_rx_er.value, dut.gmii_rxd.value = 1, code
        await bench.wait(rng.randint(1, 9))
        dut.gmii_rx_er.value, dut.gmii_rxd.value = 0, 0
        await bench.wait(1)
    frame = random_frame(rng, 60)
    bench.good.expect(frame)
    await bench.send(gmii_frame(with_fcs(frame)))
    bench.good.finish()
    bench.expect_counts(count_good=2)


@cocotb.test
async def reset_in_mid_frame(dut: Any) -> None:
    """What the reset cuts, and what is on the wire after it, is no frame: no word, no count, and the next frame is whole."""
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(8 if SHORT else 60):
        for byte in bytes([0x55] * 3 + [0xD5]) + rng.randbytes(rng.randint(0, 80)):
            dut.gmii_rx_dv.value, dut.gmii_rxd.value = 1, byte
            await bench.wait(1)
        dut.rst.value = 1
        await bench.wait(rng.randint(3, 6))
        before, seen = dict(bench.counts), len(bench.packets)
        dut.rst.value = 0
        for byte in bytes([0x55, 0xD5]) + rng.randbytes(rng.randint(0, 80)):  # the rest of the frame looks like one
            dut.gmii_rx_dv.value, dut.gmii_rxd.value = 1, byte
            await bench.wait(1)
        dut.gmii_rx_dv.value = 0
        await bench.wait(12)
        assert len(bench.packets) == seen
        assert bench.counts == before
        frame = random_frame(rng, rng.randint(60, 120))
        bench.good.expect(frame)
        await bench.send(gmii_frame(with_fcs(frame)))
    bench.good.finish()
