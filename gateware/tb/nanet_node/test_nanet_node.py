# SPDX-License-Identifier: Apache-2.0
"""nanet_node: events of all ports merged into host memory; payloads to the host, to other ports, out of the TX ring; bad input on every port; the books."""

from ipaddress import IPv4Address
from random import Random
from typing import Any

import cocotb
from common.bench import SHORT, never, pauses, random_numbers
from common.events import KEY_MASK, START, Event, marker, packed_packet, padded_packet, sealed
from common.frames import FRAME_BYTES_MIN, frame_of, group_mac, sent_frame, udp_frame, udp_packet, with_fcs
from common.merging import merge
from common.requests import answer_to, arp_request
from node_bench import (
    ALL,
    ENCAPSULATION,
    EVENT_PORT,
    FORWARD_PORT,
    JUMP,
    MERGE,
    NODE,
    NOWHERE_PORT,
    OWN_CLOCKS,
    PORTS,
    PROCESSING,
    RAW_PORT,
    NodeBench,
    destination_of,
)

LATENCY_CYCLES_MAX = 100  # from the last byte of the last part to the last word written


def only_if(has: Any) -> Any:
    """A test of what not every set of parameters has."""
    return cocotb.test if has else lambda function: function


async def started(dut: Any, rng: Random, core_ps: int | None = None, stands: bool = False, **how: Any) -> NodeBench:
    bench = NodeBench(dut, rng, core_ps, stands)
    await bench.begin(**how)
    return bench


def part(rng: Random, key: int, port: int, hits: int | None = None) -> Event:
    count = rng.randint(0, 10) if hits is None else hits
    return Event(key & KEY_MASK, rng.getrandbits(16), [port * 512 + rng.getrandbits(9) for _ in range(count)])


def packet_of(rng: Random, port: int, parts: list[Event]) -> bytes:
    return padded_packet(parts, board=port) if rng.random() < 0.4 else packed_packet(parts, rng.choice([0, 600]), board=port)


def bad_frame(rng: Random, port: int) -> bytes:
    """With its check sequence, which may be wrong: something that has no events, to the station or not."""
    good = packed_packet([part(rng, rng.getrandbits(40), port, hits=rng.randint(1, 10))], 60, board=port)
    kind = rng.randrange(10)
    if kind == 0:
        return with_fcs(frame_of(udp_packet(good, port=EVENT_PORT + 1000)))
    if kind == 1:
        return with_fcs(frame_of(udp_packet(good, port=EVENT_PORT, UDP={"chksum": 1})))
    if kind == 2:
        return with_fcs(udp_frame(good, port=EVENT_PORT))[:-1] + b"\0\1"
    if kind == 3:
        return with_fcs(udp_frame(sealed(good[:24]), port=EVENT_PORT))
    if kind == 4:
        return with_fcs(udp_frame(sealed(good[:2] + b"\x07" + good[3:]), port=EVENT_PORT))
    if kind == 5:
        return with_fcs(udp_frame(good[:20] + bytes([good[20] ^ 4]) + good[21:], port=EVENT_PORT))
    if kind == 6:
        return with_fcs(udp_frame(sealed(good[:21] + b"\xff" + good[22:]), port=EVENT_PORT))  # an event of 255 hits in 60 bytes
    if kind == 7:
        return with_fcs(udp_frame(good, port=EVENT_PORT, IP={"flags": "MF"}))
    if kind == 8:  # announces more than it has
        return with_fcs(frame_of(udp_packet(good, port=EVENT_PORT, IP={"len": 8000}, UDP={"len": 7980})))
    return with_fcs(rng.randbytes(rng.randint(60, 300)))


def compare(bench: NodeBench, streams: list[list[Event]]) -> None:
    """Every event with the hits of all its parts, in the order of time."""
    events, masks = bench.events()
    wanted = merge(streams, ALL, 128, JUMP)
    assert [(event.key, event.hits) for event in events] == [(event.key, event.hits) for event, _ in wanted.events]
    assert masks == [mask for _, mask in wanted.events]


