# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet bench rate --link` and `nanet bench latency --link` write."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from nanet.bench.keys import Failure, Step
from nanet.result.keys.base import ELSEWHERE, Base, Counts, Latency
from nanet.result.keys.emulator import Stalls
from nanet.result.keys.hops import BalanceSheet

Trip = dict[str, float]
"""sockperf's percentiles: `min`, `p50`, `p90`, `p99`, `p99_9`, `p99_99`, `max` [us], as far as it says them."""


class Pauses(TypedDict):
    """What a watcher on a core of its own saw."""

    count: Annotated[int, "pauses of 50 us or more of a core that only reads the clock"]
    total_us: Annotated[float, "all of them"]
    longest_us: Annotated[float, "the longest"]


class LoadRun(TypedDict):
    """One run at a share of the critical rate."""

    sent: Annotated[int, "events"]
    lost: Annotated[int, "events"]
    losses: Annotated[Counts, "as in `nanet demo`"]
    mistakes: Annotated[Counts, "as in `nanet demo`"]
    latency_us: Annotated[Latency | None, "last packet to answer"]
    latency_clean_us: Annotated[Latency | None, "without events in flight while the emulator's own thread was stopped"]
    send_lateness_us: Annotated[Latency | None, "as in `nanet emulate tel62`"]
    stalls: Annotated[Stalls, ELSEWHERE, "of the emulator's thread, as in `nanet emulate tel62`"]
    engine_core_wait_s: Annotated[float, "how long the engine was ready to run while something else had its core"]
    watcher: Annotated[Pauses | None, "what a core of its own saw; null where no core was to spare"]
    balance: Annotated[BalanceSheet, "[balance sheet](#balance-sheet) of the run"]


class Load(TypedDict):
    """All runs at a share of the critical rate."""

    share: Annotated[float, "of the critical rate: 0.1, 0.5, 0.9"]
    rate_events_per_s: Annotated[float, "that share of it"]
    latency_us: Annotated[Latency | None, "all runs at this load together"]
    latency_clean_us: Annotated[
        Latency | None,
        "without events in flight while the emulator's own thread was stopped; null when that was so for all",
    ]
    latency_histogram: Annotated[str | None, "of `latency_us`"]
    sent: Annotated[int, "events"]
    lost: Annotated[int, "events"]
    longest_stall_us: Annotated[float, "longest time the emulator's own thread was stopped"]
    engine_core_wait_s: Annotated[float, "how long the engine was ready to run while something else had its core"]
    runs: Annotated[list[LoadRun], "the runs"]


class AloneRate(TypedDict):
    """A link alone: packets counted, no rings, no answers."""

    critical_rate_packets_per_s: Annotated[float, "highest rate at which every packet was received"]
    limited_by: Annotated[str, "as in `nanet bench rate`"]
    steps: Annotated[list[Step], ELSEWHERE, "as in `nanet bench rate`"]


class LongRun(TypedDict):
    """One run of many packets."""

    share: Annotated[float, "of the critical rate"]
    rate_events_per_s: Annotated[float, "that share of it"]
    duration_s: Annotated[float, "how long was sent"]
    packets: Annotated[int, "sent"]
    sent: Annotated[int, "events"]
    lost: Annotated[int, "events"]
    losses: Annotated[Counts, "as in `nanet demo`"]
    mistakes: Annotated[Counts, "as in `nanet demo`"]
    kernel_dropped: Annotated[int, "packets that the kernel dropped at the engine's link"]
    latency_us: Annotated[Latency | None, "last packet to answer"]
    failure: Annotated[Failure | None, "as in `nanet bench rate`"]
    stalls: Annotated[Stalls, ELSEWHERE, "of the emulator's thread, as in `nanet emulate tel62`"]
    engine_core_wait_s: Annotated[float, "how long the engine was ready to run while something else had its core"]
    watcher: Annotated[Pauses | None, ELSEWHERE, "as of `loads[].runs[]` in `bench latency --link`"]
    balance: Annotated[BalanceSheet, "[balance sheet](#balance-sheet) of the run"]


class LinkEntry(TypedDict):
    """One link."""

    name: Annotated[str, "one for each link asked for, in the order of the table in the design page"]
    what: Annotated[str, "what it is"]
    path: Annotated[str | None, "which path the packets took, in the link's own words"]
    boards: Annotated[str | None, "how the emulator sent and received: `socket`, `answers-xdp` or `xdp`"]
    reason: Annotated[str | None, "why it was not measured: not in this build, or what it said when it was started; null: it was"]
    critical_rate_events_per_s: Annotated[
        float | None,
        "highest rate at which every repeat lost nothing, with the same number of packets per call; 0: not even the lowest; null: not measured",
    ]
    critical_rate_packets_per_s: Annotated[float | None, "the same in packets"]
    limited_by: Annotated[str | None, "as in `nanet bench rate`"]
    latency_us: Annotated[Latency | None, "last packet to answer, at the critical rate; in `bench latency` at half load"]
    loads: Annotated[list[Load], "in `bench latency`, by share of the critical rate; else empty"]
    one_in_flight: Annotated[
        Load | None,
        ELSEWHERE,
        "as one of `loads`, with one packet in flight; null in `bench rate` and where there was no critical rate",
    ]
    alone: Annotated[
        AloneRate | None, "the link alone (packets counted, no rings, no answers); null with `--no-alone` and in `bench latency`"
    ]
    long_run: Annotated[LongRun | None, "with `--long-run`; else null"]
    steps: Annotated[list[Step], ELSEWHERE, "as in `nanet bench rate`; each repeat has a `balance`"]
    runs: Annotated[int, "runs made"]
    packets_sent: Annotated[int, "in all of them"]
    unexplained_packets: Annotated[int, "in all of them"]
    unexplained_at: Annotated[list[str], "at which rate and hop, a line for each run that has any"]
    notes: Annotated[list[str], "what the machine could not give, a line each"]


