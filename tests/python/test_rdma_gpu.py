# SPDX-License-Identifier: Apache-2.0
"""`nanet rdma` with memory of CUDA on either side, two processes, every byte checked. Needs a GPU, the last ones two."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from nanet import SetupError
from nanet.rdma import native
from nanet.rdma.memory import CudaMemory, Memory
from test_rdma_commands import Started, check_keys, nanet

pytestmark = [pytest.mark.needs_ucx, pytest.mark.needs_gpus(1), pytest.mark.timeout(240)]
BYTES = (20 << 20) + 3  # two slices, the last one odd
TWO = pytest.mark.needs_gpus(2)
PAIRS = [  # the target's memory, this side's
    ("cuda", "host"), ("host", "cuda"), ("shared", "cuda"), ("cuda", "cuda"), ("cuda", "pinned"), ("pinned", "host"),
    pytest.param("cuda:0", "cuda:1", marks=TWO), pytest.param("cuda:1", "cuda:0", marks=TWO),
]  # fmt: skip


@pytest.mark.parametrize(("there", "here"), PAIRS)
def test_a_file_goes_in_and_comes_out(tmp_path: Path, there: str, here: str) -> None:
    file = tmp_path / "data"
    file.write_bytes(os.urandom(BYTES))
    with Started("serve", "--region", "r", "--size", BYTES, "--read", "--write", "--memory", there) as target:
        if there not in ("host", "shared"):
            assert f" of memory {there.partition(':')[0]}:{there.partition(':')[2] or 0}, " in target.ready
        common = ("--region", "r", "--memory", here)
        nanet("get", tmp_path / "zeros", "--from", target.place, *common)
        nanet("put", file, "--to", target.place, *common, "--json", tmp_path / "put.json")
        nanet("get", tmp_path / "all", "--from", target.place, *common)
        nanet("get", tmp_path / "part", "--from", target.place, *common, "--offset", 1001, "--size", "70001")
        assert target.end() == 0
    assert (tmp_path / "zeros").read_bytes() == bytes(BYTES)
    assert (tmp_path / "all").read_bytes() == file.read_bytes()
    assert (tmp_path / "part").read_bytes() == file.read_bytes()[1001 : 1001 + 70001]
    result = json.loads((tmp_path / "put.json").read_text())
    check_keys(result, "rdma put")
    if "cuda" in (there[:4], here[:4]):
        assert "memory of a GPU" in result["path"]["text"]
        assert result["path"]["sided"] != "one_sided"  # nothing has shown it


@pytest.mark.parametrize(("there", "here"), PAIRS)
def test_bench_checks_every_byte(tmp_path: Path, there: str, here: str) -> None:
    done = nanet(
        "bench", "--size", "8", "--size", "100001", "--size", 17 << 20, "--iterations", "4", "--memory", here, "--target-memory", there,
        "--out", tmp_path, "--json", tmp_path / "bench.json",
    )  # fmt: skip
    assert "every byte was right" in done.stdout
    result = json.loads((tmp_path / "bench.json").read_text())
    check_keys(result, "rdma bench")
    tests = {row["test"] for row in result["measurements"]}
    assert ("put_latency" in tests) == ("cuda" not in (there[:4], here[:4]))
    assert {"put_bandwidth", "get_bandwidth", "put_bidirectional_bandwidth", "put_flush_latency", "get_latency"} <= tests
    assert all(row["right"] for row in result["measurements"])


def test_a_wrong_byte_in_the_memory_of_a_gpu_is_seen() -> None:
    memory = CudaMemory(Memory("cuda"), 1000)
    data = np.arange(1000, dtype=np.uint8)
    memory.write(0, data)
    memory.write(500, np.array([77], np.uint8))
    back = np.zeros(1000, np.uint8)
    memory.read(0, back)
    assert back[500] == 77
    back[500] = data[500]
    assert (back == data).all()
    with pytest.raises(ValueError, match="1 bytes at 1000"):
        memory.write(1000, data[:1])


def test_what_is_not_shown_of_a_gpus_memory_is_refused() -> None:
    with Started("serve", "--region", "r", "--size", "1MiB", "--read", "--write", "--memory", "cuda") as target:
        for require in ("gpudirect", "zero-copy", "one-sided", "rdma"):
            done = nanet(
                "get", "/dev/null", "--from", target.place, "--region", "r", "--transports", "tcp", "--require", require, expect=1
            )
            assert "the way to" in done.stderr


def test_more_gpus_than_there_are() -> None:
    with pytest.raises(SetupError, match="counted from 0"):
        CudaMemory(Memory("cuda", 999), 8)
    assert "counted from 0" in nanet("bench", "--size", "8", "--target-memory", "cuda:999", expect=2).stderr


def test_the_memory_goes_back() -> None:
    """More in all than a GPU has, one after the other."""
    for _ in range(200):
        CudaMemory(Memory("cuda"), 2 << 30)


def test_a_gpus_memory_has_no_view() -> None:
    target = native().Target({
        "region": "r", "bytes": 4096, "read": True, "write": True, "address": "127.0.0.1", "port": 0, "token": 0, "transports": "",
        "memory": "cuda", "given": CudaMemory(Memory("cuda"), 4096),
    })  # fmt: skip
    with pytest.raises(SetupError, match="no CPU may touch it"):
        _ = target.memory
