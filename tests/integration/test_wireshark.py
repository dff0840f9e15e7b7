# SPDX-License-Identifier: Apache-2.0
"""The Wireshark dissectors, run by tshark, against the Python readers: every field of every packet, and no Lua error whatever the bytes."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loops import ROOT, emulator_config, engine_config, free_ports
from nanet import wire
from nanet.run import emulate
from nanet.run.process import EngineProcess
from nanet.wire import l0, m2egp, mep

SCRIPT = ROOT / "extras" / "wireshark" / "nanet.lua"
VECTORS = ROOT / "tests" / "vectors"
PORTS = {"mgp": 6200, "m2egp": 6210, "mtp": 6300, "l0": 6500, "mep": 6220}
OPTIONS = ("-o", "nanet.m2egp.ports:6210", "-o", "nanet.mep.ports:6220")  # the others are their defaults
CHECKS: dict[str, Callable[[bytes], wire.ParseError]] = {
    "mgp": wire.check_mgp, "m2egp": m2egp.check_m2egp, "mtp": wire.check_mtp, "l0": l0.check, "mep": mep.check_mep
}  # fmt: skip
FILES = {
    "wire_mgp_padded": "mgp", "wire_mgp_packed": "mgp", "wire_mgp_marker": "mgp", "wire_m2egp": "m2egp", "wire_mtp": "mtp",
    "wire_l0_decision": "l0", "wire_mep": "mep",
}  # fmt: skip
REFUSED_EXPERTS = {1: "bad_length", 2: "bad_format", 3: "bad_checksum"}


@dataclass(frozen=True)
class Datagram:
    """One UDP payload. captured_bytes: of the IP packet; None: all."""

    payload: bytes
    port: int
    from_port: int = 40000
    captured_bytes: int | None = None


def write_pcap(file: Path, datagrams: Sequence[Datagram]) -> Path:
    """A nanosecond pcap file of raw IPv4 packets, a millisecond apart."""
    out = bytearray(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101))
    for number, one in enumerate(datagrams):
        udp_bytes = 8 + len(one.payload)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + udp_bytes, number & 0xFFFF, 0x4000, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
        packet = ip + struct.pack(">HHHH", one.from_port, one.port, udp_bytes, 0) + one.payload
        captured = packet[: one.captured_bytes]
        out += struct.pack("<IIII", number // 1000, number % 1000 * 1_000_000, len(captured), len(packet)) + captured
    file.write_bytes(out)
    return file


def tshark(file: Path, *arguments: str) -> str:
    """What tshark prints of a file, with no configuration and no plugin but ours. Not as root: Wireshark 4.4 takes no script from root."""
    user: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o777)
        script, capture = (Path(shutil.copy(path, place)) for path in (SCRIPT, file))
        for path in (script, capture):
            path.chmod(0o644)
        command = ["tshark", "-X", f"lua_script:{script}", "-r", str(capture), *OPTIONS, *arguments]
        environment = {
            "HOME": folder,
            "XDG_CONFIG_HOME": folder,
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LC_ALL": "C",
        }
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=folder, timeout=200, check=False, **user
        )
    assert done.returncode == 0, done.stderr
    assert "lua" not in done.stderr.lower(), done.stderr
    assert "Lua Error" not in done.stdout, done.stdout[:2000]
    return done.stdout


def trees(file: Path, *arguments: str) -> list[ET.Element]:
    """A tree of items for each packet."""
    return list(ET.fromstring(tshark(file, "-T", "pdml", *arguments)).iter("packet"))


def columns(file: Path, fields: Sequence[str], *arguments: str) -> list[dict[str, list[str]]]:
    """For each packet, all values of each field."""
    text = tshark(file, "-T", "fields", "-E", "aggregator=|", *(word for field in fields for word in ("-e", field)), *arguments)
    return [dict(zip(fields, (v.split("|") if v else [] for v in line.split("\t")), strict=True)) for line in text.splitlines()]


def values(tree: ET.Element, name: str) -> list[int]:
    """All values of a field below an item, in order."""
    shown = [item.attrib["show"] for item in tree.iter("field") if item.attrib["name"] == name]
    words = {"False": 0, "True": 1}  # of a flag, since Wireshark 4.4
    return [words[text] if text in words else int(text, 0) for text in shown]


def children(tree: ET.Element, name: str) -> list[ET.Element]:
    """The items of that name directly below an item."""
    return [item for item in tree if item.attrib["name"] == name]


def protocol_of(packet: ET.Element, name: str) -> ET.Element:
    (found,) = [item for item in packet.iter("proto") if item.attrib["name"] == f"nanet.{name}"]
    return found


def times_ns(tree: ET.Element, name: str) -> list[int]:
    shown = [item.attrib["show"] for item in tree.iter("field") if item.attrib["name"] == name]
    return [int(whole) * 1_000_000_000 + int(fraction) for whole, fraction in (text.split(".") for text in shown)]


# --- every vector -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vector:
    name: str
    protocol: str
    payload: bytes


def read_vectors() -> Iterator[Vector]:
    for file, protocol in FILES.items():
        for block in (VECTORS / f"{file}.txt").read_text().split("\n[")[1:]:
            name, payload = block[: block.index("]")], b""
            for line in block.splitlines():
                key, _, value = line.partition(" = ")
                payload += bytes.fromhex(value) if key == "hex" else bytes(int(value)) if key == "zeros" else b""
            yield Vector(f"{file[5:]}-{name}", protocol, payload)


ALL_VECTORS = list(read_vectors())
GOOD = [vector for vector in ALL_VECTORS if CHECKS[vector.protocol](vector.payload) == wire.ParseError.none]


@pytest.fixture(scope="module")
def dissected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ET.Element]:
    """The tree of each vector, by name. Each comes from a port of its own, so that none is a gap of another."""
    datagrams = [Datagram(v.payload, PORTS[v.protocol], 41000 + i) for i, v in enumerate(ALL_VECTORS)]
    packets = trees(write_pcap(tmp_path_factory.mktemp("vectors") / "vectors.pcap", datagrams))
    return {vector.name: packet for vector, packet in zip(ALL_VECTORS, packets, strict=True)}


@pytest.mark.parametrize("vector", ALL_VECTORS, ids=lambda v: v.name)
def test_every_vector_is_judged_as_the_reader_judges_it(vector: Vector, dissected: dict[str, ET.Element]) -> None:
    packet = dissected[vector.name]
    if not vector.payload:  # Wireshark gives no dissector an empty datagram
        assert not [item for item in packet.iter("proto") if item.attrib["name"].startswith("nanet")]
        return
    tree = protocol_of(packet, vector.protocol)
    expected = CHECKS[vector.protocol](vector.payload)
    assert values(tree, f"nanet.{vector.protocol}.refused") == [expected]
    experts = {item.attrib["name"] for item in tree.iter("field") if item.attrib["name"] != "nanet.mep.bad_data"}
    assert {name for code, name in REFUSED_EXPERTS.items() if f"nanet.{vector.protocol}.{name}" in experts} == (
        {REFUSED_EXPERTS[expected]} if expected else set()
    )


@pytest.mark.parametrize("vector", GOOD, ids=lambda v: v.name)
def test_every_field_is_what_the_reader_reads(vector: Vector, dissected: dict[str, ET.Element]) -> None:
    SAME[vector.protocol](protocol_of(dissected[vector.name], vector.protocol), vector.payload)


def same_mgp(tree: ET.Element, payload: bytes, name: str = "mgp") -> None:
    packet = wire.parse_mgp(payload) if name == "mgp" else m2egp.parse_m2egp(payload)
    one = f"nanet.{name}."
    layout = packet.layout if isinstance(packet, wire.MgpPacket) else 3
    for key in ("source_id", "source_sub_id", "sequence", "send_time_ns", "run_start", "run_end"):
        assert values(tree, one + key) == [getattr(packet, key)], key
    assert values(tree, one + "format") == [layout | packet.run_start << 4 | packet.run_end << 5]
    assert (values(tree, one + "layout"), values(tree, one + "reserved")) == ([layout], [0])
    assert values(tree, one + "event_count") == [len(packet.events)]
    checksum = wire.mgp_checksum(payload)
    assert values(tree, one + "checksum") == values(tree, one + "checksum_calculated") == [checksum]
    assert values(tree, one + "checksum.status") == [1]
    assert values(tree, one + "next_event_number") == ([] if packet.next_event_number is None else [packet.next_event_number])
    events = children(tree, one + "event")
    assert len(events) == len(packet.events)
    for i, (event, row) in enumerate(zip(events, packet.events, strict=True)):
        for key, column in (("timestamp",) * 2, ("fine_time",) * 2, ("hit_count",) * 2, ("number", "event_number")):
            assert values(event, f"{one}event.{key}") == [row[column]], key
        ticks = wire.ticks(int(row["timestamp"]), int(row["fine_time"]))
        assert times_ns(event, one + "event.time") == [wire.ns_from_ticks(ticks)]
        same_hits(event, packet.hits_of(i), one + "hit", packed=layout == 2)


def same_hits(event: ET.Element, hits: wire.Words, one: str, *, packed: bool) -> None:
    shown = children(event, f"{one}.id" if packed else one)
    assert len(shown) == len(hits)
    channels = wire.hit_channels(hits)
    assert [values(hit, f"{one}.channel")[0] for hit in shown] == channels.tolist()
    assert [values(hit, f"{one}.board")[0] for hit in shown] == (channels // 512).tolist()
    assert values(event, f"{one}.id") == (channels % 512).tolist()
    times = [] if packed else wire.hit_times(hits).tolist()
    assert values(event, f"{one}.time") == times
    ns = [float(item.attrib["show"]) for item in event.iter("field") if item.attrib["name"] == f"{one}.time_ns"]
    assert ns == pytest.approx([2 * time * wire.TICK_NS for time in times], rel=1e-5)
    for hit, channel in zip(shown, channels.tolist(), strict=True):
        assert f"channel {channel} (board {channel // 512}, id {channel % 512}" in hit.attrib["showname"]
        assert ("no photomultiplier" in hit.attrib["showname"]) == (channel % 512 >= 488)


def same_m2egp(tree: ET.Element, payload: bytes) -> None:
    same_mgp(tree, payload, "m2egp")


def same_mtp(tree: ET.Element, payload: bytes) -> None:
    packet = wire.parse_mtp(payload)
    for key in ("source_id", "source_sub_id", "first_timestamp"):
        assert values(tree, f"nanet.mtp.{key}") == [getattr(packet, key)], key
    assert values(tree, "nanet.mtp.timestamp_high") == [packet.first_timestamp >> 8]
    assert values(tree, "nanet.mtp.length") == [len(payload)]
    assert values(tree, "nanet.mtp.primitive_count") == [len(packet.primitives)]
    words = struct.unpack_from(f"<{len(payload) // 4 - 2}I", payload, 8)
    assert values(tree, "nanet.mtp.timestamp_word") == [word for word in words if word >> 24 == 0]
    assert len(children(tree, "nanet.mtp.primitive")) == len(packet.primitives)
    one = "nanet.mtp.primitive."
    for key in ("timestamp", "fine_time", "id"):
        assert values(tree, one + key) == packet.primitives[key].tolist(), key
    assert values(tree, one + "timestamp_low") == (packet.primitives["timestamp"] & 0xFF).tolist()
    ticks = [wire.ticks(int(p["timestamp"]), int(p["fine_time"])) for p in packet.primitives]
    assert times_ns(tree, one + "time") == [wire.ns_from_ticks(tick) for tick in ticks]
    meaning = wire.decode_primitive_ids(packet.primitives["id"])
    for key in meaning.dtype.names or ():
        assert values(tree, one + key) == meaning[key].tolist(), key


def same_l0(tree: ET.Element, payload: bytes) -> None:
    packet = l0.parse(payload)
    for key in ("source_sub_id", "first_trigger_number"):
        assert values(tree, f"nanet.l0.{key}") == [getattr(packet, key)], key
    count = len(packet.entries)
    assert (values(tree, "nanet.l0.entry_count"), values(tree, "nanet.l0.length")) == ([count], [len(payload)])
    assert values(tree, "nanet.l0.source_id") == [wire.Source.l0tp]
    one = "nanet.l0.entry."
    assert len(children(tree, "nanet.l0.entry")) == count
    assert values(tree, one + "trigger_number") == [(packet.first_trigger_number + i) % (1 << 24) for i in range(count)]
    for key in ("timestamp", "fine_time", "trigger_word"):
        assert values(tree, one + key) == packet.entries[key].tolist(), key
    assert values(tree, one + "matched") == (packet.entries["matched_kind"] & 0x7F).tolist()
    assert values(tree, one + "calibration") == (packet.entries["matched_kind"] >> 7).tolist()
    ticks = [wire.ticks(int(entry["timestamp"]), int(entry["fine_time"])) for entry in packet.entries]
    assert times_ns(tree, one + "time") == [wire.ns_from_ticks(tick) for tick in ticks]


def same_mep(tree: ET.Element, payload: bytes) -> None:
    packet = mep.parse_mep(payload)
    for key in ("first_event_number", "source_id", "source_sub_id"):
        assert values(tree, f"nanet.mep.{key}") == [getattr(packet, key)], key
    assert values(tree, "nanet.mep.length") == [len(payload)]
    assert values(tree, "nanet.mep.event_count") == [len(packet.events)]
    events = children(tree, "nanet.mep.event")
    for item, event in zip(events, packet.events, strict=True):
        assert values(item, "nanet.mep.event.number") == [event.event_number]
        assert values(item, "nanet.mep.event.number_low") == [event.event_number & 0xFF]
        assert values(item, "nanet.mep.event.timestamp") == [event.timestamp]
        assert values(item, "nanet.mep.event.last_of_burst") == [event.last_of_burst]
        assert values(item, "nanet.mep.event.length") == [8 + len(event.data)]
        same_tdc_data(item, event)


def same_tdc_data(item: ET.Element, event: mep.MepEvent) -> None:
    """Edges as the reader finds them; data that it cannot read is marked as such."""
    bad = children(item, "nanet.mep.event.data") and "nanet.mep.bad_data" in {field.attrib["name"] for field in item.iter("field")}
    try:
        hits = mep.tdc_hits(event, 0)
    except wire.WireError:
        assert bad or not event.data
        return
    assert not bad
    kinds, channels = values(item, "nanet.mep.tdc.kind"), iter(values(item, "nanet.mep.tdc.board_channel"))
    edges = [
        (kind, time, next(channels)) for kind, time in zip(kinds, values(item, "nanet.mep.tdc.time"), strict=True) if kind in (4, 5)
    ]
    leading = [(channel, (time - (event.timestamp << 8)) % (1 << 19)) for kind, time, channel in edges if kind == 4]
    assert leading == [(int(hit["channel"]), int(hit["time_ticks"]) % (1 << 19)) for hit in hits]
    assert values(item, "nanet.mep.tdc.trigger_type") == [event.data[1]]
    assert values(item, "nanet.mep.tdc.source_sub_id") == [event.data[2]]


SAME: dict[str, Callable[[ET.Element, bytes], None]] = {
    "mgp": same_mgp, "m2egp": same_m2egp, "mtp": same_mtp, "l0": same_l0, "mep": same_mep
}  # fmt: skip


# --- damage -----------------------------------------------------------------------------------------------------------------


def damaged(rng: random.Random, payload: bytes) -> bytes:
    """The payload with some bits turned, bytes replaced, cut off or put behind."""
    broken = bytearray(payload)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(min(len(broken), rng.choice((8, 24, 1 << 16))))
        broken[place] = rng.choice((broken[place] ^ 1 << rng.randrange(8), 0, 255, rng.randrange(256)))
    if rng.random() < 0.3:
        del broken[rng.randrange(1, len(broken) + 1) :]
    if rng.random() < 0.2:
        broken += rng.randbytes(rng.randrange(1, 9))
    return bytes(broken)


def test_whatever_comes_is_judged_as_the_reader_judges_it(tmp_path: Path) -> None:
    """Damaged packets, random bytes, and random bytes after a header that looks good: no Lua error, and the reader's verdict."""
    rng = random.Random(5)
    datagrams, expected = [], []
    small = [vector for vector in GOOD if len(vector.payload) < 1500]
    for number in range(3000):
        vector = rng.choice(small)
        payload = damaged(rng, vector.payload)
        if number % 3 == 1:
            payload = rng.randbytes(rng.choice((rng.randrange(1, 40), rng.randrange(1, 1500))))
        elif number % 3 == 2:
            payload = vector.payload[: rng.randrange(1, 40)] + rng.randbytes(rng.randrange(1, 200))
        datagrams.append(Datagram(payload, PORTS[vector.protocol]))
        expected.append((vector.protocol, int(CHECKS[vector.protocol](payload))))
    fields = [f"nanet.{name}.refused" for name in CHECKS] + [f"nanet.{p}.{e}" for p in CHECKS for e in REFUSED_EXPERTS.values()]
    seen = columns(write_pcap(tmp_path / "hostile.pcap", datagrams), [*fields, "_ws.expert.message"])
    assert len(seen) == len(expected)
    for (protocol, code), packet in zip(expected, seen, strict=True):
        assert {name: packet[f"nanet.{name}.refused"] for name in CHECKS if packet[f"nanet.{name}.refused"]} == {
            protocol: [str(code)]
        }
        assert not any("Lua" in message for message in packet["_ws.expert.message"])
        if code:
            assert any("nanet refuses this packet" in message for message in packet["_ws.expert.message"])
    assert {code for _, code in expected} == {0, 1, 2, 3}


