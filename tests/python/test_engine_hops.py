# SPDX-License-Identifier: Apache-2.0
"""The hops of an engine from made-up readings: what is named, what is in flight, and what no one accounts for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from made_up_nic import floor_counts, node_counts
from nanet import _core
from nanet.config import EngineConfig
from nanet.config.errors import validated
from nanet.metrics.engine import STATS_HELP
from nanet.result import books
from nanet.result.hops import IN_FLIGHT_S, Balance, EngineHops, interface_of, left_in_nodes, received, unexplained_text

COUNTERS = [name for name, _, _ in _core.counter_table()]
ANSWERS = {"endpoint": "udp://127.0.0.1:6300"}


def config(**changes: Any) -> EngineConfig:
    plain: dict[str, Any] = {
        "version": 1, "memory_regions": [{"name": "m"}], "answers": ANSWERS,
        "links": [{"name": "in", "endpoint": "udp://127.0.0.1:6200", "memory_region": "m", "sources": [{"name": "a"}]}],
    }  # fmt: skip
    return validated(EngineConfig, plain | changes)


def link(name: str, **stats: int) -> dict[str, Any]:
    return {"name": name, "stats": dict.fromkeys(STATS_HELP, 0) | stats, "faults": None, "nic_counts": []}


def reading(packets: int = 100, **counters: int) -> dict[str, Any]:
    """So many packets of 16 events came and were answered, a packet each."""
    known = {"packets_accepted": packets, "events_received": 16 * packets, "events_answered": 16 * packets, "answers_sent": packets}
    links = [link("in", rx_packets=packets), link("answers", tx_packets=packets)]
    return {"links": links, "counters": dict.fromkeys(COUNTERS, 0) | known | counters}


def by_name(found: Any) -> dict[str, dict[str, Any]]:
    return {line["hop"]: line for line in found}


def test_nothing_lost() -> None:
    balance = Balance(config()).end(reading())
    assert balance["unexplained_packets"] == 0
    assert list(by_name(balance["hops"])) == ["link", "decoder and buffers", "sequence numbers", "events", "answers"]
    assert all(hop["named"] == {} for hop in balance["hops"])


def test_each_loss_is_named_at_its_hop() -> None:
    now = reading(packets_lost_network=3, packets_lost_kernel=2, packets_bad_checksum=1, packets_marker=6, answers_sent=101)
    now["links"][0]["stats"] |= {"rx_packets": 107, "rx_kernel_dropped": 1, "rx_foreign": 4}
    now["links"][1]["stats"] |= {"tx_dropped": 1}
    balance = Balance(config()).end(now)
    assert {name: hop["named"] for name, hop in by_name(balance["hops"]).items()} == {
        "link": {"kernel_dropped": 1, "foreign": 4},
        "decoder and buffers": {"packets_bad_checksum": 1, "packets_marker": 6},
        "sequence numbers": {"packets_lost_kernel": 2, "packets_lost_network": 3},
        "events": {},
        "answers": {"tx_dropped": 1},
    }
    assert balance["unexplained_packets"] == 0


def test_answers_that_were_refused_did_not_go_on() -> None:
    now = reading()
    now["links"][1]["stats"] |= {"tx_refused": 40}  # of those that were sent
    balance = Balance(config()).end(now)
    hop = by_name(balance["hops"])["answers"]
    assert (hop["in"], hop["out"], hop["named"]) == (100, 60, {"tx_refused": 40})
    assert balance["unexplained_packets"] == 0


def test_events_whose_packets_the_link_dropped_were_not_forwarded() -> None:
    forward = config(answers=None, processor={"kind": "forward", "forward": {"endpoint": "udp://127.0.0.1:6300"}})
    counts = {"events_answered": 0, "answers_sent": 0, "events_forwarded": 1584, "events_unsent": 16, "packets_forwarded": 100}
    now = reading(**counts)
    now["links"][1] = link("forward", tx_packets=99, tx_dropped=1)
    balance = Balance(forward).end(now)
    assert by_name(balance["hops"])["events"]["named"] == {"events_unsent": 16}
    assert balance["unexplained_packets"] == 0
    assert books.engine_losses(books.totals(now), merged=False) == {"events_unsent": 16, "answers_dropped": 1}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"packets_accepted": 99}, "1 packets at decoder and buffers"),
        ({"packets_accepted": 101}, "-1 packets at decoder and buffers"),
        ({"events_answered": 1590}, "10 events at events"),
        ({"answers_sent": 104}, "4 packets at answers"),
    ],
)
def test_what_is_in_no_counter_has_a_place(change: dict[str, int], where: str) -> None:
    assert unexplained_text(Balance(config()).end(reading(**change))) == where


def test_an_injector_has_books_of_its_own() -> None:
    now = reading(97, packets_duplicate=4)
    now["links"][0]["stats"]["rx_packets"] = 100
    now["links"][0]["faults"] = {
        "passed": 80, "lost": 2, "duplicated": 4, "reordered": 8, "corrupted": 0, "truncated": 0, "delayed": 6, "held": 1,
    }  # fmt: skip
    balance = Balance(config()).end(now)
    hop = by_name(balance["hops"])["fault injector"]
    assert (hop["in"], hop["out"], hop["named"]) == (104, 101, {"injected_loss": 2, "held": 1})
    assert balance["unexplained_packets"] == 0
    now["links"][0]["faults"]["passed"] = 79
    assert unexplained_text(Balance(config()).end(now)) == "1 packets at fault injector"


def test_merging_counts_parts_and_what_it_closed() -> None:
    merged = config(
        processor={"merge": {}},
        links=[{"name": "in", "endpoint": "udp://127.0.0.1:6200", "memory_region": "m", "sources": [{"name": "a"}, {"name": "b", "source_sub_id": 1}]}],
    )  # fmt: skip
    now = reading(
        parts_merged=1590, parts_late=10, events_complete=780, events_missing_parts=20, events_answered=780, events_discarded=20
    )
    balance = Balance(merged).end(now)
    lines = by_name(balance["hops"])
    assert (lines["event building"]["unit"], lines["event building"]["named"]) == ("parts", {"parts_late": 10})
    assert (lines["events"]["in"], lines["events"]["out"], lines["events"]["named"]) == (800, 780, {"events_discarded": 20})
    assert balance["unexplained_packets"] == 0


def test_what_only_a_gpu_could_check_has_a_name() -> None:
    """Whole events are missing among the answered ones; of events in parts the parts are, before they are built."""
    balance = Balance(config()).end(reading(events_answered=1584, events_bad_body=16, packets_bad_body=1))
    assert by_name(balance["hops"])["events"]["named"] == {"events_bad_body": 16}
    assert balance["unexplained_packets"] == 0
    merged = config(processor={"merge": {}})
    now = reading(parts_merged=1584, events_bad_body=16, packets_bad_body=1, events_complete=1584, events_answered=1584)
    balance = Balance(merged).end(now)
    assert by_name(balance["hops"])["event building"]["named"] == {"events_bad_body": 16}
    assert by_name(balance["hops"])["events"]["named"] == {}
    assert balance["unexplained_packets"] == 0


def test_copies_and_answers_by_way_of_a_link() -> None:
    copied = config(answers=ANSWERS | {"copies": ["udp://127.0.0.1:6301"], "via": "in"})
    now = reading()
    del now["links"][1]  # Engine.metrics has each link once
    now["links"][0]["stats"]["tx_packets"] = 200
    assert Balance(copied).end(now)["unexplained_packets"] == 0


def test_counting_ends_at_the_decoder() -> None:
    raw = {"name": "in", "endpoint": "udp://127.0.0.1:6200", "memory_region": "m", "protocol": "raw"}
    counting = config(answers=None, processor={"kind": "count"}, links=[raw])
    now = reading()
    del now["links"][1]
    assert [hop["hop"] for hop in Balance(counting).end(now)["hops"]] == ["link", "decoder and buffers"]


def test_what_is_in_flight_becomes_unexplained_when_it_stays() -> None:
    now_s = [100.0]
    balance = Balance(config(), lambda: now_s[0])
    stuck = reading(events_answered=1500)
    assert by_name(balance.look(stuck))["events"]["in_flight"] == 100
    now_s[0] += IN_FLIGHT_S / 2
    assert by_name(balance.look(stuck))["events"]["unexplained"] == 0
    now_s[0] += IN_FLIGHT_S / 2
    line = by_name(balance.look(stuck))["events"]
    assert (line["in_flight"], line["unexplained"]) == (0, 100)
    line = by_name(balance.look(reading(1000, events_answered=15_950)))["events"]  # it went on: 50 are on their way
    assert (line["in_flight"], line["unexplained"]) == (50, 0)


def test_what_comes_from_nowhere_is_unexplained() -> None:
    now_s = [100.0]
    balance = Balance(config(), lambda: now_s[0])
    more = reading(events_answered=1700)
    assert by_name(balance.look(more))["events"]["in_flight"] == 0  # readings are no instant
    now_s[0] += IN_FLIGHT_S
    assert by_name(balance.look(copy.deepcopy(more)))["events"]["unexplained"] == -100


def test_looks_do_not_pile_up() -> None:
    now_s = [0.0]
    balance = Balance(config(), lambda: now_s[0])
    for _ in range(1000):
        now_s[0] += 0.1
        balance.look(reading())
    assert len(balance._looks) <= 10 * IN_FLIGHT_S + 2


def test_the_interface_counts_from_the_start() -> None:
    xdp = {"name": "in", "endpoint": "xdp://127.0.0.1:6200", "memory_region": "m", "sources": [{"name": "a"}], "interface": "lo"}
    assert received("lo")[0] >= 0
    assert received("no-such-if") == (0, 0)
    [hop, *_] = EngineHops(config(links=[xdp])).read(reading())
    assert (hop.name, hop.unit, hop.unexplained) == ("interface lo", "frames", 0)
    assert interface_of(config().links[0]) is None  # loopback


def test_a_node_that_merges_balances_port_by_port() -> None:
    now = reading()
    now["links"][0]["nic_counts"] = node_counts()
    hops = by_name(Balance(config()).end(now)["hops"])
    assert list(hops)[:5] == ["in, port 0", "in, port 1", "in, parts", "in, events", "in, merged packets"]
    assert hops["in, port 0"] == {"hop": "in, port 0", "unit": "frames", "in": 100, "out": 90, "unexplained": 0,
                                  "named": {"rx_fcs": 3, "reply_answered_arp": 2, "port_full": 1, "merge_marker": 4}}  # fmt: skip
    assert hops["in, parts"] | {"hop": ""} == {
        "hop": "",
        "unit": "parts",
        "in": 2880,
        "out": 2877,
        "named": {"late": 3},
        "unexplained": 0,
    }
    assert hops["in, events"]["named"] == {"incomplete": 5}
    assert sum(abs(hop["unexplained"]) for hop in hops.values()) == 0


@pytest.mark.parametrize(
    ("group", "port", "counter", "where"),
    [
        ("wire", 1, "frames", "1 frames at in, port 1"),
        ("rx", 0, "fcs", "-1 frames at in, port 0"),
        ("merge", 0, "marker", "-1 frames at in, port 0"),
        ("events", None, "complete", "1 events at in, events"),
        ("events", None, "packet", "1 packets at in, merged packets"),
    ],
)
def test_what_a_node_cannot_explain_is_said(group: str, port: int | None, counter: str, where: str) -> None:
    now = reading()
    counts = node_counts()
    next(one for one in counts if (one["name"], one["port"]) == (group, port))["counts"][counter] += 1
    now["links"][0]["nic_counts"] = counts
    assert unexplained_text(Balance(config()).end(now)) == where


def test_a_node_with_floors_balances_from_packets_to_packets() -> None:
    now = reading()
    now["links"][0]["nic_counts"] = floor_counts()
    hops = by_name(Balance(config()).end(now)["hops"])
    assert list(hops)[:6] == [
        "in, packets to the fibres", "in, frames of port 0", "in, packets of port 0", "in, frames of port 1", "in, packets of port 1",
        "in, packets to the host",
    ]  # fmt: skip
    assert hops["in, packets to the fibres"]["named"] == {"untimed": 2, "no_room": 1, "held": 2}
    assert hops["in, frames of port 1"]["named"] == {"drop_crc": 1}
    assert hops["in, packets of port 0"]["named"] == {"queue_full": 1}
    assert hops["in, packets to the host"]["named"] == {"no_buffer": 1}
    assert sum(abs(hop["unexplained"]) for hop in hops.values()) == 0


@pytest.mark.parametrize(
    ("group", "port", "counter", "where"),
    [
        ("fibre", None, "received", "1 packets at in, packets to the fibres"),
        ("floor", 1, "frames", "1 frames at in, frames of port 1"),
        ("km3", 0, "packet", "1 packets at in, packets of port 0"),
        ("given", None, "packets", "-1 packets at in, packets to the host"),
    ],
)
def test_what_a_node_with_floors_cannot_explain_is_said(group: str, port: int | None, counter: str, where: str) -> None:
    now = reading()
    now["links"][0]["nic_counts"] = floor_counts()
    next(one for one in now["links"][0]["nic_counts"] if (one["name"], one["port"]) == (group, port))["counts"][counter] += 1
    assert unexplained_text(Balance(config()).end(now)) == where


def test_units_that_begin_long_after_the_engine_have_hops_then() -> None:
    """There are none before the first unit: an engine that waits for its senders has nothing to compare with."""
    now_s = [100.0]
    balance = Balance(config(), clock_s=lambda: now_s[0])
    assert "assembling" not in by_name(balance.look(reading()))
    now_s[0] += 2 * IN_FLIGHT_S
    hops = by_name(balance.look(reading(units_begun=5, units_complete=3, units_handed_over=3)))
    assert (hops["assembling"]["in_flight"], hops["assembling"]["unexplained"]) == (2, 0)
    now_s[0] += IN_FLIGHT_S
    hops = by_name(balance.look(reading(units_begun=5, units_complete=3, units_handed_over=3)))
    assert (hops["assembling"]["in_flight"], hops["assembling"]["unexplained"]) == (0, 2)


@pytest.mark.parametrize("made_up", [node_counts, floor_counts])
def test_what_is_in_a_node_that_was_stopped_has_a_name(made_up: Callable[[], list[dict[str, Any]]]) -> None:
    """At the end alone: while packets flow it is in flight, and where the node had nothing to do any more nothing is excused."""
    for busy in (0, 1):
        now = reading()
        now["links"][0]["nic_counts"] = made_up()
        given = next(one for one in now["links"][0]["nic_counts"] if one["name"] == "given")["counts"]
        given["packets"] -= 7
        given["busy"] = busy
        balance = Balance(config())
        [live] = [hop for hop in balance.look(now) if hop["hop"] in ("in, merged packets", "in, packets to the host")]
        assert (live["in_flight"], live["named"].get("in_node", 0)) == (7, 0)
        end = balance.end(now)
        assert left_in_nodes(end) == 7 * busy
        assert end["unexplained_packets"] == 7 * (1 - busy)


def test_events_of_packets_that_the_host_refused_have_a_name() -> None:
    now = reading()
    counts = node_counts(overflow=2, packet=102, complete=1440 + 37)
    now["links"][0]["nic_counts"] = counts
    hops = by_name(Balance(config()).end(now)["hops"])
    assert hops["in, merged packets"]["named"] == {"overflow": 2}
    assert hops["in, events"]["named"] == {"incomplete": 5, "in_refused_packets": 37}
    assert all(hop["unexplained"] == 0 for hop in hops.values())
