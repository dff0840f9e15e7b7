# SPDX-License-Identifier: Apache-2.0
"""nic_eth with its host at the end of a cable: packets in and out of memory that frames carry, whatever is lost on the way, and sessions that begin anew."""

from typing import Any

import cocotb
from common.bench import SHORT, first_edge, random_numbers
from common.card import RX, SOURCE, TX, CardDriver, both_ways, random_payloads, receive_one
from common.contract import Kind
from common.frames import with_fcs
from common.host_link import (
    DATA,
    HEADER,
    HOST,
    OPEN,
    REGISTER_READ,
    REGISTER_WRITE,
    STATION,
    VERSION,
    EthernetBench,
    mac_bytes,
    record,
)

CLOCKS = ("wire_rx_clk", "wire_tx_clk", "host_rx_clk", "host_tx_clk")
QUIET_CYCLES = (
    14_000  # what was lost has been sent again, RETRY_CYCLES being longer than all answers that the host may have to send first
)
FRAMES_THAT_CAME = (
    *("count_taken", "count_opened", "count_answer", "drop_bad", "drop_full", "drop_number", "drop_session", "drop_foreign"),
)


class Card(CardDriver, EthernetBench):
    """The card on a cable."""

    word_cycles = 8

    def __init__(self, dut: Any, **host: Any) -> None:
        super().__init__(dut, random_numbers(), **host)

    async def begin(self) -> None:
        await super().begin()
        await self.set_up()

    async def quiet(self) -> None:
        """Until everything has arrived and nothing is on the way."""
        await self.wait_until(lambda: not self.unacknowledged, 400_000, "acknowledgements", step=100)
        await self.wait(QUIET_CYCLES)

    async def expect_balance(self) -> None:
        """Every frame that came to the NIC is in one counter."""
        await self.quiet()
        counts = self.counts
        assert sum(counts[name] for name in FRAMES_THAT_CAME) == self.frames_sent, f"{self.frames_sent} frames, {counts}"
        assert counts["count_taken"] >= self.number


async def one_by_one(card: Card, rounds: int) -> None:
    """A packet each way at a time, so that the NIC always has room while frames are sent again."""
    payloads, answers = random_payloads(card, rounds), random_payloads(card, rounds)
    before, gone = len(card.received), len(card.sent)
    out = cocotb.start_soon(card.frames_out(answers))
    for k in range(rounds):
        await card.send_frames([payloads[k]])
        card.post_packet(answers[k], k)
        await card.ring_doorbell()
        await card.wait_until(lambda k=k: len(card.received) > before + k, 400_000, f"packet {k}", step=100)
        await card.release()
        await card.wait_until(lambda k=k: len(card.sent) > gone + k, 400_000, f"answer {k}", step=100)
    await out
    assert card.received[before:] == [(payload, SOURCE) for payload in payloads]


async def read_until(card: Card, done: list[None]) -> None:
    """A counter again and again, so that other records leave between a question and its answer."""
    before = 0
    for _ in range(60):
        if done:
            break
        parsed = await card.read(0x800)
        assert parsed >= before
        before = parsed


@cocotb.test
async def packets_in_and_out_of_the_hosts_memory(dut: Any) -> None:
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    done: list[None] = []
    reading = cocotb.start_soon(read_until(card, done))
    await both_ways(card, 16 if SHORT else 100)
    done.append(None)
    await reading
    assert card.lost == 0
    assert (await card.nic_counts(0x800, RX))["stored"] == len(card.received)
    assert (await card.nic_counts(0x900, TX))["sent"] == len(card.sent)
    await card.expect_balance()
    assert card.counts["count_retry"] == card.counts["drop_number"] == card.counts["drop_bad"] == 0, "nothing was lost"


@cocotb.test
async def frames_that_are_lost_are_sent_again(dut: Any) -> None:
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    share = card.rng.choice([0.05, 0.15, 0.3])
    card.lose = lambda: card.rng.random() < share
    for _ in range(20):  # where few are lost, until each kind was
        await one_by_one(card, 12 if SHORT else 60)
        seen = (card.counts["count_retry"], card.counts["drop_number"], card.came["again"])
        if all(seen):
            break
    assert all(seen), seen
    assert (await card.nic_counts(0x800, RX))["stored"] == len(card.received)
    await card.expect_balance()


@cocotb.test
async def a_host_that_is_away_holds_nothing_up_for_ever(dut: Any) -> None:
    """Its cable is out while packets come: what finds no room is counted, and when it is in again the rest arrives, in order."""
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    card.lose = lambda: True
    payloads = [card.rng.randbytes(1472) for _ in range(30)]
    await card.send_frames(payloads)
    await card.wire_in.wait()
    await card.wait(8000)
    assert not card.received
    card.lose = lambda: False
    await card.quiet()
    await card.release()
    await card.quiet()
    counts = await card.nic_counts(0x800, RX)
    assert counts["overflow"] > 0
    assert counts["parsed"] == len(payloads) == counts["stored"] + counts["overflow"] + counts["no_buffer"]
    assert len(card.received) == counts["stored"] > 4
    left = iter(payloads)
    assert all(payload in left for payload, _ in card.received), "in order, as they were sent"
    await card.release()
    await one_by_one(card, 3)


