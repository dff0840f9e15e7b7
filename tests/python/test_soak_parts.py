# SPDX-License-Identifier: Apache-2.0
"""The soak's schedule of packet faults, its eyes on memory and stalls, its balance and its verdict, from made-up runs."""

from __future__ import annotations

import copy
import mmap
import os
from typing import Any

import made_up
import numpy as np
import pytest
from nanet.config import ConfigError, EngineConfig, Faults
from nanet.config.errors import validated
from nanet.result import books
from nanet.soak import course, soak, verdict
from nanet.soak.keys import PacketBalance, WithTable
from nanet.soak.lives import Life
from nanet.soak.watch import (
    SERIES,
    STALL_NS,
    Samples,
    Stalls,
    core_wait_ns,
    descriptor_count,
    flatness,
    overflow_stall_ns,
    receive_buffer_bytes,
    rss_bytes,
    steal_ns,
)

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "seconds"), [("4h", 14400), ("1h30m", 5400), ("10s", 10), ("600", 600), ("1.5m", 90), ("24h", 86400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert soak.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "4 hours", "-10s", "1s", "25h", "h", "10x"])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match=r"no soak of .* \(.*\) write it as 4h"):
        soak.parse_duration(text)


@pytest.mark.parametrize("duration_s", [5.0, 10.0, 600.0, 14400.0])
def test_every_fault_is_on_and_off_again(duration_s: float) -> None:
    schedule = course.Schedule(duration_s)
    times = np.linspace(0.0, duration_s, 20001)
    phases = [schedule.phase(float(time)) for time in times]
    assert set(phases) == {"off", "all", *verdict.FAULTS}
    assert {phase for phase, time in zip(phases, times, strict=True) if time < schedule.warm_up_s} == {"off"}
    assert schedule.phase(duration_s) == schedule.phase(duration_s - 0.4) == "off"  # the end markers come through
    assert schedule.phase_s <= course.PHASE_MAX_S
    shares = {phase: phases.count(phase) / len(phases) for phase in set(phases)}
    assert all(shares[fault] > 0.01 for fault in ("all", *verdict.FAULTS))


def test_faults_of_a_phase() -> None:
    assert course.faults_of("off") == Faults()
    only = course.faults_of("corrupt").model_dump()
    assert {name for name in verdict.FAULTS if only[name]} == {"corrupt"}
    every = course.faults_of("all").model_dump()
    assert {name for name in verdict.FAULTS if every[name]} == set(verdict.FAULTS)


def test_own_process_is_seen() -> None:
    own = os.getpid()
    before = descriptor_count(own)
    with open("/dev/null"):
        assert descriptor_count(own) == before + 1
    assert descriptor_count(own) == before
    resident = rss_bytes(own)
    with mmap.mmap(-1, 16 * MIB) as fresh:  # no memory that is there already and only free
        fresh.write(b"\1" * len(fresh))
        assert rss_bytes(own) - resident > 14 * MIB
    gone = 1 << 30  # no process
    assert (rss_bytes(gone), descriptor_count(gone), core_wait_ns(gone)) == (0, 0, 0)
    assert steal_ns([0]) >= 0


def filled(growth_per_s: float, duration_s: float = 1000.0, capacity: int = 200) -> Samples:
    samples = Samples(duration_s, capacity)
    for tenth in range(int(10 * duration_s)):
        time_s = tenth / 10
        samples.add(time_s, [int(100 * MIB + growth_per_s * time_s), 50 * MIB, 7, 9])
    return samples


def test_samples_are_thinned_and_bounded() -> None:
    samples = filled(0.0)
    assert 190 <= len(samples.times_s) <= 201
    steps = np.diff(samples.times_s)
    assert steps.min() >= 5.0 - 1e-9
    assert steps.max() < 5.2
    for more in range(100_000):
        samples.add(2000.0 + more, [0] * len(SERIES))
    assert len(samples.times_s) <= 400


def flat(values: Any, more_max: int = 4 * MIB, warm_up_s: float = 20.0) -> dict[str, Any]:
    values = np.asarray(values)
    return flatness(np.arange(len(values), dtype=float), values, warm_up_s, more_max)


def test_a_leak_is_no_flat_line() -> None:
    leak = filled(10_000.0)  # 10 kB/s over a quarter of an hour
    found = flatness(leak.times_s, leak.of("engine_rss_bytes"), 60.0, 4 * MIB)
    assert not found["flat"]
    assert found["growth"] == pytest.approx(10_000 * 0.75 * 940, rel=0.03)
    assert flatness(leak.times_s, leak.of("emulator_rss_bytes"), 60.0, 0)["growth"] == 0


