# SPDX-License-Identifier: Apache-2.0
"""`nanet rdma` end to end, with processes of its own: over shared memory, which is one-sided, and over TCP, which is not."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from nanet import SetupError, rdma
from nanet.machine.channel import Channel, ChannelError, introduce
from nanet.rdma import bench, session, transfer
from nanet.rdma.control import PURPOSE, secret_of
from nanet.rdma.measurement import Measurement
from nanet.rdma.memory import CudaMemory
from nanet.rdma.require import Require

pytestmark = [pytest.mark.needs_ucx, pytest.mark.timeout(240)]
ROOT = Path(__file__).parents[2]
TIME_LIMIT_S = 120
BYTES = (5 << 20) + 3
CheckKeys = Callable[[dict[str, Any], str], None]  # of tests/conftest.py
WAYS = {"shared": ("--transports", "posix"), "tcp": ("--transports", "tcp", "--trust-network")}
TCP = {"transports": "tcp", "trust_network": True}


def command_of(arguments: tuple[object, ...]) -> list[str]:
    """Tests may be root's."""
    serves = arguments[0] == "serve" or "--serve" in arguments
    return [sys.executable, "-m", "nanet", "rdma", *map(str, arguments), *(["--allow-root"] if serves else [])]


def nanet(*arguments: object, expect: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    command = command_of(arguments)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False, env=dict(os.environ) | environment
    )
    assert done.returncode == expect, done.stdout + done.stderr
    return done


