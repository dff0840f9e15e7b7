# SPDX-License-Identifier: Apache-2.0
"""Declared formats: those that are shipped against packets by hand, packets that are made against the decoder, and the commands."""

from __future__ import annotations

import itertools
import re
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from nanet import _core
from nanet.config import formats
from nanet.config.components import Format
from nanet.config.engine import EngineConfig
from nanet.config.errors import ConfigError, validated
from nanet.format import dissector, make, show
from nanet.format.expression import solve, value_of
from nanet.format.make import Faults, Made, MakeOptions

ROOT = Path(__file__).resolve().parent.parent.parent
MGP = str(ROOT / "examples" / "formats" / "mgp.yaml")
ALL = [*formats.shipped_names(), MGP]
TTDC = struct.pack(">IIIIIII", 0x54544443, 7, 3, 1000, 62_499_999, 808_000_000, 0) + b"\x05\0\0\x01\0\x20" * 3
WIB = (1 | 3 << 6 | 5 << 12 | 2 << 22 | 9 << 26 | 4095 << 40 | 0x382 << 52).to_bytes(8, "little") + (777).to_bytes(8, "little")
VDIF = bytes.fromhex("772cdb00 0000001c 75020020 fcff0104 10008003 edfeabac 00000000 00000000")  # baseband's sample.vdif begins so

