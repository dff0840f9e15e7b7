# SPDX-License-Identifier: Apache-2.0
"""`nanet format check`: what each packet of a recording means, or why it is refused, by the decoder that links use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nanet.config.formats import DeclaredFormat

__all__ = ["Checked", "Totals", "check"]

PARTS = ("skipped_fragment", "skipped_cut")  # records with only a part of a packet


@dataclass(frozen=True)
class Checked:
    """A packet: what it means, or by which name it is refused and why."""

    number: int
    time_ns: int
    packet_bytes: int
    refusal: str
    why: str
    meaning: dict[str, Any] | None
    fields: dict[str, int]


@dataclass
class Totals:
    """Of a recording. Packets are accepted or refused, each once."""

    packets: int = 0
    accepted: int = 0
    payload_bytes: int = 0
    events: int = 0
    streams: set[int] = field(default_factory=set)
    units: set[tuple[int, int]] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    passed_over: Counter[str] = field(default_factory=Counter)  # by the names that a replay has for it

    @property
    def skipped(self) -> int:
        """Records that were no whole UDP packets."""
        return sum(self.passed_over[name] for name in ("skipped_not_udp", *PARTS))

    def parts(self) -> bool:
        """Whether the recording has packets of which it lacks a part."""
        return any(self.passed_over[name] for name in (*PARTS, "bytes_damaged"))

    def add(self, one: Checked) -> None:
        """Counts a packet."""
        self.packets += 1
        if one.meaning is None:
            self.refused[one.refusal] += 1
            return
        self.accepted += 1
        self.payload_bytes += one.meaning["payload_bytes"]
        self.events += one.meaning["event_count"]
        self.streams.add(one.meaning["stream"])
        self.units.add((one.meaning["stream"], one.meaning["unit"]))


def check(declared: DeclaredFormat, recording: Path, totals: Totals, *, port: int = 0) -> Iterator[Checked]:
    """Each UDP packet of a pcap file, to one port or to all. Raises ConfigError, or nanet._core.SetupError for a file that is none."""
    from nanet import _core

    decoder = _core.FormatDecoder(declared.keys())
    packets = _core.PcapPackets(str(recording))
    number = 0
    while (packet := packets.next()) is not None:
        time_ns, _, _, to_port, payload = packet
        if port and to_port != port:
            totals.passed_over["skipped_port"] += 1
            continue
        refusal, meaning = decoder.decode(payload)
        one = Checked(
            number, time_ns, len(payload), refusal, decoder.explain(payload) if refusal else "", meaning, decoder.fields(payload)
        )
        totals.add(one)
        number += 1
        yield one
    totals.passed_over.update(packets.passed_over())
