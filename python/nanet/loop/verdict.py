# SPDX-License-Identifier: Apache-2.0
"""The verdict on a loop: did it work (nothing lost, wrong or undecided), was the budget kept, and if not, who is to blame."""

from __future__ import annotations

from nanet.loop import host as hosts
from nanet.loop import l0 as triggers
from nanet.loop.keys import Cause, DemoResult, Host, LoopParts, LoopResult, LoopVerdict
from nanet.result import books, hops
from nanet.result.histogram import LOWEST_NS, Histogram


def verdict(result: LoopParts, latency: Histogram, budget_us: float) -> LoopVerdict:
    """The promise of a trigger: every event answered once and rightly, and decided on, p99.9 within the budget.

    `worked` does not ask for the budget, `kept` does.
    """
    failures = _failures(result)
    over_budget = int(latency.counts[budget_us * 1e3 < LOWEST_NS].sum())
    p99_9_us = latency.percentile(99.9) / 1e3
    cause: Cause | None = None
    text = None
    if p99_9_us > budget_us:
        cause, why = _cause(result["host"], over_budget / latency.count, latency)
        text = f"p99.9 of the latency is {p99_9_us:,.0f} us, over the budget of {budget_us:,.0f} us ({why})"
    return {
        "kept": not failures and text is None,
        "worked": not failures,
        "budget_us": budget_us,
        "reasons": failures + ([text] if text else []),
        "events_over_budget": over_budget,
        "over_budget_cause": cause,
    }


def _failures(result: LoopParts) -> list[str]:
    failures = list(result["engine"]["faults"])
    if result["lost"] or any(result["losses"].values()):
        failures.append(f"lost {result['lost']:,} of {result['sent']:,} events: {books.lost_text(result['losses'])}")
    if unexplained := hops.unexplained_text(result["engine"]["balance"]):
        failures.append(f"no counter accounts for {unexplained}")
    wrong = {name: count for name, count in result["mistakes"].items() if count}
    if wrong:
        failures.append(f"wrong answers: {books.lost_text(wrong)}")
    if result["sent"] == 0:
        stopped = result["emulator"]["stopped_early"]
        failures.append("nothing was sent" + (" (a signal stopped it before)" if stopped else ""))
    if l0 := result["l0"]:
        failures += triggers.failures(l0, result["answered"], hosts.what_it_took(result["host"]))
    return failures


def _cause(host: Host, late_share: float, latency: Histogram) -> tuple[Cause, str]:
    """Who broke the budget, and in words. What the host took must be enough for it, else it is the engine's own doing."""
    if hosts.explains(host, late_share):
        cause: Cause = "host" if host["engine_core_wait_s"] + host["steal_s"] >= host["emulator_stopped_s"] else "emulator"
        return cause, hosts.what_it_took(host)
    taken = hosts.what_it_took(host)
    text = f"the engine itself was too slow: half of the answers took more than {latency.percentile(50) / 1e3:,.0f} us"
    return "engine", text + (f", and the host took little: {taken}" if taken else "")


def sentence(result: DemoResult) -> str:
    """The verdict as one sentence."""
    judged, latency = result["verdict"], result["latency_us"] or {}
    if not judged["worked"]:
        return "Promise broken: " + "; ".join(judged["reasons"]) + "."
    if not judged["kept"]:
        return "Warning: the loop worked, but the budget was broken: " + "; ".join(judged["reasons"]) + "."
    text = (
        f"Promise kept: {result['sent']:,} events sent, all answered, 0 lost; p99.9 {latency['p99_9']:,.1f} us"
        f" of {judged['budget_us']:,.0f} us"
    )
    if judged["events_over_budget"]:
        stall = result["host"]["longest_stop_us"]
        text += f"; {judged['events_over_budget']:,} events took longer, at most {latency['max']:,.0f} us"
        text += f" (the emulator's own thread was stopped for up to {stall:,.0f} us)" if stall > 200 else ""
    else:
        text += f", slowest {latency['max']:,.1f} us"
    return text + "."


def headline(result: LoopResult) -> str:
    """The verdict as a heading. A stage that fell behind is named."""
    judged, l0 = result["verdict"], result["l0"]
    if not judged["worked"]:
        undecided = triggers.undecided(l0, result["answered"]) if l0 else {}
        if sum(undecided.values()):
            return f"The promise was broken: {sum(undecided.values()):,} of {result['answered']:,} answers were not decided on"
        return "The promise was broken"
    done = "Every event answered and decided on" if l0 else "Every event answered"
    if judged["kept"]:
        return f"{done}, 99.9\u2009% within {(result['latency_us'] or {})['p99_9']:,.0f}\u00a0\u00b5s"
    blamed = {"host": "the host took the engine\u2019s core", "emulator": "the host stopped the emulator"}
    return f"{done}, but late: {blamed.get(judged['over_budget_cause'] or '', 'the engine is too slow')}"


def loop_line(result: LoopResult) -> str:
    """What the loop did, as one line."""
    wrong = sum(result["mistakes"].values())
    text = (
        f"loop: {result['sent']:,} events sent, {result['answered']:,} answered, {result['lost']:,} lost, {wrong:,} wrong answers"
    )
    if l0 := result["l0"]:
        text += "; " + triggers.decided_text(l0, result["answered"])
    return text + "."


def lines(result: DemoResult) -> list[str]:
    """What the loop did, what the host did, what `nanet tune` would fix: one line each."""
    return [loop_line(result), hosts.host_line(result["host"]), hosts.tune_line(result["tune"])]
