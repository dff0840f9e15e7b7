# SPDX-License-Identifier: Apache-2.0
"""Configurations of processors on GPUs: what is accepted, what is refused, and what of them reaches the native engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nanet import _core
from nanet.config import engine
from nanet.config.errors import ConfigError, validated

EXAMPLE = Path(__file__).parents[2] / "examples" / "gpu.yaml"
GRAMMAR = re.compile(r"^.+ \(.+\) .+$")


def link(number: int, **changes: Any) -> dict[str, Any]:
    source = {"name": f"board{number}", "source_sub_id": number}
    plain = {"name": f"link{number}", "endpoint": f"udp://127.0.0.1:{6200 + number}", "memory_region": "m", "sources": [source]}
    return plain | changes


def boards(first: int, count: int) -> list[dict[str, Any]]:
    return [{"name": f"board{n}", "source_sub_id": n} for n in range(first, first + count)]


def on_gpu(processor: dict[str, Any] | None = None, **changes: Any) -> engine.EngineConfig:
    plain: dict[str, Any] = {
        "version": 1, "memory_regions": [{"name": "m"}], "links": [link(0), link(1)],
        "processor": {"runtime": "persistent"} | (processor or {}), "answers": {"endpoint": "udp://127.0.0.1:6300"},
    }  # fmt: skip
    return validated(engine.EngineConfig, plain | changes)


def test_defaults() -> None:
    processor = on_gpu().processor
    assert processor.gpu == engine.Gpu(devices=(0,), path="mapped", buffers_in_flight=4, blocks=None, watchdog_ms=1000)
    assert processor.place() == "persistent on GPU 0"
    assert on_gpu({"runtime": "cpu"}, links=[link(0)]).processor.place() == "cpu"


@pytest.mark.parametrize("runtime", ["launch", "graph", "persistent"])
def test_each_source_on_a_gpu_of_its_own(runtime: str) -> None:
    loaded = on_gpu({"runtime": runtime, "gpu": {"devices": [0, 1]}})
    assert loaded.processor.place() == f"{runtime} on GPU 0, 1"
    assert engine.EngineConfig.model_validate(loaded.model_dump(mode="json")) == loaded


def test_one_gpu_twice() -> None:
    assert on_gpu({"gpu": {"devices": [0, 0], "blocks": 8}}).processor.gpu.blocks == 8
    assert on_gpu({"runtime": "launch", "gpu": {"devices": [0, 0]}}).processor.gpu.blocks is None


@pytest.mark.parametrize("runtime", ["launch", "graph", "persistent"])
@pytest.mark.parametrize("links", [[link(0, sources=boards(0, 8))], [link(n, sources=boards(4 * n, 4)) for n in range(2)]])
def test_parts_of_several_sources_are_merged_on_a_gpu(runtime: str, links: list[dict[str, Any]]) -> None:
    answers = {"endpoint": "udp://127.0.0.1:6300", "primitives_max": 64}
    loaded = on_gpu({"runtime": runtime, "merge": {"window_us": 100, "incomplete": "process"}}, links=links, answers=answers)
    assert loaded.processor.merge == engine.Merge(window_us=100, open_events_max=8192, incomplete="process")
    assert engine.EngineConfig.model_validate(loaded.model_dump(mode="json")) == loaded


@pytest.mark.parametrize(
    ("processor", "changes", "says"),
    [
        ({"runtime": "gpu"}, {}, "'gpu' is not allowed (it must be one of cpu, launch, graph, persistent)"),
        ({"runtime": "cpu", "gpu": {"devices": [1]}}, {"links": [link(0)]}, "runtime cpu uses no GPU"),
        ({"kind": "count"}, {"answers": None}, "it runs on none"),
        ({"merge": {}, "gpu": {"devices": [0, 1]}}, {}, "merge on 2 GPUs"),
        ({"merge": {}}, {"links": [link(n, sources=boards(3 * n, 3)) for n in range(3)]}, "merge of 9 sources on a GPU"),
        ({"merge": {}}, {"links": [link(0, packet_bytes_max=8972)]}, "a GPU takes packets of at most 1472 B"),
        ({"merge": {}}, {"answers": {"endpoint": "udp://127.0.0.1:6300", "primitives_max": 63}}, "answers.primitives_max 63"),
        ({"gpu": {"path": "copied"}}, {}, "runtime persistent with copied buffers"),
        ({"gpu": {"devices": []}}, {}, "processor.gpu.devices: [] is not allowed"),
        ({"gpu": {"devices": [-1]}}, {}, "processor.gpu.devices[0]: -1 is not allowed"),
        ({"gpu": {"devices": [0, 1, 2]}}, {}, "3 GPUs for 2 link(s)"),
        ({"gpu": {"devices": [0, 0]}}, {}, "a GPU is named twice"),
        ({"gpu": {"buffers_in_flight": 17}}, {}, "processor.gpu.buffers_in_flight: 17 is not allowed"),
        ({"gpu": {"blocks": 0}}, {}, "processor.gpu.blocks: 0 is not allowed"),
        ({"gpu": {"watchdog_ms": 10}}, {}, "processor.gpu.watchdog_ms: 10 is not allowed"),
        ({"gpu": {"buffers": 4}}, {}, "did you mean 'buffers_in_flight'?"),
        ({}, {"links": [link(0, packet_bytes_max=8972)]}, "a GPU takes packets of at most 1472 B"),
        ({}, {"links": [link(0, sources=[{"name": "a"}, {"name": "b", "source_sub_id": 9}])]}, "link 'link0' has 2 sources"),
        ({}, {"answers": {"endpoint": "udp://127.0.0.1:6300", "primitives_max": 100}}, "answers.primitives_max 100"),
        ({}, {"topology": "pipelined", "cpu_cores": {"send": 0}}, "cpu_cores.send is set"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(processor: dict[str, Any], changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        on_gpu(processor, **changes)
    assert says in str(caught.value)
    assert all(GRAMMAR.match(line) for line in caught.value.problems)


def test_the_native_engine_knows_every_runtime() -> None:
    """Whatever the build, and with a GPU or without: it is refused before it starts for no other reason than that."""
    for runtime in ("launch", "graph", "persistent"):
        plain = engine.load(EXAMPLE).model_dump(mode="json")
        plain["processor"]["runtime"] = runtime
        plain["processor"]["gpu"]["devices"] = [255]
        plain["links"][0]["endpoint"] = "udp://127.0.0.1:0"
        with pytest.raises(ValueError, match=rf"runtime {runtime} is not in this build|GPU") as caught:
            _core.Engine(plain)
        assert type(caught.value).__name__ == "SetupError"


def test_validate_says_where_events_are_judged() -> None:
    done = subprocess.run([sys.executable, "-m", "nanet", "validate", str(EXAMPLE)], capture_output=True, text=True, check=True)
    first, last = done.stdout.splitlines()
    assert first.startswith("processor: persistent on GPU 0")
    assert ("make cuda" in first) != _core.build_info()["back_ends"]["cuda"]
    assert last.endswith("gpu.yaml: valid")


@pytest.mark.parametrize("command", [("demo",), ("bench", "rate"), ("bench", "latency")], ids=" ".join)
def test_commands_pass_the_runtime_on(command: tuple[str, ...], tmp_path: Path) -> None:
    """Nine boards are too many to be merged there: refused before anything starts, GPU or not."""
    arguments = [sys.executable, "-m", "nanet", *command, "--runtime", "graph", "--boards", "9", "--out", str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "merge of 9 sources on a GPU" in done.stderr
