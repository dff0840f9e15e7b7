# SPDX-License-Identifier: Apache-2.0
"""nanet.km3 against numpy that was written from the published conditions, and on bytes that KM3NeT's own programs wrote."""

from __future__ import annotations

import importlib.util
import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from nanet._core import SetupError
from nanet.km3.detector import Detector
from nanet.km3.trigger import FLOOR, HIT, SIMPLE, Trigger, pair_degrees
from numpy.typing import NDArray

C = 0.299792458
N = 1.3800851282


def match3b(points: NDArray[np.float64], radius: float = 90.0) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """[n, n] whether pairs match, and how far [ns] each is from the nearest border. With roots, as it was published."""
    tan = np.sqrt(N * N - 1)
    rs = radius * tan / N
    distance = np.linalg.norm(points[:, None, :3] - points[None, :, :3], axis=2)
    apart = np.abs(points[:, None, 3] - points[None, :, 3])
    with np.errstate(invalid="ignore"):
        longest = np.where(distance < radius, distance * N, np.sqrt(distance**2 - rs**2) + rs * tan)
        d2 = radius / 2 * np.sqrt(tan**2 + 10 + 9 / tan**2)
        far = np.sqrt(distance**2 - radius**2) - radius * tan
        middle = np.sqrt(distance**2 - 4 * radius**2)
    shortest = np.where(distance > d2, far, np.where(distance > 2 * radius, middle, 0.0))
    border = np.minimum(np.abs(apart - longest / C), np.where(shortest > 0, np.abs(apart - shortest / C), np.inf))
    return (apart <= longest / C) & (apart >= shortest / C), border


@pytest.mark.parametrize("window", [40, 5000])
def test_pairs_are_the_published_ones(window: int) -> None:
    random = np.random.default_rng(1)
    points = random.uniform(0, 1, (900, 4)) * [600, 600, 600, 6000]
    points = points[np.argsort(points[:, 3])]
    match, border = match3b(points)
    near = np.abs(np.subtract.outer(np.arange(900), np.arange(900)))
    wanted = match & (near > 0) & (near <= window)
    assert border[near > 0].min() > 1e-9, "no pair of this sample is at the border"
    degrees, pairs = pair_degrees(points, window)
    assert np.array_equal(degrees, wanted.sum(axis=1))
    assert pairs == wanted.sum() // 2 > 1000


def made_up_slice(seed: int, length_ns: float, rate_hz: float, pms: int = 84) -> NDArray[np.void]:
    random = np.random.default_rng(seed)
    count = random.poisson(rate_hz * 1e-9 * length_ns * pms)
    hits = np.zeros(count, HIT)
    hits["time_ns"] = np.floor(random.uniform(0, length_ns, count))
    hits["pm"] = random.integers(0, pms, count)
    hits["charge_pe"] = 1
    return hits


