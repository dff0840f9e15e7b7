# SPDX-License-Identifier: Apache-2.0
"""The data manager's store: what is written is read again; a store that is full, locked or gone costs what its bound says, by name."""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import postgresql_server
import psycopg
import pytest
from nanet.config.errors import ConfigError
from nanet.config.km3_server import AlarmRule
from nanet.km3.alarms import Alarms
from nanet.km3.messages import BY_NAME, Floor
from nanet.km3.store import Store, StoreError, Writer
from postgresql_server import PostgresqlServer

HISTORY: dict[str, Any] = {
    "at_ns": 5, "tower": 1, "floor": 3, "command": "set", "parameter": 0, "value": 12000, "outcome": "done", "answer": 12000, "tries": 1,
    "round_trip_ns": 70000,
}  # fmt: skip
SECOND = 10**9
NUMBERS = itertools.count()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "km3.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{file}", timeout_s=0.05)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    with postgresql_server.running() as made:
        yield made


# xdist: one server for all of them.
@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'km3.db'}"
    else:
        url = request.getfixturevalue("server").make_database(f"km3_{next(NUMBERS)}")
    made = Store(url, timeout_s=0.5)
    yield made
    made.close()


def wait_for(what: Callable[[], object], within_s: float = 20.0) -> None:
    end_s = time.monotonic() + within_s
    while not what() and time.monotonic() < end_s:
        time.sleep(0.005)
    assert what()


def balance(books: dict[str, Any]) -> int:
    return int(books["rows_in"] - books["rows_written"] - books["rows_refused"] - books["rows_dropped"] - books["rows_waiting"])


def test_history_is_read_the_newest_first_by_floor_and_parameter(any_store: Store) -> None:
    any_store.write(
        [("history", HISTORY | {"at_ns": at, "floor": floor, "parameter": at % 2}) for at in range(6) for floor in (1, 2)]
    )
    assert [one["at_ns"] for one in any_store.history(floor=2)] == [5, 4, 3, 2, 1, 0]
    assert [one["at_ns"] for one in any_store.history(tower=1, floor=1, parameter=1, limit=2)] == [5, 3]
    assert any_store.history(tower=2) == []
    assert {name: any_store.history(limit=1)[0][name] for name in HISTORY} == HISTORY | {"floor": 2, "parameter": 1}


def test_numbers_of_64_bits_survive(any_store: Store) -> None:
    any_store.write([("history", HISTORY | {"at_ns": 1 << 62, "value": -(1 << 31), "answer": None})])
    assert (any_store.history()[0]["at_ns"], any_store.history()[0]["value"], any_store.history()[0]["answer"]) == (
        1 << 62,
        -(1 << 31),
        None,
    )


def test_a_batch_is_written_whole_or_not_at_all(any_store: Store) -> None:
    run = {"run": 1, "started_ns": 1, "stopped_ns": None, "detector": None, "comment": ""}
    any_store.write([("runs", run)])
    with pytest.raises(StoreError, match=r"(?i)unique") as raised:
        any_store.write([("history", HISTORY), ("runs", run)])
    assert raised.value.is_of_rows
    assert any_store.history() == []
    assert any_store.next_run() == 2
    any_store.write([("update runs", {"run": 1, "stopped_ns": 9})])
    assert any_store.runs()[0]["stopped_ns"] == 9


def test_versions_of_a_detector_file(any_store: Store) -> None:
    first = any_store.add_detector("tower", b"one", 10 * SECOND, comment="as built")
    second = any_store.add_detector("tower", b"two", 20 * SECOND, 30 * SECOND)
    assert (first.version, second.version) == (1, 2)
    assert any_store.add_detector("tower", b"one", 10 * SECOND) == first  # not twice
    assert any_store.detector("tower", at_ns=9 * SECOND) is None
    assert [any_store.detector("tower", at_ns=at * SECOND)[1] for at in (10, 20, 29, 30)] == [b"one", b"two", b"two", b"one"]  # type: ignore[index]
    assert any_store.detector("tower", version=2) == (second, b"two")
    assert any_store.detector("other") is None
    assert [one.version for one in any_store.detectors()] == [2, 1]
    assert first.sha256 == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"


