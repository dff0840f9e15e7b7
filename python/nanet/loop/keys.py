# SPDX-License-Identifier: Apache-2.0
"""The keys of a loop's result: what `nanet demo` writes, and what benchmarks and soaks make theirs of."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from nanet.result import books
from nanet.result.keys.base import ELSEWHERE, Base, Config, Counts, Latency, Names
from nanet.result.keys.emulator import Decisions, DetectorCounts, EmulatorRun, Mistakes
from nanet.result.keys.engine import EngineEnd
from nanet.result.keys.hops import BalanceSheet
from nanet.result.keys.l0tp import InputResult, MaskResult, NodeCounters
from nanet.tune.keys import KnobKeys

Cause = Literal["host", "emulator", "engine"]
"""Who broke a budget."""


class Host(TypedDict):
    """What the host did during a run."""

    elapsed_s: Annotated[float, "how long was sent"]
    engine_elapsed_s: Annotated[float, "how long the engine ran"]
    engine_core_wait_s: Annotated[float, "for how long of that something else had the engine's core"]
    l0tp_core_wait_s: Annotated[float | None, "the same of the L0 trigger processor; null with `--no-l0`"]
    emulator_stopped_s: Annotated[float, "for how long the emulator's own thread was stopped while it sent"]
    longest_stop_us: Annotated[float, "the longest of these stops"]
    steal_s: Annotated[float, "CPU time of the two cores that the hypervisor gave to others"]


class L0Part(TypedDict):
    """The L0 trigger processor's own part, and what the emulator saw of it."""

    config: Annotated[Config, "its configuration"]
    elapsed_s: Annotated[float, "how long it ran"]
    core_wait_s: Annotated[float, "for how long of that something else had its core"]
    counters: Annotated[NodeCounters, ELSEWHERE, "as in `nanet l0tp`"]
    inputs: Annotated[list[InputResult], ELSEWHERE, "of each detector, as in `nanet l0tp`"]
    masks: Annotated[list[MaskResult], ELSEWHERE, "of each mask, as in `nanet l0tp`"]
    triggers_sent: Annotated[int, "of all kinds"]
    decision_packets: Annotated[int, "that they were sent in"]
    link: Annotated[Counts, "packets, bytes, system calls, kernel drops"]
    latency_us: Annotated[Latency | None, "from the arrival of the RICH's primitive to its trigger given to the kernel"]
    latency_histogram: Annotated[str | None, "of `latency_us`"]
    detectors: Annotated[list[DetectorCounts] | None, ELSEWHERE, "the other detectors, as in `nanet emulate tel62`"]
    decisions: Annotated[Decisions | None, ELSEWHERE, "what the emulator received of it, as in `nanet emulate tel62`"]
    event_to_decision_us: Annotated[Latency | None, "from the event's last packet to its trigger received, in the emulator"]
    event_to_decision_histogram: Annotated[str | None, "of `event_to_decision_us`"]


Losses = Annotated[Counts, Names(books.EVENT_LOSSES)]
"""Events without an answer, by reason."""


class LoopVerdict(TypedDict):
    """Whether the loop worked, and kept its budget."""

    kept: Annotated[bool, "nothing lost, no wrong answer, all decided on, p99.9 within the budget"]
    worked: Annotated[bool, "the same without the budget: what the exit code is made of, unless `--strict`"]
    budget_us: Annotated[float, "what p99.9 was compared with"]
    reasons: Annotated[list[str], "why it was not kept, a text each"]
    events_over_budget: Annotated[int, "events that took longer than the budget"]
    over_budget_cause: Annotated[
        Cause | None,
        "null, or who broke the budget: `host` (the engine's core was taken), `emulator` (its own thread was stopped), `engine` (it was"
        " too slow itself)",
    ]


class Run(TypedDict):
    """One run of boards against an engine. Of a link alone what is lost are packets, and nothing is answered."""

    sent: Annotated[int, "events sent"]
    answered: Annotated[int | None, "events whose answer came back"]
    lost: Annotated[int, "`sent` - `answered`"]
    losses: Annotated[Counts, "what was lost, by reason"]
    latency_us: Annotated[Latency | None, "last packet to answer"]
    mistakes: Annotated[Counts, "answers that are wrong, by name"]
    emulator: Annotated[
        EmulatorRun, ELSEWHERE, "the whole result of the boards, see `nanet emulate tel62`, which alone has a `verdict`"
    ]
    engine: Annotated[EngineEnd, ELSEWHERE, "the whole result of the engine, see `nanet run`, and the `exit_code` of its process"]
    balance: Annotated[BalanceSheet | None, "of a run over a cable of its own"]


def run_of(result: LoopResult) -> Run:
    """What benchmarks keep of the loop's result."""
    return {
        "sent": result["sent"],
        "answered": result["answered"],
        "lost": result["lost"],
        "losses": result["losses"],
        "latency_us": result["latency_us"],
        "mistakes": result["mistakes"],
        "emulator": result["emulator"],
        "engine": result["engine"],
        "balance": None,
    }


class LoopParts(Base):
    """The keys of a run of the whole loop, which a verdict is made of."""

    sent: Annotated[int, "events sent"]
    answered: Annotated[int, "events whose answer came back"]
    lost: Annotated[int, "`sent` - `answered`"]
    losses: Annotated[
        Losses,
        "events by reason; their sum is `lost`. With one board `events_unseen` is 0, with several `events_lost` and `events_bad_body` are;"
        " anything but 0 in `unexplained` is a bug of nanet",
    ]
    loss_meanings: Annotated[dict[str, str], "what each of these names means, in words"]
    latency_us: Annotated[Latency | None, "last packet to answer; null without an answer"]
    mistakes: Annotated[Mistakes, "answers that are wrong"]
    emulator: Annotated[
        EmulatorRun, ELSEWHERE, "the whole result of the boards, see `nanet emulate tel62`, which alone has a `verdict`"
    ]
    engine: Annotated[EngineEnd, ELSEWHERE, "the whole result of the engine, see `nanet run`, and the `exit_code` of its process"]
    l0: Annotated[
        L0Part | None,
        "the L0 trigger processor, as in `nanet l0tp`, and what the emulator saw of it; null with `--no-l0`",
    ]
    host: Annotated[Host, "what the host did meanwhile"]


class LoopResult(LoopParts):
    """The keys of a run of the whole loop."""

    verdict: Annotated[LoopVerdict, "whether it worked, and kept its budget"]


class DemoResult(LoopResult):
    """What `nanet demo` writes."""

    notes: Annotated[list[str], "what the machine could not give, a line each"]
    tune: Annotated[list[KnobKeys], ELSEWHERE, "what `nanet tune` would fix, as its `knobs`, without those that are `ok`"]
