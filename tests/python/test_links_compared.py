# SPDX-License-Identifier: Apache-2.0
"""The comparison of links without a network: variants, peers' output, tables, verdict, report."""

from __future__ import annotations

import csv
import socket
from pathlib import Path
from typing import Any

import pytest
from made_up_links import cable, comparison, long_run, run
from nanet.bench import alone, arp, compare, hops, links, spead2_ends, spead2_peer, tables, testpmd, watch
from nanet.bench.spead2_ends import ReceivedHeaps
from nanet.config.errors import ConfigError
from nanet.loop.run import Loop
from nanet.machine.facts import CorePlan
from nanet.report import write_report
from nanet.result import files

TWO_CORES = CorePlan(0, 1, frozenset({0}))
SHOWN = """
  ######################## NIC statistics for port 0  ########################
  RX-packets: 854016     RX-missed: 0          RX-bytes:  1029943296
  Throughput (since last show)
  Rx-pps:       {a}          Rx-bps:   1929662592
  Tx-pps:       200006          Tx-bps:   1929662592
  ######################## NIC statistics for port 1  ########################
  Throughput (since last show)
  Rx-pps:       {b}          Rx-bps:   1929662592
"""


def test_names() -> None:
    assert links.chosen("all") == links.VARIANTS
    assert [one.name for one in links.chosen("gro, blocking")] == ["blocking", "gro"]
    for text in ("gros", "gro,gros", "", "all,gro"):
        with pytest.raises(ConfigError, match="there is no link"):
            links.chosen(text)


@pytest.mark.parametrize("variant", links.VARIANTS, ids=lambda variant: str(variant.name))
def test_each_link_has_a_valid_configuration(variant: links.Variant) -> None:
    pair = variant.pair()
    engine, emulator = links.configs(variant, Loop(), pair, CorePlan(None, 0, frozenset({0})))
    assert engine.links[0].endpoint == f"{variant.back_end}://10.77.0.2:6200"
    assert engine.answers is not None
    assert engine.answers.endpoint == emulator.answers == "udp://10.77.0.1:6300"
    assert emulator.destinations == ("udp://10.77.0.2:6200",)
    assert (engine.answers.via is not None) == (variant.back_end != "udp")
    assert (engine.links[0].xdp is not None) == (variant.back_end == "xdp")
    assert pair.engine_address == (variant.back_end != "dpdk")
    if variant.back_end == "udp":
        assert engine.links[0].gro == variant.coalesced
    assert (engine.cpu_cores.realtime_priority is not None) == (variant.name == "realtime")
    assert (engine.waiting.spin == 0) == (variant.name == "blocking")


def test_how_the_boards_send() -> None:
    (xdp,), (gro,) = links.chosen("xdp"), links.chosen("gro")
    one, many = Loop(burst_packets=1), Loop(burst_packets=32)
    auto = "answers-xdp" if links.has_xdp() else "socket"
    assert [links.boards_of(xdp, loop) for loop in (one, many)] == [auto, "socket"]
    assert [links.boards_of(gro, loop) for loop in (one, many)] == ["socket", "socket"]
    forced = links.sent_to((xdp, gro), "xdp")
    assert [links.boards_of(variant, many) for variant in forced] == ["xdp", "socket"]  # the cable of gro carries super-packets
    _, emulator = links.configs(forced[0], many, xdp.pair(), CorePlan(None, None, frozenset({0})))
    assert emulator.xdp is not None
    assert (emulator.xdp.interface, emulator.xdp.boards) == ("boards0", "frames")
    with pytest.raises(ConfigError, match="boards cannot go via 'pigeon'"):
        links.sent_to((xdp,), "pigeon")


def test_testpmd_sums_its_ports() -> None:
    text = SHOWN.format(a=100, b=20) + SHOWN.format(a=300, b=7) + SHOWN.format(a=1, b=1).split("statistics for port 1")[0]
    assert testpmd.shows(text) == [120, 307]
    assert testpmd.shows("EAL: Error - exiting with code: 1") == []


def test_spead2_runs() -> None:
    sent = {"heaps": 100, "bytes": 116_800_000, "elapsed_s": 1.0}
    good = {"heaps": 100, "packets": 100_000, "incomplete_heaps": 0}
    assert spead2_peer.outcome(sent, good, 1168, 100_000)["failure"] is None
    assert spead2_peer.outcome(sent, good, 1168, 100_000)["kept_packets_per_s"] == 100_000
    assert spead2_peer.outcome(sent, good | {"heaps": 99}, 1168, 100_000)["failure"] == "receiver"
    assert spead2_peer.outcome(sent | {"elapsed_s": 1.2}, good, 1168, 100_000)["failure"] == "sender"