class Started:
    """A nanet rdma command that says `ready: ... port N`. Killed at the end if it is still there."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        self.process = subprocess.Popen(
            command_of(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ) | environment,
        )  # fmt: skip
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], TIME_LIMIT_S)
        self.ready = self.process.stdout.readline() if readable else ""
        if not self.ready.startswith("ready: "):
            self.process.kill()
        assert self.ready.startswith("ready: "), self.process.communicate()
        self.place = f"127.0.0.1:{self.ready.split()[-1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=TIME_LIMIT_S)
        return self.process.returncode


def served(*arguments: object, size: int = BYTES, **environment: str) -> Started:
    rights = [] if "--read" in arguments or "--write" in arguments else ["--read", "--write"]
    return Started("serve", "--region", "r", "--size", size, *rights, *arguments, **environment)


def remote(place: str, **changes: Any) -> transfer.Remote:
    address, port = transfer.parse_remote(place)
    return transfer.Remote(address, port, "r", **changes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(BYTES))
    return path


@pytest.mark.parametrize("way", WAYS)
def test_a_file_goes_in_and_comes_out(tmp_path: Path, file: Path, way: str, check_keys: CheckKeys) -> None:
    with served("--json", tmp_path / "serve.json", *WAYS[way]) as target:
        common = ("--region", "r", *WAYS[way])
        put = nanet("put", file, "--to", target.place, *common, "--json", tmp_path / "put.json")
        nanet("get", tmp_path / "all", "--from", target.place, *common)
        nanet(
            "get",
            tmp_path / "part",
            "--from",
            target.place,
            *common,
            "--offset",
            1000,
            "--size",
            "64KiB",
            "--json",
            tmp_path / "get.json",
        )
        assert target.end() == 0
    assert (tmp_path / "all").read_bytes() == file.read_bytes()
    assert (tmp_path / "part").read_bytes() == file.read_bytes()[1000 : 1000 + (64 << 10)]
    assert not list(tmp_path.glob("*.part"))
    result = json.loads((tmp_path / "put.json").read_text())
    check_keys(result, "rdma put")
    assert (result["bytes"], result["path"]["sided"]) == (BYTES, "one_sided" if way == "shared" else "emulated")
    assert re.search(
        r"^path: .+\(one-sided\)$" if way == "shared" else r"^path: tcp/.+\(emulated by", put.stdout, flags=re.MULTILINE
    )
    assert result["ways"][0]["operation"] == "put"
    assert result["ways"][0]["text"] == "copied by this CPU" if way == "shared" else "tcp" in result["ways"][0]["text"]
    assert re.search(r"^path of a put of 1 MiB: ", put.stdout, flags=re.MULTILINE)
    assert re.search(r"5\.243 MB \(5 MiB\) in .* GB/s \(.* GiB/s\)", put.stdout)
    check_keys(json.loads((tmp_path / "get.json").read_text()), "rdma get")
    told = json.loads((tmp_path / "serve.json").read_text())
    check_keys(told, "rdma serve")
    assert (told["refused"], told["connections_at_end"]) == (0, 0)


def test_what_is_required_and_not_proved_is_1_and_nothing_is_sent(tmp_path: Path, file: Path) -> None:
    with served("--transports", "posix,tcp", "--trust-network") as target:
        put = ("put", file, "--to", target.place, "--region", "r", "--trust-network")
        refusals = {
            ("tcp", "one-sided"): "one-sided", ("tcp", "rdma"): "RDMA", ("tcp", "zero-copy"): "without a copy",
            ("shm", "rdma"): "RDMA", ("shm", "zero-copy"): "without a copy", ("shm", "gpudirect"): "GPUDirect",
        }  # fmt: skip
        for (transports, wanted), word in refusals.items():
            done = nanet(*put, "--transports", transports, "--require", wanted, expect=1)
            assert done.stdout == ""
            line = done.stderr.splitlines()[-1]
            assert re.fullmatch(rf"nanet: the way to .* is not {word} \(.*\) name other transports, or do not require it", line), (
                line
            )
        transfer.get(remote(target.place), tmp_path / "zeros")
        assert (tmp_path / "zeros").read_bytes() == bytes(BYTES)
        nanet(*put, "--transports", "shm", "--require", "one-sided")
        transfer.get(remote(target.place, require=Require.ONE_SIDED), tmp_path / "data-again")
        assert (tmp_path / "data-again").read_bytes() == file.read_bytes()


def test_a_token_from_a_file_or_the_environment_is_needed(tmp_path: Path, file: Path) -> None:
    token = tmp_path / "token"
    token.write_text("12ab\n")
    token.chmod(0o600)
    with served("--token-file", token) as target:
        put = ("put", file, "--to", target.place, "--region", "r")
        assert "no such name, or another token" in nanet(*put, expect=2).stderr
        assert "no such name, or another token" in nanet(*put, expect=2, NANET_RDMA_TOKEN="12ac").stderr
        nanet(*put, NANET_RDMA_TOKEN="12AB")
        nanet(*put, "--token-file", token)


def test_rights_and_bounds(tmp_path: Path, file: Path) -> None:
    with served("--read") as target:
        done = nanet("put", file, "--to", target.place, "--region", "r", expect=1)
        assert "the transfer was not done (not_permitted)" in done.stderr
        done = nanet("put", file, "--to", target.place, "--region", "r", "--offset", 1, expect=2)
        assert f"{BYTES} bytes from 1 on are not in the region (it has {BYTES})" in done.stderr
    with served("--write") as target:
        done = nanet("get", tmp_path / "got", "--from", target.place, "--region", "r", expect=1)
        assert "not_permitted" in done.stderr
        assert not (tmp_path / "got").exists()
        assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("serve", "--region", "r", "--size", "1", "--read", "--listen", "0.0.0.0"),
            "region r is not exposed at 0.0.0.0 without a token",
        ),
        (("serve", "--region", "r", "--size", "1"), "region r may neither be read nor written"),
        (("serve", "--region", "r", "--size", "1", "--read", "--memory", "managed"), "memory 'managed' cannot be used"),
        (("serve", "--region", "r", "--size", "1", "--read", "--memory", "rom"), "there is no memory 'rom'"),
        (("put", __file__, "--to", "127.0.0.1:1", "--region", "r", "--memory", "host:1"), "memory 'host:1' cannot be used"),
        (("serve", "--region", "r", "--size", "0", "--read"), "region r has 0 bytes"),
        (("serve", "--region", "r", "--size", "big", "--read"), "size 'big' is not a size"),
        (("put", "/nothing", "--to", "127.0.0.1:1", "--region", "r"), "/nothing cannot be used"),
        (("get", "/tmp/nothing", "--from", "127.0.0.1:1", "--region", "r"), "cannot connect to 127.0.0.1 port 1"),
        (("get", "/tmp/nothing", "--from", "here", "--region", "r"), "'here' is not an address"),
        (("bench", "--size", "8", "--memory", "cuda", "--test", "put_latency"), "put_latency is not measured with memory cuda:0"),
        (
            ("bench", "--size", "8", "--memory", "pinned", "--peer", "ucx_perftest"),
            "ucx_perftest is not measured with pinned memory",
        ),
        (("bench", "--target", "127.0.0.1:1", "--peer", "ucx_perftest"), "ucx_perftest is not measured against another machine"),
        (("bench", "--serve", "0.0.0.0"), "no benchmark is served at 0.0.0.0 without a token"),
    ],
)
def test_what_cannot_be_begun_is_one_line_and_2(arguments: tuple[str, ...], line: str) -> None:
    done = nanet(*arguments, expect=2, UCX_LOG_LEVEL="fatal")
    assert re.fullmatch(rf"nanet: {re.escape(line)} ?.*\(.+\) .+", done.stderr.strip()), done.stderr


@pytest.mark.parametrize("memory", ["cuda", "pinned:0"])
def test_without_a_gpu_its_memory_cannot_be_had(tmp_path: Path, file: Path, memory: str) -> None:
    """Where there is one, it is hidden from the driver."""
    what = rf"memory {memory.partition(':')[0]}:0 cannot be (allocated|used) \(.+\) .+ use --memory shared or host"
    with served() as target:
        for command in (
            ("serve", "--region", "r", "--size", "1MiB", "--read", "--memory", memory),
            ("put", file, "--to", target.place, "--region", "r", "--memory", memory),
            ("get", tmp_path / "got", "--from", target.place, "--region", "r", "--memory", memory),
            ("bench", "--size", "8", "--memory", memory),
        ):
            done = nanet(*command, expect=2, CUDA_VISIBLE_DEVICES="")
            assert re.fullmatch(rf"nanet: \d+ bytes of {what}", done.stderr.strip()), done.stderr
            assert not done.stdout
    there = nanet("bench", "--size", "8", "--target-memory", memory, expect=2, CUDA_VISIBLE_DEVICES="")
    assert re.search(rf"^nanet: the other side refuses \(8 bytes of {what}\)", there.stderr), there.stderr
    assert not list(tmp_path.glob("got*"))


def test_a_put_is_one_sided_over_shared_memory_and_not_over_tcp(file: Path) -> None:
    """The target's process is stopped, so nothing of it can run."""
    with served("--transports", "posix,tcp", "--trust-network") as target:
        for way, expect in (({"transports": "posix"}, 0), (TCP, 1)):
            connection = transfer.connect(remote(target.place, **way, timeout_ms=2000))
            os.kill(target.process.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, target.process.pid, os.WSTOPPED | os.WNOWAIT)
            data = transfer.np.fromfile(file, dtype=transfer.np.uint8)
            status = connection.put(0, data)
            status = connection.flush() if status == "ok" else status
            assert status == ("ok" if expect == 0 else "time_out")
            os.kill(target.process.pid, signal.SIGCONT)
            connection.close()


