# SPDX-License-Identifier: Apache-2.0
"""The side of `nanet rdma bench` that is measured against: it has the remote region, and does what the other side asks for, one after the other.

As a program (python -m nanet.rdma.responder) it serves one session, for a benchmark within one machine: that starts it, and it ends with it.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from nanet._core import SetupError
from nanet.machine.channel import Door
from nanet.machine.facts import keep_to
from nanet.machine.signals import StopSignals
from nanet.rdma import NotDone, native
from nanet.rdma.control import PURPOSE, SILENT_S_MAX, Control, secret_of
from nanet.rdma.memory import parse_memory
from nanet.rdma.serve import is_loopback
from nanet.rdma.side import Side
from nanet.rdma.tokens import VARIABLE, read_token

TURN_MS = 20
FIRST_WORD_S = 10.0
LIMIT_NS_MAX = int(SILENT_S_MAX * 1e9)
CLOSES_WITHIN_S = 10.0  # once it was told that the session ended


def listen(address: str, port: int, token: int) -> socket.socket:
    """The control socket. Without a token on loopback only. Raises SetupError."""
    if token == 0 and not is_loopback(address):
        raise SetupError(
            f"no benchmark is served at {address} without a token (whoever reaches the port could use it) give --token-file"
        )
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=128)
    except OSError as error:
        raise SetupError(
            f"cannot listen on {address} port {port} ({error.strerror}) choose an address of this machine and a free port"
        ) from None


def serve(listener: socket.socket, token: int, say: Callable[[str], None], *, trust_network: bool, sessions: int = 0) -> None:
    """Session after session, until a signal comes or so many were served. What goes wrong in one ends that one."""
    native()  # before anybody is told that this is ready
    address, port = listener.getsockname()[:2]
    with StopSignals() as stop:
        say(f"ready: bench at {address} port {port}")
        served = 0
        with Door(listener, PURPOSE, secret_of(token)) as door:
            while not stop.wait(0.0) and not 0 < sessions <= served:
                visitor = door.next(TURN_MS / 1000)
                if visitor is None:
                    continue
                served += 1
                before = os.sched_getaffinity(0)
                try:
                    with Control(visitor.admit()) as control:
                        _session(control, door, address, token, stop, trust_network=trust_network)
                # What may be raised by a message whose values are of another kind, or by what UCX makes of them.
                except (NotDone, OSError, RuntimeError, ValueError, LookupError, TypeError, ArithmeticError) as error:
                    say(f"session ended: {' '.join(str(error).split())}")
                finally:
                    keep_to(before)


def _session(control: Control, door: Door, address: str, token: int, stop: StopSignals, *, trust_network: bool) -> None:
    hello = control.receive(FIRST_WORD_S)
    if hello is None:
        raise NotDone(f"the other side is silent (for {FIRST_WORD_S:g} s) see whether it runs")
    silent_s = float(hello["silent_s"])
    if not 0 < silent_s <= SILENT_S_MAX:
        control.send(error=f"it may be silent for {SILENT_S_MAX:g} s at most")
        return
    if hello.get("core") is not None:
        keep_to({int(hello["core"])})
    try:
        memory, transports = parse_memory(hello["memory"]), hello["transports"]
        side = Side(address, int(hello["bytes"]), memory, transports, token, trust_network=trust_network)
    except SetupError as error:
        control.send(error=str(error))
        return
    rank = side.rank
    control.send(port=rank.port, ucx_version=native().ucx_version())
    _answer_all(control, side, silent_s, door, stop)


def _answer_all(control: Control, side: Side, silent_s: float, door: Door, stop: StopSignals) -> None:
    """Until the other side ends the session, or asks for nothing for longer than it said while others wait for their turn."""
    rank, spin, asked_s = side.rank, True, time.monotonic()
    while not stop.wait(0.0):
        asked = control.receive(0.0)
        if asked is None:
            rank.serve(TURN_MS, spin)
            if time.monotonic() - asked_s > silent_s and door.is_asked:
                raise NotDone(f"the other side is silent (for {silent_s:g} s) see whether it runs")
            continue
        if asked["do"] == "end":
            rank.close()
            control.send(ended=True)
            end_s = time.monotonic() + CLOSES_WITHIN_S
            while control.is_open() and time.monotonic() < end_s:  # the other side closes now
                rank.serve(1, True)
            return
        spin = asked["do"] != "rest"
        try:
            _do(asked, side, control)
        except SetupError as error:
            control.send(error=str(error))
        asked_s = time.monotonic()


def _do(asked: dict[str, Any], side: Side, control: Control) -> None:
    do, size, rank = asked["do"], int(asked.get("bytes", 0)), side.rank
    if do == "connect":
        side.connect(asked["connection"])
        control.send(path=rank.path)
    elif do == "fill":
        side.fill(asked["of_region"], size, asked["seed"])
        control.send(filled=size)
    elif do == "check":
        control.send(first_difference=side.check(asked["of_region"], size, asked["seed"]))
    elif do == "pong":
        rank.clear_last(size)
        control.send(begins=True)
        control.send(status=rank.pong(size, asked["count"], min(int(asked["time_limit_ns"]), LIMIT_NS_MAX)))
    elif do == "stream":  # puts, while the other side puts too
        control.send(begins=True)
        control.send(status=rank.stream(True, size, asked["count"], asked["depth"], asked["batch"])["status"])
    elif do == "rest":
        control.send(rests=True)
    else:
        control.send(error=f"{do} is not known")


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    if VARIABLE not in os.environ:
        sys.exit(f"nanet: a benchmark's other side needs {VARIABLE}")
    secret = read_token(None)
    serve(listen("127.0.0.1", 0, secret), secret, _say, trust_network="--trust-network" in sys.argv, sessions=1)
