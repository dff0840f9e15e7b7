# SPDX-License-Identifier: Apache-2.0
"""The native objects that run, as this package sees them, and what the engine is built from: the configuration, and the secrets that it only
names and no result repeats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol

from nanet.config.emulator import EmulatorConfig
from nanet.config.engine import EngineConfig
from nanet.config.l0tp import L0tpConfig
from nanet.config.link import LinkConfig, Ucx
from nanet.result.keys.base import Config
from nanet.result.keys.emulator import EmulatorSnapshot
from nanet.result.keys.engine import EngineMetrics, EngineSnapshot, NativeSample, TrueEvent
from nanet.result.keys.l0tp import NodeSnapshot

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

    made: Any = _core.TriggerNode(config.native_node())
    node: NativeNode = made
    return node


def native_config(config: EngineConfig) -> Config:
    """The configuration for nanet._core.Engine. Reads the tokens of its ucx:// links; raises SetupError."""
    plain = config.model_dump(mode="json")
    for link, native in zip(config.links, plain["links"], strict=True):
        if link.scheme == "ucx":
            ucx = link.ucx or Ucx()
            _check_account(config, link, ucx)
            _check_shared(config, link, ucx)
            native["ucx"] = ucx.model_dump(mode="json") | {"token": _token(link, ucx)}
    return plain


def _check_account(config: EngineConfig, link: LinkConfig, ucx: Ucx) -> None:
    """Who writes into this process must not get root with it."""
    from nanet._core import SetupError

    if os.geteuid() == 0 and config.run.user is None and not ucx.allow_root:
        raise SetupError(
            f"link '{link.name}' is not opened as root (a sender could use what this process may do) start as another account,"
            " or set run.user, or ucx.allow_root: true"
        )


def _check_shared(config: EngineConfig, link: LinkConfig, ucx: Ucx) -> None:
    from nanet._core import SetupError
    from nanet.rdma import serve

    is_shared = serve.is_loopback(_address(link)) and "tcp" not in ucx.transports.split(",")
    if os.geteuid() == 0 and config.run.user is not None and is_shared:
        raise SetupError(
            f"link '{link.name}' cannot be used with run.user (its shared memory would be root's, and no sender could map it)"
            f" start as {config.run.user} and remove run.user"
        )


def _address(link: LinkConfig) -> str:
    return link.endpoint.partition("://")[2].rpartition(":")[0]


def _token(link: LinkConfig, ucx: Ucx) -> int:
    """What a sender must know; 0: nothing, on loopback only, as with `nanet rdma serve`."""
    from nanet._core import SetupError
    from nanet.rdma import serve, tokens

    token = tokens.read_token(Path(ucx.token_file) if ucx.token_file else None)
    if token == 0 and not serve.is_loopback(_address(link)):
        raise SetupError(
            f"link '{link.name}' does not listen on {link.endpoint} without a token (whoever reaches the port could write into this"
            f" process) set ucx.token_file, or {tokens.VARIABLE} in the environment, or listen on 127.0.0.1"
        )
    return token
