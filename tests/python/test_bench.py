# SPDX-License-Identifier: Apache-2.0
"""The benchmarks' logic: search, verdicts, sockperf's output, CSV."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import filled
from nanet.bench import latency, rate, sockperf
from nanet.loop import run as loop_run
from nanet.loop.keys import Run
from nanet.loop.run import Loop, loop_configs
from nanet.machine.facts import CorePlan
from nanet.result import files
from nanet.result.keys.emulator import EmulatorRun
from nanet.result.keys.engine import EngineEnd
from nanet.run import emulate
from nanet.soak import soak

RTT = """\x1b[2;35m====> avg-rtt=8.561 (std-dev=2709.019)\x1b[0m
sockperf: # dropped messages = 3; # duplicated messages = 0; # out-of-order messages = 0
sockperf: Summary: Round trip is 8.561 usec
sockperf: \x1b[2;35mTotal 1496 observations\x1b[0m; each percentile contains 14.96 observations
sockperf: ---> <MAX> observation = 36076.086
sockperf: ---> percentile 99.990 = 36076.086
sockperf: ---> percentile 99.900 =   28.681
sockperf: ---> percentile 99.000 =   19.991
sockperf: ---> percentile 50.000 =    8.232
sockperf: ---> <MIN> observation =    7.741
"""


@given(st.floats(5e3, 1e8), st.integers(3, 14))
def test_search_brackets_the_true_rate(true_rate: float, steps: int) -> None:
    tried: list[float] = []

    def passes(at: float) -> bool:
        tried.append(at)
        return at <= true_rate

    search = rate.RateSearch(first=1e6, highest=40e6, steps=steps)
    found = rate.bisect(search, passes)
    assert len(tried) <= steps + (0 if true_rate >= 1e6 else 1 if true_rate >= 1e5 else 2)
    if true_rate < rate.LOWEST:
        assert (found, tried) == (0.0, [1e6, 1e5, 1e4])
    elif true_rate >= 40e6:
        assert found == 40e6
    else:
        assert found <= true_rate
        assert found in tried
        failing = [at for at in tried if at > true_rate]
        assert min(failing) / found <= 40 ** (1 / 2 ** (steps - 2)) * 1.02


def a_run(**changes: Any) -> dict[str, Any]:
    emulator = filled(EmulatorRun, config={"duration_s": 2.0}, send_lateness_us={"p99": 5.0})
    run: dict[str, Any] = filled(Run, sent=2_000_000, answered=2_000_000, emulator=emulator, engine=an_engine(0.0))
    return run | changes


def an_engine(core_wait_s: float) -> Any:
    config = {"links": [{"xdp": None}]}
    return filled(EngineEnd, config=config, counters={"packets_accepted": 1}, core_wait_s=core_wait_s)


def test_who_failed() -> None:
    assert rate.failure_of(a_run(), 1e6) is None
    assert rate.failure_of(a_run(lost=1), 1e6) == "engine"
    assert rate.failure_of(a_run(losses={"unexplained": -1}), 1e6) == "engine"
    assert rate.failure_of(a_run(mistakes={"wrong_answers": 1}), 1e6) == "engine"
    assert rate.failure_of(a_run(lost=1, engine=an_engine(0.1)), 1e6) == "machine"
    assert rate.failure_of(a_run(lost=1, engine=an_engine(0.001)), 1e6) == "engine"
    assert rate.failure_of(a_run(lost=1, engine=an_engine(0.1), mistakes={"wrong_answers": 1}), 1e6) == "engine"
    assert rate.failure_of(a_run(sent=1_900_000), 1e6) == "sender"


def test_a_link_with_less_room_may_be_without_its_core_for_less_time() -> None:
    """8192 frames are 8.2 ms of 1 M packets/s, where a socket has room for 20 ms."""
    run = a_run()
    run["emulator"]["config"] |= {"events_per_packet": 16, "boards": 1}
    run["engine"]["config"] = {"links": [{"xdp": {"frame_count": 16384}}], "answers": {}}
    assert rate.core_taken_s(run, 16e6) == pytest.approx(0.008192)
    assert rate.core_taken_s(run, 1e6) == rate.CORE_TAKEN_S
    run["engine"]["config"]["answers"] = None
    assert rate.core_taken_s(run, 16e6) == pytest.approx(0.016384)
    run["engine"]["config"]["links"] = [{"xdp": None}]
    assert rate.core_taken_s(run, 16e6) == rate.CORE_TAKEN_S


def test_the_short_search_goes_down_until_nothing_is_lost() -> None:
    """A machine that stands 300,000 events/s, of which the search used to say 0.00."""
    search = rate.RateSearch(steps=4, repeats=1, repeat_s=2.0)
    said: list[str] = []
    found = rate.find(search, lambda at: a_run(sent=2 * int(at), lost=int(at > 3e5)), said.append)
    assert 1e5 <= found["critical_rate_events_per_s"] <= 3e5
    assert found["limited_by"] == "engine"
    assert rate.verdict_text(found).startswith("critical rate 0.")
    assert [step["rate_events_per_s"] for step in found["steps"]] == sorted(step["rate_events_per_s"] for step in found["steps"])


@pytest.mark.parametrize(
    ("made_up", "who"),
    [
        (lambda at: a_run(lost=1), "engine"),
        (lambda at: a_run(sent=0), "sender"),
        (lambda at: a_run(lost=1) if at == rate.LOWEST else a_run(sent=0), "engine"),
    ],
)
def test_no_rate_at_all_is_said_in_words(made_up: Any, who: str) -> None:
    found = rate.find(rate.RateSearch(steps=4, repeats=1), made_up, lambda _: None)
    assert (found["critical_rate_events_per_s"], found["limited_by"]) == (0.0, who)
    assert rate.verdict_text(found) == (
        f"no critical rate (every rate failed, down to 0.01 Mevent/s because of the {who}) see nanet doctor, or search lower with --lowest"
    )
    assert "0.00" not in rate.verdict_text(found)


def test_the_lowest_rate_is_kept_to() -> None:
    tried: list[float] = []
    assert rate.bisect(rate.RateSearch(first=4e6, lowest=1.5e6), lambda at: bool(tried.append(at))) == 0.0
    assert tried == [4e6, 1.5e6]


def test_a_step_ends_with_the_first_failure() -> None:
    runs = iter([a_run(), a_run(lost=2, losses={"events_lost": 2})])
    said: list[str] = []
    step = rate.try_rate(1e6, rate.RateSearch(repeats=5), lambda _: next(runs), said.append)
    assert (step["passed"], step["failure"], len(step["repeats"])) == (False, "engine", 2)
    assert "events_lost 2" in said[0]


def test_what_says_nothing_of_the_engine_is_done_again() -> None:
    runs = iter([a_run(), a_run(sent=1_000_000), a_run(), a_run(sent=1_000_000), a_run()])
    step = rate.try_rate(1e6, rate.RateSearch(repeats=3), lambda _: next(runs), lambda _: None)
    assert (step["passed"], step["failure"], step["done_again"], len(step["repeats"])) == (True, None, 2, 5)
    step = rate.try_rate(1e6, rate.RateSearch(repeats=3), lambda _: a_run(sent=1_000_000), lambda _: None)
    assert (step["passed"], step["failure"], len(step["repeats"])) == (False, "sender", rate.AGAIN_MAX + 1)


class MadeUpEngine:
    """An engine process that answered all."""

    def __init__(self, demo: dict[str, Any]) -> None:
        self._demo = demo

    def __call__(self, *_: object) -> MadeUpEngine:
        return self

    def __enter__(self) -> MadeUpEngine:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def reading(self) -> None:
        pass

    def stop(self) -> Any:
        return self._demo["engine"]


def search_of_a_soak() -> float:
    cores = CorePlan(None, None, frozenset({0}))
    return soak.critical_rate(*loop_configs(Loop(), cores), cores, lambda _: None)


@pytest.mark.parametrize(
    "measure",
    [
        lambda: rate.run(rate.RateSearch(steps=3, repeats=1), lambda _: None),
        lambda: latency.run(latency.LatencyBench(repeats=1), lambda _: None),
        search_of_a_soak,
    ],
    ids=["rate", "latency", "soak"],
)
def test_a_signal_ends_the_whole_measurement(measure: Any, demo_result: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that a signal cut short is no measurement, and the command does not go on to the next one."""
    runs: list[object] = []

    def cut(*_: object, **__: object) -> dict[str, Any]:
        runs.append(None)
        return {**demo_result["emulator"], "stopped_early": True}

    monkeypatch.setattr(emulate, "run", cut)
    monkeypatch.setattr(loop_run, "EngineProcess", MadeUpEngine(demo_result))
    monkeypatch.setattr(sockperf, "ping_pong", lambda *_, **__: sockperf.parse(RTT))
    with pytest.raises(KeyboardInterrupt):
        measure()
    assert len(runs) == 1


def test_sockperf_round_trips() -> None:
    found = sockperf.parse(RTT)
    assert found.latency_us == {"max": 36076.086, "p99_99": 36076.086, "p99_9": 28.681, "p99": 19.991, "p50": 8.232, "min": 7.741}
    assert (found.count, found.dropped) == (1496, 3)


def test_sockperf_halves_are_doubled() -> None:
    half = RTT.replace("avg-rtt", "avg-latency").replace("Round trip is", "Latency is")
    assert sockperf.parse(half).latency_us["p50"] == pytest.approx(16.464)


def test_sockperf_that_failed() -> None:
    with pytest.raises(sockperf.SockperfError, match="no percentiles"):
        sockperf.parse("sockperf: ERROR: bind failed")


def test_medians() -> None:
    def a_round(p50: float, sock: float) -> dict[str, Any]:
        ours = dict.fromkeys(latency.NAMES, p50)
        return {
            "latency_us": ours, "latency_clean_us": ours, "one_in_flight_us": ours,
            "sockperf_us": dict.fromkeys(latency.NAMES, sock), "lost": 0,
            "stalls": {"longest_us": p50},
        }  # fmt: skip

    found = latency.summary([a_round(10, 8), a_round(11, 8), a_round(100, 8)])
    assert found["p50_above_sockperf_us"] == 3
    assert found["p99_9_ratio_to_sockperf"] == 1.375
    assert (found["max_us"], found["latency_us"]["p50"], found["longest_stall_us"]) == (100, 11, 100)


def test_csv_has_one_head(tmp_path: Path) -> None:
    path = tmp_path / "figures.csv"
    files.append_csv(path, "rate", [("one", "critical_rate", 2e7, "events/s")])
    files.append_csv(path, "rings", [("20hits", "math_rate", 4e7, "events/s"), ("20hits", "bias", 0.01, "mm")])
    rows = list(csv.DictReader(path.open()))
    assert tuple(rows[0]) == files.CSV_COLUMNS
    assert [row["bench"] for row in rows] == ["rate", "rings", "rings"]
    assert float(rows[0]["value"]) == 2e7
