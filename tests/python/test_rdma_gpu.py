# SPDX-License-Identifier: Apache-2.0
"""`nanet rdma` with memory of CUDA on either side, two processes, every byte checked. Needs a GPU, the last ones two."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nanet import SetupError
from nanet.rdma import native, transfer
from nanet.rdma.memory import CudaMemory, Memory, allocate, parse_memory
from test_rdma_commands import CheckKeys, Started, nanet

pytestmark = [pytest.mark.needs_ucx, pytest.mark.needs_gpus(1), pytest.mark.timeout(240)]
SIZE = 4 << 20
BYTES = (20 << 20) + 3  # two slices, the last one odd
TWO = pytest.mark.needs_gpus(2)
PAIRS = [  # the target's memory, this side's
    ("cuda", "host"), ("host", "cuda"), ("shared", "cuda"), ("cuda", "cuda"), ("cuda", "pinned"), ("pinned", "host"),
    pytest.param("cuda:0", "cuda:1", marks=TWO), pytest.param("cuda:1", "cuda:0", marks=TWO),
]  # fmt: skip


@pytest.mark.parametrize(("there", "here"), PAIRS)
def test_a_file_goes_in_and_comes_out(tmp_path: Path, there: str, here: str, check_keys: CheckKeys) -> None:
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
    on_gpus = [one.startswith("cuda") for one in (there, here)]
    path = result["path"]
    assert (path["gpudirect"], path["sided"]) == (
        ("peer to peer (cuda_ipc)", "one_sided") if all(on_gpus) else ("none", "emulated" if any(on_gpus) else path["sided"])
    ), path["text"]
    assert ("cuda_ipc" in result["ways"][0]["text"]) == all(on_gpus), result["ways"]


@pytest.mark.parametrize(("there", "here"), PAIRS)
def test_bench_checks_every_byte(tmp_path: Path, there: str, here: str, check_keys: CheckKeys) -> None:
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


@pytest.mark.parametrize("here", ["cuda:0", pytest.param("cuda:1", marks=TWO)])
def test_between_gpus_it_is_one_sided(here: str) -> None:
    """The target's process is stopped, so nothing of it can run."""
    with Started("serve", "--region", "r", "--size", SIZE, "--read", "--write", "--memory", "cuda") as target:
        os.kill(target.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.process.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(SetupError, match="no answer"):
            remote_memory(target, here, timeout_ms=500)
        os.kill(target.process.pid, signal.SIGCONT)
        (direct, given), (by_host, _) = remote_memory(target, here), remote_memory(target, "host", timeout_ms=2000)
        os.kill(target.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.process.pid, os.WSTOPPED | os.WNOWAIT)
        assert given is not None
        sent = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8)
        given.write(0, sent)
        assert (direct.put_given(0, SIZE), direct.flush()) == ("ok", "ok")
        given.write(0, np.zeros(SIZE, np.uint8))
        assert direct.get_given(0, SIZE) == "ok"
        back = np.empty(SIZE, np.uint8)
        given.read(0, back)
        assert (back == sent).all()
        assert by_host.get(0, back) == "time_out"  # which shows that the test can fail
        os.kill(target.process.pid, signal.SIGCONT)


def remote_memory(target: Started, here: str, timeout_ms: int = 10_000) -> tuple[Any, CudaMemory | None]:
    address, port = transfer.parse_remote(target.place)
    memory = parse_memory(here)
    given = allocate(memory, SIZE)
    return transfer.connect(transfer.Remote(address, port, "r", memory=memory, timeout_ms=timeout_ms), given), given


def test_what_can_be_required_of_a_gpus_memory(tmp_path: Path) -> None:
    with Started("serve", "--region", "r", "--size", "1MiB", "--read", "--write", "--memory", "cuda") as target:
        get = ("get", tmp_path / "got", "--from", target.place, "--region", "r", "--require")
        for require in ("gpudirect", "zero-copy", "one-sided"):
            assert "GPUDirect: peer to peer (cuda_ipc)" in nanet(*get, require, "--memory", "cuda").stdout
            assert "nanet: the way to" in nanet(*get, require, expect=1).stderr
        assert "is not RDMA" in nanet(*get, "rdma", "--memory", "cuda", expect=1).stderr


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
        "region": "r", "bytes": 4096, "read": True, "write": True, "address": "127.0.0.1", "port": 0, "token": 0, "transports": "", "trust_network": False,
        "memory": "cuda", "given": CudaMemory(Memory("cuda"), 4096),
    })  # fmt: skip
    with pytest.raises(SetupError, match="no CPU may touch it"):
        _ = target.memory
