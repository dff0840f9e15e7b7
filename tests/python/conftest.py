# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the Python tests."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from made_up import whole_demo

# No test depends on how fast the machine is; hypothesis' own limit of 200 ms a case is one.
hypothesis.settings.register_profile("nanet", deadline=None)
hypothesis.settings.load_profile("nanet")


@pytest.fixture
def demo_result() -> dict[str, Any]:
    """A whole demo result with made-up numbers, nothing lost."""
    return whole_demo()
