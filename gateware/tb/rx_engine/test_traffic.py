# SPDX-License-Identifier: Apache-2.0
"""rx_engine under hostile senders and drivers, at line rate: what a bad packet costs the good ones, what is lost and told of, and that no good packet is
later for anything that goes on beside it."""

from typing import Any

import cocotb
from common.bench import SHORT
from common.contract import Status
from nic_bench import LATENCY_CYCLES, SINGLE_CYCLES, NicBench, at_line_rate, latencies, latencies_of
from nic_driver import ClopSettings

LONGEST = 8976
SHORTEST = 18  # what fills a frame of 64 B
OTHER_WORDS = 4  # of a write of the other writer


@cocotb.test
@cocotb.parametrize(index_capacity=[1, 16])
async def what_ends_early_costs_no_good_packet_a_cycle(dut: Any, index_capacity: int) -> None:
    """Each fourth packet announces 8976 B and ends after some; packets of every alignment in the buffer, and a completion for each or for few."""
    sizes = [1, 18, 144, 200, 300] if SHORT else [1, 8, 18, 64, *range(100, 340, 8), 600, 1472]
    bench = NicBench(dut, [ClopSettings(buffer_count=64, buffer_bytes=24576, index_capacity=index_capacity)])
    await bench.begin()
    bad_count = good_count = 0
    for size in sizes:
        packets = []
        for number in range(24):
            bad = number % 4 == 3
            packets.append(bench.random_packet(size if bad else bench.rng.choice([SHORTEST, SHORTEST, 32, 40, 100]), bad=bad))
            packets[-1].announced = LONGEST if bad else 0
        for packet in at_line_rate(packets):
            bench.source.send(packet)
        del bench.memory.writes[:]
        await bench.consume()
        await bench.settle()
        good = [packet for packet in packets if not packet.bad]
        assert [first for first, _ in latencies_of(bench, good)] == [LATENCY_CYCLES] * len(good), size
        good_count, bad_count = good_count + len(good), bad_count + len(packets) - len(good)
        assert bench.packets_of(0)[-len(good) :] == [(packet.data, packet.source) for packet in good]
    bench.expect_counts(count_stored=good_count, drop_bad=bad_count)


