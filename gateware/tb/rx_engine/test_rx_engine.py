# SPDX-License-Identifier: Apache-2.0
"""rx_engine against a model of memory and a driver: every packet in its place or under a drop counter, nothing stray, latency always the same."""

from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge
from common.bench import SHORT
from common.contract import Status
from nic_bench import LATENCY_CYCLES, NicBench, latencies, write_besides
from nic_driver import PAGE_SHIFTS, VALID, ClopSettings, Driver

PATIENCE_CYCLES = 256  # PATIENCE_CYCLES of clop_writer


@cocotb.test
async def every_packet_in_its_place_or_counted(dut: Any) -> None:
    """Random sizes, pauses on both sides, three CLOPs with pages of three sizes, a driver that returns buffers late."""
    clops = [
        ClopSettings(buffer_bytes=4096, index_capacity=8, page_shift=PAGE_SHIFTS[0]),
        ClopSettings(buffer_bytes=8192, room_bytes=1472, timeout_ns=7 * 500, page_shift=PAGE_SHIFTS[1], gpu=True),
        ClopSettings(buffer_count=2, buffer_bytes=12288, index_capacity=16, footer=True, page_shift=PAGE_SHIFTS[2]),
    ]
    bench = NicBench(dut, clops, bus_pauses=0.2, word_pauses=0.1)
    await bench.begin()
    sent = []
    for _ in range(150 if SHORT else 1500):
        size = bench.rng.choice([1, 8, 15, 16, 17, 64, 255, 256, 257, 1168, 1472, bench.rng.randrange(1, 2000)])
        packet = bench.random_packet(size, clop=bench.rng.randrange(3), gap=bench.rng.choice([8, 9, 20, 300]))
        packet.bad = bench.rng.random() < 0.05
        sent.append(bench.source.send(packet))
    while not bench.source.idle:
        await bench.wait(bench.rng.randrange(1, 1500))
        bench.collect()
    await bench.settle()
    counts = bench.counts
    assert sum(counts.values()) == len(sent), f"{counts} of {len(sent)}"
    assert counts["drop_bad"] > 0
    assert counts["count_stored"] > len(sent) // 4
    for clop in range(3):
        good = [packet for packet in sent if packet.clop == clop and not packet.bad]
        came = bench.packets_of(clop)
        left = iter((packet.data, packet.source) for packet in good)
        assert all(packet in left for packet in came), "in order, as they were sent"
        completions = bench.seen[clop]
        arrivals_ns = {packet.data: packet.arrival_ns for packet in good if len(packet.data) > 8}  # shorter ones may be alike
        for completion in completions:
            for packet, told_ns in (
                (completion.packets[0], completion.first_packet_ns),
                (completion.packets[-1], completion.last_packet_ns),
            ):
                assert told_ns == arrivals_ns.get(packet[0], told_ns)
        # What is dropped after the last packet is in no completion.
        assert sum(c.packets_lost for c in completions) <= counts["drop_no_buffer"]
        assert all((c.packets_lost > 0) == bool(c.status & Status.GAP) for c in completions)
    assert counts["count_stored"] == sum(len(bench.packets_of(clop)) for clop in range(3))


@cocotb.test
async def what_a_completion_says_of_its_packets(dut: Any) -> None:
    bench = NicBench(dut, [ClopSettings(buffer_bytes=4096, room_bytes=1168), ClopSettings(timeout_ns=7 * 400)])
    await bench.begin()
    # Three packets of 1168 B fill a buffer so far that no other fits; the fourth is flushed.
    padded = [bench.source.send(bench.random_packet(1168, gap=20)) for _ in range(4)]
    lone = bench.source.send(bench.random_packet(100, clop=1, gap=20))
    await bench.settle()
    full, flushed = bench.seen[0]
    assert (full.status, full.packet_count, full.stride_bytes) == (Status.FULL, 3, 1168)
    assert (full.first_packet_ns, full.last_packet_ns) == (padded[0].arrival_ns, padded[2].arrival_ns)
    assert full.event_count == sum(packet.events for packet in padded[:3])
    assert full.packet_events_max == max(packet.events for packet in padded[:3])
    assert (flushed.status, flushed.packet_count) == (Status.FLUSH, 1)
    (timed_out,) = bench.seen[1]
    assert timed_out.status in (Status.TIMEOUT, Status.FLUSH)
    assert timed_out.packets == [(lone.data, lone.source)]
    bench.expect_counts(count_stored=5)


@cocotb.test
async def a_time_out_comes_by_itself_unless_the_consumer_is_behind(dut: Any) -> None:
    bench = NicBench(dut, [ClopSettings(timeout_ns=7 * 400)])
    await bench.begin()
    for expected in (1, 2, 2):  # the third waits: the consumer holds two buffers
        bench.source.send(bench.random_packet(100))
        await bench.wait(1000)
        bench.collect(release=False)
        assert len(bench.seen[0]) == expected
        assert all(completion.status == Status.TIMEOUT for completion in bench.seen[0])
    bench.driver.release(0)
    await bench.wait(50)
    bench.collect(release=False)
    assert len(bench.seen[0]) == 3