@pytest.mark.needs_package("spead2")
def test_a_sender_of_spead2_that_cannot_keep_its_rate_ends() -> None:
    """Of 89 GB it sends what it can in twice the time asked for."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        sent = spead2_ends.send("127.0.0.1", sink.getsockname()[1], 1 << 20, 1168, -1, 8e8, 0.1)
    asked = round(8e8 * 0.1 * 1168 / (1 << 20))
    assert 0 < sent["heaps"] < asked / 10
    assert sent["bytes"] >= sent["heaps"] << 20
    none_lost: ReceivedHeaps = {"heaps": sent["heaps"], "packets": 0, "incomplete_heaps": 0}
    assert spead2_peer.outcome(sent, none_lost, 1168, 8e8)["failure"] == "sender"


def test_sockperf_before_and_after() -> None:
    before = {"spinning_us": {"min": 3.0, "p50": 4.0, "max": 90.0}, "blocking_us": None, "problems": ["blocking: no time"]}
    after = {
        "spinning_us": {"min": 2.0, "p50": 6.0, "max": 50.0},
        "blocking_us": {"min": 1.0, "p50": 2.0, "max": 3.0},
        "problems": [],
    }
    joined = compare.joined_sockperf(before, after)
    assert joined["spinning_us"] == {"min": 2.0, "p50": 5.0, "max": 90.0}
    assert joined["blocking_us"] == {"min": 1.0, "p50": 2.0, "max": 3.0}
    assert joined["problems"] == ["blocking: no time"]


def test_ratios() -> None:
    link = {
        "critical_rate_packets_per_s": 1.5e6, "loads": [{}], "latency_us": {"p50": 5.7, "p99_9": 19.2},
        "alone": {"critical_rate_packets_per_s": 2e6}, "one_in_flight": {"latency_us": {"p50": 4.5, "p99_9": 8.0}},
    }  # fmt: skip
    peers = comparison()["peers"]
    found = compare.ratios(link, peers)
    assert found == {
        "ratio_to_spead2": None,
        "ratio_to_testpmd": 2.107,
        "p50_above_sockperf_us": 1.5,
        "p99_9_ratio_to_sockperf": 1.2,
        "alone_ratio_to_spead2": None,
        "alone_ratio_to_testpmd": 2.809,
        "one_in_flight_p50_above_sockperf_us": 0.3,
        "one_in_flight_p99_9_ratio_to_sockperf": 0.5,
    }
    peers["spead2"]["critical_rate_packets_per_s"] = 5e5
    assert compare.ratios(link, peers)["ratio_to_spead2"] == 3.0
    assert compare.ratios(link, peers)["alone_ratio_to_spead2"] == 4.0
    assert compare.ratios(link | {"alone": None, "one_in_flight": None}, peers)["alone_ratio_to_spead2"] is None
    assert compare.ratios(link | {"loads": []}, peers)["p50_above_sockperf_us"] is None


@pytest.mark.parametrize("make", [tables.latency_table, tables.rate_table])
def test_tables_fit_a_terminal(make: Any) -> None:
    result = comparison()
    slow = dict.fromkeys(compare.KEPT_US, 265_125.0)
    result["links"][0]["name"] = "dpdk-af_packet"
    for load in result["links"][0]["loads"]:
        load |= {"latency_us": slow, "lost": 123_456_789}
    result["unexplained_at"] = ["gro at 24000000 events/s: " + "3 packets at link, " * 12]
    lines = make(result)
    assert max(len(line) for line in lines) <= tables.WIDTH
    text = "\n".join(lines)
    assert "dpdk-af_xdp: not in this build" in text
    assert "spead2: absent; pip install spead2" in text
    assert "unexplained packets: 0 of 36,000 in 36 runs" in text


def test_a_long_run_names_what_was_lost() -> None:
    text = "\n".join(tables.long_run_lines("xdp", long_run(lost=16)))
    assert "xdp: 1,000 packets in 12.5 s at 90 % of its critical rate; lost events_lost 16" in text
    assert "emulator stopped 3 times, 1 ms in all, at most 0.9 ms" in text
    assert "waited 20 ms" in " ".join(text.split())
    assert "decoder and buffers 1,006 1,000 packets_marker 6 0" in " ".join(text.split())
    assert max(len(line) for line in text.splitlines()) <= tables.WIDTH


def test_a_link_alone() -> None:
    """What is received is what counts: no answers, so no events hop, and a missing packet has a name."""
    variant = links.chosen("gro")[0]
    engine, emulator = alone.configs(variant, Loop(), variant.pair(), CorePlan(None, None, frozenset({0})))
    assert (engine.processor.kind, engine.answers, emulator.answers) == ("count", None, None)
    good = run(answers={"tx_packets": 0})
    result = alone.joined(good["emulator"] | {"sent": 16_000}, good["engine"])
    assert (result["lost"], sum(result["losses"].values())) == (0, 0)
    sheet = hops.sheet_alone(result, cable())
    assert [hop["hop"] for hop in sheet["hops"]][-1] == "sequence numbers"
    assert sheet["unexplained_packets"] == 0
    less = run(counters={"packets_accepted": 990, "packets_lost_kernel": 7})
    assert alone.joined(less["emulator"] | {"sent": 16_000}, less["engine"])["losses"]["lost_at_an_end"] == 3
    assert hops.sheet_alone(alone.joined(less["emulator"] | {"sent": 16_000}, less["engine"]), cable())["unexplained_packets"] > 0


def test_verdict() -> None:
    result = comparison()
    assert compare.kept(result)
    assert not compare.kept(result | {"unexplained_packets": 1})
    result["links"][1]["loads"][2]["lost"] = 1
    assert not compare.kept(result)
    result = comparison()
    result["links"][0]["long_run"] = long_run(lost=16)
    assert not compare.kept(result)
    result = comparison()
    result["links"][0]["critical_rate_events_per_s"] = 0.0
    assert not compare.kept(result)
    assert [line.split()[:2] for line in tables.rate_table(result)[1:3]] == [["gro", "none"], ["xdp", "16.00"]]
    assert not compare.kept(result | {"links": result["links"][2:]})  # nothing ran


def test_csv(tmp_path: Path) -> None:
    files.append_csv(tmp_path / "f.csv", "latency-links", compare.csv_rows(comparison()))
    rows = {(row["case"], row["name"]): float(row["value"]) for row in csv.DictReader((tmp_path / "f.csv").open())}
    assert rows["gro", "critical_rate"] == 24e6
    assert rows["xdp@50%", "rate"] == 8e6
    assert rows["xdp@90%", "lost"] == 0
    assert rows["xdp@1-in-flight", "latency_min"] > 0
    assert rows["xdp", "alone_critical_rate_packets"] == 2e6
    assert rows["xdp", "alone_ratio_to_spead2"] == 3.6
    assert rows["xdp@90%-long", "packets"] == 1000
    assert rows["sockperf-spinning", "latency_p99_9"] == 16.0
    assert rows["testpmd-af_xdp", "forwarded_packets"] == 712_000
    assert not any(case.startswith(("dpdk", "spead2")) for case, _ in rows)


@pytest.mark.parametrize("command", ["bench rate --link", "bench latency --link"])
def test_report(tmp_path: Path, command: str) -> None:
    write_report(comparison(command), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "gro is the fastest: 24.00 Mevent/s" in page
    assert "not in this build" in page
    assert "sequence numbers" in page
    for title in ("Long runs", "One packet in flight", "gro, alone"):
        assert title in page
    assert (
        page.count('class="bars') == 2 * 9
    )  # in both widths: rates of 2 links, both alone, 2 of testpmd; medians of 2 links and sockperf


def test_gaps_of_a_clock() -> None:
    ended: list[int] = []
    ticks = iter([0, 100, 200, 60_200, 60_300, 1_060_300])

    def clock_ns() -> int:
        now = next(ticks)
        if now == 1_060_300:
            ended.append(15)
        return now

    assert watch.gaps(clock_ns, ended) == {"count": 2, "total_us": 1060.0, "longest_us": 1000.0}


def test_a_watcher_takes_no_core_from_the_data_path() -> None:
    assert watch.spare_core(TWO_CORES) is None
    assert watch.spare_core(CorePlan(0, 1, frozenset({2, 3}))) == 3
    assert watch.spare_core(CorePlan(None, None, frozenset({0}))) is None
    with watch.Watcher(None) as watcher:
        assert watcher.stop() is None


def test_a_watcher_watches() -> None:
    with watch.Watcher(0) as watcher:
        seen = watcher.stop()
    assert seen is not None
    assert seen["total_us"] >= seen["longest_us"] >= 0


def test_arp_requests_by_their_bytes() -> None:
    request = bytes.fromhex(
        "ffffffffffff 02004d000002 0806 0001 0800 06 04 0001 02004d000002 0a4d0002 000000000000 0a4d0001".replace(" ", "")
    )
    assert arp.is_request_for(request, socket.inet_aton("10.77.0.1"))
    assert not arp.is_request_for(request, socket.inet_aton("10.77.0.3"))
    reply = request[:20] + b"\x00\x02" + request[22:]
    assert not arp.is_request_for(reply, socket.inet_aton("10.77.0.1"))
    assert not arp.is_request_for(request[:41], socket.inet_aton("10.77.0.1"))


def test_real_time_needs_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    [realtime] = links.chosen("realtime")
    monkeypatch.setattr(links, "plan_cores", lambda: TWO_CORES)
    assert links.missing(realtime) is None
    monkeypatch.setattr(links, "plan_cores", lambda: CorePlan(None, None, frozenset({0})))
    assert "no core for the engine alone" in str(links.missing(realtime))