def test_what_grows_while_it_warms_up_and_peaks_afterwards_are_no_leak() -> None:
    values = np.full(100, 100 * MIB)
    values[:20] = np.linspace(10 * MIB, 100 * MIB, 20)
    values[50] = values[99] = 900 * MIB
    assert flat(values)["flat"]
    assert flat(values)["peak"] == 900 * MIB
    assert not flat(values, warm_up_s=0.0)["flat"]
    falls = flat(np.linspace(100 * MIB, 50 * MIB, 100))
    assert falls["flat"]
    assert falls["growth"] < 0


def test_few_samples_are_not_flat() -> None:
    assert not flat(np.zeros(27), warm_up_s=20.0)["flat"]
    assert flat(np.zeros(28), warm_up_s=20.0)["flat"]


def test_one_descriptor_more_is_a_leak() -> None:
    values = np.full(100, 7)
    values[60:] = 8
    assert not flat(values, more_max=0)["flat"]


def stalls_after(looks: list[tuple[float, int, int]]) -> Stalls:
    stalls = Stalls()
    for now_s, stalled_ns, lost in looks:
        stalls.look(now_s, {"engine_core_wait": 5 * STALL_NS + stalled_ns, "steal": 0}, {"packets_lost_kernel": lost})
    return stalls


@pytest.mark.parametrize(
    ("looks", "in_stalls", "outside"),
    [
        ([(0, 0, 0), (1, 0, 0)], 0, 0),
        ([(0, 0, 0), (1, STALL_NS, 40)], 40, 0),
        ([(0, 0, 0), (1, STALL_NS, 0), (2, STALL_NS, 40)], 40, 0),  # the engine tells it a second later
        ([(0, 0, 0), (1, 0, 40)], 0, 40),
        ([(0, 0, 0), (1, STALL_NS - 1, 40)], 0, 40),  # too short
        ([(0, 0, 0), (1, STALL_NS, 0), *((t, STALL_NS, 0) for t in range(2, 9)), (9, STALL_NS, 40)], 0, 40),  # long ago
        ([(0, 0, 7), (1, STALL_NS, 17), (5, STALL_NS, 17), (9, STALL_NS, 30)], 10, 20),
        ([(0, 0, 10), (1, 0, 8), (2, 0, 11)], 0, 11),  # one that came after all, and another
    ],
)
def test_a_loss_is_the_machines_only_near_a_stall(looks: list[tuple[float, int, int]], in_stalls: int, outside: int) -> None:
    stalls = stalls_after(looks)
    assert stalls.in_stalls.get("packets_lost_kernel", 0) == in_stalls
    assert stalls.outside.get("packets_lost_kernel", 0) == outside


def test_stalls_before_the_run_do_not_count_and_the_end_belongs_to_the_last_look() -> None:
    stalls = stalls_after([(0, 0, 0), (1, 3 * STALL_NS, 0)])
    assert stalls.stalled_ns == {"engine_core_wait": 3 * STALL_NS, "steal": 0}
    stalls.end(1.5, {"packets_lost_kernel": 4})
    assert stalls.in_stalls == {"packets_lost_kernel": 4}
    stalls = stalls_after([(0, 0, 0), (1, 0, 0)])
    stalls.end(1.5, {"packets_lost_kernel": 4})
    assert stalls.outside == {"packets_lost_kernel": 4}


@pytest.mark.parametrize(
    ("buffer_bytes", "packets_per_s", "stall_ns"),
    [(2 << 26, 1e5, STALL_NS), (2 << 26, 1e6, STALL_NS), (2 * 212_992, 25e3, 3_698_000), (2 * 212_992, 1e6, 1_000_000)],
)
def test_the_smaller_the_buffer_the_shorter_the_stall(buffer_bytes: int, packets_per_s: float, stall_ns: int) -> None:
    assert overflow_stall_ns(buffer_bytes, packets_per_s) == pytest.approx(stall_ns, rel=1e-3)


def test_what_the_kernel_grants() -> None:
    assert receive_buffer_bytes(4096) == 8192
    assert 8192 < receive_buffer_bytes(1 << 30) <= 1 << 31


def made_up_run() -> tuple[dict[str, Any], dict[str, Any]]:
    """1000 packets of 16 events and six markers; four did not reach the socket, and eleven met a fault."""
    emulated = {"config": {"boards": 1}, "sent": 16000, "answered": 16000 - 16 * 11, "packets_sent": 1000, "markers_sent": 6}
    counters = dict.fromkeys(("events_unseen", "events_discarded", "events_unjudged", *books.PACKET_REFUSALS), 0) | {
        "packets_accepted": 989, "packets_clop_full": 0, "packets_marker": 6, "packets_duplicate": 2, "packets_late": 0, "packets_bad_length": 1,
        "packets_bad_format": 0, "packets_bad_checksum": 1, "packets_truncated": 0, "packets_unknown_source": 0, "packets_unknown_sender": 0,
        "packets_lost_kernel": 4, "packets_lost_network": 7, "events_lost": 16 * 11, "events_answered": 16000 - 16 * 11,
    }  # fmt: skip
    faults = {"passed": 991, "lost": 5, "duplicated": 2, "reordered": 1, "corrupted": 1, "truncated": 1, "delayed": 1, "held": 0}
    engine = {
        "counters": counters, "sources": [{"counters": counters}],
        "links": [
            {"name": "boards", "stats": {"rx_packets": 1002}, "faults": faults},
            {"name": "answers", "stats": {"rx_packets": 0}, "faults": None},
        ],
    }  # fmt: skip
    return emulated, engine


