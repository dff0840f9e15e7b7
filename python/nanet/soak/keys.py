# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet soak` writes."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from nanet.result.keys.base import ELSEWHERE, Base, Config, Counts, Latency
from nanet.result.keys.emulator import Mistakes

Outcome = Literal["passed", "failed", "inconclusive"]


class Settings(Base):
    """What the options gave."""

    duration_s: Annotated[float, "how long it was to last"]
    rate_events_per_s: Annotated[float, "mean rate"]
    critical_rate_events_per_s: Annotated[float | None, "as measured before, null with `--rate`"]
    boards: Annotated[int, "1 or 4"]
    warm_up_s: Annotated[float, "the part at the start whose memory is not judged"]
    phase_s: Annotated[float, "how long faults of one kind are on, or off"]
    seed: Annotated[int, "of the order, moments and lengths of the faults"]
    fault_every_s: Annotated[float, "length of a period"]
    recover_within_s: Annotated[float, "how soon after a fault the rate must be reached again"]
    host_share_max: Annotated[float, "the share of the time taken by the machine above which the soak is inconclusive"]
    over: Annotated[str, "`loopback`, or `veth pair` where an interface goes down"]


class Period(TypedDict):
    """The books of a period."""

    period: Annotated[int, "its number; the last row is the end of the run"]
    losses: Annotated[Counts, "events by reason"]
    lost_with_the_engine_max: Annotated[int, "the bound of `losses.lost_with_the_engine`"]
    unexplained: Annotated[int, "events that no counter accounts for"]


class MachineFault(TypedDict):
    """One fault of the machine."""

    fault: Annotated[str, "its kind"]
    at_s: Annotated[float, "since the start"]
    lasted_s: Annotated[float | None, "null if it did not end"]
    recover_s: Annotated[float | None, "until the rate was reached again; null if it was not, in its period"]
    losses: Annotated[Counts, "events lost in its period, by name"]
    unexplained: Annotated[int | None, "events of its period that no counter accounts for; null if its books were never read"]
    late: Annotated[bool, "the rate was not reached again in time"]
    problems: Annotated[list[str], "what went wrong, a line each"]
    survived: Annotated[bool, "no problem, and not late"]


class TableRow(TypedDict):
    """A kind of fault."""

    fault: Annotated[str, "a kind of fault: `packets`, `stop`, `kill`, `link`, `disk`, `clock`, `memory`, `slow`, `gpu`"]
    times: Annotated[int, "how often it was made"]
    survived: Annotated[int, "how often the books balanced and the rate was reached again in time"]
    losses: Annotated[Counts, "events lost in its periods, by name"]
    recover_longest_s: Annotated[float | None, "the longest time to recover, null if one did not recover in its period"]
    not_run: Annotated[str | None, "why it was not made, else null"]


class Residues(TypedDict):
    """What the books of packets do not explain; 0 when all is told."""

    sources: Annotated[int, "what the boards sent, less what the sources' books say of it"]
    injector: Annotated[int, "what the sockets gave, less what the injector had"]
    link: Annotated[int, "what the injector delivered, less where it ended"]


class PacketBalance(TypedDict):
    """Packets from hop to hop."""

    sent: Annotated[int, "packets of events that the boards sent"]
    markers_sent: Annotated[int, "markers of start and end"]
    lost_before_socket: Annotated[int, "of both, those that the engine's sockets did not give"]
    at_socket: Annotated[int, "packets that they gave"]
    injected: Annotated[Counts, "what the fault injector did, by name; `passed` are those that it left alone"]
    delivered: Annotated[int, "what came out of it"]
    accepted: Annotated[int, "good ones"]
    clop_full: Annotated[int, "dropped because no buffer was free"]
    refused: Annotated[Counts, "by name"]
    lost_by_sequence: Annotated[int, "missing by sequence number"]
    residues: Annotated[Residues, "what is not explained"]


class Flatness(TypedDict):
    """Whether a series stayed where it was. All but the last two are null where there are too few samples."""

    start: Annotated[int | None, "median of the first quarter after the warm-up"]
    end: Annotated[int | None, "median of the last quarter"]
    peak: Annotated[int | None, "the highest"]
    growth: Annotated[int | None, "`end` - `start`"]
    growth_max: Annotated[int, "how much is allowed"]
    flat: Annotated[bool, "it grew by no more"]