@only_if(MERGE)
async def events_of_all_ports_and_faults(dut: Any) -> None:
    """Parts that are missing, hostile frames between them on every port, markers, a host that pauses."""
    rng = random_numbers()
    bench = await started(dut, rng)
    key = rng.getrandbits(40)
    streams: list[list[Event]] = [[] for _ in range(PORTS)]
    for _ in range(6 if SHORT else 40):
        bench.host.write_pause = rng.choice([never, pauses(rng, 0.3)])
        keys = [key := key + rng.randint(1, 1 << 20) for _ in range(rng.randint(1, 16))]
        for port in range(PORTS):
            for _ in range(rng.choice([0, 0, 1, 3])):
                bench.send(port, bad_frame(rng, port))
            if rng.random() < 0.2:
                bench.send_payload(port, marker(START))
            parts = [part(rng, one, port) for one in keys if rng.random() < 0.9]
            if parts and rng.random() < 0.9:
                streams[port] += parts
                bench.send_payload(port, packet_of(rng, port, parts))
        await bench.sent_all()
        await bench.host.release()
    bench.host.write_pause = never
    await bench.wait(1000)  # all parts wait for those of the others
    await bench.configure(window=0)
    await bench.settle()
    compare(bench, streams)
    books = await bench.balanced()
    assert [link["part"] for link in books.links] == merge(streams, ALL, 128, JUMP).parts
    assert books.events["complete"] + books.events["missing"] == len(bench.events()[0])


@only_if(MERGE)
async def through_the_table(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut, rng)
    parts = [part(rng, 77, port, hits=12) for port in range(PORTS)]
    table = {hit: rng.getrandbits(16) for one in parts for hit in one.hits}
    for index, hit in table.items():
        await bench.registers.write(NODE + 0x328, index | hit << 16)
    await bench.configure(table=1)
    for port in range(PORTS):
        bench.send_payload(port, packed_packet([parts[port]], board=port))
    await bench.settle()
    assert [event.hits for event in bench.events()[0]] == [[table[hit] for one in parts for hit in one.hits]]
    await bench.balanced()


@only_if(MERGE)
async def latency(dut: Any) -> None:
    """From the last byte of the last of the ports' frames of 1168 B, an event in each, to the last word of the merged packet in memory."""
    rng = random_numbers()
    bench = await started(dut, rng, flush=1)
    seen = set()
    for number in range(8 if SHORT else 30):
        streams = [part(rng, 10 + number, port, hits=5) for port in range(PORTS)]
        last = rng.randrange(PORTS)
        for port in range(PORTS):
            if port != last:
                bench.send_payload(port, padded_packet([streams[port]], board=port))
        await bench.sent_all()
        await bench.wait(rng.randint(0, 9))
        bench.sources[last].send(with_fcs(udp_frame(padded_packet([streams[last]], board=last), port=EVENT_PORT)), lane4=False)
        bench.frames[last] += 1
        start = 0
        while not start:
            await bench.wait(1)
            if int(getattr(dut, f"xgmii_{last}_rxc").value) == 1:
                start = bench.cycle
        await bench.settle()
        to_last_byte = (8 + 42 + 1168 + 4 - 1) // 8 * bench.rx[last].clock_ps // bench.clock_ps
        seen.add(bench.host.merged[-1][1] - start - to_last_byte)
    assert len(bench.host.merged) == number + 1
    assert max(seen) <= LATENCY_CYCLES_MAX
    print(
        f"figure: last byte of the last of {PORTS} frames of 1168 B, an event in each, to the last word in memory: {min(seen)} to {max(seen)} "
        f"cycles of {bench.clock_ps / 1000} ns",
        flush=True,
    )
    await bench.balanced()


@only_if(MERGE)
async def all_ports_at_line_rate(dut: Any) -> None:
    """Packets of 1168 B with 16 events of five hits, back to back on every port: nothing is lost, no event leaves early."""
    rng = random_numbers()
    bench = await started(dut, rng)
    streams: list[list[Event]] = [[] for _ in range(PORTS)]
    packets = 10 if SHORT else 60
    for number in range(packets):
        for port in range(PORTS):
            parts = [part(rng, 1000 * number + 10 * place + 1, port, hits=5) for place in range(16)]
            streams[port] += parts
            bench.send_payload(port, padded_packet(parts, board=port))
    while not all(source.idle.is_set() for source in bench.sources):
        await bench.wait(200)
        await bench.host.release()
    await bench.settle()
    compare(bench, streams)
    books = await bench.balanced()
    assert books.events["complete"] == 16 * packets