def test_packets_captured_in_part_are_not_judged(tmp_path: Path) -> None:
    """Every good packet cut by the capture at many places: no verdict, no gap, no Lua error."""
    datagrams = []
    for vector in GOOD:
        lengths = {*range(1, min(90, len(vector.payload))), *range(1, len(vector.payload), 97), len(vector.payload) - 1}
        datagrams += [
            Datagram(vector.payload, PORTS[vector.protocol], captured_bytes=28 + length) for length in sorted(lengths) if length
        ]
    fields = [f"nanet.{p}.{f}" for p in CHECKS for f in ("refused", "gap")]
    cut = [f"nanet.{p}.cut" for p in CHECKS]
    seen = columns(write_pcap(tmp_path / "cut.pcap", datagrams), [*fields, *cut, "_ws.expert.message"])
    for packet in seen:
        assert not any(packet[field] for field in fields)
        assert sum("not judged" in message for message in packet["_ws.expert.message"]) == 1
    assert len(seen) == len(datagrams) > 1000


# --- gaps -------------------------------------------------------------------------------------------------------------------


def packet_of(sequence: int, board: int = 0, **changes: bool) -> bytes:
    event = wire.EventRecord(timestamp=1000 + sequence % 1000, fine_time=0, event_number=sequence % 65536, hits=[1, 2, 3])
    return wire.build_mgp(
        [event], source_id=0x1C, source_sub_id=board, layout=wire.MgpLayout.packed, sequence=sequence % (1 << 32), **changes
    )


