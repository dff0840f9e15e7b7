# SPDX-License-Identifier: Apache-2.0
"""A link alone: packets are received, decoded as far as their header and checksum, put in sequence and counted. No rings, no answers.

That is what spead2 does with a packet, and less than testpmd does (which sends one for each that it takes in). The boards send as in every
other run; nothing comes back, so the only verdict is whether each packet was received.
"""

from __future__ import annotations

import os

from nanet.bench import links
from nanet.bench.links import Variant
from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig
from nanet.config.errors import validated
from nanet.loop.keys import Run
from nanet.loop.run import Loop
from nanet.machine.facts import CorePlan, keep_to
from nanet.machine.netns import VethPair
from nanet.result import books
from nanet.result.keys.emulator import EmulatorRun
from nanet.result.keys.engine import EngineEnd
from nanet.run import emulate
from nanet.run.process import EngineProcess


def configs(variant: Variant, loop: Loop, pair: VethPair, cores: CorePlan) -> tuple[EngineConfig, EmulatorConfig]:
    """Configurations of an engine that counts and of boards that await no answer. Raises ConfigError."""
    engine_model, emulator_model = links.configs(variant, loop, pair, cores)
    engine, emulator = engine_model.model_dump(mode="json"), emulator_model.model_dump(mode="json")
    engine |= {"processor": {"kind": "count"}, "answers": None}
    emulator |= {"answers": None, "xdp": None, "drain_ms": 0}
    return validated(EngineConfig, engine), validated(EmulatorConfig, emulator)


def run(variant: Variant, loop: Loop, pair: VethPair, cores: CorePlan) -> Run:
    """One run, under the keys of demo.run_loop; `lost` and `losses` are packets here. Raises ConfigError and EngineError."""
    engine_config, emulator_config = configs(variant, loop, pair, cores)
    with EngineProcess(engine_config, pair.engine.namespace) as engine:
        before = os.sched_getaffinity(0)
        keep_to(cores.others)
        try:
            emulated = emulate.run_whole(emulator_config, namespace=pair.boards.namespace)
        finally:
            keep_to(before)
        return joined(emulated, engine.stop())


def joined(emulated: EmulatorRun, engine: EngineEnd) -> Run:
    """The result of a run from the results of its two halves."""
    counters = engine["counters"]
    lost = int(emulated["packets_sent"]) - int(counters["packets_accepted"])
    losses = {name: int(counters[name]) for name in books.PACKET_LOSSES}
    return {
        "sent": int(emulated["sent"]),
        "answered": None,
        "lost": lost,
        "losses": losses | {"lost_at_an_end": max(0, lost - sum(losses.values()))},
        "latency_us": None,
        "mistakes": {name: int(counters[name]) for name in books.PACKET_REFUSALS},
        "emulator": emulated,
        "engine": engine,
        "balance": None,
    }
