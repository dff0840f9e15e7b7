# SPDX-License-Identifier: Apache-2.0
"""What `nanet physics` writes. A figure that a sample cannot give (no rings, none found) is None."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from nanet.result.keys.base import ELSEWHERE, Base, Config, Names

Figures = dict[str, Any]
"""By name: a number, or None; of samples of real particles with the keys of Separated."""

RESOLUTION = {
    "radius_bias_mm": "mean of found minus true",
    "radius_bias_error_mm": "its error",
    "radius_rms_mm": "rms of found minus true",
    "radius_rms_error_mm": "its error",
    "centre_bias_x_mm": "mean of found minus true",
    "centre_bias_y_mm": "the same",
    "centre_rms_mm": "of one axis",
    "hit_error_mm": "rms distance of true hits from true circles",
    "bound_mm": "Gaussian Cramer-Rao bound of the radius for that hit error",
    "ratio_to_bound": "`radius_rms_mm / bound_mm`",
    "ratio_to_bound_error": "its error",
    "time_rms_ns": "rms of the ring's time minus the true one; null for finders that give no time",
}
FINDER = (
    {
        "events": "of the sample",
        "rings": "true ones, of all events",
        "efficiency": "true rings with a match / true rings",
        "efficiency_error": "its error",
        "efficiency_in_time": "efficiency for rings of the event's time",
        "efficiency_in_time_error": "its error",
        "efficiency_pileup": "for rings of another decay, null where there are none",
        "efficiency_pileup_error": "its error",
        "all_found": "events with every true ring found / events with true rings",
        "all_found_error": "its error",
        "count_right": "events with the right number of rings / events",
        "count_right_error": "its error",
        "fakes": "found rings that match no true one, an event",
        "fakes_error": "its error",
        "clones": "second finds of a true ring, an event",
        "clones_error": "its error",
        "found": "found rings per event",
    }
    | RESOLUTION
    | {"ns_per_event": "one core, the fastest pass; null for the oracle"}
)
WINDOW = {
    "efficiency": "true rings with a match / true rings",
    "efficiency_error": "its error",
    "electron_like": "share of its rings found within 6 mm of an electron's radius",
    "electron_like_error": "its error",
}
WindowShares = Annotated[Figures, Names(WINDOW)]
ParticleFigures = Annotated[Figures, Names(WINDOW | {"radius_sigma_mm": "standard deviation of found minus expected radius"})]
Sigmas = Annotated[Figures, Names({"sigmas": "distance of the mean radii over their resolution", "error": "its error"})]


class MomentumBin(TypedDict):
    """A bin of true momentum."""

    momentum_min_gev: Annotated[float, "bins of true momentum"]
    momentum_max_gev: Annotated[float, "where it ends"]
    particles: Annotated[dict[str, ParticleFigures], "of each particle: `e`, `mu`, `pi`, `K`"]
    separation: Annotated[dict[str, Sigmas], "of each pair, such as `mu_pi`"]


class Separated(TypedDict):
    """How well radii tell particles apart."""

    electron_window: Annotated[dict[str, WindowShares], "of each particle"]
    kinds_by_momentum: Annotated[
        dict[str, Figures],
        "of each particle, by particle: share of its found rings that are nearest to that one's radius, at the true momentum",
    ]
    separation: Annotated[list[MomentumBin], "in bins of true momentum"]


FinderFigures = Annotated[Figures, Names(FINDER, more=Separated)]
"""Of a finder on a sample; those of Separated of the samples of real particles only."""
BestFigures = Annotated[Figures, Names(FINDER | {"best": "which that is"}, more=Separated)]
BinFigures = Annotated[
    Figures, Names({"rings": "true ones in the bin", "efficiency": "true rings with a match / true rings"} | RESOLUTION)
]
"""Of a finder in a bin of hits."""


class CaseResult(TypedDict):
    """A sample."""

    title: Annotated[str, "of each sample: in words"]
    best: Annotated[str, "finder with the most `all_found - fakes - clones`"]
    efficiency: Annotated[float | None, "its efficiency"]
    finders: Annotated[dict[str, FinderFigures], "of each finder, and of `oracle`"]
    config: Annotated[Config, "the Monte Carlo's configuration, and the least distance of centres (`apart_mm`)"]


class ScanPoint(TypedDict):
    """A point of a scan."""

    x: Annotated[float, "the value, or the middle of the bin"]
    low: NotRequired[Annotated[float, "edges of a bin; of `distance` and `ring_hits` only"]]
    high: NotRequired[Annotated[float, "the other edge"]]
    finders: Annotated[
        dict[str, FinderFigures] | dict[str, BinFigures],
        ELSEWHERE,
        "figures as those of `cases`; of `ring_hits` `rings`, `efficiency`, and those of radius, centre and time",
    ]


class ScanResult(TypedDict):
    """Samples that differ in one number."""

    title: Annotated[str, "in words"]
    unit: Annotated[str, "of `x`"]
    points: Annotated[list[ScanPoint], "a value each"]


class FrontierPoint(TypedDict):
    """A finder on a sample and a device."""

    case: Annotated[str, "sample"]
    finder: Annotated[str, "a point a finder, sample and device"]
    device: Annotated[str, "`cpu` (one core of this machine) or `gpu` (from `--gpu-csv`)"]
    events_per_s: Annotated[float, "how fast it is there"]
    efficiency: Annotated[float | None, "as of the case, like the next three"]
    all_found: Annotated[float | None, "as of the case"]
    fakes: Annotated[float | None, "as of the case"]
    clones: Annotated[float | None, "as of the case"]
    on_frontier: Annotated[bool, "no other finder on the same kind of device is both as fast and as good"]


class PhysicsResult(Base):
    """What `nanet physics` writes."""

    events: Annotated[int, "of each sample"]
    seed: Annotated[int, "of the events"]
    finders: Annotated[list[str], "names of the ring finders that were measured"]
    simd: Annotated[str, "instruction set in use"]
    single_ring: Annotated[
        BestFigures | None,
        ELSEWHERE,
        "all figures of the best finder on the default sample (one ring, 1.2 noise hits), as of `cases`, and `best`: which that is; null when the"
        " case was not asked for",
    ]
    two_rings_apart: Annotated[BestFigures | None, ELSEWHERE, "the same for other samples"]
    three_rings_apart: Annotated[BestFigures | None, ELSEWHERE, "the same"]
    three_rings: Annotated[BestFigures | None, ELSEWHERE, "the same"]
    multi_ring: Annotated[BestFigures | None, ELSEWHERE, "the same"]
    cases: Annotated[dict[str, CaseResult], "by name of the sample"]
    frontier: Annotated[list[FrontierPoint], "quality against speed"]
    scans: Annotated[
        dict[str, ScanResult] | None,
        "by name: `hits`, `noise`, `rings_apart`, `rings`, `distance`, `ring_hits`; null with `--no-scan`",
    ]
