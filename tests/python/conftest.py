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

# Files that take ten seconds or more of a core: most of them start a process a test.
SLOW = {
    "test_cli", "test_cli_help", "test_finder_classic", "test_finder_mixture", "test_l0tp_model", "test_make_stencil", "test_physics",
    "test_rdma_commands", "test_stencil_field", "test_stencil_modes", "test_stencil_ranks",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that `make test-quick` leaves out."""
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker("slow")


@pytest.fixture
def demo_result() -> dict[str, Any]:
    """A whole demo result with made-up numbers, nothing lost."""
    return whole_demo()
