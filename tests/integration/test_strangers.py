# SPDX-License-Identifier: Apache-2.0
"""Two thousand strangers at each port: no one dies, nothing leaks, and who belongs there is served meanwhile. For more: strangers.py."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from pathlib import Path

import pytest
from loops import wait_for
from strangers import GOOD_MIN, Port, attack, come_and_go, descriptors, ports, remote_hello, rubbish, throw
from test_listening import open_to_others, started, tree

CONNECTIONS = int(os.environ.get("NANET_STRANGERS", "2000"))


@pytest.mark.needs_ucx
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["metrics", "rdma bench --serve", "rdma serve", "run, ucx://", "stencil --ranks env"])
def test_strangers_end_and_keep_out_no_one(tmp_path: Path, name: str) -> None:
    found = attack(ports(tmp_path)[name], CONNECTIONS, seed=3)
    assert found.exit_code is None
    assert found.descriptors_after <= found.descriptors_before
    assert found.good_failed == []
    assert len(found.good_s) >= GOOD_MIN


@pytest.mark.needs_ucx
@pytest.mark.timeout(300)
def test_strangers_end_no_rank(tmp_path: Path) -> None:
    """The ports of two ranks in the middle of a run: it goes on, and no descriptor is left."""
    command = ["stencil", "--ranks", "2", "--size", "64", "--sweeps", "1000000000", "--no-progress"]
    with started(command) as process:
        wait_for(lambda: len(open_to_others(tree(process.pid))) == 2, "both ranks listen", 200)
        time.sleep(1)  # the rendezvous has ended, and they are each other's guests
        ranks, places = tree(process.pid), open_to_others(tree(process.pid))
        before = [descriptors(pid) for pid in ranks]
        for seed, place in enumerate(sorted(places)):
            host, _, port = place.rpartition(":")
            throw(Port([], (host, int(port)), remote_hello("halos"), lambda _: None), CONNECTIONS // 2, random.Random(seed))
        wait_for(lambda: [descriptors(pid) for pid in ranks] == before, "no descriptor is left", 30)
        assert process.poll() is None
        assert tree(process.pid) == ranks


def test_a_good_client_that_is_not_served_is_seen() -> None:
    """The test of the test: a port where no one listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()[:2]

    def refused(address: tuple[str, int]) -> None:
        socket.create_connection(address, timeout=1).close()

    over, took, failed = threading.Event(), list[float](), list[str]()
    clients = threading.Thread(target=come_and_go, args=(Port([], address, b"x", refused), over, took, failed))
    clients.start()
    wait_for(lambda: bool(failed), "the failure")
    over.set()
    clients.join()
    assert "refused" in failed[0].lower()


def test_what_strangers_say_is_of_every_kind() -> None:
    choose = random.Random(1)
    said = [rubbish(b"GET / HTTP/1.1\r\n\r\n", choose) for _ in range(500)]
    assert b"" in said
    assert any(len(one) > 4000 for one in said)
    assert len(set(said)) > 300
