# SPDX-License-Identifier: Apache-2.0
"""Plays a recording (a pcap file, or raw data of the boards) to a destination, until its end or until a signal comes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import model_validator

from nanet.config.base import Byte, Endpoint, Model, problem, setting
from nanet.config.errors import ConfigError, validated
from nanet.machine.signals import StopSignals
from nanet.result import files
from nanet.result.keys.base import Base, Config, Counts

LOOK_EVERY_S = 0.05


class ReplayOptions(Model):
    """What is played, to whom and how fast."""

    file: Path = setting(..., "The recording: a pcap file, or a sequence of MEPs (raw data)")
    to: Endpoint = setting(..., "Receiver of the packets: udp://ADDRESS:PORT")
    pace: Literal["original", "max", "events", "packets"] = setting(
        "original", "original: with the gaps of the recording; max: without gaps; events, packets: at `rate` of them per second"
    )
    rate: float | None = setting(None, "With pace events or packets, and only then", unit="1/s", gt=0.0, le=1e9)
    laps: int = setting(
        1, "How many times; 0: until a signal arrives. From the second lap on, the receiver takes a recording that does not begin with"
        " start-of-run markers for duplicates", unit="laps", ge=0, lt=1 << 63,
    )  # fmt: skip
    only_port: int = setting(0, "From a pcap file, play packets to this UDP port only; 0: all", ge=0, le=65535)
    layout: Literal["padded", "packed"] = setting(
        "padded", "Layout of the MGP packets made from raw data; padded keeps the hits' times"
    )
    source_id: Byte = setting(0x1C, "From raw data, play this detector only; 0x1C is the RICH")
    fine_time: Byte = setting(0, "Fine time of every event made from raw data, which has none", unit="1/256 timestamp")

    @model_validator(mode="after")
    def _rate(self) -> ReplayOptions:
        by_rate = self.pace in ("events", "packets")
        if by_rate and self.rate is None:
            raise problem(f"pace {self.pace} has no rate", "it plays at a rate", "set rate to a number per second")
        if not by_rate and self.rate is not None:
            raise problem("a rate is set", f"pace {self.pace} has none", "remove it, or set pace to events or packets")
        return self


def options_from_text(file: Path, to: str, pace: str, **others: Any) -> ReplayOptions:
    """`pace` as on the command line: original, max, a number of events a second (1e6) or of packets a second (5e4p).

    Raises ConfigError.
    """
    plain: Config = {"file": file, "to": to, **others}
    if pace in ("original", "max"):
        return validated(ReplayOptions, plain | {"pace": pace})
    unit = "packets" if pace.endswith("p") else "events"
    try:
        rate = float(pace.removesuffix("p"))
    except ValueError:
        why = "it is neither original, max, nor a number"
        raise ConfigError(
            [f"cannot replay at pace '{pace}' ({why}) write 1e6 for events per second, 5e4p for packets per second"]
        ) from None
    return validated(ReplayOptions, plain | {"pace": unit, "rate": rate})


class ReplayResult(Base):
    """What `nanet replay` writes."""

    options: Annotated[Config, "file, destination, pace and all else as understood"]
    notes: Annotated[list[str], "what the machine could not give, a line each"]
    recording: Annotated[Counts, "packets and events of the file, and what in it could not be used, by name"]
    packets_sent: Annotated[int, "in all laps"]
    bytes_sent: Annotated[int, "payload of these"]
    events_sent: Annotated[int, "in these"]
    laps_done: Annotated[int, "times that the recording was played whole"]
    elapsed_s: Annotated[float, "length of the replay"]
    latest_us: Annotated[float, "how late the latest packet left"]
    tx_dropped: Annotated[int, "packets that the kernel did not take"]
    tx_refused: Annotated[int, "packets that the receiver's machine refused: no one listens there"]
    packets_per_s: Annotated[float, "sent, over the whole replay"]
    events_per_s: Annotated[float, "the same in events"]
    stopped_early: Annotated[bool, "true after a signal"]


def run(options: ReplayOptions) -> ReplayResult:
    """Plays; the result as `nanet replay --json` writes it. Raises nanet._core.SetupError."""
    from nanet import _core

    with StopSignals() as stop:
        replay = _core.Replay(options.model_dump(mode="json"))
        thread = threading.Thread(target=replay.run, name="nanet-replay")
        thread.start()
        while not replay.finished:
            if stop.wait(LOOK_EVERY_S):
                replay.stop()
                break
        thread.join()
        snapshot = replay.snapshot()
        elapsed_s = float(snapshot["elapsed_s"])
        return {
            **files.base("replay"),
            "options": options.model_dump(mode="json"),
            "notes": list(replay.notes),
            "recording": replay.counts(),
            "packets_sent": snapshot["packets_sent"],
            "bytes_sent": snapshot["bytes_sent"],
            "events_sent": snapshot["events_sent"],
            "laps_done": snapshot["laps_done"],
            "elapsed_s": snapshot["elapsed_s"],
            "latest_us": snapshot["latest_us"],
            "tx_dropped": snapshot["tx_dropped"],
            "tx_refused": snapshot["tx_refused"],
            "packets_per_s": snapshot["packets_sent"] / elapsed_s if elapsed_s else 0.0,
            "events_per_s": snapshot["events_sent"] / elapsed_s if elapsed_s else 0.0,
            "stopped_early": stop.stopped,
        }


def not_arrived(result: ReplayResult) -> Counts:
    """What was not sent, or sent to no one, by name."""
    sending = {"tx_dropped": result["tx_dropped"], "tx_refused": result["tx_refused"]}
    return {name: count for name, count in sending.items() if count}


def passed_over(result: ReplayResult) -> Counts:
    """What of the recording could not be played, by name."""
    played = ("records", "meps", "events", "hits")
    return {name: int(count) for name, count in result["recording"].items() if count and name not in played}


def sentence(result: ReplayResult) -> str:
    """The result as one line."""
    text = (
        f"{result['packets_sent']:,} packets ({result['events_sent']:,} events) in {result['elapsed_s']:.3f} s, "
        f"{result['packets_per_s']:,.0f} packets/s, {result['events_per_s']:,.0f} events/s"
    )
    lost = not_arrived(result) | passed_over(result)
    return text + ("; " + ", ".join(f"{name} {count:,}" for name, count in lost.items()) if lost else "")
