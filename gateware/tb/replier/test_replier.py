# SPDX-License-Identifier: Apache-2.0
"""replier against scapy's requests and answers: every size, filling cut off, every fault under its own counter, a buffer that is full."""

from collections.abc import Callable
from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, Bench, Scoreboard, never, pauses, random_numbers
from common.frames import LOCAL_IP, LOCAL_MAC, SENDER_MAC, mac_number, udp_packet
from common.requests import answer_to, arp_request, echo_request
from common.streams import Packet, StreamSink, StreamSource
from scapy.layers.inet import ICMP
from scapy.layers.l2 import ARP, Ether

DROPS = [
    "drop_arp_malformed",
    "drop_arp_other",
    "drop_icmp_length",
    "drop_icmp_checksum",
    "drop_icmp_other",
    "drop_echo_large",
]
ECHO_BYTES_MAX = PARAMETERS.get("ECHO_BYTES_MAX", 1472)
DEPTH_WORDS = PARAMETERS.get("DEPTH_WORDS", 512)
PACKETS = PARAMETERS.get("PACKETS", 16)
ETHER_BYTES, GAP_CYCLES, FILLED_BYTES = 14, 3, 46
LATENCY_CYCLES = 5  # from a request's last word to its answer's first, if none waits
GROUP = "01:00:5e:00:00:01"
WRONG_ARP: list[dict[str, Any]] = [{"hwtype": 6}, {"ptype": 0x86DD}, {"hwlen": 8}, {"plen": 16}]
OTHER_ARP: list[dict[str, Any]] = [{"op": 2}, {"op": 3}, {"op": 0x101}, {"pdst": "10.62.0.2"}, {"pdst": "0.0.0.0"}]
OTHER_ICMP: list[dict[str, Any]] = [
    *({"ICMP": {"type": kind}} for kind in (0, 13, 9)),
    *({"ICMP": {"code": 1}}, {"IP": {"dst": "255.255.255.255"}}, {"Ether": {"src": GROUP}}),
]


