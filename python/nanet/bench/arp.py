# SPDX-License-Identifier: Apache-2.0
"""Counts ARP on a cable: frames that a link with its own network stack and the kernel at the other end exchange, and that are no packets of
ours. Each request that comes is answered by one frame, so the count holds for both directions.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Self

from nanet.machine.netns import End

ETH_P_ARP = 0x0806
REQUEST = b"\x00\x01"


class Counter:
    """`with Counter(end) as asked: ...; asked.count()`: ARP requests for the end's address since it was opened; end None: always 0."""

    def __init__(self, end: End | None) -> None:
        self._end = end
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        if self._end is not None:
            with self._end.namespace.entered():
                self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ARP))
            self._socket.bind((self._end.interface, ETH_P_ARP))
            self._socket.setblocking(False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def count(self) -> int:
        """How many came since the last call."""
        if self._socket is None or self._end is None:
            return 0
        found = 0
        address = socket.inet_aton(self._end.address)
        with contextlib.suppress(BlockingIOError):
            while True:
                found += is_request_for(self._socket.recv(2048), address)
        return found


def is_request_for(frame: bytes, address: bytes) -> bool:
    """Whether an Ethernet frame asks who has an IPv4 address."""
    return len(frame) >= 42 and frame[12:14] == b"\x08\x06" and frame[20:22] == REQUEST and frame[38:42] == address
