# SPDX-License-Identifier: Apache-2.0
"""Frames, JSON and the handshake of nanet.channel, with whatever the other end says; against a second reader of each, written here.

Input: one byte for what is tried, then what the other end says.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import socket
from collections.abc import Callable
from typing import Any

from fuzz_target import Bytes, heard, in_virtual_time, instrumented, run, spoken_to

with instrumented("nanet.machine.channel"):
    from nanet.machine import channel

SECRET, PURPOSE, CHALLENGE = "a s\u00e9cret", "nanet fuzz", "c4" * 32
BYTES_MAX = 300

in_virtual_time(channel)
channel.secrets = type("Fixed", (), {"token_hex": staticmethod(lambda count: CHALLENGE)})  # type: ignore[attr-defined]


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


def check_json(data: bytes) -> None:
    """Taken exactly where Python's own reader takes it, and it is not too deep."""
    try:
        expected = json.loads(data)
        is_good = depth_of(expected) <= channel.DEPTH_MAX
    except (ValueError, RecursionError):
        expected, is_good = None, False
    try:
        found = channel.read_json(data)
    except ValueError:
        assert not is_good or not data.isascii(), "JSON that is good is taken"  # UTF-16 may look deeper than it is
        return
    assert repr(found) == repr(expected), "and means the same"
    assert depth_of(found) <= channel.DEPTH_MAX, "and is not deep"


def check_frames(data: bytes) -> None:
    """Whatever pieces they come in, and one after the other as a second reader finds them."""
    sizes, said = Bytes(data[:8]), data[8:]
    ours, other = socket.socketpair()
    with channel.Channel(ours) as end, other:
        found: list[bytes] = []
        broken = False
        rest = said
        while rest and not broken:
            size = 1 + sizes.number()
            other.sendall(rest[:size])
            rest = rest[size:]
            try:
                while (one := end.receive(0.0, BYTES_MAX)) is not None:
                    found.append(one)
            except channel.ChannelError:
                broken = True
        expected, left, too_long = frames_of(said)
        assert found == expected and broken == too_long, "frames"
        assert broken or end.has_begun == bool(left), "what is left"
        if not broken:
            other.close()
            with contextlib.suppress(channel.ChannelError):
                assert end.receive(0.0, BYTES_MAX) is None, "nothing comes from who is gone"


def frames_of(said: bytes) -> tuple[list[bytes], bytes, bool]:
    found = []
    while len(said) >= 8:
        size = int.from_bytes(said[:8], "little")
        if size > BYTES_MAX:
            return found, said, True
        if len(said) < 8 + size:
            break
        found.append(said[8 : 8 + size])
        said = said[8 + size :]
    return found, said, False


def check_objects(data: bytes) -> None:
    """Objects, and nothing else."""
    with spoken_to(frame(data[:BYTES_MAX])) as (ours, other), channel.Channel(ours) as end:
        try:
            value = end.receive_json(0.0, BYTES_MAX)
        except channel.ChannelError as error:
            assert error.strerror, "an error says why"
            return
        assert isinstance(value, dict) and repr(value) == repr(json.loads(data[:BYTES_MAX])), "an object is what was said"
        assert end.own_address == "127.0.0.1"
        end.send_json(value, 1.0)
        assert repr(json.loads(heard(other)[8:])) == repr(value), "and is said again"


def proof(role: str, *spoken: str) -> str:
    """As the head of nanet.channel has it."""
    return hmac.new(SECRET.encode(), json.dumps([1, role, *spoken]).encode(), hashlib.sha256).hexdigest()


