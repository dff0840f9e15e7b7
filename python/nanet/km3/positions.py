# SPDX-License-Identifier: Apache-2.0
"""Positions of floors from recorded hydrophones: `nanet km3 positions`, from packets to a new version of the detector file."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.config.km3_beacons import Beacons
from nanet.km3.acoustics import (
    Beacon,
    HydrophoneKey,
    Motion,
    Recording,
    Search,
    Solution,
    Sound,
    chirp,
    find_arrivals,
    locate,
    motion_of_floor,
)
from nanet.km3.detector import Detector
from nanet.km3.messages import TICKS_A_SECOND
from nanet.km3.units import PACKET, PACKET_MAGIC, UNTIMED

__all__ = ["Heard", "Placed", "hear", "moved_detector", "nominal_places", "place"]

HYDROPHONES = (3, 4)
SAMPLE_BYTES = 3


@dataclass
class Heard:
    """What hydrophones heard, and from which second of GPS on times count. A unit of a floor whose time was not right is left out."""

    epoch_s: int = 0
    recordings: dict[HydrophoneKey, Recording] = field(default_factory=dict)
    packets: Counter[str] = field(default_factory=Counter)


@dataclass
class Placed:
    """Where hydrophones are, and how floors went."""

    solution: Solution
    nominal_m: dict[HydrophoneKey, tuple[float, float, float]]
    motions: dict[tuple[int, int], Motion]
    """By (tower, floor); a floor is not there if neither of its hydrophones was found."""


def hear(packets: Iterable[bytes]) -> Heard:
    """Units of hydrophones, put together from a recording's packets. What did not come is known as a hole."""
    pieces: dict[tuple[HydrophoneKey, int, int], dict[int, bytes]] = {}
    times: dict[tuple[HydrophoneKey, int, int], tuple[int, int]] = {}
    heard = Heard()
    for packet in packets:
        if len(packet) < PACKET.size or struct.unpack_from(">I", packet)[0] != PACKET_MAGIC:
            heard.packets["other"] += 1
            continue
        _, tower, floor, kind, flags, run, index, second, tick, offset, _ = PACKET.unpack_from(packet)
        if kind not in HYDROPHONES:
            heard.packets["other_kinds"] += 1
            continue
        if flags & UNTIMED:
            heard.packets["untimed"] += 1
            continue
        key = (HydrophoneKey(tower, floor, kind - HYDROPHONES[0]), run, index)
        unit = pieces.setdefault(key, {})
        heard.packets["duplicate" if offset in unit else "accepted"] += 1
        unit.setdefault(offset, packet[PACKET.size :])
        times.setdefault(key, (second, tick))
    heard.epoch_s = min((second for second, _ in times.values()), default=0)
    units: dict[HydrophoneKey, list[tuple[float, NDArray[np.int32], NDArray[np.bool_] | None]]] = {}
    for unit_key, unit in pieces.items():
        second, tick = times[unit_key]
        samples, came = _samples(unit)
        if samples.size:
            units.setdefault(unit_key[0], []).append((second - heard.epoch_s + tick / TICKS_A_SECOND, samples, came))
    heard.recordings = {key: Recording.of_units(found) for key, found in units.items()}
    return heard


