# SPDX-License-Identifier: Apache-2.0
"""rx_path_10g, from XGMII to payloads: no loss at line rate for every size, latency without spread, faults that balance the books."""

from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from cocotbext.eth import XgmiiFrame, XgmiiSource
from common.bench import SHORT, Bench, Scoreboard, random_numbers
from common.frames import FCS_BYTES, LOCAL_IP, LOCAL_MAC, frame_of, mac_number, udp_frame, udp_packet, with_fcs
from common.requests import REPLIER_DROPS, answer_to, arp_request, echo_request, refused_requests
from common.streams import Packet, StreamSink

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
HEADER_BYTES, PORT, LAST_BYTE_CYCLES_MAX = 42, 6001, 64
ERROR = 0xFE


class RxPathBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["count_good", *ANSWERED, *sorted(DROPS)], now=True)
        dut.local_mac.value, dut.local_address.value = mac_number(LOCAL_MAC), int(IPv4Address(LOCAL_IP))
        dut.table_write.value = 0
        self.source = XgmiiSource(dut.xgmii_rxd, dut.xgmii_rxc, dut.clk, dut.rst)
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

    async def send(self, frame: bytes, control: dict[int, int] | None = None, lane4: bool = False) -> None:
        """frame: with its check sequence; control: control characters by place in it."""
        data = bytearray(b"\x55" * 7 + b"\xd5" + frame)
        flags = [0] * len(data)
        for place, character in (control or {}).items():
            data[8 + place], flags[8 + place] = character, 1
        self.source.force_offset_start = lane4
        await self.source.send(XgmiiFrame(data, flags))

    async def quiet(self) -> None:
        await self.source.wait()
        await self.wait(20)


async def started(dut: Any) -> RxPathBench:
    bench = RxPathBench(dut)
    await bench.reset()
    dut.table_write.value, dut.table_enable.value, dut.table_index.value, dut.table_port.value = 1, 1, 3, PORT
    dut.table_source_address.value = dut.table_source_mask.value = 0
    await bench.wait(1)
    dut.table_write.value = 0
    return bench


def xgmii_cycles(frame_bytes: int, lane4: bool) -> int:
    """From the word with the start character to that with the last byte of the check sequence."""
    return (4 * lane4 + 8 + frame_bytes - 1) // 8


@cocotb.test
async def no_loss_at_line_rate_for_every_size(dut: Any) -> None:
    """Sizes are those of frames with their check sequence: 64 to 1518, and 9000."""
    rng = random_numbers()
    bench = await started(dut)
    sizes = [64, 65, 71, 72, 1518] if SHORT else [*range(64, 132), *range(132, 1519, 33), 1518, 9000]
    total = 0
    for size in sizes:
        count = 16 if size < 200 else 6
        first = len(bench.seen)
        for _ in range(count):
            payload = rng.randbytes(size - HEADER_BYTES - FCS_BYTES)
            bench.good.expect(payload)
            await bench.send(with_fcs(udp_frame(payload, port=PORT)))
        await bench.quiet()
        starts = [packet.meta["m_meta_start_cycle"] for packet in bench.seen[first:]]
        assert abs((starts[-1] - starts[0]) * 8 - (count - 1) * (size + 20)) <= 8, f"{size} bytes: not sent at line rate"
        total += count
    bench.good.finish()
    bench.expect_counts(count_good=total)


@cocotb.test
async def latency_has_no_spread(dut: Any) -> None:
    """From the last byte on XGMII to the last payload word, and from the first to the first: one number a size and start lane."""
    rng = random_numbers()
    bench = await started(dut)
    sizes = [1, 18, 22, 1168, 1472] if SHORT else [*range(1, 60), 100, 500, 1168, 1472]
    seen: dict[tuple[int, bool], set[tuple[int, int]]] = {}
    for _ in range(4):
        for size in rng.sample(sizes, k=len(sizes)):
            lane4 = rng.random() < 0.5
            frame = with_fcs(udp_frame(rng.randbytes(size), port=PORT))
            bench.good.expect(frame[HEADER_BYTES : HEADER_BYTES + size])
            await bench.send(frame, lane4=lane4)
            await bench.source.wait()
            await bench.wait(rng.randint(16, 30))
            packet = bench.seen[-1]
            start = packet.meta["m_meta_start_cycle"]
            from_last_byte = packet.last_cycle - start - xgmii_cycles(len(frame), lane4)
            seen.setdefault((size, lane4), set()).add((packet.first_cycle - start, from_last_byte))
    assert all(len(latencies) == 1 for latencies in seen.values()), "the latency of a size moves"
    slowest = max(from_last for latencies in seen.values() for _, from_last in latencies)
    assert slowest <= LAST_BYTE_CYCLES_MAX
    print(f"figure: last byte on XGMII to last payload word: at most {slowest} cycles, spread 0 at each size and lane", flush=True)
    bench.good.finish()