@cocotb.test
async def a_bad_packet_without_room_is_not_lost_as_well(dut: Any) -> None:
    """No buffer, then no room in the FIFO, with bad packets among the good: the good ones alone are lost, counted once, and told of in the next
    completion of their CLOP."""
    clops = [
        ClopSettings(buffer_count=2, buffer_bytes=4096, index_capacity=1),
        ClopSettings(buffer_count=64, buffer_bytes=65536, index_capacity=512),
    ]
    bench = NicBench(dut, clops)
    await bench.begin()
    for _ in range(2):
        bench.source.send(bench.random_packet(100, gap=20))
    lost = [bench.source.send(bench.random_packet(size, gap=20, bad=bad)) for size in (8, 60, 400, 900) for bad in (False, True)]
    await bench.source.drain()
    await bench.wait(100)
    bench.expect_counts(count_stored=2, drop_no_buffer=4, drop_bad=4)
    bench.collect()
    bench.source.send(bench.random_packet(100))
    await bench.settle()
    assert (bench.seen[0][-1].packets_lost, bench.seen[0][-1].status) == (len(lost) // 2, Status.FULL | Status.GAP | Status.ERROR)
    assert bench.seen[1] == []

    bench.memory.stopped = True
    before = dict(bench.counts)
    sent = []
    for number in range(90):
        clop, bad = int(number > 3), bench.rng.random() < 0.3
        sent.append(bench.source.send(bench.random_packet(bench.rng.randrange(700, 1400), clop=clop, bad=bad, gap=8)))
    await bench.source.drain()
    await bench.wait(10)
    overflow = bench.counts["drop_overflow"]
    assert overflow > 10
    bench.memory.stopped = False
    await bench.settle()
    counts = {name: count - before[name] for name, count in bench.counts.items()}
    good = sum(not packet.bad for packet in sent)
    assert counts["count_stored"] + counts["drop_no_buffer"] + overflow == good
    assert counts["drop_bad"] < len(sent) - good, "some were never let in"
    assert sum(completion.packets_lost for completion in bench.seen[1]) == overflow
    assert all((completion.packets_lost > 0) == bool(completion.status & Status.GAP) for completion in bench.seen[1])


@cocotb.test
async def lost_packets_are_told_of_once_whenever_they_come(dut: Any) -> None:
    """The FIFO overflows while completions go out, one for each packet, on a bus that is busy half of the time."""
    bench = NicBench(dut, [ClopSettings(buffer_count=64, buffer_bytes=4096, index_capacity=1)], bus_pauses=0.5)
    await bench.begin()
    for _ in range(600 if SHORT else 3000):
        bench.source.send(bench.random_packet(1))
    await bench.consume()
    await bench.settle()
    bench.source.send(bench.random_packet(1))
    await bench.settle()
    counts = bench.counts
    assert counts["drop_overflow"] > 100
    told = sum(completion.packets_lost for completion in bench.seen[0])
    assert told == counts["drop_overflow"] + counts["drop_no_buffer"]


@cocotb.test
async def a_region_revoked_under_traffic_leaves_whole_requests(dut: Any) -> None:
    """Taken away in every cycle of a packet, by its region or by its page: what has begun ends, what begins after it is left out."""
    bench = NicBench(dut, [ClopSettings(buffer_count=4, buffer_bytes=4096)], bus_pauses=0.2)
    await bench.begin()
    region = bench.driver.buffers[0]
    refused = 0
    for cycle in range(20, 130, 5 if SHORT else 1):
        begun = bench.source.send(bench.random_packet(800))
        await bench.wait_until(lambda begun=begun: begun.first_cycle != 0, 100, "it is sent")
        await bench.wait(cycle)
        by_page = cycle % 2
        if by_page:
            await bench.driver.write_entry(region.first_entry, 0)
        else:
            await bench.driver.write_region(region, valid=False)
        await bench.wait(200)
        refused += int(dut.clop_fault.value)
        assert dut.m_valid.value == 0
        # The driver takes the CLOP away, mends what it took, and begins anew.
        bench.driver.enable(0)
        await bench.wait(1200)
        assert int(dut.clop_fault.value) == 0
        bench.driver.handed_over[0] = bench.driver.consumed[0] = 0
        bench.driver.release(0, 0)
        if by_page:
            await bench.driver.write_entry(region.first_entry, region.pages[0] | 0b101)
        else:
            await bench.driver.write_region(region)
        bench.driver.enable(1)
        await bench.wait(4)
        whole = bench.source.send(bench.random_packet(300))
        await bench.settle(drain_cycles=300)
        assert bench.seen[0][-1].packets == [(whole.data, whole.source)]
    assert refused > 5


@cocotb.test
async def a_packet_for_a_clop_that_is_not_enabled_is_a_count(dut: Any) -> None:
    """Whatever its settings are, all zeros among them; and one taken away while its packets come."""
    bench = NicBench(dut, [ClopSettings(), ClopSettings()])
    await bench.begin()
    bench.driver.enable(0b10)
    for name, bits in (("buffer_bytes", 32), ("buffer_count", 17), ("index_capacity", 16)):
        setting = getattr(dut, f"cfg_{name}")
        setting.value = int(setting.value) >> bits << bits  # of CLOP 0: none
    for size in (1, 18, 1000):
        bench.source.send(bench.random_packet(size, gap=10))
        other = bench.source.send(bench.random_packet(100, clop=1, gap=10))
    bench.source.send(bench.random_packet(100, gap=10, bad=True))
    await bench.source.drain()
    await bench.wait(200)
    bench.expect_counts(count_stored=3, drop_disabled=3, drop_bad=1)
    await bench.driver.set_up_clops()
    for cycle in range(0, 80, 7 if SHORT else 1):
        before = bench.counts
        sent = [bench.source.send(bench.random_packet(200, clop=number % 2)) for number in range(4)]
        await bench.wait(cycle)
        bench.driver.enable(0b10)
        await bench.source.drain()
        await bench.wait(1300)
        counts = bench.counts
        assert sum(counts.values()) == sum(before.values()) + len(sent)
        assert int(dut.clop_holds.value) & 1 == 0
        bench.driver.handed_over[0] = bench.driver.consumed[0] = 0
        bench.driver.release(0, 0)
        bench.driver.enable(0b11)
        await bench.wait(4)
    await bench.driver.flush(0b10)
    await bench.wait(100)
    bench.collect()
    assert (other.data, other.source) in bench.packets_of(1)


@cocotb.test
@cocotb.parametrize(clops=[1, 2])
async def a_footer_and_a_completion_for_each_packet_keep_up(dut: Any, clops: int) -> None:
    """The shortest frames at line rate, one CLOP or two in turn: nothing is lost, and how late a packet may be is bounded."""
    settings = ClopSettings(buffer_count=64, buffer_bytes=4096, index_capacity=1, footer=True)
    bench = NicBench(dut, [settings] * clops)
    await bench.begin()
    packets = [bench.random_packet(SHORTEST, clop=number % clops) for number in range(400 if SHORT else 3000)]
    for packet in at_line_rate(packets):
        bench.source.send(packet)
    await bench.consume()
    await bench.settle()
    bench.expect_counts(count_stored=len(packets))
    found = {first for first, _ in latencies_of(bench, packets)}
    assert found == {LATENCY_CYCLES}, sorted(found)


@cocotb.test
@cocotb.parametrize(urgent=[0, 1])
async def who_leaves_no_pause_waits_for_one_write_at_a_time(dut: Any, urgent: int) -> None:
    """So the other writer goes by its patience alone, and what a packet has waited for it is made up for before it goes again."""
    settings = ClopSettings(buffer_count=64, buffer_bytes=4096, index_capacity=1, footer=True)
    found = await latencies(dut, [SHORTEST], 400 if SHORT else 3000, settings, besides=0, urgent=urgent)
    late = {first - LATENCY_CYCLES for first, _ in found[SHORTEST]}
    assert {0} <= late <= set(range(OTHER_WORDS + 1)), sorted(late)


@cocotb.test
async def a_payload_of_one_word_waits_less(dut: Any) -> None:
    settings = ClopSettings(buffer_count=64, buffer_bytes=12288, index_capacity=1)
    for size, found in (await latencies(dut, [1, 8], 20, settings)).items():
        assert found == {(LATENCY_CYCLES - SINGLE_CYCLES,) * 2}, f"{size} B: {found}"


@cocotb.test
@cocotb.parametrize((("size", "footer"), [(SHORTEST, False), (SHORTEST, True), (100, False), (1472, False)]))
async def time_outs_and_flushes_go_between_packets(dut: Any, size: int, footer: bool) -> None:
    """One CLOP at line rate; the buffers of another are handed over by time-out, of a third by flushes: no packet of the first is a cycle later."""
    clops = [
        ClopSettings(buffer_count=64, buffer_bytes=32768, index_capacity=16, footer=footer),
        ClopSettings(buffer_count=64, buffer_bytes=4096, timeout_ns=7 * 60),
        ClopSettings(buffer_count=64, buffer_bytes=4096),
    ]
    bench = NicBench(dut, clops)
    await bench.begin()
    count = 200 if SHORT else 500 if size > 1000 else 1500
    packets = [bench.random_packet(size, clop=0 if number % 7 else 1 + number // 7 % 2) for number in range(count)]
    for packet in at_line_rate(packets):
        bench.source.send(packet)

    async def flush() -> None:
        while not bench.source.idle:
            await bench.wait(bench.rng.randrange(1, 150))
            await bench.driver.flush(0b100)

    flushing = cocotb.start_soon(flush())
    await bench.consume()
    await flushing
    await bench.settle()
    bench.expect_counts(count_stored=len(packets))
    timed_out = sum(completion.status == Status.TIMEOUT for completion in bench.seen[1])
    flushed = sum(completion.status == Status.FLUSH for completion in bench.seen[2])
    assert min(timed_out, flushed) > 10, (timed_out, flushed)
    found = {first for first, _ in latencies_of(bench, packets)}
    assert found == {LATENCY_CYCLES}, f"{size} B, footer {footer}: {sorted(found)}"
