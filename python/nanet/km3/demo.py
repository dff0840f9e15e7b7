# SPDX-License-Identifier: Apache-2.0
"""The chain of KM3NeT at small scale: which muons of an emulated tower came back as events, and whether all of it worked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.config.components import Tower as TowerConfig
from nanet.km3 import daq
from nanet.km3.recordings import collect
from nanet.km3.trigger import HIT
from nanet.km3.truth import CHARGE_UNIT_PE, SEEDS_MUON, Muon, Tower, display_of, own_hits, seed_kinds
from nanet.result.keys.km3 import Display, Muons

OWN_HITS = 5  # hits of its own light that an event of a muon has, or more
L1 = {"simple_ns": 20.0, "floor_ns": 200.0, "charge_pe": 2.5}  # the trigger's defaults


class Found:
    """Events as hits, with times since the run began."""

    def __init__(self, packets: Iterable[bytes], tower: Tower, gps_second: int) -> None:
        first = {(int(floor["tower"]), int(floor["number"])): int(floor["first_pm"]) for floor in tower.detector.floors}
        collected = collect(packets)
        self.incomplete = collected.events_incomplete
        self.events = [_hits(event, first, gps_second) for event in collected.events]

    def of(self, muon: Muon, slice_ns: float) -> int | None:
        """The event that has most of its light, if that is OWN_HITS or more."""
        light = muon.hits["time_ns"] + muon.slice * slice_ns
        best, most = None, OWN_HITS - 1
        for number, hits in enumerate(self.events):
            if len(hits) == 0 or hits["time_ns"][-1] < light[0] or hits["time_ns"][0] > light[-1]:
                continue
            own = int(own_hits(hits, muon, slice_ns).sum())
            if own > most:
                best, most = number, own
        return best


def _hits(event: daq.Event, first: Mapping[tuple[int, int], int], gps_second: int) -> NDArray[np.void]:
    hits = np.zeros(len(event.hits), HIT)
    begin_ns = (event.header.second - gps_second) * 1e9 + event.header.tick * 16.0
    hits["time_ns"] = begin_ns + event.hits["time_ns"]
    hits["pm"] = [
        first[divmod(int(module), 256)] + int(pm) for module, pm in zip(event.hits["module"], event.hits["channel"], strict=True)
    ]
    hits["charge_pe"] = event.hits["tot"] * CHARGE_UNIT_PE
    return hits


def muons_of(tower: Tower, slices: int, found: Found) -> tuple[Muons, Display | None]:
    """How many were sent and found, and the brightest of those that were found."""
    sent, bright, seen = 0, 0, 0
    shown: tuple[int, Muon] | None = None
    for muon in (muon for number in range(slices) for muon in tower.muons(number)):
        sent += 1
        if len(muon.hits) == 0 or int((seed_kinds(muon.hits, tower.detector.pms, **L1) > 0).sum()) < SEEDS_MUON:
            continue
        bright += 1
        event = found.of(muon, tower.slice_ns)
        if event is None:
            continue
        seen += 1
        if shown is None or len(muon.hits) > len(shown[1].hits):
            shown = event, muon
    muons: Muons = {"sent": sent, "with_5_seeds": bright, "found": seen}
    if shown is None:
        return muons, None
    hits, brightest = found.events[shown[0]], shown[1]
    zero_ns = float(brightest.hits["time_ns"][0]) + brightest.slice * tower.slice_ns
    return muons, display_of(tower, brightest, hits, zero_ns, np.zeros(len(hits), bool))


def truth_of(config: TowerConfig) -> Tower:
    """The tower that the configuration plays, without its sockets."""
    told = config.model_dump(mode="json")
    return Tower(seed=told.pop("seed"), slice_ms=told.pop("slice_ms"), muons_hz=told["muons"].pop("rate_hz"), **told)


def problems(sent: Mapping[str, Any], counters: Mapping[str, int], events: int, incomplete: int) -> list[str]:
    """What did not work, a line each; none if all did."""
    pairs: Sequence[tuple[str, int, int]] = (
        ("packets sent and received", sent["packets_sent"], counters["packets_accepted"]),
        ("units sent and judged", sent["units"], counters["units_used"]),
        ("events triggered and received", counters["events_triggered"], events),
    )
    found = [f"{what}: {one:,} and {other:,}" for what, one, other in pairs if one != other]
    return found + ([f"events received in part: {incomplete:,}"] if incomplete else [])
