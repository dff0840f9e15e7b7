# SPDX-License-Identifier: Apache-2.0
"""Slow control: requests to floors, each answered once or ended with a name.

One thread has the socket. A floor has at most one request on its way, so that what is set first is set first, and a queue of bounded length.
A request without an answer in time is sent again with the same sequence, which a floor answers again and does once. Whatever comes that is
not the answer to what was asked, from whom it was asked, is counted by name and changes nothing.
"""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from nanet.km3.messages import ANSWER, REFUSALS, Command, Floor, Message, Status, decode, encode
from nanet.result.histogram import Histogram

Address = tuple[str, int]
NAMES = (*REFUSALS, "wrong_sender", "wrong_floor", "wrong_request", "unknown_sequence", "answered_again")
"""Datagrams that were refused, by reason; the last: an answer to what was answered before."""
ANSWERED_KEPT = 4096  # sequences of requests that ended, so that a second answer is told from an invented one
ROUND_TRIPS_KEPT = 4096  # before they are put into the histogram
DATAGRAMS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what became of it. outcome: a status in small letters, or no_answer, not_sent, queue_full, closed."""

    request: Message
    outcome: str
    tries: int = 0
    asked_ns: int = 0  # of the epoch, when it was first sent
    round_trip_ns: int = 0  # from its last sending to the answer
    answer: Message | None = None

    @property
    def is_done(self) -> bool:
        return self.outcome == "done"


@dataclass(slots=True)
class _Request:
    floor: Floor
    command: Command
    parameter: int
    value: int
    future: Future[Exchange]
    message: Message | None = None
    data: bytes = b""
    tries: int = 0
    asked_ns: int = 0
    sent_ns: int = 0  # monotonic
    was_sent: bool = False


@dataclass(slots=True)
class _Line:
    """One floor's queue."""

    address: Address
    waiting: deque[_Request] = field(default_factory=deque)
    on_its_way: _Request | None = None


