# SPDX-License-Identifier: Apache-2.0
"""Where units go: a queue of bounded length and a thread for each destination, so that one that is slow or gone disturbs no other.

A unit is not copied on its way: it lies in the buffer into which its packets came until all destinations have sent it or given it up. Books of a
destination, in units:  units_in = units_sent + units_waiting + queue_full + unacknowledged + refused + left_at_end.
"""

from __future__ import annotations

import contextlib
import fcntl
import select
import socket
import struct
import termios
import threading
import time
from collections import Counter, deque
from typing import Any, Protocol

from nanet.config.km3_server import KINDS, Destination
from nanet.km3.units import Unit, packet_count, packets, unit_head

LOSSES = ("queue_full", "unacknowledged", "refused", "left_at_end")
"""queue_full: it was behind. unacknowledged: given to the kernel, and its machine never said that it has them, when the connection ended.
refused: the kernel did not take a packet (UDP). left_at_end: they waited when the server ended."""
WAIT_MS = 100
UNACKNOWLEDGED_KEPT = 65536
CONNECT_S = 2.0


class Held(Protocol):
    """What keeps a buffer until it is released: a completion."""

    def release(self) -> None: ...


class Parcel:
    """A unit on its way. Its counts are changed under the lock of all destinations; the buffer is given back by the relay's thread alone."""

    __slots__ = ("bytes", "held", "in_use", "is_copied", "ranges", "unit", "view", "wanted")

    def __init__(self, unit: Unit, view: memoryview, ranges: list[list[int]], held: Held) -> None:
        self.unit, self.view, self.ranges, self.held = unit, view, ranges, held
        self.bytes = len(view)
        self.wanted = 0  # destinations that still want it
        self.in_use = 0  # system calls that read it now
        self.is_copied = False