def marker(sequence: int, number: int, *, start: bool, board: int = 0) -> bytes:
    return wire.build_marker(number, source_id=0x1C, source_sub_id=board, run_start=start, run_end=not start, sequence=sequence)


@pytest.mark.parametrize("passes", [(), ("-2",)], ids=["one pass", "two passes"])
def test_gaps_in_the_sequence_of_a_source(tmp_path: Path, passes: tuple[str, ...]) -> None:
    """Each source for itself, over the wrap, past repeated and late packets, runs, and damage."""
    top = (1 << 32) - 2
    steps: list[tuple[bytes, int | str]] = [  # packet, and what is said of it: 0 nothing, a number missing, or a kind
        (marker(0, 100, start=True), 0), (marker(0, 100, start=True), 0), (packet_of(0), 0), (packet_of(1), 0), (packet_of(5, 1), 0),
        (packet_of(4), 2), (packet_of(7, 1), 1), (packet_of(2), "reordered"), (packet_of(2), "duplicate"), (packet_of(5), 0),
        (marker(0, 100, start=True), 0), (packet_of(6), 0), (marker(10, 110, start=False), 3), (marker(10, 110, start=False), 0),
        (marker(0, 0, start=True), 0), (packet_of(0), 0), (packet_of(1), 0), (packet_of(3_000_000_000), "restart"),
        (packet_of(top), "restart"), (packet_of(top + 2), 1),
        (packet_of(top + 3), 0), (damaged(random.Random(1), packet_of(top + 4)), "refused"), (packet_of(top + 5), 1),
        (packet_of(50_000_000), 50_000_000 - 4), (packet_of(500_000_000), "restart"),
    ]  # fmt: skip
    file = write_pcap(tmp_path / "gaps.pcap", [Datagram(payload, 6200) for payload, _ in steps])
    kinds = ("gap", "reordered", "duplicate", "restart")
    names = ("refused", "missing", "previous_frame", "repeats_frame", "run_events", "sequence")
    seen = columns(file, [f"nanet.mgp.{name}" for name in names] + ["_ws.expert.message", "_ws.col.Info"], *passes)
    for (_, said), packet in zip(steps, seen, strict=True):
        (info,) = packet["_ws.col.Info"]
        assert packet["nanet.mgp.missing"] == ([str(said)] if isinstance(said, int) and said else [])
        expected = {said: info.endswith(f"[{said}]")} if isinstance(said, str) and said != "refused" else {}
        assert {kind: True for kind in kinds if f"[{kind}]" in info} == expected
        assert (f"[{said} missing before]" in info) == (isinstance(said, int) and said > 0)
        assert bool(packet["_ws.expert.message"]) == bool(said)
    assert seen[5]["_ws.expert.message"] == ["2 packets missing before this packet"]
    assert seen[8]["nanet.mgp.repeats_frame"] == ["8"]
    assert [packet["nanet.mgp.previous_frame"] for packet in seen[:7]] == [[], ["1"], ["2"], ["3"], [], ["4"], ["5"]]
    assert [packet["nanet.mgp.run_events"] for packet in seen[12:14]] == [["10"]] * 2