class ReplierBench(Bench):
    """Its input is what eth_rx hands on; `s_for_replier` is driven as udp_rx would, for the whole packet."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, ["answered_arp", "answered_echo", *DROPS, "drop_busy"])
        dut.local_mac.value, dut.local_address.value = mac_number(LOCAL_MAC), int(IPv4Address(LOCAL_IP))
        self.source = StreamSource(
            self, "s_axis", meta=["s_meta_source_mac", "s_meta_ethertype", "s_for_replier"], gap_cycles=GAP_CYCLES
        )
        self.answers = Scoreboard("answers")
        self.sink = StreamSink(self, "m_axis", self.take)
        self.last = Packet(b"")

    def take(self, packet: Packet) -> None:
        self.last = packet
        self.answers.take(packet.data)

    def send(self, request: Any, *, user: int = 0, wanted: int = 1, cut_bytes: int | None = None, behind: bytes = b"") -> Packet:
        """behind: bytes that follow the packet; cut_bytes: what is left of it."""
        data = bytes(request)[ETHER_BYTES:][:cut_bytes] + behind
        meta = {
            "s_meta_source_mac": mac_number(request[Ether].src),
            "s_meta_ethertype": request[Ether].type,
            "s_for_replier": wanted,
        }
        packet = Packet(data.ljust(FILLED_BYTES, b"\0"), user, meta)
        self.source.send(packet)
        return packet

    def ask(self, request: Any, **how: Any) -> Packet:
        """A request that is answered."""
        self.answers.expect(answer_to(request))
        return self.send(request, **how)

    async def finish(self) -> None:
        await self.source.drain()
        await self.wait_until(self.answers.complete, 100_000, "all answers")
        await self.wait(8)
        self.answers.finish()


async def started(dut: Any) -> ReplierBench:
    bench = ReplierBench(dut)
    await bench.reset()
    return bench


def random_mac(rng: Random) -> str:
    return "02:" + ":".join(f"{byte:02x}" for byte in rng.randbytes(5))


def random_arp(rng: Random) -> Any:
    request = arp_request(hwsrc=random_mac(rng), psrc=str(IPv4Address(rng.getrandbits(32))), hwdst=random_mac(rng))
    request[Ether].src = request[ARP].hwsrc
    return request


def random_echo(rng: Random, size: int) -> Any:
    fields = {"src": str(IPv4Address(rng.getrandbits(32))), "ttl": rng.randint(1, 255), "tos": rng.getrandbits(8)}
    return echo_request(
        rng.randbytes(size),
        Ether={"src": random_mac(rng)},
        IP=fields | {"id": rng.getrandbits(16), "flags": rng.choice([0, "DF"])},
        ICMP={"id": rng.getrandbits(16), "seq": rng.getrandbits(16)},
    )


@cocotb.test
async def every_size_is_answered_as_scapy_does(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    sizes = [*range(40), *range(40, ECHO_BYTES_MAX, 97 if SHORT else 7), ECHO_BYTES_MAX]
    for size in sizes:
        for request, behind in ((random_echo(rng, size), rng.randbytes(rng.choice([0, 0, 3, 40]))), (random_arp(rng), b"")):
            sent = bench.ask(request, behind=behind)
            await bench.finish()
            assert bench.last.first_cycle - sent.last_cycle == LATENCY_CYCLES
            assert bench.last.last_cycle - bench.last.first_cycle + 1 == bench.last.words, "a gap in an answer"
    bench.expect_counts(answered_arp=len(sizes), answered_echo=len(sizes))


@cocotb.test
async def sums_that_overflow(dut: Any) -> None:
    """Checksums of all ones and all zeros, in the request and in the answer."""
    rng = random_numbers()
    bench = await started(dut)
    count = 0
    for checksum in [0, 1, 0xF7FF, 0xF800, 0xFFFE, 0xFFFF]:
        data = bytearray(rng.randbytes(30))
        request = echo_request(bytes(data), ICMP={"id": rng.getrandbits(16)})
        sum_now = int.from_bytes(bytes(request)[36:38], "big")
        # What the last half has to be for the checksum wanted: sums of ones' complement.
        change = (~checksum & 0xFFFF) + sum_now
        half = int.from_bytes(data[-2:], "big") + (change & 0xFFFF) + (change >> 16)
        half = (half & 0xFFFF) + (half >> 16)
        data[-2:] = ((half & 0xFFFF) + (half >> 16)).to_bytes(2, "big")
        request = echo_request(bytes(data), ICMP={"id": request[ICMP].id})
        assert int.from_bytes(bytes(request)[36:38], "big") % 0xFFFF == checksum % 0xFFFF
        bench.ask(request)
        count += 1
    for ttl in (0, 64, 128, 255):
        for identification in (0, 0xFFFF, *(rng.getrandbits(16) for _ in range(20))):
            bench.ask(echo_request(b"", IP={"ttl": ttl, "id": identification}, ICMP={"id": 0, "seq": 0}))
            count += 1
            await bench.finish()
    bench.ask(echo_request(bytes(40), ICMP={"id": 0, "seq": 0}))
    await bench.finish()
    bench.expect_counts(answered_echo=count + 1)


def faults(rng: Random) -> dict[str, Callable[[ReplierBench], Packet]]:
    """By counter: sends something that it counts."""
    size = rng.randint(21, min(ECHO_BYTES_MAX, 200))
    cut_bytes = rng.randint(48, size + 27)  # of the packet; half of the cuts are at the end of a word
    cut_bytes -= cut_bytes % 8 if rng.random() < 0.5 else 0
    return {
        "drop_arp_malformed": lambda bench: bench.send(arp_request(**rng.choice(WRONG_ARP))),
        "drop_arp_other": lambda bench: bench.send(arp_request(**rng.choice(OTHER_ARP))),
        "drop_icmp_length": lambda bench: (
            bench.send(echo_request(b"", IP={"len": rng.randint(20, 27)}))
            if rng.random() < 0.5
            else bench.send(echo_request(rng.randbytes(size)), cut_bytes=cut_bytes)
        ),
        "drop_icmp_checksum": lambda bench: bench.send(with_flipped_bit(rng, echo_request(rng.randbytes(size)))),
        "drop_icmp_other": lambda bench: bench.send(echo_request(rng.randbytes(size), **rng.choice(OTHER_ICMP))),
        "drop_echo_large": lambda bench: bench.send(
            echo_request(rng.randbytes(ECHO_BYTES_MAX + rng.choice([1, rng.randint(1, 900)])))
        ),
    }


def with_flipped_bit(rng: Random, request: Any) -> Any:
    data = bytearray(bytes(request))
    data[rng.randrange(ETHER_BYTES + 22, len(data))] ^= 1 << rng.randrange(8)
    return Ether(bytes(data))


@cocotb.test
async def every_fault_has_its_counter_and_the_next_request_is_answered(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    assert list(faults(rng)) == DROPS
    expected = dict.fromkeys(bench.counts, 0)
    for round_ in range(8 if SHORT else 60):
        bench.source.pause = pauses(rng, 0.3) if round_ % 2 else never
        for name in rng.sample(DROPS, k=len(DROPS)):
            faults(rng)[name](bench)
            is_arp = rng.random() < 0.5
            bench.ask(random_arp(rng) if is_arp else random_echo(rng, rng.randint(0, 90)))
            expected[name] += 1
            expected["answered_arp" if is_arp else "answered_echo"] += 1
            await bench.finish()
            assert bench.counts == expected, name


@cocotb.test
async def requests_of_other_kinds_are_dropped(dut: Any) -> None:
    bench = await started(dut)
    for change in WRONG_ARP:
        bench.send(arp_request(**change))
    for change in OTHER_ARP:
        bench.send(arp_request(**change))
    for change in OTHER_ICMP:
        bench.send(echo_request(b"of another kind", **change))
    from_group = arp_request()
    from_group[Ether].src = GROUP
    bench.send(from_group)
    await bench.finish()
    bench.expect_counts(drop_arp_malformed=len(WRONG_ARP), drop_arp_other=len(OTHER_ARP) + 1, drop_icmp_other=len(OTHER_ICMP))


@cocotb.test
async def what_is_not_for_it_leaves_nothing(dut: Any) -> None:
    """UDP, packets that udp_rx refuses, and what came in bad, among requests at full rate with a consumer that pauses."""
    rng = random_numbers()
    bench = await started(dut)
    bench.sink.pause = pauses(rng, 0.2)
    answered = {"answered_arp": 0, "answered_echo": 0}
    for _ in range(150 if SHORT else 1500):
        kind = rng.randrange(6)
        if kind == 0:
            bench.send(udp_packet(rng.randbytes(rng.randint(0, 200))), wanted=0)
        elif kind == 1:
            bench.send(random_echo(rng, rng.randint(0, 200)), wanted=0)
        elif kind == 2:
            bench.send(rng.choice([random_arp, lambda rng: random_echo(rng, 60)])(rng), user=1)
        elif kind == 3:
            bench.send(random_arp(rng), wanted=0, cut_bytes=8)
        elif kind == 4:
            bench.ask(random_arp(rng))
            answered["answered_arp"] += 1
        else:
            bench.ask(random_echo(rng, rng.randint(0, 90)))
            answered["answered_echo"] += 1
        if rng.random() < 0.2:
            await bench.source.drain()
            await bench.wait(rng.randrange(40))
    await bench.finish()
    bench.expect_counts(**answered)


@cocotb.test
async def without_room_requests_are_dropped_and_counted(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    dut.m_axis_tready.value = 0
    bench.sink.pause = lambda: True
    await bench.wait(2)
    # Three words of two requests wait in the registers behind the buffer at most; so many find no room for sure.
    for _ in range(PACKETS + 2):
        bench.ask(random_arp(rng))
    for _ in range(5):
        bench.send(random_arp(rng))
    await bench.source.drain()
    await bench.wait(8)
    answered, busy = bench.counts["answered_arp"], bench.counts["drop_busy"]
    assert answered + busy == PACKETS + 7
    assert busy >= 5
    del bench.answers.expected[answered:]
    bench.sink.pause = never
    await bench.finish()
    bench.ask(random_echo(rng, 64))
    await bench.finish()
    bench.expect_counts(answered_arp=answered, drop_busy=busy, answered_echo=1)
    # Without room for words, not for packets.
    bench.sink.pause = lambda: True
    await bench.wait(2)
    fit = DEPTH_WORDS * 8 // (ECHO_BYTES_MAX + 28)
    for number in range(fit + 3):
        request = random_echo(rng, ECHO_BYTES_MAX)
        if number < fit:
            bench.ask(request)
        else:
            bench.send(request)
    await bench.source.drain()
    await bench.wait(8)
    assert bench.counts["drop_busy"] == busy + 3
    bench.sink.pause = never
    await bench.finish()


@cocotb.test
async def without_an_address_it_is_silent(dut: Any) -> None:
    bench = await started(dut)
    dut.local_address.value = 0
    bench.send(arp_request(pdst="0.0.0.0"))
    bench.send(echo_request(b"x" * 30, IP={"dst": "0.0.0.0"}))
    await bench.source.drain()
    await bench.wait(8)
    bench.expect_counts(drop_arp_other=1, drop_icmp_other=1)


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(20):
        data = bytes(random_echo(rng, rng.randint(20, 90)))[ETHER_BYTES:]
        dut.s_meta_ethertype.value, dut.s_for_replier.value, dut.s_meta_source_mac.value = 0x0800, 1, mac_number(SENDER_MAC)
        for offset in range(0, rng.randint(1, len(data)), 8):
            dut.s_axis_tdata.value = int.from_bytes(data[offset : offset + 8], "little")
            dut.s_axis_tkeep.value, dut.s_axis_tvalid.value = 0xFF, 1
            await bench.wait(1)
        dut.s_axis_tvalid.value = 0
        dut.rst.value = 1
        await bench.wait(3)
        dut.rst.value = 0
        bench.ask(random_echo(rng, rng.randint(0, 90)))
        await bench.finish()
