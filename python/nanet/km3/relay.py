# SPDX-License-Identifier: Apache-2.0
"""Units of floors from a port to their destinations, in one thread that never waits for a destination.

A unit stays in its buffer while destinations want it. When a quarter of the buffers is held so, the oldest units are copied out of them: then a
destination that is behind costs memory up to its queue's bound, and never a buffer that another floor's unit needs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import nanet.port.port as ports
from nanet.config.km3_server import KINDS, Data, Destination
from nanet.km3.destinations import Outlet, Parcel, make_outlet
from nanet.km3.messages import Floor
from nanet.km3.units import PROTOCOL, declaration, unit_of

POLL_S = 0.005


class Stream:
    """What came of one floor and kind, in the run that it is in."""

    __slots__ = ("at_s", "bytes", "first", "incomplete", "newest", "run", "seen", "slices_missing", "units", "untimed")

    def __init__(self) -> None:
        self.units = self.incomplete = self.untimed = self.bytes = self.slices_missing = 0
        self.run = self.first = self.newest = -1
        self.seen = 0
        self.at_s = 0.0

    def take(self, run: int, slice_: int) -> None:
        """Books the slices between the first and the newest one of a run; that of earlier runs is final."""
        if run != self.run:
            self.slices_missing += self.missing
            self.run, self.first, self.newest, self.seen = run, slice_, slice_, 0
        self.at_s = time.monotonic()
        self.first, self.newest, self.seen = min(self.first, slice_), max(self.newest, slice_), self.seen + 1

    @property
    def missing(self) -> int:
        return 0 if self.seen == 0 else max(0, self.newest - self.first + 1 - self.seen)


class Relay:
    """`with Relay(data, destinations) as relay:` units flow inside the block."""

    def __init__(self, data: Data, destinations: Sequence[Destination], floors: Sequence[Floor]) -> None:
        """Raises ConfigError, SetupError."""
        self._floors = frozenset(floors)
        streams = [floor.tower * 2048 + floor.floor * 8 for floor in sorted(floors)]
        self._port = ports.open(
            data.endpoint, protocol=PROTOCOL, formats={PROTOCOL: declaration()}, senders=data.senders, buffer_count=data.buffer_count,
            buffer_bytes=data.buffer_bytes, packet_bytes_max=data.packet_bytes_max, socket_buffer_bytes=data.socket_buffer_bytes,
            assemble={"timeout_us": data.timeout_us, "streams_max": 8 * len(streams)} | _ranges(streams),
        )  # fmt: skip
        self._lock = threading.Lock()
        self.outlets: tuple[Outlet, ...] = tuple(make_outlet(one, self._lock) for one in destinations)
        self._held: deque[Parcel] = deque()
        self._held_max = data.buffer_count // 4
        self._streams: dict[tuple[int, int, int], Stream] = {}
        self._counts: Counter[str] = Counter()
        self._port_counts: dict[str, int] = {}
        self._stopping = False
        self.failure = ""
        """Why the thread ended by itself."""
        self._thread = threading.Thread(target=self._run, name="km3-relay", daemon=True)

    def __enter__(self) -> Relay:
        for outlet in self.outlets:
            outlet.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, drain_s: float = 1.0) -> None:
        """Ends: units that wait are sent for at most so long."""
        self._stopping = True
        self._thread.join()
        closers = [threading.Thread(target=outlet.close, args=(drain_s,)) for outlet in self.outlets]
        for one in closers:
            one.start()
        for one in closers:
            one.join()
        self._sweep()
        self._port.close()

    @property
    def notes(self) -> list[str]:
        return [*self._port.notes] if not self._port.closed else []

    def run_of(self, floor: Floor) -> tuple[int, float] | None:
        """The run of a floor's newest unit, and how old that is [s]; None: none came."""
        found = [stream for (tower, number, _), stream in list(self._streams.items()) if (tower, number) == floor]
        if not found:
            return None
        newest = max(found, key=lambda stream: stream.at_s)
        return newest.run, time.monotonic() - newest.at_s

    def books(self) -> dict[str, Any]:
        """units_in is the sum over streams; each outlet's units_in that of its kinds."""
        streams = [
            {
                "tower": tower, "floor": floor, "kind": KINDS[kind - 1], "run": one.run, "units": one.units, "bytes": one.bytes,
                "incomplete": one.incomplete, "untimed": one.untimed, "slices_missing": one.slices_missing + one.missing,
            }
            for (tower, floor, kind), one in sorted(self._streams.items())
        ]  # fmt: skip
        return {
            "units_in": sum(one["units"] for one in streams),
            "bytes_in": sum(one["bytes"] for one in streams),
            "units_copied": self._counts["units_copied"],
            "buffers_held": len(self._held),
            "streams": streams,
            "destinations": {one.name: one.books() for one in self.outlets},
            "port": dict(self._port_counts),
        }

    def _run(self) -> None:
        turns = 0
        try:
            while not self._stopping:
                completion = self._port.poll(POLL_S)
                if completion is not None:
                    self._take(completion)
                self._sweep()
                turns += 1
                if completion is None or turns % 256 == 0:
                    self._port_counts = self._port.counters()
            self._port_counts = self._port.counters()
        except Exception as error:  # a bug: the process says so, and run control goes on
            self.failure = f"{type(error).__name__}: {error}"

    def _take(self, completion: ports.Completion) -> None:
        found = completion.unit
        if found is None:
            return completion.release()
        unit = unit_of(found.stream, found.number, found.time, is_complete=found.complete)
        key = (unit.tower, unit.floor, unit.kind)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = Stream()
        stream.units += 1
        stream.bytes += found.bytes
        stream.incomplete += not unit.is_complete
        stream.untimed += unit.is_untimed
        stream.take(unit.run, unit.slice)
        ranges = [] if unit.is_complete else found.present.tolist()
        parcel = Parcel(unit, memoryview(completion.buffer), ranges, completion)
        self._held.append(parcel)
        for outlet in self.outlets:
            if unit.kind in outlet.kinds:
                outlet.offer(parcel)
        return None

    def _sweep(self) -> None:
        """Gives back the buffers of units that no one wants, oldest first; where too many are held, the oldest is copied out of its own."""
        while self._held:
            oldest = self._held[0]
            with self._lock:
                is_free = oldest.wanted == 0
                if not is_free and len(self._held) > self._held_max:
                    if not oldest.is_copied:
                        oldest.view, oldest.is_copied = memoryview(bytes(oldest.view)), True
                        self._counts["units_copied"] += 1
                    is_free = True
                if not is_free or oldest.in_use:  # a system call reads it: at a later turn
                    return
            self._held.popleft().held.release()


def _ranges(streams: Sequence[int]) -> dict[str, Any]:
    """Which streams there are, where that many ranges can be said; packets of others are refused by name."""
    ranges = [{"first": one + 1, "last": one + 5} for one in streams]
    return {"streams": ranges} if len(ranges) <= 64 else {}
