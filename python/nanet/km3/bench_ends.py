# SPDX-License-Identifier: Apache-2.0
"""The processes beside the one that `nanet bench km3-control` measures. They import little, so that they are there soon."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from nanet.km3.messages import BY_NAME, MESSAGE, Command, Floor, Message, encode

REQUESTS_PER_S = 400
TEMPERATURE = BY_NAME["temperature"].number
ANSWER_WITHIN_S = 2.0


def ask_bare(told: Any, duration_s: float, floors: int, control: int) -> None:
    """Round trips [ns] to one floor after the other, and how many requests had no answer."""
    taken, missed, number, next_s = list[int](), 0, 0, time.monotonic()
    end_s = next_s + duration_s
    first = int.from_bytes(os.urandom(3), "big")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(ANSWER_WITHIN_S)
        while (now_s := time.monotonic()) < end_s:
            time.sleep(max(0.0, next_s - now_s))
            next_s += 1 / REQUESTS_PER_S
            floor = number % floors
            request = encode(Message(Floor(1, floor + 1), Command.GET, first + number, TEMPERATURE))
            number += 1
            began_ns = time.monotonic_ns()
            one.sendto(request, ("127.0.0.1", control + floor))
            try:
                answer = one.recv(2048)
            except TimeoutError:
                missed += 1
                continue
            taken.append(time.monotonic_ns() - began_ns)
            if len(answer) != MESSAGE.size or answer[8:12] != request[8:12]:
                missed += 1
    told.put((taken, missed))


def sink(told: Any) -> None:
    """A destination that reads and throws away."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        told.put(listener.getsockname()[1])
        with listener.accept()[0] as connected:
            room = bytearray(1 << 20)
            while connected.recv_into(room):
                pass
