# SPDX-License-Identifier: Apache-2.0
"""What a scrape says: read back by Prometheus' own parser, complete, balanced, escaped; health from one state to the next; addresses."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_up
import pytest
from made_up_nic import floor_counts, nic_times, node_counts
from nanet import _core
from nanet.config import ConfigError, EngineConfig, Metrics
from nanet.config.errors import validated
from nanet.machine.ports import unused_port
from nanet.metrics import http_pages
from nanet.metrics.engine import (
    BOUNDS_NS,
    BOUNDS_US,
    FALLING,
    GROUPS,
    OF_LINKS,
    OF_SOURCES,
    STATS_HELP,
    counter_places,
    make_registry,
)
from nanet.metrics.health import EVENTS_DONE, STALL_S, Health
from nanet.metrics.http_pages import CLIENTS_MAX
from nanet.metrics.server import SAME_PAGE_S, MetricsServer
from nanet.result.histogram import Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]
COUNTERS = [name for name, _, _ in _core.counter_table()]
STATS = tuple(STATS_HELP)


def config(**changes: Any) -> EngineConfig:
    plain: dict[str, Any] = {
        "version": 1, "memory_regions": [{"name": "m"}],
        "links": [{"name": "in", "endpoint": "udp://127.0.0.1:6200", "memory_region": "m", "sources": [{"name": "a"}]}],
    }  # fmt: skip
    return validated(EngineConfig, plain | changes)


def counts(**known: int) -> dict[str, int]:
    return dict.fromkeys(COUNTERS, 0) | known


class MadeUpEngine:
    """Two links of two and one source and an answer link; every counter has a value of its own."""

    def __init__(self) -> None:
        self.running = True
        self.faults: list[str] = []
        self.sources = [("in", "a"), ("in", "b"), ("other", "c")]
        of_source = {
            place: counts(**{name: 1000 * (1 + k) + COUNTERS.index(name) for name in OF_SOURCES})
            for k, place in enumerate(self.sources)
        }
        of_link = {
            link: counts(**{name: 10 * (1 + k) + COUNTERS.index(name) for name in OF_LINKS})
            for k, link in enumerate(("in", "other"))
        }
        stage = counts(**{name: 7 + k for k, name in enumerate(COUNTERS) if name not in OF_SOURCES | OF_LINKS})
        self.counters = {name: stage[name] + sum(of[name] for of in [*of_source.values(), *of_link.values()]) for name in COUNTERS}
        self.links: list[dict[str, Any]] = [
            {
                "name": link, "stats": dict.fromkeys(STATS, 5), "nic_times": None, "nic_counts": [], "faults": None, "counters": of_link[link],
                "sources": [{"name": name, "counters": of_source[link, name]} for at, name in self.sources if at == link],
            }
            for link in ("in", "other")
        ]  # fmt: skip
        self.links[0]["faults"] = {"passed": 90, "lost": 4, "duplicated": 3, "held": 1}
        self.links.append({
            "name": "answers", "stats": dict.fromkeys(STATS, 6), "nic_times": None, "nic_counts": [], "faults": None, "counters": None,
            "sources": [],
        })  # fmt: skip
        self.residence = _core.LatencyHistogram()

    def metrics(self, bounds_ns: list[int]) -> dict[str, Any]:
        latency = {
            "counts": self.residence.counts_up_to(bounds_ns).tolist(), "count": self.residence.count,
            "sum_ns": self.residence.mean * self.residence.count,
        }  # fmt: skip
        return {
            "elapsed_s": 12.5, "running": self.running, "faults": self.faults, "links": self.links, "counters": self.counters,
            "latency_ns": latency, "channels": made_up.channels(),
        }  # fmt: skip


def scrape(engine: Any, of: EngineConfig | None = None, accept: str = "") -> str:
    of = of or config()
    encoder, _ = choose_encoder(accept)
    return encoder(make_registry(engine, of, Health(of))).decode()


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


def total(found: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str) -> float:
    values = [value for (one, of), value in found.items() if one == name and labels.items() <= dict(of).items()]
    assert values, f"no {name} {labels}"
    return sum(values)


@pytest.mark.parametrize("accept", ["", "text/plain;version=0.0.4", "application/openmetrics-text; version=1.0.0"])
def test_every_counter_is_exposed_with_its_place(accept: str) -> None:
    engine = MadeUpEngine()
    text = scrape(engine, accept=accept)
    if "openmetrics" in accept:  # its parser checks much more than that of the text format
        assert list(openmetrics.text_string_to_metric_families(text))
        return
    found = samples(text)
    for counter, (sample, reason) in counter_places(_core.counter_table()).items():
        labels = {"reason": reason} if reason else {}
        assert total(found, sample, **labels) == engine.counters[counter], counter
    for counter in ("packets_accepted", "source_restarts"):
        for link, source in engine.sources:
            of_source = next(one for at in engine.links for one in at["sources"] if (at["name"], one["name"]) == (link, source))
            assert total(found, f"nanet_{counter}_total", link=link, source=source) == of_source["counters"][counter]
    assert (
        total(found, "nanet_packets_refused_total", link="other", source="", reason="bad_length")
        == engine.links[1]["counters"]["packets_bad_length"]
    )
    assert total(found, "nanet_link_tx_refused_total", link="answers") == 6
    assert total(found, "nanet_injected_faults_total", link="in", reason="lost") == 4
    assert total(found, "nanet_injector_held", link="in") == 1
    assert total(found, "nanet_uptime_seconds") == 12.5
    assert total(found, "nanet_build_info", version=_core.build_info()["version"]) == 1
    assert total(found, "process_open_fds") > 0


def test_how_a_link_of_a_floor_is_is_no_counter() -> None:
    engine = MadeUpEngine()
    engine.links[0]["nic_counts"] = floor_counts()
    found = samples(scrape(engine))
    assert total(found, "nanet_nic_link_state", link="in", port="1", state="slip_bits") == 7
    assert total(found, "nanet_nic_counts_total", link="in", port="1", group="km3", counter="placed") == 99
    assert not [one for one, of in found if one == "nanet_nic_counts_total" and dict(of)["group"] == "link_state"]


def test_counters_of_a_node_are_exposed_by_port() -> None:
    engine = MadeUpEngine()
    engine.links[0]["nic_counts"] = node_counts()
    found = samples(scrape(engine))
    assert total(found, "nanet_nic_counts_total", link="in", port="0", group="rx", counter="fcs") == 3
    assert total(found, "nanet_nic_counts_total", link="in", port="1", group="merge", counter="late") == 3
    assert total(found, "nanet_nic_counts_total", link="in", port="", group="events", counter="complete") == 1440
    assert total(found, "nanet_hop_in", hop="in, port 1") == 100


def test_times_of_a_nic_are_in_its_own_cycles() -> None:
    engine = MadeUpEngine()
    assert "nanet_nic" not in scrape(engine)
    engine.links[0]["nic_times"] = nic_times()
    found = samples(scrape(engine))
    assert total(found, "nanet_nic_cycle_seconds", link="in", clock="made up") == pytest.approx(6.4e-9)
    assert total(found, "nanet_nic_stage_cycles_count", link="in", stage="written") == 10
    assert total(found, "nanet_nic_stage_cycles_sum", link="in", stage="written") == 9160
    within = {
        le: total(found, "nanet_nic_stage_cycles_bucket", link="in", stage="written", le=le)
        for le in ("7", "31", "63", "4095", "+Inf")
    }
    assert within == {"7": 0, "31": 6, "63": 9, "4095": 9, "+Inf": 10}
    assert total(found, "nanet_nic_stage_cycles_count", link="in", stage="completed") == 0
    assert list(openmetrics.text_string_to_metric_families(scrape(engine, accept="application/openmetrics-text; version=1.0.0")))


def test_units_and_help_are_the_tables() -> None:
    families = {family.name: family for family in text_string_to_metric_families(scrape(MadeUpEngine()))}
    places = counter_places(_core.counter_table())
    for name, unit, text in _core.counter_table():
        family = families[places[name].sample.removesuffix("_total")]
        assert f"{text} [{unit}]" in family.documentation, name
        assert family.type == ("gauge" if name in FALLING or name == "packets_clop_full" else "counter"), name


def test_a_counter_in_no_list_is_exposed_in_total(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MadeUpEngine()
    table = [*_core.counter_table(), ("things_new", "things", "found since")]
    monkeypatch.setattr(_core, "counter_table", lambda: table)
    engine.counters["things_new"] = 42
    assert total(samples(scrape(engine)), "nanet_things_new_total") == 42


def test_groups_are_counters_and_exclude_each_other() -> None:
    grouped = [counter for group in GROUPS for counter in group.reasons]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) | OF_SOURCES | OF_LINKS | set(EVENTS_DONE) <= set(COUNTERS)
    for group in GROUPS:
        assert len(set(group.reasons.values())) == len(group.reasons)


def test_channels_are_a_summary_and_what_is_wrong() -> None:
    found = samples(scrape(MadeUpEngine()))
    assert [total(found, "nanet_channels", state=state) for state in ("hot", "dead", "masked")] == [2, 8, 1]
    assert total(found, "nanet_channel_hits", quantile="1") == 10_000_000
    assert total(found, "nanet_channel_hits", quantile="0") == 0
    assert total(found, "nanet_odd_channel_hits", channel="300", state="hot") == 10_000_000
    assert sum(name.startswith("nanet_odd_channel") for name, _ in found) == 11
    assert not any("channel" in name for name, _ in samples(scrape(MadeUpEngine(), config(processor={"kind": "count"}))))


def test_label_values_are_escaped() -> None:
    engine = MadeUpEngine()
    strange = 'a "quoted" \\ back\nslash'
    engine.links[0]["sources"][0]["name"] = strange
    engine.links[0]["name"] = strange
    found = samples(scrape(engine))
    assert (
        total(found, "nanet_packets_accepted_total", link=strange, source=strange)
        == engine.links[0]["sources"][0]["counters"]["packets_accepted"]
    )


def test_the_histogram_is_that_of_the_engine() -> None:
    engine = MadeUpEngine()
    values = [1500, 9_000, 9_000, 99_000, 450_000, 1_500_000, 3_000_000_000]
    for value in values:
        engine.residence.record(value)
    found = samples(scrape(engine))
    for bound in BOUNDS_US:
        within = sum(value <= 1000 * bound for value in values)
        assert total(found, "nanet_residence_seconds_bucket", le=repr(bound / 1e6)) == within, bound
    assert total(found, "nanet_residence_seconds_bucket", le="+Inf") == len(values)
    assert total(found, "nanet_residence_seconds_count") == len(values)
    assert total(found, "nanet_residence_seconds_sum") == pytest.approx(sum(values) / 1e9, rel=1e-3)
    assert Histogram.from_native(engine.residence).count == len(values)
    assert sorted(BOUNDS_US) == list(BOUNDS_US)


def in_step(wanted: int, done: int, *, dropped: int = 0, taken: int = 0) -> MadeUpEngine:
    engine = MadeUpEngine()
    engine.counters = counts(events_received=wanted, events_answered=done)
    engine.links = [
        {"name": "in", "stats": dict.fromkeys(STATS, 0) | {"rx_kernel_dropped": dropped, "rx_packets": taken}, "counters": counts()}
    ]
    return engine


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def look(health: Health, engine: MadeUpEngine) -> list[str]:
    return health.look(engine.metrics(BOUNDS_NS))


def test_health_of_a_run() -> None:
    clock = Clock()
    health = Health(config(), clock)
    engine = in_step(0, 0)
    assert look(health, engine) == []  # idle
    clock.now_s += 3600
    assert look(health, engine) == []  # still idle
    for step in range(20):
        clock.now_s += STALL_S
        assert look(health, in_step(100 * step, 100 * step - 50)) == []  # busy, and always a little behind
    health.end()
    assert look(health, engine) == ["the engine is about to stop"]
    engine.running = False
    assert look(health, engine) == ["the engine has stopped"]


def test_health_when_processing_hangs_and_comes_back() -> None:
    clock = Clock()
    health = Health(config(), clock)
    assert look(health, in_step(100, 100)) == []
    for eighth in range(int(8 * STALL_S)):
        assert look(health, in_step(200 + eighth, 100)) == []
        clock.now_s += 0.125
    assert look(health, in_step(900, 100)) == ["packets arrive and no event is processed"]
    assert look(health, in_step(900, 101)) == []


def test_work_that_just_came_is_no_stall() -> None:
    """However far apart the looks are: at the first one that sees waiting work, it may have come this instant."""
    clock = Clock()
    health = Health(config(), clock)
    look(health, in_step(100, 100))
    clock.now_s += 3600
    assert look(health, in_step(101, 100)) == []
    clock.now_s += 0.01
    assert look(health, in_step(101, 101)) == []


def test_buffers_that_wait_for_their_age_are_no_stall() -> None:
    clock = Clock()
    link = {
        "name": "in",
        "endpoint": "udp://127.0.0.1:6200",
        "memory_region": "m",
        "sources": [{"name": "a"}],
        "timeout_us": 1_000_000,
    }
    health = Health(config(links=[link]), clock)
    look(health, in_step(100, 100))
    look(health, in_step(101, 100))
    clock.now_s += STALL_S + 0.9
    assert look(health, in_step(102, 100)) == []
    clock.now_s += 0.2
    assert look(health, in_step(103, 100))


def test_health_when_receiving_hangs() -> None:
    clock = Clock()
    health = Health(config(), clock)
    look(health, in_step(0, 0, dropped=0, taken=10))
    assert look(health, in_step(0, 0, dropped=5, taken=10)) == []
    clock.now_s += STALL_S
    assert look(health, in_step(0, 0, dropped=9, taken=10)) == ["link in: the kernel drops packets and the engine takes none"]
    assert look(health, in_step(0, 0, dropped=9, taken=11)) == []


def test_counting_processes_no_events() -> None:
    clock = Clock()
    health = Health(config(processor={"kind": "count"}), clock)
    look(health, in_step(100, 0))
    look(health, in_step(200, 0))
    clock.now_s += 60
    assert look(health, in_step(300, 0)) == []


def get(url: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


@pytest.fixture
def served() -> Iterator[tuple[str, MadeUpEngine, MetricsServer]]:
    endpoint, engine = f"http://127.0.0.1:{unused_port(socket.SOCK_STREAM)}", MadeUpEngine()
    with MetricsServer(config(metrics={"endpoint": endpoint})) as server:
        server.serve(engine)
        yield endpoint, engine, server


def test_pages(served: tuple[str, MadeUpEngine, MetricsServer]) -> None:
    endpoint, engine, server = served
    status, kind, text = get(f"{endpoint}/metrics?name=ignored")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    assert total(samples(text), "nanet_packets_accepted_total") == engine.counters["packets_accepted"]
    status, kind, text = get(f"{endpoint}/health")
    assert (status, kind) == (200, "application/json")
    assert json.loads(text) == {"status": "ok", "reasons": [], "uptime_s": 12.5}
    assert json.loads(get(f"{endpoint}/channels")[2])["masked_in_run"] == [{"channel": 1500, "at_s": 0.012, "events": 256}]
    assert get(f"{endpoint}/")[0] == 404
    engine.faults = ["GPU made-up was given up (the test says so) see the test"]
    server.look()
    time.sleep(SAME_PAGE_S)
    status, _, text = get(f"{endpoint}/health")
    assert (status, json.loads(text)["reasons"]) == (503, engine.faults)
    found = samples(get(f"{endpoint}/metrics")[2])
    assert (total(found, "nanet_healthy"), total(found, "nanet_gpus_given_up")) == (0, 1)
    engine.faults = []
    assert get(f"{endpoint}/health")[0] == 200
    server.end()
    assert json.loads(get(f"{endpoint}/health")[2])["reasons"] == ["the engine is about to stop"]


def raw(endpoint: str, request: bytes) -> bytes:
    """What is answered, to the end of the connection."""
    with socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2])), timeout=60) as one:
        one.sendall(request)
        found = b""
        while more := one.recv(65536):
            found += more
    return found


def test_the_head_of_a_page_is_the_pages_without_it(served: tuple[str, MadeUpEngine, MetricsServer]) -> None:
    endpoint, _, _ = served
    asked = b" /health HTTP/1.1\r\nHost: x\r\n\r\n"
    head, whole = raw(endpoint, b"HEAD" + asked), raw(endpoint, b"GET" + asked)
    assert head.endswith(b"\r\n\r\n")
    assert whole.startswith(head)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"Content-Length: {len(whole) - len(head)}\r\n".encode() in head


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"DELETE /metrics HTTP/1.0\r\n\r\n", 405),
        (b"GET /metrics HTTP/1.1\n\n", 200),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 9000, 431),
        (b"GET /" + b"a" * 9000, 431),
    ],
)
def test_requests(served: tuple[str, MadeUpEngine, MetricsServer], request_: bytes, status: int) -> None:
    answer = raw(served[0], request_)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b"\r\nAllow: GET, HEAD\r\n" in answer) == (status == 405)


def test_slow_and_silent_clients_keep_no_one_waiting(served: tuple[str, MadeUpEngine, MetricsServer]) -> None:
    """One sends a byte every 0.3 s, 50 say nothing, more than there are places for; 10 ask for a page and do not read it."""
    endpoint, _, _ = served
    place = ("127.0.0.1", int(endpoint.rpartition(":")[2]))
    stop = threading.Event()
    with contextlib.ExitStack() as stack:
        slow = stack.enter_context(socket.create_connection(place))
        drip = threading.Thread(target=lambda: dripping(slow, stop))
        drip.start()
        stack.callback(drip.join)
        stack.callback(stop.set)
        crowd = [stack.enter_context(socket.create_connection(place)) for _ in range(60)]
        for one in crowd[:10]:
            one.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        for _ in range(5):
            assert get(f"{endpoint}/health")[0] == 200
            assert get(f"{endpoint}/metrics")[0] == 200
        crowd += [stack.enter_context(socket.create_connection(place)) for _ in range(CLIENTS_MAX)]
        assert get(f"{endpoint}/health")[0] == 200


def dripping(one: socket.socket, stop: threading.Event) -> None:
    with contextlib.suppress(OSError):
        for letter in b"GET /health HTTP/1.1\r\nX: " + b"x" * 10_000:
            one.sendall(bytes([letter]))
            if stop.wait(0.3):
                return


def test_a_request_has_its_time_as_a_whole(
    served: tuple[str, MadeUpEngine, MetricsServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often a byte comes."""
    monkeypatch.setattr(http_pages, "WITHIN_S", 0.4)
    stop = threading.Event()
    with socket.create_connection(("127.0.0.1", int(served[0].rpartition(":")[2])), timeout=60) as slow:
        drip = threading.Thread(target=lambda: dripping(slow, stop))
        drip.start()
        try:
            answer = slow.recv(100)
        except ConnectionResetError:
            answer = b""
        stop.set()
        drip.join()
    assert answer == b""


