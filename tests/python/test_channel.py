# SPDX-License-Identifier: Apache-2.0
"""Channels between processes: the secret is proved and never sent, everything is bounded, and strangers keep no one waiting."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from nanet.machine import channel
from nanet.machine.channel import HANDSHAKE_BYTES_MAX, Channel, ChannelError, Door, Refused, introduce, read_json

SECRET = "geheim: π, \U0001f511, 秘"
WITHIN_S = 60.0  # for what happens at once, on a machine that is busy


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield server


@contextlib.contextmanager
def opened(listener: socket.socket, secret: str = SECRET) -> Iterator[list[Channel]]:
    """A door with a thread behind it that admits all."""
    admitted: list[Channel] = []
    stop = threading.Event()

    def admit() -> None:
        with Door(listener, "a test", secret) as door:
            while not stop.is_set():
                visitor = door.next(0.02)
                if visitor is not None and visitor.about.get("come in"):
                    admitted.append(visitor.admit())
                elif visitor is not None:
                    visitor.refuse("not you")

    thread = threading.Thread(target=admit)
    thread.start()
    try:
        yield admitted
    finally:
        stop.set()
        thread.join()
        for one in admitted:
            one.close()


def first(admitted: list[Channel]) -> Channel:
    """The door's end. It is handed over a moment after the other end has been told that it may come in."""
    until_s = time.monotonic() + WITHIN_S
    while not admitted and time.monotonic() < until_s:
        time.sleep(0.001)
    return admitted[0]


def come(listener: socket.socket, secret: str = SECRET, purpose: str = "a test", **about: object) -> Channel:
    one = Channel(socket.create_connection(listener.getsockname()[:2]))
    try:
        introduce(one, purpose, secret, about or {"come in": True}, WITHIN_S)
    except BaseException:
        one.close()
        raise
    return one


