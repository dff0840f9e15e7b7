# SPDX-License-Identifier: Apache-2.0
"""Declarations and packets of them, as fuzz/declaration_tree.hpp reads them: those that are shipped, each with a change, packets made of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nanet.config.formats import load, shipped_names
from nanet.format.make import Faults, Made, MakeOptions, packets

MGP = str(Path(__file__).resolve().parent.parent / "examples" / "formats" / "mgp.yaml")  # the one with events


def refused_packets() -> Iterator[tuple[str, bytes]]:
    """Each by one name that is rare."""
    item = [1 << 63 | number << 48 | value for number, value in ((1, 7), (2, 64), (3, 0), (4, 16))]
    head = struct.pack(">BBBBHH", 0x53, 4, 2, 6, 0, 4)
    yield "spead-item-missing", head + struct.pack(">4Q", *item[:3], 1 << 63 | 99 << 48) + bytes(16)
    yield "spead-item-elsewhere", head + struct.pack(">4Q", *item[:3], item[3] ^ 1 << 63) + bytes(16)
    yield "spead-in-another-order", head + struct.pack(">4Q", *item[::-1]) + bytes(16)
    yield "spead-outside", head + struct.pack(">4Q", *item[:2], item[2] + 60, item[3]) + bytes(16)
    yield "ejfat-too-long", struct.pack(">BBHIIQ", 0x10, 0, 3, 0, 1 << 25, 9) + bytes(16)


def declarations() -> Iterator[tuple[str, dict[str, Any]]]:
    """Those that are shipped, and the one with events, by their names or files."""
    for name in (*shipped_names(), MGP):
        yield Path(name).stem, shipped(name)


def shipped(name: str) -> dict[str, Any]:
    """The keys of a declaration that differ from their defaults."""
    keys: dict[str, Any] = without_defaults(load(name).keys())
    return keys


def padded_of_fewer_bits() -> dict[str, Any]:
    """MGP whose padded events have fine times of 7 bits and hit counts of 6: fields at fixed places, but not whole ones."""
    declared = shipped(MGP)
    fields = declared["variants"][2]["events"]["header"]
    fields[1]["bits"], fields[2]["bits"] = [6, 0], [5, 0]
    return declared


def changed_formats() -> Iterator[tuple[str, dict[str, Any]]]:
    """A shipped declaration with one change, mostly a mistake; by `format change`."""
    for number, (name, path, value) in enumerate(CHANGES):
        declared = shipped(MGP if name == "mgp" else name)
        *folders, key = path.split(".")
        inner: Any = declared
        for one in folders:
            inner = inner[int(one)] if isinstance(inner, list) else inner.setdefault(one, {})
        if isinstance(inner, list) and key == "+":
            inner.append(value)
        elif isinstance(inner, list):
            inner[int(key)] = value
        elif value is None:
            inner.pop(key)
        else:
            inner[key] = value
        yield f"{name} {number}-{path.replace('+', 'new')}", declared


def field(name: str, at: str | int, type_: str = "u8", **more: Any) -> dict[str, Any]:
    return {"name": name, "at": str(at), "type": type_, **more}


# Format, where it is changed (+: one more in a list) and to what. None: without it.
CHANGES: tuple[tuple[str, str, Any], ...] = (
    ("ejfat", "header.+", field("again", 0, equals="0x20")),
    ("ejfat", "header.+", field("half", 6, "u32")),
    ("ejfat", "header.+", field("event", 12, "u64")),
    ("ejfat", "header.+", field("high_nibble", 0, bits=[7, 4], equals="1")),
    ("ejfat", "header.+", field("a", "20 + a")),
    ("ejfat", "header.+", field("far", 5000)),
    ("ejfat", "header.+", field("always", 21, otherwise="1")),
    ("ejfat", "header_bytes", "19"),
    ("ejfat", "header_bytes", "66000"),
    ("ejfat", "header_bytes", None),
    ("ejfat", "header.2.at", "-1"),
    ("ejfat", "header.2.at", "2 +"),
    ("ejfat", "header.2.at", None),
    ("ejfat", "header.2.item", "4"),
    ("ejfat", "header.2.bits", [16, 0]),
    ("ejfat", "header.2.mask", "0xFF00"),
    ("ejfat", "header.2.name", "data-id"),
    ("ejfat", "header.0.equals", "256"),
    ("ejfat", "header.0.equals", "two"),
    ("ejfat", "header.4.below", "0"),
    ("ejfat", "header.4.below", "4096"),
    ("ejfat", "header.4.least", "0x100000000"),
    ("ejfat", "place", "ofset"),
    ("ejfat", "place", "0 - offset - 1"),
    ("ejfat", "place", "offset * length * event"),
    ("ejfat", "place", "(offset"),
    ("ejfat", "place", "(offset + 4 ) * 2 - -1"),
    ("ejfat", "place", "offset ! 2"),
    ("ejfat", "place", "12ab"),
    ("ejfat", "place", "9223372036854775807 * 2"),
    ("ejfat", "place", "offset + length + event + data_id + zero"),
    ("ejfat", "place", "(" * 50),
    ("ejfat", "place", "0 " * 150),
    ("ejfat", "unit_bytes_most", None),
    ("ejfat", "unit_bytes", None),
    ("ejfat", "unit", None),
    ("ejfat", "unit", ["event", "data_id"]),
    ("ejfat", "stream", ["nobody"]),
    ("ejfat", "packet_index", "offset"),
    ("ejfat", "packet_bytes_multiple_of", 6),
    ("ejfat", "packet_bytes_most", 10),
    ("ejfat", "merge", {"by": "time"}),
    ("ejfat", "sequence", {"field": "data_id", "modulo": "65537"}),
    ("ejfat", "sequence", {"field": "data_id", "modulo": "100", "step": 2}),
    ("ejfat", "time", [{"field": "event", "unit": "16 ns"}, {"field": "length", "unit": "3 ns"}]),
    ("ejfat", "time", [{"field": "length", "unit": "1 ms"}, {"field": "event", "unit": "2.5 us"}]),
    ("ejfat", "optional_before.header.0.equals", None),
    ("ejfat", "optional_before.bytes", 1),
    ("ejfat", "payload.bytes", "length - 1"),
    ("jungfrau", "payload.samples.shape", [4, 1023]),
    ("jungfrau", "payload.samples", {"bits": 24, "kind": "float"}),
    ("jungfrau", "unit_packets", "9223372036854775807"),
    ("jungfrau", "unit_packets", None),
    ("gvsp", "variants.2.when", {"packet": "1"}),
    ("gvsp", "variants.2.when.content", "128"),
    ("gvsp", "variants.1.header.0.at", "x"),
    ("gvsp", "variants.0.packet_index", "packet * packet - 1"),
    ("spead-64-48", "items.count", "heap"),
    ("spead-64-48", "items.id_bits", [63, 48]),
    ("spead-64-48", "items.value_bits", [64, 48]),
    ("spead-64-48", "items.type", "u32"),
    ("spead-64-48", "items", None),
    ("spead-64-48", "header.2.at", "4"),
    ("rtp", "variants.1.header.+", field("deep", "16 + 4 * sources + extension_words", "u16", least="1", below="3")),
    ("rtp", "variants.1.header.+", field("deep", "16 + extension_words", "u16", equals="0")),
    ("rtp", "variants.1.header.0.at", "12 - extension_words"),
    ("rtp", "start_when", {"sources": "20"}),
    ("mgp", "variants.2.events.header.0.at", "5"),
    ("mgp", "variants.2.events.header.0.byte_order", "big"),
    ("mgp", "variants.2.events.header.0.type", "u64"),
    ("mgp", "variants.2.events.event_bytes", 7),
    ("mgp", "variants.2.events.hits.at", 7),
    ("mgp", "variants.2.events.hits.bits", 10),
    ("mgp", "variants.2.events.header.2.below", "40"),
    ("mgp", "variants.2.events.count_most", 2),
    ("mgp", "variants.5.events.header.2.below", "3"),
    ("mgp", "variants.5.events.hits.order", "msb_first"),
    ("mgp", "variants.5.events.header.2", field("hit_count", 4, "u16")),
    ("mgp", "header.+", field("moving", "16 + layout")),
    ("mgp", "header.+", field("far", "0xFFFFFFFFFFFFFFFFF")),
    ("mgp", "byte_order", "big"),
    ("mgp", "checksum.at", 14),
    ("mgp", "colour", 3),
    ("mgp", "header.+", field("on_the_sum", 14, "u32")),
    ("mgp", "header.+", field("sum", 12, "u32")),
)


def without_defaults(keys: Any) -> Any:
    """Without what is null or empty, as such a key need not be given."""
    if isinstance(keys, dict):
        return {key: without_defaults(value) for key, value in keys.items() if value not in (None, [], {}, "")}
    return [without_defaults(one) for one in keys] if isinstance(keys, list) else keys


def tree(value: Any) -> bytes:
    """As fuzz/declaration_tree.hpp reads it."""
    if value is None or isinstance(value, bool):
        return bytes([0 if value is None else 1 + value])
    if isinstance(value, int):
        return b"\3" + struct.pack("<q", value)
    if isinstance(value, str):
        return b"\4" + short_text(value[:255])
    if isinstance(value, list):
        return bytes([5, len(value)]) + b"".join(map(tree, value))
    return bytes([6, len(value)]) + b"".join(short_text(key) + tree(one) for key, one in value.items())


def short_text(text: str) -> bytes:
    return bytes([len(text.encode())]) + text.encode()


def made_packets(name: str, count: int, payload_bytes: int, faults: Faults) -> Iterator[bytes]:
    """Packets of a shipped format; of long ones, the beginning."""
    declared = load(MGP if name == "mgp" else name)
    options = MakeOptions(
        packets=count, streams=2 if declared.declaration.stream else 1, payload_bytes=payload_bytes, unit_packets=4
    )
    for one in packets(declared, options, faults, Made()):
        yield packet_of(one)


def packet_of(whole: bytes) -> bytes:
    begin = whole if len(whole) < 1500 else whole[:64]
    return struct.pack("<HH", len(whole), len(begin)) + begin
