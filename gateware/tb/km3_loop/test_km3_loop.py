# SPDX-License-Identifier: Apache-2.0
"""km3_shore and km3_fcm with two fibres between: every word, express code and head both ways, one latency, the round trip and the phase that are measured, and each fault with its name
at the end that can see it."""

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge, Timer
from common.bench import CLOCK_PS, SHORT, random_numbers
from common.code_8b10b import K28_5, Symbol, encode
from loop_bench import CONTROL_WORDS, FRAME_WORDS, FRAMES_PER_S, HOLD_FRAMES, SLOT_WORDS, STEPS, Loop, faults

K27_7: Symbol = (1, 0xFB)
SETTINGS = [
    (3, 0, 0, 9),
    (29, 1, 19, 0),  # the head comes in the next frame than its first word
    (60, 7, 12, 31),
    *([] if SHORT else [(lag, 3 * lag % 20, 11 * lag % 20, 4 * lag) for lag in range(1, 10)]),
]
LOGIC_WORDS = 12  # of both ends, one way
CROSSING_WORDS = 4  # of a head into the clock in which the round trip is measured


def trip_of(lag: int) -> int:
    """As it is told: frames and words."""
    frames, words = divmod(2 * (LOGIC_WORDS + lag) + CROSSING_WORDS, FRAME_WORDS)
    return frames << 16 | words


@cocotb.test
@cocotb.parametrize(setting=range(len(SETTINGS)))
async def all_that_is_sent_comes(dut: Any, setting: int) -> None:
    """In order, to its slot, at one latency, with the time of its frame; from any place in a word, over fibres of any length, and of any phase."""
    lag, down_begin, up_begin, step = SETTINGS[setting]
    rng = random_numbers()
    loop = Loop(dut, step)
    await loop.start(lag, down_begin, up_begin, second=0x1_0000 * lag + 5)
    await loop.until_up()
    assert (int(dut.floor_slip.value), int(dut.rx_slip.value)) == ((20 - down_begin) % 20, (20 - up_begin) % 20)
    await loop.between()
    given, controls = loop.give([45, *[0] * 8, 40], 40)  # more than there is room for
    for fill in (1.0, 0.0, 1.3, 0.5, 0.9, 0.2):
        words, control = loop.give([int(fill * rng.uniform(0.8, 1) * size + 0.5) for size in SLOT_WORDS], int(fill * CONTROL_WORDS))
        given = [before + more for before, more in zip(given, words, strict=True)]
        controls += control
        for end in (0, 1):
            loop.codes[end] += [rng.randrange(256) for _ in range(1 + rng.randrange(2))]
        await loop.bench.wait(FRAME_WORDS + rng.randrange(30))
    await loop.frames(11)
    await loop.to_word(FRAME_WORDS - 2)
    assert loop.words == given
    assert loop.controls == controls
    for end, logic in ((0, LOGIC_WORDS - 1), (1, LOGIC_WORDS)):
        assert [code for _, code in loop.came[end]] == [code for _, code in loop.taken[end]]
        took = {came - taken for (came, _), (taken, _) in zip(loop.came[end], loop.taken[end], strict=True)}
        assert took == {logic + lag}
    begun, there, back = (loop.at[name] for name in ("start", "floor_start", "up"))
    # At each end of the time in which it was looked at a frame is on its way.
    times = list(there)[1:-1]
    assert {there[time] - begun[time] for time in times} == {LOGIC_WORDS + lag}
    assert {back[time] - begun[time] for time in times} == {2 * (LOGIC_WORDS + lag)}
    assert set(loop.trips) == {trip_of(lag)}
    assert set(loop.phases) == {step}
    assert abs(len(loop.trips) - len(back)) <= 1
    assert loop.heads[""] == [(3, 5, *time) for time in back]
    assert {(3, 5, *time) for time in times} <= set(loop.heads["down_"])
    assert (int(dut.tx_moved.value), int(dut.floor_moved.value)) == (0, 0)
    for end, ends in (("", ""), ("floor_", "control_")):
        assert loop.counts[end] == {"count_good": len(loop.ends[ends])}
        assert set(loop.ends[ends]) == {1}
        assert abs(len(loop.ends[ends]) - len(begun)) <= 1
    assert faults(loop) == {}


