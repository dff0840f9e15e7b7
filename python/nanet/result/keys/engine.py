# SPDX-License-Identifier: Apache-2.0
"""An engine: the result of `nanet run`, and what the native engine says while it runs."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from numpy.typing import NDArray

from nanet.result.histogram import NativeHistogram
from nanet.result.keys.base import Base, Config, Counts, Latency, Verdict
from nanet.result.keys.hops import BalanceSheet


class NicBin(TypedDict):
    """A bin of a stage's histogram."""

    from_cycles: Annotated[int, "the least that is counted in it"]
    to_cycles: Annotated[int | None, "the most, included; null in the last bin, which has no end"]
    count: Annotated[int, "samples"]


class NicStage(TypedDict):
    """A stage of the packets' path through a NIC. Cycles are 0 without samples."""

    name: Annotated[str, "of the stage"]
    sample: Annotated[str, "what has one sample: `packet` or `buffer`"]
    count: Annotated[int, "samples"]
    min_cycles: Annotated[int, "the least, exact, like the next two; 0 without samples"]
    max_cycles: Annotated[int, "the most"]
    sum_cycles: Annotated[int, "of all samples"]
    bins: Annotated[list[NicBin], "of its histogram, those that are not empty"]


class NicTimes(TypedDict):
    """What a NIC says of the time that packets took in it."""

    clock: Annotated[str, "in words, what has the cycles"]
    cycle_ns: Annotated[float, "how long a cycle is"]
    stages: Annotated[list[NicStage], "in the order of a packet's path"]


class NicCounts(TypedDict):
    """Counters of a NIC that belong together."""

    name: Annotated[str, "of the group: `rx`, `reply`, `port`, `merge`, `events`, `node`, `km3`, `km3_node` or `host`, whose counters are [registers](gateware-registers.md);"
                         " `fibre`: what became of packets that were to go over [links of floors](design/km3-node.md#the-link), and `floor`: frames of each;"
                         " `slow_control`: requests to [floors](design/km3-node.md#slow-control-over-the-link) and their answers, express codes among them;"
                         " `link_state`: no counters, but how the link of a floor is now: its receiver is aligned (`aligned`), there is light (`sends`), the floor hears it (`hears`) and has the"
                         " right time (`timed`), bits that the recovered clock was slid by (`slip_bits`), its phase, and the round trip;"
                         " `wire`: what the link put onto it (`frames`), and has yet to (`held`); `given`: what it handed on,"
                         " and whether its simulation had begun something that is still in it (`busy`)"]  # fmt: skip
    port: Annotated[int | None, "of the node; null: of the node as a whole"]
    counts: Annotated[Counts, "since the start, by name"]


class LinkReading(TypedDict):
    """What every reading of an engine says of a link."""

    name: Annotated[str, "of each link; with several queues `NAME.0` and so on, a link each; `answers` is the one that sends"]
    stats: Annotated[
        Counts,
        "packets, bytes, system calls, kernel drops; of a file what was passed over (`rx_skipped_not_udp`, `rx_skipped_port`,"
        " `rx_skipped_fragment`, `rx_skipped_cut`, `rx_bytes_damaged`), of a link with `record` `recorded` and `unrecorded` packets",
    ]
    nic_times: Annotated[
        NicTimes | None,
        "[what the NIC, or the kernel that stamps packets, says](#time-in-the-nic) of the time that they took; null where it does not, and for `answers`",
    ]
    nic_counts: Annotated[
        list[NicCounts],
        "[what a node counts](#counters-of-a-node), port by port, or [one of a torus](#counters-of-a-node-of-a-torus); empty for every other link",
    ]
    faults: Annotated[Counts | None, "packets by what the fault injector did to them; null without one"]


class LinkState(LinkReading):
    """A link in a result."""

    path: Annotated[str, "which path the packets take, in the link's own words"]
    counters: Annotated[Counts, "packets that cannot be put down to a source; empty for `answers`"]


class SourceState(TypedDict):
    """A source in a result."""

    link: Annotated[str, "that it sends to"]
    name: Annotated[str, "of each source"]
    source_id: Annotated[int, "as its packets say it"]
    source_sub_id: Annotated[int, "the same"]
    counters: Annotated[Counts, "its own share of the counters"]


class MaskedChannel(TypedDict):
    """A channel that the run itself masked."""

    channel: Annotated[int, "its number"]
    at_s: Annotated[float, "since the start"]
    events: Annotated[int, "until then"]


class ChannelStates(TypedDict):
    """Channels by state."""

    hot: Annotated[list[int], "channels that fire far more often than their neighbours ([rule](design/channels.md#rule))"]
    dead: Annotated[list[int], "channels that hardly ever fire"]
    masked: Annotated[list[int], "channels that the configuration masks"]
    masked_in_run: Annotated[list[MaskedChannel], "those masked by the run itself"]


class NativeChannels(ChannelStates):
    """As the native engine gives them."""

    hits: NDArray[Any]


class Channels(ChannelStates):
    """What is known of each photomultiplier."""

    hits: Annotated[list[int], "of every channel, 0 to 2047, masked ones too; with a GPU zeros until the end"]


class TrueRing(TypedDict):
    """A ring as it was made."""

    x_mm: Annotated[float, "of the centre"]
    y_mm: Annotated[float, "of the centre"]
    radius_mm: Annotated[float, "of the circle"]
    time_ns: Annotated[float, "of its photons"]
    hits: Annotated[int, "photons that were detected"]


