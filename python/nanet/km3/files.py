# SPDX-License-Identifier: Apache-2.0
"""Files of time slices and events that users of KM3NeT's software read: dumps of its dispatcher (.dat), and HDF5 as km3pipe lays it out.

Real files of the data acquisition are ROOT's, with classes of KM3NeT's: nothing but ROOT writes those.
"""

from __future__ import annotations

import io
import itertools
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nanet.config.errors import ConfigError
from nanet.km3 import daq
from nanet.km3.recordings import Collected, Modules, coincident, collect, packets_of, summary_of
from nanet.result import outputs

__all__ = ["HDF5_VERSION", "SUFFIXES", "hdf5", "messages_of", "read", "with_levels", "write"]

HDF5_VERSION = "5.1"
"""Of the layout: the one that km3pipe 9 to 11 writes."""
SUFFIXES = (".dat", ".h5", ".hdf5")
SLICE_S = 0.2
"""Length of a slice where a file has one only: a tower's."""


def read(path: Path, passed_over: Counter[int] | None = None) -> list[daq.Message]:
    """The messages of a dump. Raises ConfigError."""
    try:
        return list(daq.read(path.read_bytes(), passed_over))
    except (OSError, daq.DaqError) as error:
        why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
        raise ConfigError([f"cannot read {path} ({why}) give a dump of KM3NeT's dispatcher or a recording of packets"]) from None


def messages_of(path: Path, modules: Modules) -> tuple[list[daq.Message], Collected | None]:
    """Of a dump (.dat), or of a recording of packets (.pcap); the latter with what became of its packets. Raises ConfigError, SetupError."""
    if path.suffix == ".dat":
        return read(path), None
    found = collect(packets_of(path), modules)
    return [*found.slices, *found.events], found


def slice_seconds(slices: Sequence[daq.Slice]) -> float:
    """Shortest time from one slice of a run to another."""
    times = sorted({(one.header.run, (one.header.second & 0x7FFF_FFFF) + one.header.tick * 16e-9) for one in slices})
    gaps = [later - earlier for (run, earlier), (other, later) in itertools.pairwise(times) if run == other]
    return min(gaps, default=SLICE_S)


def with_levels(
    messages: Iterable[daq.Message],
    levels: Iterable[str],
    modules: Modules,
    *,
    window_ns: float = 20.0,
    charge: int = 25,
    places: int | None = None,
    strings: Container[int] = (),
) -> list[daq.Message]:
    """L1 slices and summaries are made of L0 slices, where there are none; what was not asked for is left out. levels: L0, L1, L2, SN, summary, event.

    strings: modules of strings, as `modules_of_strings` finds them; the rest is as of `coincident`.
    """
    wanted, found = set(levels), list(messages)
    raw = [one for one in found if isinstance(one, daq.Slice) and one.level == "L0"]
    made: list[daq.Message] = [one for one in found if level_of(one) in wanted]
    if "L1" in wanted and not any(level_of(one) == "L1" for one in made):
        made += [coincident(one, modules, window_ns=window_ns, charge=charge, places=places, strings=strings) for one in raw]
    if "summary" in wanted and not any(isinstance(one, daq.Summary) for one in made):
        made += [summary_of(one, slice_seconds(raw)) for one in raw]
    return made


def level_of(message: daq.Message) -> str:
    """Of a slice its level; else summary or event."""
    return message.level if isinstance(message, daq.Slice) else "summary" if isinstance(message, daq.Summary) else "event"


def write(path: Path, messages: Sequence[daq.Message]) -> None:
    """By the file's name: .dat, or .h5, which has no negative numbers of runs, slices and modules. Raises ConfigError, OutputError."""
    if path.suffix not in SUFFIXES:
        raise ConfigError([f"{path} says no format (its name ends in '{path.suffix}') end it in {' or '.join(SUFFIXES)}"])
    data = b"".join(map(daq.encode, messages)) if path.suffix == ".dat" else hdf5(messages)
    outputs.write(path, data)


def hdf5(messages: Sequence[daq.Message]) -> bytes:
    """A file for km3pipe's HDF5Pump: message k is group k. Hits lie in columns, of which an index says what each group has."""
    import h5py

    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        file.attrs["format_version"] = np.bytes_(HDF5_VERSION)
        file.attrs["origin"] = np.bytes_("nanet")
        numbers = np.arange(len(messages))
        _table(file, "group_info", numbers, [("group_id", "<i8", numbers)])
        chosen = {kind: [(k, one) for k, one in enumerate(messages) if isinstance(one, kind)] for kind in (daq.Slice, daq.Event)}
        summaries = [(k, one) for k, one in enumerate(messages) if isinstance(one, daq.Summary)]
        if chosen[daq.Slice]:
            _write_slices(file, chosen[daq.Slice], len(messages))
        if chosen[daq.Event]:
            _write_events(file, chosen[daq.Event], len(messages))
        if summaries:
            _write_summaries(file, summaries)
    return memory.getvalue()


Numbered = Sequence[tuple[int, Any]]


def _table(file: Any, name: str, groups: NDArray[np.int64], columns: Sequence[tuple[str, str, Any]]) -> None:
    rows = np.zeros(len(groups), [(column, kind) for column, kind, _ in columns])
    for column, kind, values in columns:
        if len(values):
            _require(column, np.dtype(kind), min(values), max(values))
        rows[column] = values
    file.create_dataset(name, data=rows, chunks=True, maxshape=(None,))