@cocotb.test
async def a_time_out_waits_for_a_gap_but_not_for_long(dut: Any) -> None:
    """Packets of another CLOP come without one."""
    age_cycles = 400
    bench = NicBench(dut, [ClopSettings(timeout_ns=7 * age_cycles), ClopSettings()])
    await bench.begin()
    for _ in range(2):
        lone = bench.source.send(bench.random_packet(100))
        for _ in range(600):  # of two cycles each, faster than they can be taken: one waits at any time
            bench.source.send(bench.random_packet(16, clop=1))
        before = len(bench.seen[0])
        while len(bench.seen[0]) == before:
            await bench.wait(1)
            bench.collect()
            assert bench.cycle < lone.first_cycle + 3000 or not lone.first_cycle
        took = bench.cycle - lone.first_cycle
        assert age_cycles + PATIENCE_CYCLES <= took <= age_cycles + PATIENCE_CYCLES + 60
        completion = bench.seen[0][-1]
        assert (completion.status, completion.first_packet_ns) == (Status.TIMEOUT, lone.arrival_ns)
        await bench.source.drain()
        await bench.wait(3000)
    assert sum(bench.counts.values()) == 2 * 601, bench.counts


@cocotb.test
async def no_free_buffer_drops_and_counts(dut: Any) -> None:
    bench = NicBench(dut, [ClopSettings(buffer_count=2, buffer_bytes=4096, room_bytes=2048)])
    await bench.begin()
    sent = [bench.source.send(bench.random_packet(2048, gap=10)) for _ in range(7)]
    await bench.source.drain()
    await bench.wait(200)
    bench.collect(release=False)
    before = bench.memory.read(bench.driver.buffers[0].bus(0), 2048)
    bench.expect_counts(count_stored=4, drop_no_buffer=3)
    assert [data for data, _ in bench.packets_of(0)] == [packet.data for packet in sent[:4]]
    assert bench.memory.read(bench.driver.buffers[0].bus(0), 2048) == before, "a buffer of the consumer stays as it was"
    bench.driver.release(0, 2)
    after = [bench.source.send(bench.random_packet(2048, gap=10)) for _ in range(2)]
    await bench.settle()
    last = bench.seen[0][-1]
    assert last.packets_lost == 3
    assert last.status == Status.FULL | Status.GAP
    assert [data for data, _ in last.packets] == [packet.data for packet in after]


@cocotb.test
async def bad_and_too_long_packets_leave_no_trace_but_a_count(dut: Any) -> None:
    bench = NicBench(dut, [ClopSettings(buffer_bytes=4096)])
    await bench.begin()
    bench.source.send(bench.random_packet(900, bad=True))
    good = bench.source.send(bench.random_packet(300, gap=10))
    bench.source.send(bench.random_packet(4097, gap=10))
    bench.source.send(bench.random_packet(64, gap=10, bad=True))
    for announced in (17, 300, 1472):  # cut: the bus was promised more
        bench.source.send(bench.random_packet(16, gap=10, bad=True, announced=announced))
    await bench.settle()
    bench.expect_counts(count_stored=1, drop_bad=5, drop_too_long=1)
    (completion,) = bench.seen[0]
    assert completion.packets == [(good.data, good.source)]
    assert completion.status == Status.FLUSH | Status.ERROR
    assert completion.packets_lost == 0
    longest = bench.source.send(bench.random_packet(4096))
    await bench.settle()
    assert bench.seen[0][-1].packets == [(longest.data, longest.source)]


@cocotb.test
async def a_page_that_may_not_be_written_stops_its_clop_alone(dut: Any) -> None:
    bench = NicBench(dut, [ClopSettings(buffer_bytes=8192), ClopSettings(buffer_bytes=8192)])
    await bench.begin()
    region = bench.driver.buffers[0]
    for entry in (region.pages[1], region.pages[1] | VALID):  # not there; there, and not writable
        await bench.driver.write_entry(region.first_entry + 1, entry)
        bench.source.send(bench.random_packet(4000, clop=0))
        fault = bench.source.send(bench.random_packet(1000, clop=0, gap=10))  # reaches the second page
        other = bench.source.send(bench.random_packet(1000, clop=1, gap=10))
        bench.source.send(bench.random_packet(1000, clop=0, gap=100))
        await bench.source.drain()
        await bench.wait(200)
        assert int(dut.clop_fault.value) == 0b01
        assert not any(
            write.data and write.data in fault.data and write.address >> 12 == region.pages[1] >> 12
            for write in bench.memory.writes
        )
        await bench.driver.flush(0b10)
        await bench.wait(100)
        bench.collect()
        assert bench.packets_of(1)[-1] == (other.data, other.source)
        bench.driver.enable(0b10)
        await bench.wait(1200)
        assert int(dut.clop_fault.value) == 0
        bench.driver.enable(0b11)
        await bench.wait(4)
    assert bench.counts["drop_disabled"] == 2
    await bench.driver.write_entry(region.first_entry + 1, region.pages[1] | VALID | 0b100)
    again = bench.source.send(bench.random_packet(6000, clop=0))
    await bench.settle()
    assert bench.packets_of(0)[-1] == (again.data, again.source)