class Flat(TypedDict):
    """Memory and descriptors of both processes."""

    engine_rss_bytes: Annotated[Flatness, "memory of the engine, in the longest of its lives"]
    emulator_rss_bytes: Annotated[Flatness, ELSEWHERE, "the same of the boards' process"]
    engine_descriptors: Annotated[Flatness, ELSEWHERE, "the same of open file descriptors"]
    emulator_descriptors: Annotated[Flatness, ELSEWHERE, "the same of the boards' process"]


class SampleSeries(TypedDict):
    """What was seen of both processes."""

    time_s: Annotated[list[float], "when the samples were taken; next to it the four series"]
    engine_rss_bytes: Annotated[list[int], "resident memory"]
    emulator_rss_bytes: Annotated[list[int], "the same of the boards' process"]
    engine_descriptors: Annotated[list[int], "open file descriptors"]
    emulator_descriptors: Annotated[list[int], "the same of the boards' process"]


class BothConfigs(TypedDict):
    """Both configurations."""

    engine: Annotated[Config, "the whole configuration"]
    emulator: Annotated[Config, "of the boards"]


class Seen(Settings):
    """What was seen, before it is judged."""

    elapsed_s: Annotated[float, "how long it lasted"]
    stopped_early: Annotated[bool, "a signal ended it"]
    sent: Annotated[int, "events"]
    answered: Annotated[int, "events whose answer came back"]
    losses: Annotated[
        Counts,
        "events by reason, as in `nanet demo`; `lost_with_the_engine`: in no counter, because there was no engine, or it was killed;"
        " `answers_stale`: answers that came when the boards had forgotten the event",
    ]
    unexplained_events: Annotated[int, "events that no counter accounts for"]
    lost_with_the_engine_max: Annotated[int, "the sum of the bounds"]
    periods: Annotated[list[Period], "the books, period by period"]
    packets: Annotated[PacketBalance, "packets from hop to hop"]
    unexplained_packets: Annotated[int, "the sum of `packets.residues`, without signs"]
    lost_in_stalls: Annotated[Counts, "packets lost within 3 s of a stall of the machine, by counter"]
    lost_in_faults: Annotated[Counts, "packets lost while a fault of the machine lasted and until 3 s after the recovery"]
    lost_outside_stalls: Annotated[Counts, "the others; anything here is a loss of nanet's own"]
    stall_enough_s: Annotated[float, "how long a stall must be to explain an overflow at this rate"]
    stalls_s: Annotated[
        dict[str, float],
        "by what: `engine_core_wait`: how long the engine's threads were ready to run while something else had their cores; `steal`: what a"
        " hypervisor took from the engine's core; `emulator_stalls`: stalls of the boards' thread",
    ]
    mistakes: Annotated[Mistakes, ELSEWHERE, "wrong answers, as in `nanet emulate tel62`"]
    phases: Annotated[Counts, "how often a phase of the fault injector began, by name, such as `off`"]
    phases_counted: Annotated[Counts, "phases in engines that said at their end what the fault injector did"]
    machine_faults: Annotated[list[MachineFault], "each fault"]
    machine_faults_missed: Annotated[list[str], "kinds that were planned and never came"]
    engine_lives: Annotated[int, "processes that were the engine, one after another"]
    judged_life_s: Annotated[list[float], "from when to when the longest of them ran: there memory and descriptors are judged"]
    flat: Annotated[Flat, "whether memory and descriptors stayed where they were"]
    samples: Annotated[SampleSeries, "what was seen of both processes"]
    latency_us: Annotated[Latency | None, "from an event's last packet to its answer, faults and all"]
    latency_clean_us: Annotated[Latency | None, "without what overlaps a stall of the boards' thread"]
    residence_us: Annotated[Latency | None, "in the engine; null if the last one did not end in order"]
    faults: Annotated[list[str], "why GPUs were given up"]
    config: Annotated[BothConfigs, "both configurations"]


class WithTable(Seen):
    """With a row for each kind of fault."""

    table: Annotated[list[TableRow], "a kind of fault each"]


class SoakVerdict(TypedDict):
    """What it came to."""

    kept: Annotated[bool, "true: passed"]
    outcome: Annotated[
        Outcome,
        "`passed`: nothing unexplained, nothing lost outside stalls, no wrong answer, memory and descriptors flat, every fault survived;"
        " `failed`; `inconclusive`: the books balance, but the machine stalled for more than `host_share_max` of the time",
    ]
    reasons: Annotated[list[str], "why it was not passed, a sentence each"]


class Judged(WithTable):
    """With the verdict."""

    verdict: Annotated[SoakVerdict, "what it came to"]


class SoakResult(Judged):
    """What `nanet soak` writes."""

    notes: Annotated[list[str], "what the machine could not give, a line each"]
