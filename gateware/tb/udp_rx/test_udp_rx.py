# SPDX-License-Identifier: Apache-2.0
"""udp_rx against scapy's packets: every payload size, filling cut off, every fault under its own counter, constant latency."""

from collections.abc import Callable
from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.frames import LOCAL_IP, frame_of, random_group, udp_packet
from common.requests import arp_request, echo_request
from common.streams import Packet, StreamSink, StreamSource
from scapy.layers.inet import IP, UDP, IPOption
from scapy.layers.l2 import Ether

ENTRIES = PARAMETERS.get("MATCH_ENTRIES", 16)
REPLIER = PARAMETERS.get("REPLIER", 0)
DROPS = [
    "drop_ethertype",
    "drop_short",
    "drop_version",
    "drop_options",
    "drop_header_checksum",
    "drop_fragment",
    "drop_protocol",
    "drop_address",
    "drop_length",
    "drop_empty",
    "drop_no_match",
    "drop_truncated",
    "drop_udp_checksum",
]
FOUND_LATER = ("drop_truncated", "drop_udp_checksum")  # than the payload's first word
META = [
    "m_meta_target",
    "m_meta_source_address",
    "m_meta_source_port",
    "m_meta_payload_bytes",
    "m_meta_start_cycle",
]
ETHER_BYTES, GAP_CYCLES, IPV4, PORT = 14, 3, 0x0800, 6001
PAYLOAD_BYTES_MAX = 8976
OTHER_NET = "192.168.7.9"
GROUPS = PARAMETERS.get("GROUPS", 4)
EMPTY = "239.9.9.9"


