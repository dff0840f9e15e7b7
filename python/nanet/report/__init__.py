# SPDX-License-Identifier: Apache-2.0
"""Reports: one self-contained HTML file for each kind of result. No request leaves the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nanet.report import bench, demo, gateware, gpu, km3, links, page, physics, rdma, torus
from nanet.result import outputs
from nanet.result.keys.base import Base

_MAKERS: dict[str, Callable[[Any], page.Page]] = {  # each takes the result of its command
    "demo": demo.make,
    "bench rate": bench.make_rate,
    "bench latency": bench.make_latency,
    "bench rate --link": links.make_links,
    "bench latency --link": links.make_links,
    "bench rings": bench.make_rings,
    "bench rings --finder": bench.make_finders,
    "bench gpu": gpu.make_gpu,
    "bench gateware": gateware.make_gateware,
    "demo --detector km3": km3.make_demo,
    "km3 study": km3.make_study,
    "physics": physics.make_physics,
    "rdma bench": rdma.make_rdma,
    "torus curves": torus.make_torus,
    "torus patterns": torus.make_torus,
    "bench torus": torus.make_torus,
    "torus faults": torus.make_faults,
}


def write_report(result: Base, path: Path) -> None:
    """Writes the report of a result (what the command's --json holds) to `path`. Raises OutputError."""
    outputs.write(path, page.render(_MAKERS[result["command"]](result)).encode())