class Outlet:
    """One destination: `offer` never waits."""

    def __init__(self, config: Destination, lock: threading.Lock) -> None:
        self.name, self.config = config.name, config
        self.kinds = frozenset(1 + KINDS.index(kind) for kind in config.kinds)
        self.notes: deque[str] = deque(maxlen=20)
        """What happened to the connection, newest last."""
        self.is_connected = False
        self._lock, self._filled = lock, threading.Condition(lock)
        self._queue: deque[tuple[int, Parcel]] = deque()
        self._queued_bytes = 0
        self._counts: Counter[str] = Counter()
        self._stopping = threading.Event()
        self._drain_until_s = 0.0
        self._thread = threading.Thread(target=self._run, name=f"km3-to-{config.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, drain_s: float = 1.0) -> None:
        """Sends what waits for at most so long, then gives the rest up."""
        self._drain_until_s = time.monotonic() + drain_s
        self._stopping.set()
        with self._lock:
            self._filled.notify_all()
        self._thread.join()
        with self._lock:
            while self._queue:
                self._give_up(self._queue.popleft()[1], "left_at_end")

    def offer(self, parcel: Parcel) -> None:
        """Queues a unit, or counts that it was not."""
        with self._lock:
            self._counts["units_in"] += 1
            self._counts["bytes_in"] += parcel.bytes
            number = self._number(parcel)  # of what is dropped, too: who receives sees the gap
            if self._queued_bytes + parcel.bytes > self.config.queue_bytes or self._stopping.is_set():
                self._counts["queue_full" if not self._stopping.is_set() else "left_at_end"] += 1
                return
            parcel.wanted += 1
            self._queue.append((number, parcel))
            self._queued_bytes += parcel.bytes
            self._filled.notify()

    def books(self) -> dict[str, Any]:
        with self._lock:
            counts = {name: self._counts[name] for name in ("units_in", "bytes_in", "units_sent", "bytes_sent", *LOSSES)}
            more = {name: count for name, count in self._counts.items() if name not in counts}
            return counts | {
                "units_waiting": len(self._queue),
                "bytes_waiting": self._queued_bytes,
                **more,
                "connected": self.is_connected,
            }

    def _number(self, parcel: Parcel) -> int:
        raise NotImplementedError

    def _send(self, number: int, parcel: Parcel) -> bool:
        """Sends it, or part of it: True when nothing more is to be done about it."""
        raise NotImplementedError

    def _connect(self) -> bool:
        raise NotImplementedError

    def _disconnect(self) -> None:
        raise NotImplementedError

    def _idle(self) -> None:
        """Called now and then while there is nothing to send."""

    def _run(self) -> None:
        while not self._is_over():
            if not self.is_connected and not self._connect():
                self._stopping.wait(self.config.reconnect_s)
                if self._stopping.is_set():
                    break
                continue
            with self._lock:
                if not self._queue:
                    self._filled.wait(WAIT_MS / 1e3)
                number, parcel = self._queue[0] if self._queue else (0, None)
            if parcel is None:
                self._idle()
            elif self._send(number, parcel):
                with self._lock:
                    self._queue.popleft()
                    self._queued_bytes -= parcel.bytes
                    parcel.wanted -= 1
        if self.is_connected:
            self._disconnect()

    def _is_over(self) -> bool:
        if not self._stopping.is_set():
            return False
        with self._lock:
            is_empty = not self._queue
        return is_empty or time.monotonic() >= self._drain_until_s

    def _give_up(self, parcel: Parcel, reason: str) -> None:
        self._counts[reason] += 1
        self._queued_bytes -= parcel.bytes
        parcel.wanted -= 1

    def _write(self, connected: socket.socket, head: bytes, parcel: Parcel, begin: int, end: int) -> int:
        """One system call with the bytes where they lie. Raises OSError."""
        with self._lock:
            view = parcel.view  # the relay may put a copy there, and releases the buffer when in_use is 0
            parcel.in_use += 1
        try:
            return connected.sendmsg((head, view[begin:end]) if head else (view[begin:end],))
        finally:
            with self._lock:
                parcel.in_use -= 1


class TcpOutlet(Outlet):
    """Connects, and connects again. A unit that was half sent when a connection ended is sent whole on the next one."""

    def __init__(self, config: Destination, lock: threading.Lock) -> None:
        super().__init__(config, lock)
        self._socket: socket.socket | None = None
        self._next = 0
        self._handed_bytes = 0  # to the kernel, on this connection
        self._unacknowledged: deque[tuple[int, int]] = deque()  # (end of the unit in the connection's bytes, its length)

    def _number(self, parcel: Parcel) -> int:
        self._next += 1
        return self._next - 1

    def _connect(self) -> bool:
        host, _, port = self.config.endpoint.removeprefix("tcp://").rpartition(":")
        try:
            made = socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S)
        except OSError as error:
            self._counts["connects_failed"] += 1
            self._note(f"no connection ({(error.strerror or str(error)).lower()})")
            return False
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self.config.stalled_s * 1000))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket, self._handed_bytes, self.is_connected = made, 0, True
        self._unacknowledged.clear()
        self._counts["connects"] += 1
        self._note("connected")
        return True

    def _send(self, number: int, parcel: Parcel) -> bool:
        assert self._socket is not None
        self._idle()
        if not self.is_connected:
            return False  # it has closed: what is sent now would be lost
        head = unit_head(parcel.unit, parcel.bytes, parcel.ranges, number)
        total, sent, moved_s = len(head) + parcel.bytes, 0, time.monotonic()
        try:
            while sent < total:
                try:
                    count = self._write(self._socket, head[sent:], parcel, max(0, sent - len(head)), parcel.bytes)
                    sent, moved_s = sent + count, time.monotonic()
                except BlockingIOError:
                    self._wait_for_room(moved_s)
        except OSError as error:
            self._counts["units_cut"] += 1 if sent else 0
            self._break(error.strerror or str(error))
            return False
        self._handed_bytes += total
        self._unacknowledged.append((self._handed_bytes, total))
        if len(self._unacknowledged) > UNACKNOWLEDGED_KEPT:
            self._unacknowledged.popleft()
        with self._lock:
            self._counts["units_sent"] += 1
            self._counts["bytes_sent"] += parcel.bytes
        return True

    def _wait_for_room(self, moved_s: float) -> None:
        assert self._socket is not None
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        if poll.poll(WAIT_MS):
            return
        if time.monotonic() - moved_s > self.config.stalled_s:
            raise OSError(0, f"it took nothing for {self.config.stalled_s:g} s")
        if self._stopping.is_set() and time.monotonic() >= self._drain_until_s:
            raise OSError(0, "the server ends")

    def _idle(self) -> None:
        """A destination says nothing: if it can be read, it has closed."""
        assert self._socket is not None
        try:
            said = self._socket.recv(4096)
        except BlockingIOError:
            return None
        except OSError as error:
            return self._break(error.strerror or str(error))
        if not said:
            return self._break("it closed the connection")
        self._counts["bytes_unexpected"] += len(said)
        return None

    def _break(self, why: str) -> None:
        self._note(f"the connection ended ({why.lower()})")
        self._counts["breaks"] += 1
        self._disconnect(is_broken=True)

    def _disconnect(self, *, is_broken: bool = False) -> None:
        assert self._socket is not None
        if not is_broken:
            self._linger()
        self._book_unacknowledged()
        self._socket.close()
        self._socket, self.is_connected = None, False

    def _linger(self) -> None:
        """At the end of the server: what the kernel has is given time to arrive."""
        assert self._socket is not None
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        while self._unsent_bytes() > 0 and time.monotonic() < self._drain_until_s:
            time.sleep(0.005)

    def _unsent_bytes(self) -> int:
        """In the kernel, without an acknowledgement; the end that shutdown sends counts as one byte."""
        assert self._socket is not None
        try:
            return int(struct.unpack("i", fcntl.ioctl(self._socket, termios.TIOCOUTQ, b"\0\0\0\0"))[0])
        except OSError:
            return 0

    def _book_unacknowledged(self) -> None:
        arrived = self._handed_bytes - self._unsent_bytes()
        with self._lock:
            lost = [length for end, length in self._unacknowledged if end > arrived]
            self._counts["units_sent"] -= len(lost)
            self._counts["unacknowledged"] += len(lost)
        self._unacknowledged.clear()

    def _note(self, what: str) -> None:
        text = f"{self.name}: {what}"
        if not self.notes or self.notes[-1] != text:
            self.notes.append(text)


