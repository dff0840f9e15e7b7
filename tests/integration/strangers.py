# SPDX-License-Identifier: Apache-2.0
"""Strangers at a port that listens: many connections with random or mutated bytes, most of them cut short, while a good client comes and goes.

PYTHONPATH=python python tests/integration/strangers.py --connections 100000
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from loops import ROOT, engine_config, free_ports, wait_for
from nanet import rdma
from nanet._core import SetupError
from nanet.machine.channel import VERSION, Channel, Refused, introduce
from nanet.machine.ports import unused_port
from nanet.metrics.http_pages import WITHIN_S
from nanet.rdma.control import PURPOSE as BENCH
from nanet.rdma.control import secret_of
from nanet.stencil.rendezvous import PURPOSE as STENCIL
from nanet.stencil.rendezvous import SECRET

Address = tuple[str, int]

HALF_OPEN = 48  # strangers that say something and stay
GOOD_EVERY_S = 0.02
GOOD_MIN = 10  # good clients, at least, that strangers must not keep out
TOKEN = 0x7A
RESETS = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset, so that a hundred thousand leave no ports in TIME_WAIT


@dataclass
class Port:
    """A command that listens, what its clients say first, and a client who belongs there."""

    command: list[str]
    address: Address
    said: bytes
    good: Callable[[Address], None]
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """What became of it. good_s: how long each good client took, sorted."""

    connections: int
    exit_code: int | None
    descriptors_before: int
    descriptors_after: int
    good_s: list[float]
    good_failed: list[str]
    seconds: float


def get_metrics(address: Address) -> None:
    """A scrape by HTTP."""
    with socket.create_connection(address, timeout=20) as one:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
        answer = b"".join(iter(lambda: one.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200"), answer[:100]


def meet(purpose: str, secret: str) -> Callable[[Address], None]:
    """A handshake to its end: the session that follows has nothing in it."""

    def come(address: Address) -> None:
        with Channel(socket.create_connection(address, timeout=20)) as channel:
            introduce(channel, purpose, secret, {}, 20.0)

    return come


def is_heard(purpose: str, secret: str) -> Callable[[Address], None]:
    """A client with the secret who is no rank of this run: it is told so, which a stranger is not."""

    def come(address: Address) -> None:
        with Channel(socket.create_connection(address, timeout=20)) as channel:
            try:
                introduce(channel, purpose, secret, {"rank": -1}, 20.0)
            except Refused as error:
                assert "none of 2 ranks" in str(error.strerror), error  # noqa: PT017  a stranger hears "another secret"
            else:
                raise AssertionError("rank -1 was let in")

    return come


def remote_hello(region: str) -> bytes:
    """The first message to a target of remote memory, with a proof of nothing: src/rdma/messages.hpp."""
    name = region.encode()
    said = struct.pack("<4sHH32s32s64s", b"NRDH", 2, len(name), bytes(32), bytes(32), name)
    return len(said).to_bytes(4, "little") + said


def read_zeros(region: str, offset_bytes: int = 0) -> Callable[[Address], None]:
    """A connection with the token, a get of bytes that no one writes, and its end."""

    def come(address: Address) -> None:
        with rdma.connect(f"{address[0]}:{address[1]}", region, token=TOKEN, timeout_s=20.0) as connection:
            assert not connection.get(offset_bytes, 8).any()

    return come


def ports(folder: Path) -> dict[str, Port]:
    """Every command that listens on TCP."""
    port, answers = free_ports()
    metrics, bench, ranks, region, rings = (unused_port(socket.SOCK_STREAM) for _ in range(5))
    engine = engine_config(port, answers).model_dump(mode="json") | {"metrics": {"endpoint": f"http://127.0.0.1:{metrics}"}}
    (folder / "engine.yaml").write_text(yaml.safe_dump(engine))
    first = {"version": VERSION, "challenge": "0" * 64, "about": "{}", "proof": "0" * 64}
    told = json.dumps(first).encode()
    greeting = len(told).to_bytes(8, "little") + told
    over_ucx = engine_config(port, answers).model_dump(mode="json")
    over_ucx["links"][0] |= {"endpoint": f"ucx://127.0.0.1:{rings}", "ucx": {"allow_root": True}}
    (folder / "ucx.yaml").write_text(yaml.safe_dump(over_ucx))
    token = {"NANET_RDMA_TOKEN": f"{TOKEN:x}"}
    rank = {"NANET_RANK": "0", "NANET_RANKS": "2", SECRET: "s"}
    return {
        "metrics": Port(
            ["run", f"{folder}/engine.yaml"],
            ("127.0.0.1", metrics),
            b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: text/plain\r\n\r\n",
            get_metrics,
        ),
        "rdma bench --serve": Port(
            ["rdma", "bench", "--serve", f"127.0.0.1:{bench}", "--allow-root"],
            ("127.0.0.1", bench),
            greeting,
            meet(BENCH, secret_of(TOKEN)),
            token,
        ),
        "rdma serve": Port(
            ["rdma", "serve", "--region", "r", "--size", "64KiB", "--read", "--allow-root", "--listen", f"127.0.0.1:{region}"],
            ("127.0.0.1", region),
            remote_hello("r"),
            read_zeros("r"),
            token,
        ),
        "run, ucx://": Port(
            ["run", f"{folder}/ucx.yaml"], ("127.0.0.1", rings), remote_hello("ring-0"), read_zeros("ring-0", 56), token
        ),
        "stencil --ranks env": Port(
            ["stencil", "--ranks", "env", "--rendezvous", f"127.0.0.1:{ranks}", "--size", "64", "--timeout", "3600"],
            ("127.0.0.1", ranks),
            greeting,
            is_heard(STENCIL, "s"),
            rank,
        ),
    }


def attack(port: Port, connections: int, seed: int) -> Found:
    """All of it against one command. The half-open ones are waited out before descriptors are counted."""
    with running(port) as process:
        port.good(port.address)
        before = descriptors(process.pid)
        took: list[float] = []
        failed: list[str] = []
        over = threading.Event()
        clients = threading.Thread(target=come_and_go, args=(port, over, took, failed))
        clients.start()
        began, choose, thrown = time.monotonic(), random.Random(seed), 0
        try:
            while thrown < connections or (len(took) < GOOD_MIN and time.monotonic() < began + 60 and process.poll() is None):
                throw(port, more := connections - thrown if thrown < connections else HALF_OPEN, choose)
                thrown += more
        finally:
            seconds = time.monotonic() - began
            over.set()
            clients.join()
        deadline = time.monotonic() + 2 * WITHIN_S
        after = descriptors(process.pid)  # a stranger may still be on the way in: what counts is that all are gone at some time
        while after > before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
            after = descriptors(process.pid)
        exit_code = process.poll()
    return Found(thrown, exit_code, before, after if exit_code is None else -1, sorted(took), failed, seconds)


def come_and_go(port: Port, over: threading.Event, took: list[float], failed: list[str]) -> None:
    """The good client, again and again."""
    while not over.wait(GOOD_EVERY_S):
        began = time.monotonic()
        try:
            port.good(port.address)
        except (OSError, AssertionError, rdma.NotDone, SetupError) as error:
            failed.append(repr(error))
        took.append(time.monotonic() - began)


def throw(port: Port, connections: int, choose: random.Random) -> None:
    """Strangers one after the other; HALF_OPEN of them are there at a time."""
    there: deque[socket.socket] = deque()
    for number in range(connections):
        one = socket.socket()
        one.settimeout(5.0)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
        with contextlib.suppress(OSError):  # refused and reset are answers, too; whether it lives is looked at in the end
            one.bind((f"127.0.{number % 200}.{1 + number // 200 % 200}", 0))
            one.connect(port.address)
            one.sendall(rubbish(port.said, choose))
            if choose.random() < 0.1:
                one.shutdown(socket.SHUT_WR)
        there.append(one)
        if len(there) > HALF_OPEN or choose.random() < 0.3:
            there.popleft().close()
    for one in there:
        one.close()


def rubbish(said: bytes, choose: random.Random) -> bytes:
    """Nothing, random bytes, or what a good client says with bits turned over, cut, or with something put in."""
    kind = choose.randrange(6)
    if kind == 0:
        return b""
    if kind == 1:
        return choose.randbytes(choose.choice((1, 8, 9, 100, 5000)))
    changed = bytearray(said)
    if kind == 2:
        return bytes(changed[: choose.randrange(len(changed))])
    if kind == 3:
        at = choose.randrange(len(changed))
        changed[at:at] = choose.choice((b"[" * 3000, b"\0", b'"', choose.randbytes(20), b"\n" * 9000))
        return bytes(changed)
    for _ in range(choose.choice((1, 1, 1, 8))):
        changed[choose.randrange(len(changed))] ^= 1 << choose.randrange(8)
    return bytes(changed)


@contextlib.contextmanager
def running(port: Port) -> Iterator[subprocess.Popen[bytes]]:
    """The command, once it listens, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "nanet", *port.command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | port.environment,
        cwd=ROOT,
    )
    try:
        wait_for(lambda: process.poll() is not None or answers(port.address), f"{port.command} listens", 60)
        assert process.poll() is None, port.command
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(address: Address) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=5):
        return True
    return False


def descriptors(pid: int) -> int:
    """Open files of a process; 0 when it is gone."""
    with contextlib.suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


def line(name: str, found: Found) -> str:
    """One row of the table."""
    p99_ms = 1e3 * found.good_s[int(0.99 * len(found.good_s))] if found.good_s else float("nan")
    ended = "lives" if found.exit_code is None else f"ended with {found.exit_code}"
    return (
        f"{name:24} {found.connections:8,} strangers in {found.seconds:6.1f} s: {ended}, descriptors {found.descriptors_before} -> "
        f"{found.descriptors_after}; {len(found.good_s)} good clients, {len(found.good_failed)} failed, p99 {p99_ms:.1f} ms"
    )


def main() -> int:
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=100_000, help="to each port")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="names of ports that hold this")
    given = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, port in ports(Path(folder)).items():
            if not re.search(re.escape(given.only), name):
                continue
            found = attack(port, given.connections, given.seed)
            print(line(name, found), flush=True)
            for problem in sorted(set(found.good_failed))[:5]:
                print(f"    {problem}")
            if found.exit_code is not None or found.descriptors_after > found.descriptors_before or found.good_failed:
                worst = 1
    return worst


if __name__ == "__main__":
    sys.exit(main())
