# SPDX-License-Identifier: Apache-2.0
# Made from include/nanet/contract.hpp by gateware/scripts/make_contract.py; do not edit.
"""The NIC contract for the benches: entries in memory, with the fields of include/nanet/contract.hpp, and the values of some."""

import struct
from dataclasses import astuple, dataclass
from enum import IntEnum, IntFlag
from typing import ClassVar, Self


class Entry:
    """LAYOUT: of all fields, in the order of memory."""

    LAYOUT: ClassVar[struct.Struct]

    @classmethod
    def read(cls, data: bytes) -> Self:
        return cls(*cls.LAYOUT.unpack(data))

    def packed(self) -> bytes:
        return self.LAYOUT.pack(*astuple(self))


class Kind(IntEnum):
    BUFFER_FILLED = 0x1
    PACKET_SENT = 0x2
    ERROR = 0x3
    MESSAGE = 0x4


class Status(IntFlag):
    FULL = 0x1
    TIMEOUT = 0x2
    FLUSH = 0x4
    GAP = 0x8
    TRUNCATED = 0x10
    ERROR = 0x20
    RUN_START = 0x40
    IN_PLACE = 0x80
    UNIT = 0x100
    INCOMPLETE = 0x200


@dataclass
class PacketRef(Entry):
    LAYOUT: ClassVar = struct.Struct("<IHH")  # 8 B
    SOURCE_MASK: ClassVar = 0x7FFF
    RUN_START: ClassVar = 0x8000
    offset: int = 0
    bytes: int = 0
    source: int = 0


@dataclass
class Completion(Entry):
    LAYOUT: ClassVar = struct.Struct("<QQQIIIHBBQHHHBBII")  # 64 B
    first_packet_ns: int = 0
    last_packet_ns: int = 0
    tag: int = 0
    bytes: int = 0
    event_count: int = 0
    packets_lost: int = 0
    status: int = 0
    kind: int = 0
    reserved0: int = 0
    reserved1: int = 0
    buffer_index: int = 0
    packet_count: int = 0
    stride_bytes: int = 0
    clop: int = 0
    packet_events_max: int = 0
    first_packet_low: int = 0
    sequence: int = 0


@dataclass
class TxDescriptor(Entry):
    LAYOUT: ClassVar = struct.Struct("<QIIQQQQQQ")  # 64 B
    address: int = 0
    bytes: int = 0
    destination: int = 0
    tag: int = 0
    reserved0: int = 0
    reserved1: int = 0
    reserved2: int = 0
    reserved3: int = 0
    sequence: int = 0


@dataclass
class MessageDescriptor(Entry):
    LAYOUT: ClassVar = struct.Struct("<QIHBBQQIIHHIQQ")  # 64 B
    address: int = 0
    bytes: int = 0
    node: int = 0
    port: int = 0
    kind: int = 0
    tag: int = 0
    remote: int = 0
    nonce: int = 0
    local_nonce: int = 0
    process: int = 0
    reserved0: int = 0
    reserved1: int = 0
    reserved2: int = 0
    sequence: int = 0
