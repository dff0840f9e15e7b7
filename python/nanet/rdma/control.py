# SPDX-License-Identifier: Apache-2.0
"""What the two sides of `nanet rdma bench` say to each other beside the data: JSON objects over a nanet.channel, after both proved to know the token."""

from __future__ import annotations

import socket
from typing import Any, Self

from nanet._core import SetupError
from nanet.machine.channel import Channel, ChannelError, Refused, introduce
from nanet.rdma import NotDone

PURPOSE = "nanet rdma bench"
MESSAGE_BYTES_MAX = 4096
SEND_S = 10.0
SILENT_S_MAX = 600.0  # of the side that asks, between two questions, while others wait


def secret_of(token: int) -> str:
    """What both sides prove to know."""
    return f"{token:016x}"


class Control:
    """One end. All raise NotDone where the other side is gone, silent, or says what it should not."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    @classmethod
    def connect(cls, address: str, port: int, token: int, timeout_s: float) -> Self:
        """To a side that listens. Raises SetupError where it refuses."""
        try:
            channel = Channel(socket.create_connection((address, port), timeout_s))
        except OSError as error:
            raise NotDone(
                f"no other side at {address} port {port} ({error.strerror or error}) start nanet rdma bench --serve there"
            ) from None
        try:
            introduce(channel, PURPOSE, secret_of(token), {}, timeout_s)
        except Refused as error:
            channel.close()
            raise SetupError(f"the other side refuses ({error.strerror}) give both the same token, and the same nanet") from None
        except ChannelError as error:
            channel.close()
            raise NotDone(f"the other side at {address} port {port} is gone ({error.strerror}) see whether it is busy") from None
        return cls(channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    @property
    def own_address(self) -> str:
        """Of this end, as the other side sees it."""
        return self._channel.own_address

    def is_open(self) -> bool:
        """Whether the other side is still there; what it says is thrown away."""
        try:
            self.receive(0.0)
        except NotDone:
            return False
        return True

    def send(self, **message: Any) -> None:
        """A message."""
        try:
            self._channel.send_json(message, SEND_S)
        except ChannelError as error:
            raise NotDone(f"the other side cannot be told anything ({error.strerror}) see whether it runs") from None

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message; None: none came within timeout_s."""
        try:
            return self._channel.receive_json(timeout_s, MESSAGE_BYTES_MAX)
        except ChannelError as error:
            raise NotDone(f"the other side is gone ({error.strerror}) see why it ended") from None