def test_triggers_missing_between_decisions(tmp_path: Path) -> None:
    def decisions(number: int, count: int) -> Datagram:
        entries = [(1, 2, 3, 4)] * count
        return Datagram(l0.build(np.array(entries, l0.ENTRY), source_sub_id=0, first_trigger_number=number), 6500)

    steps = [decisions((1 << 24) - 3, 2), decisions((1 << 24) - 1, 5), decisions(4, 1), decisions(7, 0), decisions(7, 1)]
    seen = columns(write_pcap(tmp_path / "l0.pcap", steps), ["nanet.l0.missing", "_ws.expert.message"])
    assert [packet["nanet.l0.missing"] for packet in seen] == [[], [], [], ["2"], []]
    assert seen[3]["_ws.expert.message"] == ["2 triggers missing before this packet"]


def test_several_packets_captured_as_one(tmp_path: Path) -> None:
    """What a capture on a host that parts or joins packets elsewhere holds: all packets are read, and gaps within are seen."""
    by_name = {vector.name: vector.payload for vector in GOOD}
    padded = by_name["mgp_padded-one_event"]
    mtp, decision = by_name["mtp-one"], by_name["l0_decision-one_physics"]
    merged = m2egp.build_m2egp([wire.EventRecord(1, 2, 3, [4])] * 2, source_id=1, source_sub_id=0, packet_bytes=600)
    steps: list[tuple[bytes, str, list[int]]] = [  # payload, protocol, verdict of each packet
        (padded * 3, "mgp", [0, 0, 0]),
        (b"".join(packet_of(n) for n in (0, 1, 3, 4)), "mgp", [0] * 4),
        (marker(5, 5, start=False) * 3, "mgp", [0] * 3),
        (padded * 2 + packet_of(1, 2), "mgp", [0, 0, 0]),
        (padded + bytes(1168) + padded, "mgp", [0, 2, 0]),
        (packet_of(1, 3) + bytes(2) + packet_of(2, 3)[:-2], "mgp", [3]),
        (merged * 3 + merged[:40], "m2egp", [3]),
        (merged * 16 + merged[:40], "m2egp", [0] * 16 + [3]),
        (mtp * 200, "mtp", [0] * 200),
        (mtp * 2, "mtp", [0, 0]),
        (mtp * 2 + b"1234", "mtp", [1]),
        (decision * 3, "l0", [0] * 3),
        (padded * 3, "mgp", []),
    ]
    datagrams = [Datagram(payload, PORTS[protocol], 41000 + i) for i, (payload, protocol, _) in enumerate(steps)]
    datagrams[-1] = Datagram(steps[-1][0], 6200, captured_bytes=28 + 2000)
    file = write_pcap(tmp_path / "joined.pcap", datagrams)
    for passes in ((), ("-2",)):
        seen = columns(file, [*(f"nanet.{name}.refused" for name in CHECKS), "nanet.mgp.missing", "_ws.col.Info"], *passes)
        for (_, protocol, verdicts), packet in zip(steps, seen, strict=True):
            assert [int(code) for code in packet[f"nanet.{protocol}.refused"]] == verdicts
            assert f"{len(verdicts)} packets in one" in packet["_ws.col.Info"][0] or len(verdicts) < 2
        assert [packet["nanet.mgp.missing"] for packet in seen if packet["nanet.mgp.missing"]] == [["1"]]


