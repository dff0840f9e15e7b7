#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `nanet.km3.server.Server`: a tower of made-up floors in a process of their own, that send short hits and two hydrophones each, into a
destination in another one; slow control is asked all the while.

    .venv/bin/python tests/km3_round_trip.py [SECONDS [FLOORS]]
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from typing import Any

from made_up_km3 import MadeUpFloor, packets
from nanet.config.errors import validated
from nanet.config.km3_server import Km3ServerConfig
from nanet.km3.messages import BY_NAME, Command
from nanet.km3.server import SWITCH_S, Server
from nanet.result.histogram import Histogram

SLICE_S = 0.1
BYTES = {1: 6 * 33_000, 3: 3 * 19_200, 4: 3 * 19_200}  # 330 kHz of hits, two hydrophones
REQUESTS_PER_S = 400


def tower(port: int, count: int, sends: Any, told: Any) -> None:
    """Floors that answer, and send a slice of each every 100 ms, spread evenly over it."""
    sys.setswitchinterval(SWITCH_S)
    with contextlib.ExitStack() as stack:
        floors = [stack.enter_context(MadeUpFloor(number + 1)) for number in range(count)]
        told.put([one.endpoint for one in floors])
        out = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        data = {kind: bytes(size) for kind, size in BYTES.items()}
        sends.wait()
        slice_, next_s, sent = 0, time.monotonic(), 0
        while sends.is_set():
            for floor in floors:
                for kind, whole in data.items():
                    for packet in packets(floor.floor, kind, 1, slice_, whole, payload=8940):
                        out.sendto(packet, ("127.0.0.1", port))
                    sent += 1
                next_s += SLICE_S / count
                time.sleep(max(0.0, next_s - time.monotonic()))
            slice_ += 1
        told.put(sent)


def sink(told: Any) -> None:
    """A destination that reads and throws away."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        told.put(listener.getsockname()[1])
        connected = listener.accept()[0]
        room = bytearray(1 << 20)
        while connected.recv_into(room):
            pass


def main(duration_s: float = 10.0, count: int = 14) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    told, drained, sends = multiprocessing.Queue(), multiprocessing.Queue(), multiprocessing.Event()
    others = [
        multiprocessing.Process(target=tower, args=(port, count, sends, told)),
        multiprocessing.Process(target=sink, args=(drained,)),
    ]
    for one in others:
        one.start()
    endpoints, to = told.get(), drained.get()
    with tempfile.TemporaryDirectory() as folder:
        config = validated(Km3ServerConfig, {
            "data": {"endpoint": f"udp://127.0.0.1:{port}"}, "store": {"url": f"sqlite:///{folder}/km3.db"}, "commands": f"{folder}/s",
            "floors": [{"floor": number + 1, "control": endpoint} for number, endpoint in enumerate(endpoints)],
            "destinations": [{"name": "sink", "endpoint": f"tcp://127.0.0.1:{to}"}],
        })  # fmt: skip
        sys.setswitchinterval(SWITCH_S)
        with Server(config) as server:
            idle = ask(server, duration_s / 2)
            sends.set()
            time.sleep(1.0)
            began, before = time.monotonic(), server.books()["bytes_in"]
            cpu_s = time.process_time()
            busy = ask(server, duration_s)
            elapsed_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_s
            rate = (server.books()["bytes_in"] - before) * 8 / elapsed_s / 1e6
            sends.clear()
            sent = told.get()
            time.sleep(1.0)
        books = server.books()
    for one in others:
        one.join()
    to_sink = books["destinations"]["sink"]
    print(f"{count} floors, load of the machine {os.getloadavg()[0]:.1f}, cores {os.cpu_count()}")
    print(f"{rate:.0f} Mb/s in, {cpu_s / elapsed_s:.2f} cores; units sent {sent}, in {books['units_in']}, to the destination {to_sink['units_sent']}, "
          f"incomplete {sum(one['incomplete'] for one in books['streams'])}, copied {books['units_copied']}")  # fmt: skip
    for name, one in (("idle", idle), ("busy", busy)):
        summary = one.summary_us()
        print(
            f"round trip, {name}: {one.count} of them, "
            + ", ".join(f"{key} {summary[key]:.0f}" for key in ("p50", "p99", "p99_9", "max"))
            + " us"
        )
    return 0 if sent == books["units_in"] == to_sink["units_sent"] else 1


def ask(server: Server, duration_s: float) -> Histogram:
    """Round trips of requests to one floor after the other."""
    client, taken, next_s = server.client, [], time.monotonic()
    end_s = next_s + duration_s
    while (now_s := time.monotonic()) < end_s:
        time.sleep(max(0.0, next_s - now_s))
        next_s += 1 / REQUESTS_PER_S
        done = client.request(client.floors[len(taken) % len(client.floors)], Command.GET, BY_NAME["temperature"].number)
        taken += [done.round_trip_ns] if done.is_done and done.tries == 1 else []
    return Histogram.from_values(taken)


if __name__ == "__main__":
    sys.exit(main(*(kind(value) for kind, value in zip((float, int), sys.argv[1:], strict=False))))
