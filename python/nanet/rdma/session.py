# SPDX-License-Identifier: Apache-2.0
"""The side of `nanet rdma bench` that measures: it transfers, and has the other side answer, fill and check."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, TypedDict

from nanet._core import SetupError
from nanet.machine.processes import end
from nanet.rdma import NotDone
from nanet.rdma.control import Control
from nanet.rdma.measurement import Measurement
from nanet.rdma.memory import Memory
from nanet.rdma.require import Require, refusals
from nanet.rdma.side import REGION, Side
from nanet.rdma.tokens import VARIABLE
from nanet.result.keys.rdma import TransferPath

STARTS_WITHIN_S = 60.0
SEED, OTHER_SEED = 1, 2
FEW_S = 0.02  # a first run shorter than this tells nothing about the rate
COUNT_MAX = 50_000_000


@contextlib.contextmanager
def own_responder(*, trust_network: bool = False) -> Iterator[tuple[int, int]]:
    """The other side as a process of this machine: (control port, token). Ends it, whatever happens. Raises NotDone."""
    token = secrets.randbits(64) | 1
    process = subprocess.Popen(
        [sys.executable, "-m", "nanet.rdma.responder", *(["--trust-network"] if trust_network else [])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        env=dict(os.environ) | {VARIABLE: f"{token:016x}"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], STARTS_WITHIN_S)
        line = process.stdout.readline().strip() if readable else ""
        if not line.startswith("ready: "):
            raise NotDone(
                f"the other side does not start ({line or 'it said nothing'}) run python -m nanet.rdma.responder to see why"
            )
        yield int(line.rpartition(" ")[2]), token
    finally:
        end(process)


class NativeRun(TypedDict):
    """What nanet._core's rank says of one run."""

    status: str
    count: int
    elapsed_ns: int
    min_ns: int
    p50_ns: int
    p99_ns: int
    p99_9_ns: int
    max_ns: int


class CheckedRun(NativeRun):
    """One run whose bytes were looked at."""

    right: bool
    way: str | None


class Refused(NotDone):
    """The other side says that it cannot do what was asked."""


