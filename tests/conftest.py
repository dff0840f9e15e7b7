# SPDX-License-Identifier: Apache-2.0
"""What all Python tests share: those that need UCX."""

from __future__ import annotations

import warnings

import pytest
from nanet import rdma


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs_ucx: counted as not run, aloud, where nanet was built without UCX")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that needs UCX is not run without it; scripts/test_summary.py counts the property."""
    if pyfuncitem.get_closest_marker("needs_ucx") is None:
        return None
    try:
        rdma.native()
    except rdma.NotDone as error:
        pyfuncitem.user_properties.append(("not_run", f"a test of RDMA: {error}"))
        warnings.warn(f"NOT RUN: {pyfuncitem.nodeid}: {error}", stacklevel=1)
        return True
    return None
