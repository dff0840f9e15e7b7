# SPDX-License-Identifier: Apache-2.0
"""nic_pcie as a card in a host: found by enumeration, set up through BAR0, frames in by XGMII or GMII and out of its TX ring, everything else in host memory."""

from typing import Any

import cocotb
from common.bench import PARAMETERS, SHORT, first_edge, random_numbers
from common.card import MATCH, PACKETS_PER_BUFFER, PORT, REPLY, RX, SOURCE, TX, CardDriver, both_ways, random_payloads, receive_one
from common.clocks import Domain
from common.contract import Kind
from common.frames import FCS_BYTES, FRAME_BYTES_MIN, frame_of, sent_frame
from common.pcie import PcieBench
from common.requests import answer_to, arp_request, echo_request
from common.wires import GBPS, WIRE_CLOCK_PS, wire_sink, wire_source

PAYLOAD_BYTES_MAX = PARAMETERS.get("FRAME_BYTES_MAX", 9022) - 46
OWN_CLOCKS = bool(PARAMETERS.get("OWN_CLOCKS"))  # else the wire has the block's
WIRE_CLOCKS = ("rx_clk", "tx_clk") if OWN_CLOCKS else ()
STAGE_STATISTICS = bool(PARAMETERS.get("STAGE_STATISTICS", 1))
CYCLE_PS = PARAMETERS.get("CYCLE_PS", WIRE_CLOCK_PS)
WORD_CYCLES = (1 if GBPS == 10 else 8) * (2 if OWN_CLOCKS else 1)


class Card(CardDriver, PcieBench):
    """The card in a PCIe host."""

    word_cycles = WORD_CYCLES

    def __init__(self, dut: Any, **host: Any) -> None:
        super().__init__(dut, random_numbers(), **host)
        if OWN_CLOCKS:
            rx, tx = (
                Domain(dut, clock, WIRE_CLOCK_PS * self.rng.uniform(0.9998, 1.0002), self.rng.random()) for clock in WIRE_CLOCKS
            )
            self.wire_in, self.wire_out = wire_source(rx), wire_sink(tx)
        else:
            self.wire_in, self.wire_out = wire_source(self), wire_sink(self)

    async def begin(self) -> None:
        await super().begin()
        await self.set_up()


@cocotb.test
async def packets_in_and_out_of_host_memory(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=256, latency_ns=(200, 600))
    await card.begin()
    await both_ways(card, 24 if SHORT else 200)
    assert card.lost == 0
    assert (await card.nic_counts(0x800, RX))["stored"] == len(card.received)
    assert (await card.nic_counts(0x900, TX))["sent"] == len(card.sent)
    card.expect_counts()