def of_one_life(emulated: dict[str, Any], engine: dict[str, Any]) -> tuple[dict[str, Any], list[Life]]:
    return emulated, [Life(engine["counters"], [], engine)]


def test_balanced_books_leave_nothing_over() -> None:
    packets = verdict.packet_balance(*of_one_life(*made_up_run()))
    assert packets["residues"] == {"sources": 0, "injector": 0, "link": 0}
    assert packets["lost_before_socket"] == 4
    assert packets["delivered"] == 1002 - 5 + 2


@pytest.mark.parametrize(
    ("place", "residue"),
    [
        (("counters", "packets_accepted"), "link"),
        (("counters", "packets_bad_checksum"), "link"),
        (("links", 0, "stats", "rx_packets"), "injector"),
        (("links", 0, "faults", "lost"), "injector"),
        (("links", 0, "faults", "held"), "link"),
        (("sources", 0, "counters", "packets_lost_network"), "sources"),
    ],
)
def test_a_packet_too_few_is_seen(place: tuple[Any, ...], residue: str) -> None:
    emulated, engine = made_up_run()
    engine["sources"] = [{"counters": dict(engine["counters"])}]
    here: Any = engine
    for part in place[:-1]:
        here = here[part]
    here[place[-1]] += 1
    assert verdict.packet_balance(*of_one_life(emulated, engine))["residues"][residue] != 0


def passed() -> dict[str, Any]:
    nothing = {"start": 100, "end": 100, "peak": 100, "growth": 0, "growth_max": 0, "flat": True}
    result: dict[str, Any] = made_up.filled(
        WithTable, sent=1000, losses={"answers_lost": 0, "events_lost": 5}, flat={name: dict(nothing) for name in SERIES},
        phases={"off": 2, "loss": 1, "corrupt": 1}, phases_counted={"loss": 1, "corrupt": 1}, engine_lives=1, host_share_max=0.2,
        recover_within_s=10.0, packets=made_up.filled(PacketBalance, injected={"lost": 3, "corrupted": 1, "delayed": 0}),
        stalls_s={"steal": 0.1}, elapsed_s=10.0,
    )  # fmt: skip
    return result


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("faults",), ["GPU made-up was given up"], "GPU made-up"),
        (("unexplained_events",), 3, "3 events are not in any counter"),
        (("unexplained_packets",), 1, "the books of packets do not balance"),
        (("lost_outside_stalls",), {"packets_lost_kernel": 2}, "although the machine did not stall: packets_lost_kernel 2"),
        (("losses", "answers_lost"), 16, "16 answers did not arrive"),
        (("mistakes", "duplicate_answers"), 1, "wrong answers: duplicate_answers 1"),
        (("mistakes", "wrong_answers"), 1, "wrong answers: wrong_answers 1"),
        (("flat", "engine_rss_bytes", "flat"), False, "rss_bytes of the engine grew"),
        (("flat", "emulator_descriptors", "growth"), None, ""),
        (("packets", "injected", "corrupted"), 0, "did nothing: corrupt"),
        (("sent",), 0, "nothing was sent"),
    ],
)
def test_verdict(place: tuple[str, ...], value: Any, reason: str) -> None:
    assert verdict.verdict_reasons(passed(), may_be_incomplete=False) == []
    result = copy.deepcopy(passed())
    here: Any = result
    for part in place[:-1]:
        here = here[part]
    here[place[-1]] = value
    if place[-1] == "growth":
        here["flat"], reason = False, "descriptors of the emulator: too few samples"
    (found,) = verdict.verdict_reasons(result, may_be_incomplete=False)
    assert reason in found


def test_what_is_explained_is_no_reason() -> None:
    result = passed()
    result["lost_in_stalls"] = {"packets_lost_kernel": 100, "answers_kernel_dropped": 1}
    result["losses"]["answers_lost"] = 16
    result["mistakes"]["wrong_answers"] = 3
    assert verdict.verdict_reasons(result, may_be_incomplete=True) == []


