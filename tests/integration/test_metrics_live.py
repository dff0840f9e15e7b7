# SPDX-License-Identifier: Apache-2.0
"""A real `nanet run` that is asked over HTTP while packets with faults flow, and an engine that is asked after its end."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from loops import (
    PATIENT,
    ROOT,
    check_packet_books,
    emulator_config,
    engine_config,
    free_pair,
    free_ports,
    nanet,
    run,
    sender,
    wait_for,
)
from nanet import _core, wire
from nanet.machine.ports import unused_port
from nanet.metrics.engine import STATS_HELP
from nanet.metrics.server import MetricsServer
from nanet.run import emulate
from nanet.run.process import EngineProcess
from prometheus_client.parser import text_string_to_metric_families

Samples = dict[str, list[tuple[dict[str, str], float]]]
FAULTS = dict.fromkeys(("loss", "duplicate", "reorder", "corrupt", "truncate", "delay"), 0.01) | {"delay_us": 300}


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def scrape(endpoint: str) -> Samples:
    status, text = get(f"{endpoint}/metrics")
    assert status == 200
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def total(found: Samples, name: str, **labels: str) -> float:
    return sum(value for of, value in found[name] if labels.items() <= of.items())


def check_rising(before: Samples, after: Samples) -> None:
    for name, values in before.items():
        if name.endswith(("_total", "_bucket", "_count", "_sum")):
            for (labels, old), (same, new) in zip(values, after[name], strict=True):
                assert labels == same
                assert new >= old, (name, labels)


def test_scraped_while_packets_flow() -> None:
    """Counters never fall, book 1 holds in each scrape, and at the end all books hold in what was exposed."""
    port, answers = free_ports()
    endpoint = f"http://127.0.0.1:{unused_port(socket.SOCK_STREAM)}"
    config = engine_config(port, answers, 4, link={"faults": FAULTS}, processor={"merge": PATIENT}, metrics={"endpoint": endpoint})
    emulator = emulator_config(port, answers, 4, events_total=400_000, rate_events_per_s=2e5)
    sent: dict[str, Any] = {}
    with EngineProcess(config) as process:
        boards = threading.Thread(target=lambda: sent.update(emulate.run(emulator)))
        boards.start()
        scrapes = [scrape(endpoint)]
        while boards.is_alive():
            assert get(f"{endpoint}/health")[0] == 200
            scrapes.append(scrape(endpoint))
            check_rising(scrapes[-2], scrapes[-1])
        boards.join()
        wait_for(lambda: total(scrape(endpoint), "nanet_injector_held") == 0, "the release of the packets held back")
        last = scrape(endpoint)
        engine = process.stop()
    assert len(scrapes) > 3
    seen = [total(one, "nanet_packets_accepted_total") for one in scrapes]
    assert any(0 < count < total(last, "nanet_packets_accepted_total") for count in seen)  # some were taken in the middle of it
    assert not any(value for one in [*scrapes, last] for _, value in one["nanet_hop_unexplained"])
    assert not any(value for _, value in last["nanet_hop_in_flight"])
    check_packet_books(sent, engine)
    for source in ("board0", "board1", "board2", "board3"):
        expected = total(last, "nanet_packets_accepted_total", source=source) + total(last, "nanet_packets_lost", source=source)
        assert expected == sent["packets_sent"] // 4
    came = total(last, "nanet_link_rx_packets_total", link="boards")
    came += total(last, "nanet_injected_faults_total", reason="duplicated") - total(
        last, "nanet_injected_faults_total", reason="lost"
    )
    ended = total(last, "nanet_packets_accepted_total") + total(last, "nanet_packets_lost", reason="clop_full")
    assert came == ended + total(last, "nanet_packets_refused_total") + total(last, "nanet_packets_marker_total")
    assert total(last, "nanet_packets_refused_total", reason="bad_checksum", source="") > 0
    assert total(last, "nanet_events_received_total") == total(last, "nanet_parts_merged_total") + total(
        last, "nanet_parts_refused_total"
    )
    counters = engine["counters"]
    assert total(last, "nanet_packets_accepted_total") == counters["packets_accepted"]
    assert total(last, "nanet_packets_lost", reason="network") == counters["packets_lost_network"]
    bucket_counts = [value for _, value in last["nanet_residence_seconds_bucket"]]
    assert bucket_counts == sorted(bucket_counts)
    assert bucket_counts[-1] == total(last, "nanet_residence_seconds_count") > 0


def test_answers_by_way_of_a_link_are_that_links() -> None:
    port, answers = free_ports()
    plain = engine_config(port, answers).model_dump(mode="json")
    assert [link["name"] for link in _core.Engine(plain).metrics([])["links"]] == ["boards", "answers"]
    plain["answers"]["via"] = "boards"
    assert [link["name"] for link in _core.Engine(plain).metrics([])["links"]] == ["boards"]


def test_raw_datagrams_are_counted_by_link() -> None:
    port, _ = free_ports()
    endpoint = f"http://127.0.0.1:{unused_port(socket.SOCK_STREAM)}"
    config = engine_config(
        port, None, link={"protocol": "raw", "sources": []}, processor={"kind": "count"}, metrics={"endpoint": endpoint}
    )
    with EngineProcess(config), sender(port) as out:
        for _ in range(10):
            out.send(b"any datagram")
        wait_for(lambda: total(scrape(endpoint), "nanet_packets_accepted_total", link="boards", source="") == 10, "their arrival")


def test_after_the_end_the_counters_stand_and_health_fails() -> None:
    port, answers = free_ports()
    endpoint = f"http://127.0.0.1:{unused_port(socket.SOCK_STREAM)}"
    config = engine_config(port, answers, metrics={"endpoint": endpoint})
    event = wire.EventRecord(timestamp=1000, fine_time=7, event_number=0, hits=[100, 200, 300, 400])
    engine = _core.Engine(config.model_dump(mode="json"))
    with MetricsServer(config) as server:
        engine.start()
        server.serve(engine)
        with sender(port) as out:
            out.send(wire.build_mgp([event] * 16, source_id=0x1C, source_sub_id=0))
            wait_for(lambda: total(scrape(endpoint), "nanet_events_answered_total") == 16, "the answer")
        assert {name for link in engine.metrics([])["links"] for name in link["stats"]} == set(STATS_HELP)
        assert get(f"{endpoint}/health")[0] == 200
        engine.stop()
        status, text = get(f"{endpoint}/health")
        assert (status, json.loads(text)["reasons"]) == (503, ["the engine has stopped"])
        found = scrape(endpoint)
        assert (total(found, "nanet_running"), total(found, "nanet_events_answered_total")) == (0, 16)
    with socket.socket() as one:
        assert one.connect_ex(("127.0.0.1", int(endpoint.rpartition(":")[2]))) != 0


def test_off_unless_asked_for() -> None:
    port, answers = free_ports()
    emulated, engine = run(engine_config(port, answers), emulator_config(port, answers, events_total=16_000))
    assert emulated["lost"] == 0
    assert engine["config"]["metrics"] is None


def test_a_port_that_is_taken_ends_the_command(tmp_path: Path) -> None:
    port, answers = free_ports()
    (tmp_path / "e.yaml").write_text(json.dumps(engine_config(port, answers).model_dump(mode="json")))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = nanet("run", tmp_path / "e.yaml", "--metrics", address, "--duration", "0.1", expect=2)
    assert done.stderr.startswith(f"nanet: no metrics at http://{address} (address already in use) ")
    assert done.stdout == ""
    nanet("run", tmp_path / "e.yaml", "--metrics", "no-address", "--duration", "0.1", expect=2)


def test_what_it_costs_is_measured(tmp_path: Path) -> None:
    """That the benchmark runs, scrapes and writes its figures; not how much it costs."""
    command = [
        sys.executable, ROOT / "scripts" / "metrics_cost.py", "--rounds", "1", "--duration", "1", "--rate", "1e5", "--port", free_pair(),
        "--json", tmp_path / "cost.json", "--csv", tmp_path / "cost.csv",
    ]  # fmt: skip
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "cost.json").read_text())
    assert result["scrapes"] > 3
    for series in ("whole", "residence"):
        for name in ("p50", "p99", "p99_9"):
            assert result["ratio"][series][name] == result["scraped"][series][name] / result["without"][series][name]
    assert "ratio_p99_9" in (tmp_path / "cost.csv").read_text()
