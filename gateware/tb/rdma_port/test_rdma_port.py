# SPDX-License-Identifier: Apache-2.0
"""rdma_port: three nodes put, get and tell each other of it; after each test every byte of every memory is compared, and every completion."""

from collections import Counter
from typing import Any

import cocotb
from common import rdma
from common.apenet import VC_AND_HOPS, Packet, header, words_of
from common.bench import SHORT
from rdma_bench import (
    ANY_TASK,
    ANYONE,
    DATA,
    ENTRIES_PAGES,
    GETS,
    GONE,
    NO_PAGES,
    NO_TASK,
    NODES,
    PAGE,
    READ_ONLY,
    READ_WRITE,
    TASK,
    UNKNOWN,
    WINDOWS,
    WRITE_ONLY,
    Message,
    RdmaBench,
    Sent,
    expire,
    started,
    traffic,
)

STRANGER = 3  # a node that is not there: the bench sends its packets


@cocotb.test
async def messages_land_whole(dut: Any) -> None:
    bench = await started(dut)
    dut.pause_rate.value = 40
    await bench.put(0, 1, 65536)
    await traffic(bench, 40 if SHORT else 120)
    await bench.quiet(2000)  # with these pauses a packet that is read or written shows nothing for several hundred cycles
    await bench.check()
    assert set(bench.counts()) == {"landed", "event", "get", "send"}, bench.counts()


@cocotb.test
async def lost_doubled_and_bad_packets_have_names(dut: Any) -> None:
    bench = await started(dut)
    dut.fault_rate.value = 30
    await traffic(bench, 50 if SHORT else 150)
    await bench.quiet()
    dut.fault_rate.value = 0
    await bench.wait(4)
    for node in range(NODES):  # what a message before these lacks is lost
        for to in range(NODES):
            await bench.event(node, to)
    await bench.quiet()
    await expire(bench)
    ended, counts = await bench.check(all_good=False), bench.counts()
    assert (counts["flagged"], counts["crc"]) == (bench.all("flagged"), bench.all("damaged"))
    assert ended["unseen"] == bench.all("missed")
    assert ended["failed"] > 0, ended
    assert ended["good"] > 20, ended
    assert set(counts) <= {"landed", "event", "get", "send", "flagged", "crc", "stale", "duplicate"}, counts


class Stranger:
    """Packets to node 0 that no interface has made; numbers are those of a good sender."""

    def __init__(self, bench: RdmaBench) -> None:
        self.bench, self.number = bench, 0

    def put(self, data: bytes, at: int, *, key: int = READ_WRITE, **changes: Any) -> Packet:
        fields = {
            "region": key,
            "offset": at - WINDOWS.get(key, WINDOWS[READ_WRITE])[2],
            "x": 0,
            "nonce": self.bench.nonces[0][key],
        }
        return rdma.data_packet(data, **(fields | {"source": rdma.place(STRANGER), "number": self.number} | changes))

    def send(self, data: bytes, **changes: Any) -> Packet:
        fields = {"source": rdma.place(STRANGER), "number": self.number, "process": ANY_TASK}
        return rdma.send_packet(data, x=0, **(fields | changes))

    async def good_send(self, size: int) -> None:
        data = self.bench.rng.randbytes(size)
        self.bench.sends.append(Sent(STRANGER, 0, ANY_TASK, data))
        await self.bench.send_wild(self.send(data))
        self.number += 1
        await self.bench.wait(12)  # it is judged

    async def good(self) -> None:
        """What comes after a bad packet lands."""
        bench, data = self.bench, self.bench.rng.randbytes(40)
        at = bench.room(0, 40)
        assert at is not None
        bench.messages.append(Message(rdma.PUT, STRANGER, 0, at, data, (rdma.place(STRANGER), self.number)))
        packet = self.put(data, at)
        packet.head |= bench.rng.getrandbits(120) & VC_AND_HOPS  # which change on the way: they are not in its CRC
        await bench.send_wild(packet)
        self.number += 1

    async def refused(self, reason: str, packet: Packet, crc_flip: int = 0) -> None:
        """It is one drop of that name, and the next one is good."""
        bench = self.bench
        before = bench.counts()
        await bench.send_wild(packet, crc_flip=crc_flip)
        await self.good()
        await bench.wait(60)
        assert bench.counts() - before == Counter({reason: 1, "landed": 1}), (reason, bench.counts() - before)