@only_if(MERGE)
async def more_than_can_be_merged(dut: Any) -> None:
    """Packed events at line rate, several times what the merger takes: whole packets are dropped before it, each of them counted."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for number in range(32 if SHORT else 60):
        for port in range(PORTS):
            parts = [part(rng, 1000 * number + 3 * place + 1, port, hits=2) for place in range(130)]
            bench.send_payload(port, packed_packet(parts, board=port))
    await bench.configure(window=20_000)
    while not all(source.idle.is_set() for source in bench.sources):
        await bench.wait(200)
        await bench.host.release()
    await bench.configure(window=0)
    await bench.settle()
    books = await bench.balanced()
    assert sum(link["full"] for link in books.links) > 5, "the load was not too much"
    for link in books.links:
        assert link["part"] + link["late"] + link["jump"] == 130 * link["packet"]


@only_if(MERGE)
async def a_port_that_is_dead_late_or_flaps(dut: Any) -> None:
    """Dead: events wait the window. Late: its parts are counted. Flapping: frames cut anywhere, symbols of errors; what is whole is merged."""
    rng = random_numbers()
    bench = await started(dut, rng, window=2000)
    streams: list[list[Event]] = [[] for _ in range(PORTS)]
    bad = PORTS - 1
    for number in range(12 if SHORT else 40):
        keys = [1000 * number + 10 * place + 1 for place in range(4)]
        for port in range(PORTS):
            parts = [part(rng, one, port) for one in keys]
            frame = with_fcs(udp_frame(packed_packet(parts, board=port), port=EVENT_PORT))
            if port == bad and number % 4 == 1:
                continue  # dead
            if port == bad and number % 4 == 2:
                cut = rng.randint(64, len(frame) - 1)
                bench.send(port, frame[:cut], marked=[cut - 1] if rng.random() < 0.5 else [])
                continue
            streams[port] += parts
            bench.send(port, frame)
        await bench.sent_all()
        await bench.wait(2500)  # the window is over
        await bench.host.release()
    late = [part(rng, 1, bad)]
    bench.send_payload(bad, packed_packet(late, board=bad))
    await bench.settle()
    compare(bench, streams)
    books = await bench.balanced()
    assert [link["late"] for link in books.links] == [0] * bad + [1]
    assert books.events["missing"] == 4 * sum(1 for number in range(12 if SHORT else 40) if number % 4 in (1, 2))


@only_if(MERGE and OWN_CLOCKS)
async def wires_whose_clocks_stand(dut: Any) -> None:
    """Any of them, in either direction, in mid-frame, for as long as it likes, while the others go on: every frame and part is counted once. Then all is as ever."""
    rng = random_numbers()
    bench = await started(dut, rng, stands=True, window=500)
    for number in range(4 if SHORT else 16):
        for port in range(PORTS):
            for place in range(2):
                parts = [part(rng, 1000 * number + 100 * place + 10 * k + 1, port) for k in range(4)]
                bench.send_payload(port, packet_of(rng, port, parts))
            bench.send_payload(port, rng.randbytes(300), FORWARD_PORT)
        await bench.wait(rng.randint(1, 200))
        standing = rng.sample(bench.rx[:PORTS] + bench.tx[:PORTS], rng.randint(1, 3))
        for clock in standing:
            clock.stop()
        await bench.wait(rng.choice([10, 100, 250, 300, 600]))  # a frame is cut after 255
        for clock in standing:
            clock.go()
        await bench.sent_all()
        await bench.host.release()
    await bench.settle()
    bench.events()
    books = await bench.balanced()
    for link in books.links:
        assert link["part"] + link["late"] + link["jump"] == 4 * link["packet"]
    whole = [[part(rng, 1 << 20, port, hits=3)] for port in range(PORTS)]
    for port in range(PORTS):
        bench.send_payload(port, packed_packet(whole[port], board=port))
    await bench.settle()
    events, masks = bench.events()
    assert (events[-1].hits, masks[-1]) == ([hit for (one,) in whole for hit in one.hits], ALL)
    await bench.balanced()


@only_if(MERGE and OWN_CLOCKS)
async def a_core_that_is_too_slow(dut: Any) -> None:
    """What finds no room between the clocks is cut, and counted by its port; what is whole is merged."""
    rng = random_numbers()
    bench = await started(dut, rng, core_ps=2 * rng.randint(3500, 9000), window=500)
    for number in range(8 if SHORT else 40):
        for port in range(PORTS):
            parts = [part(rng, 1000 * number + 10 * place + 1, port) for place in range(8)]
            bench.send_payload(port, padded_packet(parts, board=port))
    while not all(source.idle.is_set() for source in bench.sources):
        await bench.wait(200)
        await bench.host.release()
    await bench.settle()
    bench.events()
    books = await bench.balanced()
    assert sum(port["cut"] for port in books.ports) > 0, "it was quick enough"
    for link in books.links:
        assert link["part"] + link["late"] + link["jump"] == 8 * link["packet"]


@only_if(MERGE)
async def settings_rewritten_under_traffic(dut: Any) -> None:
    """Any setting of the merger, and match entries, at any time: every part is counted once, events stay in order, and afterwards all is as ever."""
    rng = random_numbers()
    bench = await started(dut, rng, window=500)
    for number in range(12 if SHORT else 60):
        for port in range(PORTS):
            parts = [part(rng, 1000 * number + 10 * place + 1, port) for place in range(8)]
            bench.send_payload(port, packed_packet(parts, board=port))
        for _ in range(3):
            await bench.configure(
                links=rng.randint(0, ALL),
                window=rng.choice([0, 10, 500]),
                jump=rng.choice([0, 5, JUMP]),
                lapse=rng.choice([0, 50]),
                complete_only=rng.randint(0, 1),
                flush=rng.choice([1, 10, 300]),
                table=0,
            )
            port = rng.randrange(PORTS)
            await bench.match(port, 0, EVENT_PORT, 0, route=1, clop=0, enable=rng.randint(0, 1))
        await bench.host.release()
    await bench.configure(window=0)
    for port in range(PORTS):
        await bench.match(port, 0, EVENT_PORT, 0, route=1, clop=0)
    await bench.settle()
    events, _ = bench.events()
    books = await bench.balanced()
    for link in books.links:
        assert link["part"] + link["late"] + link["jump"] + link["disabled"] == 8 * link["packet"]
    assert books.events["complete"] + books.events["missing"] + books.events["overflow"] == len(events) + books.events["incomplete"]
    await bench.configure(forget=1)
    for port in range(PORTS):
        bench.send_payload(port, packed_packet([part(rng, 5, port, hits=3)], board=port))
    await bench.settle()
    after = bench.host.merged[len(bench.host.merged) - 1][0]
    assert after[3] == 1, "the merger goes on"
    before = await bench.balanced()
    for left_out in range(PORTS):
        await bench.configure(links=ALL & ~(1 << left_out))
        for port in range(PORTS):
            bench.send_payload(port, packed_packet([part(rng, 6 + left_out, port, hits=3)], board=port))
        await bench.settle()
    books = await bench.balanced()
    assert [link["disabled"] - early["disabled"] for link, early in zip(books.links, before.links, strict=True)] == [1] * PORTS


@cocotb.test
async def payloads_to_the_host_and_to_other_ports(dut: Any) -> None:
    """By the match table: to the host's memory, to the next port's destination, nowhere; requests answered on every port; the TX ring to every port."""
    rng = random_numbers()
    bench = await started(dut, rng)
    header = 32 if ENCAPSULATION else 0
    raw: list[list[bytes]] = [[] for _ in range(PORTS)]
    forwarded: list[list[bytes]] = [[] for _ in range(PORTS)]
    for number in range(4 if SHORT else 30):
        for port in range(PORTS):
            payload = rng.randbytes(rng.choice([1, 7, 8, 15, 16, 17, 300, 1472 - header]))
            raw[port].append(payload)
            bench.send_payload(port, payload, RAW_PORT)
            if PORTS > 1:
                forwarded[(port + 1) % PORTS].append(rng.randbytes(rng.randint(1, 1400)))
                bench.send_payload(port, forwarded[(port + 1) % PORTS][-1], FORWARD_PORT)
            bench.send_payload(port, rng.randbytes(50), NOWHERE_PORT)
            if number == 0:
                bench.send(port, with_fcs(frame_of(arp_request())))
                for udp_port in (RAW_PORT, FORWARD_PORT):  # bad ones go nowhere
                    bench.send(port, with_fcs(udp_frame(rng.randbytes(100), port=udp_port, UDP={"chksum": 1})))
        await bench.sent_all()
        await bench.host.release()
    answers = [rng.randbytes(rng.randint(1, 1400)) for _ in range(PORTS)]
    for port in range(PORTS):
        await bench.host.post(answers[port], port << 4 | 1, tag=port)
    await bench.host.post(b"x" * 100, 5 << 4 if PORTS > 2 else PORTS << 4, tag=9)  # to a port that there is not
    await bench.settle()
    got = [[payload[header:] for payload, source in bench.host.raw if source == 10 + port] for port in range(PORTS)]
    assert got == raw
    for port in range(PORTS):
        seen = [frame.frame[:-4] for frame in bench.sinks[port].seen]
        wanted = [forwarded[port][k] for k in range(len(forwarded[port]))]
        plain = [sent_frame(payload, destination_of(port, 3)).ljust(FRAME_BYTES_MIN, b"\0") for payload in wanted]
        answer = sent_frame(answers[port], destination_of(port, 1)).ljust(FRAME_BYTES_MIN, b"\0")
        assert answer in seen
        assert answer_to(arp_request()).ljust(FRAME_BYTES_MIN, b"\0") in seen
        if not ENCAPSULATION:
            assert [frame for frame in seen if frame in plain] == plain
        assert len(seen) == len(plain) + 2
    books = await bench.balanced()
    assert all(port["no_route"] == (4 if SHORT else 30) for port in books.ports)
    assert books.node["from_host"] == PORTS


@cocotb.test
async def the_host_is_woken_for_what_came(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut, rng)
    read, write = bench.registers.read, bench.registers.write
    for taken in range(2):
        await write(0x0D0, taken)
        await write(0x0C0, 1)
        await bench.wait(100)
        assert dut.irq.value == 0
        bench.send_payload(rng.randrange(PORTS), rng.randbytes(100), RAW_PORT)
        await bench.settle()
        assert dut.irq.value == 1
        assert await read(0x0D8) == taken + 1 | 1 << 33


@cocotb.test
async def each_port_has_groups_of_its_own(dut: Any) -> None:
    """Every port is a member of one group, and is sent to all of them: its own alone reaches the host, and ARP to it gets no answer."""
    rng = random_numbers()
    bench = await started(dut, rng)
    groups = [f"239.{rng.randrange(256)}.{rng.randrange(256)}.{port + 1}" for port in range(PORTS)]
    for port, group in enumerate(groups):
        register = 0x078 if port == 0 else NODE + 0x100 + 0x40 * (port - 1) + 0x10
        await bench.registers.write(register, int(IPv4Address(group)) | port << 32)
    payloads = [rng.randbytes(60) for _ in range(PORTS)]
    for port in range(PORTS):
        for group in groups:
            packet = udp_packet(payloads[port], port=RAW_PORT, Ether={"dst": group_mac(group)}, IP={"dst": group})
            bench.send(port, with_fcs(frame_of(packet)))
        request = arp_request()
        request.dst = group_mac(groups[port])
        bench.send(port, with_fcs(frame_of(request)))
    await bench.settle()
    header = 32 if ENCAPSULATION else 0
    got = [[payload[header:] for payload, source in bench.host.raw if source == 10 + port] for port in range(PORTS)]
    assert got == [[payload] for payload in payloads]
    assert not any(sink.seen for sink in bench.sinks)
    await bench.balanced()


@only_if(PROCESSING == 1)
async def the_stage_of_one_s_own_refuses(dut: Any) -> None:
    """stage_template, told by registers: what does not begin as it should is refused, and counted by its port."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for port in range(PORTS):
        await bench.registers.write(NODE + 0x200 + 0x10 * port, 0x42)
        await bench.registers.write(NODE + 0x208 + 0x10 * port, 0xFF)
        for first in (0x42, 0x43, 0x42):
            bench.send_payload(port, bytes([first]) + rng.randbytes(99), RAW_PORT)
    await bench.settle()
    books = await bench.balanced()
    assert [port["refused"] for port in books.ports] == [1] * PORTS
    header = 32 if ENCAPSULATION else 0
    assert [payload[header] for payload, _ in bench.host.raw] == [0x42] * (2 * PORTS)


