# SPDX-License-Identifier: Apache-2.0
"""Remote memory: regions that one process exposes and others write and read, through UCX. What `nanet rdma` is made of.

docs/rdma.md says how to use it, docs/design/rdma.md how it works. A worker of UCX is used by the thread that made it.
"""

from __future__ import annotations

import importlib
from typing import Any

INSTALL = "pip install 'libucx-cu13>=1.22,<2', or set UCX_ROOT, then build nanet again"


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