@cocotb.test
async def what_is_not_allowed_is_not_written(dut: Any) -> None:
    bench = await started(dut)
    stranger, rng = Stranger(bench), bench.rng
    base, size = WINDOWS[READ_WRITE][2:]
    data, free = rng.randbytes(100), base + 0x10000
    nonce = bench.nonces[0][READ_WRITE]
    await stranger.refused("key", stranger.put(data, free, nonce=nonce ^ 1 << rng.randrange(32)))
    await stranger.refused("key", stranger.put(data, free, key=UNKNOWN))
    await stranger.refused("key", stranger.put(data, free, region=200))
    await stranger.refused("rights", stranger.put(data, WINDOWS[READ_ONLY][2] + 7, key=READ_ONLY))
    await stranger.refused("bounds", stranger.put(data, base + size - 99))
    await stranger.refused("bounds", stranger.put(data, base + size))
    await stranger.refused("bounds", stranger.put(data, free, offset=(1 << rdma.OFFSET_BITS) - 100))
    await stranger.refused("page", stranger.put(data, WINDOWS[NO_PAGES][2], key=NO_PAGES))
    await stranger.refused("outside", stranger.put(data, free, source=rdma.place(4)))
    await stranger.refused("outside", stranger.put(data, free, source=rdma.place(1, 2)))
    await stranger.refused("outside", stranger.put(data, free, source=rdma.place(1, 0, 2)))
    await stranger.refused("length", stranger.put(b"", free))
    await stranger.refused("length", stranger.put(rng.randbytes(rdma.DATA_BYTES_MAX + 1), free))
    await stranger.refused("length", Packet(header(packet_type=rdma.GET, bytes=16), words_of(data[:16])))
    await stranger.refused("length", Packet(header(packet_type=rdma.EVENT, bytes=16), words_of(data[:16])))
    await stranger.refused("type", stranger.put(data, free, kind=2))
    await stranger.refused("misfit", stranger.put(data, free, packet=2, last=1))
    await stranger.refused("misfit", stranger.put(data, free, packet=0, last=rdma.PACKETS_MAX))
    await stranger.refused("stale", stranger.put(data, free, number=stranger.number - 1))
    await stranger.refused("stale", stranger.put(data, free, number=(stranger.number - 2) % 0x10000))
    await stranger.refused("stale", stranger.put(data, free, kind=rdma.REPLY))
    await stranger.refused("stale", rdma.event_packet(x=0, source=rdma.place(STRANGER), number=0))
    await stranger.refused("crc", stranger.put(data, free, nonce=nonce ^ 1), crc_flip=1)
    await stranger.refused("crc", rdma.event_packet(x=0, source=rdma.place(STRANGER), number=stranger.number), crc_flip=1 << 40)
    flagged = stranger.put(data, free, kind=2)
    flagged.flagged = True
    await stranger.refused("flagged", flagged)
    for _ in range(100):  # guessed keys
        await bench.send_wild(stranger.put(data, free, nonce=rng.getrandbits(32), region=rng.randrange(256)))
    at = base + size - 100  # to the last byte, and from the first
    await bench.send_wild(stranger.put(data, at))
    bench.messages.append(Message(rdma.PUT, STRANGER, 0, at, data, (rdma.place(STRANGER), stranger.number)))
    stranger.number += 1
    await bench.send_wild(stranger.put(data, WINDOWS[WRITE_ONLY][2], key=WRITE_ONLY))
    bench.messages.append(Message(rdma.PUT, STRANGER, 0, WINDOWS[WRITE_ONLY][2], data, (rdma.place(STRANGER), stranger.number)))
    await bench.quiet()
    await bench.check()


