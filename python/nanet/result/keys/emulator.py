# SPDX-License-Identifier: Apache-2.0
"""The emulator: results of `nanet emulate tel62` and `nanet emulate l0tp`, and what the native one says while it runs."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from numpy.typing import NDArray

from nanet.result.histogram import NativeHistogram
from nanet.result.keys.base import Base, Config, Counts, Latency, Names, Verdict
from nanet.result.keys.engine import TrueEvent

BadPackets = Annotated[
    Counts,
    Names(
        {
            "length": "refused because of their length",
            "format": "because of the number of primitives in them",
            "source": "because of their source",
        }
    ),
]
"""MTP packets that were refused."""


Mistakes = Annotated[
    Counts,
    Names(
        {
            "wrong_answers": "answers whose primitive is not what the ring fit gives for that event",
            "duplicate_answers": "second answers to an event",
            "unknown_answers": "answers to events that were never sent",
            "stale_answers": "answers that came when the event was forgotten already",
            "bad_primitives": "primitives whose bits contradict each other",
            "bad_packets": "MTP packets that break the format",
        }
    ),
]
"""Answers that are wrong; 0 in a loop that works."""


class Stalls(TypedDict):
    """When the emulator's own thread was stopped."""

    count: Annotated[int, "times that the emulator's own thread was stopped for 50 us or more"]
    total_us: Annotated[float, "for how long in all"]
    longest_us: Annotated[float, "the longest of them"]


class CoursePoint(TypedDict):
    """A stretch of a run."""

    t_s: Annotated[float, "end of each stretch of 0.1 s"]
    sent: Annotated[int, "events sent in it"]
    answered: Annotated[int, "answers that came in it"]
    p50_ns: Annotated[int, "latency in that stretch"]
    p99_ns: Annotated[int, "the same"]
    max_ns: Annotated[int, "the same"]


class DetectorCounts(TypedDict):
    """What one of the other detectors sent."""

    name: Annotated[str, "of the detector"]
    packets: Annotated[int, "that it sent"]
    primitives: Annotated[int, "in these"]
    events_shown: Annotated[int, "events that it could have seen"]
    events_seen: Annotated[int, "events of which it sent a primitive"]
    accidentals: Annotated[int, "primitives of no event"]


Decisions = Annotated[
    Counts,
    Names(
        {
            "packets": "received",
            "packets_bad_length": "refused because of their length",
            "packets_bad_format": "refused because of what is in them",
            "physics": "triggers that came back",
            "calibration": "triggers of calibration primitives that came back",
            "unknown": "of no such event",
            "stale": "of an event that was forgotten already",
            "missing": "trigger numbers that did not come",
            "out_of_order": "packets that came after a later one",
            "kernel_dropped": "packets that the kernel dropped here",
        }
    ),
]
"""Decisions that were received."""


class EmulatorResult(Base):
    """What the emulator alone knows of a run."""

    config: Annotated[Config, "the emulator's configuration"]
    sent: Annotated[int, "events"]
    packets_sent: Annotated[int, "packets of all boards, without run markers"]
    markers_sent: Annotated[int, "run markers of all boards: three at the start, three or more at the end"]
    answered: Annotated[int | None, "events whose answer came, null when answers are not received"]
    lost: Annotated[int | None, "`sent` - `answered`"]
    answer_packets: Annotated[int, "MTP packets received"]
    bad_packets: Annotated[BadPackets, "MTP packets that were refused"]
    mistakes: Annotated[Mistakes, "answers that are wrong"]
    tx_dropped: Annotated[int, "packets that the kernel did not take for sending"]
    answers_kernel_dropped: Annotated[int, "answers that the kernel dropped here, not in the engine"]
    elapsed_s: Annotated[float, "from start to the end of sending"]
    latency_us: Annotated[Latency | None, "last packet to answer; null without an answer"]
    latency_clean_us: Annotated[
        Latency | None,
        "the same without events in flight while the emulator's own thread was stopped; null when that was so for all",
    ]
    latency_histogram: Annotated[str | None, "of `latency_us`"]
    latency_clean_histogram: Annotated[str | None, "of `latency_clean_us`"]
    send_lateness_us: Annotated[Latency | None, "how late packets left: the emulator's own overload"]
    stalls: Annotated[Stalls, "when the emulator's own thread was stopped"]
    detectors: Annotated[list[DetectorCounts] | None, "the other detectors, when the configuration has them, else null"]
    decisions: Annotated[Decisions | None, "when decisions are received, else null"]
    decision_latency_us: Annotated[Latency | None, "last packet of an event to its trigger received"]
    decision_latency_histogram: Annotated[str | None, "of `decision_latency_us`"]
    series: Annotated[list[CoursePoint], "the course of the run"]


class EmulatorRun(EmulatorResult):
    """The emulator's side of a run of a loop."""

    truth: Annotated[list[TrueEvent], "the first events as they were made"]
    stopped_early: Annotated[bool, "true after a signal"]


class Tel62Result(EmulatorRun):
    """What `nanet emulate tel62` writes."""

    verdict: Annotated[Verdict, "kept: all answered, rightly, p99.9 within `--budget-us`"]


class FormatVerdict(TypedDict):
    """Whether all packets were good."""

    kept: Annotated[bool, "nothing bad came"]
    reasons: Annotated[list[str], "what did, a text each"]


class AnswersResult(Base):
    """What `nanet emulate l0tp` writes."""

    config: Annotated[Config, "the emulator's configuration"]
    answer_packets: Annotated[int, "MTP packets received"]
    bad_packets: Annotated[BadPackets, "MTP packets that were refused"]
    answers_kernel_dropped: Annotated[int, "packets that the kernel dropped here"]
    elapsed_s: Annotated[float, "length of the run"]
    primitives: Annotated[int, "primitives in the good ones"]
    bad_primitives: Annotated[int, "primitives whose bits contradict each other"]
    verdict: Annotated[FormatVerdict, "whether all packets were good"]


# --- what the native emulator says ---


class NativeStalls(TypedDict):
    """Stalls as they are counted."""

    count: int
    total_ns: int
    longest_ns: int


class NativeDetector(TypedDict):
    """A detector's counts, without its name."""

    packets: int
    primitives: int
    events_shown: int
    events_seen: int
    accidentals: int


class EmulatorSnapshot(TypedDict):
    """What nanet._core.Emulator.snapshot() returns."""

    phase: str
    elapsed_s: float
    packets_sent: int
    markers_sent: int
    sent: int
    answered: int
    lost: int
    answer_packets: int
    bad_packets: BadPackets
    bad_primitives: int
    duplicate_answers: int
    stale_answers: int
    unknown_answers: int
    wrong_answers: int
    tx_dropped: int
    answers_kernel_dropped: int
    stalls: NativeStalls
    latency: NativeHistogram
    latency_clean: NativeHistogram
    send_lateness: NativeHistogram
    detectors: list[NativeDetector]
    decisions: Decisions
    decision_latency: NativeHistogram
    series: NDArray[Any]
