# SPDX-License-Identifier: Apache-2.0
"""Messages between two processes over a TCP socket: bounded in bytes, in nesting and in time, between ends that proved that they know one secret.

A frame is 8 bytes of length, little-endian, and that many bytes. Before the first one of a session both ends prove by HMAC-SHA256 over random numbers
of both that they know the secret, which itself is never sent. What comes afterwards is neither encrypted nor signed: whoever can change packets
between the two ends can change it.

    listening end   -> {"nanet": purpose, "version": 1, "challenge": hex}
    connecting end  -> {"version": 1, "challenge": hex, "about": {...}, "proof": hex}
    listening end   -> {"proof": hex}, or {"error": text}

The connecting end proves itself first, so that a stranger who connects learns nothing that a secret could be guessed from.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import re
import secrets
import select
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

VERSION = 1
HEAD_BYTES = 8
HANDSHAKE_BYTES_MAX = 4096
DEPTH_MAX = 16  # of JSON: nothing that nanet says is deeper than 4
PIECE_BYTES = 2**20  # that are taken from the socket at once
STRANGERS_MAX = 64  # that are at a door at once; the one that waited longest makes room
PROVES_WITHIN_S = 5.0
LET_IN_AT_ONCE = 8
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


class ChannelError(OSError):
    """The other end is gone, late, or no end of such a channel. `strerror` says why, in words."""

    def __init__(self, why: str) -> None:
        super().__init__(0, why)


class Refused(ChannelError):
    """The other end is there and does not take this one."""


def read_json(data: bytes, depth_max: int = DEPTH_MAX) -> Any:
    """The value. Raises ValueError for what is no JSON, or nested more deeply: Python's own reader would run out of its stack."""
    depth = 0
    for found in _BRACKETS.finditer(data):
        if found[0] in b"[{":
            depth += 1
            if depth > depth_max:
                raise ValueError(f"JSON nested more than {depth_max} deep")
        elif found[0] in b"]}":
            depth -= 1
    return json.loads(data)


def ready(sockets: Sequence[socket.socket], within_s: float, event: int = select.POLLIN) -> list[socket.socket]:
    """Those that can be read (or written to), as soon as there is one. Without select's limit of 1,024 descriptors."""
    poll = select.poll()
    of = {one.fileno(): one for one in sockets}
    for descriptor in of:
        poll.register(descriptor, event)
    return [of[descriptor] for descriptor, _ in poll.poll(max(0.0, 1000 * within_s))]


def accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """Clients that wait, some of them at once: the kernel keeps 128, and whom it turns away tries again a second later.

    None where they are gone again, or where there is no descriptor left: those who are here go in time.
    """
    for _ in range(LET_IN_AT_ONCE):
        try:
            yield listener.accept()[0]
        except BlockingIOError:
            return
        except OSError:
            time.sleep(0.001)
            return


def secret_bytes(secret: str) -> bytes:
    """Any text: UTF-8, and what was no UTF-8 in the environment as the bytes that it was."""
    return secret.encode("utf-8", "surrogateescape")


