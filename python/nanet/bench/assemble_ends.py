# SPDX-License-Identifier: Apache-2.0
"""Sender of one unit after the other: `FILE ADDRESS PORT UNITS_RECORDED UNITS GAP_S CORE`. Writes one line of JSON: when the call that sent each unit's last packet
began, CLOCK_MONOTONIC [ns]."""

from __future__ import annotations

import json
import socket
import sys
import time

from nanet.machine.facts import keep_to


def send(packets: list[list[bytes]], to: tuple[str, int], units: int, gap_s: float) -> list[int]:
    """The units of `packets`, in turns. Returns the times."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(to)
        times = []
        begin = time.monotonic()
        for k in range(units):
            time.sleep(max(0.0, begin + k * gap_s - time.monotonic()))
            *first, last = packets[k % len(packets)]
            for packet in first:
                sender.send(packet)
            times.append(time.monotonic_ns())
            sender.send(last)
        return times


def read_units(file: str, units: int) -> list[list[bytes]]:
    """The packets of a recording, in `units` equal parts."""
    from nanet import _core

    packets, reader = [], _core.PcapPackets(file)
    while (one := reader.next()) is not None:
        packets.append(one[4])
    per_unit = len(packets) // units
    return [packets[k * per_unit :][:per_unit] for k in range(units)]


def main(arguments: list[str]) -> None:
    """See the head of this file: UNITS of a recording that has UNITS_RECORDED, of equally many packets each."""
    file, address, port, recorded, units, gap_s, core = arguments
    if int(core) >= 0:
        keep_to({int(core)})
    print(json.dumps(send(read_units(file, int(recorded)), (address, int(port)), int(units), float(gap_s))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
