# SPDX-License-Identifier: Apache-2.0
"""What `nanet doctor` and `nanet rdma doctor` write."""

from __future__ import annotations

from typing import Annotated

from nanet.machine.check import CheckKeys
from nanet.result.keys.base import Base


class ChecksResult(Base):
    """All findings."""

    state: Annotated[str, "the worst of all: `ok`, `warn`, `fail`"]
    checks: Annotated[list[CheckKeys], "a finding each"]
