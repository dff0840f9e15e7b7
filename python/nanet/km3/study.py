# SPDX-License-Identifier: Apache-2.0
"""How good the trigger is on an emulated tower, against truth: efficiency, noise, purity, capacity, and what other cuts would give."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nanet.config.components import Km3Trigger
from nanet.km3.needs import stats
from nanet.km3.trigger import Found, Trigger
from nanet.km3.truth import HITS_KIND, LIGHT_PE_M, SAME_NS, SEEDS_MUON, Muon, Tower, display_of, light_of_energy, seed_kinds
from nanet.result import files
from nanet.result.keys.km3 import CutsPoint, Display, EnergyPoint, Rate, SeedPoint, Share, StudyResult

CONFIDENCE = 0.95
SEEDS_OWN = 2  # triggered seeds of its own light that an event of a muon has, or more
SEEDS_SHOWN = 12
ENERGIES_GEV = (30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4)  # where the losses to showers are known
SCAN: tuple[dict[str, Any], ...] = tuple(
    {"seeds_min": seeds, "time_extra_ns": extra, "direction_step_deg": step}
    for seeds in (3, 4, 5, 6)
    for extra in (0.0, 10.0, 20.0)
    for step in (0.0, 20.0)
)


@dataclass(frozen=True)
class Study:
    """What to measure."""

    seed: int = 1
    muon_slices: int = 100
    muons_hz: float = 200.0
    noise_slices: int = 150
    scan: bool = True
    trigger: dict[str, Any] = field(default_factory=dict)
    energy_slices: int = 25


OfGpu = Callable[[float, float], tuple[float | None, str, str]]
"""How many floors, with so many hits and L1 seeds a second each, a GPU serves; or None, and why that is not known; and which GPU."""


def not_asked(_hits_per_s: float, _seeds_per_s: float) -> tuple[float | None, str, str]:
    """No GPU."""
    return None, "it was not asked for", ""


class Books(NamedTuple):
    """Counts of one set of cuts."""

    found: NDArray[np.bool_]
    """By muon."""
    seeds_of_muon: NDArray[np.int64]
    events: int
    events_of_muons: int


def share(found: int, counted: int) -> Share | None:
    """Clopper and Pearson's interval; None of nothing."""
    if counted == 0:
        return None
    interval = stats.binomtest(found, counted).proportion_ci(CONFIDENCE, method="exact")
    return {"value": found / counted, "low": float(interval.low), "high": float(interval.high), "found": found, "counted": counted}


def rate(counted: int, seconds: float) -> Rate:
    """Garwood's interval."""
    rest = (1 - CONFIDENCE) / 2
    low = stats.chi2.ppf(rest, 2 * counted) / 2 if counted else 0.0
    high = stats.chi2.ppf(1 - rest, 2 * counted + 2) / 2
    return {
        "value": counted / seconds, "low": float(low / seconds), "high": float(high / seconds), "counted": counted, "seconds": seconds,
    }  # fmt: skip