@cocotb.test
async def a_second_ends(dut: Any) -> None:
    """Both ends go on with the next one, and the round trip over it is what it was. GPS says the same; or it is a cycle too early, which is told."""
    loop = Loop(dut)
    await loop.start(36, 3, 11, second=0xFFFE)  # a round trip of a frame
    await loop.until_up()
    for says, early in ((False, 0), (True, 0), (True, 1)):
        await loop.unseen(FRAMES_PER_S - 4 - (int(dut.at.value) & 0xFFFF))
        second = int(dut.at.value) >> 16
        while (second, FRAMES_PER_S - 1) not in loop.at["start"]:
            await RisingEdge(dut.clk)
        if says:
            # In the last cycle of the second, whose value is set at the edge before it.
            await loop.bench.wait(loop.at["start"][second, FRAMES_PER_S - 1] + FRAME_WORDS - 2 - early - loop.bench.cycle)
            await loop.set_gps(second + 1)
        await loop.frames(4)
        if early:
            assert faults(loop) == {"error_gps": 1, "error_jump": 1, "error_trip": 2}, "the trips of two frames that were under way"
            continue
        assert faults(loop) == {}
        assert set(loop.trips) == {trip_of(36)}
        for heads in loop.heads.values():
            numbers = [second * FRAMES_PER_S + number for _, _, second, number in heads]
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            assert heads[-1][2] == second + 1


@cocotb.test
async def nothing_is_sent_without_time(dut: Any) -> None:
    """The link is up, and no frame goes before GPS has said when it is; after it the first second's first frame."""
    loop = Loop(dut)
    await loop.start(4, 3, 11, second=None)
    await loop.frames(15)
    assert int(dut.up.value) == 0b11110, "idle words"
    assert loop.at == {"start": {}, "floor_start": {}, "up": {}}
    await loop.set_gps(9)
    await loop.until_up()
    assert next(iter(loop.at["start"])) == (9, 0)
    assert next(iter(loop.at["floor_start"])) == (9, 2), "after two heads that agree"


@cocotb.test
async def a_wrong_bit_costs_its_frame(dut: Any) -> None:
    """At most, and is told; the other end sees nothing of it, and no word of a frame that is good is another."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    for place in range(0, FRAME_WORDS, 7 if SHORT else 1):
        for name, end, other in (("up_flip", "", "floor_"), ("down_flip", "floor_", "")):
            await loop.between()
            words, controls = loop.give([size - 1 for size in SLOT_WORDS], CONTROL_WORDS)
            await loop.bench.wait(10 + place)
            getattr(dut, name).value = 1 << loop.rng.randrange(20)
            await loop.bench.wait(1)
            getattr(dut, name).value = 0
            await loop.frames(3)
            await loop.to_word(FRAME_WORDS - 2)
            counts = loop.counts[end]
            assert loop.counts[other] == {"count_good": len(loop.at["start"])}
            assert counts.get("error_code", 0) + counts.get("error_express", 0) >= 1, (place, name)
            bad = sum(count for of, count in counts.items() if of.startswith(("drop_", "lost")))
            assert counts["count_good"] + bad == len(loop.at["start"])
            assert bad <= 1
            assert faults(loop).keys() <= {"error_jump"}
            if bad == 0:
                assert (loop.words, loop.controls) == (words, controls)
            assert int(dut.up.value) == 31


def flip_for(codes: int, other: list[Symbol]) -> int:
    """What makes an idle word, of which these are the codes, another one with the right disparity."""

    def word(symbols: list[Symbol], disparity: int) -> tuple[int, int]:
        found, after = encode(symbols, disparity)
        return int("".join(found)[::-1], 2), after

    for disparity in (-1, 1):
        idle, after = word([K28_5, (0, 0x50)], disparity)
        if idle == codes:
            wanted, after_wanted = word(other, disparity)
            assert after == after_wanted
            return idle ^ wanted
    raise AssertionError("no idle word")


@cocotb.test
async def a_word_in_the_place_of_another(dut: Any) -> None:
    """Its codes are right: data where there should be none, a comma in the second byte, half of an express code."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    comma_second = {"error_order": 1, "error_place": 1}
    for place, other, drops, told in (
        (40, [(0, 0xB5), (0, 0xB5)], 1, {"drop_symbol": 1}),
        (90, [(0, 0xB5), (0, 0xB5)], 0, {"error_stray": 1}),
        (40, [(0, 0x03), K28_5], 1, {"drop_symbol": 1} | comma_second),
        (90, [(0, 0x03), K28_5], 0, comma_second),
        (90, [K27_7, (0, 0xB5)], 0, {"error_express": 1}),
    ):
        await loop.between()
        await loop.to_word(place)
        dut.up_flip.value = flip_for(int(dut.up_codes.value), other)
        await loop.bench.wait(1)
        dut.up_flip.value = 0
        await loop.frames(2)
        await loop.to_word(FRAME_WORDS - 2)
        assert loop.counts[""] == {"count_good": len(loop.ends[""]) - drops} | told, (place, other)
        assert loop.ends[""].count(0) == drops
        assert list(loop.counts["floor_"]) == ["count_good"]