def random_fault(rng: Random) -> tuple[str, bytes, dict[int, int]]:
    """Counter, frame with check sequence, control characters."""
    name = rng.choice(
        sorted(DROPS - {"drop_preamble", "drop_oversize", "drop_short", "drop_length", "drop_options", "drop_version"})
    )
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
    control: dict[int, int] = {}
    if name == "drop_fcs":
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
    elif name == "drop_runt":
        frame = frame[: rng.randint(1, 63)]
    elif name == "drop_control":
        control = {rng.randrange(len(frame)): ERROR}
    elif name == "drop_truncated":
        frame = bytearray(with_fcs(udp_frame(rng.randbytes(100), port=PORT)[: rng.randint(60, 141)]))
    return name, bytes(frame), control


@cocotb.test
async def faults_among_good_frames_at_line_rate(dut: Any) -> None:
    """Tagged or not, good and bad in any order, back to back: every good payload arrives, every bad frame has its counter, every request its
    answer."""
    rng = random_numbers()
    bench = await started(dut)
    expected = dict.fromkeys(bench.counts, 0)
    for _ in range(300 if SHORT else 3000):
        if rng.random() < 0.4:
            name, frame, control = random_fault(rng)
            await bench.send(frame, control)
        elif rng.random() < 0.3:
            vlan = rng.choice([None, rng.randrange(4096)])
            name = rng.choice(ANSWERED[:2])
            request = arp_request(vlan) if name == "answered_arp" else echo_request(rng.randbytes(rng.randrange(80)), vlan)
            bench.answers.expect(answer_to(request))
            await bench.send(with_fcs(frame_of(request)))
        else:
            name = "count_good"
            packet = udp_packet(rng.randbytes(rng.randint(1, 200)), port=PORT, vlan=rng.choice([None, rng.randrange(4096)]))
            bench.good.expect(bytes(packet["UDP"].payload))
            await bench.send(with_fcs(frame_of(packet)))
        expected[name] += 1
    await bench.quiet()
    bench.good.finish()
    await bench.wait_until(bench.answers.complete, 1000, "all answers")
    bench.expect_counts(**expected)


@cocotb.test
async def requests_do_not_change_the_latency_of_payloads(dut: Any) -> None:
    """The same payloads alone and among requests, back to back, also while the answers cannot leave and are dropped as busy."""
    rng = random_numbers()
    bench = await started(dut)
    frames = [with_fcs(udp_frame(rng.randbytes(rng.randint(1, 300)), port=PORT)) for _ in range(60 if SHORT else 400)]
    latencies: list[list[int]] = []
    bench.answer_sink.take = lambda packet: None
    for asks, stuck in ((False, False), (True, False), (True, True)):
        bench.answer_sink.pause = lambda stuck=stuck: stuck
        first = len(bench.seen)
        for frame in frames:
            bench.good.expect(frame[HEADER_BYTES : HEADER_BYTES + int.from_bytes(frame[38:40], "big") - 8])
            await bench.send(frame)
            for _ in range(rng.randrange(3) if asks else 0):
                await bench.send(with_fcs(frame_of(rng.choice([arp_request(), echo_request(rng.randbytes(200))]))))
        await bench.quiet()
        seen = bench.seen[first:]
        latencies.append([packet.last_cycle - packet.meta["m_meta_start_cycle"] for packet in seen])
        bench.good.finish()
    # A frame begins on either lane, which is half a cycle in a count of whole ones.
    for alone, *among in zip(*latencies, strict=True):
        assert all(abs(cycles - alone) <= 1 for cycles in among)
    assert bench.counts["drop_busy"] > 0
    assert bench.counts["answered_arp"] + bench.counts["answered_echo"] > 0
