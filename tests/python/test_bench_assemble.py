# SPDX-License-Identifier: Apache-2.0
"""`nanet bench assemble`: how a rate is judged and found, and which unit came when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nanet.bench import assemble
from nanet.bench.assemble import Failure, Recording, Sent
from nanet.bench.rate import RateSearch
from nanet.config import formats
from nanet.machine.facts import CorePlan

SEARCH = RateSearch(first=2e4, highest=2e6, steps=12, repeats=2, repeat_s=0.5, lowest=1e3)
RECORDING = Recording(
    "ejfat", "no one", Path(), 100 * assemble.UNITS, 1_000_000 * assemble.UNITS, 10_000, CorePlan(None, None, frozenset())
)
KEPT, LATE = Sent(1000, 1, True), Sent(1000, 1, False)


@pytest.mark.parametrize(
    ("lost", "waited_s", "sent", "failure"),
    [
        (False, 0.0, KEPT, None),
        (False, 9.0, KEPT, None),
        (False, 0.0, LATE, "sender"),
        (True, 0.0, KEPT, "receiver"),
        (True, 0.1, KEPT, "machine"),
        (True, 0.0, LATE, "sender"),
    ],
)
def test_who_failed(lost: bool, waited_s: float, sent: Sent, failure: Failure | None) -> None:
    assert assemble.judged(lost, waited_s, sent) == failure


def test_the_highest_rate_that_passes_is_found() -> None:
    turn = assemble.search(lambda _, rate, __: None if rate <= 3.1e5 else "receiver", RECORDING, SEARCH)
    rate = turn["gbit_per_s"] / RECORDING.gbit_per_packet
    assert 2.9e5 < rate <= 3.1e5
    assert turn["limited_by"] == "receiver"
    assert assemble.search(lambda *_: "sender", RECORDING, SEARCH) == {"gbit_per_s": 0.0, "limited_by": "sender"}
    assert assemble.search(lambda *_: None, RECORDING, SEARCH)["limited_by"] == "search range"


def test_a_run_without_a_core_says_nothing() -> None:
    tried = []

    def trial(_: Recording, rate: float, __: float) -> Failure | None:
        tried.append(rate)
        return "machine" if len(tried) % 2 else None

    assert assemble.search(trial, RECORDING, SEARCH)["gbit_per_s"] == 2e6 * RECORDING.gbit_per_packet
    assert len(tried) == 8  # each of two rates twice well, once in two


@dataclass
class Completed:
    """A completion of a port."""

    packet_count: int = 0
    complete: bool = True
    of_unit: bool = True

    @property
    def unit(self) -> Completed | None:
        return self if self.of_unit else None


def of_units(completions: list[Completed], units: int) -> list[int]:
    def given() -> Iterator[Completed]:
        yield from completions
        raise AssertionError("one more was asked for")

    return [unit for unit, _ in assemble._arrivals(given(), RECORDING, units)]


def test_units_are_counted_as_they_come() -> None:
    assert of_units([Completed(), Completed(complete=False), Completed()], 3) == [0, 2]
    packets = [Completed(packet_count=count, of_unit=False) for count in (99, 1, 250, 50)]
    assert of_units(packets, 4) == [0, 1, 2, 3]


@pytest.mark.parametrize(("name", "per_unit"), [("ejfat", 128), ("jungfrau", 128), ("gvsp", 130)])
def test_a_recording_has_whole_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, per_unit: int) -> None:
    monkeypatch.setattr(assemble, "UNITS", 3)  # a MiB each
    recording = assemble.record(name, tmp_path, CorePlan(None, None, frozenset()))
    assert recording.packets == per_unit * assemble.UNITS
    from nanet.format.check import Totals, check

    totals = Totals()
    for _ in check(formats.load(name), recording.file, totals):
        pass
    assert (len(totals.units), totals.payload_bytes) == (assemble.UNITS, assemble.UNITS * assemble.UNIT_BYTES)


def test_which_spead2_receives(tmp_path: Path) -> None:
    """By the socket that it opens, of a build in a folder of its own too."""
    for super_packets in (False, True):
        folder = tmp_path / str(super_packets)  # one each: Python would take what it compiled a moment ago for the same file
        package = folder / "spead2"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("__version__ = '9.9'\nThreadPool = int\n", encoding="utf-8")
        (package / "recv.py").write_text(
            f"""
import socket

class Stream:
    def __init__(self, pool):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def add_udp_reader(self, port, **options):
        self.socket.setsockopt(socket.IPPROTO_UDP, 104, {int(super_packets)})

    def stop(self):
        self.socket.close()
""",
            encoding="utf-8",
        )
        how = "with super-packets" if super_packets else "one packet at a time"
        assert assemble.spead2_name(folder) == f"spead2 9.9, {how}, heaps from its ring stream"
    (package / "__init__.py").write_text("raise ImportError('made for another machine')", encoding="utf-8")
    with pytest.raises(RuntimeError, match="made for another machine"):
        assemble.spead2_name(folder)


def test_what_it_writes(monkeypatch: pytest.MonkeyPatch, check_keys: Any) -> None:
    monkeypatch.setattr(assemble, "record", lambda *_: RECORDING)
    monkeypatch.setattr(
        assemble, "engine_trial", lambda name: lambda _, rate, __: None if rate < (2e5 if name == "raw" else 1e5) else "receiver"
    )
    monkeypatch.setattr(assemble, "declared_over_handwritten", lambda: 1.25)
    clock = {"two_over_one_by_clock": 1.2, "two_over_one_single_by_clock": 1.1}
    monkeypatch.setattr(assemble, "queue_rates", lambda _: {"two_over_one": 1.9, "two_over_one_single": 1.95} | clock)
    monkeypatch.setattr(assemble, "latency", lambda *_: [float(k) for k in range(200)])
    said: list[str] = []
    result = assemble.run(assemble.AssembleBench(("ejfat",), turns=2, search=SEARCH), said.append)
    check_keys(result, "bench assemble")
    (row,) = result["formats"]
    assert (row["name"], row["peer"], row["unit_bytes"], row["latency_units"]) == ("ejfat", "link alone", 1 << 20, 200)
    assert (row["p50_us"], row["link_p99_us"]) == (100.0, 198.0)
    assert row["ratio_to_peer"] == row["ratio_to_link"] == pytest.approx(0.5, rel=0.05)
    assert {who: len(turns) for who, turns in row["turns"].items()} == {"ours": 2, "link": 2}
    assert len(said) == 4
    assert len(assemble.csv_rows(result)) == 5