class Channel:
    """One end, of a socket that is connected. Raises ChannelError. Close it, or use `with`."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        if connected.family in (socket.AF_INET, socket.AF_INET6):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.socket = connected
        self._waiting = bytearray()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """At once, whatever was not sent yet."""
        with contextlib.suppress(OSError):
            self.socket.close()

    @property
    def own_address(self) -> str:
        """Of this end."""
        return str(self.socket.getsockname()[0])

    def send(self, data: bytes, within_s: float) -> None:
        """All of it within so many seconds."""
        deadline = time.monotonic() + within_s
        rest = memoryview(len(data).to_bytes(HEAD_BYTES, "little") + data)
        while rest:
            try:
                rest = rest[self.socket.send(rest[:PIECE_BYTES]) :]
            except BlockingIOError:
                if not ready([self.socket], deadline - time.monotonic(), select.POLLOUT):
                    raise ChannelError(f"it took nothing for {within_s:g} s") from None
            except OSError as error:
                raise ChannelError(error.strerror or str(error)) from None

    def receive(self, within_s: float, bytes_max: int) -> bytes | None:
        """The next frame; None: it is not there whole within so many seconds, what there is of it is kept. 0: what is there now."""
        deadline = time.monotonic() + within_s
        while True:
            whole = self._frame(bytes_max)
            if whole is not None:
                return whole
            if not ready([self.socket], deadline - time.monotonic()):
                return None
            self._take(min(PIECE_BYTES, HEAD_BYTES + bytes_max))

    @property
    def has_begun(self) -> bool:
        """Whether a part of a frame is there."""
        return bool(self._waiting)

    def send_json(self, value: Any, within_s: float) -> None:
        """As receive_json takes it."""
        self.send(json.dumps(value).encode(), within_s)

    def receive_json(self, within_s: float, bytes_max: int) -> dict[str, Any] | None:
        """The next object; None as of receive. What is none ends the channel."""
        data = self.receive(within_s, bytes_max)
        if data is None:
            return None
        try:
            value = read_json(data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ChannelError("it says no JSON object")
        return value

    def _frame(self, bytes_max: int) -> bytes | None:
        if len(self._waiting) < HEAD_BYTES:
            return None
        size = int.from_bytes(self._waiting[:HEAD_BYTES], "little")
        if size > bytes_max:
            raise ChannelError(f"a message of {size} bytes, {bytes_max} are the most")
        if len(self._waiting) < HEAD_BYTES + size:
            return None
        whole = bytes(self._waiting[HEAD_BYTES : HEAD_BYTES + size])
        del self._waiting[: HEAD_BYTES + size]
        return whole

    def _take(self, bytes_max: int) -> None:
        try:
            more = self.socket.recv(bytes_max)
        except BlockingIOError:
            return
        except OSError as error:
            raise ChannelError(error.strerror or str(error)) from None
        if not more:
            raise ChannelError("it closed the connection")
        self._waiting += more


def introduce(channel: Channel, purpose: str, secret: str, about: dict[str, Any], within_s: float) -> None:
    """The connecting end's part. Raises ChannelError; Refused where the listening end says that it does not take this one."""
    deadline = time.monotonic() + within_s
    hello = _said(channel, deadline, within_s)
    _check_greeting(hello, purpose)
    own = secrets.token_hex(32)
    text = json.dumps(about)
    spoken = (purpose, str(hello.get("challenge")), own, text)
    message = {"version": VERSION, "challenge": own, "about": text, "proof": _proof(secret, "connects", *spoken)}
    channel.send_json(message, max(0.0, deadline - time.monotonic()))
    answer = _said(channel, deadline, within_s)
    if "error" in answer:
        raise Refused(str(answer["error"])[:200])
    if not hmac.compare_digest(_ascii(answer.get("proof")), _proof(secret, "listens", *spoken).encode()):
        raise Refused("it has another secret")


@dataclass
class _Stranger:
    channel: Channel
    challenge: str
    deadline_s: float


@dataclass(frozen=True)
class Visitor:
    """Who proved to know the secret, and waits for the answer: `admit` or `refuse`."""

    channel: Channel
    about: dict[str, Any]
    _proof: str

    def admit(self) -> Channel:
        """Raises ChannelError."""
        self.channel.send_json({"proof": self._proof}, PROVES_WITHIN_S)
        return self.channel

    def refuse(self, why: str) -> None:
        """Says why, and closes."""
        _turn_away(self.channel, why)


