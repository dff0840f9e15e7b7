# SPDX-License-Identifier: Apache-2.0
"""scripts/check_layers.py catches each kind of violation, and lets through what is allowed."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_layers.py"
HEAD = {".py": "# ", ".cpp": "// ", ".hpp": "// ", ".cu": "// ", ".cuh": "// ", ".in": "// ", ".sh": "# ", ".txt": "# "}


def run_on(root: Path, files: dict[str, str], head: bool = True) -> tuple[int, str]:
    """Writes `files` below `root`, each with its licence line, and returns the script's exit status and output."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        spdx = HEAD[path.suffix] + "SPDX-License-Identifier: Apache-2.0\n" if head else ""
        path.write_text(spdx + text)
    done = subprocess.run([sys.executable, str(SCRIPT), str(root)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


# path, text (the offending line is the second of the file), words that the finding must hold
VIOLATIONS = [
    ("src/wire/a.cpp", "#include <nanet/flow/clop.hpp>", "wire may include: base"),
    ("src/wire/a.cpp", '#include "nanet/engine/engine.hpp"', "wire may include: base"),
    ("include/nanet/event/a.hpp", "#include <rich/math_fit.hpp>", "event may include: wire"),
    ("src/link/udp_receiver.cpp", "  #  include <nanet/wire/mgp.hpp>", "link may include: base, config, flow"),
    ("src/link/udp/udp_link.cpp", "#include <nanet/rdma/worker.hpp>", "link may include: base, config, flow"),
    ("src/link/ucx/a.cpp", "#include <nanet/wire/mgp.hpp>", "link may include: base, config, flow, rdma"),
    ("src/emulate/a.cpp", "#include <nanet/engine/engine.hpp>", "emulate may include: config, event, flow, link, rich, wire"),
    ("src/engine/c.cpp", '#include "emulate/tel62.hpp"', "engine may include: base, config, event, flow, format, gpu, link"),
    ("include/nanet/flow/a.hpp", '#include "flow/realtime.hpp"', "it is installed, that is not"),
    ("include/nanet/contract.hpp", "#include <nanet/flow/clop.hpp>", "a seam stands below every folder"),
    ("src/rich/a.cpp", '#include "../flow/clop.hpp"', "a path upward hides the layer"),
    ("src/sonar/a.cpp", "#include <vector>", "folder sonar is not a known layer"),
    ("src/link/udp/udp_link.cpp", "#include <linux/if_xdp.h>", "belongs to src/link/xdp"),
    ("src/link/xdp/a.cpp", "#include <rte_ethdev.h>", "belongs to src/link/dpdk"),
    ("src/flow/a.cpp", "#include <cuda_runtime.h>", "belongs to src/gpu"),
    ("src/engine/a.cpp", "#include <sys/socket.h>", "belongs to src/link"),
    ("src/engine/a.cpp", "#include <nanobind/nanobind.h>", "belongs to tests, benchmarks and bindings"),
    ("src/engine/b.cpp", "#include <rich/math_fit.hpp>", "engine may include: base, config, event, flow, format, gpu, link"),
    ("src/engine/a.cpp", "#include <nanet/emulate/tel62.hpp>", "engine may include: base, config, event, flow, format, gpu, link"),
    ("include/nanet/gpu/a.hpp", "#include <nanet/engine/engine.hpp>", "gpu may include: config, event, flow, rich, wire"),
    ("src/gpu/kernels/a.cu.in", "#include <nanet/link/link.hpp>", "gpu may include: config, event, flow, rich, wire"),
    ("CMakeLists.txt", "nanet_library(event wire rich)", "links event to rich"),
    ("CMakeLists.txt", "  nanet_cuda_library(gpu rich engine)", "links gpu to engine"),
    ("src/wire/a.cpp", "#include <chrono>", "wire has no I/O"),
    ("src/rich/a.cpp", "#include <sys/mman.h>", "rich has no I/O"),
    ("src/stencil/jacobi.cpp", "#include <thread>", "stencil has no I/O"),
    ("src/stencil/team.cpp", "#include <chrono>", "stencil has no I/O"),
    ("src/flow/a.cpp", "auto t = std::chrono::steady_clock::now();", "reads a clock"),
    ("src/link/fault_injector.cpp", "clock_gettime(CLOCK_MONOTONIC, &t);", "reads a clock"),
    ("src/gpu/kernels/a.cuh", "#if __CUDA_ARCH__ >= 900", "one GPU architecture"),
    ("src/link/fault_injector.cpp", "const auto now_ns = flow::clock_now_ns();", "reads a clock"),
    ("src/rich/fit.cu", "__global__ void fit() {}", "kernels are glue"),
    ("bench/micro/fit.cu", "__global__ void fit() {}", "kernels are glue"),
    ("tests/unit/wire/a_test.cpp", "TEST(Mgp, DISABLED" + "_reads) {}", "a test that can be skipped"),
    ("tests/python/test_a.py", "@pytest." + "mark.skip", "a test that can be skipped"),
    ("scripts/a.sh", "# TO" + "DO", "a mark of unfinished work"),
    ("python/nanet/config/engine.py", "from nanet import report", "nanet.config may import"),
    ("python/nanet/report/page.py", "from nanet.cli import main", "nothing stands above the command line"),
    ("python/nanet/report/page.py", "from ..cli.app import main", "nothing stands above the command line"),
    ("python/nanet/report/page.py", "import typer", "only nanet.cli may"),
    ("python/nanet/report/page.py", "def f(:", "cannot be read"),
    ("python/nanet/config/link.py", "if True: from nanet.result import files", "nanet.config may import: wire"),
]


@pytest.mark.parametrize(("path", "text", "words"), VIOLATIONS)
def test_a_violation_is_found_at_its_line(tmp_path: Path, path: str, text: str, words: str) -> None:
    status, output = run_on(tmp_path, {path: text + "\n"})
    assert status == 1
    assert f"{path}:2: error: " in output
    assert words in output
    assert "1 files, 1 errors, 0 warnings" in output


def test_what_is_allowed_passes(tmp_path: Path) -> None:
    status, output = run_on(
        tmp_path,
        {
            "include/nanet/wire/mgp.hpp": "#include <nanet/contract.hpp>\n#include <cstdint>\n",
            "src/wire/mgp.cpp": "#include <nanet/wire/mgp.hpp>\n// a clock_gettime( in a comment\n",
            "src/event/merger.cpp": "#include <nanet/wire/mgp.hpp>\n",
            "src/link/udp_sender.cpp": "#include <sys/socket.h>\n#include <nanet/flow/clop.hpp>\nclock_gettime(id, &t);\n",
            "src/link/xdp/socket.cpp": "#include <linux/if_xdp.h>\n",
            "CMakeLists.txt": "nanet_library(flow)\nnanet_library(rich wire Highway::Highway)\n",
            "src/stencil/team.cpp": "#include <thread>\n",
            "src/na62/rich_trigger.cpp": "#include <nanet/engine/tx_slots.hpp>\n#include <rich/math_fit.hpp>\n",
            "tests/unit/wire/mgp_test.cpp": "#include <gtest/gtest.h>\n#include <nanet/engine/engine.hpp>\n",
            "src/engine/gpu_loop.cpp": "#include <nanet/gpu/build.hpp>\n",
            "src/gpu/kernels/fit.cu.in": "#include <cuda_runtime.h>\n__global__ void fit() {}\n",
            "python/nanet/bindings/module.cpp": "#include <nanobind/nanobind.h>\n",
            "python/nanet/config/engine.py": "from nanet.config.errors import suggest\nimport pydantic\n",
            "python/nanet/cli/app.py": "import typer\nfrom nanet import _core, config, report\nfrom . import live\n",
        },
    )
    assert (status, output) == (0, "check_layers: 14 files, 0 errors, 0 warnings\n")


def test_a_module_in_no_room_is_found(tmp_path: Path) -> None:
    status, output = run_on(tmp_path, {"python/nanet/attic.py": "import os\n", "python/nanet/attic/chest.py": "import os\n"})
    assert status == 1
    assert output.count("is in no room") == 2


def test_a_missing_licence_line_is_found(tmp_path: Path) -> None:
    status, output = run_on(tmp_path, {"src/wire/a.cpp": "#include <vector>\n"}, head=False)
    assert status == 1
    assert "src/wire/a.cpp:1: error: no licence line" in output


@pytest.mark.parametrize(
    ("lines", "status", "severity"), [(600, 0, None), (601, 0, "warning"), (800, 0, "warning"), (801, 1, "error")]
)
def test_long_files_are_warned_of_and_then_refused(tmp_path: Path, lines: int, status: int, severity: str | None) -> None:
    found_status, output = run_on(tmp_path, {"src/wire/a.cpp": "\n" * (lines - 1)})
    assert found_status == status
    assert (f"{severity}: {lines} lines" in output) if severity else (" lines (" not in output)


def test_what_a_script_made_may_be_long(tmp_path: Path) -> None:
    status, output = run_on(tmp_path, {"src/wire/a.cpp": "// Made by a script; do not edit.\n" + "\n" * 900})
    assert (status, " lines (" in output) == (0, False)


def test_only_files_that_git_would_take_are_read(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("/build/\n")
    status, output = run_on(tmp_path, {"build/a.cpp": "__global__\n", "src/wire/a.cpp": "\n"})
    assert (status, output) == (0, "check_layers: 1 files, 0 errors, 0 warnings\n")
