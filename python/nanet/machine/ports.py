# SPDX-License-Identifier: Apache-2.0
"""UDP ports of a loop on this machine: a block of four, so that two users of one machine do not collide."""

from __future__ import annotations

import errno
import random
import socket
from pathlib import Path

from nanet.config.errors import ConfigError

__all__ = ["BLOCK", "choose", "taken_port", "unused_port"]

ADDRESS = "127.0.0.1"
BLOCK = (0, 100, 200, 300)  # engine, answers, L0 trigger processor, its triggers
STEP = 1  # to the next block
TRIES = 100  # blocks from one port on overlap from here
PRIVATE_FROM = 10_000  # well-known services are below
PORT_MAX = 65_535
KERNELS_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def unused_port(kind: socket.SocketKind = socket.SOCK_DGRAM) -> int:
    """A port of loopback, free a moment ago, and not of those that the kernel gives to whoever asks for any. kind: of the sockets that will use it.

    Raises ConfigError where none of many is free.
    """
    first, last = (int(word) for word in KERNELS_RANGE.read_text().split())
    outside = [*range(PRIVATE_FROM, first), *range(max(last + 1, PRIVATE_FROM), PORT_MAX + 1)]
    if len(outside) < TRIES:
        outside = [*range(PRIVATE_FROM, PORT_MAX + 1)]
    for port in random.sample(outside, TRIES):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind((ADDRESS, port))
            except OSError:
                continue
            return int(port)
    raise ConfigError([f"none of {TRIES} ports tried is free (other programs have them) end those that you do not need"])


def taken_port(port: int) -> int | None:
    """The first port of the block at `port` that something on this machine has; None: all are free."""
    for offset in BLOCK:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((ADDRESS, port + offset))
            except OverflowError:
                return port + offset
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
                return port + offset
    return None


def choose(port: int, *, named: bool) -> tuple[int, str | None]:
    """(port, note) of the block to use. named: the user asked for this port, so no other will do.

    Raises ConfigError where a named port is taken or none, or no block is free.
    """
    last = PORT_MAX - BLOCK[-1]
    if not 1 <= port <= last:
        above = ", ".join(str(offset) for offset in BLOCK[1:])
        raise ConfigError([f"UDP port {port} cannot be used (it and those {above} above it are 1 to {PORT_MAX}) use 1 to {last}"])
    taken = taken_port(port)
    if taken is None:
        return port, None
    free = next((other for other in range(port + STEP, port + TRIES, STEP) if taken_port(other) is None), None)
    if free is None:
        raise ConfigError([f"no UDP ports from {port} on are free (another program has port {taken}) name others with --port"])
    if named:
        raise ConfigError([f"UDP port {taken} cannot be used (another program has it) use --port {free}, which is free"])
    return free, f"another program has UDP port {taken}: using {free} and the ports {', '.join(str(free + n) for n in BLOCK[1:])}"
