# SPDX-License-Identifier: Apache-2.0
"""tx_path_1g: payloads to GMII at line rate for every size, at 119.6 MB/s for 1472 bytes, and an underrun that spares the next packet."""

from itertools import pairwise
from random import Random
from typing import Any

import cocotb
from cocotbext.eth import GmiiFrame, GmiiSink
from common.bench import CLOCK_1G_PS, PARAMETERS, SHORT, Bench, never, random_numbers
from common.frames import FCS_BYTES, FRAME_BYTES_MIN, sent_frame
from common.gmii import GAP_BYTES, PREAMBLE_BYTES
from common.sending import Announcer, random_destination
from common.streams import Packet, StreamSource

COUNTERS = ["count_good", "count_reply", "drop_aborted", "drop_destination", "drop_underrun"]
HEADER_BYTES = 42


class TxPathBench(Bench):
    clock_ps = CLOCK_1G_PS

    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS)
        self.announcer = Announcer(self)
        self.source = StreamSource(self, "s_axis")
        self.replies = StreamSource(self, "s_reply")
        self.sink = GmiiSink(dut.gmii_txd, dut.gmii_tx_er, dut.gmii_tx_en, dut.clk, dut.rst)

    def send(self, payload: bytes) -> None:
        self.announcer.announce(0, len(payload))
        self.source.send(Packet(payload))

    async def frames(self, count: int) -> list[GmiiFrame]:
        await self.wait_until(lambda: self.sink.count() >= count, 200_000, f"{count} frames on the wire")
        return [self.sink.recv_nowait() for _ in range(count)]


async def started(dut: Any, rng: Random) -> tuple[TxPathBench, dict[str, Any]]:
    bench = TxPathBench(dut)
    destination = random_destination(rng)
    await bench.reset()
    await bench.announcer.write_table(0, destination)
    return bench, destination


def check(payload: bytes, frame: GmiiFrame, destination: dict[str, Any]) -> None:
    assert frame.error is None
    assert frame.check_fcs()
    assert bytes(frame.get_payload()) == sent_frame(payload, destination).ljust(FRAME_BYTES_MIN, b"\0")


@cocotb.test
async def line_rate_at_every_size(dut: Any) -> None:
    """Sizes in any order, back to back: the gap is always 12 bytes."""
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    sizes = [1, 18, 19, 22, 1472, *rng.sample(range(1, 1473), k=20)] if SHORT else [*range(1, 120), *range(120, 1473, 9), 1472]
    rng.shuffle(sizes)
    payloads = [rng.randbytes(size) for size in sizes]
    for payload in payloads:
        bench.send(payload)
    seen = await bench.frames(len(payloads))
    for payload, frame in zip(payloads, seen, strict=True):
        check(payload, frame, destination)
    gaps = {(two.sim_time_start - one.sim_time_end) // CLOCK_1G_PS for one, two in pairwise(seen)}
    assert gaps == {GAP_BYTES}
    await bench.wait(20)
    bench.expect_counts(count_good=len(sizes))


@cocotb.test
async def full_rate_of_1472_byte_payloads(dut: Any) -> None:
    """A word every eight cycles is enough for it."""
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    size, count = 1472, 10 if SHORT else 50
    asked = iter(range(10**9))
    bench.source.pause = lambda: next(asked) % 8 != 0
    payloads = [rng.randbytes(size) for _ in range(count)]
    for payload in payloads:
        bench.send(payload)
    seen = await bench.frames(count)
    for payload, frame in zip(payloads, seen, strict=True):
        check(payload, frame, destination)
    elapsed_cycles = (seen[-1].sim_time_start - seen[0].sim_time_start) // CLOCK_1G_PS
    rate = (count - 1) * size / (elapsed_cycles * CLOCK_1G_PS * 1e-12) * 1e-6
    assert elapsed_cycles == (count - 1) * (HEADER_BYTES + size + FCS_BYTES + PREAMBLE_BYTES + GAP_BYTES)
    print(f"figure: payloads of {size} B back to back to GMII: {rate:.1f} MB/s at 125 MHz", flush=True)


@cocotb.test
async def replies_and_payloads_share_the_wire(dut: Any) -> None:
    """Both always have a frame: they leave in turn at line rate, whole and in order, and none runs dry. Without replier no reply is taken."""
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    count = 20 if SHORT else 150
    payloads = [rng.randbytes(rng.choice([rng.randint(1, 60), rng.randint(1, 900)])) for _ in range(count)]
    replies = [rng.randbytes(rng.choice([42, rng.randint(42, 900)])) for _ in range(count)]
    for payload, reply in zip(payloads, replies, strict=True):
        bench.send(payload)
        bench.replies.send(Packet(reply))
    replied = count if PARAMETERS["REPLIER"] else 0
    seen = await bench.frames(count + replied)
    of_udp = [sent_frame(payload, destination).ljust(FRAME_BYTES_MIN, b"\0") for payload in payloads]
    of_reply = [reply.ljust(FRAME_BYTES_MIN, b"\0") for reply in replies]
    frames = [bytes(frame.get_payload()) for frame in seen if frame.check_fcs()]
    orders = ((of_udp, of_reply), (of_reply, of_udp)) if replied else ((of_udp,),)
    assert frames in ([f for pair in zip(*order, strict=True) for f in pair] for order in orders)
    gaps = {(two.sim_time_start - one.sim_time_end) // CLOCK_1G_PS for one, two in pairwise(seen)}
    assert gaps == {GAP_BYTES}
    await bench.wait(20)
    bench.expect_counts(count_good=count + replied, count_reply=replied)


@cocotb.test
async def underrun_marks_the_frame_and_spares_the_next(dut: Any) -> None:
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    rounds = 10 if SHORT else 60
    for _ in range(rounds):
        asked = iter(range(10**6))
        bench.source.pause = lambda asked=asked: 4 <= next(asked) < 60
        bench.send(rng.randbytes(100))
        await bench.source.drain()
        bench.source.pause = never
        payload = rng.randbytes(rng.randint(1, 100))
        bench.send(payload)
        cut, whole = await bench.frames(2)
        assert cut.error is not None, "no error on the wire"
        check(payload, whole, destination)
    bench.expect_counts(count_good=rounds, drop_underrun=rounds)


@cocotb.test
async def a_payload_taken_back_marks_the_frame_and_spares_the_next(dut: Any) -> None:
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    rounds = 10 if SHORT else 60
    for _ in range(rounds):
        taken_back, payload = rng.randbytes(rng.randint(30, 200)), rng.randbytes(rng.randint(1, 100))
        bench.announcer.announce(0, len(taken_back))
        bench.source.send(Packet(taken_back, user=1))
        bench.send(payload)
        cut, whole = await bench.frames(2)
        assert cut.error is not None, "no error on the wire"
        check(payload, whole, destination)
    bench.expect_counts(count_good=rounds, drop_aborted=rounds)