BY_HAND = {  # the format, the packet, and what it means
    "ejfat": (struct.pack(">BBHIIQ", 0x10, 0, 9, 2000, 5000, 77) + bytes(1000),
              {"stream": 9, "unit": 77, "place": 2000, "unit_bytes": 5000, "payload_offset": 20, "payload_bytes": 1000}),
    "spead-64-48": (struct.pack(">BBBBHH5Q", 0x53, 4, 2, 6, 0, 5, *(1 << 63 | item << 48 | value for item, value in ((1, 8), (2, 4096), (3, 512), (4, 256), (6, 2)))) + bytes(256),
                    {"unit": 8, "place": 512, "unit_bytes": 4096, "stop": True, "payload_offset": 48, "payload_bytes": 256}),
    "jungfrau": (struct.pack("<QIIQQHHHHIHBB", 5, 0, 127, 0, 123, 0, 1, 2, 0, 0, 0, 3, 2) + bytes(8192),
                 {"stream": 1 << 16 | 2, "unit": 5, "place": 127 * 8192, "unit_bytes": 1 << 20, "unit_packets": 128, "time": 123}),
    "moench": (struct.pack("<QIIQQHHHHIHBB", 5, 0, 49, 0, 123, 0, 1, 2, 0, 0, 0, 5, 2) + bytes(6400),
               {"place": 49 * 6400, "unit_bytes": 320_000}),
    "eiger-16": (struct.pack("<QIIQQHHHHIHBB", 5, 0, 63, 0, 123, 0, 1, 2, 0, 0, 0, 1, 2) + bytes(4096),
                 {"place": 63 * 4096, "unit_bytes": 1 << 18}),
    "dune-wibeth": (WIB + bytes(16 + 7168 + 1), {"stream": 5 << 12 | 2 << 8 | 9, "sequence": 4095, "time": 777, "payload_bytes": 7168}),
    "vdif": (VDIF + bytes(5000), {"unit": 14363767 << 24, "stream": 65532 << 10 | 1, "time": 14363767, "payload_bytes": 5000}),
    "vtp": ((42).to_bytes(8, "little") + VDIF + bytes(5000), {"sequence": 42, "unit": 14363767 << 24, "payload_offset": 40, "payload_bytes": 5000}),
    "gvsp": (struct.pack(">HHI", 0, 6, 2 << 24 | 11) + bytes(8), {"unit": 6, "unit_packets": 10, "last": True, "payload_bytes": 0}),
    "km3net-clb": (TTDC, {"stream": 808_000_000, "time": 1000 * 62_500_000 + 62_499_999, "payload_bytes": 18}),
    "km3-floor": (struct.pack(">IBBBBIIIIII", 0x4B4D3346, 1, 14, 1, 1, 99, 7, 1000, 12_500_000, 1440, 41) + bytes(18),
                  {"stream": 1 << 11 | 14 << 3 | 1, "unit": 99 << 32 | 7, "place": 1440, "sequence": 41, "last": True,
                   "time": 1000 * 62_500_000 + 12_500_000, "payload_offset": 32, "payload_bytes": 18}),
    "km3-event": (struct.pack(">IIIIIIIIIIIIq", 0x4B4D3345, 99, 7, 12, 1000, 12_500_000, 0, 36, 1, 5, 3, 0, 2048) + bytes(12),
                  {"unit": 99 << 32 | 12, "place": 0, "unit_bytes": 36, "time": 1000 * 62_500_000 + 12_500_000, "payload_offset": 32,
                   "payload_bytes": 36}),
    "lofar": (struct.pack("<BHBHBBII", 3, 1 << 8 | 1 << 7 | 4, 0, 613, 122, 16, 1_656_466_200, 26) + bytes(7808),
              {"stream": 613 << 5 | 4, "unit": 1_656_466_200 << 32 | 26, "payload_bytes": 7808}),
    "rtp": (struct.pack(">BBHIIIHHI", 0x91, 0xE0, 500, 1, 42, 7, 0xBEDE, 1, 0) + bytes(100),
            {"stream": 42, "sequence": 500, "last": True, "payload_offset": 24, "payload_bytes": 100}),
    "ess": (struct.pack("<BB3sBHBBIIIIIH", 0, 1, b"ESS", 0x34, 52, 2, 0, 10, 88_052_499, 9, 0, 12, 0) + bytes(20),
            {"stream": 0x34 << 8 | 2, "sequence": 12, "time": 10 * 88_052_500 + 88_052_499, "payload_bytes": 20}),
    "chime": (struct.pack("<HHIHHI", 0, 3 | 9 << 4 | 2 << 8, 0, 1, 0, 5) + bytes(4096 + 774),
              {"stream": 2 << 8 | 9 << 4 | 3, "unit": 1 << 32 | 5, "payload_offset": 16, "payload_bytes": 4096}),
    "dune-tde": (((1 | 11 << 6 | 5 << 12 | 2 << 22 | 9 << 26 | 7 << 40).to_bytes(8, "little") + struct.pack("<QQQ", 777, 200 | 3 << 12, 6) + bytes(8948)),
                 {"stream": 5 << 12 | 2 << 8 | 9, "sequence": 7, "time": 777, "payload_offset": 32, "payload_bytes": 8948}),
    "ejfat-sync": (struct.pack(">2sBBIQIQ", b"LC", 2, 0, 17, 1 << 40, 1000, 1_800_000_000_123_456_789),
                   {"stream": 17, "time": 1_800_000_000_123_456_789, "payload_offset": 28, "payload_bytes": 0}),
    "hsb": (struct.pack(">BBHIIQIII", 0x2B, 0, 0xFFFF, 0x12, 0xABCDEF, 0x7F0000001000, 5, 48, 99) + bytes(48 + 4),
            {"stream": 0x12, "sequence": 0xABCDEF, "last": True, "payload_offset": 32, "payload_bytes": 48}),
    "vita-49": (struct.pack(">IIQIQ", 1 << 28 | 1 << 27 | 1 << 26 | 1 << 22 | 2 << 20 | 13 << 16 | 20, 42, 0, 1000, 500) + bytes(52 - 4 + 4),
                {"stream": 42, "sequence": 13, "payload_offset": 28, "payload_bytes": 48}),
    "uhd-chdr": (struct.pack("<QQ", 7 << 53 | 9 << 32 | 1016 << 16 | 0x1234, 5) + bytes(1000), {"stream": 0x1234, "sequence": 9, "payload_offset": 16}),
}  # fmt: skip


@pytest.mark.parametrize("name", formats.shipped_names())
def test_a_packet_by_hand(name: str) -> None:
    packet, expected = BY_HAND[name]
    refusal, meaning = _core.FormatDecoder(formats.load(name).keys()).decode(packet)
    assert refusal == ""
    assert {key: meaning[key] for key in expected} == expected


@pytest.mark.parametrize("name", formats.shipped_names())
def test_every_truncation_is_refused_or_means_less(name: str) -> None:
    packet, _ = BY_HAND[name]
    decoder = _core.FormatDecoder(formats.load(name).keys())
    refused = 0
    for size in range(min(len(packet), 64)):
        refusal, meaning = decoder.decode(packet[:size])
        refused += bool(refusal)
        assert (meaning is None) == bool(refusal)
        assert bool(decoder.explain(packet[:size])) == bool(refusal)
        if meaning is not None:
            assert meaning["payload_offset"] + meaning["payload_bytes"] <= size
    assert refused > 0


