# SPDX-License-Identifier: Apache-2.0
"""nanet.wire.m2egp against the vectors that the C++ tests read too, and round trips of random packets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nanet import wire
from nanet.wire import m2egp
from test_wire import Vector, read_vectors

VECTORS = [pytest.param(v, id=v.name) for v in read_vectors("wire_m2egp.txt")]
GOOD = [p for p in VECTORS if p.values[0].expect == wire.ParseError.none]


def records_of(packet: m2egp.M2egpPacket) -> list[wire.EventRecord]:
    return [
        wire.EventRecord(int(e["timestamp"]), int(e["fine_time"]), int(e["event_number"]), packet.hits_of(i).tolist())
        for i, e in enumerate(packet.events)
    ]


@pytest.mark.parametrize("vector", VECTORS)
def test_vector_is_judged_as_it_says(vector: Vector) -> None:
    assert m2egp.check_m2egp(vector.payload) == vector.expect
    assert wire.check_mgp(vector.payload).name == vector.values["mgp"][0]
    if vector.expect != wire.ParseError.none:
        with pytest.raises(wire.WireError) as caught:
            m2egp.parse_m2egp(vector.payload)
        assert caught.value.reason == vector.expect


@pytest.mark.parametrize("vector", GOOD)
def test_good_vector_is_read_and_built_again(vector: Vector) -> None:
    packet = m2egp.parse_m2egp(vector.payload)
    code = vector.number("format")
    assert packet.source_id == vector.number("source_id")
    assert packet.source_sub_id == vector.number("source_sub_id")
    assert (packet.run_start, packet.run_end) == (bool(code & 0x10), bool(code & 0x20))
    assert packet.sequence == vector.number("sequence")
    assert packet.send_time_ns == vector.number("send_time_ns")
    records = records_of(packet)
    assert [[r.timestamp, r.fine_time, r.event_number, *r.hits] for r in records] == vector.lists("event")
    same = {
        "source_id": packet.source_id, "source_sub_id": packet.source_sub_id, "sequence": packet.sequence,
        "send_time_ns": packet.send_time_ns, "run_start": packet.run_start, "run_end": packet.run_end,
    }  # fmt: skip
    if packet.next_event_number is not None:
        assert packet.next_event_number == vector.number("next_event_number")
        assert m2egp.build_m2egp_marker(packet.next_event_number, **same) == vector.payload
    else:
        assert m2egp.build_m2egp(records, **same, packet_bytes=len(vector.payload)) == vector.payload


EVENTS = st.builds(
    wire.EventRecord,
    st.integers(0, 2**32 - 1),
    st.integers(0, 255),
    st.integers(0, 65535),
    st.lists(st.integers(0, 65535), max_size=128),
)


@given(st.lists(EVENTS, min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_round_trip(events: list[wire.EventRecord], sequence: int) -> None:
    payload = m2egp.build_m2egp(events, source_id=0x1C, source_sub_id=2, sequence=sequence)
    packet = m2egp.parse_m2egp(payload)
    assert records_of(packet) == events
    assert packet.sequence == sequence
    assert len(payload) == 16 + sum(8 + 2 * len(event.hits) for event in events)
    assert np.array_equal(packet.hits, np.concatenate([np.array(event.hits, np.uint16) for event in events]))


def test_what_does_not_fit_is_refused() -> None:
    ids = {"source_id": 1, "source_sub_id": 0}
    empty = wire.EventRecord(0, 0, 0, [])
    for events in ([], [empty] * 256, [wire.EventRecord(0, 0, 0, [0] * 129)], [wire.EventRecord(0, 0, 0, [0] * 128)] * 34):
        with pytest.raises(ValueError, match=r"no such packet|too many hits"):
            m2egp.build_m2egp(events, **ids)
    with pytest.raises(ValueError, match="start or end"):
        m2egp.build_m2egp_marker(0, **ids)