def test_a_detector_file_that_was_changed_in_the_store_is_not_given_out(store: Store, file: Path) -> None:
    store.add_detector("tower", b"one", 0)
    with sqlite3.connect(file) as other:
        other.execute("UPDATE detectors SET content = ?", (b"oen",))
    with pytest.raises(StoreError, match="damaged"):
        store.detector("tower")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nothing", "is no URL"),
        ("mysql://host/base", "it can be sqlite or postgresql"),
        ("sqlite://", "in memory"),
    ],
)
def test_urls_that_are_refused(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Store(url)


def test_a_password_is_never_told() -> None:
    store = Store("postgresql+psycopg://me:secret@127.0.0.1:1/base", timeout_s=0.5)
    with pytest.raises(StoreError) as raised:
        store.history()
    assert "secret" not in str(raised.value)
    assert "127.0.0.1" in str(raised.value)


def test_a_full_disk_is_named_and_what_waits_is_written_when_there_is_room(store: Store, file: Path) -> None:
    """SQLite's own bound on pages stands for the disk's: the same SQLITE_FULL."""
    from sqlalchemy import event

    bound = [0]

    def bounded(connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {bound[0] or 1 << 30}")

    store.write([("history", HISTORY)])
    event.listen(store._engine, "checkout", bounded)
    bound[0] = 1
    writer = Writer(store, queue_max=300, retry_s=0.02)
    for _ in range(1000):
        writer.put("history", **HISTORY)
    wait_for(lambda: writer.books()["problem"])
    books = writer.books()
    assert "full" in books["problem"]
    assert "make room" in books["problem"]
    assert books["rows_waiting"] <= 300
    assert books["rows_dropped"] == books["dropped_history"] >= 300
    assert balance(books) == 0
    bound[0] = 0
    assert writer.flush(20)
    writer.close()
    books = writer.books()
    assert balance(books) == 0
    assert books["problem"] == ""
    assert len(store.history(limit=2000)) == 1 + books["rows_written"]


def test_a_locked_store_is_named(store: Store, file: Path) -> None:
    store.write([("history", HISTORY)])
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    writer = Writer(store, retry_s=0.02)
    writer.put("history", **HISTORY)
    wait_for(lambda: "locked" in writer.books()["problem"])
    other.execute("ROLLBACK")
    other.close()
    assert writer.flush(20)
    writer.close()
    assert writer.books()["rows_written"] == 1


@pytest.mark.xdist_group("postgresql")
def test_a_postgresql_server_that_goes_and_returns_loses_no_row(server: PostgresqlServer) -> None:
    """Its connections are broken off between two batches; what waits meanwhile is written when it is there again."""
    with Closing(server.make_database("returns"), timeout_s=0.5) as store:
        writer = Writer(store, retry_s=0.02)
        writer.put("history", **HISTORY)
        assert writer.flush(20)
        server.stop()
        try:
            for _ in range(100):
                writer.put("history", **HISTORY)
            wait_for(lambda: writer.books()["problem"])
            assert writer.books()["rows_written"] == 1
        finally:
            server.start()
        assert writer.flush(20)
        writer.close()
        assert (writer.books()["problem"], writer.books()["rows_dropped"], balance(writer.books())) == ("", 0, 0)
        assert len(store.history(limit=2000)) == 101


@pytest.mark.xdist_group("postgresql")
def test_a_table_that_another_holds_is_named(server: PostgresqlServer) -> None:
    with Closing(server.make_database("held"), timeout_s=0.05) as store:
        store.write([("history", HISTORY)])
        with psycopg.connect(server.url("held").replace("+psycopg", "")) as other:
            other.execute("LOCK TABLE history IN ACCESS EXCLUSIVE MODE")
            writer = Writer(store, retry_s=0.02)
            writer.put("history", **HISTORY)
            wait_for(lambda: "lock timeout" in writer.books()["problem"])
        assert writer.flush(20)
        writer.close()
        assert writer.books()["rows_written"] == 1


def test_a_store_that_cannot_be_opened_is_named_and_its_rows_at_the_end(tmp_path: Path) -> None:
    with Closing(f"sqlite:///{tmp_path}/no/such/km3.db") as gone:
        writer = Writer(gone, retry_s=0.02)
        for _ in range(5):
            writer.put("history", **HISTORY)
        wait_for(lambda: "unable to open" in writer.books()["problem"])
        writer.close(0.05)
        books = writer.books()
        assert (books["rows_dropped"], books["rows_waiting"], balance(books)) == (5, 0, 0)


class Closing(Store):
    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_a_row_that_can_never_be_written_holds_up_no_other(any_store: Store) -> None:
    run = {"run": 1, "started_ns": 1, "stopped_ns": None, "detector": None, "comment": ""}
    any_store.write([("runs", run)])
    writer = Writer(any_store, retry_s=0.02)
    for _ in range(3):
        writer.put("history", **HISTORY)
        writer.put("runs", **run)
    assert writer.flush(20)
    writer.close()
    books = writer.books()
    assert (books["rows_written"], books["rows_refused"], balance(books)) == (3, 3, 0)
    assert len(any_store.history()) == 3


class Rows:
    """Takes rows as a Writer does."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, table: str, **values: Any) -> None:
        self.said.append((table, values))

    @property
    def tables(self) -> list[str]:
        return [table for table, _ in self.said]


TEMPERATURE = BY_NAME["temperature"].number


def hot(**changes: Any) -> AlarmRule:
    return AlarmRule(**({"name": "hot", "parameter": "temperature", "above": 40.0} | changes))


def test_an_alarm_is_raised_once_and_cleared_inside_the_hysteresis() -> None:
    rows = Rows()
    alarms = Alarms([hot(hysteresis=2.0)], rows)
    for second, value in enumerate([3900, 4001, 4100, 3900, 4001, 3801, 3800]):
        alarms.value(Floor(1, 3), TEMPERATURE, value, second * SECOND)
    assert rows.tables == ["alarms", "update alarms"]
    raised, cleared = rows.said[0][1], rows.said[1][1]
    assert (raised["rule"], raised["floor"], raised["raised_ns"], raised["cleared_ns"]) == ("hot", 3, SECOND, None)
    assert raised["value"] == pytest.approx(40.01)
    assert cleared == {"id": raised["id"], "cleared_ns": 6 * SECOND}
    assert alarms.raised() == []


def test_an_alarm_that_has_to_last() -> None:
    rows = Rows()
    alarms = Alarms([hot(above=None, below=10.0, for_s=3.0)], rows)
    for second, value in enumerate([900, 900, 1100, 900, 900, 900]):
        alarms.value(Floor(1, 3), TEMPERATURE, value, second * SECOND)
    assert rows.tables == []
    alarms.value(Floor(1, 3), TEMPERATURE, 900, 6 * SECOND)
    assert alarms.raised() == [("hot", Floor(1, 3))]


def test_alarms_are_of_floors_and_parameters() -> None:
    rows = Rows()
    alarms = Alarms([hot(floors=(2,))], rows)
    alarms.value(Floor(1, 3), TEMPERATURE, 9000, 0)
    alarms.value(Floor(1, 2), BY_NAME["heading"].number, 9000, 0)
    assert rows.tables == []
    alarms.value(Floor(1, 2), TEMPERATURE, 9000, 0)
    alarms.value(Floor(2, 2), TEMPERATURE, 9000, 0)
    assert alarms.raised() == [("hot", Floor(1, 2)), ("hot", Floor(2, 2))]


def test_a_floor_that_does_not_answer_is_an_alarm_without_a_rule(store: Store) -> None:
    writer = Writer(store)
    alarms = Alarms([], writer.put)
    for does in (True, False, False, True, True):
        alarms.answers(Floor(1, 3), does=does, now_ns=time.time_ns())
    alarms.answers(Floor(1, 4), does=False, now_ns=time.time_ns())
    writer.close()
    newest, older = store.alarms()
    assert (newest["floor"], newest["cleared_ns"]) == (4, None)
    assert (older["floor"], older["cleared_ns"] is not None) == (3, True)
    assert store.acknowledge(older["id"], "me")
    assert store.acknowledge(older["id"], "you")
    assert not store.acknowledge("none", "me")
    assert [one["floor"] for one in store.alarms(is_open=True)] == [4]
    assert store.alarms()[1]["acknowledged_by"] == "me"


def test_alarms_of_an_earlier_life_go_on() -> None:
    rows = Rows()
    Alarms([hot()], rows).value(Floor(1, 3), TEMPERATURE, 9000, 0)
    after = Rows()
    alarms = Alarms([hot()], after)
    alarms.adopt([rows.said[0][1]])
    alarms.value(Floor(1, 3), TEMPERATURE, 9000, SECOND)
    alarms.value(Floor(1, 3), TEMPERATURE, 1000, 2 * SECOND)
    assert after.said == [("update alarms", {"id": rows.said[0][1]["id"], "cleared_ns": 2 * SECOND})]
