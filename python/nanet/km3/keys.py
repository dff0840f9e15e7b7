# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet km3 server` writes."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from nanet.result.keys.base import Base, Counts


class StreamBooks(TypedDict):
    """What came of one floor and kind."""

    tower: Annotated[int, "number of the tower"]
    floor: Annotated[int, "number of the floor, from 1"]
    kind: Annotated[str, "hits, sampled, hydrophone_0, hydrophone_1 or instruments"]
    run: Annotated[int, "of its newest unit"]
    units: Annotated[int, "that came, those with holes included"]
    bytes: Annotated[int, "of them"]
    incomplete: Annotated[int, "units with holes"]
    untimed: Annotated[int, "units of which the floor says that its time is not right"]
    slices_missing: Annotated[int, "slices between the first and the newest of a run of which no unit came"]


class FloorBooks(TypedDict):
    """Where a floor is."""

    tower: Annotated[int, "number of the tower"]
    floor: Annotated[int, "number of the floor, from 1"]
    state: Annotated[str, "silent, configuring, ready, running or failed"]
    why: Annotated[str, "what keeps it from where it is wanted; empty: nothing"]
    run: Annotated[int | None, "that it is in; null: none"]
    counts: Annotated[Counts, "how often it was silent, failed, configured, started, returned, lost its settings or its run"]


class RaisedAlarm(TypedDict):
    """An alarm."""

    rule: Annotated[str, "its name; `no_answer`: the floor does not answer"]
    tower: Annotated[int, "number of the tower"]
    floor: Annotated[int, "number of the floor, from 1"]


class ServerResult(Base):
    """What `nanet km3 server` writes."""

    elapsed_s: Annotated[float, "that it ran"]
    run: Annotated[int | None, "that was on at the end; null: none"]
    units_in: Annotated[int, "that came from floors; the sum of `streams[].units`"]
    bytes_in: Annotated[int, "of them"]
    units_copied: Annotated[int, "out of their buffers, because a destination was behind"]
    streams: Annotated[list[StreamBooks], "a floor and kind each"]
    destinations: Annotated[
        dict[str, dict[str, Any]],
        "by name: `units_in` = `units_sent` + `units_waiting` + `queue_full` + `unacknowledged` + `refused` + `left_at_end`, and what happened to its connection",
    ]
    port: Annotated[Counts, "of the floors' port ([what each means](design/books.md))"]
    control: Annotated[
        Counts,
        "of slow control: `requests` = `answered` + `no_answer` + `not_sent` + `queue_full` + `closed`; datagrams that were refused, by name",
    ]
    round_trip_us: Annotated[
        dict[str, float] | None,
        "of requests that were answered at the first try: p50, p90, p99, p99_9, p99_99, max, mean, min; null: none",
    ]
    floors: Annotated[list[FloorBooks], "where each of them is"]
    store: Annotated[
        dict[str, Any],
        "`rows_in` = `rows_written` + `rows_refused` + `rows_dropped` + `rows_waiting`; `problem`: why it cannot be written",
    ]
    alarms_raised: Annotated[list[RaisedAlarm], "at the end"]
    notes: Annotated[list[str], "what happened, a line each"]
    failure: Annotated[str, "why data were no longer taken; empty: nothing"]
    losses: Annotated[Counts, "units by name and destination, rows of the store; those that are not 0"]


class AnswerResult(Base):
    """What commands to a server write."""

    answer: Annotated[dict[str, Any], "what the server answered; of `status` the keys of `nanet km3 server` without the machine's"]


class RowsResult(Base):
    """What commands that read the store write."""

    rows: Annotated[list[dict[str, Any]], "of the store, a column each key; times are ns of the epoch (UTC)"]
