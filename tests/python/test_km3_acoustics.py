# SPDX-License-Identifier: Apache-2.0
"""Positions from waveforms that are made here, with known places: noise, echoes that are louder than the sound, dead beacons, wrong clocks, holes.

The waveforms are made from straight rays and the formula of a pulse, not with nanet.km3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from nanet.km3.acoustics import (
    SAMPLE_HZ,
    Beacon,
    HydrophoneKey,
    Motion,
    Recording,
    Sound,
    chirp,
    find_arrivals,
    locate,
    motion_of_floor,
    samples_of,
)

SPEED = 1547.0
BEACONS = {
    "north": (0.0, 350.0, 2.0),
    "east": (380.0, -40.0, 5.0),
    "south": (-30.0, -360.0, 0.0),
    "west": (-340.0, 60.0, 3.0),
    "inner": (60.0, 170.0, 1.0),
}
EMITTED = {name: 0.05 + 0.35 * number for number, name in enumerate(BEACONS)}
LENGTH_S = 2.1
TOLERANCE_M = 0.4  # that is needed


def swept(from_hz: float, to_hz: float, duration_s: float) -> np.ndarray:
    t = np.arange(round(duration_s * 192000)) / 192000
    taper = np.clip(np.minimum(t, duration_s - t) / (duration_s / 8), 0, 1)
    return np.sin(2 * math.pi * (from_hz + (to_hz - from_hz) * t / (2 * duration_s)) * t) * np.sin(math.pi / 2 * taper) ** 2


PULSE = swept(20e3, 40e3, 0.01)


def heard(
    place: tuple[float, float, float], seed: int, *, dead: tuple[str, ...] = (), echo: float = 0.0, late: dict[str, float] | None = None, noise: float = 3000.0,
    amplitude: float = 40000.0, speed: float = SPEED,
) -> np.ndarray:  # fmt: skip
    """What a hydrophone at `place` hears: 24-bit samples. The pulse arrives between two samples, by a band-limited shift."""
    made = np.random.default_rng(seed).normal(0, noise, int(LENGTH_S * SAMPLE_HZ))
    for name, at in BEACONS.items():
        if name in dead:
            continue
        distance = math.dist(at, place)
        arrived = EMITTED[name] + distance / speed + (late or {}).get(name, 0.0)
        for delay, share in ((0.0, 1.0), (0.0017, echo)):
            begin = (arrived + delay) * SAMPLE_HZ
            whole, part = int(begin), begin - int(begin)
            padded = np.zeros(4096)
            padded[: PULSE.size] = PULSE
            shifted = np.fft.irfft(np.fft.rfft(padded) * np.exp(-2j * math.pi * np.fft.rfftfreq(4096) * part), 4096)
            made[whole : whole + 4096] += share * amplitude * (100 / distance) * shifted
    return np.clip(np.round(made), -(1 << 23), (1 << 23) - 1)


TRUTH = {
    HydrophoneKey(1, floor, one): (3.0 * floor - 10 + 8 * one, 1.5 * floor, 120.0 * floor) for floor in (1, 2) for one in (0, 1)
}
NOMINAL = {key: (x + 3.0, y - 4.0, z + 1.0) for key, (x, y, z) in TRUTH.items()}
BEACON_LIST = [Beacon(name, at, PULSE, (EMITTED[name],)) for name, at in BEACONS.items()]


def solve(
    *, sound: Sound | None = None, speed_error_m_s: float = 0.0, holes: dict[HydrophoneKey, slice] | None = None, **faults: Any
) -> Any:
    sound = sound or Sound(SPEED)
    recordings = {}
    for number, (key, place) in enumerate(TRUTH.items()):
        samples = heard(place, number, **faults)
        there = np.ones(samples.size, dtype=bool)
        if holes and key in holes:
            there[holes[key]] = False
        recordings[key] = Recording(0.0, samples, there)
    arrivals = find_arrivals(recordings, NOMINAL, BEACON_LIST, sound)
    return locate(arrivals, NOMINAL, BEACON_LIST, sound, speed_error_m_s=speed_error_m_s)


def worst_m(solution: Any) -> float:
    assert solution.positions
    return max(math.dist(one.position_m, TRUTH[key]) for key, one in solution.positions.items())


def test_places_are_found_to_a_few_centimetres() -> None:
    solution = solve()
    assert set(solution.positions) == set(TRUTH)
    assert worst_m(solution) < 0.15
    assert all(one.used == 5 for one in solution.positions.values())
    for key, one in solution.positions.items():  # the errors that are told are those that are made
        pulls = [(found - true) / error for found, true, error in zip(one.position_m, TRUTH[key], one.error_m, strict=True)]
        assert max(map(abs, pulls)) < 5
        assert max(one.error_m) < TOLERANCE_M
    assert not any(one.refused for one in solution.arrivals)


def test_echoes_that_are_louder_than_the_sound() -> None:
    assert worst_m(solve(echo=1.6)) < TOLERANCE_M


def test_a_dead_beacon_is_named_and_the_others_suffice() -> None:
    solution = solve(dead=("east",))
    assert worst_m(solution) < TOLERANCE_M
    assert {(one.beacon, one.refused) for one in solution.arrivals if one.refused} == {("east", "no_pulse")}


def test_two_dead_beacons_leave_three_and_three_dead_ones_too_few() -> None:
    assert worst_m(solve(dead=("east", "west"))) < TOLERANCE_M
    solution = solve(dead=("east", "west", "north"))
    assert solution.positions == {}
    assert set(solution.refused.values()) == {"too_few_beacons"}


def test_a_beacon_whose_clock_is_wrong_is_an_outlier() -> None:
    solution = solve(late={"south": 0.004})
    assert worst_m(solution) < TOLERANCE_M
    assert {(one.beacon, one.refused) for one in solution.arrivals if one.refused} == {("south", "outlier")}


def test_four_beacons_that_disagree_are_no_place() -> None:
    solution = solve(dead=("inner",), late={"south": 0.004})
    assert solution.positions == {}
    assert set(solution.refused.values()) == {"inconsistent"}


def test_the_speed_of_sound_is_found_with_the_places() -> None:
    wrong = solve(sound=Sound(1530.0))
    assert not wrong.positions or worst_m(wrong) > TOLERANCE_M
    solution = solve(sound=Sound(1530.0), speed_error_m_s=20.0)
    assert solution.sound.speed_m_s == pytest.approx(SPEED, abs=5 * solution.sound_error_m_s)
    assert solution.sound_error_m_s < 1.0
    assert worst_m(solution) < TOLERANCE_M


def test_a_speed_that_is_nearly_known_and_a_beacon_that_is_wrong() -> None:
    solution = solve(sound=Sound(SPEED + 1.0), speed_error_m_s=1.0, late={"south": 0.004})
    assert worst_m(solution) < TOLERANCE_M
    assert {(one.beacon, one.refused) for one in solution.arrivals if one.refused} == {("south", "outlier")}


def test_a_speed_that_is_not_known_and_a_beacon_that_is_wrong_are_ambiguous() -> None:
    """A ring of beacons at the foot: another speed is another height. The fifth one tells, if it is believed; here no one knows whom to believe."""
    solution = solve(sound=Sound(1535.0), speed_error_m_s=50.0, late={"south": 0.004})
    assert solution.positions == {}
    assert set(solution.refused.values()) == {"ambiguous"}


def test_what_was_not_recorded_is_named() -> None:
    key = HydrophoneKey(1, 1, 0)
    at = int((EMITTED["north"] + math.dist(BEACONS["north"], TRUTH[key]) / SPEED) * SAMPLE_HZ)
    solution = solve(holes={key: slice(at + 200, at + 210)})
    refused = [(one.hydrophone, one.beacon, one.refused) for one in solution.arrivals if one.refused]
    assert refused == [(key, "north", "not_recorded")]
    assert worst_m(solution) < TOLERANCE_M


def test_a_hydrophone_that_is_overdriven_is_named() -> None:
    solution = solve(amplitude=4e7)
    assert solution.positions == {}
    assert {one.refused for one in solution.arrivals} == {"saturated"}


def test_noise_alone_is_no_place() -> None:
    solution = solve(dead=tuple(BEACONS))
    assert {one.refused for one in solution.arrivals} == {"no_pulse"}
    assert set(solution.refused) == set(TRUTH)


@pytest.mark.parametrize(("gradient", "height"), [(0.0165, 300.0), (0.0165, 1200.0), (-0.05, 400.0)])
def test_travel_times_in_a_gradient_are_those_of_many_thin_layers(gradient: float, height: float) -> None:
    """Snell's law through layers, by the ray parameter that ends at the right place."""
    sound = Sound(1540.0, gradient, 0.0)
    across, layers = 350.0, 20000
    middles = (np.arange(layers) + 0.5) * height / layers
    speed = 1540.0 - gradient * middles

    def along(parameter: float) -> tuple[float, float]:
        sine = parameter * speed
        cosine = np.sqrt(1 - sine**2)
        return float(np.sum(height / layers * sine / cosine)), float(np.sum(height / layers / (speed * cosine)))

    low, high = 0.0, (1 - 1e-9) / float(speed.max())
    for _ in range(200):
        parameter = (low + high) / 2
        low, high = (parameter, high) if along(parameter)[0] < across else (low, parameter)
    found = float(sound.travel_s(np.array([0.0, 0.0, 0.0]), np.array([across, 0.0, height])))
    assert found == pytest.approx(along(low)[1], abs=1e-6)  # 1.5 mm


