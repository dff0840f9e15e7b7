# SPDX-License-Identifier: Apache-2.0
"""Whole runs over several queues of one endpoint, each on a core of its own: boards, units of a declared format, and what is refused."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import nanet as nanet_api
import pytest
import yaml
from loops import emulator_config, engine_config, free_ports, nanet, sender, wait_for
from nanet import _core
from nanet.bench.queues import two_over_one
from nanet.config import formats
from nanet.config.engine import EngineConfig
from nanet.format import make
from nanet.format.make import Faults, Made, MakeOptions
from nanet.run import emulate
from nanet.run.process import EngineProcess
from test_bench_links import a_pair

BY_BOARD = {"queues": 2, "steer_by": "key", "key_at": 1}  # the sub-ID in the header of MGP
BY_DATA_ID = {"queues": 2, "steer_by": "key", "key_at": 2, "key_bytes": 2}


def two_cores() -> list[int]:
    cores = sorted(os.sched_getaffinity(0))[:2]
    assert len(cores) == 2, "this test needs two cores"
    return cores


def over_queues(port: int, udp: dict[str, Any], **changes: Any) -> EngineConfig:
    link = {"udp": udp, "socket_buffer_bytes": 1 << 22} | changes.pop("link", {})
    plain = {"cpu_cores": {"lanes": two_cores()}, "processor": {"kind": "count", "merge": None}} | changes
    return engine_config(port, None, changes.pop("boards", 1), link=link, **plain)


@pytest.mark.parametrize("lanes", [False, True], ids=["one thread", "two threads"])
def test_each_board_comes_to_its_queue(lanes: bool) -> None:
    (port,) = free_ports(1)
    sources = [{"name": f"board{n}", "source_id": 0x1C, "source_sub_id": n} for n in range(4)]
    cores = {"lanes": two_cores()} if lanes else {}
    with EngineProcess(over_queues(port, BY_BOARD, link={"sources": sources}, cpu_cores=cores)) as process:
        sent = emulate.run(emulator_config(port, None, boards=4, events_total=20_000, rate_events_per_s=1e5))
        result = process.stop()
    assert [link["name"] for link in result["links"]] == ["boards.0", "boards.1"]
    assert result["balance"]["unexplained_packets"] == 0, result["balance"]
    for source in result["sources"]:
        here = source["link"] == f"boards.{source['source_sub_id'] % 2}"
        assert source["counters"]["packets_accepted"] == (sent["packets_sent"] // 4 if here else 0), source
    assert result["counters"]["packets_accepted"] == sent["packets_sent"]
    assert result["counters"]["packets_wrong_queue"] == 0
    assert result["losses"] == {}


def test_units_of_a_stream_are_put_together_in_one_queue() -> None:
    """Two streams of EJFAT in turn from one socket; a forged data ID makes a stream of its own, and harms no other."""
    (port,) = free_ports(1)
    declared = formats.load("ejfat")
    payloads = list(make.packets(declared, MakeOptions(packets=256, streams=2), Faults(), Made()))
    data_ids = Counter(int.from_bytes(payload[2:4], "big") for payload in payloads)
    assert len(data_ids) == 2
    queues = {(key >> 8 ^ key & 0xFF) % 2 for key in data_ids}
    assert queues == {0, 1}, data_ids
    forged = payloads[0][:2] + bytes.fromhex("0007") + payloads[0][4:]
    patient = {"timeout_us": 10_000_000}  # a busy machine may stop the engine between two packets of a unit
    link = {"sources": [], "protocol": "ejfat", "packet_bytes_max": 9000, "assemble": patient}
    regions = [{"name": "rich", "buffer_bytes": 1 << 21, "buffer_count": 64}]
    with EngineProcess(over_queues(port, BY_DATA_ID, link=link, memory_regions=regions)) as process, sender(port) as socket:
        for n, payload in enumerate([*payloads, forged]):
            socket.send(payload)
            if n % 16 == 15:
                time.sleep(0.005)
        time.sleep(0.1)
        result = process.stop()
    counters = result["counters"]
    assert counters["units_complete"] + counters["units_flushed"] + counters["units_timed_out"] == counters["units_begun"]
    for link in result["links"]:
        queue = int(link["name"].rpartition(".")[2])
        of_queue = sum(count for key, count in data_ids.items() if (key >> 8 ^ key & 0xFF) % 2 == queue)
        assert link["stats"]["rx_packets"] == of_queue + (1 if queue == 1 else 0)  # 0x0007
    assert counters["packets_accepted"] == len(payloads) + 1
    assert counters["units_complete"] >= 1


def test_queues_of_a_nic_have_a_core_each() -> None:
    """Two queues of a veth pair, polled by AF_XDP: all that comes is in the books of one of them."""
    with a_pair(queues=2, mtu=3400, coalesced=False) as pair:
        if pair is None or not _core.build_info()["back_ends"]["xdp"]:
            warnings.warn("NOT RUN: queues of AF_XDP (no namespaces, or built without it)", stacklevel=1)
            return
        xdp = {"queues": [0, 1], "split_queues": True, "frame_count": 4096, "huge_pages": False}
        link = {"endpoint": f"xdp://{pair.engine.address}:6200", "xdp": xdp, "protocol": "raw", "sources": []}
        config = engine_config(6200, None, link=link, processor={"kind": "count", "merge": None}, cpu_cores={"lanes": two_cores()})
        with EngineProcess(config, pair.engine.namespace) as process:
            for n in range(64):  # the port chooses the queue
                with pair.boards.namespace.entered(), sender(6200, pair.engine.address) as socket:
                    for k in range(8):
                        socket.send(bytes([n, k]) * 100)
            wait_for(lambda: process.counters().get("packets_accepted", 0) == 512, "the last packet")
            result = process.stop()
    assert [one["name"] for one in result["links"]] == ["boards.0", "boards.1"]
    assert all(one["stats"]["rx_packets"] > 0 for one in result["links"])
    assert result["counters"]["packets_accepted"] == 512
    assert result["balance"]["unexplained_packets"] == 0
    assert result["losses"] == {}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"udp": {"queues": 65}}, "udp.queues"),
        ({"udp": {"queues": 0}}, "udp.queues"),
        (
            {"udp": {"steer_by": "key"}},
            "steer_by key with one queue (every packet comes to it) set queues: 2 or more, or remove steer_by",
        ),
        ({"udp": {"queues": 2, "key_at": 3}}, "a key with steer_by flow (the payload does not choose the queue)"),
        (
            {"udp": {"queues": 2, "steer_by": "key", "key_at": 1472}},
            "the key of link 'boards' ends at 1473 B (packet_bytes_max is 1472)",
        ),
        ({"udp": {"queues": 2}, "record": {"file": "x.pcap"}}, "link 'boards' has record (its 2 queues would write one file)"),
        ({"udp": {"queues": 2}, "endpoint": "udp://239.1.2.3:6200"}, "each socket of a group gets every packet"),
        ({"endpoint": "xdp://10.77.0.2:6200", "xdp": {"split_queues": True}}, "there are no queues to split"),
        (
            {"endpoint": "xdp://10.77.0.2:6200", "xdp": {"split_queues": True, "queues": [0, 3]}, "record": {"file": "x.pcap"}},
            "its 2 queues would write one file",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any], line: str) -> None:
    plain = engine_config(6200, None, processor={"kind": "count"}).model_dump(mode="json")
    plain["links"][0] |= change
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(plain))
    done = nanet("validate", tmp_path / "bad.yaml", expect=2)
    assert line in done.stdout + done.stderr


def test_a_program_has_a_port_for_each_queue() -> None:
    (number,) = free_ports(1)
    udp = {"steer_by": "key", "key_at": 0}
    ports = nanet_api.open_queues(f"udp://127.0.0.1:{number}", 2, udp=udp, buffer_count=4, gro=False)
    taken: dict[int, list[bytes]] = {}

    def take(queue: int) -> None:
        with ports[queue] as port:
            taken[queue] = [bytes(packet) for completion in port.completions(timeout_s=1.0) for packet in completion.packets()]

    threads = [threading.Thread(target=take, args=(queue,)) for queue in range(2)]
    for thread in threads:
        thread.start()
    with sender(number) as socket:
        for n in range(100):
            socket.send(bytes([n % 5, n]))
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    for queue in range(2):
        assert taken[queue] == [bytes([n % 5, n]) for n in range(100) if n % 5 % 2 == queue]


def test_one_port_takes_one_queue() -> None:
    with pytest.raises(nanet_api.ConfigError, match=r"call nanet\.open_queues"):
        nanet_api.open("udp://127.0.0.1:6200", udp={"queues": 2})
    with pytest.raises(nanet_api.ConfigError, match="steer_by address with one queue"):
        nanet_api.open_queues("udp://127.0.0.1:6200", 1, udp={"steer_by": "address"})


@pytest.mark.parametrize("gro", [True, False], ids=["coalesced", "single"])
def test_the_bench_takes_every_packet(gro: bool) -> None:
    found = two_over_one(gro=gro, rounds=1, packets=1000)
    assert all(value > 0 for value in found.values())
    assert found["two_over_one"] == found["two_per_s"] / found["one_per_s"]


def test_rings_are_not_found_in_several_threads(tmp_path: Path) -> None:
    plain = engine_config(6200, 6300).model_dump(mode="json")
    plain["cpu_cores"] = {"lanes": [two_cores()[0]]}
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(plain))
    done = nanet("validate", tmp_path / "bad.yaml", expect=2)
    assert "the processor works in one thread" in done.stdout + done.stderr
