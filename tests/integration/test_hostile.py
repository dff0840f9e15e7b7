# SPDX-License-Identifier: Apache-2.0
"""Any bytes on the port: counted by reason, never a crash, never a wrong answer."""

from __future__ import annotations

import random
from typing import Any

import pytest
from loops import (
    BAD_PACKETS,
    check_event_books,
    check_packet_books,
    emulator_config,
    engine_config,
    free_ports,
    sender,
    wait_for,
)  # fmt: skip
from nanet import wire
from nanet.run import emulate
from nanet.run.process import EngineProcess

EVENT = wire.EventRecord(timestamp=1000, fine_time=7, event_number=0, hits=[100, 200, 300, 400])


def garbage(count: int, seed: int) -> list[bytes]:
    """Datagrams of four kinds: noise, cut packets, flipped bits, packets of strangers."""
    dice = random.Random(seed)
    good = wire.build_mgp([EVENT] * 16, source_id=0x1C, source_sub_id=0)
    packed = wire.build_mgp([EVENT] * 16, source_id=0x1C, source_sub_id=0, layout=wire.MgpLayout.packed)
    found = []
    for n in range(count):
        base = good if n % 2 else packed
        kind = n % 4
        if kind == 0:
            found.append(dice.randbytes(dice.choice([0, 1, 15, 16, 23, 24, 1168, 1472, dice.randrange(1473)])))
        elif kind == 1:
            found.append(base[: dice.randrange(len(base))])
        elif kind == 2:
            broken = bytearray(base)
            for _ in range(dice.randrange(1, 9)):
                broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
            found.append(bytes(broken) if bytes(broken) != base else base[:-1])
        else:
            found.append(wire.build_mgp([EVENT], source_id=0x1C, source_sub_id=dice.randrange(1, 256)))
    return found


def test_garbage_between_good_packets() -> None:
    port, answers = free_ports()
    rubbish = garbage(8000, seed=5)
    with EngineProcess(engine_config(port, answers)) as process, sender(port) as out:
        for datagram in rubbish[:4000]:
            out.send(datagram)
        wait_for(lambda: sum(process.counters().get(name, 0) for name in BAD_PACKETS) == 4000, "the refusal of all rubbish")
        emulated = emulate.run(emulator_config(port, answers))
        for datagram in rubbish[4000:]:
            out.send(datagram)
        engine = process.stop()
    c = engine["counters"]
    assert sum(c[name] for name in BAD_PACKETS) == len(rubbish)
    assert c["packets_unknown_source"] >= 1900
    assert c["packets_bad_length"] >= 1000
    assert c["packets_bad_checksum"] >= 1000
    check_packet_books(emulated, engine, strangers=len(rubbish))
    check_event_books(emulated, engine)
    assert emulated["lost"] == 0
    assert engine["exit_code"] == 0  # what strangers send is refused, not lost


@pytest.mark.parametrize("gro", [True, False])
@pytest.mark.parametrize("protocol", ["raw", "mgp"])
def test_packet_bytes_max_is_held(protocol: str, gro: bool) -> None:
    """The socket has room for more, the configuration has not: refused as too long, alone and among others."""
    port, _ = free_ports()
    link: dict[str, Any] = {"protocol": protocol, "packet_bytes_max": 100, "gro": gro} | (
        {"sources": []} if protocol == "raw" else {}
    )
    with EngineProcess(engine_config(port, None, link=link, processor={"kind": "count"})) as process, sender(port) as out:
        for size in (100, 101, 500, 1472, 9000, 24):
            out.send(bytes(size))
        wait_for(lambda: process.counters().get("packets_truncated") == 4, "the refusal of four long datagrams")
        engine = process.stop()
    c = engine["counters"]
    assert (c["packets_truncated"], c["packets_accepted"]) == (4, 2 if protocol == "raw" else 0)
    assert engine["refusals"]["packets_truncated"] == 4
    assert engine["balance"]["unexplained_packets"] == 0


def test_packets_that_are_too_long() -> None:
    port, answers = free_ports()
    with EngineProcess(engine_config(port, answers)) as process, sender(port) as out:
        for size in (1473, 9000, 65507):
            out.send(bytes(size))
        wait_for(lambda: sum(process.counters().get(name, 0) for name in BAD_PACKETS) == 3, "the refusal of long datagrams")
        emulated = emulate.run(emulator_config(port, answers, events_total=16_000))
        engine = process.stop()
    assert emulated["lost"] == 0
    assert engine["counters"]["events_answered"] == 16_000


def test_hits_without_photomultiplier_and_extreme_events() -> None:
    """Valid packets with strange content are answered: no ring, no crash."""
    port, answers = free_ports()
    strange = [
        wire.EventRecord(0, 0, 0, []),
        wire.EventRecord(2**32 - 1, 255, 1, [488, 511, 1023, 2047]),
        wire.EventRecord(0, 0, 2, [0] * 32),
        wire.EventRecord(5, 5, 3, [65535] * 32),
        wire.EventRecord(6, 6, 4, list(range(32))),
    ]
    with EngineProcess(engine_config(port, answers)) as process, sender(port) as out:
        out.send(wire.build_mgp(strange, source_id=0x1C, source_sub_id=0))
        wait_for(lambda: process.counters().get("events_answered") == len(strange), "the answers")
        engine = process.stop()
    assert engine["counters"]["hits_unmapped"] == 4 + 32
    assert engine["counters"]["rings_found"] <= 1
