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


class HydrophonePlace(TypedDict):
    """Where a hydrophone is."""

    tower: Annotated[int, "number of the tower"]
    floor: Annotated[int, "number of the floor, from 1"]
    hydrophone: Annotated[int, "0 or 1"]
    nominal_m: Annotated[list[float], "x, y, z of the detector file"]
    position_m: Annotated[list[float] | None, "x, y, z that were found; null: none"]
    error_m: Annotated[list[float] | None, "of them, one standard deviation"]
    used: Annotated[int, "times that agree on it"]
    refused: Annotated[str, "why it has no place ([names](design/km3-server.md#positions)); empty: it has one"]
    times_refused: Annotated[
        dict[str, str], "by beacon and time of emission [s, from the recording's first second on]: why it was not used"
    ]


class FloorMotion(TypedDict):
    """How a floor lies now."""

    tower: Annotated[int, "number of the tower"]
    floor: Annotated[int, "number of the floor, from 1"]
    yaw_deg: Annotated[float | None, "by which it turned about the vertical; null: not known"]
    shift_m: Annotated[list[float] | None, "x, y, z by which its middle went; null: not known, it stays where it was"]


class PositionsResult(Base):
    """What `nanet km3 positions` writes."""

    packets: Annotated[
        Counts,
        "of the recording: `accepted`, `duplicate`, `untimed` (left out), `other_kinds` (no sound), `other` (none of a floor's)",
    ]
    hydrophones: Annotated[list[HydrophonePlace], "of all floors of the detector file"]
    floors: Annotated[list[FloorMotion], "all of them"]
    speed_m_s: Annotated[float, "of sound, given or found"]
    speed_error_m_s: Annotated[float, "of it, if it was found; else 0"]
    chi2: Annotated[float, "of all times that are used"]
    degrees: Annotated[int, "of freedom"]
    added: Annotated[str | None, "name and version that the store has it as; null: it was not added"]


class ExportResult(Base):
    """What `nanet km3 export` writes."""

    file: Annotated[str, "that was written"]
    messages: Annotated[
        Counts, "in it: time slices by their level (L0, L1, L2, SN), `summary` slices, `event`s; those that are not 0"
    ]
    hits: Annotated[int, "in slices and events"]
    packets: Annotated[
        Counts,
        "of the recording: `accepted`, `duplicate`, `other_kinds` (of floors: no short hits), `bad_head` (a run, slice, floor, flag or tick that there is not), `other` (none of KM3NeT's); empty for a dump",
    ]
    units_incomplete: Annotated[int, "what a module sent in a slice, with packets missing"]
    events_incomplete: Annotated[int, "with packets missing, or with a time that the message cannot say: left out"]
