# SPDX-License-Identifier: Apache-2.0
"""Packets of any declared format: valid ones, made from the declaration and a seed, with faults if they are asked for. For `nanet emulate format`.

A unit is cut into packets of the same payload, stream by stream in turn; a format without units sends packets one after the other. Whatever the
declaration leaves open is random. Tests decode each packet again.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from nanet.config.errors import ConfigError
from nanet.config.formats import DeclaredFormat
from nanet.format.expression import fields_of, solve, value_of
from nanet.format.layout import Part, Variant, number, parts_of, variants_of, width_of
from nanet.result import outputs

__all__ = ["Faults", "Made", "MakeOptions", "Maker", "packets", "write_pcap"]

SEED_BYTES = 65536
TICKS = 1  # how much the finest time grows from one unit to the next, where nothing says it


@dataclass(frozen=True)
class MakeOptions:
    """What is made."""

    packets: int = 1000
    streams: int = 1
    payload_bytes: int = 1024
    unit_packets: int = 8
    seed: int = 1


@dataclass(frozen=True)
class Faults:
    """How often each happens to a packet, 0 to 1."""

    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    damage: float = 0.0


@dataclass
class Made:
    """What was made, and what was done to it on purpose."""

    valid: int = 0
    sent: int = 0
    dropped: int = 0
    duplicated: int = 0
    reordered: int = 0
    damaged: int = 0


@dataclass
class Stream:
    """Where a sender is."""

    key: dict[str, int]
    unit: int = 0
    sequence: int = 0
    step: int = 0  # of the packets of the unit
    values: dict[str, int] = field(default_factory=dict)


class Maker:
    """Makes one valid packet after the other. Raises ConfigError for a declaration that says too little to do so."""

    def __init__(self, declared: DeclaredFormat, options: MakeOptions) -> None:
        self._name, self._format, self._options = declared.name, declared.declaration, options
        self._random = random.Random(options.seed)
        self._noise = self._random.randbytes(SEED_BYTES)
        data = [one for one in variants_of(self._format) if self._carries_data(one)]
        if not data and self._format.unit:
            raise self._cannot("none of its variants has a payload", "declare one that does")
        self._plan = self._packets_of_a_unit(data) if data else [(variants_of(self._format)[0], None)]
        self._streams = [self._stream(number) for number in range(options.streams)]

    def _cannot(self, why: str, suggestion: str) -> ConfigError:
        return ConfigError([f"cannot make packets of {self._name} ({why}) {suggestion}"])

    def _carries_data(self, variant: Variant) -> bool:
        constant = (
            variant.payload_bytes is not None and not fields_of(variant.payload_bytes) and value_of(variant.payload_bytes, {}) == 0
        )
        return not constant and variant.next_event is None and not self._fits(variant, self._format.stop_when)

    def _fits(self, variant: Variant, conditions: dict[str, str]) -> bool:
        return bool(conditions) and all(variant.when.get(name) == number(text) for name, text in conditions.items())

    def _packets_of_a_unit(self, data: list[Variant]) -> list[tuple[Variant, int | None]]:
        """Variant and index of each packet; None: it has no payload. The variants that differ in how headers are written are used in turn by units."""
        main = data[0]
        said = main.unit_packets
        count = self._options.unit_packets
        if not self._format.unit or (main.place is None and main.packet_index is None):
            count = 1
        elif said is not None and not fields_of(said):
            count = value_of(said, {})
        plan: list[tuple[Variant, int | None]] = [(main, index) for index in range(count)]
        same = {name: value for name, value in main.when.items() if name not in (*self._format.first_when, *self._format.last_when)}
        for one in variants_of(self._format):
            if one in data or any(one.when.get(name) != value for name, value in same.items()):
                continue
            if self._fits(one, self._format.first_when):
                plan.insert(0, (one, None))
            elif self._fits(one, self._format.last_when):
                plan.append((one, None))
        return plan

    def _stream(self, number: int) -> Stream:
        values, beyond = self._key(self._format.stream, number)
        if beyond:
            raise self._cannot("its stream has not so many values", "use fewer --streams")
        return Stream(values)

    def _key(self, names: tuple[str, ...], wanted: int) -> tuple[dict[str, int], int]:
        """The fields of a key for its so-manyth value, the last counting fastest; and how often that is past all of its values."""
        parts = {part.name: part for one in variants_of(self._format) for part in one.parts}
        values = {}
        for name in reversed(names):
            least, most = parts[name].limits()
            wanted, rest = divmod(wanted, most - least + 1)
            values[name] = least + rest
        return values, wanted

    def next(self) -> bytes:
        """The next packet: streams in turn, each unit whole before the next."""
        stream = self._streams.pop(0)
        self._streams.append(stream)
        variant, index = self._plan[stream.step]
        packet = self._packet(stream, variant, index)
        stream.step += 1
        stream.sequence += 1
        if stream.step == len(self._plan):
            stream.step, stream.unit = 0, stream.unit + 1
        return packet

    def _packet(self, stream: Stream, variant: Variant, index: int | None) -> bytes:
        parts = {part.name: part for part in variant.parts}
        values = {name: part.limits()[0] for name, part in parts.items() if part.limits()[0] == part.limits()[1]}
        values |= variant.when | stream.key | self._key(self._format.unit, stream.unit * self._unit_step())[0]
        for conditions in (self._format.start_when, self._format.stop_when):
            self._avoid(conditions, parts, values)
        if variant.own is None or index is None or not self._plan_has_ends():
            self._set_ends(variant, parts, values, stream)
        self._set_counters(stream, parts, values)
        events = variant.events
        payload = self._events(variant, parts, values) if events is not None else None
        size = len(payload) if payload is not None else self._set_payload(variant, parts, values, index)
        count = sum(1 for _, one in self._plan if one is not None)
        self._set(variant.unit_packets, count, parts, values)
        if index is not None:
            self._set(variant.packet_index, index, parts, values)
            self._set(variant.place, index * size, parts, values)
            self._set(variant.unit_bytes, count * size, parts, values)
        elif self._format.unit:
            self._set(variant.unit_packets, count, parts, values)
        return self._written(variant, parts, values, size, payload)

    def _plan_has_ends(self) -> bool:
        return any(index is None for _, index in self._plan)

    def _avoid(self, conditions: dict[str, str], parts: dict[str, Part], values: dict[str, int]) -> None:
        """That a packet does not say what ends its stream, where one field alone decides it."""
        for name, text in conditions.items():
            if name in parts and name not in values:
                least, most = parts[name].limits()
                values[name] = next(value for value in range(least, min(most, least + 2) + 1) if value != number(text))
                return

    def _set_ends(self, variant: Variant, parts: dict[str, Part], values: dict[str, int], stream: Stream) -> None:
        ends = ((self._format.first_when, stream.step == 0), (self._format.last_when, stream.step == len(self._plan) - 1))
        for conditions, holds in ends:
            for name, text in conditions.items():
                if name in parts and name not in values:
                    values[name] = number(text) if holds else next(v for v in range(2**16) if v != number(text))

    def _set_counters(self, stream: Stream, parts: dict[str, Part], values: dict[str, int]) -> None:
        sequence = self._format.sequence
        if sequence is not None and sequence.field not in values:
            bits = width_of(parts[sequence.field])
            modulo = number(sequence.modulo) if sequence.modulo not in (None, "0") else 1 << bits
            values[sequence.field] = stream.sequence * sequence.step % modulo
        if self._format.time:
            last = self._format.time[-1].field
            if last not in values:
                least, most = parts[last].limits()
                values[last] = least + stream.unit * self._time_step() % (most - least + 1)

    def _time_step(self) -> int:
        merge = self._format.merge
        return merge.step if merge is not None and merge.by == "time" else TICKS

    def _unit_step(self) -> int:
        """Of the number of a unit, which may be its time."""
        is_time = bool(self._format.time) and self._format.unit == (self._format.time[-1].field,)
        return self._time_step() if is_time else 1

    def _set_payload(self, variant: Variant, parts: dict[str, Part], values: dict[str, int], index: int | None) -> int:
        """Decides the payload's length: as it is declared, else as it is wanted."""
        wanted = self._options.payload_bytes if index is not None else 0
        said = variant.payload_bytes
        if said is None:
            return wanted
        for size in chain(range(wanted, wanted + 64), range(wanted - 1, -1, -1)):
            if self._set(said, size, parts, values):
                return size
        return int(value_of(said, self._filled(said, parts, values)))

    def _filled(self, text: str, parts: dict[str, Part], values: dict[str, int]) -> dict[str, int]:
        """The values, with those of an expression that are still open at their least."""
        for name in fields_of(text):
            values.setdefault(name, self._default(parts[name]))
        return values

    @staticmethod
    def _default(part: Part) -> int:
        least, most = part.limits()
        return max(least, number(part.field.otherwise)) if part.field.otherwise is not None else min(least, most)

    def _set(self, text: str | None, wanted: int, parts: dict[str, Part], values: dict[str, int]) -> bool:
        """Chooses an open field of an expression so that it is as wanted; whether it is."""
        if text is None:
            return False
        names = fields_of(text)
        open_names = [name for name in names if name not in values]
        if not open_names:
            return value_of(text, values) == wanted
        trial = {name: self._default(parts[name]) for name in open_names}
        for name in reversed(open_names):
            value = solve(text, wanted, name, values | trial)
            least, most = parts[name].limits()
            if value is not None and least <= value <= most:
                values |= trial | {name: value}
                return True
        return False

    def _events(self, variant: Variant, parts: dict[str, Part], values: dict[str, int]) -> bytes:
        """One event after the other, their hits random."""
        events = variant.events
        inner = list(parts_of(self._format, events.header))
        count = min(events.count_most, 4, parts[events.count].limits()[1])
        values[events.count] = count
        out = bytearray()
        for _ in range(count):
            said = {part.name: self._random.randint(*part.limits()) for part in inner}
            header = bytearray(events.header_bytes)
            hits = b""
            if events.hits is not None:
                hit_part = next(part for part in inner if part.name == events.hits.count)
                said[events.hits.count] = self._random.randint(hit_part.limits()[0], min(hit_part.limits()[1], 20))
                bits = said[events.hits.count] * events.hits.bits
                hits = bytes(events.hits.at - events.header_bytes) + (self._random.getrandbits(bits) if bits else 0).to_bytes(
                    (bits + 7) // 8, "little"
                )
            for part in inner:
                _put(header, int(part.at or "0"), part, said[part.name])
            event = bytes(header) + hits
            out += event.ljust(events.event_bytes or 0, b"\0")
        if variant.packet_bytes is not None and not fields_of(variant.packet_bytes):
            header_bytes = value_of(variant.header_bytes, self._filled(variant.header_bytes, parts, values))
            out += bytes(value_of(variant.packet_bytes, {}) - header_bytes - len(out))
        return bytes(
            out.ljust(-(-len(out) // self._format.packet_bytes_multiple_of) * self._format.packet_bytes_multiple_of, b"\0")
        )

    def _written(self, variant: Variant, parts: dict[str, Part], values: dict[str, int], size: int, payload: bytes | None) -> bytes:
        tagged = [part for part in parts.values() if part.at is None]
        items = self._format.items
        if items is not None:
            self._set(items.count, len(tagged), parts, values)
        header_bytes = value_of(variant.header_bytes, self._filled(variant.header_bytes, parts, values))
        self._set(variant.packet_bytes, header_bytes + size, parts, values)
        for part in parts.values():
            values.setdefault(part.name, self._default(part))
        if payload is None:
            start = self._random.randrange(SEED_BYTES)
            payload = (self._noise[start:] + self._noise * (size // SEED_BYTES + 1))[:size]
        packet = bytearray(header_bytes) + payload
        for part in parts.values():
            if part.at is not None:
                _put(packet, value_of(part.at, values), part, values[part.name])
        for place, part in enumerate(tagged):
            assert items is not None
            at = items.at + place * part.word_bytes
            word = 1 << items.immediate_bit | number(part.field.item or "0") << items.id_bits[1] | values[part.name] << part.low
            packet[at : at + part.word_bytes] = word.to_bytes(part.word_bytes, "big" if part.big else "little")
        if self._format.checksum is not None:
            _seal(packet, self._format.checksum.at, "big" if self._format.byte_order == "big" else "little")
        return bytes(packet)


def _put(packet: bytearray, at: int, part: Part, value: int) -> None:
    order: Any = "big" if part.big else "little"
    word = int.from_bytes(packet[at : at + part.word_bytes], order)
    mask = ((1 << width_of(part)) - 1) << part.low
    packet[at : at + part.word_bytes] = (word & ~mask | (value << part.low & mask)).to_bytes(part.word_bytes, order)


def _seal(packet: bytearray, at: int, order: Any) -> None:
    """Fletcher-32 of the packet without these four bytes, over words of this order."""
    first = second = 0
    rest = bytes(packet[:at] + packet[at + 4 :])
    for (word,) in struct.iter_unpack(">H" if order == "big" else "<H", rest + b"\0" * (len(rest) % 2)):
        first += word
        second += first
    packet[at : at + 4] = (second % 65535 << 16 | first % 65535).to_bytes(4, order)


def packets(declared: DeclaredFormat, options: MakeOptions, faults: Faults, made: Made) -> Iterator[bytes]:
    """Valid packets with faults, as many as are wanted before the faults."""
    maker = Maker(declared, options)
    chance = random.Random(options.seed ^ 0x5EED)
    held: bytes | None = None
    for _ in range(options.packets):
        packet = maker.next()
        made.valid += 1
        if chance.random() < faults.drop:
            made.dropped += 1
            continue
        if chance.random() < faults.damage:
            made.damaged += 1
            at = chance.randrange(len(packet))
            packet = packet[:at] + bytes([packet[at] ^ 1 << chance.randrange(8)]) + packet[at + 1 :]
        if held is None and chance.random() < faults.reorder:
            made.reordered += 1
            held = packet
            continue
        copies = 2 if chance.random() < faults.duplicate else 1
        made.duplicated += copies - 1
        for one in [packet] * copies + ([held] if held is not None else []):
            made.sent += 1
            yield one
        held = None
    if held is not None:
        made.sent += 1
        yield held


def write_pcap(path: Path, payloads: Iterator[bytes], rate_packets_per_s: float, port: int) -> None:
    """A nanosecond pcap file of raw IPv4 packets from and to 127.0.0.1, at this rate. Raises OutputError."""
    with outputs.Output(path) as output:
        output.file.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101))
        for count, payload in enumerate(payloads):
            udp_bytes = 8 + len(payload)
            header = bytearray(
                struct.pack(
                    ">BBHHHBBH4s4s", 0x45, 0, 20 + udp_bytes, count & 0xFFFF, 0x4000, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1"
                )
            )
            total = sum(struct.unpack(">10H", header))
            total = (total & 0xFFFF) + (total >> 16)
            header[10:12] = (~((total & 0xFFFF) + (total >> 16)) & 0xFFFF).to_bytes(2, "big")
            packet = bytes(header) + struct.pack(">HHHH", 40000, port, udp_bytes, 0) + payload
            seconds, ns = divmod(round(count / rate_packets_per_s * 1e9), 1_000_000_000)
            output.file.write(struct.pack("<IIII", seconds, ns, len(packet), len(packet)) + packet)
        output.commit()
