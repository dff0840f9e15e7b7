# SPDX-License-Identifier: Apache-2.0
"""The verdict of a demo, what it says of the machine, and its exit code."""

from __future__ import annotations

from typing import Any

import pytest
from made_up import histogram_of, l0_part, whole_demo
from nanet.loop import demo, verdict
from nanet.loop import host as demo_host
from nanet.loop import l0 as demo_l0
from nanet.machine.facts import CorePlan
from nanet.result.histogram import Histogram
from tune_machine import made_up


def judged(result: dict[str, Any], median_us: float) -> dict[str, Any]:
    return result | {"verdict": verdict.verdict(result, histogram_of(median_us), 1000.0)}


def with_l0(result: dict[str, Any], **rich: int) -> dict[str, Any]:
    """A demo whose L0 trigger processor decided on all, but for `rich`: counters of the reference."""
    l0 = l0_part()
    for one in l0["inputs"]:
        one["counters"]["late"] = 0
    l0["inputs"][0]["counters"] |= {"primitives": result["answered"]} | rich
    l0["counters"]["decided"] = result["answered"] - sum(rich.values())
    return result | {"l0": l0}


def test_a_kept_promise(demo_result: dict[str, Any]) -> None:
    result = judged(demo_result, 21.0)
    assert (result["verdict"]["kept"], result["verdict"]["worked"], result["verdict"]["over_budget_cause"]) == (True, True, None)
    assert verdict.sentence(result).startswith("Promise kept: 10,000,000 events sent, all answered, 0 lost")
    assert [demo.exit_code(result, strict=strict) for strict in (False, True)] == [0, 0]


@pytest.mark.parametrize("waited_s", [0.0, 0.42])
def test_too_slow_by_itself(demo_result: dict[str, Any], waited_s: float) -> None:
    """Nearly all answers were late; the host had the core for a part of the run that explains one in ten."""
    demo_result["host"]["engine_core_wait_s"] = waited_s
    result = judged(demo_result, 5000.0)
    assert result["verdict"]["over_budget_cause"] == "engine"
    assert "the engine itself was too slow: half of the answers took more than" in verdict.sentence(result)
    assert "the engine is too slow" in verdict.headline(result)
    assert ("the host took little" in verdict.sentence(result)) == (waited_s > 0)


@pytest.mark.parametrize(
    ("host", "cause", "text"),
    [
        ({"engine_core_wait_s": 0.42}, "host", "something else had the engine's core for 420 ms of 10.0 s"),
        ({"emulator_stopped_s": 0.3, "longest_stop_us": 41e3}, "emulator", "stopped for 300 ms of 10.0 s, 41.0 ms at most"),
        ({"steal_s": 0.25}, "host", "the hypervisor took 250 ms of CPU time"),
    ],
)
def test_too_slow_because_of_the_host(demo_result: dict[str, Any], host: dict[str, float], cause: str, text: str) -> None:
    """One answer in fifty was late: a warning that names the cause, and an error only for who asks for it."""
    demo_result["host"] |= host
    latency = Histogram.from_values([20_000] * 98_000 + [5_000_000] * 2_000)
    result = demo_result | {"verdict": verdict.verdict(demo_result, latency, 1000.0)}
    assert (result["verdict"]["kept"], result["verdict"]["worked"], result["verdict"]["over_budget_cause"]) == (False, True, cause)
    assert verdict.sentence(result).startswith("Warning: the loop worked, but the budget was broken: p99.9 of the latency is")
    assert text in verdict.sentence(result)
    assert text in demo_host.host_line(result["host"])
    assert "the host" in verdict.headline(result)
    assert [demo.exit_code(result, strict=strict) for strict in (False, True)] == [0, 1]


def test_what_no_counter_accounts_for_breaks_it(demo_result: dict[str, Any]) -> None:
    hop = {"hop": "link", "unit": "packets", "in": 5, "out": 3, "named": {}, "unexplained": 2}
    engine = demo_result["engine"] | {"balance": {"hops": [hop], "unexplained_packets": 2}}
    result = judged(demo_result | {"engine": engine}, 20.0)
    assert not result["verdict"]["kept"]
    assert "no counter accounts for 2 packets at link" in verdict.sentence(result)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"lost": 16}, "lost 16 of 10,000,000 events"),
        ({"mistakes": {"wrong_answers": 1}}, "wrong answers: wrong_answers 1"),
        ({"sent": 0, "answered": 0}, "nothing was sent"),
        ({"engine": whole_demo()["engine"] | {"faults": ["the GPU was given up"]}}, "the GPU was given up"),
    ],
)
def test_what_always_is_an_error(demo_result: dict[str, Any], change: dict[str, Any], text: str) -> None:
    """Whatever the host did."""
    demo_result["host"]["engine_core_wait_s"] = 9.0
    result = judged(demo_result | change, 5000.0)
    assert (result["verdict"]["kept"], result["verdict"]["worked"]) == (False, False)
    assert text in verdict.sentence(result)
    assert verdict.sentence(result).startswith("Promise broken")
    assert demo.exit_code(result, strict=False) == 1


