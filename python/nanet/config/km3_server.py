# SPDX-License-Identifier: Apache-2.0
"""The settings of `nanet km3 server`. Same rules as nanet/config/engine.py; what they are for: docs/design/km3-server.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from nanet.config.base import Byte, Endpoint, Model, Name, check_endpoint, problem, setting
from nanet.config.errors import load_document, validated
from nanet.config.forms import Network

__all__ = ["AlarmRule", "Control", "Data", "Destination", "FloorSettings", "Km3ServerConfig", "Monitor", "Store", "load"]

KINDS = ("hits", "sampled", "hydrophone_0", "hydrophone_1", "instruments")
"""What a floor sends: kind k of the format is KINDS[k - 1]."""
Kind = Literal["hits", "sampled", "hydrophone_0", "hydrophone_1", "instruments"]
ParameterName = Annotated[
    str, Field(pattern=r"^(high_voltage|threshold|rate)_[0-5]$|^hydrophone_[01]$|^(temperature|heading|pitch|roll)$")
]
Away = Annotated[str, AfterValidator(lambda url: check_endpoint(url, ("tcp", "udp")))]


def load(path: str | Path) -> Km3ServerConfig:
    """The configuration in the YAML file at `path`. Raises ConfigError."""
    return validated(Km3ServerConfig, load_document(Path(path)))


class Data(Model):
    """Where the floors' data come in."""

    endpoint: Endpoint = setting("udp://0.0.0.0:7400", "Where floors send to: udp://ADDRESS:PORT")
    senders: tuple[Network, ...] = setting((), "Networks that floors send from, such as 10.1.0.0/24; none: any")
    buffer_count: int = setting(
        512, "Buffers for units, a power of two", unit="buffers", ge=32, le=65536,
        too_small="units find no buffer while destinations are behind", too_big="memory that is never used",
    )  # fmt: skip
    buffer_bytes: int = setting(
        524288, "Room for a unit, a multiple of 4096", unit="bytes", ge=65536, le=67108864,
        too_small="longer units are refused, as packets_unit_too_long", too_big="memory that is never used",
    )  # fmt: skip
    packet_bytes_max: int = setting(9000, "Longest packet", unit="bytes", ge=64, le=65507)
    socket_buffer_bytes: int = setting(
        33554432, "The socket's receive buffer", unit="bytes", ge=65536, le=1073741824,
        too_small="packets are lost when the process stands still for a moment",
    )  # fmt: skip
    timeout_us: int = setting(
        300000, "A unit whose packets do not all come within this is sent on with holes", unit="us", ge=1000, le=60000000,
        too_small="units of slow floors are cut", too_big="units that lost a packet are late",
    )  # fmt: skip


class FloorSettings(Model):
    """A floor, and what it is set to before a run."""

    tower: Byte = setting(1, "Number of the tower")
    floor: int = setting(..., "Number of the floor, from 1, the lowest", ge=1, le=255)
    control: Endpoint = setting(..., "Its port for slow control: udp://ADDRESS:PORT")
    high_voltage_v: tuple[Annotated[float, Field(ge=0, le=2000)], ...] | None = setting(
        None, "High voltage of its six photomultipliers; null: left as it is", unit="V", min_length=6, max_length=6
    )
    threshold_pe: tuple[Annotated[float, Field(ge=0, le=10)], ...] | None = setting(
        None, "Their thresholds; null: left as they are", unit="photo-electrons", min_length=6, max_length=6
    )
    hydrophones: tuple[bool, bool] | None = setting(None, "Which of its hydrophones are on; null: left as they are")


class Control(Model):
    """How floors are asked."""

    timeout_ms: float = setting(
        50.0, "A request without an answer is sent again after this", unit="ms", gt=0, le=10000,
        too_small="floors are asked again that were about to answer", too_big="a lost datagram costs that long",
    )  # fmt: skip
    tries_max: int = setting(4, "How often it is sent in all", ge=1, le=100)
    queue_max: int = setting(
        64, "Requests that wait for one floor; further ones end as queue_full", unit="requests", ge=1, le=65536
    )
    retry_s: float = setting(
        2.0,
        "A floor that does not answer is tried again after this",
        unit="s",
        gt=0,
        le=3600,
        too_big="a floor that is back is found late",
    )
    ping_s: float = setting(
        1.0, "How often a floor is asked whether it is there, and in which run", unit="s", gt=0, le=3600,
        too_small="the link carries nothing else", too_big="a floor that is gone, or started again, is found late",
    )  # fmt: skip


class Destination(Model):
    """Where units go: a trigger system, a data manager."""

    name: Name = setting(..., "Name in reports")
    endpoint: Away = setting(
        ..., "tcp://ADDRESS:PORT, which is connected to, or udp://ADDRESS:PORT, which gets packets as floors send them"
    )
    kinds: tuple[Kind, ...] = setting(KINDS, f"Which kinds of data it gets. {', '.join(KINDS)}", min_length=1)
    queue_bytes: int = setting(
        67108864, "Units that wait for it, in bytes; what does not fit is dropped as queue_full", unit="bytes", ge=65536, le=68719476736,
        too_small="it misses units when it stands still for a moment", too_big="memory is used up while it is gone",
    )  # fmt: skip
    stalled_s: float = setting(
        5.0, "A TCP connection that takes nothing for so long is closed and made again", unit="s", gt=0, le=3600
    )
    reconnect_s: float = setting(0.5, "Between two attempts to connect", unit="s", gt=0, le=3600)

    @model_validator(mode="after")
    def _kinds(self) -> Destination:
        if self.endpoint.startswith("udp") and "sampled" in self.kinds:
            why = "a packet has whole records, and those of sampled hits have any length"
            raise problem(f"destination {self.name} gets sampled hits over udp", why, "use tcp://, or name other kinds", "kinds")
        return self