# --- a recording of the engine, and the preferences ---------------------------------------------------------------------------


def test_a_recording_of_the_engine(tmp_path: Path) -> None:
    """Everything that boards sent to the engine is read, nothing is marked; then a tenth of it is taken out, and that is marked."""
    file = tmp_path / "live.pcap"
    (port,) = free_ports(1)
    with EngineProcess(engine_config(port, None, 4, link={"record": {"file": str(file)}})) as process:
        sent = emulate.run(emulator_config(port, None, 4, events_total=1600, layout="packed"))
        process.stop()
    fields = [
        "nanet.mgp.source_sub_id",
        "nanet.mgp.sequence",
        "nanet.mgp.event_count",
        "nanet.mgp.run_events",
        "_ws.expert.message",
    ]
    decode = ("-d", f"udp.port=={port},nanet.mgp")
    seen = columns(file, [*fields, "udp.payload", "udp.srcport"], *decode)
    assert sum(packet["nanet.mgp.event_count"] != ["0"] for packet in seen) == sent["packets_sent"]
    assert sum(int(packet["nanet.mgp.event_count"][0]) for packet in seen) == 4 * 1600
    assert [packet["_ws.expert.message"] for packet in seen] == [[]] * len(seen)
    ends = [packet["nanet.mgp.run_events"] for packet in seen if packet["nanet.mgp.run_events"]]
    assert ends == [["1600"]] * (sent["markers_sent"] - 12)  # all but the three start markers of each board
    for packet in seen:
        read = wire.parse_mgp(bytes.fromhex(packet["udp.payload"][0]))
        assert (packet["nanet.mgp.source_sub_id"], packet["nanet.mgp.sequence"]) == (
            [str(read.source_sub_id)],
            [str(read.sequence)],
        )

    rest, lost = [], 0
    for number, packet in enumerate(seen):
        is_lost = number % 10 == 5 and packet["nanet.mgp.event_count"] != ["0"]
        lost += is_lost
        if not is_lost:
            rest.append(Datagram(bytes.fromhex(packet["udp.payload"][0]), 6200, int(packet["udp.srcport"][0])))
    thinned = columns(write_pcap(tmp_path / "thinned.pcap", rest), ["nanet.mgp.missing"])
    assert sum(int(packet["nanet.mgp.missing"][0]) for packet in thinned if packet["nanet.mgp.missing"]) == lost > 0


