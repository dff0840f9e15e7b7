# SPDX-License-Identifier: Apache-2.0
"""The data manager's store: history of slow control, monitored values, alarms, runs, versions of detector files. SQLite or PostgreSQL.

Times are ns of the epoch (UTC). `Store` reads and writes at once and raises StoreError; `Writer` takes rows from threads that must not wait, and
writes them when it can.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from nanet.config.errors import ConfigError

try:
    import sqlalchemy as sql
    from sqlalchemy import exc as sql_errors
except ImportError as error:  # the commands that need no store go without
    raise ConfigError(["there is no store (SQLAlchemy is not installed) pip install 'nanet[km3]'"]) from error

METADATA = sql.MetaData()
_BIG = sql.BigInteger().with_variant(sql.Integer(), "sqlite")  # SQLite counts only INTEGER up by itself


def _number(name: str, **more: Any) -> sql.Column[int]:
    return sql.Column(name, sql.Integer, nullable=False, **more)


def _time(name: str, *, nullable: bool = False) -> sql.Column[int]:
    return sql.Column(name, sql.BigInteger, nullable=nullable)


HISTORY = sql.Table(
    "history", METADATA, sql.Column("id", _BIG, primary_key=True), _time("at_ns"), _number("tower"), _number("floor"),
    sql.Column("command", sql.String(16), nullable=False), _number("parameter"), sql.Column("value", sql.BigInteger, nullable=False),
    sql.Column("outcome", sql.String(24), nullable=False), sql.Column("answer", sql.BigInteger), _number("tries"),
    sql.Column("round_trip_ns", sql.BigInteger, nullable=False),
    sql.Index("history_of_floor", "tower", "floor", "parameter", "at_ns"), sql.Index("history_at", "at_ns"),
)  # fmt: skip
VALUES = sql.Table(
    "monitored", METADATA, sql.Column("id", _BIG, primary_key=True), _time("at_ns"), _number("tower"), _number("floor"),
    _number("parameter"), sql.Column("value", sql.BigInteger, nullable=False),
    sql.Index("monitored_of_floor", "tower", "floor", "parameter", "at_ns"),
)  # fmt: skip
ALARMS = sql.Table(
    "alarms", METADATA, sql.Column("id", sql.String(32), primary_key=True), sql.Column("rule", sql.String(63), nullable=False),
    _number("tower"), _number("floor"), _number("parameter"), sql.Column("value", sql.Float, nullable=False), _time("raised_ns"),
    _time("cleared_ns", nullable=True), _time("acknowledged_ns", nullable=True), sql.Column("acknowledged_by", sql.String(63)),
    sql.Index("alarms_at", "raised_ns"),
)  # fmt: skip
RUNS = sql.Table(
    "runs", METADATA, sql.Column("run", sql.BigInteger, primary_key=True, autoincrement=False), _time("started_ns"),
    _time("stopped_ns", nullable=True), sql.Column("detector", sql.String(64)), sql.Column("comment", sql.Text, nullable=False),
)  # fmt: skip
DETECTORS = sql.Table(
    "detectors", METADATA, sql.Column("sha256", sql.String(64), nullable=False), sql.Column("name", sql.String(63), nullable=False),
    _number("version"), sql.Column("content", sql.LargeBinary, nullable=False), _time("valid_from_ns"), _time("valid_to_ns", nullable=True),
    _time("added_ns"), sql.Column("comment", sql.Text, nullable=False),
    sql.PrimaryKeyConstraint("name", "version"), sql.UniqueConstraint("name", "sha256", "valid_from_ns"),
)  # fmt: skip
TABLES = {table.name: table for table in METADATA.sorted_tables}


class StoreError(RuntimeError):
    """The store could not be read or written; str() says why, in one line."""

    is_of_rows = False
    """The store is well, and will never take these rows."""


@dataclass(frozen=True)
class DetectorVersion:
    """A version of a detector file, without its content."""

    name: str
    version: int
    sha256: str
    valid_from_ns: int
    valid_to_ns: int | None
    added_ns: int
    comment: str


class Store:
    """Reads and writes. Threads may share it."""

    def __init__(self, url: str, timeout_s: float = 2.0) -> None:
        """Nothing is opened yet. Raises ConfigError for a URL of another kind, or a driver that is not installed."""
        try:
            made = sql.make_url(url)
        except sql_errors.ArgumentError:
            raise ConfigError(
                [f"store '{_without_password(url)}' is no URL (a store has one) write it as sqlite:///FILE"]
            ) from None
        kind = made.get_backend_name()
        if kind not in ("sqlite", "postgresql"):
            raise ConfigError([f"store of kind '{kind}' (it can be sqlite or postgresql) write it as sqlite:///FILE"])
        self.name = made.render_as_string(hide_password=True)
        more: dict[str, Any] = {"connect_args": {"timeout": timeout_s}}
        if kind == "postgresql":
            made = made.set(drivername="postgresql+psycopg")
            milliseconds = int(timeout_s * 1000)
            more = {"pool_pre_ping": True, "pool_timeout": timeout_s, "connect_args": {
                "connect_timeout": max(2, round(timeout_s)),
                "options": f"-c lock_timeout={milliseconds} -c statement_timeout={5 * milliseconds}",
            }}  # fmt: skip
        elif made.database in (None, "", ":memory:"):
            raise ConfigError([f"store '{url}' is in memory (it would be gone at the end) write it as sqlite:///FILE"])
        try:
            self._engine = sql.create_engine(made, **more)
        except ImportError:
            raise ConfigError(
                [f"store {self.name} cannot be used (psycopg is not installed) pip install 'nanet[km3-postgresql]'"]
            ) from None
        if kind == "sqlite":
            sql.event.listen(self._engine, "connect", _set_up_sqlite)
        self._is_made = False

    def close(self) -> None:
        self._engine.dispose()

    def write(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """All of these rows (table, values), in their order, or none. Raises StoreError."""
        with self._begin() as connection:
            at = 0
            while at < len(rows):
                name = rows[at][0]
                end = next((i for i in range(at, len(rows)) if rows[i][0] != name), len(rows))
                same = [dict(values) for _, values in rows[at:end]]
                if name.startswith("update "):
                    for values in same:
                        table = TABLES[name.removeprefix("update ")]
                        key = next(iter(table.primary_key.columns))
                        connection.execute(sql.update(table).where(key == values.pop(key.name)).values(**values))
                else:
                    connection.execute(sql.insert(TABLES[name]), same)
                at = end

    def history(
        self, *, tower: int | None = None, floor: int | None = None, parameter: int | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Slow control, the newest first. Raises StoreError."""
        return self._select(HISTORY, HISTORY.c.at_ns, limit, tower=tower, floor=floor, parameter=parameter)

    def monitored(
        self, *, tower: int | None = None, floor: int | None = None, parameter: int | None = None, limit: int = 100
    ) -> list[dict[str, Any]]:
        """Monitored values, the newest first. Raises StoreError."""
        return self._select(VALUES, VALUES.c.at_ns, limit, tower=tower, floor=floor, parameter=parameter)

    def alarms(self, *, is_open: bool = False, limit: int = 100) -> list[dict[str, Any]]:
        """The newest first; is_open: only those that are not cleared, or not acknowledged. Raises StoreError."""
        where = [sql.or_(ALARMS.c.cleared_ns.is_(None), ALARMS.c.acknowledged_ns.is_(None))] if is_open else []
        return self._select(ALARMS, ALARMS.c.raised_ns, limit, *where)

    def acknowledge(self, alarm: str, by: str, at_ns: int | None = None) -> bool:
        """Whether there is such an alarm. The first acknowledgement stays. Raises StoreError."""
        with self._begin() as connection:
            if connection.execute(sql.select(ALARMS.c.id).where(ALARMS.c.id == alarm)).first() is None:
                return False
            free = sql.update(ALARMS).where(ALARMS.c.id == alarm, ALARMS.c.acknowledged_ns.is_(None))
            connection.execute(free.values(acknowledged_ns=at_ns or time.time_ns(), acknowledged_by=by))
            return True

    def runs(self, limit: int = 20) -> list[dict[str, Any]]:
        """The newest first. Raises StoreError."""
        return self._select(RUNS, RUNS.c.run, limit)

    def next_run(self) -> int:
        """One more than the greatest. Raises StoreError."""
        with self._begin() as connection:
            return int(connection.execute(sql.select(sql.func.max(RUNS.c.run))).scalar() or 0) + 1

    def add_detector(
        self, name: str, content: bytes, valid_from_ns: int, valid_to_ns: int | None = None, comment: str = ""
    ) -> DetectorVersion:
        """A further version of a detector file; the same content with the same validity is not added twice. Raises StoreError."""
        sha256 = hashlib.sha256(content).hexdigest()
        of_name = DETECTORS.c.name == name
        with self._begin() as connection:
            same = sql.select(DETECTORS).where(of_name, DETECTORS.c.sha256 == sha256, DETECTORS.c.valid_from_ns == valid_from_ns)
            if (found := connection.execute(same).mappings().first()) is not None:
                return _version(found)
            version = int(connection.execute(sql.select(sql.func.max(DETECTORS.c.version)).where(of_name)).scalar() or 0) + 1
            made = DetectorVersion(name, version, sha256, valid_from_ns, valid_to_ns, time.time_ns(), comment)
            connection.execute(sql.insert(DETECTORS).values(content=content, **made.__dict__))
            return made

    def detectors(self, name: str | None = None) -> list[DetectorVersion]:
        """All versions, the newest first. Raises StoreError."""
        with self._begin() as connection:
            wanted = sql.select(DETECTORS).order_by(DETECTORS.c.name, DETECTORS.c.version.desc())
            if name is not None:
                wanted = wanted.where(DETECTORS.c.name == name)
            return [_version(row) for row in connection.execute(wanted).mappings()]

    def detector(self, name: str, *, version: int | None = None, at_ns: int | None = None) -> tuple[DetectorVersion, bytes] | None:
        """That version; or the newest one that is valid at a time, now if none is given. Raises StoreError, also for content that is not what it was."""
        at_ns = time.time_ns() if at_ns is None else at_ns
        valid = sql.and_(
            DETECTORS.c.valid_from_ns <= at_ns, sql.or_(DETECTORS.c.valid_to_ns.is_(None), DETECTORS.c.valid_to_ns > at_ns)
        )
        where = DETECTORS.c.version == version if version is not None else valid
        with self._begin() as connection:
            wanted = sql.select(DETECTORS).where(DETECTORS.c.name == name, where).order_by(DETECTORS.c.version.desc())
            found = connection.execute(wanted).mappings().first()
        if found is None:
            return None
        content = bytes(found["content"])
        if hashlib.sha256(content).hexdigest() != found["sha256"]:
            raise StoreError(f"detector {name} version {found['version']} is damaged (its SHA-256 is another) restore the store")
        return _version(found), content

    def _select(
        self, table: sql.Table, newest: sql.Column[Any], limit: int, *where: Any, **equal: int | None
    ) -> list[dict[str, Any]]:
        wanted = sql.select(table).where(*where, *(table.c[name] == value for name, value in equal.items() if value is not None))
        with self._begin() as connection:
            key = next(iter(table.primary_key.columns))
            return [dict(row) for row in connection.execute(wanted.order_by(newest.desc(), key.desc()).limit(limit)).mappings()]

    @contextlib.contextmanager
    def _begin(self) -> Iterator[sql.Connection]:
        try:
            with self._engine.begin() as connection:
                if not self._is_made:
                    METADATA.create_all(connection)
                    self._is_made = True
                yield connection
        except sql_errors.SQLAlchemyError as error:
            told = StoreError(f"store {self.name} cannot be used ({_why(error)}) {_suggestion(error)}")
            told.is_of_rows = isinstance(
                error, (sql_errors.IntegrityError, sql_errors.DataError, sql_errors.StatementError)
            ) and not isinstance(error, (sql_errors.OperationalError, sql_errors.InternalError, sql_errors.InterfaceError))
            raise told from None


