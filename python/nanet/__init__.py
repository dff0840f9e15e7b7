# SPDX-License-Identifier: Apache-2.0
"""nanet: detector data from the network to the processor that judges it, and the verdict back, in a latency that can be stated.

For programs:
    nanet.open(endpoint)      receive datagrams into buffers, see them without a copy, send: see nanet.port
    nanet.fit_rings(...)      the vectorised ring fit of many events
    nanet.wire                the packet formats as numpy structured dtypes
    nanet.config              the configuration's models
    nanet.stencil             Jacobi sweeps over an array on all cores
Everything is loaded when it is first used, so that `import nanet` costs nothing.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanet import config, stencil, wire
    from nanet._core import SetupError, fit_rings
    from nanet.config import ConfigError
    from nanet.port import Completion, Port, open  # noqa: A004

__all__ = ["Completion", "ConfigError", "Port", "SetupError", "config", "fit_rings", "open", "stencil", "version", "wire"]

_HOMES = {
    "open": "nanet.port",
    "Port": "nanet.port",
    "Completion": "nanet.port",
    "ConfigError": "nanet.config",
    "SetupError": "nanet._core",
    "fit_rings": "nanet._core",
}


def version() -> str:
    """The version of this package."""
    try:
        return importlib.metadata.version("nanet")
    except importlib.metadata.PackageNotFoundError:
        return "0+source"


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version()
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in ("wire", "config", "stencil"):
        return importlib.import_module(f"nanet.{name}")
    raise AttributeError(f"module 'nanet' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