def test_events_are_those_of_all_groups_of_seeds() -> None:
    """Floors, coincidences, groups of four each connected to each, surroundings: one pass in plain Python."""
    detector = Detector.towers()
    pms = detector.pms
    hits = made_up_slice(2, 2e6, 250e3)
    trigger = Trigger(detector, slice_ns=1e6, reorder_ns=5e3, event_ns_max=1e5, seeds_min=4, window_ns=800, time_extra_ns=0)
    found = []
    for number in range(2):
        part = hits[hits["time_ns"] // 1e6 == number].copy()
        part["time_ns"] -= number * 1e6
        found.append(trigger.take_slice(number, part))
    found.append(trigger.flush())
    events = [
        (e["begin_ns"] + 1e6 * e["slice"], e["end_ns"] + 1e6 * e["slice"], int(e["hit_count"])) for one in found for e in one.events
    ]

    hits = hits[np.lexsort((hits["pm"], hits["time_ns"]))]
    seeds = []
    for i, hit in enumerate(hits):
        later = hits[i + 1 : np.searchsorted(hits["time_ns"], hit["time_ns"] + 200, "right")]
        mine, theirs = pms[hit["pm"]], pms[later["pm"]]
        same_floor = theirs["floor"] == mine["floor"]
        simple = same_floor & (theirs["number"] // 2 == mine["number"] // 2) & (later["pm"] != hit["pm"])
        simple &= later["time_ns"] - hit["time_ns"] <= 20
        ends = same_floor & (np.abs(theirs["number"] // 2 - mine["number"].astype(int) // 2) == 2)
        if simple.any() or ends.any():
            seeds.append((mine["x_m"], mine["y_m"], mine["z_m"], hit["time_ns"]))
    points = np.array(seeds)
    assert trigger.counts["seeds"] == len(points)
    triggered = np.zeros(len(points), bool)
    for i, point in enumerate(points):
        ahead = range(i + 1, int(np.searchsorted(points[:, 3], point[3] + 800, "right")))
        match, _ = match3b(points[i : ahead.stop])
        for others in itertools.combinations(ahead, 3):
            group = [0, *(k - i for k in others)]
            if match[np.ix_(group, group)].all():
                triggered[[i, *others]] = True
    times = points[triggered, 3]
    wanted = []
    for time in times:
        if wanted and time - 6000 < wanted[-1][1]:
            wanted[-1][1] = time + 6000
        else:
            wanted.append([time - 6000, time + 6000])
    assert len(wanted) > 5
    assert events == [(a, b, int(((hits["time_ns"] >= a) & (hits["time_ns"] < b)).sum())) for a, b in wanted]


def test_random_pairs_come_at_121_hz() -> None:
    detector = Detector.towers()
    trigger = Trigger(detector, slice_ns=200e6, charge_pe=1e9)
    for number in range(5):
        trigger.take_slice(number, made_up_slice(10 + number, 200e6, 55e3))
    trigger.flush()
    counts = trigger.counts
    assert counts["hits_in"] == counts["hits_used"]
    a_pair = counts["seeds_simple"] / 42 / 1.0
    expected = 55e3**2 * 41e-9  # 2 r^2 T = 121 Hz of exact times; of whole ns |dt| <= 20 is 41 of them
    assert a_pair == pytest.approx(expected, abs=4 * np.sqrt(expected / 42))


def test_a_track_is_an_event() -> None:
    detector = Detector.towers()
    hits = np.zeros(28, HIT)
    for floor in range(14):
        hits[2 * floor : 2 * floor + 2] = [(5e6 + 20 * floor / C, 6 * floor + 2, 1), (5e6 + 20 * floor / C + 4, 6 * floor + 3, 1)]
    trigger = Trigger(detector, slice_ns=20e6, direction_step_deg=20)
    found = trigger.take_slice(0, hits)
    assert len(found.events) == 1
    assert len(found.seeds_of(found.events[0])) == 14
    assert set(found.seeds["kinds"]) == {SIMPLE}
    assert np.array_equal(found.hits_of(found.events[0]), hits)
    assert FLOOR & found.events[0]["kinds"] == 0


def test_settings_are_checked() -> None:
    for settings in ({"seeds_min": 1}, {"seeds": 5}, {"window_ns": -1.0}, {"slice_ns": 2e5}, {"pruning": "none"}):
        with pytest.raises(SetupError, match="\\("):
            Trigger(Detector.towers(), **settings)
    with pytest.raises(SetupError, match="line 1"):
        Detector.from_detx("1 v9\n")


def data(name: str) -> Path:
    spec = importlib.util.find_spec("km3net_testdata")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "data" / name


VERSIONS = ["detx_v1", "detx_v2", "detx_v3", "detx_v3_whitespace", "detx_v4", "detx_v5", "KM3NeT_00000133_20221025"]


@pytest.mark.needs_package("km3net_testdata")
@pytest.mark.parametrize("name", VERSIONS)
def test_detector_files_of_km3net(name: str, tmp_path: Path) -> None:
    path = data(f"detx/{name}.detx")
    detector = Detector.read(path)
    lines = [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    version = int(lines[0][1].lower().removeprefix("v")) if lines[0][1][0] in "vV" else 1
    body = iter(lines[1 if version == 1 else 4 :])
    modules, pms = [], []
    for module in body:
        modules.append((int(module[0]), int(module[1]), int(module[-1])))
        pms += [[float(word) for word in next(body)] for _ in range(modules[-1][2])]
    floors = detector.floors
    assert [(int(f["id"]), int(f["tower"]), int(f["pm_count"])) for f in floors] == modules
    found = detector.pms
    assert found["id"].tolist() == [int(pm[0]) for pm in pms]
    names = ["x_m", "y_m", "z_m", "dx", "dy", "dz", "time_offset_ns"]
    assert [[float(pm[n]) for n in names] for pm in found] == [pm[1:8] for pm in pms]
    detector.write(tmp_path / "again.detx")
    again = Detector.read(tmp_path / "again.detx")
    assert np.array_equal(again.pms, found)
    assert np.array_equal(again.floors, floors)


@pytest.mark.needs_package("km3net_testdata")
def test_hits_of_clb_packets_and_time_slices() -> None:
    """Every hit of KM3NeT's samples, through the decoder and through struct. Their modules get a detector of 31 PMs each."""
    units: list[tuple[int, bytes]] = []
    clb = data("daq/clb.dqd").read_bytes()
    at = 0
    while at < len(clb):  # packets of km3net-clb behind their length
        (size,) = struct.unpack_from("<I", clb, at)
        module = struct.unpack_from(">I", clb, at + 4 + 20)[0]
        units.append((module, clb[at + 4 + 28 : at + 4 + size]))
        at += 4 + size
    assert sum(len(unit) // 6 for _, unit in units) == 229 + 141 + 229
    modules = sorted({module for module, _ in units})
    text = f"1 {len(modules)}\n" + "".join(
        f"{module} 1 {k + 1} 31\n" + "".join(f" {31 * k + n} 0 0 {k}.0 0 0 1 {n}.5\n" for n in range(31))
        for k, module in enumerate(modules)
    )
    detector = Detector.from_detx(text)
    for module, unit in units:
        floor = modules.index(module)
        hits, counts = detector.decode(floor, unit, "clb")
        wanted = list(struct.iter_unpack(">BiB", unit[: len(unit) // 6 * 6]))
        assert hits["pm"].tolist() == [31 * floor + channel for channel, _, _ in wanted]
        assert hits["time_ns"].tolist() == [time + channel for channel, time, _ in wanted]
        assert hits["charge_pe"] == pytest.approx([tot / 26.9 for _, _, tot in wanted])
        assert counts["hits"] == len(wanted)
        assert counts["records_bad_pm"] == counts["records_cut"] == 0