def check_introduce(data: bytes) -> None:
    """The connecting end believes only who proves to know the secret."""
    how, said = Bytes(data[:1]).number(), data[1:]
    if how & 1:  # right up to the answer, which is the input
        about = json.dumps({"rank": 1})
        answer = {"proof": proof("listens", PURPOSE, CHALLENGE, CHALLENGE, about)} if how & 2 else None
        greeting = frame(json.dumps({"nanet": PURPOSE, "version": 1, "challenge": CHALLENGE}).encode())
        said = greeting + frame(json.dumps(answer).encode() if answer else said)
    with spoken_to(said, goes_on=bool(how & 4)) as (ours, _), channel.Channel(ours) as end:
        try:
            channel.introduce(end, PURPOSE, SECRET, {"rank": 1}, 0.05)
        except channel.ChannelError as error:
            assert how & 3 != 3, "who knows the secret is believed"
            assert error.strerror and len(error.strerror) <= 250, "an error says why, in a line"
            return
        assert how & 3 == 3, "who does not know the secret is not believed"


def check_door(data: bytes) -> None:
    """The listening end lets in who proves to know the secret, and says in an object what it is."""
    how, text = Bytes(data[:1]).number(), data[1:]
    about = text.decode("utf-8", "replace")
    message: dict[str, Any] = {"version": 1 + (how >> 1 & 1), "challenge": "theirs", "about": about}
    message["proof"] = proof("connects", PURPOSE, CHALLENGE, "theirs", about)[how >> 2 & 1 :]
    said = frame(json.dumps(message).encode()) if how & 1 else text
    is_good = how & 7 == 1 and is_object(about) and len(said) - 8 <= channel.HANDSHAKE_BYTES_MAX
    with spoken_to(said, goes_on=bool(how & 8)) as (ours, other), socket.create_server(("127.0.0.1", 0)) as listener:
        arrivals = [ours, None]
        channel.accepted = lambda _: filter(None, [arrivals.pop(0)])  # type: ignore[assignment]
        with channel.Door(listener, PURPOSE, SECRET) as door:
            door._let_in()
            door._let_in()
            visitor = door.next(0.05)
            assert (visitor is not None) == is_good, "exactly who knows the secret is let in"
            assert not door.is_asked
            if visitor is None:
                return
            assert json.dumps(visitor.about) == json.dumps(json.loads(about)), "and is what it says"
            if how & 16:
                visitor.refuse("no")
                assert b'"error": "no"' in heard(other)
            else:
                with contextlib.suppress(channel.ChannelError), visitor.admit():
                    assert proof("listens", PURPOSE, CHALLENGE, "theirs", about).encode() in heard(other), "the answer proves too"


def is_object(text: str) -> bool:
    try:
        value = json.loads(text.encode())
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and depth_of(value) <= channel.DEPTH_MAX


def check_door_is_full(data: bytes) -> None:
    """Whoever waited longest makes room, and all are gone in the end."""
    count = channel.STRANGERS_MAX + Bytes(data).number() % 4
    pairs = [socket.socketpair() for _ in range(count)]
    arrivals = [ours for ours, _ in pairs]
    if Bytes(data[1:]).number() % 2:
        pairs[-1][1].close()  # gone before it is greeted
    channel.accepted = lambda _: filter(None, [arrivals.pop(0)])  # type: ignore[assignment]
    with socket.create_server(("127.0.0.1", 0)) as listener, channel.Door(listener, PURPOSE, SECRET) as door:
        for _ in range(count):
            door._let_in()
        assert len(door._strangers) <= channel.STRANGERS_MAX
        assert door.next(2 * channel.PROVES_WITHIN_S) is None and not door._strangers, "who says nothing is sent away"
    for _, other in pairs:
        other.close()


CHECKS: list[Callable[[bytes], None]] = [
    check_json, check_frames, check_objects, check_introduce, check_door, check_json, check_introduce, check_door,
]  # fmt: skip


def check(data: bytes) -> None:
    """One of them."""
    if len(data) > 2000 or not data:
        return
    (check_door_is_full if data[0] == 255 else CHECKS[data[0] % len(CHECKS)])(data[1:])


if __name__ == "__main__":
    assert secrets  # the module, of which nanet.channel has a fixed one
    run(check)
