# SPDX-License-Identifier: Apache-2.0
"""eth_rx: header and tag off at every size, frames for others dropped, bad frames passed on as bad."""

from typing import Any

import cocotb
from common.bench import SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.frames import LOCAL_MAC, SENDER_MAC, mac_number
from common.streams import Packet, StreamSink, StreamSource
from scapy.layers.l2 import Dot1Q, Ether

COUNTERS = ["count_good", "drop_address", "drop_short"]
META = ["m_meta_source_mac", "m_meta_ethertype", "m_meta_start_cycle"]
BROADCAST = "ff:ff:ff:ff:ff:ff"


class EthBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS)
        dut.local_mac.value = mac_number(LOCAL_MAC)
        self.source = StreamSource(self, "s_axis", meta=["s_meta_start_cycle"])
        self.packets = Scoreboard("packets")
        self.seen: list[Packet] = []
        self.sink = StreamSink(self, "m_axis", self.take, meta=META)

    def take(self, packet: Packet) -> None:
        self.seen.append(packet)
        self.packets.take((packet.data, packet.user, packet.meta))

    def send(self, frame: Any, stamp: int, user: int = 0, cut_bytes: int | None = None) -> Packet:
        packet = Packet(bytes(frame)[:cut_bytes], user, {"s_meta_start_cycle": stamp})
        self.source.send(packet)
        return packet

    def expect(self, frame: Any, stamp: int, user: int = 0, cut_bytes: int | None = None) -> None:
        header_bytes = 18 if Dot1Q in frame else 14
        meta = {
            "m_meta_source_mac": mac_number(frame[Ether].src),
            "m_meta_ethertype": (frame[Dot1Q] if Dot1Q in frame else frame[Ether]).type,
            "m_meta_start_cycle": stamp,
        }
        self.packets.expect((bytes(frame)[header_bytes:cut_bytes], user, meta))


def make_frame(payload: bytes, tag: int | None, destination: str = LOCAL_MAC, ethertype: int = 0x88B5) -> Any:
    ether = Ether(dst=destination, src=SENDER_MAC, type=ethertype)
    if tag is None:
        return ether / payload
    ether.type = 0x8100
    return ether / Dot1Q(vlan=tag, type=ethertype) / payload


async def started(dut: Any) -> EthBench:
    bench = EthBench(dut)
    await bench.reset()
    return bench


@cocotb.test
async def every_size_tagged_or_not_with_constant_latency(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [*range(1, 40), 1500] if SHORT else [*range(1, 120), *range(120, 1501, 23), 1500, 9000]
    count = 0
    for size in sizes:
        for tag in (None, rng.randrange(1, 4095)):
            frame = make_frame(rng.randbytes(size), tag)
            if tag is None and len(bytes(frame)) <= 16:
                continue  # ends with the header's word: short
            if tag is not None and len(bytes(frame)) <= 24:
                continue
            stamp = rng.getrandbits(64)
            bench.expect(frame, stamp)
            sent = bench.send(frame, stamp)
            await bench.source.drain()
            await bench.wait(4)
            seen = bench.seen[-1]
            assert seen.first_cycle - sent.first_cycle == (3 if tag is None else 4), size
            assert seen.last_cycle - sent.last_cycle in (1, 2), size
            assert seen.last_cycle - seen.first_cycle + 1 == seen.words, "a gap inside"
            count += 1
    bench.packets.finish()
    bench.expect_counts(count_good=count)


@cocotb.test
async def a_mix_at_full_rate_and_with_pauses(dut: Any) -> None:
    """Own and foreign, tagged and not, good and bad, back to back; the books balance."""
    rng = random_numbers()
    bench = await started(dut)
    for share in (0.0, 0.3):
        bench.source.pause = pauses(rng, share) if share else never
        good = foreign = short = 0
        before = dict(bench.counts)
        for _ in range(200 if SHORT else 2000):
            tag = rng.choice([None, rng.randrange(4096)])
            destination = rng.choice([LOCAL_MAC, LOCAL_MAC, BROADCAST, "02:4e:61:4e:65:75", "01:00:5e:00:00:01"])
            frame = make_frame(rng.randbytes(rng.randint(46, 90)), tag, destination, rng.randrange(0x0600, 0x8000))
            user = int(rng.random() < 0.2)
            stamp = rng.getrandbits(64)
            cut_bytes = rng.choice([None] * 9 + [rng.randint(1, 60)])
            first_bytes = 24 if tag is not None else 16
            own = destination in (LOCAL_MAC, BROADCAST)
            length = len(bytes(frame)[:cut_bytes])
            if own and length > first_bytes:
                bench.expect(frame, stamp, user, cut_bytes)
            if not user:
                good += own and length > first_bytes
                foreign += not own and length > 8
                short += length <= 8 or (own and length <= first_bytes)
            bench.send(frame, stamp, user, cut_bytes)
        await bench.source.drain()
        await bench.wait(5)
        bench.packets.finish()
        changes = {name: bench.counts[name] - before[name] for name in COUNTERS}
        assert changes == {"count_good": good, "drop_address": foreign, "drop_short": short}


@cocotb.test
async def reset_in_mid_frame(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(20):
        frame = make_frame(rng.randbytes(rng.randint(46, 90)), rng.choice([None, 5]))
        for offset in range(0, rng.randint(1, 50), 8):
            word = bytes(frame)[offset : offset + 8]
            dut.s_axis_tdata.value = int.from_bytes(word, "little")
            dut.s_axis_tkeep.value = 0xFF
            dut.s_axis_tvalid.value = 1
            await bench.wait(1)
        dut.s_axis_tvalid.value = 0
        dut.rst.value = 1
        await bench.wait(2)
        dut.rst.value = 0
        bench.expect(frame, 7)
        bench.send(frame, 7)
        await bench.source.drain()
        await bench.wait(4)
        bench.packets.finish()
