# SPDX-License-Identifier: Apache-2.0
"""What event_merger must do with lists of parts, written from docs/design/gateware-merging.md as a loop over lists, without cycles.

While the window is longer than the run and no buffer fills, the answer depends on the order of parts on each link alone.
"""

from dataclasses import dataclass, field

from common.events import KEY_MASK, Event

HALF = 1 << 39


@dataclass
class Merged:
    """events: (event, mask of its links), as they leave. parts, late, jumps: of each link."""

    links: int
    events: list[tuple[Event, int]] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    jumps: list[int] = field(default_factory=list)
    complete: int = 0
    missing: int = 0
    cut: int = 0

    def __post_init__(self) -> None:
        self.parts, self.late, self.jumps = [0] * self.links, [0] * self.links, [0] * self.links


def ahead(key: int, of: int) -> int:
    return (key - of) & KEY_MASK


def merge(streams: list[list[Event]], enabled: int, hits_max: int, jump_max: int, horizon: int | None = None) -> Merged:
    """streams: parts of each link in the order in which they come; those of links that are not enabled are not looked at."""
    result = Merged(len(streams))
    heads = [list(reversed(parts)) if enabled >> link & 1 else [] for link, parts in enumerate(streams)]
    while any(heads):
        here = [link for link, parts in enumerate(heads) if parts]
        if horizon is not None:
            behind = [
                link for link in here if ahead(heads[link][-1].key, horizon) == 0 or ahead(heads[link][-1].key, horizon) >= HALF
            ]
            if behind:
                for link in behind:
                    heads[link].pop()
                    result.late[link] += 1
                continue
            far = [link for link in here if ahead(heads[link][-1].key, horizon) > jump_max]
            if far and far != here:
                for link in far:
                    heads[link].pop()
                    result.jumps[link] += 1
                continue
        origin = heads[here[0]][-1].key ^ HALF if horizon is None else horizon
        earliest = min(ahead(heads[link][-1].key, origin) for link in here)
        chosen = [link for link in here if ahead(heads[link][-1].key, origin) == earliest]
        parts = [heads[link].pop() for link in chosen]
        if horizon is not None and len(chosen) == 1 and earliest > jump_max:
            result.jumps[chosen[0]] += 1
            continue
        horizon = parts[0].key
        hits = [hit for part in parts for hit in part.hits]
        mask = sum(1 << link for link in chosen)
        for link in chosen:
            result.parts[link] += 1
        result.complete += mask == enabled
        result.missing += mask != enabled
        result.cut += len(hits) > hits_max
        result.events.append((Event(horizon, parts[0].number, hits[:hits_max]), mask))
    return result
