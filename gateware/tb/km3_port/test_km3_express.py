# SPDX-License-Identifier: Apache-2.0
"""km3_express, in a port: codes down and up at any moment of idle and full frames, each at one latency after its time or before it, and with one fate."""

from typing import Any

import cocotb
from common.bench import SHORT
from common.km3 import DOWN, K28_5, Frame, any_slots
from common.km3_link import Link
from common.streams import Packet
from port_bench import AWAY_WORDS, FRAMES_PER_S, GEOMETRY, SECOND, PortBench


class Express:
    """Codes that the core sends, each with what was said of it: the word of its time since the first second, or None where it was dark; refused: those that were refused."""

    def __init__(self, port: PortBench) -> None:
        self.port, self.dut = port, port.dut
        self.told: list[tuple[int, int | None]] = []
        self.refused = 0

    async def pulse(self, name: str) -> None:
        getattr(self.dut, name).value = 1
        await self.port.bench.wait(1)
        getattr(self.dut, name).value = 0

    async def send(self, code: int) -> None:
        self.dut.express_code.value = code
        await self.pulse("express_send")

    async def known(self, code: int, *, refuses: int = 0) -> None:
        """What became of the code that was sent last; meanwhile others are refused."""
        before = self.time(self.dut.express_sent_at)
        await self.port.bench.wait(1)
        for _ in range(refuses):
            assert self.dut.express_busy.value == 1
            await self.send(code ^ 0xFF)
            self.refused += 1
        await self.port.bench.wait_until(lambda: self.dut.express_busy.value == 0, 400, "its fate is known")
        after = self.time(self.dut.express_sent_at)
        self.told.append((code, None if after == before else after))

    @staticmethod
    def time(moment: Any) -> int:
        value = int(moment.value)
        second, number, word = value >> 32, value >> 16 & 0xFFFF, value & 0xFFFF
        return ((second - SECOND) * FRAMES_PER_S + number) * GEOMETRY.frame_words + word

    def check(self, link: Link, counts: dict[str, int]) -> None:
        """On the fibre is what was sent, and nothing else, each in the place that its time says, counted from the first words of frames."""
        sent = [(code, at) for code, at in self.told if at is not None]
        seen = link.express()
        assert [code for code, _ in seen] == [code for code, _ in sent]
        anchor, number = link.words.index((1, DOWN << 8 | K28_5)), link.frames()[0][1][1]
        begins = anchor - number * GEOMETRY.frame_words
        assert {at - begins - told for (_, at), (_, told) in zip(seen, sent, strict=True)} == {0}
        fates = [counts.get(f"express_{name}", 0) for name in ("sent", "dark", "refused")]
        assert fates == [len(sent), len(self.told) - len(sent), self.refused]


@cocotb.test
async def express_codes_down(dut: Any) -> None:
    """At any moment of frames that are idle and full: each code is on the fibre, always as long after the time that is said of it; one that comes too soon is refused."""
    port = PortBench(dut)
    await port.begin()
    link = Link(dut.ref_clk, dut.tx_codes, GEOMETRY)
    express = Express(port)
    assert dut.express_busy.value == 0
    sent = b""
    for number in range(40 if SHORT else 200):
        if number % 20 == 10:
            payload = number.to_bytes(2, "little") + bytes(port.rng.randrange(256) for _ in range(26))
            port.source.send(Packet(payload))
            sent += payload
        code = port.rng.choice((0, 0xFF, port.rng.randrange(256)))
        # Anywhere, and where a frame begins, so that the code has to wait.
        await port.bench.wait(port.rng.randrange(1, 200))
        if number % 3 == 0:
            while not link.words or link.words[-1] != (1, DOWN << 8 | K28_5):
                await port.ref.wait(1)
            await port.ref.wait(GEOMETRY.frame_words - port.rng.randrange(16, 24))
            await port.bench.wait(1)
        await express.send(code)
        await express.known(code, refuses=port.rng.choice((0, 0, 1, 2)))
    await port.ref.wait(4 * GEOMETRY.frame_words)
    counts = await port.finish()
    assert link.control() == sent
    express.check(link, counts)
    assert all(at is not None for _, at in express.told)


