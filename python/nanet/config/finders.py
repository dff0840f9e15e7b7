# SPDX-License-Identifier: Apache-2.0
"""The ring finders and their cuts. Written by scripts/make_finder_config.py from the headers in include/nanet/rich: change those."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nanet.config.base import Model, setting

__all__ = [
    "AlmagestFinder",
    "DomhFinder",
    "Finder",
    "HistogramFinder",
    "HoughFinder",
    "MathFinder",
    "MixtureFinder",
    "PomhFinder",
    "TripletsFinder",
    "TriplsFinder",
]


class MathFinder(Model):
    """One ring by the algebraic fit of all hits: the fastest, but any noise corrupts it."""

    name: Literal["math"] = setting("math", "Name of the finder")


class CenterScanCuts(Model):
    """Cuts of include/nanet/rich/center_scan.hpp."""

    center_range_mm: float = setting(
        140.0, "Candidate centres extend to about here, no further than 200", unit="mm",
        too_small="rings of particles far off the axis are lost", too_big="time, and fakes", ge=0,
    )  # fmt: skip
    refit_start_mm: float = setting(
        60.0, "Scale of the weights in the first fit from the peak", unit="mm",
        too_small="the circle keeps to the half of its hits that made the peak", too_big="noise and other rings pull it away",
        ge=0,
    )  # fmt: skip
    refit_end_mm: float = setting(
        20.0, "Scale in the last fit", unit="mm", too_small="good hits count too little and the radius scatters",
        too_big="noise pulls it away", ge=0,
    )  # fmt: skip
    refit_passes: int = setting(
        4, "Number of weighted fits, at most 16", too_small="the fit has not settled", too_big="time", ge=1, le=16,
    )  # fmt: skip
    window_mm: float = setting(
        16.0, "Hits this close to the circle belong to the ring. A hit scatters by 5.4 mm", unit="mm",
        too_small="good hits are lost", too_big="noise is included", ge=0,
    )  # fmt: skip
    min_hits: int = setting(
        4, "Fewest hits of a ring; at least 4", too_small="any noise makes rings", too_big="faint rings are lost", ge=4,
        le=128,
    )  # fmt: skip
    radius_min_mm: float | None = setting(None, "Old name of cuts.radius_min_mm, which holds for every finder", unit="mm", ge=0)
    radius_max_mm: float | None = setting(None, "Old name of cuts.radius_max_mm, which holds for every finder", unit="mm", ge=0)
    rms_max_mm: float = setting(
        9.0, "Largest rms, corrected for the three fitted parameters", unit="mm", too_small="good rings are lost",
        too_big="noise makes rings", ge=0,
    )  # fmt: skip


class PomhFinder(CenterScanCuts):
    """One ring: the sharpest peak of the distance histograms of all candidate centres, centre by centre."""

    name: Literal["pomh"] = setting("pomh", "Name of the finder")


class DomhFinder(CenterScanCuts):
    """The same rings as pomh, laid out for vector units: centres side by side."""

    name: Literal["domh"] = setting("domh", "Name of the finder")


class HoughCuts(Model):
    """Cuts of include/nanet/rich/hough.hpp."""

    center_range_mm: float = setting(
        130.0, "The accumulator extends to about here in x and y, no further than 200", unit="mm",
        too_small="rings of particles far off the axis are lost", too_big="time", ge=0,
    )  # fmt: skip
    fine_width_mm: float = setting(
        15.0, "Half width of a vote in the first fine step; half of it in the second, but at least 10", unit="mm",
        too_small="hits of the ring miss its cell", too_big="the maximum is flat", ge=0,
    )  # fmt: skip
    refit_start_mm: float = setting(
        45.0, "Scale of the weights in the first fit", unit="mm", too_small="the circle keeps to part of its hits",
        too_big="noise and other rings pull it away", ge=0,
    )  # fmt: skip
    refit_end_mm: float = setting(
        20.0, "Scale in the last fit", unit="mm", too_small="good hits count too little and the radius scatters",
        too_big="noise pulls it away", ge=0,
    )  # fmt: skip
    refit_passes: int = setting(
        3, "Number of weighted fits, at most 16", too_small="the fit has not settled", too_big="time", ge=1, le=16,
    )  # fmt: skip
    window_mm: float = setting(
        16.0, "Hits this close to the circle belong to the ring. A hit scatters by 5.4 mm", unit="mm",
        too_small="good hits are lost", too_big="noise is included", ge=0,
    )  # fmt: skip
    min_hits: int = setting(
        4, "Fewest hits of a ring; at least 4", too_small="any noise makes rings", too_big="faint rings are lost", ge=4,
        le=128,
    )  # fmt: skip
    radius_min_mm: float | None = setting(None, "Old name of cuts.radius_min_mm, which holds for every finder", unit="mm", ge=0)
    radius_max_mm: float | None = setting(None, "Old name of cuts.radius_max_mm, which holds for every finder", unit="mm", ge=0)
    rms_max_mm: float = setting(
        9.0, "Largest rms, corrected for the three fitted parameters", unit="mm", too_small="good rings are lost",
        too_big="noise makes rings", ge=0,
    )  # fmt: skip


class HoughFinder(HoughCuts):
    """One ring: the highest cell of an accumulator over centre and radius, coarse and then fine."""

    name: Literal["hough"] = setting("hough", "Name of the finder")


class TriplsCuts(Model):
    """Cuts of include/nanet/rich/tripls.hpp."""

    step_pairs: int = setting(
        12, "Pairs of steps (p, q), 1 to 12: triplets per hit", too_small="few clean triplets among noise", too_big="time",
        ge=1, le=12,
    )  # fmt: skip
    pair_distance_min_mm: float = setting(
        40.0, "Hits of a triplet are at least this far apart", unit="mm", too_small="imprecise circles",
        too_big="few triplets of small rings", ge=0,
    )  # fmt: skip
    center_range_mm: float = setting(
        150.0, "At most 1000. A triplet's centre is at most this far out in x and in y", unit="mm",
        too_small="rings far off the axis are lost", too_big="circles of noise", ge=0, le=1000,
    )  # fmt: skip
    like_center_mm: float = setting(
        16.0, "Circles whose centres differ by at most this much in x and in y count as alike", unit="mm",
        too_small="circles of one ring are not recognised as alike", too_big="chance", ge=0,
    )  # fmt: skip
    like_radius_mm: float = setting(
        12.0, "The same for the radius", unit="mm", ge=0,
    )  # fmt: skip
    refit_start_mm: float = setting(
        35.0, "Scale of the weights in the first fit", unit="mm", too_small="the circle keeps to part of its hits",
        too_big="noise and other rings pull it away", ge=0,
    )  # fmt: skip
    refit_end_mm: float = setting(
        20.0, "Scale in the last fit", unit="mm", too_small="good hits count too little and the radius scatters",
        too_big="noise pulls it away", ge=0,
    )  # fmt: skip
    refit_passes: int = setting(
        3, "Number of weighted fits, at most 16", too_small="the fit has not settled", too_big="time", ge=1, le=16,
    )  # fmt: skip
    window_mm: float = setting(
        16.0, "Hits this close to the circle belong to the ring. A hit scatters by 5.4 mm", unit="mm",
        too_small="good hits are lost", too_big="noise is included", ge=0,
    )  # fmt: skip
    min_hits: int = setting(
        4, "Fewest hits of a ring; at least 4", too_small="any noise makes rings", too_big="faint rings are lost", ge=4,
        le=128,
    )  # fmt: skip
    radius_min_mm: float | None = setting(None, "Old name of cuts.radius_min_mm, which holds for every finder", unit="mm", ge=0)
    radius_max_mm: float | None = setting(None, "Old name of cuts.radius_max_mm, which holds for every finder", unit="mm", ge=0)
    rms_max_mm: float = setting(
        9.0, "Largest rms, corrected for the three fitted parameters", unit="mm", too_small="good rings are lost",
        too_big="noise makes rings", ge=0,
    )  # fmt: skip


class TriplsFinder(TriplsCuts):
    """One ring: the circles through many triplets of hits that agree, and a fit of the hits close to them."""

    name: Literal["tripls"] = setting("tripls", "Name of the finder")


class HistogramCuts(Model):
    """Cuts of include/nanet/rich/histogram.hpp."""

    center_range_mm: float = setting(
        140.0, "Candidate centres extend to about here, no further than 200", unit="mm",
        too_small="rings of particles far off the axis are lost", too_big="time, and fakes", ge=0,
    )  # fmt: skip
    rings_max: int = setting(
        4, "Rings to look for, at most 4", too_small="rings are lost", too_big="time, and fakes", ge=1, le=4,
    )  # fmt: skip
    refit_start_mm: float = setting(
        40.0, "Scale of the weights in the first fit from a peak", unit="mm",
        too_small="the circle keeps to the half of its hits that made the peak", too_big="other rings pull it away", ge=0,
    )  # fmt: skip
    refit_end_mm: float = setting(
        22.0, "Scale in the last fit, and when the rings share the hits", unit="mm", too_small="good hits count too little",
        too_big="noise pulls it away", ge=0,
    )  # fmt: skip
    refit_passes: int = setting(
        4, "Number of weighted fits from a peak, at most 16", too_small="the fit has not settled", too_big="time", ge=1, le=16,
    )  # fmt: skip
    share_passes: int = setting(
        2,
        "Number of times that the rings share the hits again, at most 16. 0: crossing rings keep each other's hits; too big: time",
        ge=0, le=16,
    )  # fmt: skip
    window_mm: float = setting(
        15.0, "Hits this close to the circle belong to the ring. A hit scatters by 5.4 mm", unit="mm",
        too_small="good hits are lost", too_big="other rings' hits are included", ge=0,
    )  # fmt: skip
    remove_mm: float = setting(
        10.0, "Hits this close to a ring are removed before the search for the next peak", unit="mm",
        too_small="leftovers make a ring again", too_big="crossing rings lose hits", ge=0,
    )  # fmt: skip
    min_hits: int = setting(
        5, "Fewest hits of a ring, without those closer to another; at least 4", too_small="leftovers make rings",
        too_big="faint rings are lost", ge=4, le=128,
    )  # fmt: skip
    significance_min: float = setting(
        2.0, "Smallest significance (n - b) / sqrt(b + 1)", too_small="chance makes rings in crowded events",
        too_big="faint rings are lost", ge=0,
    )  # fmt: skip
    radius_min_mm: float | None = setting(None, "Old name of cuts.radius_min_mm, which holds for every finder", unit="mm", ge=0)
    radius_max_mm: float | None = setting(None, "Old name of cuts.radius_max_mm, which holds for every finder", unit="mm", ge=0)
    rms_max_mm: float = setting(
        11.0, "Largest rms, corrected for the three fitted parameters", unit="mm", too_small="good rings are lost",
        too_big="noise makes rings", ge=0,
    )  # fmt: skip


class HistogramFinder(HistogramCuts):
    """Several rings: peaks of the distance histograms, ring by ring, which then share the hits."""

    name: Literal["histogram"] = setting("histogram", "Name of the finder")


class AlmagestCuts(Model):
    """Cuts of include/nanet/rich/almagest.hpp."""

    time_window_ns: float = setting(
        10.0, "Full width of the window in which most hits lie; a hit word spans 6.0 ns", unit="ns",
        too_small="hits are lost (0.28 ns a hit)", too_big="pile-up stays", ge=0,
    )  # fmt: skip
    pair_distance_min_mm: float = setting(
        90.0, "Smallest distance of B from A", unit="mm", too_small="the circle is poorly determined",
        too_big="small rings are lost (a ring is 2 R wide)", ge=0,
    )  # fmt: skip
    far_pair_distance_min_mm: float = setting(
        130.0, "Smallest distance of C from A. Ours (published: as for B)", unit="mm",
        too_small="circles of big rings are poorly determined", too_big="small rings are lost", ge=0,
    )  # fmt: skip
    circumradius_max_mm: float = setting(
        200.0, "Largest radius of a triplet's circle", unit="mm", too_small="electron rings (190 mm) are lost",
        too_big="flat triplets of noise pass", ge=0,
    )  # fmt: skip
    score_width_mm: float = setting(
        20.0, "Distance from a triplet's circle at which a hit counts for nothing (on it: 1)", unit="mm",
        too_small="good triplets lose", too_big="bad ones win", ge=0,
    )  # fmt: skip
    score_min: float = setting(
        4.0, "Smallest score of the best triplet, in hits, its own three included", too_small="noise passes",
        too_big="rings with few hits are lost", ge=0,
    )  # fmt: skip
    score_enough: float = setting(
        0.6,
        "Fraction of the hits left: if a triplet of the first eight starts scores this much, the other eight are not tried. Ours",
        too_small="worse triplets win; above 1: never, which costs time", ge=0,
    )  # fmt: skip
    ptolemy_max_mm2: float = setting(
        40.0, "Tolerance of Ptolemy's test", unit="mm^2", too_small="few hits pass", too_big="noise passes", ge=0,
    )  # fmt: skip
    ptolemy_hits_min: int = setting(
        3,
        "Hits that must pass Ptolemy's test, A, B and C included, which always do: up to 3, the test is skipped (published: 4)",
        too_small="no effect, later cuts remain", too_big="half of the rings are lost", ge=0,
    )  # fmt: skip
    take_in_mm: float = setting(
        29.0, "Distance from the triplet's circle within which hits are included", unit="mm",
        too_small="hits of poorly determined circles are lost", too_big="noise and other rings' hits pull it away", ge=0,
    )  # fmt: skip
    keep_mm: float = setting(
        14.0, "Distance from the first fit's circle within which hits are kept. Ours", unit="mm",
        too_small="the ring's own hits are lost (5.4 mm a hit)", too_big="as take_in_mm", ge=0,
    )  # fmt: skip
    radius_min_mm: float | None = setting(None, "Old name of cuts.radius_min_mm, which holds for every finder", unit="mm", ge=0)
    radius_max_mm: float | None = setting(None, "Old name of cuts.radius_max_mm, which holds for every finder", unit="mm", ge=0)
    rms_max_mm: float = setting(
        10.0, "Largest rms of the distances, corrected for the three fitted parameters: rms sqrt(N / (N - 3))", unit="mm",
        too_small="good rings are lost", too_big="fakes", ge=0,
    )  # fmt: skip
    hits_min: int = setting(
        5, "Fewest hits of a ring, at least 4", too_small="noise makes rings", too_big="faint rings are lost", ge=4, le=128,
    )  # fmt: skip


class AlmagestFinder(AlmagestCuts):
    """Several rings from Almagest's triplets: the fastest finder of several rings."""

    name: Literal["almagest"] = setting("almagest", "Name of the finder")


