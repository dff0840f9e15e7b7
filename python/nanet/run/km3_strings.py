# SPDX-License-Identifier: Apache-2.0
"""Emulated strings of KM3NeT: packets of their modules' CLBs (`km3net-clb`), with hits of potassium-40 and of muons.

What a module sends in a slice depends on the configuration, the slice and the module alone, so any of it can be made again for a test. In Python:
a string of 18 modules, 4 million hits/s, is what it is for; for loads there is the tower.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from nanet.config.errors import ConfigError
from nanet.config.km3_strings import Strings
from nanet.machine.signals import StopSignals
from nanet.result import files
from nanet.result.keys.base import Base, Config, Counts
from nanet.run.km3_string_light import CHANNELS, light_of, module_numbers, seen_together, tracks

__all__ = ["HIT", "StringsResult", "hits_of", "packets_of", "run", "sentence"]

HIT = np.dtype([("channel", "u1"), ("time_ns", ">i4"), ("tot", "u1")])
HEAD = struct.Struct(">7I")
TTDC = 0x54544443
TICK_NS = 16
BURST_S = 0.001
TRIES = 4  # of a packet, each of which a notice that no one listens may end
LATE_S = 0.01  # of a slice's beginning, after which it was not ready in time


class StringsResult(Base):
    """What `nanet emulate km3 --kind strings` writes."""

    config: Annotated[Config, "with every default filled in"]
    slices: Annotated[int, "that were sent whole"]
    hits: Annotated[int, "in them"]
    muons: Annotated[int, "that passed in them"]
    packets_sent: Annotated[int, "given to the socket"]
    bytes_sent: Annotated[int, "in them, with their headers"]
    slices_made_late: Annotated[int, "that were not ready when they began"]
    tx_dropped: Annotated[int, "packets that could not be sent"]
    tx_refused: Annotated[int, "notices that no one listened"]
    refused_by: Annotated[Counts, "these by destination"]
    elapsed_s: Annotated[float, "of sending"]


@dataclass
class _Counts:
    slices: int = 0
    hits: int = 0
    muons: int = 0
    packets_sent: int = 0
    bytes_sent: int = 0
    slices_made_late: int = 0
    tx_dropped: int = 0
    tx_refused: int = 0


def hits_of(config: Strings, slice_: int, module: int) -> NDArray[np.void]:
    """HIT of a module in a slice, by time: singles, decays that several of its photomultipliers see, and light of muons, also of those of the neighbouring slices."""
    random = np.random.default_rng([config.seed, slice_, module])
    slice_ns, slice_s = config.slice_ms * 1_000_000, config.slice_ms / 1000
    single = random.poisson(config.singles_hz * CHANNELS * slice_s)
    channels = [random.integers(0, CHANNELS, single)]
    times = [random.integers(0, slice_ns, single).astype(np.float64)]
    for fold, rate_hz in enumerate(config.coincidences_hz, start=2):
        count = random.poisson(rate_hz * slice_s)
        seen = seen_together(random, count, fold)
        at = random.integers(0, slice_ns, count)[:, None] + random.normal(0, config.coincidence_sigma_ns, (count, fold))
        channels.append(seen.reshape(-1))
        times.append(at.reshape(-1))
    noise = sum(map(len, times))
    pes = [np.ones(noise)]
    for other in (slice_ - 1, slice_, slice_ + 1) if config.muons_hz else ():
        if other < 0:
            continue
        seen, at, electrons = light_of(config, other, module)
        at = at + (other - slice_) * slice_ns
        inside = (np.rint(at) >= 0) & (np.rint(at) < slice_ns)
        channels.append(seen[inside])
        times.append(at[inside])
        pes.append(electrons[inside])
    made = np.empty(sum(map(len, times)), HIT)
    made["channel"] = np.concatenate(channels)
    made["time_ns"] = np.clip(np.rint(np.concatenate(times)), 0, slice_ns - 1)
    # Of one photo-electron, times how many there are: as the trigger reads it, which is rough.
    one_pe = random.normal(config.tot_ns, config.tot_sigma_ns, made.size)
    made["tot"] = np.clip(np.rint(one_pe * np.concatenate(pes)), 1, 255)
    return made[np.argsort(made["time_ns"], kind="stable")]


def packets_of(config: Strings, slice_: int, module: int, hits: NDArray[np.void]) -> Iterator[tuple[int, bytes]]:
    """Its packets, and when in the slice each leaves [ns]: when its last hit was taken. A module without hits sends one without."""
    begin_ns = config.utc_second * 10**9 + slice_ * config.slice_ms * 1_000_000
    second, rest_ns = divmod(begin_ns, 10**9)
    for sequence, at in enumerate(range(0, max(1, hits.size), config.packet_hits)):
        part = hits[at : at + config.packet_hits]
        is_last = at + config.packet_hits >= hits.size
        due_ns = config.slice_ms * 1_000_000 - 1 if is_last else int(part["time_ns"][-1])
        yield due_ns, HEAD.pack(TTDC, config.run, sequence, second, rest_ns // TICK_NS, module, 0) + part.tobytes()


def run(config: Strings, say: Callable[[str], None] | None = None) -> StringsResult:
    """Sends until all is sent or a signal comes. Raises ConfigError, SetupError."""
    counts = _Counts()
    with StopSignals() as stop, _connected(config.destination) as out:
        with ThreadPoolExecutor(1, "km3-strings") as maker:  # the next slice is made while one leaves
            coming = maker.submit(_made, config, 0)
            coming.result()
            began_s = told_s = time.monotonic()
            for slice_ in range(config.slices):
                made, hits = coming.result()
                coming = maker.submit(_made, config, slice_ + 1)
                begin_s = began_s + slice_ * config.slice_ms / 1000 / config.speed if config.speed else 0.0
                counts.slices_made_late += bool(config.speed) and time.monotonic() > begin_s + LATE_S
                if not _send(config, out, made, begin_s, counts, stop):
                    break
                counts.slices += 1
                counts.hits += hits
                counts.muons += len(tracks(config, slice_))
                if say is not None and time.monotonic() - told_s >= 1.0:
                    told_s = time.monotonic()
                    say(f"{counts.slices:,} slices, {counts.hits:,} hits, {counts.packets_sent:,} packets")
        elapsed_s = time.monotonic() - began_s
        counts.tx_refused += out.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED  # of the last packet
    refused_by = {config.destination: counts.tx_refused} if counts.tx_refused else {}
    sent = {**counts.__dict__, "refused_by": refused_by}
    return {**files.base("emulate km3"), "config": config.model_dump(mode="json"), "elapsed_s": elapsed_s, **sent}  # type: ignore[typeddict-item]


def _connected(destination: str) -> socket.socket:
    """A socket that sends there, and hears when no one listens."""
    from nanet import _core

    address, port = _core.look_up(destination)
    out = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        out.connect((address, port))
    except OSError as error:
        out.close()
        why = (error.strerror or str(error)).lower()
        raise ConfigError([f"strings cannot send to {destination} ({why}) see what `ip route get` says of that address"]) from None
    return out


def _made(config: Strings, slice_: int) -> tuple[list[tuple[int, bytes]], int]:
    packets, count = list[tuple[int, bytes]](), 0
    for module in module_numbers(config):
        hits = hits_of(config, slice_, module)
        count += hits.size
        packets += packets_of(config, slice_, module, hits)
    packets.sort(key=lambda one: one[0])
    return packets, count


def _send(
    config: Strings,
    out: socket.socket,
    packets: list[tuple[int, bytes]],
    begin_s: float,
    counts: _Counts,
    stop: StopSignals,
) -> bool:
    """A slice, in bursts of a millisecond; false: a signal came."""
    next_s = begin_s
    for due_ns, packet in packets:
        if config.speed and (due_s := begin_s + due_ns * 1e-9 / config.speed) >= next_s:
            next_s = due_s + BURST_S
            if stop.wait(max(0.0, next_s - time.monotonic())):
                return False
        if _put(out, packet, counts):
            counts.packets_sent += 1
            counts.bytes_sent += len(packet)
        else:
            counts.tx_dropped += 1
    return not stop.wait(0.0)


def _put(out: socket.socket, packet: bytes, counts: _Counts) -> bool:
    """False: it could not be sent. A notice that no one listened to an earlier packet ends a call that sent nothing."""
    for _ in range(TRIES):
        try:
            out.send(packet)
        except ConnectionRefusedError:
            counts.tx_refused += 1
        except OSError:  # there is no room, or no way
            return False
        else:
            return True
    return False


def sentence(result: StringsResult) -> str:
    """A run as one sentence."""
    config = result["config"]
    text = (
        f"{result['slices']:,} slices of {config['strings'] * config['modules']} modules: {result['hits']:,} hits and {result['muons']:,} muons in {result['packets_sent']:,} packets, "
        f"{8 * result['bytes_sent'] / max(result['elapsed_s'], 1e-9) / 1e9:.2f} Gb/s"
    )
    if result["slices_made_late"]:
        text += f"; {result['slices_made_late']:,} slices made late"
    return text + (f"; {result['tx_dropped']:,} packets could not be sent" if result["tx_dropped"] else "")
