# SPDX-License-Identifier: Apache-2.0
"""Critical rate: the highest event rate at which nothing is lost, by binary search with repeats.

A rate passes when every repeat answers every event rightly and the sender kept the rate. A run in which the sender did not keep
it, or in which something else had the engine's core for so long that the socket's buffer had to overflow, says nothing
about the engine: it is done again, a bounded number of times. Where the sender never keeps the rate, the figure is the sender's limit and is
called so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from nanet.bench.keys import Failure, Found, RateResult, Repeat, Step
from nanet.loop.keys import Run, run_of
from nanet.loop.run import Loop, loop_configs, run_loop
from nanet.machine.facts import CorePlan, plan_cores
from nanet.result import books, files
from nanet.result.histogram import Histogram

KEPT_SHARE = 0.99
LATE_US = 20_000.0
CORE_TAKEN_S = 0.02  # what the default socket buffer holds at 30 Mevent/s
LOWEST = 1e4  # events/s; an engine that loses some of these has no rate worth a search
DOWN = 10.0  # from a rate that fails to the next lower one, while none has passed
AGAIN_MAX = 4  # runs of one rate that are done again
POOL_EVENTS = 16_384  # packets of about a second-level cache, so that the sender is not the limit


@dataclass(frozen=True)
class RateSearch:
    """How to search."""

    loop: Loop = field(default_factory=Loop)
    first: float = 1e6  # events/s; where this one fails, the search goes down from it
    highest: float = 40e6
    steps: int = 8  # rates that are tried from a rate without loss on
    repeats: int = 3
    repeat_s: float = 2.0
    lowest: float = LOWEST


Trial = Callable[[float], Run]


def run(search: RateSearch, say: Callable[[str], None]) -> RateResult:
    """The result as `nanet bench rate --json` writes it."""
    cores = plan_cores()
    loop = search.loop
    found = find(search, lambda rate: _one_run(rate, search, cores), say)
    return {
        **files.base("bench rate"),
        **found,
        "boards": loop.boards,
        "sample": loop.sample,
        "finder": loop.finder,
        "runtime": loop.runtime,
        "layout": loop.layout,
        "burst_packets": loop.burst_packets,
        "events_per_packet": loop.events_per_packet,
        "topology": loop.topology,
        "budget_us": loop.budget_us,
        "repeats": search.repeats,
        "repeat_s": search.repeat_s,
        "notes": [cores.note] if cores.note else [],
    }  # fmt: skip


def find(search: RateSearch, trial: Trial, say: Callable[[str], None]) -> Found:
    """The critical rate, what limits it, and every step of the search."""
    steps: list[Step] = []

    def passes(rate: float) -> bool:
        step = try_rate(rate, search, trial, say)
        steps.append(step)
        return bool(step["passed"])

    critical = bisect(search, passes)
    steps.sort(key=lambda step: float(step["rate_events_per_s"]))
    above = [step for step in steps if step["rate_events_per_s"] > critical]
    judged = above if critical else above[:1]  # without a critical rate the lowest one says most
    limited = any(step["failure"] in ("sender", "machine") for step in judged)
    return {
        "critical_rate_events_per_s": critical,
        "limited_by": "sender" if limited else ("search range" if critical >= search.highest else "engine"),
        "steps": steps,
    }


def verdict_text(result: Found) -> str:
    """What the search found, as a sentence."""
    critical = float(result["critical_rate_events_per_s"])
    if critical:
        return f"critical rate {critical / 1e6:.2f} Mevent/s, limited by the {result['limited_by']}"
    lowest = result["steps"][0]
    return (
        f"no critical rate (every rate failed, down to {lowest['rate_events_per_s'] / 1e6:g} Mevent/s because of the {lowest['failure']}) "
        "see nanet doctor, or search lower with --lowest"
    )


def bisect(search: RateSearch, passes: Callable[[float], bool]) -> float:
    """Highest passing rate; 0 when even the lowest fails.

    Where the first rate fails, goes down until one passes; then halves the logarithm of the range, `steps` rates in all from the one that passes on.
    """
    low, high = search.first, search.highest
    while not passes(low):
        if low <= search.lowest:
            return 0.0
        low, high = max(search.lowest, _round_rate(low / DOWN)), low
    if high == search.highest and passes(high):
        return high
    for _ in range(max(0, search.steps - 2)):
        middle = _round_rate(math.sqrt(low * high))
        if not low < middle < high:
            break
        if passes(middle):
            low = middle
        else:
            high = middle
    return low


def try_rate(rate: float, search: RateSearch, trial: Trial, say: Callable[[str], None]) -> Step:
    """One step: up to `repeats` runs at a rate, ended by the first that fails."""
    repeats: list[Repeat] = []
    failure = None
    merged = Histogram()
    good = again = 0
    while good < search.repeats:
        result = trial(rate)
        failure = failure_of(result, rate)
        repeats.append(_short(result, failure))
        merged += Histogram.decode(result["emulator"]["latency_histogram"], result["emulator"]["latency_us"])
        if failure is None:
            good += 1
        elif failure == "engine" or again == AGAIN_MAX:
            break
        else:
            again += 1
    last = repeats[-1]
    say(
        f"{rate / 1e6:8.3f} Mevent/s  "
        + ("no loss" if not failure else f"fails ({failure}): lost {books.lost_text(last['losses'])}")
        + (f"  p50 {merged.percentile(50) / 1e3:.1f}  p99.9 {merged.percentile(99.9) / 1e3:.1f} us" if merged.count else "")
    )
    return {
        "rate_events_per_s": rate,
        "passed": failure is None,
        "failure": failure,
        "done_again": again,
        "latency_us": merged.summary_us() if merged.count else None,
        "repeats": repeats,
    }


def failure_of(result: Run, rate: float) -> Failure | None:
    """None, or who failed: `engine` (loss or wrong answers), `sender` (it did not keep the rate), `machine` (it took the core away)."""
    if result["lost"] and not any(result["mistakes"].values()) and result["engine"]["core_wait_s"] > core_taken_s(result, rate):
        return "machine"
    if result["lost"] or any(result["losses"].values()) or any(result["mistakes"].values()):
        return "engine"
    lateness = result["emulator"]["send_lateness_us"]
    config = result["emulator"]["config"]
    wanted = rate * config["duration_s"]
    scatter = 4.0 * math.sqrt(wanted)  # arrivals are Poisson, and a short run sees only a part of the pool
    if result["sent"] < KEPT_SHARE * wanted - scatter or (lateness and lateness["p99"] > LATE_US):
        return "sender"
    return None


def core_taken_s(result: Run, rate: float) -> float:
    """How long the engine may be without its core before packets must be lost: as long as its link can hold what comes."""
    link = result["engine"]["config"]["links"][0]
    if not link.get("xdp"):
        return CORE_TAKEN_S
    emulator = result["emulator"]["config"]
    packets_per_s = rate / emulator["events_per_packet"] * emulator["boards"]
    half = 1 if result["engine"]["config"]["answers"] is None else 2  # of the frames is for sending
    return min(CORE_TAKEN_S, float(link["xdp"]["frame_count"] / half / packets_per_s))


def csv_rows(result: RateResult) -> list[tuple[str, str, float, str]]:
    """Rows for the CSV."""
    case = f"{result['boards']}board-{result['layout']}-burst{result['burst_packets']}-{result['topology']}"
    if (result["sample"], result["finder"]) != ("single", "math"):
        case += f"-{result['sample']}-{result['finder']}"
    if result["runtime"] != "cpu":
        case += f"-{result['runtime']}"
    rows = [(case, "critical_rate", float(result["critical_rate_events_per_s"]), "events/s")]
    for step in result["steps"]:
        at = f"{case}@{step['rate_events_per_s']:.0f}"
        rows.append((at, "passed", float(step["passed"]), "bool"))
        for name in ("p50", "p99", "p99_9", "max"):
            if step["latency_us"]:
                rows.append((at, f"latency_{name}", float(step["latency_us"][name]), "us"))
    return rows


def _one_run(rate: float, search: RateSearch, cores: CorePlan) -> Run:
    return run_of(run_loop(*loop_configs(loop_at(rate, search), cores), cores))


def loop_at(rate: float, search: RateSearch) -> Loop:
    """The loop of one run of the search."""
    return replace(search.loop, rate_events_per_s=rate, duration_s=search.repeat_s, pool_events=POOL_EVENTS)


def _short(result: Run, failure: Failure | None) -> Repeat:
    short: Repeat = {
        "sent": result["sent"],
        "answered": result["answered"],
        "lost": result["lost"],
        "losses": result["losses"],
        "latency_us": result["latency_us"],
        "mistakes": result["mistakes"],
        "failure": failure,
        "packets": {k: v for k, v in result["engine"]["counters"].items() if k.startswith("packets_") and v},
        "send_lateness_us": result["emulator"]["send_lateness_us"],
        "stalls": result["emulator"]["stalls"],
    }
    if balance := result["balance"]:
        short["balance"] = balance
    return short


def _round_rate(rate: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(rate)) - 2)
    return round(rate / unit) * unit
