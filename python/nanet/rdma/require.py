# SPDX-License-Identifier: Apache-2.0
"""What a user can require of the path to a target. The library decides, when it connects; there is no benefit of the doubt."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import StrEnum

from nanet.rdma import NotDone

REFUSAL = "the way to "  # how the library begins when a path is not what was required


class Require(StrEnum):
    """Requirements on the path: Require in include/nanet/rdma/connection.hpp."""

    ONE_SIDED = "one-sided"
    RDMA = "rdma"
    ZERO_COPY = "zero-copy"
    GPUDIRECT = "gpudirect"


@contextlib.contextmanager
def refusals(require: Require | None) -> Iterator[None]:
    """Around the making of a connection: a path that is not as required is not done, where any other refusal is SetupError."""
    from nanet._core import SetupError

    try:
        yield
    except SetupError as error:
        if require is None or not str(error).startswith(REFUSAL):
            raise
        raise NotDone(str(error)) from None