class UdpBench(Bench):
    """The table: entry 1 takes port 6001 from 10.62.0.0/24, entry 0 port 6002 from anyone."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["count_good", *DROPS])
        dut.local_address.value = int(IPv4Address(LOCAL_IP))
        dut.table_write.value = 0
        self.set_groups([])
        self.source = StreamSource(
            self, "s_axis", meta=["s_meta_ethertype", "s_meta_start_cycle", "s_meta_group"], gap_cycles=GAP_CYCLES
        )
        self.good = Scoreboard("payloads")
        self.seen: list[Packet] = []
        self.bad = 0
        self.sink = StreamSink(self, "m_axis", self.take, meta=META)

    def set_groups(self, groups: list[str | None]) -> None:
        """None: an entry that is not in use, and holds EMPTY."""
        numbers = [int(IPv4Address(group or EMPTY)) & 0xFFF_FFFF for group in groups]
        self.dut.group_valid.value = sum(1 << k for k, group in enumerate(groups) if group)
        self.dut.groups.value = sum(number << 28 * k for k, number in enumerate(numbers))

    def take(self, packet: Packet) -> None:
        self.seen.append(packet)
        if packet.user:
            self.bad += 1
        else:
            self.good.take((packet.data, packet.meta))

    async def write_table(
        self, index: int, port: int, address: str, mask: str, *, enable: int = 1, target: int | None = None
    ) -> None:
        """target: that of `expect` unless it is given."""
        self.dut.table_write.value, self.dut.table_enable.value = 1, enable
        self.dut.table_target.value = index if target is None else target
        self.dut.table_index.value, self.dut.table_port.value = index, port
        self.dut.table_source_address.value = int(IPv4Address(address))
        self.dut.table_source_mask.value = int(IPv4Address(mask))
        await self.wait(1)
        self.dut.table_write.value = 0

    def expect(self, packet: Any, stamp: int) -> None:
        payload = bytes(packet[UDP].payload)
        meta = {
            "m_meta_target": {PORT: 1, PORT + 1: 0}[packet[UDP].dport],
            "m_meta_source_address": int(IPv4Address(packet[IP].src)),
            "m_meta_source_port": packet[UDP].sport,
            "m_meta_payload_bytes": len(payload),
            "m_meta_start_cycle": stamp,
        }
        self.good.expect((payload, meta))

    def send(self, data: bytes, stamp: int = 0, ethertype: int = IPV4, user: int = 0, group: int = 0) -> Packet:
        """data: the packet from its IPv4 header on. group: the frame came to the Ethernet address of a group."""
        sent = Packet(data, user, {"s_meta_ethertype": ethertype, "s_meta_start_cycle": stamp, "s_meta_group": group})
        self.source.send(sent)
        return sent

    def send_good(self, rng: Random, packet: Any) -> Packet:
        stamp = rng.getrandbits(64)
        self.expect(packet, stamp)
        return self.send(frame_of(packet)[ETHER_BYTES:], stamp)


async def started(dut: Any) -> UdpBench:
    bench = UdpBench(dut)
    await bench.reset()
    await bench.write_table(1, PORT, "10.62.0.0", "255.255.255.0")
    await bench.write_table(0, PORT + 1, "0.0.0.0", "0.0.0.0")
    return bench


def good_packet(rng: Random, size: int, **fields: Any) -> Any:
    port = rng.choice([PORT, PORT + 1])
    sender = f"10.62.0.{rng.randint(2, 254)}" if port == PORT else OTHER_NET
    return udp_packet(rng.randbytes(size), source_port=rng.getrandbits(16), port=port, IP={"src": sender}, **fields)


@cocotb.test
async def every_payload_size_with_constant_latency(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [*range(1, 48)] if SHORT else [*range(1, 200), *range(200, 1473, 19)]
    sizes += [1168, 1472, PAYLOAD_BYTES_MAX]
    latency: dict[int, tuple[int, int]] = {}
    for size in [*sizes, *rng.sample(sizes, k=10)]:
        sent = bench.send_good(rng, good_packet(rng, size))
        await bench.source.drain()
        await bench.wait(8 + rng.randrange(4))
        seen = bench.seen[-1]
        from_first, from_last = seen.first_cycle - sent.first_cycle, seen.last_cycle - sent.last_cycle
        assert latency.setdefault(size, (from_first, from_last)) == (from_first, from_last), f"{size} bytes: the latency moves"
        if size > 16:
            assert from_first == 7, size  # the sixth word completes the second payload word, two cycles after that
        last_word_bytes = (len(sent.data) - 1) % 8 + 1
        assert from_last == (5 if last_word_bytes > 4 else 4), size
    bench.good.finish()
    bench.expect_counts(count_good=len(sizes) + 10)


@cocotb.test
async def back_to_back_and_with_pauses(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    count = 200 if SHORT else 2000
    for share in (0.0, 0.3):
        bench.source.pause = pauses(rng, share) if share else never
        for _ in range(count):
            checksum = {"UDP": {"chksum": 0}} if rng.random() < 0.3 else {}
            bench.send_good(rng, good_packet(rng, rng.choice([rng.randint(1, 60), rng.randint(1, 300)]), **checksum))
        await bench.source.drain()
        await bench.wait(8)
        bench.good.finish()
    bench.expect_counts(count_good=2 * count)


def header_bit_flipped(rng: Random, data: bytes) -> bytes:
    """Any bit of the header but version and length of the header, which are looked at first."""
    changed = bytearray(data)
    changed[rng.randrange(1, 20)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def payload_bit_flipped(rng: Random, data: bytes, payload_bytes: int) -> bytes:
    changed = bytearray(data)
    changed[rng.randrange(28, 28 + payload_bytes)] ^= 1 << rng.randrange(8)
    return bytes(changed)


def faults(rng: Random) -> dict[str, Callable[[], tuple[bytes, int]]]:
    """By counter: makes the bytes from the IPv4 header on, and the Ethernet type."""
    size = rng.randint(8, 150)

    def packet(**fields: Any) -> tuple[bytes, int]:
        return frame_of(udp_packet(rng.randbytes(size), port=PORT, **fields))[ETHER_BYTES:], IPV4

    def whole(**fields: Any) -> bytes:
        return bytes(udp_packet(rng.randbytes(size), port=PORT, **fields))[ETHER_BYTES:]

    wrong_length = rng.choice([rng.randrange(8), size + 7, size + 9, 0xFFFF, size + 8 + 0x100])
    # Lengths that agree, of more than a frame may bring; the last is `size` in 14 bits.
    too_many = rng.choice([PAYLOAD_BYTES_MAX + 1, PAYLOAD_BYTES_MAX + 8, 0xFFFF - 28, (1 << 14) + size])
    fragment = rng.choice([{"flags": "MF"}, {"frag": rng.randint(1, 0x1FFF)}, {"flags": "MF", "frag": 3}])
    return {
        "drop_ethertype": lambda: (whole(), rng.choice([0x0805, 0x86DD, 0x8100, 0x0801])),
        "drop_short": lambda: (whole()[: rng.randint(1, 32)], IPV4),
        "drop_version": lambda: packet(IP={"version": rng.choice([0, 5, 6, 15])}),
        "drop_options": lambda: packet(IP={"options": [IPOption(b"\x01")] * 4}),
        "drop_header_checksum": lambda: (header_bit_flipped(rng, packet()[0]), IPV4),
        "drop_fragment": lambda: packet(IP=fragment),
        "drop_protocol": lambda: packet(IP={"proto": rng.choice([0, 2, 6, 16, 18, 132])}),
        "drop_address": lambda: packet(IP={"dst": rng.choice(["10.62.0.2", "10.62.1.1", "224.0.0.1"])}),
        "drop_length": lambda: (
            packet(UDP={"len": wrong_length})
            if rng.random() < 0.5
            else packet(UDP={"len": too_many + 8}, IP={"len": too_many + 28})
        ),
        "drop_empty": lambda: (frame_of(udp_packet(b"", port=PORT))[ETHER_BYTES:], IPV4),
        "drop_no_match": lambda: (
            packet(IP={"src": OTHER_NET}) if rng.random() < 0.5 else (whole_to(rng, rng.choice([6000, 6003, 0])), IPV4)
        ),
        "drop_truncated": lambda: (whole()[: rng.randint(33, 27 + size)] if size > 5 else b"", IPV4),
        "drop_udp_checksum": lambda: (payload_bit_flipped(rng, whole(), size), IPV4),
    }


def whole_to(rng: Random, port: int) -> bytes:
    return frame_of(udp_packet(rng.randbytes(rng.randint(1, 99)), port=port))[ETHER_BYTES:]


@cocotb.test
async def every_fault_has_its_counter_and_the_next_packet_is_good(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    good = 0
    assert list(faults(rng)) == DROPS
    for round_ in range(8 if SHORT else 60):
        bench.source.pause = pauses(rng, 0.3) if round_ % 2 else never
        for name in rng.sample(DROPS, k=len(DROPS)):
            data, ethertype = faults(rng)[name]()
            before, bad = dict(bench.counts), bench.bad
            bench.send(data, rng.getrandbits(64), ethertype)
            bench.send_good(rng, good_packet(rng, rng.randint(1, 100)))
            await bench.source.drain()
            await bench.wait(6)
            good += 1
            assert bench.counts == before | {name: before[name] + 1, "count_good": good}, name
            assert bench.bad == bad or name in FOUND_LATER, f"{name}: words of a packet whose header is refused"
    bench.good.finish()


@cocotb.test
async def arp_and_icmp_are_the_repliers_if_there_is_one(dut: Any) -> None:
    """`for_replier` says so in the third cycle after the last word, and nothing is counted. Without REPLIER, or with a fault in the IPv4
    header, they are dropped here."""
    rng = random_numbers()
    bench = await started(dut)
    data = rng.randbytes(40)
    as_ipv6 = echo_request(data, Ether={"type": 0x86DD})
    cases: list[tuple[str, Any]] = [
        ("drop_ethertype", as_ipv6),
        ("drop_version", echo_request(data, IP={"version": 5})),
        ("drop_options", echo_request(data, IP={"options": [IPOption(b"\x01")] * 4})),
        ("drop_header_checksum", echo_request(data, IP={"chksum": 1})),
        ("drop_fragment", echo_request(data, IP={"flags": "MF"})),
        ("drop_protocol", echo_request(data, IP={"dst": "10.62.0.2"})),
        ("drop_ethertype", Ether(type=0x0805) / bytes(arp_request())[ETHER_BYTES:]),
        ("count_good", good_packet(rng, 30)),
        *(("" if REPLIER else "drop_ethertype", arp_request(op=op)) for op in (1, 2)),
        *(("" if REPLIER else "drop_protocol", echo_request(data, ICMP={"type": kind})) for kind in (8, 3)),
    ]
    expected = dict.fromkeys(bench.counts, 0)
    for _ in range(6 if SHORT else 40):
        for name, packet in rng.sample(cases, k=len(cases)):
            if name == "count_good":
                bench.expect(packet, 0)
            for user in (0, 1):
                bench.send(frame_of(packet)[ETHER_BYTES:], ethertype=packet[Ether].type, user=user)
                await bench.source.drain()
                assert dut.for_replier.value == int(not name), name
                await bench.wait(6)
            if name:
                expected[name] += 1
            assert bench.counts == expected, name
    for name, packet in (("drop_ethertype", arp_request()), ("drop_short", echo_request(data))):
        bench.send(frame_of(packet)[ETHER_BYTES:][: rng.randint(25, 32)], ethertype=packet[Ether].type)
        await bench.source.drain()
        assert dut.for_replier.value == 0, name
        await bench.wait(6)
        expected[name] += 1
        assert bench.counts == expected, name
    bench.good.finish()


@cocotb.test
async def groups_by_each_bit_of_their_address(dut: Any) -> None:
    """Of the 32 groups that share an Ethernet address just those of the registers; in a frame to a group no packet to the station or to all; and no
    address that is one bit from a group's, which for the first four is none of a group."""
    rng = random_numbers()
    bench = await started(dut)
    good = other = 0
    for _ in range(2 if SHORT else 12):
        groups: list[str | None] = [random_group(rng) for _ in range(GROUPS)]
        if GROUPS > 1:
            groups[rng.randrange(GROUPS)] = None
        bench.set_groups(groups)
        own = [group for group in groups if group]
        near = [str(IPv4Address(int(IPv4Address(group)) ^ 1 << bit)) for group in own for bit in range(32)]
        sharing = [str(IPv4Address(int(IPv4Address(own[0])) & 0xF07F_FFFF | k << 23)) for k in range(32)] if own else []
        cases = [(address, frame) for address in (*own, *near, *sharing, EMPTY, LOCAL_IP, "255.255.255.255") for frame in (0, 1)]
        for address, group in rng.sample(cases, k=len(cases)):
            is_taken = address in own or (not group and address in (LOCAL_IP, "255.255.255.255"))
            packet = udp_packet(rng.randbytes(rng.randint(1, 30)), port=PORT, IP={"dst": address})
            if is_taken:
                bench.expect(packet, 5)
            bench.send(frame_of(packet)[ETHER_BYTES:], 5, group=group)
            good, other = good + is_taken, other + (not is_taken)
        await bench.source.drain()
        await bench.wait(8)
        bench.good.finish()
    bench.expect_counts(count_good=good, drop_address=other)


