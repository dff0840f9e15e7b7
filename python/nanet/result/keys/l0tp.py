# SPDX-License-Identifier: Apache-2.0
"""The L0 trigger processor: the result of `nanet l0tp`, and what the native one says while it runs."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from nanet.result.histogram import NativeHistogram
from nanet.result.keys.base import Base, Config, Counts, Latency, Names

NodeCounters = Annotated[
    Counts,
    Names(
        {
            "packets": "datagrams taken",
            "packets_good": "of these, those that were not refused",
            "packets_bad_length": "refused because of their length",
            "packets_bad_format": "because of the number of primitives in them",
            "packets_unknown_source": "because no input has their source ID",
            "primitives_unknown_source": "in those",
            "decided": "reference primitives decided on",
            "triggers_physics": "of these, with a mask that fired",
            "triggers_calibration": "triggers of calibration primitives",
            "time_jumps": "times that the clock was reset because the packets agreed on another time",
        }
    ),
]
"""What came, and what was decided."""


InputCounters = Annotated[
    Counts,
    Names(
        {
            "packets": "good ones of this input",
            "primitives": "= stored + calibrations + late + out_of_range + duplicates + calibrations_no_room; of the reference, stored = overwritten"
            " + decided",
            "stored": "written into the alignment memory",
            "calibrations": "that ask for a trigger of their own",
            "late": "their time was decided on already",
            "out_of_range": "their time is too far from that of the others",
            "duplicates": "of the reference: came twice",
            "calibrations_no_room": "calibrations for which there was no room",
            "overwritten": "a later one took the cell",
            "matched": "decisions with a primitive of this input",
        }
    ),
]
"""What came from one detector."""


class InputResult(TypedDict):
    """An input."""

    name: Annotated[str, "of each input"]
    counters: Annotated[InputCounters, "what came from it"]


class MaskCounters(TypedDict):
    """How often a mask matched."""

    matched: Annotated[int, "before downscaling"]
    fired: Annotated[int, "after it"]


class MaskResult(MaskCounters):
    """A mask."""

    name: Annotated[str, "of each mask"]
    downscaling: Annotated[int, "one of this many matches fires"]


class L0tpResult(Base):
    """What `nanet l0tp` writes."""

    config: Annotated[Config, "the configuration with every default filled in"]
    notes: Annotated[list[str], "what the machine could not give, a line each"]
    elapsed_s: Annotated[float, "length of the run"]
    core_wait_s: Annotated[float, "how long the thread was ready to run while something else had its core"]
    counters: Annotated[NodeCounters, "what came, and what was decided"]
    inputs: Annotated[list[InputResult], "in the order of the configuration; the first is the reference"]
    masks: Annotated[list[MaskResult], "in the order of the configuration"]
    pending: Annotated[int, "reference primitives that waited when it ended: 0"]
    triggers_sent: Annotated[int, "of all kinds"]
    decision_packets: Annotated[int, "that they were sent in"]
    link: Annotated[Counts, "packets, bytes, system calls, kernel drops"]
    latency_us: Annotated[Latency | None, "null without a trigger"]
    latency_histogram: Annotated[str | None, "null without a trigger"]


class L0tpEnd(L0tpResult):
    """The result of an L0 trigger processor in a process of its own."""

    exit_code: Annotated[int, "of the process"]


# --- what the native one says ---


class NodeSnapshot(TypedDict):
    """What nanet._core.TriggerNode.snapshot() returns."""

    elapsed_s: float
    core_wait_s: float
    counters: dict[str, Any]  # NodeCounters, with `inputs` and `masks` in the order of the configuration
    pending: int
    triggers_sent: int
    decision_packets: int
    link: Counts
    latency_ns: NativeHistogram
