# SPDX-License-Identifier: Apache-2.0
"""Packets of remote memory access as docs/apenet-rdma-format.md says, written from that page: the benches' reference."""

from common.apenet import Packet, header, words_of
from common.contract import MessageDescriptor

PUT, GET, REPLY, SEND, EVENT = 0x01, 0x03, 0x04, 0x05, 0x11
DATA_BYTES_MAX = 4080
PACKETS_MAX = 64
MESSAGE_BYTES_MAX = PACKETS_MAX * DATA_BYTES_MAX - 15
OFFSET_BITS = 40
COUNTS = (
    *("landed", "event", "get", "flagged", "crc", "type", "length", "key", "rights", "bounds", "page"),
    *("stale", "duplicate", "misfit", "outside", "queue", "requests", "send", "no_match", "full"),
)


def place(x: int, y: int = 0, z: int = 0) -> int:
    return x | y << 6 | z << 11


def descriptor(*, to: int = 0, region: int = 0, offset: int = 0, local: int = 0, **fields: int) -> bytes:
    """Of the ring; fields: others of it by their names."""
    return MessageDescriptor(address=local, node=to, remote=region << OFFSET_BITS | offset, **fields).packed()


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


def send_packet(data: bytes, *, x: int, source: int, number: int, process: int = 0, value: int = 0) -> Packet:
    """value: zero, if it is as the page says."""
    head = header(packet_type=SEND, x=x, process=process, bytes=len(data), address=source << 32 | number << 16 | value)
    return Packet(head, words_of(data))


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