class Door:
    """The listening end's part, for any number who come: whoever is slow or silent keeps no one else waiting, and is sent away in the end."""

    def __init__(self, listener: socket.socket, purpose: str, secret: str) -> None:
        listener.setblocking(False)
        self._listener, self._purpose, self._secret = listener, purpose, secret
        self._strangers: dict[socket.socket, _Stranger] = {}  # in the order in which they came
        self.wrong = 0
        """How many gave another secret."""

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        for stranger in self._strangers.values():
            stranger.channel.close()
        self._strangers.clear()

    def next(self, within_s: float) -> Visitor | None:
        """The next who knows the secret; None: no one within so many seconds."""
        deadline = time.monotonic() + within_s
        while True:
            now = time.monotonic()
            self._send_away_the_late(now)
            ends = [deadline, *(one.deadline_s for one in self._strangers.values())]
            found = ready([self._listener, *self._strangers], min(ends) - now)
            for one in found:
                visitor = self._hear(self._strangers[one]) if one in self._strangers else None
                if visitor is not None:
                    return visitor
            if self._listener in found:
                self._let_in()
            if time.monotonic() >= deadline:
                return None

    @property
    def is_asked(self) -> bool:
        """Whether someone came whom `next` has not looked at."""
        return bool(ready([self._listener], 0.0))

    def _let_in(self) -> None:
        for connected in accepted(self._listener):
            while len(self._strangers) >= STRANGERS_MAX:
                self._forget(next(iter(self._strangers.values()))).close()
            stranger = _Stranger(Channel(connected), secrets.token_hex(32), time.monotonic() + PROVES_WITHIN_S)
            try:
                stranger.channel.send_json({"nanet": self._purpose, "version": VERSION, "challenge": stranger.challenge}, 0.0)
            except ChannelError:
                stranger.channel.close()
            else:
                self._strangers[connected] = stranger

    def _hear(self, stranger: _Stranger) -> Visitor | None:
        channel = stranger.channel
        try:
            said = channel.receive_json(0.0, HANDSHAKE_BYTES_MAX)
        except ChannelError:
            self._forget(stranger).close()
            return None
        if said is None:
            return None
        self._forget(stranger)
        if said.get("version") != VERSION:
            _turn_away(channel, f"it speaks version {str(said.get('version'))[:20]} of this channel, not {VERSION}")
            return None
        spoken = (self._purpose, stranger.challenge, str(said.get("challenge")), str(said.get("about")))
        if not hmac.compare_digest(_ascii(said.get("proof")), _proof(self._secret, "connects", *spoken).encode()):
            self.wrong += 1
            _turn_away(channel, "another secret")
            return None
        try:
            about = read_json(str(said["about"]).encode())
        except ValueError:
            about = None
        if not isinstance(about, dict):
            _turn_away(channel, "it says nothing about itself")
            return None
        return Visitor(channel, about, _proof(self._secret, "listens", *spoken))

    def _send_away_the_late(self, now: float) -> None:
        for stranger in list(self._strangers.values()):
            if stranger.deadline_s <= now:
                self._forget(stranger).close()

    def _forget(self, stranger: _Stranger) -> Channel:
        del self._strangers[stranger.channel.socket]
        return stranger.channel


def _said(channel: Channel, deadline: float, within_s: float) -> dict[str, Any]:
    said = channel.receive_json(max(0.0, deadline - time.monotonic()), HANDSHAKE_BYTES_MAX)
    if said is None:
        raise ChannelError(f"it says nothing for {within_s:g} s")
    return said


def _check_greeting(hello: dict[str, Any], purpose: str) -> None:
    if hello.get("nanet") != purpose:
        raise ChannelError(f"it is no {purpose}")
    if hello.get("version") != VERSION:
        raise Refused(f"it speaks version {str(hello.get('version'))[:20]} of this channel, not {VERSION}: another nanet")


def _proof(secret: str, role: str, *spoken: str) -> str:
    """The role is in it: what one end said proves nothing for the other."""
    text = json.dumps([VERSION, role, *spoken]).encode()
    return hmac.new(secret_bytes(secret), text, hashlib.sha256).hexdigest()


def _ascii(proof: object) -> bytes:
    """What compare_digest takes, whatever was sent."""
    return str(proof).encode("utf-8", "backslashreplace")


def _turn_away(channel: Channel, why: str) -> None:
    with contextlib.suppress(ChannelError):
        channel.send_json({"error": why}, 0.0)
    channel.close()
