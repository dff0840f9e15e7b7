# SPDX-License-Identifier: Apache-2.0
"""tx_path and mac, from payloads to the wire, at both rates: line rate for every size, answers among payloads, and an underrun that spares the next packet."""

from random import Random
from typing import Any

import cocotb
from common.bench import SHORT, never, random_numbers
from common.frames import FRAME_BYTES_MIN, sent_frame, with_fcs
from common.sending import Announcer, random_destination
from common.streams import Packet, StreamSource
from common.wires import GAP_BYTES, GBPS, PREAMBLE_BYTES, START_SLACK, Seen, wire_sink
from path_bench import BRIEF, REPLIER, PathBench

COUNTERS = ["count_framed", "count_reply", "drop_aborted", "drop_destination", "drop_underrun"]
WORD_CYCLES = 8 if GBPS == 1 else 1  # of eight bytes on the wire


class TxPathBench(PathBench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS)
        self.announcer = Announcer(self)
        self.source = StreamSource(self, "s_axis")
        self.replies = StreamSource(self, "s_reply")
        self.sink = wire_sink(self)

    def send(self, payload: bytes) -> None:
        self.announcer.announce(0, len(payload))
        self.source.send(Packet(payload))


async def started(dut: Any, rng: Random) -> tuple[TxPathBench, dict[str, Any]]:
    bench = TxPathBench(dut)
    destination = random_destination(rng)
    await bench.reset()
    await bench.announcer.write_table(0, destination)
    return bench, destination


def filled(frame: bytes) -> bytes:
    return with_fcs(frame.ljust(FRAME_BYTES_MIN, b"\0"))


def check(payload: bytes, seen: Seen, destination: dict[str, Any]) -> None:
    assert not seen.bad
    assert seen.frame == filled(sent_frame(payload, destination)), f"{len(payload)} bytes"


def check_rate(frames: list[Seen]) -> None:
    """Back to back: each begins where those before it end, with 12 bytes between; on XGMII up to three bytes before that."""
    due = frames[0].start
    for frame in frames:
        assert abs(frame.start - due) <= START_SLACK, f"{frame.start - due} bytes late"
        due += PREAMBLE_BYTES + len(frame.frame) + GAP_BYTES


def bursts(rng: Random) -> list[list[int]]:
    """Sizes of payloads that leave back to back: at 10 Gb/s the same some times, at 1 Gb/s in any order."""
    if GBPS == 10:
        sizes = [1, 18, 19, 22, 1472] if BRIEF else [*range(1, 60), 86, 214, 470, 982, 1168, 1472, 8958]
        return [[size] * (20 if size < 200 else 6) for size in sizes]
    sizes = [1, 18, 19, 22, 1472, *rng.sample(range(1, 1473), k=20)] if BRIEF else [*range(1, 120), *range(120, 1473, 9), 1472]
    rng.shuffle(sizes)
    return [sizes]


@cocotb.test
async def line_rate_at_every_size(dut: Any) -> None:
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    total = 0
    for sizes in bursts(rng):
        payloads = [rng.randbytes(size) for size in sizes]
        for payload in payloads:
            bench.send(payload)
        seen = await bench.sink.frames(len(payloads), 600_000)
        for payload, frame in zip(payloads, seen, strict=True):
            check(payload, frame, destination)
        check_rate(seen)
        total += len(sizes)
        await bench.wait(20)
    bench.expect_counts(count_framed=total)


@cocotb.test
async def full_rate_of_1472_byte_payloads(dut: Any) -> None:
    """A word in the time that the wire takes for one is enough for it."""
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    size, count = 1472, 10 if BRIEF else 50
    asked = iter(range(10**9))
    bench.source.pause = lambda: next(asked) % WORD_CYCLES != 0
    payloads = [rng.randbytes(size) for _ in range(count)]
    for payload in payloads:
        bench.send(payload)
    seen = await bench.sink.frames(count)
    for payload, frame in zip(payloads, seen, strict=True):
        check(payload, frame, destination)
    check_rate(seen)
    byte_s = 0.8e-9 * 10 / GBPS
    rate = (count - 1) * size / ((seen[-1].start - seen[0].start) * byte_s) * 1e-6
    print(f"figure: payloads of {size} B back to back to the wire at {GBPS} Gb/s: {rate:.1f} MB/s", flush=True)


@cocotb.test
async def replies_and_payloads_share_the_wire(dut: Any) -> None:
    """Both always have a frame: they leave in turn at line rate, whole and in order, and none runs dry. Without replier no reply is taken."""
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    count = {10: (40, 300), 1: (20, 150)}[GBPS][not SHORT]
    payloads = [rng.randbytes(rng.choice([rng.randint(1, 60), rng.randint(1, 900)])) for _ in range(count)]
    replies = [rng.randbytes(rng.choice([42, rng.randint(42, 900)])) for _ in range(count)]
    for payload, reply in zip(payloads, replies, strict=True):
        bench.send(payload)
        bench.replies.send(Packet(reply))
    replied = count if REPLIER else 0
    seen = await bench.sink.frames(count + replied, 600_000)
    of_udp = [filled(sent_frame(payload, destination)) for payload in payloads]
    of_reply = [filled(reply) for reply in replies]
    orders = ((of_udp, of_reply), (of_reply, of_udp)) if replied else ((of_udp,),)
    assert [frame.frame for frame in seen] in ([f for pair in zip(*order, strict=True) for f in pair] for order in orders)
    assert not any(frame.bad for frame in seen)
    check_rate(seen)
    await bench.wait(20)
    bench.expect_counts(count_framed=count + replied, count_reply=replied)


@cocotb.test
async def underrun_marks_the_frame_and_spares_the_next(dut: Any) -> None:
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    rounds = 10 if BRIEF else 60
    pause_cycles = 10 if GBPS == 10 else 56
    for _ in range(rounds):
        asked = iter(range(10**6))
        bench.source.pause = lambda asked=asked: 4 <= next(asked) < 4 + pause_cycles
        bench.send(rng.randbytes(100))
        await bench.source.drain()
        bench.source.pause = never
        payload = rng.randbytes(rng.randint(1, 100))
        bench.send(payload)
        cut, whole = await bench.sink.frames(2)
        assert cut.bad, "no error on the wire"
        check(payload, whole, destination)
    bench.expect_counts(count_framed=rounds, drop_underrun=rounds)


@cocotb.test
async def a_payload_taken_back_marks_the_frame_and_spares_the_next(dut: Any) -> None:
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    rounds = 10 if BRIEF else 60
    for _ in range(rounds):
        taken_back, payload = rng.randbytes(rng.randint(30, 200)), rng.randbytes(rng.randint(1, 100))
        bench.announcer.announce(0, len(taken_back))
        bench.source.send(Packet(taken_back, user=1))
        bench.send(payload)
        cut, whole = await bench.sink.frames(2)
        assert cut.bad, "no error on the wire"
        check(payload, whole, destination)
    bench.expect_counts(count_framed=rounds, drop_aborted=rounds)