@cocotb.test
async def a_send_that_is_not_right_goes_to_no_clop(dut: Any) -> None:
    bench = await started(dut)
    stranger, rng = Stranger(bench), bench.rng
    for size in (1, 16, 17, 4080):
        data = rng.randbytes(size)
        await stranger.refused("no_match", stranger.send(data, process=NO_TASK))
        await stranger.good_send(size)
        await stranger.refused("no_match", stranger.send(data, process=TASK))  # which only others may send to
        await stranger.refused("stale", stranger.send(data, number=stranger.number - 1))
        await stranger.refused("outside", stranger.send(data, source=rdma.place(4)))
        await stranger.good_send(size)
        await stranger.refused("crc", stranger.send(data), crc_flip=1)
        await stranger.refused("crc", stranger.send(data, process=NO_TASK), crc_flip=1 << 90)
        await stranger.good_send(size)
        flagged = stranger.send(data)
        flagged.flagged = True
        await stranger.refused("flagged", flagged)
    await stranger.refused("length", stranger.send(b""))
    await stranger.refused("length", stranger.send(rng.randbytes(rdma.DATA_BYTES_MAX + 1)))
    await bench.wait(500)
    await stranger.good_send(100)
    # An entry that is taken away, and one that is given.
    await bench.pulse("match_write", 0, match_index=3, match_enable=0)
    await stranger.refused("no_match", stranger.send(data))
    await bench.match(0, 3, *ANYONE[3])
    await stranger.good_send(100)
    await bench.quiet()
    assert (await bench.check())["good"] == 14 + len(bench.messages)


@cocotb.test
async def sends_without_room_are_dropped_whole(dut: Any) -> None:
    bench = await started(dut)
    stranger = Stranger(bench)
    for size, fit in ((4000, 2), (1, 63)):
        await bench.quiet(100)
        dut.holds_payloads.value = 1
        before = bench.counts()
        for _ in range(fit + 5):
            await stranger.good_send(size)
        await bench.wait(100)
        assert bench.counts() - before == Counter(send=fit, full=5)
        del bench.sends[-5:]  # the last ones found none
        await stranger.good()
        dut.holds_payloads.value = 0
        await bench.quiet(100)
    assert bench.all("missed") == 10
    await bench.check()


@cocotb.test
async def what_may_not_be_read_is_not_sent(dut: Any) -> None:
    bench = await started(dut)
    landing = (READ_WRITE, 0, bench.nonces[1][READ_WRITE])
    size = WINDOWS[READ_ONLY][3]
    nonce = bench.nonces[0][READ_ONLY]
    asked = [
        {"nonce": nonce ^ 1},
        {"region": UNKNOWN},
        {"region": WRITE_ONLY, "nonce": bench.nonces[0][WRITE_ONLY]},
        {"offset": size - 9},
        {"size": 0},
        {"size": 1 << 31},
        {"source": rdma.place(4)},
    ]
    for changes in asked:
        fields: dict[str, Any] = {
            "region": READ_ONLY,
            "offset": 0,
            "nonce": nonce,
            "size": 10,
            "source": rdma.place(1),
            "number": 1,
        }
        await bench.send_wild(rdma.get_packet(x=0, landing=landing, **(fields | changes)))
    await bench.quiet()
    assert bench.all("reply_refused") == len(asked)
    assert bench.all("sent") == 0
    for offset in (0, size - 10):  # to the last byte
        await bench.send_wild(
            rdma.get_packet(
                x=0, landing=landing, region=READ_ONLY, offset=offset, nonce=nonce, size=10, source=rdma.place(1), number=1
            )
        )
    await bench.quiet()
    assert bench.counts()["stale"] == 2, "an answer to what was not asked for is not written"
    await bench.check()


