# SPDX-License-Identifier: Apache-2.0
"""km3_port: a floor's frames in 8b/10b in, packets for the router out, against the pages; bad frames, a host that takes nothing, a fibre that is cut, settings
rewritten under traffic, slow control the other way. Every test ends with the books."""

from collections import Counter
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import SHORT, pauses
from common.km3 import DOWN, K28_5, SLOTS, Frame, Tower, any_slots
from common.km3_link import Link
from common.streams import Packet
from port_bench import AWAY_WORDS, BUFFER_WORDS, FIRST_SLOT, GEOMETRY, SECOND, WORD_PS, PortBench, data_of, parts


def counted(tower: Tower, packets: int, **others: int) -> dict[str, int]:
    counts = tower.counts | {"packet": packets} | others
    return {name: count for name, count in counts.items() if count}


@cocotb.test
async def every_kind_reaches_its_clop(dut: Any) -> None:
    """Slots full, empty and any, over several slices; a frame too large for the buffer is one that is missing. The link says that it is well."""
    port = PortBench(dut)
    tower = await port.begin()
    for _ in range(12 if SHORT else 40):
        port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, port.rng.choice((0, 0.3, 0.6, 1)))))
    counts = await port.finish()
    full = port.take(tower, port.floor.sent)
    port.same(tower)
    assert counts == counted(tower, len(tower.packets), count_good=len(port.floor.sent), full=full)
    last = port.floor.sent[-1]
    assert int(dut.head.value) == 3 << 56 | 1 << 48 | last.second << 16 | last.number
    assert (int(dut.aligned.value), int(dut.sends.value), int(dut.slip.value)) == (1, 1, 0)
    assert 0 <= (int(dut.trip.value) & 0xFFFF) - AWAY_WORDS < 60


@cocotb.test
async def bad_frames_are_thrown_away(dut: Any) -> None:
    """A bit wrong anywhere, another floor's, none at all: nothing of it goes on, what follows has its place after a hole, and sound waits for the next slice."""
    port = PortBench(dut)
    tower = await port.begin(slice_frames=6)
    kinds = []
    for _ in range(14 if SHORT else 60):
        slots = any_slots(port.rng, GEOMETRY, 0.7)
        kinds.append(port.rng.choice(("good", "good", "good", "head", "slots", "floor", "none")))
        frame = Frame(slots)
        if kinds[-1] == "head":
            frame.spoiled = port.rng.randrange(1, FIRST_SLOT)
        elif kinds[-1] == "slots":
            frame.spoiled = port.rng.randrange(FIRST_SLOT, GEOMETRY.end)
        elif kinds[-1] == "floor":
            frame.floor = 2
        port.floor.queue.append(None if kinds[-1] == "none" else frame)
    port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, 0.2)))
    counts = await port.finish()
    full = port.take(tower, port.floor.sent)
    port.same(tower)
    good = kinds.count("good") + 1
    assert counts["count_good"] == good
    assert counts.get("full", 0) == full
    assert (counts.get("drop_head", 0), counts.get("drop_floor", 0)) == (kinds.count("head"), kinds.count("floor"))
    assert sum(counts.get(name, 0) for name in ("drop_crc", "drop_symbol", "drop_code")) == kinds.count("slots")
    assert {name: counts.get(name, 0) for name in tower.counts} == tower.counts
    between = len(kinds) - next(at for at, kind in enumerate(kinds) if kind in ("good", "slots"))
    lost = kinds[-between:].count("none")
    assert lost <= counts.get("lost", 0) <= lost + kinds[-between:].count("floor"), "those with a bad head have a name already"


@cocotb.test
async def a_host_that_takes_nothing(dut: Any) -> None:
    """Whole packets are dropped before the router and counted; those that come are whole, and their places and numbers say what is missing."""
    port = PortBench(dut)
    tower = await port.begin()
    port.sink.pause = lambda: True
    while len(port.floor.queue) < 12:
        frame = Frame(any_slots(port.rng, GEOMETRY, 0.6))
        if port.stored_words(frame) <= BUFFER_WORDS:
            port.floor.queue.append(frame)
    await port.floor.drain()
    port.sink.pause = pauses(port.rng, 0.5)
    for _ in range(4):
        port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, 0.5)))
    counts = await port.finish()
    port.take(tower, port.floor.sent)
    assert counts["packet"] == len(tower.packets)
    assert 0 < counts["queue_full"] < len(tower.packets)
    left = iter(tower.packets)
    for packet in port.came:
        assert any(packet.data == sent.data for sent in left), "in order, each once"