@cocotb.test
async def a_bus_that_stands_still_fills_the_fifo_and_what_follows_is_whole(dut: Any) -> None:
    bench = NicBench(dut, [ClopSettings(buffer_count=64, buffer_bytes=65536, index_capacity=512, room_bytes=1472, page_shift=16)])
    await bench.begin()
    bench.memory.stopped = True
    sent = [bench.source.send(bench.random_packet(1472, gap=8)) for _ in range(40)]
    await bench.source.drain()
    bench.memory.stopped = False
    await bench.wait(3000)
    sent += [bench.source.send(bench.random_packet(1472, gap=8)) for _ in range(5)]
    await bench.settle()
    dropped = bench.counts["drop_overflow"]
    assert dropped > 0
    assert bench.counts["count_stored"] == len(sent) - dropped
    came = [data for data, _ in bench.packets_of(0)]
    assert came[-5:] == [packet.data for packet in sent[-5:]]
    left = iter(packet.data for packet in sent)
    assert all(data in left for data in came)


@cocotb.test
async def stamps_in_the_footer_are_those_of_the_bench(dut: Any) -> None:
    bench = NicBench(dut, [ClopSettings(footer=True)])
    await bench.begin()
    sent = [bench.source.send(bench.random_packet(size, gap=30)) for size in (18, 64, 500)]
    await bench.settle()
    payload_writes = {write.data[:16]: write for write in bench.memory.writes}
    stamps = [footer for completion in bench.seen[0] for footer in completion.footers]
    for packet, (start, parsed, begin, end) in zip(sent, stamps, strict=True):
        assert (start, parsed) == (packet.start_cycle, packet.parsed_cycle)
        first = payload_writes[packet.data[:16]]
        assert begin == first.first_cycle - 5, "a cycle before clop_writer's first word, then four of dma_write"
        last = max(write.last_cycle for write in bench.memory.writes if write.data and packet.data.endswith(write.data))
        assert end == last - 4


@cocotb.test
async def another_writer_takes_the_pauses_only(dut: Any) -> None:
    """Beside packets at line rate the other one writes without end: no packet is a cycle later for it, and it gets on."""
    settings = ClopSettings(buffer_count=64, buffer_bytes=12288, index_capacity=8)
    for size, found in (await latencies(dut, [18, 64, 256, 1472], 20 if SHORT else 60, settings, besides=0)).items():
        assert len(found) == 1, f"{size} B: {sorted(found)}"
        assert next(iter(found))[0] == LATENCY_CYCLES


@cocotb.test
async def an_urgent_writer_makes_a_packet_a_cycle_late(dut: Any) -> None:
    """Beside a completion for each packet: where there is too little room a packet is one cycle later, and no more."""
    settings = ClopSettings(buffer_count=64, buffer_bytes=12288, index_capacity=1)
    for size, found in (await latencies(dut, [18, 22, 64], 60, settings, besides=0, urgent=1)).items():
        latest = max(first for first, _ in found)
        assert latest <= LATENCY_CYCLES + 1, f"{size} B: {sorted(found)}"


@cocotb.test
async def the_other_writer_goes_at_once_and_hears_of_its_faults(dut: Any) -> None:
    bench = NicBench(dut, [ClopSettings()])
    await bench.begin()
    scratch = await bench.driver.register(7, 4096, 12, 0)
    for address, faults in ((scratch.address(), 0), (scratch.address() + (1 << 39), 1)):
        begun = bench.cycle
        writing = cocotb.start_soon(write_besides(bench, address, 100))
        await bench.wait_until(lambda: bench.dut.other_ready.value == 1, 6, "no one else wants to write")
        await bench.wait(8)
        writing.cancel()
        dut.other_valid.value = 0
        await bench.wait(20)
        assert bench.cycle - begun < 40
        bench.expect_counts(other_fault=faults)
        assert int(dut.clop_fault.value) == 0


