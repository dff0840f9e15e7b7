# SPDX-License-Identifier: Apache-2.0
"""Any bytes as a dump of KM3NeT's dispatcher: what is read is written again to the byte, and comes out of HDF5 as it was, or is refused in one line."""

from __future__ import annotations

import io
from collections import Counter

from fuzz_target import instrumented, run

with instrumented("nanet.km3.daq", "nanet.km3.files"):
    from nanet.km3 import daq, files
import h5py
from nanet.config.errors import ConfigError
from nanet.km3.recordings import Modules, modules_of_strings


def check(data: bytes) -> None:
    """As a file of these bytes."""
    if len(data) > 4000:
        return
    passed_over: Counter[int] = Counter()
    try:
        messages = list(daq.read(data, passed_over))
    except daq.DaqError as error:
        assert str(error).isprintable(), "a problem is one line"
        return
    again = b"".join(map(daq.encode, messages))
    assert passed_over or again == data, "what was read is written again"
    modules = Modules()
    made = files.with_levels(
        messages, ["L0", "L1", "L2", "SN", "summary", "event"], modules, strings=modules_of_strings(messages, modules, None)
    )
    for one in made:
        assert list(map(daq.encode, daq.read(daq.encode(one)))) == [daq.encode(one)], "what is made is read again"
    require_same(made)


def require_same(messages: list[daq.Message]) -> None:
    """In HDF5: numbers of slices and events, and times of hits."""
    try:
        made = files.hdf5(messages)
    except ConfigError as error:
        assert len(error.problems) == 1 and error.problems[0].isprintable(), "a problem is one line"
        return
    with h5py.File(io.BytesIO(made)) as file:
        for table, hits, kind in (("timeslice_info", "timeslice_hits", daq.Slice), ("event_info", "hits", daq.Event)):
            chosen = [one for one in messages if isinstance(one, kind)]
            assert (table in file) == bool(chosen), "there is a table of what there is"
            if not chosen:
                continue
            for column, name in (("run_id", "run"), ("frame_index", "number"), ("det_id", "detector")):
                assert file[table][column].tolist() == [getattr(one.header, name) for one in chosen], (
                    "numbers are those that were read"
                )
            assert file[hits]["time"][:].tolist() == [time for one in chosen for time in times_of(one)], "and so are times"


def times_of(message: daq.Slice | daq.Event) -> list[int]:
    parts = [message.hits] if isinstance(message, daq.Event) else [frame.hits for frame in message.frames]
    return [time for part in parts for time in part["time_ns"].tolist()]


if __name__ == "__main__":
    run(check)
