# SPDX-License-Identifier: Apache-2.0
"""What `nanet km3 study` and `nanet demo --detector km3` write."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from nanet.result.keys.base import ELSEWHERE, Base, Config
from nanet.result.keys.engine import EngineEnd


class Share(TypedDict):
    """A share of things counted."""

    value: Annotated[float, "found / counted"]
    low: Annotated[float, "lower end of the exact binomial interval of 95 %"]
    high: Annotated[float, "its upper end"]
    found: Annotated[int, "how many were found"]
    counted: Annotated[int, "of how many"]


class Rate(TypedDict):
    """A rate of things counted."""

    value: Annotated[float, "counted / seconds"]
    low: Annotated[float, "lower end of the exact Poisson interval of 95 %"]
    high: Annotated[float, "its upper end"]
    counted: Annotated[int, "how many came"]
    seconds: Annotated[float, "of detector time"]


class SeedPoint(TypedDict):
    """Muons whose own light makes so many L1 seeds."""

    seeds: Annotated[int, "how many; the last point has those of more too"]
    efficiency: Annotated[Share | None, "found muons / muons; null: there were none"]


class EnergyPoint(TypedDict):
    """Muons of one energy, all that pass within the emulator's radius."""

    energy_gev: Annotated[float, "where they pass"]
    light: Annotated[float, "theirs, over that of a muon without showers"]
    efficiency: Annotated[Share | None, "found muons / all of them; null: there were none"]
    efficiency_5_seeds: Annotated[Share | None, "as of the result"]
    seeds_mean: Annotated[float, "L1 seeds that their own light makes"]


class CutsPoint(TypedDict):
    """One set of cuts, on the same slices."""

    cuts: Annotated[dict[str, Any], "settings of the trigger that are not the defaults"]
    is_default: Annotated[bool, "these are the defaults, or the cuts that `--set` gave"]
    efficiency_5_seeds: Annotated[Share | None, "as of the result"]
    noise_events_per_s: Annotated[Rate, "as of the result"]
    on_frontier: Annotated[bool, "no other set finds as many muons with as few events of noise"]
    core_share: Annotated[float, "processor time of the trigger over detector time, slices of noise"]


class Display(TypedDict):
    """The event with the most seeds of a muon: hits and the track."""

    hits: Annotated[
        list[list[float]],
        "[x, y, z [m], time [ns] since the event's first seed, charge [photo-electrons], 1 of a muon, 1 a triggered seed]",
    ]
    position_m: Annotated[list[float], "a place on the track"]
    direction: Annotated[list[float], "of flight"]
    time_ns: Annotated[float, "when it is there, as of the hits"]


class StudyResult(Base):
    """What `nanet km3 study` writes."""

    seed: Annotated[int, "of the random numbers"]
    trigger: Annotated[Config, "settings of the trigger"]
    muons: Annotated[int, "emulated"]
    muons_hz: Annotated[float, "how many a second in the slices with muons"]
    noise_s: Annotated[float, "detector time without muons"]
    efficiency_5_seeds: Annotated[Share | None, "muons found, of those whose own light makes 5 or more L1 seeds"]
    efficiency_by_seeds: Annotated[list[SeedPoint], "the same by how many"]
    efficiency_by_energy: Annotated[list[EnergyPoint], "by the energy of muons; empty with `--energy-slices 0`"]
    noise_events_per_s: Annotated[Rate, "events in slices without muons, of one tower"]
    noise_seeds_per_s: Annotated[Rate, "L1 seeds there"]
    purity: Annotated[
        Share | None, "events that have light of a muon / all events, in the slices with muons; it depends on `muons_hz`"
    ]
    floors_per_core: Annotated[float, "floors whose decoding and trigger one core of this machine does: the median slice"]
    floors_per_core_low: Annotated[float, "the same of the slowest tenth of slices"]
    floors_per_gpu: Annotated[
        float | None,
        "floors for whose hits a GPU does match3B in windows of 1500 and judges seeds, with copies, one after the other, as `bench_gpu_km3` measures it; null: not measured",
    ]
    floors_per_gpu_why: Annotated[str, "why it was not; empty: it was"]
    gpu: Annotated[str, "which GPU; empty: none"]
    slice_ms: Annotated[float, "detector time of a slice"]
    slice_latency_ms: Annotated[dict[str, float], "from the bytes of a slice to its events on one core: `p50`, `p90`, `p99`, `max`"]
    scan: Annotated[list[CutsPoint], "sets of cuts; empty with `--no-scan`"]
    display: Annotated[Display | None, "null: no muon was found"]


class Muons(TypedDict):
    """Muons of the emulated tower, and what came back."""

    sent: Annotated[int, "emulated"]
    with_5_seeds: Annotated[int, "of them those whose own light makes 5 or more L1 seeds"]
    found: Annotated[int, "of those: an event has 5 or more hits of its own light"]


class Km3DemoResult(Base):
    """What `nanet demo --detector km3` writes."""

    worked: Annotated[bool, "all that was sent was judged, and all events came back"]
    problems: Annotated[list[str], "what did not, a line each"]
    notes: Annotated[list[str], "of the engine"]
    muons: Annotated[Muons, "against the truth"]
    events: Annotated[int, "received, whole"]
    tower: Annotated[dict[str, Any], ELSEWHERE, "the whole result of the tower, see `nanet emulate km3`"]
    engine: Annotated[EngineEnd, ELSEWHERE, "the whole result of the engine, see `nanet run`, and the `exit_code` of its process"]
    display: Annotated[Display | None, "the brightest muon that was found; null: none was"]
