# SPDX-License-Identifier: Apache-2.0
"""`nanet rdma put` and `nanet rdma get`: a file into a remote region, and out of one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nanet._core import SetupError
from nanet.machine.signals import StopSignals
from nanet.rdma import NotDone, native
from nanet.rdma.memory import CudaMemory, Memory, allocate
from nanet.rdma.require import Require, refusals
from nanet.result import files, outputs
from nanet.result.keys.rdma import MovedResult

SLICE_BYTES = 16 << 20  # of the file at a time; a signal is seen between two


@dataclass(frozen=True)
class Remote:
    """Where a region is, and how to go there. See ConnectionConfig in include/nanet/rdma/connection.hpp."""

    address: str
    port: int
    region: str
    token: int = 0
    transports: str = ""
    trust_network: bool = False
    timeout_ms: int = 10_000
    chunk_bytes: int = 1 << 20
    depth: int = 8
    require: Require | None = None
    memory: Memory = Memory()  # of this side: CUDA's, or any memory of the host


def parse_remote(text: str) -> tuple[str, int]:
    """(address, port) of `HOST:PORT` or `[IPv6]:PORT`, or of the path of a Unix socket, which has no port. Raises SetupError."""
    if text.startswith("/"):
        return text, 0
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or (":" in bare and bare == host) or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise SetupError(f"'{text}' is not an address (HOST:PORT, or [ADDRESS]:PORT for IPv6) write 127.0.0.1:7300")
    return bare, int(port)


def connect(remote: Remote, given: CudaMemory | None = None) -> Any:
    """A connection whose path is as required; given: memory of this side, if it is CUDA's. Raises SetupError and NotDone."""
    with refusals(remote.require):
        return native().Connection({
            "transports": remote.transports, "trust_network": remote.trust_network, "require": remote.require or "", "address": remote.address, "port": remote.port,
            "region": remote.region, "token": remote.token, "timeout_ms": remote.timeout_ms, "chunk_bytes": remote.chunk_bytes,
            "depth": remote.depth, "memory": remote.memory.kind, "given": given, "bytes": given.bytes if given else 0,
        })  # fmt: skip


def put(remote: Remote, file: Path, offset_bytes: int = 0) -> MovedResult:
    """Writes all of `file` to the region. Returns when it is there. Raises SetupError and NotDone."""
    with StopSignals() as stop, _openable(file), file.open("rb") as source:
        size = os.fstat(source.fileno()).st_size
        given = _given(remote)
        connection = connect(remote, given)
        _check_range(connection, offset_bytes, size)

        def one(at: int, part: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
            if source.readinto(part.data) != part.size:
                raise NotDone(f"{file} was not put (it became shorter meanwhile) put it again")
            if given is None:
                return str(connection.put(offset_bytes + at, part))
            given.write(0, part)
            return str(connection.put_given(offset_bytes + at, part.size))

        return _moved("rdma put", remote, connection, stop, offset_bytes, size, one)


def get(remote: Remote, file: Path, offset_bytes: int = 0, size_bytes: int | None = None) -> MovedResult:
    """Reads the region, or a part of it, into `file`, which is written whole or not at all. Raises SetupError and NotDone."""
    with StopSignals() as stop:
        given = _given(remote)
        with _openable(file), outputs.Output(file) as output:
            connection = connect(remote, given)
            size = max(connection.bytes - offset_bytes, 0) if size_bytes is None else size_bytes
            _check_range(connection, offset_bytes, size)

            def one(at: int, part: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
                if given is None:
                    status = str(connection.get(offset_bytes + at, part))
                else:
                    status = str(connection.get_given(offset_bytes + at, part.size))
                if status == "ok":
                    if given is not None:
                        given.read(0, part)
                    output.file.write(part.data)
                return status

            result = _moved("rdma get", remote, connection, stop, offset_bytes, size, one)
            output.commit()
        return result


def _moved(
    command: str, remote: Remote, connection: Any, stop: StopSignals, offset_bytes: int, size: int,
    one: Callable[[int, np.ndarray[Any, np.dtype[np.uint8]]], str],
) -> MovedResult:  # fmt: skip
    """Moves slice after slice, then waits until all is done. The path is that of before: a closed connection has none."""
    path = connection.path
    buffer = np.empty(min(size, SLICE_BYTES), np.uint8)
    begin_s = time.perf_counter()
    for at in range(0, size, SLICE_BYTES):
        if stop.wait(0.0):
            connection.close()
            raise NotDone(f"stopped by a signal ({at} of {size} bytes were moved) start again")
        status = one(at, buffer[: min(SLICE_BYTES, size - at)])
        if status != "ok":
            _fail(connection, status, remote)
    ways = connection.ways
    status = connection.close()
    if status != "ok":
        _fail(connection, status, remote)
    seconds = time.perf_counter() - begin_s
    return {
        **files.base(command),
        "region": remote.region,
        "offset_bytes": offset_bytes,
        "bytes": size,
        "seconds": seconds,
        "bytes_per_s": size / seconds,
        "path": path,
        "ways": ways,
        "require": remote.require,
        "ucx_version": native().ucx_version(),
    }


def _given(remote: Remote) -> CudaMemory | None:
    """Of one slice, through which the file goes. Raises SetupError and NotDone."""
    native()  # before memory is allocated
    return allocate(remote.memory, SLICE_BYTES)


def _fail(connection: Any, status: str, remote: Remote) -> None:
    why = f"{status}: {connection.error}" if connection.error else status
    where = f"{remote.address} port {remote.port}"
    raise NotDone(f"the transfer was not done ({why}) see whether the target at {where} runs, and whether the region allows it")


def _check_range(connection: Any, offset_bytes: int, size: int) -> None:
    if offset_bytes + size > connection.bytes:
        text = f"{size} bytes from {offset_bytes} on are not in the region"
        raise SetupError(f"{text} (it has {connection.bytes}) give another offset or size")


@contextlib.contextmanager
def _openable(file: Path) -> Iterator[None]:
    try:
        yield
    except outputs.OutputError as error:
        raise SetupError(str(error)) from None
    except OSError as error:
        if error.errno in outputs.FULL:
            raise SetupError(f"{file} cannot be written ({error.strerror}) make room, or give a file elsewhere") from None
        raise SetupError(f"{file} cannot be used ({error.strerror}) give another file, or fix its permissions") from None