def _samples(unit: Mapping[int, bytes]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Of a unit's pieces by their places: all samples up to the last that came, and which did."""
    count = max(offset + len(data) for offset, data in unit.items()) // SAMPLE_BYTES
    raw, came = np.zeros(count * SAMPLE_BYTES, np.uint8), np.zeros(count * SAMPLE_BYTES, bool)
    for offset, data in unit.items():
        end = min(offset + len(data), raw.size)
        raw[offset:end] = np.frombuffer(data, np.uint8, end - offset)
        came[offset:end] = True
    words = raw.reshape(-1, SAMPLE_BYTES).astype(np.int32)
    samples: NDArray[np.int32] = (words[:, 0] << 24 | words[:, 1] << 16 | words[:, 2] << 8) >> 8
    there: NDArray[np.bool_] = np.all(came.reshape(-1, SAMPLE_BYTES), axis=1)
    return samples, there


def nominal_places(detector: Detector) -> dict[HydrophoneKey, tuple[float, float, float]]:
    """Hydrophone 0 is at the place of a floor's first PM, hydrophone 1 at that of its last."""
    pms, places = detector.pms, {}
    for floor in detector.floors:
        ends = int(floor["first_pm"]), int(floor["first_pm"] + floor["pm_count"] - 1)
        for which, pm in enumerate(ends):
            x, y, z = (float(pms[pm][name]) for name in ("x_m", "y_m", "z_m"))
            places[HydrophoneKey(int(floor["tower"]), int(floor["number"]), which)] = (x, y, z)
    return places


def beacons_of(config: Beacons, begin_s: float, end_s: float) -> list[Beacon]:
    """Beacons, with the pulses that they emit in that time, from the epoch of a recording on."""
    pulse = chirp(config.pulse_from_hz, config.pulse_to_hz, config.pulse_ms * 1e-3, config.pulse_taper)
    made = []
    for one in config.beacons:
        first = int(np.ceil((begin_s - one.phase_s) / one.period_s))
        last = int(np.floor((end_s - one.phase_s) / one.period_s))
        emissions = tuple(one.phase_s + number * one.period_s for number in range(first, last + 1))
        made.append(Beacon(one.name, (one.x_m, one.y_m, one.z_m), pulse, emissions))
    return made


def place(heard: Heard, detector: Detector, config: Beacons) -> Placed:
    """Hydrophones that were heard, by least squares; one of which nothing came is `too_few_beacons`."""
    nominal = nominal_places(detector)
    recordings = {key: one for key, one in heard.recordings.items() if key in nominal}
    sound = Sound(config.speed_m_s, config.gradient_per_s, config.depth_z_m)
    begin_s = min((one.begin_s for one in recordings.values()), default=0.0)
    end_s = max((one.begin_s + one.samples.size / 192_000 for one in recordings.values()), default=0.0)
    # Phases count from GPS time 0: the epoch's own share of a period is taken off, in whole numbers of ns.
    shifted = config.model_copy(update={"beacons": tuple(_from_epoch(one, heard.epoch_s) for one in config.beacons)})
    beacons = beacons_of(shifted, begin_s - 10.0, end_s)  # 10 s: sound of 15 km away
    arrivals = find_arrivals(recordings, nominal, beacons, sound, Search(within_m=config.within_m))
    solution = locate(arrivals, nominal, beacons, sound, speed_error_m_s=config.speed_error_m_s, within_m=config.within_m)
    motions = {}
    for floor in detector.floors:
        tower, number = int(floor["tower"]), int(floor["number"])
        if (motion := motion_of_floor(solution.positions, nominal, tower, number)) is not None:
            motions[tower, number] = motion
    return Placed(solution, nominal, motions)


def _from_epoch(beacon: Any, epoch_s: int) -> Any:
    period_ns = round(beacon.period_s * 1e9)
    phase_ns = (round(beacon.phase_s * 1e9) - epoch_s * 10**9) % period_ns
    return beacon.model_copy(update={"phase_s": phase_ns * 1e-9})


def moved_detector(detector: Detector, motions: Mapping[tuple[int, int], Motion]) -> str:
    """The detector file, of version 3, with the PMs of these floors where they are now, turned with their floor; all else as it was."""
    lines = detector.native.to_detx().splitlines()
    pms = detector.pms
    at = len(lines) - len(pms) - len(detector.floors)
    for floor in detector.floors:
        motion = motions.get((int(floor["tower"]), int(floor["number"])))
        for pm in range(int(floor["pm_count"])):
            words = lines[at + 1 + pm].split()
            if motion is not None:
                row = pms[int(floor["first_pm"]) + pm]
                points = np.array([[row["x_m"], row["y_m"], row["z_m"]], [row["dx"], row["dy"], row["dz"]]])
                turned = Motion((0.0, 0.0, 0.0), motion.yaw_rad, (0.0, 0.0, 0.0)).moved(points[1])
                words[1:4] = [f"{value:.3f}" for value in motion.moved(points[0])]
                words[4:7] = [f"{value:.6f}" for value in turned]
            lines[at + 1 + pm] = " ".join(words)
        at += 1 + int(floor["pm_count"])
    return "\n".join(lines) + "\n"
