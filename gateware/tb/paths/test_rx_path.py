# SPDX-License-Identifier: Apache-2.0
"""mac and rx_path, from the wire to payloads, at both rates: no loss at line rate for every size, latency without spread, faults that balance the books."""

from collections.abc import Callable
from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from common.bench import SHORT, Scoreboard, never, random_numbers
from common.frames import (
    FCS_BYTES,
    LOCAL_IP,
    LOCAL_MAC,
    SENDER_MAC,
    frame_of,
    group_mac,
    mac_number,
    udp_frame,
    udp_packet,
    with_fcs,
)
from common.requests import REPLIER_DROPS, answer_to, arp_request, echo_request, refused_requests
from common.streams import Packet, StreamSink
from common.wires import CYCLE_BYTES, GAP_BYTES, GBPS, PREAMBLE, PREAMBLE_BYTES, wire_source
from path_bench import BRIEF, REPLIER, PathBench

DROPS = {
    *(
        "drop_preamble",
        "drop_control",
        "drop_oversize",
        "drop_runt",
        "drop_fcs",
        "drop_mac_address",
        "drop_ethertype",
        "drop_short",
    ),
    *("drop_version", "drop_options", "drop_header_checksum", "drop_fragment", "drop_protocol", "drop_address", "drop_length"),
    *("drop_empty", "drop_no_match", "drop_truncated", "drop_udp_checksum"),
} | REPLIER_DROPS
ANSWERED = ["answered_arp", "answered_echo", "drop_busy"]
HEADER_BYTES, PORT = 42, 6001
FRAME_BYTES_MAX = 9022
LAST_BYTE_CYCLES_MAX = {10: 11, 1: 10}[GBPS]  # docs/design/gateware.md
LANES = (False, True) if GBPS == 10 else (False,)  # where a frame may begin: lane 4 or not


class RxPathBench(PathBench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["count_good", *ANSWERED, *sorted(DROPS)])
        dut.local_mac.value, dut.local_address.value = mac_number(LOCAL_MAC), int(IPv4Address(LOCAL_IP))
        self.source = wire_source(self)
        self.good = Scoreboard("payloads")
        self.seen: list[Packet] = []
        self.sink = StreamSink(self, "m_axis", self.take, meta=["m_meta_start_cycle", "m_meta_payload_bytes"])
        self.answers = Scoreboard("answers")
        self.answer_sink = StreamSink(self, "m_reply", lambda packet: self.answers.take(packet.data))

    def take(self, packet: Packet) -> None:
        if not packet.user:
            assert packet.meta["m_meta_payload_bytes"] == len(packet.data)
            self.seen.append(packet)
            self.good.take(packet.data)

    def send_good(self, payload: bytes, **how: Any) -> bytes:
        """Returns the frame."""
        self.good.expect(payload)
        frame = with_fcs(udp_frame(payload, port=PORT))
        self.source.send(frame, **how)
        return frame

    async def quiet(self) -> None:
        await self.source.wait()
        await self.wait(20)


def needed_if(needed: bool) -> Callable[[Any], Any]:
    """A test of this set of parameters, or none."""
    return cocotb.test if needed else lambda function: function


async def started(dut: Any) -> RxPathBench:
    bench = RxPathBench(dut)
    await bench.reset()
    dut.match_write.value, dut.match_enable.value, dut.match_index.value, dut.match_port.value = 1, 1, 3, PORT
    dut.match_source_address.value = dut.match_source_mask.value = dut.match_target.value = 0
    await bench.wait(1)
    dut.match_write.value = 0
    return bench


def start_of(packet: Packet) -> int:
    return packet.meta["m_meta_start_cycle"]


def wire_cycles(frame_bytes: int, lane4: bool) -> int:
    """From the cycle that a frame's stamp tells of, that of the start character or of the start-of-frame delimiter, to that of its last byte."""
    return (4 * lane4 + PREAMBLE_BYTES + frame_bytes - 1) // 8 if GBPS == 10 else frame_bytes


