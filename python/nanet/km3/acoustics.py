# SPDX-License-Identifier: Apache-2.0
"""Positions of hydrophones from the times at which pulses of beacons arrive. No I/O and no clock.

A beacon at a known place emits a known pulse at known times of GPS. A matched filter finds when it came to a hydrophone; the sound's speed, or what
is fitted of it, makes a distance of that; three distances and more make a place. docs/design/km3-server.md#positions

Lengths are m, z upwards, times s, all in float64; a time of GPS is said from an epoch of the caller's choice, so that a float keeps nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nanet.km3.needs import optimize, signal, stats

Floats = NDArray[np.float64]
SAMPLE_HZ = 192_000
FULL_SCALE = 1 << 23
REFUSALS = ("not_recorded", "saturated", "no_pulse", "outlier", "too_few_beacons", "inconsistent", "ambiguous", "far_from_nominal")
"""Why a time or a hydrophone is not used. outlier: it does not fit the place that the others agree on. inconsistent: no enough others agree.
ambiguous: with the speed of sound unknown, more than one beacon could be the wrong one, with other places for each."""


class HydrophoneKey(NamedTuple):
    """Which hydrophone: tower, floor, and 0 or 1."""

    tower: int
    floor: int
    hydrophone: int


@dataclass(frozen=True)
class Beacon:
    """What emits: where, when, and what. pulse: at SAMPLE_HZ, of any amplitude; its first sample leaves at the time of emission."""

    name: str
    position_m: tuple[float, float, float]
    pulse: Floats
    emissions_s: tuple[float, ...]


@dataclass(frozen=True)
class Sound:
    """Speed of sound: `speed_m_s` at `depth_z_m`, growing by `gradient_per_s` a metre downwards (0.0165 in deep water)."""

    speed_m_s: float = 1545.0
    gradient_per_s: float = 0.0
    depth_z_m: float = 0.0

    def at(self, z_m: Floats | float) -> Floats:
        return np.asarray(self.speed_m_s + self.gradient_per_s * (self.depth_z_m - np.asarray(z_m, dtype=np.float64)))

    def travel_s(self, from_m: Floats, to_m: Floats) -> Floats:
        """Along the ray, a circle where the speed grows with depth: t = acosh(1 + g^2 d^2 / (2 c1 c2)) / g. from_m, to_m: [..., 3]."""
        d2 = np.sum((from_m - to_m) ** 2, axis=-1)
        product = self.at(from_m[..., 2]) * self.at(to_m[..., 2])
        x = self.gradient_per_s**2 * d2 / (4 * product)
        # acosh(1 + 2 x) = 2 asinh(sqrt(x)), which keeps its digits where x is small
        curved = 2 * np.arcsinh(np.sqrt(x)) / max(abs(self.gradient_per_s), 1e-30)
        return np.asarray(np.where(x < 1e-12, np.sqrt(d2 / product), curved))


@dataclass(frozen=True)
class Arrival:
    """A pulse that came, or did not: `refused` says why, empty if it is used."""

    hydrophone: HydrophoneKey
    beacon: str
    emitted_s: float
    arrived_s: float = 0.0
    error_s: float = 0.0
    signal_to_noise: float = 0.0
    refused: str = ""


@dataclass(frozen=True)
class Search:
    """How arrivals are looked for."""

    within_m: float = 20.0  # of the nominal place
    threshold: float = 8.0  # of the filter's output, in rms of its noise
    first_fraction: float = (
        0.5  # the first peak of at least this share of the highest is the direct one: echoes come later, and may be louder
    )
    error_s: float = 20e-6  # of clocks, beacons and electronics, beside what noise does


@dataclass(frozen=True)
class Position:
    """Where a hydrophone is. error_m: of x, y, z, one standard deviation."""

    position_m: tuple[float, float, float]
    error_m: tuple[float, float, float]
    used: int


@dataclass(frozen=True)
class Solution:
    """What came of all times."""

    positions: dict[HydrophoneKey, Position]
    refused: dict[HydrophoneKey, str]
    arrivals: tuple[Arrival, ...]
    sound: Sound
    sound_error_m_s: float = 0.0
    chi2: float = 0.0
    degrees: int = 0


def chirp(from_hz: float, to_hz: float, duration_s: float, taper: float = 0.25) -> Floats:
    """A pulse as beacons emit them: its frequency rises evenly, its ends are smooth. taper: share of it that they are."""
    times = np.arange(round(duration_s * SAMPLE_HZ)) / SAMPLE_HZ
    sweep = np.sin(2 * np.pi * (from_hz * times + (to_hz - from_hz) * times**2 / (2 * duration_s)))
    return np.asarray(sweep * signal.windows.tukey(times.size, taper), dtype=np.float64)


def samples_of(data: bytes | memoryview) -> NDArray[np.int32]:
    """Samples of a hydrophone's unit: 3 bytes each, signed, big-endian."""
    if len(data) % 3:
        raise ValueError(f"{len(data)} B are no samples (each has 3) give whole records")
    raw = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3).astype(np.int32)
    return (raw[:, 0] << 24 | raw[:, 1] << 16 | raw[:, 2] << 8) >> 8