def test_who_knows_the_secret_comes_in_and_it_is_never_sent(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    send = Channel.send
    monkeypatch.setattr(Channel, "send", lambda self, data, within_s: (sent.append(data), send(self, data, within_s))[1])
    with opened(listener) as admitted, come(listener) as here:
        here.send(b"x" * 3_000_000, WITHIN_S)
        assert first(admitted).receive(WITHIN_S, 2**22) == b"x" * 3_000_000
    assert len(sent) == 4
    assert not any(SECRET.encode() in one or json.dumps(SECRET).encode()[1:-1] in one for one in sent)
    assert len({json.loads(one)["challenge"] for one in sent[:2]}) == 2


def test_another_secret_is_answered_by_one_line_and_the_next_comes_in(listener: socket.socket) -> None:
    with opened(listener):
        for wrong in ("", "geheim", SECRET + " "):
            with pytest.raises(Refused, match="another secret"):
                come(listener, wrong)
        with pytest.raises(Refused, match="not you"):
            come(listener, SECRET, hello=1)
        with pytest.raises(ChannelError, match="it is no another test"):
            come(listener, SECRET, "another test")
        come(listener).close()


def test_a_secret_that_is_no_utf8_in_the_environment_is_its_bytes() -> None:
    assert channel.secret_bytes(b"\xff\xfe\xc3\xa9".decode("utf-8", "surrogateescape")) == b"\xff\xfe\xc3\xa9"


def test_a_listening_end_that_does_not_know_the_secret_is_not_believed(listener: socket.socket) -> None:
    """It says yes to everyone, and repeats the proof that it was given."""

    def lie() -> None:
        with Channel(listener.accept()[0]) as there, contextlib.suppress(ChannelError):
            there.send_json({"nanet": "a test", "version": 1, "challenge": "00"}, WITHIN_S)
            said = there.receive_json(WITHIN_S, HANDSHAKE_BYTES_MAX)
            assert said is not None
            there.send_json({"proof": said["proof"]}, WITHIN_S)
            there.receive(WITHIN_S, 1)

    listener.setblocking(True)
    liar = threading.Thread(target=lie)
    liar.start()
    with pytest.raises(Refused, match="it has another secret"):
        come(listener)
    liar.join()


def test_another_version_is_named(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(listener), Channel(socket.create_connection(listener.getsockname()[:2])) as here:
        assert here.receive_json(WITHIN_S, HANDSHAKE_BYTES_MAX)["version"] == 1  # type: ignore[index]
        here.send_json({"version": 2}, WITHIN_S)
        assert here.receive_json(WITHIN_S, HANDSHAKE_BYTES_MAX) == {"error": "it speaks version 2 of this channel, not 1"}


RUBBISH = [
    (2**40).to_bytes(8, "little"),
    (4090).to_bytes(8, "little") + b"[" * 4090,
    (20).to_bytes(8, "little") + b'{"version":' + b"1" * 9,
    (9).to_bytes(8, "little") + b"\xff\xfe{}[]{}\x00",
    (2).to_bytes(8, "little") + b"[]",
    b"\xff" * 5000,
    b"GET / HTTP/1.1\r\n\r\n",
]


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_rubbish_ends_its_connection_and_nothing_else(listener: socket.socket, rubbish: bytes) -> None:
    with opened(listener), socket.create_connection(listener.getsockname()[:2], timeout=WITHIN_S) as stranger:
        stranger.sendall(rubbish)
        with contextlib.suppress(ConnectionResetError):
            while stranger.recv(4096):
                pass
        come(listener).close()


@pytest.mark.parametrize(
    "said",
    [
        {"version": 1},
        {"version": 1, "challenge": [], "about": {}, "proof": None},
        {"version": 1, "challenge": "a", "about": "\ud800", "proof": "ä"},
        {"version": [[1]]},
    ],
)
def test_a_message_with_values_of_another_kind_is_refused(listener: socket.socket, said: dict[str, object]) -> None:
    with opened(listener), Channel(socket.create_connection(listener.getsockname()[:2])) as here:
        here.receive_json(WITHIN_S, HANDSHAKE_BYTES_MAX)
        here.send_json(said, WITHIN_S)
        assert "error" in (here.receive_json(WITHIN_S, HANDSHAKE_BYTES_MAX) or {})
        come(listener).close()


def test_more_strangers_than_there_are_places_keep_no_one_out(listener: socket.socket) -> None:
    """Silent ones, and ones that begin a message and send no more of it."""
    with opened(listener), contextlib.ExitStack() as stack:
        for index in range(3 * channel.STRANGERS_MAX):
            stranger = stack.enter_context(socket.create_connection(listener.getsockname()[:2], timeout=WITHIN_S))
            if index % 2:
                stranger.sendall((100).to_bytes(8, "little") + b"x")
            if index % 32 == 0:
                come(listener).close()
        come(listener).close()


def test_who_proves_nothing_in_time_is_sent_away_however_often_a_byte_comes(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "PROVES_WITHIN_S", 0.5)
    with opened(listener), socket.create_connection(listener.getsockname()[:2], timeout=WITHIN_S) as stranger:
        is_over = False
        for _ in range(int(WITHIN_S / 0.05)):
            try:
                stranger.sendall(b"\x00")
            except OSError:  # reset, or a broken pipe
                is_over = True
                break
            time.sleep(0.05)
        assert is_over
        come(listener).close()


def test_a_frame_that_is_not_whole_is_kept_and_is_not_the_end() -> None:
    a, b = socket.socketpair()
    with Channel(a) as here, b:
        b.sendall((3).to_bytes(8, "little") + b"ab")
        assert here.receive(0.01, 10) is None
        assert here.has_begun
        b.sendall(b"c" + (0).to_bytes(8, "little"))
        assert [here.receive(WITHIN_S, 10), here.receive(WITHIN_S, 10)] == [b"abc", b""]
        assert not here.has_begun
        b.sendall((11).to_bytes(8, "little"))
        with pytest.raises(ChannelError, match="a message of 11 bytes, 10 are the most"):
            here.receive(WITHIN_S, 10)


def test_who_takes_nothing_ends_the_sending() -> None:
    a, b = socket.socketpair()
    with Channel(a) as here, b, pytest.raises(ChannelError, match=r"it took nothing for 0\.1 s"):
        here.send(bytes(2**25), 0.1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": [1, {"b": "]]][[[[[[[[[[[[[[[[[[[[[[[["}]}', {"a": [1, {"b": "]]]" + "[" * 24}]}),
        (b"[" * 16 + b"]" * 16, None),
        (b"[" * 17 + b"]" * 17, ValueError),
        (b'{"a":' * 50_000, ValueError),
        (b'["\\"' + b"[" * 20 + b'"]', ['"' + "[" * 20]),
        (b"", ValueError),
        (b"]" * 40 + b"[" * 56, ValueError),
        (b"1" * 5000, ValueError),
    ],
)
def test_nesting_is_bounded(text: bytes, value: object) -> None:
    read: Callable[[], object] = lambda: read_json(text)  # noqa: E731
    if value is ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 (of json or of ours)
            read()
    elif value is not None:
        assert read() == value
    else:
        read()
