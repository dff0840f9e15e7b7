# SPDX-License-Identifier: Apache-2.0
"""What a port of the KM3NeT node makes of a floor's frames is read by a port of the software: units by slice, whole ones and those with a hole. The benches of the gateware
hold the RTL to the same model, byte for byte."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from random import Random

import nanet
from nanet.machine.ports import unused_port

sys.path.insert(0, str(Path(__file__).parents[2] / "gateware" / "tb"))
from common.km3 import HOLE_BYTES, Frame, Geometry, Tower, any_slots

GEOMETRY = Geometry(4000, 10000, (*(610,) * 6, 64, 64, 60, 128))
RUN, SECOND, SLICE_FRAMES, SLICES = 41, 1_400_000_000, 20, 4
BEGIN = 499 * SLICE_FRAMES  # of the run's frames: the second of these slices is that of the next second
MISSING = BEGIN + 2 * SLICE_FRAMES + 9
TICKS_A_SECOND = 62_500_000


def test_units_come_as_the_floor_filled_its_slots() -> None:
    rng, tower, port_number = Random(3), Tower(GEOMETRY, RUN, SECOND, SLICE_FRAMES), unused_port()
    wanted: dict[tuple[int, int], bytes] = {}
    holed = MISSING // SLICE_FRAMES
    for index in range(BEGIN, BEGIN + SLICES * SLICE_FRAMES):
        frame = Frame(any_slots(rng, GEOMETRY, 0.4), SECOND + index // 10000, index % 10000)
        if index == MISSING:
            continue
        tower.take(frame)
        for kind, slots in ((1, frame.slots[:6]), (3, frame.slots[6:7]), (4, frame.slots[7:8]), (5, frame.slots[8:9])):
            if (
                kind in (1, 5) or index < MISSING or index // SLICE_FRAMES > holed
            ):  # sound's places are times: it waits for the next slice
                data = b"".join(word.to_bytes(2, "little") for slot in slots for word in slot)
                key = kind, index // SLICE_FRAMES
                wanted[key] = wanted.get(key, b"") + data
    seen = {}
    with (
        nanet.open(
            f"udp://127.0.0.1:{port_number}",
            protocol="km3-floor",
            packet_bytes_max=9000,
            buffer_count=64,
            assemble={"timeout_us": 300_000},
        ) as port,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        for packet in tower.packets:
            if packet.kind_class != 3:  # slow control has no head
                sender.sendto(packet.data, ("127.0.0.1", port_number))
        for completion in port.completions(1.0):
            unit = completion.unit
            assert unit is not None
            kind, slice_ = unit.stream & 7, unit.number & 0xFFFF_FFFF
            assert (unit.stream, unit.number >> 32) == (7 << 11 | 1 << 3 | kind, RUN)
            second, number = divmod(slice_ * SLICE_FRAMES, 10000)
            assert unit.time == (SECOND + second) * TICKS_A_SECOND + number * 6250
            assert unit.complete == (slice_ != holed)
            if kind in (1, 5):
                assert unit.bytes_missing == (HOLE_BYTES if slice_ == holed else 0)
            data = unit.array().tobytes()
            seen[kind, slice_] = b"".join(data[begin:end] for begin, end in unit.present.tolist())
        assert port.counters()["packets_bad_format"] == 0
    assert seen == wanted
