# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet bench gpu` writes: its lists hold the columns of the CSV files of bench/gpu."""

from __future__ import annotations

from typing import Annotated, Any

from nanet.result.keys.base import Base, Names

Row = dict[str, Any]
"""A row by column: texts, counts and times; None for an empty cell."""

_SUMMARY = {
    "count": "how many were timed",
    "min_us": "percentiles of one row, like the next eight",
    "p50_us": "half are at most this long",
    "p90_us": "90 %",
    "p99_us": "99 %",
    "p999_us": "99.9 %",
    "p9999_us": "99.99 %",
    "max_us": "the longest",
    "mean_us": "of all",
    "std_us": "standard deviation",
}
_WRONG = {"wrong": "answers that were not the CPU's"}

RoundTrip = Annotated[
    Row,
    Names(
        {
            "way": "`persistent`, `launch_mapped`, ...: see the head of bench/gpu/round_trip.cpp; `flag`: the bare flag, 0 events",
            "events": "of a buffer",
        }
        | _SUMMARY
        | _WRONG
    ),
]
DriverPath = Annotated[
    Row,
    Names(
        {
            "work": "`dummy` or `rings`",
            "path": "`driver`: launch and synchronise for each buffer; `persistent`",
            "in_flight": "buffers at a time",
            "events": "of a buffer of `rings`",
            "work_us": "how long a `dummy` buffer takes",
        }
        | _SUMMARY
        | {"mean_us": "time of a buffer", "std_us": "its jitter"}
        | {"buffers_per_s": "back to back"}
        | _WRONG
    ),
]
LoopRow = Annotated[
    Row,
    Names(
        {
            "runtime": "`persistent`, `launch`, `graph`, `cpu`",
            "path": "of the packets to the GPU",
            "topology": "of the engine",
            "finder": "ring finder",
            "in_flight": "buffers that the GPU has at a time: 1 serialised, more overlapped",
            "burst_packets": "packets sent in one call",
            "rate_events_per_s": "asked for",
            "packets": "of a buffer, asked for",
            "packets_mean": "that buffers held",
            "sent_events_per_s": "that was kept",
            "sent": "events",
            "answered": "events",
            "lost": "events sent and never answered",
        }
        | _WRONG
        | {
            "p50_us": "latency from a packet given to the kernel to its answer received; percentiles as above",
            "p99_us": "99 %",
            "p999_us": "99.9 %",
            "p9999_us": "99.99 %",
            "max_us": "the longest",
            "clean_p999_us": "p99.9 without answers in flight while the measuring thread itself stalled",
            "late_p99_us": "how late packets left",
            "longest_stall_us": "of the measuring thread",
        }
    ),
]
FinderRow = Annotated[
    Row,
    Names(
        {
            "finder": "its name, events in device memory; `record_fit`: MATH on records of 64 B with 16 B of result; `copy`: within that memory, by"
            " the driver",
            "case": "sample of `nanet physics`; of `record_fit` how many hits per event has",
            "events_per_s": "null for the copy",
            "bytes_per_s": "read and written; null for all but `record_fit` and `copy`",
            "cpu_events_per_s": "one core of that machine; null for `record_fit` and `copy`",
            "latency_1_us": "one event in a running kernel; null as above",
            "latency_64_us": "64 events at once; null as above",
            "events_that_differ": "from the CPU's bits; null for the copy",
        }
    ),
]
MergeRow = Annotated[
    Row,
    Names(
        {
            "way": "`persistent`, `launch_mapped`, ...: event building from four boards, rings, answers; `cpu`: one core of that machine,"
            " without packets of answers",
            "events": "of a buffer, which holds all their parts",
        }
        | _SUMMARY
        | {
            "rate_events_per_s": "as many buffers handed over as are free",
            "incomplete": "events closed without all parts, while the rate was measured",
        }
        | _WRONG
    ),
]
TraceRow = Annotated[
    Row,
    Names(
        {
            "runtime": "`persistent`, `launch`, `graph`",
            "function": "of CUDA; `all of CUDA`; `operator new`, while the loop ran; `operator new at set-up`, before",
            "calls": "of all threads",
            "buffers": "that were filled meanwhile",
        }
    ),
]
Ratio = Annotated[
    Row,
    Names(
        {
            "events": "of a buffer",
            "same_work_p50": "over the best of the event processor's own launches, which do the same work; the methods that end in `_sync` do less",
            "same_work_best_way": "that method",
            "p50": "p50 of persistent over the best p50 of all methods that launch",
            "p50_best_way": "that method",
            "p50_us": "of persistent",
            "p50_best_us": "of that method",
            "p999": "the same for p99.9",
            "p999_best_way": "that method",
            "p999_us": "of persistent",
            "p999_best_us": "of that method",
        }
    ),
]


class GpuResult(Base):
    """What `nanet bench gpu` writes. A part that was not measured is an empty list."""

    gpu: Annotated[str, "name of the GPU"]
    gpu_host_cpu: Annotated[str, "model of its host's CPU"]
    cuda: Annotated[str, "version that the driver knows"]
    finder: Annotated[str, "ring finder of the round trips"]
    round_trip: Annotated[list[RoundTrip], "a buffer there and back"]
    driver_path: Annotated[list[DriverPath], "the papers' comparison"]
    loop: Annotated[list[LoopRow], "the whole loop over UDP"]
    finders: Annotated[list[FinderRow], "rings a second"]
    merge: Annotated[list[MergeRow], "with event building"]
    trace: Annotated[list[TraceRow], "calls into CUDA and for memory"]
    ratios: Annotated[list[Ratio], "of the round trips, by events of a buffer"]
    wrong: Annotated[int, "answers, and events of the finders, that were not the CPU's, of all parts"]