def test_travel_times_without_a_gradient_are_straight() -> None:
    found = Sound(1500.0).travel_s(np.zeros(3), np.array([300.0, 400.0, 1200.0]))
    assert float(found) == pytest.approx(1300 / 1500, rel=1e-12)
    nearly = Sound(1500.0, 1e-9).travel_s(np.zeros(3), np.array([300.0, 400.0, 1200.0]))
    assert float(nearly) == pytest.approx(1300 / 1500, rel=1e-8)


def test_samples_are_24_bits_signed_and_big_endian() -> None:
    assert samples_of(bytes.fromhex("000001 7FFFFF 800000 FFFFFE")).tolist() == [1, (1 << 23) - 1, -(1 << 23), -2]
    with pytest.raises(ValueError, match="no samples"):
        samples_of(b"1234")


def test_units_become_one_recording_with_its_holes() -> None:
    ones = np.ones(19200, dtype=np.int32)
    came = np.ones(19200, dtype=bool)
    came[5:7] = False
    made = Recording.of_units([(10.3, 3 * ones, None), (10.0, ones, came), (10.1, 2 * ones, None)])
    assert (made.begin_s, made.samples.size) == (10.0, 4 * 19200)
    assert made.samples[[0, 19199, 19200, 2 * 19200, 3 * 19200]].tolist() == [1, 1, 2, 0, 3]
    assert np.flatnonzero(~made.is_there[:19200]).tolist() == [5, 6]
    assert not made.is_there[2 * 19200 : 3 * 19200].any()
    assert made.is_there[3 * 19200 :].all()


