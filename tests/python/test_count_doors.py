# SPDX-License-Identifier: Apache-2.0
"""scripts/count_doors.py on made-up trees, and the limits on this one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "count_doors.py"


@pytest.fixture(scope="module")
def doors() -> ModuleType:
    spec = importlib.util.spec_from_file_location("count_doors", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rooms_are_folders_and_loose_modules(doors: ModuleType) -> None:
    texts = {
        "python/nanet/low/a.py": "import os",
        "python/nanet/low/b.py": "from nanet.low.a import x",
        "python/nanet/middle/c.py": "from nanet.low import a, b\nfrom nanet import _core",
        "python/nanet/loose.py": "def f():\n    from nanet.middle.c import y\n    import nanet.low.a",
        "src/other.cpp": "",
    }
    assert doors.rooms(texts) == {"rooms": 3, "arrows": 3, "floors": 3, "rooms in circles": 0}


def test_a_circle_is_counted_room_by_room(doors: ModuleType) -> None:
    texts = {
        "python/nanet/a/x.py": "from nanet.b import x",
        "python/nanet/b/x.py": "from nanet.c import x",
        "python/nanet/c/x.py": "from nanet import a",
        "python/nanet/d/x.py": "from nanet.a import x",
    }
    assert doors.rooms(texts)["rooms in circles"] == 3


def test_a_guest_is_counted_where_it_is_not_at_home(doors: ModuleType) -> None:
    texts = {
        "src/wire/m2egp.cpp": "m2egp",
        "src/engine/a.cpp": "is_m2egp(x)",
        "src/engine/b.cpp": "M2EGP M2EGP",
        "src/engine/c.cpp": "MGP",
    }
    assert doors.guests(texts)["format M2EGP"] == 2


def test_a_count_above_its_limit_is_one_line(doors: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    within = dict(doors.LIMITS)
    assert doors.check(within) == 0
    assert doors.check(within | {"rooms": within["rooms"] + 1}) == 1
    assert capsys.readouterr().err == f"error: {within['rooms'] + 1} rooms (at most {within['rooms']}) see docs/design/doors.md\n"
