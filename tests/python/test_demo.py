# SPDX-License-Identifier: Apache-2.0
"""The verdict of a demo and what it says of the machine."""

from __future__ import annotations

from typing import Any

from made_up import histogram_of
from nanet import demo


def judged(result: dict[str, Any], median_us: float) -> dict[str, Any]:
    return result | {"verdict": demo.verdict(result, histogram_of(median_us), 1000.0)}


def test_a_kept_promise(demo_result: dict[str, Any]) -> None:
    result = judged(demo_result, 21.0)
    assert result["verdict"]["kept"]
    assert demo.sentence(result).startswith("Promise kept: 10,000,000 events sent, all answered, 0 lost")


def test_too_slow_by_itself(demo_result: dict[str, Any]) -> None:
    demo_result["engine"]["core_wait_s"] = 0.0
    text = demo.sentence(judged(demo_result, 5000.0))
    assert text.startswith("Promise broken: p99.9 of the latency is")
    assert "core" not in text


def test_too_slow_because_the_core_was_taken(demo_result: dict[str, Any]) -> None:
    demo_result["engine"]["core_wait_s"] = 0.42
    assert "something else had the engine's core for 420 ms" in demo.sentence(judged(demo_result, 5000.0))


def test_what_no_counter_accounts_for_breaks_it(demo_result: dict[str, Any]) -> None:
    hop = {"hop": "link", "unit": "packets", "in": 5, "out": 3, "named": {}, "unexplained": 2}
    engine = demo_result["engine"] | {"balance": {"hops": [hop], "unexplained_packets": 2}}
    result = judged(demo_result | {"engine": engine}, 20.0)
    assert not result["verdict"]["kept"]
    assert "no counter accounts for 2 packets at link" in demo.sentence(result)