@cocotb.test
async def latency_is_the_same_at_line_rate_whatever_is_handed_over(dut: Any) -> None:
    """Line rate at every size, a completion for each packet: the worst that can come between. Spread: zero cycles."""
    sizes = [18, 64, 65, 256, 1472] if SHORT else [18, 19, 31, 32, 33, 64, 65, 128, 256, 257, 512, 1024, 1168, 1472, 8972]
    settings = ClopSettings(buffer_count=64, buffer_bytes=12288, index_capacity=1)
    for size, found in (await latencies(dut, sizes, 20 if SHORT else 60, settings)).items():
        assert len(found) == 1, f"{size} B: {sorted(found)}"
        ((first, last),) = found
        assert first == LATENCY_CYCLES, f"{size} B: {first} cycles to the first write"
        assert last <= LATENCY_CYCLES, f"{size} B: {last} cycles from the last word to the last write"
        dut._log.warning("%d B: first word %d cycles, last word %d cycles", size, first, last)


@cocotb.test
async def stages_are_those_of_footers_and_completions(dut: Any) -> None:
    """Samples of stages against stamps, and completions counted when the bus has taken them: with pauses of the bus, two CLOPs in turn."""
    clops = [
        ClopSettings(buffer_count=64, buffer_bytes=12288, index_capacity=3, footer=True),
        ClopSettings(buffer_count=64, buffer_bytes=12288, index_capacity=7, footer=True),
    ]
    bench = NicBench(dut, clops, bus_pauses=0.3, word_pauses=0.1)
    await bench.begin()
    samples: list[list[int]] = [[] for _ in range(5)]
    left: list[int] = []  # how many completions the bus had taken, whenever one was told to have left

    async def watch() -> None:
        taken = [0]
        queue = set(bench.driver.queue.pages)
        while True:
            await RisingEdge(dut.clk)
            if dut.stage_valid.value == 1:
                stage = int(dut.stage.value)
                samples[stage].append(int(dut.stage_cycles.value))
                assert int(dut.stage_last.value) == (stage in (2, 4))
            if dut.completion_left.value == 1:
                taken[0] += 1
                ends = [w for w in bench.memory.writes if w.address & ~4095 in queue and (w.address + len(w.data)) % 64 == 0]
                left.append(len(ends) - taken[0])

    cocotb.start_soon(watch())
    for _ in range(100 if SHORT else 600):
        packet = bench.random_packet(bench.rng.randrange(1, 1200), clop=bench.rng.randrange(2), gap=bench.rng.choice([8, 9, 200]))
        packet.bad = bench.rng.random() < 0.05
        bench.source.send(packet)
        if bench.rng.random() < 0.2:
            await bench.source.drain()
            bench.collect()
    await bench.settle()
    found = sorted(
        (stamps for seen in bench.seen for completion in seen for stamps in completion.footers), key=lambda stamps: stamps[3]
    )
    for stage in range(3):
        assert samples[stage] == [stamps[stage + 1] - stamps[stage] for stamps in found], stage
    completions = sum(len(seen) for seen in bench.seen)
    assert len(samples[3]) == len(samples[4]) == len(left) == completions
    spans = sorted(c.footers[-1][3] - c.footers[0][3] for seen in bench.seen for c in seen)
    assert spans == sorted(oldest - newest for newest, oldest in zip(samples[3], samples[4], strict=True))
    assert all(0 <= count <= 1 for count in left), "told before the bus had it, or much later"


@cocotb.test
async def reset_at_any_cycle_of_a_packet(dut: Any) -> None:
    """Behind it nothing is written that came before it, and an engine set up again delivers as from the beginning."""
    bench = NicBench(dut, [ClopSettings(buffer_bytes=4096, room_bytes=3700)])  # the second packet fills a buffer
    await bench.begin()
    for cycle in range(0, 80, 4 if SHORT else 1):
        bench.source.send(bench.random_packet(300))
        bench.source.send(bench.random_packet(100))
        await bench.source.drain()
        await bench.wait(cycle + bench.rng.randrange(4 if SHORT else 1))
        dut.rst.value = 1
        await bench.wait(1 + cycle // 4 % 2)
        await FallingEdge(dut.clk)  # what was counted at the last edge is in `counts`
        before = dict(bench.counts)
        bench.memory.pages.clear()  # a write to where it wrote before would be a stray one
        dut.rst.value = 0
        fresh = Driver(bench, bench.memory, bench.driver.clops, bench.rng)
        fresh.next_bus = bench.driver.next_bus
        bench.driver, bench.seen = fresh, [[]]
        await fresh.set_up()
        assert bench.counts == before
        sent = [bench.source.send(bench.random_packet(size)) for size in (200, 300, 100)]
        await bench.source.drain()
        await bench.wait(120)
        await fresh.flush(1)
        await bench.wait(60)
        bench.collect()
        assert bench.packets_of(0) == [(packet.data, packet.source) for packet in sent]
        assert bench.counts == before | {"count_stored": before["count_stored"] + 3}
