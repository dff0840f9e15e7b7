# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet bench km3-link` writes, and of what its program says."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import Base

Bits = list[float]
"""Every value that there was [bits of the line]."""


class Phase(TypedDict):
    """A receiver, over resets."""

    resets: Annotated[int, "of serialisers and deserialisers at both ends, each from any phase of every divider"]
    not_up: Annotated[int, "resets after which the link did not come up"]
    latency_values: Annotated[
        int, "distinct values over all resets, the most of any latency below and of what the RTL measures itself"
    ]
    told_by_monitors: Annotated[int, "pulses of the RTL's monitors: another round trip, another phase"]
    down: Annotated[Bits, "every value: from a frame's beginning on shore to the floor's of the same number [bits]"]
    recovered: Annotated[
        Bits, "the same: an edge of the clock that the floor recovers after one of the reference, in a word [bits]"
    ]
    floor_serialiser: Annotated[Bits, "the same: an edge of the floor's serialiser after one of the floor's clock [bits]"]
    round_trip: Annotated[Bits, "the same: from a frame's beginning on shore until the floor's of that number comes in [bits]"]
    recovered_on_shore: Annotated[Bits, "the same: an edge of the clock recovered on shore after one of the reference [bits]"]


class Control(Phase):
    """A receiver that is wrong."""

    name: Annotated[
        str,
        "`slide_off`, `elastic_buffer`, `k28_7_accepted`, `byte_order_free`: each must have more values than one, or not come up",
    ]


class Line(TypedDict):
    """A line rate."""

    line_mbps: Annotated[int, "on the wire"]
    frame_words: Annotated[int, "words of two bytes of a frame"]
    frames: Annotated[int, "on the idle link, and as many with every slot full"]
    payload_fraction: Annotated[float, "bytes of slots over all that the line carries (8 of 10 bits), every slot full"]
    latency_values: Annotated[int, "distinct latencies of frames and express codes, idle and busy together, the most of any"]
    wrong: Annotated[int, "words, codes and times that are not what was sent, and frames dropped or lost"]
    express_codes: Annotated[int, "that came, both ways"]


class Measured(Phase):
    """What the program says."""

    seed: Annotated[int, "of all that is random"]
    fibre_down: Annotated[float, "the simulated fibre to the floor [bits]"]
    fibre_up: Annotated[float, "the one from it [bits]"]
    payload_fraction: Annotated[float, "of `lines[]` at 800 Mb/s"]
    controls: Annotated[list[Control], "the same link with a receiver that is wrong, the keys above of each; fewer resets"]
    lines: Annotated[list[Line], "a line rate each"]


class Km3LinkResult(Base, Measured):
    """What `nanet bench km3-link` writes."""