def test_a_target_that_stands_still_or_dies_is_1_within_the_time_limit(tmp_path: Path, file: Path) -> None:
    with served(*WAYS["tcp"]) as target:
        os.kill(target.process.pid, signal.SIGSTOP)
        begin_s = time.monotonic()
        with pytest.raises(SetupError, match="no answer"):
            transfer.put(remote(target.place, **TCP, timeout_ms=500), file)
        assert time.monotonic() - begin_s < 60
        os.kill(target.process.pid, signal.SIGCONT)
        connection = transfer.connect(remote(target.place, **TCP, timeout_ms=5000))
        target.process.kill()
        target.process.wait()
        data = transfer.np.fromfile(file, dtype=transfer.np.uint8)
        assert connection.put(0, data) in ("peer_lost", "time_out") or connection.flush() in ("peer_lost", "time_out")
        assert connection.put(0, data) == "closed"


def test_a_signal_ends_a_transfer_between_two_slices(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = transfer.connect

    def connect_and_signal(to: transfer.Remote, given: CudaMemory | None) -> Any:
        connection = connect(to, given)
        # To this thread, where it waits until it is asked for: another one would take it when it runs next.
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        return connection

    monkeypatch.setattr(transfer, "connect", connect_and_signal)
    with served() as target:
        with pytest.raises(rdma.NotDone, match="stopped by a signal"):
            transfer.put(remote(target.place), file)
        with pytest.raises(rdma.NotDone, match="stopped by a signal"):
            transfer.get(remote(target.place), tmp_path / "got")
        assert not list(tmp_path.glob("got*"))


def test_a_full_disk_is_no_matter_of_permissions(tmp_path: Path) -> None:
    for number, expected in ((errno.ENOSPC, "make room, or give a file elsewhere"), (errno.EACCES, "fix its permissions")):
        with pytest.raises(SetupError, match=expected), transfer._openable(tmp_path / "got"):
            raise OSError(number, os.strerror(number))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_ends_in_order(number: int) -> None:
    with served() as target:
        assert target.end(number) == 0


def test_serve_that_aborts_says_so() -> None:
    """As UCX has it where a peer gives up while it is answered over TCP."""
    with served() as target:
        target.process.send_signal(signal.SIGABRT)
        _, said = target.process.communicate(timeout=TIME_LIMIT_S)
        assert target.process.returncode == 1
        assert said.startswith("nanet: the region is not served any more (this process aborted, ")
        assert said.count("\n") == 1


def test_serve_for_a_while() -> None:
    done = nanet("serve", "--region", "r", "--size", "1MiB", "--read", "--duration", "0.1", "--spin", "--memory", "host")
    assert re.match(
        r"ready: region r, 1\.049 MB \(1 MiB\), read, at 127\.0\.0\.1 port \d+\nreach: processes of this account .+\nserved for .* s; 0 refused\n$",
        done.stdout,
    )


@pytest.mark.parametrize("way", WAYS)
def test_bench_measures_all_and_checks_every_byte(tmp_path: Path, way: str, check_keys: CheckKeys) -> None:
    done = nanet(
        "bench", "--size", "8", "--size", "100001", "--iterations", "20", "--batch", "3", *WAYS[way], "--out", tmp_path,
        "--json", tmp_path / "bench.json", "--csv", tmp_path / "bench.csv",
    )  # fmt: skip
    result = json.loads((tmp_path / "bench.json").read_text())
    check_keys(result, "rdma bench")
    assert [(row["test"], row["message_bytes"]) for row in result["measurements"]] == [
        (test, size) for test in Measurement for size in (8, 100001)
    ]
    for row in result["measurements"]:
        assert (row["right"], row["count"], row["peer"], row["ratio_to_peer"]) == (True, 20, None, None)
        assert row["bytes_per_s"] == pytest.approx(row["messages_per_s"] * row["message_bytes"])
        if row["test"].endswith("latency"):
            latency = row["latency_us"]
            assert 0 < latency["min"] <= latency["p50"] <= latency["p99"] <= latency["p99_9"] <= latency["max"]
            assert latency["mean"] <= latency["max"] * 1.001
    assert (result["right"], result["ratio_to_peer"]) == (True, None)
    assert result["path"]["sided"] == ("one_sided" if way == "shared" else "emulated")
    assert "every byte was right" in done.stdout
    assert "<svg" in (tmp_path / "rdma-bench.html").read_text()
    assert (tmp_path / "bench.csv").read_text().count("put_bandwidth 8 bytes") == 2


def test_bench_beside_ucx_perftest(tmp_path: Path, check_keys: CheckKeys) -> None:
    done = nanet(
        "bench", "--peer", "ucx_perftest", "--rounds", "2", "--size", "8", "--size", "1MiB", "--iterations", "50",
        "--test", "put_bandwidth", "--test", "put_latency", "--out", tmp_path, "--json", tmp_path / "bench.json",
    )  # fmt: skip
    result = json.loads((tmp_path / "bench.json").read_text())
    check_keys(result, "rdma bench")
    assert result["peer"]["version"] == result["ucx_version"]
    for row in result["measurements"]:
        assert (len(row["rounds"]), len(row["peer"]["rounds"])) == (2, 2)
        assert {one["count"] for one in [*row["rounds"], *row["peer"]["rounds"]]} == {50}
        if row["test"].endswith("bandwidth"):
            assert row["ratio_to_peer"] == pytest.approx(row["bytes_per_s"] / row["peer"]["bytes_per_s"])
            # Two ways to say the same: the peer's MB are 2^20 bytes.
            assert row["peer"]["bytes_per_s"] == pytest.approx(row["peer"]["messages_per_s"] * row["message_bytes"], rel=0.02)
        else:
            assert row["ratio_to_peer"] == pytest.approx(row["latency_us"]["p50"] / row["peer"]["p50_us"])
    at_1_mib = next(row for row in result["measurements"] if (row["test"], row["message_bytes"]) == ("put_bandwidth", 1 << 20))
    assert result["ratio_to_peer"] == at_1_mib["ratio_to_peer"]
    assert f"ratio_to_peer (put bandwidth at 1 MiB, ucx_perftest {result['peer']['version']}): " in done.stdout


def test_bench_refuses_a_path_that_is_not_proved() -> None:
    done = nanet("bench", "--size", "8", *WAYS["tcp"], "--require", "one-sided", expect=1)
    assert re.search(r"^nanet: the way to .* is not one-sided", done.stderr, flags=re.MULTILINE)


def test_bench_against_another_process_with_a_token(tmp_path: Path) -> None:
    with Started("bench", "--serve", "127.0.0.1", NANET_RDMA_TOKEN="77") as other:
        bench_there = ("bench", "--target", other.place, "--size", "64", "--iterations", "5", "--out", tmp_path)
        assert "the other side refuses (another secret)" in nanet(*bench_there, expect=2).stderr
        for _ in range(2):  # one session after the other
            assert "every byte was right" in nanet(*bench_there, NANET_RDMA_TOKEN="77").stdout
        assert other.end(signal.SIGINT) == 0


def test_a_stranger_ends_and_blocks_no_bench(tmp_path: Path) -> None:
    """Nested JSON, as lines and as a frame; silence; and the token of another."""
    with Started("bench", "--serve", "127.0.0.1", NANET_RDMA_TOKEN="77") as other, contextlib.ExitStack() as stack:
        address = ("127.0.0.1", int(other.place.rpartition(":")[2]))
        for said in (b"[" * 4000 + b"\n", (4000).to_bytes(8, "little") + b"[" * 4000, *[b""] * 70):
            stranger = stack.enter_context(socket.create_connection(address, timeout=TIME_LIMIT_S))
            stranger.sendall(said)
        done = nanet(
            "bench", "--target", other.place, "--size", "64", "--iterations", "5", "--out", tmp_path, NANET_RDMA_TOKEN="77"
        )
        assert "every byte was right" in done.stdout
        assert other.end(signal.SIGINT) == 0


@pytest.mark.parametrize("hello", [{}, {"silent_s": 1, "bytes": 1e400, "memory": "shared"}, {"silent_s": [1]},
                                   {"silent_s": 1, "bytes": 8, "memory": "shared", "transports": 7}, {"silent_s": 0.2, "bytes": 8, "memory": "shared", "transports": "shm"}])  # fmt: skip
def test_a_session_that_says_nonsense_or_nothing_more_ends_alone(tmp_path: Path, hello: dict[str, Any]) -> None:
    """The last one is silent once it began, while the next one waits."""
    with Started("bench", "--serve", "127.0.0.1", NANET_RDMA_TOKEN="77") as other:
        channel = Channel(socket.create_connection(("127.0.0.1", int(other.place.rpartition(":")[2]))))
        with channel:
            introduce(channel, PURPOSE, secret_of(0x77), {}, TIME_LIMIT_S)
            channel.send_json(hello, TIME_LIMIT_S)
            with contextlib.suppress(ChannelError):  # nonsense ends it
                channel.receive(1.0, 4096)
            bench_there = ("bench", "--target", other.place, "--size", "64", "--iterations", "5", "--out", tmp_path)
            assert "every byte was right" in nanet(*bench_there, NANET_RDMA_TOKEN="77").stdout
        assert other.end(signal.SIGINT) == 0


def test_bytes_that_were_not_written_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is transferred: every check has to fail."""
    monkeypatch.setattr(session.Session, "_run", lambda *_: {"status": "ok", "count": 1, "elapsed_ns": 10**9} | dict.fromkeys(
        ("min_ns", "p50_ns", "p99_ns", "p99_9_ns", "max_ns"), 1))  # fmt: skip
    result = bench.run(bench.BenchOptions(sizes=(64,), count=1), lambda line: None)
    assert [row["right"] for row in result["measurements"]] == [False] * len(Measurement)
    assert result["right"] is False


def test_a_bench_that_is_stopped_leaves_no_process() -> None:
    command = [sys.executable, "-m", "nanet", "rdma", "bench", "--size", "8", "--duration", "0.2", "--rounds", "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("path: ")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 1
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=TIME_LIMIT_S)
    assert process.returncode == 1
    assert "stopped by a signal" in errors
    assert not Path(f"/proc/{children[0]}").exists()


def test_doctor_of_this_machine(tmp_path: Path, check_keys: CheckKeys) -> None:
    done = nanet("doctor", "--json", tmp_path / "doctor.json")
    result = json.loads((tmp_path / "doctor.json").read_text())
    check_keys(result, "rdma doctor")
    names = {check["name"]: check for check in result["checks"]}
    assert rdma.native().ucx_version() in names["UCX"]["found"]
    assert "tcp" in names["UCX transports"]["found"]
    assert "UCX build" in done.stdout


@pytest.mark.parametrize(
    ("memory", "text"),
    [
        ("managed", "region bench cannot be of kind cuda_managed"),
        ("cuda", "region bench of kind cuda_device cannot be allocated here"),
    ],
)
def test_a_library_error_is_nanets_own(memory: str, text: str) -> None:
    config = {
        "transports": "",
        "trust_network": False,
        "address": "127.0.0.1",
        "port": 0,
        "region": "bench",
        "bytes": 10,
        "read": True,
        "write": True,
        "token": 0,
    }
    with pytest.raises(SetupError, match=text):
        rdma.native().Target(config | {"memory": memory, "given": None})
