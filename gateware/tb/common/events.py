# SPDX-License-Identifier: Apache-2.0
"""MGP and M2EGP packets, written from docs/formats.md and docs/formats-merged.md alone, and the vectors that the C++ and Python tests read.

An event is (key, number, hits): key = timestamp << 8 | fine time, number its event number, hits a list of 16-bit words.
"""

import struct
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

VECTORS = Path(__file__).resolve().parents[3] / "tests" / "vectors"
HEADER_BYTES, PADDED_BYTES, SLOT_BYTES, PACKET_BYTES_MAX = 16, 1168, 72, 1472
PADDED, PACKED, MERGED = 1, 2, 3
START, END = 0x10, 0x20
KEY_MASK = (1 << 40) - 1


class Event(NamedTuple):
    key: int
    number: int
    hits: list[int]


def fletcher32(data: bytes) -> int:
    first = second = 0
    for (half,) in struct.iter_unpack("<H", data):
        first = (first + half) % 65535
        second = (second + first) % 65535
    return second << 16 | first


def sealed(payload: bytes) -> bytes:
    return payload[:12] + struct.pack("<I", fletcher32(payload[:12] + payload[16:])) + payload[16:]


def header(layout: int, count: int, *, source_id: int = 0x1C, board: int = 0, sequence: int = 0, send_ns: int = 0) -> bytes:
    return struct.pack("<BBBBIII", source_id, board, layout, count, sequence, send_ns, 0)


def event_header(event: Event) -> bytes:
    return struct.pack("<IBBH", event.key >> 8, event.key & 0xFF, len(event.hits), event.number)


def event_bytes(event: Event) -> bytes:
    """As the stream of events in the gateware has it, and M2EGP."""
    return event_header(event) + struct.pack(f"<{len(event.hits)}H", *event.hits)


def event_of(data: bytes) -> Event:
    timestamp, fine_time, count, number = struct.unpack_from("<IBBH", data)
    assert len(data) == 8 + 2 * count, f"an event of {count} hits in {len(data)} bytes"
    return Event(timestamp << 8 | fine_time, number, list(struct.unpack_from(f"<{count}H", data, 8)))


def padded_packet(events: list[Event], **fields: int) -> bytes:
    slots = b"".join(event_bytes(event).ljust(SLOT_BYTES, b"\0") for event in events)
    return sealed((header(PADDED, len(events), **fields) + slots).ljust(PADDED_BYTES, b"\0"))


def packed_ids(hits: list[int]) -> bytes:
    bits = sum((hit & 0x1FF) << 9 * place for place, hit in enumerate(hits))
    return bits.to_bytes((9 * len(hits) + 7) // 8, "little")


def packed_packet(events: list[Event], size: int = 0, **fields: int) -> bytes:
    """size: filled with zeros up to it, or to an even length."""
    body = b"".join(event_header(event) + packed_ids(event.hits) for event in events)
    payload = header(PACKED, len(events), **fields) + body
    return sealed(payload.ljust(max(size, len(payload) + len(payload) % 2), b"\0"))


def marker(which: int, layout: int = PACKED, number: int = 0, **fields: int) -> bytes:
    return sealed(header(layout | which, 0, **fields) + struct.pack("<Q", number))


def merged_packet(events: list[Event], filling: bytes = b"", **fields: int) -> bytes:
    """filling: after the last event."""
    return sealed(header(MERGED, len(events), **fields) + b"".join(map(event_bytes, events)) + filling)


def parts_filling(masks: list[int]) -> bytes:
    return bytes(masks) + bytes(len(masks) % 2)


def merged_events(payload: bytes) -> tuple[list[Event], bytes]:
    """Of a packet of M2EGP: its events and what is after them; checked as the page says."""
    assert payload == sealed(payload), "checksum"
    assert payload[2] == MERGED
    events, at = [], HEADER_BYTES
    for _ in range(payload[3]):
        end = at + 8 + 2 * payload[at + 5]
        events.append(event_of(payload[at:end]))
        at = end
    assert at <= len(payload) <= 8972
    assert len(payload) % 2 == 0
    return events, payload[at:]


class Vector(NamedTuple):
    name: str
    fields: dict[str, str]
    payload: bytes
    events: list[Event]


def vectors(name: str) -> list[Vector]:
    """Of tests/vectors/wire_NAME.txt."""
    found: list[Vector] = []
    for line in (VECTORS / f"wire_{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            found.append(Vector(line[1:-1], {}, b"", []))
            continue
        key, _, value = line.partition(" = ")
        if not value or line.startswith("#"):
            continue
        last = found[-1]
        if key in ("hex", "zeros"):
            found[-1] = last._replace(payload=last.payload + (bytes.fromhex(value) if key == "hex" else bytes(int(value))))
        elif key == "event":
            timestamp, fine_time, number, *hits = (int(word, 0) for word in value.split())
            last.events.append(Event(timestamp << 8 | fine_time, number, hits))
        else:
            last.fields[key] = value
    return found


def random_event(rng: Random, hits_max: int = 12, key: int | None = None, board: int | None = None) -> Event:
    """board: hits are channels of it, as packed packets carry them."""
    count = rng.choice([rng.randint(0, hits_max), rng.randint(0, min(hits_max, 8))])
    hits = [rng.getrandbits(16) if board is None else board * 512 + rng.getrandbits(9) for _ in range(count)]
    return Event(rng.getrandbits(40) if key is None else key, rng.getrandbits(16), hits)


def random_packet(rng: Random) -> tuple[bytes, list[Event]]:
    """A good packet of any kind, and its events."""
    fields: dict[str, Any] = {"sequence": rng.getrandbits(32), "send_ns": rng.getrandbits(32)}
    kind = rng.random()
    if kind < 0.1:
        return marker(rng.choice([START, END]), rng.choice([PADDED, PACKED]), rng.getrandbits(64), **fields), []
    if kind < 0.4:
        events = [random_event(rng, 32) for _ in range(rng.randint(1, 16))]
        return padded_packet(events, board=rng.getrandbits(8), **fields), events
    board = rng.randrange(4)
    events, left = [], PACKET_BYTES_MAX - HEADER_BYTES
    for _ in range(rng.choice([1, 2, 5, 20, 182])):
        event = random_event(rng, rng.choice([0, 3, 10, 40, 255]), board=board)
        left -= 8 + len(packed_ids(event.hits))
        if left < 0:
            break
        events.append(event)
    size = rng.choice([0, 0, PACKET_BYTES_MAX])
    return packed_packet(events, size, board=board, **fields), events