@cocotb.test
async def a_host_that_takes_nothing(dut: Any) -> None:
    """The bus stands still: queues fill, whole packets are dropped and counted; then all goes on. And buffers that are not returned: no_buffer, with a gap."""
    rng = random_numbers()
    bench = await started(dut, rng)
    bench.host.write_pause = lambda: True
    for _ in range(16 if SHORT else 40):
        for port in range(PORTS):
            bench.send_payload(port, rng.randbytes(1400), RAW_PORT)
    await bench.sent_all()
    bench.host.write_pause = never
    for _ in range(20):
        await bench.wait(300)
        await bench.host.release()
    await bench.settle()
    full = [port["full"] for port in (await bench.balanced()).ports]
    assert min(full) > 0
    for _ in range(4):
        for port in range(PORTS):
            bench.send_payload(port, rng.randbytes(100), RAW_PORT)
    await bench.settle()
    assert [port["full"] for port in (await bench.balanced()).ports] == full


async def begins_anew(bench: NodeBench, rng: Random) -> None:
    """After a reset everything is as after the first: what is sent comes, and nothing else is counted."""
    await bench.begin()
    for port in range(PORTS):
        bench.send_payload(port, packed_packet([part(rng, 5, port, hits=5)], board=port))
        bench.send_payload(port, b"hello" * 10, RAW_PORT)
    await bench.settle()
    header = 32 if ENCAPSULATION else 0
    assert sorted((payload[header:], source) for payload, source in bench.host.raw) == [
        (b"hello" * 10, 10 + port) for port in range(PORTS)
    ]
    assert len(bench.host.merged) == MERGE
    await bench.balanced()