class Ratios(TypedDict):
    """How a link stands to the peers."""

    ratio_to_spead2: Annotated[float | None, "critical rate in packets over spead2's; null where either has none"]
    ratio_to_testpmd: Annotated[float | None, "over the better of testpmd's two figures"]
    alone_ratio_to_spead2: Annotated[float | None, "the same of the link alone"]
    alone_ratio_to_testpmd: Annotated[float | None, "the same of the link alone"]
    one_in_flight_p50_above_sockperf_us: Annotated[
        float | None, "p50 with one packet in flight minus sockperf's; `bench latency` only"
    ]
    one_in_flight_p99_9_ratio_to_sockperf: Annotated[float | None, "its p99.9 over sockperf's; `bench latency` only"]
    p50_above_sockperf_us: Annotated[
        float | None, "p50 at half load minus that of sockperf's spinning round trip; `bench latency` only"
    ]
    p99_9_ratio_to_sockperf: Annotated[float | None, "p99.9 at half load over sockperf's; `bench latency` only"]


class ComparedLink(LinkEntry, Ratios):
    """One link beside its peers."""


class Spead2Run(TypedDict):
    """One run of spead2."""

    heaps_sent: Annotated[int, "of 1 MiB"]
    heaps_received: Annotated[int, "whole"]
    packets_received: Annotated[int, "in these"]
    kept_packets_per_s: Annotated[int, "the rate that the sender kept"]
    failure: Annotated[str | None, "`receiver` (it lost a heap), `sender` (it did not keep the rate) or null"]


class Spead2Step(TypedDict):
    """A rate that was tried."""

    rate_packets_per_s: Annotated[float, "every rate tried"]
    passed: Annotated[bool, "whether nothing was lost"]
    failure: Annotated[str | None, "of its last run"]
    runs: Annotated[list[Spead2Run], "with heaps sent and received"]


class Spead2(TypedDict):
    """spead2's own sender and receiver."""

    version: Annotated[str | None, "null: not installed"]
    install: Annotated[str, "the command that installs it"]
    packet_bytes: Annotated[int, "payload of its packets"]
    critical_rate_packets_per_s: Annotated[float | None, "the same search with spead2's sender and receiver; null: no figure"]
    limited_by: Annotated[str | None, "`receiver`, `sender` or `search range`"]
    super_packets: Annotated[bool | None, "whether it sent super-packets; false: the wheel; null: not measured"]
    steps: Annotated[list[Spead2Step], "from the lowest rate to the highest"]
    problems: Annotated[list[str], "why there is no figure, a line each"]


class Testpmd(TypedDict):
    """DPDK's testpmd."""

    version: Annotated[str | None, "of DPDK; null: not installed"]
    install: Annotated[str, "the command that installs it"]
    frame_bytes: Annotated[int, "of its frames"]
    af_packet_packets_per_s: Annotated[
        float | None,
        "packets per second received over both ends of the pair by one core that also sends as many; null: no figure",
    ]
    af_xdp_packets_per_s: Annotated[float | None, "the same by another driver"]
    problems: Annotated[list[str], "why there is no figure, a line each"]


class SockperfTrips(TypedDict):
    """Round trips, once."""

    spinning_us: Annotated[Trip | None, "both sides look without pause"]
    blocking_us: Annotated[Trip | None, "both sides sleep"]
    problems: Annotated[list[str], "why there is no figure, a line each"]


class Sockperf(TypedDict):
    """sockperf over the same kind of cable."""

    version: Annotated[str | None, "null: not installed"]
    install: Annotated[str, "the command that installs it"]
    message_bytes: Annotated[int, "of its messages"]
    spinning_us: Annotated[Trip | None, "full round trips over the same kind of cable, means of before and after; null: no figure"]
    blocking_us: Annotated[Trip | None, "the same with both sides sleeping"]
    before: Annotated[SockperfTrips, "as it was before our runs"]
    after: Annotated[SockperfTrips, "and after them"]
    problems: Annotated[list[str], "why there is no figure, a line each"]


class RatePeers(TypedDict):
    """The peers that have a rate."""

    spead2: Annotated[Spead2, "spead2's own sender and receiver"]
    testpmd: Annotated[Testpmd, "DPDK's testpmd"]


class Peers(RatePeers):
    """The peers, in the same run."""

    sockperf: NotRequired[Annotated[Sockperf, "sockperf over the same kind of cable; `bench latency` only"]]


class ComparisonResult(Base):
    """What `nanet bench rate --link` and `nanet bench latency --link` write."""

    boards: Annotated[int, "1 or 4"]
    layout: Annotated[str, "of the packets"]
    burst_packets: Annotated[int, "packets of a board sent in one call"]
    events_per_packet: Annotated[int, "events in a packet"]
    message_bytes: Annotated[int, "payload of the boards' packets and of the peers'"]
    budget_us: Annotated[float, "the line in the report; it does not judge"]
    repeats: Annotated[int, "runs at each rate"]
    repeat_s: Annotated[float, "length of each"]
    links: Annotated[list[ComparedLink], "a link each"]
    peers: Annotated[Peers, "the peers, in the same run"]
    unexplained_packets: Annotated[int, "of all links; anything but 0 is a bug of nanet"]
    unexplained_at: Annotated[list[str], "with the link's name"]
    notes: Annotated[list[str], "what the machine could not give, a line each"]
