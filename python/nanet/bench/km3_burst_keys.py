# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet bench km3-burst` writes."""

from __future__ import annotations

from typing import Annotated

from nanet.result.keys.base import Base


class BurstResult(Base):
    """A burst of light over a tower, through the engine."""

    floors: Annotated[int, "of the emulated tower, all of them in the burst"]
    factor: Annotated[float, "by which the burst multiplies single hits"]
    burst_s: Annotated[float, "of detector time"]
    samples: Annotated[int, "of each hit; 0: short hits"]
    speed: Annotated[float, "detector time over time; 0: as fast as possible"]
    hits_sent: Annotated[int, "by the tower: a second before the burst, in it, two seconds after it"]
    hits_used: Annotated[int, "of them, judged"]
    hits_left_out: Annotated[dict[str, int], "of them, by name: too little charge, too far from their slice, no room"]
    hits_in_lost_units: Annotated[int, "in packets and units that `losses` names"]
    hits_unexplained: Annotated[int, "the rest: 0, or nanet has a bug"]
    packets_sent: Annotated[int, "by the tower"]
    packets_accepted: Annotated[int, "by the engine"]
    units_sent: Annotated[int, "a floor in a slice each"]
    units_used: Annotated[int, "in slices that were judged"]
    units_made_late: Annotated[
        int, "that the emulator had not ready when their slice began: then the burst was slower than it says"
    ]
    losses: Annotated[dict[str, int], "what the engine knows to be lost, by name; empty: the burst was buffered"]
    packets_unexplained: Annotated[int, "by the engine's balance sheet"]
    tx_dropped: Annotated[int, "packets that the tower could not send"]
