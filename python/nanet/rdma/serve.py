# SPDX-License-Identifier: Apache-2.0
"""`nanet rdma serve`: exposes a region until it is told to stop."""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nanet._core import SetupError
from nanet.machine.signals import StopSignals
from nanet.rdma import native
from nanet.rdma.memory import Memory, allocate
from nanet.rdma.tokens import VARIABLE
from nanet.rdma.units import both_text
from nanet.result import files
from nanet.result.keys.rdma import ServeResult

TURN_MS = 50  # a signal is seen between two


@dataclass(frozen=True)
class Exposure:
    """What is exposed, and where."""

    region: str
    bytes: int
    read: bool
    write: bool
    address: str = "127.0.0.1"
    port: int = 0
    token: int = 0
    memory: Memory = Memory()
    transports: str = ""
    trust_network: bool = False
    spin: bool = False
    allow_root: bool = False


def make_target(exposure: Exposure) -> Any:
    """A target with one region. Raises SetupError; without a token it listens on this machine only."""
    if exposure.token == 0 and not is_loopback(exposure.address):
        text = f"region {exposure.region} is not exposed at {exposure.address} without a token"
        raise SetupError(f"{text} (whoever reaches the port could use it) give --token-file, or {VARIABLE} in the environment")
    keys = ("region", "bytes", "read", "write", "address", "port", "token", "transports", "trust_network")
    module = native()  # before memory is allocated
    memory = {"memory": exposure.memory.kind, "given": allocate(exposure.memory, exposure.bytes)}
    return module.Target({key: getattr(exposure, key) for key in keys} | memory)


def serve(exposure: Exposure, say: Callable[[str], None], duration_s: float = 0.0) -> ServeResult:
    """Serves until SIGINT or SIGTERM, or for this long. Says `ready: ...` when it accepts connections."""
    check_account(exposure.region, allow_root=exposure.allow_root)
    with StopSignals() as stop:
        target = make_target(exposure)
        begin_s = time.monotonic()
        rights = " and ".join(name for name, granted in (("read", exposure.read), ("write", exposure.write)) if granted)
        of_cuda = f" of memory {exposure.memory}" if exposure.memory.is_cuda else ""
        where = f"at {exposure.address}" if exposure.address.startswith("/") else f"at {exposure.address} port {target.port}"
        say(f"ready: region {exposure.region}, {both_text(exposure.bytes)}{of_cuda}, {rights}, {where}")
        say(f"reach: {target.reach}")
        most = 0
        while not stop.wait(0.0) and not 0 < duration_s <= time.monotonic() - begin_s:
            target.serve(TURN_MS, exposure.spin)
            most = max(most, target.connection_count)
        return {
            **files.base("rdma serve"),
            "region": exposure.region,
            "bytes": exposure.bytes,
            "memory": str(exposure.memory),
            "address": exposure.address,
            "port": target.port,
            "elapsed_s": time.monotonic() - begin_s,
            "connections_at_end": target.connection_count,
            "connections_at_once": most,
            "refused": target.refused_count,
            "ucx_version": native().ucx_version(),
        }


def check_account(region: str, *, allow_root: bool) -> None:
    """Who writes into this process must not get root with it. Raises SetupError."""
    if os.geteuid() == 0 and not allow_root:
        raise SetupError(
            f"region {region} is not served as root (who may connect could use what this process may do) start as another account,"
            " or give --allow-root"
        )


def is_loopback(address: str) -> bool:
    """Whether only processes of this machine reach it: loopback, or the path of a Unix socket."""
    if address.startswith("/"):
        return True
    try:
        return ipaddress.ip_address(address.split("%")[0]).is_loopback
    except ValueError:
        return False
