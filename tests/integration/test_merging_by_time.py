# SPDX-License-Identifier: Apache-2.0
"""Parts of several streams that belong together by their times: what a port makes of them, beside a reference in Python that sorts all
times, cuts them where they are far apart, and lays every payload where it belongs."""

from __future__ import annotations

import random
import socket
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nanet
import numpy as np
import pytest
from loops import free_ports
from nanet.config import formats
from nanet.format import make
from nanet.format.make import MakeOptions

TICK_NS, TOLERANCE_NS, PERIOD = 16, 160, 40  # ticks: a unit is 640 ns after the one before, and clocks differ by 5 ticks at most
STREAMS, PART_BYTES, PIECE_BYTES, UNITS, UNITS_OPEN = (7, 3, 9), 600, 200, 150, 8
AT_ONCE, QUIET_S = 20, 0.01
FORMAT = """
about: pieces of frames, each stream with numbers of its own
byte_order: big
header:
  - {name: magic,  at: 0, type: u16, equals: 0xBEEF}
  - {name: sender, at: 2, type: u16}
  - {name: number, at: 4, type: u32}
  - {name: offset, at: 8, type: u32}
  - {name: time,   at: 12, type: u64}
header_bytes: 20
stream: [sender]
unit: [number]
place: offset
unit_bytes: 600
unit_bytes_most: 4096
time: [{field: time, unit: 16 ns}]
"""


@dataclass(frozen=True)
class Piece:
    sender: int
    number: int
    offset: int
    time: int
    payload: bytes

    def packet(self) -> bytes:
        return struct.pack(">HHIIQ", 0xBEEF, self.sender, self.number, self.offset, self.time) + self.payload


def pieces(seed: int) -> list[Piece]:
    """Of all streams and of one that no one merges; some lost, some twice, each up to two units away from its place in the order."""
    rng = random.Random(seed)
    skew = {sender: rng.randrange(-2, 3) for sender in (*STREAMS, 5)}
    made = []
    for unit in range(UNITS):
        for sender in skew:
            for offset in range(0, PART_BYTES, PIECE_BYTES):
                one = Piece(
                    sender,
                    unit + 1000 * sender,
                    offset,
                    10_000 + PERIOD * unit + skew[sender] + rng.randrange(2),
                    rng.randbytes(PIECE_BYTES),
                )
                copies = rng.choices((0, 1, 2), (3, 95, 2))[0]
                made += [(unit + 2 * rng.random(), one)] * copies
    return [one for _, one in sorted(made, key=lambda pair: pair[0])]


def reference(all_: list[Piece]) -> tuple[list[dict[int, bytes]], Counter[str]]:
    """Units in the order of their times, each with its payloads by their places; and how many packets are what."""
    counts: Counter[str] = Counter()
    wanted = [one for one in all_ if one.sender in STREAMS]
    counts["packets_unknown_stream"] = len(all_) - len(wanted)
    times = sorted({one.time for one in wanted})
    group, last = {}, None
    for time in times:
        if last is None or (time - last) * TICK_NS > TOLERANCE_NS:
            last = time
        group[time] = last
    units: dict[int, dict[int, bytes]] = {}
    for one in wanted:
        there = units.setdefault(group[one.time], {})
        place = STREAMS.index(one.sender) * PART_BYTES + one.offset
        counts["packets_duplicate" if place in there else "packets_accepted"] += 1
        there.setdefault(place, one.payload)
    whole = len(STREAMS) * PART_BYTES // PIECE_BYTES
    counts["units_complete"] = sum(len(unit) == whole for unit in units.values())
    counts["units_begun"] = len(units)
    counts["packets_lost_network"] = sum(whole - len(unit) for unit in units.values())
    return [units[key] for key in sorted(units)], counts


def received(packets: list[bytes], protocol: str, **merge: Any) -> tuple[list[tuple[int, dict[int, bytes]]], dict[str, int]]:
    """Units by their numbers, with the payloads that came, as pieces; and the counters."""
    got = []
    (number,) = free_ports(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, nanet.open(
        f"udp://127.0.0.1:{number}", protocol=protocol, buffer_count=64, buffer_bytes=1 << 16, packet_bytes_max=9000,
        assemble={"units_open": UNITS_OPEN, "timeout_us": 60_000_000, "merge": merge},
    ) as port:  # fmt: skip
        for first in range(0, len(packets), AT_ONCE):  # as many as any socket has room for
            for packet in packets[first : first + AT_ONCE]:
                sender.sendto(packet, ("127.0.0.1", number))
            for completion in port.completions(QUIET_S):
                unit = completion.unit
                assert unit is not None
                data, holes = unit.array().copy(), unit.mask(np.uint8)
                places = range(0, len(data), PIECE_BYTES)
                got.append((unit.number, {at: data[at : at + PIECE_BYTES].tobytes() for at in places if not holes[at]}))
        counters = port.counters()
    return got, counters


@pytest.mark.parametrize("seed", range(4))
def test_merged_as_the_reference_merges(tmp_path: Path, seed: int) -> None:
    (tmp_path / "mine.yaml").write_text(FORMAT)
    all_ = pieces(seed)
    # The beginnings of further units close those that wait for lost pieces.
    ends = [Piece(STREAMS[0], UNITS + k, 0, 10_000 + PERIOD * (UNITS + 9 + k), bytes(PIECE_BYTES)) for k in range(UNITS_OPEN)]
    units, counts = reference(all_)
    counts["packets_accepted"] += len(ends)
    counts["units_begun"] += len(ends)
    packets = [one.packet() for one in all_ + ends]
    got, counters = received(
        packets, str(tmp_path / "mine.yaml"), streams=STREAMS, part_bytes=PART_BYTES, by="time", tolerance_ns=TOLERANCE_NS
    )
    assert counters["units_begun"] == counters["units_complete"] + counters["units_overflow"] + len(ends)
    assert [unit for _, unit in sorted(got)] == units
    assert {name: counters[name] + (name == "packets_duplicate") * counters["packets_late"] for name in counts} == dict(counts)


def test_wibeth_is_merged_as_it_is_declared() -> None:
    maker = make.Maker(formats.load("dune-wibeth"), MakeOptions(streams=3))
    got, counters = received([maker.next() for _ in range(60)], "dune-wibeth", streams=[0, 1, 2], part_bytes=7168)
    assert counters["units_complete"] == 20
    assert [number for number, _ in got] == [2048 * k for k in range(20)]