def _require(column: str, kind: np.dtype[Any], least: int, most: int) -> None:
    """Messages have signed numbers where km3pipe's layout has none: one that is below 0 would come out as another. Raises ConfigError."""
    bounds = np.iinfo(kind)
    for value in (least, most):
        if not bounds.min <= value <= bounds.max:
            raise ConfigError(
                [f"{column} {value} cannot be written (in HDF5 of km3pipe it is {bounds.min} to {bounds.max}) write a dump: .dat"]
            )


def _columns(file: Any, name: str, counts: NDArray[np.int64], columns: dict[str, NDArray[Any]]) -> None:
    """Hits of all groups, one column a dataset, and where each group's begin."""
    begins = np.cumsum(counts) - counts
    _table(file, f"{name}/_indices", counts, [("index", "<i8", begins), ("n_items", "<i8", counts)])
    for column, values in columns.items():
        file.create_dataset(f"{name}/{column}", data=values, chunks=True, maxshape=(None,), compression="gzip", compression_opts=4)


def _head(chosen: Numbered) -> list[tuple[str, str, Any]]:
    headers = [one.header for _, one in chosen]
    return [
        ("group_id", "<i8", [number for number, _ in chosen]),
        ("det_id", "<i4", [one.detector for one in headers]),
        ("run_id", "<u8", [one.run for one in headers]),
        ("frame_index", "<u4", [one.number for one in headers]),
    ]


def _counts(chosen: Numbered, groups: int, of: Any) -> NDArray[np.int64]:
    counts = np.zeros(groups, np.int64)
    for number, one in chosen:
        counts[number] = of(one)
    return counts


def _write_slices(file: Any, chosen: Numbered, groups: int) -> None:
    frames = [(number, one, frame) for number, one in chosen for frame in one.frames]
    _table(file, "timeslice_info", np.zeros(len(chosen), np.int64), [
        *_head(chosen),
        ("slice_id", "<u4", [daq.LEVELS[one.level] for _, one in chosen]),
        ("timestamp", "<u4", [one.header.second for _, one in chosen]),
        ("nanoseconds", "<u4", [one.header.tick * 16 for _, one in chosen]),
        ("n_frames", "<u4", [len(one.frames) for _, one in chosen]),
    ])  # fmt: skip
    _table(file, "timeslice_frame_infos", np.zeros(len(frames), np.int64), [
        *_head([(number, frame) for number, _, frame in frames]),
        ("dom_id", "<u4", [frame.module for _, _, frame in frames]),
        ("dataqueue_status", "<u4", [frame.queue_status for _, _, frame in frames]),
        ("n_hits", "<u4", [len(frame.hits) for _, _, frame in frames]),
    ])  # fmt: skip
    hits = np.concatenate([frame.hits for _, _, frame in frames] or [np.zeros(0, daq.HIT)])
    lengths = [len(frame.hits) for _, _, frame in frames]
    counts = _counts(chosen, groups, lambda one: sum(len(frame.hits) for frame in one.frames))
    _columns(file, "timeslice_hits", counts, {
        "channel_id": hits["channel"], "time": hits["time_ns"].astype("<i4"), "tot": hits["tot"],
        "dom_id": np.repeat(np.array([frame.module for _, _, frame in frames], "<i4"), lengths),
        "group_id": np.repeat(np.array([number for number, _, _ in frames], "<i8"), lengths),
    })  # fmt: skip


def _write_events(file: Any, chosen: Numbered, groups: int) -> None:
    _table(file, "event_info", np.zeros(len(chosen), np.int64), [
        *_head(chosen),
        ("trigger_counter", "<u8", [one.counter for _, one in chosen]),
        ("trigger_mask", "<u8", [one.mask for _, one in chosen]),
        ("overlays", "<u4", [one.overlays for _, one in chosen]),
        ("utc_seconds", "<u8", [one.header.second & 0x7FFF_FFFF for _, one in chosen]),
        ("utc_nanoseconds", "<u8", [one.header.tick * 16 for _, one in chosen]),
    ])  # fmt: skip
    hits = np.concatenate([one.hits for _, one in chosen])
    triggered = np.concatenate([_is_triggered(one) for _, one in chosen])
    counts = _counts(chosen, groups, lambda one: len(one.hits))
    _columns(file, "hits", counts, {
        "channel_id": hits["channel"], "dom_id": hits["module"].astype("<i4"), "time": hits["time_ns"].astype("<f8"), "tot": hits["tot"],
        "triggered": triggered.astype("u1"),
        "group_id": np.repeat([number for number, _ in chosen], [len(one.hits) for _, one in chosen]).astype("<i8"),
    })  # fmt: skip


def _is_triggered(event: daq.Event) -> NDArray[np.bool_]:
    """Which of its hits are among those that triggered it."""
    names = list(daq.EVENT_HIT.names or ())
    keys = {tuple(row) for row in event.triggered[names].tolist()}
    return np.array([row in keys for row in event.hits[names].tolist()], bool)


def _write_summaries(file: Any, chosen: Numbered) -> None:
    rows = [(number, one, row) for number, one in chosen for row in one.modules]
    _table(file, "summaryslice_frames", np.zeros(len(rows), np.int64), [
        *_head([(number, one) for number, one, _ in rows]),
        ("dom_id", "<u4", [int(row["module"]) for _, _, row in rows]),
        ("dataqueue_status", "<u4", [row["queue_status"] for _, _, row in rows]),
        *[(f"ch{k}", "u1", [row["rates"][k] for _, _, row in rows]) for k in range(daq.CHANNELS)],
    ])  # fmt: skip
