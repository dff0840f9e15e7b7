# SPDX-License-Identifier: Apache-2.0
"""A whole engine behind UCX: what a remote writer puts into its ring is answered as the same packets through a socket."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from loops import emulator_config, engine_config, free_ports, nanet, sender, wait_for
from nanet import _core, rdma
from nanet.machine.ports import unused_port
from nanet.run import emulate
from nanet.run.process import EngineProcess
from test_replay import Listener

EVENTS = 1600
TOKEN = "5eed"
CONSUMED_AT, NOTICES_AT = 64, 128  # include/nanet/rdma/notify_ring.hpp has the layout


class RingWriter:
    """Fills one ring of a link, payload by payload. Waits while it is full."""

    def __init__(self, port: int, ring: str, token: str, transports: str) -> None:
        self._connection = rdma.native().Connection(
            {"transports": transports, "trust_network": transports == "tcp", "address": "127.0.0.1", "port": port, "region": ring, "token": int(token, 16),
             "timeout_ms": 10_000, "chunk_bytes": 1 << 20, "depth": 8, "require": "", "given": None}
        )  # fmt: skip
        _, self._slot_count, self.payload_bytes_max, self._slot_bytes = (int(n) for n in self._get(8, 16).view("<u4"))
        self._slots_at = -(-(NOTICES_AT + 8 * self._slot_count) // 64) * 64
        self._number = 0

    def send(self, payload: bytes) -> None:
        """Puts it, and once it is there its notice."""
        wait_for(lambda: self._number - self.consumed() < self._slot_count, "room in the ring")
        slot = self._number % self._slot_count
        self._put(self._slots_at + slot * self._slot_bytes, payload)
        self._number += 1
        self._put(NOTICES_AT + 8 * slot, (self._number << 16 | len(payload)).to_bytes(8, "little"))

    def consumed(self) -> int:
        """Payloads that the link has given back."""
        return int(self._get(CONSUMED_AT, 8).view("<u8")[0])

    def close(self) -> None:
        assert self._connection.close() == "ok"

    def _put(self, offset_bytes: int, data: bytes) -> None:
        assert self._connection.put(offset_bytes, np.frombuffer(data, np.uint8)) == "ok", self._connection.error
        assert self._connection.flush() == "ok", self._connection.error

    def _get(self, offset_bytes: int, size_bytes: int) -> Any:
        data = np.empty(size_bytes, np.uint8)
        assert self._connection.get(offset_bytes, data) == "ok", self._connection.error
        return data


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return file


def packets_of_a_board() -> list[bytes]:
    with Listener() as board:
        emulated = emulate.run(emulator_config(int(board.url.rpartition(":")[2]), None, events_total=EVENTS, rate_events_per_s=1e5))
    assert len(board.packets) == emulated["packets_sent"] + emulated["markers_sent"]
    return board.packets


@pytest.mark.needs_ucx
@pytest.mark.parametrize("transports", ["posix", "tcp"])
def test_rings_that_are_filled_are_answered_as_a_socket(token_file: Path, transports: str) -> None:
    packets = packets_of_a_board()
    (port,) = free_ports(1)
    with (
        Listener() as expected,
        EngineProcess(engine_config(port, int(expected.url.rpartition(":")[2]))) as process,
        sender(port) as out,
    ):
        for packet in packets:
            out.send(packet)
        wait_for(lambda: process.counters().get("events_answered") == EVENTS, "the last answer through the socket")
    port = unused_port(socket.SOCK_STREAM)
    ucx = {"ring_count": 2, "slot_count": 8, "token_file": str(token_file), "transports": transports, "allow_root": True}
    ucx["trust_network"] = transports == "tcp"
    link = {"endpoint": f"ucx://127.0.0.1:{port}", "packet_bytes_max": 2000, "ucx": ucx}
    with Listener() as listener, EngineProcess(engine_config(1, int(listener.url.rpartition(":")[2]), link=link)) as process:
        writer = RingWriter(port, "ring-1", TOKEN, transports)
        assert writer.payload_bytes_max == 2000
        for packet in packets:  # many more than the ring has slots
            writer.send(packet)
        wait_for(lambda: process.counters().get("events_answered") == EVENTS, "the last answer")
        writer.close()
        result = process.stop()
    assert np.array_equal(listener.primitives(), expected.primitives())
    assert result["losses"] == {}
    assert result["links"][0]["stats"]["rx_packets"] == len(packets)
    assert "2 rings in shared memory" in result["links"][0]["path"]


@pytest.mark.needs_ucx
def test_a_run_says_where_it_listens_refuses_a_wrong_token_stops_and_starts_again(tmp_path: Path, token_file: Path) -> None:
    port = unused_port(socket.SOCK_STREAM)
    ucx = {"token_file": str(token_file), "transports": "tcp", "trust_network": True, "allow_root": True}
    config = engine_config(1, free_ports(1)[0], link={"endpoint": f"ucx://127.0.0.1:{port}", "ucx": ucx})
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    command = [sys.executable, "-m", "nanet", "run", str(tmp_path / "e.yaml"), "--json", str(tmp_path / "run.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == f"ready: listening on ucx://127.0.0.1:{port}\n"
        with pytest.raises(_core.SetupError, match="ring-0"):
            RingWriter(port, "ring-0", "bad", "tcp")
        writer = RingWriter(port, "ring-0", TOKEN, "tcp")
        engine.send_signal(signal.SIGINT)
        _, said = engine.communicate(timeout=30)
    assert engine.returncode == 0, said
    assert TOKEN not in (tmp_path / "run.json").read_text()
    del writer  # its connection was ended by the engine, whose port is free again all the same
    with EngineProcess(config):
        RingWriter(port, "ring-0", TOKEN, "tcp").close()


def test_a_run_that_others_reach_needs_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NANET_RDMA_TOKEN", raising=False)
    config = engine_config(
        1, free_ports(1)[0], link={"endpoint": f"ucx://0.0.0.0:{unused_port(socket.SOCK_STREAM)}", "ucx": {"allow_root": True}}
    )
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
    done = nanet("run", tmp_path / "e.yaml", expect=2)
    assert "without a token (whoever reaches the port could write into this process)" in " ".join(done.stderr.split())
