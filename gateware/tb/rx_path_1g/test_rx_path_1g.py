# SPDX-License-Identifier: Apache-2.0
"""rx_path_1g, from GMII to payloads: no loss at line rate for every size, latency without spread, faults that balance the books."""

from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from common.bench import CLOCK_1G_PS, PARAMETERS, SHORT, Bench, Scoreboard, random_numbers
from common.frames import FCS_BYTES, LOCAL_IP, LOCAL_MAC, frame_of, mac_number, udp_frame, udp_packet, with_fcs
from common.gmii import GAP_BYTES, PREAMBLE_BYTES, QuickGmiiSource, gmii_frame
from common.requests import REPLIER_DROPS, answer_to, arp_request, echo_request, refused_requests
from common.streams import Packet, StreamSink

DROPS = {
    *(
        "drop_preamble",
        "drop_error",
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
HEADER_BYTES, PORT, LAST_BYTE_CYCLES_MAX = 42, 6001, 10
FRAME_BYTES_MAX = 9022


class RxPathBench(Bench):
    clock_ps = CLOCK_1G_PS
    pulses_apart = True

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["count_good", *ANSWERED, *sorted(DROPS)], now=True)
        dut.local_mac.value, dut.local_address.value = mac_number(LOCAL_MAC), int(IPv4Address(LOCAL_IP))
        dut.table_write.value = 0
        self.source = QuickGmiiSource(self)
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

    def send(self, frame: bytes, error_at: tuple[int, ...] = ()) -> None:
        """frame: with its check sequence; error_at: where gmii_rx_er is set."""
        self.source.send(gmii_frame(frame, error_at=error_at))

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


@cocotb.test
async def no_loss_at_line_rate_for_every_size(dut: Any) -> None:
    """Every size of a frame with its check sequence from 64 to 1518, in any order, back to back."""
    rng = random_numbers()
    bench = await started(dut)
    sizes = [64, 65, 71, 72, 1518, *rng.sample(range(64, 1519), k=20)] if SHORT else [*range(64, 1519)]
    rng.shuffle(sizes)
    for size in sizes:
        payload = rng.randbytes(size - HEADER_BYTES - FCS_BYTES)
        bench.good.expect(payload)
        bench.send(with_fcs(udp_frame(payload, port=PORT)))
    await bench.quiet()
    bench.good.finish()
    bench.expect_counts(count_good=len(sizes))
    starts = [packet.meta["m_meta_start_cycle"] for packet in bench.seen]
    assert starts[-1] - starts[0] == sum(PREAMBLE_BYTES + size + GAP_BYTES for size in sizes[:-1]), "not sent at line rate"


@cocotb.test
async def full_rate_of_1472_byte_payloads(dut: Any) -> None:
    """1472 of 1538 byte times of 8 ns are payload: 119.6 MB/s."""
    rng = random_numbers()
    bench = await started(dut)
    size, count = 1472, 20 if SHORT else 50
    for _ in range(count):
        payload = rng.randbytes(size)
        bench.good.expect(payload)
        bench.send(with_fcs(udp_frame(payload, port=PORT)))
    await bench.quiet()
    bench.good.finish()
    bench.expect_counts(count_good=count)
    elapsed_s = (bench.seen[-1].last_cycle - bench.seen[0].last_cycle) * CLOCK_1G_PS * 1e-12
    rate = (count - 1) * size / elapsed_s * 1e-6
    print(f"figure: payloads of {size} B back to back on GMII: {rate:.1f} MB/s at 125 MHz, none lost of {count}", flush=True)
    assert f"{rate:.1f}" == "119.6"


@cocotb.test
async def latency_has_no_spread(dut: Any) -> None:
    """From the last byte on GMII to the last payload word, and from the first to the first: one number a size."""
    rng = random_numbers()
    bench = await started(dut)
    sizes = [1, 18, 22, 1168, 1472] if SHORT else [*range(1, 60), 100, 500, 1168, 1472]
    seen: dict[int, set[tuple[int, int]]] = {}
    for _ in range(3):
        for size in rng.sample(sizes, k=len(sizes)):
            frame = with_fcs(udp_frame(rng.randbytes(size), port=PORT))
            bench.good.expect(frame[HEADER_BYTES : HEADER_BYTES + size])
            bench.send(frame)
            await bench.source.wait()
            await bench.wait(rng.randint(16, 30))
            packet = bench.seen[-1]
            delimiter = packet.meta["m_meta_start_cycle"]
            from_last_byte = packet.last_cycle - delimiter - len(frame)
            seen.setdefault(size, set()).add((packet.first_cycle - delimiter, from_last_byte))
    assert all(len(latencies) == 1 for latencies in seen.values()), "the latency of a size moves"
    slowest = max(from_last for latencies in seen.values() for _, from_last in latencies)
    print(f"figure: last byte on GMII to last payload word: at most {slowest} cycles, spread 0 at each size", flush=True)
    assert slowest <= LAST_BYTE_CYCLES_MAX
    bench.good.finish()


def random_fault(rng: Random) -> tuple[str, bytes, tuple[int, ...]]:
    """Counter, frame with check sequence, where gmii_rx_er is set."""
    untested = {"drop_preamble", "drop_oversize", "drop_short", "drop_length", "drop_options", "drop_version"}
    name = rng.choice(sorted(DROPS - untested - (set() if PARAMETERS["REPLIER"] else REPLIER_DROPS)))
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
    error_at: tuple[int, ...] = ()
    if name == "drop_fcs":
        frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
    elif name == "drop_runt":
        frame = frame[: rng.randint(1, 63)]
    elif name == "drop_error":
        error_at = (rng.randrange(len(frame)),)
    elif name == "drop_truncated":
        frame = bytearray(with_fcs(udp_frame(rng.randbytes(100), port=PORT)[: rng.randint(60, 141)]))
    return name, bytes(frame), error_at


@cocotb.test
async def faults_among_good_frames_at_line_rate(dut: Any) -> None:
    """Tagged or not, good and bad in any order, back to back: every good payload arrives, every bad frame has its counter, every request its
    answer."""
    rng = random_numbers()
    bench = await started(dut)
    expected = dict.fromkeys(bench.counts, 0)
    for _ in range(150 if SHORT else 1000):
        if rng.random() < 0.4:
            name, frame, error_at = random_fault(rng)
            bench.send(frame, error_at)
        elif rng.random() < 0.3:
            vlan = rng.choice([None, rng.randrange(4096)])
            name = rng.choice(ANSWERED[:2])
            request = arp_request(vlan) if name == "answered_arp" else echo_request(rng.randbytes(rng.randrange(80)), vlan)
            if PARAMETERS["REPLIER"]:
                bench.answers.expect(answer_to(request))
            else:
                name = {"answered_arp": "drop_ethertype", "answered_echo": "drop_protocol"}[name]
            bench.send(with_fcs(frame_of(request)))
        else:
            name = "count_good"
            packet = udp_packet(rng.randbytes(rng.randint(1, 200)), port=PORT, vlan=rng.choice([None, rng.randrange(4096)]))
            bench.good.expect(bytes(packet["UDP"].payload))
            bench.send(with_fcs(frame_of(packet)))
        expected[name] += 1
    await bench.quiet()
    bench.good.finish()
    await bench.wait_until(bench.answers.complete, 1000, "all answers")
    bench.expect_counts(**expected)


@cocotb.test
async def bad_preamble_and_oversize_spare_the_next(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    rounds = 2 if SHORT else 6
    for _ in range(rounds):
        bad = gmii_frame(with_fcs(udp_frame(rng.randbytes(100), port=PORT)))
        bad.data[rng.randrange(8)] = 0x5D
        bench.source.send(bad)
        bench.send(with_fcs(rng.randbytes(FRAME_BYTES_MAX - FCS_BYTES + rng.randint(1, 9))))
        payload = rng.randbytes(rng.randint(1, 100))
        bench.good.expect(payload)
        bench.send(with_fcs(udp_frame(payload, port=PORT)))
        await bench.quiet()
    bench.good.finish()
    # An oversize frame is not for this station, but its fault is the one further left.
    bench.expect_counts(count_good=rounds, drop_preamble=rounds, drop_oversize=rounds)