def _set_up_sqlite(connection: Any, _: object) -> None:
    """Readers do not keep the writer waiting, and a power cut costs the last rows at most, never the file."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def _version(row: Mapping[Any, Any]) -> DetectorVersion:
    return DetectorVersion(**{name: row[name] for name in DetectorVersion.__dataclass_fields__})


def _why(error: sql_errors.SQLAlchemyError) -> str:
    text = str(getattr(error, "orig", None) or error).strip().splitlines()
    return text[0].strip() if text else type(error).__name__


def _suggestion(error: sql_errors.SQLAlchemyError) -> str:
    why = _why(error).lower()
    if "full" in why:
        return "make room on its disk"
    if "locked" in why or "lock timeout" in why:
        return "see who has it open"
    return "check that it is there, and that this account may write to it"


def _without_password(url: str) -> str:
    head, at, tail = url.rpartition("@")
    return f"...{at}{tail}" if at and ":" in head else url


def file_of(url: str) -> Path | None:
    """The file of a store that is one."""
    made = sql.make_url(url)
    return Path(made.database) if made.get_backend_name() == "sqlite" and made.database else None


class Writer:
    """Writes rows in a thread of its own. While the store cannot be written, rows wait, up to a bound; what is beyond it is counted."""

    BATCH_MAX = 500

    def __init__(self, store: Store, queue_max: int = 20000, retry_s: float = 1.0) -> None:
        self._store, self._queue_max, self._retry_s = store, queue_max, retry_s
        self._rows: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._filled = threading.Condition(self._lock)
        self._closing = False
        self.problem = ""
        """Why the store cannot be written now; empty while it can."""
        self._thread = threading.Thread(target=self._run, name="km3-store", daemon=True)
        self._thread.start()

    def put(self, table: str, **values: Any) -> None:
        """Never waits. table: its name, or `update NAME`: the row of that primary key."""
        with self._lock:
            self._counts["rows_in"] += 1
            if len(self._rows) >= self._queue_max:
                self._counts["rows_dropped"] += 1
                self._counts[f"dropped_{table.removeprefix('update ')}"] += 1
                return
            self._rows.append((table, values))
            self._filled.notify()

    def books(self) -> dict[str, Any]:
        """rows_in = rows_written + rows_refused + rows_dropped + rows_waiting."""
        with self._lock:
            counts = {name: self._counts[name] for name in ("rows_in", "rows_written", "rows_refused", "rows_dropped", "failures")}
            return counts | dict(self._counts) | {"rows_waiting": len(self._rows), "problem": self.problem}

    def flush(self, within_s: float) -> bool:
        """Whether everything was written within so many seconds."""
        end_s = time.monotonic() + within_s
        while time.monotonic() < end_s:
            with self._lock:
                if not self._rows:
                    return True
            time.sleep(0.005)
        return False

    def close(self, within_s: float = 2.0) -> None:
        """Writes what waits, for at most so long; the rest is dropped, and counted."""
        self.flush(within_s)
        with self._lock:
            self._closing = True
            self._filled.notify_all()
        self._thread.join()
        with self._lock:
            self._counts["rows_dropped"] += len(self._rows)
            for table, _ in self._rows:
                self._counts[f"dropped_{table.removeprefix('update ')}"] += 1
            self._rows.clear()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._rows and not self._closing:
                    self._filled.wait(1.0)
                if self._closing:
                    return
                batch = list(islice(self._rows, self.BATCH_MAX))
            self._write(batch)

    def _write(self, batch: list[tuple[str, Mapping[str, Any]]]) -> None:
        try:
            self._store.write(batch)
            outcome = "rows_written"
        except StoreError as error:
            with self._lock:
                self._counts["failures"] += 1
                self.problem = str(error)
                if not error.is_of_rows:
                    self._filled.wait_for(lambda: self._closing, self._retry_s)
            if not error.is_of_rows:
                return
            if len(batch) > 1:  # one of them: the others are written
                for row in batch:
                    self._write([row])
                return
            outcome = "rows_refused"
        with self._lock:
            self.problem = self.problem if outcome == "rows_refused" else ""
            self._counts[outcome] += len(batch)
            for _ in batch:
                self._rows.popleft()