@cocotb.test
async def packets_of_a_message_come_in_any_order_and_again(dut: Any) -> None:
    bench = await started(dut)
    stranger, source = Stranger(bench), rdma.place(STRANGER)
    data = bench.rng.randbytes(10_000)
    at = bench.room(0, len(data), offset=5)
    assert at is not None
    cuts = rdma.cuts(at - WINDOWS[READ_WRITE][2], len(data))
    places = [at + offset - cuts[0][0] for offset, _ in cuts]
    parts = [data[place - at : place - at + step] for place, (_, step) in zip(places, cuts, strict=True)]

    def packet(index: int, number: int) -> Packet:
        return stranger.put(parts[index], places[index], packet=index, last=len(cuts) - 1, number=number)

    assert len(cuts) == 3
    for index in (2, 0, 0, 2):
        await bench.send_wild(packet(index, 0))
    await bench.quiet()
    assert bench.all("written") == 0
    await bench.send_wild(packet(1, 0))
    await bench.send_wild(packet(1, 0))
    await bench.quiet()
    assert bench.counts() == Counter(landed=3, duplicate=2, stale=1)
    bench.messages.append(Message(rdma.PUT, STRANGER, 0, at, data, (source, 0)))
    await bench.check()
    # The next one lacks a packet when the one after it begins; what comes of it then is not written. Before that one, five were lost.
    await bench.send_wild(packet(0, 1))
    await bench.send_wild(packet(1, 1))
    await bench.send_wild(rdma.event_packet(x=0, source=source, number=7, value=9))
    await bench.send_wild(packet(2, 1))
    await bench.quiet()
    bench.messages.append(Message(rdma.PUT, STRANGER, 0, at, b"", (source, 1)))
    bench.messages.append(Message(rdma.EVENT, STRANGER, 0, 0, b"", (source, 7), value=9))
    assert (await bench.check(all_good=False)) == Counter(good=2, failed=1)
    assert bench.counts() == Counter(landed=5, duplicate=2, stale=2, event=1)
    assert bench.all("missed") == 5


@cocotb.test
async def a_region_taken_away_in_flight_is_written_no_more(dut: Any) -> None:
    bench = await started(dut)
    await bench.put(0, 1, 65536)
    for _ in range(2000):
        await bench.wait(5)
        if bench.counts()["landed"] == 3:
            break
    await bench.register(1, READ_WRITE, valid=False)
    await bench.quiet()
    landed, refused = bench.counts()["landed"], bench.counts()["key"]
    message = bench.messages[0]
    cuts = rdma.cuts(message.at - WINDOWS[READ_WRITE][2], len(message.data))
    assert 3 <= landed <= 5
    assert landed + refused == len(cuts)
    begin = ENTRIES_PAGES * PAGE + message.at
    came = sum(step for _, step in cuts[:landed])
    memory = (await bench.memories())[1]
    assert memory[begin : begin + came] == message.data[:came]
    assert memory[begin + came : begin + 65536] == bench.images[1][begin + came : begin + 65536]
    await expire(bench)
    assert (await bench.check(all_good=False))["failed"] == 1
    # Registered again it has another nonce: the old key is worth nothing.
    bench.messages.clear()
    old, bench.nonces[1][READ_WRITE] = bench.nonces[1][READ_WRITE], bench.rng.getrandbits(32)
    bench.free[1] = WINDOWS[READ_WRITE][2]
    await bench.register(1, READ_WRITE)
    await bench.post(0, kind=rdma.PUT, to=1, region=READ_WRITE, nonce=old, offset=0x1000, local=DATA, bytes=100)
    bench.number(0, 1)
    await bench.put(0, 1, 300)
    await bench.quiet()
    assert bench.counts()["key"] == refused + 1


