# SPDX-License-Identifier: Apache-2.0
"""nanet: detector data from the network to the processor that judges it, and the verdict back, in a latency that can be stated.

For programs, documented in docs/api.md:
    nanet.open(endpoint)      receive datagrams into buffers, see them without a copy, send
    nanet.find_rings(...)     the rings of many events; with fit_rings, judge, primitive_ids, monte_carlo, pm_positions
    nanet.Engine(config)      the whole engine, in this process
    nanet.rdma                remote memory: expose, connect, put, get
    nanet.wire                the packet formats as numpy structured dtypes
    nanet.config              the configuration's models
    nanet.stencil             Jacobi sweeps over an array on all cores
    nanet.torus               a simulated torus of APEnet+ nodes: put, get and tell between their memories
    nanet.examples()          configurations and programs to begin with
Everything is loaded when it is first used, so that `import nanet` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanet import config, rdma, stencil, torus, wire
    from nanet._core import SetupError
    from nanet.config.errors import ConfigError
    from nanet.port.port import Completion, Port, Unit, open, open_queues  # noqa: A004
    from nanet.result.build import version
    from nanet.rich.rings import find_rings, fit_rings, judge, monte_carlo, pm_positions, primitive_ids
    from nanet.run.engine import Engine
    from nanet.run.examples import examples

__all__ = [
    "Completion", "ConfigError", "Engine", "Port", "SetupError", "Unit", "config", "examples", "find_rings", "fit_rings", "judge", "monte_carlo",
    "open", "open_queues", "pm_positions", "primitive_ids", "rdma", "stencil", "torus", "version", "wire",
]  # fmt: skip

_HOMES = {
    "open": "nanet.port.port",
    "open_queues": "nanet.port.port",
    "Port": "nanet.port.port",
    "Completion": "nanet.port.port",
    "Unit": "nanet.port.port",
    "ConfigError": "nanet.config",
    "SetupError": "nanet._core",
    "version": "nanet.result.build",
    "Engine": "nanet.run.engine",
    "examples": "nanet.run.examples",
    **dict.fromkeys(("find_rings", "fit_rings", "judge", "monte_carlo", "pm_positions", "primitive_ids"), "nanet.rich.rings"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from nanet.result.build import version

        return version()
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in ("config", "rdma", "stencil", "torus", "wire"):
        return importlib.import_module(f"nanet.{name}")
    raise AttributeError(f"module 'nanet' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
