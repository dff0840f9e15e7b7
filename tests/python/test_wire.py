# SPDX-License-Identifier: Apache-2.0
"""nanet.wire against the vectors that the C++ tests read too, against literal bytes, and round trips of random packets."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from nanet import wire

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "vectors"
set_hypothesis_home_dir(ROOT / "build" / "hypothesis")  # not in the source tree


class Vector:
    """One block of a vector file; the file format is told at the head of each file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, list[str]] = {}
        self.payload = b""

    def number(self, key: str) -> int:
        return int(self.values[key][0], 0)

    def lists(self, key: str) -> list[list[int]]:
        return [[int(word, 0) for word in line.split()] for line in self.values.get(key, [])]

    @property
    def expect(self) -> wire.ParseError:
        return wire.ParseError[self.values["expect"][0]]


def read_vectors(file: str) -> list[Vector]:
    vectors: list[Vector] = []
    for line in (VECTORS / file).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            vectors.append(Vector(line[1 : line.index("]")]))
            continue
        key, value = line.split(" = ")
        if key == "hex":
            vectors[-1].payload += bytes.fromhex(value)
        elif key == "zeros":
            vectors[-1].payload += bytes(int(value))
        else:
            vectors[-1].values.setdefault(key, []).append(value)
    assert vectors, f"no vectors in {file}"
    return vectors


def slow_fletcher32(data: bytes) -> int:
    """The definition, one word and one modulo at a time."""
    first = second = 0
    for (word,) in struct.iter_unpack("<H", data + b"\0" * (len(data) % 2)):
        first = (first + word) % 65535
        second = (second + first) % 65535
    return second << 16 | first


MGP_FILES = ["wire_mgp_padded.txt", "wire_mgp_packed.txt", "wire_mgp_marker.txt"]
MGP_VECTORS = [pytest.param(v, id=f"{file[5:-4]}-{v.name}") for file in MGP_FILES for v in read_vectors(file)]
MTP_VECTORS = [pytest.param(v, id=v.name) for v in read_vectors("wire_mtp.txt")]
GOOD_MGP = [p for p in MGP_VECTORS if p.values[0].expect == wire.ParseError.none]
GOOD_MTP = [p for p in MTP_VECTORS if p.values[0].expect == wire.ParseError.none]


def event_records(packet: wire.MgpPacket) -> list[wire.EventRecord]:
    return [
        wire.EventRecord(int(e["timestamp"]), int(e["fine_time"]), int(e["event_number"]), packet.hits_of(i).tolist())
        for i, e in enumerate(packet.events)
    ]


def test_dtypes_have_the_sizes_of_the_wire() -> None:
    assert wire.MGP_PACKET.itemsize == 1168
    assert wire.MGP_EVENT.itemsize == 72
    assert wire.MGP_HEADER.itemsize == 16
    assert wire.MGP_EVENT_HEADER.itemsize == 8
    assert wire.MTP_HEADER.itemsize == 8
    assert [wire.MGP_PACKET.fields[name][1] for name in wire.MGP_PACKET.names] == [0, 1, 2, 3, 4, 8, 12, 16]
    assert [wire.MGP_EVENT.fields[name][1] for name in wire.MGP_EVENT.names] == [0, 4, 5, 6, 8]


@pytest.mark.parametrize("vector", read_vectors("wire_fletcher32.txt"), ids=lambda v: v.name)
def test_fletcher32(vector: Vector) -> None:
    assert wire.fletcher32(vector.payload) == vector.number("fletcher32") == slow_fletcher32(vector.payload)


@given(st.binary(max_size=1500))
def test_fletcher32_is_the_definition(data: bytes) -> None:
    assert wire.fletcher32(data) == slow_fletcher32(data)


@pytest.mark.parametrize("vector", MGP_VECTORS)
def test_mgp_vector_is_judged_as_it_says(vector: Vector) -> None:
    assert wire.check_mgp(vector.payload) == vector.expect
    if vector.expect != wire.ParseError.none:
        with pytest.raises(wire.WireError) as caught:
            wire.parse_mgp(vector.payload)
        assert caught.value.reason == vector.expect


