# SPDX-License-Identifier: Apache-2.0
"""link_receiver: what each frame is, is said once; records of a session come out once and in order; a session that opens is a reset of so many cycles."""

from collections import Counter, deque
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from common.bench import PARAMETERS, SHORT, Bench, never, pauses, random_numbers
from common.frames import mac_number
from common.host_link import DATA, ETHERTYPE, HEADER, HOST, OPEN, STATION, VERSION, mac_bytes

RESTART_CYCLES = PARAMETERS["RESTART_CYCLES"]
BROADCAST = "ff:ff:ff:ff:ff:ff"
HOSTS = (HOST, "f2:a1:b3:c5:d7:e9")
PULSES = ("count_taken", "count_opened", "count_answer", "drop_number", "drop_session", "drop_foreign", "answer", "acknowledge")


def frame(
    *,
    to: bytes = mac_bytes(STATION),
    host: str = HOST,
    ethertype: int = ETHERTYPE,
    version: int = VERSION,
    flags: int = DATA,
    session: int,
    number: int = 0,
    acknowledged: int = 0,
    body: bytes = b"",
) -> bytes:
    swapped = int.from_bytes(ethertype.to_bytes(2, "big"), "little")
    return HEADER.pack(to, mac_bytes(host), swapped, version, flags, session, number, acknowledged) + body


class Session:
    """The rule of the contract: what a frame makes of what is known, and what is said of it, cycle by cycle that says anything."""

    def __init__(self) -> None:
        self.session: int | None = None
        self.host = self.expected = 0
        self.said: list[tuple[Any, ...]] = []
        self.words: list[tuple[int, bool]] = []

    def say(self, *pulses: str, acknowledged: int | None = None) -> None:
        state = (self.session, self.host, self.expected) if self.session is not None else None
        self.said.append((set(pulses), acknowledged, state))

    def take(self, data: bytes) -> None:
        if len(data) < HEADER.size:
            self.say("drop_foreign")
            return
        to, host, ethertype, version, flags, session, number, acknowledged = HEADER.unpack_from(data)
        for_us = to in (mac_bytes(STATION), mac_bytes(BROADCAST)) and ethertype.to_bytes(2, "little") == ETHERTYPE.to_bytes(
            2, "big"
        )
        if not for_us or version != VERSION:
            self.say("drop_foreign")
        elif flags & OPEN:
            if session == self.session:
                self.say("count_opened", "answer")
                return
            self.session, self.host, self.expected = session, int.from_bytes(host, "big"), 0
            self.say("count_opened")
            self.say("answer")  # at the end of the reset
        elif session != self.session:
            self.say("drop_session")
        elif not flags & DATA:
            self.say("count_answer", "acknowledge", acknowledged=acknowledged)
        elif number != self.expected:
            self.say("drop_number", "acknowledge", "answer", acknowledged=acknowledged)
        else:
            self.expected = (self.expected + 1) % 0x10000
            self.say("count_taken", "acknowledge", "answer", acknowledged=acknowledged)
            body = data[HEADER.size :]
            self.words += [(int.from_bytes(body[at : at + 8], "little"), at + 8 == len(body)) for at in range(0, len(body), 8)]


class ReceiverBench(Bench):
    def __init__(self, dut: Any) -> None:
        super().__init__(dut)
        self.rng, self.model = random_numbers(), Session()
        dut.s_axis_tvalid.value = dut.s_axis_tdata.value = dut.s_axis_tlast.value = dut.m_ready.value = 0
        self.said: list[tuple[Any, ...]] = []
        self.words: list[tuple[int, bool]] = []
        self.restarts: list[int] = []
        self.was_restarting = False

    def look(self) -> None:
        dut = self.dut
        up = {name for name in PULSES if getattr(dut, name).value == 1}
        if up:
            state = (int(dut.session.value), int(dut.host.value), int(dut.expected.value)) if dut.opened.value == 1 else None
            self.said.append((up, int(dut.acknowledged.value) if "acknowledge" in up else None, state))
        if dut.restart.value == 1:
            assert (dut.s_axis_tready.value, dut.m_valid.value) == (0, 0), "a reset takes nothing and gives nothing"
            assert "answer" not in up, "a sender that is reset would forget it"
            self.restarts += [] if self.was_restarting else [0]
            self.restarts[-1] += 1
        self.was_restarting = dut.restart.value == 1
        if dut.m_valid.value == 1 and dut.m_ready.value == 1:
            self.words.append((int(dut.m_data.value), dut.m_last.value == 1))

    async def send(self, frames: list[bytes], share: float = 0) -> None:
        """One after the other, with pauses on both sides; after the last one time for a reset."""
        dut = self.dut
        pause, refuse = (pauses(self.rng, share), pauses(self.rng, share)) if share else (never, never)
        left = deque((data[at : at + 8], at + 8 >= len(data)) for data in frames for at in range(0, len(data), 8))
        rest = 2 * RESTART_CYCLES
        while rest:
            offers = bool(left) and not pause()
            dut.s_axis_tvalid.value = int(offers)
            if offers:
                dut.s_axis_tdata.value, dut.s_axis_tlast.value = int.from_bytes(left[0][0], "little"), int(left[0][1])
            dut.m_ready.value = int(not refuse())
            while True:  # what is offered stays until it is taken
                await RisingEdge(dut.clk)
                self.look()
                if not offers or dut.s_axis_tready.value == 1:
                    break
                dut.m_ready.value = int(not refuse())
            if offers:
                left.popleft()
            elif not left:
                rest -= 1
        for data in frames:
            self.model.take(data)
        assert self.said == self.model.said
        assert self.words == self.model.words
        assert self.restarts == [RESTART_CYCLES] * len(self.restarts)


