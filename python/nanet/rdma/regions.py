# SPDX-License-Identifier: Apache-2.0
"""Remote memory for programs: expose a region, connect to one, put and get.

    with nanet.rdma.expose("results", 1 << 20, write=True) as target:      # one process
        while not done:
            target.serve(0.1)
        print(target.memory[:10])

    with nanet.rdma.connect("127.0.0.1:PORT", "results") as connection:    # another
        connection.put(numpy_array, offset_bytes=4096)
        connection.flush()

Each is used by the thread that made it.
"""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nanet._core import SetupError
from nanet.rdma import NotDone, serve, transfer
from nanet.rdma.memory import parse_memory
from nanet.rdma.require import Require
from nanet.rdma.tokens import read_token
from nanet.result.keys.rdma import TransferPath

__all__ = ["Connection", "Target", "connect", "expose"]


def expose(
    region: str, size_bytes: int, *, read: bool = False, write: bool = False, address: str = "127.0.0.1", port: int = 0,
    token: int | None = None, memory: str = "shared", transports: str = "", trust_network: bool = False,
) -> Target:  # fmt: skip
    """Exposes a region of zeros of this process under a name.

    read, write: what others may do. port: 0: any, see Target.port. token: what they must know; None: NANET_RDMA_TOKEN of the environment,
    or no token. memory: shared, host, cuda[:GPU] or pinned[:GPU]. address: also the path of a Unix socket. transports: as UCX_TLS; empty: shared
    memory on this machine, elsewhere RDMA hardware. trust_network: UCX's TCP may be used: whoever reaches the interface has full control over
    this process (Target.reach says what is so).
    Raises SetupError for what cannot be had, also for an address beyond this machine without a token, NotDone without UCX.
    """
    exposure = serve.Exposure(
        region,
        size_bytes,
        read,
        write,
        address,
        port,
        read_token(None) if token is None else token,
        parse_memory(memory),
        transports,
        trust_network,
    )
    return Target(serve.make_target(exposure), address)


def connect(
    place: str, region: str, *, token: int | None = None, timeout_s: float = 10.0, require: Require | str | None = None,
    transports: str = "", trust_network: bool = False, chunk_bytes: int = 1 << 20, depth: int = 8,
) -> Connection:  # fmt: skip
    """Connects to a region that another process exposes at `place` (HOST:PORT, [IPv6]:PORT, or the path of a Unix socket).

    timeout_s: of the set-up and of each operation. require: one-sided, rdma, zero-copy or gpudirect: what the path must prove.
    chunk_bytes, depth: transfers are cut into chunks, so many of which are in flight at once. trust_network: as of expose.
    Raises SetupError where it cannot be begun, NotDone where the path is not as required.
    """
    address, port = transfer.parse_remote(place)
    try:
        required = None if require is None else Require(require)
    except ValueError:
        raise SetupError(f"'{require}' cannot be required of a path (there are: {', '.join(Require)}) name one of these") from None
    remote = transfer.Remote(
        address, port, region, read_token(None) if token is None else token, transports, trust_network, max(1, round(timeout_s * 1e3)),
        chunk_bytes, depth, required,
    )  # fmt: skip
    return Connection(transfer.connect(remote), place)


class Target:
    """A region of this process that others write and read. As a context manager it is closed at the end of the block."""

    def __init__(self, native: Any, address: str) -> None:
        self._native = native
        self.address: str = address
        """Where it listens."""
        self.port: int = native.port
        """The port that it listens on; 0 of a path."""
        self.reach: str = native.reach
        """Who can do what through it: one sentence."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The region itself, uint8 [size_bytes], not a copy. Raises SetupError for memory of a GPU."""
        view: NDArray[np.uint8] = self._open().memory
        return view

    @property
    def connection_count(self) -> int:
        """How many are connected now."""
        return int(self._open().connection_count)

    def serve(self, timeout_s: float = 0.0, *, spin: bool = False) -> None:
        """Serves connections for timeout_s; without it no one can connect, and nothing moves where this CPU must take part.

        spin: never sleep.
        """
        self._open().serve(math.ceil(timeout_s * 1e3), spin)

    def close(self) -> None:
        """Takes the region back. Views of its memory stay readable."""
        self._native = None

    def _open(self) -> Any:
        if self._native is None:
            raise ValueError("the target is closed (its with block has ended) expose the region again")
        return self._native


class Connection:
    """To one region of one target. As a context manager it is flushed and closed at the end of the block."""

    def __init__(self, native: Any, place: str) -> None:
        self._native = native
        self._place = place
        self._closed = False
        self.size_bytes: int = native.bytes
        """Of the region."""
        self.may_read: bool = native.may_read
        self.may_write: bool = native.may_write
        self.path: TransferPath = native.path
        """How the bytes travel: lanes, sided, gpudirect, and text for people (docs/rdma.md)."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.close()
        elif not self._closed:
            self._closed = True
            self._native.close()  # the block's own error is the one to see

    def put(self, data: Any, offset_bytes: int = 0) -> None:
        """Writes data to the region, from offset_bytes on. Returns when data may be changed; flush says that it has arrived.

        data: bytes, or an array without gaps. Raises SetupError where it does not fit into the region, NotDone.
        """
        plain = _bytes_of(data)
        self._check(offset_bytes, plain.size)
        self._done(self._native.put(offset_bytes, plain))

    def get(self, offset_bytes: int = 0, size_bytes: int | None = None) -> NDArray[np.uint8]:
        """A copy of the region, or of a part of it, uint8 [size_bytes]; None: to its end. Raises SetupError, NotDone."""
        size = max(0, self.size_bytes - offset_bytes) if size_bytes is None else size_bytes
        self._check(offset_bytes, size)  # before memory is taken for it
        found = np.empty(size, np.uint8)
        self._done(self._native.get(offset_bytes, found))
        return found

    def flush(self) -> None:
        """Returns when all that was put is in the target's memory. Raises NotDone."""
        self._check(0, 0)
        self._done(self._native.flush())

    def close(self) -> None:
        """Flushes, then closes. Twice is the same as once. Raises NotDone where something put has not arrived."""
        if not self._closed:
            self._closed = True
            self._done(self._native.close())

    def _check(self, offset_bytes: int, size: int) -> None:
        if self._closed:
            raise ValueError("the connection is closed (its with block has ended) connect again")
        for number in (offset_bytes, size):
            if not hasattr(number, "__index__"):
                raise SetupError(f"{number!r} is no number of bytes (offsets and sizes are whole) give another offset or size")
        if offset_bytes < 0 or size < 0 or offset_bytes + size > self.size_bytes:
            text = f"{size} bytes from {offset_bytes} on are not in the region"
            raise SetupError(f"{text} (it has {self.size_bytes}) give another offset or size")

    def _done(self, status: str) -> None:
        if status == "ok":
            return
        why = f"{status}: {self._native.error}" if self._native.error else status
        raise NotDone(f"the transfer was not done ({why}) see whether the target at {self._place} serves, and what it allows")


def _bytes_of(data: Any) -> NDArray[np.uint8]:
    try:
        view = memoryview(data)
    except TypeError:
        raise SetupError(f"a {type(data).__name__} cannot be put (it is neither bytes nor an array) pass one of these") from None
    try:
        return np.frombuffer(view.cast("B"), np.uint8)
    except (TypeError, ValueError):  # it has gaps
        raise SetupError(f"a {type(data).__name__} cannot be put (its bytes are not contiguous) pass bytes, or a copy") from None
