# SPDX-License-Identifier: Apache-2.0
"""Orders to a running server, over a Unix socket: frames of JSON, an order and an answer a connection. Who may open the socket may order."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nanet.config.errors import ConfigError
from nanet.machine.channel import Channel, ChannelError

ORDER_BYTES_MAX = 1 << 16
ANSWER_BYTES_MAX = 1 << 24
ORDERED_WITHIN_S = 5.0
AT_ONCE_MAX = 16

Order = Callable[[dict[str, Any]], dict[str, Any]]


class CommandSocket:
    """Answers orders until it is closed, each in a thread of its own, so that a long one keeps no other waiting."""

    def __init__(self, path: str, order: Order) -> None:
        """Raises ConfigError where another server listens there, or the path cannot be had."""
        self._path, self._order = Path(path), order
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._free = threading.BoundedSemaphore(AT_ONCE_MAX)
        self._closing = False
        try:
            self._take_place()
        except OSError as error:
            self._listener.close()
            why = (error.strerror or str(error)).lower()
            raise ConfigError([f"no commands at {path} ({why}) give another path, where this account may write"]) from None
        self._thread = threading.Thread(target=self._serve, name="km3-commands", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        self._listener.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _take_place(self) -> None:
        if self._path.exists():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asks:
                try:
                    asks.connect(str(self._path))
                except ConnectionRefusedError:
                    self._path.unlink()  # of a server that ended without a word
                else:
                    raise OSError(0, "another server listens there")
        before = os.umask(0o177)
        try:
            self._listener.bind(str(self._path))
        finally:
            os.umask(before)
        self._listener.listen(AT_ONCE_MAX)
        self._listener.setblocking(False)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while not self._closing:
            if not poll.poll(100) or not self._free.acquire(timeout=0.1):
                continue
            try:
                connected = self._listener.accept()[0]
            except OSError:
                self._free.release()
                continue
            threading.Thread(target=self._answer, args=(connected,), name="km3-command", daemon=True).start()

    def _answer(self, connected: socket.socket) -> None:
        try:
            with Channel(connected) as channel, contextlib.suppress(ChannelError):
                said = channel.receive_json(ORDERED_WITHIN_S, ORDER_BYTES_MAX)
                if said is not None:
                    channel.send_json(self._done(said), ORDERED_WITHIN_S)
        finally:
            self._free.release()

    def _done(self, said: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._order(said)
        except Exception as error:  # an order that cannot be done is told, whatever it was
            return {"problem": str(error) or type(error).__name__}


def order(path: str, said: dict[str, Any], within_s: float = 30.0) -> dict[str, Any]:
    """What the server at `path` answers. Raises ConfigError where there is none, or where it cannot do it."""
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connected.connect(path)
    except OSError as error:
        connected.close()
        why = (
            "nothing listens there"
            if isinstance(error, (ConnectionRefusedError, FileNotFoundError))
            else (error.strerror or str(error)).lower()
        )
        raise ConfigError([f"no server at {path} ({why}) start it: nanet km3 server CONFIG"]) from None
    with Channel(connected) as channel:
        try:
            channel.send_json(said, ORDERED_WITHIN_S)
            answer = channel.receive_json(within_s, ANSWER_BYTES_MAX)
        except ChannelError as error:
            raise ConfigError([f"the server at {path} does not answer ({error.strerror}) see its output"]) from None
    if answer is None:
        raise ConfigError([f"the server at {path} does not answer (nothing came within {within_s:g} s) see its output"])
    if "problem" in answer:
        raise ConfigError([str(answer["problem"])])
    return answer
