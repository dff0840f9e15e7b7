# SPDX-License-Identifier: Apache-2.0
"""The keys of what `nanet bench km3-control` writes."""

from __future__ import annotations

from typing import Annotated, TypedDict

from nanet.result.keys.base import Base, Latency


class Asked(TypedDict):
    """Requests to one floor after the other, 400 a second at most."""

    answered: Annotated[int, "at the first try"]
    not_answered: Annotated[int, "at the first try"]
    round_trip_us: Annotated[Latency, "of those that were"]


class Km3ControlResult(Base):
    """Round trips of slow control."""

    floors: Annotated[int, "of the emulated tower"]
    duration_s: Annotated[float, "of each measurement"]
    rate_mbit_s: Annotated[float, "of floors' data through the server, while it was asked"]
    server_cores: Annotated[float, "processor time by time, meanwhile, of the server and the tower that is in the same process"]
    units_sent: Annotated[int, "by the tower"]
    units_in: Annotated[int, "that the server took"]
    units_incomplete: Annotated[int, "of them, with holes"]
    units_delivered: Annotated[int, "to the destination"]
    bare_idle: Annotated[Asked, "a socket of a process that does nothing else, no data"]
    bare_busy: Annotated[Asked, "the same, while data go through the server"]
    server_idle: Annotated[Asked, "the server's client, no data"]
    server_busy: Annotated[Asked, "the server's client, with data"]
    load: Annotated[float, "of the machine at the end (1 minute): other programs' is in it"]
