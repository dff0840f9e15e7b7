# SPDX-License-Identifier: Apache-2.0
"""What a rank is told, by its environment, by its command line, by a file, and by whoever stands in for another rank.

Input: one byte for what is told, then what is.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz_target import Bytes, in_virtual_time, instrumented, run, spoken_to

with instrumented("nanet.stencil.rendezvous", "nanet.machine.channel"):
    from nanet.machine import channel
    from nanet.stencil import rendezvous
from nanet import SetupError
from nanet.stencil.rendezvous import RankError, Rendezvous, place_of, rank_of_environment

SECRET, CHALLENGE = "secret", "c4" * 32
TIMEOUT_S = 0.5

in_virtual_time(channel, rendezvous)
channel.secrets = type("Fixed", (), {"token_hex": staticmethod(lambda count: CHALLENGE)})  # type: ignore[attr-defined]
create_server = socket.create_server
create_connection = socket.create_connection


def frame(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return len(data).to_bytes(8, "little") + data


def proof(role: str, about: str) -> str:
    spoken = [channel.VERSION, role, rendezvous.PURPOSE, CHALLENGE, CHALLENGE, about]
    return hmac.new(SECRET.encode(), json.dumps(spoken).encode(), hashlib.sha256).hexdigest()


def one_line(error: Exception) -> None:
    assert str(error).count("(") >= 1 and len(str(error)) < 5000, "problem (why) suggestion"


def check_place(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        place = place_of(text)
    except SetupError as error:
        return one_line(error)
    if place.file is None:
        assert text.rpartition(":")[0].strip("[]") == place.host and 0 < place.port < 65536
        assert place.is_loopback == (place.host in ("127.0.0.1", "::1", "localhost"))
    else:
        assert "/" in text
    return None


def check_environment(data: bytes) -> None:
    values = data.decode("utf-8", "surrogateescape").split("\0")
    names = [name for pair in rendezvous.RANK_VARIABLES for name in pair]
    environment = {name: value for name, value in zip(names, values, strict=False) if value != "-"}
    try:
        rank, count = rank_of_environment(environment)
    except SetupError as error:
        return one_line(error)
    assert 0 <= rank < count
    return None


def check_file(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sub" / "meet"
        ranks = Rendezvous(1, 2, rendezvous.Place(file=path), "", TIMEOUT_S, SECRET)
        assert ranks._where() == ("", 0)
        path.parent.mkdir()
        path.write_bytes(data)
        host, port = ranks._where()
        assert (host == "") == (port == 0) and 0 <= port < 65536


@contextlib.contextmanager
def server_with(visitors: list[bytes], goes_on: bool) -> Iterator[None]:
    """Rank 0 finds these at its door, each of whom has said all that it will."""
    others = []

    def made(address: tuple[str, int], **more: Any) -> socket.socket:
        server = create_server(("127.0.0.1", 0))
        for said in visitors:
            other = create_connection(server.getsockname())
            others.append(other)
            other.sendall(said)
            if not goes_on:
                other.shutdown(socket.SHUT_WR)
        return server

    rendezvous.socket.create_server = made
    try:
        yield
    finally:
        rendezvous.socket.create_server = create_server
        for other in others:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # no port waits for late packets
            other.close()


def check_rank_0(data: bytes) -> None:
    """It takes ranks of this run, each once, and believes nothing else."""
    how, text = Bytes(data[:1]).number(), data[1:]
    about = text.split(b"\n", 1)[0].decode("utf-8", "replace") if how & 1 else '{"rank": 1, "count": 2}'
    messages = text.split(b"\n", 1)[-1] if how & 1 else text
    hello = frame({"version": 1, "challenge": CHALLENGE, "about": about, "proof": proof("connects", about)})
    spoken = hello + (frame(messages) if how & 2 else messages)
    stranger = frame({"version": 1, "challenge": CHALLENGE, "about": "{}", "proof": "no"})
    visitors = [text, hello[:9], stranger][: how >> 4 & 3] + ([spoken] if not how & 64 else [])
    idle: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        place = rendezvous.Place(file=Path(folder) / "meet") if how & 4 else rendezvous.Place("127.0.0.1", 7)
        ranks = Rendezvous(0, 2, place, "", TIMEOUT_S, SECRET)
        ranks.when_idle(lambda: idle.append(1))
        try:
            with server_with(visitors, bool(how & 8)), ranks:
                heard_of = json.loads(about)
                assert heard_of["rank"] == 1 and heard_of["count"] == 2, "it is a rank of this run"
                every = ranks.all("mine") if how & 128 else ranks.gather(b"mine")
                assert every is not None and len(every) == 2
                ranks.in_turn(lambda: None, 1.0)
        except RankError as error:
            one_line(error)
        assert not place.file or not place.file.exists(), "the file is gone with it"


def check_rank_1(data: bytes) -> None:
    """It believes only a rank 0 that knows the secret, and takes from it what is a message."""
    how, text = Bytes(data[:1]).number(), data[1:]
    about = json.dumps({"rank": 1, "count": 2})
    greeting = frame({"nanet": rendezvous.PURPOSE, "version": 1, "challenge": CHALLENGE})
    good = greeting + frame({"proof": proof("listens", about)})
    said = text if how & 1 else good + (frame(text) if how & 2 else text)
    place = rendezvous.Place("127.0.0.1", 7)
    with tempfile.TemporaryDirectory() as folder, spoken_to(said, goes_on=bool(how & 8)) as (ours, _):
        ends = [ours]

        def connect(address: tuple[str, int], timeout: float) -> socket.socket:
            if not ends:
                raise ConnectionRefusedError(111, "Connection refused")
            return ends.pop()

        rendezvous.socket.create_connection = connect
        if how & 4:
            place = rendezvous.Place(file=Path(folder) / "meet")
        if how & 4 and how & 16:
            Path(folder, "meet").write_text("127.0.0.1 7\n")
        try:
            with Rendezvous(1, 2, place, "", TIMEOUT_S, SECRET) as ranks:
                assert not how & 1 or said.startswith(greeting[:20]), "rank 0 knew the secret"
                assert ranks.gather(b"mine") is None
                ranks.share(None)
                ranks.all(1)
        except RankError as error:
            one_line(error)
        except ValueError:
            assert how & 1 == 0, "only a rank 0 that knows the secret can say what is no message"
        finally:
            rendezvous.socket.create_connection = create_connection


def check_alone(data: bytes) -> None:
    """A run of one rank speaks with nobody; a port that is taken is said."""
    with Rendezvous(0, 1, rendezvous.Place("127.0.0.1", 7), "", TIMEOUT_S, SECRET) as ranks:
        assert ranks.address == "127.0.0.1" and ranks.all(3) == [3]
    with contextlib.suppress(SetupError), Rendezvous(0, 2, rendezvous.Place("256.0.0.1", 1), "", TIMEOUT_S, SECRET):
        raise AssertionError("no machine has that address")


CHECKS: list[Callable[[bytes], None]] = [
    check_place,
    check_environment,
    check_file,
    check_rank_0,
    check_rank_1,
    check_rank_0,
    check_rank_1,
]


def check(data: bytes) -> None:
    """One of them."""
    if len(data) > 2000 or not data:
        return
    (check_alone if data[0] == 255 else CHECKS[data[0] % len(CHECKS)])(data[1:])


if __name__ == "__main__":
    run(check)
