# SPDX-License-Identifier: Apache-2.0
"""Made-up runs over a cable and made-up comparisons, so that sheets, tables and reports can be tested without a network."""

from __future__ import annotations

from typing import Any

from made_up import histogram_of
from nanet.bench import hops
from nanet.machine.netns import InterfaceCounts
from nanet.result import books, files

PACKETS, EVENTS_PER_PACKET, PACKET_BYTES, MARKER_BYTES = 1000, 16, 1168, 24
ANSWERS, ANSWER_BYTES = 900, 80
ON_WIRE = PACKETS + hops.MARKERS


def counts(rx_frames: int, rx_bytes: int, tx_frames: int, tx_bytes: int, **dropped: int) -> InterfaceCounts:
    return InterfaceCounts(rx_frames, rx_bytes, dropped.get("rx", 0), tx_frames, tx_bytes, dropped.get("tx", 0))


def forward_bytes(frames: int) -> int:
    return PACKETS * PACKET_BYTES + hops.MARKERS * MARKER_BYTES + hops.HEADER_BYTES * frames


def cable(frames: int = ON_WIRE, answer_frames: int = ANSWERS, *, coalesced: bool = False, arp: int = 0) -> hops.Cable:
    """Everything crossed, in so many frames."""
    there, back = forward_bytes(frames), ANSWERS * ANSWER_BYTES + hops.HEADER_BYTES * answer_frames
    boards = counts(answer_frames + arp, back + 42 * arp, frames + arp, there + 42 * arp)
    engine = counts(frames + arp, there + 42 * arp, answer_frames + arp, back + 42 * arp)
    return hops.Cable(boards, engine, coalesced, arp)


def run(**changes: Any) -> dict[str, Any]:
    """A run in which nothing was lost: 1000 packets of 16 events, 900 packets of answers. changes: of counters, link, answers, emulator, top."""
    counters = dict.fromkeys(books.PACKET_REFUSALS + books.PACKET_LOSSES, 0) | {
        "packets_accepted": PACKETS, "packets_marker": hops.MARKERS, "events_received": PACKETS * EVENTS_PER_PACKET,
        "events_answered": PACKETS * EVENTS_PER_PACKET, "answers_sent": ANSWERS,
    }  # fmt: skip
    link = dict.fromkeys(("rx_kernel_dropped", "rx_foreign", "rx_malformed"), 0) | {
        "rx_packets": ON_WIRE, "rx_bytes": PACKETS * PACKET_BYTES + hops.MARKERS * MARKER_BYTES,
    }  # fmt: skip
    answers = {"tx_packets": ANSWERS, "tx_bytes": ANSWERS * ANSWER_BYTES, "tx_dropped": 0, "tx_refused": 0}
    emulator = {
        "packets_sent": PACKETS, "markers_sent": 6, "answer_packets": ANSWERS, "tx_dropped": 0, "answers_kernel_dropped": 0,
        "config": {"boards": 1, "events_per_packet": EVENTS_PER_PACKET},
    }  # fmt: skip
    sent = PACKETS * EVENTS_PER_PACKET
    top = {"sent": sent, "answered": sent, "lost": 0, "losses": dict.fromkeys(books.EVENT_LOSSES, 0)}
    engine = {
        "counters": counters | changes.get("counters", {}),
        "config": {"processor": {"merge": changes.get("merge")}},
        "links": [
            {"name": "boards", "stats": link | changes.get("link", {})},
            {"name": "answers", "stats": answers | changes.get("answers", {})},
        ],
    }
    return top | changes.get("top", {}) | {"emulator": emulator | changes.get("emulator", {}), "engine": engine}


def long_run(lost: int = 0) -> dict[str, Any]:
    """A long run, of a thousand packets."""
    return {
        "share": 0.9, "rate_events_per_s": 1.2e6, "duration_s": 12.5, "packets": PACKETS, "sent": 16_000, "lost": lost,
        "losses": dict.fromkeys(books.EVENT_LOSSES, 0) | {"events_lost": lost}, "mistakes": {}, "kernel_dropped": 0, "latency_us": None,
        "failure": None, "stalls": {"count": 3, "total_us": 1200.0, "longest_us": 900.0}, "engine_core_wait_s": 0.02, "watcher": None,
        "balance": hops.sheet(run(), cable()),
    }  # fmt: skip


def comparison(command: str = "bench latency --link") -> dict[str, Any]:
    """A whole result: gro and xdp ran, dpdk-af_xdp did not; sockperf and testpmd are there, spead2 is not. The numbers are made up."""
    balance = hops.sheet(run(), cable())
    ours = [_link("gro", 24e6, 12.0, balance), _link("xdp", 16e6, 9.0, balance)]
    absent = _link("dpdk-af_xdp", None, 1.0, balance) | {"reason": "not in this build: nanet was built without dpdk"}
    trip = {"min": 3.5, "p50": 4.2, "p90": 4.6, "p99": 7.8, "p99_9": 16.0, "p99_99": 20.0, "max": 280.0}
    none = {"version": None, "install": "pip install spead2", "critical_rate_packets_per_s": None, "limited_by": None, "steps": []}
    forwarded = {"af_packet_packets_per_s": 459_000.0, "af_xdp_packets_per_s": 712_000.0}
    return files.base(command) | {
        "boards": 1, "layout": "padded", "burst_packets": 1, "events_per_packet": 16, "message_bytes": 1168, "budget_us": 1000,
        "repeats": 3, "repeat_s": 2.0, "links": [*ours, absent], "unexplained_packets": 0, "unexplained_at": [], "notes": ["made up"],
        "peers": {
            "sockperf": {"version": "3.7", "install": "", "spinning_us": trip, "blocking_us": None, "problems": []},
            "spead2": none | {"problems": []},
            "testpmd": {"version": "22.11", "install": "", "problems": []} | forwarded,
        },
    }  # fmt: skip


def _link(name: str, rate: float | None, p50_us: float, balance: dict[str, Any]) -> dict[str, Any]:
    histogram = histogram_of(p50_us, 50_000)
    one = {"balance": balance}
    loads = [
        {
            "share": share, "rate_events_per_s": share * (rate or 0.0), "latency_us": histogram.summary_us(), "latency_clean_us": None,
            "latency_histogram": histogram.encode(), "sent": 16_000, "lost": 0, "longest_stall_us": 80.0, "engine_core_wait_s": 0.0,
            "runs": [one],
        }
        for share in (0.1, 0.5, 0.9)
    ]  # fmt: skip
    return {
        "name": name, "what": "made up", "path": "made up", "reason": None, "critical_rate_events_per_s": rate,
        "critical_rate_packets_per_s": rate and rate / 16, "limited_by": "engine", "latency_us": histogram.summary_us(),
        "loads": loads if rate else [], "steps": [], "runs": 12, "packets_sent": 12_000, "unexplained_packets": 0, "unexplained_at": [],
        "one_in_flight": loads[0] | {"share": 0.5} if rate else None, "long_run": long_run() if rate else None,
        "alone": {"critical_rate_packets_per_s": 2e6, "limited_by": "engine", "steps": []} if rate else None,
        "alone_ratio_to_spead2": 3.6, "alone_ratio_to_testpmd": 1.4, "one_in_flight_p50_above_sockperf_us": 0.3,
        "one_in_flight_p99_9_ratio_to_sockperf": 1.1,
        "notes": [], "ratio_to_spead2": None, "ratio_to_testpmd": 1.5, "p50_above_sockperf_us": 7.8, "p99_9_ratio_to_sockperf": 1.1,
    }  # fmt: skip