class TripletsCuts(Model):
    """Cuts of include/nanet/rich/triplets.hpp."""

    rings_max: int = setting(
        4, "Rings to look for, at most 4. 1: a second ring's hits are noise to the first", ge=1, le=4,
    )  # fmt: skip
    seeds_max: int = setting(
        4, "Hits from which circles are drawn in each search", too_small="a search may start from noise or poor hits only",
        too_big="slow, no gain beyond 8", ge=0,
    )  # fmt: skip
    enough_share: float = setting(
        0.7, "A search ends when a seed's best circle scores this fraction of the hits' total weight",
        too_small="a poor circle is taken", too_big="slower", ge=0,
    )  # fmt: skip
    pair_distance_min_mm: float = setting(
        35.0, "Smallest distance between any two hits of a triplet", unit="mm", too_small="poor circles, more time",
        too_big="small rings with few hits are lost", ge=0,
    )  # fmt: skip
    triplet_radius_min_mm: float | None = setting(None, "Not used any more: it follows from cuts.radius_min_mm", unit="mm", ge=0)
    triplet_radius_max_mm: float | None = setting(None, "Not used any more: it follows from cuts.radius_max_mm", unit="mm", ge=0)
    center_max_mm: float | None = setting(None, "Old name of cuts.center_max_mm, which holds for every finder", unit="mm", ge=0)
    score_width_mm: float = setting(
        16.0, "A hit farther from a circle adds nothing to its score", unit="mm",
        too_small="a circle must be exact to be found", too_big="other rings' hits count", ge=0,
    )  # fmt: skip
    penalty_per_mm: float = setting(
        0.008, "Score, in hits, that each mm of radius costs", unit="mm", too_small="big chance circles through many hits win",
        too_big="big rings lose to small ones", ge=0,
    )  # fmt: skip
    refit_width_mm: float = setting(
        20.0, "Biweight width of the refit in a search", unit="mm", too_small="stays at the triplet",
        too_big="pulled by neighbours", ge=0,
    )  # fmt: skip
    refit_steps: int = setting(
        2, "Number of steps of the refit in a search", too_small="stays at the triplet", too_big="pulled by neighbours", ge=0,
    )  # fmt: skip
    explained_width_mm: float = setting(
        15.0, "A hit closer than this to a ring already found is partly explained by it and counts less for the next ring",
        unit="mm", too_small="the same ring is found twice", too_big="nearby rings are lost", ge=0,
    )  # fmt: skip
    seed_weight_min: float = setting(
        0.5, "Weight that a hit must have left to be used in a triplet", too_small="more time",
        too_big="rings that share hits are lost", ge=0,
    )  # fmt: skip
    gain_min: float = setting(
        3.6, "Smallest score of a ring, in hits that no other ring explains", too_small="fakes",
        too_big="rings with few hits are lost", ge=0,
    )  # fmt: skip
    gain_per_outsider: float = setting(
        0.15,
        "Added to gain_min for each hit (at most gain_outsiders_max) that neither this ring nor another explains: many stray hits make rings by chance",
        too_small="fakes in noise", too_big="rings with few hits are lost in noise", ge=0,
    )  # fmt: skip
    gain_outsiders_max: float = setting(
        6.0,
        "Added to gain_min for each hit (at most gain_outsiders_max) that neither this ring nor another explains: many stray hits make rings by chance",
        too_small="fakes in noise", too_big="rings with few hits are lost in noise", ge=0,
    )  # fmt: skip
    joint_width_mm: float = setting(
        34.0, "Biweight width of the joint fit", unit="mm", too_small="discards true hits, so the radius is worse",
        too_big="noise pulls", ge=0,
    )  # fmt: skip
    joint_steps: int = setting(
        3, "Number of steps of the joint fit", too_small="discards true hits, so the radius is worse", too_big="noise pulls",
        ge=0,
    )  # fmt: skip
    share_width_mm: float = setting(
        22.0,
        "Hits closer than this to several rings are shared between them in the joint fit. Too small or too big: radii of crossing rings are biased",
        unit="mm", ge=0,
    )  # fmt: skip
    exchange_passes: int = setting(
        1, "Number of times that each ring is searched for again alongside the others. 0: faster, worse for several rings",
        ge=0,
    )  # fmt: skip
    keep_mm: float = setting(
        14.0, "Hits this close to the circle belong to the ring", unit="mm", too_small="true hits are left out",
        too_big="noise is included", ge=0,
    )  # fmt: skip
    hits_min: int = setting(
        4, "Fewest hits of a ring; at least 4", too_small="fakes", too_big="lost rings", ge=4, le=128,
    )  # fmt: skip
    radius_min_mm: float | None = setting(None, "Old name of cuts.radius_min_mm, which holds for every finder", unit="mm", ge=0)
    radius_max_mm: float | None = setting(None, "Old name of cuts.radius_max_mm, which holds for every finder", unit="mm", ge=0)
    rms_max_mm: float = setting(
        10.0, "Largest rms of a ring: sqrt(hits / (hits - 3)) times that of the distances", unit="mm", too_small="lost rings",
        too_big="fakes", ge=0,
    )  # fmt: skip
    octants_min: int = setting(
        3, "Fewest octants, seen from the ring's centre, that have a hit", too_small="fakes", too_big="lost rings", ge=0,
    )  # fmt: skip
    time_use: int = setting(
        0,
        "0: hit times do not matter. 1: hits of a ring must agree in time: separates rings of other times and discards noise",
        ge=0, le=1,
    )  # fmt: skip
    time_sigma_ns: float = setting(
        0.28, "Resolution of a hit's time", unit="ns", too_small="hits are lost", too_big="other rings' hits are included",
        ge=0,
    )  # fmt: skip