def random_frame(rng: Random, model: Session, sessions: list[int]) -> bytes:
    """Most are as they must be, some wrong in one bit of one field."""
    flags = rng.choice([DATA, DATA, DATA, DATA, 0, 0, OPEN, OPEN | DATA]) | rng.getrandbits(6) << 2
    session = rng.choice(sessions) if flags & OPEN or model.session is None or rng.random() < 0.1 else model.session
    fields: dict[str, Any] = {
        "to": mac_bytes(rng.choice([STATION, STATION, BROADCAST])),
        "host": rng.choice(HOSTS),
        "flags": flags,
        "session": session,
        "number": (model.expected + rng.choice([0, 0, 0, 0, -1, 1, 1 << rng.randrange(16)])) % 0x10000,
        "acknowledged": rng.getrandbits(16),
    }
    if rng.random() < 0.2:
        name = rng.choice(["to", "ethertype", "version", "session"])
        fields["to"] = (mac_number(STATION) ^ 1 << rng.randrange(48)).to_bytes(6, "big") if name == "to" else fields["to"]
        fields["ethertype"] = ETHERTYPE ^ (1 << rng.randrange(16)) * (name == "ethertype")
        fields["version"] = VERSION ^ (1 << rng.randrange(8)) * (name == "version")
        fields["session"] ^= (1 << rng.randrange(32)) * (name == "session")
    data = frame(**fields, body=rng.randbytes(8 * rng.randrange(9)))
    return data[: rng.choice([8, 16])] if rng.random() < 0.05 else data


@cocotb.test
async def each_frame_is_one_of_those(dut: Any) -> None:
    bench = ReceiverBench(dut)
    await bench.reset()
    sessions = [bench.rng.getrandbits(32) for _ in range(3)]
    for _ in range(30 if SHORT else 200):
        plan, frames = Session(), []
        plan.__dict__ |= {name: getattr(bench.model, name) for name in ("session", "host", "expected")}
        for _ in range(20):
            frames.append(random_frame(bench.rng, plan, sessions))
            plan.take(frames[-1])
        await bench.send(frames, bench.rng.choice([0, 0.3]))
    seen = Counter(name for pulses, *_ in bench.said for name in pulses)
    assert len(bench.restarts) > 20
    assert all(seen[name] > 20 for name in PULSES), seen


@cocotb.test
async def before_a_session_is_opened_there_is_none(dut: Any) -> None:
    """After a reset too, in whatever it falls: the old one is not known any more."""
    bench = ReceiverBench(dut)
    await bench.reset()
    await bench.send([frame(session=int(dut.session.value)), frame(session=int(dut.session.value), flags=0)])
    assert [pulses for pulses, *_ in bench.said] == [{"drop_session"}] * 2
    session = bench.rng.getrandbits(32)
    for words in range(1, 5):
        await bench.send([frame(session=session, flags=OPEN), frame(session=session, body=bytes(40))])
        dut.s_axis_tvalid.value, dut.s_axis_tlast.value, dut.m_ready.value = 1, 0, 1
        data = frame(session=session, number=1, body=bytes(40))
        for at in range(0, 8 * words, 8):  # it is cut in each of its words
            dut.s_axis_tdata.value = int.from_bytes(data[at : at + 8], "little")
            await RisingEdge(dut.clk)
        dut.s_axis_tvalid.value = 0
        await bench.reset(1)
        assert dut.opened.value == 0
        bench.model, bench.said, bench.words = Session(), [], []
        await bench.send([frame(session=session, number=1)])
        assert [pulses for pulses, *_ in bench.said] == [{"drop_session"}]
    opening = frame(session=session, flags=OPEN)  # and in the reset that a session is
    dut.s_axis_tvalid.value = 1
    for at in range(0, len(opening), 8):
        dut.s_axis_tdata.value, dut.s_axis_tlast.value = int.from_bytes(opening[at : at + 8], "little"), int(at == 16)
        await RisingEdge(dut.clk)
    dut.s_axis_tvalid.value = 0
    await bench.wait(3)
    assert dut.restart.value == 1
    await bench.reset(1)
    assert (dut.restart.value, dut.opened.value) == (0, 0)