@cocotb.test
async def another_floor(dut: Any) -> None:
    """Neither takes the other's frames; the floor goes on by itself for eight, and then is silent."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    await loop.between()
    dut.floor_there.value = 6
    await loop.frames(14)
    assert faults(loop) == {"error_silent": 1}
    assert loop.events["floor_start"] == HOLD_FRAMES + 1
    assert loop.counts == {"": {"drop_floor": HOLD_FRAMES + 1}, "floor_": {"drop_floor": 14}}
    assert (loop.trips, loop.heads) == ([], {"": [], "down_": []})
    assert int(dut.up.value) == 0b11110
    dut.floor.value = 6
    await loop.until_up()
    assert {head[:2] for head in loop.heads[""] + loop.heads["down_"]} == {(3, 6)}


@cocotb.test
async def time_that_jumps(dut: Any) -> None:
    """It is told at each end; the frame in which it does is cut, and one that is under way has a second that no one knows here."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    for word, cut, under_way in ((FRAME_WORDS - 2, 1, 1), (3, 0, 1), (50, 0, 0)):
        await loop.between()
        await loop.to_word(word)
        loop.forget()
        await loop.set_gps(20 + word)
        await loop.frames(6)
        told = {"error_gps": 1, "error_jump": 1} | ({"error_cut": 1} if cut else {}) | ({"error_second": 1} if under_way else {})
        assert faults(loop) == told, word
        assert loop.counts["floor_"].get("drop_cut", 0) == cut
        assert loop.counts["floor_"]["error_time"] == loop.counts[""]["error_time"] == 1
        assert set(loop.trips) == {trip_of(4)}
        assert int(dut.up.value) == 31