@cocotb.test
async def a_new_session_is_a_reset(dut: Any) -> None:
    """Opened in the midst of traffic, with frames on the way: nothing of the old one is seen in the new one."""
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    for _ in range(2 if SHORT else 6):
        await card.send_frames(random_payloads(card, 6))
        await card.wait(card.rng.randrange(4000))
        card.on_write = lambda address, data: None
        await card.open_session()
        assert await card.read(0x400) == await card.read(0x200) == await card.read(0x020) == 0, "as after a reset"
        assert await card.read(0x800) == 0
        await card.wire_in.wait()
        await card.wait(4000)
        card.forget()
        await card.set_up()
        await one_by_one(card, 3)
    opened = card.counts["count_opened"]
    card._send(OPEN, 0, b"")  # late, of this session
    await card.wait(2000)
    assert card.counts["count_opened"] == opened + 1
    assert await card.read(0x400) == 1, "nothing has changed"
    await card.expect_balance()


@cocotb.test
async def what_is_not_the_hosts_is_counted_and_changes_nothing(dut: Any) -> None:
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    await card.quiet()
    good = HEADER.pack(mac_bytes(STATION), mac_bytes(HOST), 0xB588, VERSION, DATA, card.session, card.number, card.expected)
    write = record(REGISTER_WRITE, 0x400) + bytes(8)  # the ring off, if it is heard
    for at, counter in ((0, "drop_foreign"), (12, "drop_foreign"), (14, "drop_foreign"), (16, "drop_session"), (20, "drop_number")):
        before, changed = card.counts, bytearray(good + write)
        changed[at] ^= 1 << card.rng.randrange(1, 8)
        card.send_raw(with_fcs(bytes(changed).ljust(card.rng.randint(60, 200), b"\0")))
        await card.wait(2000)
        assert card.counts[counter] == before[counter] + 1, counter
    card.send_raw(with_fcs(card.rng.randbytes(60)))
    card.send_raw(card.rng.randbytes(64))  # no check sequence
    await card.wait(2000)
    assert await card.read(0x400) == 1
    await card.expect_balance()


@cocotb.test
async def records_that_are_wrong_are_counted_and_the_next_frame_is_heard(dut: Any) -> None:
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    off = record(REGISTER_WRITE, 0x400) + bytes(8)
    room = b"".join(record(REGISTER_WRITE, 0x030) + bytes(8) for _ in range(3))  # so that no filling follows
    malformed = 0
    for body in (record(9) + off, record(0) + off, record(4) + off, record(5, size=16) + off, room + record(REGISTER_WRITE, 0x400)):
        malformed += body[:8] != bytes(8)
        card.post(body)
        await card.quiet()
        assert card.counts["count_malformed"] == malformed, body.hex()
        assert await card.read(0x400) == 1, "what follows is left out"
    card.post(record(REGISTER_READ, 0x000) + record(REGISTER_READ, 0x008) + record(REGISTER_READ, 0x010))
    await card.quiet()
    assert len(card.values) == 1, "one at a time"
    card.values.clear()
    assert card.counts["count_malformed"] == malformed + 2
    assert await card.ask(0x7F8) == (True, 0), "no register"
    await card.write(0x7F8, 1)
    await card.quiet()
    assert card.counts["count_refused"] == 1
    await one_by_one(card, 3)
    await card.expect_balance()


@cocotb.test
async def registers_are_written_one_after_the_other(dut: Any) -> None:
    """Behind a read that takes its time."""
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    await card.quiet()
    bits = {0x020: (48, 0), 0x028: (32, 0), 0x408: (12, 9), 0x410: (14, 6)}
    values = {offset: card.rng.getrandbits(width) << low for offset, (width, low) in bits.items()}
    writes = b"".join(record(REGISTER_WRITE, offset) + value.to_bytes(8, "little") for offset, value in values.items())
    card.post(record(REGISTER_READ, 0x800) + writes)
    await card.quiet()
    card.values.clear()
    assert {offset: await card.read(offset) for offset in values} == values


@cocotb.test
async def reads_that_fail_are_errors_in_their_turn(dut: Any) -> None:
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    payloads = [card.rng.randbytes(600) for _ in range(5)]
    fates = {1: "failed", 2: "long", 3: "cut"}
    card.spoil = {card.payloads.pages[slot][0]: fate for slot, fate in fates.items()}.get
    for tag, payload in enumerate(payloads):
        card.post_packet(payload, tag)
    await card.ring_doorbell()
    await card.frames_out([payload for slot, payload in enumerate(payloads) if slot not in fates])
    await card.wait_until(lambda: len(card.sent) == len(payloads), 40_000, "a completion for each", step=100)
    assert card.sent == [(Kind.ERROR if slot in fates else Kind.PACKET_SENT, slot) for slot in range(len(payloads))]
    counts = await card.nic_counts(0x900, TX)
    assert (counts["sent"], counts["unreadable"], counts["read_error"]) == (2, 3, 3)
    assert card.counts["count_malformed"] == 2
    card.spoil = lambda address: None
    await card.expect_balance()


@cocotb.test
async def an_interrupt_comes_after_its_completion(dut: Any) -> None:
    await first_edge(dut, *CLOCKS)
    card = Card(dut)
    await card.begin()
    await card.write(0x0C8, 1 << 32)
    await card.write(0x0D0, 0)
    await card.write(0x0C0, 1)
    for k in range(1, 4):
        await receive_one(card)
        await card.wait_until(lambda k=k: len(card.interrupts) == k, 4000, "an interrupt")
        assert card.interrupts[-1] == len(card.written), "the completion was in memory before"
        await card.write(0x0D0, k)
    await card.expect_balance()
