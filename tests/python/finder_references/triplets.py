# SPDX-License-Identifier: Apache-2.0
"""The robust-triplets finder in plain numpy, written from docs/design/finder-triplets.md: one event at a time, in double precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from nanet.rich import pm_map
from numpy.typing import NDArray

Column = NDArray[np.float64]

HIT_TIME_UNIT_NS = 0.19492765
TIME_WIDTH_SIGMAS = 4.0
TIME_WINDOW_SIGMAS = 5.0
SEARCH_WEIGHT_MIN = 0.05
SHARE_FLOOR = 0.02
STEP_MAX_MM = 40.0
EXCHANGE_GAIN = 0.01


@dataclass(frozen=True)
class Circle:
    """A circle, and the time of its hits."""

    centre: complex
    radius_mm: float
    time_ns: float


@dataclass(frozen=True)
class FoundRing:
    """A ring as the finder answers it."""

    x_mm: float
    y_mm: float
    radius_mm: float
    rms_mm: float
    time_ns: float
    hits: int


def tent(x: Column) -> Column:
    """1 at 0, falling to 0 at 1."""
    return np.maximum(0.0, 1.0 - x)


class Finder:
    """Finds the rings of one event; ``cuts`` as nanet._core.default_finder_cuts()["triplets"] has them."""

    def __init__(self, words: NDArray[np.uint16], cuts: Mapping[str, float]) -> None:
        """Take an event's hit words."""
        self.cuts = cuts
        words = words[:128].astype(np.int64)
        places = pm_map.positions_mm()[words & 1023]
        words = words[~np.isnan(places[:, 0])]
        words = words[np.argsort((words & 1023) << 6 | words >> 10, kind="stable")]
        places = pm_map.positions_mm()[words & 1023]
        code = words >> 11
        self.place = places[:, 0] + 1j * places[:, 1]
        self.time_ns = np.where(code < 16, code, code - 32) * HIT_TIME_UNIT_NS
        self.time_width_ns = TIME_WIDTH_SIGMAS * cuts["time_sigma_ns"] if cuts["time_use"] else np.inf

    def rings(self) -> list[FoundRing]:
        """All rings, those with most hits first."""
        if len(self.place) < max(4, self.cuts["hits_min"]):
            return []
        limit = min(int(self.cuts["rings_max"]), 4)
        circles: list[Circle] = []
        while len(circles) < limit and (more := self._add(circles)) is not None:
            circles = more
        for _ in range(int(self.cuts["exchange_passes"])):
            if len(circles) < 2:
                break
            exchanged = self._exchange(circles)
            if exchanged is circles:
                break
            circles = exchanged
            if len(circles) < limit:
                circles = self._add(circles) or circles
        circles = self._without_weak(circles)
        found = [ring for which in range(len(circles)) if (ring := self._ring(circles, which)) is not None]
        return sorted(found, key=lambda ring: (-ring.hits, ring.rms_mm))

    def _time_factor(self, time_ns: float) -> Column:
        return tent(((self.time_ns - time_ns) / self.time_width_ns) ** 2)

    def _residuals(self, circle: Circle) -> Column:
        return np.asarray(np.abs(self.place - circle.centre) - circle.radius_mm)

    def _near(self, circle: Circle, width_mm: float) -> Column:
        return tent((self._residuals(circle) / width_mm) ** 2) * self._time_factor(circle.time_ns)

    def _unexplained(self, circles: list[Circle]) -> Column:
        weight = np.ones(len(self.place))
        for circle in circles:
            weight = np.minimum(weight, 1.0 - self._near(circle, self.cuts["explained_width_mm"]))
        return weight

    def _explained(self, circles: list[Circle]) -> float:
        return float(np.max([self._near(circle, self.cuts["score_width_mm"]) for circle in circles], axis=0).sum())

    def _gains_enough(self, circle: Circle, weight: Column, per_outsider: float) -> bool:
        near = self._near(circle, self.cuts["score_width_mm"])
        outsiders = min(weight[near <= 0].sum(), self.cuts["gain_outsiders_max"])
        return bool((weight * near).sum() >= self.cuts["gain_min"] + per_outsider * outsiders)

    def _circles_of_seed(self, seed: int, place: NDArray[np.complex128], time_ns: Column, weight: Column) -> Iterator[Circle]:
        """Circles through the seed and two later hits that pass the cuts."""
        cuts = self.cuts
        window_ns = TIME_WINDOW_SIGMAS * cuts["time_sigma_ns"] if cuts["time_use"] else np.inf

        def agree(a: int, b: int) -> bool:
            return abs(place[a] - place[b]) >= cuts["pair_distance_min_mm"] and abs(time_ns[a] - time_ns[b]) <= window_ns

        partners = [k for k in range(seed + 1, len(place)) if weight[k] >= cuts["seed_weight_min"] and agree(seed, k)]
        for first, j in enumerate(partners):
            for k in partners[first + 1 :]:
                if not agree(j, k):
                    continue
                # With the seed at 0 and hit j at 1 the third lies at w; the circle's centre is (w - |w|^2) / (w - w*) there.
                side = place[j] - place[seed]
                w = (place[k] - place[seed]) / side
                if abs(w.imag) * abs(side) ** 2 < 1.0:
                    continue
                relative = side * (w - abs(w) ** 2) / (w - w.conjugate())
                centre = complex(place[seed] + relative)
                if not cuts["triplet_radius_min_mm"] <= abs(relative) <= cuts["triplet_radius_max_mm"]:
                    continue
                if abs(centre) <= cuts["center_max_mm"]:
                    yield Circle(centre, float(abs(relative)), float(time_ns[seed] + time_ns[j] + time_ns[k]) / 3)

    def _search(self, weight: Column) -> Circle | None:
        cuts = self.cuts
        if weight.sum() < cuts["gain_min"]:
            return None
        used = weight >= SEARCH_WEIGHT_MIN
        place, time_ns, left = self.place[used], self.time_ns[used], weight[used]
        best: Circle | None = None
        best_score = 0.0
        seeds = [k for k in range(len(place) - 2) if left[k] >= cuts["seed_weight_min"]]
        for seed in seeds[: int(cuts["seeds_max"])]:
            if best_score >= cuts["enough_share"] * weight.sum():
                break
            circles = list(self._circles_of_seed(seed, place, time_ns, left))
            if not circles:
                continue
            radius = np.array([circle.radius_mm for circle in circles])[:, None]
            centre = np.array([circle.centre for circle in circles])[:, None]
            time = np.array([circle.time_ns for circle in circles])[:, None]
            distance = (np.abs(place - centre) ** 2 - radius**2) / (2 * radius)
            factor = tent(((time_ns - time) / self.time_width_ns) ** 2)
            scores = (left * tent((distance / cuts["score_width_mm"]) ** 2) * factor).sum(axis=1) - cuts["penalty_per_mm"] * radius[
                :, 0
            ]
            if scores.max() > best_score:
                best, best_score = circles[int(scores.argmax())], float(scores.max())
        if best is None:
            return None
        for _ in range(int(cuts["refit_steps"])):
            moved = self._step(best, np.ones(len(self.place)), cuts["refit_width_mm"])
            if moved is None:
                break
            best = moved
        return best

    def _step(self, circle: Circle, weight: Column, width_mm: float) -> Circle | None:
        """One Gauss-Newton step on the distances with biweights; None: the hits do not say where the circle is."""
        offset = self.place - circle.centre
        residual = self._residuals(circle)
        w = weight * tent((residual / width_mm) ** 2) ** 2 * self._time_factor(circle.time_ns)
        if w.sum() <= 2.0:
            return None
        direction = offset / np.maximum(np.abs(offset), 0.01)
        design = np.stack([direction.real, direction.imag, np.ones(len(w))], axis=1)
        normal = design.T @ (w[:, None] * design)
        about_mean = normal[:2, :2] - np.outer(normal[:2, 2], normal[2, :2]) / normal[2, 2]
        if np.linalg.det(about_mean) <= 1e-4 * w.sum() ** 2:
            return None
        dx, dy, dr = np.linalg.solve(normal, design.T @ (w * residual))
        if np.hypot(dx, dy) > STEP_MAX_MM or abs(dr) > STEP_MAX_MM:
            return None
        time_ns = float((w * self.time_ns).sum() / w.sum())
        return Circle(circle.centre + complex(dx, dy), circle.radius_mm + float(dr), time_ns)

    def _fit_together(self, circles: list[Circle]) -> list[Circle]:
        for _ in range(int(self.cuts["joint_steps"])):
            if len(circles) == 1:
                shares = [np.ones(len(self.place))]
            else:
                near = [self._near(circle, self.cuts["share_width_mm"]) ** 2 for circle in circles]
                total = SHARE_FLOOR + np.sum(near, axis=0)
                shares = [(one + SHARE_FLOOR) / total for one in near]
            circles = [
                self._step(circle, share, self.cuts["joint_width_mm"]) or circle
                for circle, share in zip(circles, shares, strict=True)
            ]
        return circles

    def _ring(self, circles: list[Circle], which: int) -> FoundRing | None:
        near = np.array([self._near(circle, self.cuts["keep_mm"]) for circle in circles])
        mine = (near[which] > 0) & (near.argmax(axis=0) == which)
        count = int(mine.sum())
        if count < max(4, self.cuts["hits_min"]):
            return None
        circle = circles[which]
        square = float((self._residuals(circle)[mine] ** 2).sum())
        offset = (self.place - circle.centre)[mine]
        octants = {(z.real < 0, z.imag < 0, abs(z.real) < abs(z.imag)) for z in offset}
        sized = self.cuts["radius_min_mm"] <= circle.radius_mm <= self.cuts["radius_max_mm"]
        if not sized or square > self.cuts["rms_max_mm"] ** 2 * (count - 3) or len(octants) < self.cuts["octants_min"]:
            return None
        time_ns = float(self.time_ns[mine].mean())
        return FoundRing(circle.centre.real, circle.centre.imag, circle.radius_mm, float(np.sqrt(square / count)), time_ns, count)

    def _add(self, circles: list[Circle]) -> list[Circle] | None:
        weight = self._unexplained(circles)
        circle = self._search(weight)
        if circle is None or not self._gains_enough(circle, weight, 0.0) or self._ring([circle], 0) is None:
            return None
        return self._fit_together([*circles, circle])

    def _exchange(self, circles: list[Circle]) -> list[Circle]:
        explained = self._explained(circles)
        for which in range(len(circles)):
            others = circles[:which] + circles[which + 1 :]
            circle = self._search(self._unexplained(others))
            if circle is None:
                continue
            trial = self._fit_together([*others, circle])
            now = self._explained(trial)
            if now > explained + EXCHANGE_GAIN:
                circles, explained = trial, now
        return circles

    def _without_weak(self, circles: list[Circle]) -> list[Circle]:
        which = 0
        while which < len(circles):
            others = circles[:which] + circles[which + 1 :]
            if self._gains_enough(circles[which], self._unexplained(others), self.cuts["gain_per_outsider"]):
                which += 1
            else:
                circles, which = others, 0
        return circles
