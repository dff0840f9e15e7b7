# SPDX-License-Identifier: Apache-2.0
"""The keys of what the commands for declared formats write with --json."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import Base, Config


class FormatKeys(TypedDict):
    """A format that is shipped."""

    name: Annotated[str, "by which links and commands know it"]
    about: Annotated[str, "what sends it, and where its definition stands"]


class ListResult(Base):
    """What `nanet format list` writes."""

    formats: Annotated[list[FormatKeys], "that are shipped, by name"]


class CheckResult(Base):
    """What `nanet format check` writes of a valid declaration."""

    format: Annotated[str, "its name"]
    declaration: Annotated[Config, "with every default filled in"]
    packets: Annotated[int, "UDP packets of the recording that were looked at; 0 without one"]
    accepted: Annotated[int, "of them; the others are in `refused`"]
    refused: Annotated[dict[str, int], "packets by the name of why they are refused"]
    streams: Annotated[int, "different streams of accepted packets"]
    units: Annotated[int, "different units of accepted packets, each stream's own"]
    payload_bytes: Annotated[int, "of accepted packets"]
    events: Annotated[int, "in accepted packets"]
    skipped: Annotated[int, "records of the recording that were no whole UDP packets"]
    passed_over: Annotated[dict[str, int], "what of the recording was not looked at, by name as in `nanet replay`"]


class EmulateResult(Base):
    """What `nanet emulate format` writes."""

    format: Annotated[str, "its name"]
    valid: Annotated[int, "packets made, before faults"]
    sent: Annotated[int, "packets sent, or written to the pcap file"]
    dropped: Annotated[int, "left out on purpose"]
    duplicated: Annotated[int, "sent twice on purpose"]
    reordered: Annotated[int, "sent after the next one on purpose"]
    damaged: Annotated[int, "with a bit turned round on purpose"]
    rate_packets_per_s: Annotated[float, "asked for"]
    tx_refused: Annotated[int, "packets that the kernel did not take"]
    tx_dropped: Annotated[int, "packets that could not be sent in time"]
