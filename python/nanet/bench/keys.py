# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet bench rate`, `latency` and `rings` write."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from nanet.result.keys.base import ELSEWHERE, Base, Config, Counts, Latency
from nanet.result.keys.emulator import CoursePoint, Stalls
from nanet.result.keys.hops import BalanceSheet

Failure = Literal["engine", "sender", "machine"]
"""Who failed: it lost something, it did not keep the rate, it took the core away."""


class Repeat(TypedDict):
    """One run at a rate."""

    sent: Annotated[int, "events"]
    answered: Annotated[int | None, "events; null of a link alone"]
    lost: Annotated[int, "events; of a link alone packets"]
    losses: Annotated[Counts, "as in `nanet demo`; of a link alone packets by counter"]
    latency_us: Annotated[Latency | None, "last packet to answer"]
    mistakes: Annotated[Counts, "answers that are wrong, as in `nanet demo`; of a link alone packets that were refused"]
    failure: Annotated[Failure | None, "as of the step"]
    packets: Annotated[Counts, "the engine's counters of packets, those that are not 0"]
    send_lateness_us: Annotated[Latency | None, "as in `nanet emulate tel62`"]
    stalls: Annotated[Stalls, ELSEWHERE, "as in `nanet emulate tel62`"]
    balance: NotRequired[Annotated[BalanceSheet, "[balance sheet](#balance-sheet) of the run; with `--link` only"]]


class Step(TypedDict):
    """A rate that was tried."""

    rate_events_per_s: Annotated[float, "every rate tried"]
    passed: Annotated[bool, "whether nothing was lost"]
    failure: Annotated[
        Failure | None,
        "null, `engine` (loss), `sender` (it did not keep the rate) or `machine` (something else had the engine's core for more than 20 ms)",
    ]
    done_again: Annotated[int, "runs that failed because of the sender or the machine and were done again"]
    latency_us: Annotated[Latency | None, "all repeats together"]
    repeats: Annotated[list[Repeat], "the runs"]


class Found(TypedDict):
    """What a search for the critical rate found."""

    critical_rate_events_per_s: Annotated[
        float, "highest rate at which every repeat lost nothing; 0: every rate failed, down to the lowest of `steps`"
    ]
    limited_by: Annotated[
        str, "`engine`, `sender` (the emulator did not keep the rate, so the engine may stand more) or `search range`"
    ]
    steps: Annotated[list[Step], "from the lowest rate to the highest"]


class RateResult(Base, Found):
    """What `nanet bench rate` writes."""

    boards: Annotated[int, "1 or 4"]
    sample: Annotated[str, "`single`, `multi` or `particles`"]
    finder: Annotated[str, "ring finder of the engine"]
    runtime: Annotated[str, "where the engine's processor ran: `cpu`, `launch`, `graph` or `persistent`"]
    layout: Annotated[str, "of the packets"]
    burst_packets: Annotated[int, "packets of a board sent in one call"]
    events_per_packet: Annotated[int, "events in a packet"]
    topology: Annotated[str, "of the engine"]
    budget_us: Annotated[float, "the line in the report; it does not judge"]
    repeats: Annotated[int, "runs at each rate"]
    repeat_s: Annotated[float, "length of each"]
    notes: Annotated[list[str], "what the machine could not give, a line each"]


class Round(TypedDict):
    """Ours and sockperf's, one after the other."""

    sent: Annotated[int, "events"]
    lost: Annotated[int, "events, of both our runs"]
    losses: Annotated[Counts, "as in `nanet demo`"]
    latency_us: Annotated[Latency, "of each round"]
    latency_clean_us: Annotated[Latency | None, "without the emulator's own stalls"]
    one_in_flight_us: Annotated[Latency, "with one packet in flight at a time"]
    sockperf_us: Annotated[dict[str, float], "mean of before and after; of `max` the longer one"]
    sockperf_before_us: Annotated[dict[str, float], "sockperf's, before ours"]
    sockperf_after_us: Annotated[dict[str, float], "and after"]
    stalls: Annotated[Stalls, ELSEWHERE, "as in `nanet emulate tel62`"]
    engine_core_wait_s: Annotated[float, "how long the engine was ready to run while something else had its core"]


class RoundSummary(TypedDict):
    """Medians over the rounds, and the figures that compare with sockperf."""

    p50_above_sockperf_us: Annotated[float, "median over the rounds of our p50 minus sockperf's, before and after averaged"]
    p99_9_ratio_to_sockperf: Annotated[float, "median over the rounds of the ratio"]
    one_in_flight_p50_above_sockperf_us: Annotated[float, "median over the rounds of its p50 minus sockperf's"]
    one_in_flight_p99_9_ratio_to_sockperf: Annotated[float, "median over the rounds of the ratio of its p99.9 to sockperf's"]
    latency_us: Annotated[dict[str, float], "ours: `p50`, `p99`, `p99_9`, `p99_99`, `max`, like the next three"]
    latency_clean_us: Annotated[dict[str, float] | None, "ours, without the emulator's own stalls"]
    one_in_flight_us: Annotated[dict[str, float], "ours at the same rate with one packet in flight at a time, as sockperf measures"]
    sockperf_us: Annotated[dict[str, float], "theirs"]
    max_us: Annotated[float, "slowest answer of all rounds"]
    sockperf_max_us: Annotated[float, "slowest round trip of all rounds"]
    longest_stall_us: Annotated[float, "longest time the emulator's own thread was stopped"]
    lost: Annotated[int, "events lost in all rounds"]


