# SPDX-License-Identifier: Apache-2.0
"""Remote memory: regions that one process exposes and others write and read, through UCX. What `nanet rdma` is made of.

docs/rdma.md says how to use it, docs/design/rdma.md how it works. A worker of UCX is used by the thread that made it.
For programs: expose and connect, see nanet.rdma.regions.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nanet.rdma.regions import Connection, Target, connect, expose

__all__ = ["INSTALL", "Connection", "NotDone", "Target", "connect", "expose", "native"]

TRUSTED = "reach: whoever reaches the interface of that address has full control over this process (UCX's TCP checks no keys)"
INSTALL = "run make links in a clone, or pip install 'nanet[rdma]'"


class NotDone(Exception):
    """What was asked was not done, or is not sure to have been: problem (why) suggestion. Exit code 1."""


def native() -> Any:
    """The module nanet._rdma. Raises NotDone where this nanet was built without UCX, or UCX is gone."""
    importlib.import_module("nanet._core")  # it makes SetupError Python's
    try:
        return importlib.import_module("nanet._rdma")
    except ModuleNotFoundError:
        raise NotDone(f"this nanet has no RDMA (it was built without UCX 1.18 or newer) {INSTALL}") from None
    except ImportError as error:
        raise NotDone(f"UCX cannot be loaded ({error}) {INSTALL}") from None


def __getattr__(name: str) -> Any:
    if name in ("Connection", "Target", "connect", "expose"):
        return getattr(importlib.import_module("nanet.rdma.regions"), name)
    raise AttributeError(f"module 'nanet.rdma' has no attribute '{name}'")