@cocotb.test
async def express_codes_without_light(dut: Any) -> None:
    """The link begins anew at any moment of a code, or light goes at any, as the serialiser's divider is seen to stand wrong: each is on the fibre and sent, or it is not, and dark;
    none goes later."""
    port = PortBench(dut)
    await port.begin()
    link = Link(dut.ref_clk, dut.tx_codes, GEOMETRY, dut.tx_on)
    express = Express(port)
    code = 0
    for number in range(64 if SHORT else 160):
        is_wrong = number % 4 == 3
        dut.div_wrong.value = is_wrong
        for _ in range(400):
            code = (code + 1) % 256
            resets = None if is_wrong else cocotb.start_soon(reset_link_at(port, port.rng.randrange(12)))
            await express.send(code)
            await express.known(code)
            if resets:
                await resets
            if resets or dut.tx_on.value == 0:
                break
            await port.bench.wait(port.rng.randrange(1, 4))
        if is_wrong:
            assert dut.tx_on.value == 0
            dut.div_wrong.value = 0
            await express.send(code)
            await express.known(code)
        await port.bench.wait_until(lambda: dut.sends.value == 1, 40_000, "light", 50)
        await port.bench.wait(port.rng.randrange(1, 60))
    await port.ref.wait(GEOMETRY.frame_words)
    counts = await port.finish()
    express.check(link, counts)
    assert counts["express_sent"] > 0
    assert counts["express_dark"] > 0


async def reset_link_at(port: PortBench, cycles: int) -> None:
    await port.ref.wait(cycles)
    await port.bench.wait(1)
    port.dut.link_rst.value = 1
    await port.bench.wait(1)
    port.dut.link_rst.value = 0


@cocotb.test
async def express_codes_up(dut: Any) -> None:
    """In frames that are idle and full, one after the other: the host has each with its time, always as long after it came, in order; those that find no room are counted, and
    change no other."""
    port = PortBench(dut)
    await port.begin()
    express, floor = Express(port), port.floor
    taken: list[tuple[int, int]] = []

    async def take() -> None:
        await port.bench.wait(12)
        while dut.express_came.value == 1:
            taken.append((int(dut.express_up.value), express.time(dut.express_came_at)))
            await express.pulse("express_take")
            await port.bench.wait(port.rng.choice((1, 2, 7)))

    room = (GEOMETRY.frame_words - GEOMETRY.end) // 2
    for number in range(8 if SHORT else 30):
        busy = number % 2
        floor.queue.append(Frame(any_slots(port.rng, GEOMETRY, busy)))
        places = port.rng.sample(range(1, GEOMETRY.frame_words - 40), min(room, 6))
        floor.express = dict.fromkeys(places, 0) | {place: port.rng.randrange(256) for place in places}
        await floor.drain()
        await take()
    wanted = list(floor.codes)
    await express.pulse("express_take")  # there is none
    # One after the other, more than wait.
    floor.express = {7 + k: (k * 37 + 1) % 256 for k in range(23)}
    await floor.drain()
    await port.bench.wait(20)
    before = len(taken)
    await take()
    waited = len(taken) - before
    assert 16 <= waited <= 19
    wanted = floor.codes[: len(wanted) + waited]
    floor.express = {30: 0xA5}  # and there is room again
    await floor.drain()
    await take()
    wanted.append(floor.codes[-1])
    counts = await port.finish()
    assert [code for code, _ in taken] == [code for code, _ in wanted]
    latencies = {at - sent for (_, at), (_, sent) in zip(taken, wanted, strict=True)}
    assert len(latencies) == 1
    assert 0 <= latencies.pop() - AWAY_WORDS < 40
    assert (counts["express_taken"], counts["express_unread"]) == (len(taken), 23 - waited)
    assert counts["count_good"] == len(floor.sent)