@cocotb.test
async def reset_under_load(dut: Any) -> None:
    """At any moment: afterwards everything is as after the first."""
    rng = random_numbers()
    bench = await started(dut, rng)
    for _ in range(3 if SHORT else 15):
        for _ in range(4):
            for port in range(PORTS):
                parts = [part(rng, rng.getrandbits(40), port) for _ in range(8)]
                bench.send_payload(port, packet_of(rng, port, parts), rng.choice([EVENT_PORT, RAW_PORT, FORWARD_PORT]))
        await bench.wait(rng.randint(1, 600))
        await begins_anew(bench, rng)


@only_if(MERGE and OWN_CLOCKS)
async def reset_while_a_clock_stands(dut: Any) -> None:
    """That of a wire, in mid-frame, and it returns after the reset: everything is as after the first."""
    rng = random_numbers()
    bench = await started(dut, rng, stands=True)
    for _ in range(3 if SHORT else 12):
        for port in range(PORTS):
            for _ in range(2):
                bench.send_payload(port, packet_of(rng, port, [part(rng, rng.getrandbits(40), port) for _ in range(8)]))
        clock = rng.choice(bench.rx[:PORTS])
        await clock.wait(rng.randint(1, 150))
        clock.stop()
        await bench.wait(rng.randint(1, 40))
        await bench.reset(rng.randint(1, 6))
        await bench.wait(rng.choice([3, 40, 400]))
        clock.go()
        await begins_anew(bench, rng)
