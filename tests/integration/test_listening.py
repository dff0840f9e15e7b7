# SPDX-License-Identifier: Apache-2.0
"""Where every command that listens does so: each socket of its processes, as the kernel lists them, is on the address that was asked for."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from loops import ROOT, emulator_config, engine_config, free_ports, wait_for

pytestmark = [pytest.mark.needs_ucx, pytest.mark.timeout(300)]

LISTENING, UNCONNECTED = "0A", "07"  # states of TCP and UDP in /proc/net


def commands(tmp_path: Path) -> dict[str, list[str]]:
    """Each at 127.0.0.1, and for longer than a test takes."""
    port, answers, l0_port, ucx_port, boards, boards_answers, metrics, mtp = map(str, free_ports(8))
    engine = engine_config(int(port), int(answers)).model_dump(mode="json")
    engine["metrics"] = {"endpoint": f"http://127.0.0.1:{metrics}"}
    over_ucx = engine_config(int(ucx_port), None).model_dump(mode="json")
    over_ucx["links"][0] |= {"endpoint": f"ucx://127.0.0.1:{ucx_port}", "ucx": {"allow_root": True}}
    l0tp = yaml.safe_load((ROOT / "examples" / "l0tp.yaml").read_text()) | {"listen": f"udp://127.0.0.1:{l0_port}"}
    emulator = emulator_config(int(boards), int(boards_answers)).model_dump(mode="json")
    emulator |= {"rate_events_per_s": 1000.0, "events_total": 0}
    for name, plain in (("engine", engine), ("ucx", over_ucx), ("l0tp", l0tp), ("emulator", emulator)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(plain))
    return {
        "run": ["run", f"{tmp_path}/engine.yaml"],
        "run, ucx://": ["run", f"{tmp_path}/ucx.yaml"],
        "l0tp": ["l0tp", f"{tmp_path}/l0tp.yaml"],
        "emulate tel62": ["emulate", "tel62", "--config", f"{tmp_path}/emulator.yaml"],
        "emulate l0tp": ["emulate", "l0tp", "--answers", f"udp://127.0.0.1:{mtp}"],
        "rdma bench --serve": ["rdma", "bench", "--serve", "127.0.0.1", "--allow-root"],
        "rdma serve": ["rdma", "serve", "--region", "r", "--size", "64KiB", "--read", "--allow-root"],
        "rdma serve over TCP": [
            "rdma",
            "serve",
            "--region",
            "r",
            "--size",
            "64KiB",
            "--read",
            "--allow-root",
            "--transports",
            "tcp",
            "--trust-network",
        ],
        "stencil --ranks": ["stencil", "--ranks", "2", "--size", "64", "--sweeps", "1000000000", "--no-progress"],
        "stencil --mode paper": ["stencil", "--mode", "paper", "--tile", ",".join(["16M"] * 500), "--sweeps", "32"],
    }


NAMES = (
    "run", "run, ucx://", "l0tp", "emulate tel62", "emulate l0tp", "rdma bench --serve", "rdma serve", "rdma serve over TCP",
    "stencil --ranks", "stencil --mode paper",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_command_listens_where_it_was_told_and_nowhere_else(tmp_path: Path, name: str) -> None:
    with started(commands(tmp_path)[name]) as process:
        least = 2 if name == "run" else 1
        wait_for(lambda: len(open_to_others(tree(process.pid))) >= least or process.poll() is not None, f"{name} listens", 200)
        found: set[str] = set()
        for _ in range(20):  # some sockets come later than others
            found |= open_to_others(tree(process.pid))
            time.sleep(0.1)
        assert process.poll() is None, name
    elsewhere = sorted(one for one in found if not ipaddress.ip_address(one.rpartition(":")[0].strip("[]")).is_loopback)
    assert found
    assert elsewhere == []


def test_a_socket_that_is_open_to_all_is_seen() -> None:
    """The test of the test."""
    with socket.create_server(("0.0.0.0", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"x", ("127.0.0.1", 9))  # the kernel binds it, to every address
        with (
            socket.create_server(("::1", 0), family=socket.AF_INET6) as tcp6,
            socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp6,
        ):
            udp6.bind(("::1", 0))
            found = open_to_others([os.getpid()])
            assert {f"0.0.0.0:{one.getsockname()[1]}" for one in (tcp, udp)} <= found
            assert {f"[::1]:{one.getsockname()[1]}" for one in (tcp6, udp6)} <= found


@contextlib.contextmanager
def started(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "nanet", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def tree(pid: int) -> list[int]:
    """It and all below it."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(child) for child in task.read_text().split()]
    return found


def open_to_others(pids: list[int]) -> set[str]:
    """ADDRESS:PORT of each TCP socket that listens and each UDP socket that takes packets from whoever sends them."""
    found = set()
    for pid in pids:
        inodes = set()
        with contextlib.suppress(OSError):
            for one in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes |= set(re.findall(r"^socket:\[(\d+)\]$", os.readlink(one)))
            for kind in ("tcp", "tcp6", "udp", "udp6"):
                for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
                    words = line.split()
                    if words[9] in inodes and words[3] == (LISTENING if kind.startswith("tcp") else UNCONNECTED):
                        found.add(_place(words[1]))
    return found


def _place(text: str) -> str:
    """Of `0100007F:1F90`: words of 32 bits in the machine's order, and the port."""
    address, _, port = text.partition(":")
    packed = b"".join(struct.pack("=I", int(address[at : at + 8], 16)) for at in range(0, len(address), 8))
    read = ipaddress.ip_address(packed)
    return f"[{read}]:{int(port, 16)}" if read.version == 6 else f"{read}:{int(port, 16)}"
