# SPDX-License-Identifier: Apache-2.0
"""What the two sides of `nanet rdma bench` say to each other beside the data: one JSON object a line, over a TCP socket."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from types import TracebackType
from typing import Any, Self

from nanet.rdma import NotDone

LINE_BYTES_MAX = 4096


class Control:
    """One end. `ask` and `receive` raise NotDone where the other side is gone, silent, or says that it cannot."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._waiting = b""

    @classmethod
    def connect(cls, address: str, port: int, timeout_s: float) -> Self:
        """To a side that listens."""
        try:
            return cls(socket.create_connection((address, port), timeout_s))
        except OSError as error:
            raise NotDone(
                f"no other side at {address} port {port} ({error.strerror or error}) start nanet rdma bench --serve there"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    @property
    def own_address(self) -> str:
        """Of this end, as the other side sees it."""
        return str(self._socket.getsockname()[0])

    def is_open(self) -> bool:
        """Whether the other side is still there; what it says is thrown away."""
        try:
            self.receive(0.0)
        except NotDone:
            return False
        return True

    def send(self, **message: Any) -> None:
        """Raises NotDone."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise NotDone(f"the other side cannot be reached ({error.strerror or error}) see whether it runs") from None

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message; None: none came within timeout_s."""
        end_s = time.monotonic() + timeout_s
        while b"\n" not in self._waiting:
            readable, _, _ = select.select([self._socket], [], [], max(0.0, end_s - time.monotonic()))
            if not readable:
                return None
            try:
                more = self._socket.recv(LINE_BYTES_MAX)
            except OSError as error:
                raise NotDone(f"the other side is gone ({error.strerror or error}) see why it ended") from None
            if not more:
                raise NotDone("the other side is gone (it closed the connection) see why it ended")
            self._waiting += more
            if len(self._waiting) > LINE_BYTES_MAX:
                raise NotDone("the other side is not nanet (its line is too long) give the place of nanet rdma bench --serve")
        line, _, self._waiting = self._waiting.partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise NotDone("the other side is not nanet (it does not send a JSON object) give the place of nanet rdma bench --serve")
        return message