@cocotb.test
async def frames_at_line_rate_of_every_size(dut: Any) -> None:
    """Back to back, payloads of 128 B on the bus: its descriptors cost a cycle each, and the NIC's FIFO still never fills."""
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=128)
    await card.begin()
    total = 0
    for size in (18, 82, 1472) if SHORT else (1, 18, 19, 64, 82, 83, 129, 210, 1168, 1472, min(8900, PAYLOAD_BYTES_MAX)):
        count = 100 if size < 500 else 30 if size < 2000 else 6
        payloads = [card.rng.randbytes(size) for _ in range(count // 2 if SHORT else count)]
        total += len(payloads)
        cocotb.start_soon(card.send_frames(payloads))
        while (came := len(card.received)) < total:
            await card.release()
            await card.wait(40)
            assert len(card.received) > came or not card.wire_in.idle.is_set() or await settles(card, total), f"{size} B"
    assert (await card.nic_counts(0x800, RX))["stored"] == total
    assert card.lost == 0
    card.expect_counts()


async def settles(card: Card, total: int) -> bool:
    await card.wait(4000 * WORD_CYCLES)
    return len(card.received) == total


@cocotb.test
async def a_slow_host_with_small_payloads_that_pauses_and_mixes_answers(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=128, latency_ns=(200, 4000))
    await card.begin()
    card.pause(0.3)
    await both_ways(card, 24 if SHORT else 200)
    assert card.lost == 0
    assert card.overtaken, "answers came out of order"
    card.expect_counts()


@cocotb.test
async def reads_that_the_host_refuses_are_errors_in_their_turn(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, latency_ns=(200, 600))
    await card.begin()
    payloads = [card.rng.randbytes(600) for _ in range(6)]
    fates = {1: "ur", 3: "poison", 4: "ca"}
    spoiled = {card.payloads.pages[slot][0] + 128: fate for slot, fate in fates.items()}
    card.spoil = spoiled.get
    for tag, payload in enumerate(payloads):
        card.post_packet(payload, tag)
    await card.ring_doorbell()
    await card.frames_out([payload for slot, payload in enumerate(payloads) if slot not in fates])
    await card.wait_until(lambda: len(card.sent) == len(payloads), 4000, "a completion for each")
    assert card.sent == [(Kind.ERROR if slot in fates else Kind.PACKET_SENT, slot) for slot in range(len(payloads))]
    counts = await card.nic_counts(0x900, TX)
    assert (counts["sent"], counts["unreadable"], counts["read_error"]) == (3, 3, 3)
    # The descriptors themselves: the ring stops, and goes on when it was disabled.
    card.spoil = lambda address: "ca" if card.ring.offset_of(address) is not None else None
    card.post_packet(payloads[0], 6)
    await card.ring_doorbell()
    await card.wait(1500)
    assert await card.read(0x428) >> 33 & 1, "fault"
    card.spoil = lambda address: None
    await card.write(0x400, 0)
    card.rung, card.sent = 0, []
    await card.write(0x420, 0)
    await card.write(0x400, 1)
    card.post_packet(payloads[2], 7)
    await card.ring_doorbell()
    await card.frames_out([payloads[2]])
    await card.wait_until(
        lambda: card.sent == [(Kind.PACKET_SENT, 7)], 4000, "its completion"
    )  # no test begins in the middle of a request
    card.expect_counts()


@cocotb.test
async def without_bus_master_frames_are_counted_and_then_it_goes_on(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, latency_ns=(200, 600))
    await card.begin()
    payloads = [card.rng.randbytes(1472) for _ in range(24)]
    await card.function.set_master(False)
    before = len(card.written)
    await card.send_frames(payloads)
    await card.wire_in.wait()
    await card.wait(200)
    counts = await card.nic_counts(0x800, RX)
    assert len(card.written) == before, "nothing may be written"
    assert counts["parsed"] == len(payloads)
    assert counts["overflow"] > 0, "more than the FIFO holds"
    await card.function.set_master()
    more = random_payloads(card, 6)
    for payload in more:
        await card.send_frames([payload])
        await card.wait(600)
        await card.release()
    await card.wire_in.wait()
    for _ in range(3):
        await card.wait(1000)
        await card.release()
    counts = await card.nic_counts(0x800, RX)
    assert counts["parsed"] == len(payloads) + len(more)
    assert counts["parsed"] == counts["stored"] + counts["overflow"] + counts["no_buffer"]
    assert len(card.received) == counts["stored"]
    left = iter([*payloads, *more])
    assert all(payload in left for payload, _ in card.received), "in order, as they were sent"
    assert [payload for payload, _ in card.received[-len(more) :]] == more


@cocotb.test
async def a_message_wakes_who_sleeps_and_the_completion_is_there(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, latency_ns=(200, 600))
    await card.begin()
    await card.function.msi_set_enable(False)
    await card.write(0x0C8, 1 << 32)
    await card.write(0x0D0, 0)
    await card.write(0x0C0, 1)
    await receive_one(card)
    assert card.interrupts == [], "messages are not enabled"
    await card.function.msi_set_enable(True)
    await card.wait_until(lambda: len(card.interrupts) == 1, 4000, "a message for the line that is up")
    await receive_one(card)
    assert len(card.interrupts) == 1, "one message for each time that it is armed"
    await card.write(0x0D0, 1)  # as if it had not seen the second
    await card.wait_until(lambda: len(card.interrupts) == 2, 4000, "a message at once")
    await card.write(0x0D0, 2)
    await receive_one(card)
    assert len(card.interrupts) == 3
    assert card.interrupts[-1] == len(card.written), "the completion was in memory before"
    card.expect_counts()


@cocotb.test
async def events_are_counted_where_the_match_says_so(dut: Any) -> None:
    """Byte 3 of a payload is their number; one without has none."""
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=256)
    await card.begin()
    expected = total = 0
    for counts in (1, 0):
        await card.write(0x048, MATCH | 1 << 8 | counts << 9 | PORT << 16 | SOURCE << 32)
        for size in (1, 3, 4, 5, 18, 100):
            payloads = [card.rng.randbytes(size) for _ in range(PACKETS_PER_BUFFER)]
            total += len(payloads)
            expected += counts * sum(payload[3] for payload in payloads if size > 3)
            await card.send_frames(payloads)
            while (
                len(card.received) < total
            ):  # at 1 Gb/s they come in several buffers, of which only two time out before one is given back
                await card.wait_until(lambda taken=card.taken: card.taken > taken, 20_000, "a buffer")
                await card.release()
            assert card.events == expected, f"{size} B"


@cocotb.test
async def requests_are_answered_among_packets_that_go_both_ways(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, latency_ns=(200, 600))
    await card.begin()
    rounds = 4 if SHORT else 30
    for tag in range(rounds):
        request = card.rng.choice([arp_request(), echo_request(card.rng.randbytes(card.rng.randint(0, 200)))])
        answer, payload = card.rng.randbytes(200), card.rng.randbytes(100)
        expected = {frame.ljust(FRAME_BYTES_MIN, b"\0") for frame in (answer_to(request), sent_frame(answer, card.destination))}
        card.post_packet(answer, tag)
        await card.ring_doorbell()
        await card.send_frame(frame_of(request))
        await card.send_frames([payload])
        await card.wait_until(lambda: len(card.wire_out.seen) >= 2, 8000 * WORD_CYCLES, "both frames")
        assert {await card.frame_out(), await card.frame_out()} == expected
        await card.release()
    await card.wait_until(lambda: len(card.received) == rounds, 8000 * WORD_CYCLES, "all payloads")
    counts = await card.nic_counts(0x980, REPLY)
    assert counts["answered_arp"] + counts["answered_echo"] == counts["replied"] == rounds
    card.expect_counts()


@cocotb.test
async def the_sizes_are_those_of_its_parameters(dut: Any) -> None:
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut)
    await card.begin()
    geometry, stages = await card.read(0x008), await card.read(0x0B8)
    sizes = [
        geometry >> low & mask for low, mask in ((0, 0xFF), (8, 0xFF), (16, 0xFF), (24, 0xFF), (32, 0xFFFF), (48, 0xFF), (56, 0xFF))
    ]
    names = {"CLOPS": 4, "MATCH_ENTRIES": 16, "DESTINATIONS": 16, "REGIONS": 16, "ENTRIES": 4096, "OFFSET_BITS": 40}
    assert sizes == [*(PARAMETERS.get(name, default) for name, default in names.items()), PAYLOAD_BYTES_MAX // 64]
    assert stages == (5 if STAGE_STATISTICS else 0) | 64 << 8


@(cocotb.test if STAGE_STATISTICS else lambda test: test)
async def the_latency_of_a_size_is_one_number(dut: Any) -> None:
    """As the NIC counts it, back to back: the stages of each packet add up to the time from the frame's start to its last word on the way to memory."""
    await first_edge(dut, *WIRE_CLOCKS)
    card = Card(dut, payload_bytes=256)
    await card.begin()
    assert await card.read(0x038) == 1000 * GBPS | CYCLE_PS << 32
    await card.write(0x0A0, 1)
    slowest = 0
    for size in (18, 1472) if SHORT else (1, 18, 64, 300, 1472, min(8900, PAYLOAD_BYTES_MAX)):
        before = len(card.received)
        count = 8
        await card.send_frames([card.rng.randbytes(size) for _ in range(count)])
        while len(card.received) < before + count:  # with two buffers the consumer gets no third for its age alone
            await card.wait(100)
            await card.release()
            assert card.cycle < 400_000 * WORD_CYCLES, f"{size} B"
        await card.write(0x0A0, 1)
        stages = []
        for stage in range(3):
            words = []
            for word in range(4):
                await card.write(0x0A8, word | stage << 8)
                words.append(await card.read(0x0B0))
            samples, least, most, _ = words
            assert samples == count
            spread = 3 if OWN_CLOCKS else int(GBPS == 10)
            assert most - least <= spread, "only which lane of XGMII a frame begins on may make a cycle, and a crossing two"
            stages.append(most)
        wire_ps = (max(size + 42, FRAME_BYTES_MIN) + FCS_BYTES) * (WIRE_CLOCK_PS // 8 if GBPS == 10 else WIRE_CLOCK_PS)
        wire_cycles = wire_ps // (CYCLE_PS if OWN_CLOCKS else WIRE_CLOCK_PS)
        slowest = max(slowest, sum(stages) - wire_cycles)
    print(f"figure: last byte to last word on the way to memory at {GBPS} Gb/s: at most {slowest} cycles", flush=True)
    assert slowest <= 64
