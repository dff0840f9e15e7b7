# SPDX-License-Identifier: Apache-2.0
"""Which finder is the best on a sample."""

from __future__ import annotations

from collections.abc import Mapping

from nanet.result.keys.physics import Figures

TIMED = "_time"  # ends the name of a finder that looks at hit times


def merit(figures: Figures) -> float:
    """What makes a finder the best on a sample: events with all rings found, less false rings an event. Without true rings: few fakes."""
    return float(figures["all_found"] or 0.0) - float(figures["fakes"]) - float(figures["clones"])


def best(finders: Mapping[str, Figures], *, hit_times: bool = True) -> str:
    """The finder with the most merit, if asked among those that do not look at hit times; the oracle does not take part."""
    names = [name for name in finders if name != "oracle" and (hit_times or not name.endswith(TIMED))]
    return max(names, key=lambda name: merit(finders[name]))
