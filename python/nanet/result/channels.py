# SPDX-License-Identifier: Apache-2.0
"""What is known of each photomultiplier after a run or while it goes on: how often it fired, which fire too often or hardly ever, which
are masked. The rule is the native one (include/nanet/rich/channels.hpp)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nanet.result.keys.engine import Channels, MaskedChannel, NativeChannels
from nanet.rich import pm_map

__all__ = ["STATES", "hits_of_pms", "masked_notes", "notes", "numbers_text", "plain", "state_lists"]

STATES = ("hot", "dead", "masked")
MASKED_MAX = 97
"""Most channels that a run masks by itself (ChannelMonitor::kFoundMax)."""
LISTED = 24  # ranges in a line


def plain(native: NativeChannels | None) -> Channels | None:
    """The part `channels` of a snapshot as a result has it; None where no processor looks at hits."""
    if native is None:
        return None
    return {**native, "hits": [int(n) for n in native["hits"]]}


def state_lists(channels: Channels | NativeChannels) -> dict[str, list[int]]:
    """Channels by state; those that were masked in the run are among the masked ones."""
    found = [one["channel"] for one in channels["masked_in_run"]]
    return {"hot": list(channels["hot"]), "dead": list(channels["dead"]), "masked": sorted({*channels["masked"], *found})}


def hits_of_pms(channels: Channels | NativeChannels) -> NDArray[np.int64]:
    """Hits of each channel that has a photomultiplier."""
    hits = np.asarray(channels["hits"], dtype=np.int64)
    return hits[~np.isnan(pm_map.positions_mm()[:, 0])]


def masked_notes(channels: Channels | NativeChannels | None) -> Iterator[str]:
    """A line for each moment at which channels were masked by the run itself."""
    found: Sequence[MaskedChannel] = channels["masked_in_run"] if channels else ()
    for at_s in sorted({one["at_s"] for one in found}):
        there = [one for one in found if one["at_s"] == at_s]
        yield (
            f"masked at {at_s:.3f} s, after {there[0]['events']:,} events: {_named(one['channel'] for one in there)}"
            " (far more hits than the neighbours) list them in mask.channels"
        )
    if len(found) >= MASKED_MAX:
        yield f"no further channel is masked by itself ({len(found)} are) see whether the detector or its noise changed"


def notes(channels: Channels | None) -> Iterator[str]:
    """A line for hot channels that are not masked, and one for dead ones."""
    if not channels:
        return
    lists = state_lists(channels)
    if hot := [channel for channel in lists["hot"] if channel not in lists["masked"]]:
        yield f"hot: {_named(hot)} (more than 4 times the hits of the neighbours) list them in mask.channels, or set mask.hot"
    if dead := lists["dead"]:
        yield f"dead: {_named(dead)} (at most a fiftieth of the hits of the neighbours) see their supply and cables"


def numbers_text(numbers: Iterable[int], most: int = LISTED) -> str:
    """Numbers and ranges, such as `3, 100-107`; of more than `most` the first ones."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def _named(numbers: Iterable[int]) -> str:
    channels = list(numbers)
    return f"{len(channels)} channel{'s' * (len(channels) != 1)}, {numbers_text(channels)}"