@cocotb.test
async def what_came_to_a_group_is_never_the_repliers(dut: Any) -> None:
    """ARP and echo requests in a frame to a group, and echo requests to a group's address in any frame: no answer, and a drop as without replier."""
    rng = random_numbers()
    bench = await started(dut)
    group = random_group(rng)
    bench.set_groups([group] if GROUPS else [])
    data = rng.randbytes(40)
    cases = [
        ("drop_ethertype", arp_request(), 1),
        ("drop_protocol", echo_request(data), 1),
        ("drop_protocol", echo_request(data, IP={"dst": group}), 1),
        ("drop_protocol", echo_request(data, IP={"dst": group}), 0),
        ("drop_protocol", echo_request(data, IP={"dst": "255.255.255.255"}), 1),
    ]
    expected = dict.fromkeys(bench.counts, 0)
    for _ in range(4):
        for name, packet, to_group in rng.sample(cases, k=len(cases)):
            bench.send(frame_of(packet)[ETHER_BYTES:], ethertype=packet[Ether].type, group=to_group)
            await bench.source.drain()
            assert dut.for_replier.value == 0, name
            await bench.wait(6)
            expected[name] += 1
            assert bench.counts == expected, name
        if REPLIER:  # and the next one to the station is
            bench.send(frame_of(arp_request())[ETHER_BYTES:], ethertype=0x0806)
            await bench.source.drain()
            assert dut.for_replier.value == 1
            await bench.wait(6)