class Client:
    """Asks floors. Any thread may ask; `heard` is called in the client's own, with every exchange, and must not block."""

    def __init__(
        self,
        floors: Mapping[Floor, Address],
        *,
        timeout_s: float = 0.05,
        tries_max: int = 4,
        queue_max: int = 64,
        heard: Callable[[Exchange], None] | None = None,
    ) -> None:
        """floors: numeric addresses of the floors' control ports, all IPv4 or all IPv6. Raises OSError."""
        self._timeout_ns, self._tries_max, self._queue_max, self._heard = int(timeout_s * 1e9), tries_max, queue_max, heard
        self._lines = {floor: _Line(address) for floor, address in floors.items()}
        self._by_sequence: dict[int, _Request] = {}
        self._ended: dict[int, Floor] = {}  # in the order in which they ended
        self._sequence = secrets.randbits(32)  # a floor remembers the last one: not those of an earlier life
        self._counts: Counter[str] = Counter()
        self._round_trips: list[int] = []
        self._histogram = Histogram()
        self._lock = threading.Lock()
        self._socket = socket.socket(
            socket.AF_INET6 if any(":" in a[0] for a in floors.values()) else socket.AF_INET, socket.SOCK_DGRAM
        )
        self._socket.setblocking(False)
        self._woken, self._wakes = socket.socketpair()
        self._woken.setblocking(False)
        self._wakes.setblocking(False)
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="km3-control", daemon=True)
        self._thread.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends; what waits for an answer ends as `closed`."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
        self._wake()
        self._thread.join()
        for one in (self._socket, self._woken, self._wakes):
            one.close()

    @property
    def floors(self) -> tuple[Floor, ...]:
        return tuple(self._lines)

    def submit(self, floor: Floor, command: Command, parameter: int = 0, value: int = 0) -> Future[Exchange]:
        """Asks, and returns at once. The future never raises: its exchange says what became of the request."""
        request = _Request(floor, command, parameter, value, Future())
        encode(Message(floor, command, 0, parameter, value))  # what does not fit is the caller's error, here
        with self._lock:
            line = self._lines[floor]
            if not self._closing and len(line.waiting) < self._queue_max:
                line.waiting.append(request)
                is_first = len(line.waiting) == 1 and line.on_its_way is None
                outcome = None
            else:
                outcome = "closed" if self._closing else "queue_full"
        if outcome is not None:
            self._end(request, outcome)
        elif is_first:
            self._wake()
        return request.future

    def request(self, floor: Floor, command: Command, parameter: int = 0, value: int = 0) -> Exchange:
        """Asks and waits: for at most the time-out x tries of what is before it in the floor's queue."""
        return self.submit(floor, command, parameter, value).result()

    def counters(self) -> dict[str, int]:
        """requests = answered + those of each outcome without an answer + on their way; `repeats` are sendings after the first."""
        with self._lock:
            return dict(self._counts)

    def round_trips(self) -> Histogram:
        """Of requests that were answered at the first try: of others no one knows which sending was answered."""
        with self._lock:
            self._fold()
            return self._histogram

    def _fold(self) -> None:
        if self._round_trips:
            self._histogram = self._histogram + Histogram.from_values(np.array(self._round_trips, dtype=np.int64))
            self._round_trips.clear()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it is awake
            self._wakes.send(b"x")

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while not self._closing:
            self._start_what_waits()
            found = poll.poll(self._wait_ms())
            for descriptor, _ in found:
                if descriptor == self._woken.fileno():
                    with contextlib.suppress(OSError):
                        self._woken.recv(4096)
                else:
                    self._take_what_came()
            self._repeat_what_is_late()
        with self._lock:
            left = [one for line in self._lines.values() for one in (line.on_its_way, *line.waiting) if one is not None]
        for request in left:
            self._end(request, "closed")

    def _wait_ms(self) -> float:
        if not self._by_sequence:
            return 1000.0
        next_ns = min(request.sent_ns for request in self._by_sequence.values()) + self._timeout_ns
        return max(0.0, (next_ns - time.monotonic_ns()) / 1e6)

    def _start_what_waits(self) -> None:
        for line in self._lines.values():
            if line.on_its_way is not None or not line.waiting:
                continue
            with self._lock:
                request = line.on_its_way = line.waiting.popleft()
            self._sequence = (self._sequence + 1) & 0xFFFF_FFFF
            request.message = Message(request.floor, request.command, self._sequence, request.parameter, request.value)
            request.data = encode(request.message)
            self._by_sequence[self._sequence] = request
            self._send(request, line.address)

    def _send(self, request: _Request, address: Address) -> None:
        request.tries += 1
        if request.tries == 1:
            request.asked_ns = time.time_ns()
        else:
            self._count("repeats")
        request.sent_ns = time.monotonic_ns()
        try:
            self._socket.sendto(request.data, address)
            request.was_sent = True
        except (
            OSError
        ):  # no route, a full queue, or the error that an earlier datagram met: it is tried again like one that was lost
            self._count("send_refused")

    def _take_what_came(self) -> None:
        for _ in range(DATAGRAMS_AT_ONCE):
            try:
                data, sender = self._socket.recvfrom(2048)
            except BlockingIOError:
                return
            except OSError:  # that no one listens there: the request's time-out says it
                self._count("send_refused")
                continue
            arrived_ns = time.monotonic_ns()
            self._take(data, sender[:2], arrived_ns)

    def _take(self, data: bytes, sender: Address, arrived_ns: int) -> None:
        message = decode(data, ANSWER)
        if isinstance(message, str):
            return self._count(message)
        request = self._by_sequence.get(message.sequence)
        if request is None or request.message is None:
            return self._count("answered_again" if self._ended.get(message.sequence) == message.floor else "unknown_sequence")
        if sender != self._lines[request.floor].address:
            return self._count("wrong_sender")
        if message.floor != request.floor:
            return self._count("wrong_floor")
        if (message.command, message.parameter) != (request.command, request.parameter):
            return self._count("wrong_request")
        round_trip_ns = arrived_ns - request.sent_ns
        if request.tries == 1:
            with self._lock:
                self._round_trips.append(round_trip_ns)
                if len(self._round_trips) >= ROUND_TRIPS_KEPT:
                    self._fold()
        return self._end(request, Status(message.status).name.lower(), message, round_trip_ns)

    def _repeat_what_is_late(self) -> None:
        if not self._by_sequence:
            return
        now_ns = time.monotonic_ns()
        for request in [one for one in self._by_sequence.values() if now_ns - one.sent_ns >= self._timeout_ns]:
            if request.tries < self._tries_max:
                self._send(request, self._lines[request.floor].address)
            else:
                self._end(request, "no_answer" if request.was_sent else "not_sent")

    def _end(self, request: _Request, outcome: str, answer: Message | None = None, round_trip_ns: int = 0) -> None:
        message = request.message or Message(request.floor, request.command, 0, request.parameter, request.value)
        if request.message is not None:  # else it never was on its way
            del self._by_sequence[message.sequence]
            self._ended[message.sequence] = request.floor
            if len(self._ended) > ANSWERED_KEPT:
                del self._ended[next(iter(self._ended))]
        with self._lock:
            line = self._lines[request.floor]
            if line.on_its_way is request:
                line.on_its_way = None
            self._counts["requests"] += 1
            self._counts["answered" if answer is not None else outcome] += 1
        exchange = Exchange(message, outcome, request.tries, request.asked_ns or time.time_ns(), round_trip_ns, answer)
        if self._heard is not None:
            self._heard(exchange)
        request.future.set_result(exchange)

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1
