# SPDX-License-Identifier: Apache-2.0
"""The rules of the L0 trigger processor in plain Python, for tests: no memory, no addresses, no cleverness.

Every stored primitive is kept in a list forever, with its time as a whole number of ticks (97.46 ps) that never wraps; what a cell
holds is found by searching the list. Slow on purpose (quadratic). The rules stand in docs/design/l0tp.md; the native
processor (`nanet._core.L0TriggerProcessor`) has the same methods and must give the same decisions and counters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from nanet import wire

__all__ = ["Decision", "L0tpModel"]

CELLS = 16384
WINDOW_CELLS = CELLS - 1
JUMP_VOTES = 32
CALIBRATIONS_MAX = 256
TURN = 1 << 40  # ticks after which times on the wire begin again
INPUT_COUNTERS = (
    "packets", "primitives", "stored", "calibrations", "late", "out_of_range", "duplicates", "calibrations_no_room", "overwritten",
    "matched",
)  # fmt: skip
COUNTERS = (
    "packets", "packets_good", "packets_bad_length", "packets_bad_format", "packets_unknown_source", "primitives_unknown_source",
    "decided", "triggers_physics", "triggers_calibration", "time_jumps",
)  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """Same fields as the native decision; `time` is in ticks on the wire's 40 bits."""

    time: int
    kind: int
    matched_inputs: int
    trigger_word: int
    trigger_number: int
    arrived_ns: int


@dataclass
class Stored:
    """One primitive that was accepted."""

    time: int
    id: int
    arrived_ns: int
    overwritten: bool = False
    read: bool = False


