# SPDX-License-Identifier: Apache-2.0
"""Light in the modules of emulated strings: which photomultipliers see a decay of potassium-40 together, and muons with Cherenkov light.

Sources: directions of the 31 photomultipliers and distances of modules from detector files of km3net-testdata (MIT); probability of a pair of them from
nlesc-km3net/k40gen (Apache-2.0); light of a muon as the emulated tower has it (src/km3_emulate/tracks.hpp). A module's photomultipliers are taken to be at
its middle.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nanet.config.km3_strings import Strings

__all__ = [
    "CHANNELS",
    "DIRECTIONS",
    "Track",
    "detx",
    "light_of",
    "module_numbers",
    "module_places",
    "muon_light",
    "seen_together",
    "tracks",
]

Array = NDArray[np.float64]

RINGS_DEG = ((180.0, 0.0, 1), (147.89, 30.0, 6), (123.78, 0.0, 6), (107.22, 30.0, 6), (72.78, 0.0, 6), (56.08, 30.0, 6))
"""Zenith of where they look to, azimuth of the first and how many, in the order of the channels."""
CHANNELS = sum(count for _, _, count in RINGS_DEG)
REFRACTIVE_INDEX = 1.38
LIGHT_M_PER_NS = 0.299792458
COS = 1 / REFRACTIVE_INDEX
SIN = math.sqrt(1 - COS * COS)
MUONS, LIGHT = 0, 1  # streams of random numbers; those of noise are the modules' numbers, which begin at 101


class Track(NamedTuple):
    """A muon that is nearest to the strings' middle during a slice."""

    position_m: Array
    direction: Array
    time_ns: float
    """When it is there, since the slice began."""


def _directions() -> Array:
    found = []
    for zenith, first, count in RINGS_DEG:
        for k in range(count):
            theta, phi = math.radians(zenith), math.radians(first + 360 / count * k)
            found.append((math.sin(theta) * math.cos(phi), math.sin(theta) * math.sin(phi), math.cos(theta)))
    return np.array(found)


DIRECTIONS = _directions()
"""[channels, 3]: where each photomultiplier looks to."""


def _pair_weights() -> Array:
    cosine = np.clip(DIRECTIONS @ DIRECTIONS.T, -1, 1)
    weights = np.exp(cosine * (2.4347 + cosine * (-0.68884 + 1.3911 * cosine)))
    np.fill_diagonal(weights, 0)
    return np.asarray(weights)


_WEIGHTS = _pair_weights()
_FIRST, _SECOND = np.triu_indices(CHANNELS, 1)
_PAIRS = _WEIGHTS[_FIRST, _SECOND] / _WEIGHTS[_FIRST, _SECOND].sum()


def seen_together(random: np.random.Generator, count: int, fold: int) -> NDArray[np.int64]:
    """[count, fold] channels that see a decay: the first two by the angle between them, each further one by those to all before (ours)."""
    pairs = random.choice(len(_PAIRS), count, p=_PAIRS)
    seen = np.column_stack([_FIRST[pairs], _SECOND[pairs]])
    while seen.shape[1] < fold:
        upto = np.cumsum(np.prod(_WEIGHTS[seen], axis=1), axis=1)  # 0 of one that is there
        next_one = (upto <= random.random((count, 1)) * upto[:, -1:]).sum(axis=1)
        seen = np.column_stack([seen, next_one])
    return seen


def module_numbers(config: Strings) -> list[int]:
    """Of all modules."""
    return [100 * string + module for string in range(1, config.strings + 1) for module in range(1, config.modules + 1)]


def module_places(config: Strings) -> dict[int, Array]:
    """Where each module is [m]: strings in a row, module 1 lowest, the middle of all at 0, 0 and half the height."""
    return {
        number: np.array([(number // 100 - (config.strings + 1) / 2) * config.string_m, 0.0, number % 100 * config.module_m])
        for number in module_numbers(config)
    }


def tracks(config: Strings, slice_: int) -> list[Track]:
    """The muons of a slice, from above, evenly in the cosine of the zenith; always the same ones."""
    random = np.random.default_rng([config.seed, slice_, MUONS])
    middle = np.array([0.0, 0.0, (config.modules + 1) / 2 * config.module_m])
    found = []
    for _ in range(random.poisson(config.muons_hz * config.slice_ms / 1000)):
        cosine, azimuth = random.random(), random.random() * 2 * math.pi
        sine = math.sqrt(1 - cosine * cosine)
        direction = np.array([sine * math.cos(azimuth), sine * math.sin(azimuth), -cosine])
        across = np.array([-math.sin(azimuth), math.cos(azimuth), 0.0])
        up = np.cross(direction, across)
        radius, turn = config.radius_m * math.sqrt(random.random()), random.random() * 2 * math.pi
        place = middle + radius * (math.cos(turn) * across + math.sin(turn) * up)
        found.append(Track(place, direction, random.random() * config.slice_ms * 1e6))
    return found


def muon_light(config: Strings, track: Track, place_m: Array) -> tuple[float, Array]:
    """When its light is at a module [ns since the slice began], and the photo-electrons that each channel has of it in the mean."""
    to = place_m - track.position_m
    along = float(to @ track.direction)
    distance_m = max(1.0, math.sqrt(max(0.0, float(to @ to) - along * along)))
    time_ns = track.time_ns + (along + distance_m * SIN / COS) / LIGHT_M_PER_NS
    flight = to - (along - distance_m * COS / SIN) * track.direction  # from where it left the track
    flight /= np.linalg.norm(flight)
    faces = (1 - DIRECTIONS @ flight) / 2
    return time_ns, config.light_pe_m / distance_m * math.exp(-distance_m / (SIN * config.absorption_m)) * faces


def light_of(config: Strings, slice_: int, module: int) -> tuple[NDArray[np.int64], Array, Array]:
    """Channels, times [ns since the slice began, also before or after it] and photo-electrons of a slice's muons in a module; always the same."""
    random = np.random.default_rng([config.seed, slice_, module, LIGHT])
    place = module_places(config)[module]
    channels, times, pes = [np.zeros(0, np.int64)], [np.zeros(0)], [np.zeros(0)]
    for track in tracks(config, slice_):
        time_ns, mean = muon_light(config, track, place)
        electrons = random.poisson(mean)
        late = random.normal(0, config.time_sigma_ns, CHANNELS)
        seen = np.flatnonzero(electrons)
        channels.append(seen)
        times.append(time_ns + late[seen])
        pes.append(electrons[seen].astype(np.float64))
    return np.concatenate(channels), np.concatenate(times), np.concatenate(pes)


def detx(config: Strings) -> str:
    """The strings as a detector file, version 1; channel c of module m of string s is photomultiplier 31 times the module's place + c + 1."""
    lines = [f"1 {config.strings * config.modules}"]
    for at, (number, place) in enumerate(module_places(config).items()):
        lines.append(f"{number} {number // 100} {number % 100} {CHANNELS}")
        for channel, looks in enumerate(DIRECTIONS):
            numbers = " ".join(f"{value:.6f}" for value in (*place, *looks))
            lines.append(f" {CHANNELS * at + channel + 1} {numbers} 0")
    return "\n".join(lines) + "\n"
