# SPDX-License-Identifier: Apache-2.0
"""eth_rx: header and tag off at every size, frames for others dropped, bad frames passed on as bad."""

from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.frames import LOCAL_MAC, SENDER_MAC, group_mac, mac_number, random_group
from common.streams import Packet, StreamSink, StreamSource
from scapy.layers.l2 import Dot1Q, Ether

COUNTERS = ["count_good", "drop_address", "drop_short"]
META = ["m_meta_source_mac", "m_meta_ethertype", "m_meta_start_cycle", "m_meta_group"]
BROADCAST = "ff:ff:ff:ff:ff:ff"
GROUPS = PARAMETERS.get("GROUPS", 4)


class EthBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS)
        dut.local_mac.value = mac_number(LOCAL_MAC)
        self.set_groups([])
        self.source = StreamSource(self, "s_axis", meta=["s_meta_start_cycle"])
        self.packets = Scoreboard("packets")
        self.seen: list[Packet] = []
        self.sink = StreamSink(self, "m_axis", self.take, meta=META)

    def set_groups(self, groups: list[str | None]) -> None:
        """None: an entry that is not in use, and still holds what another one is not."""
        macs = [mac_number(group_mac(group)) & 0x7F_FFFF if group else 0x123456 for group in groups]
        self.dut.group_valid.value = sum(1 << k for k, group in enumerate(groups) if group)
        self.dut.group_macs.value = sum(mac << 23 * k for k, mac in enumerate(macs))

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
            "m_meta_group": int(frame[Ether].dst.startswith("01:00:5e")),
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
async def groups_by_each_bit_of_their_address(dut: Any) -> None:
    """Frames to each group, tagged or not, the rest of them as for the station; none to an address that is one bit from a group's, or that of an entry
    that is empty."""
    rng = random_numbers()
    bench = await started(dut)
    good = foreign = 0
    for _ in range(3 if SHORT else 20):
        groups: list[str | None] = [random_group(rng) for _ in range(GROUPS)]
        if GROUPS > 1:
            groups[rng.randrange(GROUPS)] = None
        bench.set_groups(groups)
        own = {group_mac(group) for group in groups if group}
        near = [f"{mac_number(mac) ^ 1 << bit:012x}" for mac in own for bit in range(48)]
        others = ["".join(f"{text[k : k + 2]}:" for k in range(0, 12, 2))[:-1] for text in near]
        others += ["01:00:5e:12:34:56", group_mac(random_group(rng))]
        destinations = [*own, LOCAL_MAC, BROADCAST, *others]
        for destination in rng.sample(destinations, k=len(destinations)):
            is_own = destination in (*own, LOCAL_MAC, BROADCAST)
            frame = make_frame(rng.randbytes(rng.randint(46, 60)), rng.choice([None, 7]), destination)
            stamp = rng.getrandbits(64)
            bench.send(frame, stamp)
            if is_own:
                bench.expect(frame, stamp)
            good, foreign = good + is_own, foreign + (not is_own)
        await bench.source.drain()
        await bench.wait(5)
        bench.packets.finish()
    bench.expect_counts(count_good=good, drop_address=foreign)


@cocotb.test
async def a_group_changed_under_traffic(dut: Any) -> None:
    """In each cycle of frames back to back: each comes whole, or is one drop_address, and those before the change lie before those after it."""
    rng = random_numbers()
    if GROUPS == 0:
        return
    bench = await started(dut)
    before, after = "239.1.2.3", "232.7.7.7"
    for phase in range(40):
        bench.set_groups([before])
        bench.packets, bench.seen = Scoreboard("packets"), []
        bench.sink.take = bench.seen.append
        was = dict(bench.counts)
        frames = [make_frame(rng.randbytes(60), None, group_mac(group)) for group in (before, after) * 3]
        for frame in frames:
            bench.send(frame, 0)
        await bench.wait(phase + 1)
        bench.set_groups([after])
        await bench.source.drain()
        await bench.wait(5)
        fits = []
        for changed in range(len(frames) + 1):
            members = [before] * changed + [after] * (len(frames) - changed)
            taken = zip(frames, members, strict=True)
            fits.append([bytes(frame)[14:] for frame, member in taken if frame[Ether].dst == group_mac(member)])
        assert [packet.data for packet in bench.seen] in fits, phase
        assert bench.counts == was | {
            "count_good": was["count_good"] + len(bench.seen),
            "drop_address": was["drop_address"] + len(frames) - len(bench.seen),
        }


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