@dataclass
class L0tpModel:
    """`config` is an `L0tpConfig` as plain values."""

    config: dict[str, Any]
    newest: int | None = None  # None: no packet has set the time
    next_cell: int = 0
    last_packet_ns: int = 0
    candidate: int = 0
    votes: int = 0
    jumping: bool = False
    trigger_count: int = 0
    stored: list[list[Stored]] = field(default_factory=list)
    calibrations: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sources = [i["source_id"] for i in self.config["inputs"]]
        names = [i["name"] for i in self.config["inputs"]]
        self.reference = names.index(self.config["reference"])
        self.cuts = [int(i["time_cut_ns"] / wire.TICK_NS) for i in self.config["inputs"]]
        self.lag = round(self.config["read_lag_us"] * 1000 / wire.TICK_NS)
        self.patterns = [
            [(names.index(name), bits.replace("_", "").lower()) for name, bits in mask["bits"].items()]
            for mask in self.config["masks"]
        ]
        self.cell_ticks = Fraction(256, 2 ** self.config["fine_time_bits"])
        self.stored = [[] for _ in self.sources]
        self.count = dict.fromkeys(COUNTERS, 0)
        self.input_count = [dict.fromkeys(INPUT_COUNTERS, 0) for _ in self.sources]
        self.mask_count = [{"matched": 0, "fired": 0} for _ in self.config["masks"]]
        self.since_fired = [0 for _ in self.config["masks"]]

    def cell(self, time: int) -> int:
        return int(time // self.cell_ticks)

    def in_window(self, time: int) -> bool:
        return self.next_cell <= self.cell(time) < self.next_cell + WINDOW_CELLS

    def is_late(self, time: int) -> bool:
        return self.next_cell - CELLS <= self.cell(time) < self.next_cell

    def continued(self, wire_time: int) -> int:
        """The time without wrap that is nearest to the newest one (at half a turn exactly, the earlier)."""
        assert self.newest is not None
        return min((self.newest // TURN + turn) * TURN + wire_time for turn in (-1, 0, 1) if self._near(turn, wire_time))

    def _near(self, turn: int, wire_time: int) -> bool:
        assert self.newest is not None
        return -TURN // 2 <= (self.newest // TURN + turn) * TURN + wire_time - self.newest < TURN // 2

    def take(self, datagram: bytes, now_ns: int) -> None:
        self.count["packets"] += 1
        error = wire.check_mtp(datagram)
        if error != wire.ParseError.none:
            self.count[f"packets_{error.name}"] += 1
            return
        packet = wire.parse_mtp(datagram)
        if packet.source_id not in self.sources:
            self.count["packets_unknown_source"] += 1
            self.count["primitives_unknown_source"] += len(packet.primitives)
            return
        self.count["packets_good"] += 1
        source = self.sources.index(packet.source_id)
        counters = self.input_count[source]
        counters["packets"] += 1
        self.last_packet_ns = now_ns
        self._hear_header(packet.first_timestamp * 256)
        for primitive in packet.primitives:
            counters["primitives"] += 1
            wire_time = int(primitive["timestamp"]) * 256 + int(primitive["fine_time"])
            counters[self._take_primitive(source, self.continued(wire_time), int(primitive["id"]), now_ns)] += 1

    def _hear_header(self, wire_time: int) -> None:
        if self.newest is None:
            self._start(wire_time)
            return
        time = self.continued(wire_time)
        if self.in_window(time) or self.is_late(time):
            if self.in_window(time):
                self.newest = max(self.newest, time)
            self.votes = max(0, self.votes - 1)
        elif self.votes == 0:
            self.candidate, self.votes = wire_time, 1
        else:
            apart = abs(wire_time - self.candidate)
            if min(apart, TURN - apart) <= CELLS * self.cell_ticks:
                self.candidate, self.votes = wire_time, self.votes + 1
                self.jumping = self.jumping or self.votes >= JUMP_VOTES
            else:
                self.votes -= 1

    def _start(self, wire_time: int) -> None:
        self.newest = TURN + wire_time
        self.next_cell = self.cell(self.newest - self.lag)

    def _take_primitive(self, source: int, time: int, identity: int, now_ns: int) -> str:
        """The name of the counter that the primitive ends in."""
        assert self.newest is not None
        if not self.in_window(time):
            return "late" if self.is_late(time) else "out_of_range"
        self.newest = max(self.newest, time)
        if identity & 0x8000:
            if len(self.calibrations) == CALIBRATIONS_MAX:
                return "calibrations_no_room"
            self.calibrations.append((source, time, identity, now_ns))
            return "calibrations"
        held = self.held(source, self.cell(time))
        if held is not None:
            if source == self.reference and (held.time, held.id) == (time, identity):
                return "duplicates"
            held.overwritten = True
            self.input_count[source]["overwritten"] += 1
        self.stored[source].append(Stored(time, identity, now_ns))
        return "stored"

    def held(self, source: int, cell: int) -> Stored | None:
        """What is in a cell: the last primitive stored with that cell number."""
        found = [p for p in self.stored[source] if self.cell(p.time) == cell]
        assert [p.overwritten for p in found] == [True] * (len(found) - 1) + [False] * bool(found)
        return found[-1] if found else None

    def decide(self, now_ns: int) -> list[Decision]:
        if self.jumping:
            decisions = self._read_all()
            self._forget()
            self._start(self.candidate)
            self.count["time_jumps"] += 1
            return decisions
        decisions = self._hand_out_calibrations()
        if self.newest is None:
            return decisions
        silence_ns = 1000 * self.config["silence_us"]
        if silence_ns and now_ns - self.last_packet_ns >= silence_ns:
            return decisions + self._read_before(self.cell(self.newest) + 1)
        return decisions + self._read_before(self.cell(self.newest - self.lag))

    def flush(self) -> list[Decision]:
        decisions = self._read_all()
        self._forget()
        self.since_fired = [0 for _ in self.since_fired]
        return decisions

    def _read_all(self) -> list[Decision]:
        decisions = self._hand_out_calibrations()
        return decisions if self.newest is None else decisions + self._read_before(self.cell(self.newest) + 1)

    def _forget(self) -> None:
        self.newest, self.jumping, self.votes = None, False, 0
        self.stored = [[] for _ in self.sources]

    def _hand_out_calibrations(self) -> list[Decision]:
        decisions = []
        for source, time, identity, arrived_ns in self.calibrations:
            decisions.append(Decision(time % TURN, 1, 1 << source, identity, self.trigger_count, arrived_ns))
            self.trigger_count += 1
            self.count["triggers_calibration"] += 1
        self.calibrations = []
        return decisions

    def _read_before(self, end_cell: int) -> list[Decision]:
        waiting = [p for p in self.stored[self.reference] if not p.read and not p.overwritten and self.cell(p.time) < end_cell]
        decisions = [self._decide_on(p) for p in sorted(waiting, key=lambda p: p.time)]
        self.next_cell = max(self.next_cell, end_cell)
        return decisions

    def _decide_on(self, reference: Stored) -> Decision:
        reference.read = True
        ids = [
            reference.id if source == self.reference else self._match(source, reference.time) for source in range(len(self.sources))
        ]
        for source, identity in enumerate(ids):
            self.input_count[source]["matched"] += identity != 0
        word = sum(1 << bit for bit, mask in enumerate(self.config["masks"]) if self._fires(bit, mask, ids))
        decision = Decision(
            time=reference.time % TURN,
            kind=0,
            matched_inputs=sum(1 << source for source, identity in enumerate(ids) if identity),
            trigger_word=word,
            trigger_number=self.trigger_count,
            arrived_ns=reference.arrived_ns,
        )
        self.count["decided"] += 1
        self.count["triggers_physics"] += word != 0
        self.trigger_count += word != 0
        return decision

    def _match(self, source: int, time: int) -> int:
        """ID of the closest primitive in the cells N, N-1, N+1, or 0."""
        cut, cell = self.cuts[source], self.cell(time)
        near = [self.held(source, c) for c in (cell, cell - 1, cell + 1)]
        good = [p for p in near if p is not None and abs(p.time - time) <= cut]
        return min(good, key=lambda p: abs(p.time - time)).id if good else 0  # min keeps the first of equals

    def _fires(self, bit: int, mask: dict[str, Any], ids: list[int]) -> bool:
        if not mask["enabled"]:
            return False
        for source, pattern in self.patterns[bit]:
            if any(asked not in ("x", found) for asked, found in zip(pattern, f"{ids[source]:016b}", strict=True)):
                return False
        self.mask_count[bit]["matched"] += 1
        self.since_fired[bit] += 1
        if self.since_fired[bit] < mask["downscaling"]:
            return False
        self.since_fired[bit] = 0
        self.mask_count[bit]["fired"] += 1
        return True

    def counters(self) -> dict[str, Any]:
        waiting = sum(not p.read and not p.overwritten for p in self.stored[self.reference])
        return {
            **self.count,
            "inputs": self.input_count,
            "masks": self.mask_count,
            "pending": waiting,
            "pending_calibrations": len(self.calibrations),
        }
