# SPDX-License-Identifier: Apache-2.0
"""A burst of light over a whole tower, through the engine: what of it was kept, and what has a name.

Bioluminescence multiplies the rate of all floors for a time. The engine buffers what it cannot judge at once; where there is no room, hits, units or
packets are left out, and counted. Here every hit that was sent is looked for: judged, or under a name; nothing may be missing without one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from nanet.bench.km3_burst_keys import BurstResult
from nanet.config import EngineConfig
from nanet.config.components import Tower
from nanet.machine.ports import unused_port
from nanet.result import files
from nanet.run import km3_tower
from nanet.run.examples import example
from nanet.run.process import EngineProcess

__all__ = ["Options", "engine_of", "lines", "result_of", "run", "tower_of"]

SLICE_MS = 200
PM_HZ, PMS = 55_000, 6
BEFORE_S, AFTER_S = 1.0, 2.0
DRAINED_S, DRAIN_MOST_S = 3.0, 120.0  # nothing more is judged for so long; so long it may take
HITS_LEFT_OUT = ("hits_below_threshold", "hits_bad_time", "hits_no_room")
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Options:
    """samples: of each hit, 0: short hits. With 22 of them a hit is 30 B, and a burst of 4 times 317 Mb/s of a floor."""

    floors: int = 14
    factor: float = 4.0
    burst_s: float = 1.0
    samples: int = 0
    speed: float = 1.0
    seed: int = 1


def tower_of(options: Options, port: int) -> Tower:
    """A second as always, the burst on all floors, and two seconds as always, in which what was buffered can be judged."""
    before, burst, after = (max(1, round(1000 * seconds / SLICE_MS)) for seconds in (BEFORE_S, options.burst_s, AFTER_S))
    return Tower.model_validate({
        "seed": options.seed, "destinations": [f"udp://127.0.0.1:{port}"], "floors": options.floors, "slice_ms": SLICE_MS,
        "duration_s": (before + burst + after) * SLICE_MS / 1000, "speed": options.speed, "hits": options.samples == 0, "samples": options.samples,
        "hydrophones": False, "instruments": False, "noise": {"singles_hz": PM_HZ},
        "loud": [{"floor": 0, "slice": before, "slices": burst, "factor": options.factor}],
    })  # fmt: skip


def engine_of(options: Options, port: int) -> EngineConfig:
    """The example's engine with room for the burst: for the hits of a floor, for seeds, whose coincidences rise with the square, and in each buffer."""
    plain: dict[str, Any] = yaml.safe_load(example("km3").read_text(encoding="utf-8"))
    hits = PMS * PM_HZ * options.factor * SLICE_MS / 1000
    unit_bytes = 1.1 * hits * (8 + options.samples if options.samples else 6)
    plain["memory_regions"] = [{"name": "units", "buffer_count": 256, "buffer_bytes": MEBIBYTE * (int(unit_bytes) // MEBIBYTE + 1)}]
    slow = max(1.0, 1 / options.speed) if options.speed else 1.0  # a slice takes so much longer to come
    plain["links"][0]["endpoint"] = f"udp://127.0.0.1:{port}"
    plain["links"][0]["assemble"]["timeout_us"] = int(plain["links"][0]["assemble"]["timeout_us"] * slow)
    trigger = {"floor_hits_max": int(1.2 * hits) + 1024, "seeds_max": 1 << 20}
    plain["processor"]["km3"] = {
        "floors": options.floors,
        "data": "sampled" if options.samples else "hits",
        "timeout_ms": int(1000 * slow),
        "trigger": trigger,
    }
    plain.pop("answers", None)
    plain["waiting"] = {"spin": 200}
    return EngineConfig.model_validate(plain)


def run(options: Options, say: Callable[[str], None] = lambda _: None) -> BurstResult:
    """The result as `nanet bench km3-burst --json` writes it. Raises ConfigError, SetupError, EngineError."""
    port = unused_port()
    tower = tower_of(options, port)
    with EngineProcess(engine_of(options, port)) as process:
        sent = km3_tower.run(tower, say=say)
        _drain(process)
        ended = process.stop()
    return result_of(options, sent, ended)


def _drain(process: EngineProcess) -> None:
    """Until the engine has judged what it had buffered."""
    begun_s = last_s = time.monotonic()
    before = -1
    while time.monotonic() - last_s < DRAINED_S and time.monotonic() - begun_s < DRAIN_MOST_S:
        time.sleep(0.2)
        now = process.counters().get("units_handed_over", 0)
        if now != before:
            before, last_s = now, time.monotonic()


def result_of(options: Options, sent: Mapping[str, Any], ended: Mapping[str, Any]) -> BurstResult:
    """The books: of hits where every unit came, else of units, whose hits no one knows."""
    counters, losses = ended["counters"], {name: int(count) for name, count in ended["losses"].items() if count}
    left_out = {name: int(counters[name]) for name in HITS_LEFT_OUT if counters[name]}
    missing = int(sent["hits"]) - int(counters["hits_used"]) - sum(left_out.values())
    # Packets or units are missing, by name, and their hits with them.
    has_holes = any(name not in (*HITS_LEFT_OUT, "seeds_no_room") for name in losses)
    return {
        **files.base("bench km3-burst"),
        "floors": options.floors, "factor": options.factor, "burst_s": options.burst_s, "samples": options.samples, "speed": options.speed,
        "hits_sent": int(sent["hits"]), "hits_used": int(counters["hits_used"]), "hits_left_out": left_out,
        "hits_in_lost_units": max(0, missing) if has_holes else 0, "hits_unexplained": missing if not has_holes or missing < 0 else 0,
        "packets_sent": int(sent["packets_sent"]), "packets_accepted": int(counters["packets_accepted"]),
        "units_sent": int(sent["units"]), "units_used": int(counters["units_used"]), "units_made_late": int(sent["units_made_late"]),
        "losses": losses, "packets_unexplained": int(ended["balance"]["unexplained_packets"]), "tx_dropped": int(sent["tx_dropped"]),
    }  # fmt: skip


def is_kept(result: BurstResult) -> bool:
    """Nothing is missing without a name."""
    return result["hits_unexplained"] == 0 and result["packets_unexplained"] == 0


def lines(result: BurstResult) -> list[str]:
    """What happened."""
    share = result["hits_used"] / max(1, result["hits_sent"])
    left = ", ".join(f"{count:,} {name}" for name, count in {**result["hits_left_out"], **result["losses"]}.items()) or "nothing"
    return [
        f"a burst of {result['factor']:g} x for {result['burst_s']:g} s on {result['floors']} floors: {result['hits_sent']:,} hits sent in "
        f"{result['units_sent']:,} units, {result['hits_used']:,} judged ({100 * share:.4f} %)",
        f"left out by name: {left}"
        + (f"; {result['hits_in_lost_units']:,} hits with them" if result["hits_in_lost_units"] else ""),
        f"without a name: {result['hits_unexplained']:,} hits, {result['packets_unexplained']:,} packets",
    ]