class Store(Model):
    """Where history, alarms, runs and detector files are kept."""

    url: str = setting("sqlite:///km3.db", "sqlite:///FILE, or postgresql+psycopg://USER@HOST/DATABASE", min_length=10)
    queue_max: int = setting(
        20000, "Rows that wait for a store that is full, locked or gone; further ones are dropped, and counted", unit="rows", ge=100, le=10000000,
        too_big="memory is used up while it is gone",
    )  # fmt: skip
    timeout_s: float = setting(2.0, "How long the store may be locked, or connecting may take", unit="s", gt=0, le=60)
    retry_s: float = setting(1.0, "Between two attempts to write", unit="s", gt=0, le=3600)


class Monitor(Model):
    """What is read of every floor again and again."""

    every_s: float = setting(10.0, "How often", unit="s", gt=0, le=86400)
    parameters: tuple[ParameterName, ...] = setting(
        ("temperature", "heading", "pitch", "roll", *(f"rate_{pm}" for pm in range(6))), "Which parameters"
    )


class AlarmRule(Model):
    """When a value of a floor is an alarm."""

    name: Name = setting(..., "Name in the list of alarms")
    parameter: ParameterName = setting(..., "Which parameter; it is read as monitor says")
    above: float | None = setting(None, "Raised above this; null: no upper bound")
    below: float | None = setting(None, "Raised below this; null: no lower bound")
    hysteresis: float = setting(
        0.0,
        "Cleared when the value is inside the bound by as much",
        ge=0,
        too_small="a value at the bound raises and clears it again and again",
    )
    for_s: float = setting(0.0, "Raised when the value has been beyond the bound for so long", unit="s", ge=0, le=86400)
    floors: tuple[Annotated[int, Field(ge=1, le=255)], ...] | None = setting(None, "Of these floors; null: of all")

    @model_validator(mode="after")
    def _bounds(self) -> AlarmRule:
        if self.above is None and self.below is None:
            raise problem(f"alarm {self.name} has no bound", "it would never be raised", "give above, below, or both")
        if self.above is not None and self.below is not None and self.below + 2 * self.hysteresis >= self.above:
            raise problem(
                f"alarm {self.name} is never cleared", "no value lies inside both bounds", "make them wider, or hysteresis smaller"
            )
        return self


class Km3ServerConfig(Model):
    """A whole server: floors, where their data go, what is watched."""

    model_config = ConfigDict(title="nanet KM3NeT server configuration")

    version: Literal[1] = setting(1, "Version of this schema")
    name: Name = setting("tower", "Name in reports")
    data: Data = setting(Data, "Where the floors' data come in")
    floors: tuple[FloorSettings, ...] = setting(..., "The floors", min_length=1, max_length=1024)
    control: Control = setting(Control, "How floors are asked")
    destinations: tuple[Destination, ...] = setting((), "Where units go", max_length=16)
    store: Store = setting(Store, "Where history, alarms, runs and detector files are kept")
    monitor: Monitor | None = setting(Monitor, "What is read of every floor again and again; null: nothing")
    alarms: tuple[AlarmRule, ...] = setting((), "When a value is an alarm", max_length=1024)
    commands: str = setting(
        "km3.sock",
        "Unix socket at which nanet km3 run, set and get reach the server; only its account may",
        min_length=1,
        max_length=100,
    )

    @model_validator(mode="after")
    def _whole(self) -> Km3ServerConfig:
        _no_twice("floor", (f"{one.tower}/{one.floor}" for one in self.floors), "give each its own number")
        _no_twice("control endpoint", (one.control for one in self.floors), "give each floor its own")
        _no_twice("destination", (one.name for one in self.destinations), "give each its own name")
        _no_twice("alarm", (one.name for one in self.alarms), "give each its own name")
        if self.data.buffer_count & (self.data.buffer_count - 1):
            raise problem(
                f"data.buffer_count {self.data.buffer_count} is no power of two",
                "indices are masked, not divided",
                "choose 512",
                "data.buffer_count",
            )
        if self.data.buffer_bytes % 4096:
            raise problem(
                f"data.buffer_bytes {self.data.buffer_bytes} is no multiple of 4096",
                "buffers are pages",
                "choose 524288",
                "data.buffer_bytes",
            )
        known = {(one.floor) for one in self.floors}
        watched = set(self.monitor.parameters) if self.monitor else set()
        for rule in self.alarms:
            for floor in sorted(set(rule.floors or ()) - known):
                raise problem(f"alarm {rule.name} is of floor {floor}", "there is no such floor", "name floors of this file")
            if rule.parameter not in watched:
                raise problem(
                    f"alarm {rule.name} is never looked at",
                    f"monitor does not read {rule.parameter}",
                    f"add {rule.parameter} to monitor.parameters",
                )
        return self


def _no_twice(what: str, values: Iterable[str], suggestion: str) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise problem(f"{what} {value} appears {count} times", "each must be unique", suggestion)
