# SPDX-License-Identifier: Apache-2.0
"""One engine after another: what all of them counted, and how much the books may miss where one was killed.

Terms: a *life* is one process of the engine, from its start to its stop or to its being killed. A life that was stopped says all that it
counted. Of one that was killed the newest reading (at most a second old) is all there is: what it received after that, and what was sent
until the next life saw its first packet, is in no counter. `Lives.gap_packets` says how many packets that can be at most.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from nanet.config.engine import EngineConfig
from nanet.machine.facts import keep_to
from nanet.result import books
from nanet.result.keys.base import Counts
from nanet.result.keys.engine import EngineEnd, LinkState, SourceState
from nanet.result.keys.hops import HopLook
from nanet.run.process import EngineProcess, Reading
from nanet.soak.watch import core_wait_ns, queued_bytes

DATAGRAM_BYTES_MIN = 1168  # of a socket's buffer, for a packet that came with others
HELD_PACKETS = 1024
"""More than an engine has accepted and not yet answered at a moment: its buffers' packets."""


class Accounts(TypedDict):
    """What the books need of an engine's result. The rest, such as histograms, would make a soak with many lives grow."""

    counters: Counts
    sources: list[SourceState]
    links: list[LinkState]
    faults: list[str]


def accounts_of(result: EngineEnd) -> Accounts:
    """What the books need of it."""
    sources: list[SourceState] = [{**source, "counters": compact(source["counters"])} for source in result["sources"]]
    return {"counters": compact(result["counters"]), "sources": sources, "links": result["links"], "faults": result["faults"]}


def compact(counters: Mapping[str, int]) -> Counter[str]:
    """Those that are not 0, with names that take no memory of their own; any other is 0."""
    return Counter({sys.intern(name): count for name, count in counters.items() if count})


@dataclass
class Life:
    """What one engine has said."""

    counters: Mapping[str, int]
    hops: Sequence[HopLook]
    result: Accounts | None  # None: it was killed

    def hop(self, name: str) -> HopLook:
        """One line of its balance; an empty one where it has none."""
        empty: HopLook = {"hop": name, "unit": "packets", "in": 0, "out": 0, "named": {}, "unexplained": 0, "in_flight": 0}
        return next((hop for hop in self.hops if hop["hop"] == name), empty)


def expected_packets(counters: Mapping[str, int]) -> int:
    """Packets that the sources sent, as far as an engine knows."""
    return int(counters.get("packets_accepted", 0)) + packets_lost(counters)


def packets_lost(counters: Mapping[str, int]) -> int:
    """Of these, those that did not come."""
    return sum(int(counters.get(name, 0)) for name in books.PACKET_LOSSES)


@dataclass
class Sight:
    """What the boards had sent, as of the looks around the engine's newest reading. In packets."""

    number: int = -1  # of the reading
    last_sent: int = 0  # at the look before
    sent_before: int = 0  # surely before the reading was made
    queued_bytes: int = 0  # in the engine's sockets then

    def look(self, reading: Reading, packets_sent: int, queued: Callable[[], int]) -> None:
        """packets_sent: known before the reading was asked for."""
        if reading.number != self.number:
            self.number, self.sent_before, self.queued_bytes = reading.number, self.last_sent, queued()
        self.last_sent = packets_sent


class Lives:
    """The engine of a soak, whichever process it is now. `start` makes one: start(prefix, record)."""

    def __init__(self, start: Callable[[Sequence[str], str | None], EngineProcess], ports: Sequence[int] = ()) -> None:
        self._start = start
        self._ports = ports
        self.ended: list[Life] = []
        self.gap_packets = 0
        self._gap_from: int | None = None  # a life has not seen its first packet yet
        self._gap_unsure = 0
        self._sight = Sight()
        self._core_wait_ns = 0
        self.gone = False  # there is no engine now
        self.process = self._begin((), None)

    def _begin(self, prefix: Sequence[str], record: str | None) -> EngineProcess:
        process = self._start(prefix, record)
        process.__enter__()
        return process

    @property
    def config(self) -> EngineConfig:
        """Of the newest life."""
        return self.process.config

    def counters(self) -> dict[str, int]:
        """Of all lives together, as of the newest reading."""
        return add_up([*(life.counters for life in self.ended), *([] if self.gone else [self.process.counters()])])

    def core_wait_ns(self) -> int:
        """Of all lives together."""
        return self._core_wait_ns + (0 if self.gone else core_wait_ns(self.process.pid))

    def look(self, packets_sent: int) -> tuple[int, int]:
        """Looks for a new reading; (life, number) of the newest one. packets_sent: by all boards so far."""
        if self.gone:
            return len(self.ended), -1
        reading = self.process.reading()
        self._sight.look(reading, packets_sent, lambda: queued_bytes(self.process.pid, self._ports))
        known = expected_packets(reading.counters)
        if self._gap_from is not None and reading.counters.get("packets_accepted", 0):
            self.gap_packets += max(0, packets_sent - known - self._gap_from) + self._gap_unsure
            self._gap_from = None
        return len(self.ended), reading.number

    def settle_gap(self, packets_sent: int) -> None:
        """At a pause, or at the end: a life that has seen nothing until now has missed all."""
        if self._gap_from is not None:
            self.gap_packets += max(0, packets_sent - self._gap_from)
            self._gap_from = packets_sent

    def kill(self, packets_sent: int) -> None:
        """The engine dies at once."""
        self.look(packets_sent)
        self._core_wait_ns += core_wait_ns(self.process.pid)
        self.process.kill()
        self.bury()

    def bury(self) -> None:
        """Keeps what an engine that is dead said last."""
        reading = self.process.reading()  # what lay in the pipe
        if self._gap_from is None:
            self._gap_from = self._sight.sent_before
            self._gap_unsure = self._sight.queued_bytes // DATAGRAM_BYTES_MIN + HELD_PACKETS
        self.ended.append(Life(compact(reading.counters), reading.hops, None))
        self._end()

    def stop(self, packets_sent: int) -> EngineEnd:
        """The engine ends in order; its result. Raises EngineError."""
        self.look(packets_sent)
        self._core_wait_ns += core_wait_ns(self.process.pid)
        result = self.process.stop()
        reading = self.process.reading()
        if self._gap_from is None:
            self._gap_from, self._gap_unsure = packets_sent, 0
        self.ended.append(Life(compact(reading.counters), (), accounts_of(result)))
        self._end()
        return result

    def begin(self, packets_sent: int, prefix: Sequence[str] = (), record: str | None = None) -> None:
        """The next life; the caller's own core limits do not apply to it. packets_sent: until now. Raises EngineError."""
        affinity = os.sched_getaffinity(0)
        keep_to(set(range(os.cpu_count() or 1)))
        try:
            self.process = self._begin(prefix, record)
        finally:
            keep_to(affinity)
        self.gone = False
        self._sight = Sight(last_sent=packets_sent, sent_before=packets_sent)

    def _end(self) -> None:
        self.gone = True
        self.process.__exit__()

    def close(self) -> None:
        """Ends whatever still runs."""
        self.process.__exit__()


def add_up(all_counters: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Sums by name."""
    total: dict[str, int] = {}
    for counters in all_counters:
        for name, count in counters.items():
            total[name] = total.get(name, 0) + int(count)
    return total
