# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the Python tests."""

from __future__ import annotations

from typing import Any

import pytest
from made_up import whole_demo


@pytest.fixture
def demo_result() -> dict[str, Any]:
    """A whole demo result with made-up numbers, nothing lost."""
    return whole_demo()