def test_every_shipped_format_says_where_its_definition_stands() -> None:
    assert set(BY_HAND) == set(formats.shipped_names())
    for name in formats.shipped_names():
        about = formats.load(name).declaration.about
        assert "(" in about
        assert len(about) > 30


@pytest.mark.parametrize("name", ALL)
def test_made_packets_are_accepted_and_mean_what_was_meant(name: str) -> None:
    declared = formats.load(name)
    streams = 3 if declared.declaration.stream else 1
    made, options = Made(), MakeOptions(packets=600, streams=streams, seed=5)
    decoder, seen, sequences, places = _core.FormatDecoder(declared.keys()), Counter[int](), {}, set()
    has_units = decoder.facts()["has_unit"]
    for packet in make.packets(declared, options, Faults(), made):
        refusal, meaning = decoder.decode(packet)
        assert refusal == "", (refusal, decoder.explain(packet), packet[:64].hex())
        stream = meaning["stream"]
        seen[stream] += 1
        sequences.setdefault(stream, []).append(meaning["sequence"])
        if has_units and meaning["payload_bytes"]:
            places.add((stream, meaning["unit"], meaning["place"]))
            assert not meaning["stop"]
    assert made.sent == made.valid == 600
    assert len(seen) == streams
    assert set(seen.values()) == {600 // streams}
    facts = decoder.facts()
    if facts["has_sequence"]:
        modulo = facts["sequence_modulo"] or 1 << 64
        assert all((b - a) % modulo == facts["sequence_step"] for one in sequences.values() for a, b in itertools.pairwise(one))
    if has_units and (declared.declaration.place or decoder.facts()["has_packet_index"]):
        assert len(places) > 400  # no place of a unit twice


def test_the_same_seed_makes_the_same_packets_and_faults_are_counted() -> None:
    declared, faults = formats.load("ejfat"), Faults(drop=0.1, duplicate=0.1, reorder=0.1, damage=0.1)
    first, second = Made(), Made()
    options = MakeOptions(packets=2000, seed=9)
    assert list(make.packets(declared, options, faults, first)) == list(make.packets(declared, options, faults, second))
    assert first == second
    assert first.valid == 2000
    assert first.sent == first.valid - first.dropped + first.duplicated
    for count in (first.dropped, first.duplicated, first.reordered, first.damaged):
        assert 100 < count < 300


def test_expressions() -> None:
    assert value_of("8 + 8 * n", {"n": 5}) == 48
    assert value_of("-(a - 2) * 0x10", {"a": 1}) == 16
    assert solve("words * 8 - 32", 5000, "words", {}) == 629
    assert solve("words * 8 - 32", 5001, "words", {}) is None


def declaration(**changes: object) -> dict[str, object]:
    return {"byte_order": "big", "header": [{"name": "a", "at": 0, "type": "u32"}], "header_bytes": 8} | changes


def refused(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        formats.load(str(file))
    return error.value.problems


def test_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    head = "byte_order: big\nheader:\n  - {name: a, at: 0, type: u32}\n"
    assert refused(tmp_path, head + "  - {name: b, at: 2, type: u32}\nheader_bytes: 8\n") == [
        "bad.yaml:4: 'b' and 'a' overlap (they share some bits, and neither is a part of the other) correct at, type or bits of one"
    ]
    assert refused(tmp_path, head + "header_bytes: 8\nstream: [c]\n")[0].startswith("bad.yaml:5: there is no field 'c'")
    assert refused(tmp_path, head + "header_byts: 8\n")[0].startswith("bad.yaml:4: unknown key 'header_byts'")
    assert "u31" in refused(tmp_path, head.replace("u32", "u31") + "header_bytes: 8\n")[0]
    with pytest.raises(ConfigError, match="did you mean 'ejfat'"):
        formats.load("ejfta")


def test_the_pages_checksum_is_what_is_made_and_accepted() -> None:
    page = (ROOT / "docs" / "declared-formats.md").read_text().partition("### The checksum\n")[2]
    names: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    for order in ("little", "big"):
        declared = formats.DeclaredFormat("summed", validated(Format, {
            "byte_order": order, "header": [{"name": "number", "at": "0", "type": "u16"}], "header_bytes": "6",
            "checksum": {"at": 2}, "sequence": {"field": "number"},
        }))  # fmt: skip
        decoder = _core.FormatDecoder(declared.keys())
        for size in (0, 1, 2, 31, 1000):
            head, body = size.to_bytes(2, "big"), bytes((k * 91 + size) % 256 for k in range(size))
            packet = head + names["fletcher32"](head + bytes(4) + body, 2, order) + body
            assert decoder.decode(packet)[0] == "", (order, size)
            if size:
                assert decoder.decode(packet[:-1] + bytes([packet[-1] ^ 1]))[0] == "checksum"
        for packet in make.packets(declared, MakeOptions(packets=40, seed=3), Faults(), Made()):
            assert decoder.decode(packet)[0] == ""
            assert packet[2:6] == names["fletcher32"](packet, 2, order)


def test_a_checksum_that_lies_on_a_field_is_told_with_its_line(tmp_path: Path) -> None:
    head = "byte_order: big\nheader:\n  - {name: magic, at: 0, type: u32, equals: 7}\nheader_bytes: 8\n"
    assert refused(tmp_path, head + "checksum: {at: 0}\n") == [
        "bad.yaml:5: the checksum and 'magic' overlap (bytes 0 to 3 are a sum, which can be any number) correct checksum.at, or the field's place"
    ]


def engine(protocol: str, **more: object) -> dict[str, object]:
    sources = [{"name": "s", "source_id": 28}] if protocol == "mine" else []
    return {
        "version": 1, "memory_regions": [{"name": "main"}], "processor": {"kind": "count"},
        "links": [{"name": "a", "endpoint": "udp://127.0.0.1:6200", "protocol": protocol, "memory_region": "main",
                   "sources": sources}],
    } | more  # fmt: skip


def test_the_page_says_which_formats_links_take() -> None:
    """Those of its list cannot be the protocol of a link, and all others can."""
    page = (ROOT / "docs" / "declared-formats.md").read_text(encoding="utf-8")
    (line,) = (line for line in page.splitlines() if line.startswith("Not for links: "))
    named = set(re.findall(r"`([^`]+)`", line.partition(".")[0]))
    for name in formats.shipped_names():
        declared = formats.load(name).declaration
        assert bool(declared.unit or declared.events) == (name not in named), name


def test_links_take_declared_formats_with_events_or_units() -> None:
    mgp = formats.load(MGP).keys()
    config = validated(EngineConfig, engine("mine", formats={"mine": mgp}))
    assert config.links[0].protocol == "mine"
    assert config.raw_links() == set()
    assert list(validated(EngineConfig, engine("ejfat")).formats) == ["ejfat"]
    with pytest.raises(ConfigError, match=r"its declaration says neither events nor units, so it is for nanet format alone\)"):
        validated(EngineConfig, engine("rtp"))
    with pytest.raises(ConfigError, match="'nobody' is not allowed"):
        validated(EngineConfig, engine("nobody"))
    with pytest.raises(ConfigError, match="there is no field"):
        validated(EngineConfig, engine("mine", formats={"mine": declaration(stream=["b"])}))


def test_show_and_dissector_have_every_field() -> None:
    for name in ALL:
        declared = formats.load(name)
        picture, plugin = "\n".join(show.lines(declared)), dissector.source(declared)
        for field in declared.declaration.header:
            assert field.name in picture
            assert f'fields["{field.name}"]' in plugin


def test_pcap_files_are_read_as_written(tmp_path: Path) -> None:
    declared, made, file = formats.load("rtp"), Made(), tmp_path / "rtp.pcap"
    wanted = list(make.packets(declared, MakeOptions(packets=50), Faults(), Made()))
    make.write_pcap(file, make.packets(declared, MakeOptions(packets=50), Faults(), made), 1000.0, 5004)
    packets = _core.PcapPackets(str(file))
    read = []
    while (one := packets.next()) is not None:
        read.append(one)
    assert [one[4] for one in read] == wanted
    assert read[1][0] - read[0][0] == 1_000_000
    assert {one[3] for one in read} == {5004}
    assert {one[1].count(".") for one in read} == {3}
    with pytest.raises(_core.SetupError, match="no classic pcap"):
        _core.PcapPackets(MGP)
