# SPDX-License-Identifier: Apache-2.0
"""Packets of remote memory access as docs/apenet-rdma-format.md says, written from that page: the benches' reference."""

from common.apenet import Packet, header, words_of

PUT, GET, REPLY, EVENT = 0x01, 0x03, 0x04, 0x11
DATA_BYTES_MAX = 4080
PACKETS_MAX = 64
MESSAGE_BYTES_MAX = PACKETS_MAX * DATA_BYTES_MAX - 15
OFFSET_BITS = 40
COUNTS = (
    *("landed", "event", "get", "flagged", "crc", "type", "length", "key", "rights", "bounds", "page"),
    *("stale", "duplicate", "misfit", "outside", "queue", "requests"),
)
# Name, width; the first is the lowest. Of a job of rdma_port.
JOB_FIELDS = [
    *(("tag", 64), ("bytes", 32), ("local_nonce", 32), ("local", 48), ("offset", 40), ("region", 8), ("nonce", 32)),
    *(("number", 16), ("process", 16), ("port", 4), ("to", 16), ("kind", 5)),
]


def place(x: int, y: int = 0, z: int = 0) -> int:
    return x | y << 6 | z << 11


def job(**fields: int) -> int:
    word, at = 0, 0
    for name, width in JOB_FIELDS:
        value = fields.pop(name, 0)
        assert 0 <= value < 1 << width, f"{name} {value}"
        word |= value << at
        at += width
    assert not fields, fields
    return word


def message_word(*, nonce: int, source: int, number: int, packet: int = 0, last: int = 0, port: int = 0) -> bytes:
    word = nonce | source << 32 | number << 48 | packet << 64 | last << 72 | port << 80
    return word.to_bytes(16, "little")


def cuts(offset: int, size: int) -> list[tuple[int, int]]:
    """(offset, bytes) of each packet of a message to this offset."""
    found, end = [], offset + size
    while offset < end:
        step = min(end - offset, DATA_BYTES_MAX - offset % 16)
        found.append((offset, step))
        offset += step
    return found


def data_packet(data: bytes, *, region: int, offset: int, x: int, kind: int = PUT, process: int = 0, **message: int) -> Packet:
    """A PUT or REPLY. message: fields of the message word."""
    payload = message_word(**message) + bytes(offset % 16) + data
    head = header(packet_type=kind, x=x, process=process, bytes=len(payload), address=region << OFFSET_BITS | offset)
    return Packet(head, words_of(payload))


def get_packet(
    *, region: int, offset: int, x: int, landing: tuple[int, int, int], size: int, process: int = 0, **message: int
) -> Packet:
    """landing: region, offset and nonce at the node that asks."""
    back_region, back_offset, back_nonce = landing
    second = back_offset | back_region << OFFSET_BITS | back_nonce << 48 | size << 80
    payload = message_word(**message) + second.to_bytes(16, "little")
    head = header(packet_type=GET, x=x, process=process, bytes=len(payload), address=region << OFFSET_BITS | offset)
    return Packet(head, words_of(payload))


def event_packet(*, x: int, source: int, number: int, value: int = 0, process: int = 0) -> Packet:
    return Packet(header(packet_type=EVENT, x=x, process=process, address=source << 32 | number << 16 | value))