def test_a_chirp_is_the_pulse_that_is_asked_for() -> None:
    made = chirp(20e3, 40e3, 0.01)
    spectrum = np.abs(np.fft.rfft(made)) ** 2
    frequency = np.fft.rfftfreq(made.size, 1 / SAMPLE_HZ)
    assert spectrum[(frequency > 19e3) & (frequency < 41e3)].sum() > 0.98 * spectrum.sum()
    assert abs(made[0]) < 1e-6


def test_a_floor_that_turned_and_went() -> None:
    keys = [HydrophoneKey(1, 1, one) for one in (0, 1)]
    nominal = {keys[0]: (-4.0, 0.0, 100.0), keys[1]: (4.0, 0.0, 100.0)}
    angle, shift = math.radians(30), (2.0, -1.0, -0.5)
    solution = solve()
    one = next(iter(solution.positions.values()))
    found = {
        key: type(one)((x * math.cos(angle) + shift[0], x * math.sin(angle) + shift[1], z + shift[2]), (0.1, 0.1, 0.1), 5)
        for key, (x, _, z) in nominal.items()
    }
    motion = motion_of_floor(found, nominal, 1, 1)
    assert motion is not None
    assert motion.yaw_rad == pytest.approx(angle)
    assert motion.shift_m == pytest.approx(shift)
    np.testing.assert_allclose(
        motion.moved(np.array([[0.0, 2.0, 100.0]])), [[2.0 - 2 * math.sin(angle), -1.0 + 2 * math.cos(angle), 99.5]]
    )
    alone = motion_of_floor({keys[1]: found[keys[1]]}, nominal, 1, 1)
    assert alone == Motion(nominal[keys[1]], 0.0, pytest.approx(tuple(np.subtract(found[keys[1]].position_m, nominal[keys[1]]))))
    assert motion_of_floor({}, nominal, 1, 1) is None
