# SPDX-License-Identifier: Apache-2.0
"""scripts/test_summary.py counts each test once and fails on an empty, failed or skipped suite; only GPU tests may not run, visibly."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "test_summary.py"
PASSED = "[ RUN      ] Mgp.reads\n[       OK ] Mgp.reads (0 ms)\n[ RUN      ] All/Mgp.reads/1\n[       OK ] All/Mgp.reads/1, where GetParam() = 3 (12 ms)\n"
FAILED = "[ RUN      ] Mgp.fails\n[  FAILED  ] Mgp.fails (1 ms)\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Mgp.fails\n"
SKIPPED = "[ RUN      ] Mgp.left\n[  SKIPPED ] Mgp.left (0 ms)\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] Mgp.left\n"
NOT_RUN = "[ RUN      ] Xdp.a\nNOT RUN: a test of AF_XDP (no BPF)\n[       OK ] Xdp.a (3 ms)\n"
NOT_BUILT = "; CUDA code not built: GPU tests not run"


def junit(tests: int, failures: int = 0, skipped: int = 0, not_run: int = 0) -> str:
    case = (
        '<testcase name="test_put"><properties><property name="not_run" value="a test of RDMA (no UCX)"/></properties></testcase>'
    )
    head = f'<testsuite errors="0" failures="{failures}" skipped="{skipped}" tests="{tests}">'
    return f"<testsuites>{head}{case * not_run}</testsuite></testsuites>"


@pytest.mark.parametrize(
    ("log", "xml", "line", "status"),
    [
        (PASSED, junit(3), "5 tests passed (2 C++, 3 Python), 0 failed, 0 skipped" + NOT_BUILT, 0),
        (
            PASSED + NOT_RUN + PASSED,
            junit(3),
            f"7 tests passed (4 C++, 3 Python), 0 failed, 0 skipped{NOT_BUILT}; 1 tests not run: a test of AF_XDP (no BPF)",
            0,
        ),
        (
            PASSED,
            junit(5, not_run=2),
            f"5 tests passed (2 C++, 3 Python), 0 failed, 0 skipped{NOT_BUILT}; 2 tests not run: a test of RDMA (no UCX)",
            0,
        ),
        (
            PASSED,
            junit(2, not_run=2),
            f"2 tests passed (2 C++, 0 Python), 0 failed, 0 skipped{NOT_BUILT}; 2 tests not run: a test of RDMA (no UCX)",
            1,
        ),
        (PASSED + FAILED, junit(3), "5 tests passed (2 C++, 3 Python), 1 failed, 0 skipped" + NOT_BUILT, 1),
        (PASSED + SKIPPED, junit(3), "5 tests passed (2 C++, 3 Python), 0 failed, 1 skipped" + NOT_BUILT, 1),
        (PASSED, junit(4, failures=1, skipped=1), "4 tests passed (2 C++, 2 Python), 1 failed, 1 skipped" + NOT_BUILT, 1),
        ("", junit(3), "3 tests passed (0 C++, 3 Python), 0 failed, 0 skipped" + NOT_BUILT, 1),
        (PASSED, junit(0), "2 tests passed (2 C++, 0 Python), 0 failed, 0 skipped" + NOT_BUILT, 1),
    ],
)
def test_summary(tmp_path: Path, log: str, xml: str, line: str, status: int) -> None:
    (tmp_path / "log").write_text(log)
    (tmp_path / "xml").write_text(xml)
    command = [sys.executable, str(SCRIPT), str(tmp_path / "log"), str(tmp_path / "xml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (line, status)


@pytest.mark.parametrize(
    ("gpu_log", "line", "status"),
    [
        (
            "CUDA says: no CUDA-capable device is detected\nno GPU: 12 tests not run\n",
            "5 tests passed (2 C++, 3 Python), 0 failed, 0 skipped; no GPU: 12 tests not run",
            0,
        ),
        ("[ ok ] A.b (0.1 s)\n12 passed, 0 failed\n", "17 tests passed (2 C++, 3 Python, 12 GPU), 0 failed, 0 skipped", 0),
        ("[FAIL] A.b (0.1 s)\n11 passed, 1 failed\n", "16 tests passed (2 C++, 3 Python, 11 GPU), 1 failed, 0 skipped", 1),
        (
            "NOT RUN: A.c (there is one GPU) take two\n12 passed, 0 failed\n",
            "17 tests passed (2 C++, 3 Python, 12 GPU), 0 failed, 0 skipped; 1 GPU tests not run: A.c (there is one GPU) take two",
            0,
        ),
        ("it crashed\n", "5 tests passed (2 C++, 3 Python, 0 GPU), 0 failed, 0 skipped", 1),
    ],
)
def test_summary_with_cuda(tmp_path: Path, gpu_log: str, line: str, status: int) -> None:
    (tmp_path / "log").write_text(PASSED)
    (tmp_path / "xml").write_text(junit(3))
    (tmp_path / "gpu").write_text(gpu_log)
    command = [sys.executable, str(SCRIPT), *(str(tmp_path / name) for name in ("log", "xml", "gpu"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == (line, status)
