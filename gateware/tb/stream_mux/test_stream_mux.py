# SPDX-License-Identifier: Apache-2.0
"""stream_mux: every input's packets whole and in order, never mixed, no gap within one, fair shares, full rate, a reset."""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, never, pauses, random_numbers

INPUTS = PARAMETERS.get("INPUTS", 2)
DATA_BITS = PARAMETERS.get("DATA_BITS", 64)
WORD_BYTES = DATA_BITS // 8
Word = tuple[int, int, int, int]  # data, keep, last, user


class MuxBench(Bench):
    """Both ends. Input i offers the packets of queues[i]; seen: packets in the order in which they left, with the cycle of each word."""

    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.queues: list[deque[list[Word]]] = [deque() for _ in range(INPUTS)]
        self.pause: list[Callable[[], bool]] = [never] * INPUTS
        self.gaps = False  # pauses also within packets
        self.out_pause: Callable[[], bool] = never
        self.place = [0] * INPUTS
        self.offered = [False] * INPUTS
        self.offered_at = [0] * INPUTS  # the cycle in which the newest word was first offered
        self.seen: list[tuple[list[Word], list[int]]] = []
        dut.s_axis_tvalid.value = dut.m_axis_tready.value = 0
        cocotb.start_soon(self._run())

    def done(self) -> bool:
        return not any(self.queues)

    def _drive(self) -> None:
        data = keep = valid = last = user = 0
        for i in range(INPUTS):
            goes_on = self.offered[i] or (self.place[i] > 0 and not self.gaps)
            offered = bool(self.queues[i]) and (goes_on or not self.pause[i]())
            if offered and not self.offered[i]:
                self.offered_at[i] = self.cycle + 1
            self.offered[i] = offered
            if self.offered[i]:
                word = self.queues[i][0][self.place[i]]
                data |= word[0] << DATA_BITS * i
                keep |= word[1] << WORD_BYTES * i
                valid |= 1 << i
                last |= word[2] << i
                user |= word[3] << i
        dut = self.dut
        dut.s_axis_tdata.value, dut.s_axis_tkeep.value, dut.s_axis_tvalid.value = data, keep, valid
        dut.s_axis_tlast.value, dut.s_axis_tuser.value = last, user

    async def _run(self) -> None:
        dut, edge = self.dut, RisingEdge(self.dut.clk)
        inside = False
        words: list[Word] = []
        cycles: list[int] = []
        while True:
            self._drive()
            ready = not self.out_pause()
            dut.m_axis_tready.value = int(ready)
            await edge
            if dut.rst.value == 1:
                self.place, self.offered = [0] * INPUTS, [False] * INPUTS
                inside, words, cycles = False, [], []
                continue
            assert not inside or self.gaps or dut.m_axis_tvalid.value == 1, "a gap within a packet"
            taken = int(dut.s_axis_tready.value)
            for i in range(INPUTS):
                if self.offered[i] and self.queues[i] and taken >> i & 1:
                    self.place[i] += 1
                    self.offered[i] = False
                    if self.place[i] == len(self.queues[i][0]):
                        self.queues[i].popleft()
                        self.place[i] = 0
            if ready and dut.m_axis_tvalid.value == 1:
                signals = (dut.m_axis_tdata, dut.m_axis_tkeep, dut.m_axis_tlast, dut.m_axis_tuser)
                data, keep, last, user = (int(signal.value) for signal in signals)
                words.append((data, keep, last, user))
                cycles.append(self.cycle)
                inside = not last
                if last:
                    self.seen.append((words, cycles))
                    words, cycles = [], []


async def started(dut: Any) -> MuxBench:
    bench = MuxBench(dut)
    await bench.reset()
    return bench


def packet(rng: Random, source: int, length: int) -> list[Word]:
    """The first byte of each word is its input's number."""
    words = []
    for k in range(length):
        last = int(k == length - 1)
        keep = (1 << (rng.randint(1, WORD_BYTES) if last else WORD_BYTES)) - 1
        words.append((rng.getrandbits(DATA_BITS) & ~0xFF | source, keep, last, int(last and rng.random() < 0.1)))
    return words


@cocotb.test
async def packets_arrive_whole_and_in_order(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for share, gaps in ((0.0, False), (0.2, False), (0.6, False), (0.3, True)):
        bench.seen.clear()
        bench.gaps = gaps
        bench.pause = [pauses(rng, share if gaps else rng.choice([0.0, share])) for _ in range(INPUTS)]
        bench.out_pause = pauses(rng, share)
        sent = [[packet(rng, i, rng.randint(1, 12)) for _ in range(40 if SHORT else 400)] for i in range(INPUTS)]
        for queue, packets in zip(bench.queues, sent, strict=True):
            queue.extend(packets)
        await bench.wait_until(bench.done, 500_000, "all packets")
        await bench.wait(2)
        for i in range(INPUTS):
            assert [words for words, _ in bench.seen if words[0][0] & 0xFF == i] == sent[i], f"input {i}"
        assert sum(map(len, sent)) == len(bench.seen)


@cocotb.test
async def full_rate_and_equal_turns(dut: Any) -> None:
    """All inputs always have a packet: a word every cycle, and one packet of each in turn; alone, an input has all of it."""
    rng = random_numbers()
    bench = await started(dut)
    rounds = 20
    for busy in (range(INPUTS), [rng.randrange(INPUTS)]):
        bench.seen.clear()
        for i in busy:
            bench.queues[i].extend(packet(rng, i, rng.randint(1, 9)) for _ in range(rounds))
        await bench.wait_until(bench.done, 10_000, "all packets")
        await bench.wait(2)
        cycles = [cycle for _, cycles in bench.seen for cycle in cycles]
        assert cycles == list(range(cycles[0], cycles[0] + len(cycles))), "a pause"
        order = [words[0][0] & 0xFF for words, _ in bench.seen]
        for begin in range(0, len(order), len(busy)):
            assert sorted(order[begin : begin + len(busy)]) == sorted(busy)


@cocotb.test
async def an_idle_output_is_the_first_inputs(dut: Any) -> None:
    """A packet of input 0 leaves at once, one of another input a cycle later, whoever was last."""
    rng = random_numbers()
    bench = await started(dut)
    for i in [0, 1, 0, 0, INPUTS - 1, 0, *(rng.randrange(INPUTS) for _ in range(20))]:
        bench.seen.clear()
        bench.queues[i].append(packet(rng, i, 1))
        await bench.wait_until(bench.done, 100, "the packet")
        await bench.wait(3)
        assert bench.seen[0][1][0] - bench.offered_at[i] == int(i != 0), f"input {i}"


@cocotb.test
async def reset_in_mid_packet(dut: Any) -> None:
    rng = random_numbers()
    bench = await started(dut)
    for _ in range(20):
        for i in range(INPUTS):
            bench.queues[i].append(packet(rng, i, 30))
        await bench.wait(rng.randint(1, 20))
        dut.rst.value = 1
        for queue in bench.queues:
            queue.clear()
        await bench.wait(2)
        dut.rst.value = 0
        bench.seen.clear()
        sent = packet(rng, INPUTS - 1, 5)
        bench.queues[-1].append(sent)
        await bench.wait_until(bench.done, 100, "a packet after the reset")
        await bench.wait(2)
        assert [words for words, _ in bench.seen] == [sent]