def bursts(rng: Random) -> list[list[int]]:
    """Sizes of frames, with their check sequence, that come back to back. At 10 Gb/s the same some times, so that each lane and each gap is met; at
    1 Gb/s, where a frame does not know what was before it, every size once, in any order."""
    if GBPS == 10:
        sizes = [64, 65, 71, 72, 1518] if BRIEF else [*range(64, 132), *range(132, 1519, 33), 1518, 9000]
        return [[size] * (16 if size < 200 else 6) for size in sizes]
    sizes = [64, 65, 71, 72, 1518, *rng.sample(range(64, 1519), k=20)] if BRIEF else [*range(64, 1519)]
    rng.shuffle(sizes)
    return [sizes]


@cocotb.test
async def no_loss_at_line_rate_for_every_size(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    total = 0
    for sizes in bursts(rng):
        for size in sizes:
            bench.send_good(rng.randbytes(size - HEADER_BYTES - FCS_BYTES))
        await bench.quiet()
        first, last = bench.seen[total], bench.seen[-1]
        wire_bytes = sum(PREAMBLE_BYTES + size + GAP_BYTES for size in sizes[:-1])
        late = (start_of(last) - start_of(first)) * CYCLE_BYTES - wire_bytes
        assert abs(late) <= CYCLE_BYTES - 1 + (GBPS == 10), f"from {sizes[0]} to {sizes[-1]} bytes: not sent at line rate"
        total += len(sizes)
    bench.good.finish()
    bench.expect_counts(count_good=total)


@cocotb.test
async def full_rate_of_1472_byte_payloads(dut: Any) -> None:
    """1472 of 1538 byte times are payload: 119.6 MB/s at 1 Gb/s."""
    rng = random_numbers()
    bench = await started(dut)
    size, count = 1472, 20 if BRIEF else 50
    for _ in range(count):
        bench.send_good(rng.randbytes(size))
    await bench.quiet()
    bench.good.finish()
    bench.expect_counts(count_good=count)
    elapsed_s = (bench.seen[-1].last_cycle - bench.seen[0].last_cycle) * bench.clock_ps * 1e-12
    rate = (count - 1) * size / elapsed_s * 1e-6
    print(f"figure: payloads of {size} B back to back at {GBPS} Gb/s: {rate:.1f} MB/s, none lost of {count}", flush=True)
    assert abs(rate / GBPS - 119.6) < (0.05 if GBPS == 1 else 0.2)


@cocotb.test
async def latency_has_no_spread(dut: Any) -> None:
    """From the last byte on the wire to the last payload word, and from the first to the first: one number a size and start lane."""
    rng = random_numbers()
    bench = await started(dut)
    sizes = [1, 18, 22, 1168, 1472] if BRIEF else [*range(1, 60), 100, 500, 1168, 1472]
    seen: dict[tuple[int, bool], set[tuple[int, int]]] = {}
    for _ in range(2 + len(LANES)):
        for size in rng.sample(sizes, k=len(sizes)):
            lane4 = rng.choice(LANES)
            frame = bench.send_good(rng.randbytes(size), lane4=lane4)
            await bench.source.wait()
            await bench.wait(rng.randint(16, 30))
            packet = bench.seen[-1]
            from_last_byte = packet.last_cycle - start_of(packet) - wire_cycles(len(frame), lane4)
            seen.setdefault((size, lane4), set()).add((packet.first_cycle - start_of(packet), from_last_byte))
    assert all(len(latencies) == 1 for latencies in seen.values()), "the latency of a size moves"
    slowest = max(from_last for latencies in seen.values() for _, from_last in latencies)
    print(
        f"figure: last byte at {GBPS} Gb/s to last payload word: at most {slowest} cycles, spread 0 at each size and lane",
        flush=True,
    )
    assert slowest <= LAST_BYTE_CYCLES_MAX
    bench.good.finish()


def random_fault(rng: Random) -> tuple[str, bytes, tuple[int, ...]]:
    """Counter, frame with check sequence, places of error marks."""
    untested = {"drop_preamble", "drop_oversize", "drop_short", "drop_length", "drop_options", "drop_version"}
    name = rng.choice(sorted(DROPS - untested - (set() if REPLIER else REPLIER_DROPS)))
    size = rng.randint(20, 150)
    fields: dict[str, Any] = {
        "drop_mac_address": {"Ether": {"dst": "02:00:00:00:00:09"}},
        "drop_ethertype": {"Ether": {"type": 0x86DD}},
        "drop_header_checksum": {"IP": {"chksum": 1}},
        "drop_fragment": {"IP": {"flags": "MF"}},
        "drop_protocol": {"IP": {"proto": 6}},
        "drop_address": {"IP": {"dst": "10.62.0.99"}},
        "drop_no_match": {"port": PORT + 1},
        "drop_udp_checksum": {"UDP": {"chksum": 1}},
    }.get(name, {})
    packet = udp_packet(rng.randbytes(0 if name == "drop_empty" else size), **({"port": PORT} | fields))
    packet = refused_requests(size).get(name, packet)
    frame = bytearray(with_fcs(frame_of(packet)))
    marked: tuple[int, ...] = ()
    if name == "drop_fcs":
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
    elif name == "drop_runt":
        frame = frame[: rng.randint(1, 63)]
    elif name == "drop_control":
        marked = (rng.randrange(len(frame)),)
    elif name == "drop_truncated":
        frame = bytearray(with_fcs(udp_frame(rng.randbytes(100), port=PORT)[: rng.randint(60, 141)]))
    return name, bytes(frame), marked


@cocotb.test
async def faults_among_good_frames_at_line_rate(dut: Any) -> None:
    """Tagged or not, good and bad in any order, back to back: every good payload arrives, every bad frame has its counter, every request its
    answer; without replier each is a drop as any other."""
    rng = random_numbers()
    bench = await started(dut)
    expected = dict.fromkeys(bench.counts, 0)
    for _ in range({10: (300, 3000), 1: (150, 1000)}[GBPS][not SHORT]):
        if rng.random() < 0.4:
            name, frame, marked = random_fault(rng)
            bench.source.send(frame, marked=marked)
        elif rng.random() < 0.3:
            vlan = rng.choice([None, rng.randrange(4096)])
            name = rng.choice(ANSWERED[:2])
            request = arp_request(vlan) if name == "answered_arp" else echo_request(rng.randbytes(rng.randrange(80)), vlan)
            if REPLIER:
                bench.answers.expect(answer_to(request))
            else:
                name = {"answered_arp": "drop_ethertype", "answered_echo": "drop_protocol"}[name]
            bench.source.send(with_fcs(frame_of(request)))
        else:
            name = "count_good"
            packet = udp_packet(rng.randbytes(rng.randint(1, 200)), port=PORT, vlan=rng.choice([None, rng.randrange(4096)]))
            bench.good.expect(bytes(packet["UDP"].payload))
            bench.source.send(with_fcs(frame_of(packet)))
        expected[name] += 1
    await bench.quiet()
    bench.good.finish()
    await bench.wait_until(bench.answers.complete, 1000, "all answers")
    bench.expect_counts(**expected)


@cocotb.test
async def bad_preamble_and_oversize_spare_the_next(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    rounds = 2 if BRIEF else 6
    for _ in range(rounds):
        preamble = bytearray(PREAMBLE)
        preamble[7 if GBPS == 10 else rng.randrange(8)] = 0x5D  # on XGMII the delimiter alone is looked at
        bench.source.send(with_fcs(udp_frame(rng.randbytes(100), port=PORT)), preamble=bytes(preamble))
        bench.source.send(with_fcs(rng.randbytes(FRAME_BYTES_MAX - FCS_BYTES + rng.randint(1, 9))))
        bench.send_good(rng.randbytes(rng.randint(1, 100)))
        await bench.quiet()
    bench.good.finish()
    # An oversize frame is not for this station, but its fault is the one further left.
    bench.expect_counts(count_good=rounds, drop_preamble=rounds, drop_oversize=rounds)


@cocotb.test
async def groups_as_they_are_written(dut: Any) -> None:
    """Packets to a group, in frames to it, to all and to the station; the others that share its Ethernet address; entries that are beyond the last, that are
    written with what is no group, and that are emptied. Nothing that came to a group is answered."""
    rng = random_numbers()
    bench = await started(dut)

    async def write(index: int, address: str) -> None:
        dut.group_write.value, dut.group_index.value, dut.group_address.value = 1, index, int(IPv4Address(address))
        await bench.wait(1)
        dut.group_write.value = 0

    expected = dict.fromkeys(bench.counts, 0)

    async def look(group: str, mac: str, name: str) -> None:
        packet = udp_packet(rng.randbytes(rng.randint(1, 60)), port=PORT, Ether={"dst": mac}, IP={"dst": group})
        if name == "count_good":
            bench.good.expect(bytes(packet["UDP"].payload))
        bench.source.send(with_fcs(frame_of(packet)))
        expected[name] += 1
        await bench.quiet()
        bench.good.finish()
        assert bench.counts == expected, (group, mac, name)

    for round_ in range(1 if BRIEF else 4):
        group = f"239.{rng.randrange(128)}.{rng.randrange(256)}.{rng.randint(1, 254)}"
        sharing = str(IPv4Address(int(IPv4Address(group)) ^ 1 << rng.randrange(23, 28)))
        index, mac = round_ % 4, group_mac(group)
        await look(group, mac, "drop_mac_address")
        await look(group, LOCAL_MAC, "drop_address")
        await write(index + 4, group)
        await look(group, mac, "drop_mac_address")
        await write(index, group)
        for one in (mac, LOCAL_MAC, "ff:ff:ff:ff:ff:ff"):
            await look(group, one, "count_good")
            await look(sharing, one, "drop_address")
        await look(LOCAL_IP, mac, "drop_address")
        await look("255.255.255.255", mac, "drop_address")
        requests = [("drop_ethertype", arp_request()), ("drop_protocol", echo_request(b"x", IP={"dst": group}))]
        for name, request in requests:
            request.dst, request.src = mac, SENDER_MAC
            bench.source.send(with_fcs(frame_of(request)))
            expected[name] += 1
            await bench.quiet()
            assert bench.counts == expected, name
        for no_group in ("0.0.0.0", "223.255.255.255", "240.0.0.0", "127.0.0.1", "255.255.255.255", LOCAL_IP):
            await write(index, no_group)
            await look(group, mac, "drop_mac_address")
            await look(no_group if no_group != LOCAL_IP else sharing, group_mac(no_group), "drop_mac_address")
            await write(index, group)
        await write(index, "0.0.0.0")
    await write(1, "239.5.6.7")
    await bench.reset()
    await look("239.5.6.7", group_mac("239.5.6.7"), "drop_mac_address")


@needed_if(REPLIER)
async def requests_do_not_change_the_latency_of_payloads(dut: Any) -> None:
    """The same payloads alone and among requests, back to back, also while the answers cannot leave and are dropped as busy."""
    rng = random_numbers()
    bench = await started(dut)
    payloads = [rng.randbytes(rng.randint(1, 300)) for _ in range(60 if SHORT or GBPS == 1 else 400)]
    latencies: list[list[int]] = []
    bench.answer_sink.take = lambda packet: None
    for asks, stuck in ((False, False), (True, False), (True, True)):
        bench.answer_sink.pause = (lambda: True) if stuck else never
        first = len(bench.seen)
        for payload in payloads:
            bench.send_good(payload)
            for _ in range(rng.randrange(3) if asks else 0):
                bench.source.send(with_fcs(frame_of(rng.choice([arp_request(), echo_request(rng.randbytes(200))]))))
        await bench.quiet()
        latencies.append([packet.last_cycle - start_of(packet) for packet in bench.seen[first:]])
        bench.good.finish()
    # On XGMII a frame begins on either lane, which is half a cycle in a count of whole ones.
    for alone, *among in zip(*latencies, strict=True):
        assert all(abs(cycles - alone) <= (GBPS == 10) for cycles in among)
    counts = bench.counts
    assert counts["drop_busy"] > 0
    assert counts["answered_arp"] + counts["answered_echo"] > 0