@cocotb.test
async def a_fibre_that_is_cut(dut: Any) -> None:
    """In mid-frame, and returns; the link begun anew by the host; a recovered clock that stands meanwhile, and both: the frame is dropped as cut, the next ones are good. The
    link is not aligned, and the floor is told."""
    port = PortBench(dut)
    tower = await port.begin()
    link = Link(dut.ref_clk, dut.tx_codes, GEOMETRY)
    for how in ("dark", "link_rst", "stands", "stands, link_rst", "dark"):
        port.floor.queue += [Frame(any_slots(port.rng, GEOMETRY, 0.6)) for _ in range(2)]
        await port.floor.drain()
        cut = Frame(any_slots(port.rng, GEOMETRY, 1), spoiled=-1)  # its last word: none of it may go on
        port.floor.queue.append(cut)
        while port.floor.queue:
            await RisingEdge(dut.rx_clk)
        await port.rx.wait(port.rng.randrange(FIRST_SLOT + 40, GEOMETRY.end - 40))
        if how == "dark":
            port.floor.dark = True
            await port.rx.wait(port.rng.randrange(40, 400))
            port.floor.dark = False
        if "stands" in how:
            port.rx.stop()
            port.floor.dark = True
            await port.ref.wait(90)
            assert dut.aligned.value == 0, how
            await port.ref.wait(2 * GEOMETRY.frame_words)
            # Words of tx_codes were decoded some cycles later than they were made.
            assert link.frames()[-1][4][1] >> 8 & 1 == 0, "the floor is told that it is not heard"
        if "link_rst" in how:
            dut.link_rst.value = 1
            await port.bench.wait(1)
            dut.link_rst.value = 0
            await port.ref.wait(12)
            assert (dut.aligned.value, dut.sends.value) == (0, 0)
        if "stands" in how:
            port.rx.go()
            await port.rx.wait(20)
            port.floor.dark = False
        await port.bench.wait_until(lambda: dut.aligned.value == 1 and dut.sends.value == 1, 200_000, "the link is up", 100)
        await port.floor.drain()
    port.floor.queue += [Frame(any_slots(port.rng, GEOMETRY, 0.6)) for _ in range(7)]
    counts = await port.finish()
    port.take(tower, port.floor.sent)
    port.same(tower)
    assert (counts["drop_cut"], counts["count_up"], counts["count_down"]) == (5, 5, 2)


@cocotb.test
async def settings_change_under_traffic(dut: Any) -> None:
    """CLOPs at any moment, a run in mid-frame, another floor's number, and not enabled: each packet is whole and of one setting, and each frame has one fate."""
    port = PortBench(dut)
    await port.begin()
    frames = 14
    port.floor.queue += [Frame(any_slots(port.rng, GEOMETRY, 0.6)) for _ in range(frames)]
    turn = 0
    while port.floor.queue:
        await port.bench.wait(port.rng.randrange(20, 1500))
        port.route(tuple(port.rng.randrange(4) for _ in range(4)))
        if port.rng.random() < 0.2:
            turn += 1
            await port.run(1 + turn, port.rng.randrange(1, 6))
        dut.enable.value = port.rng.random() < 0.8
        dut.floor.value = 1 if port.rng.random() < 0.8 else 2
    dut.floor.value = 1
    counts = await port.finish()
    assert counts["count_good"] + counts.get("drop_floor", 0) == frames
    port.whole()


@cocotb.test
async def a_port_gets_another_floor(dut: Any) -> None:
    """One write says floor, tower and kind of hits: packets have what was said of the floor that their frame is of, whenever it was written."""
    port = PortBench(dut)
    await port.begin()
    said = {1: (7, 0), 2: (8, 1)}  # of each floor its tower, and whether hits are sampled
    for _ in range(24 if SHORT else 80):
        port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, 0.4), floor=port.rng.choice((1, 2))))
    while port.floor.queue:
        await port.bench.wait(port.rng.randrange(100, 2500))
        if port.rng.random() < 0.7:  # where a head is on its way to the core: its frame is of the floor that was said before
            periods = port.floor.periods
            while port.floor.periods == periods:
                await RisingEdge(dut.rx_clk)
            await port.rx.wait(FIRST_SLOT + port.rng.randrange(12))
            await port.bench.wait(1)
        floor = 3 - int(dut.floor.value)
        dut.floor.value = floor
        dut.tower.value, dut.sampled.value = said[floor]
    counts = await port.finish()
    assert counts["count_good"] + counts["drop_floor"] == len(port.floor.sent)
    floors = {data_of(part): frame.floor for frame in port.floor.sent for part in parts(frame)}
    seen = set()
    for packet in port.came:
        if packet.data[:4] == b"KM3F" and len(packet.data) > 36:
            floor = floors[packet.data[32:]]
            assert (packet.data[4], packet.data[5]) == (said[floor][0], floor)
            assert packet.data[6] in (1 + said[floor][1], 3, 4, 5)
            seen.add(floor)
    assert seen == {1, 2}