class FoundRing(TypedDict):
    """A ring that was found."""

    x_mm: Annotated[float, "of the centre"]
    y_mm: Annotated[float, "of the centre"]
    radius_mm: Annotated[float, "of the circle"]
    rms_mm: Annotated[float, "of the distances of its hits from the circle"]
    time_ns: Annotated[float, "mean time of its hits relative to the event; 0 from finders that do not look at time"]
    hits: Annotated[int, "of the ring"]


class EventHead(TypedDict):
    """When an event was, and what was found in it."""

    timestamp: Annotated[int, "of the event"]
    fine_time: Annotated[int, "of the event"]
    rings: Annotated[list[FoundRing], "that passed the cuts, the one with most hits first"]
    found: Annotated[bool, "whether the answer says that a ring was found"]
    electron: Annotated[bool, "whether it says that one is electron-like"]


class NativeSample(EventHead):
    """As the native engine gives it."""

    hits: NDArray[Any]


class EventSample(EventHead):
    """One of the first events."""

    hits: Annotated[list[int], "as they were received"]
    truth: NotRequired[
        Annotated[list[TrueRing] | None, "rings as they were made; null where they are not known; only in `nanet demo` and soaks"]
    ]


class TrueEvent(TypedDict):
    """An event as the emulator made it."""

    timestamp: Annotated[int, "of the event"]
    fine_time: Annotated[int, "of the event"]
    rings: Annotated[list[TrueRing], "those that have light"]


class Device(TypedDict):
    """A GPU."""

    index: Annotated[int, "its number"]
    name: Annotated[str, "its model"]


class ProcessorState(TypedDict):
    """What processed."""

    runtime: Annotated[str, "`cpu`, or how a GPU ran: `launch`, `graph`, `persistent`"]
    devices: Annotated[list[Device], "the GPUs; empty with `cpu`"]


class RingSpectra(TypedDict):
    """Histograms of the rings."""

    radius_mm: Annotated[list[int], "rings found, by radius, 400 bins of 1 mm; of a GPU's at the end of the run only"]
    multiplicity: Annotated[list[int], "events by number of mapped hits, 64 bins"]
    count: Annotated[list[int], "events by number of rings"]


class EngineResult(Base):
    """What `nanet run` writes."""

    config: Annotated[Config, "the configuration with every default filled in"]
    notes: Annotated[list[str], "what the machine could not give, a line each; what links noted while it ran comes last"]
    processor: Annotated[ProcessorState, "what processed"]
    faults: Annotated[list[str], "why GPUs were given up, a line each; empty when none was"]
    elapsed_s: Annotated[float, "length of the run"]
    core_wait_s: Annotated[
        float,
        "how long the engine's threads were ready to run while something else had their cores; what a hypervisor takes is not in it",
    ]
    counters: Annotated[
        Counts,
        "totals by name, such as `packets_accepted` (good packets) and `events_answered` (events for which a primitive was written);"
        " `docs/design/books.md` explains each",
    ]
    losses: Annotated[Counts, "what the engine knows to be lost, by name; empty when nothing was"]
    refusals: Annotated[Counts, "packets that came and were refused, by name"]
    balance: Annotated[
        BalanceSheet,
        "[balance sheet](#balance-sheet) of the engine's hops; `balance.unexplained_packets` is 0, or nanet has a bug",
    ]
    sources: Annotated[list[SourceState], "a source each"]
    links: Annotated[list[LinkState], "a link each"]
    rings: Annotated[RingSpectra, "histograms of the rings that were found"]
    channels: Annotated[Channels | None, "null where no rings are looked for"]
    latency_us: Annotated[Latency | None, "residence; null when nothing was answered"]
    latency_histogram: Annotated[str | None, "residence; null when nothing was answered"]
    event_samples: Annotated[list[EventSample], "the first events, with hits and ring"]
    verdict: Annotated[
        Verdict,
        "kept: nothing lost, p99.9 of the residence within `run.budget_us`, no GPU given up, nothing unexplained, not all that came refused",
    ]


class EngineEnd(EngineResult):
    """The result of an engine in a process of its own."""

    exit_code: Annotated[int, "of the process"]


# --- what the native engine says ---


class NativeSpectra(TypedDict):
    """Histograms as the native engine gives them."""

    radius_mm: NDArray[Any]
    multiplicity: NDArray[Any]
    count: NDArray[Any]


class EngineSnapshot(TypedDict):
    """What nanet._core.Engine.snapshot() returns."""

    elapsed_s: float
    core_wait_s: float
    counters: Counts
    sources: list[SourceState]
    links: list[LinkState]
    rings: NotRequired[NativeSpectra]
    channels: NotRequired[NativeChannels]
    latency_ns: NotRequired[NativeHistogram]


class SourceCounters(TypedDict):
    """A source as a scrape needs it; without a name: datagrams of any."""

    name: str
    counters: Counts


class LinkMetrics(LinkReading):
    """A link as a scrape needs it."""

    counters: Counts | None
    sources: list[SourceCounters]


class ResidenceCounts(TypedDict):
    """How many residence times are at most each bound."""

    counts: list[int]
    count: int
    sum_ns: float


class EngineMetrics(TypedDict):
    """What nanet._core.Engine.metrics() returns."""

    elapsed_s: float
    running: bool
    faults: list[str]
    links: list[LinkMetrics]
    channels: NotRequired[NativeChannels]
    counters: Counts
    latency_ns: ResidenceCounts
