# SPDX-License-Identifier: Apache-2.0
"""Faults of the machine in a soak: the plan, the books of made-up periods, the table, the verdict, and what is kept of an engine that died."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import made_up
import make_json_page
import pytest
from nanet.config import ConfigError
from nanet.run.process import EngineProcess, Reading
from nanet.soak import books, soak, verdict
from nanet.soak import plan as soak_plan
from nanet.soak.books import WITH_ENGINE, Fault, Look, Rate
from nanet.soak.course import CYCLE, Schedule, phase_of
from nanet.soak.faults import FaultMaker, whole_packets
from nanet.soak.keys import Flat, Flatness, WithTable
from nanet.soak.lives import HELD_PACKETS, Life, Lives
from nanet.soak.watch import Stalls, queued_bytes

ALL = tuple(soak_plan.KINDS)


def plan(
    kinds: Sequence[str] = ALL, missing: Mapping[str, str] | None = None, duration_s: float = 1200.0, seed: int = 1
) -> soak_plan.Plan:
    return soak_plan.make(kinds, missing or {}, duration_s, 60.0, 10.0, seed)


def test_a_plan_comes_from_its_seed() -> None:
    assert plan(seed=7) == plan(seed=7)
    assert plan(seed=7).planned != plan(seed=8).planned


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_comes_once_a_round_and_leaves_time_to_recover(seed: int) -> None:
    made = plan(seed=seed)
    assert len(made.planned) == 19
    for first in (0, len(ALL)):
        assert {one.kind for one in made.planned[first : first + len(ALL)]} == set(ALL)
    for number, one in enumerate(made.planned):
        assert one.period == number == made.period(one.start_s) == made.period(one.start_s + one.length_s)
        assert not made.in_pause(one.start_s)
        left_s = number * 60.0 + made.spill_s - one.start_s - one.length_s
        assert left_s > (0.4 if one.kind != "packets" else 0.05) * made.spill_s
    assert made.in_pause(59.0)
    assert made.in_pause(60.0) is made.in_pause(50.0) is False


def test_what_cannot_be_had_or_has_no_time_is_said() -> None:
    made = plan(missing={"gpu": "no GPU", "link": "not root"})
    assert made.not_run == {"gpu": "no GPU", "link": "not root"}
    assert {one.kind for one in made.planned} == set(ALL) - {"gpu", "link"}
    short = plan(("packets", "stop", "kill", "slow"), duration_s=150.0)
    assert [one.kind for one in short.planned] != []
    assert short.not_run == {"kill": "no time: 2 of 4 faults fit", "slow": "no time: 2 of 4 faults fit"}


@pytest.mark.parametrize("duration_s", [10.0, 75.0])
def test_faults_of_packets_alone_need_no_pauses(duration_s: float) -> None:
    made = soak_plan.make(ALL, {"gpu": "no GPU"}, duration_s, 60.0, 0.8, 1)
    assert made.planned == ()
    assert made.always
    assert made.spill_s == 0.0
    assert set(made.not_run) == set(ALL) - {"packets"}
    schedule = Schedule(duration_s)
    assert {phase_of(made, schedule, duration_s * n / 1000) for n in range(1000)} == set(CYCLE)


def test_faults_of_packets_have_periods_of_their_own() -> None:
    made, schedule = plan(), Schedule(1200.0)
    of_packets = {one.period for one in made.planned if one.kind == "packets"}
    seen: dict[int, set[str]] = {}
    for tenth in range(12000):
        seen.setdefault(made.period(tenth / 10), set()).add(phase_of(made, schedule, tenth / 10))
    assert all(phases == (set(CYCLE) if period in of_packets else {"off"}) for period, phases in seen.items())
    none = plan(())
    assert (none.planned, none.always) == ((), False)
    assert phase_of(none, schedule, 600.0) == "off"


def test_names_of_faults() -> None:
    assert soak_plan.chosen("all") == ALL
    assert soak_plan.chosen("none") == ()
    assert soak_plan.chosen(" slow, stop") == ("stop", "slow")
    for wrong in ("", "stop,al", "all,stop"):
        with pytest.raises(ConfigError, match=r"there is no fault '.*' \(there are packets, stop, .*\) name some of those"):
            soak_plan.chosen(wrong)
    with pytest.raises(ConfigError, match=r"no fault every 5 s \(.*\) use 8s or more"):
        soak_plan.make(ALL, {}, 100.0, 5.0, 8.0, 1)
    for text in ("0s", "x", "25h"):
        with pytest.raises(ConfigError, match=r"no time '.*' \(.*\) write it as"):
            soak.parse_time(text)


def test_without_root_a_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = soak_plan.missing_here(with_config=False, records=False)
    assert found["link"] == found["clock"] == "not root"
    found = soak_plan.missing_here(with_config=True, records=True)
    assert "configuration" in found["link"]
    assert "configuration" in found["disk"]
    monkeypatch.setattr(soak_plan.shutil, "which", lambda _: None)
    assert "program unshare of util-linux is missing" in soak_plan.missing_here(with_config=False, records=False)["clock"]


def look(period: int, sent: int, answered: int, gap: int = 0, **counters: int) -> Look:
    return Look(period, sent, answered, {"events_answered": answered} | counters, gap)


def test_each_period_has_its_own_books() -> None:
    looks = [look(0, 1000, 1000), look(1, 2000, 1900, events_lost=100), look(2, 3000, 2890, events_lost=100, events_answered=2900)]
    rows = books.periods(looks, merged=False)
    assert [row["unexplained"] for row in rows] == [0, 0, 0]
    assert rows[1]["losses"]["events_lost"] == 100
    assert rows[2]["losses"]["events_lost"] == 0
    assert rows[2]["losses"]["answers_lost"] == 10


def test_a_hole_is_in_the_period_that_made_it() -> None:
    rows = books.periods([look(0, 1000, 1000), look(1, 2000, 1993), look(2, 3000, 2993)], merged=False)
    assert [row["unexplained"] for row in rows] == [0, 7, 0]


def test_what_the_next_period_names_is_no_hole() -> None:
    """The last packets of a period were dropped: their sequence numbers are missed when the next ones come."""
    rows = books.periods([look(0, 1000, 984), look(1, 2000, 1984, events_lost=16)], merged=False)
    assert [row["unexplained"] for row in rows] == [0, 0]


def test_an_event_that_is_counted_twice_is_a_hole_too() -> None:
    rows = books.periods([look(0, 1000, 1000), look(1, 2000, 2000, events_lost=5)], merged=False)
    assert sum(abs(row["unexplained"]) for row in rows) == 5


@pytest.mark.parametrize(("lost", "with_engine", "unexplained"), [(300, 300, 0), (400, 400, 0), (450, 400, 50)])
def test_what_is_lost_with_the_engine_has_a_bound(lost: int, with_engine: int, unexplained: int) -> None:
    looks = [look(0, 1000, 1000), look(1, 2000, 2000 - lost, gap=400), look(2, 3000, 3000 - lost, gap=400)]
    row = books.periods(looks, merged=False)[1]
    assert (row["losses"][WITH_ENGINE], row["unexplained"], row[f"{WITH_ENGINE}_max"]) == (with_engine, unexplained, 400)


def test_the_bound_of_one_period_does_not_hide_the_hole_of_another() -> None:
    looks = [look(0, 1000, 1000), look(1, 2000, 1900, gap=400), look(2, 3000, 2800, gap=400)]
    assert [row["unexplained"] for row in books.periods(looks, merged=False)] == [0, 0, 100]


def fault(kind: str = "stop", period: int = 0, recover_s: float | None = 1.0, **more: Any) -> Fault:
    return Fault(kind, period, 60.0 * period + 10, 60.0 * period + 12, recover_s, **more)


def rows_of(*unexplained: int, losses: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
    return [{"period": n, "losses": dict(losses or {}), "unexplained": hole} for n, hole in enumerate(unexplained)]


def test_survived_means_books_and_rate() -> None:
    faults = [
        fault(),
        fault(period=1),
        fault(period=2, recover_s=11.0),
        fault(period=3, recover_s=None),
        fault(period=4, problems=["x"]),
    ]
    found = books.judged(faults, rows_of(0, 7, 0, 0, 0), 10.0)
    assert [one["survived"] for one in found] == [True, False, False, False, False]
    assert [one["late"] for one in found] == [False, False, True, True, False]
    assert found[1]["problems"] == ["7 events are not in any counter"]
    assert books.judged([fault(period=9)], rows_of(0), 10.0)[0]["problems"] == ["its books were never read"]


def test_periods_that_were_read_together_lose_once() -> None:
    rows = [{"period": 1, "losses": {"events_lost": 5}, "unexplained": 0}]
    found = books.judged([fault(period=0), fault("kill", period=1)], rows, 10.0)
    assert [one["losses"] for one in found] == [{"events_lost": 5}, {}]


def test_table() -> None:
    faults = [fault(), fault(period=1, recover_s=2.5), fault("kill", period=2, recover_s=None)]
    rows = books.table_rows(
        books.judged(faults, rows_of(0, 3, 0, losses={"events_lost": 4, "answers_lost": 0}), 10.0),
        {"gpu": "no GPU", "stop": "never"},
    )
    assert [(row["fault"], row["times"], row["survived"], row["recover_longest_s"]) for row in rows] == [
        ("stop", 2, 1, 2.5), ("kill", 1, 0, None), ("gpu", 0, 0, None),
    ]  # fmt: skip
    assert rows[0]["losses"] == {"events_lost": 8}
    assert books.row_text(rows[0]).split() == ["stop", "2", "1", "2.5", "s", "events_lost", "8"]
    assert books.row_text(rows[2]) == "gpu       not run (no GPU)"


def test_faults_of_packets_that_come_all_the_time_have_a_row() -> None:
    result: dict[str, Any] = {
        "phases": {"off": 3, "loss": 2, "all": 1}, "unexplained_events": 0, "unexplained_packets": 0, "losses": {"events_lost": 9, "unexplained": 0},
    }  # fmt: skip
    row = verdict.packets_row(result)
    assert (row["times"], row["survived"], row["losses"]) == (3, 3, {"events_lost": 9})
    assert verdict.packets_row(result | {"unexplained_packets": 1})["survived"] == 0


def outcome(faults: Sequence[Fault], holes: Sequence[int], stolen_s: float = 0.0, share_max: float = 0.2) -> tuple[str, list[str]]:
    """Of a made-up soak of 100 s that is flawless otherwise."""
    rows = rows_of(*holes)
    flat = made_up.filled(Flatness, flat=True, growth=0)
    result: dict[str, Any] = made_up.filled(
        WithTable, unexplained_events=sum(map(abs, holes)), sent=1000, losses={"answers_lost": 0}, stalls_s={"steal": stolen_s},
        flat={key.name: flat for key in make_json_page.keys_of(Flat)}, elapsed_s=100.0, host_share_max=share_max,
        recover_within_s=10.0, machine_faults=books.judged(faults, rows, 10.0),
    )  # fmt: skip
    result["table"] = books.table_rows(result["machine_faults"], {"gpu": "no GPU"})
    reasons, late = verdict.verdict_reasons(result, may_be_incomplete=False), verdict.late_reasons(result)
    judged = verdict.outcome_of(result, reasons, late)
    said = verdict.verdict_text(result | {"verdict": {"outcome": judged, "reasons": reasons + late}})
    assert said.startswith(f"Soak {judged}")
    return judged, [said, *reasons, *late]


def test_all_survived_is_passed_and_says_what_was_not_run() -> None:
    judged, said = outcome([fault(), fault("kill", 1)], [0, 0])
    assert judged == "passed"
    assert said == ["Soak passed: stop, kill survived; not run: gpu."]


@pytest.mark.parametrize(("stale", "reasons"), [(30, []), (31, ["wrong answers: stale_answers 1"])])
def test_answers_that_a_fault_made_old_are_its_loss_and_no_mistake(stale: int, reasons: list[str]) -> None:
    looks = [look(0, 1000, 1000), Look(1, 2000, 1950, {"events_answered": 2000}, 0, 30)]
    rows = books.periods(looks, merged=False)
    assert (rows[1]["losses"]["answers_stale"], rows[1]["losses"]["answers_lost"], rows[1]["unexplained"]) == (30, 20, 0)
    result = {"machine_faults": books.judged([fault(period=1)], rows, 10.0), "mistakes": {"stale_answers": stale}}
    found = verdict._mistakes(result)
    assert [f"wrong answers: {name} {count}" for name, count in found.items() if count] == reasons


@pytest.mark.parametrize("stolen_s", [0.0, 90.0])
def test_a_hole_in_the_books_is_failed_however_busy_the_machine(stolen_s: float) -> None:
    judged, said = outcome([fault(), fault("kill", 1)], [0, 5], stolen_s)
    assert judged == "failed"
    assert "kill at 70 s: 5 events are not in any counter" in said


def test_a_late_recovery_is_failed_on_a_quiet_machine_and_inconclusive_on_a_stolen_one() -> None:
    late = [fault(), fault("kill", 1, recover_s=12.0), fault("link", 2, recover_s=None)]
    judged, said = outcome(late, [0, 0, 0])
    assert judged == "failed"
    assert "kill at 70 s: the rate was reached again after 12.0 s, not within 10 s" in said
    assert "link at 130 s: the rate was not reached again, not within 10 s" in said
    assert outcome(late, [0, 0, 0], stolen_s=21.0)[0] == "inconclusive"
    assert outcome([fault()], [0], stolen_s=21.0)[0] == "inconclusive"
    assert outcome([fault()], [0], stolen_s=21.0, share_max=0.5)[0] == "passed"


def test_exit_codes_differ_from_that_of_wrong_usage() -> None:
    assert verdict.EXIT_CODES == {"passed": 0, "failed": 1, "inconclusive": 3}


def test_the_rate_is_reached_when_answers_keep_step() -> None:
    rate = Rate()
    sent = answered = 0
    seen = []
    for tick in range(40):
        sent += 1000
        answered += 0 if tick < 10 else 2000 if tick < 20 else 1000  # stands still, works off its backlog, keeps step
        seen.append(rate.look(tick / 10, sent, answered))
    assert True not in seen[:20]
    assert all(seen[24:])
    assert not Rate().look(0.0, 10, 10)
    silent = Rate()
    assert not any(silent.look(tick / 10, 100, 100) for tick in range(10))


def test_a_loss_in_a_fault_is_the_faults() -> None:
    stalls = Stalls()
    stalls.look(0.0, {"steal": 0}, {"packets_lost_kernel": 0})
    stalls.look(1.0, {"steal": 0}, {"packets_lost_kernel": 9}, in_fault=True)
    stalls.look(2.0, {"steal": 0}, {"packets_lost_kernel": 10})
    assert (stalls.in_faults, stalls.outside) == ({"packets_lost_kernel": 9}, {"packets_lost_kernel": 1})


class MadeUpEngine:
    """An engine process whose readings the test writes."""

    def __init__(self) -> None:
        self.now = Reading(0, {}, ())
        self.pid, self.ended = 1 << 30, False

    def __enter__(self) -> MadeUpEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True

    def tell(self, accepted: int, **more: int) -> None:
        self.now = Reading(self.now.number + 1, {"packets_accepted": accepted} | more, ())

    def reading(self) -> Reading:
        assert not self.ended
        return self.now

    def counters(self) -> dict[str, int]:
        return dict(self.reading().counters)

    def kill(self) -> None:
        """Its reading stays."""

    def stop(self) -> dict[str, Any]:
        return {"counters": {}, "sources": [], "links": [], "faults": []}


@pytest.fixture
def lives() -> Iterator[tuple[Lives, list[MadeUpEngine]]]:
    made: list[MadeUpEngine] = []

    def start(prefix: Sequence[str], record: str | None) -> EngineProcess:
        made.append(MadeUpEngine())
        return cast(EngineProcess, made[-1])

    affinity = os.sched_getaffinity(0)
    yield Lives(start), made
    os.sched_setaffinity(0, affinity)


def test_a_killed_engine_leaves_what_it_said_last_and_a_bound(lives: tuple[Lives, list[MadeUpEngine]]) -> None:
    engine, made = lives
    engine.look(900)
    made[0].tell(1000, packets_lost_network=3)
    engine.look(1100)  # the reading is newer than the look at 900
    engine.kill(1500)
    assert engine.counters() == {"packets_accepted": 1000, "packets_lost_network": 3}
    assert engine.look(2000) == (1, -1)
    engine.begin(2100)
    engine.look(2500)
    assert engine.gap_packets == 0  # the new one has seen nothing yet
    made[1].tell(400)
    engine.look(3000)
    assert engine.gap_packets == 3000 - 400 - 900 + HELD_PACKETS
    assert engine.counters() == {"packets_accepted": 1400, "packets_lost_network": 3}
    assert [life.result for life in engine.ended] == [None]


def test_an_engine_that_stopped_in_order_misses_only_what_comes_between(lives: tuple[Lives, list[MadeUpEngine]]) -> None:
    engine, made = lives
    made[0].tell(1000)
    engine.look(1000)
    engine.stop(1000)
    engine.begin(1200)
    made[1].tell(300)
    engine.look(1500)
    assert engine.gap_packets == 200
    engine.kill(1600)  # its only reading was seen at 1500; the last look before was at 1200
    engine.settle_gap(2000)
    assert engine.gap_packets == 200 + (2000 - 1200)


def test_packets_of_several_lives_balance_within_the_bound() -> None:
    killed = Life(
        {"packets_accepted": 500, "packets_lost_network": 20},
        [{"hop": "link", "in": 500, "out": 500, "named": {}, "unexplained": 0}],
        None,
    )
    emulated = {"config": {"boards": 1}, "packets_sent": 1000, "markers_sent": 6}
    last = Life({"packets_accepted": 400}, [{"hop": "link", "in": 400, "out": 400, "named": {}, "unexplained": 0}], None)
    for gap, residue in ((80, 0), (79, 1), (0, 80)):
        packets = verdict.packet_balance(emulated, [killed, last], gap)
        assert packets["residues"] == {"sources": residue, "injector": 0, "link": 0}
    assert packets["at_socket"] == 900
    more = verdict.packet_balance(emulated | {"packets_sent": 900}, [killed, last], 80)
    assert more["residues"]["sources"] == 20  # more was counted than sent


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.01)"])
    yield process
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for_state(pid: int, letter: str) -> None:
    deadline = time.monotonic() + 20
    while state_of(pid) not in letter:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_nothing_stays_stopped_or_limited(sleeper: subprocess.Popen[bytes]) -> None:
    def limit() -> str:
        return next(
            line for line in Path(f"/proc/{sleeper.pid}/limits").read_text().splitlines() if line.startswith("Max address space")
        )

    before = limit()
    with FaultMaker(cast(Lives, SimpleNamespace(process=sleeper)), None, 1, lambda: 0) as maker:
        maker.begin("stop")
        wait_for_state(sleeper.pid, "T")
        maker.end("stop")
        wait_for_state(sleeper.pid, "SR")
        maker.begin("slow")
        wait_for_state(sleeper.pid, "T")
        wait_for_state(sleeper.pid, "SR")
        maker.begin("memory")
        assert limit() != before
        maker.begin("stop")
    wait_for_state(sleeper.pid, "SR")
    assert limit() == before


def test_a_recording_ends_with_a_whole_packet(tmp_path: Path) -> None:
    path, record = tmp_path / "x.pcap", struct.pack("<IIII", 0, 0, 5, 5) + b"12345"
    path.write_bytes(bytes(24) + 3 * record)
    assert whole_packets(path) == 3
    path.write_bytes(bytes(24) + 3 * record + record[:-1])
    assert whole_packets(path) == -1


def test_queued_bytes_of_a_socket_that_no_one_reads() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
        assert queued_bytes(os.getpid(), {port}) == 0
        one.sendto(b"x" * 1000, one.getsockname())
        assert queued_bytes(os.getpid(), {port}) >= 1000
    assert queued_bytes(1 << 30, {port}) == 0