class UdpOutlet(Outlet):
    """Cuts units into packets as floors send them."""

    def __init__(self, config: Destination, lock: threading.Lock) -> None:
        super().__init__(config, lock)
        self._socket: socket.socket | None = None
        self._next: Counter[tuple[int, int, int]] = Counter()

    def _number(self, parcel: Parcel) -> int:
        stream = parcel.unit[:3]
        self._next[stream] += packet_count(parcel.unit.kind, parcel.bytes, parcel.ranges)
        return self._next[stream] - packet_count(parcel.unit.kind, parcel.bytes, parcel.ranges)

    def _connect(self) -> bool:
        host, _, port = self.config.endpoint.removeprefix("udp://").rpartition(":")
        try:
            family, kind, _, _, address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
            made = socket.socket(family, kind)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
            made.setblocking(False)
            made.connect(address)
        except OSError as error:
            self._counts["connects_failed"] += 1
            self.notes.append(f"{self.name}: {(error.strerror or str(error)).lower()}")
            return False
        self._socket, self.is_connected = made, True
        return True

    def _disconnect(self) -> None:
        assert self._socket is not None
        self._socket.close()
        self._socket, self.is_connected = None, False

    def _send(self, number: int, parcel: Parcel) -> bool:
        is_whole = True
        for head, begin, end in packets(parcel.unit, parcel.bytes, parcel.ranges, number):
            if self._send_packet(head, parcel, begin, end):
                self._counts["packets_sent"] += 1
            else:
                self._counts["packets_refused"] += 1
                is_whole = False
        with self._lock:
            self._counts["units_sent" if is_whole else "refused"] += 1
            self._counts["bytes_sent"] += parcel.bytes if is_whole else 0
        return True

    def _send_packet(self, head: bytes, parcel: Parcel, begin: int, end: int) -> bool:
        assert self._socket is not None
        until_s = time.monotonic() + self.config.stalled_s
        while time.monotonic() < until_s and not (self._stopping.is_set() and time.monotonic() >= self._drain_until_s):
            try:
                self._write(self._socket, head, parcel, begin, end)
                return True
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._socket, select.POLLOUT)
                poll.poll(WAIT_MS)
            except ConnectionRefusedError:  # what an earlier packet met: this one was not sent yet
                self._counts["nobody_listens"] += 1
            except OSError:
                return False
        return False


def make_outlet(config: Destination, lock: threading.Lock) -> Outlet:
    return (TcpOutlet if config.endpoint.startswith("tcp://") else UdpOutlet)(config, lock)