@cocotb.test
async def what_came_in_bad_is_not_counted_again(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    count = 30 if SHORT else 200
    for _ in range(count):
        bench.send(frame_of(good_packet(rng, rng.randint(1, 100)))[ETHER_BYTES:], user=1)
        bench.send_good(rng, good_packet(rng, rng.randint(1, 100)))
    await bench.source.drain()
    await bench.wait(8)
    bench.good.finish()
    assert bench.bad == count
    bench.expect_counts(count_good=count)


@cocotb.test
async def bytes_behind_the_payload_are_cut_off(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    count = 60 if SHORT else 500
    for _ in range(count):
        packet = good_packet(rng, rng.randint(1, 60))
        stamp = rng.getrandbits(64)
        bench.expect(packet, stamp)
        bench.send(bytes(packet)[ETHER_BYTES:] + rng.randbytes(rng.randint(5, 80)), stamp)
    await bench.source.drain()
    await bench.wait(8)
    bench.good.finish()
    bench.expect_counts(count_good=count)


@cocotb.test
async def a_table_written_under_traffic_takes_whole_packets(dut: Any) -> None:
    """An entry enabled, disabled, or rewritten to another target in each cycle of packets back to back, with and without pauses: each packet comes
    whole or is one drop_no_match, and goes where the entry said before the write or after it, the same for all before and for all after."""
    rng = random_numbers()
    bench = await started(dut)
    outcomes = {True: 0, False: 0}
    for size in (200,) if SHORT else (1, 18, 200, 1472):
        for before, after in ((None, 2), (1, None), (1, 3)):
            for phase in range(0, 60 if size <= 200 else 400, 1 if size <= 200 else 7):
                bench.source.pause = pauses(rng, 0.3) if phase % 4 == 3 else never
                await table_written(bench, rng, size, (before, after), phase, outcomes)
    assert min(outcomes.values()) > 50, outcomes


async def table_written(
    bench: UdpBench, rng: Random, size: int, targets: tuple[int | None, int | None], phase: int, outcomes: dict[bool, int]
) -> None:
    """Three packets, the entry's target written in cycle `phase` of them; None: it is disabled."""

    async def write(target: int | None) -> None:
        await bench.write_table(1, PORT, "0.0.0.0", "0.0.0.0", enable=int(target is not None), target=target or 0)

    before, after = targets
    await write(before)
    bench.good, bench.seen = Scoreboard("payloads"), []
    bench.sink.take = bench.seen.append
    was = dict(bench.counts)
    packets = [udp_packet(rng.randbytes(size), port=PORT, IP={"src": OTHER_NET}) for _ in range(3)]
    for packet in packets:
        bench.send(frame_of(packet)[ETHER_BYTES:])
    await bench.wait(phase + 1)
    await write(after)
    await bench.source.drain()
    await bench.wait(8)
    dropped = bench.counts["drop_no_match"] - was["drop_no_match"]
    assert len(bench.seen) + dropped == len(packets)
    assert bench.counts == was | {
        "drop_no_match": was["drop_no_match"] + dropped,
        "count_good": was["count_good"] + len(bench.seen),
    }
    found = iter(bench.seen)
    # All that was judged before the write stands before all that was judged after it.
    seen = [(packet.data, packet.user, packet.meta["m_meta_target"], packet.meta["m_meta_payload_bytes"]) for packet in found]
    fits = [
        seen
        == [
            (bytes(packet[UDP].payload), 0, target, size)
            for packet, target in zip(packets, judged, strict=True)
            if target is not None
        ]
        for judged in ([before] * count + [after] * (len(packets) - count) for count in range(len(packets) + 1))
    ]
    assert any(fits), f"{targets} in cycle {phase}: {[(len(data), *rest) for data, *rest in seen]}"
    for packet in seen:
        outcomes[packet[2] == after] += 1


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(20):
        data = frame_of(good_packet(rng, rng.randint(1, 90)))[ETHER_BYTES:]
        dut.s_meta_ethertype.value = IPV4
        for offset in range(0, rng.randint(1, len(data)), 8):
            dut.s_axis_tdata.value = int.from_bytes(data[offset : offset + 8], "little")
            dut.s_axis_tkeep.value, dut.s_axis_tvalid.value = 0xFF, 1
            await bench.wait(1)
        # What comes before this is reset in the same cycle, and may still show a word.
        dut.s_axis_tvalid.value = rng.randrange(2)
        dut.rst.value = 1
        await bench.wait(1)
        dut.s_axis_tvalid.value = 0
        await bench.wait(rng.choice([0, 2]))
        dut.rst.value = 0
        await bench.write_table(1, PORT, "10.62.0.0", "255.255.255.0")
        await bench.write_table(0, PORT + 1, "0.0.0.0", "0.0.0.0")
        bench.send_good(rng, good_packet(rng, rng.randint(1, 100)))
        await bench.source.drain()
        await bench.wait(8)
        bench.good.finish()