def test_memory_of_engines_that_came_and_went_is_not_judged_but_said() -> None:
    result = passed() | {"engine_lives": 3}
    assert verdict.lives_note(result) is None
    result["flat"]["engine_rss_bytes"] |= {"flat": False, "growth": None}
    assert verdict.verdict_reasons(result, may_be_incomplete=False) == []
    assert "not judged (none lived for long enough)" in str(verdict.lives_note(result))
    result["flat"]["emulator_rss_bytes"] |= {"flat": False, "growth": None}
    assert len(verdict.verdict_reasons(result, may_be_incomplete=False)) == 1


def test_memory_is_judged_in_the_longest_life() -> None:
    samples = Samples(1000.0, 200)
    for second in range(1000):
        engine = (50 + (second if second > 400 else 0)) * MIB  # grows in the second life
        samples.add(float(second), [engine, 100 * MIB, 7, 9])
    first = soak._flat(samples, (0.0, 390.0), 60.0, 4 * MIB)
    assert all(one["flat"] for one in first.values())
    assert not soak._flat(samples, (400.0, 1000.0), 60.0, 4 * MIB)["engine_rss_bytes"]["flat"]


def test_a_busy_machine_is_said() -> None:
    result = passed()
    assert verdict.stall_note(result) is None
    result["stalls_s"]["engine_core_wait"] = 4.0
    assert str(verdict.stall_note(result)).startswith("something else had the cores for 4.0 of 10.0 s (")


@pytest.mark.parametrize(
    ("stalled_s", "reasons", "outcome"),
    [(0.0, [], "passed"), (1.9, [], "passed"), (2.1, [], "inconclusive"), (8.3, [], "inconclusive"), (8.3, ["it leaks"], "failed")],
)
def test_a_machine_that_stalls_shows_nothing(stalled_s: float, reasons: list[str], outcome: str) -> None:
    result = passed()
    result["stalls_s"]["emulator_stalls"] = stalled_s
    assert verdict.outcome_of(result, reasons) == outcome
    said = verdict.verdict_text(result | {"verdict": {"outcome": outcome, "reasons": reasons}})
    assert said.startswith(f"Soak {outcome}")
    assert (f"stalled for {stalled_s / 10:.0%} of the time" in said) == (outcome == "inconclusive")


def test_an_empty_run_is_not_divided_by() -> None:
    assert verdict.stalled_share({"elapsed_s": 0.0, "stalls_s": {"steal": 0.0}}) == 0.0


PLAIN: dict[str, Any] = {
    "version": 1, "memory_regions": [{"name": "m"}], "answers": {"endpoint": "udp://127.0.0.1:6300"},
    "links": [{"name": "in", "endpoint": "udp://0.0.0.0:6200", "memory_region": "m", "sources": [{"name": "a", "source_sub_id": 5}]}],
    "processor": {"finder": {"name": "almagest"}, "cuts": {"min_hits": 5}},
}  # fmt: skip


def test_boards_for_a_configuration() -> None:
    boards = soak.boards_for(validated(EngineConfig, PLAIN), None)
    assert (boards.boards, boards.first_sub_id, boards.destinations) == (1, 5, ("udp://127.0.0.1:6200",))
    assert (boards.answers, boards.finder.name, boards.cuts.min_hits) == ("udp://127.0.0.1:6300", "almagest", 5)


@pytest.mark.parametrize(
    "changes",
    [
        {"answers": None},
        {
            "links": [PLAIN["links"][0] | {"sources": [{"name": "a"}, {"name": "b", "source_sub_id": 7}]}],
            "processor": {"merge": {}},
        },
        {"links": [PLAIN["links"][0] | {"sources": [], "protocol": "raw"}], "processor": {"kind": "count"}, "answers": None},
    ],
)
def test_configurations_that_no_boards_fit(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"no soak of this configuration \(.*\) "):
        soak.boards_for(validated(EngineConfig, PLAIN | changes), None)


def test_each_link_gets_an_injector_that_does_nothing() -> None:
    engine, emulator = soak.configs(soak.SoakOptions(10.0), soak.plan_cores())
    assert [link.faults for link in engine.links] == [course.faults_of("off")]
    assert (engine.run.duration_s, emulator.duration_s) == (None, 10.0)


def test_a_soak_that_was_stopped_says_how_far_it_got() -> None:
    result = {
        "stopped_early": True,
        "elapsed_s": 105.0,
        "duration_s": 600.0,
        "phases": {"off": 3, "loss": 1},
        "machine_faults_missed": ["kill"],
    }
    note = verdict.early_note(result)
    assert note is not None
    assert (
        "stopped after 105 of 600 s (a signal arrived, and duplicate, reorder, corrupt, truncate, delay, kill never came)" in note
    )
    assert verdict.early_note(result | {"stopped_early": False}) is None
