# SPDX-License-Identifier: Apache-2.0
"""tx_path_10g: payloads to XGMII at line rate for every size, and an underrun that leaves the next packet whole."""

from random import Random
from typing import Any

import cocotb
from cocotbext.eth import XgmiiFrame, XgmiiSink
from common.bench import CLOCK_PS, SHORT, Bench, never, random_numbers
from common.frames import FCS_BYTES, FRAME_BYTES_MIN, sent_frame
from common.sending import Announcer, random_destination
from common.streams import Packet, StreamSource

COUNTERS = ["count_good", "count_reply", "drop_aborted", "drop_destination", "drop_underrun"]
HEADER_BYTES, PREAMBLE_AND_GAP_BYTES = 42, 20
BYTE_PS = CLOCK_PS // 8


class TxPathBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut, COUNTERS)
        self.announcer = Announcer(self)
        self.source = StreamSource(self, "s_axis")
        self.replies = StreamSource(self, "s_reply")
        self.sink = XgmiiSink(dut.xgmii_txd, dut.xgmii_txc, dut.clk, dut.rst)

    def send(self, payload: bytes) -> None:
        self.announcer.announce(0, len(payload))
        self.source.send(Packet(payload))

    async def frames(self, count: int) -> list[XgmiiFrame]:
        await self.wait_until(lambda: self.sink.count() >= count, 200_000, f"{count} frames on the wire")
        return [self.sink.recv_nowait() for _ in range(count)]


async def started(dut: Any, rng: Random) -> tuple[TxPathBench, dict[str, Any]]:
    bench = TxPathBench(dut)
    destination = random_destination(rng)
    await bench.reset()
    await bench.announcer.write_table(0, destination)
    return bench, destination


@cocotb.test
async def line_rate_at_every_size(dut: Any) -> None:
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    sizes = [1, 18, 19, 22, 1472] if SHORT else [*range(1, 60), 86, 214, 470, 982, 1168, 1472, 8958]
    total = 0
    for size in sizes:
        payloads = [rng.randbytes(size) for _ in range(20 if size < 200 else 6)]
        for payload in payloads:
            bench.send(payload)
        seen = await bench.frames(len(payloads))
        for payload, frame in zip(payloads, seen, strict=True):
            assert frame.check_fcs()
            assert bytes(frame.get_payload()) == sent_frame(payload, destination).ljust(FRAME_BYTES_MIN, b"\0")
        wire_bytes = max(size + HEADER_BYTES, FRAME_BYTES_MIN) + FCS_BYTES + PREAMBLE_AND_GAP_BYTES
        elapsed_bytes = (seen[-1].sim_time_start - seen[0].sim_time_start) // BYTE_PS
        assert abs(elapsed_bytes - wire_bytes * (len(seen) - 1)) <= 3, f"{size} bytes"
        total += len(payloads)
        await bench.wait(20)
    bench.expect_counts(count_good=total)


@cocotb.test
async def replies_and_payloads_share_the_wire(dut: Any) -> None:
    """Both always have a frame: they leave in turn at line rate, whole and in order, and none runs dry."""
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    count = 40 if SHORT else 300
    payloads = [rng.randbytes(rng.choice([rng.randint(1, 60), rng.randint(1, 900)])) for _ in range(count)]
    replies = [rng.randbytes(rng.choice([42, rng.randint(42, 900)])) for _ in range(count)]
    for payload, reply in zip(payloads, replies, strict=True):
        bench.send(payload)
        bench.replies.send(Packet(reply))
    seen = await bench.frames(2 * count)
    of_udp = [sent_frame(payload, destination).ljust(FRAME_BYTES_MIN, b"\0") for payload in payloads]
    of_reply = [reply.ljust(FRAME_BYTES_MIN, b"\0") for reply in replies]
    frames = [bytes(frame.get_payload()) for frame in seen if frame.check_fcs()]
    assert frames in ([f for pair in zip(*order, strict=True) for f in pair] for order in ((of_udp, of_reply), (of_reply, of_udp)))
    wire_bytes = sum(len(frame) + FCS_BYTES + PREAMBLE_AND_GAP_BYTES for frame in frames[:-1])
    assert abs((seen[-1].sim_time_start - seen[0].sim_time_start) // BYTE_PS - wire_bytes) <= 3
    await bench.wait(20)
    bench.expect_counts(count_good=2 * count, count_reply=count)


@cocotb.test
async def underrun_marks_the_frame_and_spares_the_next(dut: Any) -> None:
    rng = random_numbers()
    bench, destination = await started(dut, rng)
    rounds = 10 if SHORT else 60
    for _ in range(rounds):
        asked = iter(range(10**6))
        bench.source.pause = lambda asked=asked: 4 <= next(asked) < 14
        bench.send(rng.randbytes(100))
        await bench.source.drain()
        bench.source.pause = never
        payload = rng.randbytes(rng.randint(1, 100))
        bench.send(payload)
        cut, whole = await bench.frames(2)
        assert any(cut.ctrl or []), "no error character"
        assert whole.check_fcs()
        assert bytes(whole.get_payload()) == sent_frame(payload, destination).ljust(FRAME_BYTES_MIN, b"\0")
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
        assert any(cut.ctrl or []), "no error character"
        assert whole.check_fcs()
        assert bytes(whole.get_payload()) == sent_frame(payload, destination).ljust(FRAME_BYTES_MIN, b"\0")
    bench.expect_counts(count_good=rounds, drop_aborted=rounds)