def test_nothing_is_guessed_unless_asked_for(tmp_path: Path) -> None:
    good, bad = packet_of(1), bytearray(packet_of(2))
    bad[20] ^= 1
    datagrams = [Datagram(good, 7000), Datagram(bytes(bad), 7000), Datagram(random.Random(3).randbytes(64), 7000)]
    file = write_pcap(tmp_path / "elsewhere.pcap", datagrams)
    fields = ["nanet.mgp.refused", "nanet.mgp.checksum.status", "nanet.mgp.hit.channel", "nanet.mgp.event.hit_count"]

    def refused(*options: str) -> list[list[str]]:
        return [packet["nanet.mgp.refused"] for packet in columns(file, fields, *options)]

    assert refused() == [[], [], []]
    assert refused("-o", "nanet.mgp.heuristic:TRUE") == [["0"], [], []]
    assert refused("-d", "udp.port==7000,nanet.mgp")[:2] == [["0"], ["3"]]
    ports = ("-o", "nanet.mgp.ports:6200,6999-7001")
    assert refused(*ports)[:2] == [["0"], ["3"]]
    assert columns(file, fields, *ports)[0]["nanet.mgp.hit.channel"] == ["1", "2", "3"]
    without = columns(file, fields, *ports, "-o", "nanet.mgp.hits:FALSE", "-o", "nanet.mgp.checksum:FALSE")
    assert [packet["nanet.mgp.refused"] for packet in without][:2] == [["0"], ["0"]]
    assert [packet["nanet.mgp.checksum.status"] for packet in without][:2] == [["2"], ["2"]]
    assert (without[0]["nanet.mgp.hit.channel"], without[0]["nanet.mgp.event.hit_count"]) == ([], ["3"])


def test_the_destination_says_which_protocol_it_is(tmp_path: Path) -> None:
    """An answer from the port where boards send to (`source_port: listen`) is MTP, though that port is MGP's."""
    (answer,) = [vector for vector in GOOD if vector.name == "mtp-one"]
    datagrams = [Datagram(answer.payload, 6300, 6200), Datagram(packet_of(1), 6200, 6300)]
    seen = columns(write_pcap(tmp_path / "ports.pcap", datagrams), ["nanet.mgp.refused", "nanet.mtp.refused"])
    assert [(packet["nanet.mgp.refused"], packet["nanet.mtp.refused"]) for packet in seen] == [([], ["0"]), (["0"], [])]