def test_a_port_that_is_taken_is_refused_before_anything_starts(served: tuple[str, MadeUpEngine, MetricsServer]) -> None:
    endpoint, _, _ = served
    with pytest.raises(ConfigError, match=re.escape(f"no metrics at {endpoint} (address already in use)")):
        MetricsServer(config(metrics={"endpoint": endpoint}))


def test_ipv6_addresses_stand_in_brackets() -> None:
    endpoint = f"http://[::1]:{unused_port(socket.SOCK_STREAM)}"
    with MetricsServer(config(metrics={"endpoint": endpoint})) as server:
        server.serve(MadeUpEngine())
        assert get(f"{endpoint}/health")[0] == 200
    for wrong in ("::1", "[::1::2]", "[127.0.0.1]", "[]"):
        with pytest.raises(ConfigError, match=r"write it as http://ADDRESS:PORT, for example .* or http://\[::1\]:9400"):
            config(metrics={"endpoint": f"http://{wrong}:9400"})


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no metrics at http://192\.0\.2\.1:9400 \(cannot assign requested address\)"):
        MetricsServer(config(metrics={"endpoint": "http://192.0.2.1:9400"}))


@pytest.mark.parametrize(
    "endpoint",
    ["127.0.0.1:9400", "https://127.0.0.1:9400", "http://:9400", "http://a", "http://a:0", "http://a:65536", "http://a:1/metrics"],
)
def test_bad_endpoints(endpoint: str) -> None:
    with pytest.raises(ConfigError, match=r"endpoint '.*' is not usable \(.*\) write it as http://ADDRESS:PORT"):
        validated(Metrics, {"endpoint": endpoint})


def test_endpoint() -> None:
    assert validated(Metrics, {"endpoint": "http://localhost:09400/"}).address() == ("localhost", 9400)
    assert config().metrics is None


def test_the_dashboard_shows_what_is_exposed() -> None:
    dashboard = json.loads((ROOT / "examples" / "grafana-nanet.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    expressions += [
        variable["query"]["query"] for variable in dashboard["templating"]["list"] if isinstance(variable["query"], dict)
    ]
    engine = MadeUpEngine()
    exposed: dict[str, set[str]] = {}
    for name, labels in samples(scrape(engine)):
        exposed.setdefault(name, {"instance"}).update(label for label, _ in labels)
    assert len(expressions) > 20
    for expression in expressions:
        names = set(re.findall(r"\b(?:nanet|process)_[a-z0-9_]+", expression))
        assert names, expression
        assert names <= set(exposed), expression
        for wanted in re.findall(r"by \(([^)]*)\)", expression):
            for label in wanted.split(", "):
                assert any(label in exposed[name] for name in names), expression
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
