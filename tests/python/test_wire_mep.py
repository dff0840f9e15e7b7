# SPDX-License-Identifier: Apache-2.0
"""nanet.wire.mep against the vectors that the C++ tests read too, and round trips of random events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nanet import wire
from nanet.wire import mep
from test_wire import Vector, read_vectors

VECTORS = [pytest.param(v, id=v.name) for v in read_vectors("wire_mep.txt")]
GOOD = [p for p in VECTORS if p.values[0].expect == wire.ParseError.none]


def hits_of(event: mep.MepEvent, board: int) -> list[tuple[int, ...]]:
    try:
        return [tuple(hit) for hit in mep.tdc_hits(event, board).tolist()]
    except wire.WireError:
        return []


@pytest.mark.parametrize("vector", VECTORS)
def test_vector_is_judged_as_it_says(vector: Vector) -> None:
    assert mep.check_mep(vector.payload) == vector.expect
    if vector.expect != wire.ParseError.none:
        with pytest.raises(wire.WireError):
            mep.parse_mep(vector.payload)


@pytest.mark.parametrize("vector", GOOD)
def test_good_vector_is_read_and_built_again(vector: Vector) -> None:
    packet = mep.parse_mep(vector.payload)
    assert packet.first_event_number == vector.number("first_event_number")
    assert (packet.source_id, packet.source_sub_id) == (vector.number("source_id"), vector.number("source_sub_id"))
    events = [[e.event_number, e.timestamp, int(e.last_of_burst), len(e.data)] for e in packet.events]
    assert events == vector.lists("event")
    hits = [[i, *hit] for i, event in enumerate(packet.events) for hit in hits_of(event, packet.source_sub_id)]
    assert hits == vector.lists("hit")
    if "tdc" in vector.values and vector.values["tdc"][0] != "none":
        with pytest.raises(wire.WireError) as caught:
            mep.tdc_hits(packet.events[0], 0)
        assert caught.value.reason.name == vector.values["tdc"][0]
    ids = {
        "source_id": packet.source_id, "source_sub_id": packet.source_sub_id, "first_event_number": packet.first_event_number,
        "ends_burst": bool(packet.events) and packet.events[-1].last_of_burst,
    }  # fmt: skip
    if vector.number("canonical"):
        sub = packet.source_sub_id
        data = [
            (e.timestamp, mep.build_tdc_data(e.timestamp, hits_of(e, sub), source_sub_id=sub, trigger_type=e.data[1]))
            for e in packet.events
        ]
        assert mep.build_mep(data, **ids) == vector.payload


HITS = st.lists(
    st.tuples(st.integers(0, 511), st.integers(-3000, 3000), st.integers(0, 400)), max_size=30, unique_by=lambda hit: hit[0]
)


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), HITS), max_size=8), st.integers(0, 2**24 - 1))
def test_round_trip(events: list[tuple[int, list[tuple[int, int, int]]]], first: int) -> None:
    data = [(timestamp, mep.build_tdc_data(timestamp, hits, source_sub_id=1)) for timestamp, hits in events]
    packet = mep.build_mep(data, source_id=0x1C, source_sub_id=1, first_event_number=first)
    (read,) = mep.read_meps(packet)
    assert [event.timestamp for event in read.events] == [timestamp for timestamp, _ in events]
    for event, (_, hits) in zip(read.events, events, strict=True):
        assert sorted(hits_of(event, 1)) == sorted((512 + channel, time, width) for channel, time, width in hits)


def test_a_file_of_packets() -> None:
    one = mep.build_mep([(5, b"abcd")], source_id=1, source_sub_id=0)
    assert len(list(mep.read_meps(one * 3))) == 3
    with pytest.raises(wire.WireError):
        list(mep.read_meps(one + one[:-1]))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 255"):
        mep.build_mep([(0, b"")] * 256, source_id=1, source_sub_id=0)
    with pytest.raises(ValueError, match="65535"):
        mep.build_mep([(0, bytes(40000))] * 2, source_id=1, source_sub_id=0)