class Session:
    """One connection each way with a responder. All times are bounded by timeout_s. Raises SetupError and NotDone."""

    def __init__(
        self, control: Control, address: str, token: int, *, size_max: int, memory: Memory, target_memory: Memory, transports: str,
        depth: int, timeout_s: float, silent_s: float, target_core: int | None, own_address: str, require: Require | None,
        trust_network: bool = False,
    ) -> None:  # fmt: skip
        self._control = control
        self._timeout_s = timeout_s
        self._side = Side(own_address, size_max, memory, transports, token, trust_network=trust_network)
        self._rank = self._side.rank
        control.send(silent_s=silent_s, bytes=size_max, memory=str(target_memory), transports=transports, core=target_core)
        try:
            hello = self._answer()
        except Refused as error:  # nothing was begun
            raise SetupError(str(error)) from None
        self.target_ucx_version = str(hello["ucx_version"])

        def connection(place: str, port: int, wanted: str) -> dict[str, Any]:
            return {
                "transports": transports, "address": place, "port": port, "region": REGION,
                "timeout_ms": max(1, round(timeout_s * 1000)), "chunk_bytes": size_max, "depth": depth, "require": wanted,
            }  # fmt: skip

        with refusals(require):
            self._side.connect(connection(address, int(hello["port"]), require or ""))
        self.path: TransferPath = self._rank.path
        self._ask(do="connect", connection=connection(own_address, self._rank.port, ""))

    def measure(self, test: Measurement, size: int, *, depth: int, batch: int, count: int, duration_s: float) -> CheckedRun:
        """One run of `count` transfers (0: as many as last duration_s) after a warm-up, and whether the bytes are right."""
        self._prepare(test, size)
        if count == 0:
            count = self._count_for(test, size, depth, batch, duration_s)
        else:
            self._run(test, size, depth, batch, max(1, count // 10))
        run = self._run(test, size, depth, batch, count)
        return {**run, "right": self._is_right(test, size), "way": self._way(test, size)}

    def rest(self) -> None:
        """The other side sleeps until it is asked again: nothing of ours takes a core meanwhile."""
        self._ask(do="rest")

    def end(self) -> None:
        """In order: each side closes while the other serves."""
        self._ask(do="end")
        self._rank.close()

    def _prepare(self, test: Measurement, size: int) -> None:
        """What is read has a pattern, and where it is written to another."""
        self._side.fill(False, size, SEED if test.is_put else OTHER_SEED)
        self._ask(do="fill", of_region=True, bytes=size, seed=OTHER_SEED if test.is_put else SEED)
        if test.is_both_ways:
            self._ask(do="fill", of_region=False, bytes=size, seed=OTHER_SEED)
            self._side.fill(True, size, SEED)

    def _is_right(self, test: Measurement, size: int) -> bool:
        """Every byte that was written, but for the last of a ping-pong, which is the sequence number."""
        if not test.is_put:
            return self._side.check(False, size, SEED) == size
        there = int(self._ask(do="check", of_region=True, bytes=size, seed=SEED)["first_difference"])
        here = self._side.check(True, size, OTHER_SEED) if test.is_both_ways else size
        return min(there, here) >= (size - 1 if test is Measurement.PUT_LATENCY else size)

    def _way(self, test: Measurement, size: int) -> str | None:
        """What UCX said of the way of transfers of this size class (a power of two)."""
        operation = "put" if test.is_put else "get"
        for way in self._rank.ways:
            if way["operation"] == operation and int(way["bytes"]).bit_length() == size.bit_length():
                return str(way["text"])
        return None

    def _count_for(self, test: Measurement, size: int, depth: int, batch: int, duration_s: float) -> int:
        """How many last so long. Runs, each of four times as many, until one is long enough to tell; that is the warm-up too.

        Each is done twice, and the quicker counts: the other may have lost its core for a while.
        """
        count = 1
        while True:
            seconds = float("inf")
            for _ in range(2):
                seconds = min(seconds, int(self._run(test, size, depth, batch, count)["elapsed_ns"]) / 1e9)
                if seconds < min(FEW_S, duration_s):
                    break
            if seconds >= min(FEW_S, duration_s):
                return max(1, min(COUNT_MAX, int(count * duration_s / seconds)))
            count *= 4

    def _run(self, test: Measurement, size: int, depth: int, batch: int, count: int) -> NativeRun:
        result: NativeRun
        if test is Measurement.PUT_BIDIRECTIONAL_BANDWIDTH:
            result = self._both_ways(size, depth, batch, count)
        elif test.is_bandwidth:
            result = self._rank.stream(test.is_put, size, count, depth, batch)
        elif test is Measurement.PUT_LATENCY:
            result = self._ping(size, count)
        else:
            result = self._rank.one_by_one(test.is_put, size, count)
        if result["status"] != "ok":
            raise NotDone(
                f"{test} of {size} bytes was not done ({result['status']}: {self._rank.error}) see whether the other side runs, or raise --timeout-ms"
            )
        return result

    def _ping(self, size: int, count: int) -> NativeRun:
        limit_ns = round(self._timeout_s * 1e9)
        self._rank.clear_last(size)
        self._control.send(do="pong", bytes=size, count=count, time_limit_ns=limit_ns)
        self._answer()
        result: NativeRun = self._rank.ping(size, count, limit_ns)
        status = str(self._answer()["status"])
        if result["status"] == "ok" and status != "ok":
            result["status"] = status
        return result

    def _both_ways(self, size: int, depth: int, batch: int, count: int) -> NativeRun:
        """`count` puts from each side. The time ends when both have said that all of theirs is done."""
        self._control.send(do="stream", bytes=size, count=count, depth=depth, batch=batch)
        self._answer()
        begin_ns = time.perf_counter_ns()
        result: NativeRun = self._rank.stream(True, size, count, depth, batch)
        status = str(self._answer(spin=True)["status"])
        result["elapsed_ns"] = time.perf_counter_ns() - begin_ns
        if result["status"] == "ok" and status != "ok":
            result["status"] = status
        return result

    def _ask(self, **message: Any) -> dict[str, Any]:
        self._control.send(**message)
        return self._answer()

    def _answer(self, *, spin: bool = False) -> dict[str, Any]:
        """Serves the own worker while it waits, since the other side may be connecting or putting to it; spin: without sleeping."""
        end_s = time.monotonic() + self._timeout_s
        while time.monotonic() < end_s:
            answer = self._control.receive(0.0)
            if answer is None:
                self._rank.serve(1, spin)
            elif "error" in answer:
                raise Refused(f"the other side refuses ({answer['error']}) give what it has")
            else:
                return answer
        raise NotDone(f"the other side is silent (for {self._timeout_s:g} s) see whether it runs")