@cocotb.test
async def a_region_taken_away_is_read_no_more(dut: Any) -> None:
    bench = await started(dut)
    await bench.get(1, 0, 65536)
    for _ in range(2000):
        await bench.wait(5)
        if bench.counts()["landed"] == 3:
            break
    await bench.register(0, READ_ONLY, valid=False)
    await bench.quiet()
    assert bench.all("reply_refused") == 1
    assert bench.counts()["landed"] < 12
    await bench.event(0, 1)
    await expire(bench)
    assert (await bench.check(all_good=False)) == Counter(good=1, failed=1)


@cocotb.test
async def a_storm_of_gets_is_harmless(dut: Any) -> None:
    bench = await started(dut)
    dut.pause_rate.value = 20
    rounds = 4 if SHORT else 10
    for _ in range(rounds):
        for node in range(NODES):
            for to in range(NODES):
                for _ in range(GETS):
                    await bench.get(node, to, bench.rng.choice([1, 64, bench.rng.randrange(1, 600)]))
                await bench.put(node, to, 100)
    await bench.quiet()
    await bench.check()
    assert bench.counts()["requests"] == 0
    assert bench.counts()["get"] == rounds * NODES * NODES * GETS


@cocotb.test
async def a_reset_forgets_what_was_asked(dut: Any) -> None:
    bench = await started(dut)
    for node in (1, 2):
        for _ in range(GETS):
            await bench.get(node, 0, 8000)
    await bench.wait_until(lambda: bench.counts()["get"] == 2 * GETS, 4000, "all have asked")
    await bench.reset()
    await bench.wait(2000)
    assert (bench.all("sent"), bench.all("reply_refused"), bench.counts().total()) == (0, 0, 0)


