# SPDX-License-Identifier: Apache-2.0
"""Serves /metrics (Prometheus) and /health over HTTP, from one thread and on one address.

Requests are answered one after the other, each within a bounded time, so that no client can make the process grow.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import MappingProxyType
from typing import Any, Self

from prometheus_client.exposition import choose_encoder

from nanet.config import EngineConfig
from nanet.config_errors import ConfigError
from nanet.metrics import BOUNDS_NS, Readable, make_registry
from nanet.metrics_health import Health

REQUEST_WITHIN_S = 5.0
Answer = tuple[HTTPStatus, str, bytes]


class MetricsServer:
    """`with MetricsServer(config) as server: ...; server.serve(engine)`. The address is taken at once, requests once it serves."""

    def __init__(self, config: EngineConfig) -> None:
        """Raises ConfigError when the address cannot be had. config.metrics must not be None."""
        assert config.metrics is not None
        self._config = config
        self._server = _listen(config.metrics.endpoint, config.metrics.address())
        self._thread: threading.Thread | None = None
        self._health = Health(config)
        self._engine: Readable | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.pages, self._engine = {}, None  # the engine ends with its owner, not with the last reference in here

    def serve(self, engine: Readable) -> None:
        """Begins to answer, about this engine. Once."""
        self._engine = engine
        registry = make_registry(engine, self._config, self._health)

        def metrics(accept: str) -> Answer:
            encoder, content_type = choose_encoder(accept)
            return HTTPStatus.OK, content_type, encoder(registry)

        def health(_: str) -> Answer:
            now = engine.metrics(BOUNDS_NS)
            reasons = self._health.look(now)
            body = {"status": "failing" if reasons else "ok", "reasons": reasons, "uptime_s": now["elapsed_s"]}
            status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
            return status, "application/json", json.dumps(body).encode() + b"\n"

        self._server.pages = {"/metrics": metrics, "/health": health}
        self._server.server_activate()
        self._thread = threading.Thread(target=self._server.serve_forever, name="nanet-metrics", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Keeps the health's memory fresh between requests. Call it about once a second."""
        if self._engine is not None:
            self._health.look(self._engine.metrics(BOUNDS_NS))

    def end(self) -> None:
        """The run ends: /health says so from now on."""
        self._health.end()


class _Server(HTTPServer):
    pages: Mapping[str, Callable[[str], Answer]] = MappingProxyType({})

    def server_bind(self) -> None:
        """Without HTTPServer's look-up of the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is its own affair."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_WITHIN_S
    server_version = "nanet"
    sys_version = ""

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            known = " and ".join(self.server.pages)
            self._answer((HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"try {known}\n".encode()))
        else:
            self._answer(page(self.headers.get("Accept", "")))

    def _answer(self, answer: Answer) -> None:
        status, content_type, body = answer
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
        """Nothing: a scrape is not worth a log line."""


def _listen(endpoint: str, address: tuple[str, int]) -> _Server:
    try:
        server = _Server(address, _Handler, bind_and_activate=False)
        try:
            server.server_bind()
        except BaseException:
            server.server_close()
            raise
    except socket.gaierror:
        raise ConfigError([f"no metrics at {endpoint} (this host name is unknown) give an address of this machine"]) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ConfigError(
            [f"no metrics at {endpoint} ({why}) choose a free port and an address of this machine, or remove metrics"]
        ) from None
    return server
