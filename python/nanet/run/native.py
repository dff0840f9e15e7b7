# SPDX-License-Identifier: Apache-2.0
"""The native objects that run, as this package sees them, and what the engine is built from: the configuration, and the secrets that it only
names and no result repeats."""

from __future__ import annotations

from typing import Any, Protocol

from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig
from nanet.config.l0tp import L0tpConfig
from nanet.result.keys.base import Config
from nanet.result.keys.emulator import EmulatorSnapshot
from nanet.result.keys.engine import EngineMetrics, EngineSnapshot, NativeSample, TrueEvent
from nanet.result.keys.l0tp import NodeSnapshot
from nanet.run import ucx

__all__ = ["NativeEmulator", "NativeEngine", "NativeNode", "make_emulator", "make_engine", "make_node"]


class NativeEngine(Protocol):
    """nanet._core.Engine, whose stub says no more of what it returns than `dict`."""

    @property
    def running(self) -> bool: ...
    @property
    def inputs_finished(self) -> bool: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def device_names(self) -> list[str]: ...
    @property
    def faults(self) -> list[str]: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def flush(self) -> None: ...
    def snapshot(self) -> EngineSnapshot: ...
    def metrics(self, bounds_ns: list[int]) -> EngineMetrics: ...
    def event_samples(self) -> list[NativeSample]: ...
    def set_faults(self, link: str, faults: Config) -> None: ...


class NativeEmulator(Protocol):
    """nanet._core.Emulator."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def wait(self, timeout_s: float) -> bool: ...
    def snapshot(self) -> EmulatorSnapshot: ...
    def truth(self, event_count: int) -> list[TrueEvent]: ...


class NativeNode(Protocol):
    """nanet._core.TriggerNode."""

    @property
    def running(self) -> bool: ...
    @property
    def notes(self) -> list[str]: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def snapshot(self) -> NodeSnapshot: ...


def make_engine(config: EngineConfig) -> NativeEngine:
    """Not started yet. Reads the tokens of its ucx:// links; raises SetupError."""
    from nanet import _core

    made: Any = _core.Engine(native_config(config))
    engine: NativeEngine = made
    return engine


def make_emulator(config: EmulatorConfig) -> NativeEmulator:
    """Not started yet; its sockets are open. Raises SetupError."""
    from nanet import _core

    made: Any = _core.Emulator(config.model_dump(mode="json"))
    emulator: NativeEmulator = made
    return emulator


def make_node(config: L0tpConfig) -> NativeNode:
    """An L0 trigger processor, not started yet. Raises SetupError."""
    from nanet import _core

    made: Any = _core.TriggerNode(config.model_dump(mode="json"))
    node: NativeNode = made
    return node


def native_config(config: EngineConfig) -> Config:
    """The configuration for nanet._core.Engine. Reads the tokens of its ucx:// links; raises SetupError."""
    plain = config.model_dump(mode="json")
    for link, native in zip(config.links, plain["links"], strict=True):
        if link.scheme == "ucx":
            native["ucx"] = ucx.native_section(config, link)
    return plain