@dataclass
class Recording:
    """What one hydrophone heard, put together from its units. A hole is silence that is known to be one."""

    begin_s: float
    samples: Floats
    is_there: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @classmethod
    def of_units(cls, units: Sequence[tuple[float, NDArray[np.int32], NDArray[np.bool_] | None]]) -> Recording:
        """units: (time of the first sample [s], samples, which of them came; None: all), in any order; none may be empty of all units."""
        begin_s = min(start_s for start_s, _, _ in units)
        places = [round((start_s - begin_s) * SAMPLE_HZ) for start_s, _, _ in units]
        length = max(place + samples.size for place, (_, samples, _) in zip(places, units, strict=True))
        made = cls(begin_s, np.zeros(length), np.zeros(length, dtype=np.bool_))
        for place, (_, samples, came) in zip(places, units, strict=True):
            there = np.ones(samples.size, dtype=np.bool_) if came is None else came
            made.samples[place : place + samples.size][there] = samples[there]
            made.is_there[place : place + samples.size] |= there
        return made


def find_arrival(
    recording: Recording,
    key: HydrophoneKey,
    beacon: Beacon,
    emitted_s: float,
    expected_s: float,
    search: Search,
    speed_m_s: float = 1500.0,
) -> Arrival:
    """When the pulse that was emitted at `emitted_s` came, near `expected_s`."""
    half = round(search.within_m / speed_m_s * SAMPLE_HZ)
    middle = round((expected_s - recording.begin_s) * SAMPLE_HZ)
    begin, end = middle - half, middle + half + beacon.pulse.size
    nothing = Arrival(key, beacon.name, emitted_s)
    if begin < 0 or end > recording.samples.size or not recording.is_there[begin:end].all():
        return replace(nothing, refused="not_recorded")
    heard = recording.samples[begin:end]
    if np.count_nonzero(np.abs(heard) >= FULL_SCALE - 1) > 2:
        return replace(nothing, refused="saturated")
    pulse = beacon.pulse / np.sqrt(np.sum(beacon.pulse**2))
    envelope = np.abs(signal.hilbert(signal.correlate(heard - heard.mean(), pulse, mode="valid", method="fft")))
    noise = float(np.median(envelope)) / np.sqrt(np.log(4))  # of Rayleigh's distribution, which an envelope of noise has
    apart = max(1, round(SAMPLE_HZ / (4 * _bandwidth_hz(pulse))))  # peaks nearer than this are ripples of one
    height = max(search.threshold * noise, search.first_fraction * float(envelope.max()))
    peaks = signal.find_peaks(envelope, height=height, distance=apart)[0]
    if noise <= 0 or peaks.size == 0:
        return replace(nothing, refused="no_pulse")
    at = int(peaks[0])
    before, top, after = (float(one) for one in envelope[at - 1 : at + 2])
    place = begin + at + (before - after) / (2 * (before - 2 * top + after))
    ratio = top / noise
    error_s = np.hypot(search.error_s, 1 / (2 * np.pi * _bandwidth_hz(pulse) * ratio))
    return replace(nothing, arrived_s=recording.begin_s + place / SAMPLE_HZ, error_s=float(error_s), signal_to_noise=ratio)


def _bandwidth_hz(pulse: Floats) -> float:
    """Rms width of its spectrum about its middle: that of the envelope, which is what is timed."""
    power = np.abs(np.fft.rfft(pulse)) ** 2
    frequency = np.fft.rfftfreq(pulse.size, 1 / SAMPLE_HZ)
    middle = np.average(frequency, weights=power)
    return float(np.sqrt(np.average((frequency - middle) ** 2, weights=power)))


def find_arrivals(
    recordings: Mapping[HydrophoneKey, Recording],
    nominal_m: Mapping[HydrophoneKey, tuple[float, float, float]],
    beacons: Sequence[Beacon],
    sound: Sound,
    search: Search = Search(),
) -> list[Arrival]:
    """Of every emission that could be in a recording."""
    found = []
    for key, recording in recordings.items():
        end_s = recording.begin_s + recording.samples.size / SAMPLE_HZ
        for beacon in beacons:
            travel_s = float(sound.travel_s(np.array(beacon.position_m), np.array(nominal_m[key])))
            for emitted_s in beacon.emissions_s:
                if recording.begin_s <= emitted_s + travel_s < end_s:
                    found.append(find_arrival(recording, key, beacon, emitted_s, emitted_s + travel_s, search, sound.speed_m_s))
    return found


