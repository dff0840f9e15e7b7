# SPDX-License-Identifier: Apache-2.0
"""Serves /metrics (Prometheus), /health and /channels over HTTP, from one thread and on one address.

What a client may cost, in time and memory, is bounded by nanet.metrics.http_pages.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from http import HTTPStatus
from typing import Self

from prometheus_client.exposition import choose_encoder

from nanet.config.engine import EngineConfig
from nanet.config.errors import ConfigError
from nanet.metrics.engine import BOUNDS_NS, Readable, make_registry
from nanet.metrics.health import Health
from nanet.metrics.http_pages import Answer, PageServer
from nanet.result.channels import plain

SAME_PAGE_S = 0.02
"""A scrape that comes so soon after another gets the same page: making one takes milliseconds, and 64 clients would wait for one another."""


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
            self._server.end()
            self._thread.join()
        self._server.close()
        self._server.pages, self._engine = {}, None  # the engine ends with its owner, not with the last reference in here

    def serve(self, engine: Readable) -> None:
        """Begins to answer, about this engine. Once."""
        self._engine = engine
        registry = make_registry(engine, self._config, self._health)
        made: dict[str, tuple[float, bytes]] = {}  # by type: when, and the page

        def metrics(accept: str) -> Answer:
            encoder, content_type = choose_encoder(accept)
            if content_type not in made or time.monotonic() - made[content_type][0] > SAME_PAGE_S:
                made[content_type] = (time.monotonic(), encoder(registry))
            return HTTPStatus.OK, content_type, made[content_type][1]

        def health(_: str) -> Answer:
            now = engine.metrics(BOUNDS_NS)
            reasons = self._health.look(now)
            body = {"status": "failing" if reasons else "ok", "reasons": reasons, "uptime_s": now["elapsed_s"]}
            status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
            return status, "application/json", json.dumps(body).encode() + b"\n"

        def channels(_: str) -> Answer:
            now = plain(engine.metrics(BOUNDS_NS).get("channels") if self._config.processor.kind == "rich" else None)
            return HTTPStatus.OK, "application/json", json.dumps(now).encode() + b"\n"

        self._server.pages = {"/metrics": metrics, "/health": health, "/channels": channels}
        self._server.listen()
        self._thread = threading.Thread(target=self._server.serve, name="nanet-metrics", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Keeps the health's memory fresh between requests. Call it about once a second."""
        if self._engine is not None:
            self._health.look(self._engine.metrics(BOUNDS_NS))

    def end(self) -> None:
        """The run ends: /health says so from now on."""
        self._health.end()


def _listen(endpoint: str, address: tuple[str, int]) -> PageServer:
    try:
        return PageServer(address)
    except socket.gaierror:
        raise ConfigError([f"no metrics at {endpoint} (this host name is unknown) give an address of this machine"]) from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ConfigError(
            [f"no metrics at {endpoint} ({why}) choose a free port and an address of this machine, or remove metrics"]
        ) from None