class TripletsFinder(TripletsCuts):
    """Several rings: best-scoring circle through three hits, robust joint refit."""

    name: Literal["triplets"] = setting("triplets", "Name of the finder")


class MixtureCuts(Model):
    """Cuts of include/nanet/rich/mixture_cuts.hpp."""

    ring_yield: float = setting(
        12.5, "Expected hits of a ring that lies wholly on the disk", too_small="noise makes rings",
        too_big="faint rings are lost", ge=0,
    )  # fmt: skip
    yield_width: float = setting(
        0.2, "Relative uncertainty of the expected hits", too_small="faint and bright rings are distorted",
        too_big="few hits make a ring", ge=0,
    )  # fmt: skip
    noise_hits: float = setting(
        1.2, "Noise hits expected on a disk", too_small="noise makes rings", too_big="faint rings are lost", ge=0,
    )  # fmt: skip
    noise_width: float = setting(
        0.7, "Relative uncertainty of the noise hits", too_small="an event with much noise makes rings",
        too_big="a faint ring may be taken as noise", ge=0,
    )  # fmt: skip
    ring_penalty: float = setting(
        4.5, "Log likelihood that a ring must gain", too_small="fakes and clones",
        too_big="faint and overlapping rings are lost", ge=0,
    )  # fmt: skip
    sigma_mm: float = setting(
        5.48, "Sigma, rms of a hit's distance from its ring", unit="mm", too_small="hits are lost to the noise",
        too_big="noise is included, rings blur", ge=0,
    )  # fmt: skip
    center_sigma_mm: float = setting(
        50.0, "Expected spread of the centres about the disk's middle in x and y", unit="mm",
        too_small="rings far out are lost", too_big="slightly less is known", ge=0,
    )  # fmt: skip
    radius_min_mm: float | None = setting(None, "Old name of cuts.radius_min_mm, which holds for every finder", unit="mm", ge=0)
    radius_max_mm: float | None = setting(None, "Old name of cuts.radius_max_mm, which holds for every finder", unit="mm", ge=0)
    pair_distance_min_mm: float = setting(
        60.0, "Smallest distance between the hits of a start triplet", unit="mm", too_small="poor starts",
        too_big="small rings have none", ge=0,
    )  # fmt: skip
    start_distance_min_mm: float = setting(
        20.0, "Starts whose |dx| + |dy| + |dR| is less count as one", unit="mm", too_small="the same start again",
        too_big="nearby rings are missed", ge=0,
    )  # fmt: skip
    start_gap: float = setting(
        4.0, "Log likelihood that EM may add to a start's score", too_small="rings are missed", too_big="slow", ge=0,
    )  # fmt: skip
    first_gap: float = setting(
        12.0, "Log likelihood by which a first ring may start below the best", too_small="rings are missed", too_big="slow",
        ge=0,
    )  # fmt: skip
    starts: int = setting(
        4, "Starts for each ring, 1 to 8", too_small="rings are missed", too_big="slow", ge=1, le=8,
    )  # fmt: skip
    em_steps: int = setting(
        6, "Most EM steps of a start, 1 to 20", too_small="poor fits", too_big="slow", ge=1, le=20,
    )  # fmt: skip
    move_rounds: int = setting(
        4, "Number of times that each ring is removed and searched for again, 0 to 8", too_small="rings are missed",
        too_big="slow", ge=0, le=8,
    )  # fmt: skip
    deep_rings: int = setting(
        3, "From this many rings on, all but one are removed and searched for again, 3 to 5; 5: never",
        too_small="slow (an event of three rings takes five times as long)",
        too_big="rings that hold each other in a wrong place stay there", ge=3, le=5,
    )  # fmt: skip
    hits_min: int = setting(
        4, "Fewest hits of a ring; at least 4", too_small="fakes", too_big="faint rings are lost", ge=4, le=128,
    )  # fmt: skip
    disk_use: int = setting(
        1, "1: a ring's light is most likely on one disk, so the disk of its hits tells rings apart; 0: the disk is ignored",
        ge=0, le=1,
    )  # fmt: skip
    time_use: int = setting(
        0, "1: rings are at the event's time and the noise is at any time, so pile-up is not found; 0: time is ignored", ge=0,
        le=1,
    )  # fmt: skip
    time_sigma_ns: float = setting(
        0.28, "Resolution of a hit's time", unit="ns", too_small="hits are lost to the noise", too_big="time tells less", ge=0,
    )  # fmt: skip


class MixtureFinder(MixtureCuts):
    """Several rings and noise as a mixture, fitted by expectation maximisation: the best rings, but slow."""

    name: Literal["mixture"] = setting("mixture", "Name of the finder")


Finder = Annotated[
    MathFinder
    | PomhFinder
    | DomhFinder
    | HoughFinder
    | TriplsFinder
    | HistogramFinder
    | AlmagestFinder
    | TripletsFinder
    | MixtureFinder,
    Field(discriminator="name"),
]