def locate(
    arrivals: Sequence[Arrival],
    nominal_m: Mapping[HydrophoneKey, tuple[float, float, float]],
    beacons: Sequence[Beacon],
    sound: Sound,
    *,
    speed_error_m_s: float = 0.0,
    within_m: float = 20.0,
    significance: float = 1e-4,
) -> Solution:
    """Places by least squares. A time that does not fit those of the other beacons is left out, by name, where enough are left to know that it is it.

    speed_error_m_s: how well the speed of sound is known; it is found with the places, if that is not 0.
    within_m: a place further from the nominal one is refused. significance: probability below which times of good beacons are called bad.
    """
    places = {one.name: np.array(one.position_m) for one in beacons}
    by_key: dict[HydrophoneKey, list[Arrival]] = {}
    for one in arrivals:
        if not one.refused:
            by_key.setdefault(one.hydrophone, []).append(one)
    refused = {key: "too_few_beacons" for key in nominal_m if len({one.beacon for one in by_key.get(key, [])}) < 3}
    good = {key: found for key, found in by_key.items() if key not in refused}
    given = sound
    if speed_error_m_s > 0 and good:
        sound, is_known = _speed(good, nominal_m, places, sound, speed_error_m_s, significance)
        if not is_known:
            return Solution({}, refused | dict.fromkeys(good, "ambiguous"), tuple(arrivals), sound)
    left_out: set[Arrival] = set()
    for key in list(good):
        kept, why = _agreeing(good[key], nominal_m[key], places, sound, significance)
        left_out |= set(good[key]) - set(kept)
        if why:
            refused[key] = why
            del good[key]
        else:
            good[key] = kept
    told = tuple(replace(one, refused="outlier") if one in left_out else one for one in arrivals)
    if not good:
        return Solution({}, refused, told, sound)
    found, sound, covariance, chi2, degrees = _fit(good, nominal_m, places, given, speed_error_m_s)
    positions: dict[HydrophoneKey, Position] = {}
    for number, (key, place) in enumerate(found.items()):
        if np.linalg.norm(place - np.array(nominal_m[key])) > within_m:
            refused[key] = "far_from_nominal"
            continue
        variance = np.diag(covariance)[3 * number : 3 * number + 3]
        x, y, z = (float(one) for one in place)
        dx, dy, dz = (float(one) for one in np.sqrt(variance))
        positions[key] = Position((x, y, z), (dx, dy, dz), len(good[key]))
    error = float(np.sqrt(covariance[-1, -1])) if speed_error_m_s > 0 else 0.0
    return Solution(positions, refused, told, sound, error, chi2, degrees)


def _speed(
    good: Mapping[HydrophoneKey, Sequence[Arrival]],
    nominal_m: Mapping[HydrophoneKey, tuple[float, float, float]],
    places: Mapping[str, Floats],
    sound: Sound,
    error_m_s: float,
    significance: float,
) -> tuple[Sound, bool]:
    """The speed that all times agree on, or all but those of one beacon, and whether that is the only one."""

    def agree(some: Mapping[HydrophoneKey, Sequence[Arrival]]) -> tuple[Sound, bool]:
        _, fitted, _, chi2, degrees = _fit(some, nominal_m, places, sound, error_m_s)
        return fitted, degrees > 0 and bool(stats.chi2.sf(chi2, degrees) >= significance)

    fitted, is_good = agree(good)
    if is_good:
        return fitted, True
    found = []
    for beacon in sorted({one.beacon for times in good.values() for one in times}):
        without = {key: [one for one in times if one.beacon != beacon] for key, times in good.items()}
        enough = {key: times for key, times in without.items() if len({one.beacon for one in times}) >= 3}
        fitted, is_good = agree(enough) if enough else (sound, False)
        if is_good:
            found.append(fitted)
    if found:
        return found[0], len(found) == 1
    return _fit(good, nominal_m, places, sound, error_m_s, robust=True)[1], True


