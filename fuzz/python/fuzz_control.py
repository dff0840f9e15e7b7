# SPDX-License-Identifier: Apache-2.0
"""The two ends of `nanet rdma bench` with whatever the other one says: a message, nothing, or one error of ours with a reason.

Input: how the other end behaves, then what it says.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
from typing import Any

from fuzz_target import Bytes, heard, in_virtual_time, instrumented, run, spoken_to

with instrumented("nanet.rdma.control", "nanet.machine.channel"):
    from nanet.rdma import control
from nanet import SetupError
from nanet.machine import channel
from nanet.rdma import NotDone

TOKEN, CHALLENGE = 0x1234, "c4" * 32

in_virtual_time(channel)
channel.secrets = type("Fixed", (), {"token_hex": staticmethod(lambda count: CHALLENGE)})  # type: ignore[attr-defined]
create_connection = socket.create_connection


def frame(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return len(data).to_bytes(8, "little") + data


def check(data: bytes) -> None:
    """One session."""
    if len(data) > 5000:
        return
    how, said = Bytes(data[:1]).number(), data[1:]
    spoken = [channel.VERSION, "listens", control.PURPOSE, CHALLENGE, CHALLENGE, "{}"]
    proof = hmac.new(control.secret_of(TOKEN).encode(), json.dumps(spoken).encode(), hashlib.sha256).hexdigest()
    greeting = frame({"nanet": control.PURPOSE, "version": 1, "challenge": CHALLENGE})
    if how & 1:
        said = greeting + frame({"proof": proof}) + (frame(said) if how & 2 else said)
    elif how & 2:
        said = greeting + frame(said)
    with spoken_to(said, goes_on=bool(how & 4)) as (ours, other):

        def connect(address: tuple[str, int], timeout: float) -> socket.socket:
            if how & 8:
                raise ConnectionRefusedError(111, "Connection refused")
            return ours

        control.socket.create_connection = connect
        try:
            with control.Control.connect("127.0.0.1", 7, TOKEN, 0.05) as end:
                assert how & 1, "the other end knew the token"
                session(end, other, how)
        except (NotDone, SetupError) as error:
            assert ("(" in str(error) and "\n" not in str(error)) or not str(error).isprintable(), "problem (why) suggestion"
        finally:
            control.socket.create_connection = create_connection


def session(end: control.Control, other: socket.socket, how: int) -> None:
    """Some messages each way."""
    assert end.own_address == "127.0.0.1"
    if how & 16:
        other.close()
    end.send(do="fill", bytes=3)
    if not how & 16:
        assert heard(other).endswith(frame({"do": "fill", "bytes": 3}))
    for _ in range(3):
        message = end.receive(0.01)
        assert message is None or isinstance(message, dict)
    end.is_open()


if __name__ == "__main__":
    run(check)