def test_all_were_decided_on(demo_result: dict[str, Any]) -> None:
    """Two in one cell of the alignment memory are one decision: said, and no failure."""
    result = judged(with_l0(demo_result, overwritten=31_000), 20.0)
    assert result["verdict"]["kept"]
    assert verdict.headline(result).startswith("Every event answered and decided on, 99.9")
    line = verdict.loop_line(result)
    assert "9,969,000 decided on (31,000 shared a cell of 25 ns with a later one), 50,000 triggers" in line


def test_a_demo_that_was_stopped_says_so(demo_result: dict[str, Any]) -> None:
    """Before anything was sent, or in the middle of it."""
    stopped = {**demo_result["emulator"], "stopped_early": True, "elapsed_s": 2.0}
    nothing = judged(demo_result | {"emulator": stopped, "sent": 0, "answered": 0}, 20.0)
    assert verdict.sentence(nothing) == "Promise broken: nothing was sent (a signal stopped it before)."
    assert demo._early_note(demo_result | {"emulator": stopped}) == (
        "stopped after 2.0 of 10 s (a signal arrived) only that much was checked"
    )
    assert demo._early_note(demo_result) is None


@pytest.mark.parametrize("name", ["late", "out_of_range"])
def test_a_processor_that_fell_behind_is_in_the_headline(demo_result: dict[str, Any], name: str) -> None:
    demo_result["host"]["engine_core_wait_s"] = 2.0
    result = judged(with_l0(demo_result, **{name: 6_600_000}), 20.0)
    assert demo.exit_code(result, strict=False) == 1
    assert verdict.headline(result) == "The promise was broken: 6,600,000 of 10,000,000 answers were not decided on"
    assert f"fell behind: 6,600,000 of 10,000,000 answers were not decided on: {name} 6,600,000" in verdict.sentence(result)
    assert "something else had the engine's core for 2,000 ms" in verdict.sentence(result)
    assert f"3,400,000 decided on, 6,600,000 not ({name} 6,600,000)" in verdict.loop_line(result)


def test_what_the_processor_never_got_is_named(demo_result: dict[str, Any]) -> None:
    result = with_l0(demo_result)
    result["l0"]["inputs"][0]["counters"]["primitives"] -= 500
    result["l0"]["counters"]["decided"] -= 520
    assert demo_l0.undecided(result["l0"], result["answered"]) == {"not_received": 500, "unexplained": 20}


def test_decisions_that_are_wrong_or_gone(demo_result: dict[str, Any]) -> None:
    result = with_l0(demo_result)
    result["l0"]["inputs"][3]["counters"]["late"] = 7
    result["l0"]["decisions"] |= {"physics": 49_990, "unknown": 3}
    text = verdict.sentence(judged(result, 20.0))
    assert "decided without primitives of other detectors that arrived late: MUV3 7" in text
    assert "10 of 50,000 triggers did not come back" in text
    assert "wrong decisions: unknown 3" in text


def test_the_line_of_tune_says_what_tune_does(tmp_path: Any) -> None:
    """The findings are those of `nanet tune`, not a second list."""
    system = made_up(tmp_path).system
    found = demo_host.to_mend(system)
    names = [knob["name"] for knob in found]
    assert names
    assert {knob["state"] for knob in found} <= {"change", "by hand"}
    line = demo_host.tune_line(found)
    assert line.startswith("tune: nanet tune")
    assert all(name in line for name in names)
    assert demo_host.tune_line([]) == "tune: nanet tune finds nothing to fix on this machine."


def test_steal_is_that_of_the_two_cores() -> None:
    stat = "cpu  1 0 1 1 0 0 0 900 0 0\ncpu0 1 0 1 1 0 0 0 100 0 0\ncpu1 1 0 1 1 0 0 0 50 0 0\ncpu2 1 0 1 1 0 0 0 750 0 0\nintr 5\n"
    assert demo_host.steal_s(CorePlan(0, 1, frozenset({2})), stat) == 1.5
    assert demo_host.steal_s(CorePlan(None, None, frozenset({0})), stat) == 9.0
    assert demo_host.steal_s(CorePlan(0, 1, frozenset()), "cpu0 1 2 3\n") == 0.0
