# SPDX-License-Identifier: Apache-2.0
"""A floor of a KM3NeT tower for tests: it answers slow control and sends units, as docs/formats-km3.md says; written after that page and not after nanet.km3.

Faults: silent, answers twice, answers as another floor, with another sequence, with garbage, from another port; loses what it was told; a wrong value.
"""

from __future__ import annotations

import random
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

REQUEST, ANSWER = b"KM3C", b"KM3A"
BOUNDS = {**dict.fromkeys(range(6), (0, 20000)), **dict.fromkeys(range(16, 22), (0, 1000)), 32: (0, 1), 33: (0, 1)}
READ_ONLY = {64: 1850, 65: 9000, 66: -12, 67: 33, **dict.fromkeys(range(80, 86), 55000)}
GET, SET, START, STOP, PING = range(1, 6)


class MadeUpFloor:
    """Answers in a thread of its own until it is closed. `faults` may be changed while it runs."""

    def __init__(self, floor: int, tower: int = 1, port: int = 0, faults: Sequence[str] = ()) -> None:
        self.tower, self.floor, self.faults = tower, floor, set(faults)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.port: int = self.socket.getsockname()[1]
        self.other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.heard: list[bytes] = []
        self.done: list[tuple[int, int, int]] = []  # (command, parameter, value), each request once
        self.start_over()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> MadeUpFloor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        self.socket.close()
        self.other.close()

    def start_over(self) -> None:
        """As after a power cut."""
        self.values = {**dict.fromkeys(BOUNDS, 0), **READ_ONLY}
        self.run = 0
        self._answered: dict[tuple[Any, int], bytes] = {}

    @property
    def endpoint(self) -> str:
        return f"udp://127.0.0.1:{self.port}"

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        while not self._closing:
            if poll.poll(20):
                data, sender = self.socket.recvfrom(2048)
                self.heard.append(data)
                if "silent" not in self.faults:
                    self._answer(data, sender)

    def _answer(self, data: bytes, sender: Any) -> None:
        magic, tower, floor, command, status, sequence, parameter, zero, value = struct.unpack(">4sBBBBIHHi", data[:20])
        assert (len(data), magic, status, zero, data[20:]) == (28, REQUEST, 0, 0, bytes(8))
        if "loses_first" in self.faults and len([one for one in self.heard if one == data]) == 1:
            return
        answer = self._answered.get((sender, sequence))
        if answer is None:
            status, value = (5, 0) if (tower, floor) != (self.tower, self.floor) else self._do(command, parameter, value)
            answer = struct.pack(
                ">4sBBBBIHHiII", ANSWER, tower, floor, command, status, sequence, parameter, 0, value, int(time.time()), 7
            )
            self._answered = {(sender, sequence): answer}
        self._send(answer, sender)

    def _send(self, answer: bytes, sender: Any) -> None:
        if "garbage" in self.faults:
            self.socket.sendto(random.Random(len(self.heard)).randbytes(28), sender)
            self.socket.sendto(answer[:-1], sender)
        if "wrong_floor" in self.faults:
            self.socket.sendto(answer[:5] + bytes([self.floor + 1]) + answer[6:], sender)
        if "wrong_sequence" in self.faults:
            self.socket.sendto(answer[:8] + bytes([answer[8] ^ 0x80]) + answer[9:], sender)
        if "wrong_command" in self.faults:
            self.socket.sendto(answer[:6] + bytes([answer[6] % 5 + 1]) + answer[7:], sender)
        if "stranger" in self.faults:
            self.other.sendto(answer, sender)
        if "only_wrong" in self.faults:
            return
        self.socket.sendto(answer, sender)
        if "twice" in self.faults:
            self.socket.sendto(answer, sender)

    def _do(self, command: int, parameter: int, value: int) -> tuple[int, int]:
        if "not_now" in self.faults and command == START:
            return 4, self.run
        self.done.append((command, parameter, value))
        if command == PING:
            return 0, self.run
        if command in (START, STOP):
            self.run = value if command == START else 0
            return 0, value
        if command not in (GET, SET):
            return 1, 0
        if parameter not in self.values:
            return 2, 0
        if command == SET:
            if parameter not in BOUNDS:
                return 2, 0
            least, most = BOUNDS[parameter]
            if not least <= value <= most:
                return 3, self.values[parameter]
            self.values[parameter] = value - ("sticks" in self.faults)
        return 0, self.values[parameter]


def unit_bytes(kind: int, seed: int, records: int) -> bytes:
    """The bytes of a unit: valid records, the same for the same seed."""
    made = random.Random(seed)
    if kind == 1:
        return b"".join(struct.pack(">BiB", made.randrange(6), made.randrange(10**8), made.randrange(256)) for _ in range(records))
    return made.randbytes(records * {3: 3, 4: 3, 5: 12}[kind])


def packets(
    floor: int, kind: int, run: int, slice_: int, data: bytes, *, tower: int = 1, second: int = 1_000_000, tick: int = 0, payload: int = 1200,
    flags: int = 0, sequence: int = 0,
) -> Iterator[bytes]:  # fmt: skip
    """A unit as packets of `payload` bytes at most."""
    for at in range(0, max(1, len(data)), payload):
        last = at + payload >= len(data)
        yield (
            struct.pack(">4sBBBBIIIIII", b"KM3F", tower, floor, kind, flags | last, run, slice_, second, tick, at, sequence)
            + data[at : at + payload]
        )
        sequence += 1
