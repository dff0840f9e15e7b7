# SPDX-License-Identifier: Apache-2.0
"""Ring fits: how many a second on one core, how well, against a vectorised numpy version and against circle-fit.

The events are made here, apart from the native Monte Carlo: a ring of known centre and radius, photons smeared and collected by the
nearest photomultiplier, exactly so many hits an event. The numpy fit is written from the equations, apart from the native one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.bench.keys import FitCase, FitQuality, FitRate, RingsResult
from nanet.result import files
from nanet.rich import pm_map

HIT_COUNTS = (8, 12, 20, 32)
SMEAR_MM = 2.5
RADIUS_RANGE_MM = (105.0, 190.0)  # from a pion of 15 GeV/c to an electron
CENTRE_SIGMA_MM = 20.0
HITS_OF_HEADLINE = 20


@dataclass(frozen=True)
class RingBench:
    """How much to measure."""

    events: int = 16384
    repeats: int = 5
    repeat_s: float = 0.5
    seed: int = 1


Events = tuple[NDArray[np.uint16], NDArray[np.uint32], NDArray[np.float64]]


def run(bench: RingBench, say: Callable[[str], None]) -> RingsResult:
    """The result as `nanet bench rings --json` writes it."""
    from nanet import _core

    generator = np.random.default_rng(bench.seed)
    cases: list[FitCase] = []
    for hit_count in HIT_COUNTS:
        hits, counts, truth = make_events(generator, bench.events, hit_count)
        ours = _rates(partial(_core.fit_rings, hits, counts), bench)
        scalar = _rates(partial(_core.fit_rings_scalar, hits, counts), bench)
        in_numpy, peer = _rates(partial(fit_numpy, hits, counts), bench), _circle_fit_rate(hits, bench)
        case: FitCase = {
            "hits": hit_count,
            "events": bench.events,
            "math": ours,
            "math_scalar": scalar,
            "numpy": in_numpy,
            "circle_fit": peer,
            "ratio_to_math_scalar": _ratio(ours, scalar),
            "ratio_to_numpy": _ratio(ours, in_numpy),
            "ratio_to_circle_fit": _ratio(ours, peer) if peer else None,
            **quality(np.asarray(_core.fit_rings(hits, counts)), fit_numpy(hits, counts), truth),
        }
        cases.append(case)
        circle = (
            f", circle-fit x{case['ratio_to_circle_fit']:,.0f}" if case["ratio_to_circle_fit"] else ", circle-fit is not installed"
        )
        say(
            f"{hit_count:3d} hits  {case['math']['events_per_s'] / 1e6:7.2f} Mevent/s  numpy x{case['ratio_to_numpy']:.1f}"
            f"{circle}  radius rms {case['radius_rms_mm']:.2f} mm, bias {case['radius_bias_mm']:+.3f} mm"
        )
    headline = next(case for case in cases if case["hits"] == HITS_OF_HEADLINE)
    return {
        **files.base("bench rings"),
        "math": {"events_per_s": headline["math"]["events_per_s"], "hits": HITS_OF_HEADLINE, "simd": _core.build_info()["simd"]},
        "ratio_to_numpy": headline["ratio_to_numpy"],
        "ratio_to_circle_fit": headline["ratio_to_circle_fit"],
        "cases": cases,
    }


def make_events(generator: np.random.Generator, count: int, hit_count: int) -> Events:
    """Events with exactly `hit_count` different hits each.

    Returns hits (uint16 [count, hit_count], channels of disk 0 or 1), counts (uint32 [count]) and truth (float [count, 3]: centre x, y and radius in mm).
    """
    disk = np.concatenate([pm_map.half_disk_mm(0), pm_map.half_disk_mm(1)])
    channel = np.concatenate([np.arange(len(disk) // 2), np.arange(len(disk) // 2) + pm_map.CHANNELS_PER_BOARD])
    hits = np.empty((count, hit_count), dtype=np.uint16)
    truth = np.empty((count, 3))
    made = 0
    while made < count:
        wanted = min(2048, 2 * (count - made) + 16)
        found, ring = _draw(generator, disk, wanted, hit_count)
        kept = min(len(found), count - made)
        hits[made : made + kept] = channel[found[:kept]]
        truth[made : made + kept] = ring[:kept]
        made += kept
    hits += (generator.integers(0, 2, count) * 2 * pm_map.CHANNELS_PER_BOARD).astype(np.uint16)[:, None]
    return hits, np.full(count, hit_count, dtype=np.uint32), truth


def fit_numpy(hits: NDArray[np.uint16], counts: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Crawford's linear circle fit for all events at once, in centred coordinates; float [events, 4]: x, y, radius, rms in mm."""
    place = pm_map.positions_mm()[hits & 0x07FF]
    used = (np.arange(hits.shape[1]) < counts[:, None]) & ~np.isnan(place[:, :, 0])
    n = used.sum(axis=1)
    place = np.where(used[:, :, None], place, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = place.sum(axis=1) / n[:, None]
        u, v = np.moveaxis(np.where(used[:, :, None], place - mean[:, None, :], 0.0), 2, 0)
        uu, vv, uv = (u * u).sum(1), (v * v).sum(1), (u * v).sum(1)
        square = u * u + v * v
        c1, c2 = (square * u).sum(1) / 2, (square * v).sum(1) / 2
        determinant = uu * vv - uv * uv
        uc, vc = (c1 * vv - c2 * uv) / determinant, (c2 * uu - c1 * uv) / determinant
        radius = np.sqrt(uc * uc + vc * vc + (uu + vv) / n)
        distance = np.where(used, np.hypot(u - uc[:, None], v - vc[:, None]) - radius[:, None], 0.0)
        rms = np.sqrt((distance * distance).sum(1) / n)
    return np.column_stack([uc + mean[:, 0], vc + mean[:, 1], radius, rms])


def quality(rings: NDArray[Any], reference: NDArray[np.float64], truth: NDArray[np.float64]) -> FitQuality:
    """Radius against truth (median bias, rms of the central part), and the largest difference to the numpy fit."""
    error = rings["radius_mm"].astype(np.float64) - truth[:, 2]
    good = np.abs(error) < 25.0
    return {
        "radius_bias_mm": round(float(np.mean(error[good])), 4),
        "radius_rms_mm": round(float(np.std(error[good])), 4),
        "outliers": round(float(1.0 - good.mean()), 6),
        "largest_difference_to_numpy_mm": float(np.nanmax(np.abs(rings["radius_mm"][good] - reference[good, 2]))),
    }


def csv_rows(result: RingsResult) -> list[tuple[str, str, float, str]]:
    """Rows for the CSV."""
    rows = []
    for case in result["cases"]:
        name = f"{case['hits']}hits"
        rates = {"math": case["math"], "math_scalar": case["math_scalar"], "numpy": case["numpy"], "circle_fit": case["circle_fit"]}
        rows += [(name, f"{method}_rate", float(rate["events_per_s"]), "events/s") for method, rate in rates.items() if rate]
        rows.append((name, "radius_rms", case["radius_rms_mm"], "mm"))
        rows.append((name, "radius_bias", case["radius_bias_mm"], "mm"))
    return rows


def _draw(
    generator: np.random.Generator, disk: NDArray[np.float64], count: int, hit_count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    photons = 3 * hit_count + 8
    ring = np.column_stack([
        generator.normal(0.0, CENTRE_SIGMA_MM, (count, 2)), generator.uniform(*RADIUS_RANGE_MM, count)
    ])  # fmt: skip
    angle = generator.uniform(0.0, 2 * np.pi, (count, photons))
    x = ring[:, :1] + ring[:, 2:] * np.cos(angle) + generator.normal(0.0, SMEAR_MM, angle.shape)
    y = ring[:, 1:2] + ring[:, 2:] * np.sin(angle) + generator.normal(0.0, SMEAR_MM, angle.shape)
    nearest = _nearest(disk, x, y)
    found, kept = [], []
    for event in range(count):
        pms = nearest[event]
        _, first = np.unique(pms, return_index=True)
        pms = pms[np.sort(first)]
        pms = pms[pms >= 0]
        if len(pms) >= hit_count:
            found.append(pms[:hit_count])
            kept.append(event)
    return np.array(found, dtype=np.int64).reshape(-1, hit_count), ring[kept]


def _nearest(disk: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    """Index of the PM whose hexagon holds each point; -1 where there is none."""
    table = np.full((81, 61), -1, dtype=np.int64)
    i, j = np.rint(disk[:, 0] / pm_map.UNIT_X_MM).astype(int), np.rint(disk[:, 1] / pm_map.UNIT_Y_MM).astype(int)
    table[i + 40, j + 30] = np.arange(len(disk))
    best = np.full(x.shape, -1, dtype=np.int64)
    best_square = np.full(x.shape, (pm_map.PM_DIAMETER_MM / np.sqrt(3.0)) ** 2 + 1e-9)
    row = np.floor(y / pm_map.UNIT_Y_MM).astype(int)
    column = np.floor(x / pm_map.UNIT_X_MM).astype(int)
    for dj in (0, 1):
        for di in (-1, 0, 1, 2):
            ci, cj = column + di, row + dj
            inside = (abs(ci) <= 40) & (abs(cj) <= 30)
            pm = np.where(inside, table[np.clip(ci + 40, 0, 80), np.clip(cj + 30, 0, 60)], -1)
            square = (x - ci * pm_map.UNIT_X_MM) ** 2 + (y - cj * pm_map.UNIT_Y_MM) ** 2
            better = (pm >= 0) & (square < best_square)
            best[better], best_square[better] = pm[better], square[better]
    return best


def _ratio(ours: FitRate, theirs: FitRate) -> float | None:
    return round(ours["events_per_s"] / theirs["events_per_s"], 2) if theirs["events_per_s"] else None


def _rates(work: Callable[[], object], bench: RingBench) -> FitRate:
    """Events a second: the median of the repeats, and the best."""
    work()
    rates = []
    for _ in range(bench.repeats):
        done, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < bench.repeat_s or done == 0:
            work()
            done += 1
        rates.append(done * bench.events / elapsed)
    return {"events_per_s": float(np.median(rates)), "best_events_per_s": max(rates)}


def _circle_fit_rate(hits: NDArray[np.uint16], bench: RingBench) -> FitRate | None:
    try:
        import circle_fit
    except ImportError:
        return None
    place = pm_map.positions_mm()[hits & 0x07FF]
    rates = []
    for _ in range(bench.repeats):
        done, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < bench.repeat_s or done == 0:
            circle_fit.taubinSVD(place[done % len(place)])  # the fastest of that package
            done += 1
        rates.append(done / elapsed)
    return {"events_per_s": float(np.median(rates)), "best_events_per_s": max(rates)}