@pytest.mark.parametrize("vector", GOOD_MGP)
def test_mgp_vector_reads_and_builds(vector: Vector) -> None:
    packet = wire.parse_mgp(vector.payload)
    for key in ("source_id", "source_sub_id", "sequence", "send_time_ns"):
        assert getattr(packet, key) == vector.number(key)
    assert packet.layout | packet.run_start << 4 | packet.run_end << 5 == vector.number("format")
    assert len(packet.events) == vector.number("event_count")
    assert packet.is_marker == (vector.number("event_count") == 0)
    head = {
        "source_id": packet.source_id,
        "source_sub_id": packet.source_sub_id,
        "layout": packet.layout,
        "sequence": packet.sequence,
        "send_time_ns": packet.send_time_ns,
        "run_start": packet.run_start,
        "run_end": packet.run_end,
    }
    if packet.is_marker:
        assert packet.next_event_number == vector.number("next_event_number")
        assert wire.build_marker(packet.next_event_number, **head) == vector.payload
        return
    expected = [wire.EventRecord(line[0], line[1], line[2], line[3:]) for line in vector.lists("event")]
    assert event_records(packet) == expected
    assert wire.build_mgp(expected, **head, packet_bytes=len(vector.payload)) == vector.payload


@pytest.mark.parametrize("vector", GOOD_MGP)
def test_mgp_truncations_are_refused(vector: Vector) -> None:
    for length in range(len(vector.payload)):
        assert wire.check_mgp(vector.payload[:length]) != wire.ParseError.none


@settings(max_examples=300)
@given(st.sampled_from([p.values[0].payload for p in GOOD_MGP]), st.data())
def test_mgp_turned_bits_are_refused(payload: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, 8 * len(payload) - 1))
    broken = bytearray(payload)
    broken[bit // 8] ^= 1 << bit % 8
    assert wire.check_mgp(bytes(broken)) != wire.ParseError.none


U8, U16, U32 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32))


def events(hits: st.SearchStrategy[list[int]], count: int) -> st.SearchStrategy[list[wire.EventRecord]]:
    return st.lists(st.builds(wire.EventRecord, U32, U8, U16, hits), min_size=1, max_size=count)


@settings(max_examples=60, deadline=None)
@given(events(st.lists(U16, max_size=32), 16), U8, U8, U32, U32, st.booleans(), st.booleans())
def test_padded_round_trip(
    records: list[wire.EventRecord], source: int, sub_id: int, sequence: int, time: int, start: bool, end: bool
) -> None:
    payload = wire.build_mgp(
        records, source_id=source, source_sub_id=sub_id, sequence=sequence, send_time_ns=time, run_start=start, run_end=end
    )
    packet = wire.parse_mgp(payload)
    assert event_records(packet) == records
    assert (packet.source_id, packet.source_sub_id, packet.sequence, packet.send_time_ns) == (source, sub_id, sequence, time)
    assert (packet.run_start, packet.run_end) == (start, end)
    view = wire.view_packets(payload)
    assert view.shape == (1,)
    assert int(wire.mgp_checksums(view)[0]) == int(view["checksum"][0]) == slow_fletcher32(payload[:12] + payload[16:])


@settings(max_examples=60, deadline=None)
@given(events(st.lists(st.integers(0, 511), max_size=80), 12), st.integers(0, 3), st.integers(0, 1472))
def test_packed_round_trip(records: list[wire.EventRecord], board: int, packet_bytes: int) -> None:
    payload = wire.build_mgp(records, source_id=0x1C, source_sub_id=board, layout=wire.MgpLayout.packed, packet_bytes=packet_bytes)
    assert len(payload) % 2 == 0
    assert len(payload) >= packet_bytes
    packet = wire.parse_mgp(payload)
    assert [(r.timestamp, r.fine_time, r.event_number) for r in event_records(packet)] == [
        (r.timestamp, r.fine_time, r.event_number) for r in records
    ]
    assert [r.hits for r in event_records(packet)] == [[board * 512 + i for i in r.hits] for r in records]


@given(st.binary(max_size=1500), st.booleans())
def test_any_bytes_are_refused_or_read(data: bytes, seal: bool) -> None:
    if seal and len(data) >= 16:
        data = data[:12] + slow_fletcher32(data[:12] + data[16:]).to_bytes(4, "little") + data[16:]
    if wire.check_mgp(data) == wire.ParseError.none:
        wire.parse_mgp(data)
    if wire.check_mtp(data) == wire.ParseError.none:
        wire.parse_mtp(data)


def test_packed_ids_literal() -> None:
    assert wire.pack_ids([0, 1, 511, 256]) == bytes([0x00, 0x02, 0xFC, 0x07, 0x08])
    assert wire.unpack_ids(bytes([0x00, 0x02, 0xFC, 0x07, 0x08]), 4, 2).tolist() == [1024, 1025, 1535, 1280]