class LoopConfigs(TypedDict):
    """Both configurations of a loop."""

    engine: Annotated[Config, "the engine's"]
    emulator: Annotated[Config, "the emulator's"]


class LatencyResult(Base, RoundSummary):
    """What `nanet bench latency` writes."""

    rate_events_per_s: Annotated[float, "that was asked for"]
    boards: Annotated[int, "1 or 4"]
    layout: Annotated[str, "of the packets"]
    runtime: Annotated[str, "where the engine's processor ran"]
    message_bytes: Annotated[int, "of sockperf's messages"]
    budget_us: Annotated[float, "what p99.9 is compared with"]
    rounds: Annotated[list[Round], "a round each"]
    latency_histogram: Annotated[str, "all rounds together"]
    latency_clean_histogram: Annotated[str | None, "the same without the emulator's own stalls"]
    engine_histogram: Annotated[str | None, "residence in the engine, all rounds together"]
    series: Annotated[list[CoursePoint], ELSEWHERE, "the course of the last round, as in `nanet emulate tel62`"]
    config: Annotated[LoopConfigs, "of the last round"]
    notes: Annotated[list[str], "what the machine could not give, a line each"]


class FitRate(TypedDict):
    """How quick a fit is."""

    events_per_s: Annotated[float, "median of the repeats"]
    best_events_per_s: Annotated[float, "the best of them"]


class FitQuality(TypedDict):
    """How good a fit is."""

    radius_bias_mm: Annotated[float, "mean difference to truth"]
    radius_rms_mm: Annotated[float, "rms of the radius against truth"]
    outliers: Annotated[float, "share of events whose radius is wrong by 25 mm or more; they are not in the other figures"]
    largest_difference_to_numpy_mm: Annotated[float, "between the two fits of the same events"]


class FitCase(FitQuality):
    """Events with one number of hits."""

    hits: Annotated[int, "8, 12, 20, 32"]
    events: Annotated[int, "that were fitted"]
    math: Annotated[FitRate, "vectorised, on one core"]
    math_scalar: Annotated[FitRate, "event by event"]
    numpy: Annotated[FitRate, "a vectorised numpy fit"]
    circle_fit: Annotated[FitRate | None, "circle-fit's Taubin fit; null when it is not installed"]
    ratio_to_math_scalar: Annotated[float | None, "ours over theirs, like the next two"]
    ratio_to_numpy: Annotated[float | None, "ours over theirs"]
    ratio_to_circle_fit: Annotated[float | None, "null when it is not installed"]


class MathRate(TypedDict):
    """The headline."""

    events_per_s: Annotated[float, "rings per second on one core, 20 hits, vectorised: median of the repeats"]
    hits: Annotated[int, "of an event"]
    simd: Annotated[str, "instruction set in use"]


class RingsResult(Base):
    """What `nanet bench rings` writes."""

    math: Annotated[MathRate, "the fit MATH"]
    ratio_to_numpy: Annotated[float | None, "to a vectorised numpy fit on the same events, 20 hits"]
    ratio_to_circle_fit: Annotated[float | None, "to circle-fit's Taubin fit; null when it is not installed"]
    cases: Annotated[list[FitCase], "by hits of an event"]


class FinderTimes(TypedDict):
    """How quick a finder is on a sample."""

    ns_per_event: Annotated[float, "vectorised, median of the repeats"]
    events_per_s: Annotated[float, "its inverse"]
    best_ns_per_event: Annotated[float, "the shortest of the repeats"]
    scalar_ns_per_event: Annotated[float, "the function on one event"]
    scalar_ratio: Annotated[float, "of the two"]
    same_bits: Annotated[bool, "both find the same rings, bit for bit"]


class FinderCase(FinderTimes):
    """A finder on a sample."""

    sample: Annotated[str, "which events"]
    rings: Annotated[int, "of an event; 0: a mix"]
    mean_hits: Annotated[float, "of a ring"]


class FinderCases(TypedDict):
    """A finder on all samples."""

    name: Annotated[str, "of the finder"]
    cases: Annotated[list[FinderCase], "a sample each"]


class FindersResult(Base):
    """What `nanet bench rings --finder` writes."""

    finders: Annotated[list[FinderCases], "a finder each"]
    simd: Annotated[str, "instruction set in use"]
    same_bits: Annotated[bool, "so it is for all; if not, the exit code is 1"]
