# SPDX-License-Identifier: Apache-2.0
"""The mixture finder in plain numpy and double precision, written from docs/design/finder-mixture.md."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from nanet.rich import pm_map
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cuts = dict[str, Any]

TIME_UNIT_NS = 0.19492765
DISK_AREA_MM2 = 976 * 280.59223
SPREAD_A, SPREAD_B, SPREAD_PEAK, SPREAD_RMS_MM = 5.83e-3, 7.62e-5, 0.0629, 5.48
DISK_RADIUS_MM = 300.0
MIDDLE_RADIUS_MM = 130.0
REACH_MM = 17.0
OTHER_DISK = 0.3
DISK_PRIOR = 1.0
RADIUS_BIAS = 0.35
STILL_MM, STEP_MM, SAME_MM = 0.03, 15.0, 15.0
POOL, TRIPLETS = 1024, 2000


@dataclass
class Circle:
    """Centre, radius; hits expected were all of it on the disk; share of its light on disk 1."""

    place: Floats
    yield_hits: float
    disk_share: float


@dataclass
class Model:
    """Circles, noise over the noise expected, log likelihood with priors."""

    circles: list[Circle] = field(default_factory=list)
    noise: float = 1.0
    likelihood: float = 0.0

    def copy(self) -> Model:
        return Model([replace(circle, place=circle.place.copy()) for circle in self.circles], self.noise, self.likelihood)


@dataclass
class Answer:
    """As nanet's Ring."""

    x_mm: float
    y_mm: float
    radius_mm: float
    rms_mm: float
    time_ns: float
    hits: int


def share_on_disk(place: Floats) -> float:
    """Share of a circle within DISK_RADIUS_MM of the middle."""
    x, y, radius = place
    distance = np.hypot(x, y)
    cosine = (DISK_RADIUS_MM**2 - distance**2 - radius**2) / (2 * distance * radius + 1)
    return float(1 - np.arccos(np.clip(cosine, -1, 1)) / np.pi)


def near(a: Floats, b: Floats, distance_mm: float) -> bool:
    return bool(np.abs(a - b).sum() < distance_mm)


