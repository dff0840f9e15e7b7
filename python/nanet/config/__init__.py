# SPDX-License-Identifier: Apache-2.0
"""What can be configured: the models, and what reads them from files. docs/design/config.md

For programs: the models of an engine's configuration, here. Those of the emulator are in `nanet.config.emulator`, of the L0 trigger processor
in `nanet.config.l0tp`. Loaded when first used: who needs an error alone does not wait for all models.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanet.config.engine import (
        Answers,
        Cores,
        EngineConfig,
        Gpu,
        MemoryRegion,
        Merge,
        Metrics,
        PortConfig,
        Processor,
        Run,
        Waiting,
        load,
    )  # fmt: skip
    from nanet.config.errors import ConfigError
    from nanet.config.link import Dpdk, Faults, Gateware, LinkConfig, Record, Source, Ucx, Xdp
    from nanet.config.rich import Cuts, Decision

__all__ = [
    "Answers", "ConfigError", "Cores", "Cuts", "Decision", "Dpdk", "EngineConfig", "Faults", "Gateware", "Gpu", "LinkConfig", "MemoryRegion",
    "Merge", "Metrics", "PortConfig", "Processor", "Record", "Run", "Source", "Ucx", "Waiting", "Xdp", "load",
]  # fmt: skip

_HOMES = {
    "ConfigError": "errors",
    **dict.fromkeys(("Dpdk", "Faults", "Gateware", "LinkConfig", "Record", "Source", "Ucx", "Xdp"), "link"),
    **dict.fromkeys(("Cuts", "Decision"), "rich"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'nanet.config' has no attribute '{name}'")
    return getattr(importlib.import_module(f"nanet.config.{_HOMES.get(name, 'engine')}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
