# SPDX-License-Identifier: Apache-2.0
"""What a user can require of the path to a target. A requirement holds only where the path proves it; there is no benefit of the doubt."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from nanet.rdma import NotDone


class Require(StrEnum):
    """Requirements on the path."""

    ONE_SIDED = "one-sided"
    RDMA = "rdma"
    ZERO_COPY = "zero-copy"
    GPUDIRECT = "gpudirect"


def check_path(path: Mapping[str, Any], require: Require | None) -> None:
    """Raises NotDone unless the path (as nanet._rdma tells it) proves what is required."""
    why = unmet(path, require)
    if why is not None:
        raise NotDone(f"the path is not {require} ({why}) name other transports, or do not require it")


def unmet(path: Mapping[str, Any], require: Require | None) -> str | None:
    """Why a requirement is not met, or not provable; None: it is met."""
    text = path["text"]
    if require is None:
        return None
    if require is Require.ONE_SIDED:
        return None if path["sided"] == "one_sided" else f"it is {text}"
    if require is Require.GPUDIRECT:
        return f"the memory of both sides is the host's; the path is {text}"
    if not any(lane["transport"].startswith(("rc", "dc")) for lane in path["lanes"]):
        return f"it is {text}: no lane of RDMA hardware, rc or dc, is in it"
    return f"it is {text}, but this version cannot prove which lane a transfer takes"
