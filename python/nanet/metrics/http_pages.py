# SPDX-License-Identifier: Apache-2.0
"""A small HTTP server for pages that are read: GET and HEAD, one answer a connection, one thread, everything bounded.

All clients are waited for together, so that one who is slow or silent keeps no one else waiting. Each has WITHIN_S for all of it, from the
connection to the last byte of the answer; when CLIENTS_MAX are there, the one that came first makes room for the next.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from nanet.machine.channel import accepted

WITHIN_S = 5.0
CLIENTS_MAX = 64
HEADER_BYTES_MAX = 8192
PIECE_BYTES = 65536

Answer = tuple[HTTPStatus, str, bytes]
Page = Callable[[str], Answer]  # takes the header field Accept


@dataclass
class _Client:
    socket: socket.socket
    end_s: float
    heard: bytearray = field(default_factory=bytearray)
    answer: memoryview | None = None  # what is left of it


class PageServer:
    """Holds an address from the beginning, answers from `serve` on, in the thread that calls it, until another calls `end`. Then `close`."""

    def __init__(self, address: tuple[str, int]) -> None:
        """Raises OSError when the address cannot be had."""
        self.pages: Mapping[str, Page] = {}
        self._listener = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        self._woken, self._wakes = os.pipe()
        try:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.setblocking(False)
            self._listener.bind(address)
        except BaseException:
            self.close()
            raise
        self._selector = selectors.DefaultSelector()
        self._clients: dict[socket.socket, _Client] = {}  # in the order in which they came

    def close(self) -> None:
        """Gives the address back. Not while `serve` runs."""
        self._listener.close()
        for descriptor in (self._woken, self._wakes):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def listen(self) -> None:
        """Clients may connect from now on."""
        self._listener.listen(128)

    def end(self) -> None:
        """Makes `serve` return."""
        os.write(self._wakes, b"x")

    def serve(self) -> None:
        """Answers until `end`."""
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        try:
            while self._turn():
                pass
        finally:
            for client in list(self._clients.values()):
                self._forget(client)
            self._selector.close()

    def _turn(self) -> bool:
        oldest = next(iter(self._clients.values()), None)  # all have the same time, so it ends first
        within_s = None if oldest is None else max(0.0, oldest.end_s - time.monotonic())
        for key, _ in self._selector.select(within_s):
            if key.fd == self._woken:
                return False
            if key.fileobj is self._listener:
                self._let_in()
            elif key.data.socket in self._clients:
                self._go_on(key.data)
        now = time.monotonic()
        for client in list(self._clients.values()):
            if client.end_s <= now:
                self._forget(client)
        return True

    def _let_in(self) -> None:
        for connected in accepted(self._listener):
            if len(self._clients) >= CLIENTS_MAX:
                self._forget(next(iter(self._clients.values())))
            connected.setblocking(False)
            client = _Client(connected, time.monotonic() + WITHIN_S)
            self._clients[connected] = client
            self._selector.register(connected, selectors.EVENT_READ, client)

    def _go_on(self, client: _Client) -> None:
        """Reads what came, or sends what can be sent: never waits."""
        try:
            if client.answer is not None and len(client.answer):
                self._send(client)
                return
            heard = client.socket.recv(HEADER_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            self._forget(client)
            return
        if not heard:
            self._forget(client)
        elif client.answer is None:  # else it talks on after its answer: no one listens
            client.heard += heard
            self._answer_if_whole(client)

    def _answer_if_whole(self, client: _Client) -> None:
        head, end, _ = bytes(client.heard).replace(b"\r\n", b"\n").partition(b"\n\n")
        if len(client.heard) > HEADER_BYTES_MAX:
            reply = _reply(_plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"{HEADER_BYTES_MAX} bytes are the most"))
        elif not end:
            return
        else:
            reply = self._reply_to(head)
        client.heard.clear()
        client.answer = memoryview(reply)
        self._selector.modify(client.socket, selectors.EVENT_WRITE, client)

    def _reply_to(self, head: bytes) -> bytes:
        line, _, fields = head.partition(b"\n")
        words = line.decode("latin-1").split(" ")
        try:
            accept = http.client.parse_headers(io.BytesIO(fields + b"\n\n")).get("Accept", "")
        except (http.client.HTTPException, ValueError):
            words = []
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _reply(_plain(HTTPStatus.BAD_REQUEST, "this is no HTTP/1.1 request"))
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return _reply(_plain(HTTPStatus.METHOD_NOT_ALLOWED, "pages are read: GET or HEAD"), "Allow: GET, HEAD\r\n")
        page = self.pages.get(target.partition("?")[0])
        if page is None:
            answer = _plain(HTTPStatus.NOT_FOUND, f"here are {' and '.join(self.pages)}")
        else:
            try:
                answer = page(accept)
            except Exception as error:  # one page that fails is no reason to serve no other
                answer = _plain(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")
        return _reply(answer, of_head=method == "HEAD")

    def _send(self, client: _Client) -> None:
        assert client.answer is not None
        client.answer = client.answer[client.socket.send(client.answer[:PIECE_BYTES]) :]
        if not len(client.answer):
            # Closed by the client, or when its time is over: closing now could throw away what it has not read yet.
            client.socket.shutdown(socket.SHUT_WR)
            self._selector.modify(client.socket, selectors.EVENT_READ, client)

    def _forget(self, client: _Client) -> None:
        self._selector.unregister(client.socket)
        del self._clients[client.socket]
        client.socket.close()


def _plain(status: HTTPStatus, text: str) -> Answer:
    return status, "text/plain; charset=utf-8", f"{text}\n".encode()


def _reply(answer: Answer, fields: str = "", *, of_head: bool = False) -> bytes:
    status, content_type, body = answer
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nServer: nanet\r\n{fields}Content-Type: {content_type}\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode("latin-1") + (b"" if of_head else body)