class Finder:
    """One event. `words`: its hits, as in an MGP packet."""

    def __init__(self, words: NDArray[np.uint16], cuts: Cuts) -> None:
        self.cuts = cuts
        places = pm_map.positions_mm()
        rows = []
        for word in words.tolist():
            channel = word & 2047
            if np.isnan(places[channel]).any():
                continue
            code = word >> 11
            disk = (channel >> 10) if cuts["disk_use"] else 0
            first = channel & 1023
            rows.append((disk, first, code, code - 32 if code > 15 else code))
        rows.sort()
        self.count = len(rows)
        channels = np.array([row[1] for row in rows], dtype=int)
        self.disk = np.array([row[0] for row in rows], dtype=float)
        self.time_ns = np.array([row[3] for row in rows], dtype=float) * TIME_UNIT_NS
        self.xy = places[channels]
        narrow = SPREAD_RMS_MM / cuts["sigma_mm"]
        self.a, self.b = SPREAD_A * narrow**2, SPREAD_B * narrow**4
        self.reach2 = (REACH_MM / narrow) ** 2
        self.amplitude = SPREAD_PEAK * narrow / (2 * np.pi) * DISK_AREA_MM2 / cuts["noise_hits"]
        self.yield_shape = cuts["yield_width"] ** -2
        self.noise_shape = cuts["noise_width"] ** -2
        variance = cuts["time_sigma_ns"] ** 2 + TIME_UNIT_NS**2 / 12
        peak = 32 * TIME_UNIT_NS / np.sqrt(2 * np.pi * variance)
        late_ns = self.time_ns - self.event_time_ns()
        self.weight = peak * np.exp(-(late_ns**2) / (2 * variance)) if cuts["time_use"] else np.ones(self.count)
        self.pool = self.make_pool()
        self.price = np.array([self.price_of(circle[:3]) for circle in self.pool])

    def event_time_ns(self) -> float:
        """Mean time of the hits in the window of two sigma on either side of a whole code that holds most; of equals the one nearest to 0."""
        codes = np.round(self.time_ns / TIME_UNIT_NS)
        reach = np.floor(2 * self.cuts["time_sigma_ns"] / TIME_UNIT_NS + 0.5)
        inside = {middle: np.abs(codes - middle) <= reach for middle in range(-16, 16)}
        best = min(inside, key=lambda middle: (-inside[middle].sum(), abs(middle), middle > 0))
        return float(self.time_ns[inside[best]].mean()) if inside[best].any() else 0.0

    # Likelihood and EM

    def geometry(self, circle: Circle) -> tuple[Floats, Floats]:
        """Residual and unit vector from the centre, of each hit."""
        apart = self.xy - circle.place[:2]
        distance = np.hypot(apart[:, 0], apart[:, 1]) + 1e-3
        return distance - circle.place[2], apart / distance[:, None]

    def densities(self, model: Model) -> Floats:
        """[circle, hit], over the density of the noise expected."""
        rows = []
        for circle in model.circles:
            residual, _ = self.geometry(circle)
            share = np.where(self.disk > 0, circle.disk_share, 1 - circle.disk_share)
            spread = np.exp(-np.minimum(self.a * residual**2 + self.b * residual**4, 80))
            rows.append(self.amplitude * circle.yield_hits / circle.place[2] * share * self.weight * spread)
        return np.array(rows).reshape(len(rows), self.count)

    def total(self, model: Model) -> Floats:
        total: Floats = model.noise + self.densities(model).sum(axis=0)
        return total

    def evaluate(self, model: Model) -> None:
        cuts = self.cuts
        value = np.log(self.total(model)).sum() - (model.noise - 1) * cuts["noise_hits"]
        value += self.noise_shape * (np.log(model.noise) - model.noise + 1)
        for circle in model.circles:
            x, y, radius = circle.place
            ratio = circle.yield_hits / cuts["ring_yield"]
            value -= circle.yield_hits * share_on_disk(circle.place) + cuts["ring_penalty"]
            value -= (x * x + y * y) / (2 * cuts["center_sigma_mm"] ** 2)
            value -= 0.25 * (max(cuts["radius_min_mm"] - radius, 0) ** 2 + max(radius - cuts["radius_max_mm"], 0) ** 2)
            value += self.yield_shape * (np.log(ratio) - ratio + 1)
            if cuts["disk_use"]:
                value += DISK_PRIOR * np.log(4 * circle.disk_share * (1 - circle.disk_share))
        model.likelihood = float(value)

    def step(self, model: Model) -> float:
        """One step of EM; the largest move of a circle."""
        density = self.densities(model)
        share = density / (model.noise + density.sum(axis=0))
        largest = 0.0
        for circle, belongs in zip(model.circles, share, strict=True):
            largest = max(largest, self.move(circle, belongs))
            hits = belongs.sum()
            circle.yield_hits = (hits + self.yield_shape) / (
                share_on_disk(circle.place) + self.yield_shape / self.cuts["ring_yield"]
            )
            if self.cuts["disk_use"]:
                circle.disk_share = ((belongs * self.disk).sum() + DISK_PRIOR) / (hits + 2 * DISK_PRIOR)
        rest = max(self.count - share.sum(), 0.0)
        model.noise = (rest + self.noise_shape) / (self.cuts["noise_hits"] + self.noise_shape)
        return largest

    def move(self, circle: Circle, belongs: Floats) -> float:
        """Newton's step on the log likelihood (its half) of centre and radius."""
        residual, unit = self.geometry(circle)
        jacobian = np.column_stack([unit, np.ones(self.count)])
        curvature = belongs * (self.a + 6 * self.b * residual**2)
        pull = belongs * (self.a + 2 * self.b * residual**2) * residual
        prior = 0.5 / self.cuts["center_sigma_mm"] ** 2
        matrix = jacobian.T @ (curvature[:, None] * jacobian) + np.diag([prior, prior, 1e-4])
        gradient = jacobian.T @ pull
        gradient[:2] -= prior * circle.place[:2]
        gradient[2] -= 0.5 * RADIUS_BIAS * belongs.sum() / circle.place[2]
        if not np.linalg.det(matrix) > 1e-12:
            return 0.0
        change = np.linalg.solve(matrix, gradient)
        largest = float(np.abs(change).max())
        circle.place += change * min(1.0, STEP_MM / max(largest, 1e-30))
        circle.place[2] = np.clip(circle.place[2], 20, 600)
        return largest

    def fit(self, model: Model) -> None:
        for _ in range(self.cuts["em_steps"]):
            if self.step(model) < STILL_MM:
                break
        self.evaluate(model)

    # Starts

    def make_pool(self) -> Floats:
        """[circle, (x, y, radius, disk)] through triplets of hits on one disk, in order of the hits."""
        members = [np.flatnonzero(self.disk == disk) for disk in (0, 1)]
        triplets = sum(len(m) * (len(m) - 1) * (len(m) - 2) // 6 for m in members)
        stride = 1 + triplets // TRIPLETS
        pool: list[tuple[float, float, float, float]] = []
        for disk, hits in enumerate(members):
            pairs = itertools.combinations(range(len(hits)), 2)
            bases = [(i, j) for i, j in pairs if i + 2 < len(hits) and j + 1 < len(hits)]
            for i, j in bases[::stride]:
                pool += self.circles(hits[i], hits[j], hits[j + 1 :], disk)
        return np.array(pool[:POOL]).reshape(-1, 4)

    def circles(
        self, i: int, j: int, others: Sequence[int] | NDArray[np.int64], disk: int
    ) -> list[tuple[float, float, float, float]]:
        shortest = self.cuts["pair_distance_min_mm"]
        made = []
        for k in others:
            p, q, r = self.xy[i], self.xy[j], self.xy[k]
            sides = [np.hypot(*(q - p)), np.hypot(*(r - p)), np.hypot(*(r - q))]
            matrix = np.array([q - p, r - p])
            if min(sides) < shortest - 1e-4 or abs(np.linalg.det(matrix)) < 1:
                continue
            offset = np.linalg.solve(matrix, 0.5 * (matrix**2).sum(axis=1))
            radius = float(np.hypot(*offset))
            if self.cuts["radius_min_mm"] <= radius <= self.cuts["radius_max_mm"]:
                made.append((p[0] + offset[0], p[1] + offset[1], radius, float(disk)))
        return made

    def price_of(self, place: Floats) -> float:
        x, y, _ = place
        return float(self.cuts["ring_yield"] * share_on_disk(place) + (x * x + y * y) / (2 * self.cuts["center_sigma_mm"] ** 2))

    def room(self, model: Model) -> Floats:
        gain = self.amplitude * self.cuts["ring_yield"] / MIDDLE_RADIUS_MM
        room: Floats = np.log1p(gain * self.weight / self.total(model))
        return room

    def scores(self, room: Floats) -> Floats:
        x, y, radius, disk = (column[:, None] for column in self.pool.T)
        t = ((self.xy[:, 0] - x) ** 2 + (self.xy[:, 1] - y) ** 2 - radius**2) / (2 * radius)
        kernel = np.maximum(1 - t**2 / self.reach2, 0) ** 2
        gain = (room * np.where(self.disk == disk, 1.0, OTHER_DISK) * kernel).sum(axis=1)
        scores: Floats = gain - self.price
        return scores

    def drop_near(self, scores: Floats, place: Floats) -> None:
        scores[np.abs(self.pool[:, :3] - place).sum(axis=1) < self.cuts["start_distance_min_mm"]] = -1e9

    def with_circle(self, base: Model, place: Floats) -> Model:
        model = base.copy()
        model.circles.append(Circle(place.copy(), self.cuts["ring_yield"], 0.5 if self.cuts["disk_use"] else 0.0))
        return model

    # Search

    def extend(self, base: Model, best: Model, but: Floats | None = None) -> Model | None:
        """The best model of one circle more than `base` that is better than `best`."""
        needed = best.likelihood - base.likelihood + self.cuts["ring_penalty"] - self.cuts["start_gap"]
        room = self.room(base)
        if room.sum() < needed + 0.3 * self.cuts["ring_yield"]:
            return None
        scores = self.scores(room)
        if but is not None:
            self.drop_near(scores, but)
        better: Model | None = None
        for _ in range(self.cuts["starts"]):
            c = int(scores.argmax())
            if not scores[c] > needed:
                break
            model = self.with_circle(base, self.pool[c, :3])
            self.fit(model)
            if model.likelihood > (best if better is None else better).likelihood:
                better = model
            self.drop_near(scores, self.pool[c, :3])
        return better

    def grow(self, model: Model) -> Model:
        while len(model.circles) < 4:
            more = self.extend(model, model)
            if more is None:
                break
            model = more
        return model

    def firsts(self, none: Model) -> list[Model]:
        scores = self.scores(self.room(none))
        first_score = scores.max()
        models: list[Model] = []
        for _ in range(self.cuts["starts"]):
            c = int(scores.argmax())
            if scores[c] < first_score - self.cuts["first_gap"]:
                break
            model = self.with_circle(none, self.pool[c, :3])
            self.fit(model)
            self.drop_near(scores, self.pool[c, :3])
            self.drop_near(scores, model.circles[0].place)
            models.append(model)
        return models

    def improve(self, best: Model) -> Model | None:
        for k in range(len(best.circles) if len(best.circles) > 1 else 0):
            base = best.copy()
            removed = base.circles.pop(k).place.copy()
            self.fit(base)
            if base.likelihood > best.likelihood:
                return base
            bar = best.copy()
            bar.likelihood += 0.01
            other = self.extend(base, bar, removed)
            if other is not None:
                return other
        return self.extend(best, best) if len(best.circles) < 4 else None

    def search(self) -> Model:
        none = Model(noise=(self.count + self.noise_shape) / (self.cuts["noise_hits"] + self.noise_shape))
        self.evaluate(none)
        best = none
        for f, first in enumerate(self.firsts(none)):
            place = first.circles[0].place
            if f > 0 and any(near(circle.place, place, SAME_MM) for circle in best.circles):
                continue
            model = self.grow(first)
            if model.likelihood > best.likelihood:
                best = model
        for _ in range(self.cuts["move_rounds"]):
            better = self.improve(best) if best.circles else None
            if better is None:
                break
            best = better
        return best

    def rings(self) -> list[Answer]:
        """Without the deep search: cuts["deep_rings"] must be 5."""
        assert self.cuts["deep_rings"] == 5
        if self.count < 4 or len(self.pool) == 0:
            return []
        best = self.search()
        if not best.circles:
            return []
        self.fit(best)
        density = self.densities(best)
        total = self.total(best)
        answers = []
        for circle, row in zip(best.circles, density, strict=True):
            mine = row * 3 >= total
            count = int(mine.sum())
            if count < max(self.cuts["hits_min"], 4):
                continue
            residual, _ = self.geometry(circle)
            rms = float(np.sqrt((residual[mine] ** 2).mean()))
            x, y, radius = circle.place.tolist()
            answers.append(Answer(x, y, radius, rms, float(self.time_ns[mine].mean()), count))
        return sorted(answers, key=lambda ring: (-ring.hits, ring.rms_mm))
