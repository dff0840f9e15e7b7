# SPDX-License-Identifier: Apache-2.0
"""Any bytes from a client of the metrics pages, in any pieces: one answer, of the kind that a second reader of requests expects.

Input: sizes of the pieces (8 bytes), how the client behaves, then what it says.
"""

from __future__ import annotations

import contextlib
import socket
from http import HTTPStatus

from fuzz_target import Bytes, heard, in_virtual_time, instrumented, run

with instrumented("nanet.metrics.http_pages"):
    from nanet.metrics import http_pages

in_virtual_time(http_pages)
arrivals: list[socket.socket | None] = []
http_pages.accepted = lambda _: filter(None, [arrivals.pop(0)] if arrivals else [])  # type: ignore[assignment]


def broken(accept: str) -> http_pages.Answer:
    raise ValueError(f"no {accept}")


PAGES: dict[str, http_pages.Page] = {
    "/": lambda accept: (HTTPStatus.OK, "text/plain", b"front page"),
    "/large": lambda accept: (HTTPStatus.OK, "text/html", b"x" * 300_000),
    "/broken": broken,
}


def expected_status(said: bytes) -> int | None:
    """None: the request is not whole."""
    if len(said) > http_pages.HEADER_BYTES_MAX:
        return 431
    head = said.replace(b"\r\n", b"\n")
    if b"\n\n" not in head:
        return None
    words = head[: head.index(b"\n")].decode("latin-1").split(" ")
    if len(words) != 3 or words[2][:7] != "HTTP/1.":
        return 400
    if words[0] not in ("GET", "HEAD"):
        return 405
    path = words[1].split("?")[0]
    return 404 if path not in PAGES else 500 if path == "/broken" else 200


def require_answer(answer: bytes, said: bytes) -> None:
    """Whole, and as its own fields say."""
    status = expected_status(said)
    head, end, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    found = int(lines[0].split(" ")[1])
    # A field that Python's reader refuses is refused here too.
    assert end and lines[0].startswith("HTTP/1.1 ") and (found == status or (found == 400 and status != 431)), (lines[0], status)
    fields = dict(line.split(": ", 1) for line in lines[1:])
    assert fields["Connection"] == "close"
    is_head = found in (200, 404, 500) and said.startswith(b"HEAD ")
    assert len(body) == (0 if is_head else int(fields["Content-Length"])), "as long as it says"


def check(data: bytes) -> None:
    """One client, or too many."""
    if len(data) > 9500:
        return
    sizes, how, said = Bytes(data[:8]), Bytes(data[8:9]).number(), data[9:]
    server = http_pages.PageServer(("127.0.0.1", 0))
    server.pages = PAGES
    try:
        server.listen()
        server._selector.register(server._listener, 1)
        if how & 0x80:
            too_many(server, how)
        else:
            one_client(server, sizes, how, said)
    finally:
        server._selector.unregister(server._listener)
        server.end()
        server.serve()  # until it is told to end: at once
        server.close()
    assert not server._clients, "nobody is left"


def one_client(server: http_pages.PageServer, sizes: Bytes, how: int, said: bytes) -> None:
    """Says everything, and goes or reads."""
    ours, other = socket.socketpair()
    with other:
        other.setblocking(False)
        arrivals[:] = [ours]
        server._let_in()
        client = server._clients[ours]
        server._go_on(client)  # nothing is there yet
        sent = b""
        answer = b""
        while len(sent) < len(said) and client.answer is None and ours in server._clients:
            piece = said[len(sent) : len(sent) + 1 + 16 * sizes.number()]
            other.send(piece)
            sent += piece
            server._turn()
        if how & 1:
            other.shutdown(socket.SHUT_WR)
        if how & 2:
            other.close()
        turns = 0
        while ours in server._clients and turns < 40 and not how & 2:
            if client.answer is None and not how & 1:
                break  # it waits for more
            answer += heard(other)
            if how & 4:  # it talks on after its request
                with contextlib.suppress(BlockingIOError, OSError):
                    other.send(b"more")
            if client.answer is not None and not len(client.answer) and not how & 4:
                with contextlib.suppress(OSError):
                    other.shutdown(socket.SHUT_WR)
            server._turn()
            turns += 1
        if how & 2:
            while ours in server._clients:
                server._go_on(client)
            return
        with contextlib.suppress(OSError):
            answer += heard(other)
        if expected_status(sent) is None:
            assert not answer, "no answer before there is a request"
        else:
            require_answer(answer, sent)


def too_many(server: http_pages.PageServer, how: int) -> None:
    """The one who came first makes room; who is silent is sent away; one is gone before it is let in."""
    pairs = [socket.socketpair() for _ in range(http_pages.CLIENTS_MAX + how % 3)]
    arrivals[:] = [*(ours for ours, _ in pairs), None]
    for _ in range(len(arrivals)):
        server._let_in()
    assert len(server._clients) == http_pages.CLIENTS_MAX
    arrivals[:] = [None]
    with socket.create_connection(server._listener.getsockname()) as other:
        server._turn()
        assert not arrivals, "who comes is let in"
        other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # no port waits for late packets
    with contextlib.suppress(OSError):
        http_pages.PageServer(("256.0.0.1", 0))
        raise AssertionError("no machine has that address")
    for client in list(server._clients.values()):
        client.end_s = -1.0
    pairs[-1][1].send(b"GET")
    server._turn()
    assert not server._clients, "who is late is sent away"
    for _, other in pairs:
        other.close()


if __name__ == "__main__":
    run(check)