@cocotb.test
@cocotb.parametrize(eighths=(9, 17, 25, 43, 96))
async def a_core_that_is_too_slow(dut: Any, eighths: int) -> None:
    """Its clock is slower than the words of the link: what is missing makes its frame bad, and counted; what comes is whole. No frame and no count is lost, however slow it is."""
    port = PortBench(dut, core_ps=WORD_PS * eighths // 16 * 2)
    await port.begin()
    wanted: Counter[str] = Counter()
    kinds = ("good", "good", "end", "slots", "head", "floor", "cut")
    for number, share in enumerate((1, 0, 1, 0.1, *(0, 0.1, 1) * (3 if SHORT else 12), 0.2, 1, 0)):
        frame = Frame(any_slots(port.rng, GEOMETRY, share))
        kind = port.rng.choice(kinds) if number else "good"  # a full good frame there always is: it is overrun
        if kind == "end":
            frame.cut = GEOMETRY.end  # the next one follows it at once
        elif kind == "cut":
            frame.cut = port.rng.choice((1, port.rng.randrange(1, FIRST_SLOT), port.rng.randrange(1, GEOMETRY.end)))
        elif kind == "floor":
            frame.floor = 9
        elif kind != "good":
            frame.spoiled = port.rng.randrange(1, FIRST_SLOT) if kind == "head" else port.rng.randrange(FIRST_SLOT, GEOMETRY.end)
        wanted[{"good": "count_good", "end": "count_good", "slots": "slots"}.get(kind, f"drop_{kind}")] += 1
        port.floor.queue.append(frame)
    port.floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, 0)))
    wanted["count_good"] += 1
    counts = await port.finish()
    counts["slots"] = sum(counts.get(name, 0) for name in ("drop_crc", "drop_symbol", "drop_code"))
    assert {name: counts.get(name, 0) for name in wanted} == wanted
    assert counts["overrun"] > 0
    port.whole()


@cocotb.test
async def slow_control_to_the_floor(dut: Any) -> None:
    """Payloads of any length, as fast as they come: every byte in order in the slots of frames, each frame as the page says; more than there is room for is dropped whole."""
    port = PortBench(dut)
    await port.begin()
    link = Link(dut.ref_clk, dut.tx_codes, GEOMETRY)
    sent = [bytes(port.rng.randrange(256) for _ in range(size)) for size in (1, 2, 28, 7, 8, 9, 28, 31, 33, 600)]
    for payload in sent:
        port.source.send(Packet(payload))
    await port.source.drain()
    await port.ref.wait(22 * GEOMETRY.frame_words)
    sent.append(bytes(port.rng.randrange(256) for _ in range(2048)))
    port.source.send(Packet(sent[-1]))
    port.source.send(Packet(bytes(1500)))
    port.source.send(Packet(bytes(2049)))
    await port.source.drain()
    await port.ref.wait(18 * GEOMETRY.frame_words)
    sent.append(b"end.")
    port.source.send(Packet(sent[-1]))
    await port.ref.wait(16 * GEOMETRY.frame_words)
    counts = await port.finish()
    assert link.control() == b"".join(payload + bytes(len(payload) % 2) for payload in sent)
    assert (counts["to_floor"], counts["to_floor_full"]) == (len(sent), 2)


@cocotb.test
async def short_payloads_wait(dut: Any) -> None:
    """As many as there is room for in words of 8 B, while the link is away: then all go, in order."""
    port = PortBench(dut)
    await port.begin()
    link = Link(dut.ref_clk, dut.tx_codes, GEOMETRY)
    dut.link_rst.value = 1
    await port.ref.wait(20)
    sent = [bytes(port.rng.randrange(256) for _ in range(2 * port.rng.randrange(1, 5))) for _ in range(256)]
    for payload in sent:
        port.source.send(Packet(payload))
    await port.source.drain()
    for _ in range(40):
        port.source.send(Packet(b"more"))
    await port.source.drain()
    dut.link_rst.value = 0
    await port.ref.wait(30 * GEOMETRY.frame_words)
    counts = await port.finish()
    assert link.control().startswith(b"".join(sent))
    assert counts["to_floor"] + counts["to_floor_full"] == len(sent) + 40
    assert 20 <= counts["to_floor_full"] <= 40


def any_payload(port: PortBench, number: int) -> bytes:
    return number.to_bytes(2, "little") + bytes(port.rng.randrange(256) for _ in range(2 * port.rng.choice((1, 2, 5, 13, 45))))


