# SPDX-License-Identifier: Apache-2.0
"""Runs an emulated KM3NeT tower in this process, and writes what is true of what it sent: tracks, their hits, where everything is.

The truth is made again from the seed when the run is over, so it costs the sender nothing.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from nanet.config.components import Tower
from nanet.config.errors import ConfigError, load_document, validated
from nanet.machine.signals import StopSignals
from nanet.result import files, outputs
from nanet.result.histogram import Histogram
from nanet.result.keys.base import Base, Config, Counts, Latency

GIGA = 1e9


class TowerResult(Base):
    """What `nanet emulate km3` writes."""

    config: Annotated[Config, "with every default filled in"]
    slices: Annotated[int, "that were sent whole"]
    units: Annotated[int, "of all streams: what a floor sends of one kind in one slice"]
    units_made_late: Annotated[int, "that were not ready when their slice began"]
    hits: Annotated[int, "in them"]
    packets_made: Annotated[int, "before faults"]
    packets_sent: Annotated[int, "given to the socket, with those sent twice"]
    bytes_sent: Annotated[int, "in them, with their headers"]
    faults: Annotated[dict[str, int], "packets that were harmed on purpose, by how"]
    damaged_fields: Annotated[dict[str, int], "of the damaged packets, which field"]
    control: Annotated[dict[str, int], "slow control: requests answered, of them repeated ones, and packets that were none"]
    tx_dropped: Annotated[int, "packets that could not be sent"]
    tx_refused: Annotated[int, "notices that no one listened"]
    refused_by: Annotated[Counts, "these by destination"]
    elapsed_s: Annotated[float, "of sending"]
    rate_gbit_s: Annotated[float, "mean, headers included"]
    lateness_us: Annotated[Latency | None, "how much later packets left than they were due"]
    truth: Annotated[str | None, "the file that has it"]


def load(path: Path) -> Tower:
    """The configuration in a YAML file. Raises ConfigError."""
    return validated(Tower, load_document(path))


def detector_text(config: Tower) -> str:
    """Of the detector file, if one is named. Raises ConfigError."""
    if not config.detector:
        return ""
    try:
        return Path(config.detector).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([f"cannot read detector {config.detector} ({error}) give a file .detx"]) from None


def make_tower(config: Tower) -> Any:
    """nanet._core.Tower, not started; its sockets are open. Raises SetupError."""
    from nanet import _core

    return _core.Tower(config.model_dump(mode="json"), detector_text(config))


def make_units(config: Tower) -> Any:
    """nanet._core.TowerUnits: the bytes of units and the truth, without sockets. Raises SetupError."""
    from nanet import _core

    return _core.TowerUnits(config.model_dump(mode="json"), detector_text(config))


def run(config: Tower, *, truth: Path | None = None, say: Callable[[str], None] | None = None) -> TowerResult:
    """Sends until all is sent or a signal comes. Raises SetupError, OutputError."""
    with StopSignals() as stop:
        tower = make_tower(config)
        for note in tower.notes:
            if say is not None:
                say(note)
        if say is not None and tower.control_ports:
            say(f"slow control of floors 1 to {config.floors}: ports {tower.control_ports[0]} to {tower.control_ports[-1]}")
        tower.start()
        told = time.monotonic()
        while not tower.wait(0.0) and not stop.wait(0.1):
            if say is not None and time.monotonic() - told >= 1.0:
                told = time.monotonic()
                say(line(tower.snapshot()))
        tower.stop()
        snapshot = tower.snapshot()
    if truth is not None:
        write_truth(truth, config, int(snapshot["slices"]))
    return result_of(config, snapshot, truth)


def line(snapshot: dict[str, Any]) -> str:
    """How far it is."""
    rate = 8 * snapshot["bytes_sent"] / max(snapshot["elapsed_s"], 1e-9) / GIGA
    late = Histogram.from_native(snapshot["lateness"])
    text = f"{snapshot['slices']:,} slices, {snapshot['hits']:,} hits, {snapshot['packets_sent']:,} packets, {rate:.2f} Gb/s"
    return text + (f", late p99 {late.summary_us()['p99']:,.0f} us" if late.count else "")


def result_of(config: Tower, snapshot: dict[str, Any], truth: Path | None) -> TowerResult:
    """A run as JSON keys."""
    late = Histogram.from_native(snapshot["lateness"])
    elapsed_s = float(snapshot["elapsed_s"])
    return {
        **files.base("emulate km3"),
        "config": config.model_dump(mode="json"),
        "slices": snapshot["slices"],
        "units": snapshot["units"],
        "units_made_late": snapshot["units_made_late"],
        "hits": snapshot["hits"],
        "packets_made": snapshot["packets_made"],
        "packets_sent": snapshot["packets_sent"],
        "bytes_sent": snapshot["bytes_sent"],
        "faults": {name: snapshot[f"packets_{name}"] for name in ("lost", "duplicated", "reordered", "damaged", "silent")},
        "damaged_fields": snapshot["damaged_fields"],
        "control": {name: snapshot[f"control_{name}"] for name in ("requests", "repeated", "bad")},
        "tx_dropped": snapshot["tx_dropped"],
        "tx_refused": snapshot["tx_refused"],
        "refused_by": snapshot["refused_by"],
        "elapsed_s": elapsed_s,
        "rate_gbit_s": 8 * snapshot["bytes_sent"] / elapsed_s / GIGA if elapsed_s else 0.0,
        "lateness_us": late.summary_us() if late.count else None,
        "truth": str(truth) if truth is not None else None,
    }


def write_truth(path: Path, config: Tower, slices: int) -> None:
    """Tracks and their hits of the first `slices` slices, and where photomultipliers are: HDF5. Raises OutputError.

    With a pool, slice k has the light of slice k modulo pool_slices, and only what of it lies in that slice.
    """
    import h5py
    import numpy as np

    units = make_units(config)
    tracks: list[Any] = []
    hits: list[Any] = []
    for slice_ in range(slices):
        for track in units.tracks(slice_ % config.pool_slices if config.pool_slices else slice_):
            number = len(tracks)
            tracks.append((slice_, track["time_ns"], track["position_m"], track["direction"], len(track["hits"])))
            hits += [(number, hit["floor"], hit["pm"], hit["time_ns"], hit["charge"], hit["scattered"]) for hit in track["hits"]]
    places = [(one["floor"], one["pm"], one["position_m"], one["direction"], one["time_offset_ns"]) for one in units.places()]
    xyz = ("<f8", 3)
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        file.attrs["config"] = json.dumps(config.model_dump(mode="json"))
        file.attrs["detx"] = units.detx()
        file["tracks"] = np.array(
            tracks, dtype=[("slice", "<u4"), ("time_ns", "<f8"), ("position_m", *xyz), ("direction", *xyz), ("hits", "<u4")]
        )
        file["hits"] = np.array(
            hits, dtype=[("track", "<u4"), ("floor", "u1"), ("pm", "u1"), ("time_ns", "<f8"), ("charge", "u1"), ("scattered", "?")]
        )
        file["places"] = np.array(
            places, dtype=[("floor", "u1"), ("pm", "u1"), ("position_m", *xyz), ("direction", *xyz), ("time_offset_ns", "<f8")]
        )
    outputs.write(path, memory.getvalue())


def sentence(result: TowerResult) -> str:
    """A run as one sentence."""
    text = (
        f"{result['slices']:,} slices of {result['config']['floors']} floors: {result['hits']:,} hits in {result['packets_sent']:,} packets, "
        f"{result['rate_gbit_s']:.2f} Gb/s"
    )
    if late := result["lateness_us"]:
        text += f"; late p50 {late['p50']:,.0f}  p99 {late['p99']:,.0f}  max {late['max']:,.0f} us"
    if result["tx_dropped"]:
        text += f"; {result['tx_dropped']:,} packets could not be sent"
    return text