@cocotb.test
async def completions_that_have_no_place_are_told_of(dut: Any) -> None:
    """The page of a node's queue of messages is taken away, or that of its ring's completions."""
    bench = await started(dut)
    dut.may_fault.value = 1
    await bench.pulse("entry_write", 1, entry_index=0, entry_data=0)
    for event in range(1, 4):
        await bench.event(0, 1)
        await bench.quiet()
        assert bench.each("completion_faults") == [0, event, 0]
    await bench.pulse("entry_write", 2, entry_index=GONE // PAGE, entry_data=0)
    await bench.event(2, 0)
    await bench.quiet()
    assert bench.each("completion_faults") == [0, 3, 1]


@cocotb.test
async def a_full_completion_queue_holds_up_nothing(dut: Any) -> None:
    bench = await started(dut)
    dut.cfg_completion_mask.value = 7
    dut.holds_entries.value = 1
    for _ in range(60):
        await bench.event(0, 1)
    await bench.quiet()
    dropped = bench.counts()["queue"]
    assert bench.each("written") == [0, 8, 0]
    assert 60 - dropped - 8 in range(12, 18)
    dut.holds_entries.value = 0
    await bench.event(0, 1)
    await bench.quiet()
    assert bench.each("written") == [0, 61 - dropped, 0]
    assert bench.each("missed") == [0, dropped, 0]


@cocotb.test
async def what_cannot_be_sent_is_told_of(dut: Any) -> None:
    bench = await started(dut)
    good = bench.key(1, READ_WRITE, WINDOWS[READ_WRITE][2] + 100) | {"local": DATA, "to": 1}
    send = {"kind": rdma.SEND}
    put = ({"bytes": 0}, {"bytes": rdma.MESSAGE_BYTES_MAX + 1}, {"to": 4}, {"kind": 9}, {"kind": rdma.REPLY})
    for changes in (*put, send | {"bytes": 0}, send | {"bytes": rdma.DATA_BYTES_MAX + 1}):
        await bench.post(0, **({"kind": rdma.PUT, "bytes": 100} | good | changes))
    await bench.quiet()
    wrong = ({"kind": 0x20 | rdma.PUT}, {"kind": 0}, {"port": 0x10}, {"local": 1 << 43}, {"local": 1 << 48}, {"sequence": 1})
    for changes in (*wrong, {"region": 0x100}, send | {"local": 1 << 43}, {"kind": rdma.GET, "local": 1 << 48}):
        await bench.post(0, **({"kind": rdma.PUT, "bytes": 100} | good | changes))
    await bench.quiet()
    assert bench.each("refused") == [16, 0, 0]
    dut.read_fails.value = 1
    await bench.post(0, kind=rdma.PUT, bytes=5000, **good)
    await bench.quiet()
    dut.read_fails.value = 0
    await bench.post(
        0, kind=rdma.PUT, bytes=100, **(good | {"local": 5 << rdma.OFFSET_BITS})
    )  # a region that the page table does not have
    await bench.quiet()
    assert (bench.each("unreadable"), bench.each("gone_bad"), bench.all("sent")) == ([3, 0, 0], [18, 0, 0], 0)
    bench.numbers[0, 1] = 2
    await bench.event(0, 1)
    await bench.quiet()
    assert bench.all("missed") == 2
    await bench.check()


@cocotb.test
async def a_message_of_which_a_part_cannot_be_read(dut: Any) -> None:
    """Its first packet: the others go, the job is told of as bad, and so is the message where it was to come to."""
    bench = await started(dut)
    dut.read_fails.value = 1
    assert await bench.put(0, 1, 12000)
    await bench.wait_until(lambda: bench.each("unreadable")[0] == 1, 4000, "unreadable")
    dut.read_fails.value = 0
    await bench.quiet(1000)
    assert (bench.each("gone_bad"), bench.each("unreadable")[0] < 3) == ([1, 0, 0], True)
    await bench.put(0, 1, 100)  # of the next one this is forgotten
    await bench.quiet()
    assert (bench.each("gone_bad"), bench.each("gone_good")) == ([1, 0, 0], [1, 0, 0])
    await expire(bench)
    assert await bench.check(all_good=False) == {"failed": 1, "good": 1}


@cocotb.test
async def each_node_has_a_place(dut: Any) -> None:
    """In all three directions. The bench's crossbar looks at x alone."""
    bench = await started(dut)
    for node, (x, y, z) in enumerate(((2, 1, 0), (2, 0, 1), (1, 1, 1))):
        bench.messages.append(Message(rdma.EVENT, node, x, 0, b"", (node, 0), 7, 100 + node))
        await bench.post(node, kind=rdma.EVENT, to=rdma.place(x, y, z), port=5 * node + 1, offset=100 + node, process=7)
        await bench.quiet()
        assert bench.each("went_to")[node] == rdma.place(x, y, z) | 5 * node + 1 << 16
    for source in (rdma.place(x, y, z) for x in range(4) for y in range(2) for z in range(2)):  # each has numbers of its own
        bench.messages.append(Message(rdma.EVENT, source, 0, 0, b"", (source, 0), value=source))
        await bench.send_wild(rdma.event_packet(x=0, source=source, number=0, value=source))
    await bench.quiet()
    await bench.check()


@cocotb.test
async def a_number_of_a_get_comes_again_after_all_others(dut: Any) -> None:
    bench = await started(dut)
    turns = []
    for _ in range(2 * GETS):
        await bench.get(0, 1, 16)
        await bench.quiet(100)
        turns.append(bench.each("asked_number")[0] // GETS)
    assert turns == list(range(turns[0], turns[0] + 2 * GETS)), "so it is another one's for 2^16 / GETS GETs"
    await bench.check()


@cocotb.test
async def it_takes_so_many_cycles(dut: Any) -> None:
    bench = await started(dut)
    rings, sends, receives = set(), set(), set()
    for size in (1, 8, 16):
        for _ in range(6):
            await bench.wait(bench.rng.randrange(40))
            await bench.put(0, 1, size, offset=0, at_source=WINDOWS[READ_ONLY][2])
            await bench.quiet(100)
            rings.add(bench.each("taken_cycle")[0] - bench.each("rung_cycle")[0])
            sends.add(bench.each("offered_cycle")[0] - bench.each("taken_cycle")[0])
            receives.add(bench.each("written_cycle")[1] - bench.each("arrived_cycle")[1])
    dut._log.warning(
        f"small PUT: {rings} cycles from doorbell to job, {sends} to its header, {receives} from header to the completion's last word"
    )
    assert len(rings) == len(sends) == len(receives) == 1, "whatever the moment"

    told, receives = bench.each("written")[1], set()
    for _ in range(64):  # at each moment between two turns of rdma_messages
        await bench.event(0, 1)
        await bench.wait(120)
        receives.add(bench.each("written_cycle")[1] - bench.each("arrived_cycle")[1])
    dut._log.warning(f"EVENT: {receives} cycles from header to the completion's last word")
    assert (len(receives), bench.each("written")[1]) == (1, told + 64)

    told, bench.rings = bench.each("written")[1], False
    for _ in range(100):
        await bench.event(0, 1)
    bench.ring()
    bench.rings = True
    cycles = []
    for wanted in (20, 80):
        await bench.wait_until(lambda: bench.each("written")[1] >= told + wanted, 1000, "events")  # noqa: B023
        cycles.append(bench.cycle)
    await bench.quiet(100)
    dut._log.warning(f"60 events: {cycles[1] - cycles[0]} cycles")
    assert cycles[1] - cycles[0] <= 4 * 60 + 10, (
        "a packet that is its header alone in 4 cycles, but for the turns of rdma_messages: 2 of 64 cycles"
    )

    receives = set()
    for size in (1, 16):
        for _ in range(6):
            await bench.wait(bench.rng.randrange(40))
            await bench.send(0, 1, size)
            await bench.quiet(100)
            receives.add(bench.each("begun_cycle")[1] - bench.each("arrived_cycle")[1])
    dut._log.warning(f"SEND: {receives} cycles from header to its first word on the way to its CLOP")
    assert len(receives) == 1, "whatever the moment"

    await bench.put(0, 2, 65536, offset=0, at_source=WINDOWS[READ_ONLY][2])
    cycles = []
    for wanted in (2, 15):
        await bench.wait_until(lambda: bench.counts()["landed"] >= 18 + wanted, 10000, "packets")  # noqa: B023
        cycles.append(bench.cycle)
    await bench.quiet(600)
    dut._log.warning(f"13 packets of 4080 B: {cycles[1] - cycles[0]} cycles")
    await bench.check()


@cocotb.test
async def a_ring_that_cannot_be_read_stops_and_begins_again(dut: Any) -> None:
    bench = await started(dut)
    await bench.event(0, 1)
    await bench.quiet()
    dut.readable_pages.value, dut.read_fails.value = 0, 1
    await bench.post(0, kind=rdma.EVENT, to=1, offset=5)
    await bench.wait(200)
    assert (int(dut.ring_fault.value), bench.all("sent")) == (1, 1)
    dut.read_fails.value = 0
    dut.cfg_enable.value = 0b110
    await bench.wait(20)
    assert (int(dut.ring_fault.value), int(dut.ring_busy.value), bench.each("consumed")[0]) == (0, 0, 0)
    bench.jobs[0].clear()
    bench.ring()
    dut.cfg_enable.value = 0b111
    await bench.wait(4)
    for _ in range(20):
        await bench.event(0, 1)
    await bench.wait(400)
    assert bench.each("consumed")[0] == 20
    assert (await bench.check())["good"] == 21


@cocotb.test
async def rings_go_round(dut: Any) -> None:
    """More descriptors than a ring has entries, at all nodes at once."""
    bench = await started(dut)
    count = 300 if SHORT else 420
    dut.pause_rate.value = 225  # more is sent than completions can be written for
    bench.rings = False
    for k in range(count):
        for node in range(NODES):
            await bench.event(node, node)
        if k == 60:
            bench.ring()
            await bench.quiet(2000)
            dut.pause_rate.value, bench.rings = 0, True
    await bench.quiet()
    assert set(bench.each("consumed")) == {count}
    await bench.check()
