# SPDX-License-Identifier: Apache-2.0
"""Links that need libraries of the system: the package is imported without those, and says what is missing when such a link is wanted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nanet
import pytest
from nanet import _core

PACKAGE = Path(nanet.__file__).parent
LIBRARIES = {"dpdk": "librte_", "xdp": "libxdp.", "ucx": "libucp."}


def in_new_python(program: str, folder: Path = PACKAGE.parent) -> str:
    """What a program prints in an interpreter of its own, with the package of that folder."""
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def copy_without_modules(folder: Path) -> Path:
    """The package without what it loads on demand."""
    return Path(shutil.copytree(PACKAGE, folder / "nanet", ignore=shutil.ignore_patterns("libnanet_link_*", "__pycache__")))


@pytest.mark.parametrize("module", sorted(PACKAGE.glob("*.so")), ids=lambda module: module.name.split(".")[0])
def test_no_module_shows_what_was_linked_into_it(module: Path) -> None:
    """Else a C++ library that a compiler linked in would be mixed with another that NumPy brings."""
    done = subprocess.run(["nm", "-D", "--defined-only", module], capture_output=True, text=True, check=True)
    shown = [line.split()[-1] for line in done.stdout.splitlines()]
    assert [name for name in shown if name.startswith(("_ZN5nanet", "_ZNK5nanet"))] == []


@pytest.mark.parametrize("name", LIBRARIES)
def test_import_needs_no_library_of_a_back_end(name: str) -> None:
    maps = in_new_python("from nanet import _core; _core.build_info(); print(open('/proc/self/maps').read())")
    assert "_core" in maps
    assert LIBRARIES[name] not in maps


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_back_end_that_is_there_is_loaded_when_it_is_wanted(name: str) -> None:
    program = f"from nanet import _core; print(_core.back_end_problem('{name}')); print(open('/proc/self/maps').read())"
    problem, _, maps = in_new_python(program).partition("\n")
    assert (LIBRARIES[name] in maps) == (problem == "") == _core.build_info()["back_ends"][name], problem


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_package_without_the_module_says_so_when_a_link_is_opened(name: str, tmp_path: Path) -> None:
    package = copy_without_modules(tmp_path)
    program = f"from nanet import _core; print(_core.build_info()['back_ends']['{name}'], _core.back_end_problem('{name}'))"
    assert in_new_python(program, tmp_path).startswith(
        f"False libnanet_link_{name}.so is neither in {package}/ nor among the system's libraries; install "
    )


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_module_whose_library_is_not_installed_says_which(name: str, tmp_path: Path) -> None:
    package = copy_without_modules(tmp_path)
    file = f"libnanet_link_{name}.so"
    program = f"from nanet import _core; print(_core.back_end_problem('{name}'))"
    if not (PACKAGE / file).exists():  # this build has no such link
        assert "make links" in in_new_python(program, tmp_path)
        return
    module = (PACKAGE / file).read_bytes()
    wanted = {"dpdk": b"librte_eal.so", "xdp": b"libxdp.so", "ucx": b"libucp.so"}[name]
    assert wanted in module
    (package / file).write_bytes(module.replace(wanted, wanted.replace(b"lib", b"not")))
    said = in_new_python(program, tmp_path)
    assert said.startswith(f"its module does not load: {wanted.replace(b'lib', b'not').decode()}")
    assert "; install what it was built with (Debian: " in said


def test_there_is_no_other_kind_of_link_to_load() -> None:
    with pytest.raises(ValueError, match="no link has the name 'rdma'"):
        _core.back_end_problem("rdma")
