# SPDX-License-Identifier: Apache-2.0
"""Made-up results, so that reports and sentences can be tested without sockets."""

from __future__ import annotations

import typing
from typing import Any

import make_json_page
import numpy as np
from nanet.loop import l0
from nanet.loop import run as loops
from nanet.loop.keys import L0Part
from nanet.machine.facts import CorePlan
from nanet.result import books, files
from nanet.result.histogram import Histogram
from nanet.result.keys.emulator import Decisions, EmulatorRun
from nanet.result.keys.engine import EngineEnd
from nanet.result.keys.l0tp import NodeCounters
from nanet.rich import pm_map


def filled(made: Any, **given: Any) -> Any:
    """An object of a result's type that says nothing (0, empty, null), apart from what is given."""
    return {key.name: _nothing(key.type) for key in make_json_page.keys_of(made) if key.needed} | given


def _nothing(made: Any) -> Any:
    bare = make_json_page.plain(made)
    choices = make_json_page.choices(made)
    if type(None) in choices or bare is None:
        return None
    if make_json_page.has_keys(made):
        return filled(made)
    if typing.get_origin(bare) is typing.Literal:
        return typing.get_args(bare)[0]
    return (typing.get_origin(bare) or bare)()


def samples(count: int = 12, seed: int = 3) -> list[dict[str, Any]]:
    """Events with hits on a true ring, in the form of an engine's event samples."""
    generator = np.random.default_rng(seed)
    disk = np.concatenate([pm_map.half_disk_mm(0), pm_map.half_disk_mm(1)])
    channel = np.concatenate([np.arange(488), np.arange(488) + 512])
    found = []
    for n in range(count):
        radius = 189.65 if n % 3 == 0 else float(generator.uniform(90, 182))
        x, y = generator.normal(0, 20, 2)
        angle = generator.uniform(0, 2 * np.pi, 16)
        points = np.column_stack([x + radius * np.cos(angle), y + radius * np.sin(angle)])
        nearest = np.unique(np.argmin(np.linalg.norm(disk[None] - points[:, None], axis=2), axis=1))
        hits = channel[nearest] | (generator.integers(0, 32, len(nearest)) << 11)
        found.append({
            "hits": [int(h) for h in hits], "timestamp": n, "fine_time": 0, "found": n != 7, "electron": n % 3 == 0,
            "rings": [{"x_mm": float(x), "y_mm": float(y), "radius_mm": radius, "rms_mm": 4.5, "time_ns": 0.0, "hits": 16}] * (n != 7),
            "truth": [{"x_mm": float(x) + 2, "y_mm": float(y), "radius_mm": radius - 1, "time_ns": 0.0, "hits": 16}],
        })  # fmt: skip
    return found


def histogram_of(median_us: float, count: int = 200_000, seed: int = 1) -> Histogram:
    generator = np.random.default_rng(seed)
    return Histogram.from_values((generator.lognormal(np.log(median_us * 1e3), 0.25, count)).astype(np.int64))


def channels() -> dict[str, Any]:
    """`channels` of a result: light about a ring of 150 mm, two hot channels of which one is masked, a dead supercell."""
    distance = np.hypot(*np.nan_to_num(pm_map.positions_mm(), nan=1e9).T)
    hits = (120_000 * np.exp(-(((distance - 150) / 60) ** 2) / 2)).astype(int)
    hits[[300, 1500]] = 10_000_000
    hits[640:648] = 0
    return {
        "hits": hits.tolist(), "hot": [300, 1500], "dead": list(range(640, 648)), "masked": [],
        "masked_in_run": [{"channel": 1500, "at_s": 0.012, "events": 256}],
    }  # fmt: skip


def whole_demo() -> dict[str, Any]:
    """A whole demo result: 10,000,000 events, none lost. The numbers are made up."""
    loop = loops.Loop()
    engine_config, emulator_config = loops.loop_configs(loop, CorePlan(None, None, frozenset({0})))
    ours, inside = histogram_of(21.0), histogram_of(4.0, seed=2)
    sent = 10_000_000
    counters = {
        "packets_accepted": 625_000, "events_received": sent, "events_answered": sent, "rings_found": 9_900_000,
        "rings_electron": 2_000_000,
    }  # fmt: skip
    radius = np.zeros(400, dtype=int)
    radius[100:182] = np.linspace(100, 90_000, 82).astype(int)
    radius[186:194] = [20_000, 90_000, 240_000, 400_000, 390_000, 230_000, 80_000, 15_000]
    series = [
        {"t_s": n / 10, "sent": n * 100_000, "answered": n * 100_000, "p50_ns": 21_000 + 40 * n, "p99_ns": 38_000, "max_ns": 90_000 + 3_000 * (n % 7)}
        for n in range(1, 101)
    ]  # fmt: skip
    emulated = filled(
        EmulatorRun, config=emulator_config.model_dump(mode="json"), sent=sent, answered=sent, elapsed_s=10.0, lost=0,
        latency_us=ours.summary_us(), latency_histogram=ours.encode(), latency_clean_us=ours.summary_us(),
        latency_clean_histogram=ours.encode(), send_lateness_us=inside.summary_us(), series=series,
    )  # fmt: skip
    engine = filled(
        EngineEnd, config=engine_config.model_dump(mode="json"), counters=counters, latency_us=inside.summary_us(), elapsed_s=10.0,
        latency_histogram=inside.encode(), event_samples=samples(), channels=channels(),
    )  # fmt: skip
    engine["rings"]["radius_mm"] = radius.tolist()
    result = loops.joined(engine_config, emulated, engine)
    assert result["losses"] == dict.fromkeys(books.EVENT_LOSSES, 0)
    return {**result, "notes": ["made up for a test"], "tune": [], "date": files.now()}


def l0_part() -> dict[str, Any]:
    """`l0` of a demo result: 10,000,000 primitives, 100 of them late. The numbers are made up."""
    config = l0.l0tp_config(6200, CorePlan(None, None, frozenset({0})))
    names = (
        "packets",
        "primitives",
        "stored",
        "calibrations",
        "late",
        "out_of_range",
        "duplicates",
        "calibrations_no_room",
        "overwritten",
    )
    rich = dict.fromkeys(names, 0) | {"primitives": 10_000_000, "stored": 9_999_900, "late": 100, "matched": 9_999_900}
    inputs = [{"name": one.name, "counters": rich | {"matched": 9_999_900 - 100_000 * n}} for n, one in enumerate(config.inputs)]
    whole, own = histogram_of(240.0, 50_000), histogram_of(210.0, 50_000, seed=4)
    return dict(filled(
        L0Part, config=config.model_dump(mode="json"), counters=filled(NodeCounters, decided=9_999_900), inputs=inputs,
        masks=[{"name": m.name, "downscaling": m.downscaling, "matched": 20_000, "fired": 10_000} for m in config.masks],
        triggers_sent=50_000, decisions=filled(Decisions, physics=50_000),
        latency_us=own.summary_us(), latency_histogram=own.encode(),
        event_to_decision_us=whole.summary_us(), event_to_decision_histogram=whole.encode(),
    ))  # fmt: skip