def whole_payloads(got: bytes, sent: list[bytes]) -> tuple[list[int], list[int]]:
    """Which payloads are in it, and where there is something else."""
    found, others, at = [], [], 0
    while at < len(got):
        number = int.from_bytes(got[at : at + 2], "little")
        if number < len(sent) and got.startswith(sent[number], at):
            found.append(number)
            at += len(sent[number])
        else:
            others.append(at)
            at += 2
    return found, others


@cocotb.test
async def a_link_that_begins_anew_under_slow_control(dut: Any) -> None:
    """At any moment: what goes down after it begins with a whole payload, and each that was lost with the link is counted as cut, no other."""
    port = PortBench(dut)
    await port.begin()
    link = Link(dut.ref_clk, dut.tx_codes, GEOMETRY)
    sent: list[bytes] = []
    begins = [0]
    for _ in range(8 if SHORT else 40):
        for _ in range(port.rng.randrange(28)):  # now and then more than the link itself holds
            sent.append(any_payload(port, len(sent)))
            port.source.send(Packet(sent[-1]))
        await port.ref.wait(port.rng.randrange(1, 5 * GEOMETRY.frame_words))
        begins.append(len(link.words))
        dut.link_rst.value = 1
        await port.bench.wait(port.rng.choice((1, 60)))
        dut.link_rst.value = 0
        await port.bench.wait_until(lambda: dut.sends.value == 1, 40_000, "the link is up", 50)
    await port.ref.wait(12 * GEOMETRY.frame_words)
    counts = await port.finish()
    assert "to_floor_full" not in counts
    there: list[int] = []
    for begin, end in zip(begins, [*begins[1:], len(link.words)], strict=True):
        got = link.control(begin, end, cut=True)
        found, others = whole_payloads(got, sent)
        assert not found or found == list(range(found[0], found[-1] + 1)), "one after the other"
        assert not others or others == list(range(others[0], len(got), 2)), "the beginning of one, at the end"
        there += found
    assert there == sorted(there)
    assert (counts["to_floor"], counts["to_floor_cut"]) == (len(there), len(sent) - len(there))
    assert counts["to_floor_cut"] > 0


@cocotb.test
async def a_frame_that_is_cut_takes_payloads_with_it(dut: Any) -> None:
    """Where the time jumps, or the serialiser's divider, so that there is no light, the frame that was under way is none: what ended or went on in it is counted as cut, all
    else comes."""
    port = PortBench(dut)
    await port.begin()
    link = Link(dut.ref_clk, dut.tx_codes, GEOMETRY, dut.tx_on)
    sent: list[bytes] = []
    for turn in range(10 if SHORT else 50):
        for _ in range(port.rng.randrange(10)):
            sent.append(any_payload(port, len(sent)))
            port.source.send(Packet(sent[-1]))
        await port.ref.wait(port.rng.randrange(3 * GEOMETRY.frame_words))
        # Words since a frame began: in it; or so that the next one is there when it has been seen that the divider stands wrong.
        words = port.rng.randrange(1, 60) if turn % 2 else GEOMETRY.frame_words - port.rng.randrange(100)
        while len(link.words) < words or link.words[-words] != (1, DOWN << 8 | K28_5):
            await port.ref.wait(1)
        if turn % 2:
            await port.set_time(SECOND + 10 * turn)
        else:
            dut.div_wrong.value = 1
            await port.bench.wait_until(lambda: dut.tx_on.value == 0, 4000, "no light", 5)
            dut.div_wrong.value = 0
            await port.bench.wait_until(lambda: dut.tx_on.value == 1, 40_000, "light", 50)
    await port.ref.wait(12 * GEOMETRY.frame_words)
    counts = await port.finish()
    found, _ = whole_payloads(link.control(cut=True), sent)
    assert found == sorted(found)
    assert (counts["to_floor"], counts["to_floor_cut"]) == (len(found), len(sent) - len(found))
    assert counts["to_floor_cut"] > 0
    assert counts["error_cut"] > 0


@cocotb.test
async def a_time_that_is_wrong_is_counted(dut: Any) -> None:
    """A second that does not begin where the last one ends, and a frame whose second was never sent; more payloads than there is room for."""
    port = PortBench(dut)
    await port.begin()
    await port.set_time(SECOND + 7)
    await port.ref.wait(20)
    port.floor.begin(SECOND - 3)
    port.floor.queue.append(Frame([[]] * SLOTS))
    counts = await port.finish()
    assert (counts["error_gps"], counts["error_second"]) == (1, 1)
    assert (counts["control_only"], counts["count_good"]) == (1, 1)
    assert not port.came
