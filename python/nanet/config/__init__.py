# SPDX-License-Identifier: Apache-2.0
"""What can be configured: the models, and what reads them from files. docs/design/config.md

For programs: the models of an engine's configuration, here. Those of the emulator are in `nanet.config.emulator`, of the L0 trigger processor
in `nanet.config.l0tp`.
"""

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
)
from nanet.config.errors import ConfigError
from nanet.config.link import Dpdk, Faults, Gateware, LinkConfig, Record, Source, Ucx, Xdp
from nanet.config.rich import Cuts, Decision

__all__ = [
    "Answers",
    "ConfigError",
    "Cores",
    "Cuts",
    "Decision",
    "Dpdk",
    "EngineConfig",
    "Faults",
    "Gateware",
    "Gpu",
    "LinkConfig",
    "MemoryRegion",
    "Merge",
    "Metrics",
    "PortConfig",
    "Processor",
    "Record",
    "Run",
    "Source",
    "Ucx",
    "Waiting",
    "Xdp",
    "load",
]
