# SPDX-License-Identifier: Apache-2.0
"""Time slices and events out of recorded packets: of a tower's floors, of a string's modules, and of the trigger (docs/formats-km3.md).

A recording is read into memory as it is; this is for runs of minutes, not for a detector's storage.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nanet.config.errors import ConfigError
from nanet.km3 import daq
from nanet.km3.detector import Detector
from nanet.km3.messages import TICKS_A_SECOND
from nanet.km3.units import LAST, PACKET, PACKET_MAGIC, UNTIMED

__all__ = ["Collected", "Modules", "coincident", "collect", "modules_of_strings", "packets_of", "summary_of"]

CLB = struct.Struct(">7I")
CLB_HITS = 0x54544443  # TTDC
EVENT = struct.Struct(">8I")
EVENT_MAGIC = 0x4B4D3345
EVENT_HEAD = struct.Struct(">4Iq")
EVENT_HIT = np.dtype([("tower", "u1"), ("floor", "u1"), ("pm_and_kinds", "u1"), ("charge", "u1"), ("time", ">i8")])
PM_BITS = 5
HITS = 1
FLOOR_PMS, PLACE_PMS = 6, 2  # of a tower; a string's module has 31, which are one place
NUMBERS = 1 << 31  # of runs and slices, in floors' packets and in messages


class Modules:
    """How modules of KM3NeT's messages are called: by the detector file, or else tower x 256 + floor."""

    def __init__(self, detector: Detector | None = None) -> None:
        """Raises ConfigError."""
        self.detector_id = detector.id if detector is not None else 1
        self._ids: dict[tuple[int, int], int] = {}
        self._offsets: dict[int, NDArray[np.float64]] = {}
        self.base_ns = detector.time_base_ns if detector is not None else 0.0
        if detector is None:
            return
        _require_number("detector", detector.id)
        pms = detector.pms
        for floor in detector.floors:
            module = int(floor["id"])
            _require_number("module", module)
            self._ids[int(floor["tower"]), int(floor["number"])] = module
            self._offsets[module] = pms["time_offset_ns"][floor["first_pm"] : floor["first_pm"] + floor["pm_count"]]

    def pms_of(self, module: int) -> int | None:
        """How many PMs it has; None: the detector file does not say."""
        known = self._offsets.get(module)
        return known.size if known is not None else None

    def id_of(self, tower: int, floor: int) -> int:
        return self._ids.get((tower, floor), tower << 8 | floor)

    def offsets_of(self, module: int, channels: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Time offset of each hit [ns]; 0 where the detector file has none."""
        known = self._offsets.get(module)
        if known is None:
            return np.zeros(channels.size)
        inside = channels < known.size
        return np.where(inside, known[np.where(inside, channels, 0)], 0.0)


def _require_number(what: str, number: int) -> None:
    if not -NUMBERS <= number < NUMBERS:
        raise ConfigError([f"{what} {number} has no name (in KM3NeT's messages it is of 32 bits, signed) change the detector file"])


@dataclass
class Collected:
    """What came of a recording: slices in the order of their times, and events. Each packet is counted under one name."""

    slices: list[daq.Slice] = field(default_factory=list)
    events: list[daq.Event] = field(default_factory=list)
    packets: Counter[str] = field(default_factory=Counter)
    strings: set[int] = field(default_factory=set)
    """Modules whose packets are a CLB's."""
    units_incomplete: int = 0
    events_incomplete: int = 0


@dataclass
class _Pieces:
    """Of a unit or an event: payloads by their place."""

    second: int
    tick: int
    payloads: dict[int, bytes] = field(default_factory=dict)
    length: int | None = None

    def add(self, offset: int, payload: bytes) -> str:
        if offset in self.payloads:
            return "duplicate"
        self.payloads[offset] = payload
        return "accepted"

    def join(self) -> tuple[bytes, bool]:
        """What came, without its holes, and whether that is all. Records do not lie across packets."""
        at, parts = 0, []
        whole = self.length is not None
        for offset, payload in sorted(self.payloads.items()):
            whole &= offset == at
            if offset < at:
                payload = payload[at - offset :]  # an overlap: what came first in the unit holds
            parts.append(payload)
            at = max(at, offset + len(payload))
        return b"".join(parts), whole and at == self.length


def packets_of(path: Path) -> Iterator[bytes]:
    """UDP payloads of a pcap file. Raises nanet._core.SetupError for a file that is none."""
    from nanet import _core

    packets = _core.PcapPackets(str(path))
    while (packet := packets.next()) is not None:
        yield packet[4]


def collect(packets: Iterable[bytes], modules: Modules | None = None) -> Collected:
    """Slices of the hits (level L0) and events that are in these packets."""
    modules = modules or Modules()
    made = Collected()
    units: dict[tuple[int, int, int, int], _Pieces] = {}
    events: dict[tuple[int, int], _Pieces] = {}
    slices: dict[tuple[int, int], int] = {}
    strings: dict[tuple[int, int, int, int], dict[int, bytes]] = {}
    for packet in packets:
        magic = int.from_bytes(packet[:4], "big") if len(packet) >= 4 else 0
        if magic == PACKET_MAGIC and len(packet) >= PACKET.size:
            made.packets[_take_unit(packet, units)] += 1
        elif magic == EVENT_MAGIC and len(packet) >= EVENT.size:
            made.packets[_take_event(packet, events, slices)] += 1
        elif magic == CLB_HITS and len(packet) >= CLB.size:
            made.packets[_take_clb(packet, strings)] += 1
        else:
            made.packets["other"] += 1
    made.slices = _slices_of_units(units, modules, made) + _slices_of_strings(strings, modules, made)
    made.strings = {module for _, _, _, module in strings}
    made.events = _events_of(events, slices, modules, made)
    return made


def _take_unit(packet: bytes, units: dict[tuple[int, int, int, int], _Pieces]) -> str:
    _, tower, floor, kind, flags, run, index, second, tick, offset, _ = PACKET.unpack_from(packet)
    if max(run, index) >= NUMBERS or tick >= TICKS_A_SECOND or floor == 0 or flags & ~(LAST | UNTIMED):
        return "bad_head"
    if kind != HITS:
        return "other_kinds"
    pieces = units.setdefault((run, index, tower, floor), _Pieces(second, tick))
    payload = packet[PACKET.size :]
    if flags & LAST:
        pieces.length = offset + len(payload)
    return pieces.add(offset, payload)


def _take_event(packet: bytes, events: dict[tuple[int, int], _Pieces], slices: dict[tuple[int, int], int]) -> str:
    _, run, index, number, second, tick, offset, length = EVENT.unpack_from(packet)
    if max(run, index) >= NUMBERS or tick >= TICKS_A_SECOND:
        return "bad_head"
    pieces = events.setdefault((run, number), _Pieces(second, tick))
    pieces.length = length
    slices[run, number] = index
    return pieces.add(offset, packet[EVENT.size :])


def _take_clb(packet: bytes, strings: dict[tuple[int, int, int, int], dict[int, bytes]]) -> str:
    _, run, sequence, second, tick, module, _ = CLB.unpack_from(packet)
    if max(run, module) >= NUMBERS or tick >= TICKS_A_SECOND:
        return "bad_head"
    numbers = strings.setdefault((run, second, tick, module), {})
    if sequence in numbers:
        return "duplicate"
    numbers[sequence] = packet[CLB.size :]
    return "accepted"


def _whole_hits(data: bytes) -> NDArray[np.void]:
    return np.frombuffer(data, daq.HIT, len(data) // daq.HIT.itemsize)


def _slices_of_units(units: dict[tuple[int, int, int, int], _Pieces], modules: Modules, made: Collected) -> list[daq.Slice]:
    frames: dict[tuple[int, int], list[daq.Frame]] = {}
    for (run, index, tower, floor), pieces in sorted(units.items()):
        data, whole = pieces.join()
        made.units_incomplete += not whole
        count = len(pieces.payloads)
        header = daq.Header(modules.detector_id, run, index, pieces.second, pieces.tick)
        status = daq.queue_status(count, count if whole else count + 1)
        frames.setdefault((run, index), []).append(daq.Frame(header, modules.id_of(tower, floor), _whole_hits(data), status))
    return [daq.Slice("L0", found[0].header, tuple(found)) for found in frames.values()]


def _slices_of_strings(
    strings: dict[tuple[int, int, int, int], dict[int, bytes]], modules: Modules, made: Collected
) -> list[daq.Slice]:
    """Packets of modules say times and no number of the slice: slices of a run are counted from its first one, by their distance."""
    times = sorted({(run, second * TICKS_A_SECOND + tick) for run, second, tick, _ in strings})
    gaps = [later - earlier for (run, earlier), (other, later) in itertools.pairwise(times) if run == other]
    step, first = min(gaps, default=1), dict(reversed(times))
    frames: dict[tuple[int, int], list[daq.Frame]] = {}
    for (run, second, tick, module), numbers in sorted(strings.items()):
        time = second * TICKS_A_SECOND + tick
        header = daq.Header(modules.detector_id, run, (time - first[run]) // step, second, tick)
        if header.number >= NUMBERS:
            made.units_incomplete += 1  # a second that is far from all others has no number
            continue
        made.units_incomplete += max(numbers) >= len(numbers)  # how many packets there were no one says
        status = daq.queue_status(len(numbers), max(numbers) + 1)
        hits = _whole_hits(b"".join(payload for _, payload in sorted(numbers.items())))
        frames.setdefault((run, time), []).append(daq.Frame(header, module, hits, status))
    return [daq.Slice("L0", found[0].header, tuple(found)) for found in frames.values()]


def _events_of(
    events: dict[tuple[int, int], _Pieces], slices: dict[tuple[int, int], int], modules: Modules, made: Collected
) -> list[daq.Event]:
    found = []
    for (run, number), pieces in sorted(events.items()):
        data, whole = pieces.join()
        if not whole or len(data) < EVENT_HEAD.size:
            made.events_incomplete += 1
            continue
        count, _, kinds, _, _ = EVENT_HEAD.unpack_from(data)
        records = np.frombuffer(data, EVENT_HIT, min(count, (len(data) - EVENT_HEAD.size) // EVENT_HIT.itemsize), EVENT_HEAD.size)
        header = daq.Header(modules.detector_id, run, slices[run, number], pieces.second, pieces.tick)
        event = _event_of(header, number, kinds, records, modules)
        made.events_incomplete += event is None
        found += [event] if event is not None else []
    return found


def _event_of(header: daq.Header, number: int, kinds: int, records: NDArray[np.void], modules: Modules) -> daq.Event | None:
    """KM3NeT's events have the times that modules said, from the beginning of a slice on: offsets are taken off, and where an event begins before its
    slice, its header says an earlier time. None: a time is beyond what it can say."""
    hits = np.zeros(len(records), daq.EVENT_HIT)
    names, where = np.unique(np.stack([records["tower"], records["floor"]]), axis=1, return_inverse=True)
    ids = np.array([modules.id_of(int(tower), int(floor)) for tower, floor in names.T], np.int32)
    hits["module"] = ids[where.reshape(-1)] if len(records) else 0
    hits["channel"], hits["tot"] = records["pm_and_kinds"] & (1 << PM_BITS) - 1, records["charge"]
    times = records["time"].astype(np.float64) / 1024
    for module in ids:
        mine = hits["module"] == module
        times[mine] -= modules.offsets_of(int(module), hits["channel"][mine])
    whole_ns = np.rint(times).astype(np.int64)
    early = max(0, -int(whole_ns.min(initial=0)))
    ticks = -(-early // 16)
    if early + int(whole_ns.max(initial=0)) >= NUMBERS - 16 or header.second * TICKS_A_SECOND + header.tick < ticks:
        return None
    hits["time_ns"] = whole_ns + 16 * ticks
    second, tick = divmod(header.second * TICKS_A_SECOND + header.tick - ticks, TICKS_A_SECOND)
    order = np.argsort(hits["time_ns"], kind="stable")
    hits, seeds = hits[order], (records["pm_and_kinds"] >> PM_BITS)[order]
    triggered = np.zeros(int(np.count_nonzero(seeds)), daq.TRIGGERED_HIT)
    for name in daq.EVENT_HIT.names or ():
        triggered[name] = hits[name][seeds != 0]
    triggered["mask"] = seeds[seeds != 0]
    return daq.Event(header._replace(second=second, tick=tick), number, kinds, 0, triggered, hits)


def modules_of_strings(messages: Iterable[daq.Message], modules: Modules, found: Collected | None) -> set[int]:
    """Modules whose hits have a time over threshold: of a recording those that sent a CLB's packets. Of a dump those with more PMs than a floor: by the
    detector file, or else by the highest channel of all hits."""
    if found is not None:
        return found.strings
    frames = [frame for one in messages if isinstance(one, daq.Slice) for frame in one.frames]
    seen = 1 + max((int(frame.hits["channel"].max(initial=0)) for frame in frames), default=0)
    return {frame.module for frame in frames if (modules.pms_of(frame.module) or seen) > FLOOR_PMS}


def coincident(
    slice_: daq.Slice, modules: Modules, *, window_ns: float, charge: int, places: int | None = None, strings: Container[int] = ()
) -> daq.Slice:
    """Level L1 of it, as the trigger has it: hits that another one of their place follows or precedes within window_ns, on another PM, and hits of
    more than `charge` tenths of a photo-electron (0: none of these). Of modules in `strings` a hit has its time over threshold for charge.

    places: how many PMs a place has; 0: all of the module's are one place; None: 2 of a tower, all of a string's.
    """
    frames = []
    for frame in slice_.frames:
        hits, of_string = frame.hits, frame.module in strings
        place_pms = places if places is not None else 0 if of_string else PLACE_PMS
        times = hits["time_ns"].astype(np.float64) + modules.offsets_of(frame.module, hits["channel"])
        keep = _is_large(hits["tot"], charge, of_string=of_string)
        place = hits["channel"] // place_pms if place_pms else np.zeros(len(hits), np.uint8)
        for one in np.unique(place):
            mine = np.flatnonzero(place == one)
            keep[mine[_near(times[mine], hits["channel"][mine], window_ns)]] = True
        frames.append(frame._replace(hits=hits[keep]))
    return slice_._replace(level="L1", frames=tuple(frames))


def _is_large(said: NDArray[np.uint8], charge: int, *, of_string: bool) -> NDArray[np.bool_]:
    """Which hits have more charge than this, in the trigger's units and numbers (include/nanet/km3/hit.hpp)."""
    from nanet import _core

    if charge == 0:
        return np.zeros(len(said), bool)
    unit_pe = np.float32(_core.KM3_CHARGE_UNIT_PE)
    of_said_pe = np.float32(1) / np.float32(_core.KM3_TIME_OVER_THRESHOLD_NS) if of_string else unit_pe
    return said.astype(np.float32) * of_said_pe > np.float32(charge) * unit_pe


def _near(times: NDArray[np.float64], channels: NDArray[np.uint8], window_ns: float) -> NDArray[np.bool_]:
    """Which have one of another channel within the window. Neighbours in time are looked at until none is near any more."""
    order = np.argsort(times, kind="stable")
    times, channels = times[order], channels[order]
    near, apart = np.zeros(times.size, bool), 1
    while apart < times.size:
        inside = times[apart:] - times[:-apart] <= window_ns
        if not inside.any():
            break
        pair = inside & (channels[apart:] != channels[:-apart])
        near[apart:] |= pair
        near[:-apart] |= pair
        apart += 1
    found = np.empty(times.size, bool)
    found[order] = near
    return found


def summary_of(slice_: daq.Slice, slice_s: float) -> daq.Summary:
    """Rates of an L0 slice."""
    rows = np.zeros(len(slice_.frames), daq.MODULE)
    for row, frame in zip(rows, slice_.frames, strict=True):
        counts = np.bincount(frame.hits["channel"], minlength=daq.CHANNELS)[: daq.CHANNELS]
        row["module"], row["queue_status"], row["status"] = frame.module, frame.queue_status, frame.status
        row["rates"] = daq.rate_of(counts / slice_s)
    return daq.Summary(slice_.header, rows)