def _agreeing(
    found: list[Arrival], nominal_m: tuple[float, float, float], places: Mapping[str, Floats], sound: Sound, significance: float
) -> tuple[list[Arrival], str]:
    """The times of a hydrophone that agree on a place, and why it is refused if none do: one after the other is left out, the worst first."""
    key, kept = found[0].hydrophone, found
    while True:
        *_, chi2, degrees = _fit({key: kept}, {key: nominal_m}, places, sound)
        if degrees <= 0 or stats.chi2.sf(chi2, degrees) >= significance:
            return kept, ""
        if len({one.beacon for one in kept}) < 5:  # four that disagree, or three of four: no one knows which
            return found, "inconsistent"
        fewer = [[one for one in kept if one is not left] for left in kept]
        kept = min(fewer, key=lambda some: _fit({key: some}, {key: nominal_m}, places, sound)[3])


def _fit(
    good: Mapping[HydrophoneKey, Sequence[Arrival]],
    nominal_m: Mapping[HydrophoneKey, tuple[float, float, float]],
    places: Mapping[str, Floats],
    sound: Sound,
    speed_error_m_s: float = 0.0,
    *,
    robust: bool = False,
) -> tuple[dict[HydrophoneKey, Floats], Sound, Floats, float, int]:
    """(place of each, sound, covariance of all that was fitted, chi square, degrees of freedom). What is known of the speed is one more measurement."""
    fit_speed = speed_error_m_s > 0
    rows = [(number, one) for number, found in enumerate(good.values()) for one in found]
    of = np.array([number for number, _ in rows])
    sources = np.array([places[one.beacon] for _, one in rows])
    travelled = np.array([one.arrived_s - one.emitted_s for _, one in rows])
    errors = np.array([one.error_s for _, one in rows])
    begin = np.concatenate([np.array([nominal_m[key] for key in good]).ravel(), [sound.speed_m_s] if fit_speed else []])

    def sound_of(x: Floats) -> Sound:
        return replace(sound, speed_m_s=float(x[-1])) if fit_speed else sound

    def residuals(x: Floats) -> Floats:
        at = x[: 3 * len(good)].reshape(-1, 3)[of]
        known = [(x[-1] - sound.speed_m_s) / speed_error_m_s] if fit_speed else []
        return np.concatenate([(sound_of(x).travel_s(sources, at) - travelled) / errors, known])

    scale = np.concatenate([np.ones(3 * len(good)), [10.0] if fit_speed else []])
    if robust:  # far from the answer all look bad: the width is that of a good part of them
        begin = optimize.least_squares(residuals, begin, x_scale=scale, loss="cauchy", f_scale=100.0).x
    done = optimize.least_squares(
        residuals,
        begin,
        x_scale=scale,
        loss="cauchy" if robust else "linear",
        f_scale=3.0 if robust else 1.0,
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    covariance = np.linalg.pinv(done.jac.T @ done.jac)
    chi2 = float(np.sum(residuals(done.x) ** 2))
    found = dict(zip(good, done.x[: 3 * len(good)].reshape(-1, 3), strict=True))
    return found, sound_of(done.x), np.asarray(covariance), chi2, len(rows) + fit_speed - begin.size


@dataclass(frozen=True)
class Motion:
    """How a floor lies now: turned by `yaw_rad` about the vertical through `about_m`, then moved."""

    about_m: tuple[float, float, float]
    yaw_rad: float
    shift_m: tuple[float, float, float]

    def moved(self, points_m: Floats) -> Floats:
        """points_m: [..., 3], nominal."""
        cos, sin = np.cos(self.yaw_rad), np.sin(self.yaw_rad)
        turn = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
        return np.asarray((points_m - np.array(self.about_m)) @ turn.T + np.array(self.about_m) + np.array(self.shift_m))


def motion_of_floor(
    positions: Mapping[HydrophoneKey, Position],
    nominal_m: Mapping[HydrophoneKey, tuple[float, float, float]],
    tower: int,
    floor: int,
) -> Motion | None:
    """From both hydrophones of a floor where it turned and went; from one where it went; None: neither was found."""
    keys = [
        key for key in (HydrophoneKey(tower, floor, 0), HydrophoneKey(tower, floor, 1)) if key in positions and key in nominal_m
    ]
    if not keys:
        return None
    was, now = (np.array([values[key] for key in keys]) for values in (nominal_m, {key: positions[key].position_m for key in keys}))
    yaw = 0.0
    if len(keys) == 2:
        before, after = was[1] - was[0], now[1] - now[0]
        yaw = float(np.arctan2(before[0] * after[1] - before[1] * after[0], before[0] * after[0] + before[1] * after[1]))
    x, y, z = (float(one) for one in was.mean(axis=0))
    dx, dy, dz = (float(one) for one in now.mean(axis=0) - was.mean(axis=0))
    return Motion((x, y, z), yaw, (dx, dy, dz))