@cocotb.test
async def fibres_that_are_cut(dut: Any) -> None:
    """Down: the floor is off until it hears again. Up: the floor goes on, and is told in each head. One that hears itself says so. When all is well again, so is the latency."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    trip, phase = loop.trips[0], loop.phases[0]
    for name, up, lost in (
        ("down_dark", 0b01000, ["", "floor_"]),
        ("up_dark", 0b01111, [""]),
        ("up_is_own", 0b11111, []),
        ("floor_rst", 0b01000, [""]),
    ):
        await loop.between()
        getattr(dut, name).value = 1
        await loop.frames(9)
        assert int(dut.up.value) == up, name
        assert [end for end, counts in loop.counts.items() if counts.get("count_down")] == lost
        assert [end for end, counts in loop.counts.items() if counts.get("restarts")] == lost
        assert faults(loop).keys() == {("restart", "floor_restart")[end == "floor_"] for end in lost}
        begun = len(loop.at["start"])
        if name.startswith("up"):
            assert loop.counts["floor_"] == {"count_good": begun}
            assert loop.heads["down_"][-1][:2] == ((2 if lost else 3), 5), "whether it hears"
            assert abs(len(loop.at["floor_start"]) - begun) <= 1
        else:
            assert len(loop.at["floor_start"]) <= 1
        assert begun == 9
        if name == "up_is_own":
            assert loop.counts[""]["error_direction"] >= begun - 1
        getattr(dut, name).value = 0
        await loop.until_up()
        anew = lost if name != "floor_rst" else ["", "floor_"]
        assert [end for end, counts in loop.counts.items() if counts.get("count_up")] == anew
        assert all(loop.counts[end]["count_up"] == 1 for end in anew)
        assert (set(loop.trips), set(loop.phases)) == ({trip}, {phase})
        assert faults(loop).keys() <= {"restart", "floor_restart"}


@cocotb.test
async def a_link_begins_anew(dut: Any) -> None:
    """Time goes on, and the monitors keep what was: that the link has the same latency after it, or another, which is told. A reset of all forgets that too."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    for lag, wrong in ((4, False), (5, True), (4, False)):
        (second, number), cycle = list(loop.at["start"].items())[-1]
        dut.link_rst.value, dut.lag.value = 1, lag
        await loop.bench.wait(3)
        loop.forget()
        await loop.bench.wait(20)
        assert int(dut.up.value) & 0b11000 == 0
        dut.link_rst.value = 0
        await loop.until_up()
        await loop.frames(2)
        assert faults(loop) == ({"error_trip": len(loop.trips)} if wrong else {})
        assert set(loop.trips) == {trip_of(lag)}
        assert set(loop.phases) == {9}
        again, later = next(iter(loop.at["start"].items()))
        assert again == (second, number + (later - cycle) // FRAME_WORDS)
        assert (later - cycle) % FRAME_WORDS == 0
    dut.lag.value = 9
    await loop.bench.reset(60)
    await loop.set_gps(3)
    await loop.until_up()
    assert "error_trip" not in faults(loop)
    # The recovered clock comes later than it did: the meter sees that.
    clock = loop.clocks[0]
    clock.stop()
    dut.floor_clk.value = 0
    await Timer(7 * CLOCK_PS // STEPS, "ps")
    loop.forget()
    clock.start()
    await loop.until_up()
    assert set(loop.phases) != {9}
    assert faults(loop)["error_phase"] == len(loop.phases)


@cocotb.test
async def dividers_that_stand_wrong(dut: Any) -> None:
    """Nothing is sent, and both ends say so; they are slid, and where that does not help it has failed."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    dut.div_wrong.value = 1
    await loop.frames(30)
    told = faults(loop)
    assert int(dut.up.value) == 0
    assert (told["error_tx_phase"], told["floor_tx_phase"]) == (1, 1)
    assert told["error_tx_failed"] >= 2
    assert told["tx_slide"] >= 100
    assert told["floor_tx_slide"] > 0
    dut.div_wrong.value = 0
    await loop.until_up()
    assert loop.trips[0] == trip_of(4)


@cocotb.test
async def codes_at_every_place_of_a_frame(dut: Any) -> None:
    """Of either end, also where a frame begins: each comes, at one latency, and costs no frame."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    await loop.between()
    for code in range(FRAME_WORDS + 1):
        for codes in loop.codes:
            codes.append(code)
        await loop.bench.wait(FRAME_WORDS + 1)
    for came, taken in zip(loop.came, loop.taken, strict=True):
        assert [code for _, code in came] == [code for _, code in taken] == list(range(FRAME_WORDS + 1))
        assert len({after - before for (after, _), (before, _) in zip(came, taken, strict=True)}) == 1
    assert faults(loop) == {}
    assert [list(counts) for counts in loop.counts.values()] == [["count_good"]] * 2


@cocotb.test
async def more_codes_than_a_frame_has_room_for(dut: Any) -> None:
    """They go at once, and the frame is cut: both ends say so."""
    loop = Loop(dut)
    await loop.start(4, 3, 11)
    await loop.until_up()
    await loop.between()
    loop.codes[1] += range(16)
    await loop.frames(3)
    await loop.to_word(FRAME_WORDS - 2)
    assert [code for _, code in loop.came[1]] == list(range(16))
    assert faults(loop) == {"floor_cut": 1}
    assert loop.counts == {
        "": {"count_good": len(loop.at["up"]) - 1, "drop_cut": 1},
        "floor_": {"count_good": len(loop.at["start"])},
    }


@cocotb.test
async def a_phase_is_told_when_no_slide_is_in_it(dut: Any) -> None:
    """Readings come every 41 cycles, wherever in these the link was aligned: none is told within twice 40 and 8 of the meter's, and the next one is."""
    loop = Loop(dut)
    await loop.start(1, 0, 0)
    await loop.until_up()
    waits: dict[int, int] = {}  # by where it was
    for cycle in range(4 * 41):
        dut.up_dark.value = 1
        await loop.bench.wait(20 + cycle % 41)
        loop.forget()
        dut.up_dark.value = 0
        await loop.bench.wait_until(lambda: bool(loop.up_cycles and loop.phases), 4000, "a phase", 3)
        waits[loop.up_cycles[0] % 41] = loop.phase_cycles[0] - loop.up_cycles[0]
    assert len(waits) == 41
    # 88 cycles of the meter's are 90.2 of this clock; the rest is both crossings.
    assert (min(waits.values()), max(waits.values())) == (95, 95 + 40)
