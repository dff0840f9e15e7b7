# SPDX-License-Identifier: Apache-2.0
"""A result of every kind of report, made up where it needs hardware or a network."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from made_up import l0_part, whole_demo
from made_up_bench import finders_result, latency_result, rate_result, rings_result
from made_up_gateware import MEASURED
from made_up_gpu import write_files
from made_up_links import comparison
from made_up_rdma import rdma_result
from made_up_torus import bench_torus_result, faults_result, torus_result
from nanet.bench import gateware, gpu
from nanet.physics import Study, run
from nanet.result import files


def all_results() -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, result) of one report of each kind."""
    yield "demo", whole_demo() | {"l0": l0_part()}
    yield "bench-rate", rate_result()
    yield "bench-latency", latency_result()
    yield "bench-rings", rings_result()
    yield "bench-finders", finders_result()
    yield "bench-links", comparison()
    yield "bench-gpu", gpu_result()
    yield "bench-gateware", gateware_result()
    yield "bench-torus", bench_torus_result()
    yield "torus-curves", torus_result()
    yield "torus-faults", faults_result()
    yield "rdma-bench", rdma_result(0.97)
    yield "physics", run(Study(events=100, finders=("math", "histogram", "almagest"), passes=1), lambda _: None)


def gpu_result() -> dict[str, Any]:
    """Of all parts of `nanet bench gpu`."""
    with tempfile.TemporaryDirectory() as folder:
        return gpu.result_of([gpu.read(path) for path in write_files(Path(folder)).values()])


def gateware_result() -> dict[str, Any]:
    """As `nanet bench gateware` would make it of MEASURED."""
    measured = json.loads(json.dumps(MEASURED))
    return files.base("bench gateware") | measured | {"papers": gateware.papers_of(measured)}
