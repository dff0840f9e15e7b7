# SPDX-License-Identifier: Apache-2.0
"""What all Python tests share: how a result is compared with its type, and those that need UCX, GPUs, or someone else's program."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from nanet import rdma
from nanet.machine.gpu_driver import ask_driver

# Of the hundreds of processes that tests start. NumPy's threads for large matrices, which are not used here, spin before they sleep. UCX patches some
# ten functions of libc as it is loaded, and after each gives other threads 50 ms to leave it, of which there are none then.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("UCX_MEM_BISTRO_GRACE_DURATION", "1ms")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
json_page = importlib.import_module("make_json_page")  # which knows the types of the results


@pytest.fixture(scope="session")
def check_keys() -> Callable[[Mapping[str, Any], str], None]:
    """check_keys(result, command): the result, read from JSON, has every key that the type below the command's heading in docs/json.md declares,
    and no other."""
    text = (ROOT / "docs" / "json.md").read_text()

    def check(result: Mapping[str, Any], command: str) -> None:
        assert command.startswith(result["command"])
        section = re.search(rf"^## `nanet {re.escape(command)}`\n(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
        assert section, f"docs/json.md says nothing of nanet {command}"
        assert list(json_page.differences(result, json_page.type_of(section[1]))) == []

    return check


def pytest_configure(config: pytest.Config) -> None:
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background job would ignore Ctrl-C, and so would all that it starts
    config.addinivalue_line("markers", "needs_ucx: counted as not run, aloud, where nanet was built without UCX")
    config.addinivalue_line("markers", "needs_gpus(count): counted as not run, aloud, where the driver sees fewer")
    config.addinivalue_line("markers", "needs_program(name): counted as not run, aloud, where no such program is on PATH")
    config.addinivalue_line("markers", "needs_package(name): counted as not run, aloud, where no such Python package is installed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers (pytest -n 2 --dist loadgroup) those that share the machine's network and clock stay in one, in turns."""
    for item in items:
        if item.path.parent.name == "integration":
            item.add_marker(pytest.mark.xdist_group("network"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that needs what is not there is not run; scripts/test_summary.py counts the property."""
    rdma_lacks = _missing_ucx(pyfuncitem) or _missing_gpus(pyfuncitem)
    why = f"a test of RDMA: {rdma_lacks}" if rdma_lacks is not None else _missing_sender(pyfuncitem)
    if why is None:
        return None
    pyfuncitem.user_properties.append(("not_run", why))
    warnings.warn(f"NOT RUN: {pyfuncitem.nodeid}: {why}", stacklevel=1)
    return True


def _missing_ucx(test: pytest.Function) -> str | None:
    if test.get_closest_marker("needs_ucx") is not None:
        try:
            rdma.native()
        except rdma.NotDone as error:
            return str(error)
    return None


def _missing_gpus(test: pytest.Function) -> str | None:
    wanted = max((mark.args[0] for mark in test.iter_markers("needs_gpus")), default=0)
    if wanted == 0:
        return None
    driver = ask_driver()
    there = len(driver.gpus)
    return None if there >= wanted else f"it needs {wanted} GPUs, there are {there} ({driver.problem or 'all are counted'})"


def _missing_sender(test: pytest.Function) -> str | None:
    for mark in test.iter_markers("needs_program"):
        if shutil.which(mark.args[0]) is None:
            return f"a test of foreign packets: there is no {mark.args[0]} here, which scripts/system_packages.sh test installs"
    for mark in test.iter_markers("needs_package"):
        if importlib.util.find_spec(mark.args[0]) is None:
            return f"a test of foreign packets: there is no {mark.args[0]} here, which pip install --group test installs"
    return None
