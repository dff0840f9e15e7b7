# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces of this machine joined by a veth pair: a cable between two computers, without the computers.

One end is for the boards, the other for the engine. Both have a fixed address and MAC, know each other's without asking (so no ARP runs
between kernels), and speak no IPv6, so that nothing travels but what is sent. All is removed again at the end, also on SIGINT and SIGTERM.
Needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and the program `ip`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Self

from nanet.machine.signals import SIGNALS

UP_WITHIN_S = 10.0
NETWORK_BITS = 24
CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class NamespaceError(RuntimeError):
    """Network namespaces or the pair cannot be made. `problem (why) suggestion`."""


@dataclass(frozen=True)
class Namespace:
    """A named network namespace."""

    name: str

    def prefix(self) -> list[str]:
        """What to write before a command so that it runs inside."""
        return ["ip", "netns", "exec", self.name]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread is inside until the end: sockets that it opens meanwhile stay inside forever."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            there = os.open(f"/run/netns/{self.name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                _set_namespace(there, self.name)
            finally:
                os.close(there)
            try:
                yield
            finally:
                _set_namespace(home, "its own")
        finally:
            os.close(home)


@dataclass(frozen=True)
class InterfaceCounts:
    """What an interface has counted. A super-packet (GSO) is one frame; bytes are those of frames with their Ethernet header."""

    rx_frames: int
    rx_bytes: int
    rx_dropped: int
    tx_frames: int
    tx_bytes: int
    tx_dropped: int

    def __sub__(self, before: InterfaceCounts) -> InterfaceCounts:
        return InterfaceCounts(*(a - b for a, b in zip(self.values(), before.values(), strict=True)))

    def values(self) -> tuple[int, ...]:
        """All, in the order of the fields."""
        return (self.rx_frames, self.rx_bytes, self.rx_dropped, self.tx_frames, self.tx_bytes, self.tx_dropped)


@dataclass(frozen=True)
class End:
    """One end of the cable."""

    namespace: Namespace
    interface: str
    address: str
    mac: str

    def counts(self) -> InterfaceCounts:
        """Totals since the pair was made. Raises NamespaceError."""
        text = _ip("-n", self.namespace.name, "-s", "-j", "link", "show", "dev", self.interface)
        stats = json.loads(text)[0]["stats64"]
        rx, tx = stats["rx"], stats["tx"]
        return InterfaceCounts(rx["packets"], rx["bytes"], rx["dropped"], tx["packets"], tx["bytes"], tx["dropped"])

    def set_up(self, state: Literal["up", "down"], peer: End) -> None:
        """Takes the interface down, or brings it up again. Its address stays; the peer's MAC is told again, since the kernel forgets it.

        Raises NamespaceError.
        """
        name = self.namespace.name
        _ip("-n", name, "link", "set", self.interface, state)
        if state == "up":
            _ip("-n", name, "neigh", "replace", peer.address, "lladdr", peer.mac, "dev", self.interface, "nud", "permanent")

    def kernel_counts(self) -> tuple[int, int]:
        """(ICMP messages sent, UDP packets for a port where no one listens) since the pair was made."""
        with self.namespace.entered():
            return snmp_counts(Path("/proc/thread-self/net/snmp").read_text())


def snmp_counts(text: str) -> tuple[int, int]:
    """(ICMP messages sent, UDP packets for a port where no one listens) of the text of /proc/net/snmp."""
    table: dict[str, dict[str, int]] = {}
    lines = text.splitlines()
    for head, row in zip(lines[::2], lines[1::2], strict=True):
        name, *keys = head.split()
        table[name] = dict(zip(keys, map(int, row.split()[1:]), strict=True))
    return table["Icmp:"]["OutMsgs"], table["Udp:"]["NoPorts"]


class VethPair:
    """`with VethPair() as pair: ...`: pair.boards and pair.engine are the ends. One pair a process at a time.

    mtu: of both ends, bytes. queues: receive and send queues of both ends. coalesced: super-packets (GSO) may cross the cable in one
    piece; if not, the sender's kernel cuts them, so that every packet is a frame, as on a wire. engine_address: the engine's kernel has
    the address; if not, it is free for a link that is its own network stack. together: both ends in one namespace, for a
    program that forwards between them.
    """

    def __init__(
        self, *, mtu: int = 1500, queues: int = 1, coalesced: bool = True, engine_address: bool = True, together: bool = False
    ) -> None:
        self.mtu, self.queues, self.coalesced, self.engine_address, self.together = mtu, queues, coalesced, engine_address, together
        name = f"nanet-{os.getpid()}"
        first, second = Namespace(f"{name}-a"), Namespace(f"{name}-b")
        self.namespaces = (first,) if together else (first, second)
        self.boards = End(first, "boards0", "10.77.0.1", "02:00:00:4d:00:01")
        self.engine = End(self.namespaces[-1], "engine0", "10.77.0.2", "02:00:00:4d:00:02")
        self._old_handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if shutil.which("ip") is None:
            raise NamespaceError(
                "no network namespace can be made (the program ip is missing) install it: apt-get install iproute2"
            )
        self._catch_signals()
        try:
            self._remove()  # what a killed process of this number may have left
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._remove()
        finally:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)
            self._old_handlers = {}
            signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)

    def _make(self) -> None:
        for namespace in self.namespaces:
            _ip("netns", "add", namespace.name)
            _write_inside(namespace, "ipv6/conf/all/disable_ipv6", "1")
            _write_inside(namespace, "ipv6/conf/default/disable_ipv6", "1")
            _ip("-n", namespace.name, "link", "set", "lo", "up")
        a, b = self.boards, self.engine
        queues = ["numtxqueues", str(self.queues), "numrxqueues", str(self.queues)]
        peer = [] if self.together else ["netns", b.namespace.name]
        _ip(
            "-n", a.namespace.name, "link", "add", a.interface, "address", a.mac, "mtu", str(self.mtu), *queues, "type", "veth",
            "peer", "name", b.interface, *peer, "address", b.mac, "mtu", str(self.mtu), *queues,
        )  # fmt: skip
        for here, there in ((a, b), (b, a)):
            name = here.namespace.name
            if not self.coalesced:
                _ip("-n", name, "link", "set", here.interface, "gso_max_segs", "1")
            _ip("-n", name, "link", "set", here.interface, "up")
            if self.together or (here is b and not self.engine_address):
                continue
            _ip("-n", name, "address", "add", f"{here.address}/{NETWORK_BITS}", "dev", here.interface)
            _ip("-n", name, "neigh", "replace", there.address, "lladdr", there.mac, "dev", here.interface, "nud", "permanent")
        self._wait_up()

    def _wait_up(self) -> None:
        deadline = time.monotonic() + UP_WITHIN_S
        for end in (self.boards, self.engine):
            while True:
                link = json.loads(_ip("-n", end.namespace.name, "-j", "link", "show", "dev", end.interface))[0]
                if link["operstate"] == "UP":
                    break
                if time.monotonic() > deadline:
                    raise NamespaceError(
                        f"{end.interface} is not up after {UP_WITHIN_S:.0f} s (its state is {link['operstate']}) try again"
                    )
                time.sleep(0.01)

    def _remove(self) -> None:
        for namespace in self.namespaces:
            if not Path(f"/run/netns/{namespace.name}").exists():
                continue
            for end in (self.boards, self.engine):
                if end.namespace == namespace:
                    _quietly("-n", namespace.name, "link", "delete", end.interface)
            _quietly("netns", "delete", namespace.name)

    def _catch_signals(self) -> None:
        """SIGTERM ends this process in order while the pair exists; SIGINT does so already."""
        if threading.current_thread() is threading.main_thread():
            self._old_handlers = {signal.SIGTERM: signal.signal(signal.SIGTERM, _end_in_order)}


def _end_in_order(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode == 0:
        return done.stdout
    why = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    if os.geteuid() != 0 or any(text in why for text in ("not permitted", "Permission denied", "failed: Operation")):
        raise NamespaceError(
            f"no network namespace can be made ({why}) run as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN"
        )
    raise NamespaceError(f"ip {' '.join(arguments)} failed ({why}) run it by hand to see more")


def _quietly(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], capture_output=True, check=False, start_new_session=True)


def _set_namespace(fd: int, name: str) -> None:
    if _LIBC.setns(fd, CLONE_NEWNET) != 0:
        why = os.strerror(ctypes.get_errno())
        raise NamespaceError(f"cannot enter network namespace {name} ({why}) run as root")


def _write_inside(namespace: Namespace, name: str, value: str) -> None:
    path = Path("/proc/sys/net") / name
    with namespace.entered():
        if not path.exists():  # a kernel without IPv6
            return
        try:
            path.write_text(value)
        except OSError as error:
            raise NamespaceError(f"cannot write {path} ({error.strerror}) run as root, with /proc/sys writable") from None