def test_hits_literal() -> None:
    hits = np.array([0x0005, 0xF9E8, 0x7FFF, 0x8000], np.uint16)
    assert wire.hit_channels(hits).tolist() == [5, 0x1E8, 2047, 0]
    assert wire.hit_times(hits).tolist() == [0, -1, 15, -16]
    assert wire.make_hits([5, 0x1E8, 2047, 0], [0, -1, 15, -16]).tolist() == hits.tolist()


def test_what_does_not_fit_is_refused() -> None:
    head = {"source_id": 0x1C, "source_sub_id": 0}
    with pytest.raises(ValueError, match="too many hits"):
        wire.build_mgp([wire.EventRecord(0, 0, 0, [0] * 33)], **head)
    with pytest.raises(ValueError, match="no such packet"):
        wire.build_mgp([], **head)
    with pytest.raises(ValueError, match="no such packet"):
        wire.build_mgp([wire.EventRecord(0, 0, 0, [])] * 17, **head)
    with pytest.raises(ValueError, match="no such packet"):
        wire.build_mgp([wire.EventRecord(0, 0, 0, [])] * 183, **head, layout=wire.MgpLayout.packed)
    with pytest.raises(ValueError, match="start or end"):
        wire.build_marker(0, **head)
    with pytest.raises(ValueError, match="0x0100"):
        wire.build_mtp(np.array([(0, 0, 0xFF)], wire.PRIMITIVE), **head, first_timestamp=0)


@pytest.mark.parametrize("vector", MTP_VECTORS)
def test_mtp_vector(vector: Vector) -> None:
    assert wire.check_mtp(vector.payload) == vector.expect
    if vector.expect != wire.ParseError.none:
        with pytest.raises(wire.WireError):
            wire.parse_mtp(vector.payload)
        return
    packet = wire.parse_mtp(vector.payload)
    for key in ("source_id", "source_sub_id", "first_timestamp"):
        assert getattr(packet, key) == vector.number(key)
    assert [list(p) for p in packet.primitives.tolist()] == vector.lists("primitive")
    if vector.name != "timestamp_word_last":  # a builder never makes one
        built = wire.build_mtp(
            packet.primitives,
            source_id=packet.source_id,
            source_sub_id=packet.source_sub_id,
            first_timestamp=packet.first_timestamp,
        )
        assert built == vector.payload


@pytest.mark.parametrize("vector", GOOD_MTP)
def test_mtp_truncations_are_refused(vector: Vector) -> None:
    for length in range(len(vector.payload)):
        assert wire.check_mtp(vector.payload[:length]) != wire.ParseError.none


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(U32, U8, st.integers(0x0100, 0xFFFF)), max_size=180), U8, U8, U32)
def test_mtp_round_trip(rows: list[tuple[int, int, int]], source: int, sub_id: int, first: int) -> None:
    primitives = np.array(rows, wire.PRIMITIVE)
    packet = wire.parse_mtp(wire.build_mtp(primitives, source_id=source, source_sub_id=sub_id, first_timestamp=first))
    assert packet.primitives.tolist() == primitives.tolist()
    assert (packet.source_id, packet.source_sub_id, packet.first_timestamp) == (source, sub_id, first & ~0xFF)


def test_primitive_id_literal() -> None:
    # 0x6F54: 20 hits, one ring, found, electron-like, radius class 11 (189.65 mm / 16)
    meaning = wire.decode_primitive_ids([0x6F54, 0x4000])
    assert meaning[0].tolist() == (20, 1, True, True, 11, False)
    assert meaning[1].tolist() == (0, 0, False, False, 0, False)


def test_primitive_ids_round_trip() -> None:
    ids = np.arange(65536, dtype=np.uint16)
    ids = ids[ids & (1 << 14) != 0]
    assert (wire.encode_primitive_ids(wire.decode_primitive_ids(ids)) == ids).all()


@given(st.integers(0, 2**60))
def test_nanoseconds_come_back(ns: int) -> None:
    assert wire.ns_from_ticks(wire.ticks_from_ns(ns)) == ns


def test_ticks_literal() -> None:
    assert wire.ticks(0x01020304, 0x80) == 0x0102030480
    assert wire.ns_from_ticks(256_000_000_000) == 24_951_059_536
    assert wire.ticks_from_ns(24_951_059_536) == 256_000_000_000