class Judged:
    """A trigger with some cuts, slice after slice, and what it found of muons."""

    def __init__(self, tower: Tower, cuts: dict[str, Any]) -> None:
        self._slice_ns, self._pms = tower.slice_ns, tower.detector.pms
        self.trigger = Trigger(tower.detector, slice_ns=tower.slice_ns, **cuts)
        self.settings = Km3Trigger(slice_ns=tower.slice_ns, **cuts)
        self.cpu_s = 0.0
        self.wall_s: list[float] = []
        self.found: list[Found] = []

    def take(self, number: int, hits: NDArray[np.void]) -> None:
        began_s, cpu_s = time.perf_counter(), time.process_time()
        found = self.trigger.take_slice(number, hits)
        self.cpu_s += time.process_time() - cpu_s
        self.wall_s.append(time.perf_counter() - began_s)
        self.found.append(found)

    def books(self, muons: Sequence[Muon]) -> Books:
        """Which muons were found: an event has SEEDS_OWN triggered seeds or more that are hits of it."""
        self.found.append(self.trigger.flush())
        times, pms, events = self._seeds()
        order = np.argsort(times, kind="stable")
        times, pms, events = times[order], pms[order], events[order]
        got = np.zeros(len(muons), bool)
        own = np.zeros(len(muons), np.int64)
        of_muons: set[int] = set()
        for m, muon in enumerate(muons):
            own[m] = int((self._kinds(muon.hits) > 0).sum())
            at = muon.hits["time_ns"] + muon.slice * self._slice_ns
            low, high = np.searchsorted(times, at - SAME_NS), np.searchsorted(times, at + SAME_NS)
            same = [events[k] for a, b, pm in zip(low, high, muon.hits["pm"], strict=True) for k in range(a, b) if pms[k] == pm]
            names, counts = np.unique(same, return_counts=True)
            of_it = names[counts >= SEEDS_OWN]
            got[m] = len(of_it) > 0
            of_muons.update(int(one) for one in of_it)
        return Books(got, own, self.trigger.counts["events"], len(of_muons))

    def _kinds(self, hits: NDArray[np.void]) -> NDArray[np.uint32]:
        at = self.settings
        return seed_kinds(
            hits, self._pms, simple_ns=at.simple_ns, floor_ns=at.floor_ns, charge_pe=at.charge_pe, threshold_pe=at.threshold_pe
        )

    def _seeds(self) -> tuple[NDArray[np.float64], NDArray[np.uint32], NDArray[np.int64]]:
        times, pms, events = [np.zeros(0)], [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
        for found in self.found:
            for event in found.events:
                seeds = found.seeds_of(event)
                times.append(seeds["time_ns"] + event["slice"] * self._slice_ns)
                pms.append(seeds["pm"])
                events.append(np.full(len(seeds), event["number"], np.int64))
        return np.concatenate(times), np.concatenate(pms), np.concatenate(events)


def run(study: Study, say: Callable[[str], None], ask_gpu: OfGpu = not_asked) -> StudyResult:
    """The result. Raises SetupError for cuts that make no sense."""
    chosen = dict(study.trigger)
    sets = [chosen, *(cuts for cuts in SCAN if study.scan)]
    noise_tower = Tower(seed=study.seed, muons_hz=0.0)
    tower = Tower(seed=study.seed + 1, muons_hz=study.muons_hz)
    noisy = [Judged(noise_tower, chosen | cuts) for cuts in sets]
    bright = [Judged(tower, chosen | cuts) for cuts in sets]
    say(f"{study.noise_slices} slices of noise, {study.muon_slices} with {study.muons_hz:g} muons/s, {len(sets)} sets of cuts")
    _feed(noise_tower, study.noise_slices, noisy)
    muons = _feed(tower, study.muon_slices, bright)
    capacity = _capacity(noise_tower, chosen, min(study.noise_slices, 40))
    books = [one.books(muons) for one in bright]
    for one in noisy:
        one.found.append(one.trigger.flush())
    noise_s = study.noise_slices * noise_tower.slice_ns * 1e-9
    mine = books[0]
    noise = noisy[0].trigger.counts
    floor_s = noise_s * len(noise_tower.detector.floors)
    of_gpu, why_no_gpu, gpu = ask_gpu(noise["hits_in"] / floor_s, noise["seeds"] / floor_s)
    points = [
        _point(cuts, judged.trigger.counts["events"], judged.cpu_s, book, noise_s)
        for cuts, judged, book in zip(sets[1:], noisy[1:], books[1:], strict=True)
    ]
    default = Km3Trigger(slice_ns=tower.slice_ns, **chosen)
    for point in points:
        point["is_default"] = all(getattr(default, name) == value for name, value in point["cuts"].items())
        point["on_frontier"] = not any(_is_better(other, point) for other in points)
    return {
        **files.base("km3 study"),
        "seed": study.seed,
        "trigger": default.model_dump(mode="json"),
        "muons": len(muons),
        "muons_hz": study.muons_hz,
        "noise_s": noise_s,
        "efficiency_5_seeds": _efficiency(mine),
        "efficiency_by_seeds": _by_seeds(mine),
        "efficiency_by_energy": _by_energy(study, say),
        "noise_events_per_s": rate(noisy[0].trigger.counts["events"], noise_s),
        "noise_seeds_per_s": rate(noisy[0].trigger.counts["seeds"], noise_s),
        "purity": share(mine.events_of_muons, mine.events),
        **capacity,  # type: ignore[typeddict-item]
        "floors_per_gpu": of_gpu,
        "floors_per_gpu_why": why_no_gpu,
        "gpu": gpu,
        "slice_ms": tower.slice_ns * 1e-6,
        "scan": points,
        "display": _display(bright[0], muons, tower),
    }


def _feed(tower: Tower, slices: int, judges: Sequence[Judged]) -> list[Muon]:
    muons: list[Muon] = []
    for number in range(slices):
        hits = tower.hits(number)
        muons += tower.muons(number)
        for judge in judges:
            judge.take(number, hits)
    return muons


def _capacity(tower: Tower, cuts: dict[str, Any], slices: int) -> dict[str, Any]:
    """Decoding and trigger of whole slices, on the core that runs this."""
    floors = len(tower.detector.floors)
    trigger = Trigger(tower.detector, slice_ns=tower.slice_ns, **cuts)
    cpu_s, wall_s = [], []
    for number in range(slices):
        units = [tower.units.unit(number, floor + 1, HITS_KIND) for floor in range(floors)]
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        trigger.take_slice(number, np.concatenate([tower.detector.decode(floor, unit)[0] for floor, unit in enumerate(units)]))
        cpu_s.append(time.process_time() - began_cpu_s)
        wall_s.append(time.perf_counter() - began_s)
    slice_s = tower.slice_ns * 1e-9
    ms = 1e3 * np.array(wall_s)
    return {
        "floors_per_core": floors * slice_s / float(np.median(cpu_s)),
        "floors_per_core_low": floors * slice_s / float(np.quantile(cpu_s, 0.9)),
        "slice_latency_ms": {f"p{q}": float(np.quantile(ms, q / 100)) for q in (50, 90, 99)} | {"max": float(ms.max())},
    }


def _efficiency(books: Books) -> Share | None:
    bright = books.seeds_of_muon >= SEEDS_MUON
    return share(int(books.found[bright].sum()), int(bright.sum()))


def _by_seeds(books: Books) -> list[SeedPoint]:
    points: list[SeedPoint] = []
    for seeds in range(SEEDS_SHOWN + 1):
        chosen = books.seeds_of_muon >= seeds if seeds == SEEDS_SHOWN else books.seeds_of_muon == seeds
        points.append({"seeds": seeds, "efficiency": share(int(books.found[chosen].sum()), int(chosen.sum()))})
    return points


def _by_energy(study: Study, say: Callable[[str], None]) -> list[EnergyPoint]:
    """Muons of one energy after the other, each in noise."""
    points: list[EnergyPoint] = []
    for place, energy_gev in enumerate(ENERGIES_GEV if study.energy_slices else ()):
        light = light_of_energy(energy_gev)
        tower = Tower(seed=study.seed + 2 + place, muons_hz=study.muons_hz, muons={"light_pe_m": LIGHT_PE_M * light})
        judged = Judged(tower, study.trigger)
        muons = _feed(tower, study.energy_slices, [judged])
        books = judged.books(muons)
        points.append({
            "energy_gev": energy_gev, "light": light, "efficiency": share(int(books.found.sum()), len(muons)), "efficiency_5_seeds": _efficiency(books),
            "seeds_mean": float(books.seeds_of_muon.mean()) if len(muons) else 0.0,
        })  # fmt: skip
        say(f"{len(muons):,} muons of {energy_gev:g} GeV")
    return points


def _point(cuts: dict[str, Any], noise: int, cpu_s: float, books: Books, noise_s: float) -> CutsPoint:
    return {
        "cuts": cuts, "is_default": False, "efficiency_5_seeds": _efficiency(books), "noise_events_per_s": rate(noise, noise_s),
        "on_frontier": False, "core_share": cpu_s / noise_s,
    }  # fmt: skip


def _is_better(one: CutsPoint, other: CutsPoint) -> bool:
    mine, theirs = one["efficiency_5_seeds"], other["efficiency_5_seeds"]
    if mine is None or theirs is None:
        return False
    noise, least = one["noise_events_per_s"]["value"], other["noise_events_per_s"]["value"]
    return mine["value"] >= theirs["value"] and noise <= least and (mine["value"] > theirs["value"] or noise < least)


def _display(judged: Judged, muons: Sequence[Muon], tower: Tower) -> Display | None:
    """Of the event with the most triggered seeds."""
    found = max((one for one in judged.found if len(one.events)), key=lambda one: int(one.events["seed_count"].max()), default=None)
    if found is None:
        return None
    event = found.events[int(found.events["seed_count"].argmax())]
    hits, seeds = found.hits_of(event).copy(), found.seeds_of(event)
    zero_ns = seeds["time_ns"][0] + event["slice"] * tower.slice_ns
    muon = min(muons, key=lambda one: abs(_middle_ns(one, tower) - zero_ns), default=None)
    if muon is None or len(muon.hits) == 0:
        return None
    is_seed = np.array([((seeds["pm"] == hit["pm"]) & (seeds["time_ns"] == hit["time_ns"])).any() for hit in hits], bool)
    hits["time_ns"] += event["slice"] * tower.slice_ns
    return display_of(tower, muon, hits, zero_ns, is_seed)


def _middle_ns(muon: Muon, tower: Tower) -> float:
    return (float(np.median(muon.hits["time_ns"])) if len(muon.hits) else np.inf) + muon.slice * tower.slice_ns
